// Formulas: only where a page says so (class math), from this one file, without a menu.
window.MathJax = {
  tex: {inlineMath: [["$", "$"], ["\\(", "\\)"]], processEscapes: true, tags: "ams"},
  svg: {fontCache: "local"},
  options: {ignoreHtmlClass: "no-math", processHtmlClass: "math", enableMenu: false},
};
