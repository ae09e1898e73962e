"""Commands whose options are those that measures declare: generated from the functions, when they are asked for."""

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
        option, words = option_of(self.choice.hint), choices_of(self.choice.hint)
        plain = "TEXT" if described(self.choice.hint) == "text" else "NUMBER"
        return (option.form if option else "") or (f"[{'|'.join(words)}]" if words else plain)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read text; a default is taken as it is."""
        try:
            return (
                from_text(value, self.choice.hint, self.choice.name)
                if isinstance(value, str)
                else value
            )
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _text(value: Any) -> str | None:
    """A default as a command line would write it."""
    if isinstance(value, Mapping):
        parts = {
            name: "+".join(one) if isinstance(one, tuple) else repr(one)
            for name, one in value.items()
        }
        return ",".join(f"{name}:{part}" for name, part in parts.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return None if value is None else str(value)


@dataclass(frozen=True)
class Declared:
    """The declared options of a function, named by its dotted path: all, only some, or without some.

    ``defaults`` are those that a command has on purpose, where it is not the function that it calls
    first; ``flags`` are further names of an option.
    """

    function: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> list[click.Option]:
        """One option of the command for each."""
        module, _, name = self.function.rpartition(".")
        found = []
        for choice in options_of(getattr(import_module(module), name)):
            option = option_of(choice.hint)
            if (
                option is None
                or choice.name in self.without
                or (self.only and choice.name not in self.only)
            ):
                continue
            default = _text(self.defaults.get(choice.name, choice.value))
            names = [
                choice.name,
                f"--{choice.name.replace('_', '-')}",
                *filter(None, [self.flags.get(choice.name)]),
            ]
            if choice.value is False:
                found.append(click.Option(names, is_flag=True, help=option.help))
            else:
                found.append(
                    click.Option(names, type=OptionValue(choice), default=default, help=option.help)
                )
        return found


class DeclaredCommand(click.Command):
    """A command that takes the declared options of functions beside its own; they are imported when it is run."""

    def __init__(self, *args: Any, declared: Sequence[Declared] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Every parameter: the command's own, then the declared ones."""
        *own, last = super().get_params(ctx)  # the last is --help
        return [*own, *(option for source in self.declared for option in source.options()), last]
