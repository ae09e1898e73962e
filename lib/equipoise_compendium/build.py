"""Run notebooks headlessly and keep their reports: papermill, staging, the ledger.

A build runs what is out of date in a staging folder, and moves each finished report into
``reports/`` whole, at the very end, and only where its bytes differ: whatever happens before then
leaves ``reports/`` as it was.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import nbformat
import pandas as pd
from tqdm import tqdm

from equipoise_compendium import findings, project, provenance, registry
from equipoise_compendium.ledger import Ledger
from equipoise_compendium.notebooks import Notebook, Profile, find_notebooks, normalise
from equipoise_compendium.provenance import (
    MANIFEST,
    REPORT_FOLDER_VARIABLE,
    VARIANT_VARIABLE,
    complete_manifest,
    damaged_manifests,
    missing_data,
    output_digests,
    read_manifest,
    staleness,
)
from equipoise_compendium.shown import difference_lines
from equipoise_compendium.staging import heal, move, scratch_prefix, staging


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook in a build.

    It was run, was up to date, was kept as its data cannot be reached, or failed. ``message`` says
    why it was kept or failed, or where its report went, if not to ``reports/``.
    """

    notebook: str
    state: Literal["built", "fresh", "kept", "failed"]
    message: str = ""


# --- running --------------------------------------------------------------------------------------


