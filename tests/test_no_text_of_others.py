"""Guards the licences of upstream collections: none of their sentences stands in the repository."""

import gzip
import io
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from equipoise_compendium import project, registry

LENGTH = 10
"""Words in a row that are taken for a sentence of somebody."""
PLACES = (
    "data/facts",
    "data/published",
    "data/conversations",
    "lib",
    "notebooks",
    "reports",
    "tests",
)
BINARY = {".png", ".gz", ".zip"}
Hashes = npt.NDArray[np.uint64]

pytestmark = pytest.mark.upstream


def words_of(text: str) -> list[str]:
    """The words of a text, without numbers, of which tables are full."""
    return re.findall(r"[^\W\d_]{2,}", text)


def word_runs(text: str) -> Hashes:
    """A number for every run of `LENGTH` words of a text, equal for equal runs."""
    words = words_of(text.lower())
    if len(words) < LENGTH:
        return np.empty(0, dtype=np.uint64)
    hashed = pd.util.hash_array(np.array(words, dtype=object))
    runs = np.zeros(len(words) - LENGTH + 1, dtype=np.uint64)
    for place in range(LENGTH):
        # a polynomial of the words, so that their order counts
        runs = runs * np.uint64(1_000_003) + hashed[place : place + len(runs)]
    return runs


def upstream_texts() -> Iterator[str]:
    """The text of every registered upstream file, archives file by file."""
    for row in registry.entries().itertuples():
        path = registry.fetch(row.item, row.path)
        content = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for name in archive.namelist():
                    yield archive.read(name).decode(errors="replace")
            continue
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        yield content.decode(errors="replace")


def committed() -> list[Path]:
    root = project.root()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    return [root / name for name in names if name.startswith(PLACES)]


def text_of(path: Path) -> str:
    """The text of a committed file; of a fact table in Parquet, of its columns of text."""
    if path.suffix == ".parquet":
        table = pd.read_parquet(path).select_dtypes(exclude="number")
        return table.to_csv(index=False)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join(json.dumps(cell, ensure_ascii=False) for cell in json.loads(text)["cells"])
    return text


def test_no_sentence_of_an_upstream_file_is_committed() -> None:
    theirs = np.unique(np.concatenate([word_runs(text) for text in upstream_texts()]))
    assert len(theirs) > 1_000_000
    quoted = {}
    for path in committed():
        if path.suffix in BINARY or not path.is_file():
            continue
        text = text_of(path)
        places = np.flatnonzero(np.isin(word_runs(text), theirs))
        if len(places):
            words = words_of(text)
            first = " ".join(words[places[0] : places[0] + LENGTH])
            quoted[path.relative_to(project.root()).as_posix()] = (len(places), first)
    assert quoted == {}
