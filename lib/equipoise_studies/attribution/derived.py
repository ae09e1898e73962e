"""The printed numbers of chapter 5, and what they say of the chapter's sentences on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.measures.attribution import score_answers
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table

SETTING = ["benchmark", "model", "relevant", "non-relevant"]
SCORES = {"ΔPrecision": "Precision", "ΔRecall": "Recall"}
"""Columns of the tables of differences, and of the tables of the modes that they come from."""

DIFFERENCES = {
    "thesis/table-5.3": ("Informed", "CF-informed"),
    "thesis/table-5.5": ("Informed/CF-informed", "CF-informed/Informed"),
}
"""Tables of differences, and the modes that each is of."""

PRINTED = "printed numbers against printed words: nothing is sampled"


# --- printed numbers ------------------------------------------------------------------------------


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A printed table with some columns as numbers, without the marks."""
    table = table.copy()
    for column in columns:
        table[column] = table[column].str.rstrip("†").astype(float)
    return table


def printed_numbers(number: str) -> pd.DataFrame:
    """The differences of precision and recall that a table of chapter 5 prints, as numbers."""
    columns = list(SCORES)
    return numbers(printed_table(f"thesis/table-{number}"), columns)[columns]


def printed_quality(*table_numbers: str) -> pd.DataFrame:
    """Tables of the modes below each other, as printed, with one column mode.

    ``table_numbers``: such as 5.1; without them all that print modes, and of Table 5.4 what no
    other has.
    """
    tables = []
    for number in table_numbers or ("5.1", "5.11", "5.14", "5.15"):
        tables.append(printed_table(f"thesis/table-{number}"))
    if not table_numbers:
        # The text of Table 5.14 has lost GPT-4's rows, of which Table 5.4 has some.
        tables.append(printed_table("thesis/table-5.4").query("model == 'GPT-4'"))
    table = pd.concat(tables, ignore_index=True)
    if "relevant mode" in table:
        mixed_mode = table["relevant mode"] + "/" + table["non-relevant mode"]
        table["mode"] = table["mode"].fillna(mixed_mode)
    return table[[*SETTING, "mode", *SCORES.values()]]


def quality_of(mode: str) -> pd.DataFrame:
    """Printed scores in a mode, by setting."""
    scores = list(SCORES.values())
    table = numbers(printed_quality(), scores)
    return table[table["mode"] == mode].set_index(SETTING)[scores]


def printed_totals() -> pd.DataFrame:
    """Printed numbers of citations in every setting and mode."""
    tables = [printed_table("thesis/table-5.12"), printed_table("thesis/table-5.13")]
    table = pd.concat(tables, ignore_index=True)
    table["total"] = table["total cited"].astype(float)
    return table


def printed_by_label(score: str) -> pd.DataFrame:
    """A score of Tables 5.1 and 5.4 by setting, the relevant passage labelled Human and LLM."""
    tables = [printed_table("thesis/table-5.1"), printed_table("thesis/table-5.4")]
    table = pd.concat(tables, ignore_index=True)
    relevant_mode = table["mode"].fillna(table["relevant mode"])
    # Informed tells the truth of the relevant passage, CF-informed the opposite.
    labelled_human = (table["relevant"] == "Human") == (relevant_mode == "Informed")
    table["label"] = labelled_human.map({True: "Human", False: "LLM"})
    table = numbers(table[relevant_mode != "Vanilla"], [score])
    return table.pivot_table(index=SETTING, columns="label", values=score)


# --- what the text says of printed numbers --------------------------------------------------------


def _least_margin(
    table: pd.DataFrame,
    index: Sequence[str],
    columns: str,
    lowest: str,
    scores: Sequence[str] = tuple(SCORES),
) -> Evidence:
    """By how much printed scores of ``lowest`` are below those of its rivals, where that is least.

    ``columns``: the column that tells rivals apart.
    """
    table = numbers(table, list(scores))
    wide = table.pivot_table(index=list(index), columns=columns, values=list(scores))
    rivals = sorted(set(table[columns]) - {lowest})
    margins = []
    for score in scores:
        for rival in rivals:
            margins.append(wide[score, rival] - wide[score, lowest])
    gaps = pd.concat(margins)
    above = int((gaps > 0).sum())
    statistic = f"smallest of {len(gaps)} differences from {lowest} ({above} are above zero)"
    return Evidence(statistic, float(gaps.min()), reason=PRINTED)


