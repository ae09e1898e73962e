"""Run notebooks headlessly and keep their reports: papermill, content hashes, staging, the ledger.

A report is out of date when the notebook's code, a module it imports, a file it read, a parameter or the version of a
library has changed since. A build runs what is out of date in a staging folder, and moves each finished report into
``reports/`` whole, at the very end, and only where its bytes differ: whatever happens before then leaves ``reports/``
as it was.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import io
import json
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import nbformat
import pandas as pd
import yaml
from tqdm import tqdm

from equipoise import project
from equipoise.loaders import registry
from equipoise.reporting import MANIFEST, REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE, Ledger

__all__ = [
    "Notebook",
    "Outcome",
    "Parameter",
    "build",
    "check",
    "find_notebooks",
    "listing",
    "missing_data",
    "normalise",
    "post_process",
    "staleness",
]

Profile = Literal["full", "smoke"]

_UNREACHABLE = registry.DataUnreachable.__name__


# --- notebooks and their parameters -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook.

    Parameters
    ----------
    name : str
    type : str
        Its annotation, such as ``int``, ``dict[int, float]`` or ``Literal['rnod', 'nmd']``.
    default : object
    help : str

    Examples
    --------
    >>> patience = Parameter("patience", "int", 1250, "words a user is willing to read")
    >>> patience.parse("1000")
    1000
    >>> patience.parse("many")
    Traceback (most recent call last):
    ...
    ValueError: patience is 'many'; wanted int (words a user is willing to read)
    """

    name: str
    type: str
    default: Any
    help: str

    def parse(self, text: str) -> Any:
        """Value of the parameter from text as typed on a command line (YAML), checked against its type.

        Raises
        ------
        ValueError
            If it is of another type, or not one of the choices.
        """
        annotation = ast.parse(self.type, mode="eval").body
        try:
            value: Any = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        for candidate in (value, text):  # text, since YAML takes on, no, 1e3 or null for something else
            fitted = _fit(candidate, annotation)
            if fitted is not _MISFIT:
                return fitted
        raise ValueError(f"{self.name} is {text!r}; wanted {self.type}" + (f" ({self.help})" if self.help else ""))


_MISFIT = object()


