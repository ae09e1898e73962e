"""Runs, judgements, scores and memberships of users as tidy tables.

Accepted are files, data frames with the field's names of columns, dictionaries of dictionaries
(pytrec_eval, ranx), objects that convert to a data frame (ranx), and named tuples (ir_measures). A
table that is tidy already is returned unchanged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import by_score
from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.errors import (
    InputError,
    Note,
    input_error,
    listed,
    need_columns,
    refuse_twice,
    shown,
)
from equipoise.loaders.scores import OTHER_NAMES, read_scores
from equipoise.loaders.trec import read_qrels, read_runs

TOLERANCE = 1e-5
"""How far shares with a few digits may be from a sum of 1."""

NAMES: Mapping[str, Sequence[str]] = {
    "run": ("run", "run_id", "run_name", "system", "tag"),
    "topic": ("topic", "query_id", "qid", "q_id", "topic_id", "query"),
    "document": ("document", "doc_id", "docno", "docid", "document_id", "doc"),
    "rank": ("rank",),
    "score": ("score",),
    "level": ("level", "relevance", "label", "rel", "grade", "score"),
    "group": ("group",),
    "share": ("share", "probability", "weight"),
}
"""The field's names of each column, ours first; the first that a table has is used."""


def _frame(source: Any, label: str, value: str) -> pd.DataFrame:
    """Return rows as a data frame, under their own names of columns."""
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "to_dataframe"):  # ranx
        return source.to_dataframe()
    if isinstance(source, Mapping):
        rows = []
        for topic, numbers in source.items():
            if not isinstance(numbers, Mapping):
                wanted = f"a {value} by document by topic, such as {{'q1': {{'d1': 1}}}}"
                raise input_error(label, wanted, shown(source))
            rows += [(topic, document, number) for document, number in numbers.items()]
        return pd.DataFrame(rows, columns=["topic", "document", value])
    is_list = isinstance(source, Iterable) and not isinstance(source, (str, bytes))
    entries = list(source) if is_list else []
    if not entries or not all(hasattr(entry, "_fields") for entry in entries):
        wanted = "a table, a dict of dicts, or named tuples with query_id, doc_id and so on"
        raise input_error(label, wanted, shown(source))
    return pd.DataFrame(entries)


def _names_in(table: pd.DataFrame, columns: Iterable[str]) -> dict[str, str]:
    """Return the name that each of our columns has in a table, of those that it has."""
    names = {}
    for column in columns:
        found = [name for name in NAMES[column] if name in table.columns]
        if found:
            names[column] = found[0]
    return names


def _required_names(table: pd.DataFrame, columns: Sequence[str], label: str) -> dict[str, str]:
    names = _names_in(table, columns)
    missing = [" or ".join(NAMES[column]) for column in columns if column not in names]
    if missing:
        wanted = f"a table with the columns {' and '.join(missing)}"
        raise input_error(label, wanted, listed(table.columns) or "none")
    return names


def _ids(values: pd.Series, label: str, column: str) -> pd.Series:
    is_empty = values.isna() | (values == "")
    if is_empty.any():
        line = int(np.flatnonzero(is_empty)[0]) + 1
        found = f"no {column} in {is_empty.sum()} of {len(values)} rows"
        raise input_error(label, f"a table with a {column} in each row", found, line)
    return values if pd.api.types.is_string_dtype(values) else values.astype("str")


def _numbers(values: pd.Series, label: str, column: str) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = values[~np.isfinite(numbers.astype("float64"))]
    if len(wrong):
        raise input_error(label, "a finite number", shown(wrong.iloc[0]), column=column)
    return numbers


def _row_error(label: str, ids: pd.DataFrame, is_bad: Any, wanted: str, found: str) -> InputError:
    """The error of the first bad row, which is counted from 1, and named by its ids."""
    place = int(np.flatnonzero(is_bad)[0])
    names = ", ".join(f"{column} {ids[column].iloc[place]}" for column in ids.columns)
    return input_error(label, wanted, f"{found} for {names}", int(ids.index[place]) + 1)


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, Path))


# --- runs and judgements --------------------------------------------------------------------------


