"""Bias of a ranked list against plain forms of thesis Eqs. 4.1 to 4.13."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.measures.ranking_bias import (
    TermGroups,
    awrf,
    count_terms,
    fairr,
    ideal_fairr,
    max_ted,
    neutrality,
    nfairr,
    rbdf,
    score_ranking_bias,
    ted,
    texfair,
)

Setting = tuple[Sequence[str], Sequence[float]]

WORDS = ["he", "him", "she", "her", "they", "them", "the", "rain", "falls"]
PAIRS = [("he", "m"), ("him", "m"), ("she", "f"), ("her", "f"), ("they", "n"), ("them", "n")]


# --- the equations, one number at a time ----------------------------------------------------------


def plain_magnitudes(text: str, groups: Sequence[str]) -> list[int]:
    tf = Counter(text.lower().split(" "))
    return [sum(tf[t] for t, g in PAIRS if g == group) for group in groups]


def plain_neutrality(
    magnitudes: Sequence[float], target: Sequence[float], threshold: float
) -> float:  # Eq. 4.1
    total = sum(magnitudes)
    if total <= threshold:
        return 1.0
    return 1.0 - sum(abs(m / total - j) for m, j in zip(magnitudes, target, strict=True))


def plain_fairr(omegas: Sequence[float], k: int) -> float:  # Eq. 4.2, logarithm to base 2
    return sum(omega / math.log2(r + 1) for r, omega in enumerate(omegas[:k], start=1))


def plain_nfairr(
    texts: list[str],
    background: list[str],
    groups: Sequence[str],
    target: Sequence[float],
    k: int,
    threshold: float = 1,
) -> float:  # Eq. 4.3
    omega = [plain_neutrality(plain_magnitudes(t, groups), target, threshold) for t in texts]
    ideal = sorted(
        (plain_neutrality(plain_magnitudes(t, groups), target, threshold) for t in background),
        reverse=True,
    )
    return plain_fairr(omega, k) / plain_fairr(ideal, k)


def plain_term_exposure(
    term: str, texts: list[str], k: int
) -> float:  # Eq. 4.8, natural logarithm: the base must not matter
    exposure = 0.0
    for r, text in enumerate(texts[:k], start=1):
        tokens = text.split(" ")
        exposure += tokens.count(term) / len(tokens) / math.log(r + 1)
    return exposure


def plain_representation(
    texts: list[str], groups: Sequence[str], k: int
) -> list[float] | None:  # Eq. 4.9
    by_group = [
        sum(plain_term_exposure(t, texts, k) for t, g in PAIRS if g == group) for group in groups
    ]
    return [part / sum(by_group) for part in by_group] if sum(by_group) else None


def plain_rbdf(texts: list[str], groups: Sequence[str], k: int) -> float:  # Eq. 4.11
    weights = [1 / math.log(r + 1) for r in range(1, len(texts[:k]) + 1)]
    shown = [sum(plain_magnitudes(t, groups)) > 0 for t in texts[:k]]
    return sum(w for w, s in zip(weights, shown, strict=True) if s) / sum(weights)


def plain_texfair(
    texts: list[str],
    groups: Sequence[str],
    target: Sequence[float],
    k: int,
    *,
    proportional: bool = True,
) -> float:  # Eqs. 4.10, 4.12, 4.13
    shares = plain_representation(texts, groups, k)
    most = max(sum(abs((i == j) - q) for i, q in enumerate(target)) for j in range(len(target)))
    if shares is None:
        return most
    divergence = sum(abs(p - q) for p, q in zip(shares, target, strict=True))
    return most - divergence * (plain_rbdf(texts, groups, k) if proportional else 1)


text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
ranking = st.lists(text, min_size=1, max_size=8)
two_or_three = st.sampled_from(
    [(("f", "m"), (0.5, 0.5)), (("f", "m"), (0.3, 0.7)), (("f", "m", "n"), (0.5, 0.3, 0.2))]
)
cutoffs = st.lists(st.integers(1, 12), min_size=1, max_size=3)


def counted(
    texts: list[str], groups: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Magnitudes and lengths of one ranking, by the library."""
    chosen = TermGroups.from_pairs([pair for pair in PAIRS if pair[1] in groups])
    counts = count_terms(((str(n), text) for n, text in enumerate(texts)), WORDS)
    return counts.magnitudes(chosen), counts.lengths


@given(ranking, two_or_three, cutoffs)
def test_texfair_is_eqs_4_7_to_4_13_for_two_and_three_groups(
    texts: list[str], setting: Setting, ks: list[int]
) -> None:
    groups, target = setting
    magnitudes, lengths = counted(texts, groups)
    for proportional in (True, False):
        ours = texfair(magnitudes, lengths, ks, target, proportional=proportional)
        assert ours == pytest.approx(
            [plain_texfair(texts, groups, target, k, proportional=proportional) for k in ks]
        )


