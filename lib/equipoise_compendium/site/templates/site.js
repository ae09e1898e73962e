"use strict";
// Filters the entries of a page by words, sorts tables by a column, and opens what an address names.
(() => {
  const box = document.getElementById("q"), told = document.getElementById("told");
  const list = document.querySelector("[data-entries]");
  // Case, accents, ligatures, references and the forms of quotation marks and dashes do not matter.
  const simple = (text) => text.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f\u00ad]/g, "")
    .replace(/[\u2018\u2019\u201b\u2032`\u00b4]/g, "'").replace(/[\u201c-\u201f\u2033]/g, '"')
    .replace(/[\u2010-\u2015\u2212]/g, "-").replace(/\[[\d, ]+\]/g, " ").replace(/\s+/g, " ");
  const wordsOf = (text) => simple(text).split(" ").map((word) => word.replace(/^(?!--)[^\p{L}\p{N}]+|[^\p{L}\p{N}%]+$/gu, "")).filter(Boolean);
  if (box && list) {
    const entries = [...list.querySelectorAll(list.dataset.entries)].map((item) => ({
      item, name: simple((item.querySelector("a, summary, h3") || item).textContent),
      text: simple(`${item.textContent} ${item.dataset.words || ""}`), found: 0,
    }));
    // The choices of a form hide entries by its style sheet.
    let withWords = "";
    const count = () => {
      // A heading without a visible entry would push the others down.
      const sections = [...list.querySelectorAll("section.entries")];
      for (const section of sections) section.hidden = false;
      for (const section of sections) section.hidden = !entries.some(({ item }) => section.contains(item) && item.checkVisibility());
      const visible = entries.filter(({ item }) => item.checkVisibility()).length;
      told.textContent = `${visible} of ${entries.length}${withWords}`;
    };
    // Fairness is found by fairer, rankers by ranking.
    const stem = (word) => word.replace(/(?<=\p{L}{4})(ness|ings?|ers?|est|ed|es|s)$/u, "");
    const show = () => {
      const words = wordsOf(box.value).map(stem);
      for (const entry of entries) entry.found = words.filter((word) => entry.text.includes(word)).length;
      // A sentence shows the entries that quote it. Without an entry that has every word, those with most of them are shown.
      const most = entries.reduce((found, entry) => Math.max(found, entry.found), 0);
      const ranked = "ranked" in list.dataset, least = ranked ? 0.5 : words.length < 6 ? 1 : 0.75;
      const needed = most < least * words.length ? words.length : most;
      const sentence = simple(box.value).trim().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}%]+$/gu, "");
      const quoting = words.length > 3 ? entries.filter(({ text }) => text.includes(sentence)) : [];
      const hits = quoting.length ? quoting : entries.filter(({ found }) => found >= needed);
      for (const { item } of entries) item.hidden = true;
      for (const { item } of hits) item.hidden = false;
      withWords = needed < words.length ? `, with ${needed} of ${words.length} words` : "";
      if (words.length && hits.length < 4) for (const { item } of hits) if ("open" in item) item.open = true;
      if (ranked) {
        document.getElementById("nothing").hidden = hits.length > 0;
        // Entries with the words in their name come first, then those with the whole phrase, short names before long ones.
        const inName = ({ name }) => words.filter((word) => name.includes(word)).length;
        const hasPhrase = ({ text }) => text.includes(sentence);
        hits.sort((a, b) => inName(b) - inName(a) || hasPhrase(b) - hasPhrase(a) || (words.length ? a.name.length - b.name.length : 0));
        list.replaceChildren(...hits.map(({ item }) => item));
      }
      count();
    };
    box.value = new URLSearchParams(location.search).get("q") || "";
    box.addEventListener("input", show);
    box.form.addEventListener("change", count);
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

  for (const link of document.querySelectorAll("[data-panel]")) {
    const panel = document.getElementById(link.dataset.panel);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || !panel.showPopover) return;
      event.preventDefault();
      panel.showPopover();
      panel.focus();
    });
    panel.addEventListener("toggle", (event) => { if (event.newState === "closed") link.focus({ preventScroll: true }); });
  }

  addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.firstElementChild.focus();
  });

  for (const entry of navigator.clipboard ? document.querySelectorAll(".bibtex") : []) {
    const button = document.createElement("button");
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(entry.textContent);
      button.textContent = "Copied";
    });
    entry.after(button);
  }

  for (const all of document.querySelectorAll("[data-opens]")) {
    all.parentElement.hidden = false;
    all.addEventListener("change", () => {
      for (const part of document.querySelectorAll(all.dataset.opens)) part.open = all.checked;
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
