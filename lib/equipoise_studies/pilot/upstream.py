"""The FairWeb-1 pilot pack and its toy set as published, of which the facts are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.loaders.fairweb import read_memberships, read_target
from equipoise.loaders.trec import read_qrels, read_run
from equipoise_compendium import registry

PackName = Literal["pilot", "toy"]

_KINDS: dict[str, Literal["nominal", "ordinal"]] = {
    "R-GENDER": "nominal",
    "R-HINDEX": "ordinal",
    "M-ORIGIN": "nominal",
    "M-RATINGS": "ordinal",
    "T-FOLLOWERS": "ordinal",
    "Y-SUBSCS": "ordinal",
}
"""Attribute sets by the kind of topic (researchers, movies, Twitter accounts, YouTube) and name."""

_PILOT_RUNS = {
    "bm25": "run.bm25-depThre6.bm25-depThre6",
    "qld": "run.qld-depThre6.qld-depThre6",
    "qljm": "run.qljm-depThre6",
}


class _Files(NamedTuple):
    """Where the files of a pack are, and how their names begin."""

    folder: str
    stem: str
    qrels: str
    runs: Mapping[str, str]


_PACKS: Mapping[PackName, _Files] = {
    "pilot": _Files("NTCIR/FW1pilotpack", "fairweb1pilot", "fairweb1pilot.qrels", _PILOT_RUNS),
    "toy": _Files(
        "NTCIR/toy", "toy", "toy.4topics.qrels", {"toyrun1": "toyrun1", "toyrun2": "toyrun2"}
    ),
}


def _fetch(pack: PackName, file: str) -> Path:
    return registry.fetch("fairweb", f"{_PACKS[pack].folder}/{file}")


def fetch_runs(pack: PackName) -> pd.DataFrame:
    """The runs, called bm25, qld and qljm in the pilot pack, in the order of their files."""
    runs = []
    for run, file in _PACKS[pack].runs.items():
        runs.append(read_run(_fetch(pack, file), run, order=None))
    return pd.concat(runs, ignore_index=True)


def fetch_qrels(pack: PackName) -> pd.DataFrame:
    """The judgements: columns topic, document, level."""
    return read_qrels(_fetch(pack, _PACKS[pack].qrels))


def fetch_attributes(pack: PackName) -> dict[str, AttributeSet]:
    """The attribute sets with their targets."""
    attributes = {}
    for name, kind in _KINDS.items():
        attributes[name] = read_target(_fetch(pack, f"{name}.golddistr"), name, kind)
    return attributes


def fetch_memberships(pack: PackName) -> dict[str, pd.DataFrame]:
    """The group memberships of documents, by attribute set."""
    memberships = {}
    for name, attribute in fetch_attributes(pack).items():
        path = _fetch(pack, f"{_PACKS[pack].stem}.{name}.gmemb")
        memberships[name] = read_memberships(path, attribute)
    return memberships
