"""Prose of chapter 2 that follows from a config."""

from __future__ import annotations

import pandas as pd

from equipoise_studies.query_by_example.study import LEARNED, Study

_COLLECTIONS = {
    "csfcube": "CSFCube: papers on computer science, whose candidates experts graded from 0 to 3 "
    "by one facet at a time: do they share the background, the method, or the result?",
    "links": "CISI and CACM, papers on library science and on computing of 1958 to 1979, in the "
    "form of two of SciDocs's tasks. Of a query's 30 candidates five are linked to it: in co-cite, "
    "others cite both together (three times at least in CISI); in cite, one cites the other. The "
    "other 25, drawn by seed, have no link to it of any kind.",
    "scidocs": "SciDocs, the thesis's own collection: papers that readers viewed together "
    "(co-view) or read together (co-read), that others cite together (co-cite), or that the query "
    "cites (cite).",
}
STAGES = {
    "halves": "halves of papers",
    "titles": "titles and abstracts",
    "judgements": "judgements",
}
"""What tables call a stage of training."""

_LESSONS = {
    "titles": "to find a paper's abstract by its title",
    "halves": "to find one half of a paper by the other",
    "judgements": "from papers judged relevant to a query",
}


def of_study(study: Study) -> list[str]:
    """What the numbers of a study are."""
    if study.stands_for == "thesis":
        return [
            "The config names the thesis's own data and rankers. Each cell is compared with the "
            f"printed one, which may lie {study.tolerance:g} off beyond its precision (a MAP of "
            f"{100 * study.tolerance:g} per cent)."
        ]
    return [
        "This run is a replica: neither the thesis's collection nor its models can be had here, "
        "so other ones stand in, and no number below is meant to equal a printed one.",
        "What carries over are the formulas, the protocol and the questions; each finding of the "
        "thesis is judged by an interval, and what the query papers cannot tell is called "
        "undecided.",
    ]


def of_collection(study: Study, judgements: pd.DataFrame) -> list[str]:
    """What is searched, by how many queries; ``judgements``: tasks by the names of tables."""
    queries = judgements[["task", "query"]].drop_duplicates()
    papers = queries["query"].nunique()
    tasks = queries["task"].unique()
    sentences = [
        _COLLECTIONS[study.collection.kind],
        f"{papers:,} query papers make {len(queries):,} queries in {len(tasks)} tasks "
        f"({', '.join(tasks)}).",
    ]
    # Only where a paper is a query in several tasks.
    if len(queries) > papers:
        sentences.append(
            "A ranker gives a paper the same scores in each of its tasks, so tests and intervals "
            "draw papers with all of their tasks, and never count one paper as several "
            "observations."
        )
    return sentences


def of_training(study: Study) -> list[str]:
    """What the rankers have learned, and who was asked of whom."""
    # Rankers that learned the same are told of in one sentence.
    names_by_lessons: dict[tuple[str, ...], list[str]] = {}
    for system in study.systems.values():
        lessons: tuple[str, ...] = tuple(stage.pairs for stage in system.training)
        if lessons:
            names_by_lessons.setdefault(lessons, []).append(system.name)
    sentences = []
    for lessons, names in names_by_lessons.items():
        course = ", then ".join(_LESSONS[lesson] for lesson in lessons)
        sentences.append(f"{', '.join(names)} learn {course}.")
    if any("judgements" in lessons for lessons in names_by_lessons):
        sentences.append(_of_judgements(study))
    return sentences + _of_seeds(study)


def _of_judgements(study: Study) -> str:
    """Which queries rankers learn from, and which they are asked."""
    if study.collection.trained_on:
        return (
            f"{study.collection.trained_on:.0%} of each task's validation queries are trained on, "
            "and weights are tuned on the others."
        )
    return (
        "The query papers are cut into two halves by seed: a ranker trained on the judgements of "
        "one half scores the other, both ways, so that no query is scored by a ranker that saw "
        "its judgements."
    )


def _of_seeds(study: Study) -> list[str]:
    """Of which rankers there are several trainings."""
    counts = []
    for column, system in study.systems.items():
        seeds = len(study.seeds_of(column))
        if system.training and seeds > 1:
            counts.append(f"{seeds} of {system.name}")
    if not counts:
        return []
    return [
        "Values are means over several trainings, each with a seed of its own: "
        f"{', '.join(counts)}."
    ]


def of_rows(study: Study, printed: pd.DataFrame) -> str:
    """What stands for the rows of a printed table, for the ledger."""
    rows = study.rows(printed)
    stand_ins = [f"{name} for {row}" for row, name in rows.items() if name != row]
    absent = [row for row in printed["model"] if row not in rows]
    notes = []
    if stand_ins:
        notes.append(f"stand-ins: {', '.join(stand_ins)}")
    if absent:
        notes.append(f"nothing for {', '.join(absent)}")
    return "; ".join(notes)


def of_mixing(curves: pd.DataFrame, levels: pd.DataFrame) -> str:
    """What Figure 2.3 shows: what one weight gains on its better end, and the oracle on that."""
    curves, levels = curves[curves["measure"] == "MAP"], levels[levels["measure"] == "MAP"]
    means = curves.pivot_table(index="fusion", columns="alpha", values="value", sort=False)
    oracle = levels.groupby("fusion")["value"].mean()
    gains = []
    for mixture, curve in means.iterrows():
        ranker = str(mixture).split(" + ")[1]
        of_one_weight = curve.max() - max(curve[0.0], curve[1.0])
        of_oracle = oracle[mixture] - curve.max()
        gains.append(f"with {ranker} by {of_one_weight:.3f} and {of_oracle:.3f}")
    return (
        "Over the mean of the tasks, the best single weight raises MAP above the better of both "
        "rankers, and the best weight of each query above that: " + "; ".join(gains)
    )


def of_limits(study: Study) -> list[str]:
    """What a reader may not conclude."""
    if study.stands_for == "thesis":
        return ["The scores are of the models that the config names."]
    systems = study.systems.values()
    frozen = [system.name for system in systems if system.encoder == "frozen"]
    learned = [system.name for system in systems if system.kind in LEARNED]
    sentences = [
        "A stand-in cannot show how good TILDE, TILDEv2 or a cross-encoder are with an encoder of "
        f"BERT's size: {len(learned)} small rankers were trained for minutes, on few judged "
        "papers."
    ]
    if frozen:
        sentences.append(
            f"The encoder of {' and '.join(frozen)} was left as it is: only the heads were trained."
        )
    return [
        *sentences,
        "Texts of the candidates, though never of the queries, were part of the training on halves "
        "of papers.",
        *_LIMITS[study.collection.kind],
    ]


_LIMITS = {
    "links": [
        "A link says that two papers have to do with one another, not that a reader wants both; "
        "two of SciDocs's four kinds are here, co-view and co-read are not, and the papers are as "
        "old as the collections.",
        "Queries share candidates and cite one another, so that papers are not quite independent "
        "draws; no pair that is scored was learned from the other way round.",
        "The makers of all-MiniLM and all-mpnet trained them on citations among much else, those "
        "of SPECTER on citations alone; some may be between these very papers.",
    ],
    "csfcube": [
        "The makers of all-MiniLM trained it on citations among much else, those of SPECTER on "
        "citations alone; some may be between these very papers.",
        "Rankers learn from halves of papers, which are as long as the queries, because titles had "
        "been seen to do badly on these very queries; that choice favours TILDE and TILDEv2.",
        "CSFCube's candidates were pooled partly by matching terms, which may favour lexical "
        "rankers.",
    ],
    "scidocs": [],
}
"""What a collection, and training on it, cannot tell."""
