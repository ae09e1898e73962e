"""Guards conversations held one behind the other: what a system sees across their borders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.orders.conversations import conversations, sampled_orders
from equipoise_studies.permutations import data, sessions
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import PAPER, script_rankings
from equipoise_studies.systems.lexical import Collection, bm25

SYSTEMS = ["BM25", "DLM", "FU", "CU", "LP", "RM3p", "RM3s"]
TEXTS = ["sharks bite", "do sharks sing", "whales dive", "do whales bite"]


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    utterances = data.read_utterances()
    scripts = conversations(utterances[utterances["topic"].isin(["31", "77", "78"])])
    return Experiment(data.collection_of(data.read_passages()), scripts, data.read_qrels())


def test_a_conversation_alone_scores_as_its_script(experiment: Experiment) -> None:
    scores = sessions.session_scores(experiment, SYSTEMS, 0, np.random.default_rng(0))
    assert (scores["session"] == sessions.ALONE).all()
    topic = scores["query"].str.partition("_")[0]
    means = scores.groupby(["run", topic], sort=False)["value"].mean()
    orders = sampled_orders(experiment.conversations, 0, 0)
    scripts = experiment.scores(orders, SYSTEMS).set_index(["run", "topic"])["value"]
    for key, value in scripts.items():
        assert means[key] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("BM25", {"whales": 1.0, "dive": 1.0}),
        ("FU", {"whales": 1.0, "dive": 1.0, "sharks": 1.0, "bite": 1.0}),
        ("CU", {"whales": 1.0, "dive": 1.0, "sharks": 2.0, "bite": 1.0, "do": 1.0, "sing": 1.0}),
        ("LP", {"whales": 0.6, "dive": 0.6, "sharks": 0.4, "do": 0.4, "sing": 0.4}),
    ],
)
def test_a_session_goes_on_over_the_end_of_a_conversation(
    system: str, words: dict[str, float]
) -> None:
    """The third utterance opens another topic; what is added to it is of the one before."""
    rng = np.random.default_rng(4)
    vocabulary = ["sharks", "bite", "sing", "whales", "dive", "do", "coast", "deep"]
    passages = {}
    for number in range(40):
        passages[f"d{number:02d}"] = " ".join(rng.choice(vocabulary, size=6))
    collection = Collection.from_texts(passages, tokenise=str.split)
    bag = np.zeros((1, len(vocabulary)))
    columns = collection.vectorizer.get_feature_names_out().tolist()
    for word, weight in words.items():
        bag[0, columns.index(word)] = weight
    expected = np.argsort(-bm25(collection, bag, k1=PAPER.k1, b=PAPER.b)[0], kind="stable")
    ranked = script_rankings(collection, TEXTS, system)
    assert ranked[2].tolist() == expected[: PAPER.depth].tolist()


def test_systems_with_records_of_single_conversations_are_refused() -> None:
    collection = Collection.from_texts({"d": "sharks bite"})
    for system in ("Antecedent", "Rewriter"):
        with pytest.raises(ValueError, match="no record of neighbours across conversations"):
            script_rankings(collection, TEXTS, system)


def test_changes_are_means_over_sessions_minus_alone() -> None:
    scores = pd.DataFrame(
        {
            "run": "CU",
            "session": [sessions.ALONE, 0, 1, sessions.ALONE, 0, 1],
            "query": ["1_1"] * 3 + ["2_1"] * 3,
            "value": [0.5, 0.2, 0.4, 0.6, 0.6, 0.2],
        }
    )
    changes = sessions.changes_in_session(scores, pd.Series({"1_1": "1", "2_1": "2"}))
    assert changes["CU"].to_dict() == pytest.approx({"1": -0.2, "2": -0.2})
    evidence = sessions.leaks(changes)
    assert evidence.estimate == pytest.approx(-0.2)
    assert evidence.n == 2


def test_one_session_changes_what_adds_context_and_nothing_else(experiment: Experiment) -> None:
    scores = sessions.session_scores(experiment, SYSTEMS, 2, np.random.default_rng(1))
    topics = pd.Series({query: query.partition("_")[0] for query in scores["query"]})
    changes = sessions.changes_in_session(scores, topics)
    assert changes[["BM25", "DLM"]].abs().to_numpy().max() < 1e-12
    assert (changes[["FU", "CU"]].mean() < 0).all()
