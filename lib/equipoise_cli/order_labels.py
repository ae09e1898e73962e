"""What an utterance depends on, from a file or by a rule: its class, or utterances it needs.

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
he her hers him his it its itself one ones she that the their theirs them themselves there these
they this those
"""
_EMPTY_WORDS = """
a about also an and any are as at be been by can could did do does else for from had has have how i
if in is it's me more most my not of on or other s should so some tell than then to us was we were
what what's when where which who why will with would you
"""
_BACK, _EMPTY = frozenset(_BACK_WORDS.split()), frozenset(_EMPTY_WORDS.split())


def propose_classes(utterances: pd.DataFrame) -> pd.DataFrame:
    """Propose the class of every utterance by a rule: columns query, text, class, by.

    The first utterance is SE, and so is one with two words of content or more and neither a word
    that points back (it, these, ...) nor a definite article. Another one is FT, or PT where an SE
    stands between it and the first utterance. With the classes that people gave in CAsT 2019 the
    rule agrees on 69 % of the utterances (Cohen's kappa 0.53).

    ``utterances``: columns query, topic, turn, text.
    """
    # In the order in which they were uttered; rows come back in the order in which they came.
    table = utterances.sort_values(["topic", "turn"], kind="stable")
    words = table["text"].map(lambda text: re.findall(r"[^\W_]+", text.lower()))
    points_back = words.map(lambda words_of_text: not _BACK.isdisjoint(words_of_text))
    n_content = words.map(lambda words_of_text: len([*filter(_is_content, words_of_text)]))
    opens_topic = ~table.duplicated("topic")
    stands_alone = opens_topic | (~points_back & (n_content > 1))
    # Whether an utterance that stands alone, other than the first, has come before.
    has_new_subject = (stands_alone & ~opens_topic).groupby(table["topic"]).cummax()
    table["class"] = has_new_subject.map({True: "PT", False: "FT"}).mask(stands_alone, "SE")
    return table.assign(by=RULE).reindex(utterances.index)[["query", "text", "class", "by"]]


def _is_content(word: str) -> bool:
    return word not in _BACK and word not in _EMPTY


def _checked(
    path: str | Path, columns: list[str], optional: list[str], queries: Collection[str]
) -> Source:
    """A table in which the columns query and depends_on hold these queries alone."""
    source = read_source(path)
    source.check_header(columns, optional)
    for column in ("query", "depends_on"):
        if column in columns:
            values = source.columns[column]
            wrong_rows = values.index[~values.isin(list(queries))]
            source.report(wrong_rows, column, cells(values), "the id of an utterance of the topics")
    return source


def read_classes(
    path: str | Path,
    queries: Collection[str],
    needed: Collection[str],
    first_queries: Iterable[str] = (),
) -> pd.DataFrame:
    """Read the class of every utterance: columns query, class, by ("" where the file says none).

    ``queries``: what the file may name; ``needed``: what it must. ``first_queries``: those that
    must be SE.
    """
    source = _checked(path, ["query", "class"], ["text", "by"], queries)
    table = source.columns
    wrong_rows = table.index[~table["class"].isin(CLASSES)]
    source.report(wrong_rows, "class", cells(table["class"]), f"one of {', '.join(CLASSES)}")
    opens_topic = table["query"].isin(list(first_queries))
    late_rows = table.index[opens_topic & table["class"].isin(["FT", "PT"])]
    expected = "SE, self-explanatory: it is the first of its topic"
    source.report(late_rows, "class", cells(table["class"]), expected)
    source.report_repeats(table, ["query"], "each utterance once")
    # Only utterances that are kept need a class; a file may hold those of all.
    labelled = set(table["query"])
    missing = [query for query in needed if query not in labelled]
    if missing:
        problem = f"no class for {listed(missing)}"
        source.problems.add(path, None, None, problem, "one for every utterance")
    source.problems.refuse()
    return table.assign(by=table.get("by", ""))[["query", "class", "by"]].astype("str")


def read_dependencies(path: str | Path, topic_of: pd.Series) -> pd.DataFrame:
    """Read what each utterance needs before it: columns query, depends_on.

    ``topic_of``: topic by query.
    """
    source = _checked(path, ["query", "depends_on"], [], topic_of.index)
    table = source.columns
    topics = table.apply(lambda column: column.map(topic_of))
    has_topics = topics.notna().all(axis=1)
    wrong_rows = topics.index[has_topics & (topics["query"] != topics["depends_on"])]
    expected = "an utterance of the same topic"
    source.report(wrong_rows, "depends_on", cells(table["depends_on"]), expected)
    source.problems.refuse()
    return table[["query", "depends_on"]].astype("str")


def without_others(dependencies: pd.DataFrame, queries: Collection[str]) -> pd.DataFrame:
    """Dependencies among some utterances only.

    What depended on one that is left out depends on what that needs.
    """
    needs: dict[str, list[str]] = dependencies.groupby("query")["depends_on"].agg(list).to_dict()
    rows = []
    for query in queries:
        waiting, visited = list(needs.get(query, ())), set[str]()
        while waiting:
            earlier_query = waiting.pop(0)
            if earlier_query in visited:
                continue
            visited.add(earlier_query)
            # What is left out hands on what it needs itself.
            if earlier_query in queries:
                rows.append((query, earlier_query))
            else:
                waiting += needs.get(earlier_query, ())
    return pd.DataFrame(rows, columns=["query", "depends_on"], dtype="str")
