"""Loaders of terms and documents: formats, and how what is wrong is named."""

import gzip
import json
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, Note
from equipoise.loaders import documents, gender_terms
from equipoise.measures.ranking_bias import TermGroups, count_terms


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
        ("he,m\n\nHe,m\n", 'line 3, column "term": must be unique in its group'),
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
    table = pd.concat(documents.document_tables(tmp_path))
    assert table["document"].tolist() == ["d1", "2"] * 4


WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=8)
COLLECTIONS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(COLLECTIONS)
def test_a_collection_is_the_same_in_other_columns(texts: list[tuple[str, str]]) -> None:
    ids = [f"d{number}" for number in range(len(texts))]
    rows = [
        {"id": name, "url": f"https://she.org/{name}", "title": title, "body": body}
        for name, (title, body) in zip(ids, texts, strict=True)
    ]
    expected = [(row["id"], f"{row['title']} {row['body']}") for row in rows]

    def tabs(names: list[str], header: bool) -> str:
        lines = [names] if header else []
        return "".join(
            "\t".join(line) + "\n" for line in [*lines, *([row[n] for n in names] for row in rows)]
        )

    forms = {
        "a.tsv": tabs(["id", "url", "title", "body"], header=False),
        "b.tsv": tabs(["id", "url", "title", "body"], header=True),
        "c.tsv": tabs(["url", "title", "body", "id"], header=True),
        "d.tsv": tabs(["id", "title", "body"], header=True),
        "e.jsonl": "\n".join(json.dumps({**row, "_id": row["id"]}) for row in rows),
        "f.jsonl": "\n".join(
            json.dumps(
                {"_id": row["id"], "title": row["title"], "text": row["body"], "metadata": {}}
            )
            for row in rows
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in forms.items():
            path = written(Path(folder), name, content)
            with pytest.warns(Note, match="the text of a document is its"):
                assert list(documents.stream_documents(path)) == expected
        plain = written(Path(folder), "g.tsv", "".join("\t".join(row) + "\n" for row in expected))
        assert list(documents.stream_documents(plain)) == expected


def test_a_line_without_a_column_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "d.tsv", "id\ttitle\ttext\na\tA\tx\nb\tB\n")
    with pytest.warns(Note, match="is its columns title and text"):
        problems = problems_of(lambda: list(documents.stream_documents(path)))
    assert problems == [f"{path}, line 3: must be 3 columns, got 'b\\tB'"]


@pytest.mark.parametrize("odd", ["", "a\tb", "x\ry", " ", "\ufeff", "a\r"])
def test_documents_are_the_same_read_at_once_and_line_by_line(odd: str, tmp_path: Path) -> None:
    """A line that Arrow would read otherwise is among others, in several blocks."""
    rows = [(f"d{number}", f"text {number}") for number in range(50)]
    rows[20] = ("d20", f"{odd} text")
    path = written(tmp_path, "d.tsv", "".join(f" {name}\t{text}\n" for name, text in rows))
    with pytest.MonkeyPatch.context() as patch:
        for block in (10, 100, 2**22):
            patch.setattr(documents, "_BLOCK", block)
            assert list(documents.stream_documents(path)) == rows
    path.write_bytes(path.read_bytes() + b"no tab\n")
    assert (
        "line 51: must be an id" in problems_of(lambda: list(documents.stream_documents(path)))[0]
    )


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
