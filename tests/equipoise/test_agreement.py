"""Two annotators: coefficients by worked cases and plain loops, matching, effects on scores."""

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

from commands import called
from equipoise.attributes import AttributeSet
from equipoise.measures.agreement import (
    annotator_agreement,
    cohen_kappa,
    krippendorff_alpha,
    many_annotators_agreement,
    unmatched_nuggets,
)
from equipoise.measures.annotator_pairs import AnnotatorPair
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise.problems import Note

SETS = {
    "SIZE": AttributeSet("SIZE", "ordinal", ("small", "middle", "large"), np.ones(3)),
    "KIND": AttributeSet("KIND", "nominal", ("x", "y"), np.ones(2)),
}
WORKED = pd.read_csv(Path(__file__).parents[1] / "references" / "krippendorff_2011.csv")


# --- coefficients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [*WORKED.itertuples()], ids=lambda row: row.section)
def test_alpha_is_that_of_the_worked_examples(row: Any) -> None:
    labels = [
        [np.nan if one == "." else float(one) for one in line.split()]
        for line in row.labels.split("/")
    ]
    assert round(krippendorff_alpha(labels, row.kind), 3) == row.alpha
    names = np.unique(np.array(labels)[~np.isnan(labels)])
    vectors = np.where(
        np.isnan(np.array(labels))[..., None], np.nan, np.array(labels)[..., None] == names
    )
    assert round(krippendorff_alpha(vectors, row.kind), 3) == row.alpha


def plain_alpha(labels: np.ndarray[Any, Any], distance: Any) -> float:
    """By definition, over ordered pairs; labels (annotators, units, categories), NaN for none."""
    units = [[one for one in unit if not np.isnan(one).any()] for unit in labels.transpose(1, 0, 2)]
    units = [unit for unit in units if len(unit) > 1]
    every = [one for unit in units for one in unit]
    n = len(every)
    observed = (
        sum(distance(a, b) / (len(u) - 1) for u in units for a, b in itertools.permutations(u, 2))
        / n
        if n
        else 0
    )
    expected = (
        sum(distance(a, b) for a, b in itertools.permutations(every, 2)) / (n * (n - 1)) if n else 0
    )
    return 1 - observed / expected if expected else np.nan


@given(st.integers(0, 10**6), st.integers(2, 3), st.sampled_from(["nominal", "ordinal"]))
def test_alpha_of_memberships_is_the_plain_loop(seed: int, annotators: int, kind: Any) -> None:
    draw = np.random.default_rng(seed)
    chosen = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0.25, 0, 0.75]])
    labels = chosen[draw.integers(0, 5, (annotators, 6))]
    labels[draw.random((annotators, 6)) < 0.15] = np.nan
    paired = labels[:, (~np.isnan(labels[..., 0])).sum(axis=0) > 1]
    shares = np.nansum(paired, axis=(0, 1))
    places = [shares[:g].sum() + shares[g] / 2 for g in range(3)]

    def earth_mover(a: Any, b: Any) -> float:
        return float(
            sum(
                abs(sum(a[: g + 1]) - sum(b[: g + 1])) * (places[g + 1] - places[g])
                for g in range(2)
            )
            ** 2
        )

    def half(a: Any, b: Any) -> float:
        return float(np.abs(a - b).sum() / 2)

    expected = plain_alpha(labels, half if kind == "nominal" else earth_mover)
    assert krippendorff_alpha(labels, kind) == pytest.approx(expected, nan_ok=True)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from(["nominal", "ordinal"]))
def test_alpha_is_that_of_the_package(seed: int, annotators: int, kind: Any) -> None:
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, (annotators, 8)).astype(float)
    labels[draw.random(labels.shape) < 0.3] = np.nan
    paired = labels[:, (~np.isnan(labels)).sum(axis=0) > 1]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(krippendorff_alpha(labels, kind))
    else:
        expected = krippendorff.alpha(labels, level_of_measurement=kind)
        assert krippendorff_alpha(labels, kind) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12))
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    if len({*first, *second}) == 1:
        assert np.isnan(cohen_kappa(first, second))
    else:
        assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))


def test_what_has_no_agreement_is_refused_or_undefined() -> None:
    assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]]))
    assert np.isnan(krippendorff_alpha([[1, np.nan], [np.nan, 1]]))
    # Labels that nearly agree everywhere have little expected disagreement, and an alpha.
    near = [[1.0, 0.0], [0.9, 0.1]]
    assert krippendorff_alpha([near, near]) == pytest.approx(1)
    for labels in ([1, 2], [[1, 2]]):
        with pytest.raises(ValueError, match="labels of two annotators or more"):
            krippendorff_alpha(labels)
    for pair in (([], []), ([1], [1, 2])):
        with pytest.raises(ValueError, match="labels of the same units"):
            cohen_kappa(*pair)


