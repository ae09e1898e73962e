"""Runs, judgements and scores of users as tidy tables.

Accepted are files, data frames with the field's names of columns, dictionaries of dictionaries
(pytrec_eval, ranx), objects that convert to a data frame (ranx), and named tuples (ir_measures). A
table that is tidy already is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import by_score
from equipoise.errors import (
    excerpt,
    input_error,
    listed,
    need_columns,
    refuse_twice,
)
from equipoise.loaders.scores import OTHER_NAMES, read_scores
from equipoise.loaders.trec import read_qrels, read_runs
from equipoise.readers import ids_as_text

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


def frame_of(source: Any, label: str, value: str) -> pd.DataFrame:
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
                raise input_error(label, wanted, excerpt(source))
            rows += [(topic, document, number) for document, number in numbers.items()]
        return pd.DataFrame(rows, columns=["topic", "document", value])
    is_list = isinstance(source, Iterable) and not isinstance(source, (str, bytes))
    entries = list(source) if is_list else []
    if not entries or not all(hasattr(entry, "_fields") for entry in entries):
        wanted = "a table, a dict of dicts, or named tuples with query_id, doc_id and so on"
        raise input_error(label, wanted, excerpt(source))
    return pd.DataFrame(entries)


def names_in(
    table: pd.DataFrame, columns: Sequence[str], label: str, optional: Sequence[str] = ()
) -> dict[str, str]:
    """Return the name that each of our columns has in a table, which must have ``columns``."""
    names, missing = {}, []
    for column in (*columns, *optional):
        found = [name for name in NAMES[column] if name in table.columns]
        if found:
            names[column] = found[0]
        elif column in columns:
            missing.append(" or ".join(NAMES[column]))
    if missing:
        wanted = f"a table with the columns {' and '.join(missing)}"
        raise input_error(label, wanted, listed(table.columns) or "none")
    return names


def ids_of(values: pd.Series, label: str, column: str) -> pd.Series:
    """Return ids as text, none of them empty."""
    is_empty = values.isna() | (values == "")
    if is_empty.any():
        line = int(np.flatnonzero(is_empty)[0]) + 1
        found = f"no {column} in {is_empty.sum()} of {len(values)} rows"
        raise input_error(label, f"a table with a {column} in each row", found, line)
    return values if values.dtype == "str" else ids_as_text(values)


def numbers_of(values: pd.Series, label: str, column: str) -> pd.Series:
    """Return finite numbers."""
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = values[~np.isfinite(numbers.astype("float64"))]
    if len(wrong):
        raise input_error(label, "a finite number", excerpt(wrong.iloc[0]), column=column)
    return numbers


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
    table = frame_of(source, label, "score")
    names = names_in(table, ["topic", "document"], label, ["run", "rank", "score"])
    if "rank" not in names:
        names_in(table, ["score"], label)

    name = None if isinstance(source, pd.DataFrame) else getattr(source, "name", None)
    tidy = pd.DataFrame({"run": str(name or "run")}, index=table.index)
    for column in ("run", "topic", "document"):
        if column in names:
            tidy[column] = ids_of(table[names[column]], label, column)
    for column in ("rank", "score"):
        if column in names:
            tidy[column] = numbers_of(table[names[column]], label, column)
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
    table = frame_of(source, label, "level")
    names = names_in(table, ["topic", "document", "level"], label)
    level = numbers_of(table[names["level"]], label, "level")
    is_fraction = level != np.floor(level)
    if is_fraction.any():
        found = f"{level[is_fraction].iloc[0]:g}"
        raise input_error(label, "a whole number", found, column="level")
    tidy = pd.DataFrame(
        {column: ids_of(table[names[column]], label, column) for column in ("topic", "document")}
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
            for metric in frame_of(entry, "the scores", "value").itertuples():
                values = (str(metric.query_id), str(metric.measure), float(metric.value))
                rows.append((run, *values))
    table = pd.DataFrame(rows, columns=["run", "topic", "measure", "value"])
    refuse_twice(table, ["run", "topic", "measure"], "a run has a score")
    return table
