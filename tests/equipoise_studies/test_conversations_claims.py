"""Claims of gfrc and gfrc2 recomputed by plain code, compared with the committed evidence."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from itertools import combinations, pairwise, product
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plain_gfrc
from equipoise.attributes import AttributeSet, read_attributes
from equipoise.measures import gfrc2
from equipoise.nuggets import read_nuggets
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Criterion, stated
from equipoise_studies.conversations import changes
from notebook_evidence import committed_evidence

MOVIES = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
RESEARCHERS = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
COPWA, ORG = "COPWA-CS-QD-MN-2", "ORG-CS-D-MN-1"


R112, M002 = "R112 annotations", "M002 annotations"
THREE_WORDS = "R112 annotations, three-word nugget"
HARVEST = "Qwen2.5-Coder harvest"
COMMITTED = {
    **committed_evidence("gfrc_time_travel_movies"),
    **committed_evidence("gfrc_protocol"),
    **committed_evidence("gfrc2_iclr_researchers"),
}

Conversations = dict[str, list[plain_gfrc.Nugget]]


def estimates(name: str, collection: str) -> dict[str, Any]:
    return {part: row.estimate for part, row in COMMITTED[name][collection].items()}


def plain_conversations(name: str, sets: dict[str, AttributeSet]) -> Conversations:
    """The relevant nuggets of each run, read line by line."""
    conversations: Conversations = {}
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


def with_three_words() -> Conversations:
    """COPWA's first nugget as footnote 11 has it."""
    conversations = plain_conversations("R112.csv", RESEARCHERS)
    first = conversations[COPWA][0]
    assert (first.start, first.end) == (32, 33)
    first.start = 31
    return conversations


def relevance(
    nuggets: list[plain_gfrc.Nugget], gains: dict[int, float], patience: int, first_word: int = 1
) -> float:
    """R, or with ``first_word`` 0 the S-measure of Eq. 2, over the normaliser of R."""
    weights = [max(0.0, 1 - (nugget.end - first_word) / patience) for nugget in nuggets]
    gain = [gains[nugget.level] for nugget in nuggets]
    return sum(map(math.prod, zip(weights, gain, strict=True))) / ((patience + 1) / 2)


# --- gfrc: topic M002 -----------------------------------------------------------------------------


def test_the_scores_of_m002() -> None:
    scores = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        scores[run] = plain_gfrc.gfrc(nuggets, MOVIES)[:3]  # R, GF RATINGS, GF ORIGIN
    bing, google = scores["bing-1"], scores["google-1"]
    for position, name in enumerate(("google-9.8", "google-70.0", "google-95.8")):
        percentage = 100 * google[position] / bing[position]
        assert estimates(f"gfrc/{name}", M002) == {"": pytest.approx(percentage)}
    names = ["R", "GF RATINGS", "GF ORIGIN"]
    leads = dict(zip(names, np.subtract(bing, google), strict=True))
    assert estimates("gfrc/bing-outperforms", M002) == pytest.approx(leads)


def test_s_measure_of_m002() -> None:
    table = printed_table("gfrc/table-1")
    conversations = plain_conversations("M002.csv", MOVIES)
    gains = {1: 0.5, 2: 1.0}
    s = {run: relevance(own, gains, 1250, first_word=0) for run, own in conversations.items()}
    published = table[table["nugget"] == "all"].set_index("run")["R"].astype(float)
    from_r = {run: value - published[run] for run, value in s.items()}
    assert estimates("gfrc/s-measure-is-r", M002) == pytest.approx(from_r)
    lead = s["bing-1"] - s["google-1"]
    assert estimates("gfrc/s-measure-outperforms", M002) == {"": pytest.approx(lead)}

    weights = table.loc[table["nugget"] != "all", ["run", "pw"]]
    ends = [nugget.end for own in conversations.values() for nugget in own]
    differences = 1 - np.array(ends) / 1250 - weights["pw"].astype(float).to_numpy()
    assert list(estimates("gfrc/table-1-eq-8", M002).values()) == pytest.approx(list(differences))


