"""From runs on permuted conversations to the paper's Tables 2 to 5 and Figures 1 and 2.

Every input of `equipoise_cli.permuted_orders` is scored once. Where a system sees no more than the
first utterance and the one directly before, its mean and extremes over *all* valid orders follow
exactly, and so they do where all valid orders were written; else the mean has an interval that
follows from how many orders were drawn.

References
----------
permutations, sections 3.2, 4.3 and 4.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from subprocess import CalledProcessError
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Floats
from equipoise.coverage import Seen, first, judge
from equipoise.declare import checked
from equipoise.measures.effectiveness import parsed_measure
from equipoise.measures.orders import SCRIPT, preference
from equipoise.options import LeastSeen, RankingMeasure
from equipoise.orders.conversations import Conversation
from equipoise.orders.effects import conversation_spread, largest_differences, performance
from equipoise.orders.structures import Orders
from equipoise.orders.variance import OVER_CONVERSATIONS, anova
from equipoise.problems import Note, listed
from equipoise_cli.permuted_orders import Inputs, Permuted

_STANDARD_ERRORS = 1.96  # on either side: 19 times in 20
_BY_NEIGHBOURS, _BY_ENUMERATION, _BY_DRAWING = "adjacency", "enumeration", "drawn"
"""How a value over all orders is known; the first two are exact."""


# --- inputs ---------------------------------------------------------------------------------------


def judged_inputs(permuted: Permuted, qrels: pd.DataFrame) -> pd.DataFrame:
    """Every input whose utterance has a judgement: columns topic, query, id."""
    tables = []
    for conversation in permuted.conversations:
        inputs = permuted.inputs(conversation)
        queries = np.array(conversation.queries, dtype=object)[inputs.asked]
        columns = {"topic": conversation.topic, "query": queries, "id": inputs.ids}
        tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    judged = table[table["query"].isin(qrels["query"])].reset_index(drop=True)
    if judged.empty:
        raise ValueError(
            f"no utterance has a judgement: the qrels lack {listed(table['query'].unique())}"
        )
    is_unjudged = ~table["topic"].isin(judged["topic"])
    unjudged_topics = table.loc[is_unjudged, "topic"].unique()
    if len(unjudged_topics):
        note = f"topics {listed(unjudged_topics)} have no judged utterance and are left out"
        warnings.warn(note, Note, 2)
    return judged


def _coverage(
    name: str, run: pd.DataFrame, ids: pd.DataFrame, ranked: pd.DataFrame, qrels: pd.DataFrame
) -> list[Seen]:
    """Of how many inputs there is a ranking, and of how many of its documents a judgement."""
    ranked_pairs = pd.MultiIndex.from_frame(ranked[["query", "document"]])
    judged_pairs = pd.MultiIndex.from_frame(qrels[["query", "document"]])
    unjudged = ranked.loc[~ranked_pairs.isin(judged_pairs), "document"]
    unranked = ids.loc[~ids["id"].isin(ranked["id"]), "id"]
    ids_of_run = run.loc[~run["topic"].isin(ids["id"]), "topic"]
    label = f"run {name}"
    n_ranked, n_judged = len(ids) - len(unranked), len(ranked) - len(unjudged)
    return [
        Seen(
            label,
            items="inputs",
            needed="a ranking",
            found=n_ranked,
            whole=len(ids),
            lacking=first(unranked),
            known=first(ids_of_run),
        ),
        Seen(
            label,
            items="ranked documents",
            needed="a judgement",
            found=n_judged,
            whole=len(ranked),
            lacking=first(unjudged),
            known=first(qrels["document"]),
        ),
    ]


@checked
def score_inputs(
    run: pd.DataFrame,
    inputs: pd.DataFrame,
    qrels: pd.DataFrame,
    *,
    measure: RankingMeasure = "nDCG@3",
    least_seen: LeastSeen = 0.5,
) -> pd.Series:
    """Score of each input by its id; 0 where the run has no ranking for it, which is noted.

    ``run``: columns run, topic (the id), document, score; other ids are passed over. ``inputs``: of
    `judged_inputs`. ``qrels``: columns query, document, grade. Ties of scores are broken as
    trec_eval does.
    """
    parsed, name = parsed_measure(measure), run["run"].iloc[0]
    # Rankings of one utterance are numbered: they are evaluated one at a time.
    ids = inputs.assign(number=inputs.groupby("query").cumcount())[["query", "id", "number"]]
    ranked = run.merge(ids, left_on="topic", right_on="id").astype({"score": np.float32})
    # As trec_eval: scores are of single precision, and of equal ones the later id comes first.
    ranked = ranked.sort_values(["score", "document"], ascending=False)
    ranked = ranked.groupby("id", sort=False).head(parsed.params.get("cutoff", len(ranked)))
    judge(_coverage(name, run, ids, ranked, qrels), least_seen)
    # Scores that fall from row to row leave the evaluator no ties to break in another way.
    ranked = ranked.assign(score=-np.arange(len(ranked), dtype=np.float64))
    values = pd.Series(_evaluated(parsed, ranked, qrels[qrels["query"].isin(ids["query"])]))
    values = values.astype(np.float64).reindex(ids["id"])
    n_missing = int(values.isna().sum())
    if n_missing:
        note = f"{name} has no ranking for {n_missing} of {len(ids)} inputs, which score 0"
        warnings.warn(note, Note, 2)
    return values.fillna(0.0)


def _evaluated(measure: Any, ranked: pd.DataFrame, qrels: pd.DataFrame) -> dict[str, float]:
    """The measure of each ranked input, by its id.

    Of each utterance one ranking is scored at a time, so that the judgements are in memory once,
    and not once for every input.
    """
    fields = {"query": "query_id", "document": "doc_id", "grade": "relevance"}
    ranked = ranked.rename(columns=fields)
    evaluator = ir_measures.evaluator([measure], qrels.rename(columns=fields))
    values: dict[str, float] = {}
    for _, rankings in ranked.groupby("number"):
        id_of = dict(zip(rankings["query_id"], rankings["id"], strict=True))
        results = {}
        try:
            for metric in evaluator.iter_calc(rankings[["query_id", "doc_id", "score"]]):
                results[metric.query_id] = metric.value
        except (CalledProcessError, OSError) as error:
            # Some measures are left to programs that take no topics but numbers.
            problem = f"the program that ir_measures leaves {measure} to has failed"
            raise ValueError(f"{problem} ({type(error).__name__}): another measure?") from None
        for query, input_id in id_of.items():
            values[input_id] = results[query]
    return values


# --- conversations --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoredConversation:
    """A conversation whose inputs have been scored.

    ``values`` (shaped (inputs, runs)): NaN where nothing is judged.
    """

    conversation: Conversation
    orders: Orders
    inputs: Inputs
    judged: Booleans
    values: Floats

    @cached_property
    def drawn(self) -> Floats:
        """Mean over the judged utterances under each order: (orders, runs).

        It is added up in the order of the script, so that equal scores give equal sums.
        """
        positions = np.argsort(self.orders, axis=1)[:, self.judged]
        inputs = np.take_along_axis(self.inputs.of_orders, positions, axis=1)
        means: Floats = self.values[inputs].mean(axis=1)
        return means

    def _shares(self, weights: Floats) -> Floats:
        """What each utterance adds behind each other one to the weighted sum of runs.

        In the last row stands what it adds as the first.
        """
        after = self.inputs.after
        if after is None:
            raise ValueError("the inputs depend on more than the utterance before")
        weighted = self.values @ weights
        shares = np.where(after < 0, np.nan, weighted[after]) / self.judged.sum()
        shares[:, ~self.judged] = 0.0
        return shares

    def largest(self, weights: Floats) -> float:
        """Largest weighted sum of the runs over all valid orders."""
        negative_shares = np.nan_to_num(-self._shares(weights))
        return -self.conversation.structure.lattice.lowest(negative_shares)[0]

    def _by_neighbours(self, weights: Floats) -> dict[str, Any] | None:
        """What follows from the pairs of neighbours over all valid orders, if it does."""
        if self.inputs.after is None:
            return None
        shares = self._shares(weights)
        try:
            score_range = self.conversation.structure.score_range(shares[:-1], shares[-1])
        except ValueError:
            return None  # too many sets of utterances for dynamic programming
        return {
            "mean": score_range.mean,
            "sd": score_range.sd,
            "minimum": score_range.minimum,
            "maximum": score_range.maximum,
            "standard error": 0.0,
            "how": _BY_NEIGHBOURS,
        }

    def all_orders(self, weights: Floats) -> dict[str, Any]:
        """What a weighted sum of the runs is over all valid orders, and how that is known."""
        by_neighbours = self._by_neighbours(weights)
        if by_neighbours is not None:
            return by_neighbours
        values = self.drawn @ weights
        # The script is one of the orders for certain; of the others some were drawn.
        n_others, n_drawn = self.conversation.structure.count - 1, len(values) - 1
        if n_drawn == n_others:
            return {
                "mean": values.mean(),
                "sd": values.std(),
                "minimum": values.min(),
                "maximum": values.max(),
                "standard error": 0.0,
                "how": _BY_ENUMERATION,
            }
        sd = values[1:].std(ddof=1) if n_drawn > 1 else np.nan
        share = n_others / (n_others + 1)
        # Orders are drawn without replacement, so that the error shrinks to 0 with all of them.
        return {
            "mean": (values[0] + n_others * values[1:].mean()) / (n_others + 1),
            "sd": sd,
            "minimum": np.nan,
            "maximum": np.nan,
            "standard error": share * sd * np.sqrt((1 - n_drawn / n_others) / n_drawn),
            "how": _BY_DRAWING,
        }


def scored_conversations(
    permuted: Permuted, inputs: pd.DataFrame, values: pd.DataFrame
) -> list[ScoredConversation]:
    """Conversations with judged utterances; ``values``: of `score_inputs`, a column a run."""
    judged_queries, topics = set(inputs["query"]), set(inputs["topic"])
    scored = []
    for conversation in permuted.conversations:
        if conversation.topic not in topics:
            continue  # nothing of it is judged, which was noted
        inputs_of_topic = permuted.inputs(conversation)
        judged = np.array([query in judged_queries for query in conversation.queries])
        scored.append(
            ScoredConversation(
                conversation,
                permuted.orders[conversation.topic],
                inputs_of_topic,
                judged,
                values.reindex(inputs_of_topic.ids).to_numpy(),
            )
        )
    return scored


# --- tables ---------------------------------------------------------------------------------------


def scores_of_orders(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> pd.DataFrame:
    """Score of each run on each conversation under each of its orders.

    Columns run, topic, permutation, value.
    """
    series = {}
    for (number, run), conversation in product(enumerate(runs), scored):
        topic = conversation.conversation.topic
        series[run, topic] = pd.Series(conversation.drawn[:, number])
    scores = pd.concat(series, names=["run", "topic", "permutation"])
    return scores.rename("value").reset_index()


def over_all_orders(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> pd.DataFrame:
    """Each run on each conversation over all of its valid orders, exactly or estimated.

    Returns columns run, topic, orders (all there are), drawn (without the script), mean, standard
    error, sd, minimum, maximum, how: "adjacency" or "enumeration", which are exact, or "drawn",
    which is estimated from those; then the extremes are not known.
    """
    rows = []
    for (number, run), conversation in product(enumerate(runs), scored):
        weights = np.eye(len(runs))[number]
        row = {
            "run": run,
            "topic": conversation.conversation.topic,
            "orders": conversation.conversation.structure.count,
            "drawn": len(conversation.orders) - 1,
        }
        rows.append(row | conversation.all_orders(weights))
    keys = ["run", "topic", "orders", "drawn"]
    values = ["mean", "standard error", "sd", "minimum", "maximum", "how"]
    return pd.DataFrame(rows)[[*keys, *values]]


def _how(rows: pd.DataFrame) -> str:
    """How the values of a run over all orders are known."""
    estimated = rows[rows["how"] == _BY_DRAWING]
    if estimated.empty:
        return "exact"
    fewest_drawn, most_drawn = estimated["drawn"].min(), estimated["drawn"].max()
    n_orders = f"{fewest_drawn} to {most_drawn}"
    if fewest_drawn == most_drawn:
        n_orders = str(fewest_drawn)
    return f"{n_orders} orders drawn in {len(estimated)} of {len(rows)} conversations"


def table_2(scores: pd.DataFrame, all_orders: pd.DataFrame) -> pd.DataFrame:
    """Table 2 of the study over the script and the drawn orders, and beside it over all orders.

    Returns columns run, original, minimum, mean, maximum (of `performance`); mean of all, low and
    high (the ends of its 95 % interval, the mean itself where that is exact), minimum of all,
    maximum of all (empty where not known), how.

    permutations, Table 2; what is over all orders, beyond the paper.
    """
    groups = all_orders.groupby("run", sort=False)
    means = groups["mean"].mean()
    # Conversations are drawn from independently: the variances of their means add up.
    squares = (all_orders["standard error"] ** 2).groupby(all_orders["run"], sort=False)
    standard_errors = np.sqrt(squares.agg(_sum_of_known)) / groups.size()
    half_widths = _STANDARD_ERRORS * standard_errors
    columns = {
        "mean of all": means,
        "low": means - half_widths,
        "high": means + half_widths,
        "minimum of all": groups["minimum"].agg(_mean_of_known),
        "maximum of all": groups["maximum"].agg(_mean_of_known),
        "how": pd.Series({run: _how(rows) for run, rows in groups}),
    }
    return performance(scores).join(pd.DataFrame(columns), on="run")


def _sum_of_known(values: pd.Series) -> float:
    """The sum, NaN where any value is not known."""
    return values.sum(skipna=False)


def _mean_of_known(values: pd.Series) -> float:
    """The mean, NaN where any value is not known."""
    return values.mean(skipna=False)


def largest_of_all(
    scored: Sequence[ScoredConversation], runs: Sequence[str]
) -> pd.DataFrame | None:
    """Table 3 over all valid orders, where an input depends on no more than the utterance before.

    permutations, Table 3, of which it is the upper bound; None where it cannot be known.
    """
    n_runs = len(runs)
    # (runs, runs, runs): the lead over another run, on the diagonal over the mean of the others
    weights = np.eye(n_runs)[:, None] - np.eye(n_runs)
    weights[np.diag_indices(n_runs)] = (n_runs * np.eye(n_runs) - 1) / (n_runs - 1)
    leads = np.empty((n_runs, n_runs))
    try:
        for pair in np.ndindex(n_runs, n_runs):
            largest = [conversation.largest(weights[pair]) for conversation in scored]
            leads[pair] = np.mean(largest)
    except ValueError:
        return None  # inputs that depend on more, or too many sets for dynamic programming
    return pd.DataFrame(leads, columns=runs, index=runs).reset_index(names="model")


def tables(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> dict[str, pd.DataFrame]:
    """What is written of scored conversations, by the name of the file.

    With one run, or one conversation, that is what needs no other.
    """
    scores = scores_of_orders(scored, runs)
    all_orders = over_all_orders(scored, runs)
    results = {
        "scores": scores,
        "conversations": all_orders,
        "table-2": table_2(scores, all_orders),
        "figure-1": conversation_spread(scores),
    }
    if len(runs) < 2:
        warnings.warn("one run: Tables 3 to 5 and Figure 2 compare two or more", Note, 2)
        return results
    results["table-3"] = largest_differences(scores)
    largest = largest_of_all(scored, runs)
    if largest is not None:
        results["table-3-all-orders"] = largest
    results["figure-2"] = preference(scores)
    if len(scored) < 2:
        warnings.warn("one conversation: Tables 4 and 5 compare two or more", Note, 2)
        return results
    results["table-4"] = anova(scores[scores["permutation"] == SCRIPT])
    results["table-5"] = anova(scores, "MD1")
    results["table-5-interaction"] = anova(
        scores, "MD1", interaction=True, against=OVER_CONVERSATIONS
    )
    return results
