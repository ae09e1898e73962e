"""Where reports are made before they are moved into place, and what a build that was killed has left there.

One process at a time is at work in ``reports/.equipoise``, on the file system of the reports.
Whatever it finds there when it begins is a dead process's: a report that was put aside for a new
one which never came goes back, all else is removed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from equipoise_compendium import project
from equipoise_compendium.writing import lock


def _folder() -> Path:
    return project.root() / "reports" / ".equipoise"


def scratch_prefix() -> str:
    """What names of temporary folders outside the repository begin with: this clone, and the process that made them."""
    clone = hashlib.sha256(str(project.root()).encode()).hexdigest()[:12]
    return f"equipoise-{clone}-{os.getpid()}-"


def _is_dead(folder: Path) -> bool:
    """Whether the process that made a temporary folder of this clone has ended."""
    process = folder.name.split("-")[2]
    try:
        os.kill(int(process), 0)  # asks only
    except (ProcessLookupError, ValueError):
        return True
    except PermissionError:
        return False  # it is alive, and another user's
    return False


@contextmanager
def staging() -> Iterator[Path]:
    """A folder beside the reports for what is not finished, gone at the end, while no other build is at work."""
    work = _folder()
    try:
        work.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.callback(os.close, held := os.open(work, os.O_RDONLY))
            if lock(held) is False:
                print("waiting for another build to end", file=sys.stderr, flush=True)
                lock(held, wait=True)
            _tidy()
            stack.callback(_tidy)
            (made := work / "made").mkdir()
            yield made
    except OSError as error:
        where = Path(error.filename or work.parent)
        named = where.relative_to(project.root()) if where.is_relative_to(project.root()) else where
        told = f"{named}: {error.strerror or error}; every report is whole, old or new"
        raise ValueError(f"cannot finish: {told}") from None


def _tidy() -> None:
    """Put back what was set aside for a report that never came, and remove all else that is not in use."""
    aside = _folder() / "aside"
    for old in [*aside.glob("*"), *aside.glob("variants/*/*")]:
        if not (target := _folder().parent / old.relative_to(aside)).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            old.rename(target)
    left = [path for path in _folder().iterdir() if path.name != "aside"]
    scratch = Path(tempfile.gettempdir()).glob(scratch_prefix().rsplit("-", 2)[0] + "-*-*")
    for path in [*left, *filter(_is_dead, scratch)]:
        shutil.rmtree(path, ignore_errors=True)
    if aside.exists():  # under another name, as half of a report is not to be put back
        shutil.rmtree(aside.rename(_folder() / "done"), ignore_errors=True)


def move(staged: Path, target: Path) -> None:
    """Put a folder from `staging` in its place in ``reports/``, whole; the old one is set aside until it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        aside = _folder() / "aside" / target.relative_to(_folder().parent)
        aside.parent.mkdir(parents=True, exist_ok=True)
        target.rename(aside)
    staged.rename(target)
