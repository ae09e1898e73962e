"""Kill a build before each step that changes a file, start again, and tell what is not as promised.

Run as a program, as each attempt is a process of its own, made by fork, which a test with threads had better not do.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from equipoise import project
from equipoise.reports import build, staging
from equipoise.site import pages
from small_repository import digest, make, pretend, script

STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def changes_a_file(event: str, args: tuple[Any, ...]) -> bool:
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    return event in STEPS or (event == "open" and bool(args[2] & writes) and not str(args[0]).startswith("/dev/"))


def run(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Stand in for papermill, with an executed notebook for the site."""
    shutil.copy(source, folder)
    return pretend(source, parameters, folder)


def build_all() -> None:
    """A build of two reports, a variant, the ledger and the site."""
    with ThreadPoolExecutor(1) as executor:
        build.build(executor=executor)
        build.build(["one"], {"size": "5"}, executor=executor)
    pages.refresh()


def killed_before(step: int, work: Callable[[], object]) -> str:
    """Work in a child, which is killed before a step; the step, or nothing where the work is done before."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            if changes_a_file(event, args):
                left -= 1
                if left == 0:
                    os.write(writer, f"{event} {args[0]}".encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        said = told.read()
    assert said or os.waitstatus_to_exitcode(status) == 0, f"step {step} failed"
    return said


def units(reports: Path) -> dict[str, dict[str, str]]:
    """What is moved in one piece: every report, the site and each file of the ledger, with its files."""
    found: dict[str, dict[str, str]] = {}
    for name, sha in digest(reports).items():
        parts = Path(name).parts
        found.setdefault("/".join(parts[: 3 if parts[0] == "variants" else 1]), {})[name] = sha
    return found


def faults(root: Path) -> list[dict[str, Any]]:
    """Every step with what was not as promised after a kill before it."""
    reports, states = root / "reports", []
    for size in (1, 2):  # the old state and the new one
        for name in ("one", "two"):
            script(root, name, sources=[], remark=size)
        build_all()
        states.append(units(reports))
        if size == 1:
            shutil.copytree(reports, root / "old", symlinks=True)
    old, new = states
    assert set(old) == set(new)
    assert all(old[name] != new[name] for name in ("one", "two"))
    found: list[dict[str, Any]] = []
    while True:
        shutil.rmtree(reports)
        shutil.copytree(root / "old", reports)
        step = killed_before(len(found) + 1, build_all)
        if not step:
            return found
        wrong = [f"torn: {name}" for name, unit in units(reports).items() if unit not in (old[name], new[name])]
        with staging.staging():
            pass  # the next start
        now = units(reports)
        wrong += [f"lost: {name}" for name in old if now.get(name) not in (old[name], new[name])]
        left = [*(reports / ".equipoise").iterdir(), *Path(os.environ["TMPDIR"]).iterdir()]
        wrong += [f"left: {path.relative_to(root)}" for path in left]
        build_all()
        wrong += ["the next build differs"] * (units(reports) != new)
        found.append({"step": step.replace(str(root), ""), "wrong": wrong})


if __name__ == "__main__":
    top = Path(sys.argv[1])
    make(top)
    (top / "notebooks" / "example.ipynb").unlink()
    (top / "tmp").mkdir()
    os.chdir(top)
    project.root.cache_clear()
    os.environ |= {"TMPDIR": str(top / "tmp"), "EQUIPOISE_CACHE": str(top / "cache")}
    os.environ.pop("EQUIPOISE_MIRROR", None)
    build._papermill = run
    print(json.dumps(faults(top)))
