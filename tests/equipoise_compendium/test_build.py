"""Guards the build and the check: parameters, failures, the same bytes, and a killed build."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from click.testing import CliRunner

from equipoise_cli import main
from equipoise_compendium import build, notebooks, project
from equipoise_compendium.printed import printed_table
from equipoise_compendium.site import pages
from equipoise_compendium.terms import REPLICATED
from small_repository import TABLE, digest, notebook, put, put_report

PAPER = """\
from equipoise_compendium.printed import printed_table
table = printed_table("gfrc2/table-3")
table["EGNP"] = table["EGNP"].astype(float) + shift
report.table("gfrc2/table-3", table.astype({c: float for c in table.columns[1:]}), ["run"])
"""


def outcomes(*names: str, **given: str) -> dict[str, build.Outcome]:
    return {outcome.notebook: outcome for outcome in build.build(names, given, jobs=2)}


def test_notebooks_run_for_real(root: Path, request: pytest.FixtureRequest) -> None:
    put(root, TABLE, "1 / 0", "report.finish()", name="broken")
    put(root, TABLE, name="unfinished")
    built = outcomes()
    states = {name: outcome.state for name, outcome in built.items()}
    assert states == {"broken": "kept", "example": "built", "unfinished": "kept"}
    assert "ZeroDivisionError" in built["broken"].error
    assert "must end with report.finish()" in built["unfinished"].error
    first = digest(root / "reports")
    files = ("example.ipynb", "manifest.json", "tables/rows.csv")
    assert set(first) == {
        *(f"example/{name}" for name in files),
        "claims.csv",
        "ledger.csv",
        "answers.csv",
    }
    # again, and after a failure: the same bytes, without a name of this machine
    request.getfixturevalue("one_process")
    assert outcomes("example")["example"].state == "built"
    put(root, TABLE, "1 / 0", "report.finish()")
    assert outcomes("example")["example"].state == "kept"
    assert digest(root / "reports") == first
    assert str(root) not in "".join(p.read_text() for p in (root / "reports").rglob("*.*"))
    assert not (root / "reports" / ".equipoise").exists()


@pytest.mark.usefixtures("one_process")
def test_the_command_says_what_became_of_each_notebook(root: Path) -> None:
    put(root, TABLE, "1 / 0", "report.finish()", name="broken")
    ran = CliRunner().invoke(main, ["build", "--jobs", "1"])
    assert ran.exit_code == 1
    lines = ran.stdout.splitlines()
    assert " built  example" in lines
    assert "  kept  broken" in lines
    assert ran.stderr.count("ZeroDivisionError: division by zero") == 1
    assert "notebooks that failed: 1. Their reports are unchanged" in ran.stderr
    assert (root / "reports" / "site" / "example.html").is_file()


def test_a_variant_has_a_place_of_its_own(built: Path) -> None:
    root = built
    committed = digest(root / "reports")
    given = {"size": "5", "scale": "2", "kind": "fancy", "gains": "{1: 0.25, 2: 1}"}
    folder = outcomes(**given, label="b/../c")["example"].folder
    assert folder.parent == root / "reports" / "variants" / "example"
    table = pd.read_csv(folder / "tables" / "rows.csv")
    assert (len(table), table["value"].iloc[0]) == (5, pytest.approx(2 / 3))
    passed = json.loads((folder / "manifest.json").read_text())["parameters"]
    assert passed["gains"] == {"1": 0.25, "2": 1.0}
    now = digest(root / "reports")
    assert {name: now[name] for name in now if "variants" not in name} == committed
    assert build.check() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sise": "3"}, r"unknown parameter 'sise', must be one of size \(int\), scale \(float\)"),
        ({"size": "three"}, r"size: must be int \(how many rows\), got 'three'"),
        ({"size": "2.5"}, "must be int"),
        ({"size": "true"}, "must be int"),
        ({"scale": "much"}, "must be float"),
        ({"scale": "inf"}, "must be float"),
        ({"kind": "odd"}, r"Literal\['plain', 'fancy'\]"),
        ({"gains": "{1: x}"}, r"dict\[int, float\]"),
        ({"gains": "[1, 2]"}, r"dict\[int, float\]"),
    ],
)
def test_unknown_and_mistyped_parameters_are_named(
    root: Path, given: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        list(build.build(given=given))
    assert not (root / "reports").exists()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int | None", "null", None),
        ("list[str]", "[no, 010]", ["no", "010"]),
        ("list[int]", "[010]", [10]),
        ("bool", "no", False),
        ("float", "1", 1.0),
    ],
)
def test_a_parameter_is_read_as_its_type(kind: str, text: str, value: object) -> None:
    assert notebooks.Parameter("x", kind, None, "").parse(text) == value


def test_a_comment_on_any_line_of_a_parameter_is_its_help(tmp_path: Path) -> None:
    """The formatter wraps a declaration that is too long, and leaves its comment within."""
    book = notebook()
    book.cells[2].source = """\
