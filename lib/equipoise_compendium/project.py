"""Where things are, and which of them a computation has used.

The repository is found from the working directory upwards, else from where the library is installed
from. `data` gives the path of a file under ``data/`` and notes it; `used_files` lists what was
noted, so that a report can say which data made it and a build can tell when they changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_used: dict[str, str] = {}


@cache
def root() -> Path:
    """Top folder of the repository."""
    working_folder = Path.cwd()
    installed = Path(__file__).resolve()
    for folder in (working_folder, *working_folder.parents, *installed.parents):
        has_data = (folder / "data" / "published" / "artefacts.csv").is_file()
        if has_data and (folder / "notebooks").is_dir():
            return folder
    raise FileNotFoundError(
        f"no compendium at {working_folder} or above it: "
        "run this where notebooks/ and data/published/artefacts.csv are (equipoise init makes them)"
    )


def data(*parts: str) -> Path:
    """Path of a file under ``data/``, of folder and file names below it, noted as used."""
    path = data_path(*parts)
    note("data/" + "/".join(parts), sha256(path))
    return path


def inside(folder: Path, *parts: str) -> Path:
    """Return a path below a folder; raise for one that leads out of it, links included."""
    path = folder.joinpath(*parts)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{'/'.join(parts)} leads out of the folder {folder.name}")
    return path


def data_path(*parts: str) -> Path:
    """Path of a file under ``data/``, never of one elsewhere."""
    path = inside(root() / "data", *parts)
    with suppress(OSError, ValueError):  # a name that no file can have
        if path.is_file():
            return path
    raise FileNotFoundError(f"no file data/{'/'.join(parts)} in this repository")


def note(name: str, digest: str) -> None:
    """Note a file as used.

    ``name``: A name that is the same on every machine, never an absolute path. ``digest``: Its
    sha256, in hexadecimal digits.
    """
    _used[name] = digest


def noted(path: Path) -> Path:
    """A file, noted as used where it is one of the repository."""
    if path.resolve().is_relative_to(root()):
        note(path.resolve().relative_to(root()).as_posix(), sha256(path))
    return path


def used_files() -> dict[str, str]:
    """The files noted so far, by name, with their sha256."""
    return dict(sorted(_used.items()))


@contextmanager
def used_meanwhile() -> Iterator[dict[str, str]]:
    """The files noted while the context is open, with their sha256; complete at its end."""
    used_before = dict(_used)
    _used.clear()
    used_within: dict[str, str] = {}
    try:
        yield used_within
    finally:
        used_within |= used_files()
        _used.update(used_before)


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
