"""GFRC2 under stopping models: identities with GFR, R and GF, and the factors of its scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import AttributeSet, read_attributes
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable, read_nuggets
from equipoise_compendium import project
from equipoise_studies.conversations import stopping


def r112() -> tuple[NuggetTable, dict[str, AttributeSet]]:
    attributes = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
    return read_nuggets(project.data("conversations", "R112.csv"), attributes), attributes


@settings(max_examples=15)
@given(st.builds(plain.random_table, st.integers(1, 4), st.integers(1, 6), st.integers(0, 10_000)))
def test_gfr_of_the_words_is_gfrc2_by_gain(random_table: Any) -> None:
    nuggets, sets = random_table
    assume((nuggets.level > 0).any())  # GFR rejects judgements without a relevant document
    rankings = stopping.gfr_of_words(nuggets, sets, 400)
    scores = gfrc2(nuggets, sets, patience=400, stop_model="gain", utility="words")
    for measure, name in (("EU", "ERR"), ("GFRC2", "GFR")):
        by_gain = scores.loc[scores["measure"] == measure, "value"]
        np.testing.assert_allclose(by_gain, rankings[name, ""], rtol=1e-11, atol=1e-14)
    for attribute in sets:
        egf = scores.query("measure == 'EGF' and attribute == @attribute")["value"]
        np.testing.assert_allclose(egf, rankings["GF", attribute], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("patience", [1000, 50])
def test_identities_hold_except_for_each_turn_by_itself(patience: int) -> None:
    table = stopping.identities(*r112(), patience)
    each_turn = table["measure"].str.endswith("each turn by itself")
    assert (table.loc[~each_turn, "equal"] == "yes").all()
    if patience == 1000:
        assert table.loc[each_turn, "equal"].tolist() == ["yes", "no"]  # one turn, two turns


def test_scores_are_products_of_their_factors() -> None:
    nuggets, sets = r112()
    scores = stopping.scores(nuggets, sets, patience=1000).set_index(["stopping model", "run"])
    published = gfrc2(nuggets, sets).query("measure == 'GFRC2'")["value"]
    np.testing.assert_array_equal(scores.loc["words", "GFRC2"], published)
    mean = scores[["mean utility", "mean PRONOUN", "mean HINDEX"]].mean(axis=1)
    np.testing.assert_allclose(scores["leave at a nugget"] * mean, scores["GFRC2"], rtol=1e-12)
    assert scores.loc["words", "leave at a nugget"].tolist() == [6 / 1000, 5 / 1000]
    assert len(stopping.clusters(nuggets, sets, patience=1000)) == 6 * 11


def test_where_nobody_reaches_a_nugget_the_means_are_missing() -> None:
    scores = stopping.scores(*r112(), patience=20).set_index("stopping model").loc["words"]
    assert scores["leave at a nugget"].tolist() == scores["GFRC2"].tolist() == [0, 0]
    assert scores.filter(like="mean ").isna().all(axis=None)
