"""What rankers learn from without a judgement: which papers, and hard negatives among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise_studies.query_by_example.data import QueryByExample
from equipoise_studies.query_by_example.systems import BM25
from equipoise_studies.systems.rankers import bm25_scores
from equipoise_studies.systems.tokenisation import ANALYSERS


def training_papers(
    dataset: QueryByExample, *, validation: float = 0.15, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Papers to train on, and a share of papers held out of training (15% in thesis section 2.3.1).

    Every query paper, and every paper whose title is a query's but for case and spaces, is in
    neither.
    """
    papers = dataset.papers
    # A query may stand in the collection twice, under two ids.
    titles = papers["title"].str.casefold().str.split().str.join(" ")
    is_query = papers["document"].isin(dataset.queries)
    has_title_of_query = titles.isin(titles[is_query])
    available = papers[~is_query & ~has_title_of_query].reset_index(drop=True)

    order = np.random.default_rng(seed).permutation(len(available))
    size = round(len(available) * validation)
    if not 0 < size < len(available):
        raise ValueError(
            f"a share of {validation} leaves {len(available) - size} of {len(available)} papers "
            "to train on"
        )
    training = available.iloc[np.sort(order[size:])].reset_index(drop=True)
    held_out = available.iloc[np.sort(order[:size])].reset_index(drop=True)
    return training, held_out


def hard_negatives(titles: Sequence[str], abstracts: Sequence[str], *, top: int = 20) -> Integers:
    """For each title the abstracts that BM25 ranks highest, its own left out.

    Training must tell them apart. The i-th title belongs to the i-th abstract. Returns row numbers,
    best first, shaped (titles, top).
    """
    if len(titles) <= top:
        raise ValueError(f"{top} negatives need more than {len(titles)} papers")
    scores = bm25_scores(titles, abstracts, ANALYSERS["STM2"], **BM25)
    np.fill_diagonal(scores, -np.inf)  # a paper's own abstract comes last
    return np.argsort(-scores, axis=1, kind="stable")[:, :top]
