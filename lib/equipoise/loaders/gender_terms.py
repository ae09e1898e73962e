"""Terms that represent groups: ``term,group`` lines, as in the items cpjku and genderbias_ir."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.errors import excerpt, input_error, need_distinct_groups
from equipoise.readers import read_text


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
            raise input_error(path, wanted, excerpt(line), number)
        if len(term.split()) > 1 or "," in term:
            raise input_error(path, "a single word", excerpt(term), number, "term")
        if (term.lower(), group) in keys:
            wanted = "unique in its group, in lower case"
            raise input_error(path, wanted, excerpt(term), number, "term")
        keys.add((term.lower(), group))
        rows.append((term, group))
    terms = pd.DataFrame(rows, columns=["term", "group"], dtype="str")
    need_distinct_groups(terms["group"], f"{path}: ")
    if terms["group"].nunique() < 2:
        raise input_error(path, "terms of two groups or more", excerpt(rows[:1]))
    return terms
