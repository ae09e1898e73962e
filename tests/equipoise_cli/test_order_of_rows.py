"""Guards that no interval and no p depends on the order of the rows of a file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from commands import called
from equipoise_compendium import project

EXAMPLES = project.root() / "data" / "examples"


def with_probabilities(line: str, rng: random.Random) -> str:
    row = json.loads(line)
    citations = [{"document": number, "probability": rng.random()} for number in (1, 2)]
    return json.dumps(row | {"citations": citations})


@pytest.mark.parametrize(
    ("command", "file"), [("citations", "rag.jsonl"), ("attribution", "answers.jsonl")]
)
def test_scores_of_answers_are_the_same_in_any_order(
    command: str, file: str, tmp_path: Path
) -> None:
    rng = random.Random(5)  # noqa: S311 - not for secrets
    lines = (EXAMPLES / file).read_text().splitlines()
    if command == "attribution":
        lines = [with_probabilities(line, rng) for line in lines]
    tables = []
    for order in ("file", "shuffled"):
        if order == "shuffled":
            rng.shuffle(lines)
        (tmp_path / file).write_text("\n".join(lines) + "\n")
        result = called("score", command, tmp_path / file)
        assert result.exit_code == 0, result.stderr
        tables.append(sorted(result.stdout.splitlines()))
    assert tables[0] == tables[1]


@pytest.mark.parametrize("command", ["gfr", "exposure"])
def test_scores_of_runs_are_the_same_in_any_order(command: str, tmp_path: Path) -> None:
    tables = []
    for step in (1, -1):
        for name in ("bm25.trec", "qrels.txt"):
            lines = (EXAMPLES / name).read_text().splitlines(keepends=True)
            (tmp_path / name).write_text("".join(lines[::step]))
        words = ["--run", tmp_path / "bm25.trec", "--qrels", tmp_path / "qrels.txt"]
        words += ["--membership", EXAMPLES / "people.csv"]
        words += ["--intervals"] if command == "gfr" else []
        result = called("score", command, *words)
        assert result.exit_code == 0, result.stderr
        tables.append(sorted(result.stdout.splitlines()))
    assert tables[0] == tables[1]
