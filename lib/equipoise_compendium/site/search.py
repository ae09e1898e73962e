"""What the page Find searches: the parts of all pages, each with its words."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

EXCERPT = 140
"""Characters of a part's text that are shown beside its name."""
_HEADING = re.compile(r'<h([1-3])(?: id="([^"]*)")?[^>]*>(.*?)</h\1>', re.DOTALL)
_SECTION_ID = re.compile(r'<section\b[^>]*\bid="([^"]*)"[^>]*>\s*$')
_UNREAD = re.compile(
    r"<(script|style|svg|math|nav|form)\b.*?</\1>|<a class=\"anchor-link\".*?</a>"
    r"|<details class=\"(?:code|within)\".*?</details>",
    re.DOTALL,
)
_NAME_IN_CODE = re.compile(r"<code[^>]*>[^<]*_[^<]*</code>")
"""What reads as a word of the page once it is no longer set as code."""
_WORD = re.compile(r"[^\W\d_][\w.-]*[^\W_]|\d[\w.]*\w")


@dataclass(frozen=True)
class Part:
    """A part of a page: where it is, what it is called, how it begins, and its other words."""

    address: str
    name: str
    about: str
    words: str = ""


def _text(markup: str) -> str:
    """The text of markup, its white space joined."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def _words(text: str, name: str) -> str:
    """Each word of a text once, without those of the part's name and without bare numbers."""
    words = {word.lower() for word in _WORD.findall(text) if not word.replace(".", "").isdigit()}
    return " ".join(sorted(words - set(name.lower().split())))


def parts_of(page_name: str, title: str, page: str) -> Iterator[Part]:
    """The parts of a page: from each of its headings to the next."""
    _, _, main = page.partition("<main")
    main = _UNREAD.sub(" ", main.partition("</main>")[0])
    headings = list(_HEADING.finditer(main))
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(main)
        text = _text(main[heading.end() : end])
        name = _text(heading[3])
        of_section = _SECTION_ID.search(main[: heading.start()])
        anchor = heading[2] or (of_section[1] if of_section else "")
        is_top = heading[1] == "1"
        address = page_name if is_top or not anchor else f"{page_name}#{anchor}"
        prose = _text(_NAME_IN_CODE.sub("…", main[heading.end() : end]))
        beginning = prose[:EXCERPT].rpartition(" ")[0] if len(prose) > EXCERPT else prose
        about = beginning if is_top else f"{title}: {beginning}"
        yield Part(address, name, about, _words(text, name))


def text_parts(pages: Mapping[str, bytes], titles: Mapping[str, str]) -> list[Part]:
    """The parts of all pages."""
    parts: list[Part] = []
    for name, page in sorted(pages.items()):
        if name.endswith(".html"):
            parts += parts_of(name, titles[name], page.decode())
    return parts
