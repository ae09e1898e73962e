"""Guards the verdicts on the replica: labels exchanged at random, and claims computed twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.orders import preference
from equipoise.orders.conversations import conversations, sampled_orders
from equipoise_compendium.claims import Evidence, of_all, stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.permutations import claims
from equipoise_studies.permutations import data as cast
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import chosen_systems
from notebook_evidence import verdict_of

TABLE_2, TABLE_3, TABLE_4, TABLE_5 = (
    printed_table(f"permutations/table-{number}") for number in (2, 3, 4, 5)
)

ORDERS = 48  # of each conversation in Table 5


@cache
def replica() -> pd.DataFrame:
    """Scores of all systems in the order of the script and in the drawn ones, as the notebook's."""
    scripts = conversations(cast.read_utterances())
    collection = cast.collection_of(cast.read_passages())
    experiment = Experiment(collection, scripts, cast.read_qrels())
    return experiment.scores(sampled_orders(scripts, 100, 2022), chosen_systems(antecedent=True))


def moving() -> pd.DataFrame:
    """Scores of the systems that depend on the order."""
    scores = replica()
    return scores[scores["run"].isin(chosen_systems(antecedent=True, depending=True))]


def nested() -> pd.DataFrame:
    scores = moving()
    return scores[scores["permutation"] < ORDERS]


@cache
def whole_collection() -> pd.DataFrame:
    """nDCG@3 of each system of DECAF on each conversation, its ranks discounted one by one."""
    grades = cast.read_qrels().set_index(["query", "document"])["grade"].to_dict()
    grades_of_query: dict[str, list[int]] = {}
    for (query, _), grade in grades.items():
        grades_of_query.setdefault(query, []).append(grade)
    gains: dict[tuple[str, str], float] = {}
    for row in cast.read_whole_collection(3).itertuples():
        gain = max(0, grades.get((row.query, row.document), 0)) / math.log2(row.rank + 1)
        gains[row.run, row.query] = gains.get((row.run, row.query), 0.0) + gain
    rows = []
    for (run, query), gain in gains.items():
        best = sorted(grades_of_query[query], reverse=True)[:3]
        ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
        rows.append((run, query.partition("_")[0], gain / ideal if ideal else 0.0))
    scores = pd.DataFrame(rows, columns=["run", "topic", "value"])
    means = scores.groupby(["run", "topic"], sort=False)["value"].mean().reset_index()
    return means.assign(permutation=0)


def of_the_kinds() -> pd.DataFrame:
    """The systems of DECAF that use the context as anCB and CU do."""
    scores = whole_collection()
    return scores[scores["run"].isin(["CR + BM25", "BM25 FLC"])]


def of_topics(scores: pd.DataFrame) -> dict[str, Any]:
    """Scores by topic, shaped (orders, systems), the script first."""
    wide = scores.pivot_table(
        index=["topic", "permutation"], columns="run", values="value", sort=False
    )
    return {topic: part.to_numpy() for topic, part in wide.groupby(level="topic", sort=False)}


# --- labels exchanged at random -------------------------------------------------------------------


def with_systems_exchanged(scores: pd.DataFrame) -> pd.DataFrame:
    """Each conversation's systems in random places, each with all of its orders."""
    rng = np.random.default_rng(0)
    parts = []
    for _, part in scores.groupby("topic", sort=False):
        runs = part["run"].unique()
        other_run = dict(zip(runs, rng.permutation(runs), strict=True))
        parts.append(part.assign(run=part["run"].map(other_run)))
    return pd.concat(parts, ignore_index=True)


def with_orders_exchanged(scores: pd.DataFrame) -> pd.DataFrame:
    """Each system's scores of a conversation at random orders, the script among them."""
    rng = np.random.default_rng(5)
    cells = scores.groupby(["run", "topic"], sort=False)["value"]
    return scores.assign(value=cells.transform(lambda values: rng.permutation(values.to_numpy())))


def without_effect_of_orders(scores: pd.DataFrame) -> pd.DataFrame:
    means = scores.groupby(["run", "topic"], sort=False)["value"].transform("mean")
    return scores.assign(value=means)


def means_of(scores: pd.DataFrame) -> pd.DataFrame:
    means = scores.groupby(["run", "topic"], sort=False)["value"].mean()
    return means.rename("mean").reset_index()


def previous_utterance_as_first() -> pd.DataFrame:
    scores = replica()
    return scores[scores["run"] == "LP"].assign(run="FU")