def tidy_runs(source: Any) -> pd.DataFrame:
    """Return rankings as columns run, topic, document, rank and, where there are scores, score.

    ``source`` is a run, several runs by name or in a list, or files, whose runs are named by their
    tags. Without a rank, rankings are ordered by score as trec_eval does, ties by document id,
    descending. A run without a name is called ``run``.

    >>> tidy_runs({"q1": {"d1": 0.5, "d2": 2.0}})
       run topic document  rank  score
    0  run    q1       d2     1    2.0
    1  run    q1       d1     2    0.5
    """
    label = "the runs"
    if isinstance(source, Mapping) and _is_by_run(source):
        runs = [tidy_runs(run).assign(run=str(name)) for name, run in source.items()]
        return pd.concat(runs, ignore_index=True)
    is_list = isinstance(source, (list, tuple)) and source and not isinstance(source[0], tuple)
    if _is_path(source) or (is_list and all(map(_is_path, source))):
        return read_runs(source)
    if is_list:
        runs = [tidy_runs(run) for run in source]
        names = pd.Series([name for run in runs for name in run["run"].unique()])
        if names.duplicated().any():
            wanted = "a dictionary of the runs by their names"
            raise input_error(label, wanted, f"several called {names[names.duplicated()].iloc[0]}")
        return pd.concat(runs, ignore_index=True)
    table = _frame(source, label, "score")
    names = _names_in(table, ["run", "rank", "score"])
    names |= _required_names(table, ["topic", "document"], label)
    if "rank" not in names:
        _required_names(table, ["score"], label)

    name = None if isinstance(source, pd.DataFrame) else getattr(source, "name", None)
    tidy = pd.DataFrame({"run": str(name or "run")}, index=table.index)
    for column in ("run", "topic", "document"):
        if column in names:
            tidy[column] = _ids(table[names[column]], label, column)
    for column in ("rank", "score"):
        if column in names:
            tidy[column] = _numbers(table[names[column]], label, column)
    is_tidy = "rank" in tidy and set(tidy.columns) <= set(table.columns)
    if is_tidy and tidy.dtypes.equals(table[tidy.columns].dtypes):
        return table  # of a reader: rows in the order of the file
    run, topic = pd.factorize(tidy["run"])[0], pd.factorize(tidy["topic"])[0]
    if "rank" in tidy:
        order = np.lexsort((tidy["rank"], topic, run))
        return tidy.iloc[order].reset_index(drop=True)
    order = by_score(run * (topic.max(initial=0) + 1) + topic, tidy["document"], tidy["score"])
    ordered = tidy.iloc[order].reset_index(drop=True)
    ordered.insert(3, "rank", ordered.groupby(["run", "topic"], sort=False).cumcount() + 1)
    return ordered