def test_famous_movies_and_wrong_addresses() -> None:
    shares = {}
    for run, nuggets in plain_conversations("M002.csv", MOVIES).items():
        famous = [nugget.membership["RATINGS"][-1] for nugget in nuggets]
        shares[run] = sum(famous) / len(famous)
    difference = shares["google-1"] - shares["bing-1"]
    assert estimates("gfrc/google-famous", M002) == {"": pytest.approx(difference)}
    addresses = printed_table("gfrc/addresses")["address"].tolist()
    wrong = estimates("gfrc/google-wrong-addresses", "M002 addresses")
    assert (sum(wrong.values()), len(wrong)) == (addresses.count("wrong"), len(addresses))
    footnotes = printed_table("gfrc/footnotes")
    repeats = footnotes.loc[footnotes["repeats an address"] == "yes", "figure"].tolist()
    figure_3, figure_4 = repeats.count("3"), repeats.count("4")
    notes = estimates("gfrc/urls-repeated", "published numbers")
    assert list(notes.values()) == [figure_3, figure_4 - figure_3]


# --- gfrc2: topic R112 ----------------------------------------------------------------------------


def test_the_scores_of_r112() -> None:
    names = ["EGNP", *(f"EGF {name}" for name in RESEARCHERS), "GFRC2"]
    published = printed_table("gfrc2/table-3").set_index("run").astype(float)
    for collection, conversations in (
        (R112, plain_conversations("R112.csv", RESEARCHERS)),
        (THREE_WORDS, with_three_words()),
    ):
        scores = {}
        for run, nuggets in conversations.items():
            scores[run] = dict(zip(names, plain_gfrc.gfrc2(nuggets, RESEARCHERS), strict=True))
        leads = {name: scores[COPWA][name] - scores[ORG][name] for name in names}
        assert estimates("gfrc2/copwa-outperforms", collection) == pytest.approx(leads)
    moved = {name: scores[COPWA][name] - published.loc[COPWA, name] for name in names}
    assert estimates("gfrc2/three-words", THREE_WORDS) == pytest.approx(moved)


def test_relevance_and_fairness_on_two_topics() -> None:
    gains = {1: 0.25, 2: 0.75}
    for collection, sets, file in (
        (R112, RESEARCHERS, "R112.csv"),
        (M002, MOVIES, "M002.csv"),
    ):
        smaller, closer = {}, {}
        for run, nuggets in plain_conversations(file, sets).items():
            r = relevance(nuggets, gains, 1000)
            fairness = plain_gfrc.gfrc(nuggets, sets)[1:3]
            utility, *expected = plain_gfrc.gfrc2(nuggets, sets)[:3]
            for name, gf, egf in zip(sets, fairness, expected, strict=True):
                smaller[f"{run}, {name}"] = r / gf
                closer[f"{run}, {name}"] = utility / egf - r / gf
        assert estimates("gfrc2/relevance-small", collection) == pytest.approx(smaller)
        assert estimates("gfrc2/scales", collection) == pytest.approx(closer)


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
    changed = read_so_far(with_three_words()[COPWA])
    for values, position, name, collection, cluster in (
        (copwa, 0, "utility-settles", R112, 3),
        (changed, 0, "utility-settles", THREE_WORDS, 3),
        (copwa, 1, "pronoun-settles", R112, 4),
    ):
        series = [value[position] for value in values]
        rise = series[cluster - 1] - series[cluster - 2]
        margins = [rise - abs(later - series[cluster - 1]) for later in series[cluster:]]
        found = estimates(f"gfrc2/{name}", collection)
        assert list(found.values()) == pytest.approx(margins)
    steps = [later[1] - earlier[1] for earlier, later in pairwise(org)]
    rises = [steps[3] - step for step in steps[:3]]
    assert list(estimates("gfrc2/org-improves", R112).values()) == pytest.approx(rises)


