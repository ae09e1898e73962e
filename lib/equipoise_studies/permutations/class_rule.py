"""Classes of utterances by a rule, for CAsT 2020, whose utterances nobody classed.

But people rewrote each of them, and the words that they added say what it depends on. How far the
rule agrees with the classes of CAsT 2019, which are by hand, is reported beside what rests on it.
"""

from __future__ import annotations

import pandas as pd

from equipoise_studies.systems.lexical import english_terms


def proposed_classes(utterances: pd.DataFrame, rewritten: pd.Series) -> pd.Series:
    """Class of every utterance, by the terms that people added when they rewrote it.

    None: SE. Only such as the first utterance of the conversation has: FT. Others: PT. The first
    utterance is SE. ``utterances``: columns query, topic, turn, text. ``rewritten``: texts by
    query.
    """
    classes = {}
    in_order = utterances.sort_values("turn", kind="stable")
    for _, turns in in_order.groupby("topic", sort=False):
        queries, texts = turns["query"].tolist(), turns["text"].tolist()
        first_terms = set(english_terms(f"{texts[0]} {rewritten[queries[0]]}"))
        classes[queries[0]] = "SE"
        for query, text in zip(queries[1:], texts[1:], strict=True):
            added_terms = set(english_terms(rewritten[query])) - set(english_terms(text))
            if not added_terms:
                classes[query] = "SE"
            elif added_terms <= first_terms:
                classes[query] = "FT"
            else:
                classes[query] = "PT"
    return utterances["query"].map(classes)
