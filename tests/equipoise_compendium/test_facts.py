"""Guards fact tables: what they rest on is named, and what is made again has the same bytes."""

from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import facts, project


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    (tmp_path / "data" / "facts" / "films").mkdir(parents=True)
    return tmp_path / "data" / "facts" / "films"


def make_grades() -> pd.DataFrame:
    project.note("registry:films/grades.txt", "ab12")
    return pd.DataFrame({"document": ["007", "nan"], "grade": [2, 0]})


def make_lengths() -> pd.DataFrame:
    project.note("registry:films/texts.txt", "cd34")
    project.note("registry:films/grades.txt", "ab12")
    return pd.DataFrame({"document": ["007", "nan"], "words": [310, 12]}).astype({"words": "int32"})


MAKERS = {"grades.csv": make_grades, "lengths.parquet": make_lengths}


def test_each_table_names_the_files_it_rests_on_and_no_other() -> None:
    sources = facts.make(MAKERS)[facts.SOURCES].decode().splitlines()
    assert sources == [
        "table,source,sha256",
        "grades.csv,registry:films/grades.txt,ab12",
        "lengths.parquet,registry:films/grades.txt,ab12",
        "lengths.parquet,registry:films/texts.txt,cd34",
    ]


def test_what_was_used_before_is_known_again_after_facts_are_made() -> None:
    with project.used_meanwhile() as used:
        project.note("registry:films/other.txt", "ef56")
        facts.make(MAKERS)
    assert used["registry:films/other.txt"] == "ef56"


def test_tables_come_back_as_they_were_and_are_noted_as_used(clone: Path) -> None:
    for name, content in facts.make(MAKERS).items():
        (clone / name).write_bytes(content)
    with project.used_meanwhile() as used:
        grades = facts.read("films", "grades.csv", {"grade": int})
        lengths = facts.read("films", "lengths.parquet")
    pd.testing.assert_frame_equal(grades, make_grades(), check_dtype=False)
    assert grades["document"].tolist() == ["007", "nan"]
    pd.testing.assert_frame_equal(lengths, make_lengths())
    assert list(used) == ["data/facts/films/grades.csv", "data/facts/films/lengths.parquet"]


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"grades\.tsv: must be a file"):
        facts.content("grades.tsv", make_grades())
