"""The config of a study: data, systems and sizes, and the steps that record them."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import pydantic

from equipoise import plain_yaml
from equipoise.files import read_yaml
from equipoise.problems import InputError, Problem, Problems, refused, shown
from equipoise_compendium import project
from equipoise_compendium.report import Basis
from equipoise_studies.costs import Calls, Work, all_calls, times
from equipoise_studies.systems.endpoint import refuse_secrets

Config = TypeVar("Config")
StandsFor = Literal["replica", "thesis"]
"""The thesis: its data and models, whose results are compared with printed cells; or a replica."""


# --- what a config may say ------------------------------------------------------------------------


@typing.dataclass_transform(frozen_default=True)
def settings(kind: type[Config]) -> type[Config]:
    """Make a class a frozen dataclass whose fields are checked by pydantic; it takes no others."""
    # Strict: no number is read from text. Of JSON, as `read_config` gives it, a list is a tuple.
    config = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    checked = pydantic.dataclasses.dataclass(frozen=True, config=config)(kind)
    return typing.cast(type[Config], checked)


def _beside_config(path: Path, info: pydantic.ValidationInfo) -> Path:
    """Where a file that a config names lies."""
    if info.context is None:
        return path  # of an object made in Python
    if path.parts[:1] == ("data",):
        return project.root() / path
    folder: Path = info.context["folder"]
    return folder / path


NamedFile = Annotated[Path, pydantic.AfterValidator(_beside_config)]
"""A file beside the config, or, if its name begins with ``data/``, of the repository's data."""


