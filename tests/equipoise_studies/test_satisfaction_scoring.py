"""Scores, robustness, agreement and shared contexts of satisfaction estimators (chapter 3)."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    jaccard_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction.claims import areas, certain, jaccard_indices, label_rates
from equipoise_studies.satisfaction.scoring import (
    COUNTS,
    SCORES,
    binary_scores,
    count_correct,
    jaccard_bounds,
    recovered_counts,
    robustness_curve,
    robustness_table,
    with_scores,
)

labels = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def plain(
    satisfied_right: int, satisfied: int, dissatisfied_right: int, dissatisfied: int
) -> list[float]:
    truth = [0] * satisfied + [1] * dissatisfied
    said = [0] * satisfied_right + [1] * (satisfied - satisfied_right)
    said += [1] * dissatisfied_right + [0] * (dissatisfied - dissatisfied_right)
    options = {"labels": [0, 1], "average": "macro", "zero_division": 0}
    return [
        accuracy_score(truth, said),
        precision_score(truth, said, **options),
        recall_score(truth, said, **options),
        f1_score(truth, said, **options),
        recall_score(truth, said, pos_label=1, zero_division=0),
    ]


@given(labels)
def test_scores_are_those_of_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    truth, said = (np.array(side) for side in zip(*pairs, strict=True))
    table = pd.DataFrame({"run": "a", "dissatisfied": truth, "predicted": said})
    table = with_scores(count_correct(table, ["run"]))
    counts = table.loc[0, COUNTS].tolist()
    assert counts == [sum(~truth & ~said), sum(~truth), sum(truth & said), sum(truth)]
    assert binary_scores(*counts) == pytest.approx(plain(*counts))
    assert table[list(SCORES)].to_numpy()[0] / 100 == pytest.approx(plain(*counts))


def test_scores_refuse_more_correct_than_there_are() -> None:
    with pytest.raises(ValueError, match="from 0 to the number of samples"):
        binary_scores(3, 2, 0, 1)


# --- robustness


def drawn_one_by_one(
    correct: list[int], size: list[int], satisfied: int, added: int
) -> list[list[float]]:
    """Scores of every way to draw the test set, sample by sample."""
    main = [True] * correct[0] + [False] * (size[0] - correct[0])
    extra = [True] * correct[2] + [False] * (size[2] - correct[2])
    return [
        plain(
            sum(main[i] for i in kept),
            satisfied,
            correct[1] + sum(extra[i] for i in more),
            size[1] + added,
        )
        for kept in combinations(range(size[0]), satisfied)
        for more in combinations(range(size[2]), added)
    ]


@pytest.mark.parametrize(
    ("ratio", "satisfied", "added"),
    [(1 / 6, 5, 0), (0.5, 5, 4), (4 / 9, 5, 3), (0.75, 2, 5), (1.0, 0, 5)],
)
def test_curve_is_the_mean_over_every_draw(ratio: float, satisfied: int, added: int) -> None:
    correct, size = [3, 1, 2], [5, 1, 5]
    curve = robustness_curve(correct, size, [ratio])[0]
    assert curve[:, 0] == pytest.approx(
        np.mean(drawn_one_by_one(correct, size, satisfied, added), axis=0)
    )


def test_interval_is_of_the_quantiles_of_the_draws() -> None:
    correct, size = [6, 1, 3], [9, 1, 8]
    draws = np.array(drawn_one_by_one(correct, size, 9, 4))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0, method="inverted_cdf")
    curve = robustness_curve(correct, size, [5 / 14])[0]
    assert curve[:, 1] == pytest.approx(low)
    assert curve[:, 2] == pytest.approx(high)


@given(st.data())
def test_ends_of_the_curve_are_main_and_all_dissatisfied(data: st.DataObject) -> None:
    size = [
        data.draw(st.integers(1, 60)),
        data.draw(st.integers(0, 20)),
        data.draw(st.integers(1, 60)),
    ]
    correct = [data.draw(st.integers(0, n)) for n in size]
    share = size[1] / (size[0] + size[1])
    curve = robustness_curve(correct, size, [share, (1 + share) / 2, 1.0])
    assert curve[0, :, 0] == pytest.approx(binary_scores(correct[0], size[0], correct[1], size[1]))
    assert curve[-1, :, 0] == pytest.approx(
        binary_scores(0, 0, correct[1] + correct[2], size[1] + size[2])
    )
    assert (curve[..., 1] <= curve[..., 0] + 1e-9).all()
    assert (curve[..., 0] <= curve[..., 2] + 1e-9).all()
    assert ((curve >= 0) & (curve <= 1 + 1e-12)).all()


def test_curve_takes_many_estimators_at_once() -> None:
    correct = np.array([[811, 0, 0], [789, 19, 14], [613, 15, 465]])
    size = [811, 40, 524]
    ratios = np.array([0.05, 0.3, 0.41, 0.7, 1.0])
    together = robustness_curve(correct, size, ratios)
    assert together.shape == (3, 5, 5, 3)
    for row, counts in enumerate(correct):
        assert together[row] == pytest.approx(robustness_curve(counts, size, ratios))


def test_constant_classifier_has_the_accuracy_of_the_share() -> None:
    ratios = np.array([0.2, 0.5, 1.0])
    curve = robustness_curve([80, 0, 0], [80, 20, 60], ratios)
    assert curve[:, SCORES.index("Acc"), 0] == pytest.approx(1 - ratios, abs=0.005)
    assert (curve[:, SCORES.index("sensitivity")] == 0).all()


@pytest.mark.parametrize(
    ("correct", "ratios", "message"),
    [
        ([8, 1, 3], [0.05], "from the share in Main"),
        ([8, 1, 3], [1.1], "to 1"),
        ([99, 1, 3], [1.0], "from 0 to the number of samples"),
        ([7.5, 1, 3], [1.0], "whole numbers"),
    ],
)
def test_curve_refuses_what_does_not_fit(
    correct: list[float], ratios: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        robustness_curve(correct, [9, 1, 9], ratios)


LABELLED = pd.DataFrame(
    [
        ("b", "Main", 7, 8, 1, 2),
        ("b", "CF", 0, 1, 3, 5),
        ("a", "CF", 1, 1, 4, 5),
        ("a", "Main", 8, 8, 0, 2),
    ],
    columns=[
        "run",
        "world",
        "correct_satisfied",
        "satisfied",
        "correct_dissatisfied",
        "dissatisfied",
    ],
)


def test_table_of_curves_is_the_curve_of_each_estimator() -> None:
    table = robustness_table(LABELLED, ["run"], step=0.25)
    assert table["run"].drop_duplicates().tolist() == ["a", "b"]
    for run, correct in {"a": [8, 0, 4], "b": [7, 1, 3]}.items():
        part = table[table["run"] == run]
        assert part["ratio"].drop_duplicates().tolist() == [0.2, 0.25, 0.5, 0.75, 1.0]
        curve = robustness_curve(correct, [8, 2, 5], [0.2, 0.25, 0.5, 0.75, 1.0])
        np.testing.assert_array_equal(
            part[["value", "low", "high"]].to_numpy().reshape(5, 5, 3), curve
        )
    with pytest.raises(ValueError, match="a row of Main and one of CF"):
        robustness_table(LABELLED.iloc[:3], ["run"])


@pytest.mark.parametrize(
    ("step", "ratios"),
    [
        (0.2, [0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.3, [0.2, 0.3, 0.6, 0.9, 1.0]),
        (0.1, [n / 10 for n in range(2, 11)]),
        (0.7, [0.2, 0.7, 1.0]),
        (1.0, [0.2, 1.0]),
    ],
)
def test_ratios_are_mains_own_the_multiples_between_and_one(
    step: float, ratios: list[float]
) -> None:
    table = robustness_table(LABELLED, ["run"], step=step)
    for _, part in table.groupby(["run", "measure"]):
        assert part["ratio"].tolist() == pytest.approx(ratios)
    assert not table.duplicated(["run", "measure", "ratio"]).any()


def test_a_share_that_is_a_multiple_but_for_rounding_stands_once() -> None:
    columns = ["world", "correct_satisfied", "satisfied", "correct_dissatisfied", "dissatisfied"]
    counts = pd.DataFrame([("Main", 6, 7, 1, 3), ("CF", 0, 1, 4, 9)], columns=columns).assign(
        run="a"
    )
    ratios = robustness_table(counts, ["run"], step=0.1)["ratio"].unique()  # 3 * 0.1 is not 0.3
    assert ratios.tolist() == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


@pytest.mark.parametrize("step", [0.0, -0.05, 1.5, np.nan])
def test_step_that_leads_nowhere_is_refused(step: float) -> None:
    with pytest.raises(ValueError, match="step must be above 0 and at most 1"):
        robustness_table(LABELLED, ["run"], step=step)


# --- other dialogues


def predicted(seed: int) -> pd.DataFrame:
    """Predictions of two estimators in two worlds, of nine dialogues of one to four samples."""
    rng = np.random.default_rng(seed)
    names = [f"{dialogue}:{line}" for dialogue in range(9) for line in range(rng.integers(1, 5))]
    rows = []
    for run in ("few-shot", "encoder"):
        for name in names:
            wrong, scores = bool(rng.random() < 0.4), rng.integers(0, 6, 2) / 5
            rows.append(("MultiWOZ", run, "Main", name, wrong, scores[0]))
            rows.append(("MultiWOZ", run, "swapped", name, not wrong, scores[1]))
    table = pd.DataFrame(
        rows, columns=["collection", "run", "world", "sample", "dissatisfied", "dissatisfaction"]
    )
    return table.assign(predicted=table["dissatisfaction"] >= 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_of_whole_dialogues_and_scored_as_by_scikit_learn(seed: int) -> None:
    table, resamples = predicted(seed), 6
    rates, ranked, indices = (
        function(table, np.random.default_rng(5), resamples)
        for function in (label_rates, areas, jaccard_indices)
    )
    names = sorted({sample.partition(":")[0] for sample in table["sample"]})
    drawn = np.random.default_rng(5).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=resamples
    )
    for row, times in enumerate([np.ones(len(names), dtype=int), *drawn]):
        often = dict(zip(names, times, strict=True))
        again = table.loc[table.index.repeat(table["sample"].str.partition(":")[0].map(often))]
        for (run, world), part in again.groupby(["run", "world"]):
            truth, said = part["dissatisfied"], part["predicted"]
            for label, name in ((True, "dissatisfied"), (False, "satisfied")):
                found = rates.loc[row, ("MultiWOZ", run, world, name)]
                assert found == pytest.approx(recall_score(truth, said, pos_label=label))
            assert ranked.loc[row, ("MultiWOZ", run, world)] == pytest.approx(
                roc_auc_score(truth, part["dissatisfaction"])
            )
        for run, part in again.groupby("run"):
            right = [
                world["dissatisfied"].eq(world["predicted"]).to_numpy()
                for _, world in part.groupby("world")
            ]
            assert indices.loc[row, ("MultiWOZ", run)] == pytest.approx(jaccard_score(*right))


def test_interval_is_of_the_draws_and_not_of_the_data() -> None:
    draws = pd.DataFrame({"a": [9.0, *np.arange(41.0)]})
    assert certain(draws).interval().loc["a"].tolist() == [9.0, 1.0, 39.0]


# --- counts underlying published scores, and what they allow of the Jaccard index


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_counts_are_among_those_recovered_from_their_scores(
    satisfied: int, dissatisfied: int, data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, satisfied)), data.draw(st.integers(0, dissatisfied))
    printed = np.round(binary_scores(right[0], satisfied, right[1], dissatisfied)[:4], 4)
    assert list(right) in recovered_counts(printed.tolist(), satisfied, dissatisfied).tolist()


def test_table_3_6_rows_without_up_sampling_are_the_constant_classifier_on_multiwoz() -> None:
    table = printed_table("thesis/table-3.6")
    sizes = printed_table("thesis/table-3.5").set_index("label").drop(index="Total").astype(int)
    rows = table[(table["model"] == "BERT") & (table["setup"] == "w/o up-sampling")].set_index(
        "test data"
    )
    for world in ("Main", "CF"):
        there = sizes[f"MultiWOZ {world}"]
        printed = [float(rows.loc[world, f"MultiWOZ {score}"]) / 100 for score in SCORES[:4]]
        solutions = recovered_counts(printed, there["Satisfaction"], there["Dissatisfaction"])
        assert solutions.tolist() == [[there["Satisfaction"], 0]]


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8),
    st.lists(st.booleans(), max_size=4),
)
def test_jaccard_lies_between_its_bounds(
    pairs: list[tuple[bool, bool]], others: list[bool]
) -> None:
    before, after = (np.array(side) for side in zip(*pairs, strict=True))
    if not (before | after).any():
        return
    index = jaccard_score(before, after)
    low, high = jaccard_bounds(
        int(before.sum()) + sum(others), len(before) + len(others), int(after.sum()), len(after)
    )
    assert low - 1e-12 <= index <= high + 1e-12
