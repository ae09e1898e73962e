"""The config of a study: the data, systems and sizes that a chapter is run with, and the steps that record them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from equipoise import plain_yaml
from equipoise.files import read_yaml
from equipoise.problems import InputError, Problem, Problems, refused, shown
from equipoise_compendium import project
from equipoise_compendium.report import Basis

Config = TypeVar("Config")
StandsFor = Literal["replica", "thesis"]
"""The thesis: its own data and models, whose results are compared with the printed cells; or a replica of it."""

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def config_path(study: str, name: str) -> Path:
    """Where a config lies: a YAML file, or one of the repository by its name."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    folder = project.root() / "data" / "studies" / study
    path = folder / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(one.stem for one in folder.glob("*.yaml")))
        raise refused(name, "no config of that name", f"{there}, or a file that ends in .yaml")
    return path


def read_config(path: Path, kind: type[Config]) -> Config:
    """Read a config; ``kind`` is a dataclass, whose fields, their types and defaults say what is wanted.

    A file that is named (a field of type Path) lies beside the config unless its path is absolute,
    or among the repository's data if it begins with ``data/``. Raises InputError with every
    problem.
    """
    reader = _Reader(path)
    read = reader.value(read_yaml(path, plain_yaml.Values), kind, "")
    reader.problems.refuse()
    project.noted(path)
    return typing.cast(Config, read)


def recorded(path: Path, chapter: str) -> Path:
    """A recorded file, noted as used."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not recorded: equipoise study {chapter} makes it")
    return project.noted(path)


@dataclass(frozen=True)
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


class _Reader:
    """Turns plain values into what type hints say, and collects what does not fit."""

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, Problems()

    def _wrong(self, place: str, found: object, wanted: str) -> None:
        self.problems.add(self.path, None, place or None, shown(str(found)), wanted)

    def value(self, given: Any, hint: Any, place: str) -> Any:
        """The value that a hint asks for."""
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self._fields(given, typing.cast(type, hint), place)
        if origin in (typing.Union, types.UnionType):
            return None if given is None else self.value(given, parts[0], place)
        if origin is Literal:
            if given not in parts:
                self._wrong(place, given, f"one of {', '.join(map(str, parts))}")
            return given
        if origin is dict:
            return {
                key: self.value(one, parts[1], f"{place}.{key}")
                for key, one in self._mapping(given, place).items()
            }
        if origin is tuple:
            if not isinstance(given, list):
                self._wrong(place, given, "a list")
                return ()
            return tuple(
                self.value(one, parts[0], f"{place}[{number}]") for number, one in enumerate(given)
            )
        if hint is Path:
            named = Path(self.value(given, str, place) or "")
            return (
                project.root() / named if named.parts[:1] == ("data",) else self.path.parent / named
            )
        if hint is float and type(given) is int:
            return float(given)
        if type(given) is not hint:
            self._wrong(place, given, _KINDS[hint])
        return given

    def _mapping(self, given: Any, place: str) -> Mapping[str, Any]:
        if isinstance(given, dict):
            return given
        self._wrong(place, given, "names with their values")
        return {}

    def _fields(self, given: Any, kind: type, place: str) -> Any:
        known, hints = (
            {one.name: one for one in dataclasses.fields(kind)},
            typing.get_type_hints(kind),
        )
        given, at = self._mapping(given, place), f"{place}." if place else ""
        for name in [name for name in given if name not in known]:
            self._wrong(f"{at}{name}", "a setting that is not known", f"one of {', '.join(known)}")
        values = {
            name: self.value(given[name], hints[name], f"{at}{name}")
            for name in known
            if name in given
        }
        lacking = [
            name
            for name, one in known.items()
            if name not in given
            and one.default is dataclasses.MISSING
            and one.default_factory is dataclasses.MISSING
        ]
        for name in lacking:
            self._wrong(f"{at}{name}", "nothing", "a value")
        if lacking or self.problems:
            return None
        try:
            return kind(**values)
        except ValueError as error:
            self.problems.add(
                self.path, None, place or None, str(error), "settings that fit together"
            )
            return None


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
    lines, seconds = [], 0.0
    for step in steps:
        wanted = "an unknown number" if step.wanted is None else f"{step.wanted:,}"
        line = f"{step.name}: {step.done:,} of {wanted} {step.unit} recorded"
        if step.seconds and step.wanted is not None and not step.finished:
            seconds += (left := step.seconds * (step.wanted - step.done))
            line += f"; the rest takes about {left / 60:.0f} min"
        elif step.seconds and not step.finished:
            line += f"; about {step.seconds * 1000 / 60:.1f} min for 1,000"
        lines += [line, *(f"    wanted first: {lack}" for lack in step.lacks)]
    return "\n".join(
        [*lines, f"All that is known together: about {seconds / 60:.0f} min." if seconds else ""]
    ).strip()


def carry_out(steps: Iterable[Step], say: Callable[[str], None]) -> None:
    """Run the steps that are not finished, one after the other; refuses before the first where any lacks something."""
    steps = [step for step in steps if not step.finished]
    problems = [
        Problem(step.name, None, None, "not at hand", lack) for step in steps for lack in step.lacks
    ]
    if problems:
        raise InputError(problems)
    for step in steps:
        say(f"{step.name}: {step.unit}")
        step.run()
