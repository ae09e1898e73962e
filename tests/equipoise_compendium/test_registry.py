"""Guards the way to upstream data: mirror, cache, url; the sha256 on each; else one clear line."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from commands import called
from equipoise_compendium import project, registry

CONTENT = b"some upstream \n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty cache and an empty mirror, with one registered file whose url answers nothing."""
    cache, mirror = tmp_path / "cache", tmp_path / "mirror"
    for folder in (cache, mirror):
        folder.mkdir()
    monkeypatch.setenv(registry.CACHE_VARIABLE, str(cache))
    monkeypatch.setenv(registry.MIRROR_VARIABLE, str(mirror))
    row = ("item", "a/b.txt", "http://127.0.0.1:9/b.txt", DIGEST, str(len(CONTENT)), "MIT")
    table = pd.DataFrame([row], columns=["item", "path", "url", "sha256", "bytes", "licence"])
    monkeypatch.setattr(registry, "entries", lambda: table)
    return cache / "item" / "a", mirror / "item" / "a"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "b.txt").write_bytes(CONTENT)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/b.txt"
        running.shutdown()


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True)
    (folder / "b.txt").write_bytes(content)
    return folder / "b.txt"


def test_the_mirror_comes_before_the_cache(places: tuple[Path, Path]) -> None:
    cached, mirrored = places
    in_cache = put(cached)
    assert registry.fetch("item", "a/b.txt") == in_cache
    assert registry.verify(registry.entries().iloc[0]) == "cache"
    in_mirror = put(mirrored)
    with project.used_meanwhile() as used:
        assert registry.fetch("item", "a/b.txt") == in_mirror
    assert used == {"registry:item/a/b.txt": DIGEST}


@pytest.mark.parametrize("place", [0, 1])
def test_a_damaged_file_is_an_error(places: tuple[Path, Path], place: int) -> None:
    put(places[place], b"something else")
    with pytest.raises(ValueError, match="remove the file"):
        registry.fetch("item", "a/b.txt")
    assert registry.verify(registry.entries().iloc[0]) == "damaged"


def test_unavailable_is_one_clear_line(places: tuple[Path, Path]) -> None:
    with pytest.raises(registry.DataUnreachable, match="EQUIPOISE_MIRROR") as caught:
        registry.fetch("item", "a/b.txt")
    assert "\n" not in str(caught.value)
    assert registry.verify(registry.entries().iloc[0]) == "not here"
    assert not places[0].joinpath("b.txt").exists()
    with pytest.raises(KeyError, match="other is not in"):
        registry.fetch("item", "other")


def test_downloads_once_and_checks_the_sha256(places: tuple[Path, Path], server: str) -> None:
    registry.entries().loc[0, "url"] = server
    path = registry.fetch("item", "a/b.txt")
    assert path == places[0] / "b.txt"
    assert path.read_bytes() == CONTENT
    registry.entries().loc[0, "sha256"] = "0" * 64
    path.unlink()
    with pytest.raises(ValueError, match=f"item/a/b.txt: the file at {server} has another sha256"):
        registry.fetch("item", "a/b.txt")
    assert list(places[0].iterdir()) == []


def test_one_bad_file_does_not_stop_the_others(
    places: tuple[Path, Path], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = registry.entries().assign(url=server)
    rows = [
        good.assign(path="damaged"),  # in the cache, with other bytes
        good.assign(path="other", sha256="0" * 64),
        good.assign(path="gone", url=f"{server}.gone"),
        good.assign(path="nowhere", url="http://127.0.0.1:9/"),
        good,
    ]
    monkeypatch.setattr(registry, "entries", lambda: pd.concat(rows, ignore_index=True))
    cache = places[0].parent
    cache.mkdir()
    (cache / "damaged").write_bytes(b"something else")
    fetched = called("data", "fetch")
    assert fetched.exit_code == 1
    lines = [line for line in fetched.stderr.splitlines() if line.startswith("item/")]
    names = [line.split()[0].rstrip(":") for line in lines]
    assert names == ["item/damaged", "item/other", "item/gone", "item/nowhere"]
    assert (places[0] / "b.txt").read_bytes() == CONTENT
    assert called("data", "fetch", "nothing").exit_code == 2


def test_a_mirror_must_be_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.MIRROR_VARIABLE, "no/such/folder")
    with pytest.raises(NotADirectoryError, match="no/such/folder"):
        registry.mirror_folder()


def test_the_committed_registry_pins_every_file() -> None:
    table = registry.entries()
    pinned = r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+"
    assert table["sha256"].str.fullmatch("[0-9a-f]{64}").all()
    assert table["url"].str.fullmatch(pinned).all()
    assert table["licence"].ne("").all()
    assert table["bytes"].astype(int).gt(0).all()
