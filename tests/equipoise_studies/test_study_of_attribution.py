"""Chapter 5 from a config: a tiny stand-in of its formats, from questions to the report."""

import itertools
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from chat_server import Server, body_of, dies, fails, request_of, send
from equipoise.measures.attribution import bias_table, score_answers
from equipoise.problems import InputError
from equipoise_cli import main
from equipoise_compendium import build, project
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE
from equipoise_studies.attribution import design
from equipoise_studies.attribution.authorship import read_label_sets
from equipoise_studies.attribution.benchmarks import given_lists
from equipoise_studies.attribution.prompts import Passage, prompts_of_figures
from equipoise_studies.attribution.recorded import recorded_answers
from equipoise_studies.attribution.study import Study
from equipoise_studies.systems import endpoint
from killed_studies import KilledStudy, end_as_uninterrupted
from killed_writers import files

THESIS = yaml.safe_load(
    (project.root() / "data" / "studies" / "attribution" / "thesis.yaml").read_text()
)
QUESTIONS, DEPTH = 6, 5


def lists(form: str, retriever: int) -> list[dict[str, Any]]:
    """Questions of a form, each with one relevant passage, whose place hangs on the retriever."""
    draw, found = random.Random(retriever), []  # noqa: S311
    for number in range(QUESTIONS + 2):
        texts = [f"Passage {place} on lake {number} tells of fish." for place in range(DEPTH + 1)]
        relevant = draw.randrange(DEPTH)
        texts[relevant] = f"Lake {number} is called Ura{number}."
        marks = [int(place == relevant) for place in range(DEPTH + 1)]
        marks[0 if relevant else 1] += (
            number == QUESTIONS
        )  # two relevant ones: not a question of this study
        title = f"Lake {number}"
        passages = {
            "dpr": [
                {"title": title, "text": text, "has_answer": bool(m)}
                for text, m in zip(texts, marks, strict=True)
            ],
            "ms-marco-qa": [
                {"passage_text": text, "is_selected": m}
                for text, m in zip(texts, marks, strict=True)
            ],
            "questions": [
                {"text": text, "relevant": m} for text, m in zip(texts, marks, strict=True)
            ],
        }[form]
        few = passages[: DEPTH - 1] if number > QUESTIONS else passages  # too few
        key = {"query_id": number} if form == "ms-marco-qa" else {"id": f"q{number}"}
        names = (
            ("query", "answers", "passages")
            if form == "ms-marco-qa"
            else ("question", "answers", "passages")
        )
        line: dict[str, Any] = key | dict(
            zip(names, (f"what is lake {number} called", [f"Ura{number}"], few), strict=True)
        )
        found.append(
            {
                ("ctxs" if form == "dpr" and name == "passages" else name): one
                for name, one in line.items()
            }
        )
    return found


def write_lists(path: Path, form: str, retriever: int = 0) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lists(form, retriever)))


def pyserini_object(retriever: int) -> dict[str, Any]:
    """Questions as Pyserini's convert_trec_run_to_dpr_retrieval_run --store-raw writes them."""
    questions = {}
    for number, line in enumerate(lists("dpr", retriever)):
        contexts = []
        for place, passage in enumerate(line["ctxs"]):
            contexts.append(
                {
                    "docid": f"{number}-{place}",
                    "score": f"{20 - place}.5",
                    "text": f'"{passage["title"]}"\n{passage["text"]}',
                    "has_answer": passage["has_answer"],
                }
            )
        asked = {"question": line["question"], "answers": line["answers"], "contexts": contexts}
        questions[str(number)] = asked
    return questions


