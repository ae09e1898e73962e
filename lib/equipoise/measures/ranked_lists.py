"""Rankings side by side: a row for each run and topic, a column for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Integers, places
from equipoise.errors import need_columns
from equipoise.measures.tied_scores import tied_spans


def by_rank(runs: pd.DataFrame, documents: pd.Index[Any], depth: float = np.inf) -> pd.DataFrame:
    """Return the position of each ranked document in ``documents``, one row per run and topic.

    One column for each rank up to ``depth``, best first; -1 for a missing document, NaN after the
    end of a list.
    """
    return _laid_by_rank(runs, places(runs["document"], documents), depth)


def spans_by_rank(runs: pd.DataFrame) -> tuple[Integers, Integers]:
    """First and last rank of each rank's tie (`tied_spans`), laid out as by `by_rank`."""
    need_columns(runs, ["score"])
    return tied_spans(_laid_by_rank(runs, runs["score"].to_numpy()))


def _laid_by_rank(runs: pd.DataFrame, values: NDArray[Any], depth: float = np.inf) -> pd.DataFrame:
    ordered = runs.assign(value=values).sort_values(["run", "topic", "rank"], kind="stable")
    ordered["rank"] = ordered.groupby(["run", "topic"]).cumcount()
    read = ordered[ordered["rank"] < depth]
    return read.pivot(index=["run", "topic"], columns="rank", values="value")  # noqa: PD010 - nothing to aggregate


def with_means(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Scores by run and topic, and below them means, without a topic; NaN if any topic's is."""
    undefined = table[columns].isna().groupby(table["run"]).any()
    means = table.groupby("run")[columns].mean().mask(undefined).reset_index()
    return pd.concat([table, means.assign(topic="")], ignore_index=True)
