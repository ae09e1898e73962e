"""Options of measures: annotated types with bounds and help, and how a measure declares itself.

An option is a type annotated with `pydantic.Field`, whose description the help of the command, the
catalogue and the site show. Its default is in the signature of the function that takes it. Data are
positional and are not checked here; options are what has a description. Text is read as a command
line writes it (``1:0.5,2:1`` for gains), so that Python and the command share one reader.
"""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    validate_call,
)
from pydantic.fields import FieldInfo

P = ParamSpec("P")
R = TypeVar("R")
Direction = Literal["higher is better", "lower is better", "neither"]
CONFIG = ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True, defer_build=True)

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


# --- declaring and checking -----------------------------------------------------------------------


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


@dataclass(frozen=True)
class Measure:
    """A measure of the catalogue.

    ``name`` is the usual name in the literature, ``sources`` are keys of ``sources.bib``, and
    ``formula`` is TeX, by default the formula in the documentation of the function.
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
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a measure: it enters the catalogue, and its options are checked and documented."""

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call = checked(function)
        MEASURES[name] = Measure(name, family, call, range, ideal, direction, sources, formula)
        return call

    return declare


# --- readers of values ----------------------------------------------------------------------------


def read_pairs(value: Any) -> Any:
    """Read ``name:number,name:number``, each name once; other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    pairs: dict[str, str] = {}
    for text in value.split(","):
        name, colon, number = text.rpartition(":")
        name = name.strip()
        if not colon or not name or name in pairs:
            raise ValueError("must be written name:number,name:number, each name once")
        pairs[name] = number.strip()
    return pairs


def _exponential_or_pairs(value: Any) -> Any:
    return None if value == "exponential" else read_pairs(value)


def _read_list(value: Any) -> Any:
    """Read ``5,10``, or an array, as a list."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return value.tolist() if hasattr(value, "tolist") else value


def _read_cutoffs(value: Any) -> Any:
    """Read ``5,10``, each once and in order."""
    if not isinstance(value, str):
        return _read_list(value)
    cutoffs = dict.fromkeys(_read_list(value))
    return sorted(cutoffs, key=lambda cutoff: (len(cutoff), cutoff))


def _has_sum(shares: Any) -> Any:
    numbers = list(shares.values()) if isinstance(shares, Mapping) else shares
    if numbers is not None and not 0 < sum(numbers) < float("inf"):
        raise ValueError("must have a sum above 0")
    return shares


# --- what several options ask for -----------------------------------------------------------------

Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


# --- conversations --------------------------------------------------------------------------------

Patience = Annotated[float, Field(gt=1, description="L, the words that a user is willing to read.")]
EXPONENTIAL_GAINS = {1: 0.25, 2: 0.75}
"""(2^l - 1) / 2^2, the gains of levels 1 and 2 in gfrc2."""


def _read_gains(value: Any) -> Any:
    return EXPONENTIAL_GAINS if value == "exponential" else read_pairs(value)


Gains = Annotated[
    dict[Count, Share],
    BeforeValidator(_read_gains),
    AfterValidator(_has_sum),
    Field(title="level:gain,...", description="Gain of each level; exponential is 1:0.25,2:0.75."),
]
PositionWeight = Annotated[
    Literal["one-based", "zero-based", "zero-based-own-normaliser"],
    Field(description="Decrease of a nugget's weight with its position: gfrc2 Eqs. 6, 7 and 9."),
]
Distribution = Annotated[
    Literal["independent", "cumulative"],
    Field(description="Nuggets in the achieved distribution of a turn: its own, or all so far."),
]
EmptyTurns = Annotated[
    Literal["ignore", "uniform"],
    Field(description="Turns without relevant nuggets: left out, or taken as uniform."),
]
TurnWeight = Annotated[
    Literal["uniform", "largest-nugget"],
    Field(description="PW of a turn: 1, or the largest weight of its nuggets."),
]
Divergence = Literal["rnod", "nmd", "jsd", "nvd"]
Ordinal = Annotated[
    Divergence,
    Field(description="Divergence for ordinal groups; jsd and nvd ignore their order."),
]
Nominal = Annotated[
    Literal["jsd", "nvd"], Field(description="Divergence for nominal groups, which have no order.")
]
Weights = Annotated[
    dict[str, NonNegative],
    BeforeValidator(read_pairs),
    AfterValidator(_has_sum),
    Field(title="NAME:number,...", description="Weight of each part by name.  [equal]"),
]
StopModel = Annotated[
    Literal["words", "anywhere", "nuggets", "gain", "geometric", "turns"],
    Field(
        description="Share of users who leave at a relevant nugget. words: 1/L at each (gfrc2). "
        "anywhere: all who leave from its end to the next one. nuggets: equal shares. gain: as in "
        "ERR. geometric: 1/L of the remaining users. turns: all who leave at the end of its turn."
    ),
]
Utility = Annotated[
    Literal["gnp", "gains", "words"],
    Field(
        description="Utility of users who leave. gnp: GNP. gains: the gains so far, divided by L. "
        "words: 1 divided by the words read."
    ),
]
BeyondPatience = Annotated[
    Literal["counted", "ignored"],
    Field(description="Nuggets that end beyond L, in GF: counted, as in the papers, or ignored."),
]
Alpha = Annotated[
    float, Field(ge=0, le=1, description="Share of R in GFRC.  [the mean of R and every GF]")
]


# --- rankings -------------------------------------------------------------------------------------

