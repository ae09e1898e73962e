"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk.

Pages are made from ``reports/`` and ``data/`` alone, the same bytes at every run. Figures and
tables are linked, next to ``reports/site``, not copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
import yaml
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from equipoise_compendium import claims, project, shown, terms
from equipoise_compendium.ledger import tally, verdicts
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.printed import read_text_table
from equipoise_compendium.provenance import read_manifest
from equipoise_compendium.settings import bibliography, settings
from equipoise_compendium.site.added import Page, modules, script
from equipoise_compendium.site.markup import cells, formula, framed, headings, image, prose
from equipoise_compendium.site.search import Part
from equipoise_compendium.words import plain

TEMPLATES = Path(__file__).parent / "templates"
LETTERS = {
    "reproduced": "=",
    "reproduced, differences explained": "≈",
    "partly reproduced": "≠",
    "cross-checked": "C",
    "redrawn": "D",
    "replicated on other data": "R",
    "not reproduced": "–",
}


# --- what the pages are made of -------------------------------------------------------------------


def reported() -> dict[str, Notebook]:
    """Read the executed notebooks of the reports that have a notebook, by name."""
    notebooks = {}
    for path in sorted((project.root() / "notebooks").glob("*.ipynb")):
        executed = project.root() / "reports" / path.stem / path.name
        if executed.is_file():
            notebooks[path.stem] = Notebook.read(executed)
    return notebooks


def read_ledger() -> pd.DataFrame:
    """Read the ledger, with the anchor, label, chapter and address of each table and figure."""
    table = read_text_table(project.root() / "reports" / "ledger.csv")
    table["anchor"] = table["paper"] + "-" + table["artefact"]
    table["label"] = table["artefact"].str.replace("-", " ").str.capitalize()
    table["chapter"] = table["artefact"].str.extract(r"-(\d+)\.", expand=False).fillna("")
    places = []
    for row in table.itertuples():
        page = f"{row.notebook}.html#" if row.notebook else "artefacts.html#row-"
        places.append(f"{page}{row.anchor}")
    return table.assign(place=places)


def guides() -> dict[str, tuple[str, str]]:
    """Read title and Markdown of every page of the guide, by the name of its page."""
    by_page = {}
    for name in settings().guide:
        path = project.inside(project.root(), settings().guides, f"{name}.md")
        if not settings().guides or not path.is_file():
            path = Path(__file__).parent / "guide" / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        # Links of a file in the repository lead to the same places on the site.
        text = re.sub(r"\]\((\w+)\.md", r"](guide-\1.html", text)
        text = re.sub(r"\]\((?:\.\./)+reports/site/", "](", text)
        by_page[f"guide-{name}"] = text.partition("\n")[0].lstrip("# "), text
    return by_page


def _field(entry: str, name: str) -> str:
    """Read a field of a BibTeX entry, without its braces."""
    match = re.search(rf"^\s*{name} = \{{(.*)\}},$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", match[1]) if match else ""


def _software() -> str:
    """Write the BibTeX entry of the compendium from ``CITATION.cff``; empty without this file."""
    path = project.root() / "CITATION.cff"
    if not path.is_file():
        return ""
    citation = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = []
    for author in citation["authors"]:
        names.append(author.get("name") or f"{author['given-names']} {author['family-names']}")
    lines = [
        # A second pair of braces keeps BibTeX from taking the name of a group apart.
        f"  author = {{{' and '.join(f'{{{name}}}' for name in names)}}},",
        f"  title = {{{citation['title']}}},",
        f"  version = {{{citation['version']}}},",
        f"  license = {{{citation['license']}}},",
    ]
    key = re.sub(r"\W+", "-", settings().name.lower())
    return "\n".join([f"@software{{{key},", *lines, "}"])


def work(key: str) -> str:
    """Write the key of a work as a reader knows it: first author and year, or the paper's name."""
    match = re.fullmatch(r"([a-z]+)(\d{4})", key)
    return f"{match[1].capitalize()} {match[2]}" if match else key.replace("-ch", ", ch. ")


