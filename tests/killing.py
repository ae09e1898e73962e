"""Runs commands in processes of their own, and kills them: at a moment, or at the n-th thing they do to a folder.

A process that has everything imported waits for orders and forks for each, so that a run costs no start.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

CHANGES = ("open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")


def _run(order: dict[str, Any], results: int) -> None:
    """Run a command in this process, a child; it kills itself at the place it was told."""
    from equipoise.cli import main

    done: list[str] = []

    def notice(event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES and str(arguments[0]).startswith(order["folder"]):
            done.append(event)
            if len(done) == order["at"]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(notice)
    code = 0
    try:
        main(order["arguments"], standalone_mode=False)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    os.write(results, json.dumps(done).encode())
    os._exit(code)


def serve() -> None:
    """Take orders, lines of JSON, from standard input, and answer each."""
    import equipoise.cli.outputs
    import equipoise.conversations.harvest
    import equipoise.loaders.recorded_conversations
    import equipoise.measures.gfrc2
    import equipoise.parquet_folders  # noqa: F401

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        begun = time.monotonic()
        if not (child := os.fork()):
            _run(order, writing)
        os.close(writing)
        if order["after"] is not None:
            time.sleep(order["after"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as results:
            done = json.loads(results.read() or "[]")
        answer = {"code": os.waitstatus_to_exitcode(status), "done": done, "seconds": time.monotonic() - begun}
        print(json.dumps(answer), flush=True)


class Killer:
    """Gives the orders."""

    def __init__(self, folder: Path) -> None:
        import subprocess

        self.folder = folder
        command = [sys.executable, str(Path(__file__).absolute())]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def run(self, arguments: list[str], *, at: int | None = None, after: float | None = None) -> dict[str, Any]:
        """Run a command; kill it before the ``at``-th thing it does to the folder, or ``after`` so many seconds."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        order = {"arguments": arguments, "folder": str(self.folder), "at": at, "after": after}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        self._server.communicate()


if __name__ == "__main__":
    serve()
