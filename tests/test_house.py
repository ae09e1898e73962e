"""Guard the repository: files that must agree, imports between packages, forbidden content."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from packaging.specifiers import SpecifierSet

import equipoise
from equipoise import catalogue
from equipoise_compendium import project
from prose import shipped

ROOT = project.root()
LIB = ROOT / "lib"
PACKAGES = ("equipoise", "equipoise_cli", "equipoise_compendium", "equipoise_studies")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def modules() -> list[Path]:
    """Every module of the four packages."""
    return [path for package in PACKAGES for path in sorted((LIB / package).rglob("*.py"))]


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_environment_agrees_with_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip = (entry for entry in environment["dependencies"] if isinstance(entry, str))
    lowest = re.match(r">=(\d+\.\d+)", PYPROJECT["project"]["requires-python"])
    assert lowest is not None
    assert python == f"python ={lowest[1]}"  # one version, in a form that repo2docker reads
    assert pip == "pip"
    (requirements,) = (
        entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)
    )
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
    ledger = pd.read_csv(ROOT / "reports" / "ledger.csv")
    studies = set(ledger.loc[ledger["notebook"].isin(shipped()), "paper"])
    assert titles == {
        line
        for key in studies
        for line in re.findall(r"^  title = \{(.+)\},$", entries[key], re.MULTILINE)
    }
    archive = json.loads((ROOT / ".zenodo.json").read_text())
    for name in ("title", "version", "license", "keywords"):
        assert archive[name] == citation[name], name
    assert [one["name"] for one in archive["creators"]] == [
        one["name"] for one in citation["authors"]
    ]
    dois = [work["doi"] for work in citation["references"] if "doi" in work]
    assert [one["identifier"] for one in archive["related_identifiers"]] == dois


def test_the_workflow_runs_what_the_readme_says_with_pinned_actions() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "reports.yml").read_text())["jobs"]
    commands = [step["run"] for step in jobs["reports"]["steps"] if "run" in step]
    tox = [command for command in commands if command.startswith("tox")]
    assert tox == ["tox -e reports", "tox"]
    versions = jobs["reports"]["strategy"]["matrix"]["python"]
    supported = SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert [f"3.{minor}" for minor in range(9, 20) if f"3.{minor}" in supported] == versions
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert len(used) > 5
    assert all(re.search(r"@v\d", action) for action in used)


def test_pages_are_published_where_one_variable_says_so() -> None:
    """What the job of the tests has kept, from the main branch only, with no rights beyond."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "reports.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["pages"]
    assert "vars.PAGES == 'true'" in job["if"]
    assert "default_branch" in job["if"]
    assert "PAGES" in (LIB / "equipoise_cli" / "guide" / "fork.md").read_text()
    assert (job["needs"], job["permissions"]) == (
        "reports",
        {"pages": "write", "id-token": "write"},
    )
    kept = next(
        step["with"]
        for step in workflow["jobs"]["reports"]["steps"]
        if "upload-artifact" in step.get("uses", "")
    )
    taken, *_, published = [step["with"] for step in job["steps"] if "with" in step]
    assert taken["name"] == kept["name"]
    assert published["path"] == taken["path"] == "reports"


def test_constraints_pin_every_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {name_of(line): line for line in lines}
    groups = PYPROJECT["project"]["optional-dependencies"].values()
    wanted = {
        name_of(r) for group in (PYPROJECT["project"]["dependencies"], *groups) for r in group
    } - {"equipoise"}
    assert wanted <= set(pinned)
    assert all(re.match(r"[a-z0-9.-]+==\S+( ; .+)?$", line) for line in lines)


MAY_IMPORT = {
    "equipoise": {"equipoise"},
    "equipoise_compendium": {"equipoise", "equipoise_compendium"},
    "equipoise_studies": {"equipoise", "equipoise_compendium", "equipoise_studies"},
    "equipoise_cli": {"equipoise", "equipoise_compendium", "equipoise_cli"},
}
CHAPTERS = {path.parent.name for path in (LIB / "equipoise_studies").glob("*/__init__.py")}


