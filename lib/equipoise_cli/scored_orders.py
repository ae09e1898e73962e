"""From the runs of anyone's system on permuted conversations to the paper's Tables 2 to 5 and Figures 1 and 2.

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

_SURE = 1.96  # standard errors on either side: 19 times in 20
_EXACT = "adjacency", "enumeration"  # how a value over all orders is known


def judged_inputs(permuted: Permuted, qrels: pd.DataFrame) -> pd.DataFrame:
    """Every input whose utterance has a judgement: columns topic, query, id."""
    parts = []
    for one in permuted.conversations:
        inputs = permuted.inputs(one)
        asked = np.array(one.queries, dtype=object)[inputs.asked]
        parts.append(pd.DataFrame({"topic": one.topic, "query": asked, "id": inputs.ids}))
    table = pd.concat(parts, ignore_index=True)
    judged = table[table["query"].isin(qrels["query"])].reset_index(drop=True)
    if judged.empty:
        raise ValueError(
            f"no utterance has a judgement: the qrels lack {listed(table['query'].unique())}"
        )
    if without := [topic for topic in table["topic"].unique() if topic not in set(judged["topic"])]:
        warnings.warn(
            f"topics {listed(without)} have no judged utterance and are left out", Note, 2
        )
    return judged


def _seen(
    name: str, run: pd.DataFrame, ids: pd.DataFrame, ranked: pd.DataFrame, qrels: pd.DataFrame
) -> list[Seen]:
    """Of how many inputs there is a ranking, and of how many of its documents a judgement."""
    pairs = (pd.MultiIndex.from_frame(table[["query", "document"]]) for table in (ranked, qrels))
    unjudged = ranked.loc[~next(pairs).isin(next(pairs)), "document"]
    unranked, others = (
        ids.loc[~ids["id"].isin(ranked["id"]), "id"],
        run.loc[~run["topic"].isin(ids["id"]), "topic"],
    )
    counts = [
        (len(every) - len(without), len(every))
        for every, without in ((ids, unranked), (ranked, unjudged))
    ]
    return [
        Seen(f"run {name}", "inputs", "a ranking", *counts[0], first(unranked), first(others)),
        Seen(
            f"run {name}",
            "ranked documents",
            "a judgement",
            *counts[1],
            first(unjudged),
            first(qrels["document"]),
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
    scored, name = parsed_measure(measure), run["run"].iloc[0]
    ids = inputs.assign(number=inputs.groupby("query").cumcount())[["query", "id", "number"]]
    ranked = run.merge(ids, left_on="topic", right_on="id").astype({"score": np.float32})
    ranked = ranked.sort_values(["score", "document"], ascending=False)
    ranked = ranked.groupby("id", sort=False).head(scored.params.get("cutoff", len(ranked)))
    judge(_seen(name, run, ids, ranked, qrels), least_seen)
    ranked = ranked.assign(score=-np.arange(len(ranked), dtype=np.float64))
    fields = {"query": "query_id", "document": "doc_id", "grade": "relevance"}
    ranked = ranked.rename(columns=fields)
    evaluator = ir_measures.evaluator(
        [scored], qrels[qrels["query"].isin(ids["query"])].rename(columns=fields)
    )
    values: dict[str, float] = {}
    # one ranking of each utterance at a time, so that the judgements are held once and not for
    # every input
    for _, part in ranked.groupby("number"):
        id_of = dict(zip(part["query_id"], part["id"], strict=True))
        results = {
            one.query_id: one.value
            for one in evaluator.iter_calc(part[["query_id", "doc_id", "score"]])
        }
        values |= {id_of[query]: results[query] for query in id_of}
    found_values = pd.Series(values, dtype=np.float64).reindex(ids["id"])
    if missing := int(found_values.isna().sum()):
        warnings.warn(
            f"{name} has no ranking for {missing} of {len(ids)} inputs, which score 0", Note, 2
        )
    return found_values.fillna(0.0)


@dataclass(frozen=True, eq=False)
class ScoredConversation:
    """A conversation whose inputs have been scored: ``values`` (shaped (inputs, runs)), NaN where nothing is judged."""

    conversation: Conversation
    orders: Orders
    inputs: Inputs
    judged: Booleans
    values: Floats

    @cached_property
    def drawn(self) -> Floats:
        """Mean over the judged utterances under each order, added up in the order of the script: (orders, runs)."""
        script = np.argsort(self.orders, axis=1)[:, self.judged]
        means: Floats = self.values[np.take_along_axis(self.inputs.of_orders, script, axis=1)].mean(
            axis=1
        )
        return means

    def _shares(self, weights: Floats) -> Floats:
        """What each utterance adds behind each other one, in the last row at first, to the weighted sum of runs."""
        after = self.inputs.after
        if after is None:
            raise ValueError("the inputs depend on more than the utterance before")
        shares = np.where(after < 0, np.nan, (self.values @ weights)[after]) / self.judged.sum()
        shares[:, ~self.judged] = 0.0
        return shares

    def largest(self, weights: Floats) -> float:
        """Largest weighted sum of the runs over all valid orders."""
        return -self.conversation.structure.lattice.lowest(np.nan_to_num(-self._shares(weights)))[0]

    def all_orders(self, weights: Floats) -> dict[str, Any]:
        """What a weighted sum of the runs is over all valid orders, and how that is known (`over_all_orders`)."""
        structure, values = self.conversation.structure, self.drawn @ weights
        if self.inputs.after is not None:
            try:
                shares = self._shares(weights)
                found = structure.score_range(shares[:-1], shares[-1])
            except ValueError:  # too many sets of utterances for dynamic programming
                pass
            else:
                known = {
                    "mean": found.mean,
                    "sd": found.sd,
                    "minimum": found.minimum,
                    "maximum": found.maximum,
                }
                return {**known, "standard error": 0.0, "how": _EXACT[0]}
        left, drawn = structure.count - 1, len(values) - 1
        if drawn == left:
            known = {
                "mean": values.mean(),
                "sd": values.std(),
                "minimum": values.min(),
                "maximum": values.max(),
            }
            return {**known, "standard error": 0.0, "how": _EXACT[1]}
        mean = (values[0] + left * values[1:].mean()) / (
            left + 1
        )  # the script is one of them for certain
        sd = values[1:].std(ddof=1) if drawn > 1 else np.nan
        error = left / (left + 1) * sd * np.sqrt((1 - drawn / left) / drawn)
        return {
            "mean": mean,
            "sd": sd,
            "minimum": np.nan,
            "maximum": np.nan,
            "standard error": error,
            "how": "drawn",
        }


def scored_conversations(
    permuted: Permuted, inputs: pd.DataFrame, values: pd.DataFrame
) -> list[ScoredConversation]:
    """Conversations with judged utterances; ``values``: of `score_inputs`, a column for each run."""
    judged, topics = set(inputs["query"]), set(inputs["topic"])
    made = []
    for one in permuted.conversations:
        if one.topic in topics:
            own = permuted.inputs(one)
            here = np.array([query in judged for query in one.queries])
            made.append(
                ScoredConversation(
                    one, permuted.orders[one.topic], own, here, values.reindex(own.ids).to_numpy()
                )
            )
    return made


def scores_of_orders(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> pd.DataFrame:
    """Score of each run on each conversation under each of its orders: columns run, topic, permutation, value."""
    parts = {
        (run, one.conversation.topic): pd.Series(one.drawn[:, number])
        for (number, run), one in product(enumerate(runs), scored)
    }
    return pd.concat(parts, names=["run", "topic", "permutation"]).rename("value").reset_index()


def over_all_orders(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> pd.DataFrame:
    """Each run on each conversation over all of its valid orders, exactly or estimated from those that were drawn.

    Returns columns run, topic, orders (all there are), drawn (without the script), mean, standard
    error, sd, minimum, maximum, how. how is "neighbours" or "every order", which are exact, or
    "drawn": then the extremes are not known.
    """
    rows = []
    for (number, run), one in product(enumerate(runs), scored):
        size = {"orders": one.conversation.structure.count, "drawn": len(one.orders) - 1}
        rows.append(
            {
                "run": run,
                "topic": one.conversation.topic,
                **size,
                **one.all_orders(np.eye(len(runs))[number]),
            }
        )
    columns = [
        "run",
        "topic",
        "orders",
        "drawn",
        "mean",
        "standard error",
        "sd",
        "minimum",
        "maximum",
        "how",
    ]
    return pd.DataFrame(rows)[columns]


def _how(part: pd.DataFrame) -> str:
    drawn = part[part["how"] == "drawn"]
    numbers = "to".join(f" {number} " for number in sorted({*drawn["drawn"].agg(["min", "max"])}))
    return (
        f"{numbers.strip()} orders drawn in {len(drawn)} of {len(part)} conversations"
        if len(drawn)
        else "exact"
    )


def table_2(scores: pd.DataFrame, every: pd.DataFrame) -> pd.DataFrame:
    """Table 2 of the study over the script and the drawn orders, and beside it over all valid orders.

    Returns columns run, original, minimum, mean, maximum (of `performance`); mean of all, low and
    high (the ends of its 95 % interval, the mean itself where that is exact), minimum of all,
    maximum of all (empty where not known), how.

    permutations, Table 2; what is over all orders, beyond the paper.
    """
    groups = every.groupby("run", sort=False)
    mean, size = groups["mean"].mean(), groups.size()
    reach = (
        _SURE
        * np.sqrt(groups["standard error"].agg(lambda part: (part**2).sum(skipna=False)))
        / size
    )
    ends = {
        f"{name} of all": groups[name].agg(lambda part: part.mean(skipna=False))
        for name in ("minimum", "maximum")
    }
    how = pd.Series({run: _how(part) for run, part in groups})
    found = pd.DataFrame(
        {"mean of all": mean, "low": mean - reach, "high": mean + reach, **ends, "how": how}
    )
    return performance(scores).join(found, on="run")


def largest_of_all(
    scored: Sequence[ScoredConversation], runs: Sequence[str]
) -> pd.DataFrame | None:
    """Table 3 over all valid orders, where each input depends on no more of the order than the utterance before.

    permutations, Table 3, of which it is the upper bound; None where it cannot be known.
    """
    weights = np.eye(len(runs))[:, None] - np.eye(len(runs))
    weights[np.diag_indices(len(runs))] = (len(runs) * np.eye(len(runs)) - 1) / (len(runs) - 1)
    try:
        leads = [
            [np.mean([one.largest(pair) for one in scored]) for pair in row] for row in weights
        ]
    except ValueError:
        return None
    return pd.DataFrame(leads, columns=runs, index=runs).reset_index(names="model")


def tables(scored: Sequence[ScoredConversation], runs: Sequence[str]) -> dict[str, pd.DataFrame]:
    """What is written of scored conversations, by the name of the file; with one run, what needs no other."""
    scores, every = scores_of_orders(scored, runs), over_all_orders(scored, runs)
    made = {"scores": scores, "conversations": every, "table-2": table_2(scores, every)}
    made["figure-1"] = conversation_spread(scores)
    if len(runs) < 2:
        warnings.warn("one run: Tables 3 to 5 and Figure 2 compare two or more", Note, 2)
        return made
    made["table-3"] = largest_differences(scores)
    if (largest := largest_of_all(scored, runs)) is not None:
        made["table-3-all-orders"] = largest
    made["figure-2"] = preference(scores)
    if len(scored) < 2:
        warnings.warn("one conversation: Tables 4 and 5 compare two or more", Note, 2)
        return made
    made["table-4"] = anova(scores[scores["permutation"] == SCRIPT])
    made["table-5"] = anova(scores, "MD1")
    made["table-5-interaction"] = anova(scores, "MD1", interaction=True, against=OVER_CONVERSATIONS)
    return made
