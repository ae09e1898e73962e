"""Settings that every test shares, and what is kept of a benchmark run."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from hypothesis import settings

import small_repository
from chat_server import Behaviour, Server
from chromium import PROGRAM, Browser, running
from equipoise_compendium import project

mpl.use("Agg")
# the same examples at every run: a test that passes here passes on the next machine
settings.register_profile("equipoise", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("equipoise")


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_generate_json(benchmarks: Iterable[Any]) -> dict[str, dict[str, float]]:
    """Keep the ratios, which mean the same on the next machine: no seconds, host or date.

    They are the entries of a benchmark's extra information whose name begins with the word times.
    """
    kept = {}
    for benchmark in benchmarks:
        ratios = {
            name: value for name, value in benchmark.extra_info.items() if name.startswith("times ")
        }
        if ratios:
            kept[benchmark.fullname] = {
                name: float(f"{value:.2g}") for name, value in ratios.items()
            }
    return dict(sorted(kept.items()))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start chat servers with a script each."""
    servers: list[Server] = []

    def start(*script: Behaviour) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a small repository of one notebook, and work in it."""
    small_repository.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQUIPOISE_MIRROR", raising=False)
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    project.root.cache_clear()
    yield tmp_path
    project.root.cache_clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for every page, without network."""
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine: the pages are not opened in a browser")
    with running(PROGRAM) as chromium:
        yield chromium
