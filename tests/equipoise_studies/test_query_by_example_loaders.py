"""CSFCube and SciDocs: tiny sets of their published shape, every malformed part reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from equipoise.problems import InputError
from equipoise_studies.query_by_example.csfcube import FACETS, load_csfcube, read_annotations
from equipoise_studies.query_by_example.data import QueryByExample, text_of
from equipoise_studies.query_by_example.scidocs import load_scidocs

RULE = "=" * 30


def block(
    document: str, *, grade: int | None = None, title: str = "On x", abstract: str = "One."
) -> list[str]:
    graded = (
        []
        if grade is None
        else [f"adju relevance: Similar (+{grade})", "difference: 0; a: 1", "sources: specter"]
    )
    return [
        RULE,
        f"paper_id: {document}; YEAR: 2001",
        *graded,
        f"TITLE: {title}",
        f"ABSTRACT: background_label: {abstract}",
        "result_label: Two.",
        "",
    ]


@pytest.fixture
def csfcube(tmp_path: Path) -> Path:
    """Two query papers in one facet, one of them a candidate of itself; the others empty."""
    (tmp_path / "readable_annotations").mkdir()
    (tmp_path / "readable_annotations" / "1-background-adju.txt").write_text(
        "\n".join(
            [*block("1"), *block("3", grade=2, title="T3"), *block("4", grade=0, title="T4")]
        ),
        encoding="utf-8",
    )
    (tmp_path / "readable_annotations" / "2-background-adju.txt").write_text(
        "\n".join([*block("2"), *block("2", grade=3), *block("3", grade=1, title="T3")]),
        encoding="utf-8",
    )
    for facet in FACETS:
        pools = {
            "1": {"cands": ["3", "4"], "relevance_adju": [2, 0]},
            "2": {"cands": ["2", "3"], "relevance_adju": [3, 1]},
        }
        (tmp_path / f"test-pid2anns-csfcube-{facet}.json").write_text(
            json.dumps(pools if facet == "background" else {})
        )
    folds = {
        "fold1_dev": ["1_background"],
        "fold1_test": ["2_background"],
        "fold2_dev": ["2_background"],
        "fold2_test": ["1_background"],
    }
    (tmp_path / "evaluation_splits.json").write_text(
        json.dumps({"background": folds, "all": folds})
    )
    return tmp_path


def test_csfcube_papers_judgements_and_folds(csfcube: Path) -> None:
    loaded = load_csfcube(csfcube)
    assert text_of(loaded.papers).to_dict() == {
        "1": "On x One. Two.",
        "2": "On x One. Two.",
        "3": "T3 One. Two.",
        "4": "T4 One. Two.",
    }
    assert loaded.judgements.values.tolist() == [  # noqa: PD011 - rows as lists
        ["background", "1", "3", 2],
        ["background", "1", "4", 0],
        ["background", "2", "3", 1],
    ]
    assert loaded.splits.query("fold == 'fold1'")[["part", "query"]].to_numpy().tolist() == [
        ["dev", "1"],
        ["test", "2"],
    ]
    assert loaded.tasks == ("background",)
    assert loaded.queries == ("1", "2")


def test_a_query_among_its_own_candidates_is_a_named_choice(csfcube: Path) -> None:
    kept = load_csfcube(csfcube, own="keep").judgements
    dropped = load_csfcube(csfcube).judgements
    assert len(kept) == len(dropped) + 1
    with pytest.raises(ValueError, match='own must be "drop" or "keep"'):
        load_csfcube(csfcube, own="sometimes")  # type: ignore[arg-type]


def test_line_separators_inside_an_abstract_do_not_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "1-result-adju.txt"
    path.write_bytes("\r\n".join(block("1", abstract="One\u2028half\x0b.")).encode())
    assert read_annotations(path)["abstract"].item() == "One\u2028half\x0b. Two."


def _change(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            _change("readable_annotations/1-background-adju.txt", "TITLE: T3", "TITEL: T3"),
            r"line 12: found TITEL: T3",
        ),
        (
            _change("readable_annotations/1-background-adju.txt", "TITLE: T3\n", ""),
            r"line 7: found a paper without title",
        ),
        (
            _change("readable_annotations/1-background-adju.txt", "(+2)", "(+1)"),
            "1-background-adju.txt, column adju relevance: "
            "found paper 3: 1 in the text, 2.* in JSON",
        ),
        (
            _change("readable_annotations/2-background-adju.txt", "TITLE: T3", "TITLE: T"),
            "another text of paper 3",
        ),
        (
            lambda folder: (folder / "readable_annotations/2-background-adju.txt").unlink(),
            "adju.txt: found no such",
        ),
        (
            _change("test-pid2anns-csfcube-background.json", "[2, 0]", "[2]"),
            "paper 4: 0 in the text, nan in JSON",
        ),
        (
            _change("test-pid2anns-csfcube-background.json", "[2, 0]", "[2, 7]"),
            "paper 4: 0 in the text, 7 in JSON",
        ),
        (
            _change("test-pid2anns-csfcube-background.json", "{", "["),
            "json: found no JSON .* wanted a JSON object",
        ),
        (
            lambda folder: (folder / "test-pid2anns-csfcube-method.json").unlink(),
            "method.json: found no such",
        ),
    ],
)
def test_csfcube_problems_name_file_line_and_what_was_wanted(
    csfcube: Path, break_it: Callable[[Path], None], message: str
) -> None:
    break_it(csfcube)
    with pytest.raises(InputError, match=message):
        load_csfcube(csfcube)


def test_csfcube_problems_are_reported_together(csfcube: Path) -> None:
    _change("readable_annotations/1-background-adju.txt", "(+2)", "(two)")(csfcube)
    _change("readable_annotations/2-background-adju.txt", "paper_id: 3", "paper: 3")(csfcube)
    with pytest.raises(InputError) as caught:
        load_csfcube(csfcube)
    files = {Path(problem.file).name for problem in caught.value.problems}
    assert files >= {"1-background-adju.txt", "2-background-adju.txt"}


@pytest.fixture
def scidocs(tmp_path: Path) -> Path:
    """Two tasks in SciDocs' published shape."""
    for task in ("cite", "coview"):
        (tmp_path / task).mkdir()
        (tmp_path / task / "val.qrel").write_text("q1 0 d1 1\nq1 0 d2 0\n")
        (tmp_path / task / "test.qrel").write_text("q2 0 d1 0\nq2 0 d3 1\n\n")
    records = {
        key: {"paper_id": key, "title": f"Title {key}", "abstract": f"About {key}."}
        for key in ("q1", "q2", "d1", "d2")
    }
    records["d3"] = {"paper_id": "d3", "title": "Title d3", "abstract": None}  # type: ignore[dict-item]
    records["unused"] = {"paper_id": "unused", "title": "T", "abstract": "A"}
    (tmp_path / "paper_metadata_view_cite_read.json").write_text(json.dumps(records))
    return tmp_path


