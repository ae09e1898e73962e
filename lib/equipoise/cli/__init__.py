"""The command ``equipoise``; its groups are light, so that help costs no import of a measure."""

from __future__ import annotations

import re
from typing import Any

import click

from equipoise.cli import conversations, data, reports, score_lists  # noqa: F401 - the last adds to score
from equipoise.cli.score import score


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


class _Group(click.Group):
    """Turns the errors of bad input into messages with exit status 2, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            raise click.ClickException(_to_install(error)) from None
        except (ValueError, KeyError, FileNotFoundError, NotADirectoryError) as error:
            problems = getattr(error, "problems", None)
            if problems is None:
                raise click.UsageError(str(error.args[0]) if isinstance(error, KeyError) else str(error)) from None
            for problem in problems:
                click.echo(f"error: {problem}", err=True)
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            click.echo(f"{count} in the input; nothing was written.", err=True)
            ctx.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="equipoise")
def main() -> None:
    """Measures of bias and robustness in search and conversational systems, and the reports that compute them."""


for command in (score, *conversations.COMMANDS, *reports.COMMANDS, data.data):
    main.add_command(command)
