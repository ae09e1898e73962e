"""Guards the evidence on the permutation study's claims: plain loops, SciPy, known answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.orders import preference
from equipoise.orders.effects import largest_differences
from equipoise.orders.variance import anova, tiers, tukey_hsd
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.permutations import claims, sentences

TABLE_2 = printed_table("permutations/table-2")
RUNS = ["CU", "FU", "LP", "RM3p"]


def scores_of(seed: int, orders: int = 6, topics: int = 8) -> pd.DataFrame:
    """Random scores; FU has one score in each conversation, whatever the order."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product(
        [RUNS, [str(topic) for topic in range(topics)], range(orders)],
        names=["run", "topic", "permutation"],
    )
    table = pd.DataFrame({"value": rng.random(len(index))}, index=index).reset_index()
    first = table.groupby(["run", "topic"])["value"].transform("first")
    return table.assign(value=table["value"].where(table["run"] != "FU", first))


def test_means_of_table_2_and_what_is_printed_of_them() -> None:
    scores = scores_of(1)
    wide = scores.pivot_table(index=["topic", "permutation"], columns="run", values="value")
    script = wide.xs(0, level="permutation").mean()
    theirs = TABLE_2.set_index("model")[["orig. order", "mean", "max"]].astype(float)
    leads = claims.first_utterance_leads(scores, TABLE_2)
    assert leads.estimate == pytest.approx(script["FU"] - script.drop("FU").max())
    assert leads.printed == pytest.approx(0.1692 - 0.1687)
    assert claims.first_utterance_stays(scores).estimate == 0
    moved = scores[scores["run"] != "FU"]
    change = claims.permuting_changes(moved, TABLE_2)
    assert change.estimate == pytest.approx((wide.mean() - script).drop("FU").mean())
    systems = ["CU", "LP", "RM3p"]
    assert change.printed == pytest.approx((theirs["mean"] - theirs["orig. order"])[systems].mean())
    with_rule = claims.permuting_changes(
        moved.assign(run=moved["run"].replace("CU", "Antecedent")), TABLE_2
    )
    systems = ["anCB", "LP", "RM3p"]
    assert with_rule.printed == pytest.approx(
        (theirs["mean"] - theirs["orig. order"])[systems].mean()
    )
    assert claims.printed_gain(TABLE_2).estimate == pytest.approx(0.1645 - 0.1640)
    for evidence in (leads, change):
        assert evidence.n == 8


