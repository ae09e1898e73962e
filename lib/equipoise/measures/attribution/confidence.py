"""Attribution confidence: how probable citations of relevant and of other documents were."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.measures.attribution.correctness import declared
from equipoise.measures.attribution.quality import (
    absent,
    document_keys,
    end_to_end,
    shown_and_relevant,
)
from equipoise.problems import Note, listed, need_columns


def citation_rows(answers: pd.DataFrame) -> pd.DataFrame:
    """One row for each citation whose probability was asked for.

    ``answers``: with the columns ``question``; ``relevant``, the numbers of the relevant documents;
    ``citations``, for each answer a list of mappings with ``document`` and ``probability`` (None
    where it is not known), or None. Optional: ``documents``, how many were shown. Returns the other
    columns of the answer without its text and gold answers, then ``document``, ``relevant`` (bool)
    and ``probability`` (NaN where it is not known), in the order of the answers. Every mention
    counts; numbers of documents that were not shown are left out, since such a document is neither
    relevant nor not, and a note says how many.

    thesis, Eq. 5.4: the sets C_q.
    """
    need_columns(answers, ("question", "relevant", "citations"))
    documents, relevant, _ = shown_and_relevant(answers)
    citations_of_answers = [() if absent(cited) else cited for cited in answers["citations"]]
    numbers_of_answers, probabilities = [], []
    for cited in citations_of_answers:
        numbers_of_answers.append([citation["document"] for citation in cited])
        probabilities += [citation.get("probability") for citation in cited]
    rows, numbers = end_to_end(numbers_of_answers, "citations")
    kept_columns = answers.drop(
        columns=["relevant", "citations", "answer", "gold"], errors="ignore"
    )
    table = kept_columns.iloc[rows].assign(
        document=numbers,
        relevant=np.isin(document_keys(rows, numbers), relevant),
        probability=np.array(probabilities, dtype=np.float64),
    )
    was_shown = (numbers >= 1) & (numbers <= documents[rows])
    n_other = int((~was_shown).sum())
    if n_other:
        examples = listed(pd.unique(numbers[~was_shown]), 3)
        message = f"citations with a probability name no document that was shown ({examples})"
        warnings.warn(f"{n_other} of {len(numbers)} {message}: left out of AC", Note, 3)
    return table[was_shown].reset_index(drop=True)


def _summaries(values: Floats, groups: Integers, n_groups: int, is_relevant: Booleans) -> Any:
    """Mean, spread and number of probabilities of each group, for relevant and for other documents.

    Two tables, a row for each group; ``missing`` counts citations without a probability.
    """
    by_side = pd.Series(values).groupby([groups, is_relevant])
    summary = by_side.agg(["mean", "std", "count", "size", "min", "max"])
    sides = pd.MultiIndex.from_product([range(n_groups), [True, False]])
    summary = summary.reindex(sides)
    # Rounding leaves a spread where all are equal; the spread of one value stays NaN.
    constant = summary["min"] == summary["max"]
    summary["mean"] = summary["mean"].mask(constant, summary["min"])
    summary["std"] = summary["std"].mask(constant, 0 * summary["std"])
    summary[["count", "size"]] = summary[["count", "size"]].fillna(0).astype("int64")
    summary["missing"] = summary["size"] - summary["count"]
    return summary[0::2].reset_index(drop=True), summary[1::2].reset_index(drop=True)


@declared("AC", range="0 to 1", ideal="none", direction="neither")
def attribution_confidence(cited: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""Attribution confidence: mean probability of citations of relevant and other documents.

    .. math:: AC(S) = \frac{\sum_{q \in Q} \sum_{c_i \in C_q} p(c_i | q, D_q) [c_i \in S]}
        {\sum_{q \in Q} \sum_{c_i \in C_q} [c_i \in S]}

    - :math:`S`: the documents asked about: the relevant ones, or the others
    - :math:`q, Q`: a question, and all of them
    - :math:`c_i, C_q`: a citation, and those of the answer to q
    - :math:`D_q`: the documents given with q
    - :math:`p(c_i | q, D_q)`: probability that the model gave the number of the cited document

    Parameters
    ----------
    cited : DataFrame
        One row for each citation, as `citation_rows` gives it: ``relevant`` (bool) and
        ``probability`` (0 to 1, NaN where it is not known).
    by : sequence of str
        Columns to group by, such as the mode.

    Returns
    -------
    DataFrame
        Sorted by group: by, ``relevant_ac, nonrelevant_ac`` (0 to 1), ``relevant_citations,
        nonrelevant_citations`` (with a probability), ``relevant_missing, nonrelevant_missing``
        (without one; they do not enter), ``t, p`` of Welch's test between the two. NaN where there
        is nothing to average, and where a test has fewer than two citations on a side.

    Raises
    ------
    ValueError
        If a column is missing, a probability lies outside 0 to 1, or it is not said of a citation
        whether its document is relevant.

    Notes
    -----
    thesis, Eq. 5.4; Tables 5.6 and 5.10. The thesis does not name its test between the two;
    citations of relevant and of non-relevant documents do not come in pairs, hence Welch's unpaired
    test, which takes citations of one answer as independent.

    Examples
    --------
    >>> probability = [1, 0.5, 0.5, 0.25, np.nan]
    >>> cited = pd.DataFrame({"relevant": [1, 1, 0, 0, 0], "probability": probability})
    >>> columns = ["relevant_ac", "nonrelevant_ac", "nonrelevant_missing", "p"]
    >>> attribution_confidence(cited)[columns].round(3)
       relevant_ac  nonrelevant_ac  nonrelevant_missing     p
    0         0.75           0.375                    1  0.35
    """
    if isinstance(by, str):
        raise ValueError("by lists columns")
    need_columns(cited, (*by, "relevant", "probability"))
    values = cited["probability"].to_numpy(dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("probabilities lie between 0 and 1")
    if cited["relevant"].isna().any():
        raise ValueError("relevant: true or false is wanted for every citation")
    keys = list(by)
    if keys:
        codes = cited.groupby(keys, sort=True, observed=True, dropna=False).ngroup().to_numpy()
        groups = cited[keys].drop_duplicates().sort_values(keys, ignore_index=True)
    else:
        codes, groups = np.zeros(len(cited), dtype=np.int64), pd.DataFrame(index=[0])
    is_relevant = cited["relevant"].to_numpy(dtype=bool)
    relevant, nonrelevant = _summaries(values, codes, len(groups), is_relevant)

    t, p = stats.ttest_ind_from_stats(
        *(relevant[name].to_numpy() for name in ("mean", "std", "count")),
        *(nonrelevant[name].to_numpy() for name in ("mean", "std", "count")),
        equal_var=False,
    )
    # Equal means do not differ, even where neither side has a spread to divide by.
    same = relevant["mean"] == nonrelevant["mean"]
    same &= relevant["std"].notna() & nonrelevant["std"].notna()
    return groups.assign(
        relevant_ac=relevant["mean"],
        nonrelevant_ac=nonrelevant["mean"],
        relevant_citations=relevant["count"],
        nonrelevant_citations=nonrelevant["count"],
        relevant_missing=relevant["missing"],
        nonrelevant_missing=nonrelevant["missing"],
        t=np.where(same, 0.0, t),
        p=np.where(same, 1.0, p),
    )