def _style() -> bytes:
    """Return the style sheet, with the colours of highlighted code."""

    def colours(style: str) -> list[str]:
        rules = HtmlFormatter(style=style).get_style_defs(".highlight").splitlines()
        return [r.lower() for r in rules if r.startswith(".highlight .") and "background" not in r]

    # Both have a contrast of at least 4.6 to 1.
    media = "@media screen and (prefers-color-scheme: dark) {"
    added = ["", *colours("xcode"), media, *colours("lightbulb"), "}", ""]
    return (TEMPLATES / "style.css").read_bytes() + "\n".join(added).encode()


# --- pages ----------------------------------------------------------------------------------------


def _environment() -> jinja2.Environment:
    folders = [TEMPLATES, *(Path(str(module.__file__)).parent for module in modules())]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders), autoescape=True, undefined=jinja2.StrictUndefined
    )
    # Control characters in text of data and models are escaped; markup was clean before.
    environment.finalize = lambda value: plain(value) if type(value) is str else value
    environment.filters |= {
        "formula": formula,
        "headings": headings,
        "symbol": lambda tex: formula(tex, block=False),
        "css": terms.css_name,
        "work": work,
        "written": repr,
    }
    return environment


class _Site:
    """Pages made so far, by file name."""

    def __init__(self, notebooks: Mapping[str, Notebook], added: Sequence[Page]) -> None:
        self.files = {"assets/style.css": _style()}
        self.parts: list[Part] = []
        self._environment = _environment()
        self._environment.globals |= {
            "added": [page.name for page in added],
            "compendium": settings(),
            "guides": [(name, title) for name, (title, _) in guides().items()],
            "letters": LETTERS,
            "meanings": terms.STATUSES,
            "notebooks": notebooks,
            "verdicts": verdicts,
        }

    def add(self, template: str, name: str, title: str, **values: Any) -> None:
        """Make one page from a template."""
        page = self._environment.get_template(f"{template}.html")
        text = page.render(here=name, title=title, **values)
        lines = [line.rstrip() for line in text.splitlines()]
        self.files[f"{name}.html"] = ("\n".join(lines) + "\n").encode()
        self.parts.append(Part(f"{name}.html", title, ""))
        for anchor, heading in headings(text):
            self.parts.append(Part(f"{name}.html#{anchor}", heading, title))


def _document(text: str) -> Markup:
    return Markup(framed(prose(text)))  # noqa: S704 - prose() cleans


def _picture(ledger: pd.DataFrame) -> dict[str, Any]:
    """Return the figure of the first page; empty where it has not been made."""
    wanted = settings().picture
    if wanted is None:
        return {}
    is_wanted = (ledger["paper"] + "/" + ledger["artefact"] == wanted.artefact) & (
        ledger["notebook"] != ""
    )
    if not is_wanted.any():
        return {}
    row = ledger[is_wanted].iloc[0]
    file = next(file for file in row["files"].split() if file.endswith(".svg"))
    label = f"{row['paper']}, {row['label']}"
    drawn = image(f"../{quote(file)}", project.root() / "reports" / file, f"{label}: {row.title}")
    caption = f"{label}: {wanted.caption}" if wanted.caption else label
    return {"image": drawn, "caption": caption, "place": row["place"], "moves": wanted.page}


def _by_chapter(ledger: pd.DataFrame) -> list[tuple[str, dict[str, list[Any]]]]:
    """Return the artefacts of each paper by chapter."""
    papers = []
    for paper, rows in ledger.groupby("paper", sort=False):
        chapters = rows.groupby("chapter", sort=False)
        papers.append((str(paper), {str(name): part.to_dict("records") for name, part in chapters}))
    return papers


def _add_notebooks(
    site: _Site, notebooks: Mapping[str, Notebook], ledger: pd.DataFrame, works: Mapping[str, str]
) -> None:
    for name, notebook in notebooks.items():
        artefacts = ledger[ledger["notebook"] == name]
        regenerated = {*artefacts["paper"], *(artefacts["paper"] + "-ch" + artefacts["chapter"])}
        site.add(
            "notebook",
            name,
            notebook.title,
            notebook=notebook,
            cells=cells(project.root() / "reports" / name),
            artefacts=artefacts.to_dict("records"),
            references=[entry for key, entry in works.items() if key in regenerated],
        )


