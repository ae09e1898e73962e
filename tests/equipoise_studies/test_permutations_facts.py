"""Guards the permutation study's facts: made again byte for byte, and what the notebook reads."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.orders.conversations import conversations
from equipoise_studies.permutations import data
from equipoise_studies.permutations.facts import bags
from equipoise_studies.systems.lexical import Collection, bm25, relevance_model, unit_mass


def test_a_bag_counts_the_terms_that_passages_have_and_scores_as_the_text_does() -> None:
    passages = {
        "d1": "Sharks bite; a shark bites.",
        "d2": "Whales sing.",
        "d3": "Whales and sharks",
    }
    texts = ["Do sharks sing? Sing!", "unknown words", ""]
    collection = Collection.from_texts(passages)
    assert bags(collection, texts) == ["1 2 2", "", ""]

    bags_of_passages = dict(zip(passages, bags(collection, passages.values()), strict=True))
    of_bags = Collection.from_texts(bags_of_passages, tokenise=str.split)
    scores = bm25(collection, collection.queries(texts))
    scores_of_bags = bm25(of_bags, of_bags.queries(bags(collection, texts)))
    np.testing.assert_array_equal(scores_of_bags, scores)
    feedback = relevance_model(collection, scores, terms=2)
    feedback_of_bags = relevance_model(of_bags, scores_of_bags, terms=2)
    np.testing.assert_array_equal(feedback_of_bags.toarray(), feedback.toarray())


def test_numbers_of_terms_sort_as_the_terms_do() -> None:
    words = [f"x{chr(97 + number)}" for number in range(12)]
    collection = Collection.from_texts({"d": " ".join(words)})
    assert bags(collection, [" ".join(reversed(words))])[0].split()[0] == "00"
    of_bags = Collection.from_texts({"d": bags(collection, [" ".join(words)])[0]}, str.split)
    assert of_bags.vectorizer.get_feature_names_out().tolist() == [f"{n:02d}" for n in range(12)]
    assert unit_mass(of_bags.counts).sum() == pytest.approx(1)


def test_the_collections_and_their_utterances_are_whole() -> None:
    utterances = data.read_utterances()
    scripts = data.with_rewrites(conversations(utterances))
    assert (len(scripts), len(utterances), len(data.read_passages())) == (20, 173, 866)
    assert set(data.read_qrels()["query"]) == set(utterances["query"])
    assert sum(len(script.rewrites) for script in scripts) == 753
    assert data.read_rewritings().shape == (173, 6)
    assert data.read_rewritings().loc[utterances["query"]].notna().all(axis=None)

    utterances_2020 = data.read_utterances_2020()
    scripts_2020 = conversations(utterances_2020)
    assert (len(scripts_2020), len(utterances_2020)) == (25, 208)
    assert len(data.read_passages_2020()) == 974
    assert set(data.read_qrels_2020()["query"]) == set(utterances_2020["query"])
    for script in scripts_2020:
        assert script.structure.is_valid([range(script.structure.size)]).all()


def test_rankings_are_the_first_ones_asked_for_with_an_id_at_every_rank() -> None:
    rankings = data.read_rankings(2)
    assert rankings["run"].unique().tolist() == ["raw", "oracle"]
    sizes = rankings.groupby(["run", "query"])["document"].nunique()
    assert (sizes == 100).all()
    assert len(sizes) == 2 * 173


def test_the_first_ranks_on_the_whole_collection_say_what_is_judged() -> None:
    ranks = data.read_whole_collection(10)
    assert set(ranks["query"]) == set(data.read_utterances()["query"])
    assert (
        ranks.groupby(["run", "query"])["rank"].agg(["min", "max", "nunique"]) == [1, 10, 10]
    ).all(axis=None)
    shares = data.read_whole_collection(3).groupby("run")["judged"].mean()
    assert len(shares) == 16
    assert (shares.min(), shares.max()) == pytest.approx((0.5626, 0.9171), abs=5e-5)
    # what has an id is relevant, and so it is judged
    named = ranks[~ranks["document"].str.startswith("not relevant")]
    assert named["judged"].all()


def test_no_more_ranks_on_the_whole_collection_than_are_kept() -> None:
    with pytest.raises(ValueError, match="keeps 10 ranks of a system, and 20 are asked for"):
        data.read_whole_collection(20)