def msmarco_columns() -> dict[str, Any]:
    """Questions as MS MARCO QA is published: an object for each field."""
    columns: dict[str, Any] = {"query": {}, "query_id": {}, "answers": {}, "passages": {}}
    for number, line in enumerate(lists("ms-marco-qa", 0)):
        for name, values in columns.items():
            values[str(number)] = line[name]
    # A question that nobody could answer has no relevant passage.
    unanswered = {"passage_text": "Nothing of use.", "is_selected": 0}
    columns["query"]["99"] = "who is it"
    columns["query_id"]["99"] = 99
    columns["answers"]["99"] = ["No Answer Present."]
    columns["passages"]["99"] = [unanswered] * DEPTH
    return columns


def answers(handler: BaseHTTPRequestHandler, request: Mapping[str, Any]) -> None:
    """Rewrite a passage, name people, or cite the passage on the lake, at times the first too."""
    asked = request["messages"][-1]["content"]
    if "random list of 100" in asked:
        return send(handler, body_of("Ann Lee, Bo Ek, Cy Oh"))
    if "paraphrase" in asked:
        return send(handler, body_of("Again: " + asked.rpartition("Passage: ")[2]))
    places = re.findall(r"Document \[(\d+)\] \([^\n]*called (Ura\d+)", asked)
    number, name = places[0] if places else ("1", "?")
    also = "[1]" if len(asked) % 3 == 0 else ""
    text = f"It is {name} [{number}]{also}."
    token = [{"token": part, "logprob": -0.1} for part in re.findall(r"\d+|\D+", text)]
    return send(handler, body_of(text, logprobs={"content": token}))


class Model(Server):
    """A server that answers each request by what it asks."""

    def __init__(self) -> None:
        super().__init__([lambda handler: answers(handler, request_of(handler))])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for number, retriever in enumerate(("bm25", "unicoil", "tct-colbert")):
        path = tmp_path / f"nq-{retriever}.json"
        path.write_text(json.dumps(pyserini_object(number), indent=4))
    (tmp_path / "dev_v2.1.json").write_text(json.dumps(msmarco_columns()))
    server = Model()
    (tmp_path / "url").write_text(server.url)
    yield tmp_path
    server.close()


def config_in(folder: Path, **changes: Any) -> Path:
    """The thesis's config at a small size, its endpoints here."""
    small: dict[str, Any] = json.loads(json.dumps(THESIS))
    for model in small["models"].values():
        model |= {"url": (folder / "url").read_text(), "parallel": 1}
        model.pop("key_variable", "")  # of a server on this machine
    small["samples"]["all"] |= {
        "drawn": {"NQ": QUESTIONS, "MS MARCO": QUESTIONS},
        "rewritten": QUESTIONS,
    }
    for record in small["records"].values():
        record["questions"] = QUESTIONS
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(small | {"documents": DEPTH, "cut_offs": [2]} | changes))
    return path


def run(config: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        main, ["study", "attribution", "--config", str(config), *options], catch_exceptions=False
    )
    return result.exit_code, result.output


def one_record(**changes: Any) -> dict[str, Any]:
    asked = {
        "sample": "all",
        "model": "GPT-4",
        "experiments": {"NQ": ["mixed", "placebo"]},
        "questions": QUESTIONS,
    }
    return {"GPT-4": asked | changes}


def as_large_as_the_benchmarks(inputs: Path) -> None:
    """Have a draw count as many questions in its files as the thesis's benchmarks have."""
    drawn = json.loads(inputs.read_text())
    counts = drawn["benchmarks"]
    counts["NQ"]["in files"] = dict.fromkeys(("BM25", "uniCOIL", "TCT-ColBERT"), 3610)
    assert counts["MS MARCO"]["in files"] == {"Bing": 9}
    counts["MS MARCO"]["in files"] = {"Bing": 101_093}
    inputs.write_text(json.dumps(drawn))


