"""Scores by topic from any program: one tidy table from files in several formats.

- A CSV, JSON Lines or Parquet file with the columns topic, measure, value, and maybe run and
  attribute: what `equipoise score` writes, or PyTerrier's ``perquery`` (name, qid, measure, value).
- Such a table of one measure with a column of topics, then one of scores per run.
- ``ir_measures -q``: lines ``topic measure value``, or a run before them.
- ``trec_eval -q``: lines ``measure topic value``, with the run's tag in a line ``runid all TAG``.

A file without runs is one run, called by its tag, else by the file's name; files that share one are
called by their paths. Means have no topic: their rows, which trec_eval and ir_measures call ``all``
(gdeval ``amean``), are left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.errors import Note, excerpt, input_error, listed
from equipoise.loaders.columns import ColumnFile
from equipoise.readers import Table, ids_as_text, names_of_files, read_table, read_text, stem

OTHER_NAMES = {
    "name": "run",
    "system": "run",
    "qid": "topic",
    "query_id": "topic",
    "query": "topic",
}
_MEANS = ("all", "amean")
_COLUMNS = ["run", "topic", "attribute", "measure", "value"]
_FORMATS = (
    "topic measure value (ir_measures -q), measure topic value (trec_eval -q), or a CSV file with "
    "the columns topic, measure, value"
)


def read_scores(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Read scores by topic as columns run, topic, attribute, measure and value, without means.

    ``paths``: a file, or several. A value that is empty or NaN is kept as NaN. A score that comes
    twice is an error.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    tables, names = [], []
    for file in files:
        table, name = _read_file(file)
        tables.append(table)
        names.append(name or str(file))
    # Only files without runs need a name, and files that share one get another.
    called = names_of_files(names, files)
    for table, name in zip(tables, called, strict=True):
        if "run" not in table.columns:
            table.insert(0, "run", name)
    _note_shared_runs(tables)
    scores = pd.concat(tables, ignore_index=True)[_COLUMNS]
    repeated = scores[scores.duplicated(_COLUMNS[:-1])]
    if len(repeated):
        row = repeated.iloc[0]
        wanted = f"{row['measure']} of run {row['run']} and topic {row['topic']} must be given once"
        raise input_error(", ".join(map(str, files)), wanted)
    return scores.astype(dict.fromkeys(_COLUMNS[:-1], "str"))


def _note_shared_runs(tables: Iterable[pd.DataFrame]) -> None:
    """Note where the topics of one run and measure come from several files."""
    keys = ["run", "attribute", "measure"]
    of_files = pd.concat([table[keys].drop_duplicates() for table in tables])
    shared = of_files.loc[of_files.duplicated(), "run"].unique()
    if len(shared):
        message = f"run {listed(shared)} is in several files, whose topics count as those of one"
        warnings.warn(f"{message} run; rename it in one file if they are different runs", Note, 2)


def _read_file(path: Path) -> tuple[pd.DataFrame, str]:
    """The scores of one file, and the name of its run, which is empty where it has a column run."""
    file = ColumnFile(path)
    # A line of other programs ends with a number, and has no comma outside of a measure's name.
    has_header = bool(
        re.search(r"[,;{]|\bmeasure\b.*\bvalue\b", re.sub(r"\(.*?\)", "", file.first_line))
    )
    lines: list[int] = []
    if has_header or file.head.startswith(b"PAR1"):
        source = read_table(path)
        known = list(source.frame.columns)
        new_names = {other: OTHER_NAMES.get(other.lower(), other.lower()) for other in known}
        new_names = {o: name for o, name in new_names.items() if name in {*_COLUMNS} - {*known}}
        source.frame = source.frame.rename(columns=new_names)
        if not {"measure", "value"} & {*source.frame.columns}:
            _put_runs_in_rows(source)
        source.need(["topic", "measure", "value"])
        name = "" if "run" in source.frame.columns else stem(path)
    else:
        frame, lines, name = _read_lines(path)
        source = Table(path, frame)
    columns = [column for column in _COLUMNS if column != "run" or not name]
    if "attribute" not in source.frame.columns:
        source.frame["attribute"] = ""
    source.reject_lists(columns[:-1])
    table = source.frame[columns].copy()
    text = table["value"].astype("str").str.strip()
    values = pd.to_numeric(text, errors="coerce").astype("float64")
    is_wrong = (~np.isfinite(values) & ~text.str.lower().isin(["", "nan", "none"])).to_numpy()
    if is_wrong.any():
        row = int(np.flatnonzero(is_wrong)[0])
        line = lines[row] if lines else source.line(row)
        raise input_error(path, "a finite number", excerpt(text.iloc[row]), line, "value")
    table["value"] = values
    for column in ("topic", "attribute"):
        table[column] = ids_as_text(table[column].fillna("")).str.strip()
    table = table[~table["topic"].isin([*_MEANS, ""])]
    if table.empty:
        raise input_error(path, "scores by topic (option -q), not means alone")
    return table.copy(), name


def _put_runs_in_rows(table: Table) -> None:
    """Read a table of a spreadsheet, whose columns are a topic and the scores of each run."""
    topic, *runs = map(str, table.frame.columns)
    scores = table.frame[runs].apply(pd.to_numeric, errors="coerce")
    if runs and scores.notna().all(axis=None):
        note = f"{table.name}: column {topic} is read as topics, and {listed(runs, 4)} as runs"
        warnings.warn(note, Note, 2)
        table.frame = table.frame.melt(topic, runs, "run", "value").rename(columns={topic: "topic"})
        table.frame["measure"] = stem(table.name)


def _read_lines(path: Path) -> tuple[pd.DataFrame, list[int], str]:
    """The lines of ir_measures or trec_eval, the numbers of the lines, and a name of the run."""
    numbered = [
        (line_number, line.split())
        for line_number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]
    width = len(numbered[0][1])
    for line_number, fields in numbered:
        if len(fields) != width or width not in (3, 4) or fields[1] in ("0", "Q0"):
            raise input_error(path, _FORMATS, f"{len(fields)} columns", line_number)
    rows = [fields for _, fields in numbered]
    lines = [line_number for line_number, _ in numbered]
    if width == 4:
        return pd.DataFrame(rows, columns=["run", "topic", "measure", "value"]), lines, ""
    table = pd.DataFrame(rows, columns=["topic", "measure", "value"])
    if _measure_comes_first(table, path):
        table = table.rename(columns={"topic": "measure", "measure": "topic"})
    is_tag = (table["measure"] == "runid").to_numpy()
    name = str(table.loc[is_tag, "value"].iloc[0]) if is_tag.any() else stem(path)
    lines = [line for line, tag in zip(lines, is_tag, strict=True) if not tag]
    return table[~is_tag].reset_index(drop=True), lines, name


def _measure_comes_first(rows: pd.DataFrame, path: Path) -> bool:
    """Whether lines of three columns are those of trec_eval, and not topic first."""
    first, second = rows["topic"], rows["measure"]
    # The topics are the column that has a mean, else the one of numbers alone.
    if first.isin(_MEANS).any() != second.isin(_MEANS).any():
        return bool(second.isin(_MEANS).any())
    if first.str.isdigit().all() != second.str.isdigit().all():
        return bool(second.str.isdigit().all())
    wanted = "lines of which one column is known to be the topics, by a mean with the topic all"
    raise input_error(path, wanted, excerpt(rows.iloc[0].tolist()))
