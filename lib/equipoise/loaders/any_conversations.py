"""Conversations of a file in any format that is known: which one it is, its first letters and its name tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equipoise.files import is_parquet, opened, unpacked_name
from equipoise.loaders.chats import read_chats
from equipoise.loaders.fairweb_conversations import read_fairweb
from equipoise.loaders.recorded_conversations import harvest_transcripts, read_harvest
from equipoise.loaders.transcripts import Transcript


def _form(path: Path) -> str:
    """fairweb, harvest, or auto: JSON of others."""
    if not path.is_file():  # missing, or a pipe, which is read once
        return "harvest" if unpacked_name(path).lower().endswith(".jsonl") else "fairweb"
    with opened(path) as (file, _):
        start = file.read(2**20).removeprefix(b"\xef\xbb\xbf").lstrip()
    settings = start.startswith(b"{") and b'"record": "settings"' in start.partition(b"\n")[0]
    recorded = not start or settings or start.startswith(b'{"record"')
    if recorded or not (start.startswith((b"{", b"[")) or is_parquet(path)):
        return "harvest" if unpacked_name(path).lower().endswith(".jsonl") else "fairweb"
    return "auto"


def read_conversations(
    path: Path, form: str = "auto", *, marks: Any, run: str | None = None, topics: Any = None
) -> list[Transcript]:
    """Transcripts from a file; ``form`` and the others as in the readers of each format."""
    form = _form(path) if form == "auto" else form
    if form == "harvest":
        return harvest_transcripts(read_harvest(path, run))
    if form == "fairweb":
        return read_fairweb(path, run, marks=marks)
    return read_chats(path, form, topics=topics, run=run)
