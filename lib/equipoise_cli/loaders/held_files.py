"""Files as people hold them, behind the front door: what runs are called, judgements by name, groups of documents."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import head, is_parquet, read_columns, read_source
from equipoise.loaders.documents import data_set
from equipoise.loaders.fairweb import numbered_groups, read_memberships, read_target
from equipoise.loaders.trec import file_name, read_qrels, read_run
from equipoise.options import read_pairs
from equipoise.problems import Note, Problems, listed, refused, shown, together
from equipoise.tidy import tidy_memberships, tidy_qrels

Kind = Literal["nominal", "ordinal"]


def _first_line(path: Path) -> str:
    """The first line of a text file that holds something and is no description; empty for all else."""
    lines = head(path).decode("utf-8-sig", "replace").splitlines() if not is_parquet(path) else []
    return next(
        (
            line.strip()
            for line in lines
            if line.strip() and not line.strip().startswith("<SYSDESC>")
        ),
        "",
    )


def run_names(paths: Sequence[Path]) -> list[str]:
    """What runs are called: by the tag in the sixth column; by their files where they share one, or have none."""
    firsts = (_first_line(path).split() for path in paths)
    tags = [columns[5] if len(columns) == 6 else "" for columns in firsts]
    shared = {tag for tag, count in Counter(tags).items() if count > 1 and tag}
    if shared:
        warnings.warn(
            f"several runs have the tag {listed(sorted(shared))}: they are called by their files",
            Note,
            2,
        )
    files = list(map(file_name, paths))
    names = [
        tag if tag and tag not in shared else file for tag, file in zip(tags, files, strict=True)
    ]
    if again := [name for name, count in Counter(names).items() if count > 1]:
        found = f"runs called {listed(again)}, by tag and by the same file name, twice"
        raise refused("the runs", found, "a tag, or a file name, for each")
    return names


def read_named_runs(paths: Sequence[Path]) -> pd.DataFrame:
    """Several runs in one table, each by its name."""
    named = zip(paths, run_names(paths), strict=True)
    return pd.concat(
        together(partial(read_run, path, name) for path, name in named), ignore_index=True
    )


def read_document_ids(path: str | Path) -> dict[str, str]:
    """The document that each counterfactual one was made of, from a CSV file of ``document,counterfactual``."""
    table, problems = read_columns(path, ["document", "counterfactual"]), Problems()
    numbered = table.assign(line=range(2, len(table) + 2))
    problems.add_repeats(
        path, numbered, ["counterfactual"], "counterfactual", "each counterfactual document once"
    )
    problems.refuse()
    return dict(zip(table["counterfactual"], table["document"], strict=True))


def read_judgements(source: str | Path) -> pd.DataFrame:
    """Relevance judgements of a file, or of a data set of ir_datasets by its name, such as ``antique/test``."""
    if Path(source).exists() or Path(source).suffix:
        return read_qrels(source)
    return tidy_qrels(data_set(str(source), "qrels").qrels_iter())


def read_groups(
    path: str | Path,
    name: str,
    kind: Kind = "nominal",
    target: str = "",
    sets: Mapping[str, AttributeSet] | None = None,
) -> tuple[pd.DataFrame, AttributeSet]:
    """Group memberships of documents, and their attribute set, of any file that has them.

    ``path``: a table (CSV or Parquet) with columns document and group, or one for each group, and
    maybe topic; or lines ``topic document p1 p2 ...`` as of FairWeb. ``target``: a file,
    ``uniform``, or ``group:number,...``, whose order is that of ordinal groups. ``sets``: attribute
    sets by name, which need neither kind nor target.
    """
    path = Path(path)
    first = _first_line(path)
    table, attribute = is_parquet(path) or "," in first, (sets or {}).get(name)
    if attribute is None and target not in ("", "uniform"):
        if ":" in target and not Path(target).exists():
            shares = read_pairs(target)
            attribute = AttributeSet(name, kind, tuple(shares), np.array(list(shares.values())))
        else:
            attribute = read_target(target, name, kind)
    if attribute is None and kind == "ordinal" and table:
        wanted = f"their order with the target, such as {name}=low:1,middle:1,high:1"
        raise refused(path, "ordinal groups in no order", wanted, column=name)
    if not table:
        count = len(first.split()) - 2
        if first and count < 2:
            wanted = "a header such as document,group with commas, or lines of topic, document and shares between blanks"
            raise refused(path, shown(first), wanted)
        attribute = attribute or AttributeSet(
            name, kind, numbered_groups(count), np.ones(max(count, 0))
        )
        return read_memberships(path, attribute), attribute
    source = read_source(path)
    source.problems.refuse()
    return tidy_memberships(source.columns, name, attribute, str(path))
