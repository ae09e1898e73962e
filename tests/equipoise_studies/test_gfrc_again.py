"""Claims of gfrc and gfrc2 recomputed by plain code, compared with the committed evidence."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plain_gfrc
from equipoise.attributes import AttributeSet, read_attributes
from equipoise.divergences import distribution_similarity
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.pilot import changes

MOVIES = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
RESEARCHERS = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
COPWA, ORG = "COPWA-CS-QD-MN-2", "ORG-CS-D-MN-1"


@cache
def committed() -> pd.DataFrame:
    claims = pd.read_csv(project.root() / "reports" / "claims.csv")
    return claims.set_index(claims["paper"] + "/" + claims["name"])


def estimate(name: str) -> float:
    return float(committed().loc[name, "estimate"])


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
            positions = int(row["turn"]), int(row["start"]), int(row["end"]), int(row["level"])
            nugget = plain_gfrc.Nugget(*positions, memberships)
            conversations.setdefault(row["run"], []).append(nugget)
    return conversations


def fraction(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return float(numerator) / float(denominator or 1)


def test_the_scores_of_m002() -> None:
    scores = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        scores[run] = plain_gfrc.gfrc(nuggets, MOVIES)[:3]  # R, GF RATINGS, GF ORIGIN
    bing, google = scores["bing-1"], scores["google-1"]
    for position, name in enumerate(("google-9.8", "google-70.0", "google-95.8")):
        percentage = 100 * google[position] / bing[position]
        assert estimate(f"gfrc/{name}") == pytest.approx(percentage)
    lead = min(b - g for b, g in zip(bing, google, strict=True))
    assert estimate("gfrc/bing-outperforms") == pytest.approx(lead)


def test_famous_movies_and_wrong_addresses() -> None:
    shares = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        famous = [nugget.membership["RATINGS"][-1] for nugget in nuggets]
        shares[run] = sum(famous) / len(famous)
    assert estimate("gfrc/google-famous") == pytest.approx(shares["google-1"] - shares["bing-1"])
    addresses = printed_table("gfrc/addresses")["address"].tolist()
    wrong = 100 * addresses.count("wrong") / len(addresses)
    assert estimate("gfrc/google-wrong-addresses") == pytest.approx(wrong)
    footnotes = printed_table("gfrc/footnotes")
    repeats = footnotes.loc[footnotes["repeats an address"] == "yes", "figure"].tolist()
    assert estimate("gfrc/urls-repeated-notes") == repeats.count("4") - repeats.count("3")


def test_the_scores_of_r112() -> None:
    names = ["EGNP", *(f"EGF {name}" for name in RESEARCHERS), "GFRC2"]
    scores = {}
    for run, nuggets in plain_conversations("R112.csv", RESEARCHERS).items():
        scores[run] = dict(zip(names, plain_gfrc.gfrc2(nuggets, RESEARCHERS), strict=True))
    lead = min(scores[COPWA][name] - scores[ORG][name] for name in names)
    assert estimate("gfrc2/copwa-outperforms") == pytest.approx(lead)
    ratios = []
    for values in scores.values():
        ratios.append(values["EGNP"] / min(values[f"EGF {name}"] for name in RESEARCHERS))
    assert estimate("gfrc2/one-scale") == pytest.approx(min(ratios))


def read_so_far(nuggets: list[plain_gfrc.Nugget]) -> list[tuple[float, float]]:
    """GNP and similarity of PRONOUN at the end of each nugget."""
    values = []
    for count in range(1, len(nuggets) + 1):
        read = nuggets[:count]
        words = sum(nugget.end - nugget.start + 1 for nugget in read)
        graded = sum(nugget.level * (nugget.end - nugget.start + 1) for nugget in read)
        shares = plain_gfrc.mean([nugget.membership["PRONOUN"] for nugget in read])
        similarity = plain_gfrc.similarity(shares, RESEARCHERS["PRONOUN"])
        values.append((graded / (read[-1].end - words + graded), similarity))
    return values


def test_what_the_figures_of_r112_show() -> None:
    conversations = plain_conversations("R112.csv", RESEARCHERS)
    copwa, org = read_so_far(conversations[COPWA]), read_so_far(conversations[ORG])
    for position, name, after in ((0, "utility-settles", 3), (1, "pronoun-settles", 4)):
        values = [value[position] for value in copwa]
        before, later = values[:after], values[after - 1 :]
        ratio = (max(later) - min(later)) / (max(before) - min(before))
        assert estimate(f"gfrc2/{name}") == pytest.approx(ratio)
    steps = [later[1] - earlier[1] for earlier, later in pairwise(org)]
    rise = steps[3] - max(abs(step) for step in steps[:3])
    assert estimate("gfrc2/org-improves") == pytest.approx(rise)


def test_one_more_nugget_of_the_largest_group() -> None:
    frame = pd.read_csv(project.data("conversations", "R112.csv"), dtype=str, keep_default_na=False)
    more = changes.one_more_nugget(frame, RESEARCHERS, patience=1000, ordinal="rnod", nominal="jsd")
    published = printed_table("gfrc2/table-3").set_index("run").astype(float)
    for row in more[more["added"] == 0].itertuples():
        assert round(row.EGF, 6) == published.loc[row.run, f"EGF {row.attribute}"]
    seventh = distribution_similarity([6 / 7, 1 / 7, 0], [1 / 3] * 3, "jsd") / 1000
    assert estimate("gfrc2/quantity") == pytest.approx(seventh, rel=1e-9)


def test_every_move_of_a_nugget() -> None:
    """Words are marked one by one; a position is free where no other nugget and no user is."""
    turns = pd.read_csv(project.data("conversations", "R112_turns.csv"))
    differences = []
    for run, nuggets in plain_conversations("R112.csv", RESEARCHERS).items():
        speaker = {}
        for turn in turns[turns["run"] == run].itertuples():
            last = 200 if np.isnan(turn.end) else int(turn.end)
            for word in range(int(turn.start), last + 1):
                speaker[word] = turn.speaker
        before = plain_gfrc.gfrc2(nuggets, RESEARCHERS)[-1]
        for number, nugget in enumerate(nuggets):
            others = nuggets[:number] + nuggets[number + 1 :]
            taken = {word for other in others for word in range(other.start, other.end + 1)}
            for start in range(1, nugget.start):
                words = range(start, start + nugget.end - nugget.start + 1)
                if taken & set(words) or {speaker[word] for word in words} != {"system"}:
                    continue
                moved = plain_gfrc.Nugget(1, words[0], words[-1], nugget.level, nugget.membership)
                in_order = sorted([*others, moved], key=lambda other: other.end)
                differences.append(plain_gfrc.gfrc2(in_order, RESEARCHERS)[-1] - before)
    raised = sum(difference > 1e-12 for difference in differences)
    assert estimate("gfrc2/earlier-raises") == pytest.approx(raised / len(differences))
    assert estimate("gfrc2/earlier-never-lowers") == pytest.approx(min(differences))


# --- the harvest ----------------------------------------------------------------------------------


def harvest() -> list[dict[str, Any]]:
    path = project.data("conversations", "harvest", "qwen-1.5b.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()][1:]


def percentiles(statistic: Callable[[list[Any]], float], units: list[Any]) -> list[float]:
    """Ends of a 95% interval: units resampled with replacement, 2,000 times."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(2000):
        drawn = rng.integers(len(units), size=len(units))
        values.append(statistic([units[number] for number in drawn]))
    values.sort()
    return [values[49], values[1949]]