NULLS: dict[str, Callable[[], Evidence]] = {
    "permutations/2-first-utterance": lambda: claims.first_utterance_leads(
        with_systems_exchanged(replica()), TABLE_2
    ),
    "permutations/2-fu-stays": lambda: claims.first_utterance_stays(previous_utterance_as_first()),
    "permutations/2-maximum": lambda: claims.better_by_others(
        of_topics(with_orders_exchanged(moving()))
    ),
    "permutations/2-favours": lambda: claims.script_favours(with_systems_exchanged(moving())),
    "permutations/3-anyone": lambda: claims.anyone_can_lead(
        without_effect_of_orders(moving()), TABLE_3
    ),
    "permutations/4-alike": lambda: claims.model_on_script(
        with_systems_exchanged(of_the_kinds()), TABLE_4
    ),
    "permutations/5-model": lambda: claims.model_on_all_orders(
        means_of(with_systems_exchanged(moving()))
    ),
    "permutations/5-interaction": lambda: claims.shared_effect(with_orders_exchanged(nested())),
    "permutations/5-better-for-all": lambda: claims.better_for_all(
        of_topics(with_orders_exchanged(moving()))
    ),
    "permutations/5-tiers": lambda: claims.more_tiers(with_systems_exchanged(nested())),
}
"""Evidence on each claim that has a null, with the labels exchanged."""


@pytest.mark.parametrize("name", NULLS)
def test_no_claim_holds_where_its_labels_are_exchanged(name: str) -> None:
    assert verdict_of(name, NULLS[name]()) != "holds"


def test_each_claim_with_a_null_has_its_labels_exchanged() -> None:
    table = stated("permutations")
    named = {f"permutations/{claim}" for claim in table.index[table["null"] != ""]}
    assert named == set(NULLS)


def test_a_claim_that_holds_does_so_only_with_its_labels() -> None:
    assert (
        verdict_of("permutations/5-model", claims.model_on_all_orders(means_of(moving())))
        == "holds"
    )
    assert verdict_of("permutations/5-interaction", claims.shared_effect(nested())) == "holds"


def test_systems_alike_are_contradicted_by_one_that_is_always_ahead() -> None:
    scores = moving()
    ahead = scores.assign(value=scores["value"] + 0.3 * (scores["run"] == "CU"))
    alike = claims.model_on_script(ahead, TABLE_4)
    assert verdict_of("permutations/4-alike", alike) == "contradicted"


def test_on_the_whole_collection_two_kinds_of_systems_differ_in_the_order_of_the_script() -> None:
    alike = claims.model_on_script(of_the_kinds(), TABLE_4)
    assert verdict_of("permutations/4-alike", alike) == "contradicted"
    # Other programs made these two, so that the replica is asked as well.
    of_replica = Evidence("F", 2.4, 0.3, 3.4)
    assert verdict_of("permutations/4-alike", of_all([alike, of_replica])) == "undecided"
    beside = claims.beside_replica(alike, of_replica)
    assert (beside.estimate, beside.low, beside.n) == (alike.estimate, alike.low, 20)
    assert beside.said.endswith("(on the replica without Antecedent 2.4 [0.3, 3.4])")
    size = claims.conversation_effect(of_the_kinds(), TABLE_4)
    assert verdict_of("permutations/4-conversation", size) == "holds"


# --- claims by a second, plain implementation ------------------------------------------------


