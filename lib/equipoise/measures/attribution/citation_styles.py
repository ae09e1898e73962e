"""Citations as systems write them, put into the square brackets that the measures read.

Styles beside the thesis's own: ``(1)``, ``¹`` or ``<sup>1</sup>``, ``[^1]``, ``【1†source】``,
``[doc
1]``, ``<cite>1</cite>``, or a regular expression. A number may be a list, or a range, as in
brackets. What looks like a mark and is none stays text: a year in parentheses (no more than three
digits cite), ``10³``, ``km²``, the footnote itself (``[^1]: ...``), ``【4:0†file】``, which numbers
no document. Neighbouring superscripts are one number: ¹² is 12.

The patterns are matched in a time linear in the text: ours by possessive repetition, a user's by
RE2.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.measures.attribution.brackets import SEPARATOR, citations
from equipoise.problems import Note, listed, need_columns

_N = r"[0-9]{1,3}+(?:\s*+[-–—]\s*+[0-9]{1,3}+)?+"
_LIST = rf"(\s*+{_N}(?:{SEPARATOR}{_N})*+\s*+)"
_WORD = (
    r"(?:doc(?:ument)?|source|passage|ref(?:erence)?|cit(?:e|ation)|context|result|snippet|text)s?"
)
_NAMED = rf"(?:{_WORD}[\s._:-]*+|\#){_N}"
_UP = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_UNIT = r"(?:km|cm|mm|dm|ft|mi|in|yd|mc)"
_NO_POWER = rf"(?<![⁺⁻])(?:(?<![0-9])|(?<=\b[12][0-9]{{3}}))(?<!(?<!['’])\b[A-Za-z])(?<!\b{_UNIT})"
_TAG = r"(?:cite|citation|ref|reference|source|doc|document)"
STYLES = {
    "bracket": re.compile(r"(?!)"),  # as it is
    "footnote": re.compile(rf"(?m)^[ ]{{0,3}}\[\^[^\[\]]*+\]:|\[\^{_LIST}\]"),
    "lenticular": re.compile(rf"[【［]{_LIST}(?:[†‡|][^【［】］]{{0,300}}+)?+[】］]"),
    "doc": re.compile(
        rf"(?i)[\[(（【](\s*+{_NAMED}(?:{SEPARATOR}(?:{_NAMED}|{_N}))*+\s*+)(?:[:†|][^\[\]()【】]*+)?+[\])）】]"
    ),
    "tag": re.compile(
        rf"(?i)<{_TAG}\b[^<>]*+>\s*+[\[(]?+{_LIST}[\])]?+\s*+</{_TAG}>"
        rf"|<{_TAG}\s[^<>=]*+=\s*+[\"']?+{_LIST}[\"']?+[^<>]*+>"
    ),
    "superscript": re.compile(
        rf"(?i){_NO_POWER}([{_UP}]++(?:[,˒⸴⁻–-][{_UP}]++)*+)|<sup>\s*+[\[(]?+{_LIST}[\])]?+\s*+</sup>"
    ),
    "paren": re.compile(rf"[(（]{_LIST}[)）]"),
}
"""Each style and its marks, of which a group holds the numbers; the least mistakable first."""
_MISTAKABLE = ("superscript", "paren")

_NUMBER = re.compile(r"[0-9]++(?:\s*+[-–—]\s*+[0-9]++)?+")
_PLAIN = str.maketrans("[]", "()")
_MARKED = re.compile("\x02([^\x02\x03]*+)\x03")


def _bracketed(text: str, marks: re.Pattern[str]) -> str:
    """The text with its marks in square brackets, and nothing else."""
    pieces: list[str] = []
    end = 0
    for mark in marks.finditer(text):
        contents = [content for content in mark.groups() if content]
        if not contents:
            continue  # what only looks like a mark
        # Superscripts and full-width digits become plain ones.
        plain = unicodedata.normalize("NFKC", contents[0]).replace("−", "-")
        numbers = ", ".join(_NUMBER.findall(plain))
        pieces.append(text[end : mark.start()].translate(_PLAIN))
        pieces.append(f"[{numbers or '?0'}]")
        end = mark.end()
    pieces.append(text[end:].translate(_PLAIN))
    return "".join(pieces)


def in_brackets(texts: Sequence[str], style: str) -> list[str]:
    r"""The texts with the citations of a style in square brackets; others become parentheses.

    ``style``: one of `STYLES`, or a regular expression (RE2) whose first group, or else the whole,
    holds the numbers; a match without any number is a malformed citation.

    >>> in_brackets(["In Wales (1, 3), in (2015) [sic]."], "paren")
    ['In Wales [1, 3], in (2015) (sic).']
    >>> in_brackets(["See #3."], r"#(\d+)")
    ['See [3].']
    """
    if style == "bracket":
        return list(texts)
    if style in STYLES:
        return [_bracketed(text, STYLES[style]) for text in texts]
    if style.replace("-", "").isalpha():
        raise ValueError(
            f"citations is {style!r}; wanted auto, {', '.join(STYLES)}, or a regular expression"
        )
    clean = pa.array([text.translate({2: None, 3: None}) for text in texts], pa.large_string())
    try:
        marked = _replaced(clean, style)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"citations is no regular expression of RE2 that matches a mark: {error}"[:300]
        ) from None
    return [_bracketed(text, _MARKED) for text in marked]


def _replaced(texts: pa.Array, pattern: str) -> list[str]:
    if pc.any(pc.match_substring_regex(pa.array([""]), pattern=pattern)).as_py():
        raise pa.ArrowInvalid("it matches an empty text")
    try:
        marked = pc.replace_substring_regex(texts, pattern=pattern, replacement="\x02\\1\x03")
    except pa.ArrowInvalid as error:
        if "Rewrite schema" not in str(error):
            raise
        marked = pc.replace_substring_regex(texts, pattern=pattern, replacement="\x02\\0\x03")
    return list(map(str, marked.to_pylist()))


@dataclass
class Counts:
    """Of how many answers a style can be read: those that cite a document shown, and all."""

    answers: int = 0
    citing: Counter[str] = field(default_factory=Counter)
    readable: Counter[str] = field(default_factory=Counter)
    unread: dict[str, list[str]] = field(default_factory=dict)
    """By style, the questions of the first answers of which nothing is read."""


def style_counts(answers: pd.DataFrame, style: str) -> Counts:
    """In how many answers each style is read, or the one that is named, as in `in_brackets`."""
    need_columns(answers, ("question", "answer"))
    texts = answers["answer"].tolist()
    documents_shown = [None] * len(answers)
    if "documents" in answers.columns:
        documents_shown = answers["documents"].tolist()
    counts = Counts(len(answers))
    for name in STYLES if style == "auto" else [style]:
        cites, is_read = [], []
        for text, documents in zip(in_brackets(texts, name), documents_shown, strict=True):
            read = citations(text, documents)
            cites.append(bool(read.cited))
            is_read.append(bool(read.cited or read.out_of_range))
        counts.citing[name] = sum(cites)
        counts.readable[name] = sum(is_read)
        unread = answers.loc[~np.array(is_read, dtype=bool), "question"].astype(str)
        counts.unread[name] = list(dict.fromkeys(unread))[:4]
    return counts


def style_of(counts_of_parts: Sequence[Counts], style: str) -> str:
    """The style that answers are to be read in, from the counts of each part of them; says so.

    ``auto`` is the style that is read in most answers; what else can be a power or an enumeration
    counts half. Answers of which not one has a citation that can be read are refused.
    """
    n_answers = sum(counts.answers for counts in counts_of_parts)
    citing = sum((counts.citing for counts in counts_of_parts), Counter[str]())
    styles = list(counts_of_parts[0].unread)
    chosen = max(styles, key=lambda name: citing[name] * (1 if name in _MISTAKABLE else 2))
    n_read = sum(counts.readable[chosen] for counts in counts_of_parts)
    if not n_read:
        raise ValueError(
            f"none of the {n_answers} answers has a citation that can be read as {style};"
            f" wanted one of the styles {', '.join(STYLES)}, or a regular expression"
        )
    if style != "auto" and n_read == n_answers:
        return chosen
    note = f"citations are read as {chosen} in {n_read} of {n_answers} answers"
    further = [f"{name} in {citing[name]}" for name in styles if citing[name] and name != chosen]
    if further:
        note += f" (there are also {', '.join(further)})"
    if n_answers > n_read:
        unread = dict.fromkeys(
            question for counts in counts_of_parts for question in counts.unread[chosen]
        )
        examples = listed(list(unread)[:3])
        note += f"; {n_answers - n_read} have none, such as those to {examples}"
    warnings.warn(note, Note, stacklevel=3)
    return chosen
