"""Tables of thesis chapter 2 on the collection at hand, and its printed ones against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.measures.effectiveness import effectiveness
from equipoise.statistics import bootstrap_interval
from equipoise.studies.query_by_example import interpolation
from equipoise.studies.query_by_example.data import QueryByExample, text_of
from equipoise.studies.query_by_example.systems import SYSTEMS
from equipoise.systems.tokenisation import ANALYSERS

BM25_RUN = "bm25_STM2"
"""The BM25 of Tables 2.1 and 2.3, with which TILDE and TILDEv2 are interpolated."""

CONTEXTUALISED_ROWS = (
    BM25_RUN,
    "bm25_domain",
    *("tilde_tiny", "tilde_zero", "tilde_minilm"),
    *("tildev2_tiny", "tildev2_zero", "tildev2_minilm", "tildev2_tiny_m200", "tildev2_tiny_m300"),
    "cross_tiny",
)
"""Rows of Table 2.1: those of the thesis with their stand-ins."""

Fusions = Mapping[str, str]
"""What BM25 together with a contextualised ranker is called, and the ranker's column of scores."""

QUERIES = 1000
"""Queries of a task in SciDocs, about: the thesis prints no exact number."""

LEXICAL_ROWS = tuple(f"{model}_{name}" for model in ("lm", "bm25") for name in ("SA", "STM1", "STM2", "bert", "domain"))
"""Rows of Table 2.2."""


def collection_table(dataset: QueryByExample, relevant: int) -> pd.DataFrame:
    """Queries, candidates and relevant ones of every task."""
    counts = dataset.judgements.assign(relevant=dataset.judgements["grade"] >= relevant)
    counts = counts.groupby("task").agg(
        queries=("query", "nunique"), candidates=("document", "size"), relevant=("relevant", "sum")
    )
    return counts.assign(**{"candidates a query": counts["candidates"] / counts["queries"]}).reset_index()


def values_of(run: pd.DataFrame, dataset: QueryByExample, relevant: int, by: str = "run") -> pd.DataFrame:
    """MAP, of grades from ``relevant`` on, and nDCG of every query: ``by, task, query, measure, value``."""
    named = {"MAP": f"AP(rel={relevant})", "nDCG": "nDCG"}
    return effectiveness(run, dataset.judgements, by=[by, "task"], measures=named)


def system_values(pairs: pd.DataFrame, dataset: QueryByExample, relevant: int) -> pd.DataFrame:
    """`values_of` every system that has a column of scores, under its name in tables."""
    run = pairs.melt(["task", "query", "document"], var_name="run", value_name="score")
    values = values_of(run, dataset, relevant)
    return values.assign(run=values["run"].map(SYSTEMS))


def training_table(measured: Mapping[str, Any], systems: Sequence[str]) -> pd.DataFrame:
    """What was measured in training each of the systems that was trained."""
    table = pd.DataFrame({name: measured[name] for name in systems if name in measured}).T.rename_axis("model")
    table["first loss"], table["last loss"] = table["loss"].str[0], table["loss"].str[1]
    table = table.rename(columns={"held_out_mrr": "held-out MRR", "terms_added": "terms added"}, index=SYSTEMS)
    columns = ["steps", "first loss", "last loss", "held-out MRR", "terms added"]
    return table[columns].reset_index().astype(str).replace("nan", "")


def example_weights(path: Path, tilde: str, tildev2: str) -> pd.DataFrame:
    """Recorded weights of one sentence by two systems; of TILDE's tokens, words of four letters and more."""
    names = {tilde: "TILDE", tildev2: "TILDEv2"}
    table = pd.read_csv(path, dtype={"token": str}, keep_default_na=False)
    table = table[table["system"].isin(names)].assign(system=table["system"].map(names))
    return table[(table["system"] == "TILDEv2") | table["token"].str.fullmatch("[a-z]{4,}")]


def example_query(dataset: QueryByExample) -> tuple[str, str]:
    """The query with the most candidates alike in their background, and what a figure calls it."""
    alike = dataset.judgements.query("task == 'background' and grade >= 2")
    query = str(alike.groupby("query").size().idxmax())
    return query, f"paper {query}\n{len(text_of(dataset.papers)[query].split())} words"


def ranked_grades(pairs: pd.DataFrame, dataset: QueryByExample, query: str, runs: Sequence[str]) -> pd.DataFrame:
    """Grades of the first 25 candidates of a query in the task background, a row a run: ``system, 1, 2, ...``."""
    ranked = pairs[(pairs["task"] == "background") & (pairs["query"] == query)].merge(dataset.judgements)
    grades = [ranked.sort_values([run, "document"], ascending=False)["grade"].head(25).to_numpy() for run in runs]
    return pd.DataFrame(grades, index=pd.Index(runs, name="system"), columns=range(1, 26)).reset_index()


# --- interpolation ------------------------------------------------------------------------------------------------


def fusions_of(*runs: str) -> dict[str, str]:
    """What BM25 together with each contextualised ranker is called."""
    return {f"BM25 + {SYSTEMS[run]}": run for run in runs}


def swept_values(pairs: pd.DataFrame, dataset: QueryByExample, fusions: Fusions, relevant: int) -> pd.DataFrame:
    """`values_of` every fusion under every weight, with the column ``fusion``."""
    return pd.concat(
        values_of(interpolation.sweep(pairs, BM25_RUN, run), dataset, relevant, by="alpha").assign(fusion=label)
        for label, run in fusions.items()
    )


