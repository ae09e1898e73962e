"""What the recorded answers say of the sentences of chapter 5: scores pooled over settings, with intervals.

Each interval is of questions drawn with replacement, all answers to a question together. Two
questions that never were are drawn along, one at either extreme, as in the adjusted interval of a
difference of paired proportions (Bonett and Price 2012): where none of fifteen questions changes, a
bootstrap alone would say that none ever does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from equipoise.answer_modes import mode_parts
from equipoise.arrays import Integers
from equipoise.measures.attribution import citation_rows
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.derived import SCORES, numbers, printed_by_label
from equipoise_studies.attribution.design import CELLS, of_experiment, tables_of
from equipoise_studies.attribution.study import standing_for, stands_for

SEED = 14
PRINTED_IN = {
    "modes": {"CAS": "5.2", "CAB": "5.3"},
    "mixed": {"CAB": "5.5"},
    "names": {"CAS": "5.7", "CAB": "5.8"},
    "retrievers": {"CAS": "5.9", "CAB": "5.9"},
}
"""Experiments, and the tables that print their CAS and CAB."""

UNIT = ["benchmark", "question"]
CELL = ["experiment", "model", "benchmark", "retriever", "k", "relevant", "non-relevant"]
_NONE = "no recorded answer of a model above the level of chance"


# --- intervals ------------------------------------------------------------------------------------


def pooled(
    table: pd.DataFrame,
    column: str,
    said: str,
    *,
    least: float = -100.0,
    printed: float | None = None,
) -> Evidence:
    """The mean of a column of scores up to 100 over all rows, questions drawn with all their rows."""
    each = table.dropna(subset=[column]).groupby(UNIT)[column].agg(["sum", "count"])
    if each.empty:
        return Evidence(said, reason=_NONE)
    rows = each["count"].mean()
    sums = np.append(each["sum"].to_numpy(), [least * rows, 100 * rows])
    counts = np.append(each["count"].to_numpy(dtype=np.float64), [rows, rows])

    def mean(drawn: Integers) -> float:
        return float(sums[drawn].sum() / counts[drawn].sum())

    _, low, high = resampled(mean, len(sums), np.random.default_rng(SEED))
    estimate = float(each["sum"].sum() / each["count"].sum())
    return Evidence(
        said, estimate, min(low, estimate), max(high, estimate), n=len(each), printed=printed
    )


# --- differences, question by question ------------------------------------------------------------


def by_label(
    scored: pd.DataFrame, measures: Sequence[str] = ("precision", "recall")
) -> pd.DataFrame:
    """Scores times 100 of every experiment, a row each, with the label of the relevant passage: Human, LLM or none."""
    told = (
        pd.concat(tables_of(scored), names=["experiment"])
        .reset_index("experiment")
        .reset_index(drop=True)
    )
    part = told["mode"].map({mode: mode_parts(mode)[0] for mode in told["mode"].unique()})
    human = (told["relevant_author"] == "Human") == (part == "Informed")
    told["label"] = np.where(part == "Vanilla", "none", np.where(human, "Human", "LLM"))
    told = told.drop(columns="relevant").rename(
        columns={"relevant_author": "relevant", "nonrelevant_author": "non-relevant"}
    )
    long = told.melt([*CELL, "weights", "question", "label"], list(measures), "score", "value")
    return long.assign(value=100 * long["value"])


def changes(labelled: pd.DataFrame) -> pd.DataFrame:
    """CAB and CAS of every question, cell and score; of several records of a model, the largest of each cell.

    Where one author wrote all passages, CAS is the mean of both modes with labels; otherwise the
    one that tells the truth.
    """
    wide = labelled.pivot_table(
        index=[*CELL, "weights", "score", "question"], columns="label", values="value"
    )
    wide = (
        wide.reindex(columns=["Human", "LLM", "none"]).dropna(subset=["Human", "LLM"]).reset_index()
    )
    moved = wide[["Human", "LLM"]].sub(wide["none"], axis=0).abs()
    both = wide["relevant"] == wide["non-relevant"]
    true = moved["Human"].where(wide["relevant"] == "Human", moved["LLM"])
    wide["CAB"], wide["CAS"] = (
        wide["Human"] - wide["LLM"],
        moved.mean(axis=1, skipna=False).where(both, true),
    )
    wide["questions"] = wide.groupby([*CELL, "score"])["question"].transform("nunique")
    cell = [name for name in CELL if name != "model"] + ["weights"]
    ordered = wide.sort_values("questions", ascending=False, kind="stable")
    return ordered[
        ordered["model"] == ordered.groupby(cell)["model"].transform("first")
    ].sort_index()


def chance(scored: pd.DataFrame) -> dict[str, Evidence]:
    """By how many points each model's recall exceeds that of as many citations drawn at random."""
    margin = scored.assign(above=100 * (scored["recall"] - scored["cited"] / scored["k"]))
    return {
        str(model): pooled(
            part, "above", f"recall of {model} above that of random citations, in points"
        )
        for model, part in margin.groupby("model", sort=False)
    }


