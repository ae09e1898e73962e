"""Guards scores under other annotations: single changes against edited tables, known intervals."""

import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise_studies.pilot.annotations import KINDS, annotation_intervals, single_changes

SETS = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})


def one_nugget(level: int, start: int = 5) -> NuggetTable:
    """And, so that there is a level above 1, another conversation with a nugget of level 2."""
    rows = {
        "run": ["r", "s"],
        "topic": "t",
        "turn": 1,
        "start": start,
        "end": start,
        "level": [level, 2],
        "A": "1 0",
    }
    return nugget_table(pd.DataFrame(rows), SETS)


def edited(
    frame: pd.DataFrame, row: int, change: str, sets: dict[str, AttributeSet]
) -> pd.DataFrame:
    """The frame of one conversation with one judgement changed, as a person would change it."""
    frame = frame.copy()
    at = frame.columns.get_loc
    if found := re.fullmatch(r"L\d to L(\d)", change):
        frame.iloc[row, at("level")] = int(found[1])
    elif found := re.fullmatch(r"([+-]\d+) words before it", change):
        more, before = int(found[1]), frame.iloc[row - 1]["end"] if row else 0
        more = max(more, int(before - frame.iloc[row]["start"] + 1))
        frame.iloc[row:, [at("start"), at("end")]] += more
    else:
        name, _, group = change.partition(": ")
        place = sets[name].groups.index(group)
        frame.iloc[row, at(name)] = " ".join(
            "1" if g == place else "0" for g in range(len(sets[name].groups))
        )
    return frame


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), each=st.integers(1, 4))
def test_single_changes_agree_with_tables_edited_by_hand(seed: int, each: int) -> None:
    nuggets, sets = plain.random_table(2, each, seed)
    score: Any = partial(gfrc2, attributes=sets, patience=80)
    found = single_changes(nuggets, score, sets)
    assert len(found) == 0 or found["difference"].abs().is_monotonic_decreasing
    frame, given_scores = (
        plain.frame(nuggets),
        score(nuggets).set_index(["run", "attribute", "measure"])["value"],
    )
    relevant = frame[frame["level"] > 0]
    counts = {"L": 2, "words": 2}
    assert len(found[["run", "wc", "change"]].drop_duplicates()) >= len(relevant) * sum(
        counts.values()
    )
    for (run, wc, change), rows in found.sample(min(len(found), 8), random_state=seed).groupby(
        ["run", "wc", "change"]
    ):
        own = frame[frame["run"] == run].reset_index(drop=True)
        changed = edited(own, int(np.flatnonzero(own["end"] == wc)[0]), change, sets)
        after = score(nugget_table(changed, sets)).set_index(["attribute", "measure"])["value"]
        for row in rows.itertuples():
            assert row.value == pytest.approx(after[row.attribute, row.measure], abs=1e-14)
            difference = row.value - given_scores[run, row.attribute, row.measure]
            assert row.difference == pytest.approx(difference, abs=1e-14)


def test_which_nugget_moves_most_by_hand() -> None:
    score: Any = partial(gfrc, attributes=SETS, patience=100, gains={1: 0.5, 2: 1.0})
    rows = {
        "run": "r",
        "topic": "t",
        "turn": 1,
        "start": [1, 51],
        "end": [1, 51],
        "level": 2,
        "A": ["1 0", "0 1"],
    }
    found = single_changes(nugget_table(pd.DataFrame(rows), SETS), score, SETS)
    most = found[found["measure"] == "R"].iloc[0]
    assert (most["wc"], most["change"]) == (1, "L2 to L0")
    assert most["difference"] == pytest.approx(-2 / 101)
    fairest = found[found["attribute"] == "A"].iloc[0]
    assert fairest["difference"] == pytest.approx(plain.similarity([1, 0], SETS["A"]) - 1)


def test_what_is_never_judged_otherwise_has_no_width() -> None:
    nuggets, sets = plain.random_table(4, 6, 1)
    score: Any = partial(gfrc2, attributes=sets, patience=80)
    same = annotation_intervals(nuggets, score, share=0.0, resamples=20)
    assert same["judged"].unique().tolist() == [*KINDS, "all"]
    np.testing.assert_allclose(same["low"], same["value"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(same["high"], same["value"], rtol=0, atol=1e-15)
    some = annotation_intervals(nuggets, score, share=0.3, resamples=50)
    pd.testing.assert_frame_equal(
        some, annotation_intervals(nuggets, score, share=0.3, resamples=50)
    )
    assert not some.equals(annotation_intervals(nuggets, score, share=0.3, resamples=50, seed=1))
    own = some.set_index(["judged", "measure"])
    assert (own.loc[("membership", "EGNP"), "low"] == own.loc[("membership", "EGNP"), "high"]).all()
    for kind in ("level", "membership"):  # no width where only the other kind of judgement counts
        assert (some.loc[(some["judged"] == kind) & (some["measure"] == "GFRC2"), "high"] > 0).all()


@pytest.mark.parametrize(
    ("share", "low", "high"), [(0.2, 0.0, 2.0), (0.02, 1.0, 1.0), (1.0, 0.0, 2.0)]
)
def test_the_interval_of_one_level(share: float, low: float, high: float) -> None:
    """R of an L1 nugget is half an L2's: a 95 % interval sees a tenth of draws on each side."""
    score: Any = partial(gfrc, attributes=SETS, patience=100)
    found = annotation_intervals(one_nugget(1), score, share=share, resamples=2000)
    r = found[(found["measure"] == "R") & (found["judged"] == "level")].iloc[0]
    assert (r["low"] / r["value"], r["high"] / r["value"]) == pytest.approx((low, high))


def test_the_highest_level_goes_down_and_words_move_both_ways() -> None:
    score: Any = partial(gfrc, attributes=SETS, patience=100)
    found = annotation_intervals(
        one_nugget(2), score, share=1.0, words=2, resamples=2000
    ).set_index(["judged", "measure"])
    lowered = found.loc[("level", "R")].iloc[0]
    assert lowered[["low", "high"]].tolist() == pytest.approx([lowered["value"] / 2] * 2)
    moved = found.loc[("position", "R")].iloc[0]
    ends = [score(one_nugget(2, start))["value"].iloc[0] for start in (7, 3)]
    assert moved[["low", "high"]].tolist() == pytest.approx(ends)
    member = found.loc[("membership", "GF")].iloc[0]
    assert (
        member["low"] == member["high"] == member["value"]
    )  # either group alone is as far from the target