def test_a_nugget_of_another_h_index_moves_the_fairness_of_copwa() -> None:
    """The claim can fail: on these annotations it does not."""
    criterion = Criterion.parse(stated("gfrc2").loc["hindex-still", "criterion"])
    assert all(step in criterion for step in estimates("gfrc2/hindex-still", R112).values())
    nuggets = read_nuggets(project.data("conversations", "R112.csv"), RESEARCHERS)
    nuggets.memberships["HINDEX"][2] = [0, 0, 1, 0]
    clusters = gfrc2.user_clusters(nuggets, RESEARCHERS)
    of_copwa = clusters.loc[clusters["run"] == COPWA, "DistrSim HINDEX"]
    assert not all(step in criterion for step in np.diff(of_copwa))


def test_how_much_of_the_lead_comes_from_the_number_of_nuggets() -> None:
    conversations = plain_conversations("R112.csv", RESEARCHERS)
    numbers = len(conversations[COPWA]) / len(conversations[ORG])
    fairness = [plain_gfrc.gfrc2(conversations[run], RESEARCHERS)[1:3] for run in (COPWA, ORG)]
    shares = {}
    for name, of_copwa, of_org in zip(RESEARCHERS, *fairness, strict=True):
        shares[name] = math.log(numbers) / math.log(of_copwa / of_org)
    assert estimates("gfrc2/nuggets-explain-lead", R112) == pytest.approx(shares)


def test_one_more_nugget_of_the_largest_group_adds_one_seventh_user_cluster() -> None:
    frame = pd.read_csv(project.data("conversations", "R112.csv"), dtype=str, keep_default_na=False)
    more = changes.one_more_nugget(frame, RESEARCHERS, patience=1000, ordinal="rnod", nominal="jsd")
    egf = more[(more["run"] == COPWA) & (more["attribute"] == "PRONOUN")].set_index("added")["EGF"]
    seventh = plain_gfrc.similarity([6 / 7, 1 / 7, 0], RESEARCHERS["PRONOUN"]) / 1000
    assert egf[1] - egf[0] == pytest.approx(seventh, rel=1e-9)


@pytest.mark.parametrize(
    ("collection", "topic", "sets"), [(R112, "R112", RESEARCHERS), (M002, "M002", MOVIES)]
)
def test_every_move_of_a_nugget(collection: str, topic: str, sets: dict[str, AttributeSet]) -> None:
    """Words are marked one by one; a position is free where no other nugget and no user is."""
    turns = pd.read_csv(project.data("conversations", f"{topic}_turns.csv"))
    differences = []
    for run, nuggets in plain_conversations(f"{topic}.csv", sets).items():
        speaker = {}
        for turn in turns[turns["run"] == run].itertuples():
            last = 200 if np.isnan(turn.end) else int(turn.end)
            for word in range(int(turn.start), last + 1):
                speaker[word] = turn.speaker
        before = plain_gfrc.gfrc2(nuggets, sets)[-1]
        for number, nugget in enumerate(nuggets):
            others = nuggets[:number] + nuggets[number + 1 :]
            taken = {word for other in others for word in range(other.start, other.end + 1)}
            for start in range(1, nugget.start):
                words = range(start, start + nugget.end - nugget.start + 1)
                if taken & set(words) or {speaker[word] for word in words} != {"system"}:
                    continue
                moved = plain_gfrc.Nugget(1, words[0], words[-1], nugget.level, nugget.membership)
                in_order = sorted([*others, moved], key=lambda other: other.end)
                differences.append(plain_gfrc.gfrc2(in_order, sets)[-1] - before)
    for name, count in (
        ("earlier-raises", sum(difference > 1e-12 for difference in differences)),
        ("earlier-never-lowers", sum(difference < -1e-12 for difference in differences)),
    ):
        share = count / len(differences)
        assert estimates(f"gfrc2/{name}", collection) == {"": pytest.approx(share)}


# --- the harvest ----------------------------------------------------------------------------------