def share(topics: list[list[bool]]) -> float:
    return sum(map(sum, topics)) / sum(map(len, topics))


def test_trials_that_end_differently() -> None:
    ends: dict[str, dict[int, str]] = {}
    for line in harvest():
        by_trial = ends.setdefault(line["topic"], {})
        by_trial[line["trial"]] = by_trial.get(line["trial"], "") + line["outcome"]
    pairs = []
    for by_trial in ends.values():
        pairs.append([first != second for first, second in combinations(by_trial.values(), 2)])
    row = committed().loc["gfrc/trials-alike-here"]
    assert (row["estimate"], row["n"]) == (pytest.approx(share(pairs)), len(pairs))
    assert [row["low"], row["high"]] == pytest.approx(percentiles(share, pairs), abs=0.015)


def test_conversations_that_repeat_an_address() -> None:
    topics = pd.read_csv(project.data("conversations", "harvest", "topics.csv"))
    kinds = dict(zip(topics["topic"], topics["type"], strict=True))
    conversations: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in harvest():
        if kinds[line["topic"]] in ("S", "V"):
            conversations.setdefault((line["topic"], line["trial"]), []).append(line)
    repeats: dict[str, list[bool]] = {}
    for (topic, _), turns in conversations.items():
        if [turn["outcome"] for turn in turns] != ["o", "o"]:
            continue
        text = "\n".join(turn["system"] for turn in turns)
        text = re.sub(r"\[(https?://\S+?)\]\(\1\)", r"\1", text)
        urls = [url.rstrip(".,:;!?") for url in re.findall(r"https?://[^\s<>()\[\]\"']+", text)]
        repeats.setdefault(topic, []).append(len(set(urls)) < len(urls))
    row = committed().loc["gfrc/urls-repeated-here"]
    assert row["estimate"] == pytest.approx(share(list(repeats.values())))
    ends = percentiles(share, list(repeats.values()))
    assert [row["low"], row["high"]] == pytest.approx(ends, abs=0.02)


def test_unlisted_names_are_resampled_by_conversation() -> None:
    named = pd.read_csv(project.root() / "reports/gfrc_protocol/tables/names.csv")
    counts = list(zip(named["unlisted"].tolist(), named["named"].tolist(), strict=True))

    def unlisted(conversations: list[tuple[int, int]]) -> float:
        return sum(pair[0] for pair in conversations) / sum(pair[1] for pair in conversations)

    row = committed().loc["gfrc/names-unlisted-here"]
    assert (row["estimate"], row["n"]) == (pytest.approx(unlisted(counts)), 8)
    assert [row["low"], row["high"]] == pytest.approx(percentiles(unlisted, counts), abs=0.02)
