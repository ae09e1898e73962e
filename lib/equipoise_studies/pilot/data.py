"""The test collections of the pilot study: the FairWeb-1 pilot pack and its toy set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.loaders.fairweb import read_memberships, read_target
from equipoise.loaders.trec import read_qrels, read_run
from equipoise_compendium import registry

_KINDS: dict[str, Literal["nominal", "ordinal"]] = {
    "R-GENDER": "nominal",
    "R-HINDEX": "ordinal",
    "M-ORIGIN": "nominal",
    "M-RATINGS": "ordinal",
    "T-FOLLOWERS": "ordinal",
    "Y-SUBSCS": "ordinal",
}
"""The attribute sets of the task, by the topic type (researchers, movies, Twitter accounts, YouTube) and name."""


_PILOT_RUNS = {
    "bm25": "run.bm25-depThre6.bm25-depThre6",
    "qld": "run.qld-depThre6.qld-depThre6",
    "qljm": "run.qljm-depThre6",
}


_PACKS = {
    "pilot": ("NTCIR/FW1pilotpack", "fairweb1pilot", "fairweb1pilot.qrels", _PILOT_RUNS),
    "toy": ("NTCIR/toy", "toy", "toy.4topics.qrels", {"toyrun1": "toyrun1", "toyrun2": "toyrun2"}),
}


@dataclass(frozen=True)
class Pack:
    """A small test collection for group fairness."""

    runs: pd.DataFrame
    qrels: pd.DataFrame
    memberships: dict[str, pd.DataFrame]
    attributes: dict[str, AttributeSet]


def read_pack(name: Literal["pilot", "toy"]) -> Pack:
    """Read the FairWeb-1 pilot pack, with runs called bm25, qld and qljm, or its toy set, of four topics."""
    folder, stem, qrels, runs = _PACKS[name]
    attributes = {
        attribute: read_target(
            registry.fetch("fairweb", f"{folder}/{attribute}.golddistr"), attribute, kind
        )
        for attribute, kind in _KINDS.items()
    }
    memberships = {
        name: read_memberships(
            registry.fetch("fairweb", f"{folder}/{stem}.{name}.gmemb"), attribute
        )
        for name, attribute in attributes.items()
    }
    tables = [
        read_run(registry.fetch("fairweb", f"{folder}/{file}"), run) for run, file in runs.items()
    ]
    judgements = read_qrels(registry.fetch("fairweb", f"{folder}/{qrels}"))
    return Pack(pd.concat(tables, ignore_index=True), judgements, memberships, attributes)
