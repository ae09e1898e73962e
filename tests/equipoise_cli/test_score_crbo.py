"""The command ``equipoise score crbo``: against a plain loop, and what it says and refuses."""

import io
import random
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from equipoise.measures.rank_overlap import rbo
from equipoise_cli import main

Lists = dict[str, list[str]]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Lists, Lists]:
    """Two runs of one system over eight topics, in the second of which ids end in -cf."""
    draw, lists = random.Random(0), (Lists(), Lists())  # noqa: S311
    paths = tmp_path / "original", tmp_path / "counterfactual"
    for topic in (f"q{number}" for number in range(8)):
        for world in lists:
            world[topic] = draw.sample([f"d{number}" for number in range(12)], draw.randint(3, 12))
    for path, world, end in zip(paths, lists, ("", "-cf"), strict=True):
        path.write_text(
            "".join(
                f"{topic} Q0 {document}{end} {rank} {-rank} bm25\n"
                for topic, documents in world.items()
                for rank, document in enumerate(documents, start=1)
            )
        )
    return *paths, *lists


def called(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["score", "crbo", *map(str, arguments)])


def scores(result: Result) -> pd.DataFrame:
    assert result.exit_code == 0, result.output
    return pd.read_csv(
        io.StringIO(result.stdout), keep_default_na=False, na_values={"low": [""], "high": [""]}
    )


def plain(first: list[str], second: list[str], p: float, depth: int) -> float:
    """RBO of the numbers of the documents."""
    lists = [[int(name.removeprefix("d")) for name in names[:depth]] for names in (first, second)]
    return float(rbo([lists[0]], [lists[1]], p)[0])


@pytest.mark.parametrize(("p", "depth"), [(0.9, 10), (0.5, 4)])
def test_it_is_rbo_of_the_renamed_lists(
    files: tuple[Path, Path, Lists, Lists], p: float, depth: int
) -> None:
    before, after, one, other = files
    options = ("--suffix", "-cf", "--p", p, "--depth", depth)
    result = called("--run", before, after, *options)
    table = scores(result).set_index("topic")
    expected = {topic: plain(one[topic], other[topic], p, depth) for topic in one}
    assert table["value"].drop("").to_dict() == pytest.approx(expected)
    assert table["value"][""] == pytest.approx(sum(expected.values()) / 8)
    assert set(table["run"]) == {"bm25"}
    assert set(table["measure"]) == {f"CRBO(p={p})@{depth}"}
    assert (
        "coverage: 12 of 12 ranked documents have a rank on the original collection (100%)"
        in result.stderr
    )


def test_a_suffix_or_ids_that_match_nothing_are_refused(
    files: tuple[Path, Path, Lists, Lists], tmp_path: Path
) -> None:
    """The original twice: the ids agree, so that nothing else would tell of it."""
    before, after, *_ = files
    none = called("--run", before, before, "--suffix", "-cf")
    assert none.exit_code == 2
    assert "at least one of 12 counterfactual documents must have the ending -cf" in none.stderr
    ids = tmp_path / "ids.csv"
    ids.write_text("document,counterfactual\nd1,x1\nd2,x2\n")
    none = called("--run", before, before, "--ids", ids)
    assert none.exit_code == 2
    assert "must have an original id in this file" in none.stderr
    assert "other ids have one, such as x1, x2" in none.stderr
    some = called("--run", before, after, "--suffix", "-cf")
    assert (
        "coverage: 12 of 12 ranked documents have a rank on the original collection (100%)"
        in some.stderr
    )


def test_the_same_run_overlaps_fully_and_means_have_intervals(
    files: tuple[Path, Path, Lists, Lists], tmp_path: Path
) -> None:
    before, after, *_ = files
    copy = tmp_path / "indifferent"
    copy.write_text(before.read_text().replace(" bm25", " indifferent"))
    result = called("--run", before, after, "--run", copy, copy, "--suffix", "-cf", "--intervals")
    table = scores(result)
    assert table[table["run"] == "indifferent"]["value"].tolist() == pytest.approx([1] * 9)
    mean = table[(table["run"] == "bm25") & (table["topic"] == "")].iloc[0]
    assert mean["value"] < 1
    assert table["low"].isna().all()  # too few topics for an interval


def test_ids_are_mapped_by_a_file_as_by_a_suffix(
    files: tuple[Path, Path, Lists, Lists], tmp_path: Path
) -> None:
    before, after, *_ = files
    ids = tmp_path / "ids.csv"
    ids.write_text(
        "document,counterfactual\n" + "".join(f"d{number},d{number}-cf\n" for number in range(12))
    )
    assert (
        called("--run", before, after, "--ids", ids).stdout
        == called("--run", before, after, "--suffix=-cf").stdout
    )
    ids.write_text(ids.read_text() + "d1,d2-cf\n")
    again = called("--run", before, after, "--ids", ids)
    assert again.exit_code == 2
    assert 'ids.csv, line 14, column "counterfactual": must be unique in the file' in again.stderr
    both = called("--run", before, after, "--ids", ids, "--suffix", "-cf")
    assert both.exit_code == 2
    assert "--ids and --suffix both say" in both.stderr


def test_ids_that_never_meet_are_refused(
    files: tuple[Path, Path, Lists, Lists], tmp_path: Path
) -> None:
    before, after, *_ = files
    out = tmp_path / "scores.csv"
    result = called("--run", before, after, "-o", out)
    assert result.exit_code == 2
    assert "must have a rank on the original collection" in result.stderr
    assert "-cf" in result.stderr
    assert not out.exists()
    part = tmp_path / "part"
    part.write_text(
        "".join(
            f"{line}\n" for line in before.read_text().splitlines() if not line.startswith("q7")
        )
    )
    lacking = called("--run", part, after, "--suffix", "-cf")
    assert lacking.exit_code == 2
    assert "must rank topic q7 on both collections" in lacking.stderr
