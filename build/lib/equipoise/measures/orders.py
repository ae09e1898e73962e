"""What the order of a conversation does to the scores of systems.

A score table has one row per system, conversation and order: ``run, topic, permutation, value``; the value is the mean
of a measure over the utterances of the conversation, and permutation 0 is the order of the script. The functions
below make Tables 2 and 3 and Figures 1 and 2 of the permutation study from such a table, and ask how many orders a
ranking of systems needs.

References
----------
permutations, section 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats
from equipoise.measures.effectiveness import parsed_measure

ORIGINAL = 0
"""Number of the order of the script among the permutations of a conversation."""

_COLUMNS = ("run", "topic", "permutation", "value")


def score_alternatives(
    queries: Sequence[str],
    rankings: ArrayLike,
    documents: Sequence[str],
    qrels: pd.DataFrame,
    measure: str = "nDCG@3",
) -> Floats:
    """Score many alternative rankings of the same queries with ir_measures.

    ``queries``: Query of each ranking; a query may have any number of rankings. ``rankings`` (shaped (rankings,
    k)): Places in `documents`, best first. ``documents``: Ids. ``qrels`` (columns query, document, grade): All
    judgements, of documents that cannot be retrieved too: the ideal ranking is made from them. ``measure``: any
    name that ir_measures parses; k must reach its cut-off. Returns ndarray, shaped (rankings,).

    permutations, section 4 (nDCG with cut-off 3: gain = grade, discount log2(rank + 1)). Every different ranking of a
    query is scored once, by trec_eval through ir_measures.
    """
    ranked = np.asarray(rankings, dtype=np.intp)
    if ranked.ndim != 2 or len(ranked) != len(queries):
        raise ValueError(f"{len(queries)} rankings are wanted, one a query, found shape {ranked.shape}")
    parsed = parsed_measure(measure)
    names, codes = np.unique(np.array(queries, dtype=object).astype(str), return_inverse=True)
    judged = _by_query(qrels[qrels["query"].isin(names)], "grade")
    unjudged = [str(name) for name in names if name not in judged]
    if unjudged:
        raise ValueError(f"no judgement for {', '.join(unjudged)}: leave these queries out, or judge them")
    different, which = np.unique(np.column_stack([codes, ranked]), axis=0, return_inverse=True)
    # one run holds one ranking of each query: the n-th run holds the n-th different ranking of every query
    run = np.arange(len(different)) - np.searchsorted(different[:, 0], different[:, 0])
    evaluator = ir_measures.evaluator([parsed], judged)
    values = np.empty(len(different))
    ids = np.array(documents, dtype=object)
    falling = np.arange(ranked.shape[1], 0, -1, dtype=np.float64).tolist()
    for number in range(run.max(initial=-1) + 1):
        rows = np.flatnonzero(run == number)
        listed = zip(names[different[rows, 0]], ids[different[rows, 1:]], strict=True)
        rankings_now = {str(name): dict(zip(best, falling, strict=True)) for name, best in listed}
        found = {result.query_id: result.value for result in evaluator.iter_calc(rankings_now)}
        values[rows] = [found[name] for name in names[different[rows, 0]]]
    return values[which.ravel()]


def _by_query(table: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """A column by query and document, as ir_measures takes it."""
    nested: dict[str, dict[str, Any]] = {}
    columns = (table[name].to_numpy(dtype=object) for name in ("query", "document", column))
    for query, document, value in zip(*columns, strict=True):
        nested.setdefault(query, {})[document] = value
    return nested


def nearest_context(orders: ArrayLike, provides: ArrayLike) -> NDArray[np.intp]:
    """Utterance that each utterance takes its context from: the nearest earlier one that provides any.

    ``orders`` (shaped (orders, n)): Utterance numbers, first uttered first. ``provides`` (shaped (n,)): which
    utterances provide a context; all True gives the previous utterance. Returns ndarray of int, shaped (orders, n):
    At each position, the number of the providing utterance; -1 where there is none.

    permutations, section 4.1.
    """
    stacked = np.asarray(orders, dtype=np.intp)
    gives = np.asarray(provides, dtype=bool)[stacked]
    nearest = np.maximum.accumulate(np.where(gives, np.arange(stacked.shape[1]), -1), axis=1)
    before = np.concatenate([np.full((len(stacked), 1), -1), nearest[:, :-1]], axis=1)
    return np.where(before < 0, -1, np.take_along_axis(stacked, np.maximum(before, 0), axis=1))


def run_scores(run: pd.DataFrame, qrels: pd.DataFrame, measure: str = "nDCG@3") -> pd.DataFrame:
    """Score the ranking of every query of a run with ir_measures.

    ``run`` (columns query, document, score): Higher scores are ranked higher; equal scores as trec_eval does, by
    document id downwards. ``qrels`` (columns query, document, grade): Judgements; queries of the run without any
    are left out, judged queries without a ranking score 0. ``measure``: any name that ir_measures parses. Returns
    DataFrame, columns query, topic, value: One row per judged query, sorted by query; topic is what stands before
    the underscore.

    permutations, section 4.
    """
    parsed = parsed_measure(measure)
    results = ir_measures.iter_calc([parsed], _by_query(qrels, "grade"), _by_query(run, "score"))
    values = {result.query_id: result.value for result in results}
    queries = sorted(set(qrels["query"]))
    rows = [(query, query.partition("_")[0], values.get(query, 0.0)) for query in queries]
    return pd.DataFrame(rows, columns=["query", "topic", "value"])


@dataclass(frozen=True, eq=False)
class ContextScores:
    """Scores of the utterances of a conversation by one system whose context is at most one earlier utterance.

    ``alone`` (shaped (n,)): Score of each utterance without a context. ``after`` (shaped (n, n)): row v, column u:
    score of u with context v. ``provides`` (shaped (n,)): which utterances can be a context: u takes the nearest
    earlier one. All True means the previous utterance.
    """

    alone: Floats
    after: Floats
    provides: NDArray[np.bool_]

    def of(self, orders: ArrayLike) -> Floats:
        """Score of the utterance at each position of each order.

        ``orders`` (shaped (orders, n)): Utterance numbers, first uttered first. Returns ndarray, shaped
        (orders, n).
        """
        stacked = np.asarray(orders, dtype=np.intp)
        context = nearest_context(stacked, self.provides)
        return np.where(context < 0, self.alone[stacked], self.after[np.maximum(context, 0), stacked])


def _cube(scores: pd.DataFrame) -> tuple[list[str], dict[str, Floats]]:
    """Systems, and for each conversation its values shaped (permutations, systems)."""
    missing = [name for name in _COLUMNS if name not in scores.columns]
    if missing:
        raise ValueError(f"columns {', '.join(missing)} wanted, found {', '.join(map(str, scores.columns))}")
    runs = [str(run) for run in scores["run"].unique()]
    cube = {}
    for topic, part in scores.groupby("topic", sort=False):
        wide = part.pivot_table(index="permutation", columns="run", values="value", aggfunc="first", sort=True)
        holes = len(part) != wide.size or len(wide.columns) != len(runs) or bool(wide.isna().to_numpy().any())
        if holes or ORIGINAL not in wide.index:
            raise ValueError(f"topic {topic}: every system needs one score for the same permutations, 0 among them")
        cube[str(topic)] = wide[runs].to_numpy(dtype=np.float64)
    return runs, cube


def performance(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean score of every system in the original order and over permutations, with the extremes of cherry-picking.

    ``scores`` (columns run, topic, permutation, value): Permutation 0 is the order of the script; it counts among
    the permutations. Returns DataFrame, columns run, original, minimum, mean, maximum: Means over conversations: of
    the original order, and of the lowest, the mean and the highest value over the permutations of each
    conversation. Systems in the order of first appearance.

    permutations, Table 2.
    """
    runs, cube = _cube(scores)
    parts = [[v[ORIGINAL], v.min(axis=0), v.mean(axis=0), v.max(axis=0)] for v in cube.values()]
    table = pd.DataFrame(np.mean(parts, axis=0).T, columns=["original", "minimum", "mean", "maximum"])
    table.insert(0, "run", runs)
    return table


