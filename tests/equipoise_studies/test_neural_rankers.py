"""Neural rankers on a tiny random transformer, and the recorded runs they have left."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pandas as pd
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies.ranking_bias.data import read_counted, read_recorded_runs
from equipoise_studies.ranking_bias.record import query_set
from equipoise_studies.ranking_bias.record.query_set import Recorder
from equipoise_studies.ranking_bias.study import Ranker
from equipoise_studies.systems import rankers
from equipoise_studies.systems.encoders import Model, load_model, token_states
from equipoise_studies.systems.rankers import (
    best,
    bm25_scores,
    dense_scores,
    splade_scores,
    text_vectors,
)

QUERIES = ["white shark", "rain falls"]
DOCUMENTS = [
    "the white shark swims in the sea",
    "rain",
    "rain falls on the white sea and on the shark",
    "falls the sea",
]


def tiny(folder: Path, head: Any) -> Model:
    """A transformer of two layers with random weights, saved and loaded as a real one is."""
    reason = "is not installed: pip install 'equipoise[models]'"
    torch = pytest.importorskip("torch", reason=f"torch {reason}")
    transformers = pytest.importorskip("transformers", reason=f"transformers {reason}")
    words = sorted({word for text in QUERIES + DOCUMENTS for word in text.split()})
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    )
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(str(folder))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=5 + len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    kind = transformers.BertForMaskedLM if head == "masked-lm" else transformers.BertModel
    kind(config).save_pretrained(str(folder), safe_serialization=True)
    return load_model(folder, head)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
def test_dense_scores_follow_their_formula_whatever_the_batch(tmp_path: Path) -> None:
    model = tiny(tmp_path, "encoder")
    states = {}
    for text in QUERIES + DOCUMENTS:
        ((_, state, mask),) = token_states(model, [text])
        states[text] = state[0][mask[0]].astype(np.float64)
    mean = {
        text: state.mean(axis=0) / np.linalg.norm(state.mean(axis=0))
        for text, state in states.items()
    }
    cosine = [[mean[q] @ mean[d] for d in DOCUMENTS] for q in QUERIES]
    for batch in (1, 3, 32):
        asked, held = (text_vectors(model, texts, batch=batch) for texts in (QUERIES, DOCUMENTS))
        assert dense_scores(asked, held) == pytest.approx(np.array(cosine), abs=1e-5)
    half = load_model(tmp_path, precision="bfloat16")
    rough = dense_scores(*(text_vectors(half, texts) for texts in (QUERIES, DOCUMENTS)))
    assert rough == pytest.approx(np.array(cosine), abs=0.02)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
def test_vectors_are_kept_in_pieces_and_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(tmp_path, "encoder")
    whole = text_vectors(model, DOCUMENTS)
    monkeypatch.setattr(query_set, "VECTORS", 3)
    recorder = object.__new__(Recorder)
    recorder.all_work = tmp_path / "work"
    ranker = Ranker("dense", "tiny", model="tiny")
    first = recorder._text_vectors(model, ranker, DOCUMENTS)
    np.testing.assert_allclose(first, whole, atol=1e-6)
    assert len(list(recorder.all_work.glob("vectors-tiny-*.parquet"))) == 2

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("encoded again")

    monkeypatch.setattr(rankers, "text_vectors", never)
    np.testing.assert_array_equal(recorder._text_vectors(model, ranker, DOCUMENTS), first)
    # another precision gives other vectors
    with pytest.raises(AssertionError, match="encoded again"):
        recorder._text_vectors(model, replace(ranker, precision="bfloat16"), DOCUMENTS)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
def test_splade_weighs_terms_by_their_strongest_logit(tmp_path: Path) -> None:
    model = tiny(tmp_path, "masked-lm")
    weights = []
    for text in QUERIES + DOCUMENTS:
        ((_, logits, mask),) = token_states(model, [text])
        weights.append(np.log1p(np.maximum(logits[0][mask[0]], 0).max(axis=0)))
    table = np.array(weights, dtype=np.float64)
    for batch in (1, 3, 16):
        ours = splade_scores(QUERIES, DOCUMENTS, model, batch=batch)
        assert ours == pytest.approx(table[:2] @ table[2:].T, abs=1e-4)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        load_model(tmp_path)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=3),
    st.integers(1, 7),
)
def test_best_sorts_by_score_and_then_by_id(scores: list[list[int]], depth: int) -> None:
    documents = ["d3", "d1", "d2", "d10", "d5"]
    queries = [f"q{n}" for n in range(len(scores))]
    table = best(scores, queries, documents, "r", depth=depth)
    for query, row in zip(queries, scores, strict=True):
        falling = sorted(zip(documents, row, strict=True), key=lambda pair: (-pair[1], pair[0]))
        expected = [pair for pair in falling if pair[1] >= falling[:depth][-1][1]]
        part = table[table["topic"] == query]
        assert part["document"].tolist() == [name for name, _ in expected]
        assert part["rank"].tolist() == list(range(1, len(expected) + 1))


def test_best_leaves_out_what_is_no_candidate_and_checks_the_shape() -> None:
    assert best([[-np.inf, 1.0]], ["q"], ["a", "b"], "r")["document"].tolist() == ["b"]
    with pytest.raises(ValueError, match="shaped"):
        best([[1.0]], ["q"], ["a", "b"], "r")


def test_bm25_is_bm25s_over_lucenes_terms() -> None:
    texts = [*DOCUMENTS, "The sharks, swimming; it was RAINING into a sea of x"]
    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    public = bm25s.BM25(method="lucene", k1=0.9, b=0.4, dtype="float64")
    public.index(bm25s.tokenize(texts, **options), show_progress=False)
    asked = bm25s.tokenize(QUERIES, return_ids=False, **options)
    assert bm25_scores(QUERIES, texts) == pytest.approx(
        np.array([public.get_scores(words) for words in asked])
    )


# --- recorded runs --------------------------------------------------------------------------------

RECORDED = sorted(
    path.name.removesuffix("_runs.tsv.gz")
    for path in project.root().joinpath("data", "outputs", "ranking_bias").glob("*_runs.tsv.gz")
)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_are_whole(name: str) -> None:
    runs = read_recorded_runs(project.data("outputs", "ranking_bias", f"{name}_runs.tsv.gz"))
    settings = json.loads(
        project.data("outputs", "ranking_bias", f"{name}_settings.json").read_text(encoding="utf-8")
    )
    lists = runs.groupby(["world", "run", "topic"])
    assert set(runs["run"]) == set(settings["runs"])
    assert len(lists) == 2 * len(settings["runs"]) * settings["account"]["queries"]
    assert (lists["rank"].max() == lists.size()).all()
    last = runs[runs["rank"] == settings["depth"]].set_index(["world", "run", "topic"])["score"]
    beyond = runs[runs["rank"] > settings["depth"]].set_index(["world", "run", "topic"])["score"]
    assert (beyond == last.reindex(beyond.index)).all()  # a tie is kept whole
    falls = runs.sort_values(["world", "run", "topic", "rank"])
    same = falls.duplicated(["world", "run", "topic"])
    assert (falls["score"].diff()[same] <= 0).all()
    words = settings["account"]
    assert words["words restored by substituting twice"] / words["words"] > 0.99


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_name_queries_and_documents_of_their_collection(name: str) -> None:
    collection = read_counted(name)
    runs = read_recorded_runs(project.data("outputs", "ranking_bias", f"{name}_runs.tsv.gz"))
    assert set(runs["topic"]) == set(collection.queries)
    assert set(runs["document"]) <= set(collection.term_counts.documents)
    assert set(collection.qrels["topic"]) == set(collection.queries)


def test_problems_of_recorded_runs_are_told_at_once(tmp_path: Path) -> None:
    header = "world\trun\ttopic\tdocument\trank\tscore\n"
    path = tmp_path / "runs.tsv"
    path.write_text(
        header + "original\ta\t1\td1\t1\t2\nmars\ta\t1\td2\t2\t1\nx\noriginal\ta\t1\td1\tfirst\t1\n"
    )
    with pytest.raises(InputError) as caught:
        read_recorded_runs(path)
    assert [problem.line for problem in caught.value.problems] == [3, 4, 5]
    path.write_text(header + "original\ta\t1\td1\t1\t2\noriginal\ta\t1\td1\t2\t1\n")
    with pytest.raises(InputError, match="d1 again for topic 1"):
        read_recorded_runs(path)
    path.write_text("run\n")
    with pytest.raises(InputError, match="the header"):
        read_recorded_runs(path)
    assert pd.Series(header.split()).is_unique