def module_name(path: Path) -> str:
    """Dotted name of the module that a file is."""
    return ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in modules()}


def imported(path: Path) -> set[str]:
    """Dotted names of the modules of ours that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else node.module for name in inner}
    return {name for name in names if name.partition(".")[0] in PACKAGES}


def test_every_package_imports_only_what_it_may() -> None:
    assert set(MAY_IMPORT) == set(PACKAGES)
    for name, path in MODULES.items():
        for other in imported(path):
            is_allowed = other.partition(".")[0] in MAY_IMPORT[name.partition(".")[0]]
            assert is_allowed, f"{name} imports {other}"


def test_the_command_is_imported_by_nothing_and_imports_the_rest_when_it_is_called() -> None:
    """So that ``--help`` loads no study, nor what makes tables, pictures, or checks values."""
    code = "import sys; from equipoise_cli import main; main(['--help'], standalone_mode=False); "
    code += "print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"equipoise_studies", "matplotlib", "nbformat", "numpy", "pandas", "pydantic", "scipy"}
    slow |= {"asyncio", "socket"}
    assert slow & set(ran.stdout.splitlines()[-1].split()) == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor one through others; an import within a function counts."""
    imports = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}
    # A module that imports none of the others is taken away, until all are in circles.
    while done := {name for name, others in imports.items() if not others & imports.keys()}:
        imports = {name: others for name, others in imports.items() if name not in done}
    assert set(imports) == set()


def test_measures_and_statistics_read_nothing() -> None:
    """They take tidy tables, which the public API, a command or a loader has made."""
    for name, path in MODULES.items():
        if name.startswith(("equipoise.measures", "equipoise.statistics")):
            readers = ("equipoise.loaders", "equipoise.tidy", "equipoise.readers")
            assert not [other for other in imported(path) if other.startswith(readers)], name


def test_studies_never_import_each_other() -> None:
    assert len(CHAPTERS) == 6
    for name, path in MODULES.items():
        own = name.split(".")
        for other in imported(path):
            parts = other.split(".")
            if parts[0] != "equipoise_studies" or own[0] != "equipoise_studies":
                continue
            if parts[1:2] and parts[1] in CHAPTERS:
                assert own[1] == parts[1], f"{name} imports {other}, of another study"


def test_scripts_in_data_share_by_their_study_only() -> None:
    """They import their own study, and load no other script."""
    for path in (ROOT / "data").rglob("*.py"):
        assert not re.search(r"runpy|spec_from_file|sys\.path", path.read_text()), path
        for other in imported(path):
            parts = other.split(".")
            if parts[0] == "equipoise_studies" and parts[1] in CHAPTERS:
                assert parts[1] == path.parent.name, f"{path} imports {other}"


def test_nothing_unsafe_is_called() -> None:
    forbidden = {"eval", "exec", "compile"}
    for path in [*modules(), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, path.name
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "marshal", "shelve", "dill"} & set(names), path.name


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: the tracked files are not known")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_every_clone_has_the_line_ends_that_are_committed() -> None:
    """On Windows too: text has the line ends of Unix, and binary files are marked."""
    tracked()
    listed = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, check=True)
    for line in listed.stdout.decode().splitlines():
        ends, path = line.split("\t")
        if ends.startswith("i/-text"):
            assert "attr/-text" in ends, path
        else:
            assert ends.startswith(("i/lf", "i/none")), path
            assert "eol=lf" in ends, path
    template = LIB / "equipoise_compendium" / "starter" / "compendium" / "dot-gitattributes"
    assert template.read_text() == (ROOT / ".gitattributes").read_text()


def code_lines(source: str) -> int:
    """Count lines with code: neither blank, nor a comment, nor of a docstring."""
    lines = source.splitlines()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        number not in docstrings and line.strip() != "" and not line.lstrip().startswith("#")
        for number, line in enumerate(lines, 1)
    )


