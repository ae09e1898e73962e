"""Interpolation (thesis Eq. 2.5), the sweep over its weight, and how the weight is chosen (Tables 2.3 and 2.4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import iqr, zscore
from sklearn.metrics import average_precision_score, ndcg_score

from equipoise.measures.effectiveness import effectiveness
from equipoise_studies.query_by_example.interpolation import (
    ALPHAS,
    interpolate,
    oracle,
    oracle_statistics,
    predicted,
    query_statistics,
    reached,
    sweep,
    tuned,
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


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
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
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Scores of two rankers, judgements, and folds over one task; grades follow both rankers' scores."""
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
    names = sorted(set(pairs["query"]))
    dev, test = names[::2], names[1::2]
    splits = pd.DataFrame(
        [
            ("t", fold, part, query)
            for fold, d, s in (("1", dev, test), ("2", test, dev))
            for part, part_queries in (("dev", d), ("test", s))
            for query in part_queries
        ],
        columns=["task", "fold", "part", "query"],
    )
    return scores, judgements, splits


def values_of(scores: pd.DataFrame, judgements: pd.DataFrame, relevant: int = 2) -> pd.DataFrame:
    measures = {"AP": f"AP(rel={relevant})", "nDCG": "nDCG"}
    return effectiveness(
        sweep(scores, "bm25", "tilde"), judgements, by=["task", "alpha"], measures=measures
    )


def test_effectiveness_agrees_with_scikit_learn() -> None:
    scores, judgements, _ = random_collection()
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
    """As trec_eval: pytrec_eval, its binding, has no cut-off for RR, and ir_measures turns to another program there."""
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
    scores, judgements, _ = random_collection()
    run = scores.rename(columns={"bm25": "score"})
    with pytest.raises(ValueError, match="1 of 12 rankings have no judgements"):
        effectiveness(run, judgements[judgements["query"] != "q00"], by=["task"])
    with pytest.raises(ValueError, match="knows no measure 'nonsense'"):
        effectiveness(run, judgements, by=["task"], measures={"what": "nonsense"})


def test_the_ends_of_the_sweep_are_the_two_rankers() -> None:
    scores, judgements, _ = random_collection()
    swept = values_of(scores, judgements)
    for alpha, name in ((1.0, "bm25"), (0.0, "tilde")):
        measures = {"AP": "AP(rel=2)", "nDCG": "nDCG"}
        alone = effectiveness(
            scores.rename(columns={name: "score"}), judgements, by=["task"], measures=measures
        )
        end = swept[swept["alpha"] == alpha].reset_index(drop=True)
        pd.testing.assert_frame_equal(end[list(alone.columns)], alone)


def test_a_single_pair_is_swept_as_the_kernels_say() -> None:
    scores, _, _ = random_collection()
    swept = sweep(scores, "bm25", "tilde")
    assert len(swept) == len(scores) * len(ALPHAS)
    one = scores[scores["query"] == "q03"]
    expected = 0.3 * zscore(one["bm25"]) + 0.7 * zscore(one["tilde"])
    found = swept[(swept["query"] == "q03") & (swept["alpha"] == 0.3)]["score"]
    np.testing.assert_allclose(found, expected)


def test_sweep_refuses_doubled_pairs_and_missing_columns() -> None:
    scores, _, _ = random_collection()
    with pytest.raises(
        ValueError, match="a pair is scored twice: task 't', query 'q00', document 'd00'"
    ):
        sweep(pd.concat([scores, scores.head(1)]), "bm25", "tilde")
    with pytest.raises(ValueError, match="no column tildev2"):
        sweep(scores, "bm25", "tildev2")


@pytest.mark.parametrize("measure", ["AP", "nDCG"])
@pytest.mark.parametrize("seed", range(4))
def test_oracle_is_at_least_tuned_and_tuned_on_itself_is_at_least_the_parts(
    measure: str, seed: int
) -> None:
    scores, judgements, splits = random_collection(seed)
    values = values_of(scores, judgements)
    best = oracle(values, measure)
    held_out = tuned(values, splits, measure)
    both = best.merge(held_out, on=["task", "query"], suffixes=("_oracle", "_tuned"))
    assert len(both) == 12
    assert (both["value_oracle"] >= both["value_tuned"]).all()
    same = pd.concat([splits.assign(part="dev", query=splits["query"]).query("fold == '1'")])
    itself = values[(values["measure"] == measure)].groupby("alpha")["value"].mean()
    assert itself.max() >= max(itself[0.0], itself[1.0])
    assert len(same) == 12


