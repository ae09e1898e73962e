"""Interpolation (thesis Eq. 2.5), effectiveness, and what a query's scores look like."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import zscore
from sklearn.metrics import average_precision_score, ndcg_score

from equipoise.measures.effectiveness import effectiveness
from equipoise_studies.query_by_example.interpolation import (
    interpolate,
    query_statistics,
    z_scale,
)

Floats = NDArray[np.float64]

SCORES = st.floats(-1e3, 1e3).map(lambda score: round(score, 6))  # scipy loses what is far smaller


@st.composite
def scored(draw: st.DrawFn) -> tuple[Floats, NDArray[np.int64]]:
    rows = draw(st.integers(1, 30))
    return draw(arrays(np.float64, rows, elements=SCORES)), draw(
        arrays(np.int64, rows, elements=st.integers(0, 4))
    )


@given(scored())
def test_z_scale_is_scipys_zscore_of_each_query(data: tuple[Floats, NDArray[np.int64]]) -> None:
    scores, groups = data
    scaled = z_scale(scores, groups)
    for group in np.unique(groups):
        own = scores[groups == group]
        equal = np.ptp(own) == 0
        if equal:
            assert (scaled[groups == group] == 0).all()
        elif (
            np.ptp(own) > 1e-6 * np.abs(own).max()
        ):  # else scipy itself calls the scores nearly equal
            np.testing.assert_allclose(scaled[groups == group], zscore(own), atol=1e-6)


@given(scored(), st.floats(0.1, 10), st.floats(-100, 100))
def test_z_scale_forgets_scale_and_shift(
    data: tuple[Floats, NDArray[np.int64]], scale: float, shift: float
) -> None:
    scores, groups = np.round(data[0]), data[1]
    np.testing.assert_allclose(
        z_scale(scores * scale + shift, groups), z_scale(scores, groups), atol=1e-6
    )


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e90, 1e99])
def test_z_scale_of_tiny_and_huge_scores(size: float) -> None:
    np.testing.assert_allclose(
        z_scale([0.0, size, 2 * size], [0, 0, 0]), np.sqrt([1.5, 0, 1.5]) * [-1, 0, 1], atol=1e-12
    )


def test_z_scale_works_along_the_last_axis_and_refuses_what_it_cannot_scale() -> None:
    table = np.arange(12.0).reshape(2, 6) ** 2
    groups = [0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(z_scale(table, groups)[1], z_scale(table[1], groups))
    with pytest.raises(ValueError, match="not finite"):
        z_scale([1.0, np.nan], [0, 0])
    with pytest.raises(ValueError, match="one group code a score"):
        z_scale([1.0, 2.0], [0])


@given(arrays(np.float64, (2, 9), elements=SCORES), st.floats(0, 1))
def test_interpolation_is_exactly_a_part_at_either_end_and_between_them_elsewhere(
    parts: Floats, alpha: float
) -> None:
    np.testing.assert_array_equal(interpolate(parts[0], parts[1], 1.0), parts[0])
    np.testing.assert_array_equal(interpolate(parts[0], parts[1], 0.0), parts[1])
    mixed = interpolate(parts[0], parts[1], alpha)
    assert (mixed >= parts.min(axis=0) - 1e-9).all()
    assert (mixed <= parts.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize("alpha", [-0.1, 1.1, np.nan])
def test_a_weight_outside_its_bounds_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        interpolate([1.0], [1.0], alpha)


def random_collection(
    seed: int = 0, queries: int = 12, documents: int = 20
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of two rankers and judgements of one task; grades follow both rankers' scores."""
    rng = np.random.default_rng(seed)
    pairs = pd.DataFrame(
        [
            ("t", f"q{query:02d}", f"d{document:02d}")
            for query in range(queries)
            for document in range(documents)
        ],
        columns=["task", "query", "document"],
    )
    truth = rng.normal(size=len(pairs))
    scores = pairs.assign(
        bm25=truth + rng.normal(size=len(pairs)), tilde=truth + rng.normal(size=len(pairs))
    )
    judgements = pairs.assign(grade=np.clip(np.round(truth + 0.5), 0, 3).astype(int))
    return scores, judgements


