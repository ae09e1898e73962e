"""Guards CAsT's upstream files and what is recorded of their texts: run only where they are."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.measures.effectiveness import effectiveness
from equipoise.orders.conversations import conversations
from equipoise_compendium import project, registry
from equipoise_studies.permutations import antecedents, data, rewrites, upstream
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without(
    "cast19", "cast_rewrites", "castsnippets", "case_saac", "cqr_runs", "decaf", "mele_classes"
)
JUDGED, QRELS = upstream.fetch_judged()
PASSAGES = upstream.fetch_passages()
RUNS = upstream.fetch_rewriting_runs()
JUDGED_2020, QRELS_2020 = upstream.fetch_judged_2020()
PASSAGES_2020 = upstream.fetch_passages_2020()


def test_the_real_passages_and_runs_can_be_read() -> None:
    assert len(PASSAGES) == PASSAGES["document"].nunique() == 866
    assert len(RUNS) == 7
    assert RUNS["raw"].groupby("query")["document"].size().max() == 100
    assert RUNS["raw"]["query"].nunique() == 479


def published_scores(measure: str) -> dict[str, float]:
    """What DECAF's evaluation files say of its 16 systems, by a measure of trec_eval."""
    scores = {}
    for number, name in upstream.WHOLE_COLLECTION_RUNS.items():
        file = f"{upstream.WHOLE_COLLECTION_FOLDER}/{number}/evaluation.txt"
        for line in registry.fetch("decaf", file).read_text().splitlines():
            fields = line.split()
            if fields[:2] == [measure, "all"]:
                scores[name] = float(fields[2])
    return scores


def test_the_published_scores_on_the_whole_collection_come_out_to_four_digits() -> None:
    """nDCG@3 of all 16 systems of DECAF, from our facts and from its evaluation files."""
    scores = effectiveness(
        data.read_whole_collection(10), data.read_qrels(), measures={"nDCG@3": "nDCG@3"}
    )
    means = scores.groupby("run")["value"].mean()
    published = published_scores("ndcg_cut_3")
    assert len(published) == 16
    assert means.round(4).to_dict() == published
    assert (published["BM25"], published["BM25 FLC"]) == (0.1422, 0.1906)


def test_the_noun_phrases_are_of_the_judged_utterances_and_of_no_other_text() -> None:
    record = project.data(*antecedents.RECORD)
    with_phrases = antecedents.read_antecedents(record, JUDGED)
    assert with_phrases["query"].tolist() == JUDGED["query"].tolist()
    others = JUDGED.assign(text=JUDGED["text"].mask(JUDGED.index < 2, "What?"))
    missing = r"no noun phrases of the text of 31_1, 31_2: .*permutations\.record phrases records"
    with pytest.raises(ValueError, match=missing):
        antecedents.read_antecedents(record, others)


def test_the_rewrites_are_of_every_pair_of_neighbours_of_valid_orders() -> None:
    scripts = rewrites.read_rewrites(project.data(*rewrites.RECORD), conversations(JUDGED))
    assert sum(len(script.rewrites) for script in scripts) == 753
    assert all(text for script in scripts for text in script.rewrites.values())


def test_cast_2020_has_valid_scripts_and_text_for_every_judged_utterance() -> None:
    scripts = conversations(JUDGED_2020)
    assert (len(scripts), len(JUDGED_2020), len(PASSAGES_2020)) == (25, 208, 974)
    for script in scripts:
        assert script.structure.is_valid([range(script.structure.size)]).all()
    with_text = QRELS_2020[QRELS_2020["document"].isin(PASSAGES_2020["document"])]
    judged_passages: pd.Series = with_text.groupby("query").size()
    assert judged_passages.reindex(JUDGED_2020["query"]).min() >= 5