def pages() -> dict[str, bytes]:
    """Make every file of the site, by its path below ``reports/site``."""
    notebooks, ledger, works = reported(), read_ledger(), bibliography()
    judged = claims.read()
    counted = read_text_table(project.root() / "reports" / "verdicts.csv")
    added = [page for module in modules() if (page := module.page(notebooks)) is not None]
    site = _Site(notebooks, added)
    papers = _by_chapter(ledger)
    titles = {paper: _field(works.get(paper, ""), "title") for paper, _ in papers}

    findings = project.root() / "reports" / "findings.md"
    text = findings.read_text(encoding="utf-8") if findings.is_file() else ""
    text = re.sub("^## ", "### ", text.partition("\n## ")[2], flags=re.MULTILINE)
    answers = {}
    for name in notebooks:
        manifest = read_manifest(project.root() / "reports" / name)
        answers[name] = manifest["answer"] if manifest else []
    site.add(
        "contents",
        "index",
        settings().name,
        lead=settings().lead.format(artefacts=len(ledger)),
        statuses=ledger["status"].value_counts().to_dict(),
        papers=papers,
        titles=titles,
        findings=prose(f"### {text}".replace("](site/", "](")) if text else "",
        picture=_picture(ledger),
        tally=tally(counted),
        verdict_names=terms.VERDICTS,
        contradicted=[claim for claim in judged if claim["verdict"] == "contradicted"],
        answers=answers,
    )
    site.add("artefacts", "artefacts", "Tables and figures", papers=papers)
    site.add(
        "claims",
        "claims",
        "Claims",
        claims=judged,
        places=dict(zip(ledger["anchor"], ledger["place"], strict=True)),
        columns=shown.CLAIM_COLUMNS,
        cells=shown.claim_cells,
        details=shown.claim_details,
        verdict_names=terms.VERDICTS,
        kinds=terms.KINDS,
        bases=terms.BASES,
    )
    site.add("terms", "terms", "Terms", groups=terms.TERMS)
    _add_notebooks(site, notebooks, ledger, works)
    for page in added:
        site.add(page.name, page.name, page.title, **page.values)
    data_readme = (project.root() / "data" / "README.md").read_text(encoding="utf-8")
    site.add("document", "data", "Data", body=_document(data_readme))
    for name, (title, guide) in guides().items():
        site.add("document", name, title, body=_document(guide))
    cited = [each for each in works.items() if each[0].partition("-ch")[0] in titles]
    site.add("cite", "cite", "Cite", software=_software(), papers=cited)
    parts = [*site.parts, *(part for page in added for part in page.entries)]
    for row in ledger.itertuples():
        parts.append(Part(row.place, f"{row.paper}, {row.label}", f"{row.title} ({row.status})"))
    for claim in judged:
        address = f"claims.html#claim-{claim['paper']}-{claim['claim']}"
        parts.append(Part(address, claim["statement"], claim["verdict"], claim["quote"]))
    find, digest = script(TEMPLATES / "find.js")
    site.add("find", "find", "Find", parts=parts, script=find, digest=digest)
    return dict(sorted(site.files.items()))


# --- on disk --------------------------------------------------------------------------------------


def refresh() -> None:
    """Make the site again; files that are no longer part of it stay, and `check` names them."""
    folder = project.inside(project.root(), "reports/site")
    for name, content in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def check() -> list[str]:
    """Compare the site with the reports; empty where they agree."""
    folder = project.root() / "reports" / "site"
    on_disk = {}
    for path in folder.rglob("*"):
        if path.is_file():
            on_disk[path.relative_to(folder).as_posix()] = path.read_bytes()
    files = pages()
    faults = []
    for name in sorted({*on_disk, *files}):
        if name not in files:
            faults.append(f"reports/site/{name} is not part of the site: remove it")
        elif on_disk.get(name) != files[name]:
            faults.append(f"reports/site/{name} is outdated: run equipoise site")
    return faults
