// Formulas: only where a page says so (class math), with no menu, no further files and no links into the page.
window.MathJax = {
  tex: {inlineMath: [["$", "$"], ["\\(", "\\)"]], processEscapes: true, tags: "ams"},
  svg: {fontCache: "local"},
  options: {ignoreHtmlClass: "tex2jax_ignore|site", processHtmlClass: "math", enableMenu: false, enableAssistiveMml: true},
  startup: {elements: null},
};
document.addEventListener("DOMContentLoaded", () => document.body.classList.add("site"));