def test_a_study_is_recorded_by_an_endpoint_without_weights_and_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_in(folder)
    code, told = run(config, "--dry-run")
    assert code == 0
    assert "all, questions with their passages: 0 of 12 questions recorded" in told
    assert "all, paraphrases, by Llama3 (calls: 60," in told
    assert "USD at most" in told
    assert not (folder / "recorded").exists()
    code, told = run(config)
    assert code == 0, told
    study = Study.read(str(config))
    scored = score_answers(recorded_answers(study, study.answered()))
    in_place = "GPT-4 (gpt-4-0613 in its place)"
    assert set(scored["model"]) == {"Mistral", "Llama3", in_place}
    assert (scored["recall"] == 1).all()
    # modes 6, mixed 6, same label 4, names 4 and the placebo 2 of one k; retrievers 3 each,
    # documents 3 a cut-off
    cells = {"NQ": 22 + 2 * 3 + 3, "MS MARCO": 22 + 3}
    assert scored.groupby("benchmark").size().to_dict() == {
        name: 3 * QUESTIONS * n for name, n in cells.items()
    }
    # Each retriever is asked with its own passages, the relevant one where it put that.
    for number, retriever in enumerate(("BM25", "uniCOIL", "TCT-ColBERT")):
        questions = pyserini_object(number)
        rows = scored[(scored["retriever"] == retriever) & (scored["benchmark"] == "NQ")]
        for row in rows[rows["k"] == DEPTH].itertuples():
            marks = [passage["has_answer"] for passage in questions[row.question]["contexts"]]
            assert sum(marks[:DEPTH]) == 1
            assert row.relevant == (marks.index(True) + 1,)
            assert len(row.shown) == row.k
    _, again = run(config)
    assert "not the thesis's, and so a replica (9 questions in the file of MS MARCO by" in again
    assert f"GPT-4: {QUESTIONS * sum(cells.values()):,} of" in again
    # the notebook compares with the printed cells
    for name in (VARIANT_VARIABLE, REPORT_FOLDER_VARIABLE, "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "")
    # eight questions are not the benchmark, whatever the config says
    assert str(study.basis) == "replica"
    assert "8 questions in the file of NQ by BM25, where NQ has 3,610" in study.about()
    as_large_as_the_benchmarks(study.record / "inputs.json")
    assert str(study.basis) == "recomputed"
    (folder / "report").mkdir()
    source = project.root() / "notebooks" / "thesis_ch5_attribution.ipynb"
    settings = {"study": str(config), "resamples": 99}
    assert build.execute(str(source), settings, str(folder / "report")) == ("", "")
    manifest = json.loads((folder / "report" / "manifest.json").read_text())
    found = {artefact["artefact"]: artefact for artefact in manifest["artefacts"]}
    for number in range(1, 16):
        artefact = found[f"thesis/table-5.{number}"]
        printed = pd.read_csv(
            project.root() / "data" / "published" / "thesis" / f"table-5.{number}.csv", dtype=str
        )
        assert artefact["basis"] == "recomputed", number
        assert artefact["cells"] > len(printed)
        assert artefact["differences"], number  # it is another model
    assert found["thesis/figure-5.9"]["basis"] == "derived"
    recall = [one for one in found["thesis/table-5.1"]["differences"] if one["column"] == "Recall"]
    # The rows of a model that another one stands in for are empty, and its own are shown below.
    assert {(one["ours"], "GPT-4" in one["row"]) for one in recall} == {("100", False), ("", True)}
    shown = pd.read_csv(folder / "report" / "tables" / "thesis-table-5.1.csv")
    assert (shown.loc[shown["model"] == in_place, "Recall"] == 100).all()
    assert (shown["model"] == in_place).sum() == 6
    assert "gpt-4-0613 is another model than gpt-4-0314" in found["thesis/table-5.1"]["data"]
    assert "EM" in {
        one["column"] for one in found["thesis/table-5.1"]["differences"]
    }  # where 1 is the most


def test_labels_of_other_authors_are_an_experiment_by_their_name(folder: Path) -> None:
    labels = folder / "labels.yaml"
    fair = "Do not let it change which documents you cite."
    own = {
        "notice": f"Some are by Ann, others by Bo. {fair}",
        "groups": {"Ann": ["Ann"], "Bo": ["Bo"]},
    }
    there = yaml.safe_load(
        (project.root() / "data" / "attributes" / "author_labels.yaml").read_text()
    )
    labels.write_text(yaml.safe_dump(there | {"indifferent": own}))
    record = one_record(experiments={"NQ": ["mixed", "gender", "indifferent"]}, rewritten=3)
    config = config_in(folder, records=record, labels="labels.yaml", stands_for="replica")
    code, told = run(config)
    assert code == 0, told
    study = Study.read(str(config))
    scored = score_answers(recorded_answers(study, study.answered()))
    told_of = design.of_experiment(scored, "indifferent").groupby("labels").size().to_dict()
    assert told_of == {"none": QUESTIONS, "indifferent": 2 * QUESTIONS}
    asked = [task for task in design.tasks(study, "GPT-4") if task.key["labels"] == "indifferent"]
    for task in asked:
        (message,) = task.messages()
        first, _, last = message["content"].partition("\n\nSearch Results:")
        assert first.startswith("Instruction: Write a concise answer")
        assert first.endswith(f"3. {own['notice']}")
        relevant = f"Document [{task.relevant[0]}]"
        line = next(line for line in last.splitlines() if line.startswith(relevant))
        assert line.endswith(
            f"(written by [{'Ann' if task.key['mode'] == 'Informed/CF-informed' else 'Bo'}])"
        )
    for experiment in ("gender", "indifferent"):
        part = design.of_experiment(scored, experiment)
        biases = bias_table(part, ["benchmark", "model", "retriever", "k"], resamples=9)
        assert set(biases["quantity"]) == {"CAS", "CAB"}
    rewritten = scored[scored["relevant_author"] == "LLM"]
    assert rewritten["question"].nunique() == 3


def test_what_a_config_asks_and_the_data_lack_is_refused(folder: Path) -> None:
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": QUESTIONS + 1}}
    code, told = run(config_in(folder, samples={"all": sample}, records=one_record()))
    assert code == 2
    assert f"{QUESTIONS + 1} questions of NQ by BM25; there are {QUESTIONS}" in told
    sample |= {"drawn": {"NQ": QUESTIONS}, "rewritten": 2}
    code, told = run(config_in(folder, samples={"all": sample}, records=one_record()))
    assert code == 2
    assert (
        "2 questions whose rewritten passages keep their part, wanted 6, as the config asks" in told
    )
    (folder / "nq-bm25.json").unlink()
    code, told = run(
        config_in(folder, samples={"all": sample | {"folder": "else"}}, records=one_record())
    )
    assert code == 2
    assert "nq-bm25.json" in told


@pytest.mark.parametrize("good", [1, 9, 40])
def test_a_study_that_is_interrupted_goes_on(
    folder: Path, good: int, serve: Callable[..., Server]
) -> None:
    """After the names, among the paraphrases, among the answers."""
    record = one_record(experiments={"NQ": ["mixed", "names"]})
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": QUESTIONS}}
    changes: dict[str, Any] = {
        "samples": {"all": sample | {"rewritten": QUESTIONS}},
        "records": record,
    }
    config = config_in(folder, **changes)
    with pytest.raises(FileNotFoundError, match="not recorded"):
        recorded_answers(Study.read(str(config)), ["GPT-4"])
    server = serve(fails(404, b"out of credit"))
    server.script = [lambda handler: answers(handler, request_of(handler))] * (
        good + 2
    ) + server.script
    text = config.read_text()
    config.write_text(text.replace((folder / "url").read_text(), server.url))
    code, told = run(config)
    assert code == 2
    assert "out of credit" in told
    config.write_text(text)
    code, told = run(config)
    assert code == 0, told
    assert len(recorded_answers(Study.read(str(config)), ["GPT-4"])) == QUESTIONS * (6 + 4)


def test_a_record_of_other_files_prompts_or_models_is_neither_taken_nor_written_over(
    folder: Path,
) -> None:
    record = one_record(experiments={"NQ": ["placebo"]})
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": QUESTIONS}, "rewritten": 0}
    changes: dict[str, Any] = {"samples": {"all": sample}, "records": record}
    code, told = run(config_in(folder, **changes))
    assert code == 0, told
    kept = {path.name: path.read_bytes() for path in (folder / "recorded").iterdir()}
    other = THESIS["models"]["GPT-4"] | {"url": (folder / "url").read_text(), "name": "gpt-5"}
    for change, said in [
        ({"answer_tokens": 7}, "sampling"),
        ({"seed": 1}, "seed"),
        ({"models": THESIS["models"] | {"GPT-4": other}}, "models"),
    ]:
        code, told = run(config_in(folder, **changes | change))
        assert code == 2
        assert said in told
    write_lists(folder / "nq-bm25.json", "dpr", 9)
    code, told = run(config_in(folder, **changes))
    assert code == 2
    assert "other questions or files" in told
    assert kept == {path.name: path.read_bytes() for path in (folder / "recorded").iterdir()}


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "none in the form GGUF"), (b"<html>", "GGUF"), (None, "--models")]
)
def test_weights_that_are_none_are_refused(folder: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (folder / "tiny.gguf").write_bytes(content)
    models = THESIS["models"] | {
        "GPT-4": {"run_by": "llama.cpp", "weights": "tiny.gguf", "in_place_of": "gpt-4-0314"}
    }
    code, told = run(
        config_in(folder, models=models, records=one_record()), "--models", str(folder)
    )
    assert code == 2
    assert said in told
    assert not (folder / "recorded").exists()


def test_an_endpoint_that_refuses_is_named(folder: Path, serve: Callable[..., Server]) -> None:
    server = serve(fails(404, b"no such model"))
    model = {"run_by": "endpoint", "url": server.url, "name": "x", "in_place_of": "gpt-4-0314"}
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": QUESTIONS}, "rewritten": 0}
    record = one_record(experiments={"NQ": ["placebo"]}, model="dead")
    config = config_in(
        folder, models=THESIS["models"] | {"dead": model}, samples={"all": sample}, records=record
    )
    code, told = run(config)
    assert code == 2
    assert "no such model" in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"writer": "nobody"}, "no model nobody"),
        (
            {
                "records": {
                    "x": {
                        "sample": "all",
                        "model": "GPT-4",
                        "experiments": {"TREC": []},
                        "questions": 3,
                    }
                }
            },
            "no quest",
        ),
        (
            {
                "records": {
                    "x": {
                        "sample": "all",
                        "model": "GPT-4",
                        "experiments": {"NQ": ["sex"]},
                        "questions": 3,
                    }
                }
            },
            "sex",
        ),
        ({"benchmarks": {"HotpotQA": {"retrievers": ["BM25"]}}}, "no benchmark at hand HotpotQA"),
        ({"models": {"x": {"run_by": "endpoint"}}}, "has a url and a name"),
        ({"models": {"x": {"run_by": "llama.cpp"}}}, "wants weights"),
        (
            {"models": {"x": {"run_by": "endpoint", "url": "http://a:b@c/", "name": "n"}}},
            "plain http",
        ),
        ({"documents": 0}, "at least 1"),
    ],
)
def test_a_bad_config_is_refused_by_its_place(
    folder: Path, changes: dict[str, Any], said: str
) -> None:
    code, told = run(config_in(folder, **changes), "--dry-run")
    assert code == 2
    assert said in told


