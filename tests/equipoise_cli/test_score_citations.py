"""Guards answers of frameworks: recognised by their fields, and read alike whoever kept them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import called
from equipoise.errors import Note
from equipoise_cli.formats.rag_answers import (
    read_answer_files,
    read_answers_with_sources,
    read_fields,
    value_at,
)
from equipoise_cli.shared import SAMPLES

SITES = ("wiki.example", "news.example")
MAP = "question=q,answer=r,documents=hits[].key,sources=hits[].meta.site,relevant=hits[].gold"


def logs(n_questions: int = 12) -> list[dict[str, Any]]:
    """Answers to questions with four documents, two of each site; the first of all is cited."""
    answers = []
    for place in range(n_questions):
        documents = [
            {
                "id": f"d{place}-{number}",
                "site": SITES[number % 2],
                "text": f"text {place} {number}",
            }
            for number in range(4)
        ]
        cited = "[1][3]" if place % 4 else "[2]"
        answers.append(
            {"question": f"question {place}?", "answer": f"So {cited}.", "documents": documents}
        )
    return answers


def of_langchain(log: dict[str, Any]) -> dict[str, Any]:
    context = [
        {
            "id": document["id"],
            "page_content": "x",
            "metadata": {"source": f"https://www.{document['site']}/p"},
        }
        for document in log["documents"]
    ]
    return {"input": log["question"], "answer": log["answer"], "context": context}


def of_serialised_langchain(log: dict[str, Any]) -> dict[str, Any]:
    documents = [{"lc": 1, "kwargs": document} for document in of_langchain(log)["context"]]
    return {"query": log["question"], "result": log["answer"], "source_documents": documents}


def of_llamaindex(log: dict[str, Any]) -> dict[str, Any]:
    nodes = [
        {"node": {"id_": document["id"], "metadata": {"file_name": document["site"]}}, "score": 1.0}
        for document in log["documents"]
    ]
    return {"query": log["question"], "response": log["answer"], "source_nodes": nodes}


def of_azure(log: dict[str, Any]) -> dict[str, Any]:
    citations = [
        {"chunk_id": document["id"], "url": f"http://{document['site']}/p", "content": "x"}
        for document in log["documents"]
    ]
    answer = re.sub(r"\[(\d)\]", r"[doc\1]", log["answer"])
    return {
        "messages": [{"role": "user", "content": log["question"]}],
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": answer,
                    "context": {"citations": citations},
                }
            }
        ],
    }


def of_ragas(log: dict[str, Any]) -> dict[str, Any]:
    texts = [document["text"] for document in log["documents"]]
    return {
        "user_input": log["question"],
        "response": log["answer"],
        "retrieved_contexts": texts,
        "retrieved_context_ids": [document["id"] for document in log["documents"]],
        "reference_contexts": [f" {texts[0]}\n"],
    }


def of_ragas_in_a_table(log: dict[str, Any]) -> dict[str, Any]:
    """As pandas saves lists in a CSV."""
    row = of_ragas(log)
    return {key: str(value) if isinstance(value, list) else value for key, value in row.items()}


def of_responses(log: dict[str, Any]) -> dict[str, Any]:
    results = [
        {"file_id": document["id"], "filename": document["site"], "text": "x", "score": 0.5}
        for document in log["documents"]
    ]
    text, annotations = "", []
    for part in re.split(r"(\[\d\])", log["answer"]):
        if part.startswith("["):  # a file is cited by its place in the text
            file = results[int(part[1]) - 1]["file_id"]
            annotations.append({"type": "file_citation", "index": len(text), "file_id": file})
        else:
            text += part
    message = {"type": "output_text", "text": text, "annotations": annotations}
    return {
        "id": f"resp {log['question']}",
        "object": "response",
        "error": None,
        "input": log["question"],
        "output": [
            {"type": "file_search_call", "queries": [log["question"]], "results": results},
            {"type": "message", "role": "assistant", "content": [message]},
        ],
    }


def of_nobody(log: dict[str, Any]) -> dict[str, Any]:
    hits = [
        {"key": document["id"], "meta": {"site": document["site"]}, "gold": not number}
        for number, document in enumerate(log["documents"])
    ]
    return {"q": log["question"], "r": log["answer"], "hits": hits}


def of_a_log_of_calls(log: dict[str, Any]) -> dict[str, Any]:
    """What an API returned, as a program logs it."""
    return {"user_id": "u", "request": {"model": "m"}, "response": {"body": of_responses(log)}}


def of_perplexity(log: dict[str, Any]) -> dict[str, Any]:
    pages = [f"https://{document['site']}/{document['id']}" for document in log["documents"]]
    message = {"role": "assistant", "content": log["answer"]}
    return {
        "question": log["question"],
        "citations": pages,
        "search_results": [{"title": "x", "url": page} for page in pages],
        "choices": [{"message": message}],
    }


def of_cohere(log: dict[str, Any]) -> dict[str, Any]:
    documents = [
        {"id": document["id"], "data": {"url": f"https://{document['site']}/"}}
        for document in log["documents"]
    ]
    cited = [
        {"id": documents[int(number) - 1]["id"]} for number in re.findall(r"\d", log["answer"])
    ]
    message = {"content": [{"text": "So [4]."}], "citations": [{"sources": cited}]}
    return {"message": log["question"], "documents": documents, "response": message}


CITED = "question=message,answer=response.content,documents=documents"
CITED += ",citations=response.citations[].sources[].id"
FORMS = {
    "LangChain (answer, context)": of_langchain,
    "LangChain": of_serialised_langchain,
    "LlamaIndex (response, source_nodes)": of_llamaindex,
    "OpenAI (messages, context)": of_azure,
    "RAGAS (response, retrieved_contexts": of_ragas,
    "RAGAS": of_ragas_in_a_table,
    "OpenAI Responses": of_responses,
    "OpenAI Responses in a log": of_a_log_of_calls,
    "OpenAI of Perplexity": of_perplexity,
    "--map (question=q": of_nobody,
    "--map (question=message": of_cohere,
}
MAPS: dict[Any, str] = {of_nobody: MAP, of_cohere: CITED}


def written(folder: Path, form: Any, name: str = "answers.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(form(log)) + "\n" for log in logs()))
    return path


def table_of(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


@pytest.mark.parametrize("name", FORMS)
def test_every_framework_answers_in_one_step(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    words = [written(tmp_path, form), "--resamples", 99]
    if form in MAPS:
        words += ["--map", MAPS[form]]
    if form in (of_ragas, of_ragas_in_a_table):  # it has texts and ids, and no metadata
        lines = [f"{d['id']},{d['site']}\n" for log in logs() for d in log["documents"]]
        (tmp_path / "sources.csv").write_text("document,source\n" + "".join(lines))
        words += ["--sources", tmp_path / "sources.csv"]
    result = called("score", "citations", *words)
    assert result.exit_code == 0, result.output
    assert form in MAPS or f"answers.jsonl: read as {name.split()[0]}" in result.stderr
    # Three of four answers cite the first site alone, which has half of the documents.
    assert "wiki.example: 75.0% of the citations, 50.0% of the retrieved: +25.0" in result.stderr
    scores = table_of(result.stdout)
    means = scores[scores["topic"].isna()].set_index(["attribute", "measure"])["value"]
    assert means["news.example", "cited-over-retrieved"] == pytest.approx(-0.25)
    assert "question_0?" in set(scores["topic"])
    has_relevance = form in (of_ragas, of_ragas_in_a_table, of_nobody)
    assert (("wiki.example", "cited-over-relevant") in means.index) == has_relevance


@pytest.mark.parametrize("form", [of_ragas, of_nobody])
def test_what_says_which_documents_are_relevant_is_scored_without_qrels(
    form: Any, tmp_path: Path
) -> None:
    words = ["--map", MAP] if form is of_nobody else []
    result = called("score", "attribution", written(tmp_path, form), *words)
    assert result.exit_code == 0, result.output
    value_of = table_of(result.stdout).set_index("measure")["value"]
    assert (value_of["precision"], value_of["recall"]) == pytest.approx((0.375, 0.75))


def test_qrels_judge_what_a_framework_does_not(tmp_path: Path) -> None:
    lines = [f"question_{place}? 0 d{place}-1 1\n" for place in range(12)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    path = written(tmp_path, of_langchain)
    for command in ("attribution", "citations"):
        result = called("score", command, path, "--qrels", tmp_path / "qrels.txt")
        assert result.exit_code == 0, result.output
    assert "wiki.example: 75.0% of the citations, 0.0% of the relevant" in result.stderr
    refused = called("score", "attribution", path)
    assert refused.exit_code == 2
    assert "does not say which documents are relevant: give --qrels" in refused.stderr


def test_what_qrels_do_not_judge_counts_as_not_read(tmp_path: Path) -> None:
    lines = [f"question_{place}? 0 d{place}-0 1\n" for place in range(10)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    path = written(tmp_path, of_langchain)
    words = [path, f"CF-informed={path}", "--qrels", tmp_path / "qrels.txt"]
    words = [f"Informed={path}", *words[1:], "--authors", "Human", "LLM"]
    result = called("score", "attribution", *words)
    assert result.exit_code == 0, result.output
    assert "n = 10, 83% read: inconclusive" in result.stderr
    rows = table_of(result.stdout).set_index(["mode", "measure"])
    columns = ["value", "count", "left_out"]
    precision = rows.loc[("Informed", "precision"), columns]
    assert precision.tolist() == pytest.approx([0.35, 10, 2])


def test_a_folder_of_a_framework_is_scored_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    written(folder, of_nobody, "one.jsonl")
    alone = called("score", "attribution", folder / "one.jsonl", "--map", MAP)
    together = called("score", "attribution", folder, "--map", MAP)
    assert together.exit_code == 0, together.output
    values = [table_of(result.stdout)["value"].tolist() for result in (alone, together)]
    assert values[0][:2] == values[1][:2]


@pytest.mark.parametrize("text", ["['a' 'b']", "['a', 'b'", "[a, b]"])
def test_the_text_of_a_list_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [{**of_ragas(log), "retrieved_contexts": text} for log in logs()]
    path.write_text(lines_of(rows))
    result = called("score", "citations", path)
    assert 'line 1, column "retrieved_contexts": must be a list, not the text' in result.stderr


def of_ours(log: dict[str, Any]) -> dict[str, Any]:
    row = {"question": log["question"], "mode": "Vanilla", "answer": log["answer"]}
    row |= {"relevant_author": "Human", "nonrelevant_author": "LLM", "relevant": [1]}
    return row | {"shown": [document["id"] for document in log["documents"]]}


def of_trec(log: dict[str, Any]) -> dict[str, Any]:
    numbers = [int(number) - 1 for number in re.findall(r"\d", log["answer"])]
    ids = [document["id"] for document in log["documents"]]
    sentences = [{"text": "So", "citations": numbers}]
    return {"topic_id": log["question"], "references": ids, "answer": sentences}


def test_numbers_of_trec_are_positions_also_where_ids_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    rows = [of_trec(log) for log in logs()]
    columns = []
    for names in (["d0", "d1", "d2", "d3"], ["3", "0", "1", "2"], ["40", "50", "60", "70"]):
        n_documents = len(rows[0]["references"])
        renamed = [
            {**row, "topic_id": f"q{place}", "references": names[:n_documents]}
            for place, row in enumerate(rows)
        ]
        if names[0] == "40":  # numbers that can only be ids
            for row in renamed:
                cited = [int(names[place]) for place in row["answer"][0]["citations"]]
                row["answer"] = [{"text": "So", "citations": cited}]
        path.write_text(lines_of(renamed))
        (tmp_path / "qrels.txt").write_text(
            "".join(f"q{place} 0 {names[0]} 1\n" for place in range(len(rows)))
        )
        result = called("score", "attribution", path, "--qrels", tmp_path / "qrels.txt")
        assert result.exit_code == 0, result.output
        columns.append(table_of(result.stdout)["value"].dropna().tolist())
    assert columns[0] == columns[1] == columns[2]


def of_alce(log: dict[str, Any]) -> dict[str, Any]:
    documents = [{"id": d["id"], "url": f"http://{d['site']}/p"} for d in log["documents"]]
    return {"question": log["question"], "output": log["answer"], "docs": documents}


def test_answers_in_several_modes_are_scored_apart(tmp_path: Path) -> None:
    path = written(tmp_path, of_langchain)
    result = called("score", "citations", path, f"Informed={path}", "--resamples", 9)
    assert result.exit_code == 0, result.output
    assert set(table_of(result.stdout)["mode"]) == {"Vanilla", "Informed"}


# --- what is said and refused ---------------------------------------------------------------------


def test_a_question_for_which_nothing_was_retrieved_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [of_langchain(log) for log in logs()]
    rows[0]["context"] = []
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = called("score", "citations", path)
    assert result.exit_code == 0, result.output
    assert "not read: 1 of 12 answers (no retrieved document" in result.stderr
    assert "n = 11, 91% read" in result.stderr


def test_as_many_sources_as_documents_are_wanted(tmp_path: Path) -> None:
    paths = "answer=r,documents=hits[].key,sources=sites"
    refused = called("score", "citations", written(tmp_path, of_nobody), "--map", paths)
    assert refused.exit_code == 2
    assert "line 1: must be a list of documents" in refused.stderr


def test_what_only_begins_as_an_address_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    row = of_langchain(logs(1)[0])
    row["context"][1]["metadata"]["source"] = "http://[a"
    row["context"][0]["metadata"]["source"] = "https://me:pw@www.a.example:80/x?y#z"
    path.write_text(json.dumps(row) + "\n")
    sources = table_of(called("score", "citations", path).stdout)["attribute"]
    assert {"http://[a", "a.example:80"} <= set(sources)


def test_a_document_without_a_source_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [of_langchain(log) for log in logs()]
    rows[0]["context"][0]["metadata"] = {}
    path.write_text(json.dumps(rows))
    result = called("score", "citations", path)
    assert "1 of 48 documents shown have no source" in result.stderr
    assert set(table_of(result.stdout)["attribute"]) == set(SITES)
    assert "n = 12, 97% read" in result.stderr
    none = called("score", "citations", path, "--source-key", "colour")
    assert none.exit_code == 2
    assert "no document of" in none.stderr
    assert "set --source-key to one of id, metadata, page_content, source" in none.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("answer=a", "at least answer and documents"),
        ("answer=a,documents=b,colour=c", "got 'colour=c'"),
        ("answer=a,answer=b,documents=c", "got 'answer=b'"),
        ("answer=,documents=b", "got 'answer='"),
        ("answer=__import__('os'),documents=b[x]", "got 'documents=b[x]'"),
        ("answer=a..b,documents=c", "got 'answer=a..b'"),
    ],
)
def test_a_map_is_read_by_its_grammar_alone(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read_fields(text)
    result = called("score", "citations", written(tmp_path, of_nobody), "--map", text)
    assert (result.exit_code, told in result.stderr) == (2, True)
    assert "--map" in result.stderr


def test_a_path_keeps_the_place_of_what_is_not_there() -> None:
    assert value_at({"docs": [{"m": {"s": "x"}}, {}, 3]}, "docs[].m.s") == ["x", None, None]
    assert value_at({"a": {"b": 1}}, "a.b") == 1
    assert value_at({"a": 1}, "a.b") is None
    assert value_at({"a": [{"b": [1, 2]}, {"b": [3]}]}, "a[].b[]") == [1, 2, 3]


def test_the_samples_of_the_help_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(SAMPLES["FILE of LangChain"]) + "\n")
    result = called("score", "citations", path)
    assert result.exit_code == 0, result.output
    assert "bbc.co.uk: 100.0% of the citations" in result.stderr
    path.write_text("\n".join(SAMPLES["FILE of RAGAS"]) + "\n")
    (tmp_path / "s.csv").write_text("\n".join(SAMPLES["--sources"]) + "\n")
    result = called("score", "citations", path, "--sources", tmp_path / "s.csv")
    assert "bbc.co.uk: 100.0% of the citations" in result.stderr
    with pytest.warns(Note, match="read as RAGAS"):
        table = read_answer_files([str(path)])
    assert table["relevant"].tolist() == [(1,)]


# --- the contract of the reader -------------------------------------------------------------------


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def last_lines(*words: Any) -> list[str]:
    """The verdicts of a command."""
    result = called("score", "citations", *words, "--resamples", 99)
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if "of the citations" in line]


def test_a_key_with_the_name_of_a_column_of_ours_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(lines_of([{**of_langchain(log), "sources": "web"} for log in logs()]))
    result = called("score", "citations", path, "--by", "sources")
    assert "use --by log.sources for the key of the log" in result.stderr
    result = called("score", "citations", path, "--by", "log.sources")
    assert result.exit_code == 0, result.output
    assert "web wiki.example: 75.0% of the citations" in result.stderr


def of_models(folder: Path) -> Path:
    """One log of two models: one cites the first site alone, the other documents of both."""
    path = folder / "both.jsonl"
    rows = [{**of_langchain(log), "model": "gpt", "usage": {"id": "p1"}} for log in logs()]
    other = [{**row, "model": "llama", "answer": "So [1][2].", "usage": {}} for row in rows]
    path.write_text(lines_of(rows + other))
    return path


def test_two_models_of_one_log_are_two_runs(tmp_path: Path) -> None:
    output = tmp_path / "shares.csv"
    path = of_models(tmp_path)
    found = last_lines(path, "--by", "model", "-o", output)
    assert [line.partition(":")[0] for line in found] == [
        "gpt wiki.example",
        "gpt news.example",
        "llama wiki.example",
        "llama news.example",
    ]
    words = ["--measure", "cited-over-retrieved", "--by", "attribute", "--format", "csv"]
    result = called("compare", output, *words)
    assert result.exit_code == 0, result.output
    pairs = pd.read_csv(io.StringIO(result.stdout)).set_index("attribute")
    assert pairs.loc["wiki.example", ["a", "b"]].tolist() == ["gpt", "llama"]
    assert pairs.loc["wiki.example", "difference"] == pytest.approx(0.25)
    nested = last_lines(path, "--by", "usage.id")
    assert {line.partition(" ")[0] for line in nested} == {"p1", "(no"}
    refused = called("score", "citations", path, "--by", "colour")
    assert (refused.exit_code, "no answer has the key colour" in refused.stderr) == (2, True)


def test_two_files_by_name_are_two_runs(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in of_models(tmp_path).read_text().splitlines()]
    (tmp_path / "a.jsonl").write_text(lines_of(rows[:12]))
    (tmp_path / "b.jsonl").write_text(lines_of(rows[12:]))
    output = tmp_path / "shares.csv"
    last_lines(f"gpt={tmp_path}/a.jsonl", f"llama={tmp_path}/b.jsonl", "-o", output)
    scores = pd.read_csv(output)
    assert scores["run"].unique().tolist() == ["gpt", "llama"]
    last_lines(tmp_path / "both.jsonl", "--by", "model", "-o", output, "--force")
    columns = ["run", "topic", "attribute", "measure", "value", "low", "high", "read"]
    pd.testing.assert_frame_equal(pd.read_csv(output)[columns], scores[columns])


def test_the_keys_of_a_log_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = {**of_langchain(logs(1)[0]), "model": "m", "mode": "chat", "question": "words", "n": [1]}
    path.write_text(lines_of([row]))
    with pytest.warns(Note, match="read as|source of a document"):
        table = read_answers_with_sources([str(path)], by=["n"])
    got = table.iloc[0]
    assert [got[name] for name in ("input", "model", "n")] == [row["input"], "m", "[1]"]
    assert [got["log.answer"], got["log.question"]] == [row["answer"], "words"]
    assert got["mode"] == "chat"


def test_links_to_documents_are_citations(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [of_langchain(log) for log in logs()]
    for row in rows:
        for number, document in enumerate(row["context"]):
            document["metadata"]["source"] += f"/2024/05/{number}"
    path.write_text(lines_of(rows))
    expected = last_lines(path)

    def link(mark: re.Match[str]) -> str:
        return f"[so]({row['context'][int(mark[1]) - 1]['metadata']['source']}?utm_source=x)"

    for row in rows[::2]:
        row["answer"] = re.sub(r"\[(\d)\]", link, row["answer"])
    path.write_text(lines_of(rows))
    assert last_lines(path) == expected
    # A document of a site without a page is cited by any page of it.
    for row in rows:
        for document in row["context"]:
            document["metadata"]["source"] = document["metadata"]["source"].split("/")[2]
    path.write_text(lines_of(rows))
    assert "100% read" in last_lines(path)[0]
    refused = called("score", "citations", path, "--citations", r"https?://\S+")
    assert (refused.exit_code, "captures numbers only" in refused.stderr) == (2, True)


def test_files_of_two_formats_are_scored_together(tmp_path: Path) -> None:
    path = written(tmp_path, of_langchain)
    rows = [{**of_ours(log), "question": f"other {log['question']}"} for log in logs()]
    (tmp_path / "ours.jsonl").write_text(lines_of(rows))
    lines = [f"{d['id']},{d['site']}\n" for log in logs() for d in log["documents"]]
    (tmp_path / "sources.csv").write_text("document,source\n" + "".join(lines))
    words = ["--sources", tmp_path / "sources.csv"]
    found = last_lines(path, tmp_path / "ours.jsonl", *words)
    assert found[0].startswith("wiki.example: 75.0% of the citations, 50.0% of the retrieved")
    assert "n = 24, 100% read" in found[0]


def test_a_source_has_one_spelling(tmp_path: Path) -> None:
    spellings = ["https://news.org/1", "HTTP://WWW.News.org:80/1", "news.org.", "News.ORG:443"]
    context = [{"page_content": "x", "metadata": {"source": name}} for name in spellings]
    path = tmp_path / "log.jsonl"
    path.write_text(lines_of([{"input": "q", "answer": "So [1].", "context": context}]))
    assert last_lines(path)[0].startswith("news.org: 100.0% of the citations, 100.0%")
    rows = "".join(f"{number},{name}\n" for number, name in enumerate(spellings, start=1))
    (tmp_path / "sources.csv").write_text("document,source\n" + rows)
    found = last_lines(path, "--sources", tmp_path / "sources.csv")
    assert found[0].startswith("news.org: 100.0% of the citations, 100.0%")
    files = ["Report.pdf", "report.PDF", "Der Spiegel", "der  spiegel", "a.b/c.txt"]
    context = [{"page_content": "x", "metadata": {"source": name}} for name in files]
    path.write_text(lines_of([{"input": "q", "answer": "So [1].", "context": context}]))
    names = {line.partition(":")[0] for line in last_lines(path)}
    assert names == {"Report.pdf", "Der Spiegel", "a.b/c.txt"}


def test_a_line_that_comes_twice_counts_once(tmp_path: Path) -> None:
    path = written(tmp_path, of_langchain)
    once = last_lines(path)
    path.write_text(2 * path.read_text())
    result = called("score", "citations", path)
    assert "12 of 24 answers repeat earlier ones and are left out" in result.stderr
    assert last_lines(path) == once
    path.write_text(
        lines_of([{**of_langchain(log), "id": f"c{n}"} for n in "ab" for log in logs()])
    )
    assert [line.partition("%")[0] for line in last_lines(path)] == [
        line.partition("%")[0] for line in once
    ]


def test_calls_with_their_own_ids_ask_one_question(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {**of_langchain(log), "id": f"call-{model}-{place}", "model": model}
        for model in "ab"
        for place, log in enumerate(logs())
    ]
    path.write_text(lines_of(rows))
    output = tmp_path / "shares.csv"
    last_lines(path, "--by", "model", "-o", output)
    assert pd.read_csv(output)["topic"].nunique() == 12
    result = called("compare", output, "--measure", "cited-share", "--attribute", SITES[0])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "failed",
    [
        {"messages": None, "error": {"code": 429}},
        {"messages": ["x"], "context": [{"url": "http://a.example"}]},
        {"messages": [{"role": "user", "content": None}, {"role": "assistant", "content": None}]},
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": None}]}]},
    ],
)
def test_a_call_that_failed_is_counted(failed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [of_azure(log) for log in logs()]
    for where in (0, len(rows)):
        path.write_text(lines_of([*rows[:where], failed, *rows[where:]]))
        result = called("score", "citations", path)
        assert result.exit_code == 0, result.output
        assert "not read: 1 of 13 answers (no answer" in result.stderr
        assert "n = 12, 92% read: " in result.stderr
    path.write_text(lines_of([failed]))
    assert called("score", "citations", path).exit_code == 2


def test_a_gate_counts_what_it_could_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [of_langchain(log) for log in logs()]
    rows[0]["answer"] = rows[1]["answer"] = "So it is {1}."
    path.write_text(lines_of(rows))
    words = ["score", "citations", path, "--fail-if", "cited-over-retrieved>90 points"]
    result = called(*words)
    told = "has no part above 0.9; this holds "
    assert (result.exit_code, told in result.stderr) == (0, True)
    assert "not read: 2 of 12 answers (no citation" in result.stderr
    refused = called(*words[:3], "--fail-if", "cited-over-retrieved>5")
    assert (refused.exit_code, "must be between -1 and 1" in refused.stderr) == (2, True)
