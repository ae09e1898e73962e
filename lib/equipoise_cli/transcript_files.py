"""Transcripts added to a file of transcripts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from equipoise.files import decoded, read_bytes
from equipoise.loaders.transcripts import Transcript, format_transcripts, is_transcript
from equipoise_compendium.writing import write_files


def add_transcripts(
    path: Path, transcripts: Iterable[Transcript], *, force: bool = False
) -> tuple[int, int]:
    """Write the conversations that a file lacks behind those that it has, edited or not.

    Returns how many were written, and how many were there. Only by ``force`` is a file that holds
    no transcripts begun anew.
    """
    transcripts = list(transcripts)
    # All of them are formatted first, so that one that cannot be written is refused.
    text = format_transcripts(transcripts)
    content = read_bytes(path) if path.exists() else b""
    if not is_transcript(content):
        if content and not force:
            raise ValueError(f"{path} holds no transcripts: name another file")
        write_files({path: text})
        return len(transcripts), 0
    names = set()
    for line in decoded(content, path).split("\n"):
        sign, *words = line.split() or [""]
        if sign == "#####":
            names.add(tuple(words[:2]))
    new_transcripts = []
    for transcript in transcripts:
        if (transcript.topic, transcript.run) not in names:
            new_transcripts.append(transcript)
    if new_transcripts:
        if not content.endswith(b"\n"):  # as some editors leave it
            content += b"\n"
        write_files({path: content + format_transcripts(new_transcripts).encode()})
    return len(new_transcripts), len(transcripts) - len(new_transcripts)