def _is_by_run(source: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary has runs by name, not a run's documents by topic."""
    if not source:
        return False
    value = next(iter(source.values()))
    return not isinstance(value, Mapping) or isinstance(next(iter(value.values()), 0.0), Mapping)


def tidy_qrels(source: Any) -> pd.DataFrame:
    """Return relevance judgements as columns topic, document and level; levels below 0 become 0.

    ``source`` may be a file.

    >>> tidy_qrels({"q1": {"d1": 2}})
      topic document  level
    0    q1       d1      2
    """
    label = "the qrels"
    if _is_path(source):
        return read_qrels(source)
    table = _frame(source, label, "level")
    names = _required_names(table, ["topic", "document", "level"], label)
    level = _numbers(table[names["level"]], label, "level")
    is_fraction = level != np.floor(level)
    if is_fraction.any():
        found = f"{level[is_fraction].iloc[0]:g}"
        raise input_error(label, "a whole number", found, column="level")
    tidy = pd.DataFrame(
        {column: _ids(table[names[column]], label, column) for column in ("topic", "document")}
    )
    return tidy.assign(level=level.astype("int64").clip(lower=0))


# --- scores ---------------------------------------------------------------------------------------


def tidy_scores(source: Any) -> pd.DataFrame:
    """Return scores by topic as columns run, topic, measure, value and maybe others.

    ``source`` is one file or several, a data frame (such as PyTerrier's ``perquery``), evaluated
    runs of ranx, or the metrics of `ir_measures.iter_calc` by the name of the run.

    >>> from ir_measures import Metric, nDCG
    >>> tidy_scores({"bm25": [Metric("q1", nDCG @ 10, 0.5)]})
        run topic  measure  value
    0  bm25    q1  nDCG@10    0.5
    """
    if isinstance(source, pd.DataFrame):
        names = source.columns
        new_names = {other: name for other, name in OTHER_NAMES.items() if name not in names}
        table = source.rename(columns=new_names)
        need_columns(table, ["run", "topic", "measure", "value"])
        return table
    if _is_path(source):
        return read_scores(source)
    entries = source.items() if isinstance(source, Mapping) else [(None, run) for run in source]
    if all(_is_path(entry) for _, entry in entries):
        return read_scores(source)
    rows: list[Any] = []
    for name, entry in entries:
        run = str(name or getattr(entry, "name", None) or "run")
        if isinstance(getattr(entry, "scores", None), Mapping):  # of ranx
            for measure, values in entry.scores.items():
                rows += [(run, str(topic), str(measure), float(v)) for topic, v in values.items()]
        else:
            for metric in _frame(entry, "the scores", "value").itertuples():
                values = (str(metric.query_id), str(metric.measure), float(metric.value))
                rows.append((run, *values))
    table = pd.DataFrame(rows, columns=["run", "topic", "measure", "value"])
    refuse_twice(table, ["run", "topic", "measure"], "a run has a score")
    return table


# --- memberships ----------------------------------------------------------------------------------


MISSING = ("unknown",)
"""Names in a column of groups that are no group: whose membership is missing."""


def tidy_memberships(
    source: Any,
    name: str,
    attribute: AttributeSet | None = None,
    file: str = "",
    missing: Sequence[str] = MISSING,
) -> tuple[pd.DataFrame, AttributeSet]:
    """Return group memberships as columns document and a share for each group, and their set.

    They have a column topic where they are for one topic only. ``source`` has the group of
    each document, or the shares of groups. A document with several groups belongs to each equally.
    The column of groups is called like the set, or group, or is the only one that has names.
    Without an attribute set the groups are those found, by name, nominal, with equal targets. A row
    whose group is empty or ``missing`` is left out, and a note counts them; a group of the
    attribute set is never missing.

    >>> table, sets = tidy_memberships({"d1": "large", "d2": "small"}, "SIZE")
    >>> table
      document  large  small
    0       d1    1.0    0.0
    1       d2    0.0    1.0
    """
    label = file or f"the memberships in {name}"
    table = _frame_of_memberships(source, label).reset_index(drop=True)
    names = _names_in(table, ["topic", "group", "share"])
    names |= _required_names(table, ["document"], label)
    names |= _column_of_set(table, name, names, label)
    ids = pd.DataFrame(
        {
            column: _ids(table[names[column]], label, column)
            for column in ("topic", "document")
            if column in names
        }
    )
    columns = set(map(str, table.columns))
    if attribute is not None and set(attribute.groups) <= columns:
        tidy = _columns_of_groups(table, ids, list(attribute.groups), label)
    elif "group" in names:
        group = table[names["group"]].astype("str").fillna("").str.strip()
        groups = list(attribute.groups) if attribute is not None else []
        words = [word for word in ("", *missing) if word not in groups]
        is_missing = group.isin(words)
        if is_missing.any():
            counts = group[is_missing].value_counts()
            reasons = [f"{count} {shown(word)}" for word, count in counts.items()]
            message = f"{label}: no group in {name} for {is_missing.sum()} of {len(group)} rows"
            warnings.warn(f"{message} ({', '.join(reasons)})", Note, 2)
            table, ids, group = table[~is_missing], ids[~is_missing], group[~is_missing]
        share = pd.Series(1.0, table.index)
        if "share" in names:
            share = _numbers(table[names["share"]], label, "share")
        groups = groups or sorted(group.unique())
        tidy = _rows_of_groups(ids, group, share, groups, label)
    else:
        no_groups = {*names.values(), *NAMES["topic"]}
        groups = [str(column) for column in table.columns if column not in no_groups]
        if attribute is not None or len(groups) < 2:
            wanted = listed(attribute.groups) if attribute is not None else "each group"
            wanted = f"a table with a column group, or columns for {wanted}"
            raise input_error(label, wanted, f"columns {listed(table.columns)}")
        tidy = _columns_of_groups(table, ids, groups, label)
    if attribute is None:
        groups = [column for column in tidy.columns if column not in ids.columns]
        attribute = AttributeSet(name, "nominal", tuple(groups), np.ones(len(groups)))
    return tidy, attribute


def _columns_of_names(table: pd.DataFrame) -> list[str]:
    """Return the columns that have names of groups, not ids of documents or numbers."""
    id_columns = {*NAMES["document"], *NAMES["topic"], *NAMES["share"]}
    columns = []
    for column, values in table.items():
        is_id = column in id_columns or not str(column).strip()
        if is_id or pd.api.types.is_numeric_dtype(values):
            continue
        # An empty cell is no name: it is missing, among names as among numbers.
        cells = values[values.notna() & (values.astype("str").str.strip() != "")]
        numbers = pd.to_numeric(cells, errors="coerce")
        # Among shares a word is a fault, and no name of a group.
        has_shares = numbers.between(0, 1).mean() > 0.5
        if numbers.isna().any() and not has_shares:
            columns.append(str(column))
    return columns


def _column_of_set(
    table: pd.DataFrame, name: str, names: Mapping[str, str], label: str
) -> dict[str, str]:
    """Return the column of a set's groups as the column group, where it has another name."""
    columns = _columns_of_names(table)
    if name in columns:
        return {"group": name}
    if "group" in names or not columns:
        return {}
    if len(columns) > 1:
        wanted = f"a table with a column {name}"
        raise input_error(label, wanted, f"columns {listed(columns)}")
    return {"group": columns[0]}


def columns_of_sets(table: pd.DataFrame, label: str) -> list[str]:
    """Return the names of the attribute sets of a table: of its columns that have names."""
    _required_names(table, ["document"], label)
    columns = _columns_of_names(table)
    if not columns:
        wanted = "a table with a column that names the group of each document, such as gender"
        raise input_error(label, wanted, f"columns {listed(table.columns)}")
    id_columns = {*NAMES["document"], *NAMES["topic"], *NAMES["share"]}
    unread = [column for column in table.columns if column not in (*columns, *id_columns)]
    if unread:
        note = f"{label}, not read: column {listed(unread)} of numbers, not of names of groups"
        warnings.warn(note, Note, 2)
    # A title or a name of a person is not a group: most rows have their own.
    titles = [column for column in columns if _is_title(table[column])]
    if titles and len(titles) < len(columns):
        note = f"{label}, not read: column {listed(titles)}, whose values differ in most rows"
        warnings.warn(note, Note, 2)
        return [column for column in columns if column not in titles]
    return columns


def _is_title(column: pd.Series) -> bool:
    """Return whether a column has another value in most of its rows, of which it has many."""
    return len(column) >= 20 and column.nunique() > len(column) / 2


def _frame_of_memberships(source: Any, label: str) -> pd.DataFrame:
    """Return memberships as a data frame: from groups or shares by document, or any other kind."""
    if not isinstance(source, Mapping):
        return _frame(source, label, "group")
    if all(isinstance(shares, Mapping) for shares in source.values()):
        table = pd.DataFrame.from_dict(source, orient="index").fillna(0.0)
        return table.rename_axis("document").reset_index()
    return pd.DataFrame({"document": list(source), "group": list(source.values())})


def _columns_of_groups(
    table: pd.DataFrame, ids: pd.DataFrame, groups: Sequence[str], label: str
) -> pd.DataFrame:
    """Return memberships from a table with a column of shares for each group."""
    cells = table.rename(columns=str)[groups]
    shares = cells.apply(pd.to_numeric, errors="coerce").astype("float64")
    # NaN is at no distance from 1.
    is_good = (shares >= 0).all(axis=1) & ((shares.sum(axis=1) - 1).abs() <= TOLERANCE)
    if not is_good.all():
        found = shown(list(cells[~is_good].iloc[0]))
        wanted = f"shares of {listed(groups)} from 0, with a sum of 1"
        raise _row_error(label, ids, ~is_good, wanted, found)
    is_repeated = ids.duplicated()
    if is_repeated.any():
        raise _row_error(label, ids, is_repeated, "a document once", "a second row")
    return ids.assign(**shares)


def _rows_of_groups(
    ids: pd.DataFrame, group: pd.Series, share: pd.Series, groups: Sequence[str], label: str
) -> pd.DataFrame:
    """Return memberships from rows of a document and a group; its shares get a sum of 1."""
    if len(groups) < 2:
        wanted = "names of two or more groups in its column"
        found = listed(map(shown, groups)) or "none"
        raise input_error(label, wanted, found, column=str(group.name))
    is_bad = ~group.isin(groups) | (share <= 0)
    if is_bad.any():
        row = is_bad.idxmax()
        found = f"{shown(group[row])} with a share of {share[row]:g}"
        wanted = f"one of the groups {listed(groups)}, with a share above 0"
        raise _row_error(label, ids, is_bad, wanted, found)
    rows = ids.assign(group=pd.Categorical(group, groups), share=share)
    is_repeated = rows.duplicated([*ids.columns, "group"])
    if is_repeated.any():
        found = f"{rows.loc[is_repeated, 'group'].iloc[0]} again"
        raise _row_error(label, ids, is_repeated, "a document once per group", found)
    wide = rows.pivot_table(
        index=list(ids.columns),
        columns="group",
        values="share",
        fill_value=0.0,
        observed=False,
        sort=False,
    )
    shares = wide.div(wide.sum(axis=1), axis=0).reindex(columns=groups)
    return shares.set_axis(groups, axis=1).reset_index()  # names, no longer categories


def tidy_sets(
    memberships: Any, attributes: Any
) -> tuple[dict[str, pd.DataFrame], dict[str, AttributeSet]]:
    """Memberships and attribute sets by name.

    ``memberships`` are by the name of a set, a file or table, or the groups of documents in one set
    named ``group``. Each column of group names in a file or table is a set of its name.
    ``attributes`` are `AttributeSet` by name or inputs of `attribute_sets`; the default are the
    groups found.
    """
    from equipoise.loaders.groups import read_groups, read_sets  # it makes tables tidy, by this

    plain = {
        name: entry for name, entry in attributes.items() if not isinstance(entry, AttributeSet)
    }
    sets = {**attributes, **(attribute_sets(plain) if plain else {})}
    is_table = _is_path(memberships) or isinstance(memberships, pd.DataFrame)
    if is_table and sets:
        memberships = dict.fromkeys(sets, memberships)
    elif _is_path(memberships):
        sets = {attribute.name: attribute for _, attribute in read_sets(memberships)}
        memberships = dict.fromkeys(sets, memberships)
    elif is_table and _has_sets(memberships):
        memberships = dict.fromkeys(columns_of_sets(memberships, "the memberships"), memberships)
    if not _is_by_set(memberships, sets):
        only_name = next(iter(sets)) if len(sets) == 1 else "group"
        memberships = {only_name: memberships}
    if sets and set(memberships) != set(sets):
        raise ValueError(
            f"memberships in {sorted(memberships)}, sets {sorted(sets)}: the same are needed"
        )
    tables, sets_of_tables = {}, {}
    for name, members in memberships.items():
        tables[name], sets_of_tables[name] = read_groups(members, name, sets=sets)
    return tables, sets_of_tables


def _has_sets(table: pd.DataFrame) -> bool:
    """Whether a table has a column of names for each of several attribute sets."""
    columns = _columns_of_names(table)
    return bool(columns) and "group" not in columns


def _is_by_set(memberships: Any, sets: Mapping[str, Any]) -> bool:
    """Whether memberships come by the names of attribute sets, not those of one set's documents."""
    if not isinstance(memberships, Mapping):
        return False
    if not memberships or set(memberships) & set(sets):
        return True
    value = next(iter(memberships.values()))
    if isinstance(value, Mapping):
        return not isinstance(next(iter(value.values()), ""), Real)  # no shares by group
    if all(_is_path(entry) and Path(entry).is_file() for entry in memberships.values()):
        return True
    return not isinstance(value, (str, int))  # no group's name
