"""The command ``equipoise``; its groups are light, so that help costs no import of a measure."""

from __future__ import annotations

import errno
import io
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from equipoise.problems import InputError, Note, plain, reason, shortened
from equipoise_cli import (
    agreement,
    compare,
    conversations,
    data,
    new,
    permute,
    reports,
    score_attribution,  # noqa: F401 - it adds to score
    score_citations,  # noqa: F401 - it adds to score
    score_lists,  # noqa: F401 - it adds to score
    score_overlap,  # noqa: F401 - it adds to score
    score_ranking_bias,  # noqa: F401 - it adds to score
    study,
)
from equipoise_cli.declared import CommandGroup
from equipoise_cli.score import score

_LONGEST = 1200  # letters of a message


def _to_install(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is missing."""
    from importlib.metadata import requires

    module = (error.name or "").partition(".")[0]
    if not module:
        return str(error)
    # Two packages are not called as the module that they bring.
    package_of = {"sklearn": "scikit-learn", "Stemmer": "pystemmer"}
    package = package_of.get(module, module.replace("_", "-"))
    for requirement in requires("equipoise") or []:
        extra = re.match(rf"{re.escape(package)}\b.*extra == .(\w+).", requirement)
        if extra:
            return f"this needs {package}: in your clone, python -m pip install '.[{extra[1]}]'"
    return str(error)


def _refused(message: str) -> click.UsageError:
    """An error of one sentence, safe to show and of bounded length."""
    return click.UsageError(shortened(plain(message), _LONGEST))


def _file_error(error: OSError) -> str:
    """What the system says of a file, by the file's name."""
    if error.errno is None:
        return str(error)
    return f"{error.filename or 'standard output'}: {reason(error)}"


def _value_error(error: ValueError | KeyError) -> str:
    """What is wrong with a value; a KeyError would put its message in quotes."""
    message = str(error.args[0]) if isinstance(error, KeyError) else str(error)
    if "embedded null" in message:
        return "a name with a NUL character"
    return message


class _InputFault(click.ClickException):
    """A fault of the input, in one sentence, without the usage of the command."""

    exit_code = 2


@contextmanager
def _in_sentences() -> Iterator[None]:
    """Turn what bad input raises into one message without a traceback, and status 2."""
    try:
        yield
    except click.ClickException as error:
        error.message = shortened(plain(error.message), _LONGEST)  # type: ignore[misc]
        raise
    except ModuleNotFoundError as error:
        raise click.ClickException(_to_install(error)) from None
    except InputError as error:
        raise _InputFault(str(error)) from None
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # click ends quietly: nobody reads on
        if error.filename is None:
            # What could not be written is not tried again at the end of the process.
            sys.stdout = io.StringIO()
        raise _refused(_file_error(error)) from None
    except ArithmeticError as error:
        raise _refused(f"numbers too large or too small to compute with: {error}") from None
    except UnicodeError:
        raise _refused("a text with half a surrogate pair, which no file can hold") from None
    except RecursionError:
        raise _refused("the input holds values within values without end") from None
    except MemoryError:
        raise _refused("the input holds too much for the memory") from None
    except (ValueError, KeyError) as error:
        raise _refused(_value_error(error)) from None


@contextmanager
def _notes_once() -> Iterator[None]:
    """Say every note about the input on standard error, once."""
    shown_notes: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        note = shortened(plain(message), _LONGEST)
        if note in shown_notes:
            return
        shown_notes.add(note)
        label = getattr(message, "label", "note")
        click.echo(f"{label}: {note}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _buffered(stream: Any) -> Any:
    """A text stream whose writes are complete or fail.

    With PYTHONUNBUFFERED, as in most containers, the standard output has no buffer, and of a text
    that a disk has no room for the rest would be lost without a word.
    """
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=True)


class _Group(CommandGroup):
    """The front door: whatever a command meets ends in sentences that name the file or option."""

    def main(self, *args: Any, **extra: Any) -> Any:
        sys.stdout = _buffered(sys.stdout)
        return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _in_sentences():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_sentences(), _notes_once():
            result = super().invoke(ctx)
            # Flushed within the block, so that a full disk behind it ends in a sentence too.
            if sys.stdout is not None:  # closed by the caller, as by >&-
                sys.stdout.flush()
            return result


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="equipoise")
def main() -> None:
    """Measures of bias and robustness in search and conversational systems, and their reports."""


_COMMANDS: tuple[click.Command, ...] = (
    score,
    agreement.agreement,
    *compare.COMMANDS,
    *conversations.COMMANDS,
    *new.COMMANDS,
    permute.permute,
    data.data,
    study.study,
    *reports.COMMANDS,
)
for command in _COMMANDS:
    main.add_command(command)
