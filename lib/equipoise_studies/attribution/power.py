"""What so many questions can show: how large a CAB must be to be seen, and how often it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats
from equipoise_studies.attribution.derived import printed_numbers


def reach(counts: Sequence[int], alpha: float, level: float) -> pd.DataFrame:
    """What a CAB of recall must be to leave zero, by number of questions, if all change one way.

    Beside it, if recall changed as often as Table 5.2 prints: how far an interval reaches to either
    side, and how often the exact test would find a CAB as large as Table 5.3 prints, on average
    over its settings.
    """
    # Recall is 0 or 1 here, so its CAS is the share of the questions that change.
    cas = printed_numbers("5.2")["ΔRecall"].to_numpy() / 100
    cab = printed_numbers("5.3")["ΔRecall"].to_numpy() / 100
    rows = []
    for n in sorted(set(counts)):
        changed = np.arange(1, n + 1)
        # The bootstrap leaves zero once few enough samples hold none of the changed questions.
        without_change = (1 - changed / n) ** n
        enough_for_bootstrap = changed[without_change < (1 - level) / 2]
        enough_for_exchange = changed[2.0 ** (1 - changed) < alpha]
        t = stats.t.isf((1 - level) / 2, n - 1)
        share_of_runs = float(np.mean(power(n, cas, cab, alpha)))
        rows.append(
            {
                "questions": n,
                "least CAB (bootstrap)": _least_percent(enough_for_bootstrap, n),
                "least CAB (permutation)": _least_percent(enough_for_exchange, n),
                "reach at the lowest CAS": 100 * t * np.sqrt(cas.min() / (n - 1)),
                "reach at the highest CAS": 100 * t * np.sqrt(cas.max() / (n - 1)),
                "printed CAB found, percent of runs": 100 * share_of_runs,
            }
        )
    return pd.DataFrame(rows)


def _least_percent(numbers_of_questions: np.ndarray, n: int) -> float:
    """The least of ascending numbers of questions in percent of n; NaN if no number is enough."""
    if not numbers_of_questions.size:
        return float("nan")
    return float(100 * numbers_of_questions[0] / n)


def power(n: int, changed: Floats, gap: Floats, alpha: float) -> Floats:
    """How often the exact paired test of n scores of 0 or 1 is significant.

    ``changed``: share of the scores that change; ``gap``: by how much their mean does.
    """
    n_changed = np.arange(n + 1)[:, None]  # of each possible number of changed scores
    # The most changes in the rarer direction with which the test is significant.
    most_against = stats.binom.ppf(alpha / 2, n_changed, 0.5)
    not_significant = 2 * stats.binom.cdf(most_against, n_changed, 0.5) >= alpha
    most_against -= not_significant
    upward = (1 + gap / changed) / 2  # probability that a change is an increase
    significant = stats.binom.cdf(most_against, n_changed, upward)
    significant += stats.binom.cdf(most_against, n_changed, 1 - upward)
    weights = stats.binom.pmf(n_changed, n, changed)
    probability: Floats = (weights * significant).sum(axis=0)
    return probability
