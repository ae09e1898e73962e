"""A corpus of bad calls of every command, made from the options and arguments that it declares.

A call is a good one (of `good_files`, or filled in by the types of what is required) with one thing
wrong. A new command is in the corpus by being declared.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from random import Random

import click

from equipoise.declare import described
from equipoise.problems import plain
from equipoise_cli import main
from equipoise_cli.declared import OptionValue
from equipoise_cli.shared import FILE, TARGET
from good_files import COMMANDS, FILES, TEXTS

Words = list[str]
BAD = "bad.csv"

PYTHON_S_WORDS = re.compile(
    r"Traceback|Errno|embedded null|could not convert|invalid literal|codec|<class|object at 0x|"
    r"NoneType|recursion|Exceeds the limit|serializable|must be in 1|object has no attribute|"
    r"unhashable|dtype|ufunc|surrogates not|"
    r"truth value|ArrowInvalid|too large to convert|Error\(|nan\b.*nan\b"
)
RAW = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What no refusal has: Python's own words, and control characters."""


@dataclass(frozen=True)
class Call:
    """A bad call: its words, what is made before, one of what a refusal names.

    ``may_pass``: it need not be refused, but must not end otherwise.
    """

    words: Words
    names: tuple[str, ...]
    make: Callable[[Path], object] | None = None
    may_pass: bool = False


def commands(
    group: click.Group = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, by the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


# --- good calls -----------------------------------------------------------------------------------


def _filled(parameter: click.Parameter) -> Words:
    """A value of a parameter that is required, by its type."""
    value = "x"
    if parameter.type is FILE:
        value = "nuggets.csv"
    elif parameter.type is TARGET:
        value = "out.csv"
    elif isinstance(parameter.type, click.Choice):
        value = next(iter(parameter.type.choices))
    values = [value] * max(parameter.nargs, 1)
    return values if isinstance(parameter, click.Argument) else [parameter.opts[-1], *values]


def good_words(path: tuple[str, ...], parameters: list[click.Parameter]) -> Words:
    """The first good call that there is of a command, else one that is filled in."""
    for words in COMMANDS.values():
        if tuple(words[: len(path)]) == path:
            return words
    filled = [*path]
    for parameter in parameters:
        if parameter.required:
            filled += _filled(parameter)
    return filled


def _values(value: object) -> Iterator[str]:
    if isinstance(value, tuple):
        for element in value:
            yield from _values(element)
    elif value is not None:
        yield str(value)


def _file_read(name: str) -> str:
    """The first of the files that a word of a good call leads to."""
    inside = [file for file in FILES if file == name or file.startswith(f"{name}/")]
    return inside[-1] if inside else "nuggets.csv"


# --- what may be wrong ----------------------------------------------------------------------------


def _folder_of_mine(path: Path) -> None:
    path.mkdir()
    (path / "mine.txt").write_text("mine")


def _link(path: Path, target: str) -> None:
    path.symlink_to(target)


@cache
def _bomb() -> bytes:
    """131 kB that hold 134 MB."""
    return gzip.compress(bytes(2**27), 9)


STATES: tuple[Callable[[Path], object], ...] = (
    lambda _: None,  # no such file
    lambda path: path.mkdir(),
    lambda path: _link(path, path.name),
    lambda path: _link(path, "nowhere"),
    lambda path: _link(path, "/dev/zero"),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b" \n\r\n\n"),
    lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))),
    lambda path: path.write_bytes(bytes(5000)),
    lambda path: path.write_bytes(TEXTS["sets.yaml"].encode("utf-16")),
    lambda path: path.write_bytes(gzip.compress(b"torn" * 99)[:-20]),
    lambda path: path.write_bytes(_bomb()),
    lambda path: path.write_bytes(FILES["run.parquet"][:-9]),
    lambda path: path.write_bytes(b"[" * 60_000),
    lambda path: path.write_text("\x1b[31m\u202e=cmd|' /C calc'!A0\n" * 3),
    lambda path: path.write_bytes(b"x;y;z\n1;2;3\n"),
    lambda path: path.write_bytes(b'{"turns": null, "messages": null, "id": 1}\n'),
    lambda path: path.write_bytes(b"[[]]"),
)
PIECES = (
    *("\0", "\xff", "\u202e", '"', ",", "\t", " ", "\n", "\r", "{", "[", "}", "'", "-"),
    *("1e999", "nan", "", "#", "&a", "9" * 99, "null", "-1", "=1+1"),
)
NUMBERS = ("x", "nan", "1e999", "9" * 5000, "", "1/0", "[" * 3000, "\x1b[31m", "a\0b", "2001-99-99")
WORDS = ("no such word", "", "\x1b[31m\u202e", "9" * 5000, "a\0b")
TEXTS_OF_OPTIONS = ("\x1b[31m\u202e", "../no/such", "=", "x" * 5000, "a\0b", "tcp:127.0.0.1:1")