def _distinct(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Refuse a list that names something twice: it would be asked, or counted, twice."""
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} twice")
    return values


def _plain_url(url: str) -> str:
    """Refuse what is no http(s) address, or one that could hold a secret."""
    if url:
        refuse_secrets(url)
    return url


Names = Annotated[tuple[str, ...], pydantic.AfterValidator(_distinct)]
Counts = Annotated[
    tuple[Annotated[int, pydantic.Field(ge=1)], ...], pydantic.AfterValidator(_distinct)
]
Numbers = Annotated[tuple[int, ...], pydantic.AfterValidator(_distinct)]
Url = Annotated[str, pydantic.AfterValidator(_plain_url)]
"""An address in the OpenAI format, such as http://127.0.0.1:8080/v1; empty for none."""

Whole = Annotated[int, pydantic.Field(ge=0)]
"""A number of things, of which there may be none."""

Rate = Annotated[float, pydantic.Field(gt=0, le=1)]
"""A learning rate."""

Sampled = Annotated[float, pydantic.Field(ge=0, le=2)]
"""A temperature of sampling, within what endpoints take."""


class Misfit(NamedTuple):
    """What does not go together in a part of a config: at which setting, what, and what is wanted.

    A part says its own in a method ``misfits``, which yields these, or just what was found.
    """

    setting: str
    found: str
    wanted: str


def config_path(study: str, name: str) -> Path:
    """Where a config lies: a YAML file, or one of the repository by its name."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    folder = project.root() / "data" / "studies" / study
    path = folder / f"{name}.yaml"
    if not path.is_file():
        names = ", ".join(sorted(config.stem for config in folder.glob("*.yaml")))
        raise refused(name, "no config of that name", f"{names}, or a file that ends in .yaml")
    return path


def read_config(path: Path, kind: type[Config]) -> Config:
    """Read a config of a kind made by `settings`, whose fields say what is wanted.

    Raises InputError with every problem: of single settings, and of those that do not go together.
    """
    content = read_yaml(path, plain_yaml.Values)
    config, mistakes = _with_mistakes(content, kind, path.parent)
    problems = Problems()
    for mistake in mistakes:
        place = _written(mistake["loc"]) or None
        problems.add(path, None, place, *_found_and_wanted(mistake, kind))
    for steps, misfit in _misfits(config):
        problems.add(path, None, _written(steps) or None, misfit.found, misfit.wanted)
    problems.refuse()
    project.noted(path)
    return typing.cast(Config, config)


def _with_mistakes(
    content: Any, kind: type[Config], folder: Path
) -> tuple[Config | None, list[Any]]:
    """A config without the settings that are wrong, and what pydantic says of these.

    None where it cannot do without one. So whether the others go together is said at once too.
    """
    checker = pydantic.TypeAdapter(kind)
    mistakes: dict[tuple[int | str, ...], Any] = {}
    while True:
        try:
            config = checker.validate_json(json.dumps(content), context={"folder": folder})
        except pydantic.ValidationError as error:
            new_mistakes = {item["loc"]: item for item in error.errors()}
        else:
            return config, list(mistakes.values())
        # What was taken out and is wanted is missing now, which is no mistake of the reader's.
        for place in mistakes:
            new_mistakes.pop(place, None)
        mistakes |= new_mistakes
        taken_out = [_take_out(content, place) for place in new_mistakes]
        if not any(taken_out):
            return None, list(mistakes.values())


def _take_out(content: Any, place: Sequence[str | int]) -> bool:
    """Take the setting at a place out of a config's content; whether it was there."""
    *above, name = place or [0]
    for step in above:
        # Of a list with a wrong item nothing is kept.
        if isinstance(content, dict) and isinstance(content.get(step), list):
            name = step
            break
        if not isinstance(content, dict) or step not in content:
            return False
        content = content[step]
    if not isinstance(content, dict) or name not in content:
        return False
    del content[name]
    return True


def _misfits(
    part: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Misfit]]:
    """What does not go together in a config and in its parts, each with its place."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from _misfits(value, (*place, name))
    elif isinstance(part, tuple):
        for number, value in enumerate(part):
            yield from _misfits(value, (*place, number))
    elif dataclasses.is_dataclass(part):
        for setting in dataclasses.fields(part):
            yield from _misfits(getattr(part, setting.name), (*place, setting.name))
        misfits = getattr(part, "misfits", None)
        for misfit in misfits() if misfits else ():
            if isinstance(misfit, str):
                misfit = Misfit("", misfit, "settings that fit together")
            names = (misfit.setting,) if misfit.setting else ()
            yield (*place, *names), misfit


def unknown_names(
    setting: str, kind: str, names: Iterable[str], available: Iterable[str]
) -> Iterator[Misfit]:
    """A misfit for each name that is not available, with the nearest that is."""
    available = list(available)
    for name in dict.fromkeys(names):
        if name not in available:
            yield Misfit(setting, f"no {kind} {name}", nearest(name, available))


def nearest(name: str, available: Iterable[str]) -> str:
    """The available names, in words, the nearest one first if one is near."""
    available = list(available)
    near = difflib.get_close_matches(name, available, 1)
    if near and len(available) > 1:
        further = [name for name in available if name != near[0]]
        return f"{near[0]}, which is the nearest, or one of {', '.join(further)}"
    return f"one of {', '.join(available)}"


# --- what is wrong with one, in our words ---------------------------------------------------------

_WANTED = {
    "string_type": "text",
    "path_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "names with their values",
    "dataclass_type": "names with their values",
}


def _written(place: Sequence[str | int]) -> str:
    """A place in a config as one would write it: ``systems.tilde.training[0].epochs``."""
    words = ""
    for step in place:
        words += f"[{step}]" if isinstance(step, int) else f".{step}"
    return words.removeprefix(".")


def _found_and_wanted(mistake: Any, kind: type) -> tuple[str, str]:
    """What pydantic found at a place, and what is wanted there."""
    match mistake["type"]:
        case "missing":
            return "nothing", "a value"
        case "unexpected_keyword_argument":
            *place, name = mistake["loc"]
            return "a setting that is not known", nearest(str(name), _settings_at(place, kind))
        case "value_error":
            return str(mistake["ctx"]["error"]), "settings that fit together"
        case "greater_than_equal":
            return shown(mistake["input"]), f"at least {mistake['ctx']['ge']}"
        case "greater_than":
            return shown(mistake["input"]), f"more than {mistake['ctx']['gt']}"
        case "less_than_equal":
            return shown(mistake["input"]), f"at most {mistake['ctx']['le']}"
        case "literal_error":
            words = mistake["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
            return shown(str(mistake["input"])), f"one of {words}"
        case name:
            wanted = _WANTED.get(name, mistake["msg"].removeprefix("Input should be "))
            return shown(str(mistake["input"])), wanted


def _settings_at(place: Sequence[str | int], kind: Any) -> list[str]:
    """Names of the settings that a place of a config may have."""
    for step in place:
        if dataclasses.is_dataclass(kind):
            kind = typing.get_type_hints(kind)[str(step)]
        else:
            kind = typing.get_args(kind)[-1]  # the values of a dictionary
        alternatives = [part for part in typing.get_args(kind) if dataclasses.is_dataclass(part)]
        if alternatives and type(None) in typing.get_args(kind):
            kind = alternatives[0]
    return [setting.name for setting in dataclasses.fields(kind)]


# --- the configs of all chapters ------------------------------------------------------------------


def recorded(path: Path, chapter: str) -> Path:
    """A recorded file, noted as used."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not recorded: equipoise study {chapter} makes it")
    return project.noted(path)


