"""GFR of ranked lists: hand-worked cases, a plain loop as reference, identities and bounds."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.arrays import Floats
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen
from equipoise.declared import options_of
from equipoise.divergences import jsd, nmd, nvd, rnod
from equipoise.measures.gfr import (
    achieved_distributions,
    gfr,
    gfr_clusters,
    gfr_table,
    rank_biased_utility,
    stopping,
)

SIZE = AttributeSet("SIZE", "ordinal", ("small", "middle", "large"), np.array([0.5, 0.25, 0.25]))
COLOUR = AttributeSet("COLOUR", "nominal", ("red", "blue"), np.array([0.5, 0.5]))


def ranked(run: str, topic: str, documents: list[str]) -> pd.DataFrame:
    count = len(documents)
    return pd.DataFrame(
        {
            "run": run,
            "topic": topic,
            "document": documents,
            "rank": np.arange(1, count + 1),
            "score": np.arange(count, 0, -1.0),
        }
    )


def value(
    table: pd.DataFrame, topic: str, measure: str, attribute: str = "", run: str = "r"
) -> float:
    row = table[
        (table["run"] == run)
        & (table["topic"] == topic)
        & (table["measure"] == measure)
        & (table["attribute"] == attribute)
    ]
    assert len(row) == 1
    return float(row["value"].iloc[0])


# A list worked by hand: L2 (gain 3), unjudged, L1 (gain 1); maximal gain 3.
#   stop probabilities 3/4, 0, 1/4; shares of users 3/4, 0, (1/4)(1)(1/4) = 1/16
#   SIZE: memberships (1,0,0), uniform, (0,0,1):
#     achieved (1,0,0) at rank 1, (4/9, 1/9, 4/9) at rank 3
#   NMD at rank 1: (|1 - 1/2| + |1 - 3/4|) / 2 = 3/8
#   NMD at rank 3: (|4/9 - 1/2| + |5/9 - 3/4|) / 2 = (1/18 + 7/36) / 2 = 1/8
HAND_RUN = ranked("r", "t", ["a", "x", "b"])
HAND_QRELS = pd.DataFrame({"topic": "t", "document": ["a", "b", "c"], "level": [2, 1, 0]})
HAND_SIZE = pd.DataFrame(
    {
        "topic": "t",
        "document": ["a", "b"],
        "small": [1.0, 0.0],
        "middle": [0.0, 0.0],
        "large": [0.0, 1.0],
    }
)


def test_hand_worked_list() -> None:
    table = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE})
    err = 3 / 4 + 1 / 16 / 3
    rbu = 3 / 4 * 0.99 + 1 / 16 * 0.99**3
    fair = 3 / 4 * (1 - 3 / 8) + 1 / 16 * (1 - 1 / 8)
    assert value(table, "t", "ERR") == pytest.approx(err, abs=1e-12)
    assert value(table, "t", "iRBU") == pytest.approx(rbu, abs=1e-12)
    assert value(table, "t", "GF-NMD", "SIZE") == pytest.approx(fair, abs=1e-12)
    assert value(table, "t", "GFR-ERR+NMD") == pytest.approx((err + fair) / 2, abs=1e-12)
    assert value(table, "t", "GFR-iRBU+NMD") == pytest.approx((rbu + fair) / 2, abs=1e-12)


def test_unjudged_and_unrepresented_documents_are_choices() -> None:
    def score(**choices: Any) -> pd.DataFrame:
        return gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE}, **choices)

    # without the unjudged document the L1 document is at rank 2: achieved (1/2, 0, 1/2), NMD (0 +
    # 1/4) / 2
    removed = score(unjudged="removed")
    assert value(removed, "t", "ERR") == pytest.approx(3 / 4 + 1 / 16 / 2, abs=1e-12)
    assert value(removed, "t", "GF-NMD", "SIZE") == pytest.approx(
        3 / 4 * 5 / 8 + 1 / 16 * 7 / 8, abs=1e-12
    )
    # ignored, it keeps its rank but not its share in the mean
    ignored = score(unrepresented="ignored")
    assert value(ignored, "t", "ERR") == pytest.approx(3 / 4 + 1 / 16 / 3, abs=1e-12)
    assert value(ignored, "t", "GF-NMD", "SIZE") == pytest.approx(
        3 / 4 * 5 / 8 + 1 / 16 * 7 / 8, abs=1e-12
    )


def test_cutoff() -> None:
    table = gfr_table(HAND_RUN, HAND_QRELS, cutoff=2)
    assert value(table, "t", "ERR") == 0.75
    with pytest.raises(ValueError, match="cutoff must be greater than or equal to 1, got 0"):
        gfr_table(HAND_RUN, HAND_QRELS, cutoff=0)


def test_topics_without_a_ranking_and_means() -> None:
    qrels = pd.concat([HAND_QRELS, HAND_QRELS.assign(topic="u")])
    table = gfr_table(HAND_RUN, qrels)
    assert value(table, "u", "ERR") == 0
    assert value(table, "", "ERR") == pytest.approx(value(table, "t", "ERR") / 2)


def test_an_attribute_set_counts_only_for_its_topics() -> None:
    runs = pd.concat([HAND_RUN, HAND_RUN.assign(topic="u")])
    qrels = pd.concat([HAND_QRELS, HAND_QRELS.assign(topic="u")])
    hues = pd.DataFrame(
        {"topic": "u", "document": ["a", "b"], "red": [1.0, 0.5], "blue": [0.0, 0.5]}
    )
    table = gfr_table(
        runs, qrels, {"SIZE": HAND_SIZE, "COLOUR": hues}, {"SIZE": SIZE, "COLOUR": COLOUR}
    )
    assert set(table.loc[table["topic"] == "t", "attribute"]) == {"", "SIZE"}
    assert set(table.loc[table["topic"] == "u", "attribute"]) == {"", "COLOUR"}
    assert value(table, "", "GF-JSD", "COLOUR") == value(table, "u", "GF-JSD", "COLOUR")
    for topic, attribute, name in (("t", "SIZE", "GF-RNOD"), ("u", "COLOUR", "GF-JSD")):
        both = (value(table, topic, "ERR") + value(table, topic, name, attribute)) / 2
        assert value(table, topic, "GFR-ERR+JSD+RNOD") == pytest.approx(both, abs=1e-12)


def test_weights() -> None:
    def score(weights: dict[str, float]) -> float:
        table = gfr_table(
            HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE}, weights=weights
        )
        return value(table, "t", "GFR-ERR+NMD")

    table = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE})
    err, fair = value(table, "t", "ERR"), value(table, "t", "GF-NMD", "SIZE")
    assert score({"utility": 1, "SIZE": 0}) == pytest.approx(err, abs=1e-12)  # NCU
    assert score({"utility": 0, "SIZE": 2}) == pytest.approx(fair, abs=1e-12)
    assert score({"utility": 1, "SIZE": 3}) == pytest.approx(err / 4 + 3 * fair / 4, abs=1e-12)
    for some in ({"AGE": 1.0}, {"utility": 1.0}, {"utility": 1.0, "SIZE": 1.0, "AGE": 0.0}):
        with pytest.raises(ValueError, match="for each of utility, SIZE"):
            score(some)
    for number in (0.0, 1e308, float("nan"), -1.0):
        with pytest.raises(ValueError, match=r"weights.* must"):
            score({"utility": number, "SIZE": number})


@pytest.mark.parametrize("weights", [[-1, 2], [[1, 1], [0, 0]], [1e308, 1e308], [np.nan, 1]])
def test_weights_of_components_are_refused_where_they_are_no_shares(weights: Any) -> None:
    with pytest.raises(ValueError, match="non-negative and not all 0"):
        gfr([[0.5, 0.25], [0.5, 0.25]], weights)


def test_components_are_rounded_as_the_campaign_does() -> None:
    assert gfr([0.00004999, 0.00005001], decimals=4) == pytest.approx(0.00005)
    assert gfr([0.03125, 0.09375], decimals=4) == pytest.approx(
        (0.0312 + 0.0938) / 2
    )  # printf: half to even
    raw = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE})
    rounded = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE}, decimals=4)
    by_hand = (round(value(raw, "t", "ERR"), 4) + round(value(raw, "t", "GF-NMD", "SIZE"), 4)) / 2
    assert value(rounded, "t", "GFR-ERR+NMD") == pytest.approx(by_hand, abs=1e-12)
    assert value(raw, "t", "GFR-ERR+NMD") != value(rounded, "t", "GFR-ERR+NMD")
    assert value(raw, "t", "ERR") == value(rounded, "t", "ERR")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"runs": pd.concat([HAND_RUN, HAND_RUN.iloc[[0]]])},
            "a run ranks a document twice: run 'r', topic 't', document 'a'",
        ),
        (
            {"qrels": pd.concat([HAND_QRELS, HAND_QRELS.iloc[[0]]])},
            "the qrels judge a document twice",
        ),
        (
            {"memberships": {"SIZE": pd.concat([HAND_SIZE, HAND_SIZE])}},
            "a table has a document twice",
        ),
        (
            {"memberships": {"SIZE": HAND_SIZE.drop(columns="large")}},
            "the memberships in SIZE have no column for large",
        ),
        (
            {"memberships": {"SIZE": HAND_SIZE.assign(topic="z")}},
            "the memberships in SIZE must be for topics of the qrels, such as t, got z",
        ),
        ({"memberships": {}}, "the same are needed"),
        ({"gains": {1: 1}}, "the gain of level 2 of the qrels is missing"),
        ({"qrels": HAND_QRELS.iloc[:0]}, "the qrels judge no document"),
        ({"unjudged": "kept"}, "unjudged must be 'nonrelevant' or 'removed', got 'kept'"),
        ({"unrepresented": "skipped"}, "unrepresented must be 'uniform' or 'ignored'"),
        ({"similarities": {"ordinal": ("euclid",)}}, "similarities.*must be.*got 'euclid'"),
        ({"similarities": {"nominal": ("jsd",)}}, "must be given for ordinal groups"),
        ({"similarities": {"nominal": ("nmd",), "ordinal": ("nmd",)}}, "need no order"),
    ],
)
def test_what_does_not_fit_is_an_error(change: dict[str, Any], complaint: str) -> None:
    arguments: dict[str, Any] = {
        "runs": HAND_RUN,
        "qrels": HAND_QRELS,
        "memberships": {"SIZE": HAND_SIZE},
        "attributes": {"SIZE": SIZE},
    }
    with pytest.raises(ValueError, match=complaint):
        gfr_table(**(arguments | change))


def test_gains_out_of_range_are_errors() -> None:
    for gains in ([-1.0], [4.0], [float("nan")]):
        with pytest.raises(ValueError, match="between 0 and"):
            stopping(gains, max_gain=3)


# --- a plain loop as reference --------------------------------------------------------------------


def plain_scores(
    documents: list[str],
    level: dict[str, int],
    members: dict[str, list[float]],
    target: Floats,
    divergence: Any,
) -> dict[str, float]:
    """One list, document by document, straight from the formulas."""
    gain_of, n = {0: 0, 1: 1, 2: 3}, len(target)
    reading, scores, seen = 1.0, {"ERR": 0.0, "iRBU": 0.0, "GF": 0.0}, np.zeros(n)
    for rank, document in enumerate(documents, start=1):
        seen = seen + np.array(members.get(document, np.full(n, 1 / n)))
        stop = gain_of[level.get(document, 0)] / 4
        scores["ERR"] += reading * stop / rank
        scores["iRBU"] += reading * stop * 0.99**rank
        scores["GF"] += reading * stop * (1 - float(divergence(seen / rank, target)))
        reading *= 1 - stop
    return scores


@st.composite
def collections(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, Floats]:
    pool = [f"d{i}" for i in range(12)]
    topics = ["t1", "t2", "t3"]
    runs = []
    for run, topic in itertools.product(["r1", "r2"], topics):
        order = draw(st.permutations(pool))
        runs.append(ranked(run, topic, order[: draw(st.integers(1, len(pool)))]))
    judged = draw(
        st.lists(st.tuples(st.sampled_from(topics), st.sampled_from(pool)), unique=True, min_size=1)
    )
    levels = draw(st.lists(st.integers(0, 2), min_size=len(judged), max_size=len(judged)))
    qrels = pd.DataFrame(
        {"topic": [t for t, _ in judged], "document": [d for _, d in judged], "level": levels}
    )
    part = draw(st.integers(1, len(judged)))
    raw = np.array([[draw(st.integers(0, 4)) for _ in range(3)] for _ in range(part)]) + np.array(
        [0, 0, 1]
    )
    probabilities = raw / raw.sum(axis=1, keepdims=True)
    memberships = qrels.loc[: part - 1, ["topic", "document"]].assign(
        **dict(zip(SIZE.groups, probabilities.T, strict=True))
    )
    target = np.array([draw(st.integers(1, 5)) for _ in range(3)], dtype=np.float64)
    return pd.concat(runs, ignore_index=True), qrels, memberships, target / target.sum()


@given(collections(), st.sampled_from([1, 3, 20]))
@settings(deadline=None, max_examples=60)
def test_agrees_with_a_plain_loop(
    collection: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, Floats], cutoff: int
) -> None:
    runs, qrels, memberships, target = collection
    functions: dict[Any, Any] = {"nmd": nmd, "rnod": rnod, "jsd": jsd, "nvd": nvd}
    with pytest.MonkeyPatch.context() as patch:  # rankings of which nothing is judged count too
        patch.setattr("equipoise.measures.gfr.judge", list)
        whole = gfr_table(
            runs,
            qrels,
            {"SIZE": memberships},
            {"SIZE": AttributeSet("SIZE", "ordinal", SIZE.groups, target)},
            cutoff=cutoff,
            similarities={"ordinal": ("nmd", "rnod", "jsd", "nvd")},
        ).set_index(["run", "topic", "attribute", "measure"])
    table, share = whole["value"], whole["seen"]
    for run, topic in itertools.product(["r1", "r2"], sorted(set(qrels["topic"]))):
        rows = runs[(runs["run"] == run) & (runs["topic"] == topic)]
        level = {d: int(x) for t, d, x in qrels.itertuples(index=False) if t == topic}
        members = {d: list(p) for t, d, *p in memberships.itertuples(index=False) if t == topic}
        for name, function in functions.items():
            plain = plain_scores(list(rows["document"])[:cutoff], level, members, target, function)
            assert table[run, topic, "", "ERR"] == pytest.approx(plain["ERR"], abs=1e-12)
            assert table[run, topic, "", "iRBU"] == pytest.approx(plain["iRBU"], abs=1e-12)
            listed = list(rows["document"])[:cutoff]
            assert share[run, topic, "", "ERR"] == pytest.approx(
                np.mean([d in level for d in listed])
            )
            if members:
                assert table[run, topic, "SIZE", f"GF-{name.upper()}"] == pytest.approx(
                    plain["GF"], abs=1e-9
                )
                assert share[run, topic, "SIZE", f"GF-{name.upper()}"] == np.mean(
                    [d in members for d in listed]
                )
            else:
                assert (run, topic, "SIZE", f"GF-{name.upper()}") not in table.index


@given(collections())
@settings(deadline=None, max_examples=30)
def test_bounds_and_clusters(
    collection: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, Floats],
) -> None:
    runs, qrels, memberships, target = collection
    fixed: dict[str, Any] = {
        "memberships": {"SIZE": memberships},
        "attributes": {"SIZE": AttributeSet("SIZE", "ordinal", SIZE.groups, target)},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equipoise.measures.gfr.judge", list)
        table = gfr_table(runs, qrels, **fixed)
    assert table["value"].between(0, 1).all()
    # a score is the sum over the groups of users of share times experience
    clusters = gfr_clusters(runs, qrels, **fixed)
    share = clusters[clusters["measure"] == "share"].set_index(["run", "topic", "rank"])["value"]
    for measure, score in (("ERR", "ERR"), ("DistrSim-RNOD", "GF-RNOD")):
        terms = clusters[clusters["measure"] == measure].set_index(["run", "topic", "rank"])[
            "value"
        ]
        sums = (share * terms).dropna().groupby(["run", "topic"]).sum()
        scores = table[(table["measure"] == score) & (table["topic"] != "")].set_index(
            ["run", "topic"]
        )["value"]
        joined = scores.to_frame("score").join(sums.to_frame("sum")).fillna({"sum": 0.0})
        np.testing.assert_allclose(joined["score"], joined["sum"], atol=1e-12)


# --- the kernels ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_shares_and_those_who_never_leave_sum_to_one(gains: list[int]) -> None:
    shares = stopping(gains, max_gain=3)
    assert shares.sum() + np.prod(1 - np.array(gains) / 4) == pytest.approx(1)


def random_collection(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One run of 25 of 40 documents on four topics, half of the documents judged on five levels."""
    rng = np.random.default_rng(seed)
    documents = np.array([f"d{i:02d}" for i in range(40)])
    topics = ["101", "102", "103", "104"]
    runs = pd.concat(
        ranked("r", topic, rng.permutation(documents)[:25].tolist()) for topic in topics
    )
    judged = [
        (topic, d, int(rng.integers(0, 5)))
        for topic in topics
        for d in rng.permutation(documents)[:20].tolist()
    ]
    return runs, pd.DataFrame(judged, columns=["topic", "document", "level"])


