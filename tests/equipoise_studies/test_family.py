"""Guards the tables of GFR, GFRC, GFRC2 side by side: ranks, verdicts, disagreements, leads."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import plain_gfrc as plain
from equipoise.attributes import AttributeSet, read_attributes
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable, read_nuggets
from equipoise_compendium import project
from equipoise_studies.pilot import family
from equipoise_studies.pilot.axioms import PROPERTIES, examine, small_conversations

GROUPS = {"GROUP": AttributeSet("GROUP", "nominal", ("x", "y", "z"), np.ones(3))}


def case(topic: str, sets: str) -> tuple[NuggetTable, dict[str, AttributeSet]]:
    attributes = read_attributes(project.data("attributes", f"{sets}.yaml"))
    return read_nuggets(project.data("conversations", f"{topic}.csv"), attributes), attributes


@settings(max_examples=15)
@given(st.builds(plain.random_table, st.integers(1, 4), st.integers(1, 6), st.integers(0, 10_000)))
def test_gfr_of_the_words_is_gfrc2_by_gain(given_table: Any) -> None:
    """GFR's own default differs: words without membership are spread evenly."""
    nuggets, sets = given_table
    lists = family.gfr_of_words(nuggets, sets, 400, unrepresented="ignored")
    ours = gfrc2(nuggets, sets, patience=400, stop_model="gain", utility="words")
    for measure, name in (("EU", "ERR"), ("GFRC2", "GFR")):
        mine = ours.loc[ours["measure"] == measure, "value"]
        np.testing.assert_allclose(mine, lists[name, ""], rtol=1e-11, atol=1e-14)


def test_identities_hold_on_the_case_but_for_turns_by_themselves() -> None:
    nuggets, sets = case("R112", "fairweb_researchers")
    for patience in (1000, 50):
        found = family.identities(nuggets, sets, patience)
        apart = found["measure"].str.endswith("each turn by itself")
        assert (found.loc[~apart, "equal"] == "yes").all()
    assert family.identities(nuggets, sets, 1000)["equal"].tolist()[-2:] == [
        "yes",
        "no",
    ]  # one turn, two turns


def test_stop_models_of_the_case() -> None:
    nuggets, sets = case("R112", "fairweb_researchers")
    scores = family.stop_model_scores(nuggets, sets, patience=1000).set_index(["stop model", "run"])
    published = gfrc2(nuggets, sets).query("measure == 'GFRC2'")["value"]
    np.testing.assert_array_equal(scores.loc["words", "GFRC2"], published)
    mean = scores[["mean utility", "mean PRONOUN", "mean HINDEX"]].mean(axis=1)
    np.testing.assert_allclose(scores["leave at a nugget"] * mean, scores["GFRC2"], rtol=1e-12)
    assert family.leaving_with_nothing(scores.reset_index()).estimate == pytest.approx(1 - 6 / 1000)
    copwa, org = nuggets.conversations["run"]
    lead = family.smallest_lead(scores.reset_index(), copwa, org)
    gain = scores.loc["gain", "GFRC2"]
    assert lead.estimate == pytest.approx(gain[copwa] / gain[org] - 1)
    assert lead.estimate is not None
    assert lead.estimate < 0
    said = family.who_leads(scores.reset_index())
    assert said.endswith(f"{org} is ahead with “gain”.")
    even = scores.reset_index().assign(GFRC2=0.5)
    said = "neither run is ahead with “words”, “anywhere”, “nuggets”, “gain”, “geometric”, “turns”."
    assert family.who_leads(even) == said
    nobody = (
        family.stop_model_scores(nuggets, sets, patience=20)
        .set_index(["stop model", "run"])
        .loc["words"]
    )
    assert nobody["leave at a nugget"].tolist() == nobody["GFRC2"].tolist() == [0, 0]
    assert nobody.filter(like="mean ").isna().all(axis=None)
    clusters = family.stop_model_clusters(nuggets, sets, patience=1000)
    assert len(clusters) == 6 * 11
    assert f"words {copwa} 99.4%" in family.served_in_words(scores.reset_index())


def test_leads_are_said_in_words() -> None:
    ahead = pd.DataFrame(
        {"attribute": ["", "X"], "measure": ["R", "GF"], "share ahead": [1.0, 0.5]}
    )
    assert family.leads_in_words("T", ahead) == "T: R 100%, GF X 50%"


