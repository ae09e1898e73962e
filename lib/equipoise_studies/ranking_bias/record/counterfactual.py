"""The counterfactual of a collection, kept in a folder, some thousand documents in each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from equipoise_compendium.writing import staging, write_files
from equipoise_studies.ranking_bias.data import read_terms
from equipoise_studies.ranking_bias.substitution import (
    GenderPairs,
    restored_share,
    spacy_tagger,
    substitute,
)
from equipoise_studies.ranking_bias.upstream import BiasCollection

CHUNK = 10_000
"""Documents that are substituted between two times that something is kept."""


class CounterfactualTexts:
    """Texts of documents in both worlds, in a folder.

    Files ``texts-NNNNN.parquet`` hold columns ``document, original, counterfactual, twice,
    tokens``; ``twice`` is the counterfactual of the counterfactual.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counterfactual = folder / "counterfactual.jsonl"
        self.substitution = folder / "substitution.tsv"

    @property
    def finished(self) -> bool:
        """Whether every document is kept."""
        return self.substitution.is_file()

    def documents_kept(self) -> int:
        """Documents that are kept, to a chunk while more are to come."""
        if self.finished:
            return len(self.read())
        return CHUNK * len(list(self.folder.glob("texts-*.parquet")))

    def read(self) -> pd.DataFrame:
        """All texts, in the order of the collection."""
        return pd.concat(self._chunks(), ignore_index=True)

    def _chunks(self) -> Iterator[pd.DataFrame]:
        return map(pd.read_parquet, sorted(self.folder.glob("texts-*.parquet")))

    def make(self, collection: BiasCollection, pairs: GenderPairs) -> None:
        """Substitute the documents that are not kept, a chunk at a time; then write the whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tagger = spacy_tagger()
        watched = read_terms("long")["term"].tolist()
        progress = f"substitution, {collection.name}"
        documents = tqdm(collection.documents(), desc=progress, mininterval=10)
        for number, chunk in enumerate(_in_chunks(documents)):
            path = self.folder / f"texts-{number:05d}.parquet"
            if path.is_file():
                continue
            once = substitute(chunk, pairs, tagger, watched=watched)
            twice = substitute(once.texts.itertuples(index=False, name=None), pairs, tagger)
            texts = pd.DataFrame(chunk, columns=["document", "original"])
            texts["counterfactual"] = once.texts["text"].to_numpy()
            texts["twice"] = twice.texts["text"].to_numpy()
            # the tagger counts tokens over a chunk; they stand in its first row
            texts["tokens"] = 0
            texts.loc[0, "tokens"] = once.tokens
            write_files({self.folder / f"report-{path.name}": once.report, path: texts})
        self._write_counterfactual()
        # last, for it says that all the rest is there
        self._write_substitution()

    def _write_counterfactual(self) -> None:
        """The counterfactual collection in the form that Pyserini indexes."""
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

    def account(self) -> dict[str, int]:
        """What the substitution changed, and what substituting twice gives back."""
        texts = self.read()
        words = restored_share(texts["original"], texts["twice"])
        return {
            "documents": len(texts),
            "documents changed": int((texts["original"] != texts["counterfactual"]).sum()),
            "tokens": int(texts["tokens"].sum()),
            "words": int(words["tokens"].sum()),
            "words restored by substituting twice": int(words["restored"].sum()),
            "documents restored by substituting twice": int(
                (words["tokens"] == words["restored"]).sum()
            ),
        }


def _in_chunks(documents: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    stream = iter(documents)
    chunk = list(islice(stream, CHUNK))
    while chunk:
        yield chunk
        chunk = list(islice(stream, CHUNK))
