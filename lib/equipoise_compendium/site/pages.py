"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk, without network.

An index tells what was found and shows the ledger as a matrix, each cell a link to its table or
figure; every notebook is a page; the claims, the measures, the benchmarks, the promises, the data
and the commands are described. Pages are made from what lies in ``reports/`` and ``data/`` alone,
the same bytes at every run. Figures and tables are linked where they lie, beside ``reports/site``,
not copied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from equipoise import catalogue
from equipoise.declare import written
from equipoise.problems import plain
from equipoise_compendium import claims, crate, project
from equipoise_compendium.ledger import STATUS_MEANINGS, Ledger, verdicts
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.provenance import MANIFEST, read_manifest
from equipoise_compendium.site import explore
from equipoise_compendium.site.markup import TEMPLATES, body, formula, headings, image, prose
from equipoise_compendium.site.tables import framed
from equipoise_compendium.staging import move, staging

GUIDES = ("start", "conversations", "runs", "answers", "orders", "compare", "studies", "fork")
"""The pages of the guide in their order, each a Markdown file of ``guide/``."""
PICTURE = ("gfrc2", "figure-4")
"""The figure of the first page."""
VARIANTS = "variants.html"
"""The page of what a reader has built with other parameters, which no committed report has."""
NAMES = {
    name.lower(): name
    for name in ("ANOVA", "BM25", "GFR", "GFRC", "MD1", "RBO", "TILDE", "TILDEv2")
}
LETTERS = {
    "exact": "=",
    "explained": "≈",
    "derived": "D",
    "replica": "R",
    "kept": "K",
    "absent": "–",
}


def _title(entry: str) -> str:
    """Title of a BibTeX entry, without its braces."""
    found = re.search(r"^\s*title = \{(.*)\},$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", found[1]) if found else ""


def _cited(notebook: Notebook, made: pd.DataFrame, references: Mapping[str, str]) -> list[str]:
    """Entries of the works that a notebook regenerates, or whose title stands in its text."""
    keys = {*made["paper"], *(made["paper"] + "-ch" + made["chapter"])}
    text = " ".join(
        " ".join(c.source for c in notebook.content.cells if c.cell_type == "markdown").split()
    )
    return [
        entry
        for key, entry in references.items()
        if key in keys or (_title(entry) and _title(entry) in text)
    ]


# --- pages ----------------------------------------------------------------------------------------


def _style() -> bytes:
    """The style sheet, with the colours of highlighted code."""

    def colours(style: str) -> list[str]:
        rules = HtmlFormatter(style=style).get_style_defs(".highlight").splitlines()
        return [
            rule.lower()
            for rule in rules
            if rule.startswith(".highlight .") and "background" not in rule
        ]

    # their colours stand out 4.6 to 1
    dark = ["@media screen and (prefers-color-scheme: dark) {", *colours("lightbulb"), "}", ""]
    added = "\n".join(["\n/* code */", *colours("xcode"), *dark])
    return (TEMPLATES / "site" / "style.css").read_bytes() + added.encode()


def _said(identifier: str) -> str:
    """An identifier in words, with names and numbers as they are written."""
    text = re.sub(r"\[(.*)\]", r", \1", re.sub(r"(?<=\d)_(?=\d{3})", "", identifier)).replace(
        "_", " "
    )
    text = re.sub(r"\d{4,}", lambda number: f"{int(number[0]):,}", text)
    text = re.sub(r"\w+", lambda word: NAMES.get(word[0], word[0]), text)
    return text[:1].upper() + text[1:]


def work(key: str) -> str:
    """The key of a work in words: its first author and year, or what the paper is called here."""
    found = re.fullmatch(r"([a-z]+)(\d{4})", key)
    return f"{found[1].capitalize()} {found[2]}" if found else key.replace("-ch", ", ch. ")


