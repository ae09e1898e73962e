"""Citations in answers: how they are read, and whether a source is cited more than its share.

An answer cites numbered documents, from 1, in square brackets. `citations` reads them;
`in_brackets` puts the marks of another style into brackets first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise import options as opt
from equipoise.arrays import Floats, ratio
from equipoise.coverage import Seen, first, judge
from equipoise.errors import listed, need_columns
from equipoise.options import checked, measure
from equipoise.statistics.intervals import bootstrap_intervals, verdict

declared = partial(
    measure, family="Answers: attribution to their sources", sources=("thesis-ch5", "thesis")
)

LARGEST_NUMBER = 10**9
"""Cited numbers of ten and more digits count as this one, which is never in range."""
_LONGEST_RANGE = 100

_SEPARATOR = r"\s*+(?:[,;、，；]\s*+(?:and\b|&)?+|and\b|&)\s*+"
_NUMBERS = r"[0-9]++(?:\s*+[-–—]\s*+[0-9]++)?+"
_CITATION = re.compile(rf"\s*+{_NUMBERS}(?:{_SEPARATOR}{_NUMBERS})*+\s*+")
_CITED = re.compile(rf"\[{_CITATION.pattern}\]")
_BRACKET = re.compile(r"\[([^\[\]]*+)(\]?)")
_RANGE = re.compile(r"([0-9]++)(?:\s*+[-–—]\s*+([0-9]++))?+")
_OTHER_BRACKET = re.compile(r"[［【]\s*+\d")
# A block between fences, to the end of the text where its fence is not closed, or a span.
_CODE = re.compile(r"`{3,}+[^`]*+(?:`{1,2}+(?!`)[^`]*+)*+(?:`{3,}+|\Z)|`[^`\n]++`")
_CITED_IN_CODE = re.compile(rf"`\s*+(?:{_CITED.pattern}\s*+)++`")


@dataclass(frozen=True)
class Citations:
    """The citations of an answer.

    ``cited``: distinct numbers in range, in the order of first mention. ``out_of_range``: distinct
    numbers of documents that were not shown. ``repeated``: mentions of a number beyond its first,
    in range or not. ``malformed``: brackets that look like a citation but are none.
    """

    cited: tuple[int, ...]
    out_of_range: tuple[int, ...]
    repeated: int
    malformed: int


def _number(digits: str) -> int:
    """Return the number of so many digits; those beyond the tenth only make it large."""
    return min(int(digits.lstrip("0")[:10] or "0"), LARGEST_NUMBER)


def _mentions_in(answer: str, begin: int, end: int, largest: int) -> list[tuple[int, int, int]]:
    """Return the numbers of a bracket, each with its place; none where a range is malformed."""
    numbers: list[tuple[int, int, int]] = []
    for mention in _RANGE.finditer(answer, begin, end):
        lowest = highest = _number(mention[1])
        if mention[2]:
            highest = _number(mention[2])
            if not 1 <= lowest <= highest <= min(largest, lowest + _LONGEST_RANGE - 1):
                return []
        numbers += [(number, *mention.span()) for number in range(lowest, highest + 1)]
    return numbers


def _code_without_brackets(code: re.Match[str]) -> str:
    """Return code of the same length without brackets; a span of citations alone is unchanged."""
    if _CITED_IN_CODE.fullmatch(code[0]):
        return code[0]
    return code[0].translate(str.maketrans("[]", "  "))


def mentions(answer: str, documents: int | None = None) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the numbers of each bracket, each with where its digits or range begin and end.

    ``documents``: as in `citations`. An empty list is a bracket that looks like a citation, and is
    none.
    """
    largest = LARGEST_NUMBER - 1 if documents is None else documents
    if "`" in answer:
        answer = _CODE.sub(_code_without_brackets, answer)
    for bracket in _BRACKET.finditer(answer):
        content, closing = bracket.groups()
        numbers: list[tuple[int, int, int]] = []
        if closing and _CITATION.fullmatch(content):
            numbers = _mentions_in(answer, *bracket.span(1), largest)
        has_digit = re.search(r"\d", content) if closing else re.match(r"\s*+\d", content)
        if numbers or has_digit:
            yield numbers


