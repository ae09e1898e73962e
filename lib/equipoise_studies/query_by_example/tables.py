"""Tables of thesis chapter 2 on the collection at hand, and its printed ones against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.measures.effectiveness import effectiveness
from equipoise.statistics import bootstrap_interval
from equipoise_studies.query_by_example import interpolation
from equipoise_studies.query_by_example.data import QueryByExample, text_of
from equipoise_studies.query_by_example.study import Study
from equipoise_studies.systems.tokenisation import ANALYSERS

TASKS = {"coview": "Co-view", "coread": "Co-read", "cocite": "Co-cite", "cite": "Cite"}
"""The thesis's names of SciDocs' tasks, in its order."""

BM25_ROW, TILDE, TILDEV2 = "BM25 STM2", "TILDE SciBERT", "TILDEv2 SciBERT"
"""Rows of Table 2.1 that are interpolated."""

LEXICAL_ROWS = tuple(
    f"{model} {name}"
    for model in ("LM", "BM25")
    for name in ("SA", "STM1", "STM2", "BERT-Token", "SciBERT-Token")
)
"""Rows of Table 2.2, by the thesis's names."""

Fusions = Mapping[str, Sequence[str]]
"""What BM25 together with a contextualised ranker is called, and the ranker's columns of scores, one for each seed."""

QUERIES = 1000
"""Queries of a task in SciDocs, about: the thesis prints no exact number."""


def task_name(task: str) -> str:
    """What tables call a task."""
    return TASKS.get(task, task.capitalize())


def collection_table(dataset: QueryByExample, relevant: int) -> pd.DataFrame:
    """Queries, candidates and relevant ones of every task."""
    counts = dataset.judgements.assign(relevant=dataset.judgements["grade"] >= relevant)
    counts = counts.groupby("task").agg(
        queries=("query", "nunique"), candidates=("document", "size"), relevant=("relevant", "sum")
    )
    counts = counts.assign(
        **{"candidates a query": counts["candidates"] / counts["queries"]}
    ).reset_index()
    return counts.assign(task=counts["task"].map(task_name))


def values_of(
    run: pd.DataFrame, dataset: QueryByExample, relevant: int, by: str = "run"
) -> pd.DataFrame:
    """MAP, of grades from ``relevant`` on, and nDCG of every query: ``by, task, query, measure, value``."""
    named = {"MAP": f"AP(rel={relevant})", "nDCG": "nDCG"}
    return effectiveness(run, dataset.judgements, by=[by, "task"], measures=named)


def system_values(pairs: pd.DataFrame, dataset: QueryByExample, study: Study) -> pd.DataFrame:
    """`values_of` every column of scores, under its model's name in tables: of several seeds, the mean."""
    run = pairs.melt(["task", "query", "document"], var_name="run", value_name="score")
    values = values_of(run, dataset, study.collection.relevant)
    names = {
        column: system.name
        for name, system in study.systems.items()
        for column in study.columns(name)
    }
    names |= {name: study.called(name) for name in LEXICAL_ROWS}
    values = values.assign(run=values["run"].map(names))
    return values.groupby(["run", "task", "query", "measure"], sort=False, as_index=False)[
        "value"
    ].mean()


def tested(values: pd.DataFrame, dataset: QueryByExample) -> pd.DataFrame:
    """Values of the queries that are tested with, tasks by their names and in the thesis's order."""
    test = dataset.splits.query("part == 'test'")[["task", "query"]].drop_duplicates()
    values = values.merge(test)
    order = [task for task in (*TASKS, *dataset.tasks) if task in set(values["task"])]
    place = values["task"].map({task: number for number, task in enumerate(dict.fromkeys(order))})
    values = values.assign(place=place).sort_values(["place", "measure"], kind="stable")
    return values.assign(task=values["task"].map(task_name)).drop(columns="place")


def in_layout(table: pd.DataFrame, study: Study, printed: pd.DataFrame) -> pd.DataFrame:
    """A table as the thesis sets it: its rows, with MAP in per cent; a row that nothing was run for is empty.

    A replica, whose tasks are others, keeps its own rows, and has beside them the means over the
    thesis's four tasks.
    """
    if study.stands_for == "thesis":
        means = table.filter(regex="MAP$").columns
        table = table.assign(**{name: table[name] * 100 for name in means})
        return printed[["row", "model"]].merge(table.drop(columns="row"), how="left").fillna("")
    theirs = table["model"].map({ours: name for name, ours in study.rows(printed).items()})
    table.insert(2, "stands for", theirs.where(theirs != table["model"], "").fillna(""))
    means = printed.set_index("model").filter(regex="MAP|nDCG").map(_fraction)
    for measure in ("MAP", "nDCG"):
        table[f"thesis {measure}"] = theirs.map(means.filter(like=measure).mean(axis=1))
    return table


