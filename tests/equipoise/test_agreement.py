"""Agreement: coefficients by worked examples and other programs, matching by a plain loop."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from equipoise.agreement import agreement, alpha, found_nuggets, kappa
from equipoise.attributes import AttributeSet
from equipoise.errors import Note
from equipoise.measures.gfrc import gfrc
from equipoise.nuggets import NuggetTable, nugget_table

SETS = {"SIZE": AttributeSet("SIZE", "ordinal", ("small", "middle", "large"), np.ones(3))}
WORKED = pd.read_csv(Path(__file__).parents[1] / "references" / "krippendorff_2011.csv")


@pytest.mark.parametrize("row", [*WORKED.itertuples()], ids=lambda row: row.section)
def test_alpha_of_the_worked_examples(row: Any) -> None:
    """As labels, and as memberships of one category each."""
    cells = [line.split() for line in row.labels.split("/")]
    labels = np.array([[np.nan if cell == "." else float(cell) for cell in line] for line in cells])
    assert round(alpha(labels, row.kind), 3) == row.alpha
    categories = np.unique(labels[~np.isnan(labels)])
    chosen = np.where(np.isnan(labels)[..., None], np.nan, labels[..., None] == categories)
    assert round(alpha(chosen, row.kind), 3) == row.alpha


def plain_alpha(labels: Any, distance: Any) -> float:
    """By definition, over ordered pairs of labels of a unit, and of all labels."""
    units = []
    for unit in labels.transpose(1, 0, 2):
        present = [vector for vector in unit if not np.isnan(vector).any()]
        if len(present) > 1:
            units.append(present)
    everything = [vector for unit in units for vector in unit]
    n = len(everything)
    observed = 0.0
    for unit in units:
        for a, b in itertools.permutations(unit, 2):
            observed += distance(a, b) / (len(unit) - 1) / n
    pairs = list(itertools.permutations(everything, 2))
    expected = sum(distance(a, b) for a, b in pairs) / len(pairs) if pairs else 0
    return 1 - observed / expected if expected else np.nan


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(deadline=None)
def test_alpha_of_memberships_is_the_plain_loop(seed: int, annotators: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0.25, 0, 0.75]])
    labels = vectors[rng.integers(0, 5, (annotators, 6))]
    labels[rng.random((annotators, 6)) < 0.15] = np.nan
    expected = plain_alpha(labels, lambda a, b: np.abs(a - b).sum() / 2)
    np.testing.assert_allclose(alpha(labels, "nominal"), expected, atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2))
@settings(deadline=None)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    labels = np.array(pairs, dtype=float).T
    if len(np.unique(labels)) > 1:
        assert kappa(labels) == pytest.approx(cohen_kappa_score(*labels), abs=1e-12)


def table(rows: list[tuple[Any, ...]]) -> NuggetTable:
    """From (topic, start, end, level, group)."""
    records = []
    for topic, start, end, level, group in rows:
        shares = " ".join(str(int(name == group)) for name in SETS["SIZE"].groups)
        records.append(("a", topic, 1, start, end, level, shares))
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE"]
    return nugget_table(pd.DataFrame(records, columns=columns).astype(str), SETS)


FIRST = table([("T", 1, 3, 2, "small"), ("T", 5, 6, 1, "large"), ("T", 9, 9, 2, "middle")])
SECOND = table([("T", 2, 3, 2, "small"), ("T", 6, 8, 2, "middle"), ("T", 12, 12, 1, "large")])


def test_nuggets_that_share_most_words_match_first() -> None:
    first = table([("T", 1, 4, 1, "small"), ("T", 5, 8, 1, "small")])
    second = table([("T", 4, 8, 1, "small")])
    units = found_nuggets({"x": first, "y": second})
    assert units.groupby("unit")["annotator"].agg("".join).tolist() == ["x", "xy"]
    assert units.groupby("unit")["start"].agg(list).tolist() == [[1], [5, 4]]


def test_counts_coefficients_and_ranges_of_scores() -> None:
    result = agreement({"x": FIRST, "y": SECOND}, SETS)
    by_name = result[result["run"] == ""].set_index(["attribute", "measure"])
    assert by_name.loc[("", "units found by one"), "value"] == 2
    assert by_name.loc[("", "units found by several"), "value"] == 2
    assert by_name.loc[("", "Dice"), "value"] == pytest.approx(4 / 6)
    matched = np.array([[2.0, 1.0], [2.0, 2.0]])
    assert by_name.loc[("level", "alpha"), "value"] == pytest.approx(alpha(matched, "ordinal"))
    with_zero = np.array([[2.0, 1.0, 2.0, 0.0], [2.0, 2.0, 0.0, 1.0]])
    row = by_name.loc[("level", "alpha, unmatched as level 0")]
    assert row["value"] == pytest.approx(alpha(with_zero, "ordinal"))
    assert row["low"] <= row["value"] <= row["high"]
    scores = result[(result["run"] == "a") & (result["measure"] == "GFRC")].iloc[0]
    values = []
    for table_ in (FIRST, SECOND):
        by_measure = gfrc(table_, SETS).set_index("measure")["value"]
        values.append(by_measure["GFRC"])
    assert [scores["low"], scores["high"]] == sorted(values)
    assert scores["value"] == pytest.approx(np.mean(values))


def test_an_interval_is_that_of_resampled_units() -> None:
    """Two annotators of 200 nuggets, which match one by one."""
    rng = np.random.default_rng(3)
    levels = rng.integers(1, 3, (2, 200))
    levels[1, :120] = levels[0, :120]
    annotators = {
        name: table([(f"T{n}", 1, 2, level, "small") for n, level in enumerate(row)])
        for name, row in zip("xy", levels, strict=True)
    }
    result = agreement(annotators, SETS).query("attribute == 'level'").set_index("measure")
    for name, coefficient in {"alpha": lambda x: alpha(x, "ordinal"), "kappa": kappa}.items():
        samples = [coefficient(levels[:, rng.integers(0, 200, 200)] + 0.0) for _ in range(999)]
        interval = result.loc[name, ["low", "high"]].astype(float)
        np.testing.assert_allclose(interval, np.quantile(samples, [0.025, 0.975]), atol=0.03)


def test_three_annotators_have_alpha_and_no_kappa() -> None:
    result = agreement({"x": FIRST, "y": SECOND, "z": FIRST}, SETS)
    assert set(result["measure"]) & {"kappa", "Dice"} == set()
    assert result.loc[result["run"] == "a", "units"].unique().tolist() == [3]


# For each conversation the levels that annotators a, b and c gave its nugget; None did not read it.
LABELS = st.lists(
    st.lists(st.sampled_from([None, 1, 2]), min_size=3, max_size=3), min_size=3, max_size=8
).filter(lambda rows: all(any(row[place] for row in rows) for place in range(3)))


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
@settings(max_examples=8, deadline=None)
@given(LABELS)
def test_an_annotator_who_did_not_read_a_conversation_has_no_label(labels: list[Any]) -> None:
    tables = {
        name: table(
            [(f"T{n}", 1, 3, row[k], "small") for n, row in enumerate(labels) if row[k] is not None]
        )
        for k, name in enumerate("abc")
    }
    shared = [row for row in labels if sum(label is not None for label in row) >= 2]
    if not shared:
        with pytest.raises(ValueError, match="two annotators must have a conversation"):
            agreement(tables, SETS)
        return
    result = agreement(tables, SETS)
    reliability = np.array([[label or np.nan for label in row] for row in shared]).T
    row = result.set_index(["attribute", "measure"]).loc[("level", "alpha")]
    assert row["units"] == len(shared)
    if len(np.unique(reliability[~np.isnan(reliability)])) > 1:
        expected = krippendorff.alpha(reliability_data=reliability, level_of_measurement="ordinal")
        assert row["value"] == pytest.approx(expected)
    # Where all found the nugget of what they read, nothing is unmatched.
    again = result.set_index(["attribute", "measure"]).loc[("level", "alpha, unmatched as level 0")]
    assert (again["value"], again["units"]) == pytest.approx(
        (row["value"], len(shared)), nan_ok=True
    )
    topics = {f"T{n}" for n, each in enumerate(labels) if each in shared}
    assert set(result.loc[result["run"] == "a", "topic"]) == topics


def test_levels_above_2_need_gains_for_scores_only() -> None:
    high = table([("T", 1, 3, 3, "small"), ("T", 5, 6, 1, "large")])
    with pytest.warns(Note, match=r"levels above 2 have no gain.*--gains 1:0\.5,2:1,3:1"):
        result = agreement({"x": high, "y": SECOND}, SETS)
    assert set(result["run"]) == {""}
    result = agreement({"x": high, "y": SECOND}, SETS, gains="1:0.25,2:0.5,3:1")
    scores = result[(result["run"] == "a") & (result["measure"] == "GFRC")].iloc[0]
    low = gfrc(high, SETS, gains={1: 0.25, 2: 0.5, 3: 1}).set_index("measure")["value"]["GFRC"]
    assert low in {scores["low"], scores["high"]}


def test_annotators_of_different_conversations_are_rejected() -> None:
    other = table([("U", 1, 3, 2, "small")])
    with pytest.raises(ValueError, match="must have a conversation"):
        agreement({"x": FIRST, "y": other}, SETS)
    with pytest.raises(ValueError, match="two annotators or more, got x"):
        agreement({"x": FIRST}, SETS)
