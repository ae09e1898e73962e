"""Scores by topic, whoever computed them: one tidy table from files told apart by what they hold.

- A CSV or Parquet file with the columns topic, measure, value, and maybe run and attribute: what
  `equipoise score` writes, or PyTerrier's ``perquery`` (name, qid, measure, value).
- ``ir_measures -q``: lines ``topic measure value``, or a run before them.
- ``trec_eval -q``: lines ``measure topic value``, with the run's tag in a line ``runid all TAG``.

A file without runs is one run, called by its tag, else by the file's name; files that share one go
by their paths. Means have no topic:
their rows, which trec_eval and ir_measures call ``all`` (gdeval ``amean``), are left out.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.files import is_parquet, parse_number, read_source, read_text, stem, told_apart
from equipoise.problems import Note, Problems, listed, refused, shown, together

OTHER_NAMES = {
    "name": "run",
    "system": "run",
    "qid": "topic",
    "query_id": "topic",
    "query": "topic",
}
_MEANS = ("all", "amean")
_COLUMNS = ["run", "topic", "attribute", "measure", "value"]


def _parse_value(text: str) -> float:
    return math.nan if text.lower() in ("", "nan", "none") else parse_number(text)


def _with_numbers(table: pd.DataFrame, path: Path, problems: Problems) -> pd.DataFrame:
    """The table with its values as numbers, NaN where there is none; others are collected."""
    if pd.api.types.is_numeric_dtype(table["value"]):
        return table.astype({"value": np.float64})
    values = np.full(len(table), np.nan)
    for row, (line, text) in enumerate(zip(table["line"], table["value"], strict=True)):
        try:
            values[row] = _parse_value(str(text))
        except ValueError as error:
            problems.add(path, int(line), "value", str(error), "a number")
    return table.assign(value=values)


def _has_header(text: str) -> bool:
    """Whether a text begins with names of columns: a measure of ir_measures may have commas too."""
    first_line = text.lstrip().partition("\n")[0]
    names = {name.strip(' "\r') for name in first_line.split(",")}
    # Semicolons and tabs are refused by name where the table is read.
    names |= {name.strip(' "\r') for name in re.split("[;\t]", first_line)}
    return not names.isdisjoint({"topic", "measure", "value"})


def _read_with_header(path: Path, text: str | None, problems: Problems) -> pd.DataFrame:
    source = read_source(path, text)
    names = source.columns.columns
    new_names = {other_name: name for other_name, name in OTHER_NAMES.items() if name not in names}
    source.columns = source.columns.rename(columns=new_names)
    source.check_header(["topic", "measure", "value"], [*source.columns.columns])
    table = source.columns.reindex(columns=_COLUMNS)
    first_line = 1 if source.text is None else 2
    table = table.assign(line=np.arange(len(table)) + first_line)
    if "run" not in source.columns:
        table["run"], table["named_by"] = stem(path), "file"
    table = table.astype(dict.fromkeys(_COLUMNS[:-1], "str")).fillna({"attribute": "", "topic": ""})
    return _with_numbers(table, path, problems)


def _measure_comes_first(rows: pd.DataFrame, path: Path) -> bool:
    """Whether lines of three columns are those of trec_eval, and not topic first."""
    first_column, second_column = rows["first"], rows["second"]
    # The topics are the column that holds a mean, else the one of numbers alone.
    first_has_mean, second_has_mean = (
        first_column.isin(_MEANS).any(),
        second_column.isin(_MEANS).any(),
    )
    if first_has_mean != second_has_mean:
        return bool(second_has_mean)
    first_is_numbers = first_column.str.fullmatch(r"\d+").all()
    second_is_numbers = second_column.str.fullmatch(r"\d+").all()
    if first_is_numbers != second_is_numbers:
        return bool(second_is_numbers)
    expected = (
        "a mean with the topic all (no option -n), "
        "or a CSV file with the columns topic,measure,value"
    )
    raise refused(path, "three columns of which neither is known to be the topics", expected)


def _refuse_other_formats(rows: list[list[str]], path: Path) -> None:
    """Refuse what is plainly no table of scores, in one sentence."""
    iterations = {fields[1].upper() for fields in rows if len(fields) > 2}
    formats = {6: "a run (topic Q0 document rank score tag)", 4: "judgements (qrels)"}
    problem = formats.get(len(rows[0]))
    if problem and iterations <= {"0", "Q0"}:
        raise refused(path, problem, "scores by topic: equipoise score, or ir_measures -q, them", 1)


def _read_without_header(path: Path, text: str, problems: Problems) -> pd.DataFrame:
    fields_of = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            fields_of[number] = line.split()
    width = len(next(iter(fields_of.values())))
    names = ["first", "second", "value"]
    if width == 4:
        names = ["run", "topic", "measure", "value"]
    expected = (
        "topic measure value (ir_measures -q), measure topic value (trec_eval -q), "
        "or a CSV file with a header"
    )
    _refuse_other_formats(list(fields_of.values()), path)
    for number, fields in fields_of.items():
        if len(fields) != len(names):
            problems.add(path, number, None, f"{len(fields)} columns", expected)
    problems.refuse()
    table = pd.DataFrame(fields_of.values(), columns=names).assign(line=list(fields_of))
    if width == 3:
        columns = ["topic", "measure"]
        if _measure_comes_first(table, path):
            columns.reverse()
        table = table.rename(columns={"first": columns[0], "second": columns[1]})
        is_tag = table["measure"] == "runid"
        tags = table.loc[is_tag, "value"]
        name = tags.iloc[0] if len(tags) else stem(path)
        table = table[~is_tag].assign(run=name, named_by="file")
    table = table[~table["topic"].isin(_MEANS)].assign(attribute="")
    return _with_numbers(table, path, problems)


def _read_file(path: Path) -> pd.DataFrame:
    """The scores of one file, with the line and the file of each; means are left out."""
    problems = Problems()
    text = None if is_parquet(path) else read_text(path)  # once: it may be a pipe
    if text is None or _has_header(text):
        table = _read_with_header(path, text, problems)
    else:
        table = _read_without_header(path, text, problems)
    problems.refuse()
    is_mean = table["topic"].isin(_MEANS)
    if is_mean.any():
        topic = shown(table.loc[is_mean, "topic"].iloc[0])
        note = f"{path}: {int(is_mean.sum())} rows of a topic {topic} are taken for means"
        warnings.warn(note, Note, 1)
    table = table[~is_mean & (table["topic"] != "")]
    if table.empty:
        expected = "scores by topic (option -q, not means alone)"
        raise refused(path, "no score of a topic", expected)
    return table.assign(file=str(path))


def read_scores(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Read scores by topic: columns run, topic, attribute, measure, value; means are left out.

    ``paths``: a file, or several. A value that is empty or NaN is kept as NaN. A score that comes
    twice is refused.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    files = list(map(Path, paths))
    tables = together(partial(_read_file, path) for path in files)
    scores = pd.concat(_with_names_of_files(tables, files))
    is_repeated = scores.duplicated(["run", "topic", "attribute", "measure"])
    problems = Problems()
    for row in scores[is_repeated].itertuples():
        problem = f"{shown(row.measure)} of run {shown(row.run)} and topic {shown(row.topic)} again"
        expected = "each score once; runs of one name in several files need a column run"
        problems.add(row.file, int(row.line), None, problem, expected)
    problems.refuse()
    n_files = scores.groupby(["run", "attribute", "measure"])["file"].nunique()
    split_runs = n_files[n_files > 1].index.unique("run")
    if len(split_runs):
        note = f"scores of run {listed(split_runs)} by one measure are in several files"
        warnings.warn(f"{note}: they are taken for those of one run", Note, 2)
    scores = scores[_COLUMNS].reset_index(drop=True)
    return scores.astype(dict.fromkeys(_COLUMNS[:-1], "str"))


def _with_names_of_files(
    tables: Sequence[pd.DataFrame], files: Sequence[Path]
) -> list[pd.DataFrame]:
    """Tables of scores, those that are one run each called so that each has a name of its own."""
    unnamed = [place for place, table in enumerate(tables) if "named_by" in table]
    names = told_apart(
        [tables[place]["run"].iloc[0] for place in unnamed], [files[place] for place in unnamed]
    )
    named_tables = list(tables)
    for place, name in zip(unnamed, names, strict=True):
        named_tables[place] = tables[place].assign(run=name)
    return named_tables
