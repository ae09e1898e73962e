"""Commands that write, killed at a moment, or at the n-th thing that they do to a folder.

Each runs in a process of its own.

A process that has everything imported waits for orders and forks for each, so that a run costs no
start.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from equipoise_studies.recorded_conversations import harvest_transcripts, read_harvest

from equipoise.loaders.transcripts import format_transcripts
from equipoise_cli import harvest as harvesting
from equipoise_cli import main
from equipoise_compendium import project
from equipoise_studies.systems.endpoint import Endpoint

KILLED = -9
DATA = project.root() / "data"
SETS = str(DATA / "attributes" / "fairweb_researchers.yaml")

CHANGES = (
    "open",
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "shutil.rmtree",
)
CHANGES_OF_STUDIES = ("write", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


def _run(order: dict[str, Any], results: int) -> None:
    """Run a command in this process, a child; it kills itself at the place it was told."""
    done: list[str] = []
    kinds: list[str] = []

    def notice(event: str, arguments: tuple[Any, ...]) -> None:
        if order.get("kills") is not None:
            kind = _kind_of_change(event, arguments, order["folder"])
            for name in order["alike"]:
                kind = kind.replace(name, "#")
            kinds.append(kind)
            if kind and kinds.count(kind) == order["kills"].get(kind, 0) + 1 <= order["most"]:
                os.write(results, json.dumps([kind]).encode())
                os.kill(os.getpid(), signal.SIGKILL)
        elif event in CHANGES and str(arguments[0]).startswith(order["folder"]):
            done.append(event)
            if len(done) == order["at"]:
                os.kill(os.getpid(), signal.SIGKILL)

    if "environment" in order:
        os.environ.clear()
        os.environ.update(order["environment"])

    os.dup2(2, 1)  # what it says is none of the answers to orders
    sys.addaudithook(notice)
    code = 0
    try:
        main(order["arguments"], standalone_mode=False)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    os.write(results, json.dumps(done).encode())
    os._exit(code)


def _kind_of_change(event: str, arguments: tuple[Any, ...], folder: str) -> str:
    """What is done to which kind of file below a folder; empty where nothing is changed.

    A file that is put in its place changes nothing before, and what is opened for reading nothing
    at all. Files whose names differ in numbers and digests alone are of one kind, and so are all
    that a process has left unfinished.
    """
    if event == "open" and arguments[2] & os.O_ACCMODE:
        event = "" if str(arguments[0]).endswith("part") else "write"
    place = str(arguments[1] if event == "os.rename" else arguments[0]) if arguments else ""
    if event not in CHANGES_OF_STUDIES or not place.startswith(folder):
        return ""
    if place.endswith("part"):
        return f"{event} of what was left unfinished"
    return f"{event} {re.sub('[0-9a-f]*[0-9][0-9a-f]*', '#', place.removeprefix(folder))}"


def serve() -> None:
    """Take orders, lines of JSON, from standard input, and answer each."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        begun = time.monotonic()
        if not (child := os.fork()):
            _run(order, writing)
        os.close(writing)
        if order["after"] is not None:
            time.sleep(order["after"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as results:
            done = json.loads(results.read() or "[]")
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "done": done,
            "seconds": time.monotonic() - begun,
        }
        print(json.dumps(answer), flush=True)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class Writer:
    """A command that writes into a folder, what it finds there, and what it leaves unharmed.

    ``sound`` is asked about the files that a killed one has left, temporary ones apart.
    """

    def __init__(
        self,
        command: Sequence[object],
        folder: Path,
        old: dict[str, bytes],
        sound: Callable[[dict[str, bytes], dict[str, bytes]], bool],
    ) -> None:
        self._command, self.folder, self.old, self._sound = (
            [str(part) for part in command],
            folder,
            old,
            sound,
        )
        server = [sys.executable, str(Path(__file__).absolute())]
        self._server = subprocess.Popen(
            server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.restore()
        clean = self._run()
        assert clean["code"] == 0
        self.new, self.done, self.seconds = files(folder), clean["done"], clean["seconds"]

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name, text in self.old.items():
            (self.folder / name).write_bytes(text)

    def _run(self, at: int | None = None, after: float | None = None) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        order = {"arguments": self._command, "folder": str(self.folder), "at": at, "after": after}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def after_rename(self, number: int) -> int:
        """The thing done next after a rename, the first of them being 1."""
        return [place for place, event in enumerate(self.done, start=1) if event == "os.rename"][
            number - 1
        ] + 1

    def survives(self, at: int | None = None, after: float | None = None) -> None:
        """Kill it before the ``at``-th thing, or after so many seconds; then let it run on."""
        self.restore()
        code = self._run(at, after)["code"]
        assert code == KILLED or (code == 0 and at is None)
        left = {
            name: text for name, text in files(self.folder).items() if ".equipoise-part" not in name
        }
        assert self._sound(left, self.new)
        if not self.old and left == self.new and all("/" in name for name in left):
            self.restore()  # a folder of scores is made once
        assert self._run()["code"] == 0
        assert files(self.folder) == self.new
        assert not list(self.folder.glob(".*"))

    def close(self) -> None:
        self._server.communicate()


def score(folder: Path) -> Writer:
    """400 conversations scored into two files that are there."""
    table = pd.read_csv(DATA / "conversations" / "R112.csv", dtype=str, keep_default_na=False)
    whole = pd.concat([table.assign(run=table["run"] + f"-{number}") for number in range(200)])
    whole.to_csv(folder / "nuggets.csv", index=False)
    out, command = folder / "out", ["score", "gfrc2", folder / "nuggets.csv", "--attributes", SETS]
    command += ["-o", out / "scores.csv", "--clusters", out / "clusters.parquet"]
    old = {"scores.csv": b"measure,value\n", "clusters.parquet": b""}
    return Writer(
        command,
        out,
        old,
        lambda left, new: left in (old, new, old | {"scores.csv": new["scores.csv"]}),
    )


def score_folder(folder: Path) -> Writer:
    """A folder of partitions scored into a new one."""
    (folder / "in").mkdir()
    table = pd.read_csv(DATA / "conversations" / "R112.csv", dtype=str, keep_default_na=False)
    for name, part in table.groupby("run"):
        part.to_parquet(folder / "in" / f"{name}.parquet", index=False)
    command = ["score", "gfrc", folder / "in", "--attributes", SETS, "-o", folder / "out" / "parts"]
    return Writer(command, folder / "out", {}, lambda left, new: left in ({}, new))


def harvest(folder: Path, url: str) -> Writer:
    """A second trial of three topics, where the transcript of the first is annotated."""
    topics, out = folder / "topics.csv", folder / "out"
    topics.write_text(
        "topic,type,request,format,site\n"
        + "".join(f"T{i},T,Please list.,title,\n" for i in range(3))
    )
    harvesting.harvest(
        harvesting.read_topics(topics), Endpoint(url, "m"), folder / "r.jsonl", trials=1
    )
    transcript = format_transcripts(harvest_transcripts(read_harvest(folder / "r.jsonl")))
    annotated = transcript.replace("tt6723592/\n", "tt6723592/\n#L2\n", 1).encode()
    old = {"r.jsonl": (folder / "r.jsonl").read_bytes(), "t.txt": annotated}
    command: list[object] = [
        "harvest",
        "--topics",
        topics,
        "--endpoint",
        url,
        "--model",
        "m",
        "--trials",
        "2",
    ]

    def sound(left: dict[str, bytes], new: dict[str, bytes]) -> bool:
        grown = left["r.jsonl"].startswith(old["r.jsonl"]) and new["r.jsonl"].startswith(
            left["r.jsonl"]
        )
        return (
            grown
            and left["t.txt"] in (annotated, new["t.txt"])
            and new["t.txt"].startswith(annotated)
        )

    return Writer(
        [*command, "-o", out / "r.jsonl", "--transcripts", out / "t.txt"], out, old, sound
    )


def first_harvest(folder: Path, url: str) -> Writer:
    """A harvest of one topic, of which nothing is there yet."""
    topics, out = folder / "topics.csv", folder / "out"
    topics.write_text("topic,type,request,format,site\nT1,T,Please list.,title,\n")
    command: list[object] = [
        "harvest",
        "--topics",
        topics,
        "--endpoint",
        url,
        "--model",
        "m",
        "--trials",
        "1",
    ]
    return Writer(
        [*command, "-o", out / "r.jsonl"],
        out,
        {},
        lambda left, new: new["r.jsonl"].startswith(left.get("r.jsonl", b"")),
    )


if __name__ == "__main__":
    serve()
