"""Guards permutations section 4.1's systems and exact scores: restated, bm25s, ir_measures."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import bm25s
import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from equipoise.permutations.structures import ClassStructure
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import (
    SYSTEMS,
    Collection,
    Conversation,
    Settings,
    bm25,
    context_rankings,
    query_likelihood,
    relevance_model,
    rm3,
    sequential_rankings,
    top,
    unit_mass,
)

PASSAGES = {
    "CAR_1": "throat cancer grow throat larynx tonsil",
    "CAR_2": "lung cancer symptom cough chest pain",
    "CAR_3": "symptom throat cancer sore throat hoarse voice",
    "CAR_4": "lung cancer treat surgery radiation drug",
    "MARCO_1": "throat cancer treatable find early radiation surgery",
    "MARCO_2": "lung cancer cause smoking smoking cause throat cancer",
    "MARCO_3": "cough without fever seldom cancer",
}
TEXTS = (
    "throat cancer",
    "treatable",
    "tell lung cancer",
    "symptom",
    "cause cancer throat",
)
QUERIES = tuple(f"7_{turn}" for turn in range(1, 6))
QRELS = pd.DataFrame(
    [
        ("7_1", "CAR_1", 4),
        ("7_1", "CAR_3", 1),
        ("7_2", "MARCO_1", 3),
        ("7_3", "CAR_2", 1),
        ("7_3", "CAR_4", 2),
        ("7_4", "CAR_2", 4),
        ("7_4", "CAR_3", 1),
        ("7_5", "MARCO_2", 2),
        ("7_5", "elsewhere", 4),
    ],
    columns=["query", "document", "grade"],
)
PHRASES = ("throat cancer", "", "lung cancer", "symptom", "throat")
ANAPHORIC = (False, True, False, True, False)
CONVERSATION = Conversation(
    "7",
    QUERIES,
    TEXTS,
    ClassStructure.from_classes(["SE", "FT", "SE", "PT", "SE"]),
    PHRASES,
    ANAPHORIC,
    {(v, u): f"{TEXTS[u]} rewritten {PHRASES[v]}" for v in range(5) for u in range(1, 5)},
)
PERMUTATIONS = CONVERSATION.structure.permutations()  # type: ignore[attr-defined]
COLLECTION = Collection.from_texts(PASSAGES)
PROGRAM = Settings(variant="program", documents=3)


def experiment(**options: Any) -> Experiment:
    return Experiment(COLLECTION, [CONVERSATION], QRELS, **options)


# --- ranking functions ----------------------------------------------------------------------------

WORDS = ["shark", "whale", "tiger", "white", "ocean", "blood"]
documents = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=8
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def indexed(texts: list[str]) -> Collection:
    return Collection.from_texts({f"d{number:02d}": text for number, text in enumerate(texts)})


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries)
def test_bm25_agrees_with_bm25s(texts: list[str], query: str) -> None:
    collection = indexed(texts)
    known = [term for term in query.split() if term in set(" ".join(texts).split())]
    found = bm25(collection, collection.queries([query]))[0]
    if not known:
        assert (found == 0).all()
        return
    theirs = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    theirs.index([text.split() for text in texts], show_progress=False)
    expected = theirs.get_scores(known) * 2.2  # bm25s leaves the constant factor k1 + 1 out
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries, mu=st.floats(1, 3000))
def test_query_likelihood_agrees_with_its_definition(
    texts: list[str], query: str, mu: float
) -> None:
    collection = indexed(texts)
    everything = " ".join(texts).split()
    expected = []
    for text in texts:
        score = 0.0
        for term in query.split():
            if term in everything:
                share = everything.count(term) / len(everything)
                smoothed = (text.split().count(term) + mu * share) / (len(text.split()) + mu)
                score += np.log(smoothed) - np.log(share)
        expected.append(score)
    found = query_likelihood(collection, collection.queries([query]), mu=mu)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries, size=st.integers(1, 4), terms=st.integers(1, 4))
def test_relevance_model_agrees_with_its_definition(
    texts: list[str], query: str, size: int, terms: int
) -> None:
    collection = indexed(texts)
    scores = bm25(collection, collection.queries([query]))
    by_score = sorted(range(len(texts)), key=lambda d: (-round(scores[0, d], 9), d))
    mass: dict[str, float] = {}
    for d in by_score[:size]:
        if scores[0, d] > 0:
            for term in texts[d].split():
                mass[term] = mass.get(term, 0) + scores[0, d] / len(texts[d].split())
    total = sum(mass.values())
    kept = sorted(mass, key=lambda term: (-round(mass[term] / total, 9), term))[:terms]
    total = sum(mass[term] for term in kept)
    vocabulary = sorted(set(" ".join(texts).split()))
    expected = np.array([mass[term] / total if term in kept else 0.0 for term in vocabulary])
    found = relevance_model(collection, scores, documents=size, terms=terms).toarray()[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    query_bag = collection.queries([query])
    expanded = rm3(
        collection, query_bag, Settings(documents=size, terms=terms, original_weight=0.3)
    )
    mixed = 0.3 * unit_mass(query_bag).toarray()[0] + 0.7 * expected
    np.testing.assert_allclose(expanded.toarray()[0], mixed, atol=1e-9)


@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    k=st.integers(1, 14),
    scale=st.sampled_from([1e-9, 0.1, 1.0, 7e8]),
)
def test_top_breaks_ties_by_column(scores: list[int], k: int, scale: float) -> None:
    expected = sorted(range(len(scores)), key=lambda column: (-scores[column], column))[:k]
    noise = np.array([1 + 1e-15 * (-1) ** column for column in range(len(scores))])
    found = top(np.array([scores], dtype=float) * scale * noise, k)
    assert found[0].tolist() == expected


# --- systems --------------------------------------------------------------------------------------


def restated(system: str, order: list[int], options: Settings) -> list[list[int]]:
    """Rank a conversation in one order, each utterance by section 4.1 or as the program does.

    In the program the previous utterance of the first one is that one itself.
    """
    program = options.variant == "program"
    found: list[list[int]] = []
    bags = COLLECTION.queries(TEXTS)
    model = sparse.csr_array((1, COLLECTION.counts.shape[1]))
    for place, current in enumerate(order):
        now, first = bags[[current]], bags[[order[0]]]
        before = bags[[order[place - 1]]]
        before_or_self = bags[[order[max(place - 1, 0)]]]
        query: Any = now
        if system == "FU" and place > 0:
            query = now + first
        elif system == "CU" and program:
            query = now + first + before_or_self if place else 3 * now
        elif system == "LP" and program:
            query = 0.6 * before_or_self + 0.4 * now
        elif system == "RM3p" and program:
            expanded = rm3(COLLECTION, before_or_self, options)
            query = 0.6 * expanded + 0.4 * rm3(COLLECTION, now, options)
        elif system == "CU" and place == 1:
            query = now + first
        elif system == "CU" and place > 1:
            query = now + first + before
        elif system == "LP" and place > 0:
            query = 0.6 * now + 0.4 * before
        elif system == "RM3":
            query = rm3(COLLECTION, now, options)
        elif system == "RM3p" and place > 0:
            query = unit_mass(now) + rm3(COLLECTION, before, options)
        elif system == "RM3s":
            query = 0.6 * unit_mass(now) + 0.4 * model if place else unit_mass(now)
        elif system == "Antecedent" and ANAPHORIC[current]:
            named = [u for u in order[:place] if PHRASES[u] and not ANAPHORIC[u]]
            query = COLLECTION.queries([f"{TEXTS[current]} {PHRASES[named[-1]] if named else ''}"])
        elif system == "Rewriter" and place > 0:
            query = COLLECTION.queries([CONVERSATION.rewrites[order[place - 1], current]])
        query = sparse.csr_array(query)
        scores = query_likelihood(COLLECTION, query) if system == "DLM" else bm25(COLLECTION, query)
        model = relevance_model(COLLECTION, scores, documents=options.documents)
        found.append(top(scores, options.depth)[0].tolist())
    return found


def ranked(system: str, options: Settings, allowed: Any = None) -> Any:
    """Rankings along all permutations, shaped (permutations, n, depth)."""
    if system == "RM3s":
        return sequential_rankings(COLLECTION, CONVERSATION, PERMUTATIONS, options, allowed)
    best = context_rankings(COLLECTION, CONVERSATION, system, options, allowed)
    return best.along(PERMUTATIONS)


@pytest.mark.parametrize("options", [Settings(), PROGRAM], ids=["paper", "program"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_ranks_by_the_paper_or_as_its_program_does(
    system: str, options: Settings
) -> None:
    expected = [restated(system, order, options) for order in PERMUTATIONS.tolist()]
    assert ranked(system, options).tolist() == expected


@pytest.mark.parametrize("system", ["CU", "LP", "RM3p", "RM3s"])
def test_the_program_and_the_paper_differ(system: str) -> None:
    program = ranked(system, replace(PROGRAM, depth=7)).tolist()
    assert program != ranked(system, Settings(depth=7)).tolist()


@pytest.mark.parametrize("system", SYSTEMS)
def test_condensed_rankings_leave_out_what_nobody_judged(system: str) -> None:
    pairs = set(zip(QRELS["query"], QRELS["document"], strict=True))
    allowed = np.array([[(q, d) in pairs for d in COLLECTION.documents] for q in QUERIES])
    whole, condensed = ranked(system, Settings(depth=7)), ranked(system, Settings(), allowed)
    for order, of_whole, of_condensed in zip(PERMUTATIONS, whole, condensed, strict=True):
        for utterance, ranking, short in zip(order, of_whole, of_condensed, strict=True):
            kept = [column for column in ranking if allowed[utterance, column]][:3]
            assert short[: len(kept)].tolist() == kept


# --- scores ---------------------------------------------------------------------------------------


def plain_scores(
    system: str, order: list[int], measure: Any = ir_measures.nDCG @ 3
) -> dict[str, float]:
    """Score of each utterance of one permutation by ir_measures."""
    run = []
    for utterance, ranking in zip(order, restated(system, order, Settings()), strict=True):
        for rank, column in enumerate(ranking):
            document = COLLECTION.documents[column]
            run.append(ir_measures.ScoredDoc(QUERIES[utterance], document, 3.0 - rank))
    qrels = [ir_measures.Qrel(*row) for row in QRELS.itertuples(index=False)]
    return {
        result.query_id: result.value for result in ir_measures.iter_calc([measure], qrels, run)
    }


@pytest.mark.parametrize("system", SYSTEMS)
def test_exact_values_agree_with_scoring_every_permutation_by_ir_measures(system: str) -> None:
    totals = []
    for order in PERMUTATIONS.tolist():
        totals.append(np.mean(list(plain_scores(system, order).values())))
    tried = experiment()
    exact = tried.exact([system]).iloc[0]
    assert exact["count"] == len(totals) == 6
    looks_back_once = SYSTEMS[system].context in ("none", "previous")
    assert exact["how"] == ("adjacency" if looks_back_once else "enumeration")
    expected = [np.mean(totals), np.std(totals), np.min(totals), np.max(totals)]
    columns = ["mean", "sd", "minimum", "maximum"]
    np.testing.assert_allclose(exact[columns].astype(float), expected, atol=1e-9)
    np.testing.assert_allclose(tried.scores_of_all([system])["7"][:, 0], totals, atol=1e-12)
    scores = tried.scores({"7": PERMUTATIONS[::-1]}, [system])
    np.testing.assert_allclose(scores["value"], totals[::-1], atol=1e-12)
    assert scores["permutation"].tolist() == list(range(6))


def test_some_systems_depend_on_the_permutation() -> None:
    exact = experiment().exact(list(SYSTEMS)).set_index("run")
    depends = exact["maximum"] - exact["minimum"] > 1e-9
    assert not depends[["BM25", "DLM", "RM3", "FU"]].any()
    assert depends[["CU", "LP", "RM3p", "RM3s", "Antecedent"]].any()


def test_the_share_judged_is_that_of_ir_measures() -> None:
    order = PERMUTATIONS[3].tolist()
    judging = experiment(measure="share judged")
    found = judging.utterance_scores(CONVERSATION, "CU", PERMUTATIONS[[3]])[0]
    expected = plain_scores("CU", order, ir_measures.Judged @ 3)
    assert found.tolist() == pytest.approx([expected[QUERIES[u]] for u in order])


def test_no_grades_of_unjudged_documents_beat_the_bound() -> None:
    optimistic = experiment(measure="optimistic nDCG")
    bound = optimistic.utterance_scores(CONVERSATION, "LP", PERMUTATIONS[:1])[0]
    rankings = restated("LP", list(range(5)), Settings())
    best = np.zeros(5)
    known = set(zip(QRELS["query"], QRELS["document"], strict=True))
    for grades in itertools.product([0, 2, 4], repeat=3):
        rows = []
        for query, ranking in zip(QUERIES, rankings, strict=True):
            for column, grade in zip(ranking, grades, strict=True):
                if (query, COLLECTION.documents[column]) not in known:
                    rows.append((query, COLLECTION.documents[column], grade))
        added = pd.DataFrame(rows, columns=QRELS.columns)
        more = Experiment(COLLECTION, [CONVERSATION], pd.concat([QRELS, added]))
        best = np.maximum(best, more.utterance_scores(CONVERSATION, "LP", PERMUTATIONS[:1])[0])
    assert (best <= bound + 1e-12).all()
    assert (best > bound - 1e-12).any()


def test_a_missing_judgement_is_an_error() -> None:
    fewer = QRELS[~QRELS["query"].isin(["7_2", "7_4"])]
    with pytest.raises(ValueError, match="no judgement for 7_2, 7_4: leave these"):
        Experiment(COLLECTION, [CONVERSATION], fewer)
