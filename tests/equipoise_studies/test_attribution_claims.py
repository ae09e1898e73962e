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
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_studies.attribution import claims, data, published

SAMPLE = 500
"""Questions of a benchmark in the thesis (section 5.4)."""
STUDY = data.read_study("replica")


@cache
def scored() -> pd.DataFrame:
    return score_answers(data.cached_answers(STUDY))


@cache
def differences() -> pd.DataFrame:
    pool = [name for name, it in claims.above_chance(scored()).items() if it.low and it.low > 0]
    return claims.changes(scored()[scored()["model"].isin(pool)])


def rows(values: list[float], benchmark: str = "NQ") -> pd.DataFrame:
    questions = [f"q{number}" for number in range(len(values))]
    return pd.DataFrame({"benchmark": benchmark, "question": questions, "gap": values})


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("up", "down", "n"), [(0, 0, 15), (3, 1, 30), (20, 45, 300)])
def test_an_interval_is_that_of_bonett_and_price(up: int, down: int, n: int) -> None:
    """Adjusted Wald interval of paired proportions: its formula adds one change either way."""
    values = [100.0] * up + [-100.0] * down + [0.0] * (n - up - down)
    it = claims.pooled_mean(rows(values), "gap", "a gap")
    first, second = (up + 1) / (n + 2), (down + 1) / (n + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    assert it.estimate == pytest.approx(100 * (up - down) / n)
    expected = tuple(100 * (first - second + side * 1.96 * error) for side in (-1, 1))
    assert (it.low, it.high) == pytest.approx(expected, abs=200 / (n + 2))
    assert it.n == n


def test_rows_of_a_question_are_drawn_together() -> None:
    values = np.random.default_rng(3).choice([-100.0, 0.0, 100.0], 40).tolist()
    once = claims.pooled_mean(rows(values), "gap", "a gap")
    thrice = claims.pooled_mean(pd.concat([rows(values)] * 3), "gap", "a gap")
    assert (thrice.estimate, thrice.low, thrice.high, thrice.n) == pytest.approx(
        (once.estimate, once.low, once.high, 40)
    )
    both = pd.concat([rows(values), rows(values, "NQ-UTD")])
    assert claims.pooled_mean(both, "gap", "a gap").n == 80  # questions of two benchmarks
    assert claims.pooled_mean(rows([]), "gap", "a gap").reason

    sides = pd.concat([rows(values).assign(first=True), rows([5.0] * 40).assign(first=False)])
    once = claims.difference_of_means(sides, "gap", "first", "a gap")
    again = claims.difference_of_means(pd.concat([sides] * 2), "gap", "first", "a gap")
    assert (once.estimate, once.low, once.high) == pytest.approx(
        (again.estimate, again.low, again.high)
    )
    assert once.estimate == pytest.approx(np.mean(values) - 5)


def test_settings_have_the_same_weight_as_in_a_mean_of_published_cells() -> None:
    few = rows([100.0, 0.0]).assign(setting="few")
    many = rows([0.0] * 9 + [-100.0]).assign(setting="many")
    table = pd.concat([few, many])
    by_setting = claims.pooled_mean(table, "gap", "a gap", settings=["setting"])
    assert by_setting.estimate == pytest.approx((50 - 10) / 2)
    assert claims.pooled_mean(table, "gap", "a gap").estimate == pytest.approx(0)
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
    other = few.assign(weights="other.gguf")
    both = claims.changes(pd.concat([other, small], ignore_index=True))
    assert set(both["model"]) == {"Qwen 1.5B", "few"}
    mixed = differences().query("experiment == 'mixed' and benchmark == 'NQ'")
    assert set(mixed["model"]) == {"Qwen 1.5B (large)"}


def test_chance_is_the_recall_of_random_citations() -> None:
    rng = np.random.default_rng(8)
    questions = [f"q{number}" for number in range(300)]
    blind = pd.DataFrame({"model": "blind", "benchmark": "NQ", "question": questions, "k": 5})
    blind = blind.assign(cited=2, recall=(rng.random(300) < 2 / 5).astype(float))
    knows = blind.assign(model="knows", cited=1, recall=1.0)
    margins = claims.above_chance(pd.concat([blind, knows]))
    assert margins["knows"].estimate == pytest.approx(80)
    assert abs(margins["blind"].estimate or 0) < 8


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
    for right, wrong, otherwise in [
        (["Mistral", "Llama3", "GPT-4"], ["Mistral"], 0),
        (["Mistral", "Llama3", "GPT-4"], [], 1),
        (["GPT-4"], ["Mistral"], 2),
    ]:
        assert claims.scored_otherwise(*table, right, wrong).estimate == otherwise


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


# --- nulls ----------------------------------------------------------------------------------------


def relabelled(quantity: str) -> pd.DataFrame:
    """CAB or CAS with the two kinds of labels exchanged at random, question by question."""
    pairs = claims.with_placebo(differences(), quantity)
    names = pairs[claims.UNIT].drop_duplicates().reset_index(drop=True)
    names["exchanged"] = np.random.default_rng(1).random(len(names)) < 0.5
    pairs = pairs.merge(names)
    authors = pairs["authors"].where(~pairs["exchanged"], pairs["placebo"])
    placebo = pairs["placebo"].where(~pairs["exchanged"], pairs["authors"])
    return pairs.assign(authors=authors, placebo=placebo)


def more_sensitive(pairs: pd.DataFrame) -> Evidence:
    return claims.pooled_mean(pairs.assign(gap=pairs["authors"] - pairs["placebo"]), "gap", "a gap")


def random_citations() -> Evidence:
    """The least margin over chance of models whose citations are drawn."""
    rng = np.random.default_rng(1)
    hit = rng.random(len(scored())) < scored()["cited"] / scored()["k"]
    margins = claims.above_chance(scored().assign(recall=hit.astype(float))).values()
    return min(margins, key=lambda margin: margin.estimate or 0)


def noisy_shifts() -> Evidence:
    """Shifts of recall that are no more than their errors."""
    shifts = published.differences("Informed", "Vanilla", SAMPLE).query("score == 'Recall'")
    noise = np.random.default_rng(1).normal(0, shifts["error"])
    return claims.least_shift(shifts.assign(gap=noise), SAMPLE)


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
    "thesis/5.1-every-model-above-chance": random_citations,
    "thesis/5.2-sensitive": noisy_shifts,
    "thesis/placebo-bias": lambda: claims.farther_from_zero(relabelled("CAB")),
    "thesis/placebo-cas": lambda: more_sensitive(relabelled("CAS")),
    "thesis/large-forms": random_further_citations,
}
"""Evidence for claims with a null, where there is no effect."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_is_not_supported_by_chance(name: str) -> None:
    claim = stated("thesis").loc[name.removeprefix("thesis/")]
    assert claim["null"]
    evidence = NULLS[name]()
    assert evidence.low is not None
    assert evidence.low <= float(claim["contradicted_if"].split()[-1])


def test_biases_beyond_the_placebo_are_found() -> None:
    """Else the test above would show nothing: an effect of 20 points is found, either way."""
    pairs = claims.with_placebo(differences(), "CAB")
    distances = []
    for shift in (0, 20, -20):
        moved = claims.farther_from_zero(pairs.assign(authors=pairs["authors"] + shift))
        distances.append(moved.low or 0.0)
    assert distances[0] < 0 < min(distances[1:])
    sensitive = claims.with_placebo(differences(), "CAS")
    assert (more_sensitive(sensitive.assign(authors=sensitive["authors"] + 20)).low or 0) > 0
    # Which of two meaningless labels takes the place of people makes no difference.
    first = claims.farther_from_zero(pairs)
    exchanged = claims.farther_from_zero(pairs.assign(placebo=-pairs["placebo"]))
    assert exchanged.estimate == pytest.approx(first.estimate)


@pytest.mark.parametrize("column", ["gap", "error"])
def test_published_biases_depend_on_their_sign_and_their_error(column: str) -> None:
    """With the modes exchanged in half of the settings, or doubled errors, no bias is left."""
    table = published.biases("Informed", "CF-informed", SAMPLE)
    factor = np.where(table["relevant"] == "Human", 1, -1) if column == "gap" else 2
    bound = stated("thesis").loc["5.3-human", "contradicted_if"]
    verdicts = []
    for rows_of_table in (table, table.assign(**{column: table[column] * factor})):
        verdicts.append(verdict(claims.least_mean_bias(rows_of_table, SAMPLE, "CAB"), bound))
    assert verdicts[0] != verdicts[1]
