"""Citations in answers: how they are read, and whether a source is cited more than its share.

An answer cites numbered documents, from 1, in square brackets. `citations` reads them;
`in_brackets` puts the marks of another style into brackets first.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise import options as opt
from equipoise.arrays import Floats, ratio
from equipoise.coverage import Seen, first, judge
from equipoise.declared import Scale, checked, measure
from equipoise.errors import Note, excerpt, listed, need_columns
from equipoise.measures.reference_lists import before_references
from equipoise.statistics.intervals import intervals_of_means
from equipoise.statistics.unknown import verdict

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
_NUMBER = re.compile(_NUMBERS)
_RANGE = re.compile(r"([0-9]++)(?:\s*+[-–—]\s*+([0-9]++))?+")
_ZERO = re.compile(r"\[(?:[^\[\]]*[^\[\]0-9])?0+(?![0-9])")
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

    ``documents`` is the number of documents shown; numbers from 1 to it are in range. Without it,
    every number from 1 is.

    The prompt of Figure 5.2 of the thesis asks to cite "using [1] [2] [3] etc.". Section 5.3.3
    counts cited documents, so a repeated number counts once.

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
_LIST = rf"\s*+{_N}(?:{_SEPARATOR}{_N})*+\s*+"
_NAMED = (
    r"(?:(?:doc(?:ument)?|source|passage|ref(?:erence)?|cit(?:e|ation)|context|result|snippet|text)"
    rf"s?[\s._:-]*+|\#){_N}"
)
_TAG = r"(?:cite|citation|ref|source|doc)"
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
# Powers: after a digit, a single letter, or a unit of length.
_NO_POWER = r"(?<![0-9⁺⁻])(?<!\b[A-Za-z])(?<!\b(?:km|cm|mm|dm|ft|mi|yd))"
STYLES = {
    "bracket": re.compile(r"(?!)"),  # unchanged
    "footnote": re.compile(rf"\[\^({_LIST})\](?!:)"),
    "lenticular": re.compile(rf"[【［]({_LIST})(?:[†‡|][^【［】］]*+)?+[】］]"),
    "doc": re.compile(
        rf"(?i)[\[(（【](\s*+{_NAMED}(?:{_SEPARATOR}(?:{_NAMED}|{_N}))*+\s*+)"
        r"(?:[:†|][^\[\]()【】]*+)?+[\])）】]"
    ),
    "tag": re.compile(rf"(?i)<{_TAG}\b[^<>]*+>\s*+\[?({_LIST})\]?\s*+</{_TAG}>"),
    "superscript": re.compile(
        rf"(?i){_NO_POWER}([{_SUPERSCRIPTS}]++(?:[,˒⸴][{_SUPERSCRIPTS}]++)*+)"
        rf"|<sup>\s*+[\[(]?({_LIST})[\])]?\s*+</sup>"
    ),
    "paren": re.compile(rf"[(（]({_LIST})[)）]"),
}
"""Each style and its marks, of which a group has the numbers.

