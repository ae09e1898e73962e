"""What a study records once, to be replayed ever after: settings stated in one way, then lines or rows.

A record of lines is JSON Lines, settings first: `begin` or go on, `add`, `read`. A record of rows
is a CSV file whose settings lie in a JSON file: `state`, `replace_rows`. Whoever goes on with other
settings is refused, each one named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_columns, read_text
from equipoise.problems import Problems, refused
from equipoise_compendium import project
from equipoise_compendium.writing import write_files
from equipoise_studies.records import Line, append, parse_lines, refuse_others, resume


def settings_of(
    *,
    seed: int | None = None,
    models: Mapping[str, str | Path] | None = None,
    packages: Iterable[str] = (),
    inputs: Iterable[Path] | None = None,
    **further: Any,
) -> dict[str, Any]:
    """Settings as every record states them: ``seed, models, versions, inputs``, then the record's own.

    ``models``: weights by the model's name, a file or its sha256. ``packages``: distributions whose
    versions matter. ``inputs``: files of the repository; without them, every file noted as used so
    far that no recorder wrote.
    """
    files = {
        name: sha
        for name, sha in project.used_files().items()
        if not name.startswith("data/outputs/")
    }
    if inputs is not None:
        files = {
            path.relative_to(project.root()).as_posix(): project.sha256(path) for path in inputs
        }
    weights = {
        name: one if isinstance(one, str) else project.sha256(one)
        for name, one in (models or {}).items()
    }
    versions = {name: version(name) for name in packages}
    return {"seed": seed, "models": weights, "versions": versions, "inputs": files, **further}


def digest(text: str) -> str:
    """What a record keeps of a text, so that it is not replayed for another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- weights --------------------------------------------------------------------------------------


def weights_of(models: Path | None, name: str) -> list[Path]:
    """Files of a model's weights in a folder of models: a GGUF file, or the safetensors of a folder with a config."""
    if models is None or (models / name).is_file():
        return [] if models is None else [models / name]
    return (
        sorted((models / name).glob("*.safetensors"))
        if (models / name / "config.json").is_file()
        else []
    )


def lacking_weights(models: Path | None, name: str) -> list[str]:
    """What is wanted before a model is run."""
    files = weights_of(models, name)
    told = [f"weights in {path}: {wrong}" for path in files if (wrong := wrong_weights(path))]
    return told if files else [f"the weights {name} in --models FOLDER"]


def wrong_weights(path: Path) -> str:
    """What is wrong with a file of weights, if anything: it is neither GGUF nor safetensors, or cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if path.suffix != ".safetensors":
            return "" if start.startswith(b"GGUF") else "none in the form GGUF"
        header = int.from_bytes(start, "little")
        if not 8 < 8 + header <= size:
            return (
                "the file is empty" if not size else "no safetensors file, or one that is cut off"
            )
        try:
            tensors = json.loads(file.read(header))
            ends = [
                one["data_offsets"][1] for name, one in tensors.items() if name != "__metadata__"
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            return "no safetensors file"
    return "" if ends and 8 + header + max(ends) <= size else "it holds no weights, or is cut off"


# --- lines ----------------------------------------------------------------------------------------


def read(
    path: Path, kind: str, fields: Mapping[str, type], key: Sequence[str]
) -> tuple[Line, list[Line]]:
    """Settings and lines of a record.

    ``kind``: what ``record`` says on every line but the first. ``fields``: those of every line,
    with their types. ``key``: fields that tell lines apart. Raises InputError with every problem.
    """
    problems = Problems()
    settings, lines = parse_lines(path, kind, problems)
    seen: set[str] = set()
    for number, line in lines:
        wrong = [name for name, wanted in fields.items() if type(line.get(name)) is not wanted]
        wrong += [name for name in key if name not in line and name not in fields]
        identity = json.dumps({name: line.get(name) for name in key}, sort_keys=True)
        if wrong:
            wanted = f"the fields {', '.join(dict.fromkeys((*key, *fields)))}"
            problems.add(path, number, None, f"no good value for {', '.join(wrong)}", wanted)
        elif key and identity in seen:
            problems.add(path, number, None, f"{identity} again", f"each {kind} once")
        seen.add(identity)
    problems.refuse()
    return settings, [line for _, line in lines]


def begin(
    path: Path,
    settings: Mapping[str, Any],
    kind: str,
    fields: Mapping[str, type],
    key: Sequence[str],
) -> list[Line]:
    """Begin a record of lines, or go on with one of the same settings; returns the lines that it holds already."""
    return resume(
        path, {"record": "settings", **settings}, lambda held: read(held, kind, fields, key)
    )


def add(path: Path, kind: str, line: Mapping[str, Any]) -> None:
    """Add a line to a record, written through to the disk."""
    append(path, {"record": kind, **line})


# --- rows -----------------------------------------------------------------------------------------


def read_settings(path: Path) -> dict[str, Any]:
    """Settings of a record: the first line of JSON Lines, or a JSON file of their own."""
    text = read_text(path)
    try:
        return dict(json.loads(text.partition("\n")[0] if path.suffix == ".jsonl" else text))
    except (ValueError, TypeError, RecursionError):
        raise refused(path, "no such thing", "settings, a JSON object", 1) from None


def state(
    path: Path, settings: Mapping[str, Any], measured: Mapping[str, Any] | None = None
) -> None:
    """Write the settings of a record of rows to a JSON file; where others are written there, they are refused.

    ``measured``: what is known afterwards, such as seconds or a loss; free to differ, and added to
    what was known.
    """
    whole = json.loads(json.dumps(settings))
    held = read_settings(path) if path.is_file() else dict(whole)
    known = held.pop("measured", {}) | (measured or {})
    refuse_others(path, held, whole)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole |= {"measured": known} if known else {}
    write_files({path: json.dumps(whole, indent=1, sort_keys=True) + "\n"})


def replace_rows(path: Path, rows: pd.DataFrame, key: Sequence[str], digits: int = 6) -> None:
    """Put rows into a CSV file, replacing those of the same key, sorted by it; it is written whole or not at all."""
    texts = rows.copy()
    for column in texts.columns[[pd.api.types.is_float_dtype(dtype) for dtype in texts.dtypes]]:
        texts[column] = texts[column].map(f"{{:.{digits}g}}".format, na_action="ignore")
    held = [read_columns(path, list(rows.columns))] if path.is_file() else []
    whole = pd.concat([*held, texts.astype("str")]).drop_duplicates(list(key), keep="last")
    path.parent.mkdir(parents=True, exist_ok=True)
    by_number = whole.sort_values(
        list(key), key=lambda part: part.astype(int) if part.str.isdecimal().all() else part
    )
    write_files({path: by_number})