@settings
class ChapterConfig:
    """What the configs of all chapters say.

    ``stands_for``: the thesis, whose own data and models it names, or a replica. ``chapter``: the
    study's folder.
    """

    stands_for: StandsFor
    chapter: ClassVar[str]

    @classmethod
    def read(cls, name: str) -> Self:
        """The study of a config: a name in data/studies/CHAPTER, or a YAML file."""
        return read_config(config_path(cls.chapter, name), cls)

    @property
    def other_data(self) -> str:
        """What tells its data from those that it names, by their size; empty where nothing does."""
        return ""

    @property
    def basis(self) -> Basis:
        """Whether its numbers are compared with the printed ones: not those of other data."""
        is_thesis = self.stands_for == "thesis" and not self.other_data
        return "recomputed" if is_thesis else "replica"

    @property
    def figure_basis(self) -> Basis:
        """The same of a figure, which prints no numbers."""
        return "derived" if self.basis == "recomputed" else "replica"


# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A part of what a study records, by itself resumable.

    ``wanted, done``: in ``unit``s, such as answers; ``state``: what those done are. ``seconds``:
    for one of them, as far as is known. ``lacks``: what has to be had first. ``may_wait``: whether
    the other steps are carried out without it, where it lacks something. ``notes``: what else its
    reader should know before it is begun, such as its cost. ``work``: what its models read and
    learn, of the rest. ``calls``: of an endpoint, for the rest. ``run``: records the rest.
    """

    name: str
    unit: str
    wanted: int | None
    done: int
    run: Callable[[], None]
    seconds: float | None = None
    lacks: tuple[str, ...] = field(default=())
    may_wait: bool = False
    notes: tuple[str, ...] = field(default=())
    state: Literal["recorded", "at hand"] = "recorded"
    work: Work | None = None
    calls: Calls | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing is left."""
        return self.wanted is not None and self.done >= self.wanted

    @property
    def seconds_left(self) -> float:
        """Time that the rest takes, as far as is known; 0 where it is not."""
        if self.finished or self.wanted is None:
            return 0.0
        return (self.seconds or 0.0) * (self.wanted - self.done)

    def progress(self) -> str:
        """What it wants and has, and how long the rest takes, in a line for people."""
        number = "an unknown number of" if self.wanted is None else f"{self.wanted:,}"
        line = f"{self.name}: {self.done:,} of {number} {self.unit} {self.state}"
        if self.seconds_left:
            line += f"; the rest takes about {duration(self.seconds_left)}"
        elif self.seconds and self.wanted is None:
            line += f"; about {duration(self.seconds * 1000)} for 1,000"
        return line


def duration(seconds: float) -> str:
    """A time in words: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def told(steps: Iterable[Step]) -> str:
    """What each step wants, has, and lacks, and how long the rest takes, in lines for people."""
    lines = []
    seconds = 0.0
    works = []
    calls = []
    for step in steps:
        lines.append(step.progress())
        first = "wanted first"
        if step.may_wait:
            first = "wanted, or it is left out"
        lines += [f"    {first}: {lack}" for lack in step.lacks]
        if not step.finished:
            lines += [f"    {note}" for note in step.notes]
            if step.work is not None:
                works.append(step.work)
                lines.append(f"    {times([step.work])}")
            if step.calls is not None:
                calls.append(step.calls)
        seconds += step.seconds_left
    if seconds:
        lines.append(f"All that is known together: about {duration(seconds)}.")
    if works:
        lines.append(
            f"All models together: {times(works)}, computed from their sizes and the tokens."
        )
    if calls:
        lines.append(f"All calls together: {all_calls(calls)}.")
    return "\n".join(lines).strip()


def carry_out(steps: Iterable[Step], say: Callable[[str], None]) -> list[Step]:
    """Run the steps that are not finished; returns those that were put off.

    Refuses before the first where one lacks something that cannot wait, or all do.
    """
    unfinished = [step for step in steps if not step.finished]
    ready = [step for step in unfinished if not step.lacks]
    put_off = [step for step in unfinished if step.lacks]
    problems = Problems()
    for step in put_off:
        if not step.may_wait or not ready:
            for lack in step.lacks:
                problems.append(Problem(step.name, None, None, "not at hand", lack))
    problems.refuse()

    for number, step in enumerate(ready, start=1):
        say(f"Step {number} of {len(ready)}. {step.progress()}")
        try:
            step.run()
        except InputError as error:
            # An input error is reported as having changed nothing, which need not be so here.
            kept = "what was recorded before is kept"
            raise ValueError("\n".join([f"{step.name}: {kept}", str(error)])) from None
    for step in put_off:
        say(f"Left out: {step.name}")
        for lack in step.lacks:
            say(f"    wanted first: {lack}")
    return put_off
