"""Group memberships and target distributions in the formats of the NTCIR FairWeb tasks.

A membership file has a line ``topic document p1 p2 ...`` for each document, a target file one probability a line.

`read_pack` reads the FairWeb-1 pilot pack, four topics with judgements, memberships, targets and three runs, and the
toy set of the same form, both of item ``fairweb``.

References
----------
Tao, S., et al. (2023): Overview of the NTCIR-17 FairWeb-1 Task. Proceedings of NTCIR-17, doi:10.20736/0002001318.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import parse_number
from equipoise.loaders import registry
from equipoise.loaders.trec import read_qrels, read_run, text_lines
from equipoise.problems import InputError, Problem

KINDS: Mapping[str, Literal["nominal", "ordinal"]] = MappingProxyType(
    {
        "R-GENDER": "nominal",
        "R-HINDEX": "ordinal",
        "M-ORIGIN": "nominal",
        "M-RATINGS": "ordinal",
        "T-FOLLOWERS": "ordinal",
        "Y-SUBSCS": "ordinal",
    }
)
"""The attribute sets of the task, by the topic type (researchers, movies, Twitter accounts, YouTube) and name."""

_PACKS = {
    "pilot": (
        "NTCIR/FW1pilotpack",
        "fairweb1pilot",
        "fairweb1pilot.qrels",
        {
            "bm25": "run.bm25-depThre6.bm25-depThre6",
            "qld": "run.qld-depThre6.qld-depThre6",
            "qljm": "run.qljm-depThre6",
        },
    ),
    "toy": ("NTCIR/toy", "toy", "toy.4topics.qrels", {"toyrun1": "toyrun1", "toyrun2": "toyrun2"}),
}

SUM_TOLERANCE = 1e-5
"""How far probabilities printed with a few digits may be from summing to 1."""


def _probability(text: str) -> float:
    number = parse_number(text)
    if not 0 <= number <= 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return number


def read_target(path: str | Path, name: str, kind: Literal["nominal", "ordinal"]) -> AttributeSet:
    """Read a target distribution.

    ``path``: the file: one probability a line, in the order of the groups. ``name``: what to call the attribute
    set. ``kind``: whether the order of the groups matters. Returns: Its target is divided by its sum, which is 1
    but for the digits printed. The files name no groups: they are ``group 1`` and so on.
    """
    problems: list[Problem] = []
    numbers: list[float] = []
    for line, columns in text_lines(path):
        try:
            (text,) = columns
            numbers.append(_probability(text))
        except ValueError:
            problems.append(Problem(str(path), line, None, repr(" ".join(columns)), "one probability"))
    if not problems and len(numbers) < 2:
        problems.append(Problem(str(path), None, None, f"{len(numbers)} probabilities", "at least two"))
    if not problems and abs(sum(numbers) - 1) > SUM_TOLERANCE:
        problems.append(Problem(str(path), None, None, f"probabilities that sum to {sum(numbers):.6g}", "a sum of 1"))
    if problems:
        raise InputError(problems)
    groups = tuple(f"group {number}" for number in range(1, len(numbers) + 1))
    return AttributeSet(name, kind, groups, np.array(numbers))


def read_memberships(path: str | Path, attribute: AttributeSet) -> pd.DataFrame:
    """Read group memberships.

    ``path``: the file, a line ``topic document p1 p2 ...`` for each document; ``.gz`` too. ``attribute``: Whose
    groups the probabilities are for, in that order. Returns DataFrame, columns topic, document and one per group:
    In file order; the probabilities as they stand in the file.
    """
    problems: list[Problem] = []
    seen: set[tuple[str, str]] = set()
    rows: list[tuple[str, str]] = []
    vectors: list[list[float]] = []
    wanted = f"topic, document, {len(attribute.groups)} probabilities ({', '.join(attribute.groups)})"
    for line, columns in text_lines(path):
        if len(columns) != 2 + len(attribute.groups):
            problems.append(Problem(str(path), line, attribute.name, f"{len(columns)} columns", wanted))
            continue
        topic, document, *texts = columns
        try:
            vector = [_probability(text) for text in texts]
        except ValueError as error:
            problems.append(Problem(str(path), line, attribute.name, str(error), "probabilities"))
            continue
        if abs(sum(vector) - 1) > SUM_TOLERANCE:
            found = f"probabilities that sum to {sum(vector):.6g}"
            problems.append(Problem(str(path), line, attribute.name, found, "a sum of 1"))
        if (topic, document) in seen:
            problems.append(Problem(str(path), line, "document", f"{document} again for topic {topic}", "each once"))
        seen.add((topic, document))
        rows.append((topic, document))
        vectors.append(vector)
    if problems:
        raise InputError(problems)
    table = pd.DataFrame(rows, columns=["topic", "document"], dtype="str")
    table[list(attribute.groups)] = np.array(vectors)
    return table


@dataclass(frozen=True)
class Pack:
    """A small test collection for group fairness."""

    runs: pd.DataFrame
    qrels: pd.DataFrame
    memberships: dict[str, pd.DataFrame]
    attributes: dict[str, AttributeSet]


def read_pack(name: Literal["pilot", "toy"]) -> Pack:
    """Read the FairWeb-1 pilot pack, or its toy set.

    Returns: Attribute sets are called as in `KINDS`; the runs of the pilot pack bm25, qld and qljm.
    """
    folder, stem, qrels, runs = _PACKS[name]
    attributes = {
        attribute: read_target(registry.fetch("fairweb", f"{folder}/{attribute}.golddistr"), attribute, kind)
        for attribute, kind in KINDS.items()
    }
    memberships = {
        name: read_memberships(registry.fetch("fairweb", f"{folder}/{stem}.{name}.gmemb"), attribute)
        for name, attribute in attributes.items()
    }
    tables = [read_run(registry.fetch("fairweb", f"{folder}/{file}"), run) for run, file in runs.items()]
    judgements = read_qrels(registry.fetch("fairweb", f"{folder}/{qrels}"))
    return Pack(pd.concat(tables, ignore_index=True), judgements, memberships, attributes)
