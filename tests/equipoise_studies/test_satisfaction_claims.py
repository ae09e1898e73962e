"""What the claims of chapter 3 rest on: bounds under doubt, printed numbers, sentences."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction import claims, words
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.estimates import Ends, Rates, certain, drawn_samples, index_ends
from equipoise_studies.satisfaction.redrawn import labels_by_chance
from equipoise_studies.satisfaction.robustness import robustness_table


def reported(name: str) -> pd.DataFrame:
    """A table that the notebook made."""
    folder = project.root() / "reports" / "thesis_ch3_satisfaction" / "tables"
    return pd.read_csv(folder / f"{name}.csv")


BEHIND = reported("counts_behind_table_3.6").rename(columns={"pairs of counts": "solutions"})
PRINTED = drawn_samples(BEHIND, np.random.default_rng(1), 400)
ZEPHYR = printed_table("thesis/table-3.7"), printed_table("thesis/table-3.6")
TUNED, FEW = ["BERT", "ASAP"], ["Zephyr", "MistralIF"]


def number(evidence: Evidence) -> float:
    assert evidence.estimate is not None
    return evidence.estimate


def of_one(right: dict[tuple[str, str], tuple[int, int]], wrong: float) -> Rates:
    """Rates of one estimator, of the correct samples and all of each world and label, no draws."""
    rates = {("SGD", "a", *key): [found / there] for key, (found, there) in right.items()}
    table = pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])
    return Rates(
        table,
        {("SGD", *key): there for key, (_, there) in right.items()},
        "swapped",
        {"SGD": wrong},
    )


@settings(max_examples=25)
@given(st.data())
def test_bounds_are_those_of_every_choice_of_wrong_labels(data: st.DataObject) -> None:
    there = data.draw(st.integers(2, 9))
    found, wrong = data.draw(st.integers(0, there)), data.draw(st.integers(0, there - 1))
    main = {
        ("Main", "satisfied"): (5, 7),
        ("Main", "dissatisfied"): (1, 3),
        ("swapped", "satisfied"): (2, 4),
    }
    rates = of_one(main | {("swapped", "dissatisfied"): (found, there)}, wrong / there)
    said = [True] * found + [False] * (there - found)
    left = [
        sum(said[place] for place in kept) for kept in combinations(range(there), there - wrong)
    ]
    shares = [count / (there - wrong) for count in left]
    ends = [part.iloc[0, 0] for part in rates.turned_found()]
    assert ends == pytest.approx([found / there, min(shares), max(shares)])
    whole = [(1 + count) / (3 + there - wrong) for count in left]
    ends = [part.iloc[0, 0] for part in rates.kept()]
    assert ends == pytest.approx(
        [part / 0.6 for part in ((1 + found) / (3 + there), min(whole), max(whole))]
    )


def test_scores_are_those_of_scikit_learn() -> None:
    right = {("Main", "satisfied"): (5, 7), ("Main", "dissatisfied"): (1, 3)}
    right |= {("swapped", "satisfied"): (2, 4), ("swapped", "dissatisfied"): (3, 5)}
    rates = of_one(right, 0.0)
    truth, said = [0] * 7 + [1] * 3, [0] * 5 + [1] * 2 + [1] + [0] * 2
    assert rates.scores("Main", "F1").iloc[0, 0] == pytest.approx(
        f1_score(truth, said, average="macro")
    )
    assert rates.accuracy("Main").iloc[0, 0] == pytest.approx(accuracy_score(truth, said))
    assert rates.accuracy("Main", "swapped").iloc[0, 0] == pytest.approx((5 + 1 + 2 + 3) / 19)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=8), st.data())
def test_index_in_doubt_is_between_those_of_every_choice(
    pairs: list[tuple[bool, bool]], data: st.DataObject
) -> None:
    wrong = data.draw(st.integers(0, len(pairs) - 1))
    counts = [sum(a and b for a, b in pairs), sum(a or b for a, b in pairs), len(pairs)]
    if not counts[1]:
        return
    columns = pd.MultiIndex.from_product(
        [["SGD"], ["a"], ["meet", "join", "contexts"]], names=["collection", "run", "count"]
    )
    ends = index_ends(pd.DataFrame([counts], columns=columns), {"SGD": wrong / len(pairs)})
    value, low, high = (part.iloc[0, 0] for part in ends)
    assert value == counts[0] / counts[1]
    choices = [
        (sum(a and b for a, b in kept), sum(a or b for a, b in kept))
        for kept in combinations(pairs, len(pairs) - wrong)
    ]
    indices = [meet / join for meet, join in choices if join]
    if len(indices) == len(choices):  # else nothing may be left, and the bounds are 0 and 1
        assert (low, high) == pytest.approx((min(indices), max(indices)))


def test_differences_and_quotients_add_up_the_doubt() -> None:
    one, other = (
        Ends(*(pd.DataFrame([part]) for part in parts))
        for parts in ((4.0, 3.0, 6.0), (2.0, 1.0, 3.0))
    )
    assert [part.iloc[0, 0] for part in one.less(other)] == [2, 0, 5]
    assert [part.iloc[0, 0] for part in one.over(other)] == [2, 1, 6]


def test_interval_reaches_from_the_lowest_to_the_highest_end() -> None:
    draws = pd.DataFrame([5.0, *np.arange(41.0)])
    found = Ends(draws, draws - 10, draws + 10).evidence("a number", 3)
    assert (found.estimate, found.low, found.high, found.n) == (5, -9, 49, 3)
    assert (certain(draws).evidence("a number").low, certain(draws).evidence("a number").high) == (
        1,
        39,
    )


def test_estimators_are_told_apart_and_chance_is_left_out() -> None:
    runs = [
        ("SGD", "constant"),
        ("SGD", "few-shot"),
        ("SGD", "hawkes"),
        ("MultiWOZ", "BERT, x10"),
        ("MultiWOZ", "Zephyr, Few-shot"),
    ]
    assert claims.few_shot(runs) == [runs[1], runs[4]]
    assert claims.fine_tuned(runs) == [runs[2], runs[3]]
    assert claims.fine_tuned(runs, "SGD", {runs[2]}) == []
    columns = pd.MultiIndex.from_product(
        [["SGD"], ["a", "b"], ["Main"]], names=["collection", "run", "world"]
    )
    areas = pd.DataFrame(
        [[0.6, 0.7], *([0.45 + step / 100, 0.6 + step / 100] for step in range(20))],
        columns=columns,
    )
    assert claims.at_chance(areas) == {("SGD", "a")}


# --- printed numbers against the printed tables themselves ----------------------------------------


def printed_mean(
    score: str, world: str, models: list[str], names: tuple[str, ...] = tuple(COLLECTIONS)
) -> float:
    table = printed_table("thesis/table-3.6")
    rows = table[(table["test data"] == world) & table["model"].isin(models)]
    return float(rows[[f"{name} {score}" for name in names]].astype(float).to_numpy().mean())


def test_claims_on_the_counts_have_the_values_of_the_printed_table() -> None:
    gap = printed_mean("R", "CF", FEW) - printed_mean("R", "Main", FEW)
    assert number(claims.macro_recall_rises(PRINTED)) == pytest.approx(gap, abs=0.01)
    gap = printed_mean("Acc", "CF", FEW) - printed_mean("Acc", "Main", FEW)
    comparable = claims.comparable(PRINTED)
    assert number(comparable) == pytest.approx(gap, abs=0.01)
    gap = printed_mean("F1", "CF", FEW) - printed_mean("F1", "Main", FEW)
    assert f"macro F1 {gap:+.1f})" in comparable.said
    table = printed_table("thesis/table-3.6").set_index(["test data", "model", "setup"])
    leads, kept = [], []
    on_main, best_on_main = [], []
    for name in COLLECTIONS:
        main = printed_table("thesis/table-3.6").query("`test data` == 'Main'")
        f1 = main[f"{name} F1"].astype(float).groupby(main["model"]).agg(["min", "max"])
        for model in TUNED:
            on_main.append(f1.loc[model, "min"] - f1.loc[FEW, "max"].max())
            best_on_main.append(f1.loc[model, "max"] - f1.loc[FEW, "max"].max())
        acc = table[f"{name} Acc"].astype(float)
        kept += (acc.loc["CF", TUNED] / acc.loc["Main", TUNED]).tolist()
        for world in ("CF", "Mixed"):
            tuned = acc.loc[world, TUNED].drop(
                ("ASAP", "up-sampling x10")
            )  # its row of Mixed is no sum
            leads.append(acc.loc[world, FEW].min() - tuned.max())
    assert 100 * number(claims.ahead_on_main(PRINTED)) == pytest.approx(min(on_main), abs=0.01)
    assert 100 * number(claims.best_ahead_on_main(PRINTED)) == pytest.approx(
        min(best_on_main), abs=0.01
    )
    behind = "not ahead: MultiWOZ: BERT without up-sampling; SGD: BERT without up-sampling"
    assert behind in claims.ahead_on_main(PRINTED).said
    assert 100 * number(claims.ahead_elsewhere(PRINTED)) == pytest.approx(min(leads), abs=0.02)
    assert number(claims.dropped_on_cf(PRINTED)) == pytest.approx(np.mean(kept), abs=0.001)
    for name, sign in (("MultiWOZ", 1), ("SGD", -1)):
        assert sign * number(claims.up_sampling_printed(PRINTED, name)) > 0
        change = [table.loc[("CF", model, "up-sampling x20"), f"{name} Acc"] for model in TUNED]
        before = [table.loc[("CF", model, "up-sampling x10"), f"{name} Acc"] for model in TUNED]
        accuracy = np.mean(
            [float(after) - float(first) for after, first in zip(change, before, strict=True)]
        )
        assert 100 * number(claims.up_sampling_printed(PRINTED, name)) == pytest.approx(
            accuracy, abs=1
        )


def test_a_tenth_is_that_of_the_curves() -> None:
    counts = BEHIND.rename(columns={"test data": "world"})
    curves = robustness_table(counts, ["collection", "setup", "model"], step=0.1)
    curves = curves[(curves["measure"] == "sensitivity") & np.isclose(curves["ratio"], 0.1)]
    tenth = curves.set_index(["collection", "setup"])["value"]
    gaps = []
    for name in COLLECTIONS:
        few = tenth[name].index == "Few-shot"
        gaps.append(tenth[name][~few].max() - tenth[name][few].max())
    assert number(claims.at_a_tenth(PRINTED)) == pytest.approx(max(gaps), abs=0.005)


def test_rates_and_shares_are_those_of_the_printed_tables() -> None:
    rates = printed_table("thesis/table-3.4").set_index("data partition").astype(float)
    gap = (rates.loc["Satisfaction"] - rates.loc["Dissatisfaction"]).mean()
    found = claims.confirmed_more(np.random.default_rng(2), 500)
    assert 100 * number(found) == pytest.approx(gap, abs=0.05)
    assert found.low is not None
    assert 0 < found.low < number(found)
    assert number(claims.share_of_main()) == pytest.approx(100 * 76 / 924)
    assert number(claims.one_pair(BEHIND)) == 1
    assert number(claims.constant_rows(BEHIND)) == 0


def test_indices_are_allowed_by_the_setups_best_in_f1_and_not_in_accuracy() -> None:
    bounds = reported("jaccard_bounds")
    assert number(claims.within_bounds(bounds)) == 8
    assert number(claims.best_setups(bounds, PRINTED, "F1")) == 4
    assert (
        number(claims.best_setups(bounds, PRINTED, "Acc")) == 2
    )  # BERT without up-sampling is constant
    assert number(claims.zephyr_first(*ZEPHYR)) > 0


def test_one_pair_finds_the_row_furthest_from_one() -> None:
    assert number(claims.one_pair(pd.DataFrame({"solutions": [1, 1, 3, 1]}))) == 3
    assert number(claims.one_pair(pd.DataFrame({"solutions": [1, 0, 1]}))) == 0


def test_sentences_are_made_from_the_numbers() -> None:
    shares = pd.DataFrame(
        [
            ("SGD", "dissatisfied", 20, 2, 1, 0.1, 0.03, 0.3, 0.36),
            ("all", "all", 40, 2, 1, 0.05, 0.0138, 0.166, 0.2),
        ],
        columns=[
            "collection",
            "shown",
            "read",
            "no",
            "unclear",
            "share",
            "low",
            "high",
            "at_most",
        ],
    )
    first, second = words.of_readings(shares)
    assert first.startswith(
        "Of 40 swapped responses that one language model assistant read, 2 would not change the "
        "user's rating (5%, 95% interval 1% to 17%)"
    )
    assert second.startswith(
        "Of the 20 of SGD that are labelled dissatisfied, 2 would not and 1 are unclear: up to 36%"
    )
    counted = pd.DataFrame(
        [("SGD", "a", 3, 3, 0, 2), ("SGD", "b", 2, 3, 0, 2), ("SGD", "constant", 3, 3, 0, 2)],
        columns=[
            "collection",
            "run",
            "correct_satisfied",
            "satisfied",
            "correct_dissatisfied",
            "dissatisfied",
        ],
    )
    assert words.of_constant(counted).endswith(": SGD: a.")
    assert words.of_constant(counted.iloc[1:]).endswith(": none.")
    runs = {
        ("SGD", "hawkes, up-sampling x10"),
        ("SGD", "hawkes, w/o up-sampling"),
        ("MultiWOZ", "few-shot"),
    }
    assert words.of_chance(runs) == (
        "At chance level on Main: MultiWOZ: few-shot; SGD: hawkes x10, hawkes without up-sampling."
    )
    assert words.of_chance(set()) == "At chance level on Main: none."
    lines = {
        "constant": (0.9, 0.1),
        "a, up-sampling x10": (0.8, 0.2),
        "b, w/o up-sampling": (0.6, 0.4),
    }
    rows = [
        ("SGD", run, "Acc", at, value)
        for run, ends in lines.items()
        for at, value in zip((0.1, 1), ends, strict=True)
    ]
    curves = pd.DataFrame(rows, columns=["collection", "run", "measure", "ratio", "value"])
    title = "As all users become dissatisfied, mean accuracy\n"
    assert words.title_of_curves(curves, "Acc", "accuracy") == (
        f"{title}of fine-tuned estimators falls from 0.70 to 0.30"
    )
    cut = curves.assign(
        run=curves["run"].replace({"constant": "b (usual)", "a, up-sampling x10": "b (chosen)"})
    )
    assert words.title_of_curves(cut, "Acc", "accuracy") == (
        f"{title}at the usual threshold falls from 0.90 to 0.10,\n"
        "at the chosen threshold falls from 0.80 to 0.20"
    )
    risen = curves.assign(value=1 - curves["value"])
    assert "rises from 0.30 to 0.70" in words.title_of_curves(risen, "Acc", "accuracy")
    level = curves.assign(value=0.5)
    assert "goes from 0.50 to 0.50" in words.title_of_curves(level, "Acc", "accuracy")


def test_few_shot_estimators_whose_labels_may_be_chance_are_left_out() -> None:
    """Youden's J of 12 dialogues: 1, 0 with one label, and 1/12 with one but for one sample."""
    wrong = np.tile([True, False], 12)
    same = np.ones(24, dtype=bool)
    nearly = np.arange(24) != 1
    said = {
        "few-shot right": wrong,
        "few-shot same": same,
        "few-shot nearly": nearly,
        "encoder": same,
    }
    rows = [
        ("SGD", run, world, f"{place // 2}:{place % 2}", wrong[place], labels[place])
        for run, labels in said.items()
        for world in ("Main", "swapped")
        for place in range(24)
    ]
    tested = pd.DataFrame(
        rows, columns=["collection", "run", "world", "sample", "dissatisfied", "predicted"]
    )
    found = labels_by_chance(tested, np.random.default_rng(0), 500)
    assert found == {("SGD", "few-shot same"), ("SGD", "few-shot nearly")}
    assert (
        labels_by_chance(tested[tested["run"] == "encoder"], np.random.default_rng(0), 5) == set()
    )
    said_so = words.of_labels_by_chance(tested, found)
    assert said_so.endswith(
        "few-shot nearly on SGD (95.8% of Main); few-shot same on SGD (100.0% of Main)."
    )


