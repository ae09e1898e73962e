"""Declaring a measure once, at its function: its name, range, and the options it leaves open.

From the declaration follow the check of arguments, the documented options, the options of the
command line, the check of notebook parameters, the catalogue and the site's page of measures. An
option is an annotated type of `equipoise.options`; its default stands in the signature, and nowhere
else. Values are checked by pydantic, which is imported when the first value is.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MultipleOf, Predicate

from equipoise.problems import brief

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Direction = Literal["higher is better", "lower is better", "neither"]
P = ParamSpec("P")
R = TypeVar("R")


# --- options --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """A choice that measures leave open; it annotates a type.

    Beside it stand bounds such as `annotated_types.Ge`.
    ``form`` says how a command line writes it, and ``parse`` reads that, where a plain value does
    not do. ``finite=False`` lets NaN and infinity pass. ``group`` is the heading that it stands
    under in a command's help.
    """

    help: str
    form: str = ""
    parse: Callable[[str], Any] | None = None
    finite: bool = True
    group: str = "Measure"


@dataclass(frozen=True)
class OneOf:
    """Annotates text that names something declared elsewhere, such as a divergence.

    ``names`` is called when a value is checked, so that what is declared is allowed.
    """

    names: Callable[[], Iterable[str]]

    def checked(self, word: str) -> str:
        """The word, if it is one of the names."""
        if word not in self.names():
            raise ValueError("no such name")
        return word

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Text, then our check: what pydantic asks an annotation for."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.checked, handler(source))


def option_of(hint: Any) -> Option | None:
    """The option that annotates a type, or one of its alternatives."""
    if typing.get_origin(hint) is Annotated:
        for annotation in hint.__metadata__:
            if isinstance(annotation, Option):
                return annotation
        return None
    for alternative in typing.get_args(hint):
        option = option_of(alternative)
        if option is not None:
            return option
    return None


def help_of(hint: Any) -> str:
    """What the option that annotates a type decides."""
    option = option_of(hint)
    return option.help if option else ""


def choices_of(hint: Any) -> tuple[str, ...]:
    """Words that a type allows, in their order, where it allows some words only."""
    origin = typing.get_origin(hint)
    if origin is Literal:
        return tuple(word for word in typing.get_args(hint) if isinstance(word, str))
    if origin is Annotated:
        for annotation in hint.__metadata__:
            if isinstance(annotation, OneOf):
                return tuple(annotation.names())
        return choices_of(hint.__origin__)
    words: list[str] = []
    for part in typing.get_args(hint):
        words += choices_of(part)
    return tuple(words)


# --- what a type wants, in words ------------------------------------------------------------------

_KINDS = {
    float: "a number",
    int: "a whole number",
    str: "text",
    bool: "true or false",
    type(None): "nothing",
}


def bounds_of(hint: Any) -> str:
    """The bounds that annotate a type, in words; empty where there are none."""
    if typing.get_origin(hint) is not Annotated:
        return ""
    bounds: dict[type, float] = {}
    demands = []
    for annotation in hint.__metadata__:
        match annotation:
            case Gt(gt=bound) | Ge(ge=bound) | Lt(lt=bound) | Le(le=bound):
                bounds[type(annotation)] = typing.cast(float, bound)
            case Predicate(func=demand):
                # The name of the function says what it asks for.
                demands.append(demand.__name__.replace("_", " "))
    if Ge in bounds and Le in bounds:
        words = [f"between {bounds[Ge]:g} and {bounds[Le]:g}"]
    elif bounds.get(Ge) == 0 and Lt not in bounds:
        words = ["non-negative"]
    else:
        names = {Gt: "above", Ge: "from", Lt: "below", Le: "up to"}
        words = [f"{word} {bounds[kind]:g}" for kind, word in names.items() if kind in bounds]
    return " ".join(words + demands)


def bounds_within(hint: Any) -> str:
    """The bounds of what a type holds, such as those of each gain, and then its own."""
    of_parts = ""
    for part in typing.get_args(hint):
        of_parts = of_parts or bounds_within(part)
    return " ".join(filter(None, [of_parts, bounds_of(hint)]))


def described(hint: Any) -> str:
    """What a type wants, in words."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        kind = described(parts[0])
        choices = choices_of(hint)
        if parts[0] is str and choices:
            kind = f"one of {', '.join(choices)}"
        if any(isinstance(annotation, MultipleOf) for annotation in hint.__metadata__):
            kind = "a whole number"
        return f"{kind} {bounds_of(hint)}".rstrip()
    if origin in (typing.Union, types.UnionType):
        wanted = [described(part) for part in parts if part is not type(None)]
        return " or ".join(dict.fromkeys(wanted))
    if origin is Literal:
        words = ", ".join(map(str, parts))
        return f"one of {words}" if len(parts) > 1 else words
    if origin is Callable:
        return "a function"
    if origin in (list, tuple, Sequence):
        return f"a list, each {described(parts[0])}"
    if origin in (dict, Mapping):
        return f"for each {described(parts[0])} {described(parts[1])}"
    return _KINDS.get(hint) or str(getattr(hint, "__name__", hint))


# --- checking values ------------------------------------------------------------------------------


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    """What checks values of a type; no number is read from text."""
    from pydantic import ConfigDict, TypeAdapter

    option = option_of(hint)
    admits_nan = option is not None and not option.finite
    config = ConfigDict(strict=True, allow_inf_nan=admits_nan, arbitrary_types_allowed=True)
    return TypeAdapter(hint, config=config)


