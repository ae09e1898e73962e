"""The counterfactual of a collection, kept in a folder, some thousand documents in each file."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from equipoise.files import read_text
from equipoise_compendium.writing import staging, write_files
from equipoise_studies.ranking_bias.data import read_terms
from equipoise_studies.ranking_bias.substitution import (
    GenderPairs,
    Tagger,
    restored_share,
    spacy_tagger,
    substitute,
)
from equipoise_studies.ranking_bias.upstream import BiasCollection

CHUNK = 10_000
"""Documents that are substituted between two times that something is kept."""

Chunk = list[tuple[str, str]]


class CounterfactualTexts:
    """Texts of documents in both worlds, in a folder.

    Files ``texts-NNNNN.parquet`` hold columns ``document, original, counterfactual``, and
    ``account-NNNNN.json`` what was counted in them. Of a large collection they are never in memory
    together. ``collection`` is a folder that holds the counterfactual collection and nothing else,
    as Pyserini indexes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.collection = folder / "collection"
        self.counterfactual = self.collection / "counterfactual.jsonl"
        self.substitution = folder / "substitution.tsv"

    @property
    def finished(self) -> bool:
        """Whether every document is kept."""
        return self.substitution.is_file()

    def documents_kept(self) -> int:
        """Documents that are kept, to a chunk while more are to come."""
        return self.account().get("documents", 0)

    def read(self) -> pd.DataFrame:
        """All texts, in the order of the collection, of one that the memory holds."""
        return pd.concat(self._chunks(), ignore_index=True)

    def _chunks(self) -> Iterator[pd.DataFrame]:
        return map(pd.read_parquet, sorted(self.folder.glob("texts-*.parquet")))

    def make(self, collection: BiasCollection, pairs: GenderPairs, processes: int = 1) -> None:
        """Substitute the documents that are not kept, a chunk at a time; then write the whole.

        ``processes``: chunks that are worked on at once, each with a tagger of its own.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        progress = tqdm(desc=f"substitution, {collection.name}", unit=" documents", mininterval=10)
        with progress:
            chunks = self._unkept(_in_chunks(collection.documents()), progress)
            if processes == 1:
                worker = _Worker(self.folder, pairs)
                for number, chunk in chunks:
                    progress.update(worker.keep(number, chunk))
            else:
                _in_processes(chunks, self.folder, pairs, processes, progress)
        self._write_counterfactual()
        # last, for it says that all the rest is there
        self._write_substitution()

    def _unkept(self, chunks: Iterable[Chunk], progress: Any) -> Iterator[tuple[int, Chunk]]:
        """The chunks that are not kept, with their numbers."""
        for number, chunk in enumerate(chunks):
            if _account_file(self.folder, number).is_file():
                progress.update(len(chunk))
            else:
                yield number, chunk

    def _write_counterfactual(self) -> None:
        """The counterfactual collection in the form that Pyserini indexes."""
        self.collection.mkdir(exist_ok=True)
        with staging(self.counterfactual) as staged:
            with staged.open("w", encoding="utf-8") as file:
                for texts in self._chunks():
                    documents = texts[["document", "counterfactual"]]
                    documents = documents.set_axis(["id", "contents"], axis=1)
                    documents.to_json(file, orient="records", lines=True, force_ascii=False)
            staged.replace(self.counterfactual)

    def _write_substitution(self) -> None:
        """What became of each term in the whole collection, the most frequent terms first."""
        paths = sorted(self.folder.glob("report-*.parquet"))
        reports = pd.concat([pd.read_parquet(path) for path in paths])
        by_outcome = reports.groupby(["term", "counterpart", "outcome"], as_index=False)
        total = (
            by_outcome["occurrences"]
            .sum()
            .sort_values(
                ["outcome", "occurrences", "term", "counterpart"],
                ascending=[False, False, True, True],
            )
        )
        total = total[["term", "counterpart", "outcome", "occurrences"]]
        lines = total.to_csv(sep="\t", index=False, lineterminator="\n")
        write_files({self.substitution: lines})

    def originals(self, documents: Collection[str]) -> dict[str, str]:
        """The original texts of some documents, as far as they are there, by id."""
        texts: dict[str, str] = {}
        of_them = [("document", "in", list(documents))]
        for path in sorted(self.folder.glob("texts-*.parquet")):
            table = pd.read_parquet(path, columns=["document", "original"], filters=of_them)
            texts |= dict(zip(table["document"], table["original"], strict=True))
        return texts

    def account(self) -> dict[str, int]:
        """What the substitution changed so far, and what substituting twice gives back."""
        total: dict[str, int] = {}
        for path in self.folder.glob("account-*.json"):
            for name, number in json.loads(read_text(path)).items():
                total[name] = total.get(name, 0) + number
        return total


# --- chunks ---------------------------------------------------------------------------------------


def _in_chunks(documents: Iterable[tuple[str, str]]) -> Iterator[Chunk]:
    stream = iter(documents)
    chunk = list(islice(stream, CHUNK))
    while chunk:
        yield chunk
        chunk = list(islice(stream, CHUNK))


def _texts_file(folder: Path, number: int) -> Path:
    return folder / f"texts-{number:05d}.parquet"


def _account_file(folder: Path, number: int) -> Path:
    """What was counted in a chunk: the last of its files, which says that the others are there."""
    return folder / f"account-{number:05d}.json"


class _Worker:
    """What substitutes chunks and keeps them in a folder."""

    def __init__(self, folder: Path, pairs: GenderPairs) -> None:
        self.folder = folder
        self.pairs = pairs
        self.watched = read_terms("long")["term"].tolist()
        self.tagger: Tagger = spacy_tagger(asked=pairs.hang_on_grammar)

    def keep(self, number: int, chunk: Chunk) -> int:
        """Substitute a chunk and keep it; returns its documents."""
        once = substitute(chunk, self.pairs, self.tagger, watched=self.watched)
        texts = pd.DataFrame(chunk, columns=["document", "original"])
        texts["counterfactual"] = once.texts["text"].to_numpy()

        # A text that stayed as it is stays so again.
        changed = texts[texts["original"] != texts["counterfactual"]]
        rows = changed[["document", "counterfactual"]].itertuples(index=False, name=None)
        twice = texts["original"].copy()
        twice[changed.index] = substitute(rows, self.pairs, self.tagger).texts["text"].to_numpy()
        words = restored_share(texts["original"], twice)
        account = {
            "documents": len(texts),
            "documents changed": len(changed),
            "tokens": once.tokens,
            "words": int(words["tokens"].sum()),
            "words restored by substituting twice": int(words["restored"].sum()),
            "documents restored by substituting twice": int(
                (words["tokens"] == words["restored"]).sum()
            ),
        }
        path = _texts_file(self.folder, number)
        write_files(
            {
                self.folder / f"report-{path.name}": once.report,
                path: texts,
                # last of the three, since the chunk is kept when it is there
                _account_file(self.folder, number): json.dumps(account),
            }
        )
        return len(chunk)


# --- on several cores -----------------------------------------------------------------------------

_workers: list[_Worker] = []
"""The one of this process, in a process that substitutes chunks."""


def _start_worker(folder: Path, pairs: GenderPairs) -> None:
    _workers.append(_Worker(folder, pairs))


def _keep_in_worker(number: int, chunk: Chunk) -> int:
    return _workers[0].keep(number, chunk)


def _in_processes(
    chunks: Iterable[tuple[int, Chunk]],
    folder: Path,
    pairs: GenderPairs,
    processes: int,
    progress: Any,
) -> None:
    """Substitute chunks in several processes; a few wait for each, so that memory stays flat."""
    # Started afresh: a copy of a process with threads may wait for ever.
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=_start_worker, initargs=(folder, pairs)
    )
    running: deque[Future[int]] = deque()
    with pool:
        for number, chunk in chunks:
            running.append(pool.submit(_keep_in_worker, number, chunk))
            if len(running) > 2 * processes:
                progress.update(running.popleft().result())
        for future in running:
            progress.update(future.result())