``[1]``, ``[^1]``, ``【1†source】``, ``[doc 1]``, ``<cite>1</cite>``, ``¹``, ``(1)``.
"""
_AMBIGUOUS = ("superscript", "paren")  # they also mark powers and enumerations
_LEAST_AMBIGUOUS = 0.1
_LEAST_FROM_ZERO = 0.05  # of the answers that cite; a few numbers are invented

_ADDRESS = r"https?://(?:[^\s()<>\[\]\"|]++|\([^\s()<>]*+\))++"
_LINK = re.compile(
    rf'\[(?:\[[^\[\]]*+\]|[^\[\]])*+\]\(\s*+<?({_ADDRESS})>?(?:\s++"[^"]*+")?\s*+\)|({_ADDRESS})'
)
_DEFINITION = re.compile(
    r"(?m)^[-*> ]{0,6}(?:\[\^?([0-9]{1,3})\]:?|([0-9]{1,3})[.):])\*{0,2}[ ]*"
    rf"(?:\[[^\[\]\n]{{0,200}}\]\(|[^\[\]\n]{{0,200}}?)<?({_ADDRESS})[)>. ]*"
    r"(?(1)[^\[\]\n]{0,200})$"  # words follow a bracketed number only
)
_DEFINED = re.compile(rf"\[\^?({_LIST})\](?!:)")
_END = ".,;:!?*_'"  # of a sentence or of emphasis, not of an address
_TO_ROUND = str.maketrans("[]", "()")
_TO_SQUARE = str.maketrans("\x02\x03", "[]")
_TO_PLAIN = {2: None, 3: None, **{ord(c): str(n) for n, c in enumerate(_SUPERSCRIPTS)}}


def host_of(address: str) -> str:
    """Return the host of a web address: lower case, without www., default port and final dot.

    >>> host_of("https://WWW.News.org:443/today"), host_of("news.org.:8080")
    ('news.org', 'news.org:8080')
    """
    host = re.sub("^(?:[a-z]+:)?//", "", address.strip().casefold())
    host = re.split(r"[/?#]", host)[0].rpartition("@")[2]
    host, _, port = host.partition(":")
    host = host.rstrip(".").removeprefix("www.")
    default = {"http:": "80", "https:": "443"}.get(address.strip().casefold().partition("//")[0])
    is_default = not port or port == default or (default is None and port in ("80", "443"))
    return host if is_default else f"{host}:{port}"


def plain_address(address: str) -> str:
    """Return what two spellings of one web address share.

    Without scheme, fragment, final slash and the parameters by which links are tracked.

    >>> plain_address("http://www.News.org/a/?utm_source=openai#top")
    'news.org/a'
    """
    rest = address.strip().partition("#")[0].partition("://")[2]
    before_query, _, query = rest.partition("?")
    _, slash, path = before_query.partition("/")
    parameters = [name for name in query.split("&") if name and not name.startswith("utm_")]
    shared = host_of(address) + (slash + path).rstrip("/")
    return f"{shared}?{'&'.join(parameters)}" if parameters else shared


def _marked_links(text: str, addresses: Mapping[str, int], references: str, shift: int) -> str:
    """Mark links to documents by their numbers, and the numbers that a list of links defines.

    A link to any page of ``//host`` is one to its document. A number that links to anything else
    cites a document that was not retrieved. ``references``: the text with its list, where it was
    left out. ``shift``: added to numbers that the list does not define.
    """

    def number(address: str) -> int:
        address = plain_address(address.rstrip(_END))
        of_host = addresses.get(f"//{host_of(address)}", LARGEST_NUMBER)
        return addresses.get(address, of_host)

    def marked(numbers: object) -> str:
        return f"\x02{numbers}\x03"

    def linked(link: re.Match[str]) -> str:
        address = link[1] or link[2].rstrip(_END)
        document = number(address)
        if document == LARGEST_NUMBER and not _CITED.search(link[0]):
            return link[0]
        return marked(document) + ("" if link[1] else link[2][len(address) :])

    hosts = {(host_of(address), number) for address, number in addresses.items()}
    defined = {}
    for line in _DEFINITION.finditer(references or text):
        given = int(line[1] or line[2])
        defined[given] = number(line[3])
        # Another page of the site whose document has this number.
        if defined[given] == LARGEST_NUMBER and (host_of(line[3]), given) in hosts:
            defined[given] = given
    if defined:
        body = _DEFINITION.sub("", text)

        def renumbered(mark: re.Match[str]) -> str:
            numbers: list[int] = []
            for first_number, last_number in _RANGE.findall(mark[1]):
                numbers += range(int(first_number), int(last_number or first_number) + 1)
            return marked(", ".join(str(defined.get(number, number + shift)) for number in numbers))

        text = _DEFINED.sub(renumbered, body)
        if "\x02" not in text and not references:  # a list of sources, and no number in the text
            text += " ".join(map(marked, defined.values()))
    return _LINK.sub(linked, text)


def _plus(numbers: str, shift: int) -> str:
    """Return numbers that count from 1."""
    return re.sub("[0-9]+", lambda digits: str(_number(digits[0]) + shift), numbers)


def _bracketed(
    text: str, style: str, addresses: Mapping[str, int] | None, references: str, shift: int
) -> str:
    """Return a text with the citations of a style, and links to documents, in square brackets."""
    text = text.translate({2: None, 3: None})
    if addresses:
        text = _marked_links(text, addresses, references, shift)
    if style == "bracket" and shift:
        text = _CITED.sub(lambda mark: _plus(mark[0], shift), text)
    if style != "bracket":
        marks = STYLES[style] if style in STYLES else re.compile(style)

        def marked(mark: re.Match[str]) -> str:
            groups = mark.groups() or (mark[0],)
            content = next((group for group in groups if group), None)
            if content is None:
                return mark[0]
            content = content.translate(_TO_PLAIN)
            if style == "doc":
                content = ", ".join(_NUMBER.findall(content))
            if not _CITATION.fullmatch(content):
                raise ValueError(
                    "citation_style must have a first group that captures numbers only, got"
                    f" {excerpt(content)}"
                )
            return f"\x02{_plus(content, shift) if shift else content}\x03"

        text = marks.sub(marked, text).translate(_TO_ROUND)
    return text.translate(_TO_SQUARE)


def in_brackets(
    texts: Sequence[str],
    style: str = "auto",
    documents: Sequence[int | None] | None = None,
    addresses: Sequence[Mapping[str, int]] | None = None,
    first_number: opt.FirstNumber = "auto",
) -> tuple[list[str], list[str]]:
    r"""Put the citations of answers in square brackets; other brackets become parentheses.

    ``style`` is one of `STYLES`, ``auto``, or a regular expression, whose first group (or match)
    has the numbers. With ``auto``, each answer has the style in which it cites the most documents.
    Powers and enumerations look like superscripts and ``(1)``. These styles are read in answers
    without other citations, if half of these answers and a tenth of all answers have them.
    ``documents`` is how many each answer had. ``addresses`` are the numbers of its documents by
    their `plain_address`, so that ``auto`` also reads links to them. A list of references below an
    answer is left out, as `before_references` does, unless the answer has no other citation.
    ``first_number``: of the documents; ``auto`` reads it from the answers, with a note where it is
    not 1 in all of them. Returned numbers count from 1.

    Returns the texts and the style of each, empty where ``auto`` finds none.

    >>> in_brackets(["In Wales [doc 1, doc 3] [sic].", "Here [2]."])
    (['In Wales [1, 3] (sic).', 'Here [2].'], ['doc', 'bracket'])
    >>> in_brackets(["See #3."], r"#(\d+)")[0]
    ['See [3].']
    """
    if style not in ("auto", *STYLES) and style.isalpha():
        names = ", ".join(STYLES)
        raise ValueError(f"citation_style must be auto, {names}, or a regular expression")
    numbers_of = documents or [None] * len(texts)
    columns = (texts, numbers_of, addresses or [{}] * len(texts))
    read = _in_style(style, columns, int(first_number == "0"))
    if first_number == "auto" and _are_from_zero(read[0], numbers_of):
        return _in_style(style, columns, 1)
    return read


def _are_from_zero(texts: Sequence[str], documents: Sequence[int | None]) -> bool:
    """Return whether answers, whose numbers were read from 1, number their documents from 0."""
    if not any(map(_ZERO.search, texts)):
        return False
    found = [citations(text, largest) for text, largest in zip(texts, documents, strict=True)]
    n_first = sum(0 in read.out_of_range for read in found)
    n_last = sum(largest in read.cited for read, largest in zip(found, documents, strict=True))
    n_citing = sum(bool(read.cited or read.out_of_range) for read in found)
    are_from_zero = n_first > max(n_last, _LEAST_FROM_ZERO * n_citing)
    if n_first:
        first_number = 0 if are_from_zero else 1
        note = f"{n_first:,} of {n_citing:,} answers that cite have [0], {n_last:,} the number of"
        note += f" their documents: numbers are read from {first_number} (--first-number)"
        warnings.warn(note, Note, 4)
    return are_from_zero


def _in_style(style: str, columns: Any, shift: int) -> tuple[list[str], list[str]]:
    """Return what `in_brackets` does; ``shift`` is added to the numbers of documents."""
    texts = columns[0]
    if style != "auto":
        try:
            chosen_texts = [_reading(text, [style], None, {}, shift)[style][0] for text in texts]
        except re.error as error:
            raise ValueError(f"citation_style must be a regular expression: {error}") from None
        return chosen_texts, [style] * len(texts)
    readings = [
        _reading(text, list(STYLES), largest, addresses, shift)
        for text, largest, addresses in zip(*columns, strict=True)
    ]
    clear = [*(name for name in STYLES if name not in _AMBIGUOUS), "link"]
    styles = [_most_cited(read, clear) for read in readings]
    for name in _AMBIGUOUS:
        without = [place for place, chosen in enumerate(styles) if not chosen]
        citing = [place for place in without if _most_cited(readings[place], [name])]
        if len(citing) >= max(len(without) / 2, _LEAST_AMBIGUOUS * len(texts)):
            for place in citing:
                styles[place] = name
    chosen_texts = [read[name or "bracket"][0] for read, name in zip(readings, styles, strict=True)]
    return chosen_texts, styles


def _reading(
    text: str,
    styles: Sequence[str],
    largest: int | None,
    addresses: Mapping[str, int],
    shift: int,
) -> dict[str, tuple[str, int]]:
    """Return for each style the text, and how many documents it cites; as in `_in_style`."""
    body = before_references(text)
    for part, references in [(body, text), (text, "")] if body != text else [(text, "")]:
        read = {}
        cites = False
        for name in styles:
            if name in ("bracket", styles[0]) or STYLES[name].search(part):
                bracketed = _bracketed(part, name, addresses, references, shift)
                found = citations(bracketed, largest)
                has_first = name not in _AMBIGUOUS and 0 in found.out_of_range
                read[name] = bracketed, len(found.cited) + has_first
                cites = cites or bool(found.cited or found.out_of_range)
        if addresses and "://" in text and "bracket" in read:
            # Of equal readings the first is chosen: a link where numbers alone cite nothing.
            bracketed, count = read["link"] = read["bracket"]
            read["bracket"] = bracketed, min(count, len(citations(part, largest).cited))
        if cites:
            break
    return read


def note_styles(styles: Sequence[str]) -> None:
    """Note in how many answers each style is read, unless it is the first of `STYLES` in all."""
    if set(styles) - {"bracket", ""}:
        counts = Counter(filter(None, styles)).most_common()
        names = ", ".join(f"{name} in {count:,}" for name, count in counts)
        warnings.warn(f"citations are read as {names} of {len(styles):,} answers", Note, 4)


def _most_cited(read: Mapping[str, tuple[str, int]], names: Sequence[str]) -> str:
    """Return the first style in which the most documents are cited; empty where none are."""
    counts = {name: read[name][1] for name in names if name in read}
    best = max(counts, key=lambda name: counts[name], default="")
    return best if best and counts[best] else ""


# --- shares of sources ----------------------------------------------------------------------------


OVER_RETRIEVED, OVER_RELEVANT = "cited-over-retrieved", "cited-over-relevant"
_SHARE_OF = {OVER_RETRIEVED: "retrieved-share", OVER_RELEVANT: "relevant-share"}
_MOST_SENTENCES = 10
RESERVED = {"run", "topic", "attribute", "measure", "value", "low", "high", "count", "left_out"}
RESERVED |= {"read", "against", "t", "p_t", "p_permutation"}
"""Columns of tables of scores, by which answers are not grouped."""
_OF_A_QUESTION = {"low": np.nan, "high": np.nan, "count": 1, "left_out": 0, "read": 1.0}
"""What a row of one question has in the columns of means."""
NO_SOURCE = "(no source)"
"""Source of a document that has none."""


@declared(
    "Citation share",
    range="-1 to 1",
    ideal="0",
    direction="neither",
    names=dict.fromkeys(
        ["cited-share", "retrieved-share", "relevant-share"], Scale("0 to 1", "none", "neither")
    )
    | dict.fromkeys([OVER_RETRIEVED, OVER_RELEVANT]),
)
def citation_share(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: opt.CitationStyle = "auto",
    first_number: opt.FirstNumber = "auto",
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
        with the source of each document that was shown, in their order, `NO_SOURCE` where it has
        none. Optional: ``relevant``, the numbers of the relevant documents, from 1; the list may be
        empty. ``addresses``: the numbers of the documents by their `plain_address`, for answers
        that cite by links.
    by : sequence of str
        Further columns to group by, such as the model. A question counts once in a group, with the
        mean of its answers.
    run : str
        Name of the answers in the column of runs.

    Returns
    -------
    DataFrame
        ``run, topic``, by, ``attribute`` (the source), ``measure, value, low, high, count,
        left_out, read``. Measures: cited-share, retrieved-share and relevant-share (0 to 1);
        cited-over-retrieved and cited-over-relevant, the differences (-1 to 1). One row per
        question, source and measure, then, with an empty topic, the means over ``count`` questions
        with percentile bootstrap intervals. ``left_out``: questions whose answers cite no document
        that was shown, and for relevance those without a relevant document. ``read``: share of the
        answers that count, or, where it is smaller, of the documents that have a source.

    Raises
    ------
    ValueError
        If a column is missing, or no answer has documents.
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
    need_columns(answers, [*by, "question", "answer", "sources"])
    if RESERVED.intersection(by):
        raise ValueError(f"by must have columns of other names than {listed(sorted(RESERVED), 40)}")
    n_again = answers.duplicated([*by, "question"]).sum()
    if n_again:
        note = f"{n_again} answers are to a question answered before, which counts once, with the"
        warnings.warn(f"{note} mean of its answers; by a key such as model they are apart", Note, 4)
    answers = answers.reset_index(drop=True)
    has_documents = answers["sources"].map(len) > 0
    if not has_documents.any():
        raise ValueError("sources must have at least one document for at least one answer")
    names, values, reasons = _shares(answers, citation_style, first_number)
    if mean_intervals == "simultaneous":
        level = 1 - (1 - level) / len(names)
    n_named = answers["sources"].map(lambda sources: len(sources) - sources.count(NO_SOURCE))

    groups: Any = answers.groupby(list(by), sort=True, observed=True) if by else [((), answers)]
    # Categories, as the texts of many answers would take most of the memory.
    labelled = {"topic": ["", *answers["question"]], "attribute": names, "measure": list(values)}
    labelled |= {name: answers[name] for name in by}
    types = {name: pd.Series(column).astype("category").dtype for name, column in labelled.items()}
    coverages, by_question, means = [], [], []
    for key, group in groups:
        labels = dict(zip(by, key, strict=True))
        cites = (reasons[group.index] == "").to_numpy()
        place = " ".join(map(str, key)) or run or "the answers"
        needed = "a citation of a document shown"
        without = first(group["question"].to_numpy()[~cites])
        coverages.append(Seen(place, "answers", needed, int(cites.sum()), len(group), without))
        # shape (answers, sources, measures)
        stacked = np.stack(
            [source_values[group.index] for source_values in values.values()], axis=-1
        )
        cells = pd.MultiIndex.from_product([names, list(values)], names=["attribute", "measure"])
        each = pd.DataFrame(stacked.reshape(len(group), -1), group["question"], cells)
        questions = _questions_once(each)
        table = cells.to_frame(index=False).assign(topic="", **labels)
        samples = [cell[~np.isnan(cell)] for cell in questions.to_numpy().T]
        table["value"] = [sample.mean() if len(sample) else np.nan for sample in samples]
        table["count"] = list(map(len, samples))
        table["left_out"] = len(questions) - table["count"]
        # Of the answers and of the documents, whichever is read less.
        n_documents = group["sources"].map(len).sum()
        named_share = n_named[group.index].sum() / n_documents if n_documents else 0.0
        table["read"] = np.minimum(each.notna().mean().to_numpy(), named_share)
        ends = intervals_of_means(samples, seed, level=level, resamples=resamples)
        means.append(table.assign(low=ends[:, 0], high=ends[:, 1]).astype(types))
        del stacked, each, samples
        by_question.append(_rows_of_questions(questions, means[-1]).assign(**labels).astype(types))
    seen = judge(coverages)
    del values
    table = _table_of_shares(by_question, pd.concat(means), ["topic", *by], run)
    table.attrs["seen"] = seen
    table.attrs["not_read"] = {"answers": len(answers)} | reasons[
        reasons != ""
    ].value_counts().to_dict()
    return table


def _rows_of_questions(questions: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return topic, attribute, measure and value of the cells of a group that have a value.

    ``means`` has the columns of ``questions`` as its rows.
    """
    values = questions.to_numpy().ravel()
    topics = pd.Categorical(questions.index, dtype=means["topic"].dtype)
    numbers = {"topic": topics.codes.repeat(len(means))}
    for name in ("attribute", "measure"):
        numbers[name] = np.tile(means[name].cat.codes, len(questions))
    columns = {
        name: pd.Categorical.from_codes(codes[~np.isnan(values)], dtype=means[name].dtype)
        for name, codes in numbers.items()
    }
    return pd.DataFrame({**columns, "value": values[~np.isnan(values)]})


