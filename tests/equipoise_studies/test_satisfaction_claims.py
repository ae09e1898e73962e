"""Rates, doubt about labels and kinds of estimators, on which claims of chapter 3 rest."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction import claims
from equipoise_studies.satisfaction.claims import Ends, Rates, certain, published_rates


def of_one(right: dict[tuple[str, str], tuple[int, int]], wrong: float) -> Rates:
    """Rates of one estimator, of the correct samples and all of each world and label, no draws."""
    rates = {("SGD", "a", *key): [found / n] for key, (found, n) in right.items()}
    table = pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])
    sizes = {("SGD", *key): n for key, (_, n) in right.items()}
    return Rates(table, sizes, "swapped", {"SGD": wrong})


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
    whole = [(1 + count) / (3 + there - wrong) for count in left]
    ends = [part.iloc[0, 0] for part in rates.found()]
    assert ends == pytest.approx([(1 + found) / (3 + there), min(whole), max(whole)])
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


def test_differences_add_up_the_doubt() -> None:
    one, other = (
        Ends(*(pd.DataFrame([part]) for part in parts))
        for parts in ((4.0, 3.0, 6.0), (2.0, 1.0, 3.0))
    )
    assert [part.iloc[0, 0] for part in one.minus(other)] == [2, 0, 5]


def test_interval_extends_from_the_lowest_to_the_highest_end() -> None:
    draws = pd.DataFrame([5.0, *np.arange(41.0)])
    found = Ends(draws, draws - 10, draws + 10).evidence("a number", 3, 7.0)
    assert (found.estimate, found.low, found.high, found.n) == (5, -9, 49, 3)
    assert found.printed == 7
    assert certain(draws).interval() == (5, 1, 39)
    assert certain(draws / 100).percent() == "5% [1, 39]"


def test_nothing_to_compare_is_a_reason_and_no_number() -> None:
    runs = pd.MultiIndex.from_tuples([("SGD", "hawkes"), ("SGD", "constant")])
    number = certain(pd.DataFrame(np.ones((41, 2)), columns=runs))
    evidence = number.lead("SGD").evidence("a lead", published=0.5)
    assert evidence.estimate is None
    assert evidence.reason == claims.NOTHING_TO_COMPARE
    assert evidence.printed == 0.5


def test_kinds_of_estimators_are_selected_and_chance_is_left_out() -> None:
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
    in_words = {("SGD", "hawkes, up-sampling x10"), ("SGD", "hawkes, w/o up-sampling")}
    assert claims.by_collection(in_words) == "SGD: hawkes x10, hawkes without up-sampling"


def test_doubt_is_the_mean_over_the_labels_shown() -> None:
    shares = pd.DataFrame(
        [("SGD", "dissatisfied", 0.4), ("SGD", "satisfied", 0.1), ("SGD", "all", 0.3)],
        columns=["collection", "shown", "at_most"],
    )
    other = pd.DataFrame({"collection": "SGD", "dissatisfied": [True, True, False]})
    assert claims.wrong_labels(shares, other) == {"SGD": pytest.approx((2 * 0.4 + 0.1) / 3)}
    assert claims.wrong_labels(shares.iloc[:0], other) == {}


def test_rates_underlying_table_3_6_give_its_scores() -> None:
    folder = project.root() / "reports" / "thesis_ch3_satisfaction" / "tables"
    underlying = pd.read_csv(folder / "counts_behind_table_3.6.csv")
    thesis = published_rates(underlying, np.random.default_rng(1), 50)
    published = printed_table("thesis/table-3.6").set_index(["test data", "model", "setup"])
    for world in ("Main", "CF"):
        for score in ("Acc", "P", "R", "F1"):
            for (name, run), value in thesis.scores(world, score).iloc[0].items():
                model, _, setup = run.partition(", ")
                cell = float(published.loc[(world, model, setup), f"{name} {score}"])
                assert 100 * value == pytest.approx(cell, abs=0.0101)  # rounded, or cut off
        assert thesis.accuracy(world).iloc[0].to_dict() == pytest.approx(
            thesis.scores(world, "Acc").iloc[0].to_dict()
        )


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
    found = claims.labels_at_chance(tested, np.random.default_rng(0), 500)
    assert found == {("SGD", "few-shot same"), ("SGD", "few-shot nearly")}
    assert (
        claims.labels_at_chance(tested[tested["run"] == "encoder"], np.random.default_rng(0), 5)
        == set()
    )
