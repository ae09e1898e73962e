"""Studies of the thesis's chapters, killed with ``kill -9`` at one change after the other.

As in `killed_writers`, a process that has everything imported forks for each run.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from killed_writers import KILLED, files, serve

COUNTED = ("write", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
"""What changes a file; a file is written when it is opened for that."""

MOST_LIVES = 500


def kept(folder: Path) -> dict[str, bytes]:
    """The files in a folder, but for those that a process has left unfinished."""
    return {name: text for name, text in files(folder).items() if "equipoise-part" not in name}


class KilledStudy:
    """A study that is killed again and again until it is done.

    ``folder``: where it writes, and nothing else does. ``between``: what people do where a run
    stops of itself and waits for them; it says whether they did anything.
    """

    def __init__(self, folder: Path, between: Callable[[], bool] = lambda: False) -> None:
        self.folder, self.between = folder, between
        server = [sys.executable, str(Path(__file__).absolute())]
        self._server = subprocess.Popen(
            server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: list[str], at: int | None = None) -> int:
        """Carry it out, or kill it before the ``at``-th change; returns its exit code."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        order: dict[str, Any] = {"arguments": command, "folder": str(self.folder), "at": at}
        order |= {"after": None, "counted": COUNTED}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return int(json.loads(self._server.stdout.readline())["code"])

    def finish(self, command: list[str]) -> None:
        """Carry it out to its end, with what people do on the way."""
        while self.run(command):
            assert self.between()

    def killed_until_done(self, command: list[str]) -> int:
        """Kill it at each change in turn until one life ends of itself; returns the kills.

        A life may put one file in its place, or open two. Where that is no gain, as of several
        files that count together, the next is killed one change later.
        """
        kills = 0
        changes = 3
        while kills < MOST_LIVES:
            before = kept(self.folder)
            code = self.run(command, changes)
            if code == KILLED:
                kills += 1
                changes = 3 if kept(self.folder) != before else changes + 1
            elif code == 0:
                return kills
            else:
                assert self.between()
        raise AssertionError("it does not get on")

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()


def end_as_uninterrupted(
    study: KilledStudy,
    command: list[str],
    recorded_in: Callable[[Path], dict[str, Any]],
    *,
    at_least: int,
) -> None:
    """Assert that a study records the same when it is killed at every change.

    ``recorded_in``: what is compared of the folder ``recorded``. ``at_least``: kills that there
    are, so that nobody finds later that none hit.
    """
    study.finish(command)
    uninterrupted = recorded_in(study.folder / "recorded")
    shutil.rmtree(study.folder)
    study.folder.mkdir()
    kills = study.killed_until_done(command)
    study.close()
    assert kills >= at_least, kills
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
    *(f"equipoise_studies.{chapter}.record" for chapter in ("attribution", "ranking_bias")),
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