def test_verdicts_and_smallest_examples() -> None:
    small = small_conversations(GROUPS["GROUP"], most=2)
    measures = family.measures(20)
    assert all(len(score(small, GROUPS)) == len(small.conversations) for score in measures.values())
    some = {name: measures[name] for name in ("R", "GF", "GF, ordinal")}
    found = examine(some, small, GROUPS, 20)
    grid = family.verdicts(found).set_index("measure")
    assert grid.columns.tolist() == list(PROPERTIES)
    assert grid.loc["R", ["refusal", "padding", "unfair addition"]].tolist() == [
        "kept",
        "kept",
        "100%",
    ]
    assert grid.loc["GF", ["padding", "order of groups", "scale of the target"]].tolist() == [
        "blind",
        "kept",
        "kept",
    ]
    assert grid.loc["GF, ordinal", "order of groups"].endswith("%")
    examples = family.smallest_examples(found, small)
    assert examples.loc[examples["property"] == "beyond patience", "measures"].tolist() == [
        "GF; GF, ordinal"
    ]
    unfair = examples[(examples["property"] == "unfair addition")].iloc[0]
    assert (unfair["conversation"], unfair["measures"]) == ("S1 word 1: L1 x", "R")


def test_disagreements_against_a_loop_over_pairs() -> None:
    small = small_conversations(GROUPS["GROUP"], most=1)
    scores = {
        "a": np.array([0, 1, 2, 3.0] * 3)[: len(small.conversations)],
        "b": np.array([0, 2, 1, 3.0] * 3),
    }
    count = len(small.conversations)
    scores = {name: np.resize(values, count) for name, values in scores.items()}
    found = family.disagreements(scores, small).iloc[0]
    assert found["tau"] == pytest.approx(stats.kendalltau(scores["a"], scores["b"]).statistic)
    said = small.conversations["topic"]
    assert (found["the first prefers"], found["the second prefers"]) == (said[2], said[1])
    same = family.disagreements({"a": scores["a"], "c": 2 * scores["a"]}, small).iloc[0]
    assert (same["tau"], same["the first prefers"], same["the second prefers"]) == (
        pytest.approx(1),
        "",
        "",
    )


def test_what_one_attribute_hides() -> None:
    nuggets, sets = case("intersection", "intersection")
    found = family.intersections(nuggets, sets).set_index("run")
    assert found.loc[:, ["GF PRONOUN", "GF CAREER"]].to_numpy().tolist() == [[1, 1], [1, 1]]
    half = plain.similarity([0.5, 0, 0, 0.5], sets["PRONOUN x CAREER"])
    assert found["GF PRONOUN x CAREER"].tolist() == pytest.approx([half, 1])


def test_leads_over_draws() -> None:
    nuggets, sets = case("M002", "fairweb_movies")
    score = partial(gfrc, attributes=sets)
    given_only = family.leads(nuggets, score, share=0.0, resamples=5)
    assert given_only[["attribute", "measure"]].to_numpy().tolist()[:2] == [
        ["", "R"],
        ["RATINGS", "GF"],
    ]
    assert (given_only["share ahead"] == 1).all()
    some = family.leads(nuggets, score, share=0.5, resamples=200)
    assert 0 < some["share ahead"].min() < 1


def test_words_as_ranks_are_written_by_hand() -> None:
    small = small_conversations(GROUPS["GROUP"], most=2)
    runs, qrels, memberships = family.as_ranked_lists(small)
    number = small.conversations["topic"].tolist().index("S1 word 2: L1 x; S1 word 3: L2 z")
    assert runs.loc[runs["topic"] == str(number), "document"].tolist() == ["1", "2", "3", "0"]
    assert runs.loc[runs["topic"] == "0", "document"].tolist() == ["0"]
    judged = qrels[(qrels["topic"] == str(number)) & (qrels["level"] > 0)]
    assert judged[["document", "level"]].to_numpy().tolist() == [["2", 1], ["3", 2]]
    shares = memberships["GROUP"].merge(judged, on=["topic", "document"])
    assert shares.filter(like="group").to_numpy().tolist() == [[1, 0, 0], [0, 0, 1]]