# --- nuggets --------------------------------------------------------------------------------------


def drawn(seed: int, conversations: int = 3, entities: bool = False, most: int = 3) -> NuggetTable:
    """Random nuggets, two turns of twenty words a conversation."""
    draw, rows = np.random.default_rng(seed), []
    for number in range(conversations):
        for turn in (1, 2):
            cuts = (
                np.sort(draw.choice(20, size=2 * draw.integers(0, most + 1), replace=False))
                + 20 * (turn - 1)
                + 1
            )
            for start, end in cuts.reshape(-1, 2):
                level = int(draw.integers(0, 3))
                size, kind = np.eye(3)[draw.integers(3)], draw.choice(["1 0", "0 1", ".5 .5"])
                vector, entity = " ".join(map(str, size)), str(draw.choice(["", "e", "f"]))
                rows.append((f"r{number}", "t", turn, start, end, level, vector, kind, entity))
            if not len(cuts):
                rows.append((f"r{number}", "t", turn, "", "", 0, "", "", ""))
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE", "KIND", "entity"]
    frame = pd.DataFrame(rows, columns=columns)
    return nugget_table(frame if entities else frame.drop(columns="entity"), SETS)


def spans(table: NuggetTable) -> list[tuple[int, int, int, int]]:
    rows = np.flatnonzero(table.start > 0)
    return [
        (int(table.conversation[r]), int(table.start[r]), int(table.end[r]), int(r)) for r in rows
    ]


@given(st.integers(0, 10**6))
def test_matching_takes_the_largest_overlap_first(seed: int) -> None:
    first, second = drawn(seed), drawn(seed + 1)
    pairs = []
    for (c, s, e, row), (d, t, f, other) in itertools.product(spans(first), spans(second)):
        shared = min(e, f) - max(s, t) + 1
        if c == d and shared > 0:
            pairs.append((-shared / (max(e, f) - min(s, t) + 1), row, other))
    expected: set[tuple[int, int]] = set()
    for _, row, other in sorted(pairs):
        if row not in {a for a, _ in expected} and other not in {b for _, b in expected}:
            expected.add((row, other))
    rows, others = AnnotatorPair(first, second).matched()
    assert set(zip(rows.tolist(), others.tolist(), strict=True)) == expected
    left = {row for *_, row in spans(first)} - {row for row, _ in expected}
    alone = unmatched_nuggets(first, second)
    assert (alone["annotator"] == "first").sum() == sum(first.level[row] > 0 for row in left)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.booleans())
def test_scores_are_drawn_over_what_either_annotator_has(seed: int, entities: bool) -> None:
    """Against every choice, one place of difference after the other, scored by itself."""
    first, second = drawn(seed, 1, entities, 1), drawn(seed + 1, 1, entities, 1)
    found = annotator_agreement(first, second, SETS, draws=400, seed=1, level=0.9)
    scores = found[found["run"] != ""]
    for name, table in (("first", first), ("second", second)):
        expected = [*gfrc(table, SETS)["value"], *gfrc2(table, SETS)["value"]]
        assert scores[name].tolist() == pytest.approx(expected)
    every = sorted(
        [(s, e, 0, r) for _, s, e, r in spans(first)]
        + [(s, e, 1, r) for _, s, e, r in spans(second)]
    )
    groups: list[list[tuple[int, int, int, int]]] = []
    for one in every:
        if groups and one[0] <= max(end for _, end, *_ in groups[-1]):
            groups[-1].append(one)
        else:
            groups.append([one])
    possible = []
    for sides in itertools.product((0, 1), repeat=len(groups)):
        rows = []
        for side, group in zip(sides, groups, strict=True):
            for _, _, owner, row in group:
                table = (first, second)[owner]
                vectors = {name: table.memberships[name][row].tolist() for name in SETS}
                if owner == side:
                    about = {
                        "turn": table.turn[row],
                        "start": table.start[row],
                        "end": table.end[row],
                    }
                    rows.append(
                        about | {"level": table.level[row], "entity": table.names[row]} | vectors
                    )
        nothing = {"turn": 2, "start": None, "end": None, "level": 0, "entity": ""} | dict.fromkeys(
            SETS
        )
        rows += [] if rows else [nothing]
        frame = pd.DataFrame(rows).assign(run="r0", topic="t")
        made = nugget_table(frame if entities else frame.drop(columns="entity"), SETS)
        possible.append([*gfrc(made, SETS)["value"], *gfrc2(made, SETS)["value"]])
    low, high = np.min(possible, axis=0), np.max(possible, axis=0)
    assert (scores["low"] >= low - 1e-12).all()
    assert (scores["high"] <= high + 1e-12).all()
    mean, spread = np.mean(possible, axis=0), np.std(possible, axis=0)
    assert (np.abs(scores["value"] - mean) <= 5 * spread / 20 + 1e-12).all()