# --- labels that say nothing ----------------------------------------------------------------------


def labelled(agree: bool) -> dict[str, pd.DataFrame]:
    """Forty dialogues with an own and a written response each; readers agree with people or not.

    Of the written ones all turn to dissatisfied, and every third to satisfied.
    """
    rows = []
    for place in range(40):
        was_dissatisfied = place % 2 == 0
        own = not was_dissatisfied if agree else place % 4 < 2
        rows.append((f"{place}:4", False, was_dissatisfied, own))
        is_asked_for = not was_dissatisfied  # dissatisfied is what the response is to leave
        turns = is_asked_for or place % 3 == 0
        rows.append((f"{place}:4", True, is_asked_for, turns != is_asked_for))
    table = pd.DataFrame(rows, columns=["sample", "written", "dissatisfied", "satisfied"])
    return {"SGD": table}


def test_written_responses_are_judged_by_labels_that_agree_with_people_alone() -> None:
    rng = np.random.default_rng(1)
    found = claims.written_more(labelled(agree=True), "two people", rng, 300)
    assert found.estimate == pytest.approx(1 - 7 / 20)
    assert found.n == 40
    found = claims.written_more(labelled(agree=False), "two people", rng, 300)
    assert found.estimate is None
    assert "kappa of 0.00 on SGD (at least 0.6 is wanted" in found.reason
    assert "call 100.0% dissatisfied of what was to be so and 65.0% of what was" in found.reason
    found = claims.written_more({}, "nobody", rng, 300)
    assert found.reason == "nothing that was written has been labelled"