def _share_of_settings(score: str, best: Collection[str]) -> Evidence:
    """In how many percent of the settings of Table 5.1 some models all beat the others."""
    table = numbers(printed_table("thesis/table-5.1"), [score])
    wide = table.pivot_table(index=["relevant", "mode"], columns="model", values=score)
    above = wide[list(best)].min(axis=1) > wide.drop(columns=list(best)).max(axis=1)
    statistic = f"share of {len(above)} settings of Table 5.1, in percent"
    return Evidence(statistic, 100 * float(above.mean()), reason=PRINTED)


def scored_otherwise(
    artefact: str, key: str, right: Collection[str], cites_wrongly: Collection[str]
) -> Evidence:
    """How many printed answers are scored otherwise than the text has it.

    ``key``: the column that names an answer. ``right``, ``cites_wrongly``: the answers of which the
    text says so.
    """
    answers = printed_table(artefact).rename(columns={"query": "question"})
    answers["relevant"] = [(int(number),) for number in answers["relevant document"]]
    answers["gold"] = answers["gold answer"].str.split("; ")
    scored = score_answers(answers[["question", key, "answer", "relevant", "gold"]])
    scored = scored.set_index(key)

    # An answer that is right holds the gold answer and cites the relevant passage.
    said_right = scored.index.isin(right)
    said_to_cite_wrongly = scored.index.isin(cites_wrongly)
    has_wrong_citation = scored["cited"] > scored["cited_relevant"]
    otherwise = (scored["recall"] != said_right) | (scored["exact_match"] != said_right)
    otherwise |= has_wrong_citation != said_to_cite_wrongly

    precision = ", ".join(f"{name} {value:.2f}" for name, value in scored["precision"].items())
    statistic = f"answers scored otherwise than told (precision: {precision})"
    return Evidence(statistic, float(otherwise.sum()), reason=PRINTED)


def _least_above_floor(totals: pd.DataFrame) -> Evidence:
    """How far the printed totals of citations lie above recall² / precision, at least."""
    # Recall and precision are printed in percent, citations as numbers.
    means = numbers(printed_quality("5.1", "5.11"), ["Precision", "Recall"])
    rows = totals[[*SETTING, "mode", "total"]].merge(means, how="left")
    above = rows["total"] - rows["Recall"] ** 2 / rows["Precision"] / 100
    statistic = f"least distance of {len(above)} totals from their floor, in citations"
    return Evidence(statistic, float(above.min()), reason=PRINTED)


def _largest_cas() -> Evidence:
    """The largest printed CAS; the conclusion of the chapter gives a range."""
    cas = printed_numbers("5.2").to_numpy()
    cab = pd.concat([printed_numbers("5.3"), printed_numbers("5.5")]).to_numpy()
    statistic = (
        f"largest printed CAS (they run from {cas.min()} to {cas.max()}; "
        f"CAB from {cab.min()} to {cab.max()})"
    )
    return Evidence(statistic, float(cas.max()), reason=PRINTED)


def _correctness() -> dict[str, Evidence]:
    """Where answers are correct more often with the relevant passage labelled Human."""
    by_label = printed_by_label("EM")
    higher = by_label["Human"] > by_label["LLM"]
    settings = f"{len(higher)} settings of Tables 5.1 and 5.4"
    return {
        "5.1-correctness": Evidence(
            f"share of {settings}, in percent", 100 * float(higher.mean()), reason=PRINTED
        ),
        "5.1-correctness-not-consistent": Evidence(
            f"number of {settings} in which it is not higher", int((~higher).sum()), reason=PRINTED
        ),
    }


def _unmarked_biases() -> Evidence:
    """How many printed CAB are not above zero with a mark of significance."""
    tables = [printed_table("thesis/table-5.3"), printed_table("thesis/table-5.5")]
    cells = pd.concat(tables).melt(value_vars=list(SCORES))["value"]
    is_marked = cells.str.endswith("†") & cells.str.startswith("+")
    statistic = f"number of {len(cells)} CAB of Tables 5.3 and 5.5 without a mark or not above zero"
    return Evidence(statistic, int((~is_marked).sum()), reason=PRINTED)


def printed_confidence() -> pd.DataFrame:
    """Tables 5.6 and 5.10: the setting, ``mode``, and ``gap``, relevant less other, in points."""
    tables = [printed_table("thesis/table-5.6"), printed_table("thesis/table-5.10")]
    table = pd.concat(tables, ignore_index=True)
    gap = table["relevant AC"].astype(float) - table["non-relevant AC"].astype(float)
    return table[[*SETTING, "mode"]].assign(gap=100 * gap)