@pytest.mark.parametrize("form", ["questions", "dpr", "ms-marco-qa"])
def test_lists_of_one_relevant_passage_are_read_and_bad_lines_named(
    form: str, tmp_path: Path
) -> None:
    path = tmp_path / "q.jsonl"
    write_lists(path, form)
    found = given_lists("own", {"any": path}, form, DEPTH)
    assert len(found.questions) == QUESTIONS
    wanted = [line.get("question", line.get("query")) for line in lists(form, 0)][:QUESTIONS]
    assert found.questions["text"].tolist() == wanted
    for question, documents in found.retrieved["any"].items():
        assert len(documents) == DEPTH
        number = question.removeprefix("q")
        assert found.passages[documents[0]].endswith(f"Lake {number} is called Ura{number}.")
    lines = path.read_text().splitlines()
    good = json.loads(lines[0])
    marks = {"dpr": "has_answer", "ms-marco-qa": "is_selected", "questions": "relevant"}[form]
    passages = "ctxs" if form == "dpr" else "passages"
    bad = [
        good | {"answers": []},
        good | {passages: [good[passages][0] | {marks: 2}]},
        {"question": "who"},
        [1],
    ]
    path.write_text("\n".join([lines[0], *map(json.dumps, bad), "x", lines[0]]))
    with pytest.raises(InputError) as caught:
        given_lists("own", {"any": path}, form, DEPTH)
    assert [problem.line for problem in caught.value.problems] == [None, 2, 3, 4, 5, 6]


