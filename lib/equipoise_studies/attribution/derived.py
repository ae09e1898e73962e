"""What the printed numbers of chapter 5 say about themselves: tables that follow from others, and the text on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from equipoise.measures.attribution import score_answers
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table

SETTING = ["benchmark", "model", "relevant", "non-relevant"]
SCORES = {"ΔPrecision": "Precision", "ΔRecall": "Recall"}
DIFFERENCES = {
    "thesis/table-5.3": ("Informed", "CF-informed"),
    "thesis/table-5.5": ("Informed/CF-informed", "CF-informed/Informed"),
}
"""Tables of differences, and the modes that each is of."""

PRINTED = "printed numbers against printed words: nothing is sampled"


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A printed table with some columns as numbers, without the marks."""
    return table.assign(**{name: table[name].str.rstrip("†").astype(float) for name in columns})


def printed_quality(*parts: str) -> pd.DataFrame:
    """Tables of the modes below each other, as printed, with one column mode; of Table 5.4 what no other has."""
    tables = [
        printed_table(f"thesis/table-{part}") for part in parts or ("5.1", "5.11", "5.14", "5.15")
    ]
    if not parts:
        tables.append(printed_table("thesis/table-5.4").query("model == 'GPT-4'"))
    table = pd.concat(tables, ignore_index=True)
    if not parts:
        table["mode"] = table["mode"].fillna(
            table["relevant mode"] + "/" + table["non-relevant mode"]
        )
    return table[[*SETTING, "mode", *SCORES.values()]]


def quality_of(mode: str) -> pd.DataFrame:
    """Printed scores in a mode, by setting."""
    table = numbers(printed_quality(), list(SCORES.values()))
    return table[table["mode"] == mode].set_index(SETTING)[list(SCORES.values())]


def derived_differences(artefact: str) -> pd.DataFrame:
    """A table of differences from the tables of the modes: positive where the label Human does better."""
    first, second = DIFFERENCES[artefact]
    gaps = quality_of(first) - quality_of(second)
    gaps = gaps.mul(np.where(gaps.index.get_level_values("relevant") == "Human", 1, -1), axis=0)
    wanted = pd.MultiIndex.from_frame(printed_table(artefact)[SETTING])
    return gaps.set_axis(list(SCORES), axis=1).reindex(wanted).reset_index()


def derived_citations(artefact: str) -> pd.DataFrame:
    """Relevant passages cited, and the least total that precision and recall allow."""
    scores = numbers(printed_quality("5.1", "5.11"), list(SCORES.values()))
    rows = printed_table(artefact)[[*SETTING, "mode"]].merge(scores, how="left")
    rows["relevant cited"], rows["least total"] = (
        rows["Recall"] / 100,
        rows["Recall"] ** 2 / rows["Precision"] / 100,
    )
    return rows.drop(columns=list(SCORES.values()))


def printed_totals() -> pd.DataFrame:
    """Printed numbers of citations in every setting and mode."""
    table = pd.concat(
        [printed_table("thesis/table-5.12"), printed_table("thesis/table-5.13")], ignore_index=True
    )
    return table.assign(total=table["total cited"].astype(float))


def printed_by_label(score: str) -> pd.DataFrame:
    """A score of Tables 5.1 and 5.4 by setting, the relevant passage labelled Human and labelled LLM."""
    table = pd.concat(
        [printed_table("thesis/table-5.1"), printed_table("thesis/table-5.4")], ignore_index=True
    )
    told = table["mode"].fillna(table["relevant mode"])
    human = (table["relevant"] == "Human") == (told == "Informed")
    table = numbers(table.assign(label=np.where(human, "Human", "LLM"))[told != "Vanilla"], [score])
    return table.pivot_table(index=SETTING, columns="label", values=score)


# --- what the text says of printed numbers --------------------------------------------------------


