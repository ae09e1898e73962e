"""The front door: runs, judgements and memberships as people hold them, made the tidy tables that measures take.

Data frames with the field's names of columns, dictionaries of dictionaries (pytrec_eval, ranx),
named tuples (ir_measures, ir_datasets), and objects that know how to become a data frame (ranx,
Arrow, Polars). A table that is tidy already is returned as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.problems import listed, refused, shown

TOLERANCE = 1e-5
"""How far shares printed with a few digits may be from summing to 1."""

NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "run": ("run", "run_id", "run_name", "system", "tag"),
        "topic": ("topic", "query_id", "qid", "q_id", "topic_id", "query"),
        "document": ("document", "doc_id", "docno", "docid", "document_id", "doc"),
        "rank": ("rank",),
        "score": ("score",),
        "level": ("level", "relevance", "label", "rel", "grade", "score"),
        "group": ("group",),
        "share": ("share", "probability", "weight"),
    }
)
"""What the field calls each column, the library's own name first; the first that a table has is taken."""


def _taken(table: pd.DataFrame, wanted: Iterable[str]) -> dict[str, str]:
    """The column of a table that each wanted one is, where it has one."""
    found = {
        name: next((own for own in NAMES[name] if own in table.columns), None) for name in wanted
    }
    return {name: own for name, own in found.items() if own is not None}


def _ids(values: pd.Series, what: str, column: str) -> pd.Series:
    if (without := values.isna() | (values == "")).any():
        raise refused(what, f"no {column} in {without.sum()} rows", f"a {column} in each")
    return values if pd.api.types.is_string_dtype(values) else values.astype("str")


def _numbers(values: pd.Series, what: str, column: str) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    if len(bad := values[~np.isfinite(numbers.astype("float64"))]):
        raise refused(what, f"{shown(bad.iloc[0])} as {column}", "a finite number")
    return numbers


def _frame(held: Any, what: str, value: str) -> pd.DataFrame:
    """Whatever is held as a data frame, under the names that it uses itself."""
    if isinstance(held, pd.DataFrame):
        return held
    for convert in ("to_dataframe", "to_pandas"):
        if hasattr(held, convert):
            return getattr(held, convert)()
    if isinstance(held, Mapping):
        if not all(isinstance(inner, Mapping) for inner in held.values()):
            raise refused(
                what, shown(held), f"a {value} by document by topic, such as {{'q1': {{'d1': 1}}}}"
            )
        rows = [
            (topic, document, number)
            for topic, inner in held.items()
            for document, number in inner.items()
        ]
        return pd.DataFrame(rows, columns=["topic", "document", value])
    rows = (
        list(held) if isinstance(held, Iterable) and not isinstance(held, (str, bytes)) else [held]
    )
    if not rows or not all(isinstance(row, tuple) and hasattr(row, "_fields") for row in rows):
        raise refused(
            what,
            shown(held),
            "a table, a dict of dicts, or named tuples with query_id, doc_id and so on",
        )
    return pd.DataFrame(rows)


def _columns(table: pd.DataFrame, needed: Sequence[str], what: str) -> dict[str, str]:
    """The columns that are needed; those that a table lacks are told in a sentence, beside those that it has."""
    taken = _taken(table, needed)
    if lacking := [name for name in needed if name not in taken]:
        wanted = (
            f"{name} (or {', '.join(NAMES[name][1:])})" if NAMES[name][1:] else name
            for name in lacking
        )
        raise refused(
            what, f"columns {listed(table.columns) or 'none'}", f"also {' and '.join(wanted)}"
        )
    return taken


