"""Citations in an answer: numbers in square brackets, and what only looks like them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST_NUMBER = 10**9
"""Cited numbers of ten and more digits count as this one, which is never in range."""
LONGEST_RANGE = 100
"""Most documents that a range such as [1-3] may stand for."""

SEPARATOR = r"\s*+(?:[,;、，；]\s*+(?:and\b|&)?+|and\b|&)\s*+"
"""What stands between the numbers of a list, as the pattern of a regular expression."""

_NUMBERS = r"[0-9]++(?:\s*+[-–—]\s*+[0-9]++)?+"
_CITATION = re.compile(rf"\s*+{_NUMBERS}(?:{SEPARATOR}{_NUMBERS})*+\s*+")
_BRACKET, _RANGE = (
    re.compile(r"\[([^\[\]]*+)(\]?)"),
    re.compile(r"([0-9]++)(?:\s*+[-–—]\s*+([0-9]++))?+"),
)
_DIGIT, _DIGIT_FIRST = re.compile(r"\d"), re.compile(r"\s*+\d")
_CITED, _OTHER_BRACKET = re.compile(rf"\[{_CITATION.pattern}\]"), re.compile(r"[［【]\s*+\d")
# A block between fences, to the end of the text where its fence is not closed, or a span.
_CODE = re.compile(r"`{3,}+[^`]*+(?:`{1,2}+(?!`)[^`]*+)*+(?:`{3,}+|\Z)|`[^`\n]++`")
_CITED_IN_CODE = re.compile(rf"`\s*+(?:{_CITED.pattern}\s*+)++`")
_NO_BRACKETS = str.maketrans("[]", "  ")


@dataclass(frozen=True)
class Citations:
    """The citations of an answer.

    ``cited``: distinct numbers in range, in the order of first mention. ``out_of_range``: distinct
    numbers of documents that were not there, likewise. ``repeated``: mentions of a number beyond
    its first, in range or not. ``malformed``: brackets that look like a citation but are none.
    """

    cited: tuple[int, ...]
    out_of_range: tuple[int, ...]
    repeated: int
    malformed: int


def _number(digits: str) -> int:
    """The number of so many digits, of which all beyond the tenth say only that it is large."""
    return min(int(digits.lstrip("0")[:10] or "0"), LARGEST_NUMBER)


def _mentions_in(answer: str, begin: int, end: int, largest: int) -> list[tuple[int, int, int]]:
    """Numbers of a bracket's content, each with its place; none where a range is no range."""
    numbers: list[tuple[int, int, int]] = []
    for mention in _RANGE.finditer(answer, begin, end):
        lowest = highest = _number(mention[1])
        if mention[2]:
            highest = _number(mention[2])
            if not 1 <= lowest <= highest <= min(largest, lowest + LONGEST_RANGE - 1):
                return []
        for number in range(lowest, highest + 1):
            numbers.append((number, *mention.span()))
    return numbers


def _code_without_brackets(code: re.Match[str]) -> str:
    """Code as long as it was; a span that is a citation and nothing else stays one."""
    if _CITED_IN_CODE.fullmatch(code[0]):
        return code[0]
    return code[0].translate(_NO_BRACKETS)


def mentions(answer: str, documents: int | None = None) -> Iterator[list[tuple[int, int, int]]]:
    """What each bracket cites: its numbers, each with where its digits or range begin and end.

    ``documents``: as in `citations`. Nothing within a list: a bracket that looks like a citation,
    and is none.
    """
    if documents is not None and documents < 1:
        raise ValueError(f"at least one document is wanted, found {documents}")
    largest = LARGEST_NUMBER - 1 if documents is None else documents
    if "`" in answer:
        answer = _CODE.sub(_code_without_brackets, answer)
    for bracket in _BRACKET.finditer(answer):
        content, closing = bracket.groups()
        # Nearly all brackets hold one number, which needs no further look.
        if closing and content.isdecimal() and content.isascii():
            yield [(_number(content), *bracket.span(1))]
            continue
        numbers: list[tuple[int, int, int]] = []
        if closing and _CITATION.fullmatch(content):
            numbers = _mentions_in(answer, *bracket.span(1), largest)
        if closing:
            has_digit = _DIGIT.search(content)
        else:
            has_digit = _DIGIT_FIRST.match(content)
        if numbers or has_digit:
            yield numbers


def citations(answer: str, documents: int | None = None) -> Citations:
    """The distinct bracketed numbers of an answer, in range and out of range.

    A citation is a number in square brackets, or several with commas, semicolons, and or & between,
    or a range: ``[1]``, ``[1, 2]``, ``[1; 2]``, ``[1, 2, and 3]``, ``[1-3]``. In code, between
    backticks, a bracket is an index, unless the span holds citations alone. A range is read as all
    its numbers where it ascends, lies within the documents and has at most `LONGEST_RANGE` of them;
    a longer or falling one, and one beyond the documents such as ``[2015-2019]``, is malformed.
    Malformed, and citing nothing, are also other brackets with a digit (``[Document 5]``, ``[5a]``,
    ``[-1]``, ``[5`` without its end, digits that are not 0 to 9) and numbers in the brackets of
    other scripts (【5】).
    Brackets without any digit are prose, and so are numbers in parentheses, which mostly are years.

    ``documents``: number of documents shown; numbers from 1 to it are in range. Without it, every
    number from 1 is. It takes time that is linear in the length of the answer.

    thesis, Figure 5.2: the prompt asks to cite "using [1] [2] [3] etc."; section 5.3.3 counts cited
    documents, so that a repeated number is one. What else counts as a citation the thesis does not
    say.

    >>> citations("In Wales [2], or so they say [3, 2] [9] [Document 1].", 5)
    Citations(cited=(2, 3), out_of_range=(9,), repeated=1, malformed=1)
    """
    malformed = 0
    if "【" in answer or "［" in answer:
        malformed = len(_OTHER_BRACKET.findall(answer))
    largest = min(documents or LARGEST_NUMBER, LARGEST_NUMBER - 1)
    in_range: dict[int, None] = {}  # dictionaries, to keep the order of first mention
    out_of_range: dict[int, None] = {}
    n_mentions = 0
    for numbers in mentions(answer, documents):
        if not numbers:
            malformed += 1
        n_mentions += len(numbers)
        for number, _, _ in numbers:
            if 1 <= number <= largest:
                in_range[number] = None
            else:
                out_of_range[number] = None
    repeated = n_mentions - len(in_range) - len(out_of_range)
    return Citations(tuple(in_range), tuple(out_of_range), repeated, malformed)


def without_citations(answer: str) -> str:
    """The answer with a space for each citation."""
    return _CITED.sub(" ", answer)
