"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk, without network.

An index shows the ledger as a matrix, each cell a link to its table or figure; every notebook is a page; the measures,
the benchmarks and the data are described. Pages are made from what lies in ``reports/`` and ``data/`` alone, the same
bytes at every run. Figures and tables are linked where they lie, beside ``reports/site``, not copied.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from pygments.formatters import HtmlFormatter

from equipoise import catalogue, project
from equipoise.declare import written
from equipoise.reports.ledger import STATUS_MEANINGS, Ledger
from equipoise.reports.notebooks import Notebook, find_notebooks
from equipoise.reports.provenance import MANIFEST
from equipoise.site.markup import TEMPLATES, body, formula, headings, prose

LETTERS = {"exact": "=", "explained": "≈", "derived": "D", "replica": "R", "kept": "K", "absent": "–"}
_SECTIONS = (("measures", "Measures"), ("performance", "Performance"), ("data", "Data"))


# --- ledger -------------------------------------------------------------------------------------------------------


def _cell(row: Mapping[str, str]) -> dict[str, Any]:
    """What the pages say of one row of the ledger."""
    kind, _, number = row["artefact"].partition("-")
    name, reported = f"{row['paper']}-{row['artefact']}", bool(row["notebook"])
    data = f"Data: {row['data']}." if row["data"] else ""
    return {
        "id": f"row-{name}",
        "anchor": name,
        "href": f"{row['notebook']}.html#{name}" if reported else f"#row-{name}",
        "reported": reported,
        "label": f"{kind.capitalize()} {number}",
        "short": f"{kind[0].upper()}{number}",
        "chapter": number.partition(".")[0] if "." in number else "",
        "letter": LETTERS[row["status"]],
        "claims": f"{row['claims_that_hold']} of {row['claims']}" if row["claims"] else "",
        "remarks": " ".join(filter(None, [row["remarks"] and f"{row['remarks'].rstrip('.')}.", data])),
        **{column: row[column] for column in ("title", "status", "cells", "differing", "notebook", "paper")},
    }


def _title(entry: str) -> str:
    """Title of a BibTeX entry, without its braces."""
    found = re.search(r"^\s*title = \{(.*)\},$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", found[1]) if found else ""


def _papers(cells: Sequence[Mapping[str, Any]], references: Mapping[str, str]) -> list[dict[str, Any]]:
    """The cells of each paper, those of the thesis by chapter."""
    papers: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for cell in cells:
        part = f"Chapter {cell['chapter']}" if cell["chapter"] else ""
        papers.setdefault(cell["paper"], {}).setdefault(part, []).append(cell)
    return [{"name": name, "title": _title(references.get(name, "")), "parts": papers[name]} for name in papers]


def _cited(notebook: Notebook, cells: Sequence[Mapping[str, Any]], references: Mapping[str, str]) -> list[str]:
    """Entries of the works that a notebook regenerates, or whose title stands in its text."""
    keys = {cell["paper"] for cell in cells}
    keys |= {f"{cell['paper']}-ch{cell['chapter']}" for cell in cells if cell["chapter"]}
    text = " ".join(" ".join(c.source for c in notebook.content.cells if c.cell_type == "markdown").split())
    return [entry for key, entry in references.items() if key in keys or (_title(entry) and _title(entry) in text)]


# --- pages --------------------------------------------------------------------------------------------------------


def _style() -> bytes:
    """The style sheet, with the colours of highlighted code."""
    rules = HtmlFormatter(style="xcode").get_style_defs(".highlight").splitlines()  # its colours stand out 4.6 to 1
    colours = [rule.lower() for rule in rules if rule.startswith(".highlight .") and "background" not in rule]
    return (TEMPLATES / "site" / "style.css").read_bytes() + "\n".join(["\n/* code */", *colours, ""]).encode()


def _performance() -> list[tuple[str, list[dict[str, str]]]]:
    """Ratios of the kept benchmark run, by topic."""
    path = project.root() / "data" / "outputs" / "benchmarks.json"
    kept: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    topics: dict[str, list[dict[str, str]]] = {}
    for name, ratios in sorted(kept.items()):
        module, _, test = name.partition("::")
        topic = Path(module).stem.removeprefix("bench_").replace("_", " ").capitalize()
        label = test.removeprefix("test_").replace("_", " ")
        for what, ratio in ratios.items():
            topics.setdefault(topic, []).append({"benchmark": label, "what": what, "ratio": f"{ratio:g}"})
    return list(topics.items())


