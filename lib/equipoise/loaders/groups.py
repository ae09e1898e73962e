"""Groups of documents in any file that has them: a table by columns, or lines of FairWeb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.errors import InputError, input_error, shown
from equipoise.loaders.columns import ColumnFile
from equipoise.loaders.fairweb import numbered_groups, read_memberships, read_target
from equipoise.options import read_pairs
from equipoise.readers import Table, number, read_table
from equipoise.tidy import MISSING, columns_of_sets, tidy_memberships

Kind = Literal["nominal", "ordinal"]
Groups = tuple[pd.DataFrame, AttributeSet]


def _attribute_set(name: str, kind: Kind, target: str) -> AttributeSet | None:
    """The attribute set of a target; None where its groups are left to the memberships."""
    if target in ("", "uniform"):
        return None
    # A file may have a colon in its name.
    if ":" in target and not Path(target).exists():
        shares = {group: number(share) for group, share in read_pairs(target).items()}
        return AttributeSet(name, kind, tuple(shares), np.array(list(shares.values())))
    return read_target(target, name, kind)


def _table_of(file: ColumnFile) -> Table | None:
    """A CSV, JSON Lines or Parquet file as a table; None for lines of FairWeb."""
    # Lines of FairWeb have no commas, a header always has one.
    if not file.head.startswith(b"PAR1") and "," not in file.first_line:
        return None
    return read_table(file.path)


def read_sets(
    path: str | Path,
    name: str = "",
    kinds: Mapping[str, Kind] | None = None,
    targets: Mapping[str, str] | None = None,
    sets: Mapping[str, AttributeSet] | None = None,
    missing: Sequence[str] = MISSING,
) -> list[Groups]:
    """The groups of documents in a file, in the set of a name, or in those called like its columns.

    ``kinds``, ``targets``, ``sets``, ``missing``: as in `read_groups`, the first three by the names
    of the sets.
    """
    names = [name]
    if not name:
        file = ColumnFile(path)
        table = _table_of(file)
        if table is None:
            wanted = f"given with a name, such as GENDER={path}, or have a header docno,gender"
            raise input_error(path, f"shares of groups must be {wanted}", shown(file.first_line))
        names = columns_of_sets(table.frame, str(path))
    kinds, targets = kinds or {}, targets or {}
    return [
        read_groups(path, each, kinds.get(each, "nominal"), targets.get(each, ""), sets, missing)
        for each in names
    ]


def read_groups(
    source: Any,
    name: str,
    kind: Kind = "nominal",
    target: str = "",
    sets: Mapping[str, AttributeSet] | None = None,
    missing: Sequence[str] = MISSING,
) -> Groups:
    """Group memberships of documents, and their attribute set, of anything that has them.

    ``source`` is a data frame, a mapping, or a file: a table, or lines ``topic document p1 p2 ...``
    as in FairWeb. A table has a column document (docno, doc_id), either one column of groups (named
    like the set, or group, or the only one) or one column of shares per group, and optionally
    topic. ``target`` is a file, ``uniform``, or ``group:number,...`` with ordinal groups in their
    order. ``sets`` are attribute sets by name, which need neither kind nor target. ``missing`` is
    as in `equipoise.tidy_memberships`.
    """
    attribute = (sets or {}).get(name) or _attribute_set(name, kind, target)
    if not isinstance(source, (str, Path)):
        label = f"the memberships in {name}"
        return _groups_from_table(source, name, kind, attribute, label, missing)
    file = ColumnFile(source)
    table = _table_of(file)
    if table is not None:
        try:
            return _groups_from_table(table.frame, name, kind, attribute, str(source), missing)
        except InputError as error:
            # Of a data frame rows are counted, of a file lines.
            raise InputError(
                replace(problem, line=problem.line and table.line(problem.line - 1))
                for problem in error.problems
            ) from None
    n_groups = len(file.first_line.split()) - 2
    if file.first_line and n_groups < 2:
        wanted = "a header such as document,group with commas, or lines of topic, document, shares"
        raise input_error(source, wanted, shown(file.first_line), 1)
    if attribute is None:
        groups = numbered_groups(max(n_groups, 2))
        attribute = AttributeSet(name, kind, groups, np.ones(len(groups)))
    return read_memberships(source, attribute), attribute


def _groups_from_table(
    source: Any,
    name: str,
    kind: Kind,
    attribute: AttributeSet | None,
    label: str,
    missing: Sequence[str],
) -> Groups:
    """Groups of a table, of a kind; names are in no order, which columns of shares are."""
    table, found = tidy_memberships(source, name, attribute, label, missing)
    if attribute is not None:
        return table, attribute
    has_shares = isinstance(source, pd.DataFrame) and set(found.groups) <= set(source.columns)
    if kind == "ordinal" and not has_shares:
        wanted = f"given with a target that orders them, such as {name}=low:1,middle:1,high:1"
        raise input_error(label, f"ordinal groups must be {wanted}", column=name)
    return table, replace(found, kind=kind)