def test_scidocs_in_its_published_format(scidocs: Path) -> None:
    loaded = load_scidocs(scidocs, tasks=["coview", "cite"])
    assert loaded.tasks == ("cite", "coview")
    assert loaded.papers["document"].tolist() == ["d1", "d2", "d3", "q1", "q2"]
    assert text_of(loaded.papers)["d3"] == "Title d3"
    assert loaded.judgements.query("task == 'cite'")["grade"].tolist() == [1, 0, 0, 1]
    assert loaded.splits.query("task == 'cite'")[["part", "query"]].to_numpy().tolist() == [
        ["dev", "q1"],
        ["test", "q2"],
    ]
    assert loaded.pairs.to_numpy().tolist() == [
        ["q1", "d1"],
        ["q1", "d2"],
        ["q2", "d1"],
        ["q2", "d3"],
    ]


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            _change("cite/val.qrel", "q1 0 d2 0", "q1 0 d2"),
            "cite/val.qrel, line 2: found 3 columns",
        ),
        (_change("cite/val.qrel", "q1 0 d2 0", "q1 0 d2 high"), "cite/val.qrel, line 2"),
        (
            _change("cite/val.qrel", "q1 0 d2 0", "q1 0 d1 0"),
            "line 2, column document: found d1 again for topic q1",
        ),
        (_change("cite/val.qrel", "q1 0 d2 0", "q2 0 d2 0"), "query q2 among validation and test"),
        (
            _change("paper_metadata_view_cite_read.json", '"d2": {', '"d9": {'),
            "no record with a title for paper d2",
        ),
        (
            _change(
                "paper_metadata_view_cite_read.json",
                "{",
                "",
            ),
            "wanted a JSON object",
        ),
        (
            lambda folder: (folder / "paper_metadata_view_cite_read.json").write_text("[]"),
            r"found '\[\]', wanted a JSON object",
        ),
        (lambda folder: (folder / "cite" / "test.qrel").unlink(), "a readable file"),
    ],
)
def test_scidocs_problems(scidocs: Path, break_it: Callable[[Path], None], message: str) -> None:
    break_it(scidocs)
    with pytest.raises(InputError, match=message):
        load_scidocs(scidocs, tasks=["cite"])


def test_a_data_set_refuses_tables_that_do_not_fit() -> None:
    papers = pd.DataFrame({"document": ["a", "b"], "title": "t", "abstract": "x"})
    judgements = pd.DataFrame({"task": "t", "query": "a", "document": ["b"], "grade": 1})
    splits = pd.DataFrame({"task": ["t"], "fold": "1", "part": "test", "query": "a"})
    QueryByExample(papers, judgements, splits)
    with pytest.raises(ValueError, match="no column title"):
        QueryByExample(papers.drop(columns="title"), judgements, splits)
    with pytest.raises(
        ValueError, match="judgements hold a row twice: task 't', query 'a', document 'b'"
    ):
        QueryByExample(papers, pd.concat([judgements] * 2), splits)
    with pytest.raises(ValueError, match="have no text, the first is 'c'"):
        QueryByExample(papers, judgements.assign(document="c"), splits)