def reported() -> dict[str, Notebook]:
    """Notebooks that have a report, by name: those that get a page."""
    reports = project.root() / "reports"
    return {name: notebook for name, notebook in find_notebooks().items() if (reports / name / MANIFEST).is_file()}


def pages() -> dict[str, bytes]:
    """Every file of the site by its path below ``reports/site``; empty while no notebook has a report."""
    reports, notebooks = project.root() / "reports", reported()
    if not notebooks:
        return {}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "site"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["sections"] = _SECTIONS
    environment.filters |= {"formula": formula, "written": written}
    references = catalogue.references()
    ledger = Ledger.read((reports / "ledger.csv").read_text(encoding="utf-8"))
    cells = [_cell(row) for row in ledger.table.to_dict("records")]
    made = {name: [cell for cell in cells if cell["notebook"] == name] for name in notebooks}
    files = {"assets/style.css": _style()}

    def render(template: str, name: str, title: str, **values: Any) -> None:
        page = environment.get_template(f"{template}.html").render(here=name, title=title, **values)
        files[f"{name}.html"] = ("\n".join(line.rstrip() for line in page.splitlines()) + "\n").encode()

    entries = [{"name": name, "title": book.title, "counts": _counts(made[name])} for name, book in notebooks.items()]
    had = [cell["status"] for cell in cells]
    statuses = [(name, LETTERS[name], meaning, had.count(name)) for name, meaning in STATUS_MEANINGS.items()]
    papers = _papers(cells, references)
    render("contents", "index", "Equipoise", total=len(cells), statuses=statuses, papers=papers, notebooks=entries)
    for index, (name, notebook) in enumerate(notebooks.items()):
        content = body(reports / name)
        opening, end, rest = content.partition("</section>")
        render(
            "notebook",
            name,
            notebook.title,
            opening=opening + end,
            rest=rest,
            artefacts=made[name],
            headings=headings(content),
            parameters=list(notebook.parameters.values()),
            references=_cited(notebook, made[name], references),
            before=entries[index - 1] if index else None,
            after=entries[index + 1] if index + 1 < len(entries) else None,
        )
    measures = catalogue.MEASURES
    names = dict.fromkeys(measure.family for measure in measures)
    families = [(name, [measure for measure in measures if measure.family == name]) for name in names]
    cited = {key: references[key] for key in references if any(key in measure.sources for measure in measures)}
    render("measures", "measures", "Measures", measures=measures, families=families, references=cited.items())
    render("performance", "performance", "Performance", topics=_performance())
    described = (project.root() / "data" / "README.md").read_text(encoding="utf-8")
    render("document", "data", "Data", body=prose(described))
    return dict(sorted(files.items()))


def _counts(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many artefacts of a notebook have which status."""
    statuses = [cell["status"] for cell in cells]
    return ", ".join(f"{statuses.count(status)} {status}" for status in STATUS_MEANINGS if status in statuses)


# --- on disk ------------------------------------------------------------------------------------------------------


def _differing(files: Mapping[str, bytes]) -> list[str]:
    """Files of the site that are not, or not yet, what they should be; none where there is nothing to show."""
    folder = project.root() / "reports" / "site"
    there = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return sorted(name for name in {*there, *files} if there.get(name) != files.get(name)) if files else []


def refresh() -> bool:
    """Make the site anew, whole, where it is not what the reports say; return whether anything was written."""
    files, folder = pages(), project.root() / "reports" / "site"
    if not _differing(files):
        return False
    work = project.root() / ".equipoise"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="site-", dir=work) as staging:
        staged = Path(staging) / "site"
        for name, content in files.items():
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if folder.exists():
            folder.rename(Path(staging) / "retired")
        staged.rename(folder)
    return True


def check() -> list[str]:
    """A line where the site is not what the reports say; empty where all is well."""
    differing = _differing(pages())
    return [f"reports/site is out of date ({', '.join(differing)}): run equipoise build"] if differing else []
