"""Conversations of a file in any known format, which its first letters and its name tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equipoise.files import BOM, head, unpacked_name
from equipoise.loaders.transcripts import Transcript
from equipoise.problems import refused
from equipoise_cli.loaders.chats import NEEDS_TOPICS, read_chats
from equipoise_cli.loaders.fairweb_conversations import read_fairweb
from equipoise_studies.recorded_conversations import harvest_transcripts, read_harvest


def _form(path: Path) -> str:
    """fairweb, harvest, or auto: JSON of others."""
    beginning = head(path, 2**20).removeprefix(BOM).lstrip()
    first_line = beginning.partition(b"\n")[0]
    if b'"record": "settings"' in first_line or beginning.startswith(b'{"record"'):
        return "harvest"
    if beginning.startswith((b"{", b"[", b"PAR1")):
        return "auto"
    is_json_lines = unpacked_name(path).lower().endswith(".jsonl")
    return "harvest" if is_json_lines else "fairweb"


def read_conversations(
    path: Path, form: str = "auto", *, marks: Any, run: str | None = None, topics: Any = None
) -> list[Transcript]:
    """Transcripts from a file; ``form`` and the others as in the readers of each format."""
    if form == "auto":
        form = _form(path)
    if topics is not None and form in ("harvest", "fairweb"):
        raise refused(path, f"conversations of {form}", NEEDS_TOPICS)
    if form == "harvest":
        return harvest_transcripts(read_harvest(path, run))
    if form == "fairweb":
        return read_fairweb(path, run, marks=marks)
    return read_chats(path, form, topics=topics, run=run)
