"""Guards what readers read: no identifier of a program stands as a word in a report."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from equipoise_compendium import project
from equipoise_compendium.site.pages import pages, reported
from prose import shipped

SILENT = {"code", "pre", "math", "script", "style"}
IDENTIFIER = re.compile(r"(?<![\w./#-])(?:[A-Za-z]\w*_\w+|[a-z]{2,}[A-Z]\w*)(?![\w/])")
NAMES = {"anCB", "ir_measures", "ir_datasets", "spaCy", "trec_eval", "uniCOIL"}
"""Names of programs and systems, which are written so by those who made them."""


class Words(HTMLParser):
    """Gathers the text of a page that is no code and no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.text = 0, list[str]()

    def handle_starttag(self, tag: str, _: object) -> None:
        self.open += tag in SILENT
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.open -= tag in SILENT

    def handle_data(self, data: str) -> None:
        self.text += [] if self.open else [data]


def identifiers(text: str) -> set[str]:
    return set(IDENTIFIER.findall(re.sub(r"https?://\S+|equipoise study \w+", "", text))) - NAMES


def test_no_identifier_is_a_word_of_a_page() -> None:
    found = {}
    for name, content in pages().items():
        page = Words()
        page.feed(content.decode() if name.endswith(".html") else "")
        found[name] = identifiers("".join(page.text))
    # A user's own words are on the page of the user's notebook; others repeat some, as its title.
    for notebook in set(reported()) - set(shipped()):
        theirs = found[f"{notebook}.html"]
        found = {name: words - theirs for name, words in found.items()}
    assert not {name: words for name, words in found.items() if words}


def test_no_identifier_is_a_word_of_a_figure() -> None:
    found = {}
    for notebook in shipped():
        for path in (project.root() / "reports" / notebook).glob("figures/*.svg"):
            labels = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))
            found[path.stem] = identifiers(" ".join(labels))
    assert len(found) > 30
    assert not {name: words for name, words in found.items() if words}


def test_identifiers_are_found_and_names_and_addresses_are_not() -> None:
    found = (
        "relevant_citations, omega_squared and topK by TExFAIR and nDCG "
        "of https://x.org/Alan_Turing in ir_measures"
    )
    assert identifiers(found) == {"relevant_citations", "omega_squared", "topK"}
