"""Guards the verdicts of gfrc and gfrc2: labels exchanged, and claims computed twice, by hand."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plain_gfrc
from equipoise.attributes import AttributeSet, read_attributes
from equipoise.measures import gfrc, gfrc2
from equipoise.nuggets import NuggetTable, read_nuggets
from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.pilot import claims
from equipoise_studies.pilot.outcomes import count_names
from equipoise_studies.recorded_conversations import read_harvest
from notebook_evidence import verdict_of

MOVIES = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
MOVIES["RATINGS"] = MOVIES["RATINGS"].with_target("uniform")
RESEARCHERS = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
COPWA, ORG = "COPWA-CS-QD-MN-2", "ORG-CS-D-MN-1"


def scores_of_m002() -> pd.DataFrame:
    """R and GF of both conversations, as the notebook has them: a row a run."""
    nuggets = read_nuggets(project.data("conversations", "M002.csv"), MOVIES)
    totals = gfrc.gfrc(nuggets, MOVIES)
    scores = totals[totals["attribute"].ne("") | totals["measure"].eq("R")]
    scores = scores.assign(score=scores["measure"] + " " + scores["attribute"])
    return scores.pivot_table(index="run", columns="score", values="value")


def r112() -> NuggetTable:
    return read_nuggets(project.data("conversations", "R112.csv"), RESEARCHERS)


def scores_of_r112() -> pd.DataFrame:
    scores = gfrc2.gfrc2(r112(), RESEARCHERS, patience=1000)
    scores["score"] = (scores["measure"] + " " + scores["attribute"]).str.strip()
    return scores.pivot_table(index="run", columns="score", values="value")


def clusters_of(run: str) -> pd.DataFrame:
    clusters = gfrc2.user_clusters(r112(), RESEARCHERS, patience=1000)
    return clusters[clusters["run"] == run]


# --- labels exchanged at random -------------------------------------------------------------------


def with_runs_exchanged(scores: pd.DataFrame) -> pd.DataFrame:
    """The two runs in random places, in each score apart."""
    rng = np.random.default_rng(1)
    exchanged = {score: rng.permutation(scores[score].to_numpy()) for score in scores}
    return pd.DataFrame(exchanged, index=scores.index)


def with_clusters_exchanged(values: pd.Series) -> pd.Series:
    rng = np.random.default_rng(0)
    return pd.Series(rng.permutation(values.to_numpy()), name=values.name)


NULLS: dict[str, Callable[[], Evidence]] = {
    "gfrc/bing-outperforms": lambda: claims.smallest_lead(
        with_runs_exchanged(scores_of_m002()), "bing-1", "google-1"
    ),
    "gfrc2/copwa-outperforms": lambda: claims.smallest_lead(
        with_runs_exchanged(scores_of_r112()), COPWA, ORG
    ),
    "gfrc2/org-improves": lambda: claims.improves_at(
        with_clusters_exchanged(clusters_of(ORG)["DistrSim PRONOUN"]), 5
    ),
}
"""Evidence on each claim that has a null, with the labels exchanged."""


@pytest.mark.parametrize("name", NULLS)
def test_no_claim_holds_where_its_labels_are_exchanged(name: str) -> None:
    assert verdict_of(name, NULLS[name]()) != "holds"


def test_each_claim_with_a_null_has_its_labels_exchanged() -> None:
    named = set()
    for paper in ("gfrc", "gfrc2"):
        table = stated(paper)
        named |= {f"{paper}/{claim}" for claim in table.index[table["null"] != ""]}
    assert named == set(NULLS)


# --- claims by a second, plain implementation -----------------------------------------------------


def plain_conversations(
    name: str, sets: dict[str, AttributeSet]
) -> dict[str, list[plain_gfrc.Nugget]]:
    """The relevant nuggets of each run, read line by line."""
    conversations: dict[str, list[plain_gfrc.Nugget]] = {}
    with project.data("conversations", name).open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["level"] == "0":
                continue
            memberships = {}
            for attribute in sets:
                memberships[attribute] = [fraction(share) for share in row[attribute].split()]
            places = int(row["turn"]), int(row["start"]), int(row["end"]), int(row["level"])
            nugget = plain_gfrc.Nugget(*places, memberships)
            conversations.setdefault(row["run"], []).append(nugget)
    return conversations


def fraction(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return float(numerator) / float(denominator or 1)


def plain_m002() -> dict[str, dict[str, float]]:
    scores = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        relevance, ratings, origin, *_ = plain_gfrc.gfrc(nuggets, MOVIES)
        scores[run] = {"R ": relevance, "GF RATINGS": ratings, "GF ORIGIN": origin}
    return scores


@pytest.mark.parametrize("score", ["R ", "GF RATINGS", "GF ORIGIN"])
def test_the_percentages_of_m002_computed_twice(score: str) -> None:
    plain = plain_m002()
    evidence = claims.percentage(scores_of_m002(), score, "google-1", "bing-1")
    assert evidence.estimate == pytest.approx(
        100 * plain["google-1"][score] / plain["bing-1"][score]
    )


def test_the_lead_of_bing_computed_twice() -> None:
    plain = plain_m002()
    leads = [plain["bing-1"][score] - plain["google-1"][score] for score in plain["bing-1"]]
    evidence = claims.smallest_lead(scores_of_m002(), "bing-1", "google-1")
    assert evidence.estimate == pytest.approx(min(leads))


def test_famous_movies_and_wrong_addresses_counted_twice() -> None:
    shares = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        famous = [nugget.membership["RATINGS"][-1] for nugget in nuggets]
        shares[run] = sum(famous) / len(famous)
    nuggets_of_m002 = read_nuggets(project.data("conversations", "M002.csv"), MOVIES)
    evidence = claims.famous(nuggets_of_m002, "google-1", "bing-1")
    assert evidence.estimate == pytest.approx(shares["google-1"] - shares["bing-1"])
    addresses = printed_table("gfrc/addresses")["address"].tolist()
    wrong = claims.wrong_addresses(printed_table("gfrc/addresses"))
    assert wrong.estimate == 100 * addresses.count("wrong") / 10


def plain_r112() -> dict[str, dict[str, float]]:
    scores = {}
    for run, nuggets in plain_conversations("R112.csv", RESEARCHERS).items():
        names = ["EGNP", *(f"EGF {name}" for name in RESEARCHERS), "GFRC2"]
        scores[run] = dict(zip(names, plain_gfrc.gfrc2(nuggets, RESEARCHERS), strict=True))
    return scores


def test_the_lead_of_copwa_and_the_scale_of_gfrc2_computed_twice() -> None:
    plain = plain_r112()
    leads = [plain[COPWA][score] - plain[ORG][score] for score in plain[ORG]]
    evidence = claims.smallest_lead(scores_of_r112(), COPWA, ORG)
    assert evidence.estimate == pytest.approx(min(leads))
    ratios = claims.of_one_scale(scores_of_r112(), "EGNP", "EGF")
    for run, scores in plain.items():
        lowest = min(scores[f"EGF {name}"] for name in RESEARCHERS)
        assert ratios[run] == pytest.approx(scores["EGNP"] / lowest)


def met_so_far(nuggets: list[plain_gfrc.Nugget]) -> list[tuple[float, float]]:
    """GNP and similarity of PRONOUN at the end of each nugget."""
    values = []
    for count in range(1, len(nuggets) + 1):
        met = nuggets[:count]
        words = sum(nugget.end - nugget.start + 1 for nugget in met)
        graded = sum(nugget.level * (nugget.end - nugget.start + 1) for nugget in met)
        shares = plain_gfrc.mean([nugget.membership["PRONOUN"] for nugget in met])
        similarity = plain_gfrc.similarity(shares, RESEARCHERS["PRONOUN"])
        values.append((graded / (met[-1].end - words + graded), similarity))
    return values


def test_what_the_pictures_of_r112_show_computed_twice() -> None:
    conversations = plain_conversations("R112.csv", RESEARCHERS)
    of_copwa, of_org = met_so_far(conversations[COPWA]), met_so_far(conversations[ORG])
    for place, score, after in ((0, "GNP", 3), (1, "DistrSim PRONOUN", 4)):
        values = [value[place] for value in of_copwa]
        before, later = values[:after], values[after - 1 :]
        evidence = claims.steadiness(clusters_of(COPWA)[score], after)
        ranges = max(later) - min(later), max(before) - min(before)
        assert evidence.estimate == pytest.approx(ranges[0] / ranges[1])
    steps = [later[1] - earlier[1] for earlier, later in pairwise(of_org)]
    evidence = claims.improves_at(clusters_of(ORG)["DistrSim PRONOUN"], 5)
    assert evidence.estimate == pytest.approx(steps[3] - max(abs(step) for step in steps[:3]))


def test_every_move_of_a_nugget_computed_twice() -> None:
    """Words are marked one by one; a place is free where no other nugget and no user speaks."""
    frame = pd.read_csv(project.data("conversations", "R112.csv"), dtype=str)
    turns = pd.read_csv(project.data("conversations", "R112_turns.csv"))
    moves = claims.earlier_nuggets(frame, turns, RESEARCHERS, patience=1000)
    changes = {(row.run, row.nugget, row.start): row.change for row in moves.itertuples()}
    plain: dict[tuple[str, int, int], float] = {}
    for run, nuggets in plain_conversations("R112.csv", RESEARCHERS).items():
        speaker = {}
        for turn in turns[turns["run"] == run].itertuples():
            last = 200 if np.isnan(turn.end) else int(turn.end)
            for word in range(int(turn.start), last + 1):
                speaker[word] = turn.speaker
        before = plain_gfrc.gfrc2(nuggets, RESEARCHERS)[-1]
        for place, nugget in enumerate(nuggets):
            others = nuggets[:place] + nuggets[place + 1 :]
            taken = {word for other in others for word in range(other.start, other.end + 1)}
            for start in range(1, nugget.start):
                words = range(start, start + nugget.end - nugget.start + 1)
                if taken & set(words) or {speaker[word] for word in words} != {"system"}:
                    continue
                moved = plain_gfrc.Nugget(1, words[0], words[-1], nugget.level, nugget.membership)
                in_order = sorted([*others, moved], key=lambda other: other.end)
                after = plain_gfrc.gfrc2(in_order, RESEARCHERS)[-1]
                plain[run, place + 1, start] = after - before
    assert changes.keys() == plain.keys()
    assert list(changes.values()) == pytest.approx([plain[key] for key in changes], abs=1e-12)
    raised = sum(change > 1e-12 for change in plain.values())
    assert claims.earlier_raises(moves).estimate == pytest.approx(raised / len(plain))
    assert claims.earlier_lowers(moves).estimate == pytest.approx(min(plain.values()))
    by_run = claims.moves_by_run(moves)
    assert by_run["moves"].sum() == len(plain)
    assert by_run["lowers"].sum() == sum(change < -1e-12 for change in plain.values())


# --- the harvest ----------------------------------------------------------------------------------


def harvest() -> pd.DataFrame:
    return read_harvest(project.data("conversations", "harvest", "qwen-1.5b.jsonl"))


def percentiles(statistic: Callable[[list[Any]], float], units: list[Any]) -> list[float]:
    """Ends of a 95 % interval: units drawn with replacement, 2,000 times."""
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        places = rng.integers(len(units), size=len(units))
        drawn.append(statistic([units[place] for place in places]))
    drawn.sort()
    return [drawn[49], drawn[1949]]


def test_trials_that_end_differently_counted_twice() -> None:
    ends: dict[str, dict[str, str]] = {}
    for row in harvest().itertuples():
        of_topic = ends.setdefault(str(row.topic), {})
        of_topic[str(row.run)] = of_topic.get(str(row.run), "") + str(row.outcome)
    pairs = []
    for of_topic in ends.values():
        pairs.append([first != second for first, second in combinations(of_topic.values(), 2)])

    def share(topics: list[list[bool]]) -> float:
        return sum(map(sum, topics)) / sum(map(len, topics))

    evidence = claims.changed(harvest())
    assert evidence.estimate == pytest.approx(share(pairs))
    assert [evidence.low, evidence.high] == pytest.approx(percentiles(share, pairs), abs=0.015)
    assert evidence.n == 60


def test_conversations_that_repeat_an_address_counted_twice() -> None:
    texts: dict[tuple[str, str], list[Any]] = {}
    for row in harvest().itertuples():
        if row.type in ("S", "V"):
            texts.setdefault((str(row.topic), str(row.run)), []).append(row)
    repeats: dict[str, list[bool]] = {}
    for (topic, _), turns in texts.items():
        if [turn.outcome for turn in turns] != ["o", "o"]:
            continue
        text = "\n".join(turn.system for turn in turns)
        text = re.sub(r"\[(https?://\S+?)\]\(\1\)", r"\1", text)
        urls = [url.rstrip(".,:;!?") for url in re.findall(r"https?://[^\s<>()\[\]\"']+", text)]
        repeats.setdefault(topic, []).append(len(set(urls)) < len(urls))

    def share(topics: list[list[bool]]) -> float:
        return sum(map(sum, topics)) / sum(map(len, topics))

    evidence = claims.repeating(harvest(), ["S", "V"])
    of_topics = list(repeats.values())
    assert evidence.estimate == pytest.approx(share(of_topics))
    ends = percentiles(share, of_topics)
    assert [evidence.low, evidence.high] == pytest.approx(ends, abs=0.02)


def test_unlisted_names_are_drawn_by_conversation() -> None:
    listed = pd.read_csv(
        project.data("conversations", "harvest", "known.csv"), dtype=str, keep_default_na=False
    )
    named = count_names(harvest(), listed)
    counts = list(zip(named["unlisted"].tolist(), named["named"].tolist(), strict=True))

    def share(conversations: list[tuple[int, int]]) -> float:
        return sum(pair[0] for pair in conversations) / sum(pair[1] for pair in conversations)

    evidence = claims.unlisted(named)
    assert evidence.estimate == pytest.approx(share(counts))
    assert evidence.n == 8
    assert [evidence.low, evidence.high] == pytest.approx(percentiles(share, counts), abs=0.02)
    assert evidence.low is not None
    assert evidence.low < 29 / 33 - 0.05


def test_footnotes_on_repeated_addresses_are_counted() -> None:
    footnotes = printed_table("gfrc/footnotes")
    evidence = claims.notes_on_repeated_addresses(footnotes)
    assert (evidence.estimate, "5 and 1" in evidence.said) == (4, True)
