"""What an utterance depends on, from a file: its class, or the utterances it needs; classes proposed by a rule.

A file of classes is CSV with the columns query and class (SE, FT or PT), and optionally text and
by, which says whose the class is; one of dependencies has query and depends_on, a line for each
dependency.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import pandas as pd

from equipoise.files import Source, cells, read_source
from equipoise.orders.class_structures import CLASSES
from equipoise.problems import listed

RULE = "rule"  # in the column by: a proposal that nobody has looked at

_BACK_WORDS = """
he her hers him his it its itself one ones she that the their theirs them themselves there these they this those
"""
_EMPTY_WORDS = """
a about also an and any are as at be been by can could did do does else for from had has have how i if in is it's me
more most my not of on or other s should so some tell than then to us was we were what what's when where which who why
will with would you
"""
_BACK, _EMPTY = frozenset(_BACK_WORDS.split()), frozenset(_EMPTY_WORDS.split())


def propose_classes(utterances: pd.DataFrame) -> pd.DataFrame:
    """Propose the class of every utterance by a rule, to be corrected: columns query, text, class, by.

    The first utterance is SE, and so is one with two words of content or more and neither a word
    that points back (it, these, ...) nor a definite article. Another one is FT, or PT where an SE
    stands between it and the first utterance. With the classes that people gave in CAsT 2019 the
    rule agrees on 69 % of the utterances (Cohen's kappa 0.53).

    ``utterances``: columns query, topic, turn, text.
    """
    table = utterances.sort_values(["topic", "turn"], kind="stable")
    words = table["text"].map(lambda text: re.findall(r"[^\W_]+", text.lower()))
    points_back = words.map(lambda found: not _BACK.isdisjoint(found))
    content = words.map(lambda found: sum(word not in _BACK | _EMPTY for word in found))
    first = ~table.duplicated("topic")
    alone = first | (~points_back & (content > 1))
    later = (alone & ~first).groupby(table["topic"]).cummax()
    table["class"] = later.map({True: "PT", False: "FT"}).mask(alone, "SE")
    return table.assign(by=RULE).reindex(utterances.index)[["query", "text", "class", "by"]]


def _checked(
    path: str | Path, columns: list[str], optional: list[str], known: Collection[str]
) -> Source:
    """A table whose first column, and depends_on, hold queries that are known."""
    source = read_source(path)
    source.check_header(columns, optional)
    for column in {"query", "depends_on"} & {*columns}:
        values = source.columns[column]
        wrong = values.index[~values.isin(list(known))]
        source.report(wrong, column, cells(values), "the id of an utterance of the topics")
    return source


def read_classes(
    path: str | Path, known: Collection[str], needed: Collection[str], firsts: Iterable[str] = ()
) -> pd.DataFrame:
    """Read the class of every utterance: columns query, class, by ("" where the file does not say).

    ``known``: queries that the file may name. ``needed``: those that it must. ``firsts``: those
    that must be SE.
    """
    source = _checked(path, ["query", "class"], ["text", "by"], known)
    table = source.columns
    wrong = table.index[~table["class"].isin(CLASSES)]
    source.report(wrong, "class", cells(table["class"]), f"one of {', '.join(CLASSES)}")
    late = table.index[table["query"].isin(list(firsts)) & table["class"].isin(["FT", "PT"])]
    source.report(
        late, "class", cells(table["class"]), "SE, self-explanatory: it is the first of its topic"
    )
    repeated = table.index[table.duplicated("query")]
    source.report(
        repeated, "query", lambda row: f"{table['query'][row]} again", "each utterance once"
    )
    there = set(table["query"])
    if missing := [query for query in needed if query not in there]:
        source.problems.add(
            path, None, None, f"no class for {listed(missing)}", "one for every utterance"
        )
    source.problems.refuse()
    return table.assign(by=table.get("by", ""))[["query", "class", "by"]].astype("str")


def read_dependencies(path: str | Path, topic_of: pd.Series) -> pd.DataFrame:
    """Read what each utterance needs before it: columns query, depends_on; ``topic_of``: topic by query."""
    source = _checked(path, ["query", "depends_on"], [], topic_of.index)
    table = source.columns
    topics = table.apply(lambda column: column.map(topic_of))
    apart = topics.index[topics.notna().all(axis=1) & (topics["query"] != topics["depends_on"])]
    source.report(apart, "depends_on", cells(table["depends_on"]), "an utterance of the same topic")
    source.problems.refuse()
    return table[["query", "depends_on"]].astype("str")


def without_others(dependencies: pd.DataFrame, kept: Collection[str]) -> pd.DataFrame:
    """Dependencies among some utterances only; what depended on one that is left out depends on what that needs."""
    needs: dict[str, list[str]] = dependencies.groupby("query")["depends_on"].agg(list).to_dict()
    rows = []
    for query in kept:
        waiting, seen = list(needs.get(query, ())), set[str]()
        while waiting:
            before = waiting.pop(0)
            if before not in seen:
                seen.add(before)
                if before in kept:
                    rows.append((query, before))
                else:
                    waiting += needs.get(before, ())
    return pd.DataFrame(rows, columns=["query", "depends_on"], dtype="str")
