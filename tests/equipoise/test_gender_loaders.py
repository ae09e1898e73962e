"""Loaders of terms, pairs, queries and documents: formats, and how what is wrong is named."""

import gzip
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise.errors import InputError
from equipoise.loaders import documents, gender_terms
from equipoise.measures.ranking_bias import TermGroups, count_terms
from equipoise_studies.collections import cocktail


def problems_of(read: Callable[[], Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read()
    return [str(problem) for problem in caught.value.problems]


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("she\n", "line 1: must be a term, a comma and its group, such as she,f, got 'she'"),
        (",f\n", "line 1: must be a term, a comma"),
        ("her,\n", "line 1: must be a term, a comma"),
        ("he,m\n\nHe,m\n", 'line 3, column "term": must be once in a group'),
        ("old man,m\n", "line 1, column \"term\": must be a single word, got 'old man'"),
        ("he,m\nhim,m\n", "must be terms of two groups or more"),
        ("", "an empty file"),
    ],
)
def test_bad_terms_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, "terms.txt", text)
    assert message in problems_of(lambda: gender_terms.read_terms(path))[0]


def test_a_term_in_two_groups_is_read_and_named_later(tmp_path: Path) -> None:
    table = gender_terms.read_terms(written(tmp_path, "t.txt", "term,group\nrobin,f\nRobin,m\n"))
    assert TermGroups.from_pairs(table.itertuples(index=False, name=None)).shared == ("robin",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[["he", "she"]', "no JSON"),
        ("{}", "a JSON list of pairs"),
        ("[]", "a JSON list of pairs"),
        ('[["he"]]', "element 1"),
        ('[["she", 3]]', "element 1"),
        ('[["a", "b"], ["b", "c"]]', "element 2"),
    ],
)
def test_bad_pairs_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", text)
    assert message in problems_of(lambda: gender_terms.read_pairs(path))[0]


def test_bad_query_files_are_named(tmp_path: Path) -> None:
    for text, line in (("1\ta\n2 b\n", 2), ("1\ta\n\n1\tc\n", 3)):
        path = written(tmp_path, "q.tsv", text)
        message = problems_of(lambda path=path: gender_terms.read_sensitive_queries(path))[0]
        assert f"line {line}" in message
    for text, line in (("1,a, b,n\n2,c\n", 2), ("3,d,x\n", 1), ("1,a,n\n1,e,f\n", 2)):
        path = written(tmp_path, "q.csv", text)
        message = problems_of(lambda path=path: gender_terms.read_annotated_queries(path))[0]
        assert f"line {line}" in message
    good = written(tmp_path, "q.csv", "1,a, b,n\n")
    assert gender_terms.read_annotated_queries(good).to_numpy().tolist() == [["1", "a, b", "n"]]


def archive(folder: Path, **members: str) -> Path:
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(
                name.replace("__", "/") + (".tsv" if "qrels" in name else ".jsonl"), content
            )
    return path


def test_problems_of_a_cocktail_archive_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = '{"_id": "a", "text": "x"}\nnot json\n[1]\n{"_id": "b"}\n{"_id": "a", "text": "y"}\n'
    path = archive(
        tmp_path,
        corpus__human=lines,
        qrels__test="query-id\tcorpus-id\tscore\nq\ta\tx\nq\n",
        queries="\n",
    )
    told = problems_of(lambda: cocktail.read_documents(path))
    assert [int(line.split("line ")[1].split(":")[0].split(",")[0]) for line in told] == [
        2,
        3,
        4,
        5,
    ]
    assert "set.zip/corpus/human.jsonl" in told[0]
    assert len(problems_of(lambda: cocktail.read_qrels(path))) == 2
    assert "empty file" in problems_of(lambda: cocktail.read_queries(path))[0]
    assert "no such file" in problems_of(lambda: cocktail.read_documents(path, "model"))[0]
    assert (
        "zip archive"
        in problems_of(lambda: cocktail.read_queries(written(tmp_path, "no.zip", "text")))[0]
    )
    monkeypatch.setattr(cocktail, "LARGEST_MEMBER", 10)
    assert "more than 10 bytes" in problems_of(lambda: cocktail.read_documents(path))[0]


# --- documents ------------------------------------------------------------------------------------


def test_documents_come_from_jsonl_tsv_gzip_and_folders_alike(tmp_path: Path) -> None:
    rows = [("d1", "She left.\u2028He stayed."), ("2", "tab\tinside")]
    objects = "\n".join(json.dumps({"_id": name, "contents": text}) for name, text in rows)
    paths = [
        written(tmp_path, "d.jsonl", objects.replace('"2"', "2")),
        written(tmp_path, "d.tsv", "\ufeff" + "\r\n\n".join("\t".join(row) for row in rows)),
    ]
    for path in paths:
        packed = written(tmp_path, f"{path.name}.gz", gzip.compress(path.read_bytes()))
        for each in (path, packed):
            assert list(documents.stream_documents(each)) == rows
    assert list(documents.stream_documents(tmp_path)) == rows * 4
    (table,) = documents.document_tables(tmp_path)
    assert table["document"].tolist() == ["d1", "2"] * 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.tsv", b"a\tx\n\nno tab\n", "line 3: must be an id, a tab and a text, got 'no tab'"),
        ("d.tsv", b"\tx\n", "line 1: must be an id, a tab and a text"),
        ("d.tsv", b"a\tx\nb\t\xff\n", "line 2: must be UTF-8 text"),
        ("d.tsv", b"", "must be one document per line, got an empty file"),
        ("d.jsonl", b'{"id": "a", "text": "x"}\n{"id": ""}\n', "line 2: must be a JSON object"),
        ("d.jsonl", b'{"id": "a"}\n', "line 1: must be a JSON object with id and text"),
        ("d.jsonl", b'{"id": "a", "text": "x"}\n7\n', "line 2: must be a JSON object"),
        ("d.jsonl", b'{"id": "a", "text": "x"}\n{\n', "line 2: must be a JSON object"),
    ],
)
def test_bad_documents_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, content)
    assert message in problems_of(lambda: list(documents.stream_documents(path)))[0]


def test_counting_a_streamed_collection_holds_no_text(tmp_path: Path) -> None:
    """Eight times the documents must not take eight times the memory: ids and counts remain."""
    peaks = []
    for number in (20_000, 160_000):
        path = tmp_path / f"{number}.tsv"
        with path.open("w") as file:
            file.writelines(f"{n}\t{'rain falls on the man ' * 12}\n" for n in range(number))
        size = path.stat().st_size
        tracemalloc.start()
        counts = count_terms(documents.document_tables(path), ["man", "woman"])
        peaks.append((tracemalloc.get_traced_memory()[1], size))
        tracemalloc.stop()
        assert counts.counts.sum() == 12 * number
    (small, _), (large, size) = peaks
    assert large - small < size / 2
    assert pd.Series([small, large]).gt(0).all()
