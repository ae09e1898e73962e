"""Commands whose options are those that measures declare, looked up when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from equipoise_cli.shared import TARGET

if TYPE_CHECKING:
    from equipoise.options import Option

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
"""Headings of options by name; of the others a command's own are input, declared ones measure."""


class OptionValue(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A value that the type of a declared option reads and checks."""

    name = "value"

    def __init__(self, option: Option) -> None:
        self.option = option

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How the value is written, for the help."""
        return self.option.form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read text; a default is taken unchanged."""
        if not isinstance(value, str):
            return value
        try:
            return self.option.check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _text(value: Any) -> str | None:
    """A default as a command line would write it."""
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
    """The declared options of a function, by its dotted path: all, only some, or without some.

    ``flags`` are further names of an option. ``needs`` is the flag without which none of them
    does anything.
    """

    function: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""

    def options(self) -> list[click.Option]:
        """One option of the command for each."""
        from equipoise.options import options_of  # with pydantic, which --help need not import

        module, _, name = self.function.rpartition(".")
        function = getattr(import_module(module), name)
        options = [option for option in options_of(function) if option.help]
        if self.only:
            options = [option for option in options if option.name in self.only]
        return [self._as_click(option) for option in options if option.name not in self.without]

    def _as_click(self, option: Option) -> DeclaredOption:
        # The first name is that of the parameter; those with dashes are what a user writes.
        names = [option.name, f"--{option.name.replace('_', '-')}"]
        if option.name in self.flags:
            names.append(self.flags[option.name])
        if option.value is False:
            return DeclaredOption(names, option, self.needs, is_flag=True)
        value = OptionValue(option)
        return DeclaredOption(names, option, self.needs, type=value, default=_text(option.value))


class DeclaredOption(click.Option):
    """An option of a command that a measure declares."""

    def __init__(self, names: Sequence[str], option: Option, needs: str, **settings: Any) -> None:
        super().__init__(names, help=option.help, **settings)
        self.group = _GROUP_OF.get(option.name, "Measure")
        self.needs = needs


class CommandGroup(click.Group):
    """A group of commands; its help has the whole first sentence of each."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command and its summary, over as many lines as it takes."""
        records = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                records.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(records)


class DeclaredCommand(click.Command):
    """A command that takes declared options of functions, imported when it is run."""

    def __init__(self, *args: Any, declared: Sequence[Declared] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Every parameter: the command's own, then the declared ones."""
        # Click puts --help last, and so do we.
        *parameters, help_option = super().get_params(ctx)
        for source in self.declared:
            parameters += source.options()
        return [*parameters, help_option]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options under the headings of their groups."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records.setdefault(_heading(parameter), []).append(record)
        for heading in sorted(records, key=_rank_of_heading):
            with formatter.section(heading):
                formatter.write_dl(records[heading])

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless an option is given that does nothing."""
        for parameter in self.get_params(ctx):
            source = ctx.get_parameter_source(parameter.name or "")
            is_given = source is click.core.ParameterSource.COMMANDLINE
            needs = getattr(parameter, "needs", "")
            if is_given and needs and not ctx.params[needs]:
                raise click.UsageError(f"{parameter.opts[-1]} must be given with --{needs}", ctx)
        return super().invoke(ctx)


def _heading(parameter: click.Parameter) -> str:
    """The heading that an option stands under, with what its group depends on."""
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