@given(ranking, ranking, two_or_three, cutoffs, st.integers(0, 3))
def test_nfairr_is_eqs_4_1_to_4_3(
    texts: list[str], others: list[str], setting: Setting, ks: list[int], threshold: float
) -> None:
    groups, target = setting
    background = texts + others + ["the rain"]  # a neutral document: the ideal is above zero
    of_run, of_background = counted(texts, groups)[0], counted(background, groups)[0]
    ours = nfairr(
        fairr(neutrality(of_run, target, threshold=threshold), ks),
        ideal_fairr(neutrality(of_background, target, threshold=threshold), ks),
    )
    plain = [plain_nfairr(texts, background, groups, target, k, threshold) for k in ks]
    assert ours == pytest.approx(plain, abs=1e-12)


# --- identities -----------------------------------------------------------------------------------


@given(ranking, two_or_three, cutoffs)
def test_doubling_the_text_of_every_document_changes_no_exposure_measure(
    texts: list[str], setting: Setting, ks: list[int]
) -> None:
    groups, target = setting
    once, twice = counted(texts, groups), counted([f"{t} {t}" for t in texts], groups)
    assert texfair(*once, ks, target) == pytest.approx(texfair(*twice, ks, target))


@given(ranking, two_or_three, cutoffs)
def test_a_list_without_representative_documents_has_texfair_at_its_maximum(
    texts: list[str], setting: Setting, ks: list[int]
) -> None:
    groups, target = setting
    bare = [" ".join(["rain"] * len(t.split())) for t in texts]
    magnitudes, lengths = counted(bare, groups)
    assert texfair(magnitudes, lengths, ks, target) == pytest.approx(max_ted(target))
    assert rbdf(magnitudes.sum(axis=-1) > 0, ks) == pytest.approx(0)


@given(ranking, two_or_three, cutoffs)
def test_ted_stays_within_its_bounds_and_the_maximum_is_reached(
    texts: list[str], setting: Setting, ks: list[int]
) -> None:
    groups, target = setting
    divergence = ted(*counted(texts, groups), ks, target)
    assert (divergence >= 0).all()
    assert (divergence <= max_ted(target) + 1e-12).all()
    rarest = np.eye(len(target))[int(np.argmin(target))]
    assert ted([rarest], [1], [1], target) == pytest.approx(max_ted(target))


@given(ranking, cutoffs)
def test_awrf_over_term_shares_of_the_length_is_ted_without_proportionality(
    texts: list[str], ks: list[int]
) -> None:
    """Eqs. 4.5 and 4.6 with the alignment tf / |d| and the L1 distance are Eqs. 4.9 and 4.10."""
    magnitudes, lengths = counted(texts, ("f", "m"))
    ours = np.nan_to_num(awrf(magnitudes / lengths[:, None], ks))
    assert ours == pytest.approx(ted(magnitudes, lengths, ks, proportional=False))


def test_figure_4_1_both_rankings_have_nfairr_zero_and_texfair_tells_them_apart() -> None:
    mixed, male = [[0, 3], [3, 0], [3, 0], [0, 3]], [[0, 3]] * 4
    omega = neutrality([mixed, male])
    assert fairr(omega, [4]) == pytest.approx(np.zeros((2, 1)))
    fair = texfair([mixed, male], np.full((2, 4), 10), [4])[:, 0]
    assert fair[0] > 0.8
    assert fair[1] == pytest.approx(0)


# --- shapes and padding ---------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(ranking, min_size=1, max_size=5), cutoffs)
def test_padded_lists_of_different_lengths_score_as_each_alone(
    lists: list[list[str]], ks: list[int]
) -> None:
    depth = max(map(len, lists))
    magnitudes, lengths = np.full((len(lists), depth, 2), 7.0), np.full((len(lists), depth), 9)
    present = np.zeros((len(lists), depth), dtype=bool)
    for n, texts in enumerate(lists):
        magnitudes[n, : len(texts)], lengths[n, : len(texts)] = counted(texts, ("f", "m"))
        present[n, : len(texts)] = True
    fair = texfair(magnitudes, lengths, ks, present=present)
    omega = neutrality(magnitudes)
    for n, texts in enumerate(lists):
        alone = counted(texts, ("f", "m"))
        assert fair[n] == pytest.approx(texfair(*alone, ks))
        assert fairr(omega, ks, present=present)[n] == pytest.approx(
            fairr(neutrality(alone[0]), ks)
        )
        assert ideal_fairr(omega, ks, present=present)[n] == pytest.approx(
            ideal_fairr(neutrality(alone[0]), ks)
        )