def execute(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Run a notebook into a folder, in a process of its own; return kind and words of a failure."""
    Path(folder).mkdir(exist_ok=True)
    # Read before the run loads any of it: what is edited from here on makes the report out of date.
    notebook = Notebook.read(Path(source))
    texts = provenance.library()
    settings = []
    for name, value in parameters.items():
        default = notebook.parameters[name].default
        settings.append(f"{name} = {value!r} ({notebook.defaults}: {default!r})")
    os.environ[VARIANT_VARIABLE] = ", ".join(settings)
    kind, message = _papermill(source, parameters, folder)
    if not kind:
        complete_manifest(notebook, parameters, Path(folder), texts)
    return kind, message


def _papermill(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    import papermill
    from traitlets.config import Config

    # It takes parameters of type Literal for unknown ones, and warns of them.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    os.environ[REPORT_FOLDER_VARIABLE] = folder
    os.environ.update(
        {"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    )
    with tempfile.TemporaryDirectory(prefix=scratch_prefix()) as scratch:
        kernel = {
            "transport": "ipc",
            "ip": f"{scratch}/kernel",
            "connection_file": f"{scratch}/kernel.json",
        }
        try:
            executed = papermill.execute_notebook(
                source,
                None,  # it is written below, without what changes from run to run
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                cwd=Path(source).parent,
                config=Config({"KernelManager": kernel}),
                # A kernel that is shut down says that it was interrupted, as if someone had.
                extra_arguments=["--log-level=CRITICAL"],
            )
        except papermill.PapermillExecutionError as error:
            if error.ename == registry.DataUnreachable.__name__:
                return "unreachable", error.evalue
            trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
            return "failed", f"cell {error.exec_count}: {error.ename}: {error.evalue}\n{trace}"
    if read_manifest(Path(folder)) is None:
        return "failed", "the notebook ends without report.finish()"
    nbformat.write(normalise(executed), Path(folder, Path(source).name))
    return "", ""


def _end_with_parent() -> None:
    """End this worker, and with it its kernel, as soon as the build is gone, even if killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _in_words(error: BaseException) -> str:
    """What stopped a run, in words."""
    if isinstance(error, OSError):
        return f"{error.filename or 'reports'}: {error.strerror or error}"
    return f"it was stopped: {str(error).partition(chr(10))[0] or type(error).__name__}"


def _run(
    notebooks: Sequence[Notebook],
    parameters: Mapping[str, Mapping[str, Any]],
    folder: Path,
    jobs: int | None,
    executor: Executor | None,
) -> dict[str, tuple[str, str]]:
    """Run notebooks, each into a folder of its name; return what `execute` says of each."""
    if not notebooks:
        return {}
    workers = min(jobs or os.cpu_count() or 1, len(notebooks))
    context = multiprocessing.get_context("spawn")
    pool = executor or ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    # The largest first, so that no processor waits at the end for one that began late.
    largest_first = sorted(notebooks, key=lambda notebook: -len(notebook.content.cells))
    results = {}
    try:
        runs = {}
        for book in largest_first:
            target = str(folder / book.name)
            run = pool.submit(execute, str(book.path), parameters[book.name], target)
            runs[run] = book.name
        with tqdm(as_completed(runs), desc="notebooks", total=len(runs), unit="notebook") as bar:
            for run in bar:
                error = run.exception()  # a kernel that was killed, a full disk
                results[runs[run]] = ("failed", _in_words(error)) if error else run.result()
                bar.set_postfix_str(runs[run])
    finally:
        if executor is None:
            pool.shutdown(cancel_futures=True)
    return results


# --- building -------------------------------------------------------------------------------------


def _target(name: str, given: Mapping[str, Any], profile: Profile) -> Path:
    """Folder of a report: the committed one, or another by the profile and the parameters given."""
    parts = [f"{key}={value}" for key, value in given.items()]
    if profile != "full":
        parts.insert(0, profile)
    if not parts:
        return project.root() / "reports" / name
    words = "_".join(parts)
    slug = re.sub(r"[^A-Za-z0-9=._-]+", "-", words)
    if slug != words or len(slug) > 80:
        slug = f"{slug[:60]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return project.root() / "reports" / "variants" / name / slug


def unexplained_cells(folder: Path) -> str:
    """What a finished report holds that differs from the paper without a reason; else empty."""
    manifest = read_manifest(folder) or {"artefacts": []}
    lines = []
    for record in manifest["artefacts"]:
        without_reason = [each for each in record["differences"] if not each["reason"]]
        for line in difference_lines(without_reason):
            lines.append(f"{record['artefact']}, {line}")
    if not lines:
        return ""
    title = "cells that differ without a reason in data/published/<paper>/explanations.csv:"
    return "\n".join([title, *lines])


def _put_in_place(staged: Path, target: Path) -> None:
    """Move a finished report to where it belongs, if it is not the same as what is there."""
    same_files = output_digests(staged) == output_digests(target)
    if not same_files or read_manifest(staged) != read_manifest(target):
        move(staged, target)


def build(
    names: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    *,
    profile: Profile = "full",
    jobs: int | None = None,
    strict: bool = False,
    force: bool = False,
    mark_kept: bool = False,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Run the notebooks that are out of date, by default of all, and move their reports into place.

    ``given`` holds parameters as typed. With any that differ from the defaults, or a profile other
    than "full", a report goes to ``reports/variants/<notebook>/`` and the ledger stays as it is.
    ``jobs`` notebooks run at a time, by default one a processor, in a pool of processes unless
    ``executor`` is given. ``strict`` counts a notebook whose data cannot be reached as failed;
    ``force`` runs what is up to date too. ``mark_kept`` writes the status kept into the ledger for
    what is out of date and cannot be made without its data; else the ledger says what the reports
    say.
    """
    faults: dict[str, str] = {}
    chosen = find_notebooks(names, faults)
    reports = project.root() / "reports"
    outcomes = {}
    targets, parameters = {}, {}
    for name, notebook in chosen.items():
        parameters[name] = notebook.values(given or {}, profile)
        targets[name] = _target(name, notebook.values(given or {}), profile)
        outcomes[name] = Outcome(name, "fresh", _variant_place(targets[name]))
    for name, fault in faults.items():
        outcomes[name] = Outcome(name, "failed", fault)
    with staging() as folder:
        waiting = []
        for name, notebook in chosen.items():
            if force or staleness(notebook, targets[name], parameters[name]):
                waiting.append(notebook)
        results = _run(waiting, parameters, folder, jobs, executor)
        for name, (kind, message) in results.items():
            staged, target = folder / name, targets[name]
            if not kind and target.parent == reports:
                message = unexplained_cells(staged)
            if kind == "unreachable" and target.is_dir() and not strict:
                outcomes[name] = Outcome(name, "kept", message)
            elif kind or message:
                outcomes[name] = Outcome(name, "failed", message)
            else:
                _put_in_place(staged, target)
                outcomes[name] = Outcome(name, "built", _variant_place(target))

        if any(target.parent == reports for target in targets.values()):
            for name in damaged_manifests():
                outcomes[name] = _damaged_outcome(name, outcomes.get(name))
            _sum_up(folder, mark_kept)
    return list(outcomes.values())


def _sum_up(folder: Path, mark_kept: bool) -> None:
    """Put ledger, claims and findings in place, unless a damaged manifest would falsify them."""
    if damaged_manifests():
        return
    for file in _summaries(_ledger(mark_kept), folder / "summaries"):
        file.replace(project.root() / "reports" / file.name)


def _variant_place(target: Path) -> str:
    """Where a variant goes, from the top of the repository; empty for a committed report."""
    root = project.root()
    return "" if target.parent == root / "reports" else str(target.relative_to(root))


def _damaged_outcome(name: str, outcome: Outcome | None) -> Outcome:
    """That a manifest on disk cannot be read, with what else became of its notebook."""
    words = f"reports/{name}/{MANIFEST} is damaged, and so the ledger stands as it was"
    if outcome is not None and outcome.message:
        words += f"; {outcome.message}"
    return Outcome(name, "failed", words)


def _ledger(mark_kept: bool = False) -> Ledger:
    """Ledger of the reports on disk.

    On demand, a report that is out of date and whose data cannot be reached has the status kept.
    """
    reports = project.root() / "reports"
    faults: dict[str, str] = {}
    notebooks = find_notebooks(faults=faults)
    manifests = {}
    for name in sorted({*notebooks, *faults}):
        manifest = read_manifest(reports / name)
        if manifest:
            manifests[name] = manifest
    kept = []
    if mark_kept:
        for name, manifest in manifests.items():
            if name in notebooks and staleness(notebooks[name], reports / name):
                if missing_data(manifest["inputs"]):
                    kept.append(name)
    return Ledger.of(manifests.values(), kept)


def _summaries(ledger: Ledger, folder: Path) -> list[Path]:
    """Write what sums all reports up, ledger, claims and findings, into a new folder."""
    folder.mkdir()
    ledger.write(folder)
    template = project.root() / "data" / "findings.md"
    if template.is_file():
        text = findings.render(
            template.read_text(encoding="utf-8"), [folder, project.root() / "reports"]
        )
        (folder / "findings.md").write_text(text, encoding="utf-8")
    return sorted(folder.iterdir())


# --- checking -------------------------------------------------------------------------------------


def check() -> list[str]:
    """Compare ledger and reports with what would make them; empty where all is well.

    Each line is a fault: a report that is out of date or altered, a status that fell since the last
    commit, a ledger that does not say what the reports say.
    """
    heal()
    unread: dict[str, str] = {}
    notebooks = find_notebooks(faults=unread)
    reports = project.root() / "reports"
    faults = list(unread.values())
    for name, notebook in notebooks.items():
        reason = staleness(notebook, reports / name)
        if reason:
            faults.append(f"reports/{name} is out of date: {reason}")
    folders = {path.parent.name for path in reports.glob(f"*/{MANIFEST}")}
    for name in sorted(folders - {*notebooks, *unread}):
        faults.append(f"reports/{name} has no notebook")
    damaged = damaged_manifests()
    if damaged:
        return [*faults, f"the ledger cannot be checked: damaged manifests in {', '.join(damaged)}"]

    ledger = _ledger()
    differing = _differing(ledger)
    if differing:
        # A build may have marked what is kept.
        marked = _ledger(mark_kept=True)
        if not _differing(marked):
            ledger, differing = marked, []
    for file in differing:
        faults.append(f"reports/{file} is not what the reports say: run equipoise build")
    committed = _committed_ledger()
    if committed is not None:
        faults += ledger.falls_from(committed)
    return faults


def _differing(ledger: Ledger) -> list[str]:
    """Files on disk that do not sum up what the ledger says."""
    differing = []
    with tempfile.TemporaryDirectory() as folder:
        for file in _summaries(ledger, Path(folder, "summaries")):
            on_disk = project.root() / "reports" / file.name
            if not on_disk.is_file() or on_disk.read_bytes() != file.read_bytes():
                differing.append(file.name)
    return sorted(differing)


def _committed_ledger() -> Ledger | None:
    """Ledger of the last commit, or None outside a git checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(project.root()), "show", "HEAD:reports/ledger.csv"]
    # Fixed words only.
    shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return Ledger.read(shown.stdout) if shown.returncode == 0 else None


def listing() -> pd.DataFrame:
    """Every notebook with its parameters and the artefacts its report holds.

    Returns a table with the columns notebook, title, parameters, artefacts.
    """
    heal()
    rows = []
    faults: dict[str, str] = {}
    for name, notebook in find_notebooks(faults=faults).items():
        manifest = read_manifest(project.root() / "reports" / name) or {"artefacts": []}
        artefacts = [record["artefact"] for record in manifest["artefacts"]]
        rows.append((name, notebook.title, list(notebook.parameters.values()), artefacts))
    for name, fault in faults.items():
        rows.append((name, fault, [], []))
    return pd.DataFrame(rows, columns=["notebook", "title", "parameters", "artefacts"])
