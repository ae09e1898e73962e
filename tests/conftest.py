"""Settings that every test shares, and what is kept of a benchmark run."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
import pytest
from filelock import FileLock
from hypothesis import settings

import small_repository
from chat_server import Behaviour, Server
from chromium import PROGRAM, Browser, running
from equipoise_compendium import build, project
from equipoise_compendium.notebooks import Notebook
from small_repository import Once

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


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Make a folder once for all processes of a run; tests read it, or work in a copy."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def made(name: str, make: Callable[[Path], None]) -> Path:
        folder = base / name
        with FileLock(base / f"{name}.lock"):
            if not folder.exists():
                staged = base / f"{name}.staged"
                shutil.rmtree(staged, ignore_errors=True)
                staged.mkdir()
                make(staged)
                staged.rename(folder)
        return folder

    return made


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


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let builds run notebooks here, one after the other, each with a kernel of its own."""

    def run(
        notebooks: Sequence[Notebook],
        parameters: Mapping[str, Mapping[str, Any]],
        folder: Path,
        _jobs: int | None,
    ) -> Iterator[tuple[str, str]]:
        for book in notebooks:
            with mock.patch.dict(os.environ):  # which names the folder of a report
                target = str(folder / book.name)
                error = build.execute(str(book.path), parameters[book.name], target)
            yield book.name, error

    monkeypatch.setattr(build, "_run", run)


@pytest.fixture
def built(root: Path, once: Once, request: pytest.FixtureRequest) -> Path:
    """Return the small repository with its report, which one process of a run builds."""
    request.getfixturevalue("one_process")

    def make(folder: Path) -> None:
        assert [outcome.state for outcome in build.build()] == ["built"]
        shutil.copytree(root / "reports", folder, dirs_exist_ok=True)

    shutil.copytree(once("small-reports", make), root / "reports", dirs_exist_ok=True)
    return root


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for every page, without network."""
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine: the pages are not opened in a browser")
    with running(PROGRAM) as chromium:
        yield chromium
