"""A server of faults: the first request gets the bytes of a fault, each later one an answer."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator

from chat_server import body_of

Fault = Callable[[socket.socket], None]
GOOD = "Tenet (2020): https://www.imdb.com/title/tt6723592/"


def response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def sends(*parts: bytes, every: float = 0) -> Fault:
    """Send parts, hang up."""

    def fault(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)
            time.sleep(every)

    return fault


def without_end(start: bytes, part: bytes, every: float = 0) -> Fault:
    """Send something, then a part over and over, until the other side has had enough."""

    def fault(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(part)
            time.sleep(every)

    return fault


def stalls(start: bytes = b"") -> Fault:
    """Send something, then nothing, and do not hang up."""

    def fault(connection: socket.socket) -> None:
        connection.sendall(start)
        while connection.recv(1024):
            pass

    return fault


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def says_json(content: object) -> Fault:
    return sends(response(json.dumps(content).encode()))


def chunked(*chunks: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(chunks)


def choice(**changes: object) -> Fault:
    return says_json(
        {"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"} | changes]}
    )


def status(line: str, body: bytes = b"busy", *headers: str) -> Fault:
    return sends(response(body, line, *headers))


def packed(body: bytes, how: str) -> Fault:
    return sends(response(body, "200 OK", f"Content-Encoding: {how}"))


OK = response(body_of(GOOD))
HEAD, BODY = OK.split(b"\r\n\r\n", 1)
BOMB = gzip.compress(b" " * 2**27)
LATE, FAILED, NO_JSON = (
    "no complete answer within 0.3 s",
    "the connection failed",
    "not JSON, or only a part of it",
)
LACKS, NO_TEXT, LONG = "lacks choices[0]", "is not text", "is longer than 4194304 bytes"
PACKED = "is compressed"

PASSING: dict[str, tuple[Fault, str]] = {
    # --- the connection
    "hangs up": (sends(), FAILED),
    "resets": (resets, FAILED),
    "stalls": (stalls(), LATE),
    # --- the status line
    "empty lines": (sends(b"\r\n\r\n\r\n"), FAILED),
    "no HTTP": (sends(b"HELLO\r\n\r\n"), FAILED),
    "an answer without head": (sends(BODY), FAILED),
    "SSH": (sends(b"SSH-2.0-OpenSSH_9.6\r\n"), FAILED),
    "a TLS alert": (sends(b"\x15\x03\x01\x00\x02\x02\x46"), FAILED),
    "HTTP/2": (sends(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), FAILED),
    "a version of tomorrow": (sends(b"HTTP/9.x 200 OK\r\n\r\n"), FAILED),
    "a status in words": (sends(b"HTTP/1.1 good OK\r\n\r\n"), FAILED),
    "a status of four digits": (sends(b"HTTP/1.1 2000 OK\r\n\r\n"), FAILED),
    "a negative status": (sends(b"HTTP/1.1 -20 OK\r\n\r\n"), FAILED),
    "a status line without end": (without_end(b"HTTP/1.1 200 O", b"K" * 4096), FAILED),
    "a status line that trickles": (without_end(b"HTTP/1.1 200 O", b"K", 0.05), LATE),
    "half a status line": (sends(b"HTTP/1.1 20"), FAILED),
    "half a status line, then nothing": (stalls(b"HTTP/1.1 20"), LATE),
    # --- headers
    "headers without end": (without_end(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 500), FAILED),
    "headers that trickle": (without_end(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.05), LATE),
    "headers cut off": (sends(b"HTTP/1.1 200 OK\r\nContent-Le"), FAILED),
    "headers, then nothing": (stalls(b"HTTP/1.1 200 OK\r\nX-A: b\r\n"), LATE),
    "a large header": (sends(b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 200_000 + b"\r\n\r\n"), FAILED),
    "a header without colon": (sends(HEAD + b"\r\nwords and words\r\n\r\n" + BODY), FAILED),
    "a header with NUL": (sends(HEAD + b"\r\nX-A: \x00\r\n\r\n" + BODY), FAILED),
    "two lengths": (sends(HEAD + b"\r\nContent-Length: 3\r\n\r\n" + BODY), FAILED),
    "a negative length": (sends(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + BODY), FAILED),
    "a length in words": (sends(b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n" + BODY), FAILED),
    "a length of many digits": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"),
        FAILED,
    ),
    "a length too large, then the end": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + BODY),
        FAILED,
    ),
    "a length too large, then nothing": (
        stalls(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + BODY),
        LATE,
    ),
    "a length too small": (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + BODY), NO_JSON),
    "an unknown transfer": (
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: morse\r\n\r\n" + BODY),
        FAILED,
    ),
    "a redirection to nowhere": (status("302 Found", b"there", "Location: http://[:::/"), FAILED),
    # --- what comes before the answer
    "another protocol": (
        sends(b"HTTP/1.1 101 Switch\r\nUpgrade: morse\r\nConnection: upgrade\r\n\r\n"),
        FAILED,
    ),
    "100 Continue without end": (without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), LATE),
    "100 Continue without end and pause": (
        without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99, 0.001),
        LATE,
    ),
    "100 Continue, then nothing": (stalls(b"HTTP/1.1 100 Continue\r\n\r\n"), LATE),
    "102 Processing without end": (
        without_end(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 0.05),
        LATE,
    ),
    # --- chunks
    "a chunk size in words": (sends(chunked(b"ten\r\n", BODY)), FAILED),
    "a negative chunk size": (sends(chunked(b"-5\r\n", BODY)), FAILED),
    "a chunk of terabytes": (sends(chunked(b"FFFFFFFFFFFF\r\n", BODY)), FAILED),
    "a chunk longer than said": (sends(chunked(b"5\r\n", BODY, b"\r\n0\r\n\r\n")), FAILED),
    "chunks cut off": (sends(chunked(b"5\r\n", BODY[:5])), FAILED),
    "no last chunk": (sends(chunked(b"%x\r\n" % len(BODY), BODY, b"\r\n")), FAILED),
    "no last chunk, then nothing": (stalls(chunked(b"%x\r\n" % len(BODY), BODY, b"\r\n")), LATE),
    "chunks that trickle": (without_end(chunked(), b"1\r\n \r\n", 0.05), LATE),
    "chunks without end": (without_end(chunked(), b"10000\r\n" + b" " * 2**16 + b"\r\n"), LONG),
    "trailers without end": (without_end(chunked(b"0\r\n"), b"X-A: b\r\n" * 500), FAILED),
    "trailers that trickle": (without_end(chunked(b"0\r\n"), b"X-A: b\r\n", 0.05), LATE),
    # --- the body
    "no body": (sends(response(b"")), NO_JSON),
    "half an answer": (sends(response(BODY[: len(BODY) // 2])), NO_JSON),
    "a body that trickles": (without_end(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.05), LATE),
    "a body without end": (without_end(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 2**16), LONG),
    "a web page": (sends(response(b"<html>502 bad gateway</html>")), NO_JSON),
    "a stream of events": (sends(response(b"data: " + BODY + b"\n\ndata: [DONE]\n\n")), NO_JSON),
    "two answers": (sends(response(BODY + BODY)), NO_JSON),
    "no UTF-8": (sends(response(BODY.replace(b"Tenet", b"T\xffnet"))), NO_JSON),
    "lists in lists": (sends(response(b"[" * 10**6)), NO_JSON),
    "objects in objects": (sends(response(b'{"a":' * 10**5)), NO_JSON),
    "a number of many digits": (sends(response(b'{"choices": ' + b"9" * 5000 + b"}")), NO_JSON),
    "compressed": (
        sends(response(gzip.compress(BODY), "200 OK", "Content-Encoding: gzip")),
        "is compressed",
    ),
    "a bomb": (sends(response(BOMB, "200 OK", "Content-Encoding: gzip")), "is compressed"),
    "a bomb in a bomb": (
        sends(response(gzip.compress(BOMB), "200 OK", "Content-Encoding: gzip, gzip")),
        "is compressed",
    ),
    "deflated": (
        sends(response(zlib.compress(BODY), "200 OK", "Content-Encoding: deflate")),
        "is compressed",
    ),
    # --- what the body holds
    "null": (says_json(None), LACKS),
    "a text": (says_json("Tenet"), LACKS),
    "a list": (says_json([1]), LACKS),
    "an empty object": (says_json({}), LACKS),
    "an error with status 200": (says_json({"error": {"message": "overloaded"}}), LACKS),
    "no choice": (says_json({"choices": []}), LACKS),
    "choices by name": (says_json({"choices": {"0": GOOD}}), LACKS),
    "a choice of text": (says_json({"choices": [GOOD]}), LACKS),
    "no message": (choice(message=None), LACKS),
    "a message of text": (choice(message=GOOD), LACKS),
    "no content": (choice(message={"role": "assistant"}), LACKS),
    "content null": (choice(message={"content": None}), NO_TEXT),
    "content in parts": (choice(message={"content": [{"type": "text", "text": GOOD}]}), NO_TEXT),
    "content a number": (choice(message={"content": float("nan")}), NO_TEXT),
    "no end": (choice(finish_reason=None), NO_TEXT),
    "an end in numbers": (choice(finish_reason=1), NO_TEXT),
    # --- statuses that may pass
    **{
        f"status {number}": (status(f"{number} Something"), f"HTTP {number}: busy")
        for number in (408, 409, 425, 429, 500, 502, 503, 504, 520, 599)
    },
    "an error in bytes": (status("500 No", bytes(range(256))), "HTTP 500"),
    "an error that paints": (
        status("500 No", b"\x1b[31mred\x07 \xe2\x80\xaegnp"),
        "HTTP 500: \ufffd[31mred\ufffd \ufffdgnp",
    ),
    "a large error": (status("500 No", b"busy " * 100_000), "HTTP 500: busy busy"),
    "an error without end": (without_end(b"HTTP/1.1 500 No\r\n\r\n", b" " * 2**16), LONG),
    "an error that trickles": (without_end(b"HTTP/1.1 500 No\r\n\r\n", b".", 0.05), LATE),
    "an empty error": (status("503 No", b""), "HTTP 503"),
}

FINAL: dict[str, tuple[Fault, str]] = {
    **{
        f"status {number}": (
            status(f"{number} Something", b"no such thing"),
            f"HTTP {number}: no such thing",
        )
        for number in (201, 301, 307, 400, 401, 403, 404, 405, 413, 422, 451)
    },
    "elsewhere": (
        status("302 Found", b"there", "Location: http://127.0.0.1:9/"),
        "HTTP 302: there",
    ),
    "nothing to say": (sends(b"HTTP/1.1 204 No Content\r\n\r\n"), "HTTP 204"),
    "wait an hour": (
        status("429 Wait", b"busy", "Retry-After: 3600"),
        "no answer after 1 tries: HTTP 429: busy",
    ),
    "wait for ever": (
        status("503 Wait", b"busy", f"Retry-After: {'9' * 4000}"),
        "no answer after 1 tries",
    ),
    "wait until 2999": (
        status("503 Wait", b"busy", "Retry-After: Tue, 31 Dec 2999 00:00:00 GMT"),
        "after 1 tries",
    ),
}

GOOD_BUT_ODD: dict[str, Fault] = {
    "no reason": sends(OK.replace(b"200 OK", b"200")),
    "HTTP/1.0": sends(OK.replace(b"HTTP/1.1", b"HTTP/1.0")),
    "no length": sends(b"HTTP/1.1 200 OK\r\n\r\n" + BODY),
    "chunks": sends(chunked(*(b"1\r\n%c\r\n" % byte for byte in BODY), b"0\r\n\r\n")),
    "100 Continue first": sends(b"HTTP/1.1 100 Continue\r\n\r\n" + OK),
    "hints first": sends(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK),
    "in pieces": sends(*(OK[at : at + 40] for at in range(0, len(OK), 40)), every=0.005),
    "a folded header": sends(HEAD + b"\r\nX-A: b\r\n c\r\n\r\n" + BODY),
    "cookies": sends(HEAD + b"\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: ;;=\xff\r\n\r\n" + BODY),
    "more than was asked for": sends(OK + b"HTTP/1.1 500 No\r\n\r\n"),
    "a byte order mark": sends(response(b"\xef\xbb\xbf" + BODY)),
    "UTF-16": sends(response(BODY.decode().encode("utf-16"))),
    "identity": sends(response(BODY, "200 OK", "Content-Encoding: identity")),
    "senseless counts": says_json(
        json.loads(BODY) | {"usage": {"prompt_tokens": 10**400, "completion_tokens": -1}}
    ),
    "a model in a list": says_json(
        json.loads(BODY) | {"model": ["tiny"], "system_fingerprint": {"a": 1}}
    ),
    "long words": says_json(
        json.loads(BODY) | {"model": "m" * 10**6, "system_fingerprint": "f" * 10**6}
    ),
    "log-probabilities of nonsense": choice(logprobs={"content": [{"token": 3}, None]}),
}


class FaultServer:
    """Answers the first request by a fault, every later one well."""

    def __init__(self, fault: Fault) -> None:
        self._behaviours: Iterator[Fault] = iter([fault])
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                behaviour = next(self._behaviours, sends(OK))
                threading.Thread(
                    target=self._answer, args=(connection, behaviour), daemon=True
                ).start()

    def _answer(self, connection: socket.socket, behaviour: Fault) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            request = b""
            while not request.endswith(b"}"):  # the body is one JSON object
                request += connection.recv(2**16)
            self.requests.append(request)
            behaviour(connection)

    def close(self) -> None:
        self._socket.close()
