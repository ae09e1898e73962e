"""A chat server for tests: it behaves, dies, stalls or answers garbage, as scripted."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler], None]


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, text in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), text)
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()


def body_of(text: Any, finish: Any = "stop", logprobs: Any = None) -> bytes:
    answer = {
        "choices": [
            {
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish,
                "logprobs": logprobs,
            }
        ],
        "model": "/somewhere/on/disk/tiny.gguf",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": True},
    }
    return json.dumps(answer).encode()


def says(text: Any, finish: Any = "stop", logprobs: Any = None) -> Behaviour:
    return lambda handler: send(handler, body_of(text, finish, logprobs))


def fails(status: int, body: bytes = b"busy", **headers: str) -> Behaviour:
    return lambda handler: send(handler, body, status, **headers)


def dies(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def stalls(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.8)
    with contextlib.suppress(OSError):
        send(handler, body_of("too late"))


def silent(_: BaseHTTPRequestHandler) -> None:
    """Send nothing for longer than any test waits."""
    time.sleep(30)


def trickles(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, so that no single read times out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(12):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)


def tears(handler: BaseHTTPRequestHandler) -> None:
    """Promise a whole answer, send half of it and hang up."""
    body = body_of("a whole answer")
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    handler.connection.close()


def halves(handler: BaseHTTPRequestHandler) -> None:
    """Send half an answer as if it were whole."""
    body = body_of("a whole answer")
    send(handler, body[: len(body) // 2])


def request_of(handler: BaseHTTPRequestHandler) -> dict[str, Any]:
    """The request that this handler answers, whichever others come at the same time."""
    request: dict[str, Any] = vars(handler)["asked"]
    return request


class Server:
    """Answers the requests in turn as scripted; the last behaviour goes on."""

    def __init__(self, script: Sequence[Behaviour]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.authorisations: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self.asked = json.loads(self.rfile.read(length)) | {"path": self.path}
                server.requests.append(self.asked)
                server.authorisations.append(self.headers.get("Authorization"))
                server.script[min(len(server.requests), len(server.script)) - 1](self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the base class
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


Serve = Callable[..., Server]
"""Starts a server with a script; the fixture `serve`."""
