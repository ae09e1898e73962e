"use strict";
// Puts a button on every block of code that copies it; where a browser cannot copy, there is none.
(() => {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll("pre:has(> code), .highlight pre")) {
    if (block.closest(".copied") || !block.textContent.trim()) continue;
    const frame = document.createElement("div"), button = document.createElement("button");
    frame.className = "copied";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent.trim() + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.replaceWith(frame);
    frame.append(block, button);
  }
})();
