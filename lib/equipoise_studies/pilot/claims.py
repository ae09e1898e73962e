"""What the claims of gfrc and gfrc2 rest on: numbers of the case studies and of a harvest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.attributes import AttributeSet
from equipoise.measures import gfrc
from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters
from equipoise.measures.group_fairness import UTILITY, column_names, similarity
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_studies.pilot.tables import changed_topics, repeated_urls

WHOLE = "nothing is sampled, and other topics may differ"
PRINTED = "both numbers are printed"
_ROUNDING = 1e-12  # scores that differ by no more are equal


def smallest_lead(scores: pd.DataFrame, first: str, second: str) -> Evidence:
    """By how much the first run is ahead of the second where it leads least; runs are the index."""
    leads = scores.loc[first] - scores.loc[second]
    score = str(leads.idxmin()).strip()
    statement = f"smallest lead of {first} over {second} in any score, in {score}"
    return Evidence(statement, leads.min(), reason=WHOLE)


def percentage(scores: pd.DataFrame, score: str, first: str, second: str) -> Evidence:
    """A score of the first run in percent of that of the second; runs are the index."""
    ratio = 100 * float(scores.loc[first, score]) / float(scores.loc[second, score])
    statement = f"{score.strip()} of {first} in percent of that of {second}"
    return Evidence(statement, ratio, reason=WHOLE)


def clustered(
    values: pd.DataFrame, said: str, weights: str = "", by: Sequence[str] = ("topic",)
) -> Evidence:
    """Mean of the column ``value`` with an interval, clusters drawn with all observed of them.

    ``weights`` names a column of weights, for a ratio of sums. ``by``: columns that name a cluster.
    """
    table = values[list(by)].copy()
    table["weight"] = values[weights] if weights else 1.0
    table["weighted"] = values["value"] * table["weight"]
    sums = table.groupby(list(by), sort=False)[["weighted", "weight"]].sum().to_numpy(dtype=float)

    def mean(places: Integers) -> float:
        weighted, weight = sums[places].sum(axis=0)
        return float(weighted / weight)

    return Evidence(said, *resampled(mean, len(sums), np.random.default_rng(0)), n=len(sums))


def changed(turns: pd.DataFrame) -> Evidence:
    """Pairs of trials of one topic whose conversations end differently."""
    said = "share of pairs of trials of one topic with different outcomes"
    return clustered(changed_topics(turns), said, "pairs")


def repeating(turns: pd.DataFrame, kinds: list[str]) -> Evidence:
    """Conversations with two useful turns, on topics of these types, that repeat a URL."""
    urls = repeated_urls(turns[turns["type"].isin(kinds)], useful=True)
    said = "share of conversations with two useful turns in which a URL is given twice"
    return clustered(urls.assign(value=urls["repeated"] > 0), said)


def unlisted(named: pd.DataFrame) -> Evidence:
    """Share of the lines that name nothing of the list, of `count_names`; conversations drawn."""
    with_lines = named[named["named"] > 0]
    shares = with_lines.assign(value=with_lines["unlisted"] / with_lines["named"])
    said = "share of the lines with an address that name nothing of the list"
    return clustered(shares, said, "named", by=("run", "topic"))


def notes_on_repeated_addresses(footnotes: pd.DataFrame) -> Evidence:
    """Footnotes of Figure 4 on repeated addresses, more than of Figure 3, which has some, too."""
    repeats = footnotes["repeats an address"] == "yes"
    counts = repeats.groupby(footnotes["figure"]).sum()
    statement = (
        "footnotes that name repeated addresses, of Figure 4 (videos) more than of Figure 3 "
        f"(researchers; {counts['4']} and {counts['3']})"
    )
    return Evidence(statement, float(counts["4"] - counts["3"]), reason=PRINTED)


def wrong_addresses(annotations: pd.DataFrame) -> Evidence:
    """Percentage of Google's addresses that Figure 5 marks as those of other movies."""
    is_wrong = annotations["address"] == "wrong"
    statement = f"addresses of other movies in percent ({is_wrong.sum()} of {len(is_wrong)})"
    return Evidence(statement, 100 * float(is_wrong.mean()), reason=WHOLE)


def famous(nuggets: NuggetTable, first: str, second: str) -> Evidence:
    """Share of the most rated movies among the first run's nuggets, minus the second's."""
    relevant = nuggets.relevant("nonrelevant")
    run_of_nugget = nuggets.conversations["run"].to_numpy()[nuggets.conversation]
    most_rated = nuggets.memberships["RATINGS"][:, -1]
    shares = []
    for run in (first, second):
        shares.append(float(most_rated[relevant & (run_of_nugget == run)].mean()))
    statement = (
        "share of movies with most ratings among the relevant ones, "
        f"{first} ({shares[0]:.0%}) minus {second} ({shares[1]:.0%})"
    )
    return Evidence(statement, shares[0] - shares[1], reason=WHOLE)