Cutoff = Annotated[int, Field(ge=1, description="Ranks that are evaluated.")]
LevelGains = Annotated[
    Annotated[dict[int, NonNegative], AfterValidator(_has_sum)] | None,
    BeforeValidator(_exponential_or_pairs),
    Field(
        title="level:gain,...",
        description="Gain of each relevance level; level 0 has none.  "
        "[2^l - 1 up to the highest level judged, at least 2]",
    ),
]
RunOrder = Annotated[
    Literal["auto", "score", "file"],
    Field(
        description="Order of a ranking. score: by score, then by document id, both descending, as "
        "in trec_eval. file: the order of the rows. auto: file for NTCIR runs, which begin with "
        "<SYSDESC>, and score for all others."
    ),
]
Unjudged = Annotated[
    Literal["nonrelevant", "removed"],
    Field(description="Unjudged documents: gain 0, or removed from the ranking before the cutoff."),
]
Unrepresented = Annotated[
    Literal["uniform", "ignored"],
    Field(description="Documents without membership: spread evenly over the groups, or ignored."),
]


def _read_divergences(value: Any) -> Any:
    """Read ``nominal:name+name,ordinal:name``."""
    if not isinstance(value, str):
        return value
    return {kind: names.split("+") for kind, names in read_pairs(value).items()}


Similarities = Annotated[
    Mapping[Literal["nominal", "ordinal"], Sequence[Divergence]],
    BeforeValidator(_read_divergences),
    Field(title="kind:name+name,...", description="Divergences for each kind of groups."),
]
ByGroup = Annotated[
    bool, Field(description="Add each group's part of the utility, its exposure, or its share.")
]
Decimals = Annotated[
    int,
    Field(
        ge=0,
        le=15,
        description="Decimals to which each component is rounded first, half to even; 4 in the "
        "program of FairWeb.  [no rounding]",
    ),
]


# --- permutations of conversations ----------------------------------------------------------------

PermutationNumbers = Annotated[
    Sequence[Count],
    BeforeValidator(_read_list),
    Field(description="Numbers of permutations of each conversation to try."),
]
Repeats = Annotated[int, Field(ge=1, description="Random samples for each number of permutations.")]


# --- answers --------------------------------------------------------------------------------------

CitationStyle = Annotated[
    str,
    Field(
        title="auto|bracket|footnote|lenticular|doc|tag|superscript|paren|REGEX",
        description="Citation style. auto detects the style of each answer, and links. The others, "
        "in this order, are [1], [^1], \u30101\u2020source\u3011, [doc 1], <cite>1</cite>, "
        "\u00b9 and (1). The first group of a regular expression is the number.",
    ),
]
Favoured = Annotated[str, Field(title="AUTHOR", description="Author that a positive CAB favours.")]


# --- statistics -----------------------------------------------------------------------------------

Level = Annotated[float, Field(gt=0, lt=1, description="Confidence level of intervals.")]
Resamples = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="Bootstrap samples, and permutations of the randomisation test.",
    ),
]
Seed = Annotated[int, Field(ge=0, description="Seed of the random numbers.")]
PairedTest = Annotated[
    Literal["tukey", "t", "wilcoxon", "permutation", "bootstrap"],
    Field(
        description="Test of the differences. tukey: randomised Tukey HSD for all pairs at once. "
        "The others test one pair at a time."
    ),
]
Correction = Annotated[
    Literal["bonferroni", "holm", "none"],
    Field(
        description="Correction of p over the comparisons of a table; Tukey's test has its own "
        "and takes no other."
    ),
]
Unpaired = Annotated[
    Literal["refuse", "drop"],
    Field(description="Topics without a score for every run: an error, or left out for all runs."),
]
MeanIntervals = Annotated[
    Literal["marginal", "simultaneous"],
    Field(
        description="Intervals of means. marginal: each is valid by itself. simultaneous: all are "
        "valid jointly (Bonferroni)."
    ),
]
Difference = Annotated[
    float,
    Field(
        ge=1e-100,
        le=1e100,
        description="Smallest difference worth finding, in the unit of the scores.",
    ),
]
LEAST_READ = 0.9
"""The default of `LeastRead`."""
LeastRead = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Smallest share of answers with a readable citation of a retrieved document "
        "that permits a verdict.",
    ),
]


# --- bias in the terms of rankings, and overlap of rankings ---------------------------------------

Cutoffs = Annotated[
    Sequence[Count],
    BeforeValidator(_read_cutoffs),
    Field(title="number,...", description="Cut-offs k: ranks at which the measures stop."),
]
Shares = Annotated[
    Sequence[NonNegative],
    BeforeValidator(_read_list),
    AfterValidator(_has_sum),
    Field(description="Target share of each group, in the order of the groups.  [equal]"),
]
Threshold = Annotated[
    float,
    Field(ge=0, description="Highest number of terms of a neutral text; 1 in the public program."),
]
Proportional = Annotated[
    bool, Field(description="With the factor RBDF (thesis Eq. 4.12), or without it (Eq. 4.10).")
]
TiedScores = Annotated[
    Literal["ranked", "expected"],
    Field(
        description="Documents with equal scores. ranked: in the order of the ranking. expected: "
        "the mean over all their permutations, which needs scores."
    ),
]
Background = Annotated[
    Literal["collection", "own"],
    Field(
        description="Background set of NFaiRR: the whole collection, as in the thesis, or the "
        "documents of the same ranking."
    ),
]
Tokens = Annotated[
    Literal["word", "whitespace", "space"],
    Field(
        description="How a text is split into terms. word: sequences of letters and digits, for "
        "raw "
        "text. whitespace: at any white space. space: at blanks only, as in the public program; "
        "for tokenised text, because 'He,' stays one term."
    ),
]
Undefined = Annotated[
    float, Field(allow_inf_nan=True, description="Value where the measure is 0 / 0.")
]
RankPersistence = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="p, the persistence: the probability of reading on to the next rank.",
    ),
]
Depth = Annotated[int, Field(ge=1, description="Ranks that are compared.")]