def _fraction(text: str) -> float:
    return float(text.rstrip("%")) / (100 if text.endswith("%") else 1)


def training_table(measured: Mapping[str, Any], study: Study) -> pd.DataFrame:
    """Steps of training and the mean loss in the first and last tenth of them, by stage; means over seeds."""
    rows = [
        {
            "model": study.systems[column.rpartition(".")[0]].name,
            "learns from": {"halves": "halves of papers", "titles": "titles and abstracts"}.get(
                stage, stage
            ),
            "steps": steps,
            "first loss": found["loss"][stage][0],
            "last loss": found["loss"][stage][1],
            "terms added": found.get("terms added"),
        }
        for column, found in measured.items()
        for stage, steps in found["steps"].items()
        if column.rpartition(".")[0] in study.systems
    ]
    table = pd.DataFrame(rows).groupby(["model", "learns from"], sort=False).mean().reset_index()
    return table.assign(steps=table["steps"].round()).dropna(axis=1, how="all")


def trained(study: Study) -> list[str]:
    """Rankers that were trained and stand for a row of Table 2.1."""
    return [system.name for system in study.systems.values() if system.training and system.printed]


def example_weights(path: Path, study: Study) -> pd.DataFrame:
    """Recorded weights of one sentence by two systems; of TILDE's, as probabilities, words of four letters and more."""
    names = {
        study.column(study.called(TILDE)): "TILDE",
        study.column(study.called(TILDEV2)): "TILDEv2",
    }
    table = pd.read_csv(path, dtype={"token": str}, keep_default_na=False)
    table = table[table["system"].isin(names)].assign(system=table["system"].map(names))
    table["weight"] = np.where(table["system"] == "TILDE", np.exp(table["weight"]), table["weight"])
    return table[(table["system"] == "TILDEv2") | table["token"].str.fullmatch("[a-z]{4,}")]


def example_query(dataset: QueryByExample, relevant: int) -> tuple[str, str, str]:
    """The task and query with the most relevant candidates, and what a figure calls the query."""
    alike = (
        dataset.judgements[dataset.judgements["grade"] >= relevant]
        .groupby(["task", "query"])
        .size()
    )
    task, query = alike.idxmax()
    return task, query, f"paper {query}\n{len(text_of(dataset.papers)[query].split())} words"


def ranked_grades(
    pairs: pd.DataFrame, dataset: QueryByExample, task: str, query: str, columns: Mapping[str, str]
) -> pd.DataFrame:
    """Grades of the first 25 candidates of a query, a row a model by its column of scores: ``model, 1, 2, ...``."""
    ranked = pairs[(pairs["task"] == task) & (pairs["query"] == query)].merge(dataset.judgements)
    grades = [
        ranked.sort_values([column, "document"], ascending=False)["grade"].head(25).to_numpy()
        for column in columns.values()
    ]
    return pd.DataFrame(
        grades, index=pd.Index(columns, name="model"), columns=range(1, len(grades[0]) + 1)
    ).reset_index()


# --- interpolation --------------------------------------------------------------------------------


def fusions_of(study: Study) -> dict[str, list[str]]:
    """What BM25 together with TILDE, and with TILDEv2, is called, and its columns of scores."""
    return {
        f"{BM25_ROW} + {study.called(row)}": study.columns(study.column(study.called(row)))
        for row in (TILDE, TILDEV2)
    }


def swept_values(
    pairs: pd.DataFrame, dataset: QueryByExample, fusions: Fusions, relevant: int
) -> pd.DataFrame:
    """`values_of` every fusion under every weight, means over seeds, with the column ``fusion``."""
    keys = ["fusion", "task", "query", "measure", "alpha"]
    parts = [
        values_of(
            interpolation.sweep(pairs, BM25_ROW, column), dataset, relevant, by="alpha"
        ).assign(fusion=label)
        for label, columns in fusions.items()
        for column in columns
    ]
    return pd.concat(parts).groupby(keys, sort=False, as_index=False)["value"].mean()


