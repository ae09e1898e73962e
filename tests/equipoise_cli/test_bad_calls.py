"""Guards every command against a corpus of bad calls that its declared options make.

A refusal names the option or the file, ends with status 1 or 2, without a traceback and within ten
seconds, and leaves every file as it was.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.testing import CliRunner

from bad_calls import BAD, PYTHON_S_WORDS, RAW, Call, Words, commands, corpus
from equipoise_cli import main
from equipoise_cli.shared import FILE
from good_files import COMMANDS, lay

UNREACHED = "conversations lack an answer"
LONGEST = 10  # seconds that a call may take


def _state(folder: Path) -> dict[str, tuple[int, ...]]:
    """What lies in a folder: its files by name, each with what tells whether it was touched."""
    states: dict[str, tuple[int, ...]] = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        # A folder changes its time when a file is written aside and moved.
        time = 0 if path.is_dir() else status.st_mtime_ns
        states[str(path)] = status.st_mode, time, status.st_ino
    return states


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"over {seconds} s")

    usual = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)


def _complaint(call: Call) -> str:
    """What is wrong with how a call is refused; empty where it is as it should be."""
    before = _state(Path())
    try:
        with _within(LONGEST):
            result = CliRunner().invoke(main, call.words)
    except TimeoutError as timeout:
        return str(timeout)
    raised: BaseException | None = result.exception
    if raised is not None and not isinstance(raised, SystemExit):
        return f"a traceback: {raised!r}"
    if result.exit_code == 0:
        return "" if call.may_pass else "taken, without a word"
    if call.may_pass and UNREACHED in result.stderr:
        return ""  # it went on to its end, where no server is; the record stays, to go on with
    changed = {name for name, _ in _state(Path()).items() ^ before.items()}
    complaints = {
        f"status {result.exit_code}": result.exit_code not in (1, 2),
        f"changed {', '.join(changed)}": bool(changed),
        "words of Python": PYTHON_S_WORDS.search(result.output) is not None,
        "control characters": RAW.search(result.output.replace("\r", "")) is not None,
        f"{len(result.output)} letters": len(result.output.encode()) > 2000,
        f"{result.stderr}: none of {call.names} named": not _is_named(call, result.stderr),
    }
    return "; ".join(complaint for complaint, holds in complaints.items() if holds)


def _is_named(call: Call, message: str) -> bool:
    return any(name and name in message for name in call.names)


def _clear(before: set[str]) -> None:
    """Remove what a call has made, and the file that is bad."""
    for name in sorted({str(path) for path in Path().rglob("*")} - before):
        path = Path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def test_every_command_refuses_what_it_cannot_take(quick: Path) -> None:
    lay(quick)
    calls = corpus()
    laid = {str(path) for path in Path().rglob("*")}
    complaints: list[tuple[Words, str]] = []
    for call in calls:
        if call.make is not None:
            call.make(Path(BAD))
        complaint = _complaint(call)
        if complaint:
            complaints.append((call.words, complaint))
        _clear(laid)
    for words, complaint in complaints:
        print([word[:60] for word in words], complaint[-600:], file=sys.stderr)
    assert len(calls) >= 1000
    called = {tuple(call.words[: len(path)]) for path, _ in commands() for call in calls}
    assert called >= {path for path, _ in commands()}
    assert not [words for words, complaint in complaints if complaint.startswith("a traceback")]
    assert len(complaints) <= len(calls) / 100


def test_a_command_that_reads_files_has_a_good_call() -> None:
    """What is wrong with a file is only seen where everything else is right."""
    for path, command in commands():
        parameters = command.get_params(click.Context(command))
        reads = any(parameter.type is FILE for parameter in parameters)
        good_paths = {tuple(words[: len(path)]) for words in COMMANDS.values()}
        assert not reads or path in good_paths, path
