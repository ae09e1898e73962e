"""Group memberships and target distributions in the formats of the NTCIR FairWeb tasks.

A membership file has a line ``topic document p1 p2 ...`` for each document, a target file one
probability a line.

References
----------
Tao, S., et al. (2023): Overview of the NTCIR-17 FairWeb-1 Task. Proceedings of NTCIR-17,
doi:10.20736/0002001318.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import parse_number, read_bytes, read_text
from equipoise.loaders.white_space import numbers_of, read_lines
from equipoise.problems import Problems, refused, shown

_TOLERANCE = 1e-5
"""How far probabilities printed with a few digits may be from summing to 1."""


MOST_GROUPS = 1000
"""Of an attribute set; a file of more numbers is no target."""


def numbered_groups(count: int) -> tuple[str, ...]:
    """Names of groups that have none."""
    return tuple(f"group {number}" for number in range(1, count + 1))


def read_target(path: str | Path, name: str, kind: Literal["nominal", "ordinal"]) -> AttributeSet:
    """Read a target distribution: one number a line, in the order of the groups.

    As everywhere they are non-negative, and divided by their sum. ``name`` is what to call the
    attribute set. The files name no groups: they are ``group 1`` and so on.
    """
    problems, numbers = Problems(), []
    for line_number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        try:
            (word,) = words
            numbers.append(parse_number(word))
        except ValueError:
            problems.add(path, line_number, None, shown(" ".join(words)), "one number")
    problems.refuse()
    if len(numbers) > MOST_GROUPS:
        expected = f"a number for each of at most {MOST_GROUPS:,} groups"
        raise refused(path, f"{len(numbers):,} numbers", expected)
    try:
        return AttributeSet(name, kind, numbered_groups(len(numbers)), np.array(numbers))
    except ValueError as error:
        problem = str(error).removeprefix(f"attribute set {name}: ")
        raise refused(path, problem, "non-negative numbers for two groups or more") from None


def _what_is_wrong(texts: Sequence[str]) -> str:
    """Why texts are no probabilities with a sum of 1."""
    numbers = []
    for text in texts:
        try:
            number = parse_number(text)
        except ValueError as error:
            return str(error)
        if not 0 <= number <= 1:
            return f"{text} is not between 0 and 1"
        numbers.append(number)
    return f"probabilities that sum to {sum(numbers):.6g}"


def read_memberships(path: str | Path, attribute: AttributeSet) -> pd.DataFrame:
    """Read group memberships: a table with the columns topic, document and one per group.

    The file has a line ``topic document p1 p2 ...`` for each document, with the groups in their
    order, or is a .gz of that; the probabilities are taken as they stand. Rows are in file order.
    """
    groups = list(attribute.groups)
    # Columns are numbered, as a group may be called topic.
    columns = [str(place) for place in range(2 + len(groups))]
    expected = f"topic, document, {len(groups)} probabilities ({', '.join(groups)})"
    table, explainer = read_lines(read_bytes(path), columns, path, expected, attribute.name)
    shares = np.column_stack([numbers_of(table[name], parse_number) for name in columns[2:]])

    # (documents, groups); a comparison with NaN is false
    is_probability = ((shares >= 0) & (shares <= 1)).all(axis=1)
    is_sound = is_probability & (np.abs(shares.sum(axis=1) - 1) <= _TOLERANCE)

    def problem(row: int) -> str:
        return _what_is_wrong([table[name][row].as_py() for name in columns[2:]])

    expected = "probabilities with a sum of 1"
    explainer.report(np.flatnonzero(~is_sound), attribute.name, problem, expected)
    ids = table.select(columns[:2]).rename_columns(["topic", "document"])
    memberships = ids.to_pandas().astype("str")
    expected = "each document once in the memberships"
    explainer.report_repeats(memberships, ["document", "topic"], expected)
    explainer.problems.refuse()
    for place, group in enumerate(groups):
        memberships[group] = shares[:, place]
    return memberships
