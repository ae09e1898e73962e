"""Run notebooks with papermill into a temporary folder, and move each complete report into place.

`check` recomputes each status from the published tables and the tables of the reports. The
processes that run the notebooks import this module, so it imports pandas only where it needs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import multiprocessing
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import psutil
from tqdm import tqdm

from equipoise_compendium import project
from equipoise_compendium.notebooks import Notebook, find_notebooks, normalise
from equipoise_compendium.provenance import (
    MANIFEST,
    REPORT_FOLDER_VARIABLE,
    VARIANT_VARIABLE,
    read_manifest,
    write_manifest,
)

if TYPE_CHECKING:
    from equipoise_compendium.printed import Comparison

REPLACED = ".replaced"
"""The folder, next to the new reports of a build, of the reports that they replace."""


@dataclass(frozen=True)
class Outcome:
    """The result of a build for one notebook.

    ``state``: built; or kept, the old report, with the error.
    """

    notebook: str
    state: str
    folder: Path
    error: str = ""


# --- running --------------------------------------------------------------------------------------


class _Parameters:
    """The code of a notebook's parameters; papermill itself turns the keys of a dict into text."""

    @staticmethod
    def codify(parameters: Mapping[str, Any], comment: str) -> str:
        lines = [f"{name} = {value!r}" for name, value in parameters.items()]
        return "\n".join([f"# {comment}", *lines, ""])

    @staticmethod
    def inspect(_cell: Any) -> list[Any]:
        """Return nothing; `Notebook.values` has already checked the names."""
        return []


