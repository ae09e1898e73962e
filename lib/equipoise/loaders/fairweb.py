"""Group memberships and target distributions in the formats of the NTCIR FairWeb tasks.

A membership file has a line ``topic document p1 p2 ...`` for each document, a target file one
probability a line.

References
----------
Tao, S., et al. (2023): Overview of the NTCIR-17 FairWeb-1 Task. Proceedings of NTCIR-17,
doi:10.20736/0002001318.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import parse_number, read_bytes
from equipoise.loaders.white_space import (
    one_blank,
    quick_columns,
    quick_frame,
    quick_numbers,
    text_lines,
    text_table,
)
from equipoise.problems import Problems, refused, shown

_TOLERANCE = 1e-5
"""How far probabilities printed with a few digits may be from summing to 1."""


def _probability(text: str) -> float:
    number = parse_number(text)
    if not 0 <= number <= 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return number


def _other_sum(numbers: list[float]) -> str:
    """What is wrong with the sum of probabilities, if anything."""
    return (
        f"probabilities that sum to {sum(numbers):.6g}"
        if abs(sum(numbers) - 1) > _TOLERANCE
        else ""
    )


def numbered_groups(count: int) -> tuple[str, ...]:
    """Names of groups that have none."""
    return tuple(f"group {number}" for number in range(1, count + 1))


def read_target(path: str | Path, name: str, kind: Literal["nominal", "ordinal"]) -> AttributeSet:
    """Read a target distribution: one number a line, in the order of the groups.

    As everywhere they are non-negative, and divided by their sum. ``name`` is what to call the
    attribute set. The files name no groups: they are ``group 1`` and so on.
    """
    problems, numbers = Problems(), []
    for line, columns in zip(*text_lines(read_bytes(path), path), strict=True):
        try:
            (text,) = columns.as_py()
            numbers.append(parse_number(text))
        except ValueError:
            problems.add(path, int(line), None, shown(" ".join(columns.as_py())), "one number")
    problems.refuse()
    try:
        return AttributeSet(name, kind, numbered_groups(len(numbers)), np.array(numbers))
    except ValueError as error:
        found = str(error).removeprefix(f"attribute set {name}: ")
        raise refused(path, found, "non-negative numbers for two groups or more") from None


def read_memberships(path: str | Path, attribute: AttributeSet) -> pd.DataFrame:
    """Read group memberships: a table with the columns topic, document and one per group, in file order.

    The file has a line ``topic document p1 p2 ...`` for each document, with the groups in their
    order, or is a .gz of that; the probabilities are taken as they stand.
    """
    content = read_bytes(path)
    table = _quick_memberships(content, list(attribute.groups))
    return _slow_memberships(content, path, attribute) if table is None else table


def _quick_memberships(content: bytes, groups: list[str]) -> pd.DataFrame | None:
    """Memberships in which all is in order; None where something may not be."""
    lines, names = one_blank(content), [str(place) for place in range(2 + len(groups))]
    table = quick_columns(lines, names) if lines else None
    if table is None or not table.num_rows:
        return None
    numbers = [quick_numbers(column) for column in table.columns[2:]]
    vectors = [own for own in numbers if own is not None and (own >= 0).all() and (own <= 1).all()]
    if len(vectors) < len(groups) or (np.abs(sum(vectors) - np.float64(1)) > _TOLERANCE).any():
        return None
    ids = quick_frame(
        table.select(names[:2]).rename_columns(["topic", "document"]), ["topic", "document"]
    )
    return ids if ids is None else ids.assign(**dict(zip(groups, vectors, strict=True)))


def _slow_memberships(content: bytes, path: str | Path, attribute: AttributeSet) -> pd.DataFrame:
    """Memberships in which something is unusual or wrong, which is told by its line."""
    problems, groups, vectors = Problems(), list(attribute.groups), []
    wanted = f"topic, document, {len(groups)} probabilities ({', '.join(groups)})"
    table = text_table(
        text_lines(content, path),
        ["topic", "document", *groups],
        wanted,
        path,
        problems,
        attribute.name,
    )
    for line, texts in zip(table["line"], table[groups].to_numpy().tolist(), strict=True):
        try:
            vectors.append([_probability(text) for text in texts])
            found = _other_sum(vectors[-1])
        except ValueError as error:
            found = str(error)
        if found:
            problems.add(path, line, attribute.name, found, "probabilities with a sum of 1")
    problems.add_repeats(
        path, table, ["document", "topic"], "document", "each document once in the memberships"
    )
    problems.refuse()
    table[groups] = np.array(vectors)
    return table.drop(columns="line")