def test_a_zero_ideal_is_undefined_unless_a_value_is_chosen() -> None:
    assert np.isnan(nfairr([0.0], [0.0])).all()
    assert nfairr([0.0], [0.0], undefined=0.0) == pytest.approx(0)


# --- counting -------------------------------------------------------------------------------------


@given(
    st.lists(st.text(alphabet="aAbB \t.,'-é", max_size=30), min_size=1, max_size=6),
    st.integers(1, 4),
)
def test_counting_agrees_with_a_counter_over_each_text(texts: list[str], batch: int) -> None:
    terms = ["a", "ab", "b."]
    counts = count_terms(
        ((str(n), text) for n, text in enumerate(texts)), terms, tokens="space", batch=batch
    )
    for n, body in enumerate(texts):
        tokens = [token for token in body.lower().split(" ") if token]
        assert counts.counts.toarray()[n].tolist() == [tokens.count(term) for term in terms]
        assert counts.lengths[n] == len(tokens)


def test_words_are_freed_of_punctuation_and_of_the_possessive() -> None:
    counts = count_terms(
        [("1", "(He) met the boy's step-mother, HE said; Anna's.")],
        ["he", "mother", "anna"],
        tokens="word",
    )
    assert dict(zip(counts.terms, counts.counts.toarray()[0].tolist(), strict=True)) == {
        "he": 2,
        "mother": 1,
        "anna": 1,
    }
    assert counts.lengths.tolist() == [11]


def test_one_count_serves_several_term_lists() -> None:
    counts = count_terms([("1", "he and she and him")], WORDS)
    narrow = TermGroups.from_pairs([("he", "m"), ("she", "f")])
    wide = TermGroups.from_pairs(PAIRS[:4])
    assert counts.magnitudes(narrow).tolist() == [[1, 1]]
    assert counts.magnitudes(wide).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: count_terms([("1", "a")], []), "empty"),
        (lambda: count_terms([("1", "a"), ("1", "b")], ["a"]), "must be unique, got 1 twice"),
        (lambda: count_terms([("1", "a")], ["a"], tokens=cast("Any", "letters")), "'letters'"),
        (lambda: TermGroups.from_pairs([("he", "m")]), "at least two groups"),
        (
            lambda: count_terms([("1", "a")], ["a"]).magnitudes(TermGroups.from_pairs(PAIRS)),
            "were not counted",
        ),
        (lambda: neutrality([[-1, 2]]), "at least 0"),
        (lambda: neutrality([[1, 2]], threshold=-1), "threshold"),
        (lambda: neutrality([[1, 2]], [0, 0]), "a sum above 0"),
        (lambda: neutrality([[1, 2]], [0.5, 0.3, 0.2]), "must have 2 numbers"),
        (lambda: fairr([1.0], [0]), "cutoffs"),
        (lambda: fairr([1.0], [1], present=[True, True]), "present"),
        (lambda: ted([[1, 0]], [1, 1], [1]), "lengths"),
        (lambda: awrf([[1, 0]], [1], distance="miles"), "miles"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_a_term_of_two_groups_counts_for_both_and_is_named() -> None:
    groups = TermGroups.from_pairs([("robin", "f"), ("robin", "m"), ("he", "m"), ("she", "f")])
    assert groups.shared == ("robin",)
    assert count_terms([("1", "robin")], groups.terms).magnitudes(groups).tolist() == [[1, 1]]


# --- tidy tables ----------------------------------------------------------------------------------


def random_collection(
    seed: int, documents: int = 60, topics: int = 7, runs: int = 2, depth: int = 15
) -> tuple[list[tuple[str, str]], pd.DataFrame]:
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 25))) for _ in range(documents)]
    rows = [
        {"run": f"run{r}", "topic": f"t{t}", "document": f"d{d}", "rank": rank}
        for r in range(runs)
        for t in range(topics)
        for rank, d in enumerate(
            rng.choice(documents, size=rng.integers(1, depth + 1), replace=False), start=1
        )
    ]
    return [(f"d{n}", text) for n, text in enumerate(texts)], pd.DataFrame(rows)


