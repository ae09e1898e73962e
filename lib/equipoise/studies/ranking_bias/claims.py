"""Claims of thesis chapter 4: for each, whether it holds of our tables, and the numbers that decide."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.reports.printed import printed_table
from equipoise.studies.ranking_bias.tables import ABOVE

Verdict = tuple[bool, str]


def left_is_fairer(example: pd.DataFrame) -> Verdict:
    """The ranking on the left has the higher TExFAIR (Figure 4.1)."""
    said = ", ".join(f"{row.ranking} {row.TExFAIR:.4f}" for row in example.itertuples())
    return bool((example["TExFAIR"].diff().dropna() < 0).all()), said


def _others(table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    return table[table.index.get_level_values("run") != baseline]


def nearly_all_fairer(table: pd.DataFrame, baseline: str) -> Verdict:
    """Nine in ten tests find a ranker significantly fairer than the baseline (Table 4.1)."""
    above = _others(table, baseline)[ABOVE].str.split()
    fairer = np.array([[measure in names for measure in ("NFaiRR", "TExFAIR")] for names in above])
    return bool(fairer.mean() >= 0.9), f"{fairer.sum()} of {fairer.size} tests"


def all_more_effective(table: pd.DataFrame, baseline: str) -> Verdict:
    """Every ranker is more effective than the baseline, in both measures (Table 4.1)."""
    effective = table[["MRR", "nDCG"]]
    higher = _others(effective.sub(effective.xs(baseline, level="run")).gt(0), baseline).to_numpy()
    return bool(higher.all()), f"{higher.sum()} of {higher.size} means are higher"


def all_correlated(table: pd.DataFrame, alpha: float) -> Verdict:
    """The two fairness measures are significantly correlated for every ranker (Table 4.1)."""
    found = table["p of r"] < alpha
    return bool(found.all()), f"{found.sum()} of {len(found)} correlations"


def none_strongly_correlated(table: pd.DataFrame) -> Verdict:
    """No correlation is above the highest printed one (Table 4.1)."""
    r, printed = table["r"], printed_table("thesis/table-4.1")["r"].str.extract(r"([0-9.]+)")[0].astype(float)
    said = f"r from {r.min():.4f} to {r.max():.4f} here, from {printed.min():.4f} to {printed.max():.4f} printed"
    return bool(r.max() <= printed.max()), said


def rbdf_steadies(curves: pd.DataFrame) -> Verdict:
    """TExFAIR without proportionality varies most with the cut-off, on every query set (Figure 4.2)."""
    spread = curves.groupby(["queries", "measure", "run"])["value"].agg(np.ptp).reset_index()
    spread = spread.pivot_table(index="queries", columns="measure", values="value", aggfunc="mean")
    said = "; ".join(
        f"{label}: " + ", ".join(f"{measure} {value:.3f}" for measure, value in row.items())
        for label, row in spread.iterrows()
    )
    holds = bool((spread.idxmax(axis=1) == "TExFAIR(proportional=False)").all())
    return holds, f"{said} (largest less smallest mean, over the rankers)"


def biased_lists_unbiased_ranker(table: pd.DataFrame, baseline: str) -> Verdict:
    """On QS1 the baseline has the lowest TExFAIR and the highest CRBO (Table 4.2)."""
    first, last = table.loc["QS1", "CRBO"].idxmax(), table.loc["QS1", "TExFAIR"].idxmin()
    return bool(first == baseline and last == baseline), f"lowest TExFAIR {last}, highest CRBO {first}"


def fair_lists_sensitive_ranker(table: pd.DataFrame) -> Verdict:
    """TExFAIR and CRBO do not order the rankers alike, on any query set (Table 4.2)."""
    tau = {label: stats.kendalltau(part["CRBO"], part["TExFAIR"]).statistic for label, part in table.groupby("queries")}
    said = ", ".join(f"Kendall's tau {value:.2f} on {label}" for label, value in tau.items())
    return all(value < 1 for value in tau.values()), said


def columns_exchanged(checks: pd.DataFrame) -> Verdict:
    """More than nine in ten cells printed twice agree with the query sets exchanged, and none as labelled."""
    labelled, exchanged = (checks.set_index("reading").loc[reading] for reading in ("as labelled", "exchanged"))
    said = f"{exchanged['equal cells']} of {exchanged['cells']} cells equal when exchanged, "
    holds = labelled["equal cells"] == 0 and exchanged["equal cells"] > 0.9 * exchanged["cells"]
    return bool(holds), f"{said}{labelled['equal cells']} as labelled"