def _least_share_above_zero(table: pd.DataFrame, by: str) -> Evidence:
    """Of the groups the one whose gaps of confidence are above zero least often."""
    shares = 100 * (table["gap"] > 0).groupby(table[by]).mean()
    name = shares.idxmin()
    statistic = f"least share of gaps above zero by {by} ({name}), in percent"
    return Evidence(statistic, float(shares.min()), reason=PRINTED)


def gap_by_label(table: pd.DataFrame) -> Evidence:
    """How much wider the gap of confidence is where the relevant passage is labelled Human.

    Takes the table of `printed_confidence`. The two settings of a model and benchmark share their
    questions, so that these six pairs are the units, with a t interval over them.
    """
    labelled = table[table["mode"] != "Vanilla"]
    # Informed tells the truth of the relevant passage, CF-informed the opposite.
    is_human = (labelled["relevant"] == "Human") == (labelled["mode"] == "Informed")
    sign = is_human.map({True: 1, False: -1})
    signed = labelled.assign(gap=labelled["gap"] * sign)
    by_setting = signed.groupby(SETTING)["gap"].sum()
    by_pair = by_setting.groupby(["benchmark", "model"]).mean()
    mean, error = by_pair.mean(), by_pair.sem()
    reach = stats.t.isf(0.025, len(by_pair) - 1) * error
    statistic = (
        "gap of confidence with the relevant passage labelled Human less that labelled LLM, mean "
        f"of {len(by_setting)} settings ({(by_setting > 0).sum()} above zero), in points"
    )
    low, high = float(mean - reach), float(mean + reach)
    return Evidence(statistic, float(mean), low, high, n=len(by_pair))


def _most_alike() -> Evidence:
    """How large a share of settings goes one way between one label for all and the other."""
    scores = list(SCORES.values())
    table = numbers(printed_quality(), scores)
    same_label = table[table["mode"].isin(["Informed/Informed", "CF-informed/CF-informed"])]
    wide = same_label.pivot_table(index=SETTING, columns="mode", values=scores)
    shares = {}
    for score in scores:
        all_true = wide[score, "Informed/Informed"]
        all_false = wide[score, "CF-informed/CF-informed"]
        by_people = wide.index.get_level_values("relevant") == "Human"
        # Where people wrote all passages, the truth labels all Human.
        gap = (all_true - all_false) * np.where(by_people, 1, -1)
        shares["higher", score.lower()] = float((gap > 0).mean())
        shares["lower", score.lower()] = float((gap < 0).mean())
    direction, score = max(shares, key=lambda key: shares[key])
    statistic = (
        f"share of {len(wide)} settings in which {score} is {direction} with all passages labelled "
        "Human than with all labelled LLM, in percent"
    )
    return Evidence(statistic, 100 * shares[direction, score], reason=PRINTED)


def evidence() -> dict[str, Evidence]:
    """What printed numbers say of the chapter's sentences on them, by claim."""
    totals = printed_totals()
    setting = ["benchmark", "relevant"]
    all_models = ["Mistral", "Llama3", "GPT-4"]
    all_modes = ["Vanilla", "Informed", "CF-informed"]
    confidence = printed_confidence()
    by_claim = _correctness() | {
        "5.2-3-to-18": _largest_cas(),
        "5.3-marks": _unmarked_biases(),
        "5.6-confident": _least_share_above_zero(confidence, "model"),
        "5.6-labels": _least_share_above_zero(confidence, "mode"),
        "5.6-labels-move": gap_by_label(confidence),
        "5.14-same-label": _most_alike(),
        "5.9-unicoil-lower": _least_margin(
            printed_table("thesis/table-5.9"), ["quantity", "model"], "retriever", "uniCOIL"
        ),
        "5.12-gpt4-fewer": _least_margin(
            totals, [*setting, "mode"], "model", "GPT-4", ["total cited"]
        ),
        "5.12-floor": _least_above_floor(totals),
        "5.1-gpt4-precision": _share_of_settings("Precision", ["GPT-4"]),
        "5.1-gpt4-recall": _share_of_settings("Recall", ["Mistral", "Llama3"]),
        "5.16-examples": scored_otherwise("thesis/table-5.16", "model", all_models, ["Mistral"]),
        "5.17-examples": scored_otherwise("thesis/table-5.17", "mode", ["Informed"], all_modes),
    }
    for number in (2, 3, 5, 7):
        table = printed_table(f"thesis/table-5.{number}")
        by_claim[f"5.{number}-gpt4-lower"] = _least_margin(table, setting, "model", "GPT-4")
    return by_claim
