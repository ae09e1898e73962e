"""Attribution confidence: how probable a model's citations of relevant and of other documents were to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.measures.attribution.correctness import declared
from equipoise.measures.attribution.quality import (
    absent,
    document_keys,
    end_to_end,
    shown_and_relevant,
)
from equipoise.problems import need_columns


def citation_rows(answers: pd.DataFrame) -> pd.DataFrame:
    """One row for each citation whose probability was asked for.

    ``answers``: with the columns ``question``; ``relevant``, the numbers of the relevant documents;
    ``citations``, for each answer a list of mappings with ``document`` and ``probability`` (None
    where it is not known), or None. Optional: ``documents``, how many were shown. Returns the other
    columns of the answer without its text and gold answers, then ``document``, ``relevant`` (bool)
    and ``probability`` (NaN where it is not known), in the order of the answers. Every mention
    counts; numbers of documents that were not shown are left out, since such a document is neither
    relevant nor not.

    thesis, Eq. 5.4: the sets C_q.
    """
    need_columns(answers, ("question", "relevant", "citations"))
    documents, relevant, _ = shown_and_relevant(answers)
    lists = [() if absent(cited) else cited for cited in answers["citations"]]
    rows, numbers = end_to_end(([one["document"] for one in cited] for cited in lists), "citations")
    others = answers.drop(
        columns=["relevant", "citations", "answer", "gold"], errors="ignore"
    ).iloc[rows]
    found = others.assign(
        document=numbers,
        relevant=np.isin(document_keys(rows, numbers), relevant),
        probability=np.array(
            [one.get("probability") for one in chain.from_iterable(lists)], dtype=np.float64
        ),
    )
    return found[(numbers >= 1) & (numbers <= documents[rows])].reset_index(drop=True)


@declared("AC", range="0 to 1", ideal="none", direction="neither")
def attribution_confidence(cited: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""Attribution confidence: mean probability of the citations of relevant and of non-relevant documents.

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
    >>> cited = pd.DataFrame({"relevant": [1, 1, 0, 0, 0], "probability": [1, 0.5, 0.5, 0.25, np.nan]})
    >>> attribution_confidence(cited)[["relevant_ac", "nonrelevant_ac", "nonrelevant_missing", "p"]].round(3)
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
    codes, groups = np.zeros(len(cited), dtype=np.intp), pd.DataFrame(index=[0])
    if by:
        codes = cited.groupby(list(by), sort=True, observed=True, dropna=False).ngroup().to_numpy()
        groups = cited[list(by)].drop_duplicates().sort_values(list(by), ignore_index=True)
    relevant = cited["relevant"].to_numpy(dtype=bool)
    each = (
        pd.Series(values)
        .groupby([codes, relevant])
        .agg(["mean", "std", "count", "size", "min", "max"])
    )
    each = each.reindex(pd.MultiIndex.from_product([range(len(groups)), [True, False]]))
    constant = each["min"] == each["max"]  # rounding leaves a spread where there is none
    each["mean"] = each["mean"].mask(constant, each["min"])
    each["std"] = each["std"].mask(constant, 0 * each["std"])  # that of one value stays NaN
    each[["count", "size"]] = each[["count", "size"]].fillna(0).astype("int64")
    each["missing"] = each["size"] - each["count"]
    sides = {
        name: each[place::2].reset_index(drop=True)
        for place, name in enumerate(("relevant", "nonrelevant"))
    }
    columns = {"ac": "mean", "citations": "count", "missing": "missing"}
    shown = {
        f"{side}_{name}": found[column]
        for name, column in columns.items()
        for side, found in sides.items()
    }
    t, p = stats.ttest_ind_from_stats(
        *(found[name].to_numpy() for found in sides.values() for name in ("mean", "std", "count")),
        equal_var=False,
    )
    first, second = sides.values()
    same = (first["mean"] == second["mean"]) & first["std"].notna() & second["std"].notna()
    return groups.assign(**shown, t=np.where(same, 0.0, t), p=np.where(same, 1.0, p))
