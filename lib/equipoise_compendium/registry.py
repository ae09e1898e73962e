"""The registry of upstream files: where each comes from, its sha256 and licence.

A file is taken from the folder named by ``EQUIPOISE_MIRROR`` (laid out as ``<item>/<path>``), else
from the cache, else from its address. Its sha256 is checked. Upstream files are never committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from equipoise_compendium import project

MIRROR_VARIABLE = "EQUIPOISE_MIRROR"
CACHE_VARIABLE = "EQUIPOISE_CACHE"


class DataUnreachable(RuntimeError):  # noqa: N818 - it names a state of the world, not a mistake
    """A registered file that is not on this machine, and whose address does not answer."""


def cache_folder() -> Path:
    """Folder of downloaded files: ``EQUIPOISE_CACHE``, else the user's cache."""
    import pooch  # scoring does not need it

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("equipoise")).absolute()


def mirror_folder() -> Path | None:
    """Folder named by ``EQUIPOISE_MIRROR``, if any; a relative one is below the repository."""
    name = os.environ.get(MIRROR_VARIABLE)
    if not name:
        return None
    folder = project.root() / name
    if not folder.is_dir():
        raise NotADirectoryError(f"{MIRROR_VARIABLE}: {name} must be a folder")
    return folder


def entries() -> pd.DataFrame:
    """Read the registry: columns item, path, url, sha256, bytes, licence, all as text."""
    path = project.root() / "data" / "registry.tsv"
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    if table.duplicated(["item", "path"]).any():
        raise ValueError("data/registry.tsv: item and path must be unique")
    return table


def verify(entry: pd.Series) -> str:
    """Return where the file of a row of `entries` is: mirror, cache, damaged or not here."""
    name = f"{entry['item']}/{entry['path']}"
    for place, folder in {"mirror": mirror_folder(), "cache": cache_folder()}.items():
        if folder is not None and (file := project.inside(folder, name)).is_file():
            is_whole = project.sha256(file) == entry["sha256"]
            return place if is_whole else "damaged"
    return "not here"


def fetch(item: str, path: str) -> Path:
    """Return an upstream file on this machine, downloaded if need be and noted as used."""
    import pooch

    table = entries()
    rows = table[(table["item"] == item) & (table["path"] == path)]
    if rows.empty:
        raise KeyError(f"{item}/{path} is not in data/registry.tsv")
    entry = rows.iloc[0]
    name, digest = f"{item}/{path}", str(entry["sha256"])
    place = verify(entry)
    if place == "damaged":
        raise ValueError(f"{name}: the file on this machine must have sha256 {digest}; remove it")
    folder = mirror_folder() if place == "mirror" else cache_folder()
    if place == "not here":
        files = pooch.create(
            path=cache_folder(), base_url="", registry={name: digest}, urls={name: entry["url"]}
        )
        try:
            files.fetch(name, downloader=pooch.HTTPDownloader(timeout=20))  # seconds
        except OSError as error:  # errors of requests, too, are of this kind
            raise DataUnreachable(
                f"{name} ({entry['bytes']} bytes, licence: {entry['licence']}) is not available "
                f"from {entry['url']} ({type(error).__name__}); {MIRROR_VARIABLE} may name a "
                "folder that contains it"
            ) from None
        except ValueError:
            raise ValueError(f"{name}: {entry['url']} gives a file of another sha256") from None
    project.note(f"registry:{name}", digest)
    return (folder or cache_folder()) / name
