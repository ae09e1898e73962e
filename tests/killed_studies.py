"""Studies of the thesis's chapters, killed with ``kill -9`` at one kind of change after the other.

As in `killed_writers`, a process that has everything imported forks for each run.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from killed_writers import KILLED, files, serve

MOST_KILLS = 2
"""Of a kind of change: before the first, and before the second, which another life went before."""


def kept(folder: Path) -> dict[str, bytes]:
    """The files in a folder, but for those that a process has left unfinished."""
    return {name: text for name, text in files(folder).items() if "equipoise-part" not in name}


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks, which ends when nothing can be asked of it any more."""
    server = [sys.executable, str(Path(__file__).absolute())]
    process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


class KilledStudy:
    """A study that is killed again and again until it is done.

    ``folder``: where it writes, and nothing else does. ``between``: what people do where a run
    stops of itself and waits for them; it says whether they did anything. ``alike``: names, such as
    those of collections, by which changes of one kind differ.
    """

    def __init__(
        self,
        folder: Path,
        between: Callable[[], bool] = lambda: False,
        alike: Sequence[str] = (),
    ) -> None:
        self.folder, self.between, self.alike = folder, between, alike

    def run(self, command: list[str], kills: dict[str, int] | None = None) -> tuple[int, list[str]]:
        """Carry it out; returns its exit code, and the kind of change at which it was killed.

        ``kills``: how often it was killed at each kind; it is killed before the first change beyond
        these, of a kind that has been no place for it `MOST_KILLS` times.
        """
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        order: dict[str, Any] = {"arguments": command, "folder": str(self.folder)}
        order |= {"kills": kills, "most": MOST_KILLS, "alike": self.alike}
        order |= {"at": None, "after": None}
        server.stdin.write(json.dumps(order | {"environment": dict(os.environ)}) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        return int(answer["code"]), answer["done"]

    def finish(self, command: list[str]) -> None:
        """Carry it out to its end, with what people do on the way."""
        while self.run(command)[0]:
            assert self.between()

    def killed_until_done(self, command: list[str]) -> dict[str, int]:
        """Kill it at each kind of change until a life ends of itself; returns kills by kind."""
        kills: dict[str, int] = {}
        while True:
            code, changes = self.run(command, kills)
            if code == KILLED:
                (kind,) = changes
                kills[kind] = kills.get(kind, 0) + 1
            elif code == 0:
                return kills
            else:
                assert self.between()


def end_as_uninterrupted(
    study: KilledStudy,
    command: list[str],
    recorded_in: Callable[[Path], dict[str, Any]],
    *,
    at_least: int,
) -> None:
    """Assert that a study records the same when it is killed at each kind of change.

    ``recorded_in``: what is compared of the folder ``recorded``. ``at_least``: kinds that there
    are, so that nobody finds later that none hit.
    """
    study.finish(command)
    uninterrupted = recorded_in(study.folder / "recorded")
    shutil.rmtree(study.folder)
    study.folder.mkdir()
    kills = study.killed_until_done(command)
    assert len(kills) >= at_least, kills
    resumed = recorded_in(study.folder / "recorded")
    differing: dict[str, Any] = {}
    for name in sorted({*resumed, *uninterrupted}):
        after, before = resumed.get(name), uninterrupted.get(name)
        if after == before:
            continue
        differing[name] = (after, before)
        if isinstance(after, list) and isinstance(before, list):
            alone = [line for line in after if line not in before]
            lacking = [line for line in before if line not in after]
            differing[name] = (alone, lacking)
    assert not differing, differing
    # nothing unfinished is left where it is recorded
    left = kept(study.folder / "recorded").keys() ^ files(study.folder / "recorded").keys()
    assert not left, left


IMPORTED = (
    "equipoise_studies.ranking_bias.record",
    *(f"equipoise_studies.{chapter}.record" for chapter in ("query_by_example", "satisfaction")),
    "equipoise_studies.query_by_example.trainer",
    "equipoise_studies.satisfaction.systems",
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.qwen2.modeling_qwen2",
    "transformers.generation.utils",
    "pyarrow.parquet",
    "httpx",
)
"""What a recorder imports when it is wanted, which each fork would do anew."""


def main() -> None:
    """Import what recorders need, stand in for spaCy, and take orders."""
    for module in IMPORTED:
        with suppress(ModuleNotFoundError):
            importlib.import_module(module)
    from equipoise_studies.ranking_bias.record import counterfactual, query_set
    from equipoise_studies.ranking_bias.substitution import GenderPairs
    from plain_tagger import plain_tagger

    pairs = GenderPairs.of([("he", "she"), ("king", "queen")], [("John", "Mary")])
    vars(query_set).update(
        gender_pairs=lambda: pairs,
        PACKAGES=(),
        find_spec=lambda _: True,
    )
    vars(counterfactual).update(spacy_tagger=lambda **_: plain_tagger, CHUNK=15)
    serve()


if __name__ == "__main__":
    main()
