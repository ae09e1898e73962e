"""Outcomes of conversations of any number of rounds: shares with intervals, tests, names.

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

from equipoise.arrays import Floats, Integers
from equipoise.coverage import Seen, first, judge
from equipoise.options import Resamples, Seed
from equipoise.problems import need_columns
from equipoise.statistics import compare_pairs, resampled

_URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>()\[\]\"']+", re.IGNORECASE)
_ARTICLES = ("a", "an", "the")
_JOINING = "and|or|with|by"
"""Words that stand between two people, not between the names of one."""
_TRIAL = r"^(.*?)(?:-(\d+))?$"


def outcome_scores(turns: pd.DataFrame) -> pd.DataFrame:
    """What each conversation adds to the shares: run, system, topic, measure, value (and type).

    ``turns`` (columns run, topic, turn, outcome, perhaps type) are as `read_harvest` gives them;
    run ``a-2`` is trial 2 of system a. Measures are useful 1, useful 2, ..., average useful, and
    recovery: of a useless turn, whether the next is useful; the mean over those of a conversation,
    and no row where it has none. A turn that was not held is not useful.
    """
    need_columns(turns, ["run", "topic", "turn", "outcome"])
    keys = ["run", "topic"]
    if "type" in turns:
        keys.append("type")
    wide = turns.pivot_table(
        index=keys, columns="turn", values="outcome", aggfunc="first", sort=False
    )
    useful = (wide == "o").to_numpy()
    failed = ~useful[:, :-1]
    recovered = (failed & useful[:, 1:]).sum(axis=1)
    chances = failed.sum(axis=1)

    values = {}
    for place, turn in enumerate(wide.columns):
        values[f"useful {turn}"] = useful[:, place].astype(float)
    values["average useful"] = useful.mean(axis=1)
    values["recovery"] = np.divide(
        recovered, chances, out=np.full(len(wide), np.nan), where=chances > 0
    )
    about = wide.index.to_frame(index=False)
    about.insert(1, "system", about["run"].astype("str").str.extract(_TRIAL)[0])
    parts = [about.assign(measure=name, value=value) for name, value in values.items()]
    tidy = pd.concat(parts, ignore_index=True)
    return tidy.dropna(subset="value").reset_index(drop=True)


def outcome_intervals(
    turns: pd.DataFrame, *, resamples: Resamples = 1999, seed: Seed = 0
) -> pd.DataFrame:
    """Shares of each system with 95 % intervals, over all topics, then by type of topic.

    Topics are drawn with all their trials. Columns are system, type ("" for all), measure, topics,
    trials, value, low, high; recovery is over the topics that have a useless turn, each weighing as
    much as it has trials with one.
    """
    rng = np.random.default_rng(seed)
    scores = outcome_scores(turns)
    parts = [scores.assign(type="")]
    if "type" in scores:
        parts.append(scores)
    rows = []
    for keys, part in pd.concat(parts).groupby(["system", "type", "measure"], sort=False):
        by_topic = part.groupby("topic", sort=False)["value"].agg(["sum", "size"])
        sums = by_topic.to_numpy(dtype=np.float64)
        share_and_ends = _share_with_interval(sums, resamples, rng)
        rows.append([*keys, len(sums), part["run"].nunique(), *share_and_ends])
    columns = ["system", "type", "measure", "topics", "trials", "value", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    # all topics first
    return table.sort_values("type", key=lambda kind: kind != "", kind="stable", ignore_index=True)


def _share_with_interval(
    sums: Floats, resamples: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Ratio of the two columns' sums over topics, with its interval; one topic has none."""

    def share(places: Integers) -> float:
        total, count = sums[places].sum(axis=0)
        return float(total / count)

    if len(sums) == 1:
        only = share(np.array([0]))
        return only, only, only
    return resampled(share, len(sums), rng, resamples=resamples)


