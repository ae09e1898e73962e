"""The recording script of chapter 5, and a small study recorded by a local server."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from chat_server import Server, body_of, fails, request_of, send
from equipoise.measures.attribution import bias_table, score_answers
from equipoise_compendium import project
from equipoise_studies.attribution import data, prompts
from upstream import skip_without

SCRIPT = project.root() / "data" / "outputs" / "attribution" / "record.py"
QUESTIONS, DEPTH = 2, 5


def script() -> ModuleType:
    spec = spec_from_file_location("record_attribution", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# --- the committed files --------------------------------------------------------------------------


@pytest.mark.upstream
def test_the_script_asks_what_the_committed_answers_are_of() -> None:
    skip_without("nqoracle", "cocktail")
    record = script()
    study = data.read_study("replica")
    names = prompts.read_names(study.outputs / "names.jsonl")
    labels = prompts.read_labels(study.labels, names)
    for sample_name, sample in study.samples.items():
        asking = {}
        for name in sample.drawn:
            questions = record.drawn_questions(study, name, sample)
            if not questions.rewritten:
                path = study.outputs / sample.folder / "paraphrases.jsonl"
                lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
                tasks = record.paraphrase_tasks(study, name, sample, questions)
                recorded = [line["document"] for line in lines]
                assert [task.shown[0] for task in tasks] == recorded[: len(tasks)]
                for line in lines:
                    if line["finish"] == "stop":
                        questions.rewritten[line["document"]] = line["answer"].strip()
            asking[name] = record.Asking(study, name, sample, questions, labels)
        for record_name, asked in study.records.items():
            if asked.sample != sample_name:
                continue
            path = study.outputs / f"{record_name}.jsonl"
            lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
            tasks = record.answer_tasks(study, asked, asking)
            by_key = {tuple(task.key.values()): task for task in tasks}
            assert len(by_key) == len(tasks) == len(lines)
            for line in lines:
                task = by_key[tuple(line[name] for name in tasks[0].key)]
                assert list(task.shown) == line["shown"]
                assert list(task.relevant) == line["relevant"]
                assert list(task.about["gold"]) == line["gold"]
            # A longer prompt has more tokens: the texts are those that were shown.
            pairs = []
            for line in lines:
                messages = by_key[tuple(line[name] for name in tasks[0].key)].messages()
                letters = sum(len(message["content"]) for message in messages)
                pairs.append(letters / line["prompt_tokens"])
            assert max(pairs) < 1.3 * min(pairs)


# --- questions of your own ------------------------------------------------------------------------


def own_questions(retriever: int) -> list[dict[str, Any]]:
    """Questions with one relevant passage, at a place that depends on the retriever.

    The last two are not usable: one has two relevant passages, one has too few passages.
    """
    draw = random.Random(retriever)  # noqa: S311
    questions = []
    for number in range(QUESTIONS + 2):
        texts = [f"Passage {place} on lake {number} is about fish." for place in range(DEPTH)]
        relevant = draw.randrange(DEPTH)
        texts[relevant] = f"Lake {number} is called Ura{number}."
        marks = [place == relevant for place in range(DEPTH)]
        if number == QUESTIONS:
            marks[relevant - 1] = True
        n_passages = DEPTH - 1 if number > QUESTIONS else DEPTH
        passages = list(zip(texts, marks, strict=True))[:n_passages]
        text = f"what is lake {number} called"
        questions.append({"text": text, "answers": [f"Ura{number}"], "passages": passages})
    return questions


def pyserini(retriever: int) -> dict[str, Any]:
    """As Pyserini's convert_trec_run_to_dpr_retrieval_run --store-raw writes them."""
    content = {}
    for number, it in enumerate(own_questions(retriever)):
        contexts = []
        for text, mark in it["passages"]:
            contexts.append({"docid": "x", "text": f'"Lakes"\n{text}', "has_answer": mark})
        asked = {"question": it["text"], "answers": it["answers"], "contexts": contexts}
        content[str(number)] = asked
    return content


def ms_marco() -> dict[str, Any]:
    """As MS MARCO QA is published: one object per field."""
    columns: dict[str, Any] = {"query": {}, "query_id": {}, "answers": {}, "passages": {}}
    for number, it in enumerate(own_questions(0)):
        passages = [{"passage_text": text, "is_selected": int(m)} for text, m in it["passages"]]
        values = (it["text"], number, it["answers"], passages)
        for name, value in zip(columns, values, strict=True):
            columns[name][str(number)] = value
    return columns


