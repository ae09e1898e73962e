"""Kill -9 of a score and of a harvest at random moments, and before every step.

A step is whatever changes a file. `hard_writers` kills behind every rename.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from chat_server import Server, says
from killed_writers import Writer, first_harvest, harvest, score, score_folder

MOMENTS = 6


def begin(name: str, factory: pytest.TempPathFactory) -> Iterator[Writer]:
    folder, server = (
        factory.mktemp("killed"),
        Server([says("Tenet (2020): https://www.imdb.com/title/tt6723592/")]),
    )
    makers = {"score": score, "score a folder": score_folder}
    asking = {"harvest": harvest, "first harvest": first_harvest}
    writer = makers[name](folder) if name in makers else asking[name](folder, server.url)
    yield writer
    writer.close()
    server.close()


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    yield from begin("score", tmp_path_factory)


@pytest.fixture(scope="module")
def harvesting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    yield from begin("harvest", tmp_path_factory)


@pytest.fixture(params=["score", "score a folder", "harvest", "first harvest"])
def writer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writer]:
    yield from begin(request.param, tmp_path_factory)


def moment(number: int, seconds: float) -> float:
    return random.Random(number).uniform(0, seconds)  # noqa: S311


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_score_killed_at_a_random_moment_loses_nothing(number: int, scoring: Writer) -> None:
    scoring.survives(after=moment(number, scoring.seconds))


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_harvest_killed_at_a_random_moment_loses_nothing(number: int, harvesting: Writer) -> None:
    harvesting.survives(after=moment(number, harvesting.seconds))


def test_a_writer_killed_before_any_step_loses_nothing(writer: Writer) -> None:
    for step in range(1, len(writer.done) + 1):
        writer.survives(at=step)
    print(len(writer.done), "steps")
