"""Shared code of commands: files, ``NAME=VALUE`` options, and exit status 1."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from equipoise.errors import listed, plain


class _File(click.Path):
    """A path; a dash is standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert("/dev/stdin" if value == "-" else value, param, ctx)


FILE = _File(path_type=Path)


class _Target(click.Path):
    """A path to write; a dash would be neither a file nor standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("must be the name of a file; without it, a table is printed", param, ctx)
        return super().convert(value, param, ctx)


TARGET = _Target(path_type=Path)
"""Type of a path to write; `FILE` is the type of a path to read."""
FORCE = click.option(
    "--force",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({"--force": value}),
    help="Overwrite a file even if its content is of another kind.",
)
_OUTPUT = click.option(
    "-o", "--output", type=TARGET, help="CSV or .parquet file to write.  [standard output]"
)

SAMPLES = {
    "--run": ("q1 Q0 d7 1 12.5 bm25", "q1 Q0 d2 2 11.9 bm25"),
    "--ids": ("document,counterfactual", "d7,d7-cf"),
    "--qrels": ("q1 0 d7 2", "q1 0 d2 0"),
    "--membership NAME=": ("document,group", "d7,female"),
    "--membership, by shares": ("q1 d7 0.25 0.75", "q1 d2 1 0"),
    "--target NAME=": ("0.5", "0.5"),
    "--documents": ('{"id": "d7", "text": "She left."}', '{"id": "d2", "text": "Rain, and rain."}'),
    "--terms": ("term,group", "she,female"),
    "--attributes": (
        "SIZE: {kind: ordinal, groups: [small, large], target: uniform}",
        "KIND: {kind: nominal, groups: [x, y], target: [2, 1]}",
    ),
    "NUGGETS": ("run,topic,turn,start,end,level,SIZE,KIND", "bing,T1,1,33,35,2,0 1,1/2 1/2"),
    "FILE": (
        '{"question": "q1", "mode": "Informed", "relevant_author": "Human", '
        '"nonrelevant_author": "LLM", "answer": "In Wales [2].", "relevant": [2]}',
        '{"question": "q1", "mode": "CF-informed", "relevant_author": "Human", '
        '"nonrelevant_author": "LLM", "answer": "In Wales [1].", "relevant": [2]}',
    ),
    "FILE of LangChain": (
        '{"input": "Where?", "answer": "In Wales [1].", "context": [{"id": "d7", '
        '"page_content": "Wales", "metadata": {"source": "https://www.bbc.co.uk/1"}}]}',
    ),
    "FILE of RAGAS": (
        '{"user_input": "Where?", "response": "In Wales [1].", "retrieved_contexts": ["Wales"], '
        '"retrieved_context_ids": ["d7"], "reference_contexts": ["Wales"]}',
    ),
    "--sources": ("document,source", "d7,bbc.co.uk"),
    "SCORES": ("run,topic,attribute,measure,value", "bm25,q1,,ERR,0.75"),
    "--labels": ("label,level,SIZE", "a big film,2,large"),
    "--qrels of utterances": ("31_1 0 d7 2", "31_2 0 d2 0"),
    "--topics of a track": (
        '[{"number": 31, "turn": [{"number": 1, "raw_utterance": "What is throat cancer?"},',
        ' {"number": 2, "raw_utterance": "Is it treatable?"}, '
        '{"number": 3, "raw_utterance": "And lung cancer?"}]}]',
    ),
    "--classes": ("query,class", "31_1,SE", "31_2,FT", "31_3,SE"),
    "--topics": (
        "topic,type,request,format,site",
        "T1,movies,Please list films about chess.,title,imdb.com",
    ),
}
"""A few lines of every format that a command reads, by the option or argument that takes it.

A test passes them to the readers, so that the help shows no sample that a reader rejects.
"""


def samples(*names: str) -> str:
    """Return the end of a command's help: a few lines of each input format."""
    paragraphs = []
    for name in names:
        lines = "\n  ".join(SAMPLES[name])
        # In click, a backspace keeps the lines of a paragraph unchanged.
        paragraphs.append(f"\b\n{name}:\n  {lines}")
    return "\n\n".join(paragraphs)


def takes_output(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the output table and ``--force``."""
    return _OUTPUT(FORCE(command))


def write(tables: Mapping[Path | None, Any]) -> None:
    """Write tables, texts and figures, all or none; print a table or text without a file."""
    from equipoise_compendium.writing import write_csv, write_files

    # Ids leave as they came, because a command reads these tables back.
    write_files({path: table for path, table in tables.items() if path is not None})
    if None not in tables:
        return
    text = tables[None]
    if not isinstance(text, str):
        buffer = io.StringIO()
        write_csv(text, buffer)
        text = buffer.getvalue()
    if sys.stdout is None:
        raise OSError(errno.EBADF, "closed")
    # A terminal would execute control characters in ids; a file keeps every byte.
    sys.stdout.write(plain(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


_ALIKE: dict[str, list[str]] = {}
"""The files of each note on a file; the first of them is printed with the note."""


def show_note(note: str) -> None:
    """Print a note once; notes that differ in the file at their begin are counted."""
    file, colon, rest = note.partition(": ")
    files = _ALIKE.setdefault(rest if colon else note, [])
    if not files:
        click.echo(f"note: {note}", err=True)
    if file not in files:
        files.append(file)


def show_alike() -> None:
    """Print for how many other files the notes are the same."""
    for rest, (_, *others) in _ALIKE.items():
        if others:
            count = f"{len(others)} other{'s' if len(others) > 1 else ''}"
            click.echo(f"note: {rest:.60}...: the same for {count} ({listed(others, 3)})", err=True)
    _ALIKE.clear()


def show_seen(*tables: Any) -> None:
    """Print on standard error how much of their input the measures could use."""
    from equipoise.coverage import summaries

    show_alike()
    seen = [count for table in tables for count in table.attrs.pop("seen")]
    for line in summaries(seen):
        click.echo(f"coverage: {plain(line)}", err=True)


def named(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read the values of an option in the form ``NAME=VALUE``."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or not value.strip() or name in values:
            expected = f"{option} must be NAME=VALUE, each name once"
            raise click.BadParameter(f"{expected}, got {text!r}")
        # A dash is standard input, as for every file of a command.
        values[name] = "/dev/stdin" if value == "-" else value
    return values


def named_files(texts: Iterable[str], option: str) -> list[tuple[str, str]]:
    """Read names and files of an option, ``NAME=FILE`` or ``FILE`` with an empty name."""
    pairs = []
    for text in texts:
        if "=" not in text:
            pairs.append(("", "/dev/stdin" if text == "-" else text))
    named_texts = (text for text in texts if "=" in text)
    return [*pairs, *named(named_texts, option).items()]


def notebook_name(text: str) -> str:
    """Return the name of a notebook, given as a name or as ``notebooks/NAME.ipynb``."""
    if text.endswith(".ipynb"):
        return Path(text).stem
    return text


def fail(faults: Iterable[str]) -> None:
    """Print the faults and exit with status 1, if there are any."""
    lines = list(faults)
    if lines:
        click.echo("\n".join(lines), err=True)
        sys.exit(1)
