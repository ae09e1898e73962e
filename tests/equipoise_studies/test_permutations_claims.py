"""Guards the evidence on permutations' claims: systems exchanged, claims computed twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.permutations.scores import score_matrix
from equipoise.permutations.structures import class_structures, sampled_permutations
from equipoise.permutations.variance import anova, honest_difference, tiers
from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations import claims
from equipoise_studies.permutations import data as cast
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import SYSTEMS
from notebook_evidence import alike, committed_evidence, verdict_of

COMMITTED = committed_evidence("utterance_permutations")
PERMUTATIONS = 48  # of each conversation in Table 5
MOVING = ["CU", "LP", "RM3p", "RM3s", "Antecedent"]


@cache
def replication() -> pd.DataFrame:
    """Scores of all systems in the original order and when permuted, as the notebook's."""
    utterances = cast.read_utterances()
    experiment = Experiment(
        cast.read_collection(), cast.conversations(utterances), cast.read_qrels()
    )
    drawn = sampled_permutations(class_structures(utterances), 100, 2022)
    return experiment.scores(drawn, [system for system in SYSTEMS if system != "Rewriter"])


def moving(runs: list[str] = MOVING) -> pd.DataFrame:
    scores = replication()
    return scores[scores["run"].isin(runs)]


def nested() -> pd.DataFrame:
    scores = moving()
    return scores[scores["permutation"] < PERMUTATIONS]


# --- systems exchanged at random ------------------------------------------------------------------


def with_systems_exchanged(scores: pd.DataFrame) -> pd.DataFrame:
    """Each conversation's systems in random places, each with all of its permutations."""
    rng = np.random.default_rng(0)
    parts = []
    for _, part in scores.groupby("topic", sort=False):
        runs = part["run"].unique()
        other_run = dict(zip(runs, rng.permutation(runs), strict=True))
        parts.append(part.assign(run=part["run"].map(other_run)))
    return pd.concat(parts, ignore_index=True)


def with_permutations_exchanged(scores: pd.DataFrame) -> pd.DataFrame:
    """Each system's scores of a conversation at random permutations."""
    rng = np.random.default_rng(5)
    cells = scores.groupby(["run", "topic"], sort=False)["value"]
    return scores.assign(value=cells.transform(lambda values: rng.permutation(values.to_numpy())))


def model_on_all(scores: pd.DataFrame) -> Evidence:
    _, means = claims.original_and_mean(score_matrix(scores))
    return claims.model_effect("means", means)


def favours(scores: pd.DataFrame) -> Evidence:
    original, means = claims.original_and_mean(score_matrix(scores))
    return claims.model_effect("original minus means", original - means)


