"""What the printed tables of chapter 3 say about each other: rates, the counts behind the scores, curves, bounds."""

from __future__ import annotations

import pandas as pd

from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction.accuracy import COUNTS, SCORES, binary_scores, recovered_counts
from equipoise_studies.satisfaction.agreement import jaccard_bounds
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.robustness import robustness_table

_OPPOSITE = {"Satisfaction": "Dissatisfaction", "Dissatisfaction": "Satisfaction"}
_ROW = ["test data", "model", "setup"]
_MODEL = ["collection", "model", "setup"]


def success_rates() -> pd.DataFrame:
    """Table 3.4, the percentage of counterfactuals that people confirmed, from Tables 3.2 and 3.5."""
    main, confirmed = (
        printed_table(f"thesis/table-{n}").set_index("label").astype(int) for n in ("3.2", "3.5")
    )
    rates = {
        name: 100 * confirmed[f"{name} CF"].rename(_OPPOSITE) / main[f"{name} Test"]
        for name in COLLECTIONS
    }
    table = pd.DataFrame(rates).loc[[*_OPPOSITE, "Total"]].rename(index={"Total": "Overall"})
    return table.rename_axis("data partition").reset_index()


def main_sizes() -> pd.DataFrame:
    """Table 3.5's samples of Main, from Table 3.2; those of CF are behind `success_rates`."""
    main = printed_table("thesis/table-3.2").set_index("label").astype(int)
    return pd.DataFrame(
        {f"{name} Main": main[f"{name} Test"] for name in COLLECTIONS}
    ).reset_index()


def counts_behind() -> pd.DataFrame:
    """The counts behind each row of Main and CF in Table 3.6, with the number of solutions.

    Where rounding allows none, the last digit may have been cut off rather than rounded.
    """
    printed = (
        printed_table("thesis/table-3.6")
        .set_index(_ROW)
        .drop("Mixed", level="test data")
        .astype(float)
    )
    sizes = printed_table("thesis/table-3.5").set_index("label").astype(int)
    rows = []
    for name in COLLECTIONS:
        for row, scores in printed[[f"{name} {score}" for score in SCORES[:4]]].iterrows():
            there = sizes.loc[list(_OPPOSITE), f"{name} {row[0]}"].tolist()
            solutions, how = recovered_counts(scores / 100, *there), "rounded"
            if not len(solutions):
                solutions, how = (
                    recovered_counts(scores / 100, *there, half_unit=0.0001),
                    "last digit off by one",
                )
            rows.append((name, *row, len(solutions), how, *solutions[0].tolist(), *there))
    counts = ["correct_satisfied", "correct_dissatisfied", "satisfied", "dissatisfied"]
    behind = pd.DataFrame(rows, columns=["collection", *_ROW, "solutions", "printed", *counts])
    return behind.assign(sensitivity=behind["correct_dissatisfied"] / behind["dissatisfied"])


def derived_scores(behind: pd.DataFrame) -> pd.DataFrame:
    """Table 3.6 from the counts behind it, those of Mixed being the sum of the others'."""
    scores = list(SCORES[:4])
    mixed = (
        behind.groupby(_MODEL, sort=False)[COUNTS]
        .sum()
        .reset_index()
        .assign(**{"test data": "Mixed"})
    )
    whole = pd.concat([behind, mixed], ignore_index=True)
    whole[scores] = 100 * binary_scores(*(whole[column] for column in COUNTS))[:, :4]
    wide = whole.pivot_table(index=_ROW, columns="collection", values=scores)
    wide.columns = [f"{name} {score}" for score, name in wide.columns]
    return wide.reset_index()


def derived_curves(behind: pd.DataFrame, step: float) -> pd.DataFrame:
    """Figures 3.4 and 3.5 from the counts: expectation over all draws of the test set, and 95% of them."""
    first = behind.drop_duplicates(["collection", "test data"])
    constant = first.assign(
        correct_satisfied=first["satisfied"], correct_dissatisfied=0, model="constant", setup=""
    )
    curves = pd.concat([behind, constant]).rename(columns={"test data": "world"})
    curves = robustness_table(curves, _MODEL, step=step)
    return curves.assign(run=(curves["model"] + ", " + curves["setup"]).str.removesuffix(", "))


def index_bounds(behind: pd.DataFrame) -> pd.DataFrame:
    """Lowest and highest Jaccard index that the counts allow, and whether the one printed in Table 3.7 is between."""
    printed = printed_table("thesis/table-3.7").set_index("model").astype(float)
    rows = []
    for (name, model, setup), part in behind.set_index("test data").groupby(_MODEL, sort=False):
        right, there = (
            part[f"{kind}satisfied"] + part[f"{kind}dissatisfied"] for kind in ("correct_", "")
        )
        low, high = jaccard_bounds(right["Main"], there["Main"], right["CF"], there["CF"])
        rows.append((name, model, setup, low, printed.loc[model, name], high))
    bounds = pd.DataFrame(rows, columns=[*_MODEL, "lowest", "printed", "highest"])
    return bounds.assign(
        within=bounds["printed"].between(bounds["lowest"] - 5e-5, bounds["highest"] + 5e-5)
    )
