"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk.

An index tells what was found and shows the ledger as a matrix, each cell a link to its table or
figure; every notebook is a page; the claims, the measures, the benchmarks, the promises, the data
and the commands are described. Pages are made from what lies in ``reports/`` and ``data/`` alone,
the same bytes at every run. Figures and tables are linked where they lie, beside ``reports/site``,
not copied. A page changes only when its own content does: no page but the index and the list to
find things in names the other notebooks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from equipoise_compendium import claims, project
from equipoise_compendium.claim_marks import LEGEND, mark
from equipoise_compendium.ledger import STATUS_MEANINGS, Ledger, verdicts
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.provenance import MANIFEST, read_manifest
from equipoise_compendium.settings import bibliography, settings
from equipoise_compendium.site import search, works
from equipoise_compendium.site.added import Page, added_pages, folders, script
from equipoise_compendium.site.markup import TEMPLATES, body, formula, headings, picture, prose
from equipoise_compendium.site.tables import framed
from equipoise_compendium.staging import move, staging
from equipoise_compendium.words import plain

VARIANTS = "variants.html"
"""The page of what a reader has built with other parameters, which no committed report has."""
LETTERS = {
    "exact": "=",
    "explained": "≈",
    "differing": "≠",
    "derived": "D",
    "illustration": "I",
    "replica": "R",
    "kept": "K",
    "absent": "–",
}


# --- what the pages are made of -------------------------------------------------------------------


def report_folders() -> list[Path]:
    """Folders of the reports that the notebooks have, in the order of their names."""
    folders = []
    for path in sorted((project.root() / "notebooks").glob("*.ipynb")):
        folder = project.root() / "reports" / path.stem
        if (folder / MANIFEST).is_file():
            folders.append(folder)
    return folders


def reported() -> dict[str, Notebook]:
    """Notebooks that have a report, by name: those that get a page."""
    return {
        folder.name: Notebook.read(folder / f"{folder.name}.ipynb") for folder in report_folders()
    }


