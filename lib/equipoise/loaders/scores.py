"""Scores by topic, whoever computed them: one tidy table from files that are told apart by what they hold.

- A CSV or Parquet file with the columns topic, measure, value, and maybe run and attribute: what `equipoise score`
  writes, or PyTerrier's ``perquery`` (name, qid, measure, value).
- ``ir_measures -q``: lines ``topic measure value``, or a run before them.
- ``trec_eval -q``: lines ``measure topic value``, with the run's tag in a line ``runid all TAG``.

A file without runs is one run, called by its tag, else by the file's name. Means have no topic:
their rows, which trec_eval and ir_measures call ``all`` (gdeval ``amean``), are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.files import is_parquet, parse_number, read_source, read_text, stem
from equipoise.problems import Note, Problems, refused, shown

_OTHER_NAMES = {
    "name": "run",
    "system": "run",
    "qid": "topic",
    "query_id": "topic",
    "query": "topic",
}
_MEANS = ("all", "amean")
_COLUMNS = ["run", "topic", "attribute", "measure", "value"]


def _numbers(table: pd.DataFrame, path: Path, problems: Problems) -> pd.DataFrame:
    """The table with its values as numbers, NaN where there is none; what is no number is collected."""
    if pd.api.types.is_numeric_dtype(table["value"]):
        return table.astype({"value": np.float64})
    values = []
    for line, text in table[["line", "value"]].itertuples(index=False):
        try:
            values.append(
                float("nan")
                if str(text).lower() in ("", "nan", "none")
                else parse_number(str(text))
            )
        except ValueError as error:
            problems.add(path, int(line), "value", str(error), "a number")
            values.append(float("nan"))
    return table.assign(value=np.array(values, dtype=np.float64))


def _has_header(text: str) -> bool:
    """Whether a text begins with names of columns: a measure of ir_measures may have commas too."""
    names = text.lstrip().partition("\n")[0].split(",")
    return bool({"topic", "measure", "value"} & {name.strip(' "\r') for name in names})


def _with_header(path: Path, text: str | None, problems: Problems) -> pd.DataFrame:
    source = read_source(path, text)
    names = {old: new for old, new in _OTHER_NAMES.items() if new not in source.columns.columns}
    source.columns = source.columns.rename(columns=names)
    source.check_header(["topic", "measure", "value"], [*source.columns.columns])
    table = source.columns.reindex(columns=_COLUMNS)
    table = table.assign(line=np.arange(len(table)) + (1 if source.text is None else 2))
    if "run" not in source.columns:
        table["run"] = stem(path)
    table = table.astype(dict.fromkeys(_COLUMNS[:-1], "str")).fillna({"attribute": "", "topic": ""})
    return _numbers(table, path, problems)


def _is_of_trec_eval(rows: pd.DataFrame, path: Path) -> bool:
    """Whether lines of three columns are those of trec_eval, measure first, and not topic first."""
    columns = rows["first"], rows["second"]
    for holds in (
        (one.isin(_MEANS).any() for one in columns),
        (one.str.fullmatch(r"\d+").all() for one in columns),
    ):
        first, second = holds
        if first != second:
            return bool(second)
    wanted = "a mean with the topic all (no option -n), or a CSV file with the columns topic,measure,value"
    raise refused(path, "three columns of which neither is known to be the topics", wanted)


def _without_header(path: Path, text: str, problems: Problems) -> pd.DataFrame:
    lines = {
        number: line.split()
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    }
    width = len(next(iter(lines.values())))
    names = ["run", "topic", "measure", "value"] if width == 4 else ["first", "second", "value"]
    wanted = "topic measure value (ir_measures -q), measure topic value (trec_eval -q), or a CSV file with a header"
    for number, fields in lines.items():
        if len(fields) != len(names):
            problems.add(path, number, None, f"{len(fields)} columns", wanted)
    problems.refuse()
    table = pd.DataFrame(lines.values(), columns=names).assign(line=list(lines))
    if width == 3:
        of_trec_eval = _is_of_trec_eval(table, path)
        order = ["measure", "topic"] if of_trec_eval else ["topic", "measure"]
        table = table.rename(columns=dict(zip(names, order, strict=False)))
        tags = table.loc[table["measure"] == "runid", "value"]
        table = table[table["measure"] != "runid"].assign(
            run=tags.iloc[0] if len(tags) else stem(path)
        )
    return _numbers(table[~table["topic"].isin(_MEANS)].assign(attribute=""), path, problems)


def read_scores(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read scores by topic into one table: columns run, topic, attribute, measure, value; means are left out.

    A value that is empty or NaN is kept as NaN. A score that comes twice is refused.
    """
    problems, tables = Problems(), []
    for path in map(Path, paths):
        with problems.collecting():
            own = Problems()
            text = None if is_parquet(path) else read_text(path)  # once: it may be a pipe
            if text is None or _has_header(text):
                table = _with_header(path, text, own)
            else:
                table = _without_header(path, text, own)
            own.refuse()
            if (named := table["topic"].isin(_MEANS)).any():
                one = shown(table.loc[named, "topic"].iloc[0])
                warnings.warn(
                    f"{path}: {int(named.sum())} rows of a topic {one} are taken for means",
                    Note,
                    1,
                )
            table = table[~named & (table["topic"] != "")]
            if table.empty:
                raise refused(
                    path, "no score of a topic", "scores by topic (option -q, not means alone)"
                )
            tables.append(table.assign(file=str(path)))
    problems.refuse()
    whole = pd.concat(tables, ignore_index=True)
    for line, run, topic, measure, file in whole.loc[
        whole.duplicated(["run", "topic", "attribute", "measure"]),
        ["line", "run", "topic", "measure", "file"],
    ].itertuples(index=False):
        found = f"{shown(measure)} of run {shown(run)} and topic {shown(topic)} again"
        problems.add(
            file,
            int(line),
            None,
            found,
            "each score once; runs of one name in several files need a column run",
        )
    problems.refuse()
    return whole[_COLUMNS].astype(dict.fromkeys(_COLUMNS[:-1], "str"))