def _performance() -> dict[str, list[tuple[str, str, str]]]:
    """What the kept benchmark run measured, by topic: the benchmark, of what, and the ratio."""
    path = project.root() / "data" / "outputs" / "benchmarks.json"
    kept: dict[str, dict[str, float]] = (
        json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    )
    topics: dict[str, list[tuple[str, str, str]]] = {}
    for name, ratios in sorted(kept.items()):
        module, _, test = name.partition("::")
        topic, label = (
            _said(Path(module).stem.removeprefix("bench_")),
            _said(test.removeprefix("test_")),
        )
        topics.setdefault(topic, []).extend(
            (label, what, f"{ratio:g}") for what, ratio in ratios.items()
        )
    return topics


def _promises() -> list[tuple[str, list[dict[str, Any]]]]:
    """What is promised, by topic, with how it is tried and in how many cases."""
    path = project.root() / "data" / "reliability.csv"
    if not path.is_file():
        return []
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table["files"] = [
        sorted({test.partition("::")[0] for test in tests.split()}) for tests in table["tests"]
    ]
    return [
        (str(topic), part.to_dict("records")) for topic, part in table.groupby("topic", sort=False)
    ]


def _reports() -> list[Path]:
    """Folders of the reports of notebooks that are there."""
    names = [path.stem for path in sorted((project.root() / "notebooks").glob("*.ipynb"))]
    return [
        folder
        for name in names
        if (folder := project.root() / "reports" / name).joinpath(MANIFEST).is_file()
    ]


def reported() -> dict[str, Notebook]:
    """Notebooks that have a report, by name: those that get a page."""
    return {folder.name: Notebook.read(folder / f"{folder.name}.ipynb") for folder in _reports()}


def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(TEMPLATES / "site")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.finalize = lambda value: (
        plain(value) if type(value) is str else value
    )  # markup was clean before
    return environment


def variant(folder: Path) -> Path:
    """Make a page of a report with other parameters, beside its folder, complete in itself; return where it is."""
    parameters = (read_manifest(folder) or {})["parameters"]
    values = {"title": folder.parent.name, "parameters": parameters, "style": _style().decode()}
    own = rf'"\.\./({re.escape(quote(folder.name))}|{re.escape(folder.parent.name)})/'
    content = re.sub(own, lambda _: f'"{quote(folder.name)}/', framed(body(folder)))
    page = folder.with_name(f"{folder.name}.html")
    made = _environment().get_template("variant.html").render(content=content, **values)
    with staging() as work:
        (work / page.name).write_text(made, encoding="utf-8")
        (work / page.name).replace(page)
    return page


def _menu(
    notebooks: Mapping[str, Notebook], table: pd.DataFrame, references: Mapping[str, str]
) -> list[Any]:
    """The notebooks by the paper that they regenerate: a title, then the name and title of each."""
    papers = table[table["notebook"] != ""].groupby("notebook")["paper"].first()
    groups: dict[str, list[tuple[str, str]]] = {
        paper: [] for paper in [*table["paper"].unique(), ""]
    }
    for name, notebook in notebooks.items():
        groups[papers.get(name, "")].append((name, notebook.title))
    titles = {paper: f"{paper}: {_title(references.get(paper, ''))}" for paper in groups} | {
        "": "Across the papers"
    }
    return [(titles[paper], entries) for paper, entries in groups.items() if entries]


def _guides() -> dict[str, tuple[str, str]]:
    """Title and Markdown of every page of the guide, by the name of its page."""
    texts = {
        name: (Path(__file__).parent / "guide" / f"{name}.md").read_text(encoding="utf-8")
        for name in GUIDES
    }
    linked = {
        name: re.sub(r"\]\((\w+)\.md", r"](guide-\1.html", text) for name, text in texts.items()
    }
    return {
        f"guide-{name}": (text.partition("\n")[0].lstrip("# "), text)
        for name, text in linked.items()
    }


