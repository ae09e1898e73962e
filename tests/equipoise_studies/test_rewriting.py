"""Guards permutations section 4.1's systems, exact scores: restated, brute force, ir_measures."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from equipoise.attributes import attribute_sets
from equipoise.nuggets import nugget_table
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation, sampled_orders
from equipoise.orders.structures import GraphStructure
from equipoise_studies import recording
from equipoise_studies.permutations import record
from equipoise_studies.permutations.antecedents import (
    FIELDS,
    KEY,
    KIND,
    antecedent,
    read_antecedents,
)
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.figures import utterance_blocks
from equipoise_studies.permutations.scoring import optimistic, score_alternatives
from equipoise_studies.permutations.systems import (
    SYSTEMS,
    Settings,
    context_rankings,
    sequential_rankings,
)
from equipoise_studies.systems.lexical import (
    Collection,
    bm25,
    query_likelihood,
    relevance_model,
    rm3,
    top,
    unit_mass,
)

PASSAGES = {
    "CAR_1": "Throat cancer grows in the throat, the larynx or the tonsils.",
    "CAR_2": "Lung cancer symptoms are a cough and chest pain.",
    "CAR_3": "Symptoms of throat cancer are a sore throat and a hoarse voice.",
    "CAR_4": "Lung cancer can be treated by surgery, radiation and drugs.",
    "MARCO_1": "Throat cancer is treatable when it is found early, by radiation or surgery.",
    "MARCO_2": "Lung cancer is caused by smoking; smoking also causes throat cancer.",
    "MARCO_3": "A cough without fever is seldom cancer.",
}
TEXTS = (
    "What is throat cancer?",
    "Is it treatable?",
    "Tell me about lung cancer.",
    "What are its symptoms?",
    "What causes cancer of the throat?",
)
CLASSES = ["SE", "FT", "SE", "PT", "SE"]
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
PHRASES = ("throat cancer", "", "lung cancer", "its symptoms", "the throat")
ANAPHORIC = (False, True, False, True, False)


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    return Conversation(
        "7",
        QUERIES,
        TEXTS,
        ClassStructure.from_classes(CLASSES),
        tuple(zip(PHRASES, ANAPHORIC, strict=True)),
    )


@pytest.fixture(scope="module")
def experiment(conversation: Conversation) -> Experiment:
    return Experiment(Collection.from_texts(PASSAGES), [conversation], QRELS)


def restated(
    collection: Collection, system: str, order: list[int], settings: Settings
) -> list[list[int]]:
    """Rank a conversation in one order, each utterance as section 4.1 has it or the program does.

    In the program the previous utterance of the first one is that one itself.
    """
    program = settings.variant == "program"
    feedback = {"documents": settings.documents}
    found: list[list[int]] = []
    bags = {text: collection.queries([text]) for text in TEXTS}
    model = sparse.csr_array((1, collection.counts.shape[1]))
    for place, current in enumerate(order):
        now, first = bags[TEXTS[current]], bags[TEXTS[order[0]]]
        before = bags[TEXTS[order[place - 1]]]
        query: Any = now
        if system == "FU" and place > 0:
            query = collection.queries([f"{TEXTS[current]} {TEXTS[order[0]]}"])
        elif system == "CU" and program:
            query = collection.queries(
                [" ".join(TEXTS[order[at]] for at in (max(place - 1, 0), 0, place))]
            )
        elif system == "LP" and program:
            query = 0.6 * bags[TEXTS[order[max(place - 1, 0)]]] + 0.4 * now
        elif system == "RM3p" and program:
            expanded = rm3(collection, bags[TEXTS[order[max(place - 1, 0)]]], **feedback)
            query = 0.6 * expanded + 0.4 * rm3(collection, now, **feedback)
        elif system == "CU" and place == 1:
            query = now + first
        elif system == "CU" and place > 1:
            query = now + first + before
        elif system == "LP" and place > 0:
            query = settings.current_weight * now + (1 - settings.current_weight) * before
        elif system == "RM3":
            query = rm3(collection, now, **feedback)
        elif system == "RM3p" and place > 0:
            query = unit_mass(now) + rm3(collection, before)
        elif system == "RM3s" and place > 0:
            query = (
                settings.original_weight * unit_mass(now) + (1 - settings.original_weight) * model
            )
        elif system == "Antecedent" and ANAPHORIC[current]:
            named = [u for u in order[:place] if PHRASES[u] and not ANAPHORIC[u]]
            query = collection.queries([f"{TEXTS[current]} {PHRASES[named[-1]] if named else ''}"])
        query = sparse.csr_array(query)
        if system == "RM3s" and place == 0:
            query = unit_mass(query)
        scores = query_likelihood(collection, query) if system == "DLM" else bm25(collection, query)
        model = relevance_model(collection, scores, **feedback)
        found.append(top(scores, 3)[0].tolist())
    return found


@pytest.mark.parametrize(
    "settings", [Settings(), Settings().of_the_program()], ids=["paper", "program"]
)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_ranks_as_the_paper_words_it_or_as_its_program_does(
    system: str, settings: Settings, experiment: Experiment, conversation: Conversation
) -> None:
    orders = conversation.structure.orders()
    ranked = replace(experiment, settings=settings).rankings(conversation, system, orders)
    for order, rankings in zip(orders.tolist(), ranked.tolist(), strict=True):
        assert rankings == restated(experiment.collection, system, order, settings)


@pytest.mark.parametrize("system", ["CU", "LP", "RM3p", "RM3s"])
def test_the_program_and_the_paper_are_not_one(
    system: str, experiment: Experiment, conversation: Conversation
) -> None:
    orders = conversation.structure.orders()
    program = replace(experiment, settings=Settings(depth=7).of_the_program())
    paper = replace(experiment, settings=Settings(depth=7))
    assert (
        program.rankings(conversation, system, orders).tolist()
        != paper.rankings(conversation, system, orders).tolist()
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_condensed_lists_are_the_rankings_without_what_nobody_judged(
    system: str, experiment: Experiment, conversation: Conversation
) -> None:
    orders = conversation.structure.orders()
    whole = replace(experiment, settings=Settings(depth=7)).rankings(conversation, system, orders)
    condensed = replace(experiment, unjudged="left out").rankings(conversation, system, orders)
    judged = {query: {*part["document"]} for query, part in QRELS.groupby("query")}
    documents = experiment.collection.documents
    for order, long, short in zip(orders.tolist(), whole.tolist(), condensed.tolist(), strict=True):
        for utterance, ranked, found in zip(order, long, short, strict=True):
            kept = [column for column in ranked if documents[column] in judged[QUERIES[utterance]]]
            assert found[: len(kept)] == kept[:3]


def test_no_grades_of_unjudged_documents_beat_the_bound(experiment: Experiment) -> None:
    documents, rng = experiment.collection.documents, np.random.default_rng(5)
    rankings = np.array([rng.permutation(7)[:3] for _ in range(30)])
    queries = rng.choice(QUERIES, 30).tolist()
    bound = optimistic(queries, rankings, documents, QRELS)
    assert (bound >= score_alternatives(queries, rankings, documents, QRELS) - 1e-12).all()
    known = {
        (query, document)
        for query, document in QRELS[["query", "document"]].itertuples(index=False, name=None)
    }
    best = np.zeros(30)
    for grades in itertools.product([0, 2, 4], repeat=3):
        for number, (query, ranking) in enumerate(zip(queries, rankings, strict=True)):
            rows = [
                (query, documents[column], grade)
                for column, grade in zip(ranking, grades, strict=True)
            ]
            added = pd.DataFrame(
                [row for row in rows if row[:2] not in known], columns=QRELS.columns
            )
            with_grades = pd.concat([QRELS, added.astype({"grade": int})])
            score = score_alternatives([query], [ranking], documents, with_grades)[0]
            best[number] = max(best[number], score)
    assert (best <= bound + 1e-12).all()
    assert (best > bound - 1e-12).mean() > 0.3  # for many rankings the bound is reached
    with pytest.raises(ValueError, match="the bound is of nDCG@3"):
        optimistic(queries, rankings, documents, QRELS, "nDCG@10")


def test_scores_of_every_order_are_looked_up(
    experiment: Experiment, conversation: Conversation
) -> None:
    orders = conversation.structure.orders()
    systems = ["CU", "RM3s"]
    scored = replace(experiment).scores({"7": orders}, systems)
    before = scored.pivot_table(index="permutation", columns="run", values="value")
    listed = replace(experiment)
    np.testing.assert_allclose(listed.every(systems)["7"], before[systems])
    turned = listed.scores({"7": orders[::-1]}, ["RM3s"])["value"]
    np.testing.assert_array_equal(turned, before["RM3s"][::-1])
    assert replace(experiment, exhaustive=1).every(systems) == {}
    by_utterance = listed.scores_by_utterance({"7": orders}, systems)
    means = by_utterance.pivot_table(index="permutation", columns="run", values="value")
    np.testing.assert_allclose(means[systems], before[systems])
    assert set(by_utterance["utterance"]) == {*QUERIES}


@pytest.mark.parametrize("system", SYSTEMS)
def test_exact_values_agree_with_scoring_every_order(system: str, experiment: Experiment) -> None:
    exact = experiment.exact([system]).iloc[0]
    structure = experiment.conversations[0].structure
    totals = []
    for order in structure.orders().tolist():
        rankings = restated(experiment.collection, system, order, Settings())
        queries = [QUERIES[utterance] for utterance in order]
        totals.append(
            score_alternatives(queries, rankings, experiment.collection.documents, QRELS).mean()
        )
    assert exact["orders"] == len(totals) == 6
    assert exact["how"] == (
        "enumeration" if SYSTEMS[system].context in ("antecedent", "everything") else "adjacency"
    )
    expected = [np.mean(totals), np.std(totals), np.min(totals), np.max(totals)]
    np.testing.assert_allclose(
        exact[["mean", "sd", "minimum", "maximum"]].astype(float), expected, atol=1e-9
    )


def test_some_system_depends_on_the_order(experiment: Experiment) -> None:
    exact = experiment.exact().set_index("run")
    depends = exact["maximum"] - exact["minimum"] > 1e-9
    assert not depends[["BM25", "DLM", "RM3", "FU"]].any()
    assert depends[["CU", "LP", "RM3p", "RM3s", "Antecedent"]].any()


def test_scores_are_those_of_ir_measures_on_the_official_qrels(experiment: Experiment) -> None:
    conversation = experiment.conversations[0]
    script = [list(range(5))]
    ranked = experiment.rankings(conversation, "CU", script)[0]
    run = [
        ir_measures.ScoredDoc(query, experiment.collection.documents[document], 3.0 - place)
        for query, documents in zip(QUERIES, ranked, strict=True)
        for place, document in enumerate(documents)
    ]
    qrels = [ir_measures.Qrel(*row) for row in QRELS.itertuples(index=False)]
    expected = {
        m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.nDCG @ 3], qrels, run)
    }
    found = experiment.utterance_scores(conversation, "CU", script)[0]
    assert dict(zip(QUERIES, found, strict=True)) == pytest.approx(expected)
    table = experiment.scores({"7": script}, ["CU"])
    assert table["value"].tolist() == pytest.approx([np.mean(list(expected.values()))])


def test_an_unlisted_order_is_said_to_be_too_many(experiment: Experiment) -> None:
    table = replace(experiment, exhaustive=5).exact(["RM3s", "LP"]).set_index("run")
    assert table.loc["RM3s", "how"] == "too many orders"
    assert table.loc["RM3s", ["mean", "maximum"]].isna().all()
    assert table.loc["LP", "how"] == "adjacency"


def test_a_missing_judgement_is_an_error(conversation: Conversation) -> None:
    fewer = QRELS[~QRELS["query"].isin(["7_2", "7_4"])]
    experiment = Experiment(Collection.from_texts(PASSAGES), [conversation], fewer)
    for system in ("BM25", "RM3s"):
        with pytest.raises(
            ValueError, match="no judgement for 7_2, 7_4: leave these queries out, or judge them"
        ):
            experiment.exact([system])


def test_sampled_orders_start_with_the_script_and_repeat_nothing(
    conversation: Conversation,
) -> None:
    orders = sampled_orders([conversation], 3, seed=5)["7"]
    assert orders[0].tolist() == [0, 1, 2, 3, 4]
    assert len(np.unique(orders, axis=0)) == 4
    np.testing.assert_array_equal(orders, sampled_orders([conversation], 3, seed=5)["7"])
    assert len(sampled_orders([conversation], 100, seed=5)["7"]) == conversation.structure.count
    broken = Conversation("8", QUERIES, TEXTS, ClassStructure([[0, 2], [1], [3], [4]]))
    with pytest.raises(ValueError, match="topic 8: the order of the script is not valid"):
        sampled_orders([broken], 3, seed=5)


def test_answers_are_nuggets_at_the_words_of_the_conversation(experiment: Experiment) -> None:
    passages = pd.DataFrame(
        {
            "document": PASSAGES.keys(),
            "words": [len(text.split()) for text in PASSAGES.values()],
            "source": [d.partition("_")[0] for d in PASSAGES],
        }
    )
    words_of_query = {query: len(text.split()) for query, text in zip(QUERIES, TEXTS, strict=True)}
    script = {"7": [[0, 1, 2, 3, 4]]}
    answers = experiment.answers(script, words_of_query, passages, ["BM25"])
    best = experiment.rankings(experiment.conversations[0], "BM25", [[0, 1, 2, 3, 4]])[0, :, 0]
    names = [experiment.collection.documents[column] for column in best]
    grades = QRELS.set_index(["query", "document"])["grade"].to_dict()
    words = 0
    for row, text, query, name in zip(
        answers.to_dict("records"), TEXTS, QUERIES, names, strict=True
    ):
        start = words + len(text.split()) + 1
        words += len(text.split()) + len(PASSAGES[name].split())
        grade = grades.get((query, name), 0)
        expected = (
            (str(start), str(words), "1" if grade < 3 else "2", name)
            if grade
            else ("", "", "0", "")
        )
        assert (row["start"], row["end"], row["level"], row["entity"]) == expected
        assert row["SOURCE"] == ("" if not grade else "1 0" if name.startswith("CAR") else "0 1")
    sets = attribute_sets(
        {"SOURCE": {"kind": "nominal", "groups": ["CAR", "MARCO"], "target": "uniform"}}
    )
    assert len(nugget_table(answers, sets)) == 5
    with pytest.raises(ValueError, match="no length of passage MARCO_3"):
        experiment.answers(script, words_of_query, passages.iloc[:-1], ["BM25"])


def test_a_perfect_ranking_bounds_every_system(experiment: Experiment) -> None:
    ceiling = experiment.ceiling().set_index("query")["value"]
    assert ceiling[["7_1", "7_2", "7_3", "7_4"]].tolist() == pytest.approx([1, 1, 1, 1])
    assert ceiling["7_5"] < 1  # the best judged passage is not in the collection
    fixed = experiment.fixed_scores(dict(zip(QUERIES, TEXTS, strict=True)))
    alone = experiment.utterance_scores(experiment.conversations[0], "BM25", [[0, 1, 2, 3, 4]])[0]
    assert fixed["value"].tolist() == pytest.approx(alone)
    assert (fixed.set_index("query")["value"] <= ceiling + 1e-12).all()
    with pytest.raises(ValueError, match="no text for 7_2, 7_3"):
        experiment.fixed_scores({query: "x" for query in QUERIES if query not in ("7_2", "7_3")})


def test_the_rule_for_antecedents_sees_pronouns_and_nouns() -> None:
    pytest.importorskip("spacy", reason="parses anew what the record holds")
    texts = ["Tell me about the Bronze Age collapse.", "Which digs have shown it?", "And then?"]
    found = [antecedent(text, line) for text, line in zip(texts, record.parsed(texts), strict=True)]
    assert [anaphoric for _, anaphoric in found] == [False, True, False]
    assert found[0][0] == "the Bronze Age collapse"
    assert found[2][0] == ""


def test_the_recorder_and_the_replay_agree_and_know_the_texts(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="parses anew what the record holds")
    path = tmp_path / "noun_phrases.jsonl"
    recording.begin(path, {"model": record.MODEL}, KIND, FIELDS, KEY)
    for query, line in zip(QUERIES, record.parsed(TEXTS), strict=True):
        recording.add(path, KIND, {"query": query, **line})
    utterances = pd.DataFrame({"query": QUERIES, "text": TEXTS})
    pd.testing.assert_frame_equal(
        read_antecedents(path, utterances), utterances.assign(phrase=PHRASES, anaphoric=ANAPHORIC)
    )


def test_refuses_what_is_not_there(experiment: Experiment, conversation: Conversation) -> None:
    with pytest.raises(ValueError, match="no system named 'T5'; there are BM25"):
        experiment.exact(["T5"])
    with pytest.raises(ValueError, match="Antecedent needs the antecedents"):
        context_rankings(experiment.collection, replace(conversation, antecedents=()), "Antecedent")
    with pytest.raises(ValueError, match="no system 'RM3s' with a context of one utterance"):
        context_rankings(experiment.collection, conversation, "RM3s")
    with pytest.raises(ValueError, match="orders of 5 utterances"):
        sequential_rankings(experiment.collection, conversation.texts, [[0, 1]])
    with pytest.raises(ValueError, match="current_weight is between 0 and 1, found 2"):
        Settings(current_weight=2)
    with pytest.raises(ValueError, match="4 ids, 5 texts"):
        Conversation("7", QUERIES[:4], TEXTS, conversation.structure)
    with pytest.raises(ValueError, match="topics 7 come twice"):
        Experiment(experiment.collection, [conversation, conversation], QRELS)


def test_only_class_structures_have_blocks() -> None:
    graph = Conversation("7", QUERIES, TEXTS, GraphStructure(5, [(1, 2)]))
    table = pd.DataFrame({"query": QUERIES, "turn": range(1, 6), "class": CLASSES})
    with pytest.raises(TypeError, match="GraphStructure, which has no blocks"):
        utterance_blocks(table, [graph])
