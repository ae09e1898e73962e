"""Terms that represent groups, counterparts of gendered words and names, and queries annotated for gender.

Four upstream formats, none with a header: term lists (``term,group`` lines, items cpjku and genderbias_ir), pairs (a
JSON list of two-element lists, item cds), bias-sensitive queries (``id<TAB>text`` lines, item cpjku) and annotated
queries (``id,text,label`` lines whose text may hold commas, item genderbias_ir).
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from equipoise.files import read_text
from equipoise.problems import InputError, Problem

QUERY_LABELS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}
"""What the labels of `read_annotated_queries` mean."""


def read_terms(path: str | Path) -> pd.DataFrame:
    """Read a term list, one ``term,group`` a line.

    ``path``: the file. Blank lines are left out. Returns DataFrame, columns term, group: In file order, as they are
    written: a capital first letter tells a name in the upstream lists.
    """
    problems: list[Problem] = []
    rows: list[tuple[str, str]] = []
    first_lines: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), start=1):
        if not line.strip():
            continue
        term, comma, group = (part.strip() for part in line.rpartition(","))
        if not (comma and term and group):
            problems.append(
                Problem(str(path), number, None, repr(line), "a term, a comma and its group, such as she,f")
            )
            continue
        if len(term.split()) > 1 or "," in term:
            problems.append(Problem(str(path), number, "term", repr(term), "a single word: texts are counted by words"))
            continue
        key = (term.lower(), group)
        if key in first_lines:
            where = f"{term!r} again for {group}, first on line {first_lines[key]}"
            problems.append(
                Problem(str(path), number, "term", where, "each term once in a group, compared in lower case")
            )
            continue
        first_lines[key] = number
        rows.append((term, group))
    groups = sorted({group for _, group in rows})
    if len(groups) < 2 and not problems:
        problems.append(Problem(str(path), None, "group", f"one group, {groups[0]}", "terms of two groups or more"))
    if problems:
        raise InputError(problems)
    return pd.DataFrame(rows, columns=["term", "group"], dtype="str")


def read_pairs(path: str | Path) -> pd.DataFrame:
    """Read pairs of counterparts, a JSON list of two-element lists.

    ``path``: the file. Returns DataFrame, columns male, female: In file order.

    Item cds puts the male term first.
    """
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError([Problem(str(path), error.lineno, None, error.msg, "a JSON list of pairs")]) from None
    except RecursionError:
        raise InputError(
            [Problem(str(path), None, None, "lists within lists without end", "a list of pairs")]
        ) from None
    if not isinstance(content, list) or not content:
        raise InputError([Problem(str(path), None, None, type(content).__name__, "a list of pairs with at least one")])
    problems: list[Problem] = []
    rows: list[tuple[str, str]] = []
    seen: dict[str, int] = {}
    for number, pair in enumerate(content, start=1):
        place = f"element {number}"
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(t, str) and t.strip() for t in pair)):
            problems.append(Problem(str(path), None, place, repr(pair)[:60], "a list of two terms"))
            continue
        male, female = (term.strip() for term in pair)
        for term in (male, female):
            if term.lower() in seen:
                found = f"{term!r}, which stands in element {seen[term.lower()]} too"
                problems.append(Problem(str(path), None, place, found, "each term in one pair"))
            seen[term.lower()] = number
        rows.append((male, female))
    if problems:
        raise InputError(problems)
    return pd.DataFrame(rows, columns=["male", "female"], dtype="str")


def _queries(rows: list[tuple[int, str, str]], path: str | Path, problems: list[Problem]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["line", "query", "text"]).astype({"query": "str", "text": "str"})
    again = table[table.duplicated("query")]
    problems += [
        Problem(str(path), int(line), "query", f"{query} again", "each query once")
        for line, query in zip(again["line"], again["query"], strict=True)
    ]
    if problems:
        raise InputError(problems)
    return table.drop(columns="line")


def read_sensitive_queries(path: str | Path) -> pd.DataFrame:
    """Read bias-sensitive queries, one ``id<TAB>text`` a line (the thesis's QS2).

    ``path``: the file. Returns DataFrame, columns query, text: In file order.
    """
    problems: list[Problem] = []
    rows = []
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), start=1):
        query, text = (part.strip() for part in (line + "\t").split("\t")[:2])
        if not (query and text):
            problems.append(Problem(str(path), number, None, repr(line[:60]), "a query's id, a tab and its text"))
            continue
        rows.append((number, query, text))
    return _queries(rows, path, problems)


def read_annotated_queries(path: str | Path) -> pd.DataFrame:
    """Read queries annotated for gender, one ``id,text,label`` a line (the non-gendered ones are the thesis's QS1).

    ``path``: the file. Returns DataFrame, columns query, text, label: In file order; ``label`` is a key of
    `QUERY_LABELS`. The text is what stands between the first and the last comma.
    """
    problems: list[Problem] = []
    rows, labels = [], []
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), start=1):
        head, comma, label = (part.strip() for part in line.rpartition(","))
        query, inner, text = (part.strip() for part in head.partition(","))
        if not (comma and inner and query and text):
            problems.append(Problem(str(path), number, None, repr(line[:60]), "id,text,label"))
            continue
        if label not in QUERY_LABELS:
            problems.append(Problem(str(path), number, "label", repr(label), f"one of {', '.join(QUERY_LABELS)}"))
            continue
        rows.append((number, query, text))
        labels.append(label)
    return _queries(rows, path, problems).assign(label=pd.Series(labels, dtype="str"))
