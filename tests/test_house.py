"""Guards the house: files that must agree, the floors of the library, and what no file may hold."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from equipoise import catalogue, project
from equipoise.reports import printed as reporting

ROOT = project.root()
LIBRARY = ROOT / "lib" / "equipoise"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_environment_agrees_with_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip = (entry for entry in environment["dependencies"] if isinstance(entry, str))
    lowest = re.match(r">=(\d+\.\d+)", PYPROJECT["project"]["requires-python"])
    assert lowest is not None
    assert python == f"python ={lowest[1]}"  # one version, in a form that repo2docker reads
    assert pip == "pip"
    (requirements,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    constraints, editable = requirements
    assert constraints == "-c constraints.txt"
    extras = re.fullmatch(r"-e \.\[([a-z,]+)\]", editable)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(PYPROJECT["project"]["optional-dependencies"])


def test_citation_agrees_with_pyproject_and_names_every_study() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PYPROJECT["project"]["version"]
    assert citation["license"] == PYPROJECT["project"]["license"]
    titles = {reference["title"] for reference in citation["references"]}
    entries = catalogue.references()
    studies = set(reporting.artefacts()["paper"])
    assert titles == {
        line for key in studies for line in re.findall(r"^  title = \{(.+)\},$", entries[key], re.MULTILINE)
    }


def test_the_workflow_runs_what_the_readme_says_with_pinned_actions() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "reports.yml").read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command for command in commands if command.startswith("tox")] == ["tox", "tox -e reports"]
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.search(r"@v\d", action) for action in used)


def test_constraints_pin_every_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {name_of(line): line for line in lines}
    groups = PYPROJECT["project"]["optional-dependencies"].values()
    wanted = {name_of(r) for group in (PYPROJECT["project"]["dependencies"], *groups) for r in group} - {"equipoise"}
    assert wanted <= set(pinned)
    assert all(re.match(r"[a-z0-9.-]+==\S+( ; .+)?$", line) for line in lines)


FLOORS = [
    ["arrays", "problems", "project", "answer_modes", "declare"],
    ["files", "divergences"],
    ["attributes", "options", "statistics"],
    ["nuggets"],
    ["conversations", "loaders"],
    ["measures"],
    ["systems", "parquet_folders", "catalogue", "plots"],
    ["reports"],
    ["scaffold", "site"],
    ["studies"],
    ["cli"],
]


def imported(path: Path) -> set[str]:
    """Dotted names below equipoise of the modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "equipoise":
            inner = (node.module or "").removeprefix("equipoise").removeprefix(".")
            names |= {inner} if inner else {alias.name for alias in node.names}
            names |= {f"{inner}.{alias.name}" for alias in node.names if inner == "studies"}
    return names


def test_each_floor_imports_only_from_the_floors_above() -> None:
    floor_of = {name: floor for floor, names in enumerate(FLOORS) for name in names}
    for path in LIBRARY.rglob("*.py"):
        own = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
        for name in imported(path) if own != "__init__" else ():
            first = name.split(".")[0]
            assert first == own or floor_of[first] <= floor_of[own], f"{path.relative_to(LIBRARY)} imports {name}"


def test_studies_import_the_library_and_never_each_other() -> None:
    for path in LIBRARY.rglob("*.py"):
        own = path.relative_to(LIBRARY).parts
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "studies" or len(parts) < 2 or own[0] == "cli":
                continue
            where = f"{path.relative_to(LIBRARY)} imports {name}"
            assert own[0] == "studies", where
            assert parts[1] in (own[1], "recording"), where
            assert parts[-1] != "record" or own[-1] == "record.py", f"{where}, a recorder"


def test_nothing_unsafe_is_called() -> None:
    forbidden = {"eval", "exec", "compile"}
    for path in [*LIBRARY.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, path.name
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                modules = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "marshal", "shelve", "dill"} & set(modules), path.name


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: the tracked files are not known")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_top_level_holds_no_clutter() -> None:
    allowed = {"notebooks", "lib", "data", "reports", "tests", "environment.yml", "README.md", "tox.ini"}
    allowed |= {"pyproject.toml", "constraints.txt", "LICENSE", "CITATION.cff"}
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in top if not name.startswith(".")} <= allowed


def test_no_machine_date_or_registry_host_in_what_is_committed() -> None:
    folders = "|".join(re.escape(f"{folder}/") for folder in (ROOT, Path.home()) if len(folder.parts) > 1)
    shapes = re.compile(
        rf"{folders}|\b(files\.pythonhosted|pypi)\.org|registry\.npmjs"
        rf"|\b20\d\d-[01]\d-[0-3]\dT|/tmp/[a-z]+/"
    )
    places = ("reports/", "notebooks/", "lib/", "data/published/", "data/attributes/", "data/conversations/")
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(places) and path.suffix not in {".png", ".gz", ".parquet"} and path.is_file():
            found = shapes.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name}: {found and found[0]}"


def test_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    tox = (ROOT / "tox.ini").read_text()
    for environment in re.findall(r"tox -e (\w+)", text):
        assert f"[testenv:{environment}]" in tox