@pytest.mark.parametrize("ties", ["lowest", "highest"])
def test_oracle_statistics_by_hand_and_by_scipy(ties: str) -> None:
    scores, judgements, _ = random_collection(5)
    values = values_of(scores, judgements)
    best = oracle(values, "AP", ties=ties)  # type: ignore[arg-type]
    row = oracle_statistics(best).iloc[0]
    weights, found = [], []
    for _, rows in values[values["measure"] == "AP"].groupby("query"):
        top = rows[rows["value"] == rows["value"].max()]["alpha"]
        weights.append(top.min() if ties == "lowest" else top.max())
        found.append(rows["value"].max())
    assert row["ranking quality"] == pytest.approx(np.mean(found))
    assert row["alpha average"] == pytest.approx(np.mean(weights))
    assert row["queries with optimal alpha 0"] == weights.count(0.0)
    assert row["queries with optimal alpha 1"] == weights.count(1.0)
    assert row["IQR of the optimal alpha"] == pytest.approx(iqr(weights))


def test_the_tie_rule_decides_the_weight_and_never_the_value() -> None:
    scores, judgements, _ = random_collection(2)
    values = values_of(scores, judgements)
    low, high = oracle(values, "AP"), oracle(values, "AP", ties="highest")
    assert (low["value"] == high["value"]).all()
    assert (low["alpha"] <= high["alpha"]).all()
    assert (low["alpha"] < high["alpha"]).any()
    with pytest.raises(ValueError, match="ties must be"):
        oracle(values, "AP", ties="any")  # type: ignore[arg-type]


def test_tuned_is_a_plain_loop_over_folds() -> None:
    scores, judgements, splits = random_collection(3)
    values = values_of(scores, judgements)
    found = tuned(values, splits, "nDCG").set_index("query")
    chosen = values[values["measure"] == "nDCG"].pivot_table(
        index="query", columns="alpha", values="value"
    )
    for fold in ("1", "2"):
        own = splits[splits["fold"] == fold]
        dev, test = (own[own["part"] == part]["query"] for part in ("dev", "test"))
        alpha = chosen.loc[dev].mean().idxmax()
        assert (found.loc[test, "alpha"] == alpha).all()
        np.testing.assert_array_equal(found.loc[test, "value"], chosen.loc[test, alpha])


def test_tuned_says_what_it_lacks() -> None:
    scores, judgements, splits = random_collection()
    values = values_of(scores, judgements)
    with pytest.raises(ValueError, match="no dev query"):
        tuned(values, splits[splits["part"] == "test"], "AP")
    with pytest.raises(ValueError, match="has no values"):
        tuned(values[values["query"] != "q00"], splits, "AP")
    with pytest.raises(ValueError, match=r"no measure 'P'; found \['AP', 'nDCG'\]"):
        tuned(values, splits, "P")


def _planted(strength: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Queries for which one of two weights is better, told (or not) by a statistic; two tasks share query papers."""
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_product(
        [["s", "t"], [f"q{number:02d}" for number in range(40)]], names=["task", "query"]
    )
    side = rng.choice([-1.0, 1.0], len(index))
    statistics = pd.DataFrame(
        {
            "told": strength * side + rng.normal(0, 0.1, len(index)),
            "noise": rng.normal(size=len(index)),
        },
        index=index,
    )
    values = pd.concat(
        [
            index.to_frame(index=False).assign(
                alpha=alpha, measure="AP", value=0.5 + sign * side / 5
            )
            for alpha, sign in ((0.0, -1), (1.0, 1))
        ]
    )
    return values, statistics


def test_a_weight_that_the_query_tells_is_found_and_one_that_it_does_not_tell_is_not() -> None:
    values, statistics = _planted(1.0)
    best = oracle(values, "AP")["value"].mean()
    assert predicted(values, statistics, "AP")["value"].mean() == pytest.approx(best)
    values, statistics = _planted(0.0)
    assert predicted(values, statistics, "AP")["value"].mean() < best - 0.1


def test_a_prediction_never_uses_the_query_papers_own_judgements() -> None:
    values, statistics = _planted(1.0)
    before = predicted(values, statistics, "AP").set_index(["task", "query"])["alpha"]
    changed = values.copy()
    own = changed["query"] == "q07"
    changed.loc[own, "value"] = 1.0 - changed.loc[own, "value"]
    after = predicted(changed, statistics, "AP").set_index(["task", "query"])["alpha"]
    assert (before.xs("q07", level="query") == after.xs("q07", level="query")).all()


def test_an_infinite_penalty_leaves_one_weight() -> None:
    values, statistics = _planted(1.0)
    values.loc[values["alpha"] == 1.0, "value"] += 0.2
    assert (predicted(values, statistics, "AP", penalty=1e12)["alpha"] == 1.0).all()


def test_query_statistics_by_a_plain_loop() -> None:
    scores, judgements, _ = random_collection(4)
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
    without = query_statistics(scores, "bm25", "tilde", lengths.drop("q00"))
    with pytest.raises(ValueError, match="contains NaN"):
        predicted(values_of(scores, judgements), without, "AP")


def test_reached_at_its_landmarks() -> None:
    np.testing.assert_allclose(reached([0.5, 0.6, 0.4], 0.5, 0.6), [0.0, 1.0, -1.0])
    assert np.isnan(reached(0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match="below the tuned weight"):
        reached(0.5, 0.6, 0.5)
