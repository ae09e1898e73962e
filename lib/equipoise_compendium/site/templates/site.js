"use strict";
// Filters the entries of a page by words, sorts tables by a column, and opens what an address names.
(() => {
  const box = document.getElementById("q"), told = document.getElementById("told");
  const list = document.querySelector("[data-entries]");
  // Case, accents, ligatures and references do not matter. A reader's "my own" is the guide's "your".
  const simple = (text) => text.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f\u00ad]/g, "")
    .replace(/\[[\d, ]+\]/g, " ").replace(/\b(my|your)( own)?\b/g, "your");
  // In a phrase, spaces, hyphens and quotation marks do not matter: a copy from a PDF changes them.
  const phraseOf = (text) => simple(text).replace(/[^\p{L}\p{N}]/gu, "");
  // Fairness is found by fairer, rankers by ranking.
  const stem = (word) => word.replace(/(?<=\p{L}{4})(ness|ings?|ers?|est|ed|es?|ions?)$|(?<=\p{L}{3})s$/u, "");
  const wordsOf = (text) => (simple(text).match(/--[\w-]+|\p{N}+(\.\p{N}+)*|[\p{L}\p{N}]+/gu) || []).map(stem);
  const COMMON = new Set("a an and are as by do for from how i in is it of on or the that this to we what where which with".split(" "));
  const spaced = (text) => ` ${wordsOf(text).join(" ")} `;
  if (box && list) {
    const entries = [...list.querySelectorAll(list.dataset.entries)].map((item) => {
      const name = (item.querySelector("a, summary, h3") || item).textContent, text = `${item.textContent} ${item.dataset.words || ""}`;
      return { item, length: item.className ? 0 : name.length, name: spaced(name), text: spaced(text), phrase: phraseOf(text), found: 0, score: 0 };
    });
    const ranked = "ranked" in list.dataset, nothing = document.getElementById("nothing");
    // The choices of a form, by the name of their question, hide entries by its style sheet.
    const choices = [...box.form.querySelectorAll("[type=checkbox]")], names = [...new Set(choices.map(({ name }) => name))];
    const chosen = (name) => choices.filter((choice) => choice.name === name && choice.checked);
    const plain = (text) => text.replaceAll("-", " "), valuesOf = (name) => chosen(name).map(({ value }) => plain(value));
    const count = () => {
      // A heading without a visible entry would push the others down.
      const sections = [...list.querySelectorAll("section.entries")];
      sections.forEach((section) => { section.hidden = false; });
      for (const section of sections) section.hidden = !entries.some(({ item }) => section.contains(item) && item.checkVisibility());
      const visible = entries.filter(({ item }) => item.checkVisibility()).length;
      told.textContent = `${visible} of ${entries.length}`;
      const has = (item, choice) => item.classList.contains(choice.dataset.shows);
      for (const choice of choices) {
        const others = names.filter((name) => name !== choice.name && chosen(name).length).map(chosen);
        const left = entries.filter(({ item }) => !item.hidden && has(item, choice) && others.every((some) => some.some((other) => has(item, other))));
        choice.parentElement.querySelector(".counts").textContent = `(${left.length})`;
      }
      if (nothing) nothing.hidden = visible > 0;
      const answers = names.filter((name) => name !== "kind" && chosen(name).length).map((name) => `the answer “${valuesOf(name).join("” or “")}” ${plain(name)}`);
      if (box.value) answers.push(`“${box.value}”`);
      if (names.length) nothing.firstElementChild.textContent = `No ${valuesOf("kind").join(" or ") || "claim"} has ${answers.join(" and ")}.`;
    };
    const show = () => {
      const all = wordsOf(box.value), phrase = phraseOf(box.value), asked = all.filter((word) => !COMMON.has(word));
      if (!asked.length) asked.push(...all);
      // A number is whole, a short word begins a word, a long one is a part of one.
      const sought = asked.map((word) => word.length < 3 || /^\d/.test(word) ? ` ${word} ` : word.length < 4 ? ` ${word}` : word);
      // A rare word counts more than a common one.
      const weights = sought.map((word) => Math.log(1 + entries.length / entries.filter(({ text }) => text.includes(word)).length));
      const sum = (text) => sought.reduce((total, word, at) => total + (text.includes(word) && weights[at]), 0);
      for (const entry of entries) {
        entry.found = sought.filter((word) => entry.text.includes(word)).length;
        // Words in a name count twice, and so does an entry with the whole phrase.
        entry.score = (sum(entry.text) + sum(entry.name)) * (asked.length > 1 && entry.phrase.includes(phrase) ? 2 : 1);
      }
      const most = Math.max(...entries.map(({ found }) => found)), best = Math.max(...entries.map(({ score }) => score));
      // In a sentence a quarter of the words may differ; a ranked list has what is half as good as its first entry.
      const isHit = ({ found, score }) => ranked ? score && score >= best / 2 : found >= (asked.length < 6 ? 1 : 0.75) * asked.length;
      const hits = asked.length ? entries.filter(isHit) : [...entries];
      for (const entry of entries) entry.item.hidden = !hits.includes(entry);
      if (ranked && asked.length) hits.sort((a, b) => b.score - a.score || a.length - b.length);
      if (ranked) list.replaceChildren(...hits.map(({ item }) => item));
      count();
      if (ranked && hits.length && most < asked.length) told.textContent += `, with ${most} of ${asked.length} words`;
    };
    // The address says what is asked and chosen, except what the page chooses itself.
    const keep = () => {
      const state = new URLSearchParams(box.value && { q: box.value });
      for (const name of names) {
        const values = chosen(name).map(({ value }) => value), isChanged = ({ checked, defaultChecked }) => checked !== defaultChecked;
        if (choices.some((choice) => choice.name === name && isChanged(choice))) for (const value of values.length ? values : [""]) state.append(name, value);
      }
      history.replaceState(null, "", `${location.pathname}?${state}${location.hash}`.replace(/\?(?=#|$)/, ""));
    };
    const address = new URLSearchParams(location.search);
    box.value = address.get("q") || "";
    for (const choice of choices) choice.checked = address.has(choice.name) ? address.getAll(choice.name).includes(choice.value) : choice.defaultChecked;
    box.addEventListener("input", show);
    box.form.addEventListener("change", () => { count(); keep(); });
    box.form.addEventListener("submit", (event) => { event.preventDefault(); keep(); });
    show();
    if (ranked) box.focus();
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
    let fold = named?.closest("details");
    if (!fold) return;
    for (; fold; fold = fold.parentElement.closest("details")) fold.open = true;
    named.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
