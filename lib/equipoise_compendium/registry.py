"""The registry of upstream files: where each comes from, its sha256 and licence, how to get it.

A file is looked for in the local cache, then in the folder named by ``EQUIPOISE_MIRROR`` (laid out
as ``<item>/<path>``), then at its url. The sha256 is checked on every path. Upstream files are
never committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.writing import staging, sweep

MIRROR_VARIABLE = "EQUIPOISE_MIRROR"
CACHE_VARIABLE = "EQUIPOISE_CACHE"

_downloads: ContextVar[bool] = ContextVar("downloads", default=True)
"""Whether a file that is not on this machine is fetched."""


class DataUnreachable(RuntimeError):  # noqa: N818 - it names a state of the world, not a mistake
    """A registered file that is neither cached nor mirrored, and whose url does not answer."""


def cache_folder() -> Path:
    """Folder of downloaded files: ``EQUIPOISE_CACHE``, else the user's cache."""
    import pooch  # not needed to score files of one's own

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("equipoise")).absolute()


def mirror_folder() -> Path | None:
    """Folder named by ``EQUIPOISE_MIRROR``, if any; a relative one is below the repository."""
    name = os.environ.get(MIRROR_VARIABLE)
    if not name:
        return None
    folder = project.root() / name
    if not folder.is_dir():
        raise NotADirectoryError(f"{MIRROR_VARIABLE} names {name}, which is no folder")
    return folder


def entries() -> pd.DataFrame:
    """The registered files: columns item, path, url, sha256, bytes, licence, all as text."""
    path = project.root() / "data" / "registry.tsv"
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    columns = ["item", "path", "url", "sha256", "bytes", "licence"]
    if table.columns.tolist() != columns or table.duplicated(["item", "path"]).any():
        expected = f"the columns {', '.join(columns)} and each file once"
        raise ValueError(f"data/registry.tsv: wanted {expected}")
    if not table["bytes"].str.fullmatch("[0-9]+").all():
        expected = "a whole number in each field of the column bytes"
        raise ValueError(f"data/registry.tsv: wanted {expected}")
    return table


def _entry(item: str, path: str) -> pd.Series:
    table = entries()
    matching = table[(table["item"] == item) & (table["path"] == path)]
    if matching.empty:
        names = table.loc[table["item"] == item, "path"].tolist() or sorted(set(table["item"]))
        raise KeyError(
            f"{item}/{path} is not in data/registry.tsv; there are {len(names)}, such as {names[0]}"
        )
    return matching.iloc[0]


def _find(entry: pd.Series) -> tuple[str, Path]:
    """Place of a file, cache, mirror or not here, and its path, or the path to fetch it to.

    A damaged file is refused.
    """
    name = f"{entry['item']}/{entry['path']}"
    for place, folder in {"cache": cache_folder(), "mirror": mirror_folder()}.items():
        if folder is None or not (folder / name).is_file():
            continue
        digest = project.sha256(folder / name)
        if digest != entry["sha256"]:
            raise ValueError(
                f"{name} in the {place} has sha256 {digest}, wanted {entry['sha256']}: "
                "remove it there and fetch it again"
            )
        return place, folder / name
    return "not here", cache_folder() / name


class _BoundedFile:
    """A file that takes no more bytes than are registered, and raises an error at the next."""

    def __init__(self, file: BinaryIO, most_bytes: int, error: ValueError) -> None:
        self._file, self._room, self._error = file, most_bytes, error
        self.flush = file.flush

    def write(self, chunk: bytes) -> None:
        self._room -= len(chunk)
        if self._room < 0:
            raise self._error
        self._file.write(chunk)


def _download(entry: pd.Series, target: Path) -> None:
    """Bring a file into the cache, complete and as it is registered, or not at all."""
    import pooch

    registered = f"{entry['bytes']} bytes with sha256 {entry['sha256']}"
    wrong_file = ValueError(
        f"{entry['item']}/{entry['path']}: "
        f"{entry['url']} gives another file than wanted: {registered}"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with staging(target) as staged:
        with staged.open("wb") as file, ExitStack() as stack:
            # pooch leaves the answer open, and its connection with it.
            hooks = {"response": lambda answer, **_: stack.enter_context(answer)}
            download = pooch.HTTPDownloader(timeout=20, hooks=hooks)  # seconds
            download(entry["url"], _BoundedFile(file, int(entry["bytes"]), wrong_file), None)
        if project.sha256(staged) != entry["sha256"]:
            raise wrong_file
        staged.replace(target)


@contextmanager
def without_downloads() -> Iterator[None]:
    """Meanwhile a file that is not on this machine is unreachable; the error says where it is."""
    token = _downloads.set(False)
    try:
        yield
    finally:
        _downloads.reset(token)


def fetch(item: str, path: str) -> Path:
    """Path of an upstream file on this machine, fetched if need be and noted as used."""
    entry = _entry(item, path)
    place, target = _find(entry)
    if place == "not here" and not _downloads.get():
        licence = entry["licence"]
        raise DataUnreachable(
            f"{item}/{path} ({int(entry['bytes']):,} bytes, licence: {licence}), which is fetched "
            f"when it is wanted, from {entry['url']}, unless {MIRROR_VARIABLE} names a folder that "
            "has it"
        )
    if place == "not here":
        try:
            _download(entry, target)
        except OSError as error:
            # Errors of requests are of this kind, without a number.
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                problem = (
                    "the certificate of its url is not trusted here (behind a proxy of your own, "
                    "REQUESTS_CA_BUNDLE names its certificate)"
                )
            elif error.errno is None:
                problem = f"its url does not answer ({type(error).__name__})"
            else:
                problem = f"cannot be written to the cache, {CACHE_VARIABLE} ({error.strerror})"
            raise DataUnreachable(
                f"{item}/{path} is not in the cache or the mirror, and {problem}: "
                f"set {MIRROR_VARIABLE} to a folder that has it"
            ) from None
    project.note(f"registry:{item}/{path}", str(entry["sha256"]))
    return target


def verify(entry: pd.Series) -> str:
    """Where the file of a row of `entries` is: cache, mirror, damaged or not here."""
    try:
        return _find(entry)[0]
    except ValueError:
        return "damaged"