def steadiness(values: pd.Series, after: int) -> Evidence:
    """Range of a score from cluster number ``after`` on, as a share of its range until then."""
    before, later = values.iloc[:after], values.iloc[after - 1 :]
    statement = (
        f"range of {values.name} from user cluster {after} on, as a share of its range until then"
    )
    return Evidence(statement, np.ptp(later) / np.ptp(before), reason=WHOLE)


def still(values: pd.Series) -> Evidence:
    """Whether a score moves at all."""
    statement = f"range of {values.name} over the user clusters"
    return Evidence(statement, float(np.ptp(values)), reason=WHOLE)


def improves_at(values: pd.Series, cluster: int) -> Evidence:
    """Rise of a score at a user cluster, minus its largest change until then."""
    changes = np.diff(values.to_numpy(dtype=float))
    rise, before = changes[cluster - 2], np.abs(changes[: cluster - 2]).max()
    statement = f"rise of {values.name} at user cluster {cluster}, minus its largest change before"
    return Evidence(statement, float(rise - before), reason=WHOLE)


def against_targets(
    nuggets: NuggetTable, sets: Mapping[str, AttributeSet], printed: pd.DataFrame
) -> pd.DataFrame:
    """DistrSim of each turn's distribution over the regions, as printed, and with either target."""
    turns = gfrc.turns(nuggets, sets)
    table = turns[["run", "turn"]].assign(turn=turns["turn"].astype(str))
    printed_similarity = printed.set_index(["run", "turn"])["DistrSim ORIGIN"].astype(float)
    of_turns = pd.MultiIndex.from_frame(table)
    table["printed"] = printed_similarity.loc[of_turns].to_numpy()

    achieved = turns[column_names(sets["ORIGIN"])[:-1]].to_numpy(dtype=float)
    uniform = sets["ORIGIN"].with_target("uniform")
    table["organisers"] = similarity(achieved, sets["ORIGIN"], "rnod", "jsd")
    table["uniform"] = similarity(achieved, uniform, "rnod", "jsd")
    return table


def one_more_nugget(
    frame: pd.DataFrame, attributes: Mapping[str, AttributeSet], **settings: Any
) -> pd.DataFrame:
    """EGF in its two factors, as given and with one more nugget of the most frequent group.

    ``frame`` is a table of nuggets as read from its file. The nugget added to each run stands at
    once behind its last one and is as long. Columns are run, attribute, nuggets, added (how many),
    leaving (the share of users that leave at a nugget), similarity (the mean DistrSim that those
    have met) and EGF, their product.
    """
    tables = []
    for added, nuggets in enumerate([frame, _with_one_more(frame, attributes)]):
        # An entity named twice would count once.
        nuggets = nuggets.astype(str).assign(entity="")
        clusters = user_clusters(nugget_table(nuggets, attributes), attributes, **settings)
        counts = clusters.groupby("run", sort=False).size().rename("nuggets").reset_index()
        table = factors(clusters).merge(counts)
        tables.append(table[table["part"] != UTILITY].assign(added=added))
    names = {
        "part": "attribute",
        "served": "share leaving",
        "mean": "mean similarity",
        "expected": "EGF",
    }
    columns = ["run", "attribute", "nuggets", "added", "share leaving", "mean similarity", "EGF"]
    return pd.concat(tables, ignore_index=True).rename(columns=names)[columns]


