"""What a study records once, to be replayed ever after: settings, then lines or rows.

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
from equipoise_compendium import project, registry
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
    """Settings as every record states them: ``seed, models, versions, inputs``, then further ones.

    ``models``: weights by the model's name, a file or its sha256. ``packages``: distributions whose
    versions matter. ``inputs``: files of the repository; without them, every file noted as used so
    far that no recorder wrote.
    """
    files = {}
    if inputs is not None:
        for path in inputs:
            files[path.relative_to(project.root()).as_posix()] = project.sha256(path)
    else:
        for name, input_digest in project.used_files().items():
            # A record of a recorder is an outcome; reading it again states no new input.
            if not name.startswith("data/outputs/"):
                files[name] = input_digest
    weights = {}
    for name, file_or_digest in (models or {}).items():
        if isinstance(file_or_digest, Path):
            weights[name] = project.sha256(file_or_digest)
        else:
            weights[name] = file_or_digest
    versions = {name: version(name) for name in packages}
    return {"seed": seed, "models": weights, "versions": versions, "inputs": files, **further}


def digest(text: str) -> str:
    """What a record keeps of a text, so that it is not replayed for another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- upstream files -------------------------------------------------------------------------------


def unreachable(files: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Why registered files, named by item and path, cannot be had: a reason for each of those."""
    reasons = []
    for item, path in files:
        try:
            registry.fetch(item, path)
        except registry.DataUnreachable as error:
            reasons.append(str(error))
    return tuple(reasons)


# --- weights --------------------------------------------------------------------------------------


def weights_of(models: Path | None, name: str) -> list[Path]:
    """Files of a model's weights in a folder of models.

    A model is a GGUF file, or a folder with a configuration and safetensors.
    """
    if models is None:
        return []
    model = models / name
    if model.is_file():
        return [model]
    # Without its configuration, a folder of weights cannot be loaded.
    if (model / "config.json").is_file():
        return sorted(model.glob("*.safetensors"))
    return []


def lacking_weights(models: Path | None, name: str) -> list[str]:
    """What is wanted before a model is run."""
    files = weights_of(models, name)
    if not files:
        return [f"the weights {name} in --models FOLDER"]
    problems = []
    for path in files:
        problem = wrong_weights(path)
        if problem:
            problems.append(f"weights in {path}: {problem}")
    return problems


def wrong_weights(path: Path) -> str:
    """What is wrong with a file of weights: it is neither GGUF nor safetensors, or cut off."""
    if path.suffix == ".safetensors":
        return _wrong_safetensors(path)
    with path.open("rb") as file:
        if file.read(4) == b"GGUF":
            return ""
    return "none in the form GGUF"


def _wrong_safetensors(path: Path) -> str:
    # The file begins with the length of a JSON header, in 8 bytes, and this header. It says for
    # each tensor where its bytes begin and end, counted from behind the header.
    size = path.stat().st_size
    if not size:
        return "the file is empty"
    with path.open("rb") as file:
        header_length = int.from_bytes(file.read(8), "little")
        data_start = 8 + header_length
        if not 8 < data_start <= size:
            return "no safetensors file, or one that is cut off"
        try:
            tensors = json.loads(file.read(header_length))
            tensors.pop("__metadata__", None)
            ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
        except (ValueError, TypeError, KeyError, AttributeError):
            return "no safetensors file"
    if not ends or data_start + max(ends) > size:
        return "it holds no weights, or is cut off"
    return ""


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
    identities: set[str] = set()
    for number, line in lines:
        # The exact type: to Python, true and false are integers as well.
        wrong = [name for name, type_ in fields.items() if type(line.get(name)) is not type_]
        wrong += [name for name in key if name not in line and name not in fields]
        identity = json.dumps({name: line.get(name) for name in key}, sort_keys=True)
        if wrong:
            expected = f"the fields {', '.join(dict.fromkeys((*key, *fields)))}"
            problems.add(path, number, None, f"no good value for {', '.join(wrong)}", expected)
        elif key and identity in identities:
            problems.add(path, number, None, f"{identity} again", f"each {kind} once")
        identities.add(identity)
    problems.refuse()
    return settings, [line for _, line in lines]


def begin(
    path: Path,
    settings: Mapping[str, Any],
    kind: str,
    fields: Mapping[str, type],
    key: Sequence[str],
) -> list[Line]:
    """Begin a record of lines, or go on with one of the same settings; returns its lines so far."""
    first_line = {"record": "settings", **settings}
    return resume(path, first_line, lambda record: read(record, kind, fields, key))


def add(path: Path, kind: str, line: Mapping[str, Any]) -> None:
    """Add a line to a record, written through to the disk."""
    append(path, {"record": kind, **line})


# --- rows -----------------------------------------------------------------------------------------


def read_settings(path: Path) -> dict[str, Any]:
    """Settings of a record: the first line of JSON Lines, or a JSON file of their own."""
    text = read_text(path)
    if path.suffix == ".jsonl":
        text = text.partition("\n")[0]
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise refused(path, "no such thing", "settings, a JSON object", 1) from None


def state(
    path: Path, settings: Mapping[str, Any], measured: Mapping[str, Any] | None = None
) -> None:
    """Write the settings of a record of rows to a JSON file; refused where it holds other ones.

    ``measured``: what is known afterwards, such as seconds or a loss; free to differ, and added to
    what was known.
    """
    # As JSON brings them back, where a tuple is a list: so they can be compared with a file.
    settings_read = json.loads(json.dumps(settings))
    settings_so_far = read_settings(path) if path.is_file() else dict(settings_read)
    all_measured = settings_so_far.pop("measured", {}) | (measured or {})
    refuse_others(path, settings_so_far, settings_read)
    path.parent.mkdir(parents=True, exist_ok=True)
    if all_measured:
        settings_read["measured"] = all_measured
    write_files({path: json.dumps(settings_read, indent=1, sort_keys=True) + "\n"})


def replace_rows(path: Path, rows: pd.DataFrame, key: Sequence[str], digits: int = 6) -> None:
    """Put rows into a CSV file, sorted by their key; a row of the same key is replaced.

    The file is written whole or not at all.
    """
    texts = rows.copy()
    for column in rows.columns:
        if pd.api.types.is_float_dtype(rows[column].dtype):
            texts[column] = texts[column].map(f"{{:.{digits}g}}".format, na_action="ignore")
    tables = [texts.astype("str")]
    if path.is_file():
        tables.insert(0, read_columns(path, list(rows.columns)))
    merged = pd.concat(tables).drop_duplicates(list(key), keep="last")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files({path: merged.sort_values(list(key), key=_as_numbers)})


def _as_numbers(column: pd.Series) -> pd.Series:
    """A column of texts as it is sorted: as numbers, if all of it are, so that 10 follows 9."""
    if column.str.isdecimal().all():
        return column.astype(int)
    return column
