"""Files as people hold them: what runs are called, judgements by name, groups of documents."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import head, is_parquet, read_columns, read_source
from equipoise.loaders.documents import data_set_items
from equipoise.loaders.fairweb import numbered_groups, read_memberships, read_target
from equipoise.loaders.trec import file_name, read_qrels, read_run
from equipoise.options import read_pairs
from equipoise.problems import Note, Problems, listed, refused, shown, together
from equipoise.tidy import tidy_memberships, tidy_qrels

Kind = Literal["nominal", "ordinal"]


def _first_line(path: Path) -> str:
    """The first line of a text file that holds something and is no description, if any."""
    if is_parquet(path):
        return ""
    for line in head(path).decode("utf-8-sig", "replace").splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith("<SYSDESC>"):
            return stripped
    return ""


def _tag(path: Path) -> str:
    """The tag in the sixth column of a run, if it has six."""
    columns = _first_line(path).split()
    return columns[5] if len(columns) == 6 else ""


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def run_names(paths: Sequence[Path]) -> list[str]:
    """What runs are called: by their tags; by their files where they share one, or have none."""
    tags = list(map(_tag, paths))
    shared_tags = _repeated(tag for tag in tags if tag)
    if shared_tags:
        note = f"several runs have the tag {listed(sorted(shared_tags))}"
        warnings.warn(f"{note}: they are called by their files", Note, 2)
    names = []
    # Runs of one system often share a tag, of which none then tells which is which.
    for tag, path in zip(tags, paths, strict=True):
        is_telling = tag and tag not in shared_tags
        names.append(tag if is_telling else file_name(path))
    repeated_names = _repeated(names)
    if repeated_names:
        problem = f"runs called {listed(repeated_names)}, by tag and by the same file name, twice"
        raise refused("the runs", problem, "a tag, or a file name, for each")
    return names


def read_named_runs(paths: Sequence[Path]) -> pd.DataFrame:
    """Several runs in one table, each by its name."""
    names = run_names(paths)
    runs = together(partial(read_run, path, name) for path, name in zip(paths, names, strict=True))
    return pd.concat(runs, ignore_index=True)


def read_document_ids(path: str | Path) -> dict[str, str]:
    """The document that each counterfactual one was made of, from ``document,counterfactual``."""
    table, problems = read_columns(path, ["document", "counterfactual"]), Problems()
    numbered = table.assign(line=range(2, len(table) + 2))
    expected = "each counterfactual document once"
    problems.add_repeats(path, numbered, ["counterfactual"], "counterfactual", expected)
    problems.refuse()
    return dict(zip(table["counterfactual"], table["document"], strict=True))


def read_judgements(source: str | Path) -> pd.DataFrame:
    """Relevance judgements of a file, or of a data set that ir_datasets knows: ``antique/test``."""
    if Path(source).exists() or Path(source).suffix:
        return read_qrels(source)
    return tidy_qrels(data_set_items(str(source), "qrels"))


def _attribute_set(name: str, kind: Kind, target: str) -> AttributeSet | None:
    """The attribute set of a target; None where its groups are left to the memberships."""
    if target in ("", "uniform"):
        return None
    # A file may have a colon in its name.
    if ":" in target and not Path(target).exists():
        shares = read_pairs(target)
        return AttributeSet(name, kind, tuple(shares), np.array(list(shares.values())))
    return read_target(target, name, kind)


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
    first_line = _first_line(path)
    # Lines of FairWeb have no commas, a header always has one.
    is_table = is_parquet(path) or "," in first_line
    attribute = (sets or {}).get(name) or _attribute_set(name, kind, target)
    if is_table:
        if attribute is None and kind == "ordinal":
            expected = f"their order with the target, such as {name}=low:1,middle:1,high:1"
            raise refused(path, "ordinal groups in no order", expected, column=name)
        source = read_source(path)
        source.problems.refuse()
        return tidy_memberships(source.columns, name, attribute, str(path))
    n_groups = len(first_line.split()) - 2
    if first_line and n_groups < 2:
        expected = (
            "a header such as document,group with commas, "
            "or lines of topic, document and shares between blanks"
        )
        raise refused(path, shown(first_line), expected)
    if attribute is None:
        groups = numbered_groups(n_groups)
        attribute = AttributeSet(name, kind, groups, np.ones(max(n_groups, 0)))
    return read_memberships(path, attribute), attribute
