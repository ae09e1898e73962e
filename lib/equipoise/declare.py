"""Declaring a measure once, at its function: its name, what it ranges over, and which options it leaves open.

From the declaration follow the check of arguments, the documented options, the options of the
command line, the check of notebook parameters, the catalogue and the site's page of measures. An
option is an annotated type of `equipoise.options`; its default stands in the signature, and nowhere
else.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from equipoise.problems import brief

Direction = Literal["higher is better", "lower is better", "neither"]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Option:
    """A choice that measures leave open; it annotates a type.

    ``above`` and ``below`` exclude the bound, ``least`` and ``most`` include it; they hold for each
    number in a list or mapping. ``form`` says how a command line writes it, and ``parse`` reads
    that, where a plain value does not do. ``finite=False`` lets NaN and infinity pass, ``whole`` no
    fractions. ``shares`` are divided by their sum, which must be a number above 0.
    """

    help: str
    above: float | None = None
    below: float | None = None
    least: float | None = None
    most: float | None = None
    finite: bool = True
    whole: bool = False
    shares: bool = False
    form: str = ""
    parse: Callable[[str], Any] | None = None

    @property
    def bounds(self) -> str:
        """The bounds in words, empty where there are none."""
        if self.shares:
            return "non-negative, with a sum above 0"
        if self.least is not None and self.most is not None:
            return f"between {self.least:g} and {self.most:g}"
        if self.least == 0 and self.below is None:
            return "non-negative"
        words = {"above": self.above, "from": self.least, "below": self.below, "up to": self.most}
        return " ".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)

    def admits(self, value: Any) -> bool:
        """Whether every number in a value lies within the bounds; None and words have none."""
        if isinstance(value, Mapping):
            return self.admits(list(value.values()))
        if isinstance(value, (list, tuple)):
            return all(map(self.admits, value)) and not (
                self.shares and value and not 0 < sum(value) < math.inf
            )
        if not isinstance(value, Real):
            return True
        number = float(value)
        return (
            (not self.finite or math.isfinite(number))
            and (not self.whole or number.is_integer())
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
        )


def option_of(hint: Any) -> Option | None:
    """The option that annotates a type, or one of its arms."""
    if typing.get_origin(hint) is Annotated:
        return next((extra for extra in hint.__metadata__ if isinstance(extra, Option)), None)
    return next((found for arm in typing.get_args(hint) if (found := option_of(arm))), None)


def help_of(hint: Any) -> str:
    """What the option that annotates a type decides."""
    option = option_of(hint)
    return option.help if option else ""


def choices_of(hint: Any) -> tuple[str, ...]:
    """Words that a type allows, in their order, where it allows some words only."""
    if typing.get_origin(hint) is Literal:
        return tuple(word for word in typing.get_args(hint) if isinstance(word, str))
    arms = (
        typing.get_args(hint)[:1] if typing.get_origin(hint) is Annotated else typing.get_args(hint)
    )
    return tuple(word for arm in arms for word in choices_of(arm))


class _MisfitError(ValueError):
    pass


def _need(fits: bool) -> None:
    if not fits:
        raise _MisfitError


_KINDS: dict[Any, tuple[tuple[Any, ...], str]] = {
    float: ((Real,), "a number"),
    int: ((Integral,), "a whole number"),
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    type(None): ((type(None),), "nothing"),
}


def _fit(value: Any, hint: Any) -> Any:
    """The value as the annotated type; types that are none of the plain ones are taken as they come."""
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        fitted, option = _fit(value, arms[0]), option_of(hint)
        _need(
            option is None
            or option.admits(fitted.tolist() if hasattr(fitted, "tolist") else fitted)
        )
        return fitted
    if origin in (typing.Union, types.UnionType):
        for arm in arms:
            try:
                return _fit(value, arm)
            except _MisfitError:
                continue
        raise _MisfitError
    if origin is Literal:
        _need(any(type(value) is type(arm) and value == arm for arm in arms))
        return value
    if hint in _KINDS:
        _need(isinstance(value, _KINDS[hint][0]) and (hint is bool or not isinstance(value, bool)))
        try:
            return float(value) if hint is float else value
        except OverflowError:
            raise _MisfitError from None
    if origin is Callable:
        _need(callable(value))
    if origin in (list, Sequence):
        items = value.tolist() if hasattr(value, "tolist") else value  # of an array
        _need(isinstance(items, (list, tuple, range)))
        fitted_items = [_fit(item, arms[0]) for item in items]
        return fitted_items if origin is list else value
    if origin in (dict, Mapping):
        _need(isinstance(value, Mapping))
        return {_fit(key, arms[0]): _fit(item, arms[1]) for key, item in value.items()}
    _need(hint not in (list, dict) or isinstance(value, hint))
    return value


def described(hint: Any) -> str:
    """What a type wants, in words."""
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        option = option_of(hint)
        kind = "a whole number" if option and option.whole else described(arms[0])
        return f"{kind} {option.bounds if option else ''}".rstrip()
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(described(arm) for arm in arms if arm is not type(None)))
    if origin is Literal:
        return ("one of " if len(arms) > 1 else "") + ", ".join(map(str, arms))
    if origin is Callable:
        return "a function"
    if origin in (list, Sequence):
        return f"a list, each {described(arms[0])}"
    if origin in (dict, Mapping):
        return f"for each {described(arms[0])} {described(arms[1])}"
    return _KINDS[hint][1] if hint in _KINDS else str(getattr(hint, "__name__", hint))


def fit(value: Any, hint: Any, name: str) -> Any:
    """The value as the annotated type, whole numbers as floats where floats are wanted.

    The one check of option values: of a measure's arguments, a command's options and a notebook's
    parameters. NaN and infinity are refused by default. Raises ValueError, naming the option, what
    was found and what is wanted.
    """
    try:
        return _fit(value, hint)
    except _MisfitError:
        told = f" ({help_of(hint)})" if help_of(hint) else ""
        raise ValueError(f"{name} is {brief(value)}; wanted {described(hint)}{told}") from None


def from_text(text: str, hint: Any, name: str) -> Any:
    """The value of an option as typed on a command line: by the option's own form, else as YAML or plain text."""
    option = option_of(hint)
    value: Any
    if option is not None and option.parse is not None:
        try:
            value = option.parse(text)
        except ValueError as error:
            raise ValueError(f"{name}, written {option.form}: {error}") from None
        return fit(value, hint, name)
    if hint is str or typing.get_args(hint)[:1] == (str,):
        return fit(text, hint, name)  # as it stands, quotes and lines too
    import yaml

    from equipoise import plain_yaml

    try:
        value = plain_yaml.load(text, plain_yaml.Values) if text.strip() else text
    except yaml.YAMLError:
        value = text
    try:
        return fit(value, hint, name)
    except ValueError:
        if value == text:
            raise
        return fit(text, hint, name)  # YAML takes on, no, 1e3 or null for something else