CASES: dict[str, tuple[Callable[[], Evidence], str]] = {
    "permutations/5-model": (lambda: model_on_all(moving()), "holds"),
    "permutations/5-interaction": (
        lambda: claims.shared_by_systems("rho", score_matrix(nested())),
        "holds",
    ),
    "permutations/2-favours": (lambda: favours(with_systems_exchanged(moving())), "undecided"),
    "permutations/5-tiers": (
        lambda: claims.more_tiers(score_matrix(with_systems_exchanged(nested()))),
        "undecided",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_claims_by_their_own_labels_or_exchanged_ones(name: str) -> None:
    compute, expected = CASES[name]
    assert verdict_of(name, compute()) == expected


def test_nothing_is_supported_with_labels_exchanged() -> None:
    exchanged = with_systems_exchanged(moving())
    assert verdict_of("permutations/5-model", model_on_all(exchanged)) != "holds"
    shared = claims.shared_by_systems("rho", score_matrix(with_permutations_exchanged(nested())))
    assert verdict_of("permutations/5-interaction", shared) != "holds"


def test_a_system_that_is_always_ahead_contradicts_that_systems_are_equal() -> None:
    scores = moving()
    ahead = scores.assign(value=scores["value"] + 0.3 * (scores["run"] == "CU"))
    original, _ = claims.original_and_mean(score_matrix(ahead))
    evidence = claims.model_effect("original order", original)
    assert verdict_of("permutations/4-alike", evidence) == "contradicted"


def test_false_alarms_are_those_of_md1() -> None:
    """Where systems suit conversations MD1 alarms too often; where nothing does, it does not."""
    rng = np.random.default_rng(7)
    index = pd.MultiIndex.from_product(
        [["a", "b", "c"], [str(topic) for topic in range(20)], range(6)],
        names=["run", "topic", "permutation"],
    )
    noise = pd.DataFrame({"value": rng.random(len(index))}, index=index).reset_index()
    estimate = claims.false_alarms(score_matrix(noise)).estimate
    assert estimate is not None
    assert estimate < 0.15
    suits = noise.groupby(["run", "topic"])["value"].transform("first")
    wide = score_matrix(noise.assign(value=noise["value"] / 10 + suits))
    significant = 0
    for _ in range(100):
        parts = []
        for _, part in wide.groupby(level="topic", sort=False):
            parts.append(part.set_axis(rng.permutation(part.columns), axis=1)[wide.columns])
        long = pd.concat(parts).reset_index().melt(["topic", "permutation"], var_name="run")
        significant += anova(long, "MD1").set_index("source").loc["model", "p"] < 0.05
    alarms = claims.false_alarms(wide)
    assert alarms.estimate == pytest.approx(significant / 100, abs=0.15)
    assert alarms.estimate is not None
    assert alarms.estimate > 0.3


def test_f_of_two_systems_is_that_of_a_paired_test() -> None:
    """With two systems, F over conversations is the square of Student's t of the differences."""
    original, _ = claims.original_and_mean(score_matrix(moving(["CU", "LP"])))
    student = stats.ttest_rel(original["CU"], original["LP"])
    evidence = claims.model_effect("two systems", original)
    assert f"({student.statistic**2:.4g} minus " in evidence.said


def test_tiers_are_those_of_tukeys_test() -> None:
    wide = score_matrix(nested())
    error = anova(nested(), "MD1").set_index("source").loc["Error"]
    difference = honest_difference(error["MS"], int(error["DF"]), 5, len(wide))
    parts = [part.to_numpy() for _, part in wide.groupby(level="topic")]
    assert claims.count_tiers(parts) == tiers(wide.mean(), difference).max() == 4


def test_no_verdict_rests_on_antecedent() -> None:
    clear = Evidence("x", 0.5, 0.4, 0.6)
    unclear = Evidence("x", 0.2, -0.1, 0.5)
    against = Evidence("x", -0.5, -0.6, -0.4)
    for pair in [(clear, unclear), (unclear, clear), (against, unclear), (unclear, against)]:
        weaker = claims.weaker("2-maximum", *pair)
        assert (weaker.estimate, weaker.low) == (0.2, -0.1)
        other = next(evidence for evidence in pair if evidence is not unclear)
        assert f"Antecedent {other.estimate:.4g} [{other.low:.4g}, {other.high:.4g}]" in weaker.said
    assert claims.weaker("2-maximum", clear, clear).estimate == 0.5
    assert claims.weaker("2-maximum", clear, against).estimate is None


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


def computed_twice(name: str, table: dict[str, Any], statistic: Callable[..., float]) -> None:
    topics = list(table)
    alike(COMMITTED[f"permutations/{name}"], statistic(topics), percentiles(statistic, topics))


def test_the_change_by_permuting_computed_twice() -> None:
    table = table_of(moving(MOVING[:4]))

    def change(topics: list[str]) -> float:
        changes = []
        for topic in topics:
            changes += [mean(scores) - scores[0] for scores in table[topic].values()]
        return mean(changes)

    computed_twice("2-decrease", table, change)


def test_the_lead_of_first_utterance_computed_twice() -> None:
    scores = replication()
    table = table_of(scores[scores["run"] != "Antecedent"])
    runs = [run for run in next(iter(table.values())) if run != "FU"]

    def lead(topics: list[str]) -> float:
        of_runs = [mean(table[topic][run][0] for topic in topics) for run in runs]
        return mean(table[topic]["FU"][0] for topic in topics) - max(of_runs)

    computed_twice("2-first-utterance", table, lead)


def test_the_lead_of_coreference_computed_twice() -> None:
    """From the committed ranks on the whole collection, discounted one by one."""
    grades = cast.read_qrels().set_index(["query", "document"])["grade"].to_dict()
    grades_of_query: dict[str, list[int]] = {}
    for (query, _), grade in grades.items():
        grades_of_query.setdefault(query, []).append(grade)
    values: dict[str, dict[str, dict[str, float]]] = {}
    for row in cast.read_whole_collection(3).itertuples():
        best = sorted(grades_of_query[row.query], reverse=True)[:3]
        ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
        gain = max(0, grades.get((row.query, row.document), 0)) / math.log2(row.rank + 1)
        of_topic = values.setdefault(row.query.partition("_")[0], {}).setdefault(row.run, {})
        of_topic[row.query] = of_topic.get(row.query, 0.0) + (gain / ideal if ideal else 0.0)

    def lead(topics: list[str]) -> float:
        gaps = []
        for topic in topics:
            first, second = values[topic]["CR + BM25"], values[topic]["BM25 FLC"]
            gaps.append(mean(first.values()) - mean(second.values()))
        return mean(gaps)

    computed_twice("2-coreference", values, lead)
    assert (COMMITTED["permutations/2-coreference"].estimate or 0) > 0


def test_pairs_that_one_system_always_wins_counted_twice() -> None:
    table = table_of(moving(MOVING[:4]))

    def share(topics: list[str]) -> float:
        always = []
        for topic in topics:
            runs = list(table[topic])
            for place, first in enumerate(runs):
                for second in runs[:place]:
                    pairs = list(zip(table[topic][first], table[topic][second], strict=True))
                    wins = [a > b + 1e-12 for a, b in pairs], [b > a + 1e-12 for a, b in pairs]
                    always.append(all(wins[0]) or all(wins[1]))
        return mean(always)

    of_topic = {topic: share([topic]) for topic in table}
    computed_twice("f2-few", table, lambda topics: mean(of_topic[topic] for topic in topics))


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
    freedom = 20 * (PERMUTATIONS - 1), (20 * PERMUTATIONS - 1) * 4
    ratio = of_permutations / freedom[0] / (of_residual / freedom[1])
    law = stats.f(*freedom)
    ends = ratio / law.ppf(0.975), ratio / law.ppf(0.025)
    alike(COMMITTED["permutations/5-permutation"], ratio, ends)


def test_what_of_a_permutation_is_common_to_the_systems_computed_twice() -> None:
    table = table_of(nested())
    sums = {topic: sums_by_hand({topic: systems}) for topic, systems in table.items()}

    def share(topics: list[str]) -> float:
        freedom = len(topics) * (PERMUTATIONS - 1)
        nested_square = sum(sums[topic][0] for topic in topics) / freedom
        error = sum(sums[topic][2] for topic in topics) / freedom / 4
        return (nested_square - error) / (nested_square + 4 * error)

    evidence = committed_evidence("orders_beyond_the_script")["permutations/5-interaction"]
    alike(evidence, share(list(table)), percentiles(share, list(table)))
