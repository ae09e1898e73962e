"""Run notebooks headlessly and keep their reports: papermill, content hashes, staging, the ledger.

A report is out of date when the notebook's code, a module it imports, a file it read, a parameter or the version of a
library has changed since. A build runs what is out of date in a staging folder, and moves each finished report into
``reports/`` whole, at the very end, and only where its bytes differ: whatever happens before then leaves ``reports/``
as it was.
"""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import nbformat
import pandas as pd
from tqdm import tqdm

from equipoise import project
from equipoise.loaders import registry
from equipoise.reports.freshness import complete_manifest, missing_data, output_digests, read_manifest, staleness
from equipoise.reports.ledger import Ledger
from equipoise.reports.notebooks import Notebook, Profile, find_notebooks, normalise
from equipoise.reports.report import MANIFEST, REPORT_FOLDER_VARIABLE
from equipoise.reports.shown import VARIANT_VARIABLE

_UNREACHABLE = registry.DataUnreachable.__name__



























def _execute(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Run a notebook into a folder, in a process of its own; return the kind of failure, if any, and its message."""
    import papermill
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it takes parameters of type Literal for unknown ones
    target = Path(folder)
    name = Path(source).stem
    os.environ[REPORT_FOLDER_VARIABLE] = folder
    os.environ[VARIANT_VARIABLE] = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    os.environ.update({"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
    with tempfile.TemporaryDirectory() as sockets:
        config = Config()
        config.KernelManager.transport = "ipc"
        config.KernelManager.ip = str(Path(sockets) / "kernel")
        output = Path(sockets) / f"{name}.ipynb"
        try:
            papermill.execute_notebook(
                source,
                str(output),
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                config=config,
                resources={"metadata": {"path": str(Path(source).parent)}},
            )
        except papermill.PapermillExecutionError as error:
            if error.ename == _UNREACHABLE:
                return "unreachable", error.evalue
            trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
            return "failed", f"cell {error.exec_count}: {error.ename}: {error.evalue}\n{trace}"
        executed = normalise(nbformat.read(output, as_version=4))
    if not (target / MANIFEST).is_file():
        return "failed", "the notebook ends without report.finish()"
    nbformat.write(executed, target / f"{name}.ipynb")
    return "", ""














# --- building -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook in a build.

    ``state``: Run; up to date; not run because its data cannot be reached; broken. ``message``: Why it was kept or
    failed; where else the report went.
    """

    notebook: str
    state: Literal["built", "fresh", "kept", "failed"]
    message: str = ""


def _variant(name: str, given: Mapping[str, Any], profile: Profile) -> Path:
    """Folder of a report that is not the committed one, by its profile and the parameters given."""
    words = "_".join([*([profile] if profile != "full" else []), *(f"{key}={value}" for key, value in given.items())])
    slug = re.sub(r"[^A-Za-z0-9=._-]+", "-", words)
    if slug != words or len(slug) > 80:
        slug = f"{slug[:60]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return project.root() / "reports" / "variants" / name / slug


def _move(staged: Path, target: Path) -> None:
    """Put a finished report in its place, unless it is there already, byte for byte."""
    if target.is_dir() and output_digests(staged) == output_digests(target) and read_manifest(staged) == read_manifest(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    retired = staged.with_name(staged.name + ".old")
    if target.exists():
        target.rename(retired)
    staged.rename(target)
    shutil.rmtree(retired, ignore_errors=True)


def _unexplained(manifest: Mapping[str, Any]) -> list[str]:
    return [
        f"{record['artefact']}, {difference['row']}, {difference['column']}: printed {difference['printed']}, "
        f"computed {difference['ours']}"
        for record in manifest["artefacts"]
        for difference in record["differences"]
        if not difference["reason"]
    ]


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
    """Run notebooks that are out of date, and move their reports into place.

    ``names``: Notebooks; the default is all. ``given``: Parameters, as typed. With any that differ from the
    defaults, or another profile than "full", a report goes to ``reports/variants/<notebook>/`` and the ledger stays
    as it is. ``jobs``: Notebooks to run at a time; the default is the number of processors. ``strict``: Count a
    notebook whose data cannot be reached as failed. ``force``: Run what is up to date too. ``executor``: Runs the
    notebooks instead of a pool of processes of its own. Returns: One for each notebook, in their order.
    """
    if profile not in get_args(Profile):
        raise ValueError(f"no profile {profile!r}; there are {', '.join(get_args(Profile))}")
    every = find_notebooks()
    unknown = [name for name in names if name not in every]
    if unknown:
        raise ValueError(f"no notebook {', '.join(unknown)}; there are {', '.join(every)}")
    chosen = {name: every[name] for name in (names or every)}
    parameters = {name: notebook.values(given or {}, profile) for name, notebook in chosen.items()}
    reports = project.root() / "reports"
    targets = {
        name: _variant(name, notebook.values(given or {}), profile)
        if parameters[name] or profile != "full"
        else reports / name
        for name, notebook in chosen.items()
    }
    stale = {name: staleness(chosen[name], targets[name], parameters[name]) for name in chosen}
    outcomes = {name: Outcome(name, "fresh") for name in chosen if not stale[name] and not force}
    waiting = [name for name in chosen if name not in outcomes]

    work = project.root() / ".equipoise"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=work) as staging:
        results = _run(waiting, chosen, parameters, Path(staging), jobs, executor)
        finished: list[str] = []
        for name in waiting:
            kind, message = results[name]
            if kind == "unreachable" and targets[name].is_dir() and not strict:
                outcomes[name] = Outcome(name, "kept", message)
            elif kind:
                outcomes[name] = Outcome(name, "failed", message)
            else:
                manifest = complete_manifest(chosen[name], parameters[name], Path(staging) / name)
                wrong = _unexplained(manifest) if targets[name].parent == reports else []
                if wrong:
                    text = "cells that differ without a reason in data/published/explanations.csv:\n" + "\n".join(wrong)
                    outcomes[name] = Outcome(name, "failed", text)
                else:
                    where = "" if targets[name].parent == reports else str(targets[name].relative_to(project.root()))
                    outcomes[name] = Outcome(name, "built", where)
                    finished.append(name)
        for name in finished:
            _move(Path(staging) / name, targets[name])
        if any(targets[name].parent == reports for name in chosen):
            _move_ledger(_ledger(every), Path(staging), reports)
    return [outcomes[name] for name in chosen]


def _run(
    names: Sequence[str],
    notebooks: Mapping[str, Notebook],
    parameters: Mapping[str, Mapping[str, Any]],
    staging: Path,
    jobs: int | None,
    executor: Executor | None,
) -> dict[str, tuple[str, str]]:
    if not names:
        return {}
    pool = executor or ProcessPoolExecutor(
        min(jobs or os.cpu_count() or 1, len(names)), mp_context=multiprocessing.get_context("spawn")
    )
    results: dict[str, tuple[str, str]] = {}
    try:
        futures = {}
        for name in names:
            (staging / name).mkdir()
            futures[pool.submit(_execute, str(notebooks[name].path), parameters[name], str(staging / name))] = name
        with tqdm(total=len(names), desc="notebooks", unit="notebook", file=sys.stderr) as bar:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                bar.set_postfix_str(futures[future])
                bar.update()
    finally:
        if executor is None:
            pool.shutdown(cancel_futures=True)
    return results


def _ledger(notebooks: Mapping[str, Notebook]) -> Ledger:
    """Ledger of the reports on disk; an out-of-date one whose data cannot be reached is kept."""
    manifests, kept = [], []
    for name, notebook in notebooks.items():
        folder = project.root() / "reports" / name
        manifest = read_manifest(folder)
        if manifest is None:
            continue
        manifests.append(manifest)
        if staleness(notebook, folder) and missing_data(manifest["inputs"]):
            kept.append(name)
    return Ledger.of(manifests, kept)




def _move_ledger(ledger: Ledger, staging: Path, reports: Path) -> None:
    ledger.write(staging)
    reports.mkdir(exist_ok=True)
    for name in ("ledger.csv", "ledger.md"):
        target = reports / name
        if not target.is_file() or target.read_bytes() != (staging / name).read_bytes():
            (staging / name).replace(target)


def check() -> list[str]:
    """Recompute the ledger and compare the reports with what would make them.

    Returns: A line for each fault: a report that is out of date or altered, a status that fell since the last
    commit, a ledger that does not say what the reports say. Empty where all is well.
    """
    notebooks = find_notebooks()
    reports = project.root() / "reports"
    faults = [
        f"reports/{name} is out of date: {reason}"
        for name, notebook in notebooks.items()
        if (reason := staleness(notebook, reports / name))
    ]
    folders = {path.parent.name for path in reports.glob(f"*/{MANIFEST}")}
    faults += [f"reports/{name} has no notebook" for name in sorted(folders - set(notebooks))]
    ledger = _ledger(notebooks)
    on_disk = reports / "ledger.csv"
    text = on_disk.read_text(encoding="utf-8") if on_disk.is_file() else ""
    if not text or not Ledger.read(text).table.equals(ledger.table):
        faults.append("reports/ledger.csv is not what the reports say: run equipoise build")
    committed = _committed_ledger()
    if committed is not None:
        faults += ledger.falls_from(committed)
    return faults


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

    Returns DataFrame, columns notebook, title, parameters, artefacts.
    """
    rows = []
    for name, notebook in find_notebooks().items():
        manifest = read_manifest(project.root() / "reports" / name)
        made = [record["artefact"] for record in manifest["artefacts"]] if manifest else []
        rows.append((name, notebook.title, list(notebook.parameters.values()), made))
    return pd.DataFrame(rows, columns=["notebook", "title", "parameters", "artefacts"])