def tidy_runs(held: Any) -> pd.DataFrame:
    """Ranked lists as columns run, topic, document, rank and, where there are scores, score.

    ``held``: a run; or several, by name. Without a rank, lists are ordered by score as trec_eval
    does, ties by document id, descending. A run without a name is called ``run``.

    >>> tidy_runs({"q1": {"d1": 0.5, "d2": 2.0}})
       run topic document  rank  score
    0  run    q1       d2     1    2.0
    1  run    q1       d1     2    0.5
    """
    what = "the runs"
    if isinstance(held, Mapping) and held:
        inner = next(iter(held.values()))
        if not isinstance(inner, Mapping) or isinstance(next(iter(inner.values()), 0.0), Mapping):
            return pd.concat(
                [tidy_runs(run).assign(run=str(name)) for name, run in held.items()],
                ignore_index=True,
            )
    table = _frame(held, what, "score")
    taken = _taken(table, ("run", "rank", "score")) | _columns(table, ("topic", "document"), what)
    if "rank" not in taken:
        _columns(table, ("score",), what)
    name = getattr(held, "name", None) if not isinstance(held, pd.DataFrame) else None
    tidy = pd.DataFrame(
        {"run": table[taken["run"]] if "run" in taken else str(name or "run")}, index=table.index
    )
    for column in ("topic", "document", "rank", "score"):
        if column in taken:
            tidy[column] = table[taken[column]]
    for column in tidy.columns:
        tidy[column] = (_numbers if column in ("rank", "score") else _ids)(
            tidy[column], what, column
        )
    if set(tidy.columns) <= set(table.columns) and tidy.dtypes.equals(table[tidy.columns].dtypes):
        return table  # of a reader: rows in the order of the file
    run, topic = (pd.factorize(tidy[column])[0] for column in ("run", "topic"))
    if "rank" in taken:
        return tidy.iloc[np.lexsort((tidy["rank"], topic, run))].reset_index(drop=True)
    later = tidy["document"].rank(method="dense")
    tidy = tidy.iloc[np.lexsort((-later, -tidy["score"], topic, run))].reset_index(drop=True)
    tidy.insert(3, "rank", tidy.groupby(["run", "topic"], sort=False).cumcount() + 1)
    return tidy


def tidy_qrels(held: Any) -> pd.DataFrame:
    """Relevance judgements as columns topic, document and level; levels below 0 are level 0, as in a file.

    >>> tidy_qrels({"q1": {"d1": 2}})
      topic document  level
    0    q1       d1      2
    """
    what = "the qrels"
    table = _frame(held, what, "level")
    taken = _columns(table, ("topic", "document", "level"), what)
    tidy = pd.DataFrame(
        {column: _ids(table[taken[column]], what, column) for column in ("topic", "document")}
    )
    level = _numbers(table[taken["level"]], what, "level")
    if (odd := level != np.floor(level)).any():
        raise refused(what, f"{level[odd].iloc[0]:g} as level", "a whole number")
    return tidy.assign(level=level.astype("int64").clip(lower=0))


def _by_group(held: Any, what: str) -> pd.DataFrame:
    """Memberships as a data frame: of documents by their group, by shares of groups, or of any other kind."""
    if not isinstance(held, Mapping):
        return _frame(held, what, "group")
    if all(isinstance(member, Mapping) for member in held.values()):
        return (
            pd.DataFrame.from_dict(held, orient="index")
            .fillna(0.0)
            .rename_axis("document")
            .reset_index()
        )
    return pd.DataFrame({"document": list(held), "group": list(held.values())})


def tidy_memberships(
    held: Any, name: str, attribute: AttributeSet | None = None, file: str = ""
) -> tuple[pd.DataFrame, AttributeSet]:
    """Group memberships as columns document, a share for each group, and topic where they hold for one topic only.

    ``held``: the group of each document, or the shares of groups; a document named with several
    groups belongs to each alike. Without an attribute set the groups are those found, in the order
    of their names, nominal, wanted alike.

    >>> table, sets = tidy_memberships({"d1": "large", "d2": "small"}, "SIZE")
    >>> table
      document  large  small
    0       d1    1.0    0.0
    1       d2    0.0    1.0
    """
    what = file or f"the memberships in {name}"
    table = _by_group(held, what)
    taken = _taken(table, ("topic", "group", "share")) | _columns(table, ("document",), what)
    ids = {
        column: _ids(table[taken[column]], what, column)
        for column in ["topic", "document"]
        if column in taken
    }
    others = [
        str(column) for column in table.columns if column not in {*taken.values(), *NAMES["topic"]}
    ]
    if attribute is not None and set(attribute.groups) <= set(map(str, table.columns)):
        groups = list(attribute.groups)
    elif "group" in taken:
        return _shares_of_groups(table, ids, taken, name, attribute, what)
    elif attribute is not None or len(others) < 2:
        wanted = listed(attribute.groups) if attribute is not None else "each group"
        raise refused(
            what, f"columns {listed(table.columns)}", f"also group, or columns for {wanted}"
        )
    else:
        groups = others
    table = table.rename(columns=str)
    tidy = pd.DataFrame(ids).assign(
        **{group: _numbers(table[group], what, group) for group in groups}
    )
    sums = tidy[groups].sum(axis=1)
    if (bad := (tidy[groups] < 0).any(axis=1) | ((sums - 1).abs() > TOLERANCE)).any():
        row = tidy[bad].iloc[0]
        raise refused(
            what,
            f"shares {list(row[groups])} of document {row['document']}",
            "shares from 0, with a sum of 1",
        )
    return tidy, attribute or AttributeSet(name, "nominal", tuple(groups), np.ones(len(groups)))


