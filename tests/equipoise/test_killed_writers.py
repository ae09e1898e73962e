"""Guards what a score and a harvest leave when they are killed: every file old or new, and nothing else afterwards.

They are killed before and behind every rename, and at random moments. Where EQUIPOISE_KILLS is set (tox -e kills), at
every single thing that they do to the folder, and at 20 random moments each.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from chat_server import Server, says
from equipoise import project
from equipoise.loaders.recorded_conversations import parse_record
from equipoise.loaders.transcripts import read_transcripts
from killing import Killer

SLOW = bool(os.environ.get("EQUIPOISE_KILLS"))
DATA = project.root() / "data"
KILLED = -9


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    made = Killer(tmp_path)
    yield made
    made.close()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kills(clean: dict[str, Any]) -> list[dict[str, Any]]:
    """At which of the things that a clean run did it is killed, and after how many seconds."""
    done, drawn = clean["done"], random.Random(15)  # noqa: S311
    renames = [number for number, event in enumerate(done, start=1) if event == "os.rename"]
    places = range(1, len(done) + 1) if SLOW else sorted({1, *renames, *(number + 1 for number in renames)})
    moments = [drawn.uniform(0, clean["seconds"]) for _ in range(20 if SLOW else 2)]
    return [*({"at": place} for place in places), *({"after": moment} for moment in moments)]


def restore(folder: Path, old: dict[str, bytes]) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for name, text in old.items():
        (folder / name).write_bytes(text)


# --- score ------------------------------------------------------------------------------------------------------------


def scoring(folder: Path, measure: str) -> list[str]:
    """A command that scores 400 conversations into two files, or a folder of partitions into another."""
    table = pd.read_csv(DATA / "conversations" / "R112.csv", dtype=str, keep_default_na=False)
    (folder / "in").mkdir()
    whole = pd.concat([table.assign(run=table["run"] + f"-{number}") for number in range(200)])
    whole.to_csv(folder / "in" / "nuggets.csv", index=False)
    for name, part in table.groupby("run"):
        part.to_parquet(folder / "in" / f"{name}.parquet", index=False)
    (folder / "out").mkdir()
    sets = ["--attributes", str(DATA / "attributes" / "fairweb_researchers.yaml")]
    if measure == "gfrc":
        return ["score", "gfrc", str(folder / "in"), *sets, "-o", str(folder / "out" / "parts")]
    written = ["-o", str(folder / "out" / "scores.csv"), "--clusters", str(folder / "out" / "clusters.parquet")]
    return ["score", "gfrc2", str(folder / "in" / "nuggets.csv"), *sets, *written]


@pytest.mark.parametrize("measure", ["gfrc", "gfrc2"])
def test_a_score_that_is_killed_leaves_every_file_old_or_new(measure: str, killer: Killer, tmp_path: Path) -> None:
    command, out = scoring(tmp_path, measure), tmp_path / "out"
    clean = killer.run(command)
    assert clean["code"] == 0
    new = files(out)
    old = {} if measure == "gfrc" else {"scores.csv": b"measure,value\n", "clusters.parquet": b""}
    allowed = [old, new]
    if measure == "gfrc2":
        allowed.append(old | {"scores.csv": new["scores.csv"]})  # between the two renames
    assert clean["done"].count("os.rename") == {"gfrc": 3, "gfrc2": 2}[measure]
    for how in kills(clean):
        restore(out, old)
        assert killer.run(command, **how)["code"] in ((KILLED,) if "at" in how else (KILLED, 0))
        left = {name: text for name, text in files(out).items() if ".equipoise-part" not in name}
        assert left in allowed, how
        if measure == "gfrc" and (out / "parts").exists():
            restore(out, {})
        assert killer.run(command)["code"] == 0
        assert files(out) == new
        assert all(path.is_file() or path.name == "parts" for path in out.iterdir())


# --- harvest ----------------------------------------------------------------------------------------------------------


def test_a_harvest_that_is_killed_loses_no_turn_and_no_annotation(
    killer: Killer, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says("Tenet (2020): https://www.imdb.com/title/tt6723592/"))
    topics, out = tmp_path / "topics.csv", tmp_path / "out"
    topics.write_text("topic,type,request,format,site\n" + "".join(f"T{i},T,Please list.,title,\n" for i in range(3)))
    command = ["harvest", "--topics", str(topics), "--endpoint", server.url, "--model", "m"]
    command += ["-o", str(out / "r.jsonl"), "--transcripts", str(out / "t.txt")]
    out.mkdir()
    assert killer.run([*command, "--trials", "1"])["code"] == 0
    old = files(out)
    old["t.txt"] = old["t.txt"].replace(b"tt6723592/\n", b"tt6723592/\n#L2\n", 1)  # annotated by hand
    restore(out, old)
    clean = killer.run([*command, "--trials", "2"])
    assert clean["code"] == 0
    new = files(out)
    assert new["t.txt"].startswith(old["t.txt"])
    assert "os.rename" in clean["done"]
    for how in kills(clean):
        restore(out, old)
        before = len(server.requests)
        assert killer.run([*command, "--trials", "2"], **how)["code"] in ((KILLED,) if "at" in how else (KILLED, 0))
        assert new["r.jsonl"].startswith((out / "r.jsonl").read_bytes())
        assert len(parse_record(out / "r.jsonl")[1]) >= 6
        assert (out / "t.txt").read_bytes() in (old["t.txt"], new["t.txt"])
        assert len(server.requests) - before - len(parse_record(out / "r.jsonl")[1]) + 6 <= 1  # the one that was open
        assert killer.run([*command, "--trials", "2"])["code"] == 0
        assert files(out) == new
    assert len(read_transcripts(out / "t.txt", {})) == 6


def test_a_harvest_killed_before_its_first_line_is_whole_begins_again(
    killer: Killer, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says("Tenet (2020): https://www.imdb.com/title/tt6723592/"))
    topics, out = tmp_path / "topics.csv", tmp_path / "out"
    topics.write_text("topic,type,request,format,site\nT1,T,Please list.,title,\n")
    command = ["harvest", "--topics", str(topics), "--endpoint", server.url, "--model", "m", "--trials", "1"]
    command += ["-o", str(out / "r.jsonl")]
    clean = killer.run(command)
    new = files(out)
    for at in range(1, len(clean["done"]) + 1 if SLOW else 5):
        restore(out, {})
        killer.run(command, at=at)
        assert killer.run(command)["code"] == 0
        assert files(out) == new
