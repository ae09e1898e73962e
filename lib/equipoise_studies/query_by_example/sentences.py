"""Prose of chapter 2 that follows from a config."""

from __future__ import annotations

import pandas as pd

from equipoise_studies.query_by_example.data import QueryByExample
from equipoise_studies.query_by_example.study import LEARNED, Study
from equipoise_studies.query_by_example.tables import task_name

_COLLECTIONS = {
    "csfcube": "CSFCube: papers on computer science, whose candidates experts graded from 0 to 3 by one facet at a "
    "time: do they share the background, the method, or the result?",
    "scidocs": "SciDocs, the thesis's own collection: papers that readers viewed together (co-view) or read together "
    "(co-read), that others cite together (co-cite), or that the query cites (cite).",
}
_LESSONS = {
    "titles": "to find a paper's abstract by its title",
    "halves": "to find one half of a paper by the other",
    "judgements": "from papers judged relevant to a query",
}


def of_study(study: Study) -> list[str]:
    """What the numbers of a study are."""
    if study.stands_for == "thesis":
        return [
            "The config names the thesis's own data and rankers. Each cell is compared with the printed one, which "
            f"may lie {study.tolerance:g} off beyond its precision (a MAP of {100 * study.tolerance:g} per cent)."
        ]
    return [
        "This run is a replica: neither the thesis's collection nor its models can be had here, so other ones stand "
        "in, and no number below is meant to equal a printed one.",
        "What carries over are the formulas, the protocol and the questions; each finding of the thesis is judged by "
        "an interval, and what so few query papers cannot tell is called undecided.",
    ]


def of_collection(study: Study, dataset: QueryByExample) -> list[str]:
    """What is searched, by how many queries."""
    facets = dataset.judgements[["task", "query"]].drop_duplicates()
    tasks = ", ".join(map(task_name, dataset.tasks))
    said = [
        _COLLECTIONS[study.collection.kind],
        f"{facets['query'].nunique():,} query papers make {len(facets):,} queries in "
        f"{len(dataset.tasks)} tasks ({tasks}).",
    ]
    if len(facets) > facets["query"].nunique():
        said.append(
            "A ranker gives a paper the same scores in each of its tasks, so tests and intervals draw papers with all "
            "of their tasks, and never count one paper as several observations."
        )
    return said


def of_training(study: Study) -> list[str]:
    """What the rankers have learned, and who was asked of whom."""
    trained = [system for system in study.systems.values() if system.training]
    said = []
    for stages in dict.fromkeys(
        tuple(stage.pairs for stage in system.training) for system in trained
    ):
        names = ", ".join(
            system.name
            for system in trained
            if tuple(stage.pairs for stage in system.training) == stages
        )
        said.append(f"{names} learn {', then '.join(_LESSONS[pairs] for pairs in stages)}.")
    if any(stage.pairs == "judgements" for system in trained for stage in system.training):
        said.append(
            f"{study.collection.trained_on:.0%} of each task's validation queries are trained on, and weights are "
            "tuned on the others."
            if study.collection.trained_on
            else "The query papers are cut into two halves by seed: a ranker trained on the judgements of one half "
            "scores the other, both ways, so that no query is scored by a ranker that saw its judgements."
        )
    seeds = {len(study.seeds_of(name)) for name, system in study.systems.items() if system.training}
    if seeds - {1}:
        said.append(
            "Values are means over several trainings, each with a seed of its own: "
            + ", ".join(
                f"{count} of {system.name}"
                for name, system in study.systems.items()
                if system.training and (count := len(study.seeds_of(name))) > 1
            )
            + "."
        )
    return said


def of_rows(study: Study, printed: pd.DataFrame) -> str:
    """What stands for the rows of a printed table, for the ledger."""
    rows = study.rows(printed)
    stand_ins = [f"{ours} for {row}" for row, ours in rows.items() if ours != row]
    absent = [row for row in printed["model"] if row not in rows]
    said = [f"stand-ins: {', '.join(stand_ins)}"] if stand_ins else []
    return "; ".join([*said, *([f"nothing for {', '.join(absent)}"] if absent else [])])


def of_mixing(curves: pd.DataFrame, levels: pd.DataFrame) -> str:
    """What Figure 2.3 shows: what one weight gains on the better of its ends, and the best weight of each query."""
    curves, levels = curves[curves["measure"] == "MAP"], levels[levels["measure"] == "MAP"]
    means = curves.pivot_table(index="fusion", columns="alpha", values="value", sort=False)
    oracle = levels.groupby("fusion")["value"].mean()
    said = [
        f"with {str(name).split(' + ')[1]} by {line.max() - max(line[0.0], line[1.0]):.3f} and "
        f"{oracle[name] - line.max():.3f}"
        for name, line in means.iterrows()
    ]
    return (
        "Over the mean of the tasks, the best single weight raises MAP above the better of both rankers, and the best "
        f"weight of each query above that: {'; '.join(said)}"
    )


def of_limits(study: Study) -> list[str]:
    """What a reader may not conclude."""
    if study.stands_for == "thesis":
        return ["The scores are of the models that the config names."]
    frozen = [system.name for system in study.systems.values() if system.encoder == "frozen"]
    learned = [system.name for system in study.systems.values() if system.kind in LEARNED]
    return [
        "A stand-in cannot show how good TILDE, TILDEv2 or a cross-encoder are with an encoder of BERT's size: "
        f"{len(learned)} small rankers were trained for minutes, on few judged papers.",
        *(
            [
                f"The encoder of {' and '.join(frozen)} was left as it is: only the heads were trained."
            ]
            if frozen
            else []
        ),
        "Texts of the candidates, though never of the queries, were part of the training on halves of papers.",
        "The makers of all-MiniLM trained it on citations among much else, those of SPECTER on citations alone; some "
        "may be between these very papers.",
        "Rankers learn from halves of papers, which are as long as the queries, because titles had been seen to do "
        "badly on these very queries; that choice favours TILDE and TILDEv2.",
        "CSFCube's candidates were pooled partly by matching terms, which may favour lexical rankers.",
    ]