def citations(answer: str, documents: int | None = None) -> Citations:
    """Return the distinct bracketed numbers of an answer, in range and out of range.

    A citation is a number in square brackets, or several with commas, semicolons, and or & between,
    or a range: ``[1]``, ``[1, 2]``, ``[1; 2]``, ``[1, 2, and 3]``, ``[1-3]``. In code, between
    backticks, a bracket is an index, unless the span has citations alone. A range is read as all
    its numbers where it ascends, lies within the documents and has at most 100 of them; other
    ranges, such as ``[2015-2019]``, are malformed. Malformed are also other brackets with a digit
    (``[Document 5]``, ``[5a]``, ``[-1]``, ``[5`` without its end) and numbers in the brackets of
    other scripts (【5】). Brackets without any digit are prose, and so are numbers in parentheses.

    ``documents``: number of documents shown; numbers from 1 to it are in range. Without it, every
    number from 1 is.

    thesis, Figure 5.2: the prompt asks to cite "using [1] [2] [3] etc."; section 5.3.3 counts cited
    documents, so that a repeated number is one.

    >>> citations("In Wales [2], or so they say [3, 2] [9] [Document 1].", 5)
    Citations(cited=(2, 3), out_of_range=(9,), repeated=1, malformed=1)
    """
    malformed = len(_OTHER_BRACKET.findall(answer))
    largest = min(documents or LARGEST_NUMBER, LARGEST_NUMBER - 1)
    in_range: dict[int, None] = {}  # dictionaries, to keep the order of first mention
    out_of_range: dict[int, None] = {}
    n_mentions = 0
    for numbers in mentions(answer, documents):
        malformed += not numbers
        n_mentions += len(numbers)
        for number, _, _ in numbers:
            (in_range if 1 <= number <= largest else out_of_range)[number] = None
    repeated = n_mentions - len(in_range) - len(out_of_range)
    return Citations(tuple(in_range), tuple(out_of_range), repeated, malformed)


def without_citations(answer: str) -> str:
    """Return the answer with a space for each citation."""
    return _CITED.sub(" ", answer)


# --- other styles ---------------------------------------------------------------------------------


_N = r"[0-9]{1,3}+(?:\s*+[-–—]\s*+[0-9]{1,3}+)?+"
_NAMED = (
    r"(?:(?:doc(?:ument)?|source|passage|ref(?:erence)?|cit(?:e|ation)|context|result|snippet|text)"
    rf"s?[\s._:-]*+|\#){_N}"
)
STYLES = {
    "bracket": re.compile(r"(?!)"),  # unchanged
    "doc": re.compile(
        rf"(?i)[\[(（【](\s*+{_NAMED}(?:{_SEPARATOR}(?:{_NAMED}|{_N}))*+\s*+)"
        r"(?:[:†|][^\[\]()【】]*+)?+[\])）】]"
    ),
}
"""Each style and its marks, of which the group has the numbers: ``[1]``; ``[doc 1]``."""


def in_brackets(texts: Sequence[str], style: str) -> list[str]:
    r"""Put the citations of a style in square brackets; other brackets become parentheses.

    ``style``: one of `STYLES`, or a regular expression whose first group, or else the whole, has
    the numbers.

    >>> in_brackets(["In Wales [doc 1, doc 3] [sic]."], "doc")
    ['In Wales [1, 3] (sic).']
    >>> in_brackets(["See #3."], r"#(\d+)")
    ['See [3].']
    """
    if style == "bracket":
        return list(texts)
    if style not in STYLES and style.isalpha():
        raise ValueError(f"citation_style must be {', '.join(STYLES)} or a regular expression")
    try:
        marks = STYLES[style] if style in STYLES else re.compile(style)
    except re.error as error:
        raise ValueError(f"citation_style must be a regular expression: {error}") from None

    def marked(mark: re.Match[str]) -> str:
        numbers = re.findall(
            r"[0-9]+(?:\s*[-–—]\s*[0-9]+)?", mark[1] if mark.re.groups else mark[0]
        )
        return f"\x02{', '.join(numbers)}\x03" if numbers else mark[0]

    bracketed = []
    for text in texts:
        plain = text.translate({2: None, 3: None})
        plain = marks.sub(marked, plain).translate(str.maketrans("[]", "()"))
        bracketed.append(plain.translate(str.maketrans("\x02\x03", "[]")))
    return bracketed