def _findings(told: str) -> list[tuple[str, list[tuple[Any, Any]]]]:
    """What was found, by section: the sentence in bold type that each entry begins with, and the rest."""
    sections = []
    for part in re.split("^## ", told, flags=re.MULTILINE)[1:]:
        title, _, entries = part.partition("\n")
        found = re.findall(r"^- \*\*(.+?)\*\*(.+)$", entries.replace("](site/", "]("), re.MULTILINE)
        told_first = [Markup(prose(first).strip()[3:-4]) for first, _ in found]  # noqa: S704 - prose() cleans
        then = [rest.lstrip(" ,") for _, rest in found]
        sections.append(
            (
                title,
                list(
                    zip(
                        told_first,
                        [prose(rest[:1].upper() + rest[1:]) for rest in then],
                        strict=True,
                    )
                ),
            )
        )
    return [section for section in sections if section[1]]


def _variants() -> list[tuple[str, str, dict[str, Any]]]:
    """The variants that lie in ``reports/variants``: address of the page, name of the notebook, parameters."""
    pages = sorted((project.root() / "reports" / "variants").glob("*/*.html"))
    found = [(page, read_manifest(page.with_suffix(""))) for page in pages]
    there = [(page, manifest) for page, manifest in found if manifest and "parameters" in manifest]
    return [
        (
            f"../variants/{quote(page.parent.name)}/{quote(page.name)}",
            page.parent.name,
            manifest["parameters"],
        )
        for page, manifest in there
    ]


def symbol(tex: str) -> Markup:
    """A symbol of a formula, in its line."""
    return formula(tex, block=False)


def _picture(table: pd.DataFrame) -> dict[str, Any]:
    """The figure of the first page; empty where it has not been made."""
    paper, artefact = PICTURE
    rows = table[
        (table["paper"] == paper) & (table["artefact"] == artefact) & (table["notebook"] != "")
    ]
    if rows.empty:
        return {}
    row = rows.iloc[0]
    source = next(file for file in row["files"].split() if file.endswith(".svg"))
    svg = (project.root() / "reports" / source).read_text(encoding="utf-8")
    caption = f"{paper}, {row['label']}"
    shown = Markup(image(f"../{quote(source)}", svg, f"{caption}: {row['title']}"))  # noqa: S704 - image() escapes
    return {"image": shown, "caption": caption, "page": row["notebook"], "anchor": row["anchor"]}


