"""The evidence of chapter 5: intervals, changes by question, and nulls."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.attribution import bias_table, score_answers
from equipoise_compendium.claims import Evidence
from equipoise_studies.attribution import claims, data, published
from notebook_evidence import result_of

SAMPLE = 500
"""Questions of a benchmark in the thesis (section 5.4)."""
STUDY = data.read_study("replica")


@cache
def scored() -> pd.DataFrame:
    return score_answers(data.cached_answers(STUDY))


@cache
def differences() -> pd.DataFrame:
    return claims.changes(scored())


def rows(values: list[float]) -> pd.DataFrame:
    questions = [f"q{number}" for number in range(len(values))]
    return pd.DataFrame({"question": questions, "gap": values})


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("up", "down", "n"), [(0, 0, 15), (3, 1, 20), (9, 4, 29)])
def test_an_interval_is_that_of_bonett_and_price(up: int, down: int, n: int) -> None:
    """Adjusted Wald interval of paired proportions: its formula adds one change either way."""
    values = [100.0] * up + [-100.0] * down + [0.0] * (n - up - down)
    it = claims.pooled_mean(rows(values), "gap")
    first, second = (up + 1) / (n + 2), (down + 1) / (n + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    assert it.estimate == pytest.approx(100 * (up - down) / n)
    expected = tuple(100 * (first - second + side * 1.96 * error) for side in (-1, 1))
    assert (it.low, it.high) == pytest.approx(expected, abs=200 / (n + 2))
    assert it.n == n


def test_no_question_is_invented_where_there_are_many() -> None:
    values = [100.0] * 20 + [-100.0] * 45 + [0.0] * 235
    it = claims.pooled_mean(rows(values), "gap")
    error = np.std(values) / math.sqrt(300)
    expected = tuple(np.mean(values) + side * 1.96 * error for side in (-1, 1))
    assert (it.low, it.high) == pytest.approx(expected, abs=0.5)
    assert claims.pooled_mean(rows([5.0] * 30), "gap").low == pytest.approx(5)


def test_rows_of_a_question_are_drawn_together() -> None:
    values = np.random.default_rng(3).choice([-100.0, 0.0, 100.0], 40).tolist()
    once = claims.pooled_mean(rows(values), "gap")
    thrice = claims.pooled_mean(pd.concat([rows(values)] * 3), "gap")
    assert (thrice.estimate, thrice.low, thrice.high, thrice.n) == pytest.approx(
        (once.estimate, once.low, once.high, 40)
    )

    sides = pd.concat([rows(values).assign(first=True), rows([5.0] * 40).assign(first=False)])
    once = claims.difference_of_means(sides, "gap", "first")
    again = claims.difference_of_means(pd.concat([sides] * 2), "gap", "first")
    assert (once.estimate, once.low, once.high) == pytest.approx(
        (again.estimate, again.low, again.high)
    )
    assert once.estimate == pytest.approx(np.mean(values) - 5)


def test_settings_have_the_same_weight_as_in_a_mean_of_published_cells() -> None:
    few = rows([100.0, 0.0]).assign(setting="few")
    many = rows([0.0] * 9 + [-100.0]).assign(setting="many")
    table = pd.concat([few, many])
    by_setting = claims.pooled_mean(table, "gap", settings=["setting"])
    assert by_setting.estimate == pytest.approx((50 - 10) / 2)
    assert claims.pooled_mean(table, "gap").estimate == pytest.approx(0)
    assert by_setting.n == 10  # q0 and q1 are asked in both


def test_no_interval_is_computed_from_fewer_than_ten_questions() -> None:
    answers = data.large_model_answers(STUDY)
    few = answers[answers["question"].isin(answers["question"].unique()[:9])]
    table = claims.scores_by(few, "passages", 0.95, 99)
    assert table["questions"].max() == 9
    assert table["low"].isna().all()
    ten = answers[answers["question"].isin(answers["question"].unique()[:10])]
    correct = claims.scores_by(ten, "passages", 0.95, 99).query("score == 'Correctness'")
    assert (correct["questions"] == 10).all()
    assert correct["low"].notna().any()


# --- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", ["modes", "mixed", "names", "placebo"])
def test_changes_are_those_of_the_table_of_biases(experiment: str) -> None:
    small = scored()[scored()["model"] != "Qwen 1.5B (large)"]
    ours = claims.changes(small)
    ours = ours[ours["experiment"] == experiment]
    answers = data.in_experiment(small, experiment)
    theirs = bias_table(answers, ["model", "benchmark"], resamples=9)
    keys = ["model", "benchmark", "relevant", "non-relevant", "score"]
    for quantity in ("CAB", "CAS"):
        table = theirs[theirs["quantity"] == quantity]
        table = table.rename(columns=data.COLUMNS | {"measure": "score"})
        expected = 100 * table.groupby(keys)["value"].mean()
        ours_by_setting = ours.groupby(keys)[quantity].mean()
        pd.testing.assert_series_equal(ours_by_setting, expected, check_names=False)


def test_of_several_records_of_a_model_the_largest_is_used() -> None:
    small = scored()[scored()["model"] == "Qwen 1.5B"]
    few = small[small["question"].isin(small["question"].unique()[:4])].assign(model="few")
    both = claims.changes(pd.concat([few, small], ignore_index=True))
    assert set(both["model"]) == {"Qwen 1.5B"}
    other = few.assign(collection="other")
    both = claims.changes(pd.concat([other, small], ignore_index=True))
    assert set(both["model"]) == {"Qwen 1.5B", "few"}
    mixed = differences().query("experiment == 'mixed' and benchmark == 'NQ'")
    assert set(mixed["model"]) == {"Qwen 1.5B (large)"}


def test_chance_is_the_recall_of_random_citations() -> None:
    rng = np.random.default_rng(8)
    questions = [f"q{number}" for number in range(300)]
    blind = pd.DataFrame({"collection": "blind", "question": questions, "k": 5})
    blind = blind.assign(cited=2, recall=(rng.random(300) < 2 / 5).astype(float))
    knows = blind.assign(collection="knows", cited=1, recall=1.0)
    names = ["knows", "blind", "neither"]
    margins = claims.on_collections(pd.concat([blind, knows]), names, claims.above_chance)
    assert margins["knows"].estimate == pytest.approx(80)
    assert abs(margins["blind"].estimate or 0) < 8
    assert margins["neither"].estimate is None


def test_confidence_is_not_compared_where_few_questions_have_one_kind_of_citation() -> None:
    questions = [f"q{number}" for number in range(12)]
    citations = pd.DataFrame({"question": questions, "relevant": True, "probability": 0.9})
    for others, is_compared in [(4, False), (5, True)]:
        lower = citations[:others].assign(relevant=False, probability=0.4)
        it = claims.confidence_gap(pd.concat([citations, lower, lower]), 4.5)
        assert (it.low is not None) == is_compared
    assert (it.estimate, it.published) == pytest.approx((50, 4.5))


def test_published_means_are_of_the_same_settings() -> None:
    table = published.numbers(published.tables("5.3"), published.DIFFERENCES)
    cells = table[published.DIFFERENCES].to_numpy()
    assert claims.published_cab(differences(), "modes", STUDY) == pytest.approx(cells.mean())
    nq = differences().query("benchmark == 'NQ'")
    expected = cells[table["benchmark"] == "NQ"].mean()
    assert claims.published_cab(nq, "modes", STUDY) == pytest.approx(expected)
    assert claims.published_cab(differences(), "placebo", STUDY) is None


def test_published_answers_are_scored_as_the_text_states() -> None:
    """Mistral cites [2] and [5], the others [5] alone; all are right."""
    table = ("thesis/table-5.16", "model")
    for right, wrong, agreeing in [
        (["Mistral", "Llama3", "GPT-4"], ["Mistral"], 3),
        (["Mistral", "Llama3", "GPT-4"], [], 2),
        (["GPT-4"], ["Mistral"], 1),
    ]:
        (parts,) = claims.scored_as_stated(*table, right, wrong).values()
        assert sum(part.estimate or 0 for part in parts.values()) == agreeing


def test_published_values_are_of_the_same_setting() -> None:
    ours = pd.DataFrame({"benchmark": ["own", "own"], "mode": ["Vanilla", "Informed"], "R": 1.0})
    table = published.tables("5.1").query("relevant == 'LLM'")
    shown = published.next_to(ours, table, ["benchmark", "mode"], ["Recall"], {"own": "NQ"})
    first, second = shown["published Recall"]
    assert first == "Mistral 76.6; Llama3 69.2; GPT-4 68.8"
    assert second == "Mistral 68.2; Llama3 69.6; GPT-4 64.6"


# --- errors of published means --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_error_exceeds_the_bound_of_its_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    a, b = rng.random((2, n)).round(int(rng.integers(0, 3)))
    total = a.mean() + b.mean()
    bound = np.sqrt((min(total, 2 - total) - (a - b).mean() ** 2) / (n - 1))
    assert stats.sem(a - b) <= bound + 1e-12


def test_reach_is_what_the_bootstrap_and_the_exact_test_find() -> None:
    table = published.reach([15, 40], 0.05, 0.95).set_index("questions")
    for n, row in table.iterrows():
        size = int(str(n))
        least: dict[str, int] = {}
        for changed in range(1, size + 1):
            values = np.r_[np.ones(changed), np.zeros(size - changed)]
            drawn = np.random.default_rng(1).choice(values, (40_000, size)).mean(axis=1)
            if np.quantile(drawn, 0.025) > 0:
                least.setdefault("least CAB (bootstrap)", changed)
            if stats.binomtest(0, changed).pvalue < 0.05:
                least.setdefault("least CAB (permutation)", changed)
        expected = {name: 100 * count / size for name, count in least.items()}
        assert row[[*least]].to_dict() == pytest.approx(expected)


def test_power_is_the_share_of_runs_that_find_the_effect() -> None:
    changed, gap, n = 0.3, 0.2, 24
    exact = 0.0
    for up, down in product(range(n + 1), repeat=2):
        if 0 < up + down <= n and stats.binomtest(up, up + down).pvalue < 0.05:
            p = [(changed + gap) / 2, (changed - gap) / 2, 1 - changed]
            exact += stats.multinomial.pmf([up, down, n - up - down], n, p)
    found = published.power(n, np.array([changed]), np.array([gap]), 0.05)
    assert found[0] == pytest.approx(exact, abs=1e-9)


def test_a_mark_bounds_the_error() -> None:
    """A significant paired t-test has such an error; without its mark a cell has a wider bound."""
    rng = np.random.default_rng(2)
    scores = rng.choice([-1.0, 0.0, 1.0], SAMPLE, p=[0.03, 0.88, 0.09])
    assert stats.ttest_1samp(scores, 0).pvalue < 0.05
    row = {"benchmark": "NQ", "model": "a", "relevant": "LLM", "ΔRecall": "0.0"}
    errors = []
    for mark in ("†", ""):
        gap = f"{100 * scores.mean():+.1f}{mark}"
        table = published.biases(pd.DataFrame([row | {"ΔPrecision": gap}]), SAMPLE)
        errors.append(table.set_index("score").loc["Precision", "error"])
    assert 100 * stats.sem(scores) < errors[0] < errors[1]


# --- nulls ----------------------------------------------------------------------------------------

NQ = "NQ, Qwen 1.5B"


def on_nq(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["collection"] == NQ]


def relabelled(quantity: str) -> pd.DataFrame:
    """CAB or CAS with the two kinds of labels exchanged at random, question by question."""
    pairs = on_nq(claims.with_placebo(differences(), quantity))
    names = pairs[["question"]].drop_duplicates().reset_index(drop=True)
    names["exchanged"] = np.random.default_rng(1).random(len(names)) < 0.5
    pairs = pairs.merge(names)
    authors = pairs["authors"].where(~pairs["exchanged"], pairs["placebo"])
    placebo = pairs["placebo"].where(~pairs["exchanged"], pairs["authors"])
    return pairs.assign(authors=authors, placebo=placebo, gap=authors - placebo)


def random_citations() -> Evidence:
    """The margin over chance of a model whose citations are drawn."""
    rng = np.random.default_rng(1)
    answers = on_nq(scored())
    hit = rng.random(len(answers)) < answers["cited"] / answers["k"]
    return claims.above_chance(answers.assign(recall=hit.astype(float)))


def least(evidence: dict[str, dict[str, Evidence]]) -> Evidence:
    (parts,) = evidence.values()
    return min(parts.values(), key=lambda part: part.low or 0)


def noisy_shifts() -> Evidence:
    """Shifts of recall that are no more than their errors."""
    shifts = published.differences("Informed", "Vanilla", SAMPLE).query("score == 'Recall'")
    noise = np.random.default_rng(1).normal(0, shifts["error"])
    return least(claims.largest_shifts(shifts.assign(gap=noise), SAMPLE))


def random_further_citations() -> Evidence:
    """What one form misses, if all further citations were of passages drawn at random."""
    rng = np.random.default_rng(1)
    one_form = data.large_model_answers(STUDY, "[1] alone")
    answers = data.large_model_answers(STUDY)
    further = answers["cited"] - one_form["cited"]
    others = answers["passages"] - one_form["cited"]
    is_hit = (one_form["recall"] > 0) | (rng.random(len(answers)) < further / others)
    return claims.missed_recall(one_form, answers.assign(recall=100.0 * is_hit))


NULLS: dict[str, Callable[[], Evidence]] = {
    "thesis/cites-relevant": random_citations,
    "thesis/5.2-sensitive": noisy_shifts,
    "thesis/placebo-bias": lambda: claims.farther_from_zero(relabelled("CAB")),
    "thesis/placebo-cas": lambda: claims.pooled_mean(relabelled("CAS"), "gap"),
    "thesis/large-forms": random_further_citations,
}
"""Evidence for claims where there is no effect."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_is_not_supported_by_chance(name: str) -> None:
    evidence = NULLS[name]()
    assert evidence.low is not None
    assert result_of(name, evidence) != "supports"