# --- shares of sources ----------------------------------------------------------------------------


OVER_RETRIEVED, OVER_RELEVANT = "cited-over-retrieved", "cited-over-relevant"
MEASURES = ("cited-share", "retrieved-share", OVER_RETRIEVED, "relevant-share", OVER_RELEVANT)
_SHARE_OF = {OVER_RETRIEVED: "retrieved-share", OVER_RELEVANT: "relevant-share"}
_MOST_SENTENCES = 10


@declared("Citation share", range="-1 to 1", ideal="0", direction="neither")
def citation_share(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: opt.CitationStyle = "bracket",
    mean_intervals: opt.MeanIntervals = "marginal",
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 9999,
    seed: opt.Seed = 0,
) -> pd.DataFrame:
    r"""Measure how much a source's share of the citations exceeds its share of the documents.

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
        Name of the answers in the column of runs.

    Returns
    -------
    DataFrame
        ``run, topic``, by, ``attribute`` (the source), ``measure, value, low, high, count,
        left_out``. Measures: cited-share, retrieved-share and relevant-share (0 to 1);
        cited-over-retrieved and cited-over-relevant, the differences (-1 to 1). One row per
        question, source and measure, then, with an empty topic, the means over ``count`` questions
        with percentile bootstrap intervals. ``left_out``: answers that cite no document that was
        shown, and for relevance those without a relevant document.

    Raises
    ------
    ValueError
        If a column is missing, an answer has no documents, or a question comes twice in a group.
    InputError
        If no answer of a group cites a document that was shown.

    Notes
    -----
    Beyond the thesis, whose sets of citations these are (section 5.3.3). A question counts once,
    regardless of its number of citations. A source is compared with what was retrieved for the same
    question. The intervals are of one source each, or, simultaneous, of all sources of a group and
    measure at once (Bonferroni).

    Examples
    --------
    >>> texts = ["Both [1][2].", "So [1]."]
    >>> answers = pd.DataFrame({"question": ["a", "b"], "answer": texts})
    >>> answers = answers.assign(sources=[("wiki", "news"), ("wiki", "news", "news", "news")])
    >>> scores = citation_share(answers)
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
    is_repeated = answers.duplicated(keys)
    if is_repeated.any():
        columns = listed(sorted(set(answers.columns) - {*keys, "answer", "sources"}))
        raise ValueError(
            f"question {answers.loc[is_repeated, 'question'].iloc[0]!r} is answered twice; name the"
            f" column that distinguishes its answers in by, of {columns}"
        )
    if answers.empty or not answers["sources"].map(len).all():
        raise ValueError("sources must have at least one document for each answer")
    # In order of questions: the bootstrap resamples places, and the rows may come in any order.
    answers = answers.sort_values("question", kind="stable", ignore_index=True)
    names, values = _shares(answers, in_brackets(answers["answer"].tolist(), citation_style))
    if mean_intervals == "simultaneous":
        level = 1 - (1 - level) / len(names)

    groups: Any = answers.groupby(list(by), sort=True, observed=True) if by else [((), answers)]
    coverages, by_question, means = [], [], []
    for key, group in groups:
        labels = dict(zip(by, key, strict=True))
        cites = ~np.isnan(values["cited-share"][group.index, 0])
        place = " ".join(map(str, key)) or "the answers"
        needed = "a citation of a document shown"
        without = first(group["question"].to_numpy()[~cites])
        coverages.append(Seen(place, "answers", needed, int(cites.sum()), len(group), without))
        # shape (answers, sources, measures)
        stacked = np.stack(
            [source_values[group.index] for source_values in values.values()], axis=-1
        )
        cells = pd.MultiIndex.from_product(
            [group["question"], names, list(values)], names=["topic", "attribute", "measure"]
        )
        rows = pd.Series(stacked.ravel(), cells, name="value").dropna().reset_index()
        by_question.append(rows.assign(count=1, left_out=0, **labels))
        by_cell = stacked.reshape(len(group), -1).T
        samples = [cell[~np.isnan(cell)] for cell in by_cell]
        rows = pd.MultiIndex.from_product([names, list(values)], names=["attribute", "measure"])
        table = rows.to_frame(index=False).assign(topic="", **labels)
        table["value"] = [sample.mean() if len(sample) else np.nan for sample in samples]
        table["count"] = list(map(len, samples))
        table["left_out"] = len(group) - table["count"]
        ends = bootstrap_intervals(samples, seed, level=level, resamples=resamples)
        means.append(table.assign(low=ends[:, 0], high=ends[:, 1]))
    seen = judge(coverages)
    # The means of all groups are last, where a reader of the terminal looks first.
    every = pd.concat([*by_question, *means], ignore_index=True).assign(run=run)
    columns_of_table = ["run", "topic", *by, "attribute", "measure", "value", "low", "high"]
    table = every[[*columns_of_table, "count", "left_out"]]
    table.attrs["seen"] = seen
    return table


def _shares(answers: pd.DataFrame, texts: Sequence[str]) -> tuple[pd.Index, dict[str, Floats]]:
    """Return the sources, and each measure, shaped (answers, sources); NaN where undefined."""
    codes, names = pd.factorize(np.array([s for row in answers["sources"] for s in row], object))
    cited, retrieved, relevant = np.zeros((3, len(answers), len(names)))
    given = answers["relevant"] if "relevant" in answers.columns else [()] * len(answers)
    begin = 0
    for row, (text, sources, numbers) in enumerate(
        zip(texts, answers["sources"], given, strict=True)
    ):
        document_codes = codes[begin : begin + len(sources)]
        begin += len(sources)
        np.add.at(retrieved[row], document_codes, 1)
        for number in citations(text, len(sources)).cited:
            cited[row, document_codes[number - 1]] += 1
        for number in numbers if isinstance(numbers, (list, tuple)) else ():
            if not 1 <= number <= len(sources):
                question = answers["question"].iloc[row]
                raise ValueError(f"relevant must number the documents of question {question!r}")
            relevant[row, document_codes[number - 1]] += 1

    def shares(counts: Floats) -> Floats:
        return ratio(counts, counts.sum(axis=1, keepdims=True), np.nan)

    cited_share = shares(cited)
    cites = ~np.isnan(cited_share)
    values = {
        "cited-share": cited_share,
        # Shares of answers without a citation have nothing to be compared with.
        "retrieved-share": np.where(cites, shares(retrieved), np.nan),
        OVER_RETRIEVED: cited_share - shares(retrieved),
    }
    if relevant.any():
        values["relevant-share"] = np.where(cites, shares(relevant), np.nan)
        values[OVER_RELEVANT] = cited_share - shares(relevant)
    return pd.Index(names), values


@checked
def citation_verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    difference: opt.Difference = 0.05,
    level: opt.Level = 0.95,
) -> list[str]:
    """Say of each source of `citation_share` what its interval decides, or what would.

    The ten largest differences come first. ``difference``: the excess that the required number of
    questions detects with 80% power.

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
    sentences = []
    for measure_name, share_name in _SHARE_OF.items():
        rows = means[(means["measure"] == measure_name) & means["value"].notna()]
        rows = rows.sort_values("value", ascending=False, key=abs, kind="stable")
        for row in rows.head(_MOST_SENTENCES).to_dict("records"):
            key = [row[name] for name in keys]
            share = value_of[(*key, share_name)]
            documents = share_name.removesuffix("-share")
            # Of the questions that the difference is of: not all have a relevant document.
            cited = share + row["value"]
            decided = verdict(
                row, difference, level, ("cited more than its share", "cited less than its share")
            )
            sentences.append(
                f"{' '.join(map(str, key))}: {100 * cited:.1f} % of the citations,"
                f" {100 * share:.1f} % of the {documents}: {decided}"
            )
        if len(rows) > _MOST_SENTENCES:
            n_more = len(rows) - _MOST_SENTENCES
            sentences.append(f"{n_more} more by smaller differences: see {measure_name}")
    return sentences
