"""Terms that represent groups, counterparts of gendered words, and queries annotated for gender.

Four upstream formats, none with a header: term lists (``term,group`` lines, items cpjku and
genderbias_ir), pairs (a JSON list of two-element lists, item cds), bias-sensitive queries
(``id<TAB>text`` lines, item cpjku) and annotated queries (``id,text,label`` lines whose text may
have commas, item genderbias_ir).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.errors import input_error, shown
from equipoise.readers import read_json, read_text

QUERY_LABELS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}
"""What the labels of `read_annotated_queries` mean."""


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    lines = enumerate(read_text(path).split("\n"), start=1)
    return ((number, line.strip("\r")) for number, line in lines if line.strip())


def read_terms(path: str | Path) -> pd.DataFrame:
    """Read a term list, one ``term,group`` per line; a header ``term,group`` is left out.

    Returns columns ``term, group`` in file order, unchanged: a capital first letter marks a name in
    the upstream lists.
    """
    rows: list[tuple[str, str]] = []
    keys = set()
    for number, line in _lines(path):
        term, comma, group = (part.strip() for part in line.rpartition(","))
        if not rows and (term.lower(), group.lower()) == ("term", "group"):
            continue
        if not (comma and term and group):
            wanted = "a term, a comma and its group, such as she,f"
            raise input_error(path, wanted, shown(line), number)
        if len(term.split()) > 1 or "," in term:
            raise input_error(path, "a single word", shown(term), number, "term")
        if (term.lower(), group) in keys:
            wanted = "once in a group, compared in lower case"
            raise input_error(path, wanted, shown(term), number, "term")
        keys.add((term.lower(), group))
        rows.append((term, group))
    terms = pd.DataFrame(rows, columns=["term", "group"], dtype="str")
    if terms["group"].nunique() < 2:
        raise input_error(path, "terms of two groups or more", shown(rows[:1]))
    return terms


def read_pairs(path: str | Path) -> pd.DataFrame:
    """Read pairs of counterparts, a JSON list of two-element lists, male term first as in item cds.

    Returns columns ``male, female`` in file order.
    """
    content = read_json(path)
    if not isinstance(content, list) or not content:
        raise input_error(path, "a JSON list of pairs", shown(content))
    seen: set[str] = set()
    pairs = []
    for number, pair in enumerate(content, start=1):
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or not all(isinstance(term, str) and term.strip() for term in pair):
            raise input_error(path, "a list of two terms", shown(pair), column=f"element {number}")
        pairs.append([term.strip() for term in pair])
        words = {term.lower() for term in pairs[-1]}
        if len(words) < 2 or words & seen:
            raise input_error(
                path, "two terms, each in one pair", shown(pair), column=f"element {number}"
            )
        seen |= words
    return pd.DataFrame(pairs, columns=["male", "female"], dtype="str")


def _read_queries(path: str | Path, columns: list[str], pattern: str, wanted: str) -> pd.DataFrame:
    rows = {}
    # By a pattern and not as CSV: the texts have commas and quotes that mean nothing.
    for number, line in _lines(path):
        match = re.match(pattern, line)
        fields = [field.strip() for field in match.groups()] if match else [""]
        if not all(fields):
            raise input_error(path, wanted, shown(line), number)
        if "label" in columns and fields[-1] not in QUERY_LABELS:
            labels = f"one of {', '.join(QUERY_LABELS)}"
            raise input_error(path, labels, shown(fields[-1]), number, "label")
        if fields[0] in rows:
            raise input_error(path, "given once", shown(fields[0]), number, "query")
        rows[fields[0]] = fields
    return pd.DataFrame(list(rows.values()), columns=columns, dtype="str")


def read_sensitive_queries(path: str | Path) -> pd.DataFrame:
    """Read bias-sensitive queries (the thesis's QS2): columns ``query, text``.

    The file has one ``id<TAB>text`` per line.
    """
    pattern = r"([^\t]*)\t([^\t]*)"
    return _read_queries(path, ["query", "text"], pattern, "a query's id, a tab and its text")


def read_annotated_queries(path: str | Path) -> pd.DataFrame:
    """Read queries annotated for gender: columns ``query, text, label``, a key of `QUERY_LABELS`.

    The file has one ``id,text,label`` per line; the text is what stands between the first and the
    last comma. The non-gendered ones are the thesis's QS1.
    """
    pattern = r"([^,]*),(.*),([^,]*)"
    return _read_queries(path, ["query", "text", "label"], pattern, "id,text,label")
