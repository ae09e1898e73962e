"""Guards the evidence on permutations' claims: null distributions, and claims computed twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from equipoise.permutations.scores import conversation_spread, largest_leads, score_matrix
from equipoise.permutations.structures import class_structures, sampled_permutations
from equipoise.permutations.variance import anova, honest_difference, tiers
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Evidence
from equipoise_studies.permutations import claims
from equipoise_studies.permutations import data as cast
from equipoise_studies.permutations.experiment import Experiment
from notebook_evidence import alike, committed_evidence, result_of

COMMITTED = committed_evidence("utterance_permutations")
BEYOND = committed_evidence("orders_beyond_the_script")
FIRST, SECOND = "CAsT 2019, 866 passages", "CAsT 2020, 1,965 passages"
BOTH = "CAsT 2019 and 2020, 45 conversations"
WHOLE = "CAsT 2019, whole collection"
PERMUTATIONS = 48  # of each conversation in Table 5
MOVING = ["CU", "LP", "RM3p", "RM3s"]
BY_RULE = ["BM25", "DLM", "RM3", "FU", *MOVING]


@cache
def replication(collection: str = FIRST) -> pd.DataFrame:
    """Scores of the paper's systems in the original order and when permuted, as the notebook's."""
    year: Literal[2019, 2020] = 2019 if collection == FIRST else 2020
    utterances = cast.read_utterances(year)
    structures = class_structures(utterances)
    experiment = Experiment(
        cast.read_collection(year),
        cast.conversations(utterances, structures),
        cast.read_qrels(year),
    )
    return experiment.scores(sampled_permutations(structures, 100, 2022), BY_RULE)


def moving(collection: str = FIRST, runs: list[str] = MOVING) -> pd.DataFrame:
    scores = replication(collection)
    return scores[scores["run"].isin(runs)]


def nested(collection: str = FIRST) -> pd.DataFrame:
    scores = moving(collection)
    return scores[scores["permutation"] < PERMUTATIONS]


def by_topic(scores: pd.DataFrame) -> dict[str, np.ndarray]:
    """Scores shaped (permutations, systems) of each conversation, the original order first."""
    wide = score_matrix(scores)
    return {str(topic): part.to_numpy() for topic, part in wide.groupby(level="topic", sort=False)}


# --- null distributions ---------------------------------------------------------------------------


def with_systems_permuted(scores: pd.DataFrame) -> pd.DataFrame:
    """Each conversation's systems in random places, each with all of its permutations."""
    rng = np.random.default_rng(0)
    parts = []
    for _, part in scores.groupby("topic", sort=False):
        runs = part["run"].unique()
        other_run = dict(zip(runs, rng.permutation(runs), strict=True))
        parts.append(part.assign(run=part["run"].map(other_run)))
    return pd.concat(parts, ignore_index=True)


def with_orders_permuted(scores: pd.DataFrame) -> pd.DataFrame:
    """Each system's scores of a conversation at random permutations."""
    rng = np.random.default_rng(9)
    cells = scores.groupby(["run", "topic"], sort=False)["value"]
    return scores.assign(value=cells.transform(lambda values: rng.permutation(values.to_numpy())))


def model_originally(scores: pd.DataFrame) -> Evidence:
    original, _ = claims.original_and_mean(score_matrix(scores))
    return claims.model_effect(original)


def model_on_means(scores: pd.DataFrame) -> Evidence:
    _, means = claims.original_and_mean(score_matrix(scores))
    return claims.model_effect(means)


def favours(scores: pd.DataFrame) -> Evidence:
    original, means = claims.original_and_mean(score_matrix(scores))
    return claims.model_effect(original - means)


def smallest_gain(scores: pd.DataFrame) -> Evidence:
    gains = pd.DataFrame(claims.gains_chosen_by_others(by_topic(scores)), columns=MOVING)
    return min(claims.by_system(gains).values(), key=lambda gain: gain.estimate or 0)


def better_for_all(scores: pd.DataFrame) -> Evidence:
    return claims.over_conversations(claims.better_for_all(by_topic(scores)))


def nested_ratio(scores: pd.DataFrame) -> Evidence:
    sources = anova(scores, "MD1").set_index("source")
    freedom = sources.loc["permutation(topic)", "DF"], sources.loc["Error", "DF"]
    return claims.variance_ratio(sources.loc["permutation(topic)", "F"], freedom)


