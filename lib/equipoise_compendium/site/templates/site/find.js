"use strict";
// Shows what holds every word of the box, or a word like it, the best first; Enter goes to the first. The words come with the address.
(() => {
  const alike = [
    ["licence", "license", "licences", "copyright"], ["cite", "citation", "citing", "bibtex", "reference"], ["score", "measure", "evaluate", "compute"],
    ["definition", "define", "defined", "formula", "meaning"], ["fork", "own", "copy", "template"], ["reproduced", "reproduce", "reproducible", "replicated", "regenerated"],
    ["contradicted", "refuted", "wrong", "false"], ["code", "source", "notebook"], ["install", "installation", "pip", "start"], ["data", "dataset", "collection"],
    ["figure", "fig", "plot", "chart"], ["metric", "metrics", "measure", "measures"], ["significance", "significant", "test", "anova"], ["bias", "fairness", "fair"], ["run", "runs", "ranked", "list", "lists"],
  ];
  const small = new Set("a an and are at by can do does for from how i in is it me my of on or our the this to was we what where which why with you your".split(" "));
  const box = document.getElementById("q"), told = document.getElementById("told"), best = document.getElementById("best");
  const sections = [...document.querySelectorAll("section.all")];
  const plain = (text) => " " + text.toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, " ") + " ";
  const entries = [...document.querySelectorAll("section.all li")].map((item) => {
    const link = item.querySelector("a"), name = link.textContent;
    return { item, page: !link.hash, name: plain(name), length: name.length, about: plain(item.textContent.slice(name.length)), words: plain(item.dataset.words || "") };
  });
  // A word counts for more in a name than in what is said of it, and for more whole than as the beginning of another.
  const worth = (entry, word) => {
    for (const [text, value] of [[entry.name, 8], [entry.about, 3], [entry.words, 1]]) {
      if (text.includes(` ${word} `)) return value * 2;
      if (text.includes(` ${word}`)) return value;
    }
    return 0;
  };
  const rank = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      const direct = Math.max(worth(entry, word), worth(entry, word.replace(/(?<=...)s$/, "")));
      const others = alike.filter((group) => group.includes(word)).flat().map((other) => worth(entry, other) * 0.8);
      const value = Math.max(direct, ...others);
      if (!value) return 0;
      sum += value;
    }
    const named = !entry.page && words.includes(entry.name.trim()) ? 6 : 0;
    return sum + named + (entry.page ? 0.5 : 0) - entry.length / 1000;
  };
  const show = () => {
    const all = plain(box.value).trim().split(" ").filter(Boolean);
    const words = all.some((word) => !small.has(word)) ? all.filter((word) => !small.has(word)) : all;
    const hits = words.length ? entries.map((entry) => [rank(entry, words), entry]).filter(([value]) => value > 0) : [];
    hits.sort(([a], [b]) => b - a);
    // A place that has a name of its own is a part of its page as well: once is enough.
    const places = new Set(hits.map(([, entry]) => entry.item.querySelector("a").href));
    const firsts = hits.filter(([, entry]) => places.delete(entry.item.querySelector("a").href));
    best.replaceChildren(...firsts.slice(0, 40).map(([, entry]) => entry.item.cloneNode(true)));
    best.hidden = !words.length;
    for (const section of sections) section.hidden = words.length > 0;
    told.textContent = words.length ? `${firsts.length} of ${entries.length}; Enter goes to the first` : "";
  };
  box.value = new URLSearchParams(location.search).get("q") || "";
  box.addEventListener("input", show);
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    best.querySelector("a")?.click();
  });
  show();
  box.focus();
})();