def test_an_annotator_agrees_with_itself_and_the_scores_have_no_width() -> None:
    table = drawn(7, 30)
    found = annotator_agreement(table, table, SETS, draws=50)
    scores, agreed = (
        found[found["run"] != ""],
        found[found["run"] == ""].set_index(["attribute", "measure"])["value"],
    )
    tables = pd.concat([gfrc(table, SETS), gfrc2(table, SETS)])
    expected = [value for _, part in tables.groupby("run") for value in part["value"]]
    for column in ("low", "high", "first", "second", "value"):
        assert scores[column].tolist() == pytest.approx(expected)
    for name in ("level", "SIZE", "KIND"):
        assert agreed[name, "alpha"] == agreed[name, "kappa"] == 1
    assert agreed["", "only first"] == agreed["", "only second"] == 0
    assert agreed["", "Dice"] == 1


def test_coefficients_are_of_the_matched_nuggets() -> None:
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE", "KIND"]
    one = [
        (1, 2, 3, 2, "1 0 0", "1 0"),
        (1, 6, 8, 1, "0 1 0", "1 0"),
        (2, 20, 21, 1, "0 0 1", "0 1"),
    ]
    two = [
        (1, 3, 3, 2, "0 1 0", "1 0"),
        (1, 7, 9, 2, "0 1 0", "0 1"),
        (1, 12, 12, 1, "1 0 0", "1 0"),
    ]
    first, second = (
        nugget_table(pd.DataFrame([("r", "t", *row) for row in rows], columns=columns), SETS)
        for rows in (one, two)
    )
    found = annotator_agreement(first, second, SETS, draws=99).fillna({"attribute": ""})
    agreed = found[found["run"] == ""].set_index(["attribute", "measure"])
    assert agreed.loc[("", ["matched", "only first", "only second"]), "value"].tolist() == [2, 1, 1]
    assert agreed.loc[("", "Dice"), "value"] == pytest.approx(2 * 2 / 6)
    assert agreed.loc[("level", "kappa"), "value"] == cohen_kappa([2, 1], [2, 2])
    assert agreed.loc[("level", "alpha"), "value"] == krippendorff_alpha(
        [[2, 1], [2, 2]], "ordinal"
    )
    whole = krippendorff_alpha([[2, 1, 1, 0], [2, 2, 0, 1]], "ordinal")
    assert agreed.loc[("level", "alpha, unmatched as level 0"), "value"] == whole
    assert agreed.loc[("SIZE", "alpha"), "value"] == krippendorff_alpha([[0, 1], [1, 1]], "ordinal")
    assert agreed.loc[("KIND", "kappa"), "value"] == cohen_kappa(["x", "x"], ["x", "y"])
    assert agreed.loc[("SIZE", "alpha"), "units"] == 2
    alone = unmatched_nuggets(first, second)
    assert alone[["annotator", "turn", "start"]].to_numpy().tolist() == [
        ["first", 2, 20],
        ["second", 1, 12],
    ]
    assert agreed.loc[("level", "alpha"), "low"] <= agreed.loc[("level", "alpha"), "high"]


def test_one_unit_has_no_interval() -> None:
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE", "KIND"]
    rows = [("r", "t", 1, 2, 3, 2, "1 0 0", "1 0")]
    table = nugget_table(pd.DataFrame(rows, columns=columns), SETS)
    other = nugget_table(pd.DataFrame(rows, columns=columns).assign(level=1), SETS)
    found = annotator_agreement(table, other, SETS, draws=20)
    of_levels = found[(found["attribute"] == "level") & (found["units"] == 1)]
    assert len(of_levels) == 3
    assert of_levels["value"].notna().all()
    assert of_levels[["low", "high"]].isna().all(axis=None)


