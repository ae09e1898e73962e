"""Configs, cached answers, labels and prompts of chapter 5."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.answer_modes import MODES
from equipoise.measures.citations import citations
from equipoise_compendium import project
from equipoise_studies.attribution import data, prompts

FOLDER = project.root() / "data" / "studies" / "attribution"
REPLICA, THESIS = data.read_study("replica"), data.read_study("thesis")
PLAIN = prompts.LabelSet(notice="Authors are given.", groups={"Human": ("Human",), "LLM": ("LLM",)})


# --- configs --------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A text by its letters and digits, which hyphens and ends of lines do not change."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@pytest.mark.upstream
def test_what_the_config_quotes_is_in_the_thesis() -> None:
    text = plain(thesis_text())
    quoted = []
    for line in (FOLDER / "thesis.yaml").read_text(encoding="utf-8").splitlines():
        quoted += re.findall(r'"([^"]+)"', line.partition("  #")[2])
    assert len(quoted) > 10
    for words in quoted:
        assert plain(words) in text, words


def test_the_thesis_asks_the_models_and_retrievers_of_its_tables() -> None:
    table = pd.read_csv(project.root() / "data" / "published" / "thesis" / "table-5.9.csv")
    assert set(THESIS.records) == set(table["model"])
    assert set(table["retriever"]) <= set(THESIS.benchmarks["NQ"].found_by)
    assert THESIS.outputs == FOLDER / "recorded"
    assert THESIS.derived == project.root() / "data" / "facts" / "attribution"


@pytest.mark.parametrize(
    ("place", "value"),
    [("sead", 1), ("documents", 0), ("placed", "somewhere"), ("models/GPT-4/patence", 1)],
)
def test_a_wrong_setting_is_named(place: str, value: object, tmp_path: Path) -> None:
    config = yaml.safe_load((FOLDER / "thesis.yaml").read_text(encoding="utf-8"))
    *above, name = place.split("/")
    part = config
    for step in above:
        part = part[step]
    part[name] = value
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(ValueError, match=name):
        data.read_study(str(path))


# --- cached answers -------------------------------------------------------------------------------


def test_cached_answers_are_whole_cells_of_the_design() -> None:
    answers = data.cached_answers(REPLICA)
    assert answers["gold"].map(len).ge(1).all()
    assert (answers["documents"] == answers["k"]).all()
    assert answers["relevant"].map(len).eq(1).all()
    by_name = {name: record for record, name in REPLICA.names().items()}
    for (model, benchmark), part in answers.groupby(["model", "benchmark"]):
        asked = set(REPLICA.records[by_name[str(model)]].experiments[str(benchmark)])
        assert part["experiments"].map(lambda names, asked=asked: bool(names & asked)).all()
    cell = ["model", "benchmark", *data.Cell._fields]
    sizes = answers.groupby(cell).size().reset_index(name="questions")
    by_author = sizes.groupby(["model", "benchmark", "relevant_author"])["questions"]
    assert (by_author.min() == by_author.max()).all()
    # A question has the same passages in the same order in every mode.
    keys = ["model", "benchmark", "retriever", "k", "question"]
    orders = answers.groupby(keys)["shown"].nunique()
    assert orders.max() == 1


def test_shown_passages_are_those_of_the_inputs() -> None:
    answers = data.cached_answers(REPLICA).query("benchmark == 'NQ' and retriever == 'BM25'")
    inputs = pd.read_csv(REPLICA.outputs / "large" / "inputs.csv")
    ranked = inputs.groupby("question")["document"].agg(list)
    for row in answers.itertuples():
        assert set(row.shown) == set(ranked[row.question][: row.k])
        assert row.shown[row.relevant[0] - 1] == ranked[row.question][0]
    small = pd.read_csv(REPLICA.outputs / "inputs.csv")
    small = small[(small["benchmark"] == "NQ") & (small["retriever"] == "BM25")]
    pd.testing.assert_frame_equal(inputs.head(len(small)), small.reset_index(drop=True))


def test_missing_answers_are_named_with_what_to_do(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "thesis.yaml", tmp_path / "mine.yaml")
    with pytest.raises(FileNotFoundError, match=r"Mistral\.jsonl.*record\.py"):
        data.cached_answers(data.read_study(str(tmp_path / "mine.yaml")))


def test_own_labels_are_an_experiment_by_their_name() -> None:
    cells = REPLICA.cells("NQ", "gender")
    assert {cell.labels for cell in cells} == {"none", "gender"}
    assert all(cell.by_people for cell in cells)
    assert len(REPLICA.cells("NQ", "mixed", "placebo")) == 3 * 2 + 2  # they share one Vanilla


def test_readings_of_citations_are_nested() -> None:
    one, lists, every = (data.large_model_answers(REPLICA, it) for it in data.READINGS)
    assert (one["recall"] <= lists["recall"]).all()
    assert (lists["recall"] <= every["recall"]).all()
    assert (every["precision"] <= every["recall"]).all()
    assert (every["precision"] > 0).sum() == (every["recall"] > 0).sum()


def test_p_values_as_papers_report_them() -> None:
    p = pd.Series([float("nan"), 0.0009, 0.001, 0.25])
    assert data.p_as_text(p).tolist() == ["", "<0.001", "0.001", "0.250"]


# --- labels ---------------------------------------------------------------------------------------


def test_modes_show_nothing_the_truth_or_its_opposite() -> None:
    shown = [[PLAIN.shown(mode, group) for group in PLAIN.groups] for mode in MODES]
    assert shown == [[None, None], ["Human", "LLM"], ["LLM", "Human"]]


def test_names_replace_the_word_pool() -> None:
    path = project.root() / "data" / "attributes" / "author_labels.yaml"
    assert "names" not in prompts.read_labels(path)
    sets = prompts.read_labels(path, ["Ann Lee"])
    assert sets["names"].groups == {"Human": ("Ann Lee",), "LLM": ("AI",)}
    assert sets["gender"].shown("CF-informed", "female") == "male"


def test_a_pool_has_each_name_once(tmp_path: Path) -> None:
    text = "1. Ann Lee\n2. Lee, Bo\n3. Ann Lee\nand others"
    path = tmp_path / "names.jsonl"
    path.write_text("{}\n" + json.dumps({"answer": text}) + "\n", encoding="utf-8")
    assert prompts.read_names(path) == ["Ann Lee", "Lee Bo"]
    assert prompts.read_names(tmp_path / "missing.jsonl") == []


# --- prompts --------------------------------------------------------------------------------------


def test_a_prompt_shows_labels_only_where_they_are_announced() -> None:
    wording = prompts.read_prompts(REPLICA)
    texts = ("Ann left.", "Bo came.")
    plain = wording.answer("who left?", [prompts.Passage(text) for text in texts])
    roles = [message["role"] for message in plain]
    assert roles == ["system", *["user", "assistant"] * len(wording.examples), "user"]
    assert "written by" not in json.dumps(plain)
    assert "3. " not in plain[0]["content"]

    passages = [prompts.Passage(texts[0], "LLM"), prompts.Passage(texts[1], "Human")]
    groups = list(PLAIN.groups)
    labelled = wording.answer("who left?", passages, PLAIN.notice, lambda it, _: groups[it])
    assert labelled[0]["content"].endswith("3. Authors are given.")
    lines = (
        "Document [1] (Ann left.) (written by [LLM])\nDocument [2] (Bo came.) (written by [Human])"
    )
    assert lines in labelled[-1]["content"]
    for message in labelled:
        if message["role"] == "user":
            assert message["content"].count("(written by [") >= 2


def test_the_worked_examples_favour_neither_group() -> None:
    cited, shown = [], []
    for example in prompts.read_prompts(REPLICA).examples:
        groups = [passage["group"] for passage in example["passages"]]
        shown += groups
        numbers = citations(example["answer"], len(groups)).cited
        cited += [groups[number - 1] for number in numbers]
    assert cited.count(0) == cited.count(1) > 0
    assert shown.count(0) == shown.count(1)


@given(st.text(max_size=30), st.text(max_size=30))
def test_texts_of_others_are_not_taken_for_placeholders(passage: str, question: str) -> None:
    wording = prompts.Prompts(
        instruction="Answer.",
        instruction_labelled="Answer.",
        question="{documents} | {question}",
        paraphrase="Rewrite: {passage}",
        names="Names",
    )
    passage, question = f"{{question}} {passage}", f"{{documents}} {question}"
    content = wording.answer(question, [prompts.Passage(passage)])[-1]["content"]
    text, asked = " ".join(passage.split()), " ".join(question.split())
    assert content == f"Document [1] ({text}) | {asked}"
    assert wording.rewriting("a {passage}\nb")[0]["content"] == "Rewrite: a {passage} b"


def letters(text: str) -> str:
    """A text without white space and marks of bold, which typesetting changes."""
    return re.sub(r"[\s*]+", "", text)


def thesis_text() -> str:
    mirror = os.environ.get("EQUIPOISE_MIRROR", "")
    papers = sorted((Path(mirror).parent / "papers").glob("001_*.txt")) if mirror else []
    if not papers:
        pytest.skip("the papers' texts, which are not published here, are not next to the mirror")
    return papers[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", ["5.2", "5.6", "5.7", "5.8"])
def test_the_prompts_of_the_thesis_are_those_of_its_figures(figure: str) -> None:
    labels = prompts.read_labels(THESIS.labels)["plain"]
    lines = prompts.prompts_of_figures(prompts.read_prompts(THESIS), labels.notice)[figure]["text"]
    path = project.root() / "data" / "published" / "thesis" / f"figure-{figure}.csv"
    expected = pd.read_csv(path, dtype=str)["text"]
    assert list(lines) == list(expected)


@pytest.mark.upstream
@pytest.mark.parametrize("name", ["instruction", "instruction_labelled", "paraphrase", "names"])
def test_each_prompt_is_in_the_text_of_the_thesis(name: str) -> None:
    prompt = (project.root() / "data" / "prompts" / "thesis" / f"{name}.txt").read_text()
    assert letters(prompt).replace("{passage}", "{inputpassage}") in letters(thesis_text())


def test_a_prompt_of_the_thesis_is_one_message() -> None:
    sets = prompts.read_labels(THESIS.labels, ["Ann Lee"])
    assert sets["names"].notice == sets["plain"].notice
    passages = [prompts.Passage("one", "Ann Lee"), prompts.Passage("two", "AI")]
    wording = prompts.read_prompts(THESIS)
    (message,) = wording.answer("who", passages, sets["names"].notice)
    assert message["role"] == "user"
    assert message["content"].startswith("Instruction: Write a concise answer")
    assert message["content"].endswith("Question: who.")