def by_ir_measures(measure: Any, runs: pd.DataFrame, qrels: pd.DataFrame) -> dict[str, float]:
    """Scores of a measure by topic, as the public programs behind ir_measures compute them."""
    judged = qrels.rename(columns={"topic": "query_id", "document": "doc_id", "level": "relevance"})
    run = runs.rename(columns={"topic": "query_id", "document": "doc_id"})[
        ["query_id", "doc_id", "score"]
    ]
    return {
        metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], judged, run)
    }


@pytest.mark.skipif(
    shutil.which("perl") is None, reason="gdeval, which computes ERR for ir_measures, needs perl"
)
@pytest.mark.parametrize("seed", range(3))
def test_err_is_that_of_gdeval(seed: int) -> None:
    """With the gains 2^l - 1 up to level 4 the stop probability is gdeval's (2^l - 1) / 2^4."""
    runs, qrels = random_collection(seed)
    table = gfr_table(runs, qrels, gains={level: 2**level - 1 for level in range(1, 5)})
    expected = by_ir_measures(ir_measures.ERR @ 20, runs, qrels)
    assert len(expected) == 4
    for topic, score in expected.items():
        assert value(table, topic, "ERR") == pytest.approx(
            score, abs=5e-6
        )  # gdeval prints five decimals


