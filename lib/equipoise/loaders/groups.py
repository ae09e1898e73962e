"""Groups of documents in any file that has them: a table by columns, or lines of FairWeb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import is_parquet, read_source
from equipoise.loaders.fairweb import numbered_groups, read_memberships, read_target
from equipoise.loaders.trec import first_line
from equipoise.options import read_pairs
from equipoise.problems import refused, shown
from equipoise.tidy import columns_of_sets, tidy_memberships

Kind = Literal["nominal", "ordinal"]
Groups = tuple[pd.DataFrame, AttributeSet]


def _attribute_set(name: str, kind: Kind, target: str) -> AttributeSet | None:
    """The attribute set of a target; None where its groups are left to the memberships."""
    if target in ("", "uniform"):
        return None
    # A file may have a colon in its name.
    if ":" in target and not Path(target).exists():
        shares = read_pairs(target)
        return AttributeSet(name, kind, tuple(shares), np.array(list(shares.values())))
    return read_target(target, name, kind)


def _table_of(path: Path) -> pd.DataFrame | None:
    """A CSV, JSON Lines or Parquet file as a data frame; None for lines of FairWeb."""
    # Lines of FairWeb have no commas, a header always has one.
    if not is_parquet(path) and "," not in first_line(path):
        return None
    source = read_source(path)
    source.problems.refuse()
    return source.columns


def read_sets(
    path: str | Path,
    name: str = "",
    kinds: Mapping[str, Kind] | None = None,
    targets: Mapping[str, str] | None = None,
    sets: Mapping[str, AttributeSet] | None = None,
) -> list[Groups]:
    """The groups of documents in a file, in the set of a name, or in those called like its columns.

    ``kinds``, ``targets``, ``sets``: as in `read_groups`, by the names of the sets.
    """
    kinds, targets = kinds or {}, targets or {}
    if name:
        return [read_groups(path, name, kinds.get(name, "nominal"), targets.get(name, ""), sets)]
    table = _table_of(Path(path))
    if table is None:
        expected = f"a name for them, such as GENDER={path}, or a header such as docno,gender"
        raise refused(path, f"{shown(first_line(path))}, shares of groups without names", expected)
    groups = []
    for column in columns_of_sets(table, str(path)):
        kind, target = kinds.get(column, "nominal"), targets.get(column, "")
        groups.append(_groups_of_table(table, path, column, kind, target, sets))
    return groups


def read_groups(
    path: str | Path,
    name: str,
    kind: Kind = "nominal",
    target: str = "",
    sets: Mapping[str, AttributeSet] | None = None,
) -> Groups:
    """Group memberships of documents, and their attribute set, of any file that has them.

    ``path``: a table (CSV or Parquet) with a column document (docno, doc_id), and a column of
    groups called like the set, or group, or the only one, or a column of shares for each group, and
    maybe topic; or lines ``topic document p1 p2 ...`` as of FairWeb. ``target``: a file,
    ``uniform``, or ``group:number,...``, whose order is that of ordinal groups. ``sets``: attribute
    sets by name, which need neither kind nor target.
    """
    path = Path(path)
    table = _table_of(path)
    if table is not None:
        return _groups_of_table(table, path, name, kind, target, sets)
    line = first_line(path)
    n_groups = len(line.split()) - 2
    if line and n_groups < 2:
        expected = (
            "a header such as document,group with commas, "
            "or lines of topic, document and shares between blanks"
        )
        raise refused(path, shown(line), expected)
    attribute = (sets or {}).get(name) or _attribute_set(name, kind, target)
    if attribute is None:
        groups = numbered_groups(n_groups)
        attribute = AttributeSet(name, kind, groups, np.ones(max(n_groups, 0)))
    return read_memberships(path, attribute), attribute


def groups_in(
    source: Any,
    name: str,
    kind: Kind = "nominal",
    target: str = "",
) -> Groups:
    """Group memberships as `read_groups` has them, from a file or whatever else holds them."""
    if isinstance(source, (str, Path)):
        return read_groups(source, name, kind, target)
    attribute = _attribute_set(name, kind, target)
    groups = tidy_memberships(source, name, attribute)
    return groups if attribute is not None else _of_kind(groups, kind, source, f"groups of {name}")


def _of_kind(groups: Groups, kind: Kind, source: Any, label: str) -> Groups:
    """Groups that were found, of a kind; names are in no order, which columns of shares are."""
    table, attribute = groups
    is_of_shares = isinstance(source, pd.DataFrame) and set(attribute.groups) <= set(source.columns)
    if kind == "ordinal" and not is_of_shares:
        expected = f"their order with the target, such as {attribute.name}=low:1,middle:1,high:1"
        raise refused(label, "ordinal groups in no order", expected, column=attribute.name)
    return table, replace(attribute, kind=kind)


def _groups_of_table(
    table: pd.DataFrame,
    path: str | Path,
    name: str,
    kind: Kind,
    target: str,
    sets: Mapping[str, AttributeSet] | None,
) -> Groups:
    attribute = (sets or {}).get(name) or _attribute_set(name, kind, target)
    groups = tidy_memberships(table, name, attribute, str(path))
    return groups if attribute is not None else _of_kind(groups, kind, table, str(path))
