"""Terms that represent groups, counterparts of gendered words, and queries annotated for gender.

Four upstream formats, none with a header: term lists (``term,group`` lines, items cpjku and
genderbias_ir), pairs (a JSON list of two-element lists, item cds), bias-sensitive queries
(``id<TAB>text`` lines, item cpjku) and annotated queries (``id,text,label`` lines whose text may
hold commas, item genderbias_ir).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_json, read_text
from equipoise.problems import Problems, refused, shown

QUERY_LABELS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}
"""What the labels of `read_annotated_queries` mean."""


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    return enumerate(read_text(path).rstrip("\n").split("\n"), start=1)


def read_terms(path: str | Path) -> pd.DataFrame:
    """Read a term list, one ``term,group`` a line; blank lines and a header are left out.

    Returns columns ``term, group`` in file order, as they are written: a capital first letter tells
    a name in the upstream lists.
    """
    problems, rows = Problems(), []
    first_line_of: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        if not line.strip():
            continue
        # The last comma: a term with one is told apart from a line without a group.
        term, comma, group = (part.strip() for part in line.rpartition(","))
        key = (term.lower(), group)
        if not (comma and term and group):
            expected = "a term, a comma and its group, such as she,f"
            problems.add(path, number, None, shown(line), expected)
        elif len(term.split()) > 1 or "," in term:
            expected = "a single word: texts are counted by words"
            problems.add(path, number, "term", shown(term), expected)
        elif key in first_line_of:
            problem = f"{term!r} again for {group}, first on line {first_line_of[key]}"
            expected = "each term once in a group, compared in lower case"
            problems.add(path, number, "term", problem, expected)
        else:
            first_line_of[key] = number
            rows.append((term, group))
    if rows and not problems and _has_header(path, rows):
        del rows[0]
    groups = {group for _, group in rows}
    if len(groups) < 2 and not problems:
        problem = f"one group, {', '.join(groups)}"
        problems.add(path, None, "group", problem, "terms of two groups or more")
    problems.refuse()
    return pd.DataFrame(rows, columns=["term", "group"], dtype="str")


def _has_header(path: str | Path, rows: list[tuple[str, str]]) -> bool:
    """Whether the first row is a header; one that may be another is refused.

    Such a one would make a group of its own.
    """
    term, group = rows[0]
    is_named = group.lower() in ("group", "gender", "label")
    if is_named and term.lower() in ("term", "word", "token"):
        return True
    sizes = Counter(group for _, group in rows)
    # A header of other words is the only row of its group; every real group has several terms.
    is_alone = sizes.pop(group) == 1
    if is_alone and len(rows) > 2 and min(sizes.values()) > 1:
        problem = f"the only term of group {shown(group)}, which may be a header"
        raise refused(path, problem, "the header term,group, or a second term of that group", 1)
    return False


def read_pairs(path: str | Path) -> pd.DataFrame:
    """Read pairs of counterparts, a JSON list of two-element lists, male term first as in item cds.

    Returns columns ``male, female`` in file order.
    """
    content = read_json(path, list, "a JSON list of pairs with at least one")
    problems, pairs = Problems(), []
    element_of: dict[str, int] = {}
    for number, element in enumerate(content, start=1):
        place = f"element {number}"
        if not _is_pair(element):
            problems.add(path, None, place, shown(element), "a list of two terms")
            continue
        pair = [term.strip() for term in element]
        for term in pair:
            if term.lower() in element_of:
                problem = f"{term!r}, which stands in element {element_of[term.lower()]} too"
                problems.add(path, None, place, problem, "each term in one pair")
            element_of[term.lower()] = number
        pairs.append(pair)
    problems.refuse()
    return pd.DataFrame(pairs, columns=["male", "female"], dtype="str")


def _is_pair(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(isinstance(term, str) and term.strip() for term in value)


def _read_queries(
    path: str | Path, columns: list[str], pattern: str, expected: str
) -> pd.DataFrame:
    problems, rows = Problems(), []
    # By a pattern and not as CSV: the texts have commas and quotes that mean nothing.
    for number, line in _lines(path):
        match = re.match(pattern, line)
        fields = [field.strip() for field in match.groups()] if match else [""]
        if not all(fields):
            problems.add(path, number, None, shown(line), expected)
        elif "label" in columns and fields[-1] not in QUERY_LABELS:
            labels = f"one of {', '.join(QUERY_LABELS)}"
            problems.add(path, number, "label", shown(fields[-1]), labels)
        else:
            rows.append((number, *fields))
    table = pd.DataFrame(rows, columns=["line", *columns])
    problems.add_repeats(path, table, ["query"], "query", "each query once")
    problems.refuse()
    return table.drop(columns="line").astype("str")


def read_sensitive_queries(path: str | Path) -> pd.DataFrame:
    """Read bias-sensitive queries (the thesis's QS2): columns ``query, text``.

    The file has one ``id<TAB>text`` a line.
    """
    pattern = r"([^\t]*)\t([^\t]*)"
    return _read_queries(path, ["query", "text"], pattern, "a query's id, a tab and its text")


def read_annotated_queries(path: str | Path) -> pd.DataFrame:
    """Read queries annotated for gender: columns ``query, text, label``, a key of `QUERY_LABELS`.

    The file has one ``id,text,label`` a line; the text is what stands between the first and the
    last comma. The non-gendered ones are the thesis's QS1.
    """
    pattern = r"([^,]*),(.*),([^,]*)"
    return _read_queries(path, ["query", "text", "label"], pattern, "id,text,label")
