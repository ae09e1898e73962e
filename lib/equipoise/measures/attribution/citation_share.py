"""Whether a source is cited more than its share of what could be cited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise import options as opt
from equipoise.arrays import Floats, Integers, ratio
from equipoise.coverage import Seen, first, judge
from equipoise.declare import checked
from equipoise.measures.attribution.brackets import citations
from equipoise.measures.attribution.citation_styles import in_brackets, style_counts, style_of
from equipoise.measures.attribution.correctness import declared
from equipoise.measures.attribution.quality import absent, end_to_end
from equipoise.problems import listed, need_columns
from equipoise.statistics.intervals import bootstrap_intervals, units_to_decide

OVER_RETRIEVED, OVER_RELEVANT = "cited-over-retrieved", "cited-over-relevant"
MEASURES = ("cited-share", "retrieved-share", OVER_RETRIEVED, "relevant-share", OVER_RELEVANT)
_SHARE_OF = {OVER_RETRIEVED: "retrieved-share", OVER_RELEVANT: "relevant-share"}
_COLUMNS = ["attribute", "measure", "value", "low", "high", "count", "left_out"]
_MOST_CELLS = 5_000_000  # shares of a source in an answer, of which the table has five rows each
_MOST_SENTENCES = 10


def shares(counts: ArrayLike) -> Floats:
    """Share of each source in counts of documents, shaped (..., sources); NaN where there is none.

    >>> shares([[2, 2], [0, 0]])
    array([[0.5, 0.5],
           [nan, nan]])
    """
    numbers = np.asarray(counts, dtype=np.float64)
    return ratio(numbers, numbers.sum(axis=-1, keepdims=True), np.nan)


@declared("Citation share", range="-1 to 1", ideal="0", direction="neither")
def citation_share(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: opt.CitationStyle = "auto",
    mean_intervals: opt.MeanIntervals = "marginal",
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 9999,
    seed: opt.Seed = 0,
    least_seen: opt.LeastSeen = 0.5,
) -> pd.DataFrame:
    r"""How much larger a source's share of the citations is than its share of the documents.

    .. math:: \Delta_D(s) = \frac{1}{|Q|} \sum_{q \in Q} \left( \frac{|C_q \cap s|}{|C_q|} -
        \frac{|D_q \cap s|}{|D_q|} \right)

    - :math:`s`: a source, as the set of its documents
    - :math:`q, Q`: a question, and all whose answer cites a document that was shown
    - :math:`C_q`: the documents that the answer to q cites, each once
    - :math:`D_q`: the documents retrieved for q; or, for the excess over relevance, the relevant
      ones among them

    Parameters
    ----------
    answers : DataFrame
        One row for each answer. Columns ``question``; ``answer``, its text; ``sources``, a list
        with the source of each document that was shown, in their order. Optional: ``relevant``, the
        numbers of the relevant documents, from 1; the list may be empty.
    by : sequence of str
        Further columns to group by, such as the model; within a group a question comes once.
    run : str
        What the answers are called in the column of runs.

    Returns
    -------
    DataFrame
        ``run, topic``, by, ``attribute`` (the source), ``measure, value, low, high, count,
        left_out``. Measures: cited-share, retrieved-share and relevant-share (0 to 1);
        cited-over-retrieved and cited-over-relevant, the differences (-1 to 1). A row for each
        question, source and measure, then, with an empty topic, the means over ``count`` questions
        with percentile bootstrap intervals over these. ``left_out``: answers that cite nothing that
        was shown, and for relevance those without a relevant document. The rows of relevance are
        there where some answer has one.

    Raises
    ------
    ValueError
        If a column is missing, an answer has no documents or a relevant one that is not among them,
        a question comes twice in a group, or sources times answers are more than five million.
    InputError
        If no answer of a group cites a document that was shown.

    Notes
    -----
    Beyond the thesis, whose sets of citations these are (section 5.3.3). A question counts once,
    however many citations its answer has. A source is held against what was retrieved for the same
    question, so that one that is found more often is not cited above its share for that. The
    intervals are of one source each, or, simultaneous, hold for all sources of a group and measure
    at once (Bonferroni).

    Examples
    --------
    >>> texts = ["Both [1][2].", "So [1]."]
    >>> answers = pd.DataFrame({"question": ["a", "b"], "answer": texts})
    >>> answers = answers.assign(sources=[("wiki", "news"), ("wiki", "news", "news", "news")])
    >>> scores = citation_share(answers, citation_style="bracket")
    >>> scores[scores["topic"] == ""][["attribute", "measure", "value", "count"]]
       attribute               measure  value  count
    12      wiki           cited-share  0.750      2
    13      wiki       retrieved-share  0.375      2
    14      wiki  cited-over-retrieved  0.375      2
    15      news           cited-share  0.250      2
    16      news       retrieved-share  0.625      2
    17      news  cited-over-retrieved -0.375      2
    """
    keys = [*by, "question"]
    need_columns(answers, [*keys, "answer", "sources"])
    if answers.duplicated(keys).any():
        example = answers.loc[answers.duplicated(keys), "question"].iloc[0]
        raise ValueError(
            f"question {example!r} is answered twice; name the column that tells its answers apart"
            f" in by, of {listed(sorted(set(answers.columns) - {*keys, 'answer', 'sources'}))}"
        )
    answers = answers.assign(documents=answers["sources"].map(len)).reset_index(drop=True)
    if answers.empty or not answers["documents"].all():
        raise ValueError("sources: at least one answer is wanted, each with a source a document")
    style = style_of([style_counts(answers, citation_style)], citation_style)
    answers = answers.assign(answer=in_brackets(answers["answer"].tolist(), style))
    names, cited, retrieved, relevant = _counts(answers)

    groups: Any = [((), answers)]
    if by:
        groups = answers.groupby(list(by), sort=True, observed=True)
    coverages, tables = [], []
    for key, answers_of_group in groups:
        group = dict(zip(by, key, strict=True))
        rows = answers_of_group.index
        questions = answers_of_group["question"].to_numpy()
        values = _values(cited[rows], retrieved[rows], relevant[rows])
        cites = ~np.isnan(values["cited-share"][:, 0])
        name = " ".join(map(str, group.values())) or "the answers"
        without = first(questions[~cites])
        needed = "a citation of a document shown"
        coverages.append(Seen(name, "answers", needed, int(cites.sum()), len(rows), without))
        group_level = level
        if mean_intervals == "simultaneous":
            group_level = 1 - (1 - level) / len(names)
        means = _means(values, names, group_level, resamples, seed)
        table = pd.concat([_by_question(values, names, questions), means], ignore_index=True)
        tables.append(table.assign(run=run, **group))
    judge(coverages, least_seen)
    table = pd.concat(tables, ignore_index=True)
    # The means of all groups stand last, where a reader of the terminal looks first.
    table = table.sort_values("topic", key=lambda topics: topics == "", kind="stable")
    return table[["run", "topic", *by, *_COLUMNS]].reset_index(drop=True)


def _counts(answers: pd.DataFrame) -> tuple[pd.Index, Integers, Integers, Integers]:
    """The sources, and how many documents of each an answer cites, was shown, and has relevant.

    The counts are shaped (answers, sources).
    """
    n_shown = answers["documents"].to_numpy(dtype=np.int64)
    all_sources = [source for sources in answers["sources"] for source in sources]
    codes, names = pd.factorize(np.array(all_sources, dtype=object))
    n_cells = len(answers) * len(names)
    if n_cells > _MOST_CELLS:
        raise ValueError(
            f"{len(names):,} sources of {len(answers):,} answers make a table of {n_cells:,} shares"
            f" each; at most {_MOST_CELLS:,} are wanted: put sources together"
        )
    place_of_first = np.cumsum(n_shown) - n_shown

    def counted(lists: list[Any], what: str) -> Integers:
        rows, numbers = end_to_end(lists, what)
        beyond = (numbers < 1) | (numbers > n_shown[rows])
        if beyond.any():
            question = answers["question"].iloc[rows[beyond.argmax()]]
            raise ValueError(
                f"{what}: numbers from 1 to the number of documents are wanted, not so for question"
                f" {question!r}"
            )
        sources = codes[place_of_first[rows] + numbers - 1]
        counts = np.bincount(rows * len(names) + sources, minlength=n_cells)
        return np.asarray(counts.reshape(len(answers), len(names)))

    cited = []
    for text, documents in zip(answers["answer"], n_shown.tolist(), strict=True):
        cited.append(citations(text, documents).cited)
    relevant: list[Any] = [()] * len(answers)
    if "relevant" in answers.columns:
        relevant = [() if absent(numbers) else tuple(numbers) for numbers in answers["relevant"]]
    shown = [range(1, documents + 1) for documents in n_shown.tolist()]
    return (
        pd.Index(names),
        counted(cited, "citations"),
        counted(shown, "sources"),
        counted(relevant, "relevant"),
    )


def _values(cited: Integers, retrieved: Integers, relevant: Integers) -> dict[str, Floats]:
    """Each measure, shaped (answers, sources); NaN for an answer that does not enter it."""
    cited_share, retrieved_share = shares(cited), shares(retrieved)
    cites = ~np.isnan(cited_share)
    values = {
        "cited-share": cited_share,
        # A share of answers that cite nothing would be held against no share of citations.
        "retrieved-share": np.where(cites, retrieved_share, np.nan),
        OVER_RETRIEVED: cited_share - retrieved_share,
    }
    if relevant.any():
        relevant_share = shares(relevant)
        values["relevant-share"] = np.where(cites, relevant_share, np.nan)
        values[OVER_RELEVANT] = cited_share - relevant_share
    return values


def _by_question(values: dict[str, Floats], names: pd.Index, questions: Any) -> pd.DataFrame:
    """A row for each question, source and measure that is defined."""
    stacked = np.stack(list(values.values()), axis=-1)  # (answers, sources, measures)
    product = pd.MultiIndex.from_product(
        [questions, names, list(values)], names=["topic", "attribute", "measure"]
    )
    table = pd.DataFrame({"value": stacked.ravel()}, index=product).reset_index()
    table = table.dropna(subset="value")
    return table.assign(low=np.nan, high=np.nan, count=1, left_out=0)


def _means(
    values: dict[str, Floats], names: pd.Index, level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """A row for each source and measure: the mean over the answers that it is defined for."""
    rows, samples = [], []
    for place, name in enumerate(names):
        for measure, columns in values.items():
            column = columns[:, place]
            sample = column[~np.isnan(column)]
            mean = float(sample.mean()) if len(sample) else np.nan
            n_left_out = len(column) - len(sample)
            rows.append((name, measure, mean, len(sample), n_left_out))
            samples.append(sample)
    table = pd.DataFrame(rows, columns=["attribute", "measure", "value", "count", "left_out"])
    ends = bootstrap_intervals(samples, seed, level=level, resamples=resamples)
    return table.assign(topic="", low=ends[:, 0], high=ends[:, 1])


# --- sentences ------------------------------------------------------------------------------------


@checked
def citation_verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    difference: opt.Difference = 0.05,
    level: opt.Level = 0.95,
) -> list[str]:
    """A sentence for each source of `citation_share`: decided by its interval, or what would.

    The largest differences come first, and only so many. ``difference``: the excess that a study of
    that many questions tells from none with 80 % power.

    >>> rows = [("cited-share", 0.5, 0.4, 0.6), ("retrieved-share", 0.25, 0.2, 0.3)]
    >>> rows.append(("cited-over-retrieved", 0.25, 0.2, 0.3))
    >>> scores = pd.DataFrame(rows, columns=["measure", "value", "low", "high"])
    >>> print(*citation_verdicts(scores.assign(topic="", attribute="wiki", count=40)))
    wiki: 50.0 % of the citations, 25.0 % of the retrieved: +25.0 points [20.0, 30.0], n = 40:
    cited more than its share
    """
    means = scores[scores["topic"] == ""]
    keys = [*by, "attribute"]
    value_of = means.set_index([*keys, "measure"])["value"].to_dict()
    excesses = means[means["measure"].isin(list(_SHARE_OF)) & means["value"].notna()]
    largest_first = excesses["value"].abs().sort_values(ascending=False, kind="stable").index
    excesses = excesses.loc[largest_first]
    sentences = []
    for measure in _SHARE_OF:
        rows = excesses[excesses["measure"] == measure].to_dict("records")
        for row in rows[:_MOST_SENTENCES]:
            key = [row[name] for name in keys]
            share = value_of[(*key, _SHARE_OF[measure])]
            sentence = _sentence(row, " ".join(map(str, key)), share)
            if not _is_decided(row):
                sentence += _what_would_decide(row, difference, level)
            sentences.append(sentence)
        rest = rows[_MOST_SENTENCES:]
        if rest:
            n_decided = sum(map(_is_decided, rest))
            sentences.append(
                f"{len(rest)} more by smaller differences, {n_decided} decided: see {measure}"
            )
    return sentences


def _is_decided(row: dict[str, Any]) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def _sentence(row: dict[str, Any], name: str, share: float) -> str:
    """Both shares, their mean difference, and what its interval says."""
    documents = _SHARE_OF[row["measure"]].removesuffix("-share")
    # Of the questions that the difference is of: not all that cite have a relevant document.
    cited = share + row["value"]
    sentence = f"{name}: {100 * cited:.1f} % of the citations, {100 * share:.1f} % of the "
    # 0.0 is added so that no number reads -0.0
    sentence += f"{documents}: {100 * row['value'] + 0.0:+.1f} points"
    if row["low"] <= row["high"]:
        sentence += f" [{100 * row['low'] + 0.0:.1f}, {100 * row['high'] + 0.0:.1f}]"
    sentence += f", n = {row['count']}: "
    if row["low"] > 0:
        return f"{sentence}cited more than its share"
    if row["high"] < 0:
        return f"{sentence}cited less than its share"
    return f"{sentence}undecided"


def _what_would_decide(row: dict[str, Any], difference: float, level: float) -> str:
    if not row["low"] < row["high"]:
        return "; one question, or equal ones, say nothing of how many it would take"
    needed = units_to_decide(row["count"], row["low"], row["high"], difference, level=level)
    return f"; 80 % power for {100 * difference:g} points needs n = {max(needed, 2):,}"
