"""A crawl of a site on disk: its links, anchors and ids."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The tags of a page, with the ids and addresses in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    @property
    def ids(self) -> list[str]:
        """The ids, in their order."""
        return [values["id"] for _, values in self.tags if "id" in values]

    @property
    def addresses(self) -> list[str]:
        """The addresses of links, images and style sheets."""
        found = []
        for _, values in self.tags:
            found += [values[name] for name in ("href", "src", "srcset") if values.get(name)]
        return found


def pages(site: Path) -> dict[Path, Page]:
    """Parse every page of a site."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.glob("*.html"))}


def broken_links(site: Path) -> list[str]:
    """Return links that lead nowhere, ids that repeat, and addresses that load from elsewhere."""
    parsed = pages(site)
    faults = []
    for path, page in parsed.items():
        repeated = [name for name, count in Counter(page.ids).items() if count > 1]
        faults += [f"{path.name}: id {name} repeats" for name in repeated]
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme:
                if parts.scheme not in ("https", "data"):
                    faults.append(f"{path.name}: {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.exists():
                faults.append(f"{path.name}: {address} leads nowhere")
            elif parts.fragment and target in parsed:
                if unquote(parts.fragment) not in parsed[target].ids:
                    faults.append(f"{path.name}: {address} has no such anchor")
    return faults
