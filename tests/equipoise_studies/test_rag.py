"""Prompts, labels of authorship, citation probabilities and growing records of answers."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chat_server import Server, dies, fails, says
from equipoise.answer_modes import MODES
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import citation_rows, citations, score_answers
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies import recording, records
from equipoise_studies.attribution import answering as rag
from equipoise_studies.attribution import design, prompts
from equipoise_studies.attribution.authorship import LabelSet, read_label_sets, stable_generator
from equipoise_studies.attribution.marks import paired_t_bounds
from equipoise_studies.attribution.study import Study
from equipoise_studies.collections.natural_questions import read_questions
from equipoise_studies.systems.endpoint import Answer, Endpoint, EndpointError, Sampling

PLAIN = LabelSet("plain", {"Human": ("Human",), "LLM": ("LLM",)}, "Authors are given.")
GREEDY = Sampling(temperature=0, max_tokens=20)


def read_record(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    return recording.read_settings(path), read_answers(path)


# --- labels ---------------------------------------------------------------------------------------


def test_modes_show_nothing_the_truth_or_its_opposite() -> None:
    assert [[PLAIN.shown(mode, group) for group in PLAIN.groups] for mode in MODES] == [
        [None, None],
        ["Human", "LLM"],
        ["LLM", "Human"],
    ]


@given(
    st.sampled_from(MODES),
    st.sampled_from(["Human", "LLM"]),
    st.integers(0, 9),
    st.text(max_size=5),
)
def test_a_document_always_draws_the_same_label_of_the_group_that_is_shown(
    mode: str, group: str, seed: int, document: str
) -> None:
    names = LabelSet(
        "names",
        {"Human": ("Ann Lee", "Bo Ek", "Cy Oh"), "LLM": ("AI", "Bot")},
        "Authors are given.",
    )
    label = names.label(mode, group, seed, "q", document)
    assert label == names.label(mode, group, seed, "q", document)
    shown = names.shown(mode, group)
    assert label is None if shown is None else label in names.groups[shown]


def test_every_label_of_a_pool_is_drawn() -> None:
    pool = tuple(f"name {number}" for number in range(8))
    names = LabelSet("names", {"Human": pool, "LLM": ("AI",)}, "Authors are given.")
    assert {
        names.label("Informed", "Human", 1, "q", str(document)) for document in range(200)
    } == set(pool)


@pytest.mark.parametrize(
    "groups",
    [
        {"Human": ("Human",)},
        {"a": ("x",), "b": ()},
        {"a": ("x",), "b": ("x",)},
        {"a": ("x",), "b": ("y",), "c": ("z",)},
    ],
)
def test_two_groups_with_labels_of_their_own_are_wanted(groups: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="two groups"):
        LabelSet("bad", groups, "Authors are given.")


def test_unknown_modes_and_groups_are_named() -> None:
    with pytest.raises(ValueError, match="not 'Robot'"):
        PLAIN.shown("Informed", "Robot")
    with pytest.raises(ValueError, match="no mode 'Told'"):
        PLAIN.shown("Told", "Human")


def test_bad_label_files_are_refused_with_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "labels.yaml"
    path.write_text(
        "a: {notice: x, groups: {h: [A], l: [A]}}\n"
        "b: {groups: {}}\n"
        "c: {notice: x, groups: {h: A, l: [B]}}\n"
    )
    with pytest.raises(InputError) as caught:
        read_label_sets(path)
    assert [problem.column for problem in caught.value.problems] == ["a", "b", "c"]
    path.write_text("- a list\n")
    with pytest.raises(InputError, match="sets of labels by name"):
        read_label_sets(path)


def test_other_metadata_comes_as_a_small_table() -> None:
    sets = read_label_sets(project.data("attributes", "author_labels.yaml"))
    assert "names" not in sets  # its pool was not given
    assert [sets["gender"].label("CF-informed", group, 1) for group in sets["gender"].groups] == [
        "Man",
        "Woman",
    ]


# --- prompts --------------------------------------------------------------------------------------


def test_a_prompt_shows_labels_only_where_they_are_told() -> None:
    asked = STUDY.wording()
    plain = asked.answer("who left?", [prompts.Passage("Ann left."), prompts.Passage("Bo came.")])
    told = asked.answer(
        "who left?",
        [prompts.Passage("Ann left.", "LLM"), prompts.Passage("Bo came.", "Human")],
        PLAIN.notice,
        lambda group, _: list(PLAIN.groups)[group],
    )
    assert [message["role"] for message in plain] == [
        "system",
        *["user", "assistant"] * len(asked.examples),
        "user",
    ]
    assert "written by" not in json.dumps(plain)
    assert "3. " not in plain[0]["content"]
    assert told[0]["content"].endswith("3. Authors are given.")
    assert (
        "Document [1] (Ann left.) (written by [LLM])\nDocument [2] (Bo came.) (written by [Human])"
        in told[-1]["content"]
    )
    assert all(
        message["content"].count("(written by [") >= 2
        for message in told
        if message["role"] == "user"
    )
    with pytest.raises(ValueError, match="no passages"):
        asked.answer("who left?", [])


def test_the_worked_examples_favour_neither_group() -> None:
    cited: Counter[int] = Counter()
    shown: Counter[int] = Counter()
    for example in STUDY.wording().examples:
        found = citations(example.answer, len(example.passages)).cited
        cited.update(example.passages[number - 1][1] for number in found)
        shown.update(group for _, group in example.passages)
    assert cited[0] == cited[1] > 0
    assert shown[0] == shown[1]


def test_text_of_passages_and_questions_is_not_taken_for_a_placeholder() -> None:
    wording = prompts.Prompts(
        "Answer.", "{documents} | {question}", "Rewrite: {passage}", "Names", ()
    )
    asked = wording.answer("what is {documents}?", [prompts.Passage("{question}\nand\\1")])[-1][
        "content"
    ]
    assert asked == "Document [1] ({question} and\\1) | what is {documents}?"
    assert wording.rewriting("a {passage}\nb")[0]["content"] == "Rewrite: a {passage} b"


# --- order ----------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 5))
def test_the_relevant_passage_stands_at_each_place_equally_often(
    questions: int, documents: int, seed: int
) -> None:
    places = design.balanced_places(questions, documents, np.random.default_rng(seed))
    counts = np.bincount(places, minlength=documents)
    assert len(places) == questions
    assert counts.max() - counts.min() <= 1
    shown = design.placed("r", [str(number) for number in range(documents - 1)], int(places[0]))
    assert shown.index("r") == places[0]
    assert [name for name in shown if name != "r"] == [
        str(number) for number in range(documents - 1)
    ]


# --- citations and probabilities ------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 120), st.floats(0.01, 1)), max_size=6))
def test_the_probability_of_a_citation_is_that_of_its_digits(
    cited: list[tuple[int, float]],
) -> None:
    written: list[tuple[str, float | None]] = [("So it is", -2.0)]
    for number, probability in cited:
        digits = str(number)
        written += [(" [", -0.7)]
        written += [(digit, math.log(probability) / len(digits)) for digit in digits]
        written += [("]", -0.3)]
    text = "".join(token for token, _ in written)
    found = rag.citation_probabilities(text, written)
    assert [one.document for one in found] == [number for number, _ in cited]
    assert [one.probability for one in found] == pytest.approx(
        [probability for _, probability in cited]
    )


def test_missing_probabilities_are_none_and_counted() -> None:
    text = "Ann [2], not Bo [3]."
    tokens = [("Ann [", -0.1), ("2", None), ("], not Bo [", -0.2), ("3", -0.5), ("].", -0.1)]
    found = rag.citation_probabilities(text, tokens)
    assert [one.probability for one in found] == [None, pytest.approx(math.exp(-0.5))]
    other = rag.citation_probabilities(text, [("something else", -0.1)])
    assert [one.probability for one in other] == [None, None]
    assert rag.citation_probabilities("[99999999999999999999]", []) == []
    answers = pd.DataFrame(
        {
            "question": ["q"],
            "relevant": [(2,)],
            "documents": [3],
            "citations": [
                [{"document": one.document, "probability": one.probability} for one in found]
            ],
        }
    )
    assert citation_rows(answers)["probability"].isna().tolist() == [True, False]


# --- records --------------------------------------------------------------------------------------


def tasks(number: int) -> list[rag.Task]:
    return [
        rag.Task(
            {
                "question": f"q{i}",
                "mode": "Vanilla",
                "relevant_author": "Human",
                "nonrelevant_author": "LLM",
            },
            ("a", "b"),
            (2,),
            lambda i=i: [{"role": "user", "content": str(i)}],  # type: ignore[misc]
        )
        for i in range(number)
    ]


def cites(messages: Sequence[Mapping[str, str]], _: Sampling) -> Answer:
    return Answer(
        f"It is {messages[0]['content']} [2].",
        "stop",
        "m",
        "f",
        {"prompt_tokens": 5, "completion_tokens": 4},
    )


def record(path: Path, number: int, **changes: Any) -> int:
    settings = {"model": "m", "sha256": "0", "prompts": "p"} | changes
    return rag.record_answers(tasks(number), cites, path, settings, GREEDY)


def test_a_record_goes_on_where_it_stopped_even_within_a_line(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "r.jsonl"
    assert record(whole, 4) == 4
    lines = whole.read_bytes().splitlines(keepends=True)
    for cut in (
        0,
        10,
        len(lines[0]),
        len(lines[0]) + 7,
        len(b"".join(lines[:3])),
        len(b"".join(lines)) - 1,
    ):
        path.write_bytes(whole.read_bytes()[:cut])
        held = len(records.parted(path)[0])
        assert record(path, 4) == 4 - max(held - 1, 0)
        settings, answers = read_record(path)
        assert answers["question"].tolist() == ["q0", "q1", "q2", "q3"]
        assert settings["sampling"]["max_tokens"] == 20
    assert record(path, 4) == 0
    assert record(path, 6) == 2  # more questions enlarge it


@pytest.mark.parametrize("change", [{"model": "other"}, {"sha256": "1"}, {"prompts": "q"}])
def test_outputs_of_other_models_or_prompts_are_not_mixed(
    tmp_path: Path, change: dict[str, str]
) -> None:
    path = tmp_path / "r.jsonl"
    record(path, 2)
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        record(path, 4, **change)
    assert [problem.column for problem in caught.value.problems] == list(change)
    with pytest.raises(InputError, match="sampling"):
        rag.record_answers(
            tasks(4), cites, path, {"model": "m", "sha256": "0", "prompts": "p"}, Sampling(seed=9)
        )
    assert path.read_bytes() == before


def test_two_tasks_of_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one key"):
        rag.record_answers(tasks(2) * 2, cites, tmp_path / "r.jsonl", {}, GREEDY)


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        '{"record": "turn"}',
        '{"record": "answer", "key": {}, "shown": [], "relevant": [], "answer": 1, '
        '"citations": [], "seconds": 0.1}',
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(f'{{"record": "settings"}}\n{line}\n')
    with pytest.raises(InputError, match=r"r\.jsonl"):
        read_record(path)


def test_an_answer_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, 1)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(InputError, match="each answer once"):
        read_record(path)


@pytest.mark.parametrize("parallel", [1, 3])
def test_failures_are_told_and_the_rest_is_recorded(tmp_path: Path, parallel: int) -> None:
    path = tmp_path / "r.jsonl"

    def model(messages: Sequence[Mapping[str, str]], _: Sampling) -> Answer:
        if messages[0]["content"] in ("1", "4"):
            raise EndpointError("HTTP 500")
        return cites(messages, GREEDY)

    with pytest.raises(rag.IncompleteError, match="2 answers are missing"):
        rag.record_answers(tasks(6), model, path, {"model": "m"}, GREEDY, parallel=parallel)
    assert read_record(path)[1]["question"].tolist() == ["q0", "q2", "q3", "q5"]
    assert rag.record_answers(tasks(6), cites, path, {"model": "m"}, GREEDY, parallel=parallel) == 2


def test_a_dead_model_is_given_up(tmp_path: Path) -> None:
    asked = []

    def dead(messages: Sequence[Mapping[str, str]], _: Sampling) -> Answer:
        asked.append(messages)
        raise EndpointError("the connection failed")

    with pytest.raises(rag.IncompleteError, match="3 answers are missing"):
        rag.record_answers(tasks(50), dead, tmp_path / "r.jsonl", {}, GREEDY)
    assert len(asked) == 3


# --- an endpoint ----------------------------------------------------------------------------------


def logprobs(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": value} for token, value in pairs]}


def test_an_endpoint_that_fails_midway_loses_nothing(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    path = tmp_path / "r.jsonl"
    good = says("It is so [2].", logprobs=logprobs(("It is so [", -0.1), ("2", -0.5), ("].", 0.0)))
    server = serve(good, good, dies, fails(503), dies, fails(404, b"no such model"), good)
    endpoint = Endpoint(server.url, "tiny", timeout=2, tries=3, wait=0)
    with rag.endpoint_model(endpoint) as model:
        with pytest.raises(rag.IncompleteError, match=r"2 answers are missing[\s\S]*no such model"):
            rag.record_answers(tasks(5), model, path, {"model": "tiny"}, GREEDY)
        assert rag.record_answers(tasks(5), model, path, {"model": "tiny"}, GREEDY) == 2
    _, answers = read_record(path)
    assert answers["question"].tolist() == ["q0", "q1", "q4", "q2", "q3"]
    assert [one["probability"] for one in answers["citations"].str[0]] == pytest.approx(
        [math.exp(-0.5)] * 5, abs=1e-6
    )
    assert server.requests[0]["logprobs"] is True
    assert server.requests[0]["temperature"] == 0
    assert score_answers(answers)["recall"].tolist() == [1.0] * 5


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {},
        {"content": None},
        {"content": [{"token": 3}]},
        logprobs(("It is so [", -0.1), ("2", None), ("].", 0.0)),
        logprobs(("It is so [", -0.1), ("2", "high"), ("].", 0.0)),
        logprobs(("It is so [", -0.1), ("2", 0.5), ("].", 0.0)),
        logprobs(("It is so [", -0.1), ("2", True), ("].", 0.0)),
    ],
)
def test_a_server_without_good_probabilities_still_answers(
    odd: Any, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says("It is so [2].", logprobs=odd))
    with rag.endpoint_model(Endpoint(server.url, "tiny", timeout=2)) as model:
        rag.record_answers(tasks(1), model, tmp_path / "r.jsonl", {}, GREEDY)
    _, answers = read_record(tmp_path / "r.jsonl")
    assert answers["citations"].tolist() == [[{"document": 2, "probability": None}]]


# --- the recorded replica -------------------------------------------------------------------------


STUDY = Study.read("replica")


@pytest.mark.parametrize("name", STUDY.records)
def test_a_recording_holds_whole_cells_of_the_design(name: str) -> None:
    of = STUDY.samples[STUDY.records[name].sample]
    settings, answers = read_record(STUDY.answers(name))
    assert [len(sha256) for sha256 in settings["models"].values()] == [64]
    assert answers["gold"].map(len).ge(1).all()
    assert (answers["documents"] == answers["k"]).all()
    assert answers["relevant"].map(len).eq(1).all()
    asked = STUDY.records[name].experiments
    known = design.with_experiments(answers, STUDY)["experiments"]
    for benchmark, held in zip(answers["benchmark"], known, strict=True):
        assert set(held) & set(asked[benchmark])
    keys = [
        "benchmark",
        "retriever",
        "labels",
        "k",
        "mode",
        "relevant_author",
        "nonrelevant_author",
        "question",
    ]
    sizes = answers.groupby(keys[:-1]).size().groupby("relevant_author")
    assert (sizes.min() == sizes.max()).all()
    # a question has the same passages in the same order in every mode
    orders = answers.groupby(["benchmark", "retriever", "k", "question"])["shown"].nunique()
    assert (orders == 1).all()
    first = design.inputs("NQ", of.folder)
    ranked = first[first["retriever"] == "BM25"].groupby("question")["document"].agg(list)
    for row in answers[
        (answers["benchmark"] == "NQ") & (answers["retriever"] == "BM25")
    ].itertuples():
        assert set(row.shown) == set(ranked[row.question][: row.k])
        assert row.shown[row.relevant[0] - 1] == ranked[row.question][0]


def test_the_large_sample_begins_with_the_questions_of_the_small_one() -> None:
    small, large = (design.inputs("NQ", sample.folder) for sample in STUDY.samples.values())
    first = small[small["retriever"] == "BM25"].reset_index(drop=True)
    pd.testing.assert_frame_equal(large.head(len(first)), first)


def test_natural_questions_name_every_bad_line(tmp_path: Path) -> None:
    good: dict[str, Any] = {
        "question": "who",
        "answers": ["Ann"],
        "ctxs": [{"title": "A", "text": "B"}],
    }
    bad = [
        good | {"question": 3},
        good | {"answers": []},
        good | {"ctxs": []},
        good | {"ctxs": good["ctxs"] * 2},
    ]
    path = tmp_path / "nq.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, [good, *bad, "x"])).encode() + b"\n{"))
    with pytest.raises(InputError) as caught:
        read_questions(path)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5, 6, 7]
    path.write_bytes(gzip.compress(b"torn")[:-4])
    with pytest.raises(InputError, match="gzip"):
        read_questions(path)
    path.write_bytes(gzip.compress(b"\n"))
    with pytest.raises(InputError, match="empty"):
        read_questions(path)


def test_draws_depend_on_seed_and_words_alone() -> None:
    draws = [
        int(stable_generator(seed, *words).integers(2**40))
        for seed in (1, 2)
        for words in (("a", "b"), ("ab",))
    ]
    assert len(set(draws)) == 4


# --- bounds of t ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.booleans())
def test_t_lies_within_the_bounds_that_the_means_give(seed: int, units: int, binary: bool) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, units))
    if binary:
        first, second = first.round(), second.round()
    gaps = first - second
    if np.ptp(gaps) == 0:
        return
    t = abs(stats.ttest_rel(first, second).statistic)
    mean_absolute = np.abs(gaps).mean()
    for known in (None, mean_absolute):
        low, high = paired_t_bounds(
            first.mean(), second.mean(), units, mean_absolute=known, binary=binary
        )
        assert low <= t * (1 + 1e-9) + 1e-9
        assert t <= high * (1 + 1e-9) + 1e-9
    if binary:
        low, high = paired_t_bounds(
            first.mean(), second.mean(), units, mean_absolute=mean_absolute, binary=True
        )
        assert float(low) == pytest.approx(t, rel=1e-6, abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 2), st.booleans())
def test_bounds_of_t_hold_for_rounded_means(
    seed: int, units: int, digits: int, binary: bool
) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, units))
    if binary:
        first, second = first.round(), second.round()
    gaps = first - second
    if np.ptp(gaps) == 0:
        return
    t = abs(stats.ttest_rel(first, second).statistic)
    means, half_unit = (
        (round(float(side.mean()), digits) for side in (first, second)),
        0.5 * 10.0**-digits,
    )
    a, b = means
    for known in (None, round(float(np.abs(gaps).mean()), digits)):
        low, high = paired_t_bounds(
            a, b, units, mean_absolute=known, binary=binary, half_unit=half_unit
        )
        assert low <= t * (1 + 1e-9) + 1e-9
        assert t <= high * (1 + 1e-9) + 1e-9


def test_bounds_of_t_are_no_wider_than_the_rounding_asks() -> None:
    # a = .5 and b = .3, each off by .05 at most: a difference of .1 to .3; 11 pairs
    low, high = paired_t_bounds(0.5, 0.3, 11, half_unit=0.05)
    assert float(low) == pytest.approx(0.1 * np.sqrt(10 / (0.9 - 0.1**2)))
    assert high == np.inf
    low, high = paired_t_bounds(0.5, 0.3, 11, mean_absolute=0.4, half_unit=0.05)
    assert float(low) == pytest.approx(0.1 * np.sqrt(10 / (0.45 - 0.1**2)))
    assert float(high) == pytest.approx(0.3 * np.sqrt(10 / (0.35**2 - 0.3**2)))


def test_bounds_of_t_refuse_what_is_no_mean() -> None:
    with pytest.raises(ValueError, match="two units"):
        paired_t_bounds(0.5, 0.4, 1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_t_bounds(50, 40, 500)
