"""Commands with the options that measures declare, imported only when they are needed."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from equipoise_cli.shared import TARGET

if TYPE_CHECKING:
    from equipoise.declared import Option

KEPT = Path(__file__).with_name("declared.json")
GROUPS = ("Input", "Measure", "Statistics", "Output", "Other")
"""Headings of the options in a command's help, in their order."""
_GROUP_OF = {
    "intervals": "Statistics",
    "force": "Output",
    "form": "Output",
    "show": "Output",
    "conditions": "Output",
    "caption": "Output",
    "label": "Output",
    "cluster": "Other",
    "order": "Input",
    **dict.fromkeys(
        ("level", "resamples", "draws", "seed", "test", "correction", "unpaired"), "Statistics"
    ),
}
"""Headings of options by name. Otherwise a command's own options are input, declared ones measure.
"""


class OptionValue(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A parameter type that reads and checks the value of a declared option."""

    name = "value"

    def __init__(self, function: str, option: str, form: str) -> None:
        self.function, self.option, self.form = function, option, form

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return the placeholder of the value for the help."""
        return self.form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert text to a value; leave a default unchanged."""
        if not isinstance(value, str):
            return value
        (option,) = [one for one in _options_of(self.function) if one.name == self.option]
        try:
            return option.check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _options_of(function: str) -> Sequence[Option]:
    """Return the declared options of a function, which imports pandas and pydantic."""
    from equipoise.declared import options_of

    module, _, name = function.rpartition(".")
    return options_of(getattr(import_module(module), name))


class Line(NamedTuple):
    """What the help needs of a declared option: its default is None where there is none."""

    name: str
    form: str
    help: str
    default: str | None
    is_flag: bool


def lines_of(function: str) -> list[Line]:
    """Return a line per declared option with a description."""
    return [
        Line(one.name, one.form, one.help, _text(one.value), one.value is False)
        for one in _options_of(function)
        if one.help
    ]


@functools.cache
def kept_lines() -> dict[str, list[list[Any]]]:
    """Return the lines of the commands' functions as kept in a file: help needs no import."""
    lines: dict[str, list[list[Any]]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return lines


def _text(value: Any) -> str | None:
    """Write a default as on a command line."""
    if isinstance(value, Mapping):
        pairs = []
        for name, item in value.items():
            text = "+".join(item) if isinstance(item, tuple) else repr(item)
            pairs.append(f"{name}:{text}")
        return ",".join(pairs)
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return None if value is None else str(value)


@dataclass(frozen=True)
class Declared:
    """The declared options of a function, by its dotted path: all, selected, or all but some.

    ``flags`` are further names of an option. ``needs`` is the flag without which none of them
    has an effect.
    """

    function: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""

    def options(self) -> list[click.Option]:
        """Return one option of the command for each declared option."""
        kept = kept_lines().get(self.function)
        lines = lines_of(self.function) if kept is None else [Line(*line) for line in kept]
        if self.only:
            lines = [line for line in lines if line.name in self.only]
        return [self._as_click(line) for line in lines if line.name not in self.without]

    def _as_click(self, line: Line) -> DeclaredOption:
        # The first name is the parameter; the names with dashes are for users.
        names = [line.name, f"--{line.name.replace('_', '-')}"]
        if line.name in self.flags:
            names.append(self.flags[line.name])
        if line.is_flag:
            return DeclaredOption(names, line, self.needs, is_flag=True)
        value = OptionValue(self.function, line.name, line.form)
        return DeclaredOption(names, line, self.needs, type=value, default=line.default)


class DeclaredOption(click.Option):
    """An option of a command that a measure declares."""

    def __init__(self, names: Sequence[str], option: Line, needs: str, **settings: Any) -> None:
        super().__init__(names, help=option.help, **settings)
        self.group = _GROUP_OF.get(option.name, "Measure")
        self.needs = needs


class CommandGroup(click.Group):
    """A group of commands whose help has the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every command with its whole summary."""
        records = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                records.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(records)


class DeclaredCommand(click.Command):
    """A command with the declared options of functions, imported when it runs."""

    def __init__(self, *args: Any, declared: Sequence[Declared] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command, then the declared options."""
        # --help comes last, as in click.
        *parameters, help_option = super().get_params(ctx)
        for source in self.declared:
            parameters += source.options()
        return [*parameters, help_option]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records.setdefault(_heading(parameter), []).append(record)
        for heading in sorted(records, key=_rank_of_heading):
            with formatter.section(heading):
                formatter.write_dl(records[heading])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless an option is given that has no effect."""
        for parameter in self.get_params(ctx):
            source = ctx.get_parameter_source(parameter.name or "")
            is_given = source is click.core.ParameterSource.COMMANDLINE
            needs = getattr(parameter, "needs", "")
            if is_given and needs and not ctx.params[needs]:
                raise click.UsageError(f"{parameter.opts[-1]} must be given with --{needs}", ctx)
        return super().invoke(ctx)


def _heading(parameter: click.Parameter) -> str:
    """Return the heading of an option's group, with the condition of that group."""
    if isinstance(parameter, DeclaredOption):
        if parameter.needs:
            return f"{parameter.group}, with --{parameter.needs}"
        return parameter.group
    if parameter.type is TARGET:
        return "Output"
    if "--help" in parameter.opts:
        return "Other"
    return _GROUP_OF.get(parameter.name or "", "Input")


def _rank_of_heading(heading: str) -> tuple[int, str]:
    return GROUPS.index(heading.partition(",")[0]), heading