def shared(scores: pd.DataFrame) -> Evidence:
    return claims.shared_by_systems(score_matrix(scores))


def more_tiers(scores: pd.DataFrame) -> Evidence:
    return claims.more_tiers(score_matrix(scores))


def ahead(scores: pd.DataFrame) -> pd.DataFrame:
    """CU is better on every permutation."""
    return scores.assign(value=scores["value"] + 0.3 * (scores["run"] == "CU"))


def ahead_originally(scores: pd.DataFrame) -> pd.DataFrame:
    """CU is better in the original order only."""
    is_favoured = (scores["run"] == "CU") & (scores["permutation"] == 0)
    return scores.assign(value=scores["value"] + 0.3 * is_favoured)


def good_for_all(scores: pd.DataFrame) -> pd.DataFrame:
    """The second half of the permutations is better for every system."""
    return scores.assign(value=scores["value"] + 0.3 * (scores["permutation"] > 50))


def different_on_average(scores: pd.DataFrame) -> pd.DataFrame:
    """Noise, in which small differences of the systems are seen on many permutations only."""
    noise = np.random.default_rng(3).normal(size=len(scores))
    return scores.assign(value=noise + 0.2 * scores["run"].map(MOVING.index))


def original_beaten(scores: pd.DataFrame) -> Evidence:
    spread = conversation_spread(scores)
    return claims.over_conversations(spread.loc[spread["permutation"] == 0, "rank"])


# By claim: its evidence; scores with an effect, and what they say; scores without one, likewise.
NULLS: dict[str, tuple[Callable[[pd.DataFrame], Evidence], Any, str, Any, str]] = {
    "2-maximum": (smallest_gain, good_for_all, "supports", with_orders_permuted, "imprecise"),
    "2-favours": (favours, ahead_originally, "supports", with_systems_permuted, "imprecise"),
    "f1-chance": (original_beaten, good_for_all, "contradicts", with_orders_permuted, "imprecise"),
    "4-alike": (model_originally, ahead, "contradicts", with_systems_permuted, "imprecise"),
    "5-model": (model_on_means, ahead, "supports", with_systems_permuted, "imprecise"),
    # Less than a twentieth is common to the systems.
    "5-interaction": (shared, good_for_all, "supports", with_orders_permuted, "contradicts"),
    "5-better-for-all": (
        better_for_all,
        good_for_all,
        "contradicts",
        with_orders_permuted,
        "imprecise",
    ),
    "5-tiers": (more_tiers, different_on_average, "supports", with_systems_permuted, "imprecise"),
}


@pytest.mark.parametrize("name", NULLS)
def test_evidence_is_clear_with_an_effect_but_not_under_the_null(name: str) -> None:
    evidence, with_effect, expected, without_effect, expected_without = NULLS[name]
    bound = {"f1-chance": "< 0.5", "5-interaction": "> 0.05"}.get(name, "")  # of questions
    effect = evidence(with_effect(moving()))
    assert result_of(f"permutations/{name}", effect, bound) == expected
    null = evidence(without_effect(moving()))
    assert result_of(f"permutations/{name}", null, bound) == expected_without


def test_the_best_of_many_permutations_is_not_the_original_order_by_chance() -> None:
    """Under the null distribution the original order is the best one time in a hundred."""
    spread = conversation_spread(with_orders_permuted(moving()))
    best = spread.loc[spread["permutation"] == 0, "rank"] == 0
    assert best.sum() <= 2


def test_where_permutations_change_nothing_not_every_system_can_lead() -> None:
    scores = moving()
    constant = scores.assign(
        value=scores.groupby(["run", "topic"], sort=False)["value"].transform("first")
    )
    leads = largest_leads(constant).mean(axis=0)
    off = ~np.eye(len(MOVING), dtype=bool)
    assert leads[off] == pytest.approx(-leads.T[off])
    assert leads.min() < 0
    assert largest_leads(scores).mean(axis=0).min() > leads.min()


