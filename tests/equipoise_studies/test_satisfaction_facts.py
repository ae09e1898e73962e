"""Facts of chapter 3: what they say without the texts, and that they are made again as they are."""

from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from equipoise.problems import InputError
from equipoise_compendium import project, registry
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import carry_out
from equipoise_studies.satisfaction import record
from equipoise_studies.satisfaction.data import (
    COLLECTIONS,
    balanced_order,
    drawn_dialogues,
    load_relabelled,
)
from equipoise_studies.satisfaction.readings import READ, readings
from equipoise_studies.satisfaction.study import Study
from upstream import skip_without

REPLICA = Study.read("replica")
PARTS = ("valid", "test")


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither mirror nor cache, and no url that answers."""
    monkeypatch.delenv(registry.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv(registry.CACHE_VARIABLE, str(tmp_path / "cache"))

    def refuse(*_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(registry, "_download", refuse)


def test_a_collection_has_the_parts_of_the_thesis_and_honest_swaps() -> None:
    for name in COLLECTIONS:
        collection = REPLICA.test_sets[name]
        assert collection.rated_rows["dialogue"].nunique() == 1000
        printed = printed_table("thesis/table-3.1")[name][:5].str.replace(",", "").astype(int)
        assert len(collection.rated_rows) == printed.sum()
        test, swapped = collection.part("test"), collection.turned
        assert collection.samples["sample"].is_unique
        dialogues = collection.samples.groupby("part")["dialogue"].nunique()
        assert dialogues.loc[["test", "valid"]].tolist() == [100, 100]
        merged = test.merge(swapped, on="sample", suffixes=("", "_turned"))
        assert (merged["dissatisfied"] != merged["dissatisfied_turned"]).all()
        train = set(collection.part("train")["dialogue"])
        assert not train & set(swapped["donor"].str.partition(":")[0])
        assert swapped["similarity"].between(0, 1 + 1e-9).all()


def test_draws_of_dialogues_begin_alike_and_an_order_is_balanced() -> None:
    collection = REPLICA.test_sets["SGD"]
    assert balanced_order(collection)["dissatisfied"].head(40).sum() == 20
    worlds = collection.worlds()
    worlds = worlds[worlds["world"] != "valid"]
    draws = [drawn_dialogues(worlds, most) for most in (3, 5, 0)]
    for fewer, more in pairwise(draws):
        assert fewer["sample"].tolist() == more["sample"].tolist()[: len(fewer)]
    assert draws[0]["dialogue"].nunique() == 3
    assert len(draws[2]) == len(worlds)


def test_readings_are_of_what_is_drawn_and_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = list(REPLICA.test_sets.values())
    table = readings(collections)
    assert len(table) == 2 * READ
    assert table["reason"].str.len().between(10, 100).all()
    recorded = project.data("outputs", "satisfaction", "readings.csv").read_text()
    path = tmp_path / "readings.csv"
    monkeypatch.setattr(project, "data", lambda *_: path)
    for changed in (
        recorded.replace(",yes,", ",maybe,", 1),
        recorded.replace(",dissatisfied,", ",satisfied,", 1),
    ):
        path.write_text(changed)
        with pytest.raises(ValueError, match="read anew"):
            readings(collections)


def test_items_of_other_responses_than_were_written_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(REPLICA.annotations("SGD").settled) == len(REPLICA.annotations("SGD").items) == 200
    written = REPLICA.written("SGD")
    changed = written.assign(response=written["response"] + "!")
    monkeypatch.setattr(Study, "written", lambda *_: changed)
    with pytest.raises(ValueError, match="equipoise data facts satisfaction"):
        REPLICA.annotations("SGD")


def test_classes_of_two_raters_are_those_of_the_report() -> None:
    table = pd.read_csv(
        project.root() / "reports/thesis_ch3_satisfaction/tables/thesis-table-3.3.csv"
    )
    for name, rows in table.groupby("collection"):
        classes = load_relabelled(str(name))
        assert set(classes.to_numpy().ravel()) <= {0, 1, 2}
        assert rows["dialogues"].eq(len(classes)).all()
        same = (classes["human"] == classes["model"]).mean()
        assert rows["PA"].iloc[0] == pytest.approx(100 * same)


@pytest.mark.usefixtures("no_data")
def test_a_plan_without_data_says_what_lacks() -> None:
    replica = record.plan(Study.read("replica"), None, Path("none"))
    assert all(step.finished for step in replica)
    assert not any("url does not answer" in lack for step in replica for lack in step.lacks)

    thesis = record.plan(Study.read("thesis"), None, Path("none"))
    steps = {step.name: step for step in thesis}
    writing = steps["written, MultiWOZ"]
    assert writing.wanted == len(REPLICA.test_sets["MultiWOZ"].part("test"))
    assert "thousand words" in writing.unit
    # Each file is named once, in the list of what is to be had, with what finds it.
    lacks = steps["MultiWOZ and SGD"].lacks
    parts = [f"asap/dataset/{n}/{part}_{n}.txt" for n in ("mwoz", "sgd") for part in PARTS]
    named = ["uss/dataset/MWOZ.txt", *parts[:2], "uss/dataset/SGD.txt", *parts[2:]]
    assert [lack.split()[0] for lack in lacks] == named
    assert all(registry.MIRROR_VARIABLE in lack for lack in lacks)
    # What waits for them is refused by that list before anything is run.
    with pytest.raises(InputError, match=r"uss/dataset/SGD\.txt"):
        carry_out(thesis, print)


@pytest.mark.upstream
def test_facts_are_those_of_the_texts() -> None:
    skip_without("uss", "asap", "use_relabel")
    for name in COLLECTIONS:
        with_texts, of_facts = REPLICA.turned_texts(name), REPLICA.test_sets[name]
        assert with_texts.digest() == of_facts.digest()
        columns = of_facts.worlds().columns
        pd.testing.assert_frame_equal(
            with_texts.worlds()[columns], of_facts.worlds(), check_dtype=False
        )
