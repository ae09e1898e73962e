"""Run notebooks headlessly and keep their reports: papermill, staging, the ledger.

A build runs what is out of date in a staging folder, and moves each finished report into ``reports/`` whole, at the very
end, and only where its bytes differ: whatever happens before then leaves ``reports/`` as it was.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import nbformat
import pandas as pd
from tqdm import tqdm

from equipoise import project
from equipoise.loaders import registry
from equipoise.reports import findings, provenance
from equipoise.reports.provenance import complete_manifest, missing_data, output_digests, staleness
from equipoise.reports.ledger import Ledger
from equipoise.reports.provenance import MANIFEST, REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE, read_manifest
from equipoise.reports.notebooks import Notebook, Profile, find_notebooks, normalise
from equipoise.reports.shown import difference_lines


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook in a build: run, up to date, not run as its data cannot be reached, or broken.

    ``message`` says why it was kept or failed, or where its report went, if not to ``reports/``.
    """

    notebook: str
    state: Literal["built", "fresh", "kept", "failed"]
    message: str = ""


# --- running ------------------------------------------------------------------------------------------------------


def execute(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Run a notebook into a folder, in a process of its own; return the kind of failure, if any, and its message."""
    Path(folder).mkdir(exist_ok=True)
    # read before the run loads any of it: whatever is edited from here on makes the report out of date
    notebook, texts = Notebook.read(Path(source)), provenance.library()
    words = [
        f"{name} = {value!r} ({'paper' if known.option else 'default'}: {known.default!r})"
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

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it takes parameters of type Literal for unknown ones
    os.environ[REPORT_FOLDER_VARIABLE] = folder
    os.environ.update({"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
    with tempfile.TemporaryDirectory() as scratch:
        try:
            executed = papermill.execute_notebook(
                source,
                None,  # it is written below, without what changes from run to run
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                cwd=Path(source).parent,
                config=Config({"KernelManager": {"transport": "ipc", "ip": f"{scratch}/kernel"}}),
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
    pool = executor or ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    results = {}
    try:
        runs = {
            pool.submit(execute, str(book.path), parameters[book.name], str(folder / book.name)): book.name
            for book in notebooks
        }
        with tqdm(as_completed(runs), desc="notebooks", total=len(runs), unit="notebook") as bar:
            for run in bar:
                results[runs[run]] = run.result()
                bar.set_postfix_str(runs[run])
    finally:
        if executor is None:
            pool.shutdown(cancel_futures=True)
    return results


# --- building -----------------------------------------------------------------------------------------------------


@contextmanager
def staging() -> Iterator[Path]:
    """A folder on the file system of the reports, for what is not finished; it goes with all that is left in it."""
    work = project.root() / ".equipoise"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        yield Path(folder)


def move(staged: Path, target: Path) -> None:
    """Put a folder from `staging` in its place, whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.rename(staged.with_name(staged.name + ".old"))
    staged.rename(target)


def _target(name: str, given: Mapping[str, Any], profile: Profile) -> Path:
    """Folder of a report: the committed one, or another by the profile and the parameters given."""
    words = "_".join([*([profile] if profile != "full" else []), *(f"{key}={value}" for key, value in given.items())])
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
    return "\n".join(["cells that differ without a reason in data/published/<paper>/explanations.csv:", *lines] if lines else [])


def build(
    names: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    *,
    profile: Profile = "full",
    jobs: int | None = None,
    strict: bool = False,
    force: bool = False,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Run the notebooks that are out of date, by default of all, and move their reports into place.

    ``given`` holds parameters as typed. With any that differ from the defaults, or a profile other than "full", a
    report goes to ``reports/variants/<notebook>/`` and the ledger stays as it is. ``jobs`` notebooks run at a time, by
    default one a processor, in a pool of processes unless ``executor`` is given. ``strict`` counts a notebook whose
    data cannot be reached as failed; ``force`` runs what is up to date too.
    """
    chosen, reports = find_notebooks(names), project.root() / "reports"
    parameters = {name: notebook.values(given or {}, profile) for name, notebook in chosen.items()}
    targets = {name: _target(name, notebook.values(given or {}), profile) for name, notebook in chosen.items()}
    waiting = [book for name, book in chosen.items() if force or staleness(book, targets[name], parameters[name])]
    outcomes = {name: Outcome(name, "fresh") for name in chosen}
    with staging() as folder:
        for name, (kind, message) in _run(waiting, parameters, folder, jobs, executor).items():
            staged, target, committed = folder / name, targets[name], targets[name].parent == reports
            wrong = _unexplained(staged) if committed and not kind else message
            if kind == "unreachable" and target.is_dir() and not strict:
                outcomes[name] = Outcome(name, "kept", message)
            elif kind or wrong:
                outcomes[name] = Outcome(name, "failed", wrong)
            else:
                outcomes[name] = Outcome(name, "built", "" if committed else str(target.relative_to(project.root())))
                if output_digests(staged) != output_digests(target) or read_manifest(staged) != read_manifest(target):
                    move(staged, target)
        if any(target.parent == reports for target in targets.values()):
            reports.mkdir(exist_ok=True)
            for file in _summaries(_ledger(find_notebooks()), folder / "summaries"):
                file.replace(reports / file.name)
    return list(outcomes.values())


def _ledger(notebooks: Mapping[str, Notebook]) -> Ledger:
    """Ledger of the reports on disk; an out-of-date one whose data cannot be reached is kept."""
    reports = project.root() / "reports"
    manifests = {name: manifest for name in notebooks if (manifest := read_manifest(reports / name))}
    stale = [name for name in manifests if staleness(notebooks[name], reports / name)]
    return Ledger.of(manifests.values(), [name for name in stale if missing_data(manifests[name]["inputs"])])


def _summaries(ledger: Ledger, folder: Path) -> list[Path]:
    """Write what sums all reports up, the ledger, the claims and the findings, into a new folder."""
    folder.mkdir()
    ledger.write(folder)
    template = project.root() / "data" / "findings.md"
    if template.is_file():
        text = findings.render(template.read_text(encoding="utf-8"), [folder, project.root() / "reports"])
        (folder / "findings.md").write_text(text, encoding="utf-8")
    return sorted(folder.iterdir())


# --- checking -----------------------------------------------------------------------------------------------------


def check() -> list[str]:
    """Recompute the ledger and compare the reports with what would make them; empty where all is well.

    Each line is a fault: a report that is out of date or altered, a status that fell since the last commit, a ledger
    that does not say what the reports say.
    """
    notebooks, reports = find_notebooks(), project.root() / "reports"
    reasons = {name: staleness(notebook, reports / name) for name, notebook in notebooks.items()}
    faults = [f"reports/{name} is out of date: {reason}" for name, reason in reasons.items() if reason]
    folders = {path.parent.name for path in reports.glob(f"*/{MANIFEST}")}
    faults += [f"reports/{name} has no notebook" for name in sorted(folders - set(notebooks))]
    ledger = _ledger(notebooks)
    with staging() as folder:
        files = [file.name for file in _summaries(ledger, folder / "summaries") if not _same(file, reports / file.name)]
    faults += [f"reports/{file} is not what the reports say: run equipoise build" for file in files]
    committed = _committed_ledger()
    return faults if committed is None else faults + ledger.falls_from(committed)


def _same(file: Path, other: Path) -> bool:
    return other.is_file() and other.read_bytes() == file.read_bytes()


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
    for name, notebook in find_notebooks().items():
        manifest = read_manifest(project.root() / "reports" / name) or {"artefacts": []}
        made = [record["artefact"] for record in manifest["artefacts"]]
        rows.append((name, notebook.title, list(notebook.parameters.values()), made))
    return pd.DataFrame(rows, columns=["notebook", "title", "parameters", "artefacts"])
