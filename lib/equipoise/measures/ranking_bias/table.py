"""Every measure of bias in ranked lists as one tidy table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equipoise import options
from equipoise.arrays import Booleans, Floats, Integers, ratio
from equipoise.coverage import Seen, Unseen, first, judge, of_runs
from equipoise.declare import checked
from equipoise.measures.ranked_lists import (
    by_rank,
    spans_by_rank,
    sums_at,
    term_exposure,
    with_means,
)
from equipoise.measures.ranking_bias.document_neutrality import (
    fairr,
    ideal_fairr,
    neutrality,
    nfairr,
)
from equipoise.measures.ranking_bias.group_balance import (
    SIZES,
    arb,
    divergences,
    expected_divergences,
    fairness,
)
from equipoise.measures.ranking_bias.terms import TermCounts, TermGroups, count_terms
from equipoise.measures.tied_scores import mean_of_ties
from equipoise.problems import listed, refuse_twice, shown
from equipoise.tidy import tidy_runs


@dataclass(frozen=True)
class _Lists:
    """Ranked lists side by side: of each rank, the document as a row of the collection."""

    keys: pd.DataFrame  # run and topic of each list
    rows: Integers  # (lists, ranks), -1 for documents without a text, and beyond the end
    present: Booleans  # (lists, ranks): a document is ranked there

    @classmethod
    def of(cls, runs: pd.DataFrame, counts: TermCounts, depth: float) -> _Lists:
        """The first ranks of runs (columns run, topic, document, rank)."""
        table = by_rank(runs, counts.documents, depth)
        rows = table.fillna(-1).to_numpy(dtype=np.int64)
        return cls(table.index.to_frame(index=False), rows, table.notna().to_numpy())

    @property
    def with_text(self) -> Booleans:
        """Which ranks have a document with a text, shaped (lists, ranks)."""
        return self.present & (self.rows >= 0)


def _texts_seen(runs: pd.DataFrame, counts: TermCounts, lists: _Lists, depth: int) -> list[Seen]:
    """For each run, of how many documents of its first ranks the collection has a text."""
    code, names = pd.factorize(lists.keys["run"])
    n_with_text = np.bincount(code, lists.with_text[:, :depth].sum(axis=1)).astype(np.int64)
    n_ranked = np.bincount(code, lists.present[:, :depth].sum(axis=1)).astype(np.int64)
    without_text = runs[~runs["document"].isin(counts.documents)]

    def lacking(run: int) -> pd.Series:
        return without_text.loc[without_text["run"] == names[run], "document"]

    documents = pd.Index(runs["document"].unique())
    return of_runs(
        "a text", list(names), n_with_text, n_ranked, lacking, counts.documents, documents
    )


def _refuse_incomplete(texts: Sequence[Seen]) -> None:
    """Raise ValueError on the first run of which a ranked document has no text."""
    for seen in texts:
        if seen.found < seen.whole:
            raise ValueError(f"{seen.place}: {seen}; not for {listed(seen.lacking)}")


def _occurs(counts: TermCounts, groups: TermGroups) -> Booleans:
    """Which terms of the groups any text has, shaped (terms,)."""
    in_texts = pd.Series(counts.counts.sum(axis=0) > 0, counts.terms)
    return in_texts[list(groups.terms)].to_numpy()


def _terms_seen(counts: TermCounts, groups: TermGroups) -> Seen:
    """How many terms of each group the texts have."""
    occurs = _occurs(counts, groups)
    by_group = []
    for name, is_member in zip(groups.groups, groups.membership.T, strict=True):
        by_group.append(f"{name} {(occurs & is_member).sum()} of {is_member.sum()}")
    return Seen(
        "the terms",
        "terms",
        f"an occurrence in {len(counts.documents):,} texts ({', '.join(by_group)})",
        int(occurs.sum()),
        len(groups.terms),
        first(np.array(groups.terms)[~occurs]),
        asked=False,
    )


_ENOUGH_TEXTS = 5
"""Fewer texts than these say nothing by lacking the terms of a group."""


def _warn_of_absent_groups(counts: TermCounts, groups: TermGroups) -> None:
    """Warn of groups of which no text has a term: their side of a measure is never seen."""
    if len(counts.documents) < _ENOUGH_TEXTS:
        return
    occurs = _occurs(counts, groups)
    absent = []
    for name, is_member in zip(groups.groups, groups.membership.T, strict=True):
        if not occurs[is_member].any():
            absent.append(name)
    if absent:
        warnings.warn(
            f"no term of {listed(absent)} in any of {len(counts.documents):,} texts:"
            " whatever they hold counts for the other groups",
            Unseen,
            stacklevel=3,
        )


def _shares_with_text(lists: _Lists, cutoffs: Sequence[int], n_scores: int) -> Floats:
    """Share of the first k documents with a text, of each list, then of each run.

    Once for each of the scores, in the order of the table.
    """
    depths = np.asarray(cutoffs)
    n_with_text = pd.DataFrame(sums_at(lists.with_text.astype(np.float64), depths))
    n_ranked = pd.DataFrame(sums_at(lists.present.astype(np.float64), depths))
    run = lists.keys["run"]
    covered = pd.concat([n_with_text, n_with_text.groupby(run).sum()]).to_numpy()
    ranked = pd.concat([n_ranked, n_ranked.groupby(run).sum()]).to_numpy()
    shares = ratio(covered, ranked, np.nan)  # (lists and runs, cutoffs)
    return np.tile(shares, n_scores).T.ravel()


def _in_order_of_groups(
    target: options.Target | None, groups: TermGroups
) -> Sequence[float] | None:
    """The target as shares in the order of the groups."""
    if not isinstance(target, Mapping):
        return target
    if set(target) != set(groups.groups):
        raise ValueError(
            f"the target names {', '.join(target)}; the groups are {', '.join(groups.groups)}"
        )
    return [target[group] for group in groups.groups]


def _leaning_groups(
    towards: str | None, against: str | None, groups: Sequence[str]
) -> tuple[int, int]:
    """Places of the groups that ARB is positive and negative for."""
    for option, name in (("towards", towards), ("against", against)):
        if name is not None and name not in groups:
            raise ValueError(
                f"{option} is {shown(name)}; wanted one of the groups {listed(groups)}"
            )
    if against is None:
        against = next(group for group in groups if group != towards)
    if towards is None:
        towards = next(group for group in groups if group != against)
    if towards == against:
        raise ValueError(f"towards and against are both {towards}; wanted two groups")
    return groups.index(towards), groups.index(against)


def _check_runs(runs: pd.DataFrame) -> None:
    if runs.empty:
        raise ValueError("the runs hold no document")
    if (runs["topic"] == "all").any():
        raise ValueError("a topic is called 'all', as other programs name the mean over the topics")
    refuse_twice(runs, ["run", "topic", "document"], "the runs list a document")


def _ideals(
    background: str | pd.DataFrame,
    lists: _Lists,
    counts: TermCounts,
    omega: Floats,
    cutoffs: Sequence[int],
    base: float,
) -> Floats:
    """IFaiRR over the background, shaped (lists, cutoffs) or (cutoffs,)."""
    if isinstance(background, pd.DataFrame):
        absent = sorted(set(lists.keys["topic"]) - set(background["topic"]))
        if absent:
            raise ValueError(
                f"the background lacks {len(absent)} topics of the runs,"
                f" such as {', '.join(absent[:3])}"
            )
        documents = background[["topic", "document"]].drop_duplicates().assign(run="", rank=0)
        pool = _Lists.of(documents, counts, np.inf)
        ideals = ideal_fairr(omega[pool.rows], cutoffs, present=pool.present, base=base)
        return ideals[pd.Index(pool.keys["topic"]).get_indexer(pd.Index(lists.keys["topic"]))]
    if background == "own":
        return ideal_fairr(omega[lists.rows], cutoffs, present=lists.present, base=base)
    if background == "collection":
        return ideal_fairr(omega[:-1], cutoffs, base=base)
    raise ValueError(f"the background is a table, 'own' or 'collection', found {background!r}")


def _tidy(
    lists: _Lists, scores: Mapping[str, Floats], cutoffs: Sequence[int], attribute: str
) -> pd.DataFrame:
    """Scores, by name and shaped (lists, cutoffs), as rows, with the means over topics."""
    names = [f"{name}@{cutoff}" for name in scores for cutoff in cutoffs]
    values = pd.DataFrame(np.concatenate(list(scores.values()), axis=1), columns=names)
    wide = with_means(pd.concat([lists.keys, values], axis=1), names)
    table = wide.assign(attribute=attribute).melt(
        [*lists.keys, "attribute"], names, "measure", "value"
    )
    return table.assign(seen=_shares_with_text(lists, cutoffs, len(scores)))


@checked
def score_ranking_bias(
    runs: Any,
    counts: TermCounts | Mapping[str, str],
    groups: TermGroups | Mapping[str, str],
    *,
    cutoffs: options.Cutoffs = (10,),
    target: options.Target | None = None,
    background: options.Background | pd.DataFrame = "collection",
    attribute: options.AttributeName = "",
    threshold: options.Threshold = 1.0,
    decimals: options.Places | None = None,
    base: options.Base = 2.0,
    short: options.Short = "length",
    magnitude: options.Magnitude = "log",
    towards: options.Towards | None = None,
    against: options.Against | None = None,
    missing: options.Missing = "neutral",
    tied_scores: options.TiedScores = "ranked",
    by_group: options.ByGroup = False,
    undefined: options.Undefined = np.nan,
    least_seen: options.LeastSeen = 0.5,
) -> pd.DataFrame:
    """Every measure of this package for every run, topic and cut-off (thesis Eqs. 4.1 to 4.13).

    ``runs``: columns ``run, topic, document, rank``, a row for each ranked document, rank 1 best,
    or whatever `equipoise.tidy_runs` takes; ``counts`` may be texts by id, ``groups`` the group of
    each term. ``score`` where means over the orders of ties are wanted: exact for FaiRR and ARB,
    which are sums over ranks; of TED in all orders, up to 20,000 of a list, else in 1,000 drawn.
    ``target``: by the names of the groups, or in their order. ``background``: may also be a table
    with columns ``topic, document``. ``towards``, ``against``: where one is given, the other is the
    first group by name that is left. ``undefined``: NFaiRR where its ideal is zero. Returns columns
    ``run, topic, attribute, measure, value, seen``; measures ``NFaiRR@k``, ``FaiRR@k``, ``TED@k``,
    ``TED(proportional=False)@k``, ``TExFAIR@k``, ``TExFAIR(proportional=False)@k``, ``ARB@k``, and
    with ``by_group`` ``TermExposure(group=f)@k``. An empty topic is the mean over the topics; one
    undefined topic makes it undefined. ``seen``: the share of the first k documents with a text.
    Raises InputError where no ranked document of a run has one, or no term occurs in any text.

    Examples
    --------
    >>> from equipoise.measures.ranking_bias import count_terms
    >>> counts = count_terms([("d1", "he saw him"), ("d2", "rain")], ["he", "him", "she"])
    >>> groups = TermGroups.from_pairs([("he", "m"), ("him", "m"), ("she", "f")])
    >>> run = pd.DataFrame({"run": "bm25", "topic": "1", "document": ["d1", "d2"], "rank": [1, 2]})
    >>> scores = score_ranking_bias(run, counts, groups, cutoffs=[2])
    >>> scores[["topic", "measure", "value"]].round(3).head(4)
      topic   measure  value
    0     1  NFaiRR@2  0.631
    1        NFaiRR@2  0.631
    2     1   FaiRR@2  0.631
    3         FaiRR@2  0.631
    """
    runs = tidy_runs(runs)
    if not isinstance(groups, TermGroups):
        groups = TermGroups.from_pairs(groups.items())
    if not isinstance(counts, TermCounts):
        counts = count_terms(counts.items(), groups.terms)
    _check_runs(runs)
    shares = _in_order_of_groups(target, groups)
    place_towards, place_against = _leaning_groups(towards, against, groups.groups)
    # The last row, where -1 leads, stands for padding and for documents without a text.
    magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
    lengths = np.append(counts.lengths, 0)
    omega = neutrality(magnitudes, shares, threshold=threshold, decimals=decimals)

    tied = tied_scores == "expected"
    own_background = isinstance(background, str) and background == "own"
    deepest = max(cutoffs, default=1)
    lists = _Lists.of(runs, counts, np.inf if own_background or tied else deepest)
    texts = _texts_seen(runs, counts, lists, deepest)
    if missing == "refuse":
        _refuse_incomplete(texts)
    judge([*texts, _terms_seen(counts, groups)], least_seen)
    _warn_of_absent_groups(counts, groups)

    # Of each rank: neutrality, magnitude of each group, what ARB adds up, and length.
    neutral, terms, present = omega[lists.rows], magnitudes[lists.rows], lists.present
    leaning, sizes = SIZES[magnitude](terms), lengths[lists.rows]
    if tied:
        # FaiRR and ARB are sums over ranks: in the mean over orders, ties share what they bring.
        spans = spans_by_rank(runs)
        neutral, leaning = mean_of_ties(neutral, *spans), mean_of_ties(leaning, *spans)
        ted, discounted_ted = expected_divergences(
            terms, sizes, cutoffs, shares, present, short, *spans
        )
    else:
        ted, discounted_ted = divergences(terms, sizes, cutoffs, shares, present, short)
    fair = fairr(neutral, cutoffs, present=present, base=base)
    ideal = _ideals(background, lists, counts, omega, cutoffs, base)
    n_groups = len(groups.groups)
    scores = {
        "NFaiRR": nfairr(fair, ideal, undefined=undefined),
        "FaiRR": fair,
        "TED": discounted_ted,
        "TED(proportional=False)": ted,
        "TExFAIR": fairness(discounted_ted, shares, n_groups),
        "TExFAIR(proportional=False)": fairness(ted, shares, n_groups),
        "ARB": arb(
            leaning,
            cutoffs,
            towards=place_towards,
            against=place_against,
            magnitude="count",
            present=present,
        ),
    }
    if by_group:
        if tied:
            terms = mean_of_ties(terms / np.maximum(sizes, 1)[..., np.newaxis], *spans)
            sizes = np.ones(lists.rows.shape)
        exposure = term_exposure(terms, sizes, cutoffs, present=present)
        for place, name in enumerate(groups.groups):
            scores[f"TermExposure(group={name})"] = exposure[..., place]

    return _tidy(lists, scores, cutoffs, attribute)
