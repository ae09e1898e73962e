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
from equipoise_compendium.staging import move, scratch_prefix, staging


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook in a build: run, up to date, not run as its data cannot be reached, or broken.

    ``message`` says why it was kept or failed, or where its report went, if not to ``reports/``.
    """

    notebook: str
    state: Literal["built", "fresh", "kept", "failed"]
    message: str = ""


# --- running --------------------------------------------------------------------------------------


def execute(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Run a notebook into a folder, in a process of its own; return the kind of failure, if any, and its message."""
    Path(folder).mkdir(exist_ok=True)
    # read before the run loads any of it: whatever is edited from here on makes the report out of
    # date
    notebook, texts = Notebook.read(Path(source)), provenance.library()
    words = [
        f"{name} = {value!r} ({notebook.defaults}: {known.default!r})"
        for name, value in parameters.items()
        for known in [notebook.parameters[name]]
    ]
    os.environ[VARIANT_VARIABLE] = ", ".join(words)
    failure = _papermill(source, parameters, folder)
    if not failure[0]:
        complete_manifest(notebook, parameters, Path(folder), texts)
    return failure


def _papermill(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    import papermill
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(
        logging.ERROR
    )  # it takes parameters of type Literal for unknown ones
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
    """End this worker, and with it its kernel, as soon as the build is gone, however it was killed."""

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _said(error: BaseException) -> str:
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
    """Run notebooks, some at a time, each into a folder of its name; return what `execute` says of each."""
    if not notebooks:
        return {}
    workers = min(jobs or os.cpu_count() or 1, len(notebooks))
    context = multiprocessing.get_context("spawn")
    pool = executor or ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    results = {}
    try:
        runs = {
            pool.submit(
                execute, str(book.path), parameters[book.name], str(folder / book.name)
            ): book.name
            for book in notebooks
        }
        with tqdm(as_completed(runs), desc="notebooks", total=len(runs), unit="notebook") as bar:
            for run in bar:
                error = run.exception()  # a kernel that was killed, a full disk
                results[runs[run]] = ("failed", _said(error)) if error else run.result()
                bar.set_postfix_str(runs[run])
    finally:
        if executor is None:
            pool.shutdown(cancel_futures=True)
    return results


# --- building -------------------------------------------------------------------------------------


def _target(name: str, given: Mapping[str, Any], profile: Profile) -> Path:
    """Folder of a report: the committed one, or another by the profile and the parameters given."""
    words = "_".join(
        [
            *([profile] if profile != "full" else []),
            *(f"{key}={value}" for key, value in given.items()),
        ]
    )
    if not words:
        return project.root() / "reports" / name
    slug = re.sub(r"[^A-Za-z0-9=._-]+", "-", words)
    if slug != words or len(slug) > 80:
        slug = f"{slug[:60]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return project.root() / "reports" / "variants" / name / slug


def _unexplained(folder: Path) -> str:
    """What a finished report holds that differs from the paper without a reason, in words; else empty."""
    lines = [
        f"{record['artefact']}, {line}"
        for record in (read_manifest(folder) or {})["artefacts"]
        for line in difference_lines(d for d in record["differences"] if not d["reason"])
    ]
    return "\n".join(
        ["cells that differ without a reason in data/published/<paper>/explanations.csv:", *lines]
        if lines
        else []
    )


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
    chosen, reports = find_notebooks(names, faults), project.root() / "reports"
    parameters = {name: notebook.values(given or {}, profile) for name, notebook in chosen.items()}
    targets = {
        name: _target(name, notebook.values(given or {}), profile)
        for name, notebook in chosen.items()
    }
    places = {
        name: "" if target.parent == reports else str(target.relative_to(project.root()))
        for name, target in targets.items()
    }
    outcomes = {name: Outcome(name, "fresh", place) for name, place in places.items()}
    outcomes |= {name: Outcome(name, "failed", fault) for name, fault in faults.items()}
    with staging() as folder:
        waiting = [
            book
            for name, book in chosen.items()
            if force or staleness(book, targets[name], parameters[name])
        ]
        for name, (kind, message) in _run(waiting, parameters, folder, jobs, executor).items():
            staged, target, committed = (
                folder / name,
                targets[name],
                targets[name].parent == reports,
            )
            wrong = _unexplained(staged) if committed and not kind else message
            if kind == "unreachable" and target.is_dir() and not strict:
                outcomes[name] = Outcome(name, "kept", message)
            elif kind or wrong:
                outcomes[name] = Outcome(name, "failed", wrong)
            else:
                outcomes[name] = Outcome(name, "built", places[name])
                if output_digests(staged) != output_digests(target) or read_manifest(
                    staged
                ) != read_manifest(target):
                    move(staged, target)
        summed_up = any(target.parent == reports for target in targets.values())
        damaged = damaged_manifests() if summed_up else []
        for name in damaged:
            told = f"reports/{name}/{MANIFEST} is damaged, and so the ledger stands as it was"
            more = outcomes[name].message if name in outcomes else ""
            outcomes[name] = Outcome(name, "failed", "; ".join(filter(None, [told, more])))
        if summed_up and not damaged:
            for file in _summaries(_ledger(mark_kept), folder / "summaries"):
                file.replace(reports / file.name)
    return list(outcomes.values())


def _ledger(mark_kept: bool = False) -> Ledger:
    """Ledger of the reports on disk; on demand an out-of-date one whose data cannot be reached has the status kept."""
    reports, faults = project.root() / "reports", dict[str, str]()
    notebooks = find_notebooks(faults=faults)
    manifests = {
        name: found
        for name in sorted({*notebooks, *faults})
        if (found := read_manifest(reports / name))
    }
    stale = [
        name
        for name in manifests
        if mark_kept and name in notebooks and staleness(notebooks[name], reports / name)
    ]
    return Ledger.of(
        manifests.values(), [name for name in stale if missing_data(manifests[name]["inputs"])]
    )


def _summaries(ledger: Ledger, folder: Path) -> list[Path]:
    """Write what sums all reports up, the ledger, the claims and the findings, into a new folder."""
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
    """Recompute the ledger and compare the reports with what would make them; empty where all is well.

    Each line is a fault: a report that is out of date or altered, a status that fell since the last
    commit, a ledger that does not say what the reports say.
    """
    unread: dict[str, str] = {}
    notebooks, reports = find_notebooks(faults=unread), project.root() / "reports"
    reasons = {name: staleness(notebook, reports / name) for name, notebook in notebooks.items()}
    faults = list(unread.values())
    faults += [
        f"reports/{name} is out of date: {reason}" for name, reason in reasons.items() if reason
    ]
    folders = {path.parent.name for path in reports.glob(f"*/{MANIFEST}")}
    faults += [
        f"reports/{name} has no notebook" for name in sorted(folders - {*notebooks, *unread})
    ]
    if damaged := damaged_manifests():
        return [*faults, f"the ledger cannot be checked: damaged manifests in {', '.join(damaged)}"]
    ledger, marked = _ledger(), _ledger(mark_kept=True)
    differing = _differing(ledger)
    if differing and not _differing(marked):
        ledger, differing = marked, []
    faults += [
        f"reports/{file} is not what the reports say: run equipoise build" for file in differing
    ]
    committed = _committed_ledger()
    return faults if committed is None else faults + ledger.falls_from(committed)


def _differing(ledger: Ledger) -> list[str]:
    """Files on disk that do not sum up what the ledger says."""
    with tempfile.TemporaryDirectory() as folder:
        written = {
            file.name: file.read_bytes() for file in _summaries(ledger, Path(folder, "summaries"))
        }
    there = {
        name: path for name in written if (path := project.root() / "reports" / name).is_file()
    }
    return sorted(
        name for name in written if name not in there or there[name].read_bytes() != written[name]
    )


def _committed_ledger() -> Ledger | None:
    """Ledger of the last commit, or None outside a git checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(project.root()), "show", "HEAD:reports/ledger.csv"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words only
    return Ledger.read(shown.stdout) if shown.returncode == 0 else None


def listing() -> pd.DataFrame:
    """Every notebook with its parameters and the artefacts its report holds.

    Returns a table with the columns notebook, title, parameters, artefacts.
    """
    rows = []
    faults: dict[str, str] = {}
    for name, notebook in find_notebooks(faults=faults).items():
        manifest = read_manifest(project.root() / "reports" / name) or {"artefacts": []}
        made = [record["artefact"] for record in manifest["artefacts"]]
        rows.append((name, notebook.title, list(notebook.parameters.values()), made))
    rows += [(name, fault, [], []) for name, fault in faults.items()]
    return pd.DataFrame(rows, columns=["notebook", "title", "parameters", "artefacts"])