def written(value: Any) -> str:
    """A default as one would write it: functions by name, read-only mappings as plain ones."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {written(item)}" for key, item in value.items()) + "}"
    return str(value.__name__) if callable(value) else repr(value)


@dataclass(frozen=True)
class OpenChoice:
    """An option of one measure: its name and type, and the value it has there by default."""

    name: str
    hint: Any
    value: Any

    @property
    def default(self) -> str:
        """The default as one would write it."""
        return written(self.value)

    @property
    def choices(self) -> str:
        """The words that may be given, where there are only some."""
        return ", ".join(choices_of(self.hint))

    @property
    def help(self) -> str:
        """What it decides."""
        return help_of(self.hint)


@dataclass(frozen=True)
class Measure:
    """A measure, declared: its name as the field writes it, family, function, range, ideal, direction and sources.

    ``sources`` are keys of ``sources.bib``; ``formula`` is TeX, by default that of the function's
    documentation.
    """

    name: str
    family: str
    function: Callable[..., Any]
    range: str
    ideal: str
    direction: Direction
    sources: tuple[str, ...]
    formula: str = ""

    def __post_init__(self) -> None:
        if not self.formula:
            block = re.search(
                r"^\.\. math::[ ]?(.+?)(?:\n[ ]*\n(?=\S)|\Z)", self._documentation, re.S | re.M
            )
            if block is None:
                raise ValueError(f"{self.path} documents no formula; give one")
            object.__setattr__(self, "formula", " ".join(block[1].split()))

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def anchor(self) -> str:
        """Name for links to it: module and name in lower case, with hyphens."""
        return re.sub(
            r"[^a-z0-9]+", "-", f"{self.function.__module__.split('.')[-1]} {self.name}".lower()
        ).strip("-")

    @property
    def path(self) -> str:
        """Where to import it from."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def meaning(self) -> str:
        """First line of the function's documentation."""
        return self._documentation.partition("\n")[0].replace("`", "")

    @property
    def where(self) -> str:
        """Place in the source: the first paragraph of the documentation's notes."""
        notes = re.search(r"^Notes\n-+\n(.+?)(?:\n\n|\Z)", self._documentation, re.S | re.M)
        return re.sub(r":math:|`", "", " ".join(notes[1].split())) if notes else ""

    @property
    def options(self) -> tuple[OpenChoice, ...]:
        """Every parameter with a default."""
        return options_of(self.function)

    @property
    def example(self) -> str:
        """The worked example of the documentation."""
        found = re.search(
            r"^Examples\n-+\n(.+?)(?=\n\n[A-Z]\w+\n-+\n|\Z)", self._documentation, re.S | re.M
        )
        return found[1].strip() if found else ""

    def told(self, option: OpenChoice) -> str:
        """What an option decides, in a sentence: the option's own, or that of the function's documentation."""
        found = re.search(
            rf"^(?:\w+, )*{option.name}(?:, \w+)* :[^\n]*\n((?: +[^\n]*\n?)+)",
            self._documentation,
            re.M,
        )
        words = re.sub(r"\s+\[.*\]$", "", option.help) or (
            " ".join(found[1].split()) if found else ""
        )
        return f"{re.split(r'[.] (?=[A-Z])', words)[0].rstrip('.')}." if words else ""


