"""Every measure of bias in ranked lists as one tidy table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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
from equipoise.problems import listed, refuse_twice
from equipoise.tidy import tidy_runs


def _lists(
    runs: pd.DataFrame, counts: TermCounts, depth: float
) -> tuple[pd.DataFrame, Integers, Booleans]:
    """Run and topic of each list; its documents as rows of the collection, padded with -1; and which are no padding."""
    table = by_rank(runs, counts.documents, depth)
    return (
        table.index.to_frame(index=False),
        table.fillna(-1).to_numpy(dtype=np.int64),
        table.notna().to_numpy(),
    )


def _texts_seen(
    runs: pd.DataFrame, counts: TermCounts, of: pd.Series, held: Booleans, present: Booleans
) -> list[Seen]:
    """For each run, of how many ranked documents the collection has a text."""
    code, names = pd.factorize(of)
    some, every = (
        np.bincount(code, which.sum(axis=1)).astype(np.int64) for which in (held, present)
    )
    absent = runs[~runs["document"].isin(counts.documents)] if (some < every).any() else runs[:0]

    def lacking(run: int) -> pd.Series:
        return absent.loc[absent["run"] == names[run], "document"]

    ranked = pd.Index(runs["document"].unique())
    return of_runs("a text", list(names), some, every, lacking, counts.documents, ranked)


def _terms_seen(counts: TermCounts, groups: TermGroups) -> Seen:
    """How many terms of each group the texts have."""
    found = pd.Series(counts.counts.sum(axis=0) > 0, counts.terms)[list(groups.terms)].to_numpy()
    each = (
        f"{name} {(found & own).sum()} of {own.sum()}"
        for name, own in zip(groups.groups, groups.membership.T, strict=True)
    )
    terms = np.array(groups.terms)
    needed = f"an occurrence in {len(counts.documents):,} texts ({', '.join(each)})"
    return Seen(
        "the terms",
        "terms",
        needed,
        int(found.sum()),
        len(terms),
        first(terms[~found]),
        asked=False,
    )


_ENOUGH_TEXTS = 5


def _tell_absent(counts: TermCounts, groups: TermGroups) -> None:
    """Warn of groups of which no text has a term: their side of a measure is never seen. A few texts say nothing."""
    if len(counts.documents) < _ENOUGH_TEXTS:
        return
    occurs = pd.Series(counts.counts.sum(axis=0) > 0, counts.terms)[list(groups.terms)].to_numpy()
    if absent := [
        name
        for name, own in zip(groups.groups, groups.membership.T, strict=True)
        if not occurs[own].any()
    ]:
        found = f"no term of {listed(absent)} in any of {len(counts.documents):,} texts"
        warnings.warn(
            f"{found}: whatever they hold counts for the other groups", Unseen, stacklevel=3
        )


def _shares(
    keys: pd.DataFrame, held: Booleans, present: Booleans, cutoffs: Sequence[int], scores: int
) -> Floats:
    """Share of the first k documents with a text, of each list, then of each run, in the order of the table."""
    some, every = (
        sums_at(which.astype(np.float64), np.asarray(cutoffs)) for which in (held, present)
    )
    own = pd.DataFrame(np.concatenate([some, every], axis=1)).groupby(keys["run"]).sum().to_numpy()
    whole = np.concatenate([np.concatenate([some, every], axis=1), own])
    return np.tile(
        ratio(whole[:, : len(cutoffs)], whole[:, len(cutoffs) :], np.nan), scores
    ).T.ravel()


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
    towards: options.Towards = 1,
    against: options.Against = 0,
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
    with columns ``topic, document``. ``undefined``: NFaiRR where its ideal is zero. Returns columns
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
    >>> score_ranking_bias(run, counts, groups, cutoffs=[2])[["topic", "measure", "value"]].round(3).head(4)
      topic   measure  value
    0     1  NFaiRR@2  0.631
    1        NFaiRR@2  0.631
    2     1   FaiRR@2  0.631
    3         FaiRR@2  0.631
    """
    runs = tidy_runs(runs)
    groups = groups if isinstance(groups, TermGroups) else TermGroups.from_pairs(groups.items())
    counts = counts if isinstance(counts, TermCounts) else count_terms(counts.items(), groups.terms)
    if runs.empty:
        raise ValueError("the runs hold no document")
    if (runs["topic"] == "all").any():
        raise ValueError("a topic is called 'all', as other programs name the mean over the topics")
    refuse_twice(runs, ["run", "topic", "document"], "the runs list a document")
    if isinstance(target, Mapping):
        if set(target) != set(groups.groups):
            raise ValueError(
                f"the target names {', '.join(target)}; the groups are {', '.join(groups.groups)}"
            )
        target = [target[group] for group in groups.groups]
    # the last row stands for padding and for documents that are not in the collection
    magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
    lengths = np.append(counts.lengths, 0)
    omega = neutrality(magnitudes, target, threshold=threshold, decimals=decimals)

    own, tied = isinstance(background, str) and background == "own", tied_scores == "expected"
    keys, rows, present = _lists(runs, counts, np.inf if own or tied else max(cutoffs, default=1))
    held, deepest = present & (rows >= 0), max(cutoffs, default=1)
    texts = _texts_seen(runs, counts, keys["run"], held[:, :deepest], present[:, :deepest])
    if missing == "refuse" and (lacking := [one for one in texts if one.found < one.whole]):
        raise ValueError(f"{lacking[0].place}: {lacking[0]}; not for {listed(lacking[0].lacking)}")
    judge([*texts, _terms_seen(counts, groups)], least_seen)
    _tell_absent(counts, groups)

    if isinstance(background, pd.DataFrame):
        absent = sorted(set(keys["topic"]) - set(background["topic"]))
        if absent:
            raise ValueError(
                f"the background lacks {len(absent)} topics of the runs, such as {', '.join(absent[:3])}"
            )
        pool = background[["topic", "document"]].drop_duplicates().assign(run="", rank=0)
        pool_keys, pool_rows, pool_present = _lists(pool, counts, np.inf)
        ideal = ideal_fairr(omega[pool_rows], cutoffs, present=pool_present, base=base)
        ideal = ideal[pd.Index(pool_keys["topic"]).get_indexer(pd.Index(keys["topic"]))]
    elif own:
        ideal = ideal_fairr(omega[rows], cutoffs, present=present, base=base)
    elif background == "collection":
        ideal = ideal_fairr(omega[:-1], cutoffs, base=base)
    else:
        raise ValueError(f"the background is a table, 'own' or 'collection', found {background!r}")

    neutral, shown = omega[rows], magnitudes[rows]
    leaning = SIZES[magnitude](shown)
    if tied:
        spans = spans_by_rank(runs)
        neutral, leaning = mean_of_ties(neutral, *spans), mean_of_ties(leaning, *spans)
        plain, discounted = expected_divergences(
            shown, lengths[rows], cutoffs, target, present, short, *spans
        )
    else:
        plain, discounted = divergences(shown, lengths[rows], cutoffs, target, present, short)
    fair = fairr(neutral, cutoffs, present=present, base=base)
    scores = {
        "NFaiRR": nfairr(fair, ideal, undefined=undefined),
        "FaiRR": fair,
        "TED": discounted,
        "TED(proportional=False)": plain,
        "TExFAIR": fairness(discounted, target, len(groups.groups)),
        "TExFAIR(proportional=False)": fairness(plain, target, len(groups.groups)),
        "ARB": arb(
            leaning, cutoffs, towards=towards, against=against, magnitude="count", present=present
        ),
    }
    if by_group:
        shared = (
            mean_of_ties(shown / np.maximum(lengths[rows], 1)[..., np.newaxis], *spans)
            if tied
            else shown
        )
        exposure = term_exposure(
            shared, np.ones(rows.shape) if tied else lengths[rows], cutoffs, present=present
        )
        scores |= {
            f"TermExposure(group={name})": exposure[..., at]
            for at, name in enumerate(groups.groups)
        }
    names = [f"{name}@{k}" for name in scores for k in cutoffs]
    wide = pd.concat(
        [keys, pd.DataFrame(np.concatenate(list(scores.values()), axis=1), columns=names)], axis=1
    )
    table = (
        with_means(wide, names)
        .assign(attribute=attribute)
        .melt([*keys, "attribute"], names, "measure", "value")
    )
    return table.assign(seen=_shares(keys, held, present, cutoffs, len(scores)))