def test_committed_configs_are_read_and_the_replica_is_recorded() -> None:
    study = Study.read("replica")
    assert study.basis == "replica"
    result = CliRunner().invoke(main, ["study", "attribution", "--dry-run"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    for name, asked in study.records.items():
        cells = [
            cell for of, several in asked.experiments.items() for cell in study.cells(of, *several)
        ]
        wanted = sum(design.questions_of(asked, cell) for cell in cells)
        assert f"{name}: {wanted:,} of {wanted:,} answers recorded" in result.output
    thesis = Study.read("thesis")
    assert thesis.basis == "recomputed"
    printed = pd.read_csv(project.root() / "data" / "published" / "thesis" / "table-5.9.csv")
    assert set(thesis.records) == set(printed["model"])
    assert set(printed["retriever"]) <= set(thesis.benchmarks["NQ"].found_by)
    with pytest.raises(InputError, match="replica, thesis"):
        Study.read("another")


def recorded_in(folder: Path) -> dict[str, Any]:
    """The files of a record, without the time that each answer took, nor what was set aside."""
    record: dict[str, Any] = files(folder)
    for name in list(record):
        if name.endswith(".jsonl"):
            lines = [json.loads(line) for line in record[name].splitlines()]
            # Several are asked at a time, and whichever is answered first is written first.
            for line in lines:
                line["seconds"] = 0
                # A record of names or paraphrases has these times too, and so another digest.
                for file in [file for file in line.get("inputs", {}) if file.endswith(".jsonl")]:
                    del line["inputs"][file]
            record[name] = sorted(json.dumps(line, sort_keys=True) for line in lines)
    return record


def test_a_study_killed_at_each_kind_of_change_ends_as_one_that_is_not(folder: Path) -> None:
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": 3}, "rewritten": 3}
    sample["folder"] = "out/recorded"
    asked = one_record(experiments={"NQ": ["mixed", "names"]}, questions=3)
    changes: dict[str, Any] = {"samples": {"all": sample}, "names_by": "Llama3"}
    config = config_in(folder, records=asked, record="out/recorded", **changes)
    study = KilledStudy(folder / "out")
    command = ["study", "attribution", "--config", str(config)]
    # Inputs in three files, names, paraphrases, answers, and what was left unfinished.
    end_as_uninterrupted(study, command, recorded_in, at_least=3 + 3 + 1)


# --- prompts, word by word ------------------------------------------------------------------------


def letters(text: str) -> str:
    """A text without its white space and marks of bold, which a print sets as it likes."""
    return re.sub(r"[\s*]+", "", text)


@pytest.mark.parametrize("figure", ["5.2", "5.6", "5.7", "5.8"])
def test_the_prompts_of_the_thesis_are_those_of_its_figures(figure: str) -> None:
    study = Study.read("thesis")
    notice = study.label_sets()["plain"].notice
    lines = prompts_of_figures(study.wording(), notice)[figure]["text"]
    folder = project.root() / "data" / "published" / "thesis"
    printed = pd.read_csv(folder / f"figure-{figure}.csv", dtype=str)["text"]
    assert [letters(line) for line in lines] == [letters(line) for line in printed]


@pytest.mark.upstream
@pytest.mark.parametrize("name", ["instruction", "instruction_labelled", "paraphrase", "names"])
def test_each_prompt_stands_in_the_text_of_the_thesis(name: str) -> None:
    mirror = os.environ.get("EQUIPOISE_MIRROR", "")
    papers = sorted((Path(mirror).parent / "papers").glob("001_*.txt")) if mirror else []
    if not papers:
        pytest.skip("the papers' texts, which are not published here, are not beside the mirror")
    text = letters(papers[0].read_text(encoding="utf-8"))
    prompt = (project.root() / "data" / "prompts" / "thesis" / f"{name}.txt").read_text()
    assert letters(prompt).replace("{passage}", "{inputpassage}") in text


def test_a_prompt_of_the_thesis_is_one_message_and_the_names_are_announced_as_the_labels_are() -> (
    None
):
    study = Study.read("thesis")
    sets = read_label_sets(study.labels, ["Ann Lee"])
    assert sets["names"].notice == sets["plain"].notice
    assert sets["names"].groups == {"Human": ("Ann Lee",), "LLM": ("AI",)}
    passages = [Passage("one", "Ann Lee"), Passage("two", "AI")]
    (message,) = study.wording().answer("who", passages, sets["names"].notice)
    assert message["role"] == "user"
    assert message["content"].startswith("Instruction: Write a concise answer")
    assert "Artificial Intelligence" not in message["content"]
    assert message["content"].endswith("Question: who.")
    # The committed replica keeps the two messages that it was recorded with.
    roles = [message["role"] for message in Study.read("replica").wording().answer("who", passages)]
    assert roles[0] == "system"


# --- what retrievers found ------------------------------------------------------------------------


def test_a_retriever_keeps_questions_that_another_has_no_use_of(tmp_path: Path) -> None:
    """Of random lists, each retriever has those with one relevant passage among its own ten."""
    draw = random.Random(3)  # noqa: S311
    files = {}
    usable: dict[str, Any] = {}
    for retriever in ("BM25", "uniCOIL", "TCT-ColBERT"):
        questions = {}
        usable[retriever] = set()
        for number in range(400):
            marks = [draw.random() < 0.12 for _ in range(10)]
            if sum(marks) == 1:
                usable[retriever].add(str(number))
            contexts = [
                {"docid": f"{place}", "text": f'"T"\n{number} {place}', "has_answer": mark}
                for place, mark in enumerate(marks)
            ]
            questions[number] = {"question": "who", "answers": ["x"], "contexts": contexts}
        files[retriever] = tmp_path / f"{retriever}.json"
        files[retriever].write_text(json.dumps(questions))
    benchmark = given_lists("NQ", files, "dpr", 10)
    for retriever, questions in usable.items():
        found = benchmark.questions_of(retriever)
        assert set(found["question"]) == questions
        assert len(questions) > 100
        content = json.loads(files[retriever].read_text())
        for question, place in benchmark.places[retriever].items():
            assert content[question]["contexts"][place]["has_answer"]
    everywhere = set.intersection(*usable.values())
    assert len(everywhere) < 40 < len(benchmark.questions)


def test_a_run_that_was_stored_without_its_texts_is_refused_with_what_to_do(tmp_path: Path) -> None:
    questions = pyserini_object(0)
    for entry in questions.values():
        for context in entry["contexts"]:
            del context["text"]
    (tmp_path / "nq.json").write_text(json.dumps(questions))
    with pytest.raises(InputError, match="--store-raw"):
        given_lists("NQ", {"BM25": tmp_path / "nq.json"}, "dpr", DEPTH)


@pytest.mark.parametrize("form", ["dpr", "ms-marco-qa"])
def test_one_object_holds_the_questions_that_lines_do(form: str, tmp_path: Path) -> None:
    content = pyserini_object(0) if form == "dpr" else msmarco_columns()
    (tmp_path / "object.json").write_text(json.dumps(content))
    write_lists(tmp_path / "lines.jsonl", form)
    of_object, of_lines = (
        given_lists("own", {"any": tmp_path / name}, form, DEPTH)
        for name in ("object.json", "lines.jsonl")
    )
    assert of_object.questions["text"].tolist() == of_lines.questions["text"].tolist()
    assert of_object.passages == of_lines.passages
    assert [*of_object.places["any"].values()] == [*of_lines.places["any"].values()]


# --- rate limits ----------------------------------------------------------------------------------


class Limited(Server):
    """Answers each third request and limits the rate of the others; drops four connections.

    It counts, and reads no clock: a busy machine changes nothing. One answer is asked for five
    times at least, so that four lost connections cannot be the end of it.
    """

    def __init__(self, asked_pause: str) -> None:
        self.numbers = itertools.count(1)
        self.refused = 0
        super().__init__([self._answer])
        self.asked_pause = asked_pause

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        number = next(self.numbers)
        if number in (7, 14, 21, 28):
            return dies(handler)
        if number % 3:
            self.refused += 1
            return fails(429, b"too many requests", Retry_After=self.asked_pause)(handler)
        return answers(handler, request_of(handler))


def config_of_server(folder: Path, url: str, **model: Any) -> Path:
    sample = THESIS["samples"]["all"] | {"drawn": {"NQ": QUESTIONS}, "rewritten": 0}
    record = one_record(experiments={"NQ": ["placebo"]})
    config = config_in(folder, samples={"all": sample}, records=record)
    content = yaml.safe_load(config.read_text())
    content["models"]["GPT-4"] |= {"url": url, "parallel": 4} | model
    config.write_text(yaml.safe_dump(content))
    return config


def test_a_server_that_limits_its_rate_is_asked_again_until_all_is_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(
        endpoint.ask_patiently, "__kwdefaults__", {"logprobs": False, "sleep": pauses.append}
    )
    server = Limited("9")
    config = config_of_server(folder, server.url)
    code, told = run(config)
    server.close()
    assert code == 0, told
    assert server.refused > 10
    # A pause is what the server asks for, and of a dropped connection our own.
    assert pauses.count(9) >= 10
    assert {1, 2, 4, 8} & set(pauses)
    assert len(recorded_answers(Study.read(str(config)), ["GPT-4"])) == 3 * QUESTIONS


def test_a_budget_of_patience_ends_and_says_so(folder: Path, serve: Callable[..., Server]) -> None:
    server = serve(fails(429, b"slow down", Retry_After="60"))
    config = config_of_server(folder, server.url, patience=100)
    text = config.read_text()
    server.script = [fails(429, b"slow down", Retry_After="200")]
    code, told = run(config)
    assert code == 2
    assert "its rate is limited for longer than 100 s" in told
    assert len(server.requests) == 1
    assert config.read_text() == text


def test_a_key_is_sent_to_the_host_that_the_config_names_for_it_and_to_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    for variable, sent in (("", None), ("OPENAI_API_KEY", "Bearer sk-0123456789abcdefghij")):
        server = Model()
        shutil.rmtree(folder / "recorded", ignore_errors=True)
        code, told = run(config_of_server(folder, server.url, key_variable=variable))
        server.close()
        assert code == 0, told
        assert set(server.authorisations) == {sent}
    assert THESIS["models"]["GPT-4"]["key_variable"] == "OPENAI_API_KEY"
    assert not {"key_variable"} & (THESIS["models"]["Mistral"].keys() | THESIS["models"]["Llama3"])
