"""The config of a study: data, systems and sizes, and the steps that record them."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import pydantic

from equipoise import plain_yaml
from equipoise.files import read_yaml
from equipoise.problems import InputError, Problem, Problems, refused, shown
from equipoise_compendium import project
from equipoise_compendium.report import Basis

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

    Raises InputError with every problem.
    """
    content = read_yaml(path, plain_yaml.Values)
    checker = pydantic.TypeAdapter(kind)
    try:
        config = checker.validate_json(json.dumps(content), context={"folder": path.parent})
    except pydantic.ValidationError as error:
        problems = Problems()
        for mistake in error.errors():
            column = _written(mistake["loc"]) or None
            problems.add(path, None, column, *_found_and_wanted(mistake, kind))
        raise InputError(problems) from None
    project.noted(path)
    return config


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
            names = ", ".join(_settings_at(mistake["loc"][:-1], kind))
            return "a setting that is not known", f"one of {names}"
        case "value_error":
            return str(mistake["ctx"]["error"]), "settings that fit together"
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
    def basis(self) -> Basis:
        """Whether its numbers are compared with the printed ones."""
        return "recomputed" if self.stands_for == "thesis" else "replica"

    @property
    def figure_basis(self) -> Basis:
        """The same of a figure, which prints no numbers."""
        return "derived" if self.stands_for == "thesis" else "replica"


# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A part of what a study records, by itself resumable.

    ``wanted, done``: in ``unit``s, such as answers. ``seconds``: for one of them, as far as is
    known. ``lacks``: what has to be had first. ``run``: records the rest.
    """

    name: str
    unit: str
    wanted: int | None
    done: int
    run: Callable[[], None]
    seconds: float | None = None
    lacks: tuple[str, ...] = field(default=())

    @property
    def finished(self) -> bool:
        """Whether nothing is left."""
        return self.wanted is not None and self.done >= self.wanted


def told(steps: Iterable[Step]) -> str:
    """What each step wants, has, and lacks, and how long the rest takes, in lines for people."""
    lines = []
    seconds = 0.0
    for step in steps:
        number = "an unknown number" if step.wanted is None else f"{step.wanted:,}"
        line = f"{step.name}: {step.done:,} of {number} {step.unit} recorded"
        if step.seconds and not step.finished:
            if step.wanted is None:
                line += f"; about {step.seconds * 1000 / 60:.1f} min for 1,000"
            else:
                remaining = step.seconds * (step.wanted - step.done)
                line += f"; the rest takes about {remaining / 60:.0f} min"
                seconds += remaining
        lines.append(line)
        lines += [f"    wanted first: {lack}" for lack in step.lacks]
    if seconds:
        lines.append(f"All that is known together: about {seconds / 60:.0f} min.")
    return "\n".join(lines).strip()


def carry_out(steps: Iterable[Step], say: Callable[[str], None]) -> None:
    """Run the steps that are not finished; refuses before the first where any lacks something."""
    unfinished = [step for step in steps if not step.finished]
    problems = Problems()
    for step in unfinished:
        for lack in step.lacks:
            problems.append(Problem(step.name, None, None, "not at hand", lack))
    problems.refuse()
    for step in unfinished:
        say(f"{step.name}: {step.unit}")
        step.run()
