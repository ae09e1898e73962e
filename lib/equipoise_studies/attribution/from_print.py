"""What the thesis's printed means say of its own models, with the widest interval they allow.

Only means are printed, but squared differences of scores from 0 to 1 have bounds, and so has the
error of each mean difference: what leaves zero with the largest possible error leaves it with any.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.derived import (
    DIFFERENCES,
    SCORES,
    SETTING,
    numbers,
    printed_quality,
    quality_of,
)

ROUNDING = 0.1
"""Points by which a difference of two printed means may be off: half a unit of each."""

_NO_PLACEBO = (
    "no labels that mean nothing were put to these models, and a mean of absolute changes is above "
    "zero wherever answers vary at all"
)


# --- differences of printed means, with the largest error -----------------------------------------


def differences(mode: str, against: str, sample: int) -> pd.DataFrame:
    """Printed scores in one mode less those in another, by setting and score, in points.

    Columns of `SETTING` with ``score, gap, error``, the largest standard error that the two means
    allow. For scores from 0 to 1 with means a and b, E[d²] is at most min(a + b, 2 - a - b).
    """
    tables = []
    for score in SCORES.values():
        means = pd.DataFrame({"a": quality_of(mode)[score], "b": quality_of(against)[score]})
        means = means.dropna() / 100
        gap = means["a"] - means["b"]
        most_squared = np.minimum(means["a"] + means["b"], 2 - means["a"] - means["b"])
        error = np.sqrt((most_squared - gap**2) / (sample - 1))
        table = pd.DataFrame({"score": score, "gap": 100 * gap, "error": 100 * error})
        tables.append(table.reset_index())
    return pd.concat(tables, ignore_index=True)


def towards_people(table: pd.DataFrame) -> pd.DataFrame:
    """Differences with the sign of CAB: above zero, passages labelled Human are cited better."""
    labelled_human = table["relevant"] == "Human"
    return table.assign(gap=table["gap"].where(labelled_human, -table["gap"]))


def printed_biases(number: str, sample: int, quantity: str = "") -> pd.DataFrame:
    """Printed CAB of a table that gives no means, as `differences`: its E[d²] is at most 1."""
    table = printed_table(f"thesis/table-{number}")
    if quantity:
        table = table[table["quantity"] == quantity]
    keys = [name for name in ("benchmark", "model", "relevant", "retriever") if name in table]
    table = numbers(table, list(SCORES)).rename(columns=SCORES)
    table = table.melt(keys, list(SCORES.values()), "score", "gap")
    table["error"] = 100 * np.sqrt((1 - (table["gap"] / 100) ** 2) / (sample - 1))
    return table


def _interval(gap: float, error: float, sample: int, tail: float = 0.025) -> tuple[float, float]:
    """Ends of the interval of a difference with such an error, widened by what rounding hides."""
    reach = float(stats.t.isf(tail, sample - 1) * error) + ROUNDING
    return gap - reach, gap + reach


# --- findings on all three models -----------------------------------------------------------------


def least_bias(table: pd.DataFrame, sample: int, statistic: str) -> Evidence:
    """The least mean bias of a model in precision or recall, over its settings.

    ``table``: as of `differences`. Settings of one benchmark share their questions, so that their
    errors may all go one way; the benchmarks are drawn apart.
    """
    keys = ["model", "score"]
    by_benchmark = table.groupby([*keys, "benchmark"])[["gap", "error"]].mean()
    groups = by_benchmark.groupby(keys)
    gaps = groups["gap"].mean()
    errors = np.sqrt((by_benchmark["error"] ** 2).groupby(keys).sum()) / groups.size()
    intervals = [_interval(gap, error, sample) for gap, error in zip(gaps, errors, strict=True)]
    low, high = np.min(intervals, axis=0).tolist()
    model, score = gaps.idxmin()
    return Evidence(
        f"{statistic}, least mean of a model: {score} of {model}, in points",
        float(gaps.min()),
        low,
        high,
        n=sample * table["benchmark"].nunique(),
    )


def least_setting(table: pd.DataFrame, sample: int) -> Evidence:
    """The least difference of a setting and score."""
    intervals = []
    for gap, error in zip(table["gap"], table["error"], strict=True):
        intervals.append(_interval(gap, error, sample))
    low, high = np.min(intervals, axis=0).tolist()
    statistic = f"least of {len(table)} differences of a setting and score, in points"
    return Evidence(statistic, float(table["gap"].min()), low, high, n=sample)


def recall_changes(sample: int) -> pd.DataFrame:
    """By how much recall changes from Vanilla to Informed, as `differences`, the errors exact.

    A recall is 0 or 1 here, so the printed CAS is the mean of squared changes.
    """
    table = differences("Informed", "Vanilla", sample)
    table = table[table["score"] == "Recall"].drop(columns="error")
    cas = numbers(printed_table("thesis/table-5.2"), ["ΔRecall"])
    table = table.merge(cas[[*SETTING, "ΔRecall"]], on=SETTING)
    variance = table["ΔRecall"] / 100 - (table["gap"] / 100) ** 2
    return table.assign(error=100 * np.sqrt(variance / (sample - 1)))


def least_shift(table: pd.DataFrame, sample: int) -> Evidence:
    """How far labels shift a model's recall where they shift it most; the least of the models.

    What varies for no reason goes both ways: it makes a CAS, but no shift of the mean. Of several
    settings one shifts most by chance, so each interval is Bonferroni's.
    """
    shifts = table.assign(shift=table["gap"].abs())
    by_model = {}
    for model, rows in shifts.groupby("model"):
        most = rows.loc[rows["shift"].idxmax()]
        tail = 0.025 / len(rows)
        low, high = _interval(most["shift"], most["error"], sample, tail)
        by_model[model] = (most["shift"], low, high)
    model = min(by_model, key=lambda name: by_model[name][1])
    shift, low, high = by_model[model]
    statistic = f"shift of recall by labels, largest of the settings of {model}, in points"
    return Evidence(statistic, float(shift), float(low), float(high), n=sample)


def highest_score(sample: int) -> Evidence:
    """The highest printed precision or recall of Tables 5.1 and 5.11."""
    table = numbers(printed_quality("5.1", "5.11"), list(SCORES.values()))
    highest = float(table[list(SCORES.values())].max(axis=None))
    share = highest / 100
    low, high = _interval(highest, 100 * np.sqrt(share * (1 - share) / (sample - 1)), sample)
    statistic = "highest printed precision or recall, in percent"
    return Evidence(statistic, highest, low, high, n=sample)


def evidence(sample: int) -> dict[str, Evidence]:
    """What is printed of Mistral, Llama3 and GPT-4, by claim; ``sample``: questions a benchmark."""
    two_authors = towards_people(differences(*DIFFERENCES["thesis/table-5.3"], sample))
    one_author = towards_people(differences(*DIFFERENCES["thesis/table-5.5"], sample))
    all_settings = pd.concat([two_authors, one_author])
    retrievers = printed_biases("5.9", sample, "CAB")
    return without_numbers() | {
        "5.1-fall-short": highest_score(sample),
        "5.2-sensitive": least_shift(recall_changes(sample), sample),
        "5.3-human": least_bias(two_authors, sample, "CAB of Table 5.3"),
        "5.4-labelled-human": least_setting(all_settings, sample),
        "5.5-human": least_bias(one_author, sample, "CAB of Table 5.5"),
        "5.8-names": least_bias(printed_biases("5.8", sample), sample, "CAB of Table 5.8"),
        "5.9-retrievers": least_bias(retrievers, sample, "CAB of Table 5.9"),
    }


def without_numbers() -> dict[str, Evidence]:
    """Findings on the models of which nothing is printed that could test them, by claim."""
    evidence = {}
    for name in ("5.7-sensitive", "5.9-retrievers-sensitive", "5.9-passages-sensitive"):
        evidence[name] = Evidence("CAS above that of labels that mean nothing", reason=_NO_PLACEBO)
    evidence["5.9-passages"] = Evidence(
        "CAB over numbers of passages", reason="Figure 5.9 prints no numbers"
    )
    evidence["5.A-rewriting"] = Evidence(
        "share of rewritten passages that keep their part",
        reason="the rewritten passages and what the annotators said of them are not public",
    )
    return evidence
