"""Commands whose options are those that measures declare, looked up when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from equipoise.declare import OpenChoice, choices_of, described, from_text, option_of, options_of


class OptionValue(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A value that the declaration of an option reads and checks."""

    name = "value"

    def __init__(self, choice: OpenChoice) -> None:
        self.choice = choice

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How the value is written, for the help."""
        option = option_of(self.choice.hint)
        if option is not None and option.form:
            return option.form
        words = choices_of(self.choice.hint)
        if words:
            return f"[{'|'.join(words)}]"
        return "TEXT" if described(self.choice.hint) == "text" else "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read text; a default is taken as it is."""
        if not isinstance(value, str):
            return value
        try:
            return from_text(value, self.choice.hint, self.choice.name)
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

    ``flags`` are further names of an option.
    """

    function: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    flags: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> list[click.Option]:
        """One option of the command for each."""
        module, _, name = self.function.rpartition(".")
        function = getattr(import_module(module), name)
        return [self._option(choice) for choice in options_of(function) if self._takes(choice)]

    def _takes(self, choice: OpenChoice) -> bool:
        # What has no declaration is no option: a table, or the columns to group by.
        if option_of(choice.hint) is None or choice.name in self.without:
            return False
        return not self.only or choice.name in self.only

    def _option(self, choice: OpenChoice) -> click.Option:
        # The first name is that of the parameter; those with dashes are what a user writes.
        names = [choice.name, f"--{choice.name.replace('_', '-')}"]
        if choice.name in self.flags:
            names.append(self.flags[choice.name])
        if choice.value is False:
            return click.Option(names, is_flag=True, help=choice.help)
        default = _text(choice.value)
        return click.Option(names, type=OptionValue(choice), default=default, help=choice.help)


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
