"""The registry of upstream files: where each comes from, its sha256, its licence, and how to get it.

A file is looked for in the local cache, then in the folder named by ``EQUIPOISE_MIRROR`` (laid out
as ``<item>/<path>``), then at its url. The sha256 is checked on every path. Upstream files are
never committed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.writing import staging, sweep

MIRROR_VARIABLE = "EQUIPOISE_MIRROR"
CACHE_VARIABLE = "EQUIPOISE_CACHE"


class DataUnreachable(RuntimeError):  # noqa: N818 - it names a state of the world, not a mistake
    """A registered file that is neither cached nor mirrored, and whose url does not answer."""


def cache_folder() -> Path:
    """Folder of downloaded files: ``EQUIPOISE_CACHE``, else the user's cache."""
    import pooch  # not needed to score files of one's own

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("equipoise")).absolute()


def mirror_folder() -> Path | None:
    """Folder named by ``EQUIPOISE_MIRROR``, or None; a relative one is taken from the top of the repository."""
    named = os.environ.get(MIRROR_VARIABLE)
    folder = project.root() / named if named else None
    if folder is not None and not folder.is_dir():
        raise NotADirectoryError(f"{MIRROR_VARIABLE} names {named}, which is no folder")
    return folder


def entries() -> pd.DataFrame:
    """Every registered file.

    Returns a table with the columns item, path, url, sha256, bytes, licence, all as text.
    """
    table = pd.read_csv(
        project.root() / "data" / "registry.tsv", sep="\t", dtype=str, keep_default_na=False
    )
    wanted = ["item", "path", "url", "sha256", "bytes", "licence"]
    if table.columns.tolist() != wanted or table.duplicated(["item", "path"]).any():
        raise ValueError(
            f"data/registry.tsv: wanted the columns {', '.join(wanted)} and each file once"
        )
    if not table["bytes"].str.fullmatch("[0-9]+").all():
        raise ValueError(
            "data/registry.tsv: wanted a whole number in each field of the column bytes"
        )
    return table


def _entry(item: str, path: str) -> pd.Series:
    table = entries()
    found = table[(table["item"] == item) & (table["path"] == path)]
    if found.empty:
        known = table.loc[table["item"] == item, "path"].tolist() or sorted(set(table["item"]))
        raise KeyError(
            f"{item}/{path} is not in data/registry.tsv; there are {len(known)}, such as {known[0]}"
        )
    return found.iloc[0]


def _find(entry: pd.Series) -> tuple[str, Path]:
    """Place of a file, cache, mirror or not here, and its path, or the path to fetch it to; refuse a damaged one."""
    name, wanted = f"{entry['item']}/{entry['path']}", entry["sha256"]
    for place, folder in {"cache": cache_folder(), "mirror": mirror_folder()}.items():
        if folder is not None and (folder / name).is_file():
            digest = project.sha256(folder / name)
            if digest != wanted:
                told = f"{name} in the {place} has sha256 {digest}, wanted {wanted}"
                raise ValueError(f"{told}: remove it there and fetch it again")
            return place, folder / name
    return "not here", cache_folder() / name


class _Bounded:
    """A file that takes no more bytes than are registered."""

    def __init__(self, file: BinaryIO, left: int, otherwise: ValueError) -> None:
        self.file, self.left, self.otherwise, self.flush = file, left, otherwise, file.flush

    def write(self, chunk: bytes) -> None:
        self.left -= len(chunk)
        if self.left < 0:
            raise self.otherwise
        self.file.write(chunk)


def _download(entry: pd.Series, target: Path) -> None:
    """Bring a file into the cache, whole and as it is registered, or not at all."""
    import pooch

    registered = f"{entry['bytes']} bytes with sha256 {entry['sha256']}"
    wrong = ValueError(
        f"{entry['item']}/{entry['path']}: {entry['url']} gives another file than wanted: {registered}"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with staging(target) as part:
        with part.open("wb") as file, ExitStack() as stack:
            hooks = {
                "response": lambda answer, **_: stack.enter_context(answer)
            }  # which pooch leaves open
            downloader = pooch.HTTPDownloader(timeout=20, hooks=hooks)  # seconds
            downloader(entry["url"], _Bounded(file, int(entry["bytes"]), wrong), None)
        if project.sha256(part) != entry["sha256"]:
            raise wrong
        part.replace(target)


def fetch(item: str, path: str) -> Path:
    """Path of an upstream file on this machine, fetched if need be and noted as used."""
    entry = _entry(item, path)
    place, target = _find(entry)
    if place == "not here":
        try:
            _download(entry, target)
        except OSError as error:  # of which requests' errors are a kind, without a number
            told = f"its url does not answer ({type(error).__name__})"
            if error.errno is not None:
                told = f"cannot be written to the cache, {CACHE_VARIABLE} ({error.strerror})"
            told = f"{item}/{path} is not in the cache or the mirror, and {told}"
            raise DataUnreachable(
                f"{told}: set {MIRROR_VARIABLE} to a folder that has it"
            ) from None
    project.note(f"registry:{item}/{path}", str(entry["sha256"]))
    return target


def verify(entry: pd.Series) -> str:
    """Where the file of a row of `entries` is, after checking its sha256: cache, mirror, damaged or not here."""
    try:
        return _find(entry)[0]
    except ValueError:
        return "damaged"
