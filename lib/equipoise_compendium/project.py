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
    here = Path.cwd()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / "data" / "published" / "artefacts.csv").is_file() and (
            folder / "notebooks"
        ).is_dir():
            return folder
    raise FileNotFoundError(
        f"no Equipoise repository at {here} or above it: run this in a clone, where notebooks/ and data/ are"
    )


def data(*parts: str) -> Path:
    """Path of a file under ``data/``, noted as used.

    ``*parts``: Folder and file names below ``data/``.
    """
    path = data_path(*parts)
    note("data/" + "/".join(parts), sha256(path))
    return path


def data_path(*parts: str) -> Path:
    """Path of a file under ``data/``, never of one elsewhere."""
    below = Path(*parts)
    if ".." in below.parts or below.is_absolute():
        raise FileNotFoundError(
            f"{'/'.join(parts)} leads out of the folder data of this repository"
        )
    path = root() / "data" / below
    with suppress(OSError, ValueError):
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
    """Every file noted so far, by name, with its sha256."""
    return dict(sorted(_used.items()))


@contextmanager
def used_meanwhile() -> Iterator[dict[str, str]]:
    """The files noted while the context is open, by name, with their sha256; complete at its end."""
    before = dict(_used)
    _used.clear()
    meanwhile: dict[str, str] = {}
    try:
        yield meanwhile
    finally:
        meanwhile |= used_files()
        _used.update(before)


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
