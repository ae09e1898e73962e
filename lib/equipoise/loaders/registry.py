"""The registry of upstream files: where each comes from, its sha256, its licence, and how to get it.

A file is looked for in the local cache, then in the folder named by ``EQUIPOISE_MIRROR`` (laid out as
``<item>/<path>``), then at its url. The sha256 is checked on every path. Upstream files are never committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import platformdirs
import pooch

from equipoise import project

__all__ = ["DataUnreachable", "cache_folder", "entries", "fetch", "mirror_folder", "verify"]

MIRROR_VARIABLE = "EQUIPOISE_MIRROR"
CACHE_VARIABLE = "EQUIPOISE_CACHE"
TIMEOUT_SECONDS = 20

_COLUMNS = ["item", "path", "url", "sha256", "bytes", "licence"]


class DataUnreachable(RuntimeError):  # noqa: N818 - it names a state of the world, not a mistake
    """A registered file that is neither cached nor mirrored, and whose url does not answer."""


def cache_folder() -> Path:
    """Folder of downloaded files: ``EQUIPOISE_CACHE``, else the user's cache.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_path("equipoise")).absolute()


def mirror_folder() -> Path | None:
    """Folder named by ``EQUIPOISE_MIRROR``, or None; a relative one is taken from the top of the repository.

    Raises
    ------
    NotADirectoryError
        If the variable names no folder.

    Examples
    --------
    >>> mirror_folder() is None or mirror_folder().is_dir()
    True
    """
    named = os.environ.get(MIRROR_VARIABLE)
    if not named:
        return None
    folder = project.root() / named
    if not folder.is_dir():
        raise NotADirectoryError(f"{MIRROR_VARIABLE} names {named}, which is no folder")
    return folder


def entries() -> pd.DataFrame:
    """Every registered file.

    Returns
    -------
    DataFrame, columns item, path, url, sha256, bytes, licence
        As text.

    Examples
    --------
    >>> entries().columns.tolist()
    ['item', 'path', 'url', 'sha256', 'bytes', 'licence']
    """
    path = project.root() / "data" / "registry.tsv"
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    if table.columns.tolist() != _COLUMNS or table.duplicated(["item", "path"]).any():
        raise ValueError(f"data/registry.tsv: wanted the columns {', '.join(_COLUMNS)} and each file once")
    return table


def _entry(item: str, path: str) -> pd.Series:
    table = entries()
    found = table[(table["item"] == item) & (table["path"] == path)]
    if found.empty:
        known = table.loc[table["item"] == item, "path"].tolist() or sorted(set(table["item"]))
        raise KeyError(f"{item}/{path} is not in data/registry.tsv; there are {len(known)}, such as {known[0]}")
    return found.iloc[0]


def _local(entry: pd.Series) -> tuple[str, Path] | None:
    """Place of a file on this machine: in the cache or in the mirror; a damaged one is an error."""
    folders = {"cache": cache_folder(), "mirror": mirror_folder()}
    for place, folder in folders.items():
        if folder is None:
            continue
        path = folder / str(entry["item"]) / str(entry["path"])
        if path.is_file():
            digest = project.sha256(path)
            if digest != entry["sha256"]:
                raise ValueError(
                    f"{entry['item']}/{entry['path']} in the {place} has sha256 {digest}, wanted {entry['sha256']}: "
                    f"remove it there and fetch it again"
                )
            return place, path
    return None


def fetch(item: str, path: str) -> Path:
    """Path of an upstream file on this machine, fetched if need be and noted as used.

    Parameters
    ----------
    item, path : str
        As in ``data/registry.tsv``.

    Returns
    -------
    Path

    Raises
    ------
    KeyError
        If the registry has no such file.
    ValueError
        If a file is there but its sha256 is another.
    DataUnreachable
        If the file is not on this machine and its url does not answer.

    Examples
    --------
    >>> fetch("fairweb", "NTCIR/no such file")
    Traceback (most recent call last):
    ...
    KeyError: 'fairweb/NTCIR/no such file is not in data/registry.tsv; there are 38, such as NTCIR/...
    """
    entry = _entry(item, path)
    local = _local(entry)
    if local is None:
        target = cache_folder() / item / path
        try:
            pooch.retrieve(
                url=entry["url"],
                known_hash=f"sha256:{entry['sha256']}",
                path=target.parent,
                fname=target.name,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS),
            )
        except OSError as error:  # of which requests' errors are a kind
            raise DataUnreachable(
                f"{item}/{path} is not in the cache or the mirror, and its url does not answer "
                f"({type(error).__name__}): set {MIRROR_VARIABLE} to a folder that has it"
            ) from None
        local = "cache", target
    project.note(f"registry:{item}/{path}", str(entry["sha256"]))
    return local[1]


def verify(entry: pd.Series) -> str:
    """Where a registered file is on this machine, after checking its sha256.

    Parameters
    ----------
    entry : Series
        A row of `entries`.

    Returns
    -------
    str
        ``cache``, ``mirror``, ``damaged`` or ``not here``.

    Examples
    --------
    >>> verify(entries().iloc[0]) in ("cache", "mirror", "not here")
    True
    """
    try:
        local = _local(entry)
    except ValueError:
        return "damaged"
    return "not here" if local is None else local[0]
