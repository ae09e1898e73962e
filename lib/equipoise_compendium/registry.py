"""The registry of upstream files, with the address, sha256 and licence of each.

A file comes from the folder in ``EQUIPOISE_MIRROR`` (with paths ``<item>/<path>``), else from the
cache, else from its address. Its sha256 is checked. Upstream files are never committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from equipoise_compendium import project

MIRROR_VARIABLE = "EQUIPOISE_MIRROR"
CACHE_VARIABLE = "EQUIPOISE_CACHE"


class DataUnreachable(RuntimeError):  # noqa: N818 - it names a state of the world, not a mistake
    """A registered file that is neither on this machine nor available from its address."""


def cache_folder() -> Path:
    """Return the folder of downloaded files: ``EQUIPOISE_CACHE``, or the user's cache."""
    import pooch  # scoring does not need it

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("equipoise")).absolute()


def mirror_folder() -> Path | None:
    """Return the folder in ``EQUIPOISE_MIRROR``, if any; the repository is its base."""
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
    """Return the location of a file in `entries`: mirror, cache, damaged or not here."""
    name = f"{entry['item']}/{entry['path']}"
    for place, folder in {"mirror": mirror_folder(), "cache": cache_folder()}.items():
        if folder is not None and (file := project.inside(folder, name)).is_file():
            is_whole = project.sha256(file) == entry["sha256"]
            return place if is_whole else "damaged"
    return "not here"


def fetch(item: str, path: str) -> Path:
    """Return an upstream file, noted as used; download it if necessary."""
    import pooch

    table = entries()
    rows = table[(table["item"] == item) & (table["path"] == path)]
    if rows.empty:
        raise KeyError(f"{item}/{path} is not in data/registry.tsv")
    entry = rows.iloc[0]
    name, digest = f"{item}/{path}", str(entry["sha256"])
    place = verify(entry)
    if place == "damaged":
        raise ValueError(f"{name} on this machine must have sha256 {digest}; remove the file")
    folder = mirror_folder() if place == "mirror" else cache_folder()
    if place == "not here":
        files = pooch.create(
            path=cache_folder(), base_url="", registry={name: digest}, urls={name: entry["url"]}
        )
        try:
            files.fetch(name, downloader=pooch.HTTPDownloader(timeout=20))  # seconds
        except OSError as error:  # errors of requests, too, are of this kind
            raise DataUnreachable(
                f"{name} ({entry['bytes']} bytes, licence {entry['licence']}) is not available "
                f"from {entry['url']} ({type(error).__name__}); set {MIRROR_VARIABLE} to a "
                "folder that contains it"
            ) from None
        except ValueError:
            raise ValueError(f"{name}: the file at {entry['url']} has another sha256") from None
    project.note(f"registry:{name}", digest)
    return (folder or cache_folder()) / name
