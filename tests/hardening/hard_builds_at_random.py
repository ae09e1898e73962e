"""Kill -9 of builds with papermill and kernels at random moments, and before every step.

A step is whatever changes a file. `hard_builds` kills behind every rename.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from killed_builds import told, units
from small_repository import TABLE, make, put

MOMENTS = 10
States = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Clone:
    """A small clone with a report in an old and a new state, and the time a build between takes."""

    root: Path
    environment: dict[str, str]
    old: States
    new: States
    seconds: float

    @property
    def reports(self) -> Path:
        return self.root / "reports"


def start(root: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "equipoise_cli", "build", "--jobs", "2"]
    with (root / "said").open("wb") as said:
        return subprocess.Popen(
            command, cwd=root, env=environment, stdout=said, stderr=said, start_new_session=True
        )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    root, temporary = (
        tmp_path_factory.mktemp("clone"),
        tempfile.mkdtemp(prefix="k"),
    )  # short, as sockets lie there
    environment = {name: value for name, value in os.environ.items() if name != "EQUIPOISE_MIRROR"}
    environment |= {"TMPDIR": temporary, "EQUIPOISE_CACHE": str(root / "cache")}
    make(root)
    put(root, TABLE.replace("example", "other"), "report.finish()", name="other")
    states, seconds = [], 0.0
    for value in ("1", "2"):
        put(root, TABLE, f"print({value})", "report.finish()", title=f"An example {value}")
        begun = time.monotonic()
        assert start(root, environment).wait(600) == 0
        seconds = time.monotonic() - begun
        states.append(units(root / "reports"))
        if value == "1":
            shutil.copytree(root / "reports", root / "old")
    assert states[0]["example"] != states[1]["example"]
    yield Clone(root, environment, states[0], states[1], seconds)
    shutil.rmtree(temporary)


def alive(environment: dict[str, str]) -> list[str]:
    """Processes of a build of the clone."""
    mark = f"TMPDIR={environment['TMPDIR']}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended since
    return found


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_build_killed_at_a_random_moment_loses_nothing(number: int, clone: Clone) -> None:
    shutil.rmtree(clone.reports)
    shutil.copytree(clone.root / "old", clone.reports)
    running = start(clone.root, clone.environment)
    time.sleep(random.Random(number).random() * clone.seconds)  # noqa: S311 - the same moments at every run
    if number % 2:
        os.killpg(running.pid, signal.SIGKILL)
    else:
        running.kill()  # its workers and kernels find out on their own
    running.wait()
    for name, unit in units(clone.reports).items():
        assert unit in (clone.old[name], clone.new[name]), f"{name} is torn"
    deadline = time.monotonic() + 60
    while (left := alive(clone.environment)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert start(clone.root, clone.environment).wait(600) == 0, (clone.root / "said").read_text()[
        -2000:
    ]
    assert units(clone.reports) == clone.new
    assert list((clone.reports / ".equipoise").iterdir()) == []
    assert list(Path(clone.environment["TMPDIR"]).iterdir()) == []


def test_a_build_killed_before_any_step_loses_nothing(tmp_path: Path) -> None:
    ran = told(tmp_path, "steps")
    assert len(ran) > 50
    assert [attempt for attempt in ran if attempt[1]] == []
