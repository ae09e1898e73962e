"""Effectiveness by ir_measures, against scikit-learn and trec_eval's own binding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score, ndcg_score

from equipoise.measures.effectiveness import effectiveness


def random_collection(
    seed: int = 0, queries: int = 12, documents: int = 20
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of two rankers and judgements of one task; grades follow both rankers' scores."""
    rng = np.random.default_rng(seed)
    pairs = pd.DataFrame(
        [
            ("t", f"q{query:02d}", f"d{document:02d}")
            for query in range(queries)
            for document in range(documents)
        ],
        columns=["task", "query", "document"],
    )
    truth = rng.normal(size=len(pairs))
    scores = pairs.assign(
        bm25=truth + rng.normal(size=len(pairs)), tilde=truth + rng.normal(size=len(pairs))
    )
    judgements = pairs.assign(grade=np.clip(np.round(truth + 0.5), 0, 3).astype(int))
    return scores, judgements


def test_effectiveness_agrees_with_scikit_learn() -> None:
    scores, judgements = random_collection()
    run = scores.rename(columns={"bm25": "score"})[["task", "query", "document", "score"]]
    measures = {"MAP": "AP(rel=2)", "nDCG": "nDCG"}
    values = effectiveness(run, judgements, by=["task"], measures=measures).set_index(
        ["query", "measure"]
    )["value"]
    for query, rows in run.merge(judgements).groupby("query"):
        ap = average_precision_score(rows["grade"] >= 2, rows["score"])
        ndcg = ndcg_score([rows["grade"]], [rows["score"]])
        assert values[query, "MAP"] == pytest.approx(ap, abs=1e-9)
        assert values[query, "nDCG"] == pytest.approx(ndcg, abs=1e-9)


def test_every_measure_breaks_ties_by_document_id_descending() -> None:
    """As trec_eval. Its binding has no cut-off for RR, so ir_measures turns to another program."""
    tied = pd.DataFrame(
        {
            "run": "r",
            "query": "1",
            "document": ["a", "c", "b", "d"],
            "score": [1, 1, 1 + 1e-12, 0.5],
        }
    )
    judged = pd.DataFrame({"query": "1", "document": ["b"], "grade": [1]})
    measures = {name: name for name in ("RR", "RR@10", "AP", "AP@10", "nDCG@10", "P@1", "P@2")}
    values = effectiveness(tied, judged, measures=measures).set_index("measure")["value"]
    qrels, scores = {"1": {"b": 1}}, dict(zip(tied["document"], tied["score"], strict=True))
    program = pytrec_eval.RelevanceEvaluator(
        qrels, {"recip_rank", "map", "ndcg_cut_10", "P_1", "P_2"}
    )
    theirs = program.evaluate({"1": scores})["1"]
    names = {
        "RR": "recip_rank",
        "RR@10": "recip_rank",
        "AP": "map",
        "AP@10": "map",
        "nDCG@10": "ndcg_cut_10",
    }
    for ours, name in (names | {"P@1": "P_1", "P@2": "P_2"}).items():
        assert values[ours] == pytest.approx(theirs[name])
    assert values["RR@10"] == 0.5


def test_effectiveness_refuses_rankings_without_judgements_and_unknown_measures() -> None:
    scores, judgements = random_collection()
    run = scores.rename(columns={"bm25": "score"})
    with pytest.raises(ValueError, match="1 of 12 rankings have no judgements"):
        effectiveness(run, judgements[judgements["query"] != "q00"], by=["task"])
    with pytest.raises(ValueError, match="unknown measure 'nonsense'"):
        effectiveness(run, judgements, by=["task"], measures={"what": "nonsense"})