def _damaged(content: bytes, random: Random) -> bytes:
    """A good file with a piece that may be bad."""
    start = random.randrange(len(content) + 1)
    end = start + random.randrange(12)
    return content[:start] + random.choice(PIECES).encode() + content[end:]


def _writes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


class _Corpus:
    """Bad calls of one command."""

    def __init__(self, path: tuple[str, ...], command: click.Command, random: Random) -> None:
        self.random = random
        context = click.Context(command)
        self.parameters = command.get_params(context)
        self.good = good_words(path, self.parameters)
        parsed = command.make_context(path[-1], self.good[len(path) :])
        self.values = parsed.params
        self.states = cycle(random.sample(STATES, len(STATES)))
        self.others = cycle(random.sample(list(FILES), len(FILES)))

    def with_value(self, parameter: click.Parameter, value: str) -> Words:
        """The good call with another value of a parameter."""
        if isinstance(parameter, click.Option):
            names = {*parameter.opts}
            for place, word in enumerate(self.good):
                if word in names:
                    return [*self.good[: place + 1], value, *self.good[place + 2 :]]
            if parameter.nargs > 1:
                return [*self.good, parameter.opts[-1], *[value] * parameter.nargs]
            return [*self.good, f"{parameter.opts[-1]}={value}"]
        for good_value in _values(self.values.get(parameter.name or "")):
            place = self.good.index(good_value)
            return [*self.good[:place], value, *self.good[place + 1 :]]
        return [*self.good, value]

    def calls(self) -> Iterator[Call]:
        """Each thing that may be wrong with each parameter."""
        yield Call([*self.good, "--no-such-option"], ("--no-such-option",))
        if not any(parameter.nargs < 0 for parameter in self.parameters):
            yield Call([*self.good, "more.csv"], ("more.csv",))
        for parameter in self.parameters:
            names = (*parameter.opts, parameter.human_readable_name, parameter.name or "")
            if parameter.type is FILE:
                yield from self.of_file(parameter)
            elif parameter.type is TARGET:
                yield from self.of_target(parameter)
            elif getattr(parameter, "is_flag", False):
                yield Call([*self.good, f"{parameter.opts[-1]}=x"], names)
            elif isinstance(parameter.type, OptionValue):
                yield from self.of_value(parameter, names)
            elif not isinstance(parameter.type, click.types.UnprocessedParamType):
                # What is not processed goes to another program.
                yield from self.of_text(parameter, names)

    def of_file(self, parameter: click.Parameter) -> Iterator[Call]:
        """A file in a bad state, of another format, or damaged."""
        words = self.with_value(parameter, BAD)
        names = BAD, *parameter.opts[-1:]
        for make in islice(self.states, 4):
            yield Call(words, names, make)
        good_file = _file_read(next(_values(self.values.get(parameter.name or "")), ""))
        for name in islice(self.others, 2):
            if FILES[name] != FILES[good_file]:
                yield Call(words, names, _writes(FILES[name]), may_pass=True)
        for _ in range(2):
            content = _damaged(FILES[good_file], self.random)
            yield Call(words, names, _writes(content), may_pass=True)

    def of_target(self, parameter: click.Parameter) -> Iterator[Call]:
        """A place that no file may be written to."""
        words = self.with_value(parameter, BAD)
        ways: list[Callable[[Path], object]] = [
            _folder_of_mine,
            lambda path: path.write_text("what I wrote\n"),
            lambda path: _link(path, path.name),
            os.mkfifo,
        ]
        for make in ways:
            yield Call(words, (BAD, *parameter.opts), make)
        for name in (f"{BAD}/out.csv", "n" * 300, "a\0b.csv"):
            places = (BAD, "n" * 30, "a", *parameter.opts)
            yield Call(self.with_value(parameter, name), places, Path.touch)

    def of_value(self, parameter: click.Parameter, names: tuple[str, ...]) -> Iterator[Call]:
        """A value outside what an option declares."""
        assert isinstance(parameter.type, OptionValue)
        is_number = "number" in described(parameter.type.choice.hint)
        may_pass = "text" in described(parameter.type.choice.hint)
        for value in self.random.sample(NUMBERS if is_number else WORDS, 3):
            yield Call(self.with_value(parameter, value), names, may_pass=may_pass)

    def of_text(self, parameter: click.Parameter, names: tuple[str, ...]) -> Iterator[Call]:
        """A text that means nothing."""
        may_pass = isinstance(parameter.type, (type(click.STRING), click.Path))
        for value in self.random.sample(TEXTS_OF_OPTIONS, 3):
            words = self.with_value(parameter, value)
            # What a text leads to is maybe wrong with a file, which is named then.
            places = (*names, plain(value)[:20], repr(value)[1:-1], *self.good[1:])
            yield Call(words, places, may_pass=may_pass)


def corpus() -> list[Call]:
    """Bad calls of all commands, the same ones at every run."""
    calls: list[Call] = []
    for path, command in commands():
        calls += _Corpus(path, command, Random(" ".join(path))).calls()  # noqa: S311 - no secret
    return calls
