"""Guards the build: freshness, parameters, staging, failures, and that reports/ survives a kill."""

import hashlib
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from equipoise_compendium import build, notebooks, project, provenance, scaffold, staging
from small_repository import TABLE, digest, notebook, put, record, script


def states(**options: Any) -> list[str]:
    return [outcome.state for outcome in build.build(**options)]


# --- for real: papermill, kernels, processes ---


def test_notebooks_run_for_real(root: Path) -> None:
    put(root, TABLE, "1 / 0", "report.finish()", name="broken")
    put(root, TABLE, name="unfinished")
    fetch = (
        'from equipoise_compendium import registry\nregistry.fetch("fairweb", "NTCIR/toy/toyrun1")'
    )
    put(root, TABLE, fetch, "report.finish()", name="without_data")
    registry = root / "data" / "registry.tsv"
    registry.write_text(
        registry.read_text().replace("https://raw.githubusercontent.com", "http://127.0.0.1:9")
    )
    outcomes = {outcome.notebook: outcome for outcome in build.build(jobs=2)}
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "broken": "failed",
        "example": "built",
        "unfinished": "failed",
        "without_data": "failed",
    }
    assert "ZeroDivisionError" in outcomes["broken"].message
    assert "without report.finish" in outcomes["unfinished"].message
    assert "set EQUIPOISE_MIRROR" in outcomes["without_data"].message
    first = digest(root / "reports")
    assert set(first) == {
        *(
            f"example/{name}"
            for name in ("example.ipynb", "manifest.json", "tables/rows.csv", "tables/rows.md")
        ),
        "claims.csv",
        "ledger.csv",
        "ledger.md",
        "verdicts.csv",
    }
    assert states(names=["example"]) == ["fresh"]
    assert states(names=["example"], force=True) == ["built"]
    assert digest(root / "reports") == first
    text = "".join(path.read_text() for path in (root / "reports").rglob("[!.]*.*"))
    assert str(root) not in text
    manifest = json.loads((root / "reports" / "example" / "manifest.json").read_text())
    assert {
        "notebooks/example.ipynb",
        "lib/equipoise_compendium/report.py",
        "lib/equipoise_compendium/tables.py",
    } <= set(manifest["sources"])
    assert not {"lib/equipoise_compendium/build.py", "lib/equipoise_cli/__init__.py"} & set(
        manifest["sources"]
    )
    assert {"matplotlib", "numpy", "pandas", "python-dateutil"} <= set(manifest["versions"])
    assert not {"equipoise", "ipykernel", "ipython", "traitlets", "tornado", "pyzmq"} & set(
        manifest["versions"]
    )
    assert not list((root / "reports" / ".equipoise").iterdir())


# --- with a stand-in for papermill: what the build does with what notebooks leave ---


def quick_states(**options: Any) -> list[str]:
    with ThreadPoolExecutor(1) as executor:
        return states(executor=executor, **options)


def test_what_makes_a_report_out_of_date(quick: Path) -> None:
    assert quick_states() == ["built"]
    assert build.check() == []
    report = quick / "reports" / "example"
    script(quick, artefacts=[record("replica")])
    assert (
        provenance.staleness(notebooks.find_notebooks()["example"], report)
        == "changed since: notebooks/example.ipynb"
    )
    assert "reports/example is out of date: changed since: notebooks/example.ipynb" in build.check()
    assert quick_states() == ["built"]
    (report / "tables" / "rows.csv").write_text("altered")
    assert (
        provenance.staleness(notebooks.find_notebooks()["example"], report)
        == "changed since: report file tables/rows.csv"
    )
    assert quick_states() == ["built"]
    manifest = report / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"pandas": "', '"pandas": "0.'))
    assert (
        provenance.staleness(notebooks.find_notebooks()["example"], report)
        == "changed since: version of pandas"
    )
    assert quick_states() == ["built"]
    (quick / "reports" / "ledger.csv").unlink()
    assert build.check() == ["reports/ledger.csv is not what the reports say: run equipoise build"]


def test_an_input_file_that_changes(quick: Path) -> None:
    name = "data/published/gfrc/explanations.csv"
    script(quick, inputs={name: project.sha256(quick / name)})
    assert quick_states() == ["built"]
    assert quick_states() == ["fresh"]
    (quick / name).write_text("artefact,row,column,reason\n")
    assert (
        provenance.staleness(notebooks.find_notebooks()["example"], quick / "reports" / "example")
        == f"changed since: {name}"
    )


