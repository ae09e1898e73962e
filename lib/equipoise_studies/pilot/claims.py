"""What the claims of gfrc and gfrc2 rest on: numbers of the case studies, and of a harvest by the same protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.attributes import AttributeSet
from equipoise.measures import gfrc
from equipoise.measures.gfrc2 import factors, user_clusters
from equipoise.measures.group_fairness import UTILITY, column_names, similarity
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_studies.pilot.tables import changed_topics, repeated_urls

WHOLE = "nothing is sampled, and other topics may differ"
PRINTED = "both numbers are printed"


def smallest_lead(scores: pd.DataFrame, first: str, second: str) -> Evidence:
    """By how much the first run is ahead of the second in the score where it leads least; runs are the index."""
    leads = scores.loc[first] - scores.loc[second]
    name = str(leads.idxmin()).strip()
    return Evidence(
        f"smallest lead of {first} over {second} in any score, in {name}", leads.min(), reason=WHOLE
    )


def clustered(values: pd.DataFrame, said: str, weights: str = "") -> Evidence:
    """A mean of the column ``value`` with an interval, the topics drawn with all that was observed of them.

    ``weights`` names a column of weights, for a ratio of sums.
    """
    weighed = values.assign(weight=values[weights] if weights else 1.0)
    weighed["part"] = weighed["value"] * weighed["weight"]
    sums = weighed.groupby("topic", sort=False)[["part", "weight"]].sum().to_numpy(dtype=float)

    def mean(places: Integers) -> float:
        part, weight = sums[places].sum(axis=0)
        return float(part / weight)

    return Evidence(said, *resampled(mean, len(sums), np.random.default_rng(0)), n=len(sums))


def changed(turns: pd.DataFrame) -> Evidence:
    """Pairs of trials of one topic whose conversations end differently."""
    said = "share of pairs of trials of one topic with different outcomes"
    return clustered(changed_topics(turns), said, "pairs")


def repeating(turns: pd.DataFrame, kinds: list[str]) -> Evidence:
    """Conversations with two useful turns, about topics of these types, in which a URL stands twice."""
    urls = repeated_urls(turns[turns["type"].isin(kinds)], useful=True)
    said = "share of conversations with two useful turns in which a URL is given twice"
    return clustered(urls.assign(value=urls["repeated"] > 0), said)


def steadiness(values: pd.Series, after: int) -> Evidence:
    """How far a score moves from its cluster number ``after`` on, as a share of how far it has moved until then."""
    before, later = values.iloc[:after], values.iloc[after - 1 :]
    said = (
        f"range of {values.name} from user cluster {after} on, as a share of its range until then"
    )
    return Evidence(said, np.ptp(later) / np.ptp(before), reason=WHOLE)


def still(values: pd.Series) -> Evidence:
    """Whether a score moves at all."""
    return Evidence(
        f"range of {values.name} over the user clusters", float(np.ptp(values)), reason=WHOLE
    )


def against_targets(
    nuggets: NuggetTable, sets: Mapping[str, AttributeSet], printed: pd.DataFrame
) -> pd.DataFrame:
    """DistrSim of each turn's distribution over the regions, as printed, and with either target."""
    turns = gfrc.turns(nuggets, sets)
    table = turns[["run", "turn"]].assign(turn=turns["turn"].astype(str))
    achieved = turns[column_names(sets["ORIGIN"])[:-1]].to_numpy(dtype=float)
    of_turn = printed.set_index(["run", "turn"])["DistrSim ORIGIN"].astype(float)
    table["printed"] = of_turn.loc[list(zip(table["run"], table["turn"], strict=True))].to_numpy()
    for name, target in {
        "organisers": sets["ORIGIN"],
        "uniform": sets["ORIGIN"].with_target("uniform"),
    }.items():
        table[name] = similarity(achieved, target, "rnod", "jsd")
    return table


def one_more_nugget(
    frame: pd.DataFrame, attributes: Mapping[str, AttributeSet], **settings: float | str
) -> pd.DataFrame:
    """EGF in its two factors, as given and with one more nugget of the group that each run names most.

    ``frame`` is a table of nuggets as read from its file. The nugget added to each run stands at
    once behind its last one and is as long. Columns are run, attribute, nuggets, added (how many),
    leaving (the share of users that leave at a nugget), similarity (the mean DistrSim that those
    have met) and EGF, their product.
    """
    tables = []
    for extra in (False, True):
        parts = [frame]
        for _, part in frame.groupby("run", sort=False):
            last = part.iloc[[-1]].astype({"end": int, "start": int})
            words = int(last["end"].iloc[0] - last["start"].iloc[0]) + 1
            commonest = {name: part[name].mode().iloc[0] for name in attributes}
            parts += (
                [last.assign(start=last["end"] + 1, end=last["end"] + words, **commonest)]
                if extra
                else []
            )
        table = pd.concat(parts, ignore_index=True).astype(str)
        table["entity"] = ""
        clusters = user_clusters(nugget_table(table, attributes), attributes, **settings)
        parts = factors(clusters).merge(
            clusters.groupby("run", sort=False).size().rename("nuggets").reset_index()
        )
        tables.append(parts[parts["part"] != UTILITY].assign(added=int(extra)))
    names = {
        "part": "attribute",
        "served": "share leaving",
        "mean": "mean similarity",
        "expected": "EGF",
    }
    columns = ["run", "attribute", "nuggets", "added", "share leaving", "mean similarity", "EGF"]
    return pd.concat(tables, ignore_index=True).rename(columns=names)[columns]


def quantity(more: pd.DataFrame, run: str, name: str) -> Evidence:
    """How far one more nugget of the majority's group raises EGF."""
    of_set = more[(more["run"] == run) & (more["attribute"] == name)].set_index("added")["EGF"]
    return Evidence(
        f"rise of EGF ({name}) of {run} by one more nugget", of_set[1] - of_set[0], reason=WHOLE
    )


def quoted_gain(quote: str, table: pd.DataFrame) -> Evidence:
    """How many times a table's discounted gains those are that its text quotes, of the first nugget of each run."""
    quoted = [float(number) for number in re.findall(r"\d\.\d{4}", quote)]
    ratios = quoted / table.groupby("run", sort=False)["pw g"].first().astype(float)
    return Evidence(
        "ratio of the quoted gain to the printed one, the same for both runs",
        ratios.max(),
        reason=PRINTED,
    )


def target_fits(similarities: pd.DataFrame, target: str) -> Evidence:
    """How far the printed similarities are from those that a target gives; columns printed, and one for each target."""
    gap = (similarities[target] - similarities["printed"]).abs().max()
    return Evidence(
        f"largest difference from the printed DistrSim with the target {target}", gap, reason=WHOLE
    )