def test_intervals_over_conversations_are_the_bootstraps() -> None:
    moved = scores_of(2, topics=30)
    found = claims.permuting_changes(moved[moved["run"] != "FU"])
    wide = moved[moved["run"] != "FU"].pivot_table(
        index=["topic", "permutation"], columns="run", values="value"
    )
    gaps = (wide.groupby("topic").mean() - wide.xs(0, level="permutation")).mean(axis=1).to_numpy()
    theirs = stats.bootstrap(
        (gaps,), np.mean, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(
        (theirs.low, theirs.high), abs=0.1 * (theirs.high - theirs.low)
    )


def test_the_place_of_the_script_and_the_pairs_that_one_system_always_wins() -> None:
    scores = scores_of(4)
    moved = scores[scores["run"] != "FU"]
    means = moved.pivot_table(index="topic", columns="permutation", values="value")
    best = (means.idxmax(axis=1) == 0).mean()
    script = claims.script_best(moved)
    assert script.estimate == pytest.approx(best)
    interval = stats.binomtest(round(best * 8), 8).proportion_ci()
    assert (script.low, script.high) == pytest.approx((interval.low, interval.high))
    above = means.drop(columns=0).gt(means[0], axis=0).sum(axis=1).mean() / 6
    assert claims.script_against_chance(moved).estimate == pytest.approx(above)
    leads = claims.anyone_can_lead(moved, printed_table("permutations/table-3"))
    assert leads.estimate == pytest.approx(
        largest_differences(moved).set_index("model").to_numpy().min()
    )
    assert leads.printed == 0.025
    raised = moved.assign(value=moved["value"] + moved["run"].map({"CU": 2.0}).fillna(0.0))
    always = claims.always_won(preference(raised))
    assert always.estimate == pytest.approx(2 / 3)  # both pairs with CU, of three


def test_evidence_of_the_analyses_of_variance() -> None:
    scores = scores_of(5)
    scores["value"] += scores["run"].map({"LP": 0.4, "CU": 0.1}).fillna(0.0)
    script = scores[scores["permutation"] == 0]
    md0, md1 = anova(script, alpha=1.1), anova(scores, "MD1", alpha=1.1)
    table5 = printed_table("permutations/table-5")
    size = claims.size_of_model(scores, table5)
    assert size.estimate == pytest.approx(md1.set_index("source").loc["model", "omega_squared"])
    assert size.printed == 0.03
    table4 = printed_table("permutations/table-4")
    topic = claims.conversation_effect(scores, table4)
    assert topic.estimate == pytest.approx(md0.set_index("source").loc["topic", "omega_squared"])
    assert topic.printed == 0.758
    gain = claims.more_tiers(scores)
    counts = [
        tiers(part, tukey_hsd(part, table))["tier"].max()
        for part, table in [(scores, md1), (script, md0)]
    ]
    assert f"({counts[0] - counts[1]} less " in gain.said
    nested = claims.order_effect(scores, scores[scores["run"] != "LP"], table5)
    of_orders = md1.set_index("source").loc["permutation(topic)"]
    assert nested.estimate == pytest.approx(of_orders["F"])
    freedom = of_orders["DF"], md1.set_index("source").loc["Error", "DF"]
    assert nested.high == pytest.approx(of_orders["F"] / stats.f.ppf(0.025, *freedom))
    exact = scores.groupby(["run", "topic"])["value"].mean().rename("mean").reset_index()
    means = exact.rename(columns={"mean": "value"})
    by_mean = tiers(means, tukey_hsd(means, anova(means)))["tier"].max()
    assert claims.more_tiers_exactly(scores, exact).estimate == by_mean - counts[1]


def test_f_of_the_model_stands_against_exchanged_systems() -> None:
    scores = scores_of(5)
    scores["value"] += scores["run"].map({"LP": 0.4, "CU": 0.1}).fillna(0.0)
    script = scores[scores["permutation"] == 0]
    ratio = anova(script).set_index("source").loc["model", "F"]
    table4 = printed_table("permutations/table-4")
    alike = claims.model_on_script(scores, table4)
    wide = script.pivot_table(index="topic", columns="run", values="value").to_numpy()
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(299):
        shuffled = pd.DataFrame([rng.permutation(row) for row in wide]).rename_axis("topic")
        long = shuffled.reset_index().melt("topic", var_name="run")
        drawn.append(plain_f(long))
    assert alike.estimate == pytest.approx(ratio - np.mean(drawn), abs=0.15)
    assert alike.low == pytest.approx(ratio - np.quantile(drawn, 0.975), abs=0.6)
    assert alike.printed == pytest.approx(0.762 - np.mean(drawn), abs=0.15)
    means = scores.groupby(["run", "topic"])["value"].mean().reset_index()
    on_all = claims.model_on_all_orders(means.rename(columns={"value": "mean"}))
    assert f"({plain_f(means):.4g} less" in on_all.said
    change = (
        script.set_index(["run", "topic"])["value"] - means.set_index(["run", "topic"])["value"]
    )
    favours = claims.script_favours(scores)
    assert f"({plain_f(change.reset_index()):.4g} less" in favours.said


def plain_f(table: pd.DataFrame) -> float:
    """F of the runs over topics, sum by sum."""
    grand = table["value"].mean()
    by_run = table.groupby("run")["value"].mean()
    by_topic = table.groupby("topic")["value"].mean()
    among = within = 0.0
    for row in table.itertuples():
        among += (by_run[row.run] - grand) ** 2
        within += (row.value - by_run[row.run] - by_topic[row.topic] + grand) ** 2
    return among / (len(by_run) - 1) / (within / (len(by_run) - 1) / (len(by_topic) - 1))


def test_an_order_is_chosen_by_the_other_systems() -> None:
    scores = {
        "1": np.array([[0.5, 0.5, 0.5], [0.9, 0.4, 0.1], [0.2, 0.8, 0.7]]),
        "2": np.array([[0.3, 0.3, 0.3], [0.1, 0.2, 0.2], [0.1, 0.1, 0.1]]),
    }
    # for the first system the others choose order 2, for the second 0, for the third 1
    gains = [(0.2 - 0.5) / 2, 0.0, (0.1 - 0.5) / 2]
    assert claims.better_by_others(scores).estimate == pytest.approx(min(gains))
    shared = claims.better_for_all(scores)
    assert shared.estimate == pytest.approx((0 - 0.5 * 0.5 * 0.5) / 2)
    assert "(0 conversations have any)" in shared.said
    scores["2"] = np.array([[0.3, 0.3, 0.3], [0.4, 0.4, 0.4], [0.4, 0.1, 0.1]])
    shared = claims.better_for_all(scores)
    assert shared.estimate == pytest.approx((0 - 0.5**3 + 0.5 - 1 * 0.5 * 0.5) / 2)


def test_rankings_are_compared_by_kendalls_tau() -> None:
    scores = scores_of(6)
    wide = scores.pivot_table(index=["topic", "permutation"], columns="run", values="value")
    taus: list[float] = []
    unlike = 0
    for _, part in wide.groupby(level="topic"):
        values = part.to_numpy()
        of_topic = len(taus)
        for first in range(len(values)):
            for second in range(first):
                taus.append(stats.kendalltau(values[first], values[second]).statistic)
        unlike += min(taus[of_topic:]) <= 0
    assert claims.rankings_alike(scores).estimate == pytest.approx(np.mean(taus))
    without = claims.rankings_unlike(scores)
    assert without.estimate is None
    assert f"tau is {np.mean(taus):.2f} for two that are drawn" in without.reason
    assert f"in {unlike} of 8 conversations" in without.reason


def test_false_alarms_are_those_of_md1() -> None:
    """Where systems suit conversations MD1 alarms too often; where nothing does, it does not."""
    noise = scores_of(7, topics=20)
    noise = noise[noise["run"] != "FU"]
    estimate = claims.false_alarms(noise).estimate
    assert estimate is not None
    assert estimate < 0.15
    suited = noise.groupby(["run", "topic"])["value"].transform("first")
    alarms = claims.false_alarms(noise.assign(value=noise["value"] / 10 + suited))
    assert (alarms.low or 0) > 0.3
    rng = np.random.default_rng(2)
    wide = noise.assign(value=noise["value"] / 10 + suited).pivot_table(
        index=["topic", "permutation"], columns="run", values="value"
    )
    significant = 0
    for _ in range(100):
        parts = []
        for _, part in wide.groupby(level="topic"):
            parts.append(part.set_axis(rng.permutation(part.columns), axis=1)[wide.columns])
        long = pd.concat(parts).reset_index().melt(["topic", "permutation"], var_name="run")
        significant += int(
            anova(long, "MD1", alpha=1.1).set_index("source").loc["model", "p"] < 0.05
        )
    assert alarms.estimate == pytest.approx(significant / 100, abs=0.15)


def test_no_verdict_rests_on_antecedent() -> None:
    clear = Evidence("x", 0.5, 0.4, 0.6)
    open_ = Evidence("x", 0.2, -0.1, 0.5)
    against = Evidence("x", -0.5, -0.6, -0.4)
    for pair in [(clear, open_), (open_, clear), (against, open_), (open_, against)]:
        weaker = claims.weaker("2-maximum", *pair)
        assert (weaker.estimate, weaker.low) == (0.2, -0.1)
        other = next(evidence for evidence in pair if evidence is not open_)
        assert f"Antecedent {other.estimate:.4g} [{other.low:.4g}, {other.high:.4g}]" in weaker.said
    assert claims.weaker("2-maximum", clear, clear).estimate == 0.5
    assert claims.weaker("2-maximum", clear, against).estimate is None


def test_evidence_of_what_is_printed() -> None:
    table5 = printed_table("permutations/table-5")
    assert claims.orders_of_the_table(table5, 20).estimate == 48
    assert claims.tiers_named(printed_table("permutations/tiers")).estimate == 3
    assert claims.least_significant(table5).estimate == pytest.approx(stats.f.sf(0.84, 940, 3836))
    table3 = printed_table("permutations/table-3")
    assert claims.printed_difference(table3).estimate == pytest.approx(12.26)
    noise = claims.noise_in_the_residual(table5)
    assert noise.estimate == 0.84
    assert noise.high == pytest.approx(0.84 / stats.f.ppf(0.025, 940, 3836))
    assert stats.f.cdf(0.84, 940, 3836) < 0.001 < 0.025


def test_what_the_sentences_say_of_variants_and_correlations() -> None:
    two = pd.DataFrame(
        {
            "run": ["LP", "CU"] * 2,
            "variant": ["paper"] * 2 + ["program"] * 2,
            "mean": [0.4, 0.3, 0.1, 0.2],
        }
    )
    assert (
        "by the paper: LP 0.4000, CU 0.3000; by the program: LP 0.1000, CU 0.2000."
        in sentences.weights(two)
    )
    correlations = pd.DataFrame(
        {"run": ["a", "b"], "topic": ["1", "2"], "correlation": [0.5, np.nan]}
    )
    said = sentences.undefined(correlations, "x", "y")
    assert said.startswith("1 of 2 correlations of x and y are not defined (b on 2)")
    assert "where" not in sentences.undefined(correlations.iloc[:1], "x", "y")


def test_the_answer_names_systems_and_ranges() -> None:
    exact = pd.DataFrame(  # C differs by rounding only
        {
            "run": ["A", "A", "B", "B", "C", "C"],
            "topic": ["1", "2"] * 3,
            "orders": 24,
            "sd": [0.1, 0.1, 0.05, 0, 0, 0],
        }
    ).assign(
        mean=0.5,
        minimum=[0.2, 0.4, 0.4, 0.5, 0.5, 0.5],
        maximum=[0.9, 0.5, 0.6, 0.5, 0.5 + 1e-16, 0.5 + 2e-16],
    )
    evidence = {
        "chance": Evidence("share", 0.3, 0.2, 0.4),
        "coreference": Evidence("lead", 0.07, 0.03, 0.11, printed=-0.005),
        "alarms": Evidence("share", 0.97, 0.95, 0.98),
    }
    said = sentences.answer(exact, evidence, "nDCG@3")
    assert "by 20% [0%, 40%] of it (B) to 80% [20%, 140%] of it (A)" in said[0]
    assert "; C does not see the order" in said[0]
    assert "30% [20%, 40%]" in said[1]
    assert "+0.070 [+0.030, +0.110] beside" in said[2]
    assert "Table 2 prints -0.005" in said[2]
    assert "97% [95%, 98%] of the draws, where 5% would be right" in said[3]


def test_the_answer_beyond_names_numbers_of_orders_sessions_and_bands() -> None:
    needed = pd.DataFrame({"run": ["A", "B"], "orders for ±0.1": [2, 1]})
    ranking = pd.DataFrame({"wanted": ["tau", "same"], "orders": [3, 14]})
    in_session = pd.DataFrame(
        {"run": ["A", "B"], "change": [-0.01, -0.2], "low": [-0.02, -0.3], "high": [0.0, -0.1]}
    )
    evidence = {
        "shared": Evidence("share", 0.28, 0.21, 0.34),
        "second": Evidence("change", -0.04, -0.05, -0.02),
        "unseen": Evidence("share", 0.92, 0.90, 0.93),
    }
    for low, high, word in [
        (0.01, 0.03, "less"),
        (-0.03, -0.01, "more"),
        (-0.01, 0.01, "neither clearly less nor"),
    ]:
        evidence["rewriter"] = Evidence("sd", (low + high) / 2, low, high)
        said = sentences.answer_beyond(needed, ranking, evidence, in_session)
        assert f"varies {word}" in said[2]
        assert f"[{low:.3f}, {high:.3f}]" in said[2]
    assert said[0].startswith(
        "14 orders of each conversation are enough to rank the systems as all orders do, and 1 to "
    )
    assert "within 0.1, both 19 times in 20" in said[0]
    assert "28% [21%, 34%] is common" in said[1]
    assert said[3].endswith("-0.040 [-0.050, -0.020].")
    assert "changes B by -0.200 [-0.300, -0.100]" in said[4]
    assert "a calibrated band meant to hold 90% of the orders holds 92% [90%, 93%]" in said[5]


def test_the_worst_quarter_names_who_loses_and_who_leads() -> None:
    worst = pd.DataFrame({"run": ["A", "B"], "mean": [0.5, 0.4], "worst 0.25": [0.2, 0.3]})
    said = sentences.worst_quarter(worst)
    assert "has 25% (B) to 60% (A) less than on average" in said
    assert "A is best on average and B on the worst quarter; 0 of 2 systems keep their rank" in said


def test_sampled_ranges_are_said_as_shares() -> None:
    errors = pd.DataFrame(
        {"error": [0.001, -0.01], "standard error": [0.002, 0.002], "minimum": [0.0, 0.0]}
    )
    errors = errors.assign(
        maximum=1.0, **{"sampled minimum": [0.1, 0.2], "sampled maximum": [0.9, 0.8]}
    )
    said = sentences.sampled_range(errors, 7)
    assert "Up to 7 drawn orders of each conversation show 60% to 80% of the range" in said
    assert "; 1 of 2 sampled means" in said
    assert "the furthest by 0.0100" in said


def test_what_the_interaction_changes_is_said_with_every_test() -> None:
    without = pd.DataFrame(
        {"source": ["permutation(topic)", "model"], "F": [0.7, 200.0], "p": [0.99, 1e-99]}
    )
    after, by_chance = (
        without.assign(F=[2.9, 5.4], p=[1e-9, 0.0007]),
        {"permutation(topic)": 0.001, "model": 0.002},
    )
    said = sentences.interaction(without, after, by_chance)
    assert (
        "F = 0.70 (p = 0.99); once it is taken out, "
        "F = 2.90 (p < 0.0001; by randomisation p = 0.001)" in said
    )
    assert (
        "F = 200.00 against that residual (p < 0.0001), "
        "and with F = 5.40 over conversations (p = 0.0007;" in said
    )


def test_what_figures_show_is_said_in_numbers() -> None:
    spread = pd.DataFrame({"topic": ["1"] * 4 + ["2"] * 2, "permutation": [0, 1, 2, 3, 0, 1]})
    spread["value"] = [0.2, 0.3, 0.1, 0.4, 0.9, 0.8]
    assert sentences.script_in_words(spread) == "Share of the orders above the script: 1 50%, 2 0%"
    wins = pd.DataFrame(
        {"a": ["x", "y", "x", "y"], "b": ["y", "x", "y", "x"], "wins": [1.0, 0.0, 0.25, 0.7]}
    )
    assert "In 50% of all pairs" in sentences.wins_in_words(wins)
    errors = pd.DataFrame({"run": ["x"], "minimum": [0.1], "mean": [0.2], "maximum": [0.3]})
    assert sentences.ranges_in_words(errors) == "x: 0.100, 0.200, 0.300"
    stability = pd.DataFrame({"permutations": [1, 10], "same": [0.6, 0.94]})
    assert sentences.stability_in_words(stability).endswith(": 1 60%, 10 94%")
    correlations = pd.DataFrame(
        {"run": ["x"] * 3 + ["y"], "correlation": [0.1, 0.2, 0.9, float("nan")]}
    )
    assert sentences.medians_in_words(correlations) == "Medians: x 0.20, y nan"