def each_fusion(swept: pd.DataFrame, choose: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Weights chosen for every fusion by each of the two measures, with the column ``fusion``."""
    return pd.concat(
        choose(part, measure=measure).assign(fusion=label)
        for label, part in swept.groupby("fusion", sort=False)
        for measure in ("MAP", "nDCG")
    )


def sweep_means(
    swept: pd.DataFrame, best: pd.DataFrame, resamples: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The curves of Figure 2.3 with intervals over queries, and the level that each query's best weight reaches."""
    keys = ["fusion", "measure", "task", "alpha"]

    def ends(values: pd.Series) -> tuple[float, float]:
        return bootstrap_interval(values, np.random.default_rng(0), resamples=resamples)

    curves = swept.groupby(keys, sort=False)["value"].agg(["mean", ends]).reset_index()
    curves["low"], curves["high"] = curves["ends"].str[0], curves["ends"].str[1]
    curves = curves.drop(columns="ends").rename(columns={"mean": "value"})
    return curves, best.groupby(keys[:3], sort=False)["value"].mean().reset_index()


def fold_weights(tuned: pd.DataFrame) -> pd.DataFrame:
    """The weight tuned for each fold, a column for each task and fold."""
    folds = tuned.assign(column=tuned["task"] + ", " + tuned["fold"].str.replace("fold", "fold "))
    return folds.pivot_table(
        "alpha", ["run", "measure"], "column", aggfunc="first", sort=False
    ).reset_index()


def pooled_statistics(best: pd.DataFrame) -> pd.DataFrame:
    """`oracle_statistics` of every fusion, by task and over all of them."""
    pooled = best.assign(task="All", query=best["task"] + " " + best["query"])
    parts = pd.concat([best, pooled]).groupby("fusion", sort=False)
    return pd.concat(
        interpolation.oracle_statistics(part).assign(fusion=label) for label, part in parts
    )


def oracle_table(statistics: pd.DataFrame, tasks: Sequence[str], *, percent: bool) -> pd.DataFrame:
    """`pooled_statistics` in the form of thesis Table 2.4; ``percent``: MAP in per cent, as there."""
    quality = (statistics["measure"] == "MAP").map({True: 100.0 if percent else 1.0, False: 1.0})
    statistics = statistics.assign(**{"ranking quality": statistics["ranking quality"] * quality})
    statistics["fusion"] = statistics["fusion"].str.replace(BM25_ROW, "BM25", regex=False)
    long = statistics.melt(["fusion", "task", "measure"], var_name="statistic")
    long["column"] = long["task"] + " " + long["measure"]
    order = [f"{task} {measure}" for task in tasks for measure in ("MAP", "nDCG")]
    table = long.pivot_table(
        index=["fusion", "statistic"], columns="column", values="value", sort=False
    )[order]
    table = table.astype(float).astype(object)
    counts = table.index.get_level_values("statistic").str.startswith("queries")
    table.loc[counts] = table.loc[counts].map(int)  # they stay whole numbers
    return table.reset_index()


def predicted_weights(
    pairs: pd.DataFrame,
    dataset: QueryByExample,
    swept: pd.DataFrame,
    fusions: Fusions,
    penalty: float,
) -> pd.DataFrame:
    """Values with a weight predicted for each query, and with one weight learned from all other papers.

    The latter is what an endless penalty leaves of a prediction; the column ``weight`` tells which
    is which.
    """
    texts = text_of(dataset.papers)
    lengths = pd.Series({name: len(ANALYSERS["STM2"](texts[name])) for name in dataset.queries})

    def chosen(part: pd.DataFrame, measure: str) -> pd.DataFrame:
        statistics = interpolation.query_statistics(
            pairs, BM25_ROW, fusions[part["fusion"].iloc[0]][0], lengths
        )
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
    gaps = predictions.pivot_table(
        index=[*keys, "task", "query"], columns="weight", values="value", sort=False
    )
    gaps = (gaps["predicted"] - gaps["one weight"]).groupby([*keys, "query"], sort=False).mean()
    ends = gaps.groupby(keys).agg(
        lambda gap: bootstrap_interval(gap, np.random.default_rng(0), resamples=resamples)
    )
    table["gain, low"], table["gain, high"] = ends.str[0], ends.str[1]
    return table.reset_index()


# --- printed tables -------------------------------------------------------------------------------


def printed_checks(printed: Mapping[int, pd.DataFrame], queries: int = QUERIES) -> pd.DataFrame:
    """What must hold between the cells of the thesis's Tables 2.1 to 2.4, whatever the data, and how often it does.

    ``queries``: of a task in SciDocs, about.
    """
    cells = [column for column in printed[1].columns if column not in ("row", "model")]
    number = {
        name: table.set_index([*table.columns[:2]])[cells]
        .replace("%", "", regex=True)
        .astype(float)
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
    same = {
        name: model[1].loc[rows].to_numpy() == model[name].loc[rows].to_numpy()
        for name, rows in repeated.items()
    }
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
