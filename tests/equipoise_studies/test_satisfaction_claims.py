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


def test_setups_are_averaged_and_differences_add_up_the_doubt() -> None:
    """Each few-shot estimator minus each fine-tuned one of its collection."""
    runs = [
        ("SGD", "BERT, w/o up-sampling"),
        ("SGD", "BERT, up-sampling x10"),
        ("SGD", "ASAP, w/o up-sampling"),
        ("SGD", "Zephyr, Few-shot"),
        ("MultiWOZ", "few-shot"),
    ]
    value, low, high = (
        pd.DataFrame([numbers], columns=pd.MultiIndex.from_tuples(runs))
        for numbers in ([2.0, 4, 1, 9, 7], [1.0, 3, 0, 8, 6], [4.0, 6, 2, 9, 8])
    )
    leads = Ends(value, low, high).leads()
    assert leads.value.iloc[0].to_dict() == {
        ("SGD", "Zephyr and BERT"): 6,
        ("SGD", "Zephyr and ASAP"): 8,
    }
    assert leads.low.iloc[0].tolist() == [8 - 5, 8 - 2]
    assert leads.high.iloc[0].tolist() == [9 - 2, 9 - 0]
    assert claims.by_kind(value).iloc[0].to_dict() == {"fine-tuned": 2, "few-shot": 8}
    few_shot = claims.of_kind(value, "few-shot").iloc[0]
    assert few_shot.to_dict() == {
        ("SGD", "few-shot", "Zephyr"): 9,
        ("MultiWOZ", "few-shot", "few-shot"): 7,
    }


def test_a_part_has_the_interval_of_its_draws_widened_by_the_doubt() -> None:
    draws = pd.DataFrame({("SGD", "fine-tuned", "BERT"): [5.0, *np.arange(41.0)]})
    evidence = Ends(draws, draws - 10, draws + 10).evidence({"SGD": 3})
    assert list(evidence) == ["SGD, BERT"]
    part = evidence["SGD, BERT"]
    assert (part.estimate, part.low, part.high, part.n) == (5, -9, 49, 3)
    assert certain(draws).interval().iloc[0].tolist() == [5, 1, 39]


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


def test_accuracy_at_a_share_weights_the_recall_of_both_labels() -> None:
    columns = [("SGD", "a", "own", "satisfied"), ("SGD", "a", "own", "dissatisfied")]
    names = ["collection", "run", "world", "label"]
    rates = pd.DataFrame(
        [[0.9, 0.2], [0.8, 0.4]], columns=pd.MultiIndex.from_tuples(columns, names=names)
    )
    accuracy = {share: claims.accuracy_at(rates, "own", share) for share in (0, 0.25, 1)}
    assert accuracy[0]["SGD", "a"].tolist() == [0.9, 0.8]
    assert accuracy[0.25]["SGD", "a"].tolist() == pytest.approx([0.725, 0.7])
    assert accuracy[1]["SGD", "a"].tolist() == [0.2, 0.4]


def test_each_person_is_compared_with_the_others_and_ties_are_low() -> None:
    rated = pd.DataFrame({"collection": "SGD", "sample": ["1", "2"], "ratings": [(1, 3, 2), (4,)]})
    compared = claims.one_and_others(rated)  # nobody else rated the second sample
    assert compared["sample"].tolist() == ["1", "1", "1"]
    assert compared["predicted"].tolist() == [True, False, True]
    assert compared["dissatisfied"].tolist() == [True, True, True]  # (3, 2), (1, 2), (1, 3)
