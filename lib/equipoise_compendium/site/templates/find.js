"use strict";
// Shows the places that contain every word of the box; those with the words in their name come first.
(() => {
  const box = document.getElementById("q"), told = document.getElementById("told"), list = document.getElementById("all");
  const entries = [...list.children].map((item) => ({
    item, name: item.firstElementChild.textContent.toLowerCase(),
    text: `${item.textContent} ${item.dataset.words || ""}`.toLowerCase(),
  }));
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = entries.filter(({ text }) => words.every((word) => text.includes(word)));
    const inName = ({ name }) => words.filter((word) => name.includes(word)).length;
    hits.sort((a, b) => inName(b) - inName(a) || (words.length ? a.name.length - b.name.length : 0));
    list.replaceChildren(...hits.map(({ item }) => item));
    told.textContent = `${hits.length} of ${entries.length}`;
  };
  box.value = new URLSearchParams(location.search).get("q") || "";
  box.addEventListener("input", show);
  document.getElementById("find").addEventListener("submit", (event) => event.preventDefault());
  show();
  box.focus();
})();
