"""Settings of chapter 3, labels of turns, and the tables that the notebook reads."""

import shutil
from collections import Counter
from pathlib import Path
from statistics import multimode
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction import data

REPLICA = data.read_study("replica")
CONFIGS = project.root() / "data" / "studies" / "satisfaction"


def changed(folder: Path, **changes: Any) -> Path:
    """A copy of the replica's config with other settings, for data in a folder."""
    content = yaml.safe_load((CONFIGS / "replica.yaml").read_text()) | changes
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="module")
def samples() -> pd.DataFrame:
    return data.samples_of(data.rated_turns(REPLICA))


@pytest.fixture
def copied(tmp_path: Path) -> data.Study:
    """The replica with outputs that a test may change."""
    shutil.copytree(REPLICA.outputs, tmp_path / "outputs")
    path = changed(tmp_path, facts=str(REPLICA.facts), outputs="outputs")
    return data.read_study(str(path))


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tolerance": 1.0}, "mine.yaml: tolerance: Extra inputs are not permitted"),
        ({"counterfactuals": "drawn"}, "mine.yaml: counterfactuals: Input should be 'swapped'"),
        ({"writer": {"prompt": "a.txt", "tokens": 0}}, "mine.yaml: writer.tokens: .*got 0"),
        ({"estimators": {"a": {"kind": "bert"}}}, r"mine.yaml: estimators.a.kind: .*got 'bert'"),
        ({"collections": {"ReDial": {}}}, "mine.yaml: collections.ReDial"),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        data.read_study(str(changed(tmp_path, **changes)))


def test_folders_are_the_committed_ones_or_relative_to_the_config(tmp_path: Path) -> None:
    assert REPLICA.outputs == project.root() / "data" / "outputs" / "satisfaction"
    study = data.read_study(str(changed(tmp_path, outputs="mine")))
    assert study.outputs == tmp_path / "mine"
    assert study.facts == REPLICA.facts
    assert REPLICA.prompt("few-shot-prompt.txt").endswith("Label of Example 3 is:")


def test_setups_are_named_as_in_table_3_6() -> None:
    thesis = data.read_study("thesis")
    published = printed_table("thesis/table-3.6")
    setups = set(thesis.estimators["bert"].setups) | set(thesis.estimators["zephyr"].setups)
    assert set(published["setup"]) <= setups
    assert thesis.estimators["bert"].setups["under-sampling"] == 0
    assert thesis.world == "CF"


# --- labels and samples ---------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=7), min_size=1, max_size=6))
def test_label_is_a_most_frequent_rating(ratings: list[list[int]]) -> None:
    lower, higher, first = (data.label_of(ratings, ties) for ties in ("lower", "higher", "first"))
    for row, given_ratings in enumerate(ratings):
        count = Counter(given_ratings)
        most = [rating for rating in count if count[rating] == max(count.values())]
        assert lower[row] == min(most)
        assert higher[row] == max(most)
        assert first[row] == min(most, key=given_ratings.index)


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(1, 6))
def test_dissenters_are_dropped_one_by_one(seed: int, raters: int, turns: int) -> None:
    given_ratings = np.random.default_rng(seed).integers(1, 4, (turns, raters)).tolist()
    left = list(range(raters))
    while len(left) > 4:
        labels = [min(multimode([row[rater] for rater in left])) for row in given_ratings]
        both = list(zip(given_ratings, labels, strict=True))
        agreeing = {rater: sum(row[rater] == label for row, label in both) for rater in left}
        left.remove(min(left, key=agreeing.__getitem__))  # the first of several
    kept = data.without_dissenters(pd.Series(list(map(tuple, given_ratings)), index=["7"] * turns))
    assert kept.tolist() == [tuple(row[rater] for rater in left) for row in given_ratings]
    assert kept.index.tolist() == ["7"] * turns


def test_the_collections_are_those_of_the_thesis(samples: pd.DataFrame) -> None:
    turns = data.rated_turns(REPLICA)
    for name in data.COLLECTIONS:
        rated = turns[turns["collection"] == name]
        assert rated["dialogue"].nunique() == 1000
        published = printed_table("thesis/table-3.1")[name][:5].str.replace(",", "").astype(int)
        assert len(rated) == published.sum()
    assert not samples.duplicated(["collection", "sample"]).any()
    test = data.estimated(samples, "test")
    assert test["turn"].between(4, 16).all()
    assert test.groupby("collection")["dialogue"].nunique().tolist() == [100, 100]


# --- other responses ------------------------------------------------------------------------------


