"""Commands whose options are those that measures declare, looked up when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.problems import InputError, listed
from equipoise_cli.shared import FILE, TARGET

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
        """Run it; what it refuses names an option or a file."""
        self._refuse_idle_options(ctx)
        self._refuse_odd_texts(ctx)
        try:
            return super().invoke(ctx)
        except (InputError, UnicodeError):
            raise  # these are said elsewhere, and the first names its files
        except (ValueError, KeyError) as error:
            message = str(error.args[0]) if error.args else str(error)
            raise ValueError(_placed(message, self, ctx)) from error

    def _refuse_idle_options(self, ctx: click.Context) -> None:
        """Refuse an option that is given and does nothing without a flag that is not."""
        for parameter in self.get_params(ctx):
            needs = getattr(parameter, "needs", "")
            if needs and not ctx.params[needs] and _is_given(parameter, ctx):
                message = f"{parameter.opts[-1]} does nothing without --{needs}"
                raise click.UsageError(f"{message}: give both, or neither", ctx)

    def _refuse_odd_texts(self, ctx: click.Context) -> None:
        """Refuse an option without a text, as by a shell's empty variable, and a NUL character."""
        for parameter in self.get_params(ctx):
            texts = list(_texts(ctx.params.get(parameter.name or "")))
            if any("\0" in text for text in texts):
                raise click.UsageError(f"a NUL character in {parameter.opts[-1]}", ctx)
            takes_text = parameter.type is click.STRING or isinstance(parameter.type, OptionValue)
            is_empty = takes_text and "" in texts
            # An empty text may be the default, and mean: none.
            if is_empty and _is_given(parameter, ctx) and parameter.get_default(ctx) != "":
                raise click.UsageError(f"{parameter.opts[-1]} is empty: give a value, or none", ctx)


def _is_given(parameter: click.Parameter, ctx: click.Context) -> bool:
    """Whether the command line has a value for a parameter."""
    source = ctx.get_parameter_source(parameter.name or "")
    return source is click.core.ParameterSource.COMMANDLINE


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


def _texts(value: Any) -> Iterator[str]:
    """Texts and paths in the value of a parameter, which may be several, or pairs."""
    if isinstance(value, (tuple, list)):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, (str, Path)):
        yield str(value)


def _begins_with_name(message: str, parameter: click.Parameter) -> bool:
    """Whether a message begins with the name that a measure calls an option by."""
    flags = [option.removeprefix("--") for option in parameter.opts]
    names = "|".join(map(re.escape, [parameter.name or "", *flags])).replace("_", "[_ -]")
    return re.match(rf"(?:the )?(?:{names})\b", message) is not None


def _is_quoted(message: str, parameter: click.Parameter, ctx: click.Context) -> bool:
    """Whether a message quotes what was given for an option; it may have shortened it."""
    if not _is_given(parameter, ctx):
        return False
    texts = [text[:40] for text in _texts(ctx.params.get(parameter.name or ""))]
    return any(re.search(rf"(?<!\w){re.escape(text)}", message) for text in texts if len(text) > 2)


def _placed(message: str, command: click.Command, ctx: click.Context) -> str:
    """What a measure refuses, with the option that it means, or the files that it was given."""
    files: list[str] = []
    options = []
    for parameter in command.get_params(ctx):
        if parameter.type is FILE:
            files += _texts(ctx.params.get(parameter.name or ""))
        elif isinstance(parameter, click.Option) and parameter.type is not TARGET:
            options.append(parameter)
    for option in options:
        if re.search(rf"(?<![\w-]){option.opts[-1]}(?![\w-])", message):
            return message
    for option in options:
        if _begins_with_name(message, option):
            return f"{option.opts[-1]}: {message}"
    for option in options:
        if _is_quoted(message, option, ctx):
            return f"{option.opts[-1]}: {message}"
    if not files or any(file in message for file in files):
        return message
    return f"{listed(files)}: {message}"