def pages() -> dict[str, bytes]:
    """Every file of the site by its path below ``reports/site``; empty while no notebook has a report."""
    reports, notebooks = project.root() / "reports", reported()
    if not notebooks:
        return {}
    references = catalogue.references()
    table = Ledger.read((reports / "ledger.csv").read_text(encoding="utf-8")).table
    table["anchor"] = table["paper"] + "-" + table["artefact"]
    table["label"] = table["artefact"].str.replace("-", " ").str.capitalize()
    table["chapter"] = table["artefact"].str.extract(r"-(\d+)\.", expand=False).fillna("")
    guides, menu = _guides(), _menu(notebooks, table, references)
    environment = _environment()
    filters = {
        "formula": formula,
        "headings": headings,
        "symbol": symbol,
        "work": work,
        "written": written,
    }
    environment.filters |= filters
    environment.globals |= {
        "explored": ["explore"] if explore.REPORT in notebooks else [],
        "guides": [(name, title) for name, (title, _) in guides.items()],
        "judgements": claims.VERDICTS,
        "letters": LETTERS,
        "meanings": STATUS_MEANINGS,
        "notebook_menu": menu,
        "notebooks": notebooks,
        "verdicts": verdicts,
    }
    files = {"assets/style.css": _style()}

    def render(template: str, name: str, title: str, **values: Any) -> None:
        page = framed(
            environment.get_template(f"{template}.html").render(here=name, title=title, **values)
        )
        files[f"{name}.html"] = (
            "\n".join(line.rstrip() for line in page.splitlines()) + "\n"
        ).encode()

    papers = []
    for paper, rows in table.groupby("paper", sort=False):
        chapters = {
            chapter: part.to_dict("records")
            for chapter, part in rows.groupby("chapter", sort=False)
        }
        papers.append((paper, _title(references.get(str(paper), "")), chapters))
    told = reports / "findings.md"
    judged = claims.read(reports / "claims.csv") if (reports / "claims.csv").is_file() else []
    render(
        "contents",
        "index",
        "Equipoise",
        ledger=table.to_dict("records"),
        papers=papers,
        findings=_findings(told.read_text(encoding="utf-8")) if told.is_file() else [],
        picture=_picture(table),
        judged=[claim for claim in judged if claim["kind"] == "finding"],
        answers={name: (read_manifest(reports / name) or {}).get("answer") for name in notebooks},
    )
    render("claims", "claims", "Claims", claims=judged, kinds=claims.KINDS)
    for name, notebook in notebooks.items():
        made = table[table["notebook"] == name]
        values = {
            "artefacts": made.to_dict("records"),
            "references": _cited(notebook, made, references),
        }
        render(
            "notebook",
            name,
            notebook.title,
            notebook=notebook,
            content=body(reports / name),
            **values,
        )
    measures = catalogue.MEASURES
    cited = [
        (key, references[key])
        for key in references
        if any(key in measure.sources for measure in measures)
    ]
    render("measures", "measures", "Measures", measures=measures, references=cited)
    if explore.REPORT in notebooks and (grid := explore.values()):
        render("explore", "explore", "Explore", report=explore.REPORT, **grid)
    render("performance", "performance", "Performance", topics=_performance())
    render("reliability", "reliability", "Reliability", topics=_promises())
    described = (project.root() / "data" / "README.md").read_text(encoding="utf-8")
    render("document", "data", "Data", body=prose(described))
    for name, (title, text) in guides.items():
        render("document", name, title, body=prose(text))
    render("variants", "variants", "Variants", variants=_variants())
    script, policy = explore.script("find")
    found = {
        "Measures": [(f"measures.html#{m.anchor}", m.name, m.meaning) for m in measures],
        "Tables and figures": [
            (
                f"{row.notebook}.html#{row.anchor}",
                f"{row.paper}, {row.label}",
                f"{row.title} ({row.status})",
            )
            for row in table[table["notebook"] != ""].itertuples()
        ],
        "Notebooks": [
            (f"{name}.html", title, group) for group, entries in menu for name, title in entries
        ],
        "Guide": [(f"{name}.html", title, "") for name, (title, _) in guides.items()],
        "Claims": [
            (
                f"claims.html#claim-{c['paper']}-{c['name']}",
                c["claim"],
                f"({c['verdict']}; {c['paper']}, {c['artefact']})",
            )
            for c in judged
        ],
    }
    render("find", "find", "Find", found=found, script=script, policy=policy)
    return dict(sorted(files.items()))


# --- on disk --------------------------------------------------------------------------------------


def _differing(files: Mapping[str, bytes]) -> list[str]:
    """Files of the site that are not, or not yet, what they should be; none where there is nothing to show."""
    folder = project.root() / "reports" / "site"
    there = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return (
        sorted(name for name in {*there, *files} if there.get(name) != files.get(name))
        if files
        else []
    )


def _crate() -> tuple[Path, str]:
    """Where the metadata for machines lie, and what they should be; they are as they should be where there are none."""
    path = project.root() / crate.NAME
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    made = crate.text([manifest for folder in _reports() if (manifest := read_manifest(folder))])
    return path, "" if made == there else made


def refresh() -> bool:
    """Make site and metadata anew, whole, where they are not what the reports say; return whether any was written."""
    with staging() as work:
        files, folder = pages(), project.root() / "reports" / "site"
        metadata, text = _crate()
        differing = _differing(files)
        for name, content in files.items() if differing else ():
            target = work / "site" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if differing:
            move(work / "site", folder)
        if text:
            (work / metadata.name).write_text(text, encoding="utf-8")
            (work / metadata.name).replace(metadata)
    return bool(differing or text)


def check() -> list[str]:
    """A line where site and metadata are not what the reports say; empty where all is well."""
    differing = [f"reports/site/{name}" for name in _differing(pages()) if name != VARIANTS]
    differing += [path.name for path, text in [_crate()] if text]
    return [f"out of date: {', '.join(differing)}: run equipoise build"] if differing else []