def _table_of_shares(
    by_question: list[pd.DataFrame], means: pd.DataFrame, keys: Sequence[str], run: str
) -> pd.DataFrame:
    """Return the table of `citation_share`, column by column to keep no copy of its rows.

    The means of all groups are last, where a reader of the terminal looks first.
    """
    names = [*dict.fromkeys([*keys, "attribute", "measure"]), "value"]
    every = pd.concat([*by_question, means[names]], ignore_index=True)
    by_question.clear()
    every = every[every["attribute"] != NO_SOURCE]
    means = means[means["attribute"] != NO_SOURCE]
    runs = pd.Categorical.from_codes(np.zeros(len(every), np.int8), [run])
    columns = {"run": runs} | {name: every[name] for name in names}
    for name, of_a_question in _OF_A_QUESTION.items():
        columns[name] = np.full(len(every), of_a_question)
        columns[name][len(every) - len(means) :] = means[name]
    return pd.DataFrame(columns, every.index, copy=False)


def _questions_once(answers: pd.DataFrame) -> pd.DataFrame:
    """Return one row per question, the mean of its answers; sorted, for the bootstrap."""
    if answers.index.is_unique:
        return answers.sort_index()
    return answers.groupby(level=0, sort=True).mean()


def _shares(
    answers: pd.DataFrame, style: str, first_number: opt.FirstNumber
) -> tuple[pd.Index, dict[str, Floats], pd.Series]:
    """Return the sources, each measure, shaped (answers, sources), and why an answer has none.

    A measure is NaN where it is undefined.
    """
    codes, names = pd.factorize(np.array([s for row in answers["sources"] for s in row], object))
    cited, retrieved, relevant = np.zeros((3, len(answers), len(names)))
    given = answers["relevant"] if "relevant" in answers.columns else [()] * len(answers)
    addresses = answers["addresses"].tolist() if "addresses" in answers.columns else None
    n_documents = answers["sources"].map(len).tolist()
    texts, styles = in_brackets(
        answers["answer"].tolist(), style, n_documents, addresses, first_number
    )
    if style == "auto":
        note_styles(styles)
    reasons = []
    n_outside = begin = 0
    for row, (text, sources, numbers) in enumerate(
        zip(texts, answers["sources"], given, strict=True)
    ):
        document_codes = codes[begin : begin + len(sources)]
        begin += len(sources)
        np.add.at(retrieved[row], document_codes, 1)
        read = citations(text, len(sources)) if sources else Citations((), (), 0, 0)
        reasons.append(_not_read(text, sources, read))
        n_outside += len(read.out_of_range)
        for number in read.cited:
            cited[row, document_codes[number - 1]] += 1
        for number in numbers if isinstance(numbers, (list, tuple)) else ():
            if not 1 <= number <= len(sources):
                question = answers["question"].iloc[row]
                raise ValueError(f"relevant must number the documents of question {question!r}")
            relevant[row, document_codes[number - 1]] += 1

    if n_outside and cited.any():
        n_all = n_outside + int(cited.sum())
        note = f"{n_outside:,} of {n_all:,} citations are out of range, of no document shown"
        warnings.warn(note, Note, 4)

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
    return pd.Index(names), values, pd.Series(reasons, dtype="object")


