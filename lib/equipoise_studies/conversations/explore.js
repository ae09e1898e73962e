"use strict";
// Looks up the scores of the chosen settings and moves the marks; every number comes from the report.
(() => {
  const data = JSON.parse(document.getElementById("lookup").textContent);
  const form = document.getElementById("settings");
  const settings = ["patience", "gains", "target", "stop"];
  const at = id => document.getElementById(id);

  function show() {
    const topic = form.elements.topic.value, grid = data.topics[topic];
    for (const name of Object.keys(data.topics)) at(`about-${name}`).hidden = name !== topic;
    const place = settings.reduce((sum, name, i) => sum * grid.sizes[i] + Number(form.elements[name].value), 0);
    const count = grid.sizes.reduce((product, size) => product * size, 1);
    const words = grid.patience[form.elements.patience.value];
    at("words").textContent = `${words} words`;
    grid.runs.forEach((run, r) => {
      const row = grid.values[r * count + place];
      grid.scores.forEach((score, s) => {
        at(`${topic}-${r}-${s}`).textContent = row[s].toFixed(data.decimals);
        at(`${topic}-mark-${r}-${s}`).setAttribute("x", `${100 * Math.cbrt(row[s])}%`);
      });
    });
    for (const end of ["x1", "x2"]) at(`${topic}-limit`).setAttribute(end, `${100 * Math.min(words / grid.longest, 1)}%`);
    at(`${topic}-words`).textContent = `L = ${words}` + (words > grid.longest ? " (beyond the end)" : "");
    for (const nugget of document.querySelectorAll(`#about-${topic} .nugget`))
      nugget.classList.toggle("beyond", Number(nugget.dataset.end) > words);
    form.elements.patience.setAttribute("aria-valuetext", `${words} words`);
    at("told").textContent = told(grid, topic, grid.runs.map((_, r) => grid.values[r * count + place]));
  }

  // One sentence on what changed: the setting, and the scores of both runs before and after.
  let before = null;
  function told(grid, topic, rows) {
    const labels = Object.fromEntries(settings.map((name) => {
      const chosen = form.elements[name].selectedOptions;
      return [name, chosen ? chosen[0].textContent : at("words").textContent];
    }));
    const changed = before && before.topic === topic ? settings.filter((name) => labels[name] !== before.labels[name]) : [];
    const parts = ["GFRC", "GFRC2"].map((score) => {
      const s = grid.scores.indexOf(score);
      return `${score} ` + grid.runs.map((run, r) => {
        const now = rows[r][s], old = changed.length ? before.rows[r][s] : now;
        const verb = now > old ? "rises to" : now < old ? "falls to" : changed.length ? "stays" : "is";
        return `of ${run} ${verb} ${now.toFixed(data.decimals)}`;
      }).join(" and ");
    });
    const names = { patience: "Patience", gains: "Gains", target: "Target", stop: "Stopping model" };
    const lead = changed.map((name) => `${names[name]}: ${before.labels[name]} → ${labels[name]}. `).join("");
    before = { topic, labels, rows };
    return `${lead}${parts.join("; ")}.`;
  }

  // The address has the topic and every setting that is not the paper's. It stays as it is until a
  // setting changes: a browser scrolls to the place that an address names.
  function remember() {
    const topic = form.elements.topic.value, grid = data.topics[topic];
    const state = settings.map((name, i) => [name, form.elements[name].value, String(grid.paper[i])])
      .filter(([, value, paper]) => value !== paper).map(([name, value]) => `&${name}=${value}`);
    history.replaceState(null, "", `#about-${topic}${state.join("")}`);
  }

  function settle() { // a topic is first shown with the settings of its paper
    data.topics[form.elements.topic.value].paper.forEach((choice, i) => { form.elements[settings[i]].value = choice; });
  }

  function restore() { // an address such as #about-R112&patience=3
    const [place, ...state] = location.hash.slice(1).split("&"), topic = place.replace(/^about-/, "");
    if (Object.hasOwn(data.topics, topic)) form.elements.topic.value = topic;
    settle();
    const { sizes } = data.topics[form.elements.topic.value];
    for (const [name, value] of state.map(pair => pair.split("="))) {
      const i = settings.indexOf(name);
      if (i >= 0 && /^\d+$/.test(value) && Number(value) < sizes[i]) form.elements[name].value = value;
    }
    show();
  }

  form.addEventListener("input", event => { if (event.target.name === "topic") settle(); show(); remember(); });
  form.addEventListener("submit", event => { event.preventDefault(); settle(); show(); remember(); });
  addEventListener("hashchange", restore);
  form.querySelector("fieldset").disabled = false;
  at("off").hidden = true;
  restore();
})();
