"""Where reports are made before they are moved into place, and what a killed build has left there.

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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from equipoise_compendium import project
from equipoise_compendium.writing import lock


def _work_folder() -> Path:
    return project.root() / "reports" / ".equipoise"


def scratch_prefix() -> str:
    """What temporary folders outside the repository are called first: by clone, and process."""
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
    """A folder beside the reports for what is not finished, gone at the end.

    No other build is at work meanwhile.
    """
    work_folder = _work_folder()
    try:
        work_folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(work_folder, os.O_RDONLY)
        with ExitStack() as stack:
            stack.callback(os.close, descriptor)
            if lock(descriptor) is False:
                print("waiting for another build to end", file=sys.stderr, flush=True)
                lock(descriptor, wait=True)
            _tidy()
            stack.callback(_tidy)
            staged = work_folder / "made"
            staged.mkdir()
            yield staged
    except OSError as error:
        place = Path(error.filename or work_folder.parent)
        if place.is_relative_to(project.root()):
            place = place.relative_to(project.root())
        problem = f"{place}: {error.strerror or error}"
        raise ValueError(f"cannot finish: {problem}; every report is whole, old or new") from None


def heal() -> None:
    """Put back the reports that a killed build has set aside, before they are read.

    Where a build is at work, or nothing can be written, they are read as they are.
    """
    with suppress(OSError):
        descriptor = os.open(_work_folder(), os.O_RDONLY)
        try:
            if lock(descriptor):
                _tidy()
        finally:
            os.close(descriptor)


def _tidy() -> None:
    """Put back reports whose new ones never came, and remove all else that is not in use."""
    aside = _work_folder() / "aside"
    for old_report in [*aside.glob("*"), *aside.glob("variants/*/*")]:
        target = _work_folder().parent / old_report.relative_to(aside)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            old_report.rename(target)
    for path in _work_folder().iterdir():
        if path.name != "aside":
            shutil.rmtree(path, ignore_errors=True)
    scratch_of_clone = scratch_prefix().rsplit("-", 2)[0] + "-*-*"
    for path in Path(tempfile.gettempdir()).glob(scratch_of_clone):
        if _is_dead(path):
            shutil.rmtree(path, ignore_errors=True)
    if aside.exists():
        # Under another name first, as half of a report is not to be put back.
        shutil.rmtree(aside.rename(_work_folder() / "done"), ignore_errors=True)


def move(staged: Path, target: Path) -> None:
    """Put a folder from `staging` in its place in ``reports/``.

    The old one is set aside until the new one is there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        aside = _work_folder() / "aside" / target.relative_to(_work_folder().parent)
        aside.parent.mkdir(parents=True, exist_ok=True)
        target.rename(aside)
    staged.rename(target)