def each_fusion(swept: pd.DataFrame, choose: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Weights chosen for every fusion by each of the two measures, with the column ``fusion``."""
    return pd.concat(
        choose(part, measure=measure).assign(fusion=label)
        for label, part in swept.groupby("fusion", sort=False)
        for measure in ("MAP", "nDCG")
    )


def sweep_means(swept: pd.DataFrame, best: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The curves of Figure 2.3, and the level that the best weight of each query reaches."""
    curves = swept.groupby(["fusion", "measure", "task", "alpha"], sort=False)["value"].mean().reset_index()
    return curves, best.groupby(["fusion", "measure", "task"])["value"].mean().reset_index()


def fold_weights(tuned: pd.DataFrame) -> pd.DataFrame:
    """The weight tuned for each fold."""
    return tuned.groupby(["run", "measure", "task", "fold"], sort=False)["alpha"].first().reset_index()


def pooled_statistics(best: pd.DataFrame) -> pd.DataFrame:
    """`oracle_statistics` of every fusion, by task and over all of them."""
    pooled = best.assign(task="all", query=best["task"] + " " + best["query"])
    parts = pd.concat([best, pooled]).groupby("fusion", sort=False)
    return pd.concat(interpolation.oracle_statistics(part).assign(fusion=label) for label, part in parts)


def oracle_table(statistics: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """`pooled_statistics` in the form of thesis Table 2.4."""
    long = statistics.melt(["fusion", "task", "measure"], var_name="statistic")
    long["column"] = long["task"] + " " + long["measure"]
    order = [f"{task} {measure}" for task in [*tasks, "all"] for measure in ("MAP", "nDCG")]
    table = long.pivot_table(index=["fusion", "statistic"], columns="column", values="value", sort=False)[order]
    return table.astype(float).reset_index()


def predicted_weights(
    pairs: pd.DataFrame, dataset: QueryByExample, swept: pd.DataFrame, fusions: Fusions, penalty: float
) -> pd.DataFrame:
    """Values with a weight predicted for each query, and with one weight learned from all other papers.

    The latter is what an endless penalty leaves of a prediction; the column ``weight`` tells which is which.
    """
    texts = text_of(dataset.papers)
    lengths = pd.Series({name: len(ANALYSERS["STM2"](texts[name])) for name in dataset.queries})

    def chosen(part: pd.DataFrame, measure: str) -> pd.DataFrame:
        statistics = interpolation.query_statistics(pairs, BM25_RUN, fusions[part["fusion"].iloc[0]], lengths)
        return pd.concat(
            interpolation.predicted(part, statistics, measure, penalty=strength).assign(weight=kind)
            for kind, strength in (("predicted", penalty), ("one weight", 1e12))
        )

    return each_fusion(swept, chosen)


def prediction_table(predictions: pd.DataFrame, best: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Mean values by kind of weight, the share of the oracle's gain, and an interval of the gain over query papers."""
    keys = ["fusion", "measure"]
    table = predictions.pivot_table(index=keys, columns="weight", values="value", sort=False)
    table["oracle"] = best.groupby(keys)["value"].mean()
    table["share of the oracle's gain"] = interpolation.reached(
        table["predicted"], table["one weight"], table["oracle"]
    )
    gaps = predictions.pivot_table(index=[*keys, "task", "query"], columns="weight", values="value", sort=False)
    gaps = (gaps["predicted"] - gaps["one weight"]).groupby([*keys, "query"], sort=False).mean()
    ends = gaps.groupby(keys).agg(lambda gap: bootstrap_interval(gap, np.random.default_rng(0), resamples=resamples))
    table["gain, low"], table["gain, high"] = ends.str[0], ends.str[1]
    return table.reset_index()


# --- printed tables -----------------------------------------------------------------------------------------------


def printed_checks(printed: Mapping[int, pd.DataFrame], queries: int = QUERIES) -> pd.DataFrame:
    """What must hold between the cells of the thesis's Tables 2.1 to 2.4, whatever the data, and how often it does.

    ``queries``: of a task in SciDocs, about.
    """
    cells = [column for column in printed[1].columns if column not in ("row", "model")]
    number = {
        name: table.set_index([*table.columns[:2]])[cells].replace("%", "", regex=True).astype(float)
        for name, table in printed.items()
    }
    model = {name: table.droplevel("row") for name, table in number.items() if name != 4}
    fused = model[3].loc[["BM25 STM2 + TILDE SciBERT", "BM25 STM2 + TILDEv2 SciBERT"]].to_numpy()
    alone = model[3].loc[["TILDE SciBERT", "TILDEv2 SciBERT"]].to_numpy()
    single = np.maximum(model[3].loc[["BM25 STM2"]].to_numpy(), alone)
    quality, average, at_0, at_1 = (
        number[4].xs(name, level="statistic").to_numpy() for name in interpolation.STATISTICS
    )
    low, high = interpolation.alpha_bounds(at_0, at_1, queries)
    repeated = {name: model[1].index.intersection(model[name].index) for name in (2, 3)}
    same = {name: model[1].loc[rows].to_numpy() == model[name].loc[rows].to_numpy() for name, rows in repeated.items()}
    checks = {
        "rows of Table 2.2 repeated in Table 2.1": same[2],
        "rows of Table 2.1 repeated in Table 2.3": same[3],
        "oracle (2.4) at least the tuned weight (2.3)": quality >= fused,
        "oracle (2.4) at least the better part (2.3)": quality >= single,
        "tuned weight at least the better part (2.3)": fused >= single,
        "tuned weight above the better part (2.3)": fused > single,
        "mean weight within what the counts allow (2.4)": (low <= average) & (average <= high),
        "more than a quarter of the queries at 0, as a quartile range equal to a quartile needs (2.4)": at_0
        > queries / 4,
    }
    rows = [(name, held.size, int(held.sum())) for name, held in checks.items()]
    return pd.DataFrame(rows, columns=["check", "cells", "hold"])
