"""How a measure declares itself: its options are checked, and it enters the catalogue.

Options are the parameters whose type has a description (`equipoise.options`); data are positional
and are not checked here. The command line, the catalogue and the site follow from the signature.
"""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, validate_call
from pydantic.fields import FieldInfo

P = ParamSpec("P")
R = TypeVar("R")
Direction = Literal["higher is better", "lower is better", "neither"]
CONFIG = ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True, defer_build=True)

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


# --- options --------------------------------------------------------------------------------------


def field_of(hint: Any) -> FieldInfo | None:
    """The field with a description that annotates a type, or one of its alternatives."""
    for note in getattr(hint, "__metadata__", ()):
        if isinstance(note, FieldInfo) and note.description:
            return note
    fields = [field_of(part) for part in typing.get_args(hint)]
    return next((field for field in fields if field), None)


def choices_of(hint: Any) -> tuple[str, ...]:
    """Words that a type allows, where it allows some words only."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    words: tuple[str, ...] = ()
    for part in typing.get_args(hint):
        words += choices_of(part)
    return words


def _written(value: Any) -> str:
    """A value as one would write it in Python; a function by its name."""
    return str(value.__name__) if callable(value) else repr(value)


@dataclass(frozen=True)
class Option:
    """A parameter with a default: its name and type, and the default."""

    name: str
    hint: Any
    value: Any

    @property
    def help(self) -> str:
        """What it decides; empty where the type has no description."""
        field = field_of(self.hint)
        return str(field.description) if field else ""

    @property
    def form(self) -> str:
        """How a command line writes it."""
        field = field_of(self.hint)
        if field and field.title:
            return field.title
        if choices_of(self.hint):
            return f"[{'|'.join(choices_of(self.hint))}]"
        return "TEXT" if str in (self.hint, getattr(self.hint, "__origin__", None)) else "NUMBER"

    @property
    def choices(self) -> str:
        """The words that may be given, where there are only some."""
        return ", ".join(choices_of(self.hint))

    @property
    def default(self) -> str:
        """The default as one would write it in Python."""
        if isinstance(self.value, Mapping):
            return "{" + ", ".join(f"{k!r}: {_written(v)}" for k, v in self.value.items()) + "}"
        return _written(self.value)

    def check(self, value: Any) -> Any:
        """The value as the type wants it, or a ValueError that names the option."""
        try:
            return _adapter(self.hint).validate_python(value)
        except ValidationError as error:
            raise ValueError(_message(error, name=self.name)) from None


@functools.cache
def options_of(function: Callable[..., Any]) -> tuple[Option, ...]:
    """Every parameter of a function that has a default, with its evaluated type."""
    hints = typing.get_type_hints(function, include_extras=True)
    return tuple(
        Option(name, hints.get(name), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    )


def _message(error: ValidationError, names: Sequence[str] = (), name: str = "") -> str:
    """The first fault in one sentence: ``gains[1] must be less than or equal to 1, got 2``.

    ``names`` are those of the arguments of a call; ``name`` is that of a single value.
    """
    fault = error.errors(include_url=False)[0]
    keys = list(fault["loc"])
    if not name:
        argument = keys.pop(0)
        name = names[argument] if isinstance(argument, int) else argument
    # Pydantic also names the alternative of a union, and a wrong key as "[key]".
    place = name + "".join(f"[{key}]" for key in keys if "[" not in str(key))
    problem = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    problem = re.sub(", (unable to|got a number).*", "", problem)
    problem = problem.replace("a valid integer", "a whole number").replace("a valid ", "a ")
    problem = problem.replace("a boolean", "true or false")
    return f"{place} {problem}, got {_BRIEF.repr(fault['input'])}"


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=CONFIG)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the options of a function by their types, and list them in its documentation."""
    hints = typing.get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    names = list(signature.parameters)

    @functools.wraps(function)
    def options_only(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    # Data are not checked here, because a check would copy tables and arrays.
    options_only.__annotations__ = {
        name: hint if field_of(hint) else Any for name, hint in hints.items()
    }
    validated = validate_call(config=CONFIG)(options_only)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return validated(*args, **kwargs)
        except ValidationError as error:
            signature.bind(*args, **kwargs)  # raises Python's TypeError for a wrong call
            raise ValueError(_message(error, names)) from None

    lines = [inspect.getdoc(function) or ""]
    described = [option for option in options_of(function) if option.help]
    if described:
        lines += ["", "Options", "-------"]
    for option in described:
        lines += [f"{option.name} : default {option.default}", f"    {option.help}"]
    call.__doc__ = "\n".join(lines) + "\n"
    return call


# --- measures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """Values that a measure, or one of its names in tables of scores, can have."""

    range: str
    ideal: str
    direction: Direction

    def __str__(self) -> str:
        return f"range {self.range}; ideal {self.ideal}; {self.direction}"


@dataclass(frozen=True)
class Measure:
    """A measure of the catalogue.

    ``name`` is the usual name in the literature, ``sources`` are keys of ``sources.bib``, and
    ``formula`` is TeX, by default the formula in the documentation of the function. ``names`` are
    those in tables of scores, without cut-off and options, each with its scale.
    """

    name: str
    family: str
    function: Callable[..., Any]
    scale: Scale
    sources: tuple[str, ...]
    formula: str = ""
    names: Mapping[str, Scale] = field(default_factory=dict)

    def __post_init__(self) -> None:
        formula = self.formula or self._documented(r"^\.\. math::[ ]?(.+?)(?:\n[ ]*\n(?=\S)|\Z)")
        if not formula:
            raise ValueError(f"{self.path} documents no formula; give one")
        object.__setattr__(self, "formula", " ".join(formula.split()))

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(self.function) or ""

    def _documented(self, pattern: str) -> str:
        """The part of the documentation that a pattern's group matches; empty without one."""
        match = re.search(pattern, self._documentation, re.DOTALL | re.MULTILINE)
        return match[1] if match else ""

    @property
    def anchor(self) -> str:
        """Name for links to it: module and name in lower case, with hyphens."""
        module = self.function.__module__.rpartition(".")[2]
        return re.sub(r"[^a-z0-9]+", "-", f"{module} {self.name}".lower()).strip("-")

    @property
    def path(self) -> str:
        """Where to import it from."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def meaning(self) -> str:
        """First line of the function's documentation."""
        return self._documentation.partition("\n")[0].replace("`", "")

    @property
    def symbols(self) -> tuple[tuple[str, str], ...]:
        r"""Symbols of the formula and what they mean: the items ``- :math:`p`: meaning``."""
        pattern = r"^- :math:`(.+?)`: (.+?)(?=\n- |\n\n|\Z)"
        items = re.findall(pattern, self._documentation, re.DOTALL | re.MULTILINE)
        return tuple((symbol, " ".join(meaning.split())) for symbol, meaning in items)

    @property
    def where(self) -> str:
        """Place in the source: the first paragraph of the documentation's notes."""
        notes = self._documented(r"^Notes\n-+\n(.+?)(?:\n\n|\Z)")
        return re.sub(r":math:|`", "", " ".join(notes.split()))

    @property
    def scales(self) -> dict[Scale, list[str]]:
        """The names in tables of scores that share a scale."""
        names: dict[Scale, list[str]] = {}
        for name, scale in self.names.items():
            names.setdefault(scale, []).append(name)
        return names

    @property
    def options(self) -> tuple[Option, ...]:
        """Every parameter with a default."""
        return options_of(self.function)

    @property
    def example(self) -> str:
        """The worked example of the documentation."""
        return self._documented(r"^Examples\n-+\n(.+?)(?=\n\n[A-Z]\w+\n-+\n|\Z)").strip()

    def explained(self, option: Option) -> str:
        """What an option decides, in a sentence: its own, or that of the function's docstring."""
        words = re.sub(r"\s+\[.*\]$", "", option.help)
        if not words:
            parameter = rf"^(?:\w+, )*{option.name}(?:, \w+)* :[^\n]*\n((?: +[^\n]*\n?)+)"
            words = " ".join(self._documented(parameter).split())
        sentence = re.split(r"[.] (?=[A-Z])", words)[0].rstrip(".")
        return f"{sentence}." if sentence else ""


MEASURES: dict[str, Measure] = {}
"""Measures by name, of the modules imported so far; `equipoise.catalogue` has them all."""


def measure(
    name: str,
    *,
    family: str,
    range: str,  # noqa: A002 - the field's word
    ideal: str,
    direction: Direction,
    sources: tuple[str, ...],
    formula: str = "",
    names: Mapping[str, Scale | None] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a measure: it enters the catalogue, and its options are checked and documented.

    ``names``: those that it writes to tables of scores, by default its own, each with its scale
    where that is not the measure's.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call = checked(function)
        scale = Scale(range, ideal, direction)
        scales = {written: own or scale for written, own in (names or {name: None}).items()}
        MEASURES[name] = Measure(name, family, call, scale, sources, formula, scales)
        return call

    return declare