def _least_margin(
    table: pd.DataFrame,
    index: Sequence[str],
    columns: str,
    low: str,
    scores: Sequence[str] = tuple(SCORES),
) -> Evidence:
    """By how much printed scores are lower in one of some columns than in the others, where that is least."""
    wide = numbers(table, list(scores)).pivot_table(
        index=list(index), columns=columns, values=list(scores)
    )
    others = sorted(set(table[columns]) - {low})
    gaps = pd.concat(
        [wide[score, other] - wide[score, low] for score in scores for other in others]
    )
    told = (
        f"smallest of {len(gaps)} differences from {low} ({int((gaps > 0).sum())} are above zero)"
    )
    return Evidence(told, float(gaps.min()), reason=PRINTED)


def _share_of_settings(score: str, best: Collection[str]) -> Evidence:
    """In how many settings of Table 5.1 some models all have higher scores than the others, in percent."""
    wide = numbers(printed_table("thesis/table-5.1"), [score]).pivot_table(
        index=["relevant", "mode"], columns="model", values=score
    )
    above = wide[list(best)].min(axis=1) > wide.drop(columns=list(best)).max(axis=1)
    return Evidence(
        f"share of {len(above)} settings of Table 5.1, in percent",
        100 * float(above.mean()),
        reason=PRINTED,
    )


def _otherwise_than_told(
    artefact: str, key: str, relevant: Collection[str], wrong: Collection[str]
) -> Evidence:
    """How many printed answers are scored otherwise than the text has it: which are right, and which cite wrongly."""
    given = printed_table(artefact).rename(columns={"query": "question"})
    place, gold = (
        given["relevant document"].map(lambda number: (int(number),)),
        given["gold answer"].str.split("; "),
    )
    scored = score_answers(
        given[["question", key, "answer"]].assign(relevant=place, gold=gold)
    ).set_index(key)
    right, cites_wrongly = scored.index.isin(relevant), scored["cited"] > scored["cited_relevant"]
    otherwise = (scored["recall"] != right) | (scored["exact_match"] != right)
    otherwise |= cites_wrongly != scored.index.isin(wrong)
    marks = ", ".join(f"{name} {value:.2f}" for name, value in scored["precision"].items())
    return Evidence(
        f"answers scored otherwise than told (precision: {marks})",
        float(otherwise.sum()),
        reason=PRINTED,
    )


def evidence() -> dict[str, Evidence]:
    """What printed numbers say of the chapter's sentences on them, by claim."""
    tables = {number: printed_table(f"thesis/table-5.{number}") for number in (2, 3, 5, 7, 9)}
    printed = {
        n: numbers(table, list(SCORES))[list(SCORES)].to_numpy() for n, table in tables.items()
    }
    cas, cab = printed[2], np.concatenate([printed[3], printed[5]])
    totals = printed_totals()
    floors = pd.concat(
        [derived_citations(f"thesis/table-5.{number}") for number in (12, 13)], ignore_index=True
    )
    above = totals["total"] - floors["least total"]
    range_of = f"largest printed CAS (they run from {cas.min()} to {cas.max()}; CAB from {cab.min()} to {cab.max()})"
    setting, all_models = ["benchmark", "relevant"], ("Mistral", "Llama3", "GPT-4")
    return {
        "5.2-3-to-18": Evidence(range_of, float(cas.max()), reason=PRINTED),
        **{
            f"5.{number}-gpt4-lower": _least_margin(tables[number], setting, "model", "GPT-4")
            for number in (2, 3, 5, 7)
        },
        "5.9-unicoil-lower": _least_margin(
            tables[9], ["quantity", "model"], "retriever", "uniCOIL"
        ),
        "5.12-gpt4-fewer": _least_margin(
            totals, [*setting, "mode"], "model", "GPT-4", ["total cited"]
        ),
        "5.12-floor": Evidence(
            f"least distance of {len(above)} totals from their floor, in citations",
            float(above.min()),
            reason=PRINTED,
        ),
        "5.1-gpt4-precision": _share_of_settings("Precision", ["GPT-4"]),
        "5.1-gpt4-recall": _share_of_settings("Recall", ["Mistral", "Llama3"]),
        "5.16-examples": _otherwise_than_told(
            "thesis/table-5.16", "model", all_models, ["Mistral"]
        ),
        "5.17-examples": _otherwise_than_told(
            "thesis/table-5.17", "mode", ["Informed"], ["Vanilla", "Informed", "CF-informed"]
        ),
    }
