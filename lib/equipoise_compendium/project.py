"""Paths of the repository, and the files from which derived data are made.

The repository is the first one from the working directory upwards, or else the one from which the
library is installed. `data` returns the path of a file below ``data/`` and notes it.
`used_meanwhile` collects the noted files, which ``sources.csv`` of derived data lists.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_used: dict[str, str] = {}


@cache
def root() -> Path:
    """Return the top folder of the repository."""
    working_folder = Path.cwd()
    installed = Path(__file__).resolve()
    for folder in (working_folder, *working_folder.parents, *installed.parents):
        has_data = (folder / "data" / "published" / "artefacts.csv").is_file()
        if has_data and (folder / "notebooks").is_dir():
            return folder
    raise FileNotFoundError(
        f"no compendium in {working_folder} or above; run the command in a folder with notebooks/ "
        "and data/published/artefacts.csv, or create one with equipoise init"
    )


def data(*parts: str) -> Path:
    """Return the path of a file below ``data/``, and note it as used."""
    path = data_path(*parts)
    note("data/" + "/".join(parts), sha256(path))
    return path


def inside(folder: Path, *parts: str) -> Path:
    """Return a path below a folder; raise if it, or a link in it, leads out of the folder."""
    path = folder.joinpath(*parts)
    # Links in a circle have a real path, too, which no file has.
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{'/'.join(parts)} leads out of the folder {folder.name}")
    return path


def data_path(*parts: str) -> Path:
    """Return the path of a file below ``data/``; reject files elsewhere."""
    path = inside(root() / "data", *parts)
    with suppress(OSError, ValueError):  # a name that no file can have
        if path.is_file():
            return path
    raise FileNotFoundError(f"data/{'/'.join(parts)}: not found in this repository")


def note(name: str, digest: str) -> None:
    """Note a file as used.

    ``name``: the same on every machine, never an absolute path. ``digest``: its sha256, in
    hexadecimal digits.
    """
    _used[name] = digest


@contextmanager
def used_meanwhile() -> Iterator[dict[str, str]]:
    """Collect the files noted within the context, with their sha256; complete at its end."""
    used_before = dict(_used)
    _used.clear()
    used_within: dict[str, str] = {}
    try:
        yield used_within
    finally:
        used_within |= dict(sorted(_used.items()))
        _used.update(used_before)


def sha256(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