def outcome_tests(turns: pd.DataFrame, *, between: str = "system") -> pd.DataFrame:
    """Paired t-tests between systems, or rounds, of means over trials, with Holm's correction.

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
        systems = part["system"].nunique()
        systems_of_topic = part.groupby("topic")["system"].transform("size")
        shared = part[systems_of_topic == systems]
        if systems > 1 and len(shared) > systems:
            comparison = compare_pairs(shared, run="system", correction="holm")
            comparison.insert(0, "measure", name)
            tables.append(comparison)
    if not tables:
        raise ValueError(
            "a paired test needs two systems, or rounds, with at least two topics in common"
        )
    return pd.concat(tables, ignore_index=True)


# --- names and addresses against a list -----------------------------------------------------------


def _words(text: str) -> str:
    """A text as its words, between blanks, without accents and in small letters."""
    letters = []
    for letter in unicodedata.normalize("NFKD", text):
        if not unicodedata.combining(letter):
            letters.append(letter)
    words = re.findall(r"[^\W_]+", "".join(letters).casefold())
    return f" {' '.join(words)} "


def _pattern(name: str) -> re.Pattern[str]:
    """What finds a name in `_words`, with up to two middle names where it has none."""
    words = _words(name).split()
    between = " "
    if len(words) == 2 and words[0] not in _ARTICLES:
        between = rf"(?: (?!(?:{_JOINING}) )\w+){{0,2}} "
    return re.compile(f" {between.join(words)} ")


def _address(url: str) -> str:
    """What of an address tells pages apart."""
    decoded = unquote(url.rstrip(".,:;!?"))
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", decoded, flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return host.casefold() + slash + path.rstrip("/")


def count_names(turns: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Count what conversations name with an address, and what of it a list does not bear out.

    ``turns`` has the columns run, topic, turn, system, and perhaps finish: the last line of an
    answer that was cut off (``length``) is left out. ``known`` has topic, name and url, the latter
    empty where no address is known. A line with an address names what the list has for its topic,
    if the words of such a name stand in it, or in a line without address before it; a name of two
    words may have one or two middle names there, as Donald E. Knuth for Donald Knuth. Columns are
    run, topic, named (lines with an address), unlisted (those without a name of the list),
    addresses (of topics that have any in the list), unlisted_addresses (not in the list) and wrong
    (those of another name). Only topics of the list are counted. Nothing is asked of the network.
    """
    need_columns(turns, ["run", "topic", "system"])
    need_columns(known, ["topic", "name", "url"])
    listed = {}
    for topic, part in known.groupby("topic", sort=False):
        names = [_pattern(name) for name in part["name"]]
        pages = [_address(url) for url in part["url"]]
        listed[str(topic)] = list(zip(names, pages, strict=True))
    _judge_topics(turns, list(listed))

    answers = _without_cut_lines(turns)
    rows = []
    for (run, topic), texts in answers.groupby([turns["run"], turns["topic"]], sort=False):
        if str(topic) in listed:
            lines = "\n".join(texts).splitlines()
            rows.append({"run": run, "topic": topic} | _counts(lines, listed[str(topic)]))
    columns = ["run", "topic", "named", "unlisted", "addresses", "unlisted_addresses", "wrong"]
    return pd.DataFrame(rows, columns=columns)


def _judge_topics(turns: pd.DataFrame, listed_topics: list[str]) -> None:
    """Say how many topics have a name in the list, and refuse where none has."""
    topics = pd.Series(turns["topic"].astype("str").unique(), dtype="str")
    unlisted = topics[~topics.isin(listed_topics)]
    share = "topics", "a name in the list", len(topics) - len(unlisted), len(topics)
    examples = first(unlisted), tuple(listed_topics[:3])
    judge([Seen("the conversations", *share, *examples, asked=False)])


def _without_cut_lines(turns: pd.DataFrame) -> pd.Series:
    """The answers, without the last line of those that were cut off."""
    if "finish" not in turns:
        return turns["system"]
    without_last_line = turns["system"].str.replace(r"[^\n]*\Z", "", regex=True)
    return turns["system"].mask(turns["finish"] == "length", without_last_line)


def _counts(lines: list[str], listed: list[tuple[re.Pattern[str], str]]) -> dict[str, int]:
    """What `count_names` counts, of one conversation; ``listed``: names and pages of its topic."""
    listed_pages = {page for _, page in listed} - {""}
    counts = dict.fromkeys(["named", "unlisted", "addresses", "unlisted_addresses", "wrong"], 0)
    for line_before, line in pairwise(["", *lines]):
        urls = _URL.findall(line)
        if not urls:
            continue
        # A name may stand in the line before, if that has no address of its own.
        text = line if _URL.search(line_before) else f"{line_before} {line}"
        words = _words(_URL.sub(" ", text))
        pages_of_names = {page for name, page in listed if name.search(words)}
        counts["named"] += 1
        counts["unlisted"] += not pages_of_names
        if not listed_pages:
            continue
        for page in {_address(url) for url in urls}:
            is_listed = page in listed_pages
            has_page_of_name = bool(pages_of_names - {""})
            counts["addresses"] += 1
            counts["unlisted_addresses"] += not is_listed
            counts["wrong"] += is_listed and has_page_of_name and page not in pages_of_names
    return counts
