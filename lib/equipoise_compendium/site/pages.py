"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk.

Pages are made from ``reports/`` and ``data/`` alone, the same bytes at every run. Figures and
tables are linked, next to ``reports/site``, not copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml
from markupsafe import Markup

from equipoise_compendium import build, project, protocol, registry, terms
from equipoise_compendium.ledger import answers, tally
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.printed import read_text_table
from equipoise_compendium.rendering import (
    TEMPLATES,
    claim_anchor,
    environment,
    markdown_table,
)
from equipoise_compendium.settings import bibliography, settings
from equipoise_compendium.site import picture
from equipoise_compendium.site.added import Page, Part, modules, script
from equipoise_compendium.site.compared import compared
from equipoise_compendium.site.markup import (
    Code,
    Context,
    article,
    figures,
    formula,
    headings,
    prose,
    tables,
)
from equipoise_compendium.verdicts import QUESTIONS
from equipoise_compendium.verdicts import read as read_claims
from equipoise_compendium.writing import write_files

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
    table["work"] = table["paper"] + ("-ch" + table["chapter"]).where(table["chapter"] != "", "")
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
        text = re.sub(r"\]\((?:\.\./)+reports/", "](../", text).replace("](../site/", "](")
        text = re.sub(r"\]\((?:\.\./)+data/examples/(\w+\.svg)", r"](assets/\1", text)
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
    # Of the release: an archive or a repository has its address.
    fields = {
        "year": str(citation.get("date-released", ""))[:4],
        "doi": citation.get("doi"),
        "url": settings().repository or citation.get("repository-code") or citation.get("url"),
        "note": f"commit {citation['commit']}" if "commit" in citation else "",
    }
    lines += [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    key = re.sub(r"\W+", "-", settings().name.lower())
    return "\n".join([f"@software{{{key},", *lines, "}"])


def authors(entry: str) -> str:
    """Write the family names of a BibTeX entry and its year; empty without them."""
    names = [name.partition(",")[0] for name in _field(entry, "author").split(" and ")]
    shown = (
        f"{names[0]} et al." if len(names) > 3 else " and ".join([", ".join(names[:-1]), names[-1]])
    )
    return f"{shown.removeprefix(' and ')} {_field(entry, 'year')}".strip()


def work(key: str) -> str:
    """Write the key of a work as a reader knows it: authors and year, or else the key."""
    return authors(bibliography().get(key, "")) or key


# --- pages ----------------------------------------------------------------------------------------


def _headline(text: str) -> tuple[str, str]:
    """Split a text after its first sentence of at least forty characters."""
    end = re.compile(r"[.?!] (?=[A-Z])").search(text, 40)
    return (text[: end.start() + 1], text[end.end() :]) if end else (text, "")


def _environment() -> jinja2.Environment:
    folders = [Path(str(module.__file__)).parent for module in modules()]
    made = environment(*folders, in_notebook=False)
    made.filters |= {
        "document": prose,
        "formula": formula,
        "headings": headings,
        "headline": _headline,
        "symbol": lambda tex: formula(tex, block=False),
        "work": work,
        "written": repr,
    }
    return made


@dataclass(frozen=True)
class _Chapter:
    """A paper or a chapter of one, with its notebooks, findings, and cells compared and equal.

    ``name``: in addresses. ``by``: authors and year. ``within``: the paper of a chapter.
    """

    name: str
    by: str
    subject: str
    within: Mapping[str, str]
    notebooks: list[str]
    findings: list[Mapping[str, Any]]
    cells: int
    equal: int

    @property
    def title(self) -> str:
        """Authors, year and title."""
        return f"{self.by}: {self.subject}" if self.subject else self.by

    @property
    def address(self) -> str:
        """Its notebook, or the list of its notebooks."""
        only = len(self.notebooks) == 1
        return f"{self.notebooks[0]}.html" if only else f"notebooks.html#{self.name}"


class _Site:
    """Pages made so far, by file name."""

    def __init__(
        self,
        notebooks: Mapping[str, Notebook],
        added: Sequence[Page],
        chapters: Sequence[_Chapter],
    ) -> None:
        self.files = {"assets/style.css": (TEMPLATES / "style.css").read_bytes()}
        self.parts: list[Part] = []
        self._environment = _environment()
        text, digest = script(TEMPLATES / "site.js")
        self._environment.globals |= {
            "site_script": Markup(text),  # noqa: S704 - it is ours
            "site_digest": digest,
            "added": [page.name for page in added],
            "chapters": chapters,
            "menu_of_chapters": [(f"notebooks.html#{each.name}", each.title) for each in chapters],
            "compendium": settings(),
            "guides": [(f"{name}.html", title) for name, (title, _) in guides().items()],
            "meanings": terms.STATUSES,
            "questions": QUESTIONS,
            "tally": tally(read_text_table(project.root() / "reports" / "answers.csv")),
            "notebooks": notebooks,
            "has_findings": bool(_findings()),
            "has_protocol": bool(_rule()),
            "answers_of": answers,
            "intervals": picture.intervals,
            "main_claims": settings().main.values(),
            "written": [(f"{name}.html", _WRITTEN[name][0]) for name in _WRITTEN if _written(name)],
        }
        picture_of_findings = self._environment.get_template("findings.svg").render()
        self.files["assets/findings.svg"] = f"{picture_of_findings}\n".encode()
        # A host of the pages has no examples, to which the guide leads in the repository.
        for path in (project.root() / "data" / "examples").glob("*.svg"):
            self.files[f"assets/{path.name}"] = path.read_bytes()

    def add(self, template: str, name: str, title: str, **values: Any) -> None:
        """Make one page from a template."""
        page = self._environment.get_template(f"{template}.html")
        lines = page.render(here=name, title=title, **values).splitlines()
        text = "".join(f"{line.rstrip()}\n" for line in lines)
        self.files[f"{name}.html"] = text.encode()
        # Its first paragraph says what it is about, the first page what a reader can do there.
        lead = re.search(r"</h1>.*?<p[^>]*>(.*?)</p>", text, re.DOTALL)
        can_do = [" ".join(each[1:]) for each in settings().actions if each[0] == f"{name}.html"]
        about = Markup(lead[1] if lead else "").striptags()  # noqa: S704 - text is left
        self.parts.append(Part(f"{name}.html", title, about, " ".join(can_do)))
        for anchor, part in headings(text):
            self.parts.append(Part(f"{name}.html#{anchor}", part, title))


def _by_chapter(ledger: pd.DataFrame) -> list[tuple[str, dict[str, list[Any]]]]:
    """Return the artefacts of each paper by chapter."""
    papers = []
    for paper, rows in ledger.groupby("paper", sort=False):
        chapters = rows.groupby("chapter", sort=False)
        papers.append((str(paper), {str(name): part.to_dict("records") for name, part in chapters}))
    return papers


def _findings() -> str:
    """Read the findings as Markdown with links of the site; empty without any."""
    path = project.root() / "reports" / "findings.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return text.replace("](site/", "](") if "\n## " in text else ""


def _main_findings(
    findings: str, judged: Sequence[Mapping[str, Any]]
) -> dict[str, list[tuple[Markup, Any]]]:
    """Return the first two findings of each section, by its heading, as HTML with their claims."""
    by_anchor = {claim_anchor(claim): claim for claim in judged}
    listed = {}
    for section in findings.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        if entries := re.findall("^- (.+)$", text, re.MULTILINE)[:2]:
            claims = [re.search(r"#(claim-[\w.-]+)", entry) for entry in entries]
            listed[heading] = [
                (prose(entry), by_anchor.get(claim[1]) if claim else None)
                for entry, claim in zip(entries, claims, strict=True)
            ]
    return listed


_WRITTEN = {
    "unlock": (
        "Unlock",
        "Findings that cannot be judged, the file that would decide each, and who has it. "
        "The claims page shows each finding by its key.",
    ),
    "errata": (
        "Errata",
        "Published statements that differ from what the paper's own numbers or definitions imply, "
        "with a proof. The last column is for the reply of the authors.",
    ),
}
"""Title and lead of the pages that show a table of ``data/published``."""
_DATES = (
    "The first table counts the entries of the protocol by date, and by whether the evidence was "
    "known when the criterion was written. The second has the dates of the data files in the "
    "history of the repository. Evidence from a file that is older than an entry may have been "
    "known before it."
)


def _written(name: str) -> str:
    """Read a table that people write as Markdown, with its title and lead; empty without it."""
    path = project.root() / "data" / "published" / f"{name}.csv"
    if not path.is_file():
        return ""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    title, lead = _WRITTEN[name]
    return f"# {title}\n\n{lead}\n\n{markdown_table(list(table), table.to_numpy())}"


def _rule() -> str:
    """Read the rule of the protocol as Markdown, with dates of its entries and of the data."""
    folder = project.root() / "data" / "published"
    if not (folder / "protocol.md").is_file():
        return ""
    text = (folder / "protocol.md").read_text(encoding="utf-8")
    if (folder / "data_dates.csv").is_file():
        entries = read_text_table(folder / "changes.csv").groupby(["date", "paper", "seen"]).size()
        counted = markdown_table(
            ["Date", "Paper", "Evidence seen before", "Entries"],
            [(*key, number) for key, number in entries.items()],
        )
        dates = read_text_table(folder / "data_dates.csv").sort_values("first recorded")
        listed = markdown_table(list(dates), dates.to_numpy())
        text += f"\n## Dates of entries and of data\n\n{_DATES}\n\n{counted}\n{listed}"
    return text


def _sources(notebook: Notebook) -> list[tuple[str, str]]:
    """List the repository and the licence of each item that the derived data are made from."""
    code = "\n".join(cell.source for cell in notebook.content.cells if cell.cell_type == "code")
    items = set()
    for study in re.findall(r'(?:equipoise_studies\.|facts/|"facts", ")(\w+)', code):
        path = project.root() / "data" / "facts" / study / "sources.csv"
        if path.is_file():
            sources = read_text_table(path)["source"]
            items |= set(sources.str.extract(r"^registry:([^/]+)/", expand=False).dropna())
    if not items:
        return []
    table = registry.entries().drop_duplicates("item").set_index("item")
    listed = []
    for item in sorted(items & set(table.index)):
        repository = re.search(r"//[^/]+/([^/]+/[^/]+)", table.loc[item, "url"])
        place = repository[1] if repository else table.loc[item, "url"]
        listed.append((place, table.loc[item, "licence"]))
    return listed


def _collections(judged: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the collections that judge claims, by paper."""
    by_paper = {}
    for paper in sorted({claim["paper"] for claim in judged}):
        by_paper[paper] = protocol.collections(paper).reset_index().to_dict("records")
    return by_paper


def _differing(
    records: Mapping[str, Mapping[str, Any]], ledger: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Give the cells that differ from the published ones, each with its row of the ledger."""
    for row in ledger[ledger["notebook"] != ""].to_dict("records"):
        for cell in records[f"{row['paper']}/{row['artefact']}"]["differences"]:
            yield {**cell, "artefact": row}


def _chapters(
    ledger: pd.DataFrame, works: Mapping[str, str], judged: Sequence[Mapping[str, Any]]
) -> list[_Chapter]:
    """List the papers by chapter; their findings are in the order of both answers."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ledger["work"]}
    of_artefact = dict(zip(ledger["anchor"], ledger["work"], strict=True))
    order = [*terms.IN_PAPER, *terms.ELSEWHERE]
    for claim in judged:
        if claim["kind"] == "finding":
            found[of_artefact[f"{claim['paper']}-{claim['artefact']}"]].append(claim)
    chapters = []
    for name, rows in ledger.groupby("work", sort=False):
        paper, chapter = rows["paper"].iloc[0], rows["chapter"].iloc[0]
        by, within = work(paper), {}
        if chapter:
            within = {"by": by, "title": _field(works.get(paper, ""), "title")}
            by = f"{by}, chapter {chapter}"
        cells = pd.to_numeric(rows["cells"]).sum()
        chapters.append(
            _Chapter(
                str(name),
                by,
                _field(works.get(str(name), ""), "title"),
                within,
                sorted(set(rows["notebook"]) - {""}),
                sorted(
                    found[str(name)],
                    key=lambda claim: [order.index(claim[at]) for at in ("in_paper", "elsewhere")],
                ),
                int(cells),
                int(cells - pd.to_numeric(rows["differing"]).sum()),
            )
        )
    return chapters


def _add_notebooks(
    site: _Site,
    notebooks: Mapping[str, Notebook],
    added: Sequence[Page],
    ledger: pd.DataFrame,
    works: Mapping[str, str],
    judged: Sequence[Mapping[str, Any]],
    records: Mapping[str, Mapping[str, Any]],
) -> None:
    by_name = {f"{claim['paper']}/{claim['claim']}": claim for claim in judged}
    moves = {figure: place for page in added for figure, place in page.moves.items()}
    explained = {name: place for page in added for name, place in page.explained.items()}
    for name, notebook in notebooks.items():
        cells = notebook.content.cells
        shown = tables(cells)
        artefacts = ledger[ledger["notebook"] == name]
        chapters = {*artefacts["paper"], *artefacts["work"]}
        main = by_name.get(settings().main.get(name, ""), {"paper": ""})
        of_notebook = [claim for claim in judged if claim["notebook"] == name]
        of_notebook.sort(key=lambda claim: claim is not main)
        beside = {}
        for row in artefacts.to_dict("records"):
            record = records[f"{row['paper']}/{row['artefact']}"]
            beside[row["anchor"]] = compared(row, record)
        entry = works.get(main["paper"], "")
        context = Context(Code.of(cells, explained), moves, by_name, beside)
        values = {
            "notebook": notebook,
            "article": article(project.root() / "reports" / name, cells, context),
            "main": main,
            "says": entry.partition("{")[0][4:] if entry.startswith("@phd") else "paper",
            "systems": shown.get(settings().systems.get(name, "")),
            "artefacts": artefacts.to_dict("records"),
            "references": [entry for key, entry in works.items() if key in chapters],
            "claims": of_notebook,
            "sources": _sources(notebook),
        }
        site.add("notebook", name, notebook.title, **values)
        for anchor, table in shown.items():
            part = Part(f"{name}.html#{anchor}", f"{table['caption']}.", notebook.title)
            site.parts.append(part)


def pages() -> dict[str, bytes]:
    """Make every file of the site, by its path below ``reports/site``."""
    notebooks, ledger, works = reported(), read_ledger(), bibliography()
    reports = project.root() / "reports"
    judged, manifests = read_claims(), build.manifests()
    added = [page for module in modules() if (page := module.page(notebooks)) is not None]
    records = {each["artefact"]: each for manifest in manifests for each in manifest["artefacts"]}
    gallery = {name: figures(reports / name, notebooks[name].content.cells) for name in notebooks}
    answers = {each["notebook"]: each["answer"][:1] for each in manifests}
    chapters = _chapters(ledger, works, judged)
    site = _Site(notebooks, added, chapters)
    papers = _by_chapter(ledger)
    titles = {paper: _field(works.get(paper, ""), "title") for paper, _ in papers}
    findings = _findings()
    site.add(
        "contents",
        "index",
        settings().name,
        lead=settings().lead.format(artefacts=len(ledger)),
        findings=_main_findings(findings, judged),
        code={name: Code.of(each.content.cells, {}).made for name, each in notebooks.items()},
        places=dict(zip(ledger["anchor"], ledger["place"], strict=True)),
    )
    of_chapters = {name for chapter in chapters for name in chapter.notebooks}
    others = [name for name in notebooks if name not in of_chapters]
    site.add("notebooks", "notebooks", "Notebooks", answers=answers, others=others)
    if findings:
        site.add("document", "findings", "Findings", text=findings)
    site.add(
        "artefacts",
        "artefacts",
        "Tables and figures",
        papers=papers,
        titles=titles,
        strips=picture.strips(ledger, manifests),
        ticks=picture.ticks(),
        kinds=picture.CELLS,
    )
    site.add("figures", "figures", "Figures", gallery=gallery, answers=answers)
    site.add("differing", "differing", "Cells that differ", cells=list(_differing(records, ledger)))
    for name, (title, _) in _WRITTEN.items():
        if text := _written(name):
            site.add("document", name, title, text=text)
    if rule := _rule():
        site.add("document", "protocol", "Protocol", text=rule)
    site.add(
        "claims",
        "claims",
        "Claims",
        claims=judged,
        collections=_collections(judged),
        places=dict(zip(ledger["anchor"], ledger["place"], strict=True)),
        kinds=terms.KINDS,
    )
    site.add("terms", "terms", "Terms", groups=terms.TERMS)
    _add_notebooks(site, notebooks, added, ledger, works, judged, records)
    for page in added:
        site.add(page.name, page.name, page.title, **page.values)
    data_readme = (project.root() / "data" / "README.md").read_text(encoding="utf-8")
    site.add("document", "data", "Data", text=data_readme)
    for name, (title, guide) in guides().items():
        site.add("document", name, title, text=guide)
    cited = [each for each in works.items() if each[0].partition("-ch")[0] in titles]
    site.add("cite", "cite", "Cite", software=_software(), papers=cited)
    parts = [*site.parts, *(part for page in added for part in page.entries)]
    site.add("find", "find", "Find", parts=parts, gallery=gallery, artefacts=ledger, claims=judged)
    return dict(sorted(site.files.items()))


# --- on disk --------------------------------------------------------------------------------------


def refresh() -> None:
    """Make the site again; files that are no longer part of it stay, and `check` names them."""
    folder = project.root() / "reports" / "site"
    contents = {folder / name: content for name, content in pages().items()}
    write_files(contents, within=project.root())


def check() -> list[str]:
    """Compare the site with the reports; empty where they agree."""
    folder = project.root() / "reports" / "site"
    on_disk = {}
    for path in folder.rglob("*"):
        if path.is_file():
            on_disk[path.relative_to(folder).as_posix()] = path.read_bytes().splitlines()
    files = pages()
    faults = []
    for name in sorted({*on_disk, *files}):
        if name not in files:
            faults.append(f"reports/site/{name} is not part of the site: remove it")
        elif on_disk.get(name) != files[name].splitlines():
            faults.append(f"reports/site/{name} is outdated: run equipoise site")
    return faults
