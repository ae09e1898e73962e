"""Guards the server of the reports: no path, link or host leads out of them."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from equipoise_compendium import project
from equipoise_compendium.site import serve


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], int]]:
    """Serve a small clone, with links; what is answered to a path and a host."""
    reports = tmp_path / "clone" / "reports"
    for folder in (reports / "site", reports / "linked", reports / "one"):
        folder.mkdir(parents=True)
    (reports / "site" / "index.html").write_text("here")
    (tmp_path / "index.html").write_text("not for reading")
    (reports / "out").symlink_to(tmp_path)
    (reports / "file").symlink_to(tmp_path / "index.html")
    (reports / "linked" / "index.html").symlink_to(tmp_path / "index.html")
    (reports / "circle").symlink_to("circle")
    (reports / "within").symlink_to("site")
    monkeypatch.setattr(project, "root", lambda: tmp_path / "clone")
    with serve.server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def ask(path: str, host: str = "localhost") -> int:
            with closing(
                socket.create_connection(("127.0.0.1", server.server_port), timeout=10)
            ) as connection:
                connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode("latin-1"))
                return int(connection.makefile("rb").readline().split()[1])

        yield ask
        server.shutdown()
        thread.join()


REFUSED = [
    *("/out/index.html", "/out/", "/out", "/file", "/linked/", "//out/index.html"),
    *("/../index.html", "/%2e%2e/index.html", "/site/../../../index.html"),
    *("/circle", "/circle/", "/%00", "/site/%00", "/a%00b", "/%ff", "/" + "a" * 300),
]
"""Paths that lead out of the reports, or nowhere."""


@pytest.mark.parametrize("path", REFUSED)
def test_the_server_follows_no_link_out(
    path: str, served: Callable[[str], int], capfd: Any
) -> None:
    assert served(path) == 404
    assert served("/within/index.html") == served("/site/") == served("/one/") == 200
    assert capfd.readouterr().err == ""


OWN_HOSTS = [
    "localhost",
    "LOCALHOST",
    "localhost:8000",
    "127.0.0.1",
    "127.0.0.1:80",
    "[::1]",
    "[::1]:80",
]
OTHER_HOSTS = [
    *(
        "",
        "rebound.example",
        "localhost.rebound.example",
        "127.0.0.1.rebound.example",
        "localhost@rebound.example",
    ),
    *(
        "localhost:80:80",
        "localhost:x",
        "rebound.example#localhost",
        "::1",
        "[::1",
        "127.0.0.2",
        "\xe9",
    ),
]


@pytest.mark.parametrize("host", [*OWN_HOSTS, *OTHER_HOSTS])
def test_the_server_answers_to_its_own_names_only(
    host: str, served: Callable[[str, str], int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert served("/site/index.html", host) == (200 if host in OWN_HOSTS else 403)
    assert capfd.readouterr().err == ""
