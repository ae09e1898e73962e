"""Guards folders of files: one table, the same here and on a Dask cluster."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from chat_server import Serve, says
from commands import called
from equipoise_cli import scoring
from equipoise_compendium import project

EXAMPLES = project.root() / "data" / "examples"
RUNS = ["--run", EXAMPLES / "bm25.trec", "--run", EXAMPLES / "dense.trec"]
GFR = ["score", "gfr", *RUNS, "--qrels", EXAMPLES / "qrels.txt"]
GFR += ["--membership", EXAMPLES / "people.csv"]


CLUSTER = """
from distributed import LocalCluster
options = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": None}
with LocalCluster(n_workers=1, processes=False, **options) as local:
    print(local.scheduler_address, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster in a process of its own, as a test may not use the network."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    command = [sys.executable, "-c", CLUSTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as own:
        assert own.stdout is not None
        yield own.stdout.readline().strip()
        own.communicate("\n")


def scored(*words: Any) -> str:
    result = called(*words)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """The example's answers in two files of a folder."""
    folder = tmp_path / "answers"
    folder.mkdir()
    lines = (EXAMPLES / "answers.jsonl").read_text().splitlines(keepends=True)
    (folder / "a.jsonl").write_text("".join(lines[:60]))
    (folder / "b.jsonl").write_text("".join(lines[60:]))
    return folder


def test_a_folder_of_answers_is_one_file(answers: Path) -> None:
    whole = scored("score", "attribution", EXAMPLES / "answers.jsonl", "--resamples", 99)
    assert scored("score", "attribution", answers, "--resamples", 99) == whole


def test_a_cluster_gives_the_same_scores(answers: Path, address: str) -> None:
    for words in (GFR, ["score", "attribution", answers, "--resamples", 99]):
        assert scored(*words, "--cluster", address) == scored(*words)


def test_a_folder_of_nuggets_is_one_table(tmp_path: Path) -> None:
    nuggets = project.data("conversations", "R112.csv")
    words = ["--attributes", project.data("attributes", "fairweb_researchers.yaml")]
    table = pd.read_csv(nuggets, dtype=str, keep_default_na=False)
    folder = tmp_path / "nuggets"
    folder.mkdir()
    for run, rows in table.groupby("run"):
        rows.to_csv(folder / f"{run}.csv", index=False)
    keys = ["run", "topic", "attribute", "measure"]
    here, there = (
        pd.read_csv(io.StringIO(scored("score", "gfrc", path, *words))).sort_values(keys)
        for path in (nuggets, folder)
    )
    pd.testing.assert_frame_equal(here, there, check_like=True)
    table.to_csv(folder / "again.csv", index=False)
    twice = called("score", "gfrc", folder, *words)
    assert (twice.exit_code, "two files have a conversation twice" in twice.stderr) == (2, True)


@pytest.mark.parametrize(
    "address", ["nowhere", "HTTP", "tls://127.0.0.1:8786", "ucx://127.0.0.1:8786", "tcp://x:99999"]
)
def test_an_address_without_a_scheduler_is_an_error(
    address: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr(scoring, "_SECONDS", 0.3)
    if address == "HTTP":
        address = serve(says("")).url.replace("http:", "tcp:").removesuffix("/v1")
    result = called(*GFR, "--cluster", address)
    assert result.exit_code == 2
    assert f"no Dask scheduler answers at {address}" in result.stderr


def test_a_cluster_that_ends_is_an_error() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    command = [sys.executable, "-c", CLUSTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as own:
        assert own.stdout is not None
        address = own.stdout.readline().strip()
        message = "scheduler or workers have ended"
        with pytest.raises(ValueError, match=message), scoring.workers(address) as client:
            scoring.run_each(os._exit, [(1,)], client, "file")


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text(json.dumps({}))
    result = called("score", "attribution", tmp_path)
    assert (result.exit_code, "a folder of .jsonl" in result.stderr) == (2, True)