def test_rank_biased_utility_and_its_range() -> None:
    np.testing.assert_allclose(rank_biased_utility(np.zeros((2, 3)), phi=0.9), [0.9, 0.81, 0.729])


def test_users_of_the_hand_worked_list_leave_at_its_ranks() -> None:
    clusters = gfr_clusters(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE})
    shares = clusters[clusters["measure"] == "share"]
    assert dict(zip(shares["rank"], shares["value"], strict=True)) == {1: 3 / 4, 3: 1 / 16}


def test_clusters_have_the_options_of_the_table() -> None:
    table, clusters = (
        {choice.name: choice.value for choice in options_of(of)} for of in (gfr_table, gfr_clusters)
    )
    assert set(table) - set(clusters) == {"weights", "decimals", "by_group"}
    assert clusters == {name: table[name] for name in clusters}
    with pytest.raises(ValueError, match="cutoff must be greater than or equal to 1, got 0"):
        gfr_clusters(HAND_RUN, HAND_QRELS, cutoff=0)


def test_achieved_distribution_before_the_first_document_that_counts() -> None:
    members = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    np.testing.assert_allclose(
        achieved_distributions(members, [False, True, True]), [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]
    )


def test_the_parts_of_the_groups_sum_to_the_utility() -> None:
    table = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE}, by_group=True)
    # Document a, small, brings 3/4; at rank 3, b is large: 1/16 / 3.
    parts = {group: value(table, "t", f"ERR(group={group})", "SIZE") for group in SIZE.groups}
    assert parts == pytest.approx({"small": 3 / 4, "middle": 0, "large": 1 / 16 / 3})
    assert sum(parts.values()) == pytest.approx(value(table, "t", "ERR"))


def test_what_was_seen_is_counted() -> None:
    table = gfr_table(HAND_RUN, HAND_QRELS, {"SIZE": HAND_SIZE}, {"SIZE": SIZE})
    judged, ranking, level, member = table.attrs["seen"]
    without_x = ("run r", "ranked documents", "a judgement", 2, 3, ("x",), ("c",))
    assert judged == Seen(*without_x)
    assert (ranking.found, ranking.whole, level.found, level.whole) == (1, 1, 2, 3)
    assert (member.needed, member.found, member.whole) == ("a membership in SIZE", 2, 3)
    assert set(table["seen"]) == {2 / 3}
