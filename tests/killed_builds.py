"""Builds that are killed, or whose disk is full or read-only, and what they leave.

They are run and started again, and what is not as promised is told.

Run as a program, as each attempt is a process of its own, made by fork, which a test with threads
had better not do.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from equipoise_compendium import build, project, staging
from equipoise_compendium.site import pages
from small_repository import digest, make, pretend, put

STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def changes_a_file(event: str, args: tuple[Any, ...]) -> bool:
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    return event in STEPS or (
        event == "open" and bool(args[2] & writes) and not str(args[0]).startswith("/dev/")
    )


def run(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Stand in for papermill, with an executed notebook for the site."""
    shutil.copy(source, folder)
    return pretend(source, parameters, folder)


def small_site() -> dict[str, bytes]:
    """Stand in for the pages of the site, which take a second."""
    executed = sorted((project.root() / "reports").glob("*/*.ipynb"))
    return {"index.html": b"".join(path.read_bytes() for path in executed), "assets/style.css": b""}


def build_all() -> str:
    """A build of two reports, a variant, the ledger and the site; what failed, in words."""
    with ThreadPoolExecutor(1) as executor:
        try:
            outcomes = build.build(executor=executor)
            outcomes += build.build(["one"], {"size": "5"}, executor=executor)
            pages.refresh()
        except ValueError as error:
            return str(error)
    return "; ".join(outcome.message for outcome in outcomes if outcome.state == "failed")


def start() -> str:
    """What every build begins and ends with, and nothing else."""
    with staging.staging():
        return ""


def killed(work: Callable[[], str], step: int = 0, *, renames: bool = False) -> str:
    """Work in a child that is killed before a step, or right after a rename.

    Returns which, or what it said at its end.

    Work is done in children only, so that the parent has no threads, which a fork would break.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        done, last = 0, ""

        def count(event: str, args: tuple[Any, ...]) -> None:
            nonlocal done, last
            if not changes_a_file(event, args):
                return
            done += not renames or last.startswith("os.rename")
            if done == step and (not renames or last.startswith("os.rename")):
                os.write(
                    writer, (f"after {last}" if renames else f"before {event} {args[0]}").encode()
                )
                os.kill(os.getpid(), signal.SIGKILL)
            last = f"{event} {args[0]}"

        sys.addaudithook(count)
        os.write(writer, work().encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        said = told.read()
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL), f"step {step} failed"
    return said


def units(reports: Path) -> dict[str, dict[str, str]]:
    """What is moved in one piece, with its files: reports, the site, each file of the ledger."""
    found: dict[str, dict[str, str]] = {}
    for name, sha in digest(reports).items():
        parts = Path(name).parts
        found.setdefault("/".join(parts[: 3 if parts[0] == "variants" else 1]), {})[name] = sha
    return found


def attempts(root: Path, how: str) -> Iterator[tuple[str, list[str]]]:
    """What happened at each attempt, and what was not as promised then.

    ``how``: the build is killed before each of its "steps", or after each of its "renames"; or
    ``reports``, a file system of its own, is "full" but for more and more room, or "read-only".
    """
    reports, states = root / "reports", []
    for size in (1, 2):  # the old state and the new one
        for name in ("one", "two"):
            put(root, json.dumps({"sources": []}), name=name, title=f"{name} {size}")
        assert (said := killed(build_all)) == "", said
        states.append(units(reports))
        if size == 1:
            shutil.copytree(reports, root / "old")
    old, new = states
    assert set(old) == set(new)
    assert all(old[name] != new[name] for name in ("one", "two", "site", "variants/one/size=5"))
    for number in itertools.count(1):
        for path in reports.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(root / "old", reports, dirs_exist_ok=True)
        if how == "full":
            (reports / "filler").write_bytes(
                bytes(max(0, shutil.disk_usage(reports).free - (number - 1) * 8_192))
            )
            said = killed(build_all)
            (reports / "filler").unlink()
        elif how == "read-only":
            remount(reports, "ro")
            said = killed(build_all)
            remount(reports, "rw")
        else:
            said = killed(build_all, number, renames=how == "renames")
        if not said:
            return
        wrong = [
            f"torn: {name}"
            for name, unit in units(reports).items()
            if unit not in (old[name], new[name])
        ]
        if how in ("steps", "renames"):
            killed(start)
        now = units(reports)
        wrong += [f"lost: {name}" for name in old if now.get(name) not in (old[name], new[name])]
        left = [*(reports / ".equipoise").iterdir(), *Path(os.environ["TMPDIR"]).iterdir()]
        wrong += [f"left: {path.relative_to(root)}" for path in left]
        killed(build_all)
        wrong += ["the next build differs"] * (units(reports) != new)
        yield said.replace(f"{root}/", ""), wrong
        if how == "read-only":
            return


def told(root: Path, how: str, *before: str) -> list[tuple[str, list[str]]]:
    """Run this program, behind the words ``before``; what `attempts` told."""
    command = [*before, sys.executable, __file__, str(root), how]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


if __name__ == "__main__":
    top, kind = Path(sys.argv[1]), sys.argv[2]
    make(top)
    (top / "notebooks" / "example.ipynb").unlink()
    (top / "tmp").mkdir()
    os.chdir(top)
    project.root.cache_clear()
    os.environ |= {"TMPDIR": str(top / "tmp"), "EQUIPOISE_CACHE": str(top / "cache")}
    os.environ.pop("EQUIPOISE_MIRROR", None)
    build._papermill, pages.pages = run, small_site
    tempfile.gettempdir()  # tries to write there, once
    for attempt in attempts(top, kind):
        print(json.dumps(attempt), flush=True)