def above_chance(scored: pd.DataFrame) -> list[str]:
    """Models whose recall exceeds that of random citations with its interval."""
    return [
        name for name, found in chance(scored).items() if found.low is not None and found.low > 0
    ]


def _printed_mean(tables: Sequence[str], quantity: str, cells: pd.DataFrame) -> float | None:
    """Mean of the printed scores of the settings that are among ours; None where there is none."""
    ours, scores = (
        cells.assign(benchmark=cells["benchmark"].map(stands_for), quantity=quantity),
        list[float](),
    )
    for table in tables:
        printed = numbers(printed_table(f"thesis/table-{table}"), list(SCORES))
        shared = [
            name
            for name in ("benchmark", "relevant", "non-relevant", "quantity")
            if name in printed
        ]
        scores += (
            printed.merge(ours[shared].drop_duplicates())[list(SCORES)].to_numpy().ravel().tolist()
        )
    return float(np.mean(scores)) if scores else None


def over_settings(found: pd.DataFrame, quantity: str, *experiments: str) -> Evidence:
    """CAS or CAB over all settings of some experiments, with the mean that the thesis prints of the same ones."""
    cells = found[found["experiment"].isin(experiments)].dropna(subset=[quantity])
    scores = " and ".join(sorted(cells["score"].unique(), reverse=True)).replace("_", " ")
    told = f"mean {quantity} of {scores} over {cells.groupby(CELL).ngroups} settings, in points"
    tables = [
        PRINTED_IN[name][quantity] for name in experiments if quantity in PRINTED_IN.get(name, {})
    ]
    printed = (
        _printed_mean(tables, quantity, cells)
        if set(cells["score"]) <= {"precision", "recall"}
        else None
    )
    return pooled(
        cells, quantity, told, least=-100.0 if quantity == "CAB" else 0.0, printed=printed
    )


def _against_placebo(found: pd.DataFrame, quantity: str) -> Evidence:
    """How much more labels of authors do than labels that mean nothing, for the same questions and passages."""
    names = ["mixed", "placebo"]
    same = [name for name in CELL if name != "experiment"] + ["score", "question"]
    wide = found[found["experiment"].isin(names)].pivot_table(
        index=same, columns="experiment", values=quantity
    )
    wide = wide.reindex(columns=names).dropna().reset_index()
    gaps = wide.assign(gap=wide["mixed"] - wide["placebo"])
    return pooled(
        gaps,
        "gap",
        f"{quantity} with the labels Human and LLM less that with labels that mean nothing, in points",
    )


def _confidence(scored: pd.DataFrame) -> Evidence:
    """How much more probable citations of relevant passages are than the others, in points."""
    rows = citation_rows(scored).dropna(subset=["probability"])
    said, printed = (
        "mean probability of a relevant passage's number less that of another's, in points",
        list[float](),
    )
    if rows["relevant"].nunique() < 2:
        return Evidence(said, reason=_NONE)
    side = np.where(rows["relevant"], "relevant", "other")
    each = rows.assign(side=side).pivot_table(
        "probability", UNIT, "side", aggfunc=["sum", "count"], fill_value=0
    )
    sums, counts = (
        each[name][["relevant", "other"]].to_numpy(dtype=np.float64) for name in ("sum", "count")
    )

    def gap(drawn: Integers) -> float:
        first, second = sums[drawn].sum(axis=0) / np.maximum(counts[drawn].sum(axis=0), 1)
        return 100 * float(first - second)

    for table in (printed_table(f"thesis/table-{number}") for number in ("5.6", "5.10")):
        printed += (
            table["relevant AC"].astype(float) - table["non-relevant AC"].astype(float)
        ).tolist()
    found = resampled(gap, len(each), np.random.default_rng(SEED))
    return Evidence(said, *found, n=len(each), printed=100 * float(np.mean(printed)))