def test_written_responses_of_one_dialogue_are_drawn_together() -> None:
    alone = labelled(agree=True)
    table = alone["SGD"]
    copies = [table.assign(sample=table["sample"] + str(copy)) for copy in range(4)]
    fourfold = {"SGD": pd.concat(copies)}
    ends = [
        claims.written_more(settled, "two people", np.random.default_rng(1), 500)
        for settled in (alone, fourfold)
    ]
    assert [ends[0].low, ends[0].high] == [ends[1].low, ends[1].high]


# --- chance ---------------------------------------------------------------------------------------


def exchanged_estimators() -> Rates:
    """The counts behind Table 3.6 under other estimators' names: fine-tuned for few-shot ones."""
    names = BEHIND[["model", "setup"]].drop_duplicates().apply(tuple, axis=1).tolist()
    dealt = dict(zip(names, names[3:] + names[:3], strict=True))
    rows = BEHIND.to_dict("records")
    for row in rows:
        row["model"], row["setup"] = dealt[row["model"], row["setup"]]
    return drawn_samples(pd.DataFrame(rows), np.random.default_rng(1), 400)


def exchanged_zephyr() -> Evidence:
    index, scores = ZEPHYR
    names = {"Zephyr": "MistralIF", "MistralIF": "Zephyr"}
    return claims.zephyr_first(index.replace({"model": names}), scores)


NULLS: dict[str, Callable[[], Evidence]] = {
    "thesis/3.6-ahead-on-main": lambda: claims.ahead_on_main(exchanged_estimators()),
    "thesis/3.5-tenth": lambda: claims.at_a_tenth(exchanged_estimators()),
    "thesis/3.6-best-ahead-on-main": lambda: claims.best_ahead_on_main(exchanged_estimators()),
    "thesis/3.6-ahead-elsewhere": lambda: claims.ahead_elsewhere(exchanged_estimators()),
    "thesis/3.7-zephyr": exchanged_zephyr,
}
"""For each claim on an extreme: its evidence under names that are exchanged."""


@pytest.mark.parametrize("claim", NULLS)
def test_chance_alone_is_not_enough(claim: str) -> None:
    paper, _, name = claim.partition("/")
    row = stated(paper).loc[name]
    assert row["null"]
    evidence = NULLS[claim]()
    assert verdict(evidence, row["contradicted_if"]) != "holds"
    if name != "3.5-tenth":
        assert number(evidence) < 0  # by far: these claims are on the least of several leads
