"""Guards reports/ against kills, full and read-only disks, and two builds at once."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from equipoise_compendium import build, staging
from killed_builds import told
from small_repository import digest, script

RENAMES = [
    *("reports/one", "reports/.equipoise/made/one", "reports/two", "reports/.equipoise/made/two"),
    *(
        f"reports/.equipoise/made/summaries/{name}"
        for name in ("claims.csv", "ledger.csv", "ledger.md", "verdicts.csv")
    ),
    "reports/.equipoise/aside",
    *("reports/variants/one/size=5", "reports/.equipoise/made/one", "reports/.equipoise/aside"),
    *("reports/site", "reports/.equipoise/made/site", "reports/.equipoise/aside"),
]
"""What a build of two reports, a variant and the site renames, in this order."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[str]]]:
    return told(tmp_path_factory.mktemp("killed"), "renames")


@pytest.mark.parametrize("number", range(len(RENAMES)))
def test_a_build_killed_after_any_rename_loses_nothing(
    number: int, killed: list[tuple[str, list[str]]]
) -> None:
    assert len(killed) == len(RENAMES)
    said, wrong = killed[number]
    assert said == f"after os.rename {RENAMES[number]}"
    assert wrong == []


def mounted(root: Path) -> list[str]:
    """Words to put before a command, so that reports/ is a file system of its own, of 2 MB."""
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    words += ['mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"', str(root / "reports")]
    (root / "reports").mkdir()
    if (
        not shutil.which("unshare")
        or subprocess.run([*words, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip(
            "nothing can be mounted on this machine: no full and no read-only disk is tried"
        )
    return words


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[str]]]:
    root = tmp_path_factory.mktemp("full")
    return told(root, "full", *mounted(root))


@pytest.mark.parametrize("pages", range(0, 10, 2))  # of 4 KiB that are left
def test_a_full_disk_leaves_every_report_as_it_was(
    pages: int, full: list[tuple[str, list[str]]]
) -> None:
    said, wrong = full[pages // 2]
    assert said.startswith("cannot finish: reports")
    assert said.endswith(": No space left on device; every report is whole, old or new")
    assert wrong == []


def test_a_read_only_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    ((said, wrong),) = told(tmp_path, "read-only", *mounted(tmp_path))
    assert (
        said == "cannot finish: reports/.equipoise/made: Read-only file system; "
        "every report is whole, old or new"
    )
    assert wrong == []


def test_what_a_killed_build_has_set_aside_comes_back(quick: Path) -> None:
    """Variants too; but not what has been made again since, nor half of what was being removed."""
    reports, aside = quick / "reports", quick / "reports" / ".equipoise" / "aside"
    for name in ("one", "variants/two/size=5", "three"):
        (aside / name).mkdir(parents=True)
        (aside / name / "manifest.json").write_text(name)
    for name in ("three", "variants"):
        (reports / name).mkdir()
    (reports / ".equipoise" / "done" / "four").mkdir(parents=True)
    with staging.staging():
        assert digest(reports).keys() == {"one/manifest.json", "variants/two/size=5/manifest.json"}
    assert list((reports / ".equipoise").iterdir()) == []


HOLDS = """\
import sys, time
from equipoise_compendium.staging import staging
with staging() as folder:
    (folder / "half a report").mkdir()
    print("at work", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [False, True])
def test_two_builds_take_turns_and_a_dead_one_is_not_waited_for(
    kill: bool, quick: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "at work\n"
        entered = threading.Event()

        def work(entered: threading.Event = entered) -> None:
            with staging.staging():
                entered.set()

        waiting = threading.Thread(target=work)
        waiting.start()
        assert not entered.wait(0.5)
        if kill:
            os.kill(other.pid, signal.SIGKILL)
        else:
            other.stdin.close()
        waiting.join(30)
        assert entered.is_set()
    assert list((quick / "reports" / ".equipoise").iterdir()) == []
    assert capfd.readouterr().err == "waiting for another build to end\n"


def test_temporary_folders_of_a_dead_build_are_swept(
    quick: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    living = f"{staging.scratch_prefix()}abc"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        dead = living.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    for name in (living, dead, "equipoise-of-another-clone"):
        (folder / name).mkdir()
    script(quick)
    with staging.staging():
        assert {path.name for path in folder.iterdir()} == {living, "equipoise-of-another-clone"}


def test_a_run_that_is_stopped_fails_its_own_notebook(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(quick, "other", sources=[])

    def stopped(source: str, parameters: object, folder: str) -> tuple[str, str]:  # noqa: ARG001
        if "other" in source:
            raise RuntimeError("Kernel died")
        return run(source, {}, folder)

    run = build._papermill
    monkeypatch.setattr(build, "_papermill", stopped)
    outcomes = {
        outcome.notebook: outcome for outcome in build.build(executor=ThreadPoolExecutor(1))
    }
    assert outcomes["example"].state == "built"
    assert (outcomes["other"].state, outcomes["other"].message) == (
        "failed",
        "it was stopped: Kernel died",
    )