def evidence(scored: pd.DataFrame) -> dict[str, Evidence]:
    """What the recorded answers say of the chapter's sentences, by claim, of models above the level of chance."""
    margins = chance(scored)
    weakest = min(margins.values(), key=lambda found: found.estimate or 0)
    kept = scored[scored["model"].isin(above_chance(scored))]
    quality = of_experiment(kept, "modes").assign(points=lambda rows: 100 * rows["precision"])
    found, correct = changes(by_label(kept)), printed_by_label("EM")
    return {
        "5.1-every-model-above-chance": weakest,
        "5.1-fall-short": pooled(
            standing_for(quality, "NQ"),
            "points",
            "mean precision over the modes, in percent",
            least=0.0,
            printed=float(
                numbers(printed_table("thesis/table-5.1"), ["Precision"])["Precision"].mean()
            ),
        ),
        "5.1-correctness": replace(
            over_settings(
                changes(by_label(standing_for(kept, "NQ"), ["exact_match"])),
                "CAB",
                "modes",
                "mixed",
            ),
            printed=100 * float((correct["Human"] - correct["LLM"]).mean()),
        ),
        "5.4-labelled-human": over_settings(found, "CAB", "modes", "mixed"),
        "5.2-sensitive": over_settings(found, "CAS", "modes"),
        "5.7-sensitive": over_settings(found, "CAS", "names"),
        "5.3-human": over_settings(found, "CAB", "modes"),
        "5.5-human": over_settings(found, "CAB", "mixed"),
        "5.5-negligible": replace(over_settings(found, "CAB", "mixed"), printed=None),
        "5.8-names": over_settings(found, "CAB", "names"),
        "5.9-retrievers": over_settings(found[found["retriever"] != "BM25"], "CAB", "retrievers"),
        "5.9-passages": over_settings(found[found["relevant"] == "Human"], "CAB", "documents"),
        "5.6-confident": _confidence(of_experiment(kept, "modes", "mixed")),
        "5.A-rewriting": Evidence(
            "share of rewritten passages that keep their part, in percent",
            reason="a rule lets in only questions whose rewritten passages do",
        ),
        "placebo-cab": over_settings(found, "CAB", "placebo"),
        "placebo-cas": _against_placebo(found, "CAS"),
        "placebo-bias": _against_placebo(found, "CAB"),
    }


# --- overview -------------------------------------------------------------------------------------

KINDS = {
    "modes": "Human / LLM, true authors",
    "mixed": "Human / LLM, mixed mode",
    "names": "name / AI, mixed mode",
    "placebo": "Birch / Maple, mixed mode (placebo)",
}
"""Experiments of the overview, and what their labels and modes are."""


def overview(scored: pd.DataFrame) -> pd.DataFrame:
    """CAB of every experiment, model and benchmark over its settings and both scores, beside the printed mean."""
    found, kept, rows = changes(by_label(scored)), above_chance(scored), []
    kinds = KINDS | {
        name: f"{name}, mixed mode" for name in found["experiment"].unique() if name not in CELLS
    }
    for experiment, group in kinds.items():
        here = found[found["experiment"] == experiment].dropna(subset=["CAB"])
        table = PRINTED_IN.get(experiment, {}).get("CAB")
        scores = (
            numbers(printed_table(f"thesis/table-{table}"), list(SCORES))[list(SCORES)]
            if table
            else pd.DataFrame()
        )
        span = (scores.min(axis=None), scores.max(axis=None)) if len(scores) else (np.nan, np.nan)
        for (model, benchmark), part in here.groupby(["model", "benchmark"], sort=False):
            one, moved = (
                over_settings(part, "CAB", experiment),
                part.loc[part["CAB"] != 0, UNIT].drop_duplicates(),
            )
            name = f"{model}, {benchmark}, n = {one.n}" + (
                "" if model in kept else " (chance level)"
            )
            rows.append(
                (
                    group,
                    name,
                    one.n,
                    len(moved),
                    one.estimate,
                    one.low,
                    one.high,
                    one.printed,
                    *span,
                )
            )
    columns = ["group", "name", "questions", "changed", "value", "low", "high", "printed mean"]
    return pd.DataFrame(rows, columns=[*columns, "printed low", "printed high"])