def test_swapped_responses_have_the_opposite_label_and_no_trained_donor(
    samples: pd.DataFrame,
) -> None:
    other = data.other_responses(REPLICA, samples)
    keys = ["collection", "sample"]
    both = data.estimated(samples, "test").merge(other, on=keys, suffixes=("", "_other"))
    assert len(both) == len(other)
    assert (both["dissatisfied"] != both["dissatisfied_other"]).all()
    donors = samples.rename(columns={"sample": "donor"})
    donors = both.merge(donors, on=["collection", "donor"], suffixes=("", "_donor"))
    assert (donors["part_donor"] != "train").all()
    assert (donors["service"] == donors["service_donor"]).all()
    assert (donors["act"] == donors["act_donor"]).all()
    assert (donors["dialogue"] != donors["dialogue_donor"]).all()


def test_readings_are_of_the_swapped_responses_that_were_drawn(
    samples: pd.DataFrame, copied: data.Study
) -> None:
    other = data.other_responses(REPLICA, samples)
    read = data.readings(REPLICA, other)
    for name, rows in read.groupby("collection"):
        of_collection = other.loc[other["collection"] == name, "sample"]
        drawn = np.random.default_rng(20240501).choice(len(of_collection), 30, replace=False)
        assert rows["sample"].tolist() == of_collection.iloc[np.sort(drawn)].tolist()
    path = copied.outputs / "readings.csv"
    path.write_text(path.read_text().replace(",dissatisfied,", ",satisfied,", 1))
    with pytest.raises(ValueError, match="must be about the swapped responses"):
        data.readings(copied, other)


def test_written_responses_count_where_annotators_confirm_them(
    samples: pd.DataFrame, copied: data.Study, tmp_path: Path
) -> None:
    path = changed(tmp_path, facts=str(REPLICA.facts), outputs="outputs", counterfactuals="written")
    study = data.read_study(str(path))
    items = data.read_items(study)
    labels = data.settled(study, items)
    other = data.other_responses(study, samples)
    as_asked = labels["written"] & (labels["satisfied"] != labels["dissatisfied"])
    assert len(other) == as_asked.sum()
    asked = other.merge(items, on=["collection", "item"], suffixes=("", "_asked"))
    assert (asked["dissatisfied"] == asked["dissatisfied_asked"]).all()
    assert data.readings(study, other).empty
    # An item without a label must not be left out silently.
    adjudicated = copied.outputs / "annotations" / "SGD-adjudicator.csv"
    adjudicated.write_text("item,satisfied,coherent\n")
    with pytest.raises(ValueError, match="of 400 items have no label yet"):
        data.other_responses(study, samples)


def test_labels_of_both_count_where_they_agree_and_of_the_third_where_not() -> None:
    items = data.read_items(REPLICA)
    pairs = data.pairs_of_labels(REPLICA, items)
    labels = data.settled(REPLICA, items).set_index("item")
    third = data.read_labels(REPLICA, "adjudicator").set_index("item")
    assert len(pairs) == len(labels) == 400
    for row in pairs.itertuples():
        agreed = (row.satisfied, row.coherent) == (row.satisfied_2, row.coherent_2)
        expected = (row.satisfied, row.coherent) if agreed else tuple(third.loc[row.item])
        assert (labels.loc[row.item, "satisfied"], labels.loc[row.item, "coherent"]) == expected


def test_an_answer_that_is_none_is_named_by_line(copied: data.Study) -> None:
    path = copied.outputs / "annotations" / "SGD-annotator-1.csv"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].partition(",")[0] + ",maybe,yes"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"SGD-annotator-1\.csv, line 3: answers must be yes, no"):
        data.read_labels(copied, "annotator-1")


# --- predictions ----------------------------------------------------------------------------------


def test_predictions_are_complete(samples: pd.DataFrame) -> None:
    other = data.other_responses(REPLICA, samples)
    table = data.predictions(REPLICA, other)
    sizes = table[table["system"] != "few-shot"].groupby(["system", "setup", "collection", "world"])
    test = data.estimated(samples, "test")["collection"].value_counts()
    swapped = other["collection"].value_counts()
    assert len(sizes) == 2 * 4 * 2 * 2
    for (_, _, name, world), number in sizes.size().items():
        assert number == (test if world == "Main" else swapped)[name]


def test_broken_predictions_are_rejected(samples: pd.DataFrame, copied: data.Study) -> None:
    other = data.other_responses(copied, samples)
    with pytest.raises(ValueError, match=r"encoder\.csv: must be about the other responses of SGD"):
        data.predictions(copied, other.iloc[:-1])
    path = copied.outputs / "few-shot.csv"
    table = path.read_text()
    path.write_text(table + "SGD,Main,1:6,few-shot,Few-shot,1.5\n")
    with pytest.raises(ValueError, match="probabilities from 0 to 1"):
        data.predictions(copied, other)
    path.write_text(table + table.splitlines()[1] + "\n")
    with pytest.raises(ValueError, match="one per sample, system and setup"):
        data.predictions(copied, other)


def test_every_dialogue_of_users_is_labelled_once() -> None:
    cached = data.user_predictions()
    assert (cached.groupby(["system", "setup"]).size() == len(data.users())).all()
    assert not cached.duplicated(["system", "setup", "dialogue"]).any()