def execute(source: str, parameters: Mapping[str, Any], folder: str) -> str:
    """Run a notebook into a folder, in a separate process; return the error, if any."""
    import papermill
    from papermill.translators import papermill_translators
    from traitlets.config import Config

    papermill_translators.register("python", _Parameters)
    # papermill warns about parameters of type Literal, which it does not support.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    Path(folder).mkdir(exist_ok=True)
    os.environ |= {
        REPORT_FOLDER_VARIABLE: folder,
        VARIANT_VARIABLE: ", ".join(f"{name} = {value!r}" for name, value in parameters.items()),
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    with tempfile.TemporaryDirectory() as scratch:
        # Sockets in a folder of its own: ports of notebooks that run in parallel may collide.
        kernel = {
            "transport": "ipc",
            "ip": f"{scratch}/kernel",
            "connection_file": f"{scratch}/kernel.json",
        }
        try:
            executed = papermill.execute_notebook(
                source,
                None,  # it is written below, without volatile content
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                cwd=Path(source).parent,
                config=Config({"KernelManager": kernel}),
                extra_arguments=["--log-level=CRITICAL"],
            )
        except papermill.PapermillExecutionError as error:
            trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
            line = re.search(r"Cell In\[\d+\], line (\d+)", trace)
            place = f"cell {error.exec_count}" + (f", line {line[1]}" if line else "")
            return f"{place}: {error.ename}: {error.evalue}"
    manifest = read_manifest(Path(folder))
    if manifest is None:
        return "the notebook must end with report.finish()"
    write_manifest(Path(folder), manifest | {"parameters": dict(parameters)})
    nbformat.write(normalise(executed), Path(folder, Path(source).name))
    return ""


def _end_with_parent() -> None:
    """End this worker, and with it its kernel, when the build ends, even if killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _run(
    notebooks: Sequence[Notebook],
    parameters: Mapping[str, Mapping[str, Any]],
    folder: Path,
    jobs: int | None,
) -> Iterator[tuple[str, str]]:
    """Run notebooks in parallel, each into a folder of its name; yield names and errors."""
    # The longest first, so that no processor waits for one that began late.
    longest_first = sorted(notebooks, key=lambda notebook: -len(notebook.content.cells))
    workers = max(1, min(jobs or os.cpu_count() or 1, len(notebooks)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_end_with_parent) as pool:
        runs = {}
        for book in longest_first:
            target = str(folder / book.name)
            runs[pool.submit(execute, str(book.path), parameters[book.name], target)] = book.name
        bar = tqdm(as_completed(runs), desc="notebooks", total=len(runs), unit="notebook")
        for run in bar:
            error = run.exception()  # a kernel that was killed, a full disk
            yield runs[run], f"{type(error).__name__}: {error}" if error else run.result()


# --- building -------------------------------------------------------------------------------------


def unexplained_cells(folder: Path) -> str:
    """Return a message about cells of a report that differ without a reason, else ""."""
    from equipoise_compendium.printed import Difference
    from equipoise_compendium.rendering import difference_lines

    manifest = read_manifest(folder)
    lines = []
    for record in manifest["artefacts"] if manifest else []:
        differences = [Difference(**each) for each in record["differences"] if not each["reason"]]
        lines += [f"{record['artefact']}, {line}" for line in difference_lines(differences)]
    if not lines:
        return ""
    title = "cells that differ without a reason in data/published/<paper>/explanations.csv:"
    return "\n".join([title, *lines])


def _slug(parameters: Mapping[str, Any]) -> str:
    """Return the name of the folder of a variant; other parameters have another name."""
    changes = "_".join(f"{key}={value}" for key, value in parameters.items())
    slug = re.sub(r"[^A-Za-z0-9=._-]+", "-", changes)[:80]
    if slug != changes:
        slug += f"_{hashlib.sha256(changes.encode()).hexdigest()[:8]}"
    return slug


def _move(staged: Path, target: Path) -> None:
    """Move a complete report to its place; the old one goes to the temporary folder.

    A build that ends between the two leaves the old report where `_sweep` looks for it.
    """
    old = staged.with_name(REPLACED) / target.relative_to(project.root() / "reports")
    project.inside(project.root(), str(target.parent))
    for path in (old, target):
        path.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.replace(old)
    staged.replace(target)


def _sweep(work: Path) -> None:
    """Remove the folders of builds that were killed; put back reports that they had moved."""
    for folder in sorted(work.glob("building-*")):
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ValueError):
            maker = psutil.Process(int(folder.name.split("-")[1]))
            # A process that began later has the number of one that ended.
            if maker.create_time() <= folder.stat().st_mtime:
                continue
        for manifest in list((folder / REPLACED).rglob(MANIFEST)):
            report = project.root() / "reports" / manifest.parent.relative_to(folder / REPLACED)
            if not report.exists():
                with contextlib.suppress(OSError):  # another build puts it back at the same time
                    manifest.parent.replace(report)
        shutil.rmtree(folder, ignore_errors=True)


def build(
    names: Sequence[str] = (), given: Mapping[str, str] | None = None, jobs: int | None = None
) -> Iterator[Outcome]:
    """Run notebooks (by default all), move their reports into place, and write the ledger.

    ``given`` are parameters as text. If one differs from its default, the report goes to
    ``reports/variants/<notebook>/``, and the ledger stays unchanged. ``jobs`` notebooks run at a
    time, by default one per processor.
    """
    from equipoise_compendium import findings

    chosen = find_notebooks(names)
    reports = project.root() / "reports"
    parameters = {name: notebook.values(given or {}) for name, notebook in chosen.items()}
    work = project.inside(project.root(), "reports/.equipoise")
    work.mkdir(parents=True, exist_ok=True)
    _sweep(work)
    n_failed = 0
    # On the file system of the reports, so that they can be moved.
    with tempfile.TemporaryDirectory(prefix=f"building-{os.getpid()}-", dir=work) as folder:
        for name, error in _run(list(chosen.values()), parameters, Path(folder), jobs):
            staged, target = Path(folder, name), reports / name
            if parameters[name]:
                target = reports / "variants" / name / _slug(parameters[name])
            problem = error or unexplained_cells(staged)
            n_failed += bool(problem)
            if not problem:
                _move(staged, target)
            yield Outcome(name, "kept" if problem else "built", target, problem)
    with contextlib.suppress(OSError):
        work.rmdir()
    if not (parameters and all(parameters.values())):
        try:
            write_summaries()
        except findings.MissingReportError:
            if not n_failed:
                raise  # else it is the report of a notebook that failed, and that is named


def manifests() -> list[dict[str, Any]]:
    """Read the manifests of the reports that have a notebook, by name."""
    found = []
    for path in sorted((project.root() / "notebooks").glob("*.ipynb")):
        manifest = read_manifest(project.root() / "reports" / path.stem)
        if manifest is not None:
            # The name is that of the folder, so that no manifest leads to files elsewhere.
            found.append(manifest | {"notebook": path.stem})
    return found


def summaries() -> Iterator[tuple[str, str]]:
    """Yield ledger, claims and findings as text, by file below ``reports/``, from all reports."""
    from equipoise_compendium import findings, ledger, verdicts
    from equipoise_compendium.writing import write_csv

    read = manifests()
    judged = verdicts.table_of(read)
    table = ledger.table_of(read, judged)
    tables = {"ledger.csv": table, "claims.csv": judged, "answers.csv": verdicts.counts(judged)}
    made = {}
    for name, rows in tables.items():
        stream = io.StringIO()
        write_csv(rows, stream)
        made[name] = stream.getvalue()
    yield from made.items()
    template = project.root() / "data" / "findings.md"
    if template.is_file():
        yield "findings.md", findings.render(template.read_text(encoding="utf-8"), made)


def write_summaries() -> None:
    """Write `summaries`."""
    from equipoise_compendium.writing import write_files

    texts = {project.root() / "reports" / name: text for name, text in summaries()}
    write_files(texts, within=project.root())


# --- checking -------------------------------------------------------------------------------------


def _value(text: str) -> float | str:
    """Read a cell of a saved table: a number, or text."""
    with contextlib.suppress(ValueError):
        return float(text)
    return text.removeprefix("'")


def comparison_of(record: Mapping[str, Any], folder: Path) -> Comparison | None:
    """Compare the saved table of an artefact again; None where nothing was compared."""
    from equipoise_compendium.printed import compare, read_text_table

    compared = record["compared"]
    if compared is None:
        return None
    saved = next(file for file in record["files"] if file.endswith(".csv"))
    table = read_text_table(folder / saved)
    values = table.columns.drop(compared["keys"])
    table[values] = table[values].map(_value).astype(object)
    return compare(table, **compared)


def results() -> list[tuple[str, str]]:
    """Compare each table and figure of the papers again; return a result and a line about it."""
    from equipoise_compendium.printed import artefacts
    from equipoise_compendium.terms import REPLICATED, STATUSES

    records = {}
    for manifest in manifests():
        for record in manifest["artefacts"]:
            records[record["artefact"]] = record, project.root() / "reports" / manifest["notebook"]
    lines = []
    for name, row in artefacts().iterrows():
        label = f"{row['paper']} {row['artefact'].replace('-', ' ').capitalize()}"
        if name not in records:
            reason = row["absent_because"] or "not regenerated"
            lines.append(("NOT COMPARED", f"{label}: not reproduced ({reason})"))
            continue
        record, folder = records[name]
        comparison = comparison_of(record, folder)
        if record["basis"] == REPLICATED:
            lines.append(("NOT COMPARED", f"{label}: {REPLICATED} ({record['data']})"))
        elif comparison is None:
            status = record["status"]
            lines.append(("NOT COMPARED", f"{label}: {status} ({STATUSES[status]})"))
        elif not comparison.differences:
            lines.append(("OK", f"{label}: {comparison.cells} of {comparison.cells} cells"))
        else:
            reasons = {each.reason or "no reason is known": "" for each in comparison.differences}
            count = f"{len(comparison.differences)} of {comparison.cells} cells"
            lines.append(("DIFFERS", f"{label}: {count}, {'; '.join(reasons)}"))
    return lines


def check() -> list[str]:
    """Compare reports and ledger with the published numbers; return the differences."""
    from equipoise_compendium.printed import status_of

    reports = project.root() / "reports"
    read = manifests()
    faults = []
    for path in sorted((project.root() / "notebooks").glob("*.ipynb")):
        if not (reports / path.stem / MANIFEST).is_file():
            faults.append(f"notebooks/{path.name} has no report: run equipoise build {path.stem}")
    for manifest in read:
        for record in manifest["artefacts"]:
            comparison = comparison_of(record, reports / manifest["notebook"])
            status = status_of(record["basis"], comparison)
            if status != record["status"]:
                faults.append(
                    f"{record['artefact']}: {record['status']} in its report, but its table "
                    f"gives {status}"
                )
    made = dict(summaries())
    for path in sorted(reports.glob("[!.]*.*")):
        if path.name not in made:
            faults.append(f"reports/{path.name} is made by no build: remove it")
    for name, text in made.items():
        on_disk = reports / name
        if not on_disk.is_file() or on_disk.read_bytes().splitlines() != text.encode().splitlines():
            faults.append(f"reports/{name} is outdated: run equipoise build")
    return faults
