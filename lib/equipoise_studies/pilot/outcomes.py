"""Outcomes of conversations of any number of rounds: useful turns and recovery with intervals, tests, invented names.

A unit is a topic: its trials are drawn together, so that a topic's trials are not taken for
independent ones.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise.coverage import Seen, first, judge
from equipoise.options import Resamples, Seed
from equipoise.problems import need_columns
from equipoise.statistics import compare_pairs, resampled

_URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>()\[\]\"']+", re.IGNORECASE)
_TRIAL = r"^(.*?)(?:-(\d+))?$"


def outcome_scores(turns: pd.DataFrame) -> pd.DataFrame:
    """What each conversation adds to the shares: columns run, system, topic, measure, value and, where given, type.

    ``turns`` (columns run, topic, turn, outcome) are as `read_harvest` gives them; run ``a-2`` is
    trial 2 of system a. Measures are useful 1, useful 2, ..., average useful, and recovery: of a
    useless turn, whether the next is useful; the mean over those of a conversation, and no row
    where it has none. A turn that was not held is not useful.
    """
    need_columns(turns, ["run", "topic", "turn", "outcome"])
    keys = ["run", "topic", *(name for name in ("type",) if name in turns)]
    wide = turns.pivot_table(
        index=keys, columns="turn", values="outcome", aggfunc="first", sort=False
    )
    useful = (wide == "o").to_numpy()
    failed, mended = ~useful[:, :-1], ~useful[:, :-1] & useful[:, 1:]
    chances = failed.sum(axis=1)
    values = {
        f"useful {turn}": useful[:, place].astype(float) for place, turn in enumerate(wide.columns)
    }
    values["average useful"] = useful.mean(axis=1)
    values["recovery"] = np.divide(
        mended.sum(axis=1), chances, out=np.full(len(wide), np.nan), where=chances > 0
    )
    about = wide.index.to_frame(index=False)
    about.insert(1, "system", about["run"].astype("str").str.extract(_TRIAL)[0])
    tidy = pd.concat(
        [about.assign(measure=name, value=value) for name, value in values.items()],
        ignore_index=True,
    )
    return tidy.dropna(subset="value").reset_index(drop=True)


def outcome_intervals(
    turns: pd.DataFrame, *, resamples: Resamples = 1999, seed: Seed = 0
) -> pd.DataFrame:
    """Shares of each system with 95 % intervals, the topics drawn with all their trials; then by type of topic.

    Columns are system, type ("" for all), measure, topics, trials, value, low, high; recovery is
    over the topics that have a useless turn, each weighing as much as it has trials with one.
    """
    scores, rng = outcome_scores(turns), np.random.default_rng(seed)
    parts = [scores.assign(type=""), *([scores] if "type" in scores else [])]
    rows = []
    for keys, part in pd.concat(parts).groupby(["system", "type", "measure"], sort=False):
        sums = (
            part.groupby("topic", sort=False)["value"]
            .agg(["sum", "size"])
            .to_numpy(dtype=np.float64)
        )

        def mean(places: np.ndarray, sums: Floats = sums) -> float:
            total, count = sums[places].sum(axis=0)
            return float(total / count)

        found = (
            resampled(mean, len(sums), rng, resamples=resamples)
            if len(sums) > 1
            else (mean(np.array([0])),) * 3
        )
        rows.append([*keys, len(sums), part["run"].nunique(), *found])
    columns = ["system", "type", "measure", "topics", "trials", "value", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values("type", key=lambda kind: kind != "", kind="stable", ignore_index=True)


def outcome_tests(turns: pd.DataFrame, *, between: str = "system") -> pd.DataFrame:
    """Paired t-tests between systems, or rounds, of the mean over each topic's trials, with Holm's correction.

    ``between`` is ``system``, or ``round`` for useful 1 against useful 2 and so on within each
    system. Topics that one of two lacks, as recovery where nothing failed, are left out of that
    pair. Columns are measure, then those of `equipoise.statistics.compare_pairs`.
    """
    scores = outcome_scores(turns)
    if between == "round":
        of_rounds = scores[scores["measure"].str.fullmatch(r"useful \d+")]
        scores = of_rounds.assign(measure=of_rounds["system"], system=of_rounds["measure"])
    means = scores.groupby(["measure", "system", "topic"], sort=False)["value"].mean().reset_index()
    tables = []
    for name, part in means.groupby("measure", sort=False):
        systems, there = part["system"].nunique(), part.groupby("topic")["system"].transform("size")
        shared = part[there == systems]
        if systems > 1 and len(shared) > systems:
            tested = compare_pairs(shared, run="system", correction="holm")
            tables.append(tested.assign(measure=name)[["measure", *tested.columns]])
    if not tables:
        raise ValueError(
            "a paired test needs two systems, or rounds, with at least two topics in common"
        )
    return pd.concat(tables, ignore_index=True)


# --- names and addresses against a list -----------------------------------------------------------


def _words(text: str) -> str:
    """A text as its words, between blanks, without accents and in small letters."""
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(letter)
    )
    words = " ".join(re.findall(r"[^\W_]+", plain.casefold()))
    return f" {words} "


def _address(url: str) -> str:
    """What of an address tells pages apart."""
    bare = re.sub(
        r"^(?:https?://)?(?:www\.)?", "", unquote(url.rstrip(".,:;!?")), flags=re.IGNORECASE
    )
    host, slash, path = bare.partition("/")
    return host.casefold() + slash + path.rstrip("/")


def count_names(turns: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Count what conversations name with an address, and what of it a list does not bear out.

    ``turns`` has the columns run, topic, turn, system, and perhaps finish: the last line of an
    answer that was cut off (``length``) is left out. ``known`` has topic, name and url, the latter
    empty where no address is known. A line with an address names what the list has for its topic,
    if the words of such a name stand in it, or in a line without address before it. Columns are
    run, topic, named (lines with an address), unlisted (those without a name of the list),
    addresses (of topics that have any in the list), unlisted_addresses (not in the list) and wrong
    (those of another name). Only topics of the list are counted. Nothing is asked of the network.
    """
    need_columns(turns, ["run", "topic", "system"])
    need_columns(known, ["topic", "name", "url"])
    listed = {str(topic): part for topic, part in known.groupby("topic", sort=False)}
    asked = pd.Series(turns["topic"].astype("str").unique(), dtype="str")
    without = asked[~asked.isin(list(listed))]
    share = "topics", "a name in the list", len(asked) - len(without), len(asked)
    judge([Seen("the conversations", *share, first(without), tuple(listed)[:3], asked=False)])
    cut = (
        turns["finish"] == "length"
        if "finish" in turns
        else pd.Series(data=False, index=turns.index)
    )
    whole = turns["system"].mask(cut, turns["system"].str.replace(r"[^\n]*\Z", "", regex=True))
    rows = []
    for (run, topic), said in whole.groupby([turns["run"], turns["topic"]], sort=False):
        if str(topic) not in listed:
            continue
        names = [
            (_words(name), _address(url))
            for name, url in listed[str(topic)][["name", "url"]].to_numpy()
        ]
        pages = {page for _, page in names} - {""}
        counts = np.zeros(5, dtype=np.int64)
        lines = "\n".join(said).splitlines()
        for before, line in pairwise(["", *lines]):
            if not (found := _URL.findall(line)):
                continue
            text = _words(_URL.sub(" ", line if _URL.search(before) else f"{before} {line}"))
            meant = {page for name, page in names if name in text}
            counts[:2] += 1, not meant
            for page in {_address(url) for url in found} if pages else ():
                counts[2:] += (
                    1,
                    page not in pages,
                    page in pages and bool(meant - {""}) and page not in meant,
                )
        rows.append([run, topic, *counts.tolist()])
    return pd.DataFrame(
        rows,
        columns=["run", "topic", "named", "unlisted", "addresses", "unlisted_addresses", "wrong"],
    )