def test_parameters_write_to_a_place_of_their_own(quick: Path) -> None:
    assert quick_states() == ["built"]
    committed = digest(quick / "reports")
    given = {
        "size": "5",
        "scale": "2",
        "kind": "fancy",
        "gains": "{1: 0.25, 2: 1}",
        "label": "b/../c",
    }
    assert quick_states(given=given) == ["built"]
    (variant,) = (quick / "reports" / "variants" / "example").iterdir()
    passed = json.loads((variant / "tables" / "rows.csv").read_text())
    assert passed == {
        "size": 5,
        "scale": 2.0,
        "kind": "fancy",
        "gains": {"1": 0.25, "2": 1.0},
        "label": "b/../c",
    }
    assert quick_states(profile="smoke") == ["built"]
    smoke = quick / "reports" / "variants" / "example" / "smoke"
    assert json.loads((smoke / "tables" / "rows.csv").read_text()) == {"size": 1}
    assert {
        name: value for name, value in digest(quick / "reports").items() if "variants" not in name
    } == committed
    assert quick_states(given={"size": "3"}) == ["fresh"]  # the default


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sise": "3"}, r"no parameter 'sise'; it has size \(int\), scale \(float\)"),
        ({"size": "three"}, r"size is 'three'; wanted int \(how many rows\)"),
        ({"size": "2.5"}, "wanted int"),
        ({"size": "true"}, "wanted int"),
        ({"scale": "much"}, "wanted float"),
        ({"kind": "odd"}, r"Literal\['plain', 'fancy'\]"),
        ({"gains": "{1: x}"}, r"dict\[int, float\]"),
        ({"gains": "[1, 2]"}, r"dict\[int, float\]"),
    ],
)
def test_unknown_and_mistyped_parameters_are_named(
    root: Path, given: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build.build(given=given)
    assert not (root / "reports").exists()


def test_a_parameter_named_as_an_option_keeps_its_bounds() -> None:
    patience = notebooks.Parameter("patience", "int", 1250, "words read")
    assert patience.parse("1000") == 1000
    with pytest.raises(ValueError, match=r"patience is '0'; wanted int from 1 \(words read\)"):
        patience.parse("0")
    with pytest.raises(
        ValueError,
        match=r"gains is '{1: 2}'; wanted dict\[int, float\] between 0 and 1 with a sum above 0$",
    ):
        notebooks.Parameter("gains", "dict[int, float]", {1: 0.5}, "").parse("{1: 2}")
    # of the same name but another thing, since the default is none of the option's values
    assert notebooks.Parameter("patience", "float", 0.5, "").parse("0.25") == 0.25
    assert notebooks.Parameter("decimals", "int | None", None, "").parse("null") is None


def test_a_comment_on_any_line_of_a_parameter_is_its_help(tmp_path: Path) -> None:
    """The formatter wraps a declaration that is too long, and leaves its comment within."""
    book = notebook()
    book.cells[2].source = """\
# of this cell
size: int = 3  # how many
label: str = (
    "a"  # a word
)
gains: list[float] = [  # gain of each level,
    0.5,
    1.0,  # the lowest first
]
scale: float = 1.0
"""
    parameters = notebooks.Notebook(tmp_path / "a.ipynb", book).parameters
    assert {name: parameter.help for name, parameter in parameters.items()} == {
        "size": "how many",
        "label": "a word",
        "gains": "gain of each level, the lowest first",
        "scale": "",
    }


def test_reading_reports_draws_in_no_matplotlib() -> None:
    modules = "build, ledger, notebooks, printed"
    imports = f"import sys; from equipoise_compendium import {modules}"
    code = f"{imports}; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", ["gfr", "gfrc", "gfrc2"])
def test_a_score_without_intervals_starts_without_the_statistics_of_scipy(command: str) -> None:
    call = f"main(['score', '{command}', '--help'], standalone_mode=False)"
    code = f"import sys; from equipoise_cli import main; {call}"
    code += "; sys.exit('scipy.stats' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.usefixtures("root")
def test_an_unknown_notebook_is_named() -> None:
    with pytest.raises(ValueError, match="no notebook other; there are example"):
        build.build(["other"])