def _not_read(text: str, sources: Sequence[str], read: Citations) -> str:
    """Return why an answer does not count; empty where it cites a document that was retrieved."""
    if read.cited:
        return ""
    if not text.strip():
        return "no answer"
    if not sources:
        return "no retrieved document"
    if read.out_of_range or re.search("https?://", text):
        return "cites only what was not retrieved"
    return "only malformed citations" if read.malformed else "no citation"


@checked
def citation_verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    difference: opt.Difference = 0.05,
    level: opt.Level = 0.95,
) -> list[str]:
    """Return one sentence per source of `citation_share`: its verdict, or the required sample size.

    The ten largest differences come first. ``difference``: the excess that the required number of
    questions detects with 80% power.

    >>> rows = [("cited-share", 0.5, 0.4, 0.6), ("retrieved-share", 0.25, 0.2, 0.3)]
    >>> rows.append(("cited-over-retrieved", 0.25, 0.2, 0.3))
    >>> scores = pd.DataFrame(rows, columns=["measure", "value", "low", "high"])
    >>> scores = scores.assign(topic="", attribute="wiki", count=40, read=1.0)
    >>> print(*citation_verdicts(scores))
    wiki: 50.0% of the citations, 25.0% of the retrieved: +25.0 points [20.0, 30.0], n = 40,
    100% read: cited more than its share
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
            outcomes = ("cited more than its share", "cited less than its share")
            decided = verdict(row, difference, level, outcomes, cited=cited)
            sentences.append(
                f"{' '.join(map(str, key))}: {100 * cited:.1f}% of the citations,"
                f" {100 * share:.1f}% of the {documents}: {decided}"
            )
        if len(rows) > _MOST_SENTENCES:
            n_more = len(rows) - _MOST_SENTENCES
            sentences.append(f"{n_more} more by smaller differences: see {measure_name}")
    return sentences