def test_biases_beyond_the_placebo_are_found() -> None:
    """Else the test above would show nothing: an effect of 20 points is found, either way."""
    pairs = on_nq(claims.with_placebo(differences(), "CAB"))
    distances = []
    for shift in (0, 20, -20):
        moved = claims.farther_from_zero(pairs.assign(authors=pairs["authors"] + shift))
        distances.append(moved.low or 0.0)
    assert distances[0] < 0 < min(distances[1:])
    sensitive = on_nq(claims.with_placebo(differences(), "CAS"))
    moved = claims.pooled_mean(sensitive.assign(gap=sensitive["gap"] + 20), "gap")
    assert result_of("thesis/placebo-cas", moved) == "supports"
    # Which of two meaningless labels takes the place of people makes no difference.
    first = claims.farther_from_zero(pairs)
    exchanged = claims.farther_from_zero(pairs.assign(placebo=-pairs["placebo"]))
    assert exchanged.estimate == pytest.approx(first.estimate)
    # Fifteen questions that never change have an interval that is not a point.
    unchanged = on_nq(claims.with_placebo(differences(), "CAB"))[:15].assign(authors=0, placebo=0)
    it = claims.farther_from_zero(unchanged)
    assert it.low is not None
    assert it.high is not None
    assert it.low < 0 < it.high


