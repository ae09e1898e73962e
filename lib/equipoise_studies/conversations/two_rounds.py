"""Outcomes of conversations by the two-round protocol (gfrc, section 5, Figures 2 to 4).

A system turn is useful (``o``), not useful (``x``), or missing (``-``) because the first turn ended
the conversation. Tables of turns have the columns ``run, topic, turn, outcome``, and some have
``type`` and ``system``, the answer. Run ``a-2`` is trial 2 of system ``a``.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from equipoise.arrays import Integers, ratio
from equipoise.statistics import resampled

_URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>()\[\]\"']+", re.IGNORECASE)
_ARTICLES = ("a", "an", "the")
_JOINING = "and|or|with|by"
"""Words between two people, not between the names of one."""


def outcome_pairs(turns: pd.DataFrame) -> pd.DataFrame:
    """Join both outcomes of each conversation to one word, such as ``ox``: run, topic, pair."""
    ordered = turns.sort_values("turn", kind="stable")
    pairs = ordered.groupby(["run", "topic"], sort=False)["outcome"].agg("".join)
    return pairs.rename("pair").reset_index()


def outcome_grid(turns: pd.DataFrame) -> pd.DataFrame:
    """Arrange outcomes as in gfrc's Figures 2 to 4: one row per topic, two columns per run."""
    grid = turns.assign(column=turns["run"] + " S" + turns["turn"].astype(str)).pivot_table(
        index="topic", columns="column", values="outcome", aggfunc="first", sort=False
    )
    columns = [f"{run} S{turn}" for run in turns["run"].unique() for turn in (1, 2)]
    return grid[columns].rename_axis(columns=None).reset_index()


def outcome_statistics(turns: pd.DataFrame) -> pd.DataFrame:
    """Compute %useful, average %useful and %recovery of each run (gfrc, section 5).

    Columns are ``run, topics, %useful 1, %useful 2, %average useful, unsuccessful, recovered,
    %recovery``; recovery is NaN where every first turn was useful.
    """
    scores = outcome_scores(turns)
    means = 100 * scores.pivot_table(index="run", columns="measure", values="value", sort=False)
    table = means[["useful 1", "useful 2", "average useful"]].add_prefix("%")
    table.insert(0, "topics", turns.groupby("run")["topic"].nunique())
    recovery = scores[scores["measure"] == "recovery"].groupby("run")["value"]
    table["unsuccessful"] = recovery.size().reindex(table.index, fill_value=0)
    table["recovered"] = recovery.sum().reindex(table.index, fill_value=0).astype(int)
    table["%recovery"] = 100 * ratio(table["recovered"], table["unsuccessful"], np.nan)
    return table.rename_axis(columns=None).reset_index()


def outcome_scores(turns: pd.DataFrame) -> pd.DataFrame:
    """Compute the contribution of each conversation to the shares.

    Columns are ``run, system, topic, measure, value``, and ``type`` if ``turns`` has it. Measures
    are ``useful 1``, ``useful 2``, ``average useful`` and ``recovery``, which exists only where the
    first turn failed.
    """
    keys = [name for name in ("run", "topic", "type") if name in turns]
    outcomes = turns.pivot_table(
        index=keys, columns="turn", values="outcome", aggfunc="first", sort=False
    )
    useful = (outcomes == "o").astype(float)
    scores = useful.add_prefix("useful ")
    scores["average useful"] = useful.mean(axis=1)
    scores["recovery"] = useful[2].where(useful[1] == 0)
    tidy = scores.rename_axis(columns="measure").reset_index().melt(keys, var_name="measure")
    tidy.insert(1, "system", tidy["run"].astype("str").str.replace(r"-\d+$", "", regex=True))
    return tidy.dropna(subset="value").reset_index(drop=True)