def answer(handler: BaseHTTPRequestHandler) -> None:
    """Rewrite a passage, list names, or cite the passage that names the lake, at times [1] too."""
    asked = request_of(handler)["messages"][-1]["content"]
    if "random list of 100" in asked:
        return send(handler, body_of("Ann Lee, Bo Ek, Cy Oh"))
    if "paraphrase" in asked:
        return send(handler, body_of("Again: " + asked.rpartition("Passage: ")[2]))
    number, name = re.findall(r"Document \[(\d+)\] ?\([^\n]*called (Ura\d+)", asked)[0]
    text = f"It is {name} [{number}]{'[1]' if len(asked) % 3 == 0 else ''}."
    tokens = [{"token": part, "logprob": -0.1} for part in re.findall(r"\d+|\D+", text)]
    return send(handler, body_of(text, logprobs={"content": tokens}))


class LimitedServer(Server):
    """Answers two of three requests; the others it rejects for a moment."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.rejected = 0
        super().__init__([self._answer])

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        if next(self.numbers) % 3 == 0:
            self.rejected += 1
            return fails(429, b"{}", Retry_After_Ms="5", Content_Type="application/json")(handler)
        time.sleep(0.002)
        return answer(handler)


@pytest.fixture
def server() -> Iterator[LimitedServer]:
    limited = LimitedServer()
    yield limited
    limited.close()


def own_config(folder: Path, url: str) -> Path:
    """The thesis's config with other paths and sizes."""
    for number, retriever in enumerate(("bm25", "unicoil", "tct-colbert")):
        path = folder / f"nq-{retriever}.json"
        path.write_text(json.dumps(pyserini(number)), encoding="utf-8")
    (folder / "dev_v2.1.json").write_text(json.dumps(ms_marco()), encoding="utf-8")
    committed = project.root() / "data" / "studies" / "attribution" / "thesis.yaml"
    config = yaml.safe_load(committed.read_text(encoding="utf-8"))
    for model in config["models"].values():
        model["url"] = url
    drawn = {"NQ": QUESTIONS, "MS MARCO": QUESTIONS}
    config["samples"]["all"] |= {"drawn": drawn, "rewritten": QUESTIONS}
    for asked in config["records"].values():
        asked["questions"] = QUESTIONS
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(config | {"documents": DEPTH, "cut_offs": [2]}))
    return path


def outputs(folder: Path) -> dict[str, list[Any]]:
    """The lines of each file, without the time of each answer."""
    files = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        files[path.name] = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
    return files


@pytest.mark.skipif(not find_spec("openai"), reason="needs the package openai (extra models)")
def test_a_small_study_is_recorded_killed_and_continued(
    tmp_path: Path, server: LimitedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    config = own_config(tmp_path, server.url)
    command = [sys.executable, str(SCRIPT), "--config", str(config)]
    answers = tmp_path / "recorded" / "Mistral.jsonl"
    with subprocess.Popen(command) as process:
        while not answers.is_file() or answers.read_bytes().count(b"\n") < 5:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    before = answers.read_bytes()
    answers.write_bytes(before[:-7])  # a torn line
    subprocess.run(command, check=True)
    assert answers.read_bytes().startswith(b"".join(before.splitlines(keepends=True)[:-1]))
    recorded = outputs(tmp_path / "recorded")
    requests = len(server.requests)
    subprocess.run(command, check=True)
    assert len(server.requests) == requests  # nothing is missing
    assert outputs(tmp_path / "recorded") == recorded
    assert server.rejected > 10
    assert set(server.authorisations) == {"Bearer none", "Bearer sk-test"}

    for line in recorded["Mistral.jsonl"][1:]:
        for citation in line["citations"]:  # the logarithm of every token is -0.1
            assert citation["probability"] == pytest.approx(math.exp(-0.1), abs=1e-6)

    study = data.read_study(str(config))
    scored = score_answers(data.cached_answers(study))
    assert set(scored["model"]) == {"Mistral", "Llama3", "GPT-4"}
    assert (scored["recall"] == 1).all()
    assert scored["precision"].nunique() == 2
    table = bias_table(data.in_experiment(scored, "mixed"), ["benchmark", "model"], resamples=9)
    assert (table["questions"] == QUESTIONS).all()
    for name, asked in study.records.items():
        cells = [study.cells(benchmark, *them) for benchmark, them in asked.experiments.items()]
        assert len(recorded[f"{name}.jsonl"]) == 1 + QUESTIONS * sum(map(len, cells))
    limited = tmp_path / "limited"
    subprocess.run([*command, "--output", str(limited), "--limit", "2"], check=True)
    for name, lines in outputs(limited).items():
        assert lines == recorded[name][:3]
