"""What the claims of gfrc and gfrc2 rest on: numbers of the case studies and of a harvest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
    """By how much the first run is ahead of the second where it leads least; runs are the index."""
    leads = scores.loc[first] - scores.loc[second]
    score = str(leads.idxmin()).strip()
    statement = f"smallest lead of {first} over {second} in any score, in {score}"
    return Evidence(statement, leads.min(), reason=WHOLE)


def clustered(values: pd.DataFrame, said: str, weights: str = "") -> Evidence:
    """Mean of the column ``value`` with an interval, topics drawn with all observed of them.

    ``weights`` names a column of weights, for a ratio of sums.
    """
    table = values[["topic"]].copy()
    table["weight"] = values[weights] if weights else 1.0
    table["weighted"] = values["value"] * table["weight"]
    sums = table.groupby("topic", sort=False)[["weighted", "weight"]].sum().to_numpy(dtype=float)

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
