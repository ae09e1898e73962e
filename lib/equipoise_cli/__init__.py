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
    orders,
    reports,
    score_cases,  # noqa: F401 - it adds to score
    score_lists,  # noqa: F401 - it adds to score
    score_overlap,  # noqa: F401 - it adds to score
    study,
)
from equipoise_cli.score import score

_LONGEST = 1200  # letters of a message


def _to_install(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is missing."""
    from importlib.metadata import requires

    module = (error.name or "").partition(".")[0]
    name = {"sklearn": "scikit-learn", "Stemmer": "pystemmer"}.get(module, module.replace("_", "-"))
    for requirement in requires("equipoise") or []:
        found = re.match(rf"{re.escape(name)}\b.*extra == .(\w+).", requirement)
        if module and found:
            return f"this needs {name}: python -m pip install 'equipoise[{found[1]}]'"
    return str(error)


@contextmanager
def _in_sentences() -> Iterator[None]:
    """Turn what bad input raises, wherever it does, into one message without a traceback, of status 2."""
    try:
        yield
    except click.ClickException as error:
        error.message = shortened(plain(error.message), _LONGEST)  # type: ignore[misc]
        raise
    except ModuleNotFoundError as error:
        raise click.ClickException(_to_install(error)) from None
    except InputError as error:
        for line in error.told():
            click.echo(f"error: {line}", err=True)
        count = len(error.problems)
        click.echo(
            f"{count} problem{'s' if count > 1 else ''} in the input; nothing was written.",
            err=True,
        )
        raise click.exceptions.Exit(2) from None
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # click ends quietly: nobody reads on
        if error.filename is None:
            sys.stdout = (
                io.StringIO()
            )  # what could not be written is not tried again at the end of the process
        own = (
            str(error)
            if error.errno is None
            else f"{error.filename or 'standard output'}: {reason(error)}"
        )
        raise click.UsageError(shortened(plain(own), _LONGEST)) from None
    except UnicodeError:
        raise click.UsageError(
            "a text with half a surrogate pair, which no file can hold"
        ) from None
    except (RecursionError, MemoryError) as error:
        found = (
            "values within values without end"
            if isinstance(error, RecursionError)
            else "too much for the memory"
        )
        raise click.UsageError(f"the input holds {found}") from None
    except (ValueError, KeyError) as error:
        message = str(error.args[0]) if isinstance(error, KeyError) else str(error)
        message = "a name with a NUL character" if "embedded null" in message else message
        raise click.UsageError(shortened(plain(message), _LONGEST)) from None


@contextmanager
def _notes_once() -> Iterator[None]:
    """Say every note about the input on standard error, once."""
    said: set[str] = set()

    def say(message: Warning | str, *_: Any) -> None:
        note = shortened(plain(message), _LONGEST)
        if note not in said:
            said.add(note)
            click.echo(f"{getattr(message, 'label', 'note')}: {note}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = say  # type: ignore[assignment]
        yield


class _Group(click.Group):
    """The front door: whatever a command meets, it ends in sentences that name the file or option."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _in_sentences():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_sentences(), _notes_once():
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk behind it is told as one
            return result


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="equipoise")
def main() -> None:
    """Measures of bias and robustness in search and conversational systems, and the reports that compute them."""


_ALONE = (agreement.agreement, orders.permute, data.data, study.study)
for command in (score, *compare.COMMANDS, *conversations.COMMANDS, *reports.COMMANDS, *_ALONE):
    main.add_command(command)