def _with_one_more(frame: pd.DataFrame, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """Nuggets with one more behind the last of each run, of the group that the run names most."""
    parts = [frame]
    for _, of_run in frame.groupby("run", sort=False):
        added = of_run.iloc[[-1]].astype({"end": int, "start": int})
        words = added["end"] - added["start"] + 1
        added["start"] = added["end"] + 1
        added["end"] = added["end"] + words
        for name in attributes:
            added[name] = of_run[name].mode().iloc[0]
        parts.append(added)
    return pd.concat(parts, ignore_index=True)


def quantity(more: pd.DataFrame, run: str, name: str) -> Evidence:
    """How far one more nugget of the majority's group raises EGF."""
    is_chosen = (more["run"] == run) & (more["attribute"] == name)
    egf = more[is_chosen].set_index("added")["EGF"]
    statement = f"rise of EGF ({name}) of {run} by one more nugget"
    return Evidence(statement, egf[1] - egf[0], reason=WHOLE)


def earlier_nuggets(
    frame: pd.DataFrame,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    **settings: Any,
) -> pd.DataFrame:
    """What GFRC2 becomes as one nugget moves to an earlier free place of a system turn.

    ``frame`` is a table of nuggets as read from its file, ``turns`` that of the turns. Every such
    move of every nugget: columns run, nugget (its number), start (the new one), passed (nuggets
    that now stand behind it), change (of GFRC2).
    """
    # An entity named twice would count once.
    frame = frame.assign(entity="").astype({"start": int, "end": int, "turn": int})
    moves = list[tuple[Any, ...]]()
    conversations = []
    for run, of_run in frame.groupby("run", sort=False):
        of_run = of_run.reset_index(drop=True)
        for place, start, turn in _earlier_places(of_run, turns[turns["run"] == run]):
            moved = of_run.copy()
            words = moved.loc[place, "end"] - moved.loc[place, "start"]
            moved.loc[place, ["start", "end", "turn"]] = start, start + words, turn
            moved["topic"] = str(len(moves))
            conversations.append(moved.sort_values("start"))
            passed = of_run["start"].between(start, of_run.loc[place, "start"] - 1).sum()
            moves.append((run, place + 1, start, passed))
    table = pd.DataFrame(moves, columns=["run", "nugget", "start", "passed"])
    scores = _gfrc2_of(pd.concat(conversations, ignore_index=True), attributes, **settings)
    before = _gfrc2_of(frame, attributes, **settings).set_index("run")["value"]
    after = scores.set_index("topic")["value"].loc[table.index.astype(str)]
    table["change"] = after.to_numpy() - table["run"].map(before).to_numpy()
    return table


def _gfrc2_of(
    frame: pd.DataFrame, attributes: Mapping[str, AttributeSet], **settings: Any
) -> pd.DataFrame:
    scores = gfrc2(nugget_table(frame.astype(str), attributes), attributes, **settings)
    return scores[scores["measure"] == "GFRC2"]


def _earlier_places(of_run: pd.DataFrame, turns: pd.DataFrame) -> list[tuple[int, int, int]]:
    """Each nugget's number, with the start and the turn of every earlier place that is free."""
    system_turns = turns[turns["speaker"] == "system"].sort_values("start")
    places = []
    for nugget in of_run.itertuples():
        others = of_run.drop(nugget.Index)
        words = nugget.end - nugget.start
        for turn in system_turns.itertuples():
            last_start = nugget.start - 1
            if not np.isnan(turn.end):  # the end of the last turn is not known
                last_start = min(last_start, int(turn.end) - words)
            for start in range(int(turn.start), last_start + 1):
                is_free = (others["end"] < start) | (others["start"] > start + words)
                if is_free.all():
                    places.append((nugget.Index, start, turn.turn))
    return places


def moves_by_run(moves: pd.DataFrame) -> pd.DataFrame:
    """How many moves of `earlier_nuggets` raise and lower GFRC2, by run and nuggets passed."""
    counts = moves.assign(
        raises=moves["change"] > _ROUNDING, lowers=moves["change"] < -_ROUNDING
    ).groupby(["run", "passed"], sort=False)
    table = counts.agg(
        moves=("change", "size"),
        raises=("raises", "sum"),
        lowers=("lowers", "sum"),
        least=("change", "min"),
        most=("change", "max"),
    )
    names = {"passed": "nuggets passed", "least": "least change", "most": "greatest change"}
    return table.reset_index().rename(columns=names)


def earlier_raises(moves: pd.DataFrame) -> Evidence:
    """Share of the moves of a nugget to an earlier place that raise GFRC2."""
    raises = moves["change"] > _ROUNDING
    statement = (
        f"share of the moves of one nugget to an earlier place that raise GFRC2 ({raises.sum()} of "
        f"{len(moves)})"
    )
    return Evidence(statement, float(raises.mean()), reason=WHOLE)


def earlier_lowers(moves: pd.DataFrame) -> Evidence:
    """The lowest change of GFRC2 by a move of one nugget to an earlier place."""
    lowers = int((moves["change"] < -_ROUNDING).sum())
    statement = (
        f"lowest change of GFRC2 by a move of one nugget to an earlier place ({lowers} lower it)"
    )
    return Evidence(statement, float(moves["change"].min()), reason=WHOLE)


def of_one_scale(scores: pd.DataFrame, relevance: str, fairness: str) -> pd.Series:
    """Score of relevance divided by the lowest score of fairness of its run; runs are the index.

    ``fairness``: how the names of the columns of fairness begin.
    """
    return scores[relevance] / scores.filter(regex=f"^{fairness} ").min(axis=1)


def quoted_gain(quote: str, table: pd.DataFrame) -> Evidence:
    """How many times the table's discounted gain of each run's first nugget its text quotes."""
    quoted = [float(number) for number in re.findall(r"\d\.\d{4}", quote)]
    printed = table.groupby("run", sort=False)["pw g"].first().astype(float)
    ratios = quoted / printed
    statement = "ratio of the quoted gain to the printed one, the same for both runs"
    return Evidence(statement, ratios.max(), reason=PRINTED)


def target_fits(similarities: pd.DataFrame, target: str) -> Evidence:
    """How far printed similarities are from those of a target, each in a column of its name."""
    gap = (similarities[target] - similarities["printed"]).abs().max()
    statement = f"largest difference from the printed DistrSim with the target {target}"
    return Evidence(statement, gap, reason=WHOLE)