# of this cell
size: int = 3  # how many
gains: list[float] = [  # gain of each level,
    0.5,
    1.0,  # the lowest first
]
scale: float = 1.0
"""
    nbformat.write(book, tmp_path / "a.ipynb")
    parameters = notebooks.Notebook.read(tmp_path / "a.ipynb").parameters
    assert {name: parameter.help for name, parameter in parameters.items()} == {
        "size": "how many",
        "gains": "gain of each level, the lowest first",
        "scale": "",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size: int = 3", "size: int = (3"),
        ("size: int = 3", "size: int = 1 + len([1])"),
        ("size: int = 3", "size: set = 3"),
        ("size: int = 3", "size = 3"),
        ("cells", "cell"),
        ("{", ""),
    ],
)
def test_a_damaged_notebook_is_named(root: Path, old: str, new: str) -> None:
    path = root / "notebooks" / "example.ipynb"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=r"notebooks/example\.ipynb: must be a"):
        notebooks.find_notebooks()
    with pytest.raises(ValueError, match="unknown notebook other; must be one of example"):
        list(build.build(["other"]))


@pytest.mark.usefixtures("one_process")
def test_a_difference_without_a_reason_fails_the_build(root: Path) -> None:
    put(root, TABLE, f"shift = 1\n{PAPER}", "report.finish()")
    (outcome,) = build.build()
    assert outcome.state == "kept"
    assert "gfrc2/table-3, ORG-CS-D-MN-1, EGNP: published 0.001175, computed 1.00" in outcome.error
    assert not (root / "reports" / "example").exists()
    cells = ["artefact,row,column,reason,proved"]
    for run in printed_table("gfrc2/table-3")["run"]:
        cells.append(f"gfrc2/table-3,{run},EGNP,one too many,yes")
    reasons = root / "data/published/gfrc2/explanations.csv"
    reasons.write_text("\n".join(cells).replace("gfrc2/table-3", "table-3"))
    message = "gfrc2/explanations.csv: an artefact must be named gfrc2/table-3, got 'table-3'"
    assert message in outcomes()["example"].error
    reasons.write_text("\n".join(cells))
    assert outcomes()["example"].state == "built"
    assert "differences explained" in (root / "reports" / "ledger.csv").read_text()


WORSE = "gfrc2/table-3: reproduced in its report, but its table gives partly reproduced"


@pytest.mark.usefixtures("one_process")
def test_check_computes_each_status_again(root: Path) -> None:
    put(root, TABLE, f"shift = 0\n{PAPER}", "report.finish()")
    outcomes()
    reports = root / "reports"
    assert ",reproduced," in (reports / "ledger.csv").read_text()
    assert build.check() == []

    table = reports / "example" / "tables" / "gfrc2-table-3.csv"
    right = table.read_text()
    table.write_text(right.replace("0.001175", "0.001275"))
    assert build.check() == [WORSE]
    table.write_text(right)

    published = root / "data/published/gfrc2/table-3.csv"
    right = published.read_text()
    published.write_text(right.replace("0.001175", "0.001275"))
    assert build.check() == [WORSE]
    published.write_text(right)

    ledger = (reports / "ledger.csv").read_text()
    (reports / "ledger.csv").write_text(ledger.replace(",reproduced,", ",redrawn,"))
    assert build.check() == ["reports/ledger.csv is outdated: run equipoise build"]
    (reports / "ledger.csv").write_text(ledger)
    put(root, TABLE, "report.finish()", name="another")
    assert build.check() == ["notebooks/another.ipynb has no report: run equipoise build another"]
    checked = CliRunner().invoke(main, ["check"])
    assert checked.exit_code == 1
    assert "[OK]            gfrc2 Table 3: 8 of 8 cells\n" in checked.stdout
    assert "75 tables and figures: 1 OK, 0 differ, 74 not compared\n" in checked.stdout


def test_the_committed_reports_agree_with_ledger_and_claims() -> None:
    """On each version of Python that runs these tests."""
    assert build.check() == []


def test_check_names_every_table_and_figure_with_its_result() -> None:
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv", keep_default_na=False)
    for (result, line), row in zip(build.results(), ledger.itertuples(), strict=True):
        assert line.startswith(f"{row.paper} {str(row.artefact).replace('-', ' ').capitalize()}: ")
        if row.status == REPLICATED or not row.cells:
            assert result == "NOT COMPARED"
            assert row.status in line
            assert row.status != REPLICATED or str(row.data) in line
        elif int(row.differing):
            assert result == "DIFFERS"
            assert f": {int(row.differing)} of {int(row.cells)} cells, " in line
        else:
            assert result == "OK"
            assert line.endswith(f": {int(row.cells)} of {int(row.cells)} cells")


@pytest.mark.usefixtures("one_process")
def test_answers_follow_from_the_evidence(root: Path) -> None:
    """They are in claims.csv and on the pages; the executed notebook has the evidence alone."""
    claim = """\