def test_the_interval_of_a_variance_ratio_contains_one_under_the_null() -> None:
    """In 95% of draws, for the degrees of freedom of Table 5 and of the authors' log."""
    rng = np.random.default_rng(4)
    for freedom in [(940, 3836), (2000, 46206)]:
        contained = 0
        for ratio in rng.f(*freedom, size=2000):
            evidence = claims.variance_ratio(ratio, freedom)
            contained += (evidence.low or 0) <= 1 <= (evidence.high or 0)
        assert contained / 2000 == pytest.approx(0.95, abs=0.015)


def test_bounds_of_f_contain_it_for_every_sum_that_rounds_to_the_published_one() -> None:
    rng = np.random.default_rng(8)
    freedom = {"topic": 19, "model": 4, "Error": 76, "Total": 99}
    for _ in range(200):
        sums = {source: rng.uniform(0.002, 0.5) for source in freedom}
        ratio = sums["model"] / 4 / (sums["Error"] / 76)
        rounded = {source: f"{value:.3f}" for source, value in sums.items()}
        published = pd.DataFrame({"SS": rounded, "DF": freedom, "F": "0"}).rename_axis("source")
        published.loc["model", "F"] = str(ratio)
        bounds = claims.bounds_of_ratios(published, 0.0005).set_index("source").loc["model"]
        assert bounds["within"] == "True"
        assert bounds["lowest F"] <= ratio <= bounds["highest F"]
    published.loc["model", "F"] = str(1.01 * bounds["highest F"])
    outside = claims.bounds_of_ratios(published, 0.0005).set_index("source")
    assert outside.loc["model", "within"] == "False"


def test_an_effect_of_the_permutation_is_found_by_md1() -> None:
    assert (nested_ratio(good_for_all(moving())).low or 0) > 1
    rng = np.random.default_rng(6)
    scores = moving()
    noise = scores.assign(value=rng.normal(size=len(scores)))
    assert result_of("permutations/5-permutation", nested_ratio(noise)) == "imprecise"


def test_false_alarms_are_those_of_md1() -> None:
    """Where systems suit conversations MD1 alarms too often; where nothing does, it does not."""
    rng = np.random.default_rng(7)
    index = pd.MultiIndex.from_product(
        [["a", "b", "c"], [str(topic) for topic in range(20)], range(6)],
        names=["run", "topic", "permutation"],
    )
    noise = pd.DataFrame({"value": rng.random(len(index))}, index=index).reset_index()
    assert (claims.false_alarms(score_matrix(noise)).estimate or 1) < 0.15
    suits = noise.groupby(["run", "topic"])["value"].transform("first")
    wide = score_matrix(noise.assign(value=noise["value"] / 10 + suits))
    significant = 0
    for _ in range(100):
        parts = []
        for _, part in wide.groupby(level="topic", sort=False):
            parts.append(part.set_axis(rng.permutation(part.columns), axis=1)[wide.columns])
        long = pd.concat(parts).reset_index().melt(["topic", "permutation"], var_name="run")
        significant += anova(long, "MD1").set_index("source").loc["model", "p"] < 0.05
    alarms = claims.false_alarms(wide).estimate or 0
    assert alarms == pytest.approx(significant / 100, abs=0.15)
    assert alarms > 0.3


def test_f_of_two_systems_is_that_of_a_paired_test() -> None:
    """With two systems, F over conversations is the square of Student's t of the differences."""
    original, _ = claims.original_and_mean(score_matrix(moving(runs=["CU", "LP"])))
    student = stats.ttest_rel(original["CU"], original["LP"])
    evidence = claims.model_effect(original, published=student.statistic**2)
    assert evidence.estimate == pytest.approx(evidence.published)


def test_tiers_are_those_of_tukeys_test() -> None:
    wide = score_matrix(nested())
    error = anova(nested(), "MD1").set_index("source").loc["Error"]
    difference = honest_difference(error["MS"], int(error["DF"]), len(MOVING), len(wide))
    parts = list(by_topic(nested()).values())
    assert claims.count_tiers(parts) == tiers(wide.mean(), difference).max() > 1


# --- claims by a second, plain implementation -----------------------------------------------------


