"use strict";
// Shows the entries that hold every word of the box; the words come with the address, Enter goes to the first entry.
(() => {
  const box = document.getElementById("q"), told = document.getElementById("told");
  const sections = [...document.querySelectorAll("section.all")];
  const entries = [...document.querySelectorAll("section.all li")].map((e) => [e, e.textContent.toLowerCase()]);
  const show = () => {
    const words = box.value.toLowerCase().split(/[\s,:]+/).filter(Boolean);
    for (const [entry, text] of entries) entry.hidden = !words.every((word) => text.includes(word));
    for (const section of sections) section.hidden = !section.querySelector("li:not([hidden])");
    const left = entries.filter(([entry]) => !entry.hidden).length;
    told.textContent = `${left} of ${entries.length}; Enter goes to the first`;
  };
  box.value = new URLSearchParams(location.search).get("q") || "";
  box.addEventListener("input", show);
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    document.querySelector("section.all li:not([hidden]) a")?.click();
  });
  show();
  box.focus();
})();