GENDER = TermGroups.from_pairs(PAIRS[:4])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["table", "own", "collection"])
def test_the_table_is_the_transcription_for_every_run_topic_and_cut_off(
    seed: int, kind: Any
) -> None:
    documents, runs = random_collection(seed)
    texts = dict(documents)
    pool = runs[runs["run"] == "run0"][["topic", "document"]]
    counts = count_terms(documents, GENDER.terms)
    shuffled = runs.sample(frac=1, random_state=seed)
    table = score_ranking_bias(
        shuffled,
        counts,
        GENDER,
        cutoffs=[1, 5, 20],
        background=pool if kind == "table" else kind,
    )
    value: Any = table.set_index(["run", "topic", "measure"])["value"]
    for (run, topic), rows in runs.groupby(["run", "topic"]):
        listed = [texts[d] for d in rows["document"]]
        background = {
            "table": [texts[d] for d in pool.loc[pool["topic"] == topic, "document"]],
            "own": listed,
            "collection": list(texts.values()),
        }[kind]
        for k in (1, 5, 20):
            assert value[run, topic, f"NFaiRR@{k}"] == pytest.approx(
                plain_nfairr(listed, background, ("f", "m"), (0.5, 0.5), k), abs=1e-9
            )
            assert value[run, topic, f"TExFAIR@{k}"] == pytest.approx(
                plain_texfair(listed, ("f", "m"), (0.5, 0.5), k), abs=1e-9
            )
            assert value[run, topic, f"TED@{k}"] == pytest.approx(
                1 - value[run, topic, f"TExFAIR@{k}"]
            )
    topics = table[table["topic"] != ""]
    means = topics.groupby(["run", "measure"])["value"].mean()
    assert value.xs("", level="topic").sort_index().to_numpy() == pytest.approx(
        means.sort_index().to_numpy()
    )
    assert list(table.columns) == ["run", "topic", "attribute", "measure", "value", "seen"]


def test_a_document_that_the_collection_lacks_counts_as_neutral() -> None:
    counts = count_terms([("d1", "he and him")], GENDER.terms)
    runs = pd.DataFrame({"run": "r", "topic": "1", "document": ["d1", "ghost"], "rank": [1, 2]})
    table = score_ranking_bias(runs, counts, GENDER, cutoffs=[2])
    fair = table[(table["measure"] == "FaiRR@2") & (table["topic"] == "1")]["value"].item()
    assert fair == pytest.approx(1 / math.log2(3))


def test_duplicate_documents_absent_topics_and_empty_runs_are_refused() -> None:
    counts = count_terms([("d1", "he")], GENDER.terms)
    twice = pd.DataFrame({"run": "r", "topic": "1", "document": ["d1", "d1"], "rank": [1, 2]})
    with pytest.raises(ValueError, match="run 'r', topic '1', document 'd1'"):
        score_ranking_bias(twice, counts, GENDER)
    once = twice.iloc[:1]
    with pytest.raises(ValueError, match="no documents for 1 topics of the runs: 1"):
        score_ranking_bias(
            once, counts, GENDER, background=pd.DataFrame({"topic": ["2"], "document": ["d1"]})
        )
    with pytest.raises(ValueError, match="have no document"):
        score_ranking_bias(once.iloc[:0], counts, GENDER)
    with pytest.raises(ValueError, match="'all'"):
        score_ranking_bias(once.assign(topic="all"), counts, GENDER)


def test_the_cut_off_is_ten_where_none_is_given() -> None:
    documents, runs = random_collection(4, depth=20)
    counts = count_terms(documents, GENDER.terms)
    pd.testing.assert_frame_equal(
        score_ranking_bias(runs, counts, GENDER),
        score_ranking_bias(runs, counts, GENDER, cutoffs=[10]),
    )


def test_an_undefined_topic_is_not_averaged_away() -> None:
    counts = count_terms([("d1", "he and him"), ("d2", "rain")], GENDER.terms)
    runs = pd.DataFrame({"run": "r", "topic": ["1", "2"], "document": ["d1", "d2"], "rank": 1})
    table = score_ranking_bias(runs, counts, GENDER, background="own", cutoffs=[1])
    mean = table[(table["measure"] == "NFaiRR@1") & (table["topic"] == "")]["value"].item()
    assert math.isnan(mean)
    chosen = score_ranking_bias(runs, counts, GENDER, background="own", cutoffs=[1], undefined=0.0)
    assert chosen[(chosen["measure"] == "NFaiRR@1") & (chosen["topic"] == "")][
        "value"
    ].item() == pytest.approx(0.5)


def test_scores_do_not_depend_on_the_order_of_rows_or_of_the_collection() -> None:
    documents, runs = random_collection(11)
    first = score_ranking_bias(runs, count_terms(documents, GENDER.terms), GENDER, cutoffs=[5, 10])
    again = score_ranking_bias(
        runs.iloc[::-1],
        count_terms(documents[::-1], GENDER.terms, batch=7),
        GENDER,
        cutoffs=[5, 10],
    )
    pd.testing.assert_frame_equal(first, again)


def test_no_warning_rises_on_a_whole_collection() -> None:
    documents, runs = random_collection(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = score_ranking_bias(
            runs, count_terms(documents, GENDER.terms), GENDER, cutoffs=[1, 2, 3]
        )
    assert table["value"].notna().all()