@given(st.integers(0, 10**6), st.integers(2, 4))
@settings(max_examples=25)
def test_many_annotators_by_plain_loops(seed: int, annotators: int) -> None:
    tables = {f"a{number}": drawn(seed + number) for number in range(annotators)}
    found = many_annotators_agreement(tables, SETS, draws=5)
    agreed = found[found["run"] == ""].set_index(["attribute", "measure"])["value"]

    # A word is a unit: inside a relevant nugget or not, to the last that anybody has marked.
    labels: list[list[float]] = []
    for conversation in range(3):
        marked = []
        for table in tables.values():
            words: set[int] = set()
            for of, start, end, row in spans(table):
                if of == conversation and table.level[row] > 0:
                    words |= {*range(start, end + 1)}
            marked.append(words)
        last = max((max(words, default=0) for words in marked), default=0)
        for word in range(1, last + 1):
            labels.append([float(word in words) for words in marked])
    expected = krippendorff_alpha(np.array(labels).T) if labels else np.nan
    assert agreed["", "alpha, unitised"] == pytest.approx(expected, nan_ok=True)

    if annotators == 2:
        first, second = tables.values()
        two = annotator_agreement(first, second, SETS, draws=5)
        expected_rows = two[two["run"] == ""].set_index(["attribute", "measure"])["value"]
        for key in (("level", "alpha"), ("SIZE", "alpha"), ("KIND", "alpha")):
            assert agreed[key] == pytest.approx(expected_rows[key], nan_ok=True)
    scores = found[found["run"] != ""]
    of_each = [pd.concat([gfrc(table, SETS), gfrc2(table, SETS)]) for table in tables.values()]
    keys = ["run", "topic", "attribute", "measure"]
    ends = pd.concat(of_each).groupby(keys)["value"].agg(["mean", "min", "max"])
    compared = scores.set_index(keys)[["value", "low", "high"]].loc[ends.index]
    assert compared.to_numpy() == pytest.approx(ends.to_numpy())


def test_draws_of_very_many_nuggets_are_refused_before_the_work() -> None:
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE", "KIND"]
    start = np.arange(1, 4001)
    frame = pd.DataFrame({"run": "r", "topic": "t", "turn": 1, "start": start, "end": start})
    frame = frame.assign(level=1, SIZE="1 0 0", KIND="1 0")[columns]
    table = nugget_table(frame, SETS)
    with pytest.raises(ValueError, match=r"draws is 100,000, of 8,000 nuggets.* 12,500 or"):
        annotator_agreement(table, table, SETS, draws=100_000)


def test_conversations_of_one_annotator_are_left_out_and_said() -> None:
    table, fewer = drawn(3, 3), drawn(3, 2)
    with pytest.warns(Note, match="1 conversations of the first only are left out: r2 t"):
        found = annotator_agreement(table, fewer, SETS, draws=9)
    assert set(found["run"]) == {"", "r0", "r1"}
    row = {
        "run": ["x"],
        "topic": "y",
        "turn": 1,
        "start": "",
        "end": "",
        "level": 0,
        "SIZE": "",
        "KIND": "",
    }
    other = nugget_table(pd.DataFrame(row), SETS)
    with pytest.raises(
        ValueError,
        match="no conversation that both have; the first has r0 t, r1 t, r2 t, the second x y",
    ):
        annotator_agreement(table, other, SETS, draws=9)


def test_another_text_is_refused() -> None:
    columns = ["run", "topic", "turn", "start", "end", "level", "SIZE", "KIND"]
    first, second = (
        nugget_table(
            pd.DataFrame([("r", "t", turn, 5, 6, 1, "1 0 0", "1 0")], columns=columns), SETS
        )
        for turn in (1, 2)
    )
    with pytest.raises(
        ValueError,
        match=r"in another turn for the second annotator, who read another text: .*'turn': 1",
    ):
        annotator_agreement(first, second, SETS)


def test_the_command_writes_agreement_and_unmatched_nuggets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sets.yaml").write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    head = "run,topic,turn,start,end,level,SIZE\n"
    Path("a.csv").write_text(head + "r,t,1,2,3,2,1 0\nr,t,1,6,8,3,0 1\n")
    Path("b.csv").write_text(head + "r,t,1,2,3,2,0 1\nr,t,1,10,10,1,0 1\n")
    words = ["agreement", "a.csv", "b.csv", "--attributes", "sets.yaml"]
    refused = called(*words)
    assert refused.exit_code == 2
    assert "no gain for level 3" in refused.stderr
    words += ["--gains", "exponential", "--max-level", "3", "--draws", "99"]
    result = called(*words, "--unmatched", "u.csv")
    assert result.exit_code == 0, result.output
    assert (
        result.stdout.splitlines()[0]
        == "run,topic,attribute,measure,value,low,high,first,second,units"
    )
    assert ",,,matched,1,,,,,3" in result.stdout
    assert "\nr,t,,GFRC2," in result.stdout
    unmatched = (
        "annotator,run,topic,turn,start,end,level,entity\n"
        "first,r,t,1,6,8,3,\nsecond,r,t,1,10,10,1,\n"
    )
    assert Path("u.csv").read_text() == unmatched
    assert called(*words).stdout == result.stdout
    assert "which is read" in called(*words, "--unmatched", "a.csv", "--force").stderr