@pytest.mark.parametrize("column", ["gap", "error"])
def test_published_biases_depend_on_their_sign_and_their_error(column: str) -> None:
    """With the modes exchanged in half of the settings, or doubled errors, no bias is left."""
    table = published.biases(published.tables("5.3"), SAMPLE, ("Informed", "CF-informed"))
    factor = np.where(table["relevant"] == "Human", 1, -1) if column == "gap" else 2
    results = []
    for rows_of_table in (table, table.assign(**{column: table[column] * factor})):
        evidence = least(claims.mean_biases(rows_of_table, ["model", "score"], SAMPLE))
        results.append(result_of("thesis/5.3-human", evidence))
    assert results == ["supports", "imprecise"]


def test_citing_by_rank_alone_is_not_above_rank_alone() -> None:
    """It is above random, since the first passages are the better ones."""
    shown = data.answers_of_people(STUDY)
    rate = shown.groupby(["author", "rank"])["cited"].transform("mean")
    shown["cited"] = np.random.default_rng(1).random(len(shown)) < rate
    by_rank = claims.scores_of_people(shown, least=2)
    above_random, above_rank = (
        claims.of_author(by_rank, "people", f"precision_above_{name}")
        for name in ("random", "rank")
    )
    for it in (above_random, above_rank):
        assert it.low is not None
        assert it.high is not None
        assert (it.low > 0) == (it is above_random)
        assert it.high > 0
