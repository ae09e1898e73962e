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
    """Write the conversations that a file lacks behind those that it has, which stay as they are, edited or not.

    Returns how many were written, and how many were there. Only by ``force`` is a file that holds
    no transcripts begun anew.
    """
    every = list(transcripts)
    whole = format_transcripts(every)
    old = read_bytes(path) if path.exists() else b""
    if not is_transcript(old):
        if old and not force:
            raise ValueError(f"{path} holds no transcripts: name another file")
        write_files({path: whole})
        return len(every), 0
    there = {
        tuple(words[1:3])
        for line in decoded(old, path).split("\n")
        if (words := line.split())[:1] == ["#####"]
    }
    added = [made for made in every if (made.topic, made.run) not in there]
    if added:
        write_files(
            {path: old + b"\n" * (not old.endswith(b"\n")) + format_transcripts(added).encode()}
        )
    return len(added), len(every) - len(added)