def largest_differences(scores: pd.DataFrame) -> pd.DataFrame:
    r"""How far permutations can put one system ahead of another.

    .. math::
        D_{ab} = \frac{1}{C} \sum_c \max_\pi (y_{c\pi a} - y_{c\pi b}), \qquad
        D_{aa} = \frac{1}{C} \sum_c \max_\pi \Bigl(y_{c\pi a} - \frac{1}{K - 1} \sum_{b \ne a} y_{c\pi b}\Bigr)

    ``scores`` (columns run, topic, permutation, value): at least two systems. Returns DataFrame, columns model and
    one per system: Row a, column b: the largest mean lead of a over b; on the diagonal, of a over the mean of the
    others. A table without negative entries says that every system can be made the better one of every pair.

    permutations, Table 3.
    """
    runs, cube = _cube(scores)
    if len(runs) < 2:
        raise ValueError(f"at least two systems are wanted, found {len(runs)}")
    leads = np.mean([(v[:, :, None] - v[:, None, :]).max(axis=0) for v in cube.values()], axis=0)
    others = [v - (v.sum(axis=1, keepdims=True) - v) / (len(runs) - 1) for v in cube.values()]
    leads[np.diag_indices(len(runs))] = np.mean([lead.max(axis=0) for lead in others], axis=0)
    table = pd.DataFrame(leads, columns=runs)
    table.insert(0, "model", runs)
    return table