def test_a_failure_leaves_the_last_good_report(quick: Path) -> None:
    assert quick_states() == ["built"]
    good = digest(quick / "reports")
    script(quick, failure="failed")
    assert quick_states() == ["failed"]
    assert digest(quick / "reports") == good


def test_a_difference_without_a_reason_fails_the_build(quick: Path) -> None:
    difference = {
        "row": "ORG",
        "column": "EGNP",
        "printed": "0.001175",
        "ours": "0.5",
        "reason": "",
    }
    script(quick, artefacts=[record("explained", differences=[difference])])
    with ThreadPoolExecutor(1) as executor:
        (outcome,) = build.build(executor=executor)
    assert outcome.state == "failed"
    assert "permutations/table-2, ORG, EGNP: printed 0.001175, computed 0.5" in outcome.message
    assert not (quick / "reports" / "example").exists()
    script(
        quick, artefacts=[record("explained", differences=[difference | {"reason": "a misprint"}])]
    )
    assert quick_states() == ["built"]
    assert ",explained," in (quick / "reports" / "ledger.csv").read_text()


def test_data_out_of_reach_keeps_the_report(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (quick / "mirror" / "item").mkdir(parents=True)
    (quick / "mirror" / "item" / "file").write_bytes(b"x")
    digest_of_file = hashlib.sha256(b"x").hexdigest()
    row = ["item", "file", "http://127.0.0.1:9/file", digest_of_file, "1", "MIT"]
    header = ["item", "path", "url", "sha256", "bytes", "licence"]
    (quick / "data" / "registry.tsv").write_text("\t".join(header) + "\n" + "\t".join(row) + "\n")
    monkeypatch.setenv("EQUIPOISE_MIRROR", "mirror")
    inputs = {"registry:item/file": digest_of_file}
    script(quick, inputs=inputs, artefacts=[record("replica")])
    assert quick_states() == ["built"]
    assert ",replica," in (quick / "reports" / "ledger.csv").read_text()
    built = digest(quick / "reports")

    monkeypatch.delenv("EQUIPOISE_MIRROR")
    assert provenance.missing_data(inputs) == ["item/file"]
    assert quick_states() == ["fresh"]
    script(quick, failure="unreachable")
    assert quick_states(strict=True) == ["failed"]
    assert digest(quick / "reports" / "example") == {
        name.removeprefix("example/"): value
        for name, value in built.items()
        if name.startswith("example/")
    }
    # kept is shown, not written, unless asked for: the reports and the ledger of a clone stay as
    # they are
    assert quick_states() == ["kept"]
    assert digest(quick / "reports") == built
    out_of_date = ["reports/example is out of date: changed since: notebooks/example.ipynb"]
    assert build.check() == out_of_date
    assert quick_states(mark_kept=True) == ["kept"]
    assert ",kept," in (quick / "reports" / "ledger.csv").read_text()
    assert build.check() == out_of_date


def half(text: str) -> str:
    return text[: len(text) // 2]


DAMAGED: dict[str, Callable[[str], str]] = {
    "half-saved": half,
    "empty": lambda _: "",
    "a list": lambda _: "[]",
    "no cells": lambda text: json.dumps(json.loads(text) | {"cells": None}),
    "a number for a cell": lambda text: json.dumps(json.loads(text) | {"cells": [3]}),
    "another format": lambda text: json.dumps(json.loads(text) | {"nbformat": 3}),
    "deep": lambda _: "[" * 100_000,
    "half a surrogate pair": lambda text: text.replace("An example", "\\ud800"),
    "parameters that are no Python": lambda text: text.replace("size: int = 3", "size: int = (3"),
    "parameters that end in a string": lambda text: text.replace(
        "size: int = 3", "size: int = '''3"
    ),
    "a computed default": lambda text: text.replace("size: int = 3", "size: int = 1 + len([1])"),
    "an unknown type": lambda text: text.replace("size: int = 3", "size: set = 3"),
    "a parameter without a type": lambda text: text.replace("size: int = 3", "size = 3"),
    "a smoke profile of another parameter": lambda text: text.replace(
        '"smoke": {', '"smoke": {"sise": 2, '
    ),
    "a smoke profile that is a list": lambda text: json.dumps(
        json.loads(text) | {"metadata": {"equipoise": {"smoke": [1]}}}
    ),
}
"""Ways in which a notebook can be damaged."""


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_notebook_fails_alone_and_by_name(quick: Path, how: str) -> None:
    script(quick, "other", artefacts=[record("replica")])
    script(quick, "example", sources=[])
    assert quick_states() == ["built", "built"]
    ledger = (quick / "reports" / "ledger.csv").read_text()
    path = quick / "notebooks" / "other.ipynb"
    path.write_text(DAMAGED[how](path.read_text()))
    script(quick, "example", sources=[], remark="changed")
    with ThreadPoolExecutor(1) as executor:
        outcomes = {outcome.notebook: outcome for outcome in build.build(executor=executor)}
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "example": "built",
        "other": "failed",
    }
    assert "other" in outcomes["other"].message
    assert len(outcomes["other"].message) < 200
    assert (quick / "reports" / "ledger.csv").read_text() == ledger  # its last good report stands
    assert build.check() == [outcomes["other"].message]
    assert build.listing()["notebook"].tolist() == ["example", "other"]
    assert "other" not in scaffold.copyable()


MANIFESTS: dict[str, Callable[[str], str]] = {
    "half-saved": half,
    "empty": lambda _: "",
    "a list": lambda _: "[]",
    "an empty table": lambda _: "{}",
    "no list of artefacts": lambda text: json.dumps(json.loads(text) | {"artefacts": 5}),
    "an artefact without a name": lambda text: json.dumps(json.loads(text) | {"artefacts": [{}]}),
    "inputs that are a word": lambda text: json.dumps(json.loads(text) | {"inputs": "x"}),
    "deep": lambda _: "[" * 100_000,
}
"""Ways in which a manifest can be damaged."""


@pytest.mark.parametrize("how", MANIFESTS)
def test_a_damaged_manifest_is_made_again_or_fails_alone(quick: Path, how: str) -> None:
    script(quick, "other", artefacts=[record("replica")])
    script(quick, "example", sources=[])
    assert quick_states() == ["built", "built"]
    good = digest(quick / "reports")
    manifest = quick / "reports" / "other" / "manifest.json"
    manifest.write_text(MANIFESTS[how](manifest.read_text()))
    damaged = "reports/other is out of date: its manifest is damaged"
    assert damaged in build.check()
    assert build.listing()["notebook"].tolist() == ["example", "other"]
    with ThreadPoolExecutor(
        1
    ) as executor:  # nobody asked for it: the ledger cannot be made without it, and stays
        outcomes = build.build(["example"], executor=executor)
    assert [(outcome.notebook, outcome.state) for outcome in outcomes] == [
        ("example", "fresh"),
        ("other", "failed"),
    ]
    assert {name for name, sha in digest(quick / "reports").items() if sha != good[name]} == {
        "other/manifest.json"
    }
    assert quick_states() == ["fresh", "built"]
    assert digest(quick / "reports") == good


def test_a_docstring_makes_nothing_stale_and_a_statement_does(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = quick / "equipoise" / "a.py"
    module.parent.mkdir()
    module.write_text('"""A module."""\n\n\ndef one() -> int:\n    """One."""\n    return 1\n')
    monkeypatch.setattr(provenance, "LIBRARY", quick)
    script(quick, sources=["lib/equipoise/a.py"])
    assert quick_states() == ["built"]
    module.write_text(
        "# a comment\ndef one(  # another\n) -> int:\n"
        '    """The smallest number."""\n    return (1)\n'
    )
    assert quick_states() == ["fresh"]
    module.write_text("def one() -> int:\n    return 2\n")
    reason = provenance.staleness(
        notebooks.find_notebooks()["example"], quick / "reports" / "example"
    )
    assert reason == "changed since: lib/equipoise/a.py"
    module.unlink()
    assert quick_states() == ["built"]


def test_a_comment_in_a_notebook_makes_nothing_stale_and_its_text_does(root: Path) -> None:
    def digest_of(*cells: str, text: str = "# An example", magic: str = "x = 1") -> str:
        book = notebook(*cells, magic)
        book.cells[0].source = text
        return notebooks.Notebook(root / "a.ipynb", book).digest

    first = digest_of("x = 1")
    assert digest_of("x = 1  # one") == digest_of("# a comment\nx=1") == first
    others = [digest_of("x = 2"), digest_of("x = 1\n'shown'"), digest_of("x = 1", text="# Another")]
    others += [digest_of("x = 1", magic="%magic on"), digest_of("x = 1", magic="%magic off")]
    assert len({first, *others}) == 6


def test_code_edited_while_it_runs_leaves_the_report_stale(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = quick / "equipoise" / "a.py"
    module.parent.mkdir()
    monkeypatch.setattr(provenance, "LIBRARY", quick)
    report = quick / "reports" / "example"
    for edited, name in (
        (module, "lib/equipoise/a.py"),
        (quick / "notebooks" / "example.ipynb", ""),
    ):
        module.write_text("x = 1\n")
        text = "x = 2\n" if name else nbformat.writes(notebook("1 + 1"))
        script(quick, sources=["lib/equipoise/a.py"], edit=[str(edited), text])
        assert quick_states() == ["built"]
        reason = provenance.staleness(notebooks.find_notebooks()["example"], report)
        assert reason == f"changed since: {name or 'notebooks/example.ipynb'}"


def test_the_version_of_whatever_was_imported_counts(quick: Path) -> None:
    script_of_run = (
        "import json, pandas, Stemmer, nbformat\n"
        "from equipoise_compendium.provenance import loaded_versions\n"
        "print(json.dumps(loaded_versions()))"
    )
    command = [sys.executable, "-c", script_of_run]
    ran = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)]
    assert ran[0] == ran[1]
    versions = json.loads(ran[0])
    assert versions["pystemmer"] == version("PyStemmer")  # whose module is Stemmer
    assert {"numpy", "pandas", "python-dateutil"} <= set(versions)
    assert not {
        "equipoise",
        "pytest",
        "pluggy",
        "nbformat",
        "ipykernel",
        "tornado",
        "setuptools",
    } & set(versions)
    script(quick, versions=versions)
    assert quick_states() == ["built"]
    assert quick_states() == ["fresh"]
    script(quick, versions=versions | {"pystemmer": "0.1"})
    assert quick_states() == ["built"]
    reason = provenance.staleness(
        notebooks.find_notebooks()["example"], quick / "reports" / "example"
    )
    assert reason == "changed since: version of pystemmer"


def test_of_a_shared_namespace_only_what_was_imported_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / "shared_name" / name).mkdir(parents=True)
        (tmp_path / "shared_name" / name / "__init__.py").touch()
        information = tmp_path / f"part_{name}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: part_{name}\nVersion: 1.0\n"
        )
        (information / "RECORD").write_text(f"shared_name/{name}/__init__.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    imported = importlib.import_module("shared_name.one")
    monkeypatch.setattr(
        sys.modules["__main__"], "one_part", imported, raising=False
    )  # as a notebook does
    try:
        versions = provenance.loaded_versions()
    finally:
        del sys.modules["shared_name"], sys.modules["shared_name.one"]
    assert versions["part-one"] == "1.0"
    assert "part-two" not in versions


def test_normalising_removes_what_changes_from_run_to_run() -> None:
    cell = nbformat.v4.new_code_cell(
        "x",
        execution_count=1,
        metadata={"execution": {"iopub.status.busy": "now"}, "tags": ["parameters"]},
    )
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="50%"),
        nbformat.v4.new_output("stream", name="stdout", text="<object at 0x7f00deadbeef>"),
        nbformat.v4.new_output("stream", name="stdout", text=" in /tmp/ipykernel_12/345.py"),
    ]
    book = nbformat.v4.new_notebook(cells=[cell], metadata={"papermill": {"start_time": "now"}})
    steady = notebooks.normalise(book)
    assert [output.text for output in steady.cells[0].outputs] == ["<object at 0x0> in <cell>"]
    assert steady.cells[0].metadata == {"tags": ["parameters"]}
    assert "papermill" not in steady.metadata
    assert notebooks.normalise(steady) == steady


def test_whoever_reads_reports_puts_back_what_a_killed_build_has_set_aside(root: Path) -> None:
    """A build killed between its two renames left ``check`` and ``list`` without the report."""
    build.build()
    before = digest(root / "reports")
    faults = build.check()
    for read in (build.check, build.listing):
        aside = root / "reports" / ".equipoise" / "aside"
        aside.mkdir(parents=True)
        (root / "reports" / "example").rename(aside / "example")
        result = read()
        assert digest(root / "reports") == before
        assert isinstance(result, pd.DataFrame) or result == faults
    # A build that is at work is left alone.
    with staging.staging():
        aside.mkdir(parents=True)
        (root / "reports" / "example").rename(aside / "example")
        staging.heal()
        assert not (root / "reports" / "example").exists()