def harvest() -> list[dict[str, Any]]:
    path = project.data("conversations", "harvest", "qwen-1.5b.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()][1:]


def topic_types() -> dict[str, str]:
    topics = pd.read_csv(project.data("conversations", "harvest", "topics.csv"))
    return dict(zip(topics["topic"], topics["type"], strict=True))


def percentiles(
    statistic: Callable[[list[Any]], float], units: list[Any], draws: int = 2000
) -> list[float]:
    """Ends of a 95% interval: units resampled with replacement."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(draws):
        drawn = rng.integers(len(units), size=len(units))
        values.append(statistic([units[number] for number in drawn]))
    values.sort()
    return [values[draws // 40 - 1], values[-draws // 40 - 1]]


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
    row = COMMITTED["gfrc/trials-alike-here"][HARVEST][""]
    assert row.estimate == pytest.approx(share(pairs))
    assert row.n == len(pairs)
    assert [row.low, row.high] == pytest.approx(percentiles(share, pairs), abs=0.015)


def test_topics_that_end_differently() -> None:
    """Every pair of conversations of one type is compared, for two topics and for one."""
    kinds = topic_types()
    ends: dict[str, list[str]] = {}
    for line in harvest():
        if line["turn"] == 1:
            ends.setdefault(line["topic"], []).append("")
    for line in sorted(harvest(), key=lambda line: line["turn"]):
        ends[line["topic"]][line["trial"] - 1] += line["outcome"]

    def differ(a: str, b: str) -> float:
        pairs = combinations(ends[a], 2) if a == b else product(ends[a], ends[b])
        return mean(first != second for first, second in pairs)

    of_pair = {pair: differ(*pair) for pair in product(ends, ends)}

    def difference(topics: list[str]) -> float:
        two = [
            of_pair[pair]
            for pair in product(topics, topics)
            if pair[0] != pair[1] and kinds[pair[0]] == kinds[pair[1]]
        ]
        return mean(two) - mean(of_pair[topic, topic] for topic in topics)

    row = COMMITTED["gfrc/topics-differ"][HARVEST][""]
    assert row.estimate == pytest.approx(difference(list(ends)))
    assert row.n == len(ends)
    found = percentiles(difference, list(ends), draws=400)
    assert [row.low, row.high] == pytest.approx(found, abs=0.012)


def test_conversations_that_repeat_an_address() -> None:
    kinds = topic_types()
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
    row = COMMITTED["gfrc/urls-repeated-here"][HARVEST][""]
    assert row.estimate == pytest.approx(share(list(repeats.values())))
    ends = percentiles(share, list(repeats.values()))
    assert [row.low, row.high] == pytest.approx(ends, abs=0.02)


def test_unlisted_names_are_resampled_by_conversation() -> None:
    named = pd.read_csv(project.root() / "reports/gfrc_protocol/tables/names.csv")
    counts = list(zip(named["unlisted"].tolist(), named["named"].tolist(), strict=True))

    def unlisted(conversations: list[tuple[int, int]]) -> float:
        return sum(pair[0] for pair in conversations) / sum(pair[1] for pair in conversations)

    row = COMMITTED["gfrc/names-unlisted-here"][HARVEST][""]
    assert row.estimate == pytest.approx(unlisted(counts))
    assert row.n == 8
    assert [row.low, row.high] == pytest.approx(percentiles(unlisted, counts), abs=0.02)


def test_a_list_confirms_the_names_of_its_own_topic() -> None:
    """No Turing Award winner has a Nobel Prize in chemistry: the other list confirms nothing."""
    named = pd.read_csv(project.root() / "reports/gfrc_protocol/tables/names.csv")
    lists = pd.read_csv(project.data("conversations", "harvest", "known.csv"))
    names_by_topic = lists.groupby("topic")["name"].agg(list)
    other = dict(zip(names_by_topic.index, names_by_topic[::-1], strict=True))
    for line in harvest():
        text = line["system"].lower()
        assert not any(name.lower() in text for name in other.get(line["topic"], []))

    counts = list(zip(named["unlisted"].tolist(), named["named"].tolist(), strict=True))

    def listed(conversations: list[tuple[int, int]]) -> float:
        unlisted = sum(pair[0] for pair in conversations)
        return 1 - unlisted / sum(pair[1] for pair in conversations)

    row = COMMITTED["gfrc/own-list"][HARVEST][""]
    assert row.estimate == pytest.approx(listed(counts))
    assert row.n == 8
    assert [row.low, row.high] == pytest.approx(percentiles(listed, counts), abs=0.02)