def preference(scores: pd.DataFrame) -> pd.DataFrame:
    """How often one system beats another over the permutations of each conversation.

    Parameters
    ----------
    scores : DataFrame, columns run, topic, permutation, value
        At least two systems.

    Returns
    -------
    DataFrame, columns topic, a, b, wins, ties, permutations
        Shares of the permutations on which a scores higher than b, and on which they are equal (to 1e-12); every
        ordered pair.

    Raises
    ------
    ValueError
        As `performance`.

    Notes
    -----
    permutations, Figure 2.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": list("aabb"), "topic": "1", "permutation": [0, 1, 0, 1], "value": [5, 1, 3, 1]})
    >>> preference(scores)
      topic  a  b  wins  ties  permutations
    0     1  a  b   0.5   0.5             2
    1     1  b  a   0.0   0.5             2
    """
    runs, cube = _cube(scores)
    pairs = [(i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j]
    rows: list[tuple[Any, ...]] = []
    for topic, values in cube.items():
        gap = values[:, :, None] - values[:, None, :]
        wins, ties = (gap > 1e-12).mean(axis=0), (np.abs(gap) <= 1e-12).mean(axis=0)
        rows += [(topic, runs[i], runs[j], wins[i, j], ties[i, j], len(values)) for i, j in pairs]
    return pd.DataFrame(rows, columns=["topic", "a", "b", "wins", "ties", "permutations"])


def conversation_spread(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over systems of each conversation under each permutation.

    Returns DataFrame, columns topic, permutation, value, rank: value is the mean over systems; rank is the share of
    the permutations of the conversation that score strictly higher (to 1e-12), so 0 is the best order.

    permutations, Figure 1.
    """
    _, cube = _cube(scores)
    rows: list[tuple[Any, ...]] = []
    for topic, values in cube.items():
        means = values.mean(axis=1)
        better = (means[None, :] > means[:, None] + 1e-12).mean(axis=1)
        rows += [(topic, number, mean, rank) for number, (mean, rank) in enumerate(zip(means, better, strict=True))]
    return pd.DataFrame(rows, columns=["topic", "permutation", "value", "rank"])


def ranking_stability(
    scores: pd.DataFrame,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    repeats: int = 1000,
    reference: pd.Series | None = None,
) -> pd.DataFrame:
    r"""How well a ranking of systems from few permutations agrees with the ranking from all of them.

    In each repeat, `size` permutations of every conversation are drawn without replacement (all of them where there are
    fewer); systems are ranked by their mean and compared, pair by pair, with the reference.

    .. math:: \tau = \frac{\#\text{concordant} - \#\text{discordant}}{K (K - 1) / 2}

    Parameters
    ----------
    scores : DataFrame, columns run, topic, permutation, value
        At least two systems; permutation 0, the order of the script, is left out of the draws.
    sizes : sequence of int
        Numbers of permutations to try, each at least 1.
    rng : numpy.random.Generator
        The source of randomness.
    repeats : int
        Draws for each size.
    reference : Series, optional
        True mean score by system; the default is the mean of all the permutations given.

    Returns
    -------
    DataFrame, columns permutations, tau, low, same, best
        Mean Kendall tau with the reference and its 5th percentile, the share of repeats with the very same ranking, and
        with the same best system.

    Raises
    ------
    ValueError
        As `performance`; if a size is below 1, fewer than two systems are there, a conversation has no permutation but
        the script, or the reference lacks a system.

    Notes
    -----
    Beyond the paper, which takes 100 permutations. Equal means count as discordant.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": list("aaabbb"), "topic": "1", "permutation": [0, 1, 2] * 2,
    ...     "value": [0.5, 0.6, 0.9, 0.3, 0.2, 0.1]})
    >>> ranking_stability(scores, [1, 2], np.random.default_rng(0), repeats=10)
       permutations  tau  low  same  best
    0             1  1.0  1.0   1.0   1.0
    1             2  1.0  1.0   1.0   1.0
    """
    runs, cube = _cube(scores)
    if len(runs) < 2 or min(sizes) < 1:
        raise ValueError(f"at least two systems and sizes from 1 are wanted, found {len(runs)} and {min(sizes)}")
    drawn = {topic: values[ORIGINAL + 1 :] for topic, values in cube.items()}
    fixed = [topic for topic, values in drawn.items() if not len(values)]
    if fixed:
        raise ValueError(f"topics {', '.join(fixed)} have no permutation besides the script: leave them out")
    truth = np.mean([v.mean(axis=0) for v in drawn.values()], axis=0)
    if reference is not None:
        absent = [run for run in runs if run not in reference.index]
        if absent:
            raise ValueError(f"the reference has no {', '.join(absent)}")
        truth = reference[runs].to_numpy(dtype=np.float64)
    wanted = np.array(sorted(set(sizes)))
    means = np.zeros((repeats, len(wanted), len(runs)))
    for values in drawn.values():
        deepest = min(int(wanted[-1]), len(values))
        shuffled = rng.random((repeats, len(values))).argsort(axis=1)[:, :deepest]
        sums = np.cumsum(values[shuffled], axis=1)
        reach = np.minimum(wanted, deepest)
        means += sums[:, reach - 1] / reach[:, None] / len(drawn)
    first, second = (np.array(side) for side in zip(*combinations(range(len(runs)), 2), strict=True))
    agrees = (means[..., first] - means[..., second]) * (truth[first] - truth[second]) > 0
    tau = 2 * agrees.mean(axis=2) - 1
    return pd.DataFrame(
        {
            "permutations": wanted,
            "tau": tau.mean(axis=0),
            "low": np.percentile(tau, 5, axis=0, method="lower"),
            "same": agrees.all(axis=2).mean(axis=0),
            "best": (means.argmax(axis=2) == truth.argmax()).mean(axis=0),
        }
    )


def sampling_error(exact: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    r"""What sampled permutations say of each system beside what is exactly so over all valid orders.

    .. math:: SE = \frac{1}{C} \sqrt{\sum_c \frac{\sigma_c^2}{m_c} \cdot \frac{N_c - m_c}{N_c - 1}}

    with :math:`m_c` different orders drawn of the :math:`N_c` of conversation c.

    ``exact`` (columns run, topic, orders, mean, sd, minimum, maximum): of
    `equipoise.studies.permutations.experiment.Experiment.exact`; systems with missing values are left out. ``scores``
    (columns run, topic, permutation, value): of the sampled orders; permutation 0, the order of the script, is not
    counted as drawn. Returns: Columns ``run, mean, sampled mean, error, standard error, minimum, sampled minimum,
    maximum, sampled maximum``: means over conversations; error is sampled minus exact.

    Beyond the paper, which samples 100 orders and leaves the exact distribution to future work (section 5).
    """
    runs, cube = _cube(scores)
    known = exact.set_index(["run", "topic"])
    rows = []
    for place, run in enumerate(runs):
        absent = [topic for topic in cube if (run, topic) not in known.index]
        if absent:
            raise ValueError(f"no exact row of {run} for topics {', '.join(absent)}")
        ours = known.loc[[(run, topic) for topic in cube]]
        if ours[["mean", "sd", "minimum", "maximum"]].isna().to_numpy().any():
            continue
        drawn = [values[ORIGINAL + 1 :, place] for values in cube.values()]
        size = np.array([len(values) for values in drawn])
        left = (ours["orders"].to_numpy() - size) / np.maximum(ours["orders"].to_numpy() - 1, 1)
        variance = ours["sd"].to_numpy() ** 2 / size * np.maximum(left, 0)
        sampled = [float(np.mean([pick(values) for values in drawn])) for pick in (np.mean, np.min, np.max)]
        mean, low, high = (float(ours[column].mean()) for column in ("mean", "minimum", "maximum"))
        error = float(np.sqrt(variance.sum())) / len(drawn)
        difference = round(sampled[0] - mean, 12)  # what is left below that is rounding
        rows.append((run, mean, sampled[0], difference, error, low, sampled[1], high, sampled[2]))
    columns = ["run", "mean", "sampled mean", "error", "standard error"]
    columns += ["minimum", "sampled minimum", "maximum", "sampled maximum"]
    return pd.DataFrame(rows, columns=columns)


def standard_errors(exact: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    r"""Standard error of a system's mean by how many different orders of each conversation are drawn.

    .. math:: SE(m) = \frac{1}{C} \sqrt{\sum_c \frac{\sigma_c^2}{m_c} \cdot \frac{N_c - m_c}{N_c - 1}},
        \quad m_c = \min(m, N_c)

    ``exact`` (columns run, topic, orders, sd): of `equipoise.studies.permutations.experiment.Experiment.exact`,
    without missing values. ``sizes``: m, each at least 1. Returns DataFrame, columns run, permutations, standard
    error: Sorted by the first appearance of the system, then by size.

    Beyond the paper: the error follows from the exact standard deviation over all orders.
    """
    if exact["sd"].isna().any() or min(sizes) < 1:
        raise ValueError("standard errors need every standard deviation, and sizes from 1")
    wanted = np.array(sorted(set(sizes)))
    drawn = np.minimum(wanted, exact["orders"].to_numpy()[:, None])
    left = (exact["orders"].to_numpy()[:, None] - drawn) / np.maximum(exact["orders"].to_numpy()[:, None] - 1, 1)
    variance = pd.DataFrame(exact["sd"].to_numpy()[:, None] ** 2 / drawn * left, columns=wanted)
    groups = variance.groupby(exact["run"].to_numpy(), sort=False)
    errors = np.sqrt(groups.sum()).div(groups.size(), axis=0)
    tidy = errors.rename_axis("run").reset_index().melt("run", var_name="permutations", value_name="standard error")
    order = {run: place for place, run in enumerate(errors.index)}
    tidy["permutations"] = tidy["permutations"].astype(int)
    tidy = tidy.iloc[np.lexsort((tidy["permutations"], tidy["run"].map(order)))]
    return tidy.reset_index(drop=True)


def order_correlation(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlation of two measures over the orders of each conversation.

    ``first``, ``second`` (columns run, topic, permutation, value): Scores of the same systems on the same orders.
    Returns DataFrame, columns run, topic, orders, correlation: correlation is NaN where one of the measures does
    not depend on the order.

    Beyond the paper: does the order move another measure as it moves nDCG? Equal values share their mean rank.
    """
    keys = ["run", "topic", "permutation"]
    both = first[[*keys, "value"]].merge(second[[*keys, "value"]], on=keys, how="inner", suffixes=("", " 2"))
    if (
        both.isna().to_numpy().any()
        or both.duplicated(keys).any()
        or len(both) != len(first)
        or len(both) != len(second)
    ):
        raise ValueError("both tables need one score for the same systems, topics and permutations")
    groups = [both["run"], both["topic"]]
    ranks = both[["value", "value 2"]].round(12).groupby(groups, sort=False).rank()
    ranks -= ranks.groupby(groups, sort=False).transform("mean")
    parts = pd.DataFrame({"x": ranks["value"] ** 2, "y": ranks["value 2"] ** 2, "xy": ranks.prod(axis=1)})
    sums = parts.groupby(groups, sort=False).sum()
    spread = np.sqrt(sums["x"] * sums["y"])
    sums["correlation"] = (sums["xy"] / spread.where(spread > 0)).clip(-1.0, 1.0)
    sums["orders"] = parts.groupby(groups, sort=False).size()
    return sums.reset_index()[["run", "topic", "orders", "correlation"]]
