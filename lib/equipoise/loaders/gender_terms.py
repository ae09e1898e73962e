"""Terms that represent groups, counterparts of gendered words and names, and queries annotated for gender.

Four upstream formats, none with a header: term lists (``term,group`` lines, items cpjku and
genderbias_ir), pairs (a JSON list of two-element lists, item cds), bias-sensitive queries
(``id<TAB>text`` lines, item cpjku) and annotated queries (``id,text,label`` lines whose text may
hold commas, item genderbias_ir).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.files import read_json, read_text
from equipoise.problems import Problems, refused, shown

QUERY_LABELS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}
"""What the labels of `read_annotated_queries` mean."""


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    return enumerate(read_text(path).rstrip("\n").split("\n"), start=1)


def read_terms(path: str | Path) -> pd.DataFrame:
    """Read a term list, one ``term,group`` a line; blank lines are left out, and a header of those words.

    Returns columns ``term, group`` in file order, as they are written: a capital first letter tells
    a name in the upstream lists.
    """
    problems, rows = Problems(), []
    first: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        if not line.strip():
            continue
        term, comma, group = (part.strip() for part in line.rpartition(","))
        key = (term.lower(), group)
        if not (comma and term and group):
            problems.add(
                path, number, None, shown(line), "a term, a comma and its group, such as she,f"
            )
        elif len(term.split()) > 1 or "," in term:
            problems.add(
                path, number, "term", shown(term), "a single word: texts are counted by words"
            )
        elif key in first:
            found = f"{term!r} again for {group}, first on line {first[key]}"
            problems.add(
                path, number, "term", found, "each term once in a group, compared in lower case"
            )
        else:
            first[key] = number
            rows.append((term, group))
    if rows and not problems and _has_header(path, rows[0], [group for _, group in rows]):
        del rows[0]
    if len(groups := {group for _, group in rows}) < 2 and not problems:
        problems.add(
            path, None, "group", f"one group, {', '.join(groups)}", "terms of two groups or more"
        )
    problems.refuse()
    return pd.DataFrame(rows, columns=["term", "group"], dtype="str")


def _has_header(path: str | Path, first: tuple[str, str], groups: list[str]) -> bool:
    """Whether the first row is a header; one that may be another is refused, for it would make a group of its own."""
    term, group = (name.lower() for name in first)
    if term in ("term", "word", "token") and group in ("group", "gender", "label"):
        return True
    if (
        len(groups) > 2
        and groups.count(first[1]) == 1
        and all(groups.count(name) > 1 for name in {*groups[1:]})
    ):
        wanted = "the header term,group, or a second term of that group"
        raise refused(
            path, f"the only term of group {shown(first[1])}, which may be a header", wanted, 1
        )
    return False


def read_pairs(path: str | Path) -> pd.DataFrame:
    """Read pairs of counterparts, a JSON list of two-element lists, the male term first as in item cds.

    Returns columns ``male, female`` in file order.
    """
    content = read_json(path, list, "a JSON list of pairs with at least one")
    problems = Problems()
    seen: dict[str, int] = {}
    for number, pair in enumerate(content, start=1):
        place = f"element {number}"
        if not (
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(t, str) and t.strip() for t in pair)
        ):
            problems.add(path, None, place, shown(pair), "a list of two terms")
            continue
        for term in map(str.strip, pair):
            if term.lower() in seen:
                found = f"{term!r}, which stands in element {seen[term.lower()]} too"
                problems.add(path, None, place, found, "each term in one pair")
            seen[term.lower()] = number
    problems.refuse()
    return pd.DataFrame(
        [map(str.strip, pair) for pair in content], columns=["male", "female"], dtype="str"
    )


def _read_queries(path: str | Path, columns: list[str], pattern: str, wanted: str) -> pd.DataFrame:
    problems, rows = Problems(), []
    for number, line in _lines(path):
        found = re.match(pattern, line)
        fields = [part.strip() for part in found.groups()] if found else []
        if not (fields and all(fields)):
            problems.add(path, number, None, shown(line), wanted)
        elif "label" in columns and fields[-1] not in QUERY_LABELS:
            problems.add(
                path, number, "label", shown(fields[-1]), f"one of {', '.join(QUERY_LABELS)}"
            )
        else:
            rows.append((number, *fields))
    table = pd.DataFrame(rows, columns=["line", *columns])
    problems.add_repeats(path, table, ["query"], "query", "each query once")
    problems.refuse()
    return table.drop(columns="line").astype("str")


def read_sensitive_queries(path: str | Path) -> pd.DataFrame:
    """Read bias-sensitive queries, one ``id<TAB>text`` a line (the thesis's QS2): columns ``query, text``."""
    return _read_queries(
        path, ["query", "text"], r"([^\t]*)\t([^\t]*)", "a query's id, a tab and its text"
    )


def read_annotated_queries(path: str | Path) -> pd.DataFrame:
    """Read queries annotated for gender, one ``id,text,label`` a line (the non-gendered ones are the thesis's QS1).

    The text is what stands between the first and the last comma. Returns columns ``query, text,
    label``, the latter a key of `QUERY_LABELS`.
    """
    return _read_queries(path, ["query", "text", "label"], r"([^,]*),(.*),([^,]*)", "id,text,label")
