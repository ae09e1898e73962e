"""The command ``equipoise``; its groups import no measures, so that help is fast."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from equipoise.errors import Note, plain
from equipoise_cli import (
    annotators,
    compare,
    data,
    harvest,
    new,
    permute,
    reports,
    score_answers,  # noqa: F401 - it adds to score
    score_conversations,  # noqa: F401 - it adds to score
    score_runs,  # noqa: F401 - it adds to score
)
from equipoise_cli.declared import CommandGroup
from equipoise_cli.scoring import score
from equipoise_cli.shared import show_alike, show_note

_LONGEST = 1200  # characters of a message


class _Fault(click.ClickException):
    """An error in the input as one sentence, without the usage of the command."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(plain(message)[:_LONGEST])


def _to_install(error: ModuleNotFoundError) -> str:
    """Return a message that names the extra with a missing module."""
    from importlib.metadata import requires

    module = (error.name or "").partition(".")[0]
    # Two packages have another name than their module.
    package_of = {"sklearn": "scikit-learn", "Stemmer": "pystemmer"}
    package = package_of.get(module, module.replace("_", "-"))
    for requirement in requires("equipoise") or []:
        extra = re.match(rf"{re.escape(package)}\b.*extra == .(\w+).", requirement)
        if package and extra:
            return f"{package} not found; in your clone, run python -m pip install '.[{extra[1]}]'"
    return str(error)


@contextmanager
def _in_sentences() -> Iterator[None]:
    """Turn errors in the input into one sentence without a traceback, with exit status 2."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException(_to_install(error)) from None
    except BrokenPipeError:
        raise  # click ends silently, because nobody reads the output
    except OSError as error:
        if error.filename is None:
            sys.stdout = io.StringIO()  # so that Python does not write the output again at exit
        place = error.filename or "standard output"
        raise _Fault(f"{place}: {(error.strerror or str(error)).lower()}") from None
    except KeyError as error:
        raise _Fault(str(error.args[0])) from None  # its own text has quotes around the message
    except MemoryError as error:
        raise _Fault(f"the input is too large for the memory ({error})") from None
    except (ValueError, ArithmeticError) as error:
        raise _Fault(str(error)) from None


@contextmanager
def _notes_once() -> Iterator[None]:
    """Print each note about the input once, on standard error."""

    def show(message: Warning | str, *_: Any) -> None:
        show_note(plain(message)[:_LONGEST])

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            show_alike()


class _Group(CommandGroup):
    """The group of all commands; it reports an error as one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        with _in_sentences(), _notes_once():
            result = super().invoke(ctx)
            # Flushed within the block, so that a full disk ends in a sentence too.
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="equipoise")
def main() -> None:
    """Measure bias and robustness in search and conversational systems, and build reports."""


_COMMANDS: tuple[click.Command, ...] = (
    score,
    *annotators.COMMANDS,
    *compare.COMMANDS,
    harvest.harvest,
    *new.COMMANDS,
    permute.permute,
    data.data,
    *reports.COMMANDS,
)
for command in _COMMANDS:
    main.add_command(command)