def _fit(value: Any, annotation: ast.expr) -> Any:
    """Return the value as the annotated type, or _MISFIT; only whole numbers are converted, to floats."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            fitted = _fit(value, left)
            return _fit(value, right) if fitted is _MISFIT else fitted
        case ast.Constant(value=None):
            return value if value is None else _MISFIT
        case ast.Name(id="float"):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return float(value) if number else _MISFIT
        case ast.Name(id="int"):
            return value if isinstance(value, int) and not isinstance(value, bool) else _MISFIT
        case ast.Name(id=("str" | "bool" | "list" | "dict") as name):
            kind = {"str": str, "bool": bool, "list": list, "dict": dict}[name]
            return value if isinstance(value, kind) else _MISFIT
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            allowed = choices.elts if isinstance(choices, ast.Tuple) else [choices]
            return value if value in [ast.literal_eval(choice) for choice in allowed] else _MISFIT
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            items = [_fit(item, inner) for item in value] if isinstance(value, list) else [_MISFIT]
            return _MISFIT if any(item is _MISFIT for item in items) else items
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key_type, value_type])):
            if not isinstance(value, dict):
                return _MISFIT
            pairs = [(_fit(key, key_type), _fit(item, value_type)) for key, item in value.items()]
            return _MISFIT if any(_MISFIT in (key, item) for key, item in pairs) else dict(pairs)
    raise TypeError(f"parameters of type {ast.unparse(annotation)} are not supported")


@dataclass(frozen=True)
class Notebook:
    """A notebook of the compendium.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> movies = find_notebooks()["gfrc_time_travel_movies"]
    >>> movies.parameters["patience"].default
    1250
    """

    path: Path
    content: nbformat.NotebookNode = field(repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Read a notebook file."""
        return cls(path, nbformat.read(path, as_version=4))

    @property
    def name(self) -> str:
        """File name without ending."""
        return self.path.stem

    @property
    def title(self) -> str:
        """Its first heading."""
        return next(
            (
                line.lstrip("# ").strip()
                for cell in self.content.cells
                if cell.cell_type == "markdown"
                for line in cell.source.splitlines()
                if line.startswith("#")
            ),
            self.name,
        )

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name, from the cell tagged ``parameters``: ``name: type = default  # help``.

        Raises
        ------
        ValueError
            If the cell holds anything but assignments of plain values, or a default does not fit its type.
        """
        found: dict[str, Parameter] = {}
        for cell in self.content.cells:
            if "parameters" not in cell.metadata.get("tags", []):
                continue
            comments = {
                token.start[0]: token.string.lstrip("# ")
                for token in tokenize.generate_tokens(io.StringIO(cell.source).readline)
                if token.type == tokenize.COMMENT
            }
            for statement in ast.parse(cell.source).body:
                if not (
                    isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value
                ):
                    raise ValueError(
                        f"{self.name}: a parameter is written as name: type = value, line {statement.lineno}"
                    )
                name, annotation = statement.target.id, statement.annotation
                default = _fit(ast.literal_eval(statement.value), annotation)
                if default is _MISFIT:
                    raise ValueError(f"{self.name}: the default of {name} is no {ast.unparse(annotation)}")
                comment = comments.get(statement.end_lineno or statement.lineno, "")
                found[name] = Parameter(name, ast.unparse(annotation), default, comment)
        return found

    @property
    def smoke(self) -> dict[str, Any]:
        """Parameters of the smoke profile, from the notebook's metadata ``equipoise.smoke``."""
        return dict(self.content.metadata.get("equipoise", {}).get("smoke", {}))

    def values(self, given: Mapping[str, str], profile: Profile = "full") -> dict[str, Any]:
        """Parameters that differ from their defaults.

        Parameters
        ----------
        given : mapping of str to str
            As typed on the command line.
        profile : {"full", "smoke"}

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            If there is no such parameter, or a value has the wrong type; the message names the valid ones.
        """
        known = self.parameters
        values = self.smoke if profile == "smoke" else {}
        for name, text in given.items():
            if name not in known:
                there = ", ".join(f"{p.name} ({p.type})" for p in known.values()) or "none"
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {there}")
            values[name] = known[name].parse(text)
        return {name: value for name, value in values.items() if value != known[name].default}

    def sources(self) -> dict[str, str]:
        """Sha256 of the notebook's code and text, and of every module of the library it needs."""
        cells = [[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in self.content.cells]
        digest = hashlib.sha256(json.dumps(cells).encode()).hexdigest()
        code = "\n".join(cell.source for cell in self.content.cells if cell.cell_type == "code")
        code = re.sub(r"^\s*[%!].*$", "", code, flags=re.MULTILINE)
        return {f"notebooks/{self.path.name}": digest, **_modules(code)}


def _imported(code: str, package: str) -> set[str]:
    """Modules of the library that a piece of code imports, by dotted name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] == "equipoise"}


def _modules(code: str) -> dict[str, str]:
    """Sha256 of the library's modules that the code needs, those that they need among them."""
    library = Path(__file__).parent
    found: dict[str, str] = {}
    waiting = _imported(code, "") | {"equipoise"}
    while waiting:
        parts = waiting.pop().split(".")
        waiting |= {".".join(parts[:-1])} if len(parts) > 1 else set()
        base = library.joinpath(*parts[1:])
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        key = f"lib/equipoise/{path.relative_to(library).as_posix()}"
        if path.is_file() and key not in found:
            found[key] = project.sha256(path)
            package = ".".join(parts) if base.is_dir() else ".".join(parts[:-1])
            waiting |= _imported(path.read_text(encoding="utf-8"), package)
    return dict(sorted(found.items()))


def find_notebooks() -> dict[str, Notebook]:
    """Every notebook of the repository by name.

    Examples
    --------
    >>> "gfrc2_iclr_researchers" in find_notebooks()
    True
    """
    return {path.stem: Notebook.read(path) for path in sorted((project.root() / "notebooks").glob("*.ipynb"))}


# --- executed notebooks -------------------------------------------------------------------------------------------

_VOLATILE = (
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x0"),
    (re.compile(r"/tmp/ipykernel_\d+/\d+\.py"), "<cell>"),  # noqa: S108 - a pattern, not a file
)


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, replacement in _VOLATILE:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items()}
    return value


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an executed notebook without what changes from run to run: times, ids, addresses, versions, progress bars.

    Parameters
    ----------
    notebook : NotebookNode

    Returns
    -------
    NotebookNode
        A copy.

    Examples
    --------
    >>> cell = nbformat.v4.new_code_cell("1", execution_count=1, metadata={"execution": {"started": "now"}})
    >>> normalise(nbformat.v4.new_notebook(cells=[cell])).cells[0].metadata
    {}
    """
    steady = copy.deepcopy(notebook)
    steady.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for index, cell in enumerate(steady.cells):
        cell.id = f"cell-{index:02d}"
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("papermill")]
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            continue
        outputs: list[Any] = []
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                continue
            if outputs and output.output_type == "stream" and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
            else:
                outputs.append(output)
        cell.outputs = [nbformat.from_dict(_steady(output)) for output in outputs]
    return steady


def post_process(notebook: nbformat.NotebookNode, resources: Any) -> tuple[nbformat.NotebookNode, Any]:
    """Normalise a notebook that pytest-notebook has executed, as the build does.

    Examples
    --------
    >>> post_process(nbformat.v4.new_notebook(), {})[1]
    {}
    """
    return normalise(notebook), resources


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


# --- freshness ----------------------------------------------------------------------------------------------------


def _outputs(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): project.sha256(path) for path in files}


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _complete_manifest(notebook: Notebook, parameters: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Add to a manifest what the notebook itself cannot know: its sources, parameters and the files it has left."""
    manifest = _manifest(folder) or {}
    manifest |= {"sources": notebook.sources(), "parameters": dict(parameters), "outputs": _outputs(folder)}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def staleness(notebook: Notebook, folder: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Say why a report is out of date.

    Parameters
    ----------
    notebook : Notebook
    folder : Path
        Where its report is.
    parameters : mapping, optional
        Those that differ from the defaults.

    Returns
    -------
    str
        Empty where it is up to date.
    """
    manifest = _manifest(folder)
    if manifest is None:
        return "there is no report"
    current_data = {f"registry:{row.item}/{row.path}": row.sha256 for row in registry.entries().itertuples()}
    for name in manifest["inputs"]:
        path = project.root() / name
        if name not in current_data and path.is_file():
            current_data[name] = project.sha256(path)
    pairs: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("", manifest["sources"], notebook.sources()),
        ("", manifest["inputs"], {name: current_data.get(name, "") for name in manifest["inputs"]}),
        ("version of ", manifest["versions"], {name: _version(name) for name in manifest["versions"]}),
        ("parameter ", manifest["parameters"], json.loads(json.dumps(dict(parameters or {})))),
        ("report file ", manifest["outputs"], _outputs(folder)),
    ]
    changed = [
        f"{kind}{key}"
        for kind, then, now in pairs
        for key in sorted(set(then) | set(now))
        if then.get(key) != now.get(key)
    ]
    return f"changed since: {', '.join(changed)}" if changed else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "none"


# --- building -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook in a build.

    Parameters
    ----------
    notebook : str
    state : {"built", "fresh", "kept", "failed"}
        Run; up to date; not run because its data cannot be reached; broken.
    message : str
        Why it was kept or failed; where else the report went.

    Examples
    --------
    >>> Outcome("gfrc_time_travel_movies", "fresh").state
    'fresh'
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
    if target.is_dir() and _outputs(staged) == _outputs(target) and _manifest(staged) == _manifest(target):
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

    Parameters
    ----------
    names : sequence of str
        Notebooks; the default is all.
    given : mapping of str to str
        Parameters, as typed. With any that differ from the defaults, or another profile than "full", a report goes to
        ``reports/variants/<notebook>/`` and the ledger stays as it is.
    profile : {"full", "smoke"}
    jobs : int, optional
        Notebooks to run at a time; the default is the number of processors.
    strict : bool
        Count a notebook whose data cannot be reached as failed.
    force : bool
        Run what is up to date too.
    executor : Executor, optional
        Runs the notebooks instead of a pool of processes of its own.

    Returns
    -------
    list of Outcome
        One for each notebook, in their order.

    Raises
    ------
    ValueError
        If there is no such notebook or parameter, or a parameter has the wrong type.
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
                manifest = _complete_manifest(chosen[name], parameters[name], Path(staging) / name)
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
        manifest = _manifest(folder)
        if manifest is None:
            continue
        manifests.append(manifest)
        if staleness(notebook, folder) and missing_data(manifest["inputs"]):
            kept.append(name)
    return Ledger.of(manifests, kept)


def missing_data(inputs: Iterable[str]) -> list[str]:
    """Name the registered files among the inputs of a report that are not on this machine.

    Parameters
    ----------
    inputs : iterable of str
        As a manifest lists them.

    Returns
    -------
    list of str
        ``<item>/<path>`` each.

    Examples
    --------
    >>> missing_data(["data/published/artefacts.csv"])
    []
    """
    wanted = {name.removeprefix("registry:") for name in inputs if name.startswith("registry:")}
    if not wanted:
        return []
    rows = {f"{row['item']}/{row['path']}": row for _, row in registry.entries().iterrows()}
    return sorted(n for n in wanted if n not in rows or registry.verify(rows[n]) not in ("cache", "mirror"))


def _move_ledger(ledger: Ledger, staging: Path, reports: Path) -> None:
    ledger.write(staging)
    reports.mkdir(exist_ok=True)
    for name in ("ledger.csv", "ledger.md"):
        target = reports / name
        if not target.is_file() or target.read_bytes() != (staging / name).read_bytes():
            (staging / name).replace(target)


def check() -> list[str]:
    """Recompute the ledger and compare the reports with what would make them.

    Returns
    -------
    list of str
        A line for each fault: a report that is out of date or altered, a status that fell since the last commit, a
        ledger that does not say what the reports say. Empty where all is well.
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

    Returns
    -------
    DataFrame, columns notebook, title, parameters, artefacts
    """
    rows = []
    for name, notebook in find_notebooks().items():
        manifest = _manifest(project.root() / "reports" / name)
        made = [record["artefact"] for record in manifest["artefacts"]] if manifest else []
        rows.append((name, notebook.title, list(notebook.parameters.values()), made))
    return pd.DataFrame(rows, columns=["notebook", "title", "parameters", "artefacts"])