def cells(notebook: str) -> list[str]:
    """Read the code cells of a notebook."""
    content = nbformat.read(ROOT / "notebooks" / f"{notebook}.ipynb", as_version=4)
    return [cell.source for cell in content.cells if cell.cell_type == "code"]


def test_the_house_is_no_larger_than_its_table_of_sizes() -> None:
    """A commit that raises a row of the table says what left in exchange."""
    sizes = pd.read_csv(ROOT / "tests" / "sizes.csv", index_col="place")["code lines"]
    assert sizes.index.tolist() == [*(f"lib/{name}" for name in PACKAGES), "data", "notebooks"]
    for place, size in sizes.items():
        if place == "notebooks":
            sources = [source for name in shipped() for source in cells(name)]
        else:
            sources = [path.read_text() for path in (ROOT / str(place)).rglob("*.py")]
        assert sum(map(code_lines, sources)) <= 1.02 * size, f"{place} has grown"


@pytest.mark.parametrize("name", shipped())
def test_a_notebook_has_at_most_700_code_lines_and_a_cell_40(name: str) -> None:
    lines = list(map(code_lines, cells(name)))
    assert sum(lines) <= 700
    assert max(lines) <= 40


def test_top_level_holds_no_clutter() -> None:
    allowed = {
        "notebooks",
        "lib",
        "data",
        "reports",
        "tests",
        "environment.yml",
        "README.md",
        "tox.ini",
    }
    allowed |= {
        "pyproject.toml",
        "constraints.txt",
        "LICENSE",
        "CITATION.cff",
    }
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in top if not name.startswith(".")} <= allowed


def test_no_machine_date_or_registry_host_in_what_is_committed() -> None:
    folders = "|".join(
        re.escape(f"{folder}/") for folder in (ROOT, Path.home()) if len(folder.parts) > 1
    )
    shapes = re.compile(
        rf"{folders}|\b(files\.pythonhosted|pypi)\.org|registry\.npmjs"
        rf"|\b20\d\d-[01]\d-[0-3]\dT|/tmp/[a-z]+/"
    )
    places = (
        "reports/",
        "notebooks/",
        "lib/",
        "data/published/",
        "data/attributes/",
        "data/conversations/",
    )
    # A user may give a date in a notebook, and each page of the site repeats its title.
    users = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} - set(shipped())
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if (
            name.startswith(places)
            and users.isdisjoint(re.split("[/.]", name))
            and not (users and name.startswith("reports/site/"))
            and path.suffix not in {".png", ".gz", ".parquet"}
            and path.is_file()
        ):
            found = shapes.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name}: {found and found[0]}"


def test_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    tox = (ROOT / "tox.ini").read_text()
    for environment in re.findall(r"tox -e (\w+)", text):
        assert f"[testenv:{environment}]" in tox


def names_in(path: Path) -> list[str]:
    """Every word of a file outside its docstrings."""
    if path.suffix != ".py":
        return re.findall(r"[A-Za-z_]\w*", path.read_text())
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return re.findall(r"[A-Za-z_]\w*", ast.unparse(tree))


def test_every_public_name_is_used_or_in_the_front_door() -> None:
    """Used in the library, a notebook or a command; the tests do not count."""
    scripts = (ROOT / "data").rglob("*.py")
    notebooks = [ROOT / "notebooks" / f"{name}.ipynb" for name in shipped()]
    files = [*modules(), *scripts, *notebooks]
    words = Counter(word for path in files for word in names_in(path))
    unused = set()
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                # What a decorator takes into a command or the catalogue is reached there.
                decorators = " ".join(ast.unparse(mark) for mark in node.decorator_list)
                is_declared = re.search("command|measure|declared|divergence", decorators)
                in_front_door = node.name in equipoise.__all__
                if words[node.name] == 1 and not in_front_door and not is_declared:
                    unused.add(node.name)
    assert unused == {
        "post_process",  # the entry point of pytest-notebook
    }
