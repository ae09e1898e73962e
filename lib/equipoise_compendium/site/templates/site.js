"use strict";
// Filters the entries of a page by words, sorts tables by a column, and opens what an address names.
(() => {
  const box = document.getElementById("q"), told = document.getElementById("told");
  const list = document.querySelector("[data-entries]");
  if (box && list) {
    const entries = [...list.querySelectorAll(list.dataset.entries)].map((item) => ({
      item, name: (item.querySelector("a, summary, h3") || item).textContent.toLowerCase(),
      text: `${item.textContent} ${item.dataset.words || ""}`.toLowerCase(),
    }));
    const show = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const hits = entries.filter(({ text }) => words.every((word) => text.includes(word)));
      for (const { item } of entries) item.hidden = true;
      for (const { item } of hits) item.hidden = false;
      told.textContent = `${hits.length} of ${entries.length}`;
      if (!("ranked" in list.dataset)) return;
      // Entries with the words in their name come first, short names before long ones.
      const inName = ({ name }) => words.filter((word) => name.includes(word)).length;
      hits.sort((a, b) => inName(b) - inName(a) || (words.length ? a.name.length - b.name.length : 0));
      list.replaceChildren(...hits.map(({ item }) => item));
    };
    box.value = new URLSearchParams(location.search).get("q") || "";
    box.addEventListener("input", show);
    box.form.addEventListener("submit", (event) => event.preventDefault());
    show();
    if ("ranked" in list.dataset) box.focus();
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[column].textContent.replace("−", "-").replace(/^≠ |,/g, "");
        const compare = (a, b) => {
          const [x, y] = [value(a), value(b)], [m, n] = [parseFloat(x), parseFloat(y)];
          if (isNaN(m) || isNaN(n)) return isNaN(m) - isNaN(n) || (up ? 1 : -1) * x.localeCompare(y);
          return up ? m - n : n - m;
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
      });
    });
  }

  const all = document.getElementById("open-all");
  if (all) {
    all.parentElement.hidden = false;
    all.addEventListener("change", () => {
      for (const part of document.querySelectorAll("details.part")) part.open = all.checked;
    });
  }
  const open = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!named) return;
    let fold = named.closest("details");
    if (!fold) return;
    for (; fold; fold = fold.parentElement.closest("details")) fold.open = true;
    named.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