def test_effectiveness_agrees_with_scikit_learn() -> None:
    scores, judgements = random_collection()
    run = scores.rename(columns={"bm25": "score"})[["task", "query", "document", "score"]]
    measures = {"MAP": "AP(rel=2)", "nDCG": "nDCG"}
    values = effectiveness(run, judgements, by=["task"], measures=measures).set_index(
        ["query", "measure"]
    )["value"]
    for query, rows in run.merge(judgements).groupby("query"):
        ap = average_precision_score(rows["grade"] >= 2, rows["score"])
        ndcg = ndcg_score([rows["grade"]], [rows["score"]])
        assert values[query, "MAP"] == pytest.approx(ap, abs=1e-9)
        assert values[query, "nDCG"] == pytest.approx(ndcg, abs=1e-9)


def test_every_measure_breaks_ties_by_document_id_descending() -> None:
    """As trec_eval. Its binding has no cut-off for RR, so ir_measures turns to another program."""
    tied = pd.DataFrame(
        {
            "run": "r",
            "query": "1",
            "document": ["a", "c", "b", "d"],
            "score": [1, 1, 1 + 1e-12, 0.5],
        }
    )
    judged = pd.DataFrame({"query": "1", "document": ["b"], "grade": [1]})
    measures = {name: name for name in ("RR", "RR@10", "AP", "AP@10", "nDCG@10", "P@1", "P@2")}
    values = effectiveness(tied, judged, measures=measures).set_index("measure")["value"]
    qrels, scores = {"1": {"b": 1}}, dict(zip(tied["document"], tied["score"], strict=True))
    program = pytrec_eval.RelevanceEvaluator(
        qrels, {"recip_rank", "map", "ndcg_cut_10", "P_1", "P_2"}
    )
    theirs = program.evaluate({"1": scores})["1"]
    names = {
        "RR": "recip_rank",
        "RR@10": "recip_rank",
        "AP": "map",
        "AP@10": "map",
        "nDCG@10": "ndcg_cut_10",
    }
    for ours, name in (names | {"P@1": "P_1", "P@2": "P_2"}).items():
        assert values[ours] == pytest.approx(theirs[name])
    assert values["RR@10"] == 0.5


def test_effectiveness_refuses_rankings_without_judgements_and_unknown_measures() -> None:
    scores, judgements = random_collection()
    run = scores.rename(columns={"bm25": "score"})
    with pytest.raises(ValueError, match="1 of 12 rankings have no judgements"):
        effectiveness(run, judgements[judgements["query"] != "q00"], by=["task"])
    with pytest.raises(ValueError, match="knows no measure 'nonsense'"):
        effectiveness(run, judgements, by=["task"], measures={"what": "nonsense"})


def test_query_statistics_by_a_plain_loop() -> None:
    scores, _ = random_collection(4)
    scores = scores.sample(frac=1, random_state=1)
    lengths = pd.Series(
        {query: 100 + number for number, query in enumerate(sorted(set(scores["query"])))}
    )
    found = query_statistics(scores, "bm25", "tilde", lengths)
    for query, rows in scores.groupby("query"):
        first, second = zscore(rows["bm25"]), zscore(rows["tilde"])
        row = found.loc[("t", query)]
        assert row["length"] == pytest.approx(np.log(lengths[query]))
        assert row["top_bm25"] == pytest.approx(first.max())
        assert row["drop_contextualised"] == pytest.approx(second.max() - np.sort(second)[-10])
        assert row["skew_bm25"] == pytest.approx((first**3).mean())
        assert row["agreement"] == pytest.approx(np.corrcoef(rows["bm25"], rows["tilde"])[0, 1])