def _shares_of_groups(
    table: pd.DataFrame,
    ids: Mapping[str, pd.Series],
    taken: Mapping[str, str],
    name: str,
    attribute: AttributeSet | None,
    what: str,
) -> tuple[pd.DataFrame, AttributeSet]:
    group = _ids(table[taken["group"]], what, "group").str.strip()
    groups = list(attribute.groups) if attribute else sorted(group.unique())
    if (blank := group == "").any():
        raise refused(what, f"no group in {blank.sum()} rows", "a group in each")
    if len({name.casefold() for name in groups}) < len(groups):
        raise refused(
            what, f"groups that differ in capitals only, {listed(groups)}", "one way to write each"
        )
    if unknown := sorted(set(group) - set(groups)):
        raise refused(what, f"group {listed(unknown)}", f"one of {listed(groups)}")
    if len(groups) < 2:
        raise refused(what, f"one group, {listed(groups)}", "two groups or more")
    share = (
        _numbers(table[taken["share"]], what, "share")
        if "share" in taken
        else pd.Series(1.0, table.index)
    )
    places = pd.DataFrame(ids).assign(group=pd.Categorical(group, groups), share=share)
    if (again := places.duplicated([*ids, "group"])).any():
        row = places.loc[again].iloc[0]
        raise refused(
            what, f"document {row['document']} with group {row['group']} twice", "each once"
        )
    if (share <= 0).any():
        raise refused(what, f"a share of {share.min():g}", "shares above 0")
    wide = places.pivot_table(
        index=list(ids), columns="group", values="share", fill_value=0.0, observed=False, sort=False
    )
    wide = (
        wide.div(wide.sum(axis=1), axis=0)
        .reindex(columns=groups)
        .set_axis(groups, axis=1)
        .reset_index()
    )
    return wide, attribute or AttributeSet(name, "nominal", tuple(groups), np.ones(len(groups)))


def tidy_sets(
    memberships: Any, attributes: Any
) -> tuple[dict[str, pd.DataFrame], dict[str, AttributeSet]]:
    """Memberships and attribute sets by name; ``memberships`` by the name of a set, or of one set called ``group``.

    ``attributes``: `AttributeSet` by name, or what `attribute_sets` takes; without any, the groups
    found.
    """
    plain = {
        name: entry for name, entry in attributes.items() if not isinstance(entry, AttributeSet)
    }
    sets = {**attributes, **(attribute_sets(plain) if plain else {})}
    if not isinstance(memberships, Mapping) or (
        memberships and not set(memberships) & set(sets) and _one(memberships)
    ):
        memberships = {next(iter(sets)) if len(sets) == 1 else "group": memberships}
    if sets and set(memberships) != set(sets):
        raise ValueError(
            f"memberships in {sorted(memberships)}, sets {sorted(sets)}: the same are needed"
        )
    found = {
        name: tidy_memberships(held, name, sets.get(name)) for name, held in memberships.items()
    }
    return {name: table for name, (table, _) in found.items()}, {
        name: own for name, (_, own) in found.items()
    }


def _one(memberships: Mapping[Any, Any]) -> bool:
    """Whether a dictionary is of documents, not of sets: its values are groups, or shares by group."""
    value = next(iter(memberships.values()))
    return isinstance(value, (str, int)) or (
        isinstance(value, Mapping) and isinstance(next(iter(value.values()), ""), Real)
    )