@dataclass(frozen=True)
class Reports:
    """What lies in ``reports/``: executed notebooks, the ledger, claims and findings."""

    notebooks: Mapping[str, Notebook]
    references: Mapping[str, str] = field(default_factory=bibliography)

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """The ledger, with the anchor, label and chapter of each table and figure."""
        text = (project.root() / "reports" / "ledger.csv").read_text(encoding="utf-8")
        table = Ledger.read(text).table
        table["anchor"] = table["paper"] + "-" + table["artefact"]
        table["label"] = table["artefact"].str.replace("-", " ").str.capitalize()
        table["chapter"] = table["artefact"].str.extract(r"-(\d+)\.", expand=False).fillna("")
        return table

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """Every claim that was judged."""
        path = project.root() / "reports" / "claims.csv"
        return claims.read(path) if path.is_file() else []

    @cached_property
    def findings(self) -> list[tuple[str, list[Finding]]]:
        """What was found, by section."""
        path = project.root() / "reports" / "findings.md"
        return finding_sections(path.read_text(encoding="utf-8")) if path.is_file() else []

    def title(self, key: str) -> str:
        """Title of the work with a key of the bibliography."""
        return works.field_of(self.references.get(key, ""), "title")

    def artefacts(self, name: str) -> pd.DataFrame:
        """The tables and figures that a notebook regenerates, as rows of the ledger."""
        return self.ledger[self.ledger["notebook"] == name]

    def cited(self, name: str) -> list[str]:
        """Entries of the works that a notebook regenerates, or whose title stands in its text."""
        artefacts = self.artefacts(name)
        regenerated = {*artefacts["paper"], *(artefacts["paper"] + "-ch" + artefacts["chapter"])}
        cells = self.notebooks[name].content.cells
        prose_cells = [cell.source for cell in cells if cell.cell_type == "markdown"]
        text = " ".join(" ".join(prose_cells).split())
        entries = []
        for key, entry in self.references.items():
            title = self.title(key)
            if key in regenerated or (title and title in text):
                entries.append(entry)
        return entries

    def by_paper(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The notebooks by the paper that they regenerate: its title, then each name and title."""
        paper_of = self.ledger[self.ledger["notebook"] != ""].groupby("notebook")["paper"].first()
        papers = [*self.ledger["paper"].unique(), ""]
        entries: dict[str, list[tuple[str, str]]] = {paper: [] for paper in papers}
        for name, notebook in self.notebooks.items():
            entries[paper_of.get(name, "")].append((name, notebook.title))
        groups = []
        for paper in papers:
            title = f"{paper}: {self.title(paper)}" if paper else "Across the papers"
            if entries[paper]:
                groups.append((title, entries[paper]))
        return groups


@dataclass(frozen=True)
class Finding:
    """A finding: the sentence that states it, what is said of it, and the claim it leads to.

    ``claim`` is the anchor of that claim on its page, empty where the finding leads to none.
    """

    sentence: Markup
    text: Markup
    claim: str


def finding_sections(text: str) -> list[tuple[str, list[Finding]]]:
    """The sections of ``findings.md``: title, and entries that begin with a bold sentence."""
    sections = []
    for part in re.split("^## ", text, flags=re.MULTILINE)[1:]:
        title, _, list_text = part.partition("\n")
        list_text = list_text.replace("](site/", "](")
        entries = []
        for first, rest in re.findall(r"^- \*\*(.+?)\*\*(.+)$", list_text, re.MULTILINE):
            sentence = Markup(prose(first).strip()[3:-4])  # noqa: S704 - prose() cleans
            rest_text = rest.lstrip(" ,")
            claim = re.search(r"\(claims\.html#(claim-[^)]+)\)", rest)
            anchor = claim[1] if claim else ""
            told = prose(rest_text[:1].upper() + rest_text[1:])
            entries.append(Finding(sentence, told, anchor))
        if entries:
            sections.append((title, entries))
    return sections


def guide_file(name: str) -> Path:
    """A page of the guide in Markdown: the compendium's own, or ours."""
    places = [Path(__file__).parent / "guide"]
    if settings().guides:
        places.insert(0, project.root() / settings().guides)
    for folder in places:
        if (folder / f"{name}.md").is_file():
            return folder / f"{name}.md"
    raise FileNotFoundError(
        f"data/compendium.toml: guide has {name}, but no file {name}.md is in "
        f"{settings().guides or 'the folder that guides would name'}, and ours is recompute.md"
    )


def guides() -> dict[str, tuple[str, str]]:
    """Title and Markdown of every page of the guide, by the name of its page."""
    by_page = {}
    for name in settings().guide:
        text = guide_file(name).read_text(encoding="utf-8")
        title = text.partition("\n")[0].lstrip("# ")
        # Links of a file in the repository lead to the same places on the site.
        text = re.sub(r"\]\((\w+)\.md", r"](guide-\1.html", text)
        text = re.sub(r"\]\((?:\.\./)+reports/site/", "](", text)
        by_page[f"guide-{name}"] = title, text
    return by_page


# --- words ----------------------------------------------------------------------------------------


def in_words(identifier: str) -> str:
    """An identifier in words, with names and numbers as they are written."""
    spelling = {name.lower(): name for name in settings().spellings}
    text = re.sub(r"(?<=\d)_(?=\d{3})", "", identifier)
    text = re.sub(r"\[(.*)\]", r", \1", text).replace("_", " ")
    text = re.sub(r"\d{4,}", lambda number: f"{int(number[0]):,}", text)
    text = re.sub(r"\w+", lambda word: spelling.get(word[0], word[0]), text)
    return text[:1].upper() + text[1:]


def work(key: str) -> str:
    """The key of a work in words: its first author and year, or what the paper is called here."""
    match = re.fullmatch(r"([a-z]+)(\d{4})", key)
    if match:
        return f"{match[1].capitalize()} {match[2]}"
    return key.replace("-ch", ", ch. ")


def symbol(tex: str) -> Markup:
    """A symbol of a formula, in its line."""
    return formula(tex, block=False)


def _style() -> bytes:
    """The style sheet, with the colours of highlighted code."""

    def colours(style: str) -> list[str]:
        rules = HtmlFormatter(style=style).get_style_defs(".highlight").splitlines()
        coloured = []
        for rule in rules:
            if rule.startswith(".highlight .") and "background" not in rule:
                coloured.append(rule.lower())
        return coloured

    # Both stand out at least 4.6 to 1 from their ground.
    light, dark = colours("xcode"), colours("lightbulb")
    media = "@media screen and (prefers-color-scheme: dark) {"
    added = "\n".join(["\n/* code */", *light, media, *dark, "}", ""])
    return (TEMPLATES / "site" / "style.css").read_bytes() + added.encode()


# --- parts of pages -------------------------------------------------------------------------------


def _performance() -> dict[str, list[tuple[str, list[str]]]]:
    """What the kept benchmark run measured, by topic: the benchmark, and its ratios in words."""
    path = project.root() / "data" / "outputs" / "benchmarks.json"
    if not path.is_file():
        return {}
    ratios_by_test: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    topics: dict[str, list[tuple[str, list[str]]]] = {}
    for name, ratios in sorted(ratios_by_test.items()):
        module, _, test = name.partition("::")
        topic = in_words(Path(module).stem.removeprefix("bench_"))
        benchmark = in_words(test.removeprefix("test_"))
        rows = topics.setdefault(topic, [])
        rows.append((benchmark, [f"{ratio:g} {measured}" for measured, ratio in ratios.items()]))
    return topics


def _promises() -> list[tuple[str, list[dict[str, Any]]]]:
    """What is promised, by topic, with how it is tried and in how many cases."""
    path = project.root() / "data" / "reliability.csv"
    if not path.is_file():
        return []
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    files = []
    for tests in table["tests"]:
        files.append(sorted({test.partition("::")[0] for test in tests.split()}))
    table["files"] = files
    topics = table.groupby("topic", sort=False)
    return [(str(topic), rows.to_dict("records")) for topic, rows in topics]


def _variants() -> list[tuple[str, str, dict[str, Any]]]:
    """The variants in ``reports/variants``: address of the page, notebook, parameters."""
    variants = []
    for page in sorted((project.root() / "reports" / "variants").glob("*/*.html")):
        manifest = read_manifest(page.with_suffix(""))
        if manifest and "parameters" in manifest:
            address = f"../variants/{quote(page.parent.name)}/{quote(page.name)}"
            variants.append((address, page.parent.name, manifest["parameters"]))
    return variants


def _picture(ledger: pd.DataFrame) -> dict[str, Any]:
    """The figure of the first page; empty where it has not been made."""
    wanted = settings().picture
    if wanted is None:
        return {}
    paper, _, artefact = wanted.artefact.partition("/")
    of_picture = (ledger["paper"] == paper) & (ledger["artefact"] == artefact)
    rows = ledger[of_picture & (ledger["notebook"] != "")]
    if rows.empty:
        return {}
    row = rows.iloc[0]
    source = next(file for file in row["files"].split() if file.endswith(".svg"))
    file = project.root() / "reports" / source
    caption = f"{paper}, {row['label']}"
    drawn = picture(f"../{quote(source)}", file, f"{caption}: {row['title']}")
    return {
        "image": Markup(drawn),  # noqa: S704 - picture() escapes
        "caption": f"{caption}: {wanted.caption}" if wanted.caption else caption,
        "page": row["notebook"],
        "anchor": row["anchor"],
        "moves": wanted.page,
    }


def _things_to_find(
    reports: Reports, site: _Pages, added: Sequence[Page]
) -> dict[str, list[search.Part]]:
    """What a reader may look for, by kind: what has a name, and the parts of every page."""
    artefacts = []
    for row in reports.ledger[reports.ledger["notebook"] != ""].itertuples():
        address = f"{row.notebook}.html#{row.anchor}"
        about = f"{row.title} ({row.status})"
        artefacts.append(search.Part(address, f"{row.paper}, {row.label}", about))
    judged = []
    for claim in reports.claims:
        address = f"claims.html#claim-{claim['paper']}-{claim['name']}"
        about = f"({claim['verdict']}; {claim['paper']}, {claim['artefact']})"
        judged.append(search.Part(address, claim["claim"], about, claim["quote"].lower()))
    entries_of_added = {page.title: list(page.entries) for page in added if page.entries}
    return {
        **entries_of_added,
        "Tables and figures": artefacts,
        "Pages": search.text_parts(site.files, site.titles),
        "Claims": judged,
    }


# --- pages ----------------------------------------------------------------------------------------


def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader([TEMPLATES / "site", *folders()])
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    # Text of data and models is made harmless; markup was clean before.
    environment.finalize = lambda value: plain(value) if type(value) is str else value
    environment.filters |= {
        "formula": formula,
        "headings": headings,
        "symbol": symbol,
        "work": work,
        "written": repr,
    }
    return environment


def _claim_mark(claim: Mapping[str, Any]) -> Markup:
    """The drawing of a claim's number."""
    return Markup(mark(claim))  # noqa: S704 - mark() escapes


class _Pages:
    """Pages made so far, by file name."""

    def __init__(
        self, reports: Reports, added: Sequence[Page], about: Sequence[tuple[str, str]]
    ) -> None:
        self.files = {"assets/style.css": _style()}
        self.titles: dict[str, str] = {}
        copy_script, copy_digest = script(TEMPLATES / "site" / "copy.js")
        self._environment = _environment()
        self._environment.globals |= {
            "about_pages": about,
            "added": [page.name for page in added],
            "compendium": settings(),
            "guides": [(name, title) for name, (title, _) in guides().items()],
            "bases": claims.BASES,
            "copy_digest": copy_digest,
            "copy_script": copy_script,
            "judgements": claims.VERDICTS,
            "legend": LEGEND,
            "letters": LETTERS,
            "criterion": claims.criterion_in_words,
            "interval": claims.interval_in_words,
            "mark": _claim_mark,
            "meanings": STATUS_MEANINGS,
            "notebooks": reports.notebooks,
            "verdicts": verdicts,
            "version": works.version(),
        }

    def add(self, template: str, name: str, title: str, **values: Any) -> None:
        """Make one page from a template."""
        page = self._environment.get_template(f"{template}.html")
        text = framed(page.render(here=name, title=title, **values))
        lines = [line.rstrip() for line in text.splitlines()]
        self.files[f"{name}.html"] = ("\n".join(lines) + "\n").encode()
        self.titles[f"{name}.html"] = title


def _leads(reports: Reports) -> list[tuple[Finding, dict[str, Any]]]:
    """The findings that lead to a claim, each with that claim: they are told unfolded."""
    by_anchor = {f"claim-{claim['paper']}-{claim['name']}": claim for claim in reports.claims}
    leads = []
    for _, findings in reports.findings:
        leads += [
            (finding, by_anchor[finding.claim])
            for finding in findings
            if finding.claim in by_anchor
        ]
    return leads


def _homes(reports: Reports) -> dict[tuple[str, str], str]:
    """The notebook of each artefact; a claim of ours may be judged in another."""
    ledger = reports.ledger
    return dict(
        zip(zip(ledger["paper"], ledger["artefact"], strict=True), ledger["notebook"], strict=True)
    )


def _by_chapter(reports: Reports) -> list[tuple[str, str, dict[str, list[Any]]]]:
    """The artefacts of each paper: its name, its title, and rows of the ledger by chapter."""
    papers = []
    for paper, rows in reports.ledger.groupby("paper", sort=False):
        chapters = {}
        for chapter, artefacts in rows.groupby("chapter", sort=False):
            chapters[str(chapter)] = artefacts.to_dict("records")
        papers.append((str(paper), reports.title(str(paper)), chapters))
    return papers


def _add_artefacts(site: _Pages, reports: Reports) -> None:
    of_other_data = []
    replicas = reports.ledger[reports.ledger["status"] == "replica"]
    for (paper, data), rows in replicas.groupby(["paper", "data"], sort=False):
        of_other_data.append((paper, data, rows.to_dict("records")))
    short_of = reports.ledger["status"].isin(["differing", "kept", "absent"])
    site.add(
        "artefacts",
        "artefacts",
        "Tables and figures",
        papers=_by_chapter(reports),
        replicas=of_other_data,
        others=reports.ledger[short_of].to_dict("records"),
    )


def _add_index(site: _Pages, reports: Reports) -> None:
    answers = {}
    for name in reports.notebooks:
        manifest = read_manifest(project.root() / "reports" / name) or {}
        answers[name] = manifest.get("answer")
    site.add(
        "contents",
        "index",
        settings().name,
        lead=settings().lead.format(artefacts=len(reports.ledger)),
        ledger=reports.ledger.to_dict("records"),
        papers=_by_chapter(reports),
        works=[
            works.work_of(paper, reports.references.get(paper, ""))
            for paper in reports.ledger["paper"].unique()
        ],
        findings=reports.findings,
        leads=_leads(reports),
        picture=_picture(reports.ledger),
        sentences=claims.by_sentence(reports.claims),
        notebook_menu=reports.by_paper(),
        answers=answers,
    )


def _add_notebooks(site: _Pages, reports: Reports) -> None:
    for name, notebook in reports.notebooks.items():
        site.add(
            "notebook",
            name,
            notebook.title,
            notebook=notebook,
            content=body(project.root() / "reports" / name),
            artefacts=reports.artefacts(name).to_dict("records"),
            references=reports.cited(name),
        )


def pages() -> dict[str, bytes]:
    """Every file of the site by its path below ``reports/site``; empty without any report."""
    reports = Reports(reported())
    if not reports.notebooks:
        return {}
    added = added_pages(reports.notebooks)
    promises, performance = _promises(), _performance()
    about = [("artefacts", "Tables and figures"), ("data", "Data")]
    if promises:
        about.append(("reliability", "Reliability"))
    if performance:
        about.append(("performance", "Performance"))
    about.append(("cite", "Cite"))
    site = _Pages(reports, added, about)
    _add_index(site, reports)
    _add_artefacts(site, reports)
    site.add(
        "claims",
        "claims",
        "Claims",
        claims=reports.claims,
        sentences=claims.by_sentence(reports.claims),
        kinds=claims.KINDS,
        about=claims.ABOUT,
        chance=claims.by_chance(reports.claims),
        home=_homes(reports),
    )
    _add_notebooks(site, reports)
    for page in added:
        site.add(page.name, page.name, page.title, **page.values)
    if performance:
        site.add("performance", "performance", "Performance", topics=performance)
    if promises:
        site.add("reliability", "reliability", "Reliability", topics=promises)
    data_readme = (project.root() / "data" / "README.md").read_text(encoding="utf-8")
    site.add("document", "data", "Data", body=prose(data_readme))
    for name, (title, text) in guides().items():
        site.add("document", name, title, body=prose(text))
    site.add("variants", "variants", "Variants", variants=_variants())
    paper_keys = reports.ledger["paper"].unique()
    site.add(
        "cite",
        "cite",
        "Cite",
        software=works.software(),
        papers=works.papers(paper_keys, reports.references),
        added_pages=added,
    )
    text, digest = script(TEMPLATES / "site" / "find.js")
    entries = _things_to_find(reports, site, added)
    site.add("find", "find", "Find", found=entries, script=text, digest=digest)
    return dict(sorted(site.files.items()))


def variant(folder: Path) -> Path:
    """Make a page of a report with other parameters, beside its folder, complete in itself."""
    manifest = read_manifest(folder) or {}
    # The page lies beside its folder, so that what it shows is reached by the folder's name.
    addresses = rf'"\.\./({re.escape(quote(folder.name))}|{re.escape(folder.parent.name)})/'
    content = re.sub(addresses, lambda _: f'"{quote(folder.name)}/', framed(body(folder)))
    text = (
        _environment()
        .get_template("variant.html")
        .render(
            content=content,
            title=folder.parent.name,
            parameters=manifest["parameters"],
            style=_style().decode(),
        )
    )
    page = folder.with_name(f"{folder.name}.html")
    with staging() as work_folder:
        staged = work_folder / page.name
        staged.write_text(text, encoding="utf-8")
        staged.replace(page)
    return page


# --- on disk --------------------------------------------------------------------------------------


def _differing(files: Mapping[str, bytes]) -> list[str]:
    """Files of the site that are not, or not yet, as given; none where there is nothing to show."""
    if not files:
        return []
    folder = project.root() / "reports" / "site"
    on_disk = {}
    for path in folder.rglob("*"):
        if path.is_file():
            on_disk[path.relative_to(folder).as_posix()] = path.read_bytes()
    return sorted(name for name in {*on_disk, *files} if on_disk.get(name) != files.get(name))


def refresh() -> bool:
    """Make the site anew, whole, where it is not what the reports say; return whether it was."""
    with staging() as work_folder:
        files = pages()
        if not _differing(files):
            return False
        for name, content in files.items():
            target = work_folder / "site" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        move(work_folder / "site", project.root() / "reports" / "site")
    return True


def check() -> list[str]:
    """A line where the site is not what the reports say; empty where all is well."""
    differing = [f"reports/site/{name}" for name in _differing(pages()) if name != VARIANTS]
    return [f"out of date: {', '.join(differing)}: run equipoise build"] if differing else []
