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

from equipoise.loaders import registry
from equipoise.loaders.trec import read_qrels, read_run, text_lines
from equipoise.tables import AttributeSet, InputError, Problem, parse_number

__all__ = ["KINDS", "Pack", "read_memberships", "read_pack", "read_target"]

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
    r"""Read a target distribution.

    Parameters
    ----------
    path : str or Path
        The file: one probability a line, in the order of the groups.
    name : str
        What to call the attribute set.
    kind : {"nominal", "ordinal"}
        Whether the order of the groups matters.

    Returns
    -------
    AttributeSet
        Its target is divided by its sum, which is 1 but for the digits printed. The files name no groups: they are
        ``group 1`` and so on.

    Raises
    ------
    InputError
        With every line that is no probability, or if they do not sum to 1 or are fewer than two.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "target")
    ...     _ = path.write_text("0.5\n0.25\n0.25\n")
    ...     read_target(path, "SIZE", "ordinal").target
    array([0.5 , 0.25, 0.25])
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
    r"""Read group memberships.

    Parameters
    ----------
    path : str or Path
        The file, a line ``topic document p1 p2 ...`` for each document; ``.gz`` too.
    attribute : AttributeSet
        Whose groups the probabilities are for, in that order.

    Returns
    -------
    DataFrame, columns topic, document and one per group
        In file order; the probabilities as they stand in the file.

    Raises
    ------
    InputError
        With every line that has not one probability per group, whose probabilities do not sum to 1, or whose document
        its topic has already.

    Examples
    --------
    >>> import tempfile
    >>> size = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "memberships")
    ...     _ = path.write_text("M002 doc7 0.25 0.75\n")
    ...     read_memberships(path, size)
      topic document  small  large
    0  M002     doc7   0.25   0.75
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
    """A small test collection for group fairness.

    Attributes
    ----------
    runs : DataFrame, columns run, topic, document, rank, score
    qrels : DataFrame, columns topic, document, level
    memberships : dict of str to DataFrame, columns topic, document and one per group
    attributes : dict of str to AttributeSet

    Examples
    --------
    >>> Pack(pd.DataFrame(), pd.DataFrame(), {}, {}).attributes
    {}
    """

    runs: pd.DataFrame
    qrels: pd.DataFrame
    memberships: dict[str, pd.DataFrame]
    attributes: dict[str, AttributeSet]


def read_pack(name: Literal["pilot", "toy"]) -> Pack:
    """Read the FairWeb-1 pilot pack, or its toy set.

    Parameters
    ----------
    name : {"pilot", "toy"}

    Returns
    -------
    Pack
        Attribute sets are called as in `KINDS`; the runs of the pilot pack bm25, qld and qljm.

    Raises
    ------
    KeyError
        If there is no such pack.
    DataUnreachable
        If a file is not on this machine and cannot be fetched.

    Examples
    --------
    >>> read_pack("none")
    Traceback (most recent call last):
        ...
    KeyError: 'none'
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
