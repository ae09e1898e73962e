"""Guards the way to upstream data: cache, mirror, url; the sha256 on each; else one clear line."""

import hashlib
import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import called
from equipoise_compendium import project, registry
from equipoise_studies.systems.endpoint import (
    Endpoint,
    EndpointError,
    Sampling,
    ask_patiently,
    connect,
)

CONTENT = b"upstream bytes\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SENT: list[int] = []
"""Bytes that the server has sent, by part."""


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


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True)
    (folder / "b.txt").write_bytes(content)
    return folder / "b.txt"


def test_the_cache_comes_before_the_mirror(places: tuple[Path, Path]) -> None:
    cached, mirrored = places
    in_mirror = put(mirrored)
    assert registry.fetch("item", "a/b.txt") == in_mirror
    assert registry.verify(registry.entries().iloc[0]) == "mirror"
    in_cache = put(cached)
    assert registry.fetch("item", "a/b.txt") == in_cache
    assert project.used_files()["registry:item/a/b.txt"] == DIGEST


@pytest.mark.parametrize("place", [0, 1])
def test_a_damaged_file_is_refused(places: tuple[Path, Path], place: int) -> None:
    put(places[place], b"something else")
    with pytest.raises(ValueError, match="remove it there"):
        registry.fetch("item", "a/b.txt")
    assert registry.verify(registry.entries().iloc[0]) == "damaged"


def test_out_of_reach_is_one_clear_line(places: tuple[Path, Path]) -> None:
    with pytest.raises(registry.DataUnreachable, match="EQUIPOISE_MIRROR") as caught:
        registry.fetch("item", "a/b.txt")
    assert "\n" not in str(caught.value)
    assert registry.verify(registry.entries().iloc[0]) == "not here"
    assert not places[0].joinpath("b.txt").exists()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "served"
    root.mkdir()
    (root / "b.txt").write_bytes(CONTENT)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

        def copyfile(self, source: Any, outputfile: Any) -> None:
            with suppress(ConnectionError):  # the client may hang up
                while part := source.read(100_000):
                    outputfile.write(part)
                    SENT.append(len(part))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/b.txt"
        running.shutdown()


def test_downloads_once_and_checks_the_sha256(places: tuple[Path, Path], server: str) -> None:
    registry.entries().loc[0, "url"] = server
    path = registry.fetch("item", "a/b.txt")
    assert path == places[0] / "b.txt"
    assert path.read_bytes() == CONTENT
    registry.entries().loc[0, "sha256"] = "0" * 64
    path.unlink()
    with pytest.raises(
        ValueError, match=f"item/a/b.txt: {server} gives another file than wanted: 15 bytes"
    ):
        registry.fetch("item", "a/b.txt")
    assert list(places[0].iterdir()) == []


def test_a_download_is_bounded_by_the_registry(
    places: tuple[Path, Path], server: str, tmp_path: Path
) -> None:
    registry.entries().loc[0, "url"] = server
    with (tmp_path / "served" / "b.txt").open("wb") as file:
        file.truncate(10**8)  # zeros, which take no room
    SENT.clear()
    with pytest.raises(ValueError, match=r"item/a/b.txt: .* gives another file"):
        registry.fetch("item", "a/b.txt")
    assert sum(SENT) < 10**7  # what is on its way when the client hangs up
    assert list(places[0].iterdir()) == []


def test_what_a_killed_download_has_left_is_removed(places: tuple[Path, Path], server: str) -> None:
    registry.entries().loc[0, "url"] = server
    places[0].mkdir(parents=True)
    (places[0] / ".b.txt-0.equipoise-part").write_bytes(
        b"left by a process that died, and longer than the file"
    )
    assert registry.fetch("item", "a/b.txt").read_bytes() == CONTENT
    assert [path.name for path in places[0].iterdir()] == ["b.txt"]


def test_a_cache_that_cannot_be_written_is_told(
    places: tuple[Path, Path], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.entries().loc[0, "url"] = server
    monkeypatch.setenv(registry.CACHE_VARIABLE, "/dev/null/cache")
    with pytest.raises(
        registry.DataUnreachable, match=r"item/a/b.txt .*cannot be written to the cache, EQ"
    ):
        registry.fetch("item", "a/b.txt")
    assert not places[0].exists()


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
    assert [line.split()[0].rstrip(":") for line in lines] == [
        "item/damaged",
        "item/other",
        "item/gone",
        "item/nowhere",
    ]
    assert (places[0] / "b.txt").read_bytes() == CONTENT
    assert sorted(path.name for path in cache.rglob("*") if path.is_file()) == ["b.txt", "damaged"]


def test_a_mirror_that_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.MIRROR_VARIABLE, "no/such/folder")
    with pytest.raises(NotADirectoryError, match="no/such/folder"):
        registry.mirror_folder()


def test_the_committed_registry_pins_every_file() -> None:
    table = registry.entries()
    assert table["sha256"].str.fullmatch("[0-9a-f]{64}").all()
    assert (
        table["url"]
        .str.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+")
        .all()
    )
    assert table["licence"].ne("").all()
    assert table["bytes"].astype(int).gt(0).all()


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    """The url of a server on this machine whose certificate nobody has signed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    command = [openssl, *words, "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_certificate_that_is_not_trusted_is_called_so(
    untrusted: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = registry.entries().assign(url=f"{untrusted}/b.txt")
    monkeypatch.setattr(registry, "entries", lambda: table)
    with pytest.raises(registry.DataUnreachable, match="the certificate of its url is not trusted"):
        registry.fetch("item", "a/b.txt")
    assert not list(places[0].rglob("*"))
    endpoint = Endpoint(f"{untrusted}/v1", "tiny", tries=3, wait=0.01)
    with (
        connect() as client,
        pytest.raises(EndpointError, match="the certificate of the endpoint is not trusted"),
    ):
        ask_patiently(client, endpoint, Sampling(), [])
