"""Loaders of terms, pairs, Cocktail, streams: formats, and every problem named."""

import gzip
import json
import sys
import tracemalloc
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise.loaders import documents, gender_terms
from equipoise.measures.ranking_bias import TermGroups, count_terms
from equipoise.problems import InputError
from equipoise_studies.collections import cocktail


def problems_of(read: Callable[[], Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read()
    return [str(problem) for problem in caught.value.problems]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# --- problems -------------------------------------------------------------------------------------


def test_every_problem_of_a_term_list_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "terms.txt", "he,m\nshe\n,f\nHe,m\nold man,m\nher,\n\nhim,m\n")
    told = problems_of(lambda: gender_terms.read_terms(path))
    assert [line.split(", line ")[1].split(":")[0].split(",")[0] for line in told] == [
        "2",
        "3",
        "4",
        "5",
        "6",
    ]
    assert "first on line 1" in told[2]
    assert "single word" in told[3]


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "empty file"), ("\n \n", "empty file"), ("he,m\nhim,m\n", "one group, m")],
)
def test_a_term_list_without_two_groups_is_refused(text: str, said: str, tmp_path: Path) -> None:
    assert said in problems_of(lambda: gender_terms.read_terms(written(tmp_path, "t.txt", text)))[0]


def test_a_term_in_two_groups_is_read_and_named_later(tmp_path: Path) -> None:
    table = gender_terms.read_terms(written(tmp_path, "t.txt", "robin,f\nRobin,m\n"))
    assert TermGroups.from_pairs(table.itertuples(index=False, name=None)).shared == ("robin",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[["he", "she"]', "no JSON"),
        ("{}", "found '{}'"),
        ("[]", "at least one"),
        ('[["he"], ["she", 3], ["a", "b"], ["b", "c"]]', "element 1"),
        ("[" * 100_000, "without end"),
    ],
)
def test_bad_pairs_are_named(text: str, said: str, tmp_path: Path) -> None:
    told = problems_of(lambda: gender_terms.read_pairs(written(tmp_path, "p.json", text)))
    assert said in " ".join(told)


def test_all_bad_pairs_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", '[["he"], ["she", 3], ["a", "b"], ["b", "c"]]')
    assert len(problems_of(lambda: gender_terms.read_pairs(path))) == 3


def test_bad_query_files_are_named(tmp_path: Path) -> None:
    sensitive = written(tmp_path, "q.tsv", "1\ta\n2 b\n1\tc\n")
    assert [
        ", line 2" in t or ", line 3" in t
        for t in problems_of(lambda: gender_terms.read_sensitive_queries(sensitive))
    ]
    annotated = written(tmp_path, "q.csv", "1,a\u2028, b,n\n2,c\n3,d,x\n1,e,f\n")
    told = problems_of(lambda: gender_terms.read_annotated_queries(annotated))
    assert [int(line.split("line ")[1].split(":")[0].split(",")[0]) for line in told] == [2, 3, 4]


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


# --- streamed documents ---------------------------------------------------------------------------


def test_documents_come_from_jsonl_tsv_and_gzip_alike(tmp_path: Path) -> None:
    rows = [("d1", "She left.\u2028He stayed."), ("2", "tab\tinside")]
    jsonl = "\n".join(json.dumps({"id": name, "text": text}) for name, text in rows).replace(
        '"2"', "2"
    )
    paths = [
        written(tmp_path, "d.jsonl", jsonl),
        written(tmp_path, "d.tsv", "\n".join("\t".join(r) for r in rows)),
    ]
    for path in paths:
        packed = tmp_path / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        for each in (path, packed):
            assert list(documents.stream_documents(each)) == rows


def test_every_bad_line_is_told_at_the_end_of_the_stream(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "d.jsonl",
        '{"id": "a", "text": "x"}\n{"id": ""}\n7\n{"id": true, "text": ""}\n{"id": "b"}\n{\n',
    )
    stream = documents.stream_documents(path)
    assert next(stream) == ("a", "x")
    assert len(problems_of(lambda: list(stream))) == 5
    told = problems_of(
        lambda: list(documents.stream_documents(written(tmp_path, "d.tsv", "no tab\n")))
    )
    assert told == [f"{tmp_path / 'd.tsv'}, line 1: found 'no tab', wanted an id, a tab and a text"]
    (tmp_path / "bad.tsv").write_bytes(b"a\tx\nb\t\xff\n")
    assert (
        ", line 2: found bytes that are not UTF-8"
        in problems_of(lambda: list(documents.stream_documents(tmp_path / "bad.tsv")))[0]
    )
    (tmp_path / "torn.tsv.gz").write_bytes(gzip.compress(b"a\tx\n" * 1000)[:-20])
    assert (
        "torn" in problems_of(lambda: list(documents.stream_documents(tmp_path / "torn.tsv.gz")))[0]
    )
    assert (
        "empty"
        in problems_of(lambda: list(documents.stream_documents(written(tmp_path, "e.tsv", "\n"))))[
            0
        ]
    )
    assert problems_of(lambda: list(documents.stream_documents(tmp_path / "none.jsonl")))


def test_a_name_of_ir_datasets_streams_its_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for ir_datasets: the real library would fetch the collection."""

    class Dataset:
        def has_docs(self) -> bool:
            return True

        def docs_iter(self) -> Iterator[Any]:
            yield types.SimpleNamespace(doc_id="7", text="She left.")
            yield types.SimpleNamespace(
                doc_id="8", title="A", default_text=lambda: "A title and text"
            )

    def load(name: str) -> Dataset:
        if name != "msmarco-passage":
            raise KeyError(name)
        return Dataset()

    monkeypatch.setitem(sys.modules, "ir_datasets", types.SimpleNamespace(load=load))
    assert list(documents.stream_documents("msmarco-passage")) == [
        ("7", "She left."),
        ("8", "A title and text"),
    ]
    assert (
        "no data set of ir_datasets"
        in problems_of(lambda: list(documents.stream_documents("the-web")))[0]
    )
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    assert (
        "pip install" in problems_of(lambda: list(documents.stream_documents("msmarco-passage")))[0]
    )


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