def table_of(scores: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Scores by topic and system, in the order of the permutations."""
    table: dict[str, dict[str, list[float]]] = {}
    ordered = scores.sort_values("permutation", kind="stable")
    for row in ordered.itertuples():
        table.setdefault(str(row.topic), {}).setdefault(str(row.run), []).append(float(row.value))
    return table


def mean(values: Any) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


def percentiles(statistic: Callable[[list[str]], float], topics: list[str]) -> tuple[float, float]:
    """Ends of a 95 % interval: conversations drawn with replacement, 2,000 times."""
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        places = rng.integers(len(topics), size=len(topics))
        drawn.append(statistic([topics[place] for place in places]))
    drawn.sort()
    return drawn[49], drawn[1949]


def same(evidence: Evidence, value: float, ends: tuple[float, float]) -> bool:
    """Whether the estimate is equal, and the ends are up to what two drawings differ by."""
    assert evidence.low is not None
    assert evidence.high is not None
    reach = 0.1 * (ends[1] - ends[0])
    assert evidence.estimate == pytest.approx(value, abs=1e-9)
    assert (evidence.low, evidence.high) == pytest.approx(ends, abs=reach)
    return True


def test_the_change_by_permuting_computed_twice() -> None:
    table = table_of(moving())

    def change(topics: list[str]) -> float:
        changes = []
        for topic in topics:
            changes += [mean(scores) - scores[0] for scores in table[topic].values()]
        return mean(changes)

    topics = list(table)
    evidence = claims.permuting_changes(moving(), TABLE_2)
    assert same(evidence, change(topics), percentiles(change, topics))


def test_the_lead_of_first_utterance_computed_twice() -> None:
    scores = replica()[replica()["run"] != "Antecedent"]
    table = table_of(scores)
    runs = [run for run in next(iter(table.values())) if run != "FU"]

    def lead(topics: list[str]) -> float:
        of_runs = [mean(table[topic][run][0] for topic in topics) for run in runs]
        return mean(table[topic]["FU"][0] for topic in topics) - max(of_runs)

    topics = list(table)
    evidence = claims.first_utterance_leads(scores, TABLE_2)
    assert same(evidence, lead(topics), percentiles(lead, topics))


def test_the_lead_of_coreference_computed_twice() -> None:
    table = table_of(of_the_kinds())

    def lead(topics: list[str]) -> float:
        gaps = [table[topic]["CR + BM25"][0] - table[topic]["BM25 FLC"][0] for topic in topics]
        return mean(gaps)

    topics = list(table)
    evidence = claims.coreference_leads(of_the_kinds(), TABLE_2)
    assert same(evidence, lead(topics), percentiles(lead, topics))
    assert evidence.printed == pytest.approx(0.1640 - 0.1687)


def test_f_of_two_kinds_of_systems_is_that_of_a_paired_test() -> None:
    """With two systems, F over conversations is the square of Student's t of the differences."""
    wide = of_the_kinds().pivot_table(index="topic", columns="run", values="value")
    student = stats.ttest_rel(wide["CR + BM25"], wide["BM25 FLC"])
    alike = claims.model_on_script(of_the_kinds(), TABLE_4)
    assert f"({student.statistic**2:.4g} less " in alike.said


def test_pairs_that_one_system_always_wins_counted_twice() -> None:
    table = table_of(moving())
    runs = list(next(iter(table.values())))

    def share(topics: list[str]) -> float:
        always = []
        for topic in topics:
            for place, first in enumerate(runs):
                for second in runs[:place]:
                    pairs = list(zip(table[topic][first], table[topic][second], strict=True))
                    wins = [a > b for a, b in pairs], [b > a for a, b in pairs]
                    always.append(all(wins[0]) or all(wins[1]))
        return mean(always)

    of_topic = {topic: share([topic]) for topic in table}
    topics = list(table)
    evidence = claims.always_won(preference(moving()))
    ends = percentiles(lambda drawn: mean(of_topic[topic] for topic in drawn), topics)
    assert same(evidence, share(topics), ends)


def sums_by_hand(table: dict[str, dict[str, list[float]]]) -> tuple[float, float, float]:
    """Sums of squares of orders, of the residual of MD1, and of that beside topic x model."""
    of_orders = of_residual = beside = 0.0
    effects: dict[str, list[float]] = {}
    for systems in table.values():
        center = mean(mean(scores) for scores in systems.values())
        runs = list(systems)
        for order in range(ORDERS):
            at_order = mean(systems[run][order] for run in runs)
            of_orders += len(runs) * (at_order - center) ** 2
            for run in runs:
                own = systems[run][order] - at_order
                effects.setdefault(run, []).append(own)
                beside += (own - mean(systems[run]) + center) ** 2
    for values in effects.values():
        effect = mean(values)
        of_residual += math.fsum((value - effect) ** 2 for value in values)
    return of_orders, of_residual, beside


def test_f_of_the_orders_computed_twice() -> None:
    table = table_of(nested())
    of_orders, of_residual, _ = sums_by_hand(table)
    freedom = 20 * (ORDERS - 1), (20 * ORDERS - 1) * 4
    ratio = of_orders / freedom[0] / (of_residual / freedom[1])
    evidence = claims.order_effect(nested(), nested(), TABLE_5)
    law = stats.f(*freedom)
    ends = ratio / law.ppf(0.975), ratio / law.ppf(0.025)
    assert same(evidence, ratio, ends)
    assert verdict_of("permutations/5-permutation", evidence) == "holds"


def test_what_of_an_order_is_common_to_the_systems_computed_twice() -> None:
    table = table_of(nested())
    sums = {topic: sums_by_hand({topic: systems}) for topic, systems in table.items()}

    def share(topics: list[str]) -> float:
        freedom = len(topics) * (ORDERS - 1)
        nested_square = sum(sums[topic][0] for topic in topics) / freedom
        error = sum(sums[topic][2] for topic in topics) / freedom / 4
        return (nested_square - error) / (nested_square + 4 * error)

    topics = list(table)
    assert same(claims.shared_effect(nested()), share(topics), percentiles(share, topics))


def test_the_size_of_the_conversations_computed_twice() -> None:
    table = table_of(moving())

    def omega_squared(topics: list[str]) -> float:
        rows = [[scores[0] for scores in table[topic].values()] for topic in topics]
        of_topics = [mean(row) for row in rows]
        of_systems = [mean(column) for column in zip(*rows, strict=True)]
        center = mean(of_topics)
        among = len(of_systems) * sum((value - center) ** 2 for value in of_topics)
        residual = 0.0
        for row, of_topic in zip(rows, of_topics, strict=True):
            for value, of_system in zip(row, of_systems, strict=True):
                residual += (value - of_topic - of_system + center) ** 2
        freedom = len(rows) - 1
        ratio = among / freedom / (residual / freedom / (len(of_systems) - 1))
        size = freedom * (ratio - 1)
        return size / (size + len(rows) * len(of_systems))

    topics = list(table)
    evidence = claims.conversation_effect(moving(), TABLE_4)
    assert same(evidence, omega_squared(topics), percentiles(omega_squared, topics))