def outcome_intervals(turns: pd.DataFrame) -> pd.DataFrame:
    """Compute shares of each system with 95% intervals, over all topics, then by type of topic.

    Topics are resampled with all their trials, because trials of a topic are not independent.
    Columns are ``type`` (``all`` first), ``measure, topics, trials, value, low, high``.
    """
    rng = np.random.default_rng(0)
    scores = outcome_scores(turns)
    rows = []
    for part in (scores.assign(type="all"), scores):
        for (_, kind, measure), values in part.groupby(["system", "type", "measure"], sort=False):
            sums = values.groupby("topic", sort=False)["value"].agg(["sum", "size"]).to_numpy(float)

            def share(drawn: Integers, sums: NDArray[np.float64] = sums) -> float:
                total, count = sums[drawn].sum(axis=0)
                return float(total / count)

            interval = resampled(share, len(sums), rng, resamples=1999)
            rows.append([kind, measure, len(sums), values["run"].nunique(), *interval])
    columns = ["type", "measure", "topics", "trials", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def changed_topics(turns: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of pairs of trials of a topic that end differently: topic, value, pairs."""
    counts = outcome_pairs(turns).groupby(["topic", "pair"], sort=False).size()
    same = (counts * (counts - 1) / 2).groupby("topic", sort=False).sum()
    runs = counts.groupby("topic", sort=False).sum()
    pairs = runs * (runs - 1) / 2
    table = pd.DataFrame({"value": 1 - same / pairs, "pairs": pairs}).reset_index()
    return table[table["pairs"] > 0].reset_index(drop=True)


def repeated_urls(turns: pd.DataFrame) -> pd.DataFrame:
    """Count the URLs of each conversation, and those given before: run, topic, urls, repeated.

    Conversations without a URL have no row. Punctuation around a URL does not count.
    """
    ordered = turns.reset_index(drop=True).sort_values("turn", kind="stable")
    # a Markdown link names its address twice: [address](address)
    text = ordered["system"].str.replace(r"\[(https?://[^\]\s]+)\]\(\1\)", r"\1", regex=True)
    ordered["url"] = text.str.findall(r"https?://[^\s<>()\[\]\"']+")
    urls = ordered.explode("url").dropna(subset="url")
    urls["url"] = urls["url"].str.rstrip(".,:;!?")
    urls["repeated"] = urls.duplicated(["run", "topic", "url"])
    by_conversation = urls.sort_index(kind="stable").groupby(["run", "topic"], sort=False)
    return by_conversation["repeated"].agg(urls="size", repeated="sum").reset_index()


# --- names and addresses compared with a list -----------------------------------------------------


def _words(text: str) -> str:
    """Return the words of a text between blanks, without accents, in lower case."""
    letters = [c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)]
    words = re.findall(r"[^\W_]+", "".join(letters).casefold())
    return f" {' '.join(words)} "


def _name_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a name in `_words`; a name of two words may have middle names."""
    words = _words(name).split()
    between = " "
    if len(words) == 2 and words[0] not in _ARTICLES:
        between = rf"(?: (?!(?:{_JOINING}) )\w+){{0,2}} "
    return re.compile(f" {between.join(words)} ")


def _page(url: str) -> str:
    """Return an address without scheme, www and final slash."""
    decoded = unquote(url.rstrip(".,:;!?"))
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", decoded, flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return host.casefold() + slash + path.rstrip("/")


def count_names(turns: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Count lines with a name and an address, and how many of them a list does not confirm.

    ``known`` has the columns topic, name and url (empty where no address is known); topics without
    a name in it are left out. A line with an address names an entry of the list if the words of the
    name are in it, or in a line without address before it. The last line of an answer that was cut
    off (``finish`` is ``length``) does not count. No address is looked up.

    Columns are ``run, topic, named`` (lines with an address), ``unlisted`` (those without a name of
    the list), ``addresses``, ``unlisted_addresses`` and ``wrong`` (those of another name).
    """
    entries = {}
    for topic, part in known.groupby("topic", sort=False):
        names = [_name_pattern(name) for name in part["name"]]
        entries[str(topic)] = list(zip(names, map(_page, part["url"]), strict=True))

    is_cut = turns["finish"] == "length"
    without_last_line = turns["system"].str.replace(r"[^\n]*\Z", "", regex=True)
    answers = turns["system"].mask(is_cut, without_last_line)
    rows = []
    for (run, topic), texts in answers.groupby([turns["run"], turns["topic"]], sort=False):
        if topic in entries:
            counts = _counts("\n".join(texts).splitlines(), entries[topic])
            rows.append({"run": run, "topic": topic} | counts)
    return pd.DataFrame(rows)


def _counts(lines: list[str], entries: list[tuple[re.Pattern[str], str]]) -> dict[str, int]:
    """Count names and addresses of one conversation; ``entries``: names and pages of its topic."""
    listed_pages = {page for _, page in entries} - {""}
    counts = dict.fromkeys(["named", "unlisted", "addresses", "unlisted_addresses", "wrong"], 0)
    for line_before, line in pairwise(["", *lines]):
        urls = _URL.findall(line)
        if not urls:
            continue
        # A name may be in the line before, if that has no address of its own.
        text = line if _URL.search(line_before) else f"{line_before} {line}"
        words = _words(_URL.sub(" ", text))
        pages_of_names = {page for name, page in entries if name.search(words)}
        counts["named"] += 1
        counts["unlisted"] += not pages_of_names
        if not listed_pages:
            continue
        for page in {_page(url) for url in urls}:
            is_listed = page in listed_pages
            has_page_of_name = bool(pages_of_names - {""})
            counts["addresses"] += 1
            counts["unlisted_addresses"] += not is_listed
            counts["wrong"] += is_listed and has_page_of_name and page not in pages_of_names
    return counts


# --- topic set size -------------------------------------------------------------------------------


POWER = 0.8


def power_of_anova(topics: float, systems: int, variance: float, difference: float) -> float:
    r"""Compute the power of a one-way analysis of variance at 5% to distinguish systems.

    .. math::
        P(F' > F_{\alpha}(m - 1, m (n - 1))), \quad F' \sim F(m - 1, m (n - 1), \lambda), \quad
        \lambda = \frac{n \, D^2}{2 \sigma^2}

    with n topics, m systems and the smallest noncentrality that a difference D between the best and
    the worst system leaves: all others lie in the middle (Sakai 2016).

    >>> round(power_of_anova(60, 4, 1.0, 0.5**0.5), 4)
    0.9122
    """
    freedom = (systems - 1, systems * (topics - 1))
    noncentrality = topics * difference**2 / (2 * variance)
    return float(stats.ncf.sf(stats.f.isf(0.05, *freedom), *freedom, noncentrality))


def topics_needed(systems: int, variance: float, difference: float, power: float = POWER) -> int:
    """Return the fewest topics, at least two, with which `power_of_anova` reaches the power.

    >>> topics_needed(4, 1.0, 0.5**0.5, power=0.9)
    58
    """
    topics = 2
    if variance == 0:
        return topics
    while power_of_anova(topics, systems, variance, difference) < power:
        topics += 1
    return topics


def topic_set_size(
    values: NDArray[np.float64], difference: float, systems: int
) -> dict[str, float]:
    """Compute the topics needed for a power of 0.8, from the variance of a pilot's topics.

    ``values`` are scores, shape (topics, runs). Their variance is that within systems over topics.
    Its interval is by bootstrap over topics; ``needed_low`` and ``needed_high`` are for its ends.
    """

    def variance_within(drawn: Integers) -> float:
        return float(values[drawn].var(axis=0, ddof=1).mean())

    rng = np.random.default_rng(0)
    variance, low, high = resampled(variance_within, len(values), rng, resamples=1999)
    row: dict[str, float] = {"variance": variance, "low": low, "high": high}
    row |= {"difference": difference, "power": POWER}
    for name, size in {"needed": variance, "needed_low": low, "needed_high": high}.items():
        row[name] = topics_needed(systems, size, difference)
    return row | {"power_now": power_of_anova(len(values), systems, variance, difference)}
