"""The pages of the site, parsed, and a text that would do harm in one."""

import re
from html.parser import HTMLParser

from equipoise import catalogue
from equipoise_compendium import project
from equipoise_compendium.site import pages as site

PAGES = site.pages()
HTML = [name for name in PAGES if name.endswith(".html")]
SITE = project.root() / "reports" / "site"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    '<svg onload="document.title=1"><a href="javascript:alert(1)">x</a></svg>'
    "<iframe src='http://192.0.2.1/'></iframe><img src='http://192.0.2.1/a.png'> "
    "$\\href{http://192.0.2.1}{x}$ & | `"
)


class Page(HTMLParser):
    """Tags of a page, with the ids and links that stand in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.append((tag, values))
        if "id" in values:
            self.ids.append(values["id"])

    def all(self, tag: str) -> list[dict[str, str]]:
        return [values for name, values in self.tags if name == tag]


PARSED = {name: Page(PAGES[name].decode()) for name in HTML}
REPORTED = site.reported()


def formulas_of(page: str) -> int:
    """Formulas that the sources of a page hold."""
    if page == "measures.html":
        return sum(1 + len(measure.symbols) for measure in catalogue.MEASURES)
    notebook = REPORTED.get(page.removesuffix(".html"))
    cells = (
        [cell.source for cell in notebook.content.cells if cell.cell_type == "markdown"]
        if notebook
        else []
    )
    prose = re.sub(r"`.*?`", "", "\n".join(cells), flags=re.DOTALL)
    return len(re.findall(r"\$\$.+?\$\$|\$.+?\$", prose, re.DOTALL))