def _without_numpy(value: Any) -> Any:
    """The value with NumPy's numbers and arrays as Python's, which is what a strict check takes."""
    if isinstance(value, Mapping):
        return {_without_numpy(key): _without_numpy(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_without_numpy, value))
    if isinstance(value, (list, range)):
        return list(map(_without_numpy, value))
    return value.tolist() if hasattr(value, "tolist") else value


def fit(value: Any, hint: Any, name: str) -> Any:
    """The value as the annotated type, whole numbers as floats where floats are wanted.

    The one check of option values: of a measure's arguments, a command's options and a notebook's
    parameters. NaN and infinity are refused by default. Raises ValueError, naming the option, what
    was found and what is wanted.
    """
    from pydantic import ValidationError

    try:
        return _adapter(hint).validate_python(_without_numpy(value))
    except ValidationError:
        meaning = f" ({help_of(hint)})" if help_of(hint) else ""
        message = f"{name} is {brief(value)}; wanted {described(hint)}{meaning}"
        raise ValueError(message) from None


def from_text(text: str, hint: Any, name: str) -> Any:
    """The value of an option as typed on a command line: in its own form, as YAML, or as text."""
    option = option_of(hint)
    if option is not None and option.parse is not None:
        try:
            value = option.parse(text)
        except ValueError as error:
            raise ValueError(f"{name}, written {option.form}: {error}") from None
        return fit(value, hint, name)
    wants_text = hint is str or typing.get_args(hint)[:1] == (str,)
    if wants_text:
        return fit(text, hint, name)  # as it stands, quotes and lines too
    value = _plain_value(text)
    try:
        return fit(value, hint, name)
    except ValueError:
        if value == text:
            raise
        # YAML takes on, no, 1e3 or null for something else, which may be a word here.
        return fit(text, hint, name)


def _plain_value(text: str) -> Any:
    """The value that a text is in YAML; the text itself where it is none."""
    import yaml

    from equipoise import plain_yaml

    if not text.strip():
        return text
    try:
        return plain_yaml.load(text, plain_yaml.Values)
    except yaml.YAMLError:
        return text


# --- measures -------------------------------------------------------------------------------------


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
    """A measure, declared.

    ``name`` is as the field writes it; ``sources`` are keys of ``sources.bib``; ``formula`` is TeX,
    by default that of the function's documentation.
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
        if self.formula:
            return
        formula = self._documented(r"^\.\. math::[ ]?(.+?)(?:\n[ ]*\n(?=\S)|\Z)")
        if not formula:
            raise ValueError(f"{self.path} documents no formula; give one")
        object.__setattr__(self, "formula", " ".join(formula.split()))

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(self.function) or ""

    def _documented(self, pattern: str) -> str:
        """The part of the documentation that a pattern's group holds, empty where there is none."""
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
        items = re.findall(
            r"^- :math:`(.+?)`: (.+?)(?=\n- |\n\n|\Z)",
            self._documentation,
            re.DOTALL | re.MULTILINE,
        )
        return tuple((symbol, " ".join(meaning.split())) for symbol, meaning in items)

    @property
    def where(self) -> str:
        """Place in the source: the first paragraph of the documentation's notes."""
        notes = self._documented(r"^Notes\n-+\n(.+?)(?:\n\n|\Z)")
        return re.sub(r":math:|`", "", " ".join(notes.split()))

    @property
    def options(self) -> tuple[OpenChoice, ...]:
        """Every parameter with a default."""
        return options_of(self.function)

    @property
    def example(self) -> str:
        """The worked example of the documentation."""
        return self._documented(r"^Examples\n-+\n(.+?)(?=\n\n[A-Z]\w+\n-+\n|\Z)").strip()

    def explained(self, option: OpenChoice) -> str:
        """What an option decides, in a sentence: its own, or that of the function's docstring."""
        words = re.sub(r"\s+\[.*\]$", "", option.help)
        if not words:
            parameter = rf"^(?:\w+, )*{option.name}(?:, \w+)* :[^\n]*\n((?: +[^\n]*\n?)+)"
            words = " ".join(self._documented(parameter).split())
        sentence = re.split(r"[.] (?=[A-Z])", words)[0].rstrip(".")
        return f"{sentence}." if sentence else ""


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
"""Measures by name, of the modules imported so far; `equipoise.catalogue` has them all."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the options of a function by their declarations, and document them."""
    hints = {}
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        if name != "return" and option_of(hint):
            hints[name] = hint
    if not hints:
        return function
    signature = inspect.signature(function)
    defaults = {name: signature.parameters[name].default for name in hints}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            # A default is taken as it is: it need not be checked, and saves the import of pydantic.
            if name in hints and value is not defaults[name]:
                bound.arguments[name] = fit(value, hints[name], name)
        return function(*bound.args, **bound.kwargs)

    lines = [inspect.getdoc(function) or "", "", "Options", "-------"]
    for name, hint in hints.items():
        default = ""
        if defaults[name] not in (None, inspect.Parameter.empty):
            default = f", default {written(defaults[name])}"
        lines += [f"{name} : {described(hint)}{default}", f"    {help_of(hint)}"]
    call.__doc__ = "\n".join(lines) + "\n"
    return call


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
    """Declare a measure: it enters the catalogue, and its options are checked and documented."""

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call = checked(function)
        MEASURES[name] = Measure(name, family, call, range, ideal, direction, sources, formula)
        return call

    return declare
