"""Guards the licences of upstream collections: none of their sentences stands in the repository.

What models answered here may repeat a sentence that they were shown; it is recorded as theirs.
"""

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
from upstream import skip_without

LENGTH = 10
"""Words in a row that are taken for a sentence of somebody."""
MOST_DIFFERENT = 7
"""Different words that a run of them needs at least."""
PLACES = (
    "data/facts",
    "lib",
    "notebooks",
    "reports",
    "tests",
)
BINARY = {".png", ".gz", ".zip"}
Hashes = npt.NDArray[np.uint64]

pytestmark = pytest.mark.upstream

skip_without(*registry.entries()["item"].unique())


def words_of(text: str) -> list[str]:
    """The words of a text, without numbers, of which tables are full."""
    return re.findall(r"\b[^\W\d_]{2,}\b", text)


def word_runs(text: str) -> Hashes:
    """A number for every run of `LENGTH` words of a text, equal for equal runs."""
    words = words_of(text.lower())
    if len(words) < LENGTH:
        return np.empty(0, dtype=np.uint64)
    hashed = pd.util.hash_array(np.array(words, dtype=object))
    # A column of labels repeats a few words; a sentence does not.
    places, _ = pd.factorize(np.array(words, dtype=object))
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(places, LENGTH), axis=1)
    different = (np.diff(windows, axis=1) > 0).sum(axis=1) + 1
    runs = np.zeros(len(words) - LENGTH + 1, dtype=np.uint64)
    for place in range(LENGTH):
        # a polynomial of the words, so that their order counts
        runs = runs * np.uint64(1_000_003) + hashed[place : place + len(runs)]
    return runs[different >= MOST_DIFFERENT]


def stands_in(known: Hashes, runs: Hashes) -> bool:
    """Whether any of the runs is among those known, which are sorted."""
    places = np.searchsorted(known, runs).clip(max=len(known) - 1)
    return bool((known[places] == runs).any())


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


def own_texts() -> Iterator[str]:
    """What models wrote here, and what papers print: a report may show these."""
    data = project.root() / "data"
    yield from (path.read_text(encoding="utf-8") for path in data.glob("published/*/*.csv"))
    for path in [*data.glob("outputs/**/*.jsonl"), *data.glob("outputs/satisfaction/*.csv")]:
        yield path.read_text(encoding="utf-8")


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
    own = np.unique(np.concatenate([word_runs(text) for text in own_texts()]))
    theirs = np.setdiff1d(theirs, own, assume_unique=True)
    assert len(theirs) > 1_000_000
    quoted = {}
    for path in committed():
        if path.suffix in BINARY or not path.is_file():
            continue
        lines = text_of(path).splitlines()
        hits = [line for line in lines if stands_in(theirs, word_runs(line))]
        if hits:
            quoted[path.relative_to(project.root()).as_posix()] = (len(hits), hits[0][:300])
    assert quoted == {}