from equipoise_compendium.protocol import Evidence
lead = Evidence(1.0, reason="nothing is sampled")
report.claim("gfrc2/earlier-raises", {"R112 annotations": lead, "M002 annotations": lead})
"""
    put(root, TABLE, f"shift = 0\n{PAPER}", claim, "report.finish()")
    outcomes()
    reports = root / "reports"
    claims = pd.read_csv(reports / "claims.csv")
    assert set(claims["in_paper"]) == {"carried"}
    assert set(claims["elsewhere"]) == {"inconclusive"}  # without an interval
    executed = (reports / "example" / "example.ipynb").read_bytes()
    assert b"Finding: " in executed
    assert build.check() == []
    pages.refresh()
    box = (
        '<details class="claim finding in-the-paper-{} elsewhere-inconclusive" '
        'id="claim-gfrc2-earlier-raises">'
    )
    for name in ("claims.html", "example.html"):
        assert box.format("carried") in (reports / "site" / name).read_text()
    path = reports / "example" / "manifest.json"
    path.write_text(path.read_text().replace('"estimate": 1.0', '"estimate": -1.0'))
    assert "reports/claims.csv is outdated: run equipoise build" in build.check()
    build.write_summaries()
    assert set(pd.read_csv(reports / "claims.csv")["in_paper"]) == {"contradicted"}
    pages.refresh()
    for name in ("claims.html", "example.html"):
        assert box.format("contradicted") in (reports / "site" / name).read_text()
    assert (reports / "example" / "example.ipynb").read_bytes() == executed


@pytest.mark.usefixtures("one_process")
def test_a_parameter_keeps_the_type_of_its_keys(root: Path) -> None:
    put(root, TABLE, "assert gains == {1: 0.25, 2: 1.0}, gains", "report.finish()")
    (outcome,) = build.build(["example"], {"gains": "{1: 0.25, 2: 1}"}, jobs=1)
    assert outcome.error == ""


def test_a_link_out_of_the_repository_is_not_followed(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "mine.txt").write_text("keep")
    (root / "reports").mkdir(exist_ok=True)
    (root / "reports" / ".equipoise").symlink_to(outside)
    with pytest.raises(ValueError, match="leads out of the folder"):
        list(build.build(jobs=1))
    assert CliRunner().invoke(main, ["list"]).exit_code == 0
    assert [path.name for path in outside.iterdir()] == ["mine.txt"]
    (root / "data" / "link.csv").symlink_to(outside / "mine.txt")
    with pytest.raises(ValueError, match="leads out of the folder data"):
        project.data("link.csv")


def test_a_damaged_manifest_is_named(built: Path) -> None:
    path = built / "reports" / "example" / "manifest.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(
        ValueError, match=r"example/manifest\.json is damaged.*build the notebook again"
    ):
        build.check()
    assert outcomes()["example"].state == "built"
    assert build.check() == []


def test_a_killed_build_leaves_every_report_whole(built: Path, tmp_path: Path) -> None:
    """The next build gives what it would have given."""
    reports = built / "reports"
    old = digest(reports)
    shutil.copytree(reports, tmp_path / "old")
    put(built, TABLE.replace("range(size)", "range(1, size + 1)"), "report.finish()")
    assert outcomes()["example"].state == "built"
    new = digest(reports)
    assert new != old
    shutil.rmtree(reports)
    shutil.copytree(tmp_path / "old", reports)
    running = subprocess.Popen(
        [sys.executable, "-m", "equipoise_cli", "build"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while not list(reports.glob(".equipoise/building-*/example/tables/*")):
        assert running.poll() is None
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    now = digest(reports)
    for name in old:
        assert now[name] in (old[name], new[name])
    assert outcomes()["example"].state == "built"
    assert digest(reports) == new


KILLED = """
import os, shutil, sys
from pathlib import Path
from equipoise_compendium import build

def run(notebooks, parameters, folder, jobs):
    shutil.copytree("made", folder / "example")
    yield "example", ""
    os._exit(9)

def replace(path, target):
    left.pop()
    if not left:
        os._exit(9)
    os.replace(path, target)

left = [None] * int(sys.argv[1])
build._run, Path.replace = run, replace
list(build.build())
"""
"""A build without kernel, which ends instead of its n-th rename, or after the last one."""


@pytest.mark.parametrize(("rename", "content"), [(1, "old"), (2, "old"), (3, "new")])
def test_the_next_build_sweeps_and_restores_after_a_kill_at_each_rename(
    root: Path, monkeypatch: pytest.MonkeyPatch, rename: int, content: str
) -> None:
    put_report(root, "example")
    report = root / "reports" / "example"
    shutil.copytree(report, root / "made")
    (report / "marker").write_text("old")
    (root / "made" / "marker").write_text("new")
    build.write_summaries()
    command = [sys.executable, "-c", KILLED, str(rename)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 9, ended.stderr
    assert report.exists() == (rename != 2)
    work = root / "reports" / ".equipoise"
    assert len(list(work.iterdir())) == 1

    running, reused = work / f"building-{os.getpid()}-a", work / f"building-{os.getpid()}-b"
    for folder in (running, reused, work / "building-without-a-number"):
        folder.mkdir()
    os.utime(reused, (0, 0))  # its process ended, and this one has its number
    monkeypatch.setattr(build, "_run", lambda *_: iter([("example", "it fails")]))
    assert outcomes()["example"].state == "kept"
    assert (report / "marker").read_text() == content
    assert list(work.iterdir()) == [running]


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
