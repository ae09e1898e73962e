"""Transcripts added to a file of transcripts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from equipoise.files import decoded, read_bytes
from equipoise.loaders.transcripts import Transcript, format_transcripts, is_transcript
from equipoise.problems import Problems
from equipoise_compendium.writing import write_files


def _lines_of_conversations(text: str) -> dict[tuple[str, ...], set[str]]:
    """The lines of each conversation, by its topic and run, without annotations."""
    conversations: dict[tuple[str, ...], set[str]] = {}
    lines: set[str] = set()
    for line in text.split("\n"):
        sign, *words = line.split() or [""]
        if sign == "#####":
            lines = conversations.setdefault(tuple(words[:2]), set())
        elif not sign.startswith("#"):
            lines.add(line.strip())
    return conversations


def add_transcripts(
    path: Path, transcripts: Iterable[Transcript], *, force: bool = False
) -> tuple[int, int]:
    """Write the conversations that a file lacks behind those that it has, edited or not.

    Returns how many were written, and how many were there. A conversation of the topic and run of
    another one, most of whose lines differ, is refused: it comes from another file. Only by
    ``force`` is a file that holds no transcripts begun anew.
    """
    transcripts = list(transcripts)
    # All of them are formatted first, so that one that is here twice is refused.
    format_transcripts(transcripts)
    texts = [format_transcripts([transcript]) for transcript in transcripts]
    content = read_bytes(path) if path.exists() else b""
    if not is_transcript(content):
        if content and not force:
            raise ValueError(f"{path} holds no transcripts: name another file")
        content = b""
    lines_of = _lines_of_conversations(decoded(content, path))
    new_texts = []
    problems = Problems()
    for transcript, text in zip(transcripts, texts, strict=True):
        name = (transcript.topic, transcript.run)
        lines = _lines_of_conversations(text)[name]
        if name not in lines_of:
            lines_of[name] = lines
            new_texts.append(text)
        # An annotator may have mended a line.
        elif len(lines & lines_of[name]) < len(lines) / 2:
            problem = f"another conversation on topic {transcript.topic} of run {transcript.run}"
            expected = "another name for the run (--run, or its file's), or another file (-o)"
            problems.add(path, None, None, problem, expected)
    problems.refuse()
    if new_texts:
        if content and not content.endswith(b"\n"):  # as some editors leave it
            content += b"\n"
        write_files({path: content + "".join(new_texts).encode()})
    return len(new_texts), len(transcripts) - len(new_texts)
