"""What the printed numbers of chapter 5 say about themselves: tables that follow from others, and claims about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.reports.printed import printed_table

SETTING = ["benchmark", "model", "relevant", "non-relevant"]
SCORES = {"ΔPrecision": "Precision", "ΔRecall": "Recall"}
DIFFERENCES = {
    "thesis/table-5.3": ("Informed", "CF-informed"),
    "thesis/table-5.5": ("Informed/CF-informed", "CF-informed/Informed"),
}
"""Tables of differences, and the modes that each is of."""

Evidence = tuple[bool, str]
"""Whether a claim holds, and the numbers that say so."""


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A printed table with some columns as numbers, without the marks."""
    return table.assign(**{name: table[name].str.rstrip("†").astype(float) for name in columns})


def printed_quality(*parts: str) -> pd.DataFrame:
    """Tables of the modes below each other, as printed, with one column mode; of Table 5.4 what no other has."""
    tables = [printed_table(f"thesis/table-{part}") for part in parts or ("5.1", "5.11", "5.14", "5.15")]
    if not parts:
        tables.append(printed_table("thesis/table-5.4").query("model == 'GPT-4'"))
    table = pd.concat(tables, ignore_index=True)
    if not parts:
        table["mode"] = table["mode"].fillna(table["relevant mode"] + "/" + table["non-relevant mode"])
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


def derived_citations(artefact: str) -> tuple[pd.DataFrame, Evidence]:
    """Relevant passages cited, the least total that precision and recall allow, and whether the totals are above it."""
    printed = printed_table(artefact)
    scores = numbers(printed_quality("5.1", "5.11"), list(SCORES.values()))
    rows = printed[[*SETTING, "mode"]].merge(scores, how="left")
    rows["relevant cited"], rows["least total"] = rows["Recall"] / 100, rows["Recall"] ** 2 / rows["Precision"] / 100
    distance = printed["total cited"].astype(float) - rows["least total"]
    told = f"least distance {distance.min():.3f} citations, {len(distance)} rows"
    return rows.drop(columns=list(SCORES.values())), (bool((distance >= -0.0005).all()), told)


def printed_totals() -> pd.DataFrame:
    """Printed numbers of citations in every setting and mode."""
    table = pd.concat([printed_table("thesis/table-5.12"), printed_table("thesis/table-5.13")])
    return table.assign(total=table["total cited"].astype(float))


def gpt4_cites_fewest() -> Evidence:
    """Whether GPT-4 cites the fewest documents in every setting."""
    cited = printed_totals().reset_index(drop=True)
    fewest = cited.loc[cited.groupby(["benchmark", "relevant", "mode"])["total"].idxmin(), "model"] == "GPT-4"
    return bool(fewest.all()), f"{int(fewest.sum())} of {len(fewest)} settings"


def smaller_in_every_pair(
    artefact: str, index: Sequence[str], columns: str, smaller: str, larger: Sequence[str]
) -> Evidence:
    """Whether printed scores are smaller in one of some columns than in others, in every row."""
    table = numbers(printed_table(artefact), list(SCORES))
    table = table.pivot_table(index=list(index), columns=columns, values=list(SCORES))
    pairs = pd.concat([table[score, smaller] < table[score, other] for score in SCORES for other in larger])
    return bool(pairs.all()), f"{int(pairs.sum())} of {len(pairs)} pairs"


def sensitivity_from_3_to_18() -> Evidence:
    """Whether the printed CAS have the range that the conclusion names; whose range it is."""
    tables = {"CAB (Tables 5.3 and 5.5)": ("5.3", "5.5"), "CAS (Table 5.2)": ("5.2",)}
    values = {
        name: np.concatenate([numbers(printed_table(f"thesis/table-{n}"), list(SCORES))[list(SCORES)] for n in of])
        for name, of in tables.items()
    }
    cas = values["CAS (Table 5.2)"]
    told = "; ".join(f"{name} from {of.min():.1f} to {of.max():.1f}" for name, of in values.items())
    return bool(cas.min() >= 2.5 and cas.max() < 18.5), told