def table_of(scores: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Scores by topic and system, in the order of the permutations."""
    table: dict[str, dict[str, list[float]]] = {}
    for row in scores.sort_values("permutation", kind="stable").itertuples():
        table.setdefault(str(row.topic), {}).setdefault(str(row.run), []).append(float(row.value))
    return table


def mean(values: Any) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


def percentiles(statistic: Callable[[list[str]], float], topics: list[str]) -> tuple[float, float]:
    """Ends of a 95% interval: conversations drawn with replacement, 2,000 times."""
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        places = rng.integers(len(topics), size=len(topics))
        drawn.append(statistic([topics[place] for place in places]))
    drawn.sort()
    return drawn[49], drawn[1949]


def computed_twice(
    evidence: Evidence, topics: list[str], statistic: Callable[[list[str]], float]
) -> None:
    alike(evidence, statistic(topics), percentiles(statistic, topics))
    assert evidence.n == len(topics)


def mean_computed_twice(evidence: Evidence, values: dict[str, float]) -> None:
    computed_twice(evidence, list(values), lambda topics: mean(values[topic] for topic in topics))


@pytest.mark.parametrize("name", ["context-helps", "2-favours", "3-anyone"])
def test_both_years_together_have_the_conversations_of_each(name: str) -> None:
    evidence = COMMITTED[f"permutations/{name}"]
    for part, pooled in evidence[BOTH].items():
        years = [evidence[FIRST][part], evidence[SECOND][part]]
        assert pooled.n == sum(year.n or 0 for year in years) == 45
        if name != "2-favours":  # F is no mean over conversations
            total = sum((year.estimate or 0) * (year.n or 0) for year in years)
            assert pooled.estimate == pytest.approx(total / 45)


@pytest.mark.parametrize("collection", [FIRST, SECOND])
def test_the_change_by_permuting_computed_twice(collection: str) -> None:
    table = table_of(moving(collection))
    for run in MOVING:
        changes = {topic: mean(scores[run]) - scores[run][0] for topic, scores in table.items()}
        mean_computed_twice(COMMITTED["permutations/2-decrease"][collection][run], changes)


@pytest.mark.parametrize("collection", [FIRST, SECOND])
def test_leads_in_the_original_order_computed_twice(collection: str) -> None:
    """First Utterance minus each other system, and the control: FU and CU minus BM25."""
    table = table_of(replication(collection))
    first_utterance = COMMITTED["permutations/2-first-utterance"][collection]
    helps = COMMITTED["permutations/context-helps"][collection]
    assert set(first_utterance) == set(BY_RULE) - {"FU"}
    compared = [("FU", other, first_utterance[other]) for other in first_utterance]
    compared += [("FU", "BM25", helps["FU"]), ("CU", "BM25", helps["CU"])]
    for one, other, evidence in compared:
        leads = {topic: scores[one][0] - scores[other][0] for topic, scores in table.items()}
        mean_computed_twice(evidence, leads)


@pytest.mark.parametrize("collection", [FIRST, SECOND])
def test_largest_leads_computed_twice(collection: str) -> None:
    """Pairs of Table 3: for each conversation the permutation with the largest lead."""
    table = table_of(moving(collection))
    for one, other in permutations(MOVING, 2):
        leads = {}
        for topic, scores in table.items():
            pairs = zip(scores[one], scores[other], strict=True)
            leads[topic] = max(a - b for a, b in pairs)
        evidence = COMMITTED["permutations/3-anyone"][collection][f"{one} over {other}"]
        mean_computed_twice(evidence, leads)


def whole_collection() -> dict[str, dict[str, float]]:
    """nDCG@3 by system and topic, from the committed ranks, discounted one by one."""
    grades = cast.read_qrels().set_index(["query", "document"])["grade"].to_dict()
    grades_of_query: dict[str, list[int]] = {}
    for (query, _), grade in grades.items():
        grades_of_query.setdefault(query, []).append(grade)
    gains: dict[tuple[str, str], float] = {}
    for row in cast.read_whole_collection(3).itertuples():
        best = sorted(grades_of_query[row.query], reverse=True)[:3]
        ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
        gain = max(0, grades.get((row.query, row.document), 0)) / math.log2(row.rank + 1)
        key = row.run, row.query
        gains[key] = gains.get(key, 0.0) + (gain / ideal if ideal else 0.0)
    values: dict[str, dict[str, list[float]]] = {}
    for (run, query), gain in gains.items():
        values.setdefault(run, {}).setdefault(query.partition("_")[0], []).append(gain)
    return {
        run: {topic: mean(scores) for topic, scores in of_run.items()}
        for run, of_run in values.items()
    }


def test_leads_on_the_whole_collection_computed_twice() -> None:
    values = whole_collection()
    coreference = COMMITTED["permutations/2-coreference"][WHOLE][""]
    gain = COMMITTED["permutations/context-helps"][WHOLE]["CU"]
    compared = [("CR + BM25", "BM25 FLC", coreference), ("BM25 FLC", "BM25", gain)]
    for one, other, evidence in compared:
        leads = {topic: value - values[other][topic] for topic, value in values[one].items()}
        mean_computed_twice(evidence, leads)
        assert (evidence.low or 0) > 0


def test_f_on_the_whole_collection_computed_twice() -> None:
    """F of two systems minus its mean when they change places in random conversations."""
    values = whole_collection()
    first, second = values["CR + BM25"], values["BM25 FLC"]
    differences = np.array([first[topic] - second[topic] for topic in first])
    rng = np.random.default_rng(2)
    signs = rng.choice([-1, 1], size=(4000, len(differences)))
    statistic = stats.ttest_1samp(np.vstack([differences, signs * differences]), 0, axis=1)
    ratios = statistic.statistic**2
    observed, expected = ratios[0], ratios[1:].mean()
    low, high = np.quantile(ratios[1:], [0.025, 0.975])
    pair = pd.DataFrame({"first": first, "second": second})
    evidence = claims.model_effect(pair)
    assert evidence.estimate == pytest.approx(observed - expected, abs=0.15)
    assert evidence.high == pytest.approx(observed - low, abs=0.15)
    assert evidence.low == pytest.approx(observed - high, abs=0.8)


@pytest.mark.parametrize("collection", [FIRST, SECOND])
def test_pairs_that_one_system_always_wins_counted_twice(collection: str) -> None:
    table = table_of(moving(collection))
    share = {}
    for topic, scores in table.items():
        always = []
        for place, first in enumerate(MOVING):
            for second in MOVING[:place]:
                pairs = list(zip(scores[first], scores[second], strict=True))
                wins = [a > b + 1e-12 for a, b in pairs], [b > a + 1e-12 for a, b in pairs]
                always.append(all(wins[0]) or all(wins[1]))
        share[topic] = mean(always)
    evidence = COMMITTED["permutations/f2-few"][collection][""]
    mean_computed_twice(evidence, share)


def test_conversations_with_a_better_permutation_counted_twice() -> None:
    for collection in [FIRST, SECOND]:
        evidence = COMMITTED["permutations/f1-script"][collection]
        for topic, scores in table_of(moving(collection)).items():
            means = [mean(values) for values in zip(*scores.values(), strict=True)]
            gain = max(means[1:]) - means[0]
            assert evidence[topic].estimate == pytest.approx(gain, abs=1e-9)


def test_permutations_are_too_few_for_a_hundred() -> None:
    published = printed_table("permutations/table-1").set_index("Conv. id")["unique perm."]
    evidence = COMMITTED["permutations/1-hundred"]
    for topic, structure in class_structures(cast.read_utterances()).items():
        heads = len(structure.blocks) - 1
        orders = math.factorial(heads)
        for block in structure.blocks:
            orders *= math.factorial(len(block) - 1)
        assert evidence["utterance classes"][topic].estimate == orders
        assert evidence["published numbers"][topic].estimate == float(published[topic])
    assert min(float(count) for count in published) == PERMUTATIONS


def sums_by_hand(table: dict[str, dict[str, list[float]]]) -> tuple[float, float, float]:
    """Sums of squares of permutations, of the residual of MD1, and without topic x model."""
    of_permutations = of_residual = without = 0.0
    effects: dict[str, list[float]] = {}
    for systems in table.values():
        center = mean(mean(scores) for scores in systems.values())
        for permutation in range(PERMUTATIONS):
            here = mean(scores[permutation] for scores in systems.values())
            of_permutations += len(systems) * (here - center) ** 2
            for run, scores in systems.items():
                own = scores[permutation] - here
                effects.setdefault(run, []).append(own)
                without += (own - mean(scores) + center) ** 2
    for values in effects.values():
        effect = mean(values)
        of_residual += math.fsum((value - effect) ** 2 for value in values)
    return of_permutations, of_residual, without


def test_f_of_the_permutations_computed_twice() -> None:
    of_permutations, of_residual, _ = sums_by_hand(table_of(nested()))
    freedom = 20 * (PERMUTATIONS - 1), (20 * PERMUTATIONS - 1) * (len(MOVING) - 1)
    ratio = of_permutations / freedom[0] / (of_residual / freedom[1])
    law = stats.f(*freedom)
    ends = ratio / law.ppf(0.975), ratio / law.ppf(0.025)
    alike(COMMITTED["permutations/5-permutation"][FIRST][""], ratio, ends)


def test_the_published_f_has_the_lower_tail_of_its_distribution() -> None:
    """The regularised incomplete beta function, of which the F distribution is a case."""
    evidence = COMMITTED["permutations/5-noise"]["published numbers"][""]
    ratio, between, within = 0.84, 940, 3836
    share = between * ratio / (between * ratio + within)
    assert evidence.estimate == ratio
    assert special.betainc(between / 2, within / 2, share) == pytest.approx(0.00046, abs=0.00001)
    # At the upper end of the interval the tail is 2.5%.
    at_end = ratio / (evidence.high or 1)
    share = between * at_end / (between * at_end + within)
    assert special.betainc(between / 2, within / 2, share) == pytest.approx(0.025)


def test_what_of_a_permutation_is_common_to_the_systems_computed_twice() -> None:
    table = table_of(nested())
    sums = {topic: sums_by_hand({topic: systems}) for topic, systems in table.items()}
    others = len(MOVING) - 1

    def share(topics: list[str]) -> float:
        freedom = len(topics) * (PERMUTATIONS - 1)
        nested_square = sum(sums[topic][0] for topic in topics) / freedom
        error = sum(sums[topic][2] for topic in topics) / freedom / others
        return (nested_square - error) / (nested_square + others * error)

    computed_twice(BEYOND["permutations/5-interaction"][FIRST][""], list(table), share)


# --- power and false alarms -----------------------------------------------------------------------


def simulated_scores(interaction: float, residual: float, rng: np.random.Generator) -> pd.DataFrame:
    """Scores of 4 systems without a difference, on 12 conversations with 6 permutations each."""
    values = np.sqrt(interaction) * rng.normal(size=(4, 12, 1))
    values = values + rng.normal(size=(1, 12, 6)) + np.sqrt(residual) * rng.normal(size=(4, 12, 6))
    places = pd.MultiIndex.from_product(
        [list("abcd"), [str(topic) for topic in range(12)], range(6)],
        names=["run", "topic", "permutation"],
    )
    return pd.Series(values.ravel(), places, name="value").reset_index()


def test_simulated_sums_of_squares_have_the_false_alarms_of_simulated_scores() -> None:
    design = claims.Design(conversations=12, permutations=6, systems=4, effect=0.0)
    rng = np.random.default_rng(8)
    for interaction, expected in ((0.0, 0.05), (1.0, None)):
        found = []
        for _ in range(150):
            table = anova(simulated_scores(interaction, 1.0, rng), "MD1").set_index("source")
            found.append(table.loc["model", "p"] < 0.05)
        computed = design.false_alarms(interaction, 1.0)
        assert computed == pytest.approx(np.mean(found), abs=0.11)
        assert expected is None or computed == pytest.approx(expected, abs=0.012)


def test_power_in_the_original_order_is_that_of_a_noncentral_f() -> None:
    design = claims.Design(conversations=20, permutations=48, systems=5, effect=0.3)
    powers = design.powers(0.4, 0.6)
    critical = stats.f.isf(0.05, 4, 76)
    for name, variance in {"original order": 1.0, "exact means": 0.4}.items():
        expected = stats.ncf.sf(critical, 4, 76, 20 * 0.3 / variance)
        assert powers[name] == pytest.approx(expected, abs=0.03)
    assert design.gain("MD1", 0.4, 0.6) == powers["MD1"] - powers["original order"]


def test_variance_components_are_those_of_mean_squares() -> None:
    scores = simulated_scores(0.5, 2.0, np.random.default_rng(4))
    squares = anova(scores, "MD1", interaction=True).set_index("source")["MS"]
    sums = claims.sums_of_conversations(score_matrix(scores))
    expected = ((squares["topic x model"] - squares["Error"]) / 6, squares["Error"])
    assert claims.variance_components(sums.mean(axis=0), 12) == pytest.approx(expected)