@functools.cache
def options_of(function: Callable[..., Any]) -> tuple[OpenChoice, ...]:
    """Every parameter of a function that has a default, with its evaluated type."""
    hints = typing.get_type_hints(function, include_extras=True)
    return tuple(
        OpenChoice(parameter.name, hints.get(parameter.name), parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    )


MEASURES: dict[str, Measure] = {}
"""The measures declared by the modules imported so far, by name; `equipoise.catalogue` has them all, in order."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the options of a function by their declarations, and document them."""
    hints = {
        name: hint
        for name, hint in typing.get_type_hints(function, include_extras=True).items()
        if name != "return" and option_of(hint)
    }
    if not hints:
        return function
    signature = inspect.signature(function)
    defaults = {name: signature.parameters[name].default for name in hints}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if name in hints and value is not defaults[name]:
                given.arguments[name] = fit(value, hints[name], name)
        return function(*given.args, **given.kwargs)

    lines = [inspect.getdoc(function) or "", "", "Options", "-------"]
    for name, hint in hints.items():
        unstated = defaults[name] in (None, inspect.Parameter.empty)
        stated = "" if unstated else f", default {written(defaults[name])}"
        lines += [f"{name} : {described(hint)}{stated}", f"    {help_of(hint)}"]
    call.__doc__ = "\n".join(lines) + "\n"
    return call


def defaults_of(other: Callable[..., Any]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give the keyword-only parameters of a function the defaults they have in another, and check its options."""
    theirs = {choice.name: choice.value for choice in options_of(other)}

    def declare(function: Any) -> Callable[..., R]:
        own = inspect.getfullargspec(function)
        function.__kwdefaults__ = {
            name: theirs[name] for name in own.kwonlyargs if name in theirs
        } | (own.kwonlydefaults or {})
        return checked(function)

    return declare


def measure(
    name: str,
    *,
    family: str,
    range: str,  # noqa: A002 - the field's word
    ideal: str,
    direction: Direction,
    sources: tuple[str, ...],
    formula: str = "",
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function to be a measure: it enters the catalogue, and its options are checked and documented."""

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call = checked(function)
        MEASURES[name] = Measure(name, family, call, range, ideal, direction, sources, formula)
        return call

    return declare
