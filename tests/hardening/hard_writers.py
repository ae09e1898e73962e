"""Guards what a killed score or harvest leaves: every file old or new, and nothing else after.

Killed right behind every rename; ``tox -e kills`` kills them at every other step and at random
moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chat_server import Server, says
from killed_writers import Writer, first_harvest, harvest, score, score_folder

USEFUL = "Tenet (2020): https://www.imdb.com/title/tt6723592/"


RENAMES = {"score": 2, "score a folder": 3, "harvest": 1}  # of a folder: a file, a file, the folder


@pytest.fixture(scope="module")
def writer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writer]:
    folder, server = tmp_path_factory.mktemp("killed"), Server([says(USEFUL)])
    made = {"score": score, "score a folder": score_folder}.get(request.param)
    writer = made(folder) if made else harvest(folder, server.url)
    assert writer.done.count("os.rename") == RENAMES[request.param]
    yield writer
    writer.close()
    server.close()


CASES = [(name, number) for name, count in RENAMES.items() for number in range(1, count + 1)]


@pytest.mark.parametrize(("writer", "rename"), CASES, indirect=["writer"])
def test_a_writer_killed_right_after_a_rename_loses_nothing(rename: int, writer: Writer) -> None:
    writer.survives(at=writer.after_rename(rename))


def test_a_harvest_killed_as_it_begins_begins_again(tmp_path: Path) -> None:
    server = Server([says(USEFUL)])
    writer = first_harvest(tmp_path, server.url)
    for step in (2, 3):
        writer.survives(at=step)
    writer.close()
    server.close()
