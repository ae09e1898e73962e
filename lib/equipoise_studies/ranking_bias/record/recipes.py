"""How run files are made elsewhere: recipes of a config, with what stands in their braces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from equipoise_studies.ranking_bias.data import WORLDS
from equipoise_studies.ranking_bias.study import Ranker, Study

PLACES: Mapping[str, str] = {
    "world": "original or counterfactual",
    "queries": "QS1 or QS2",
    "topics": "queries, an id, a tab and a text on each line, as the study writes them",
    "documents": "the collection of this world",
    "index": "the ready index, or the one that is made of the counterfactual collection",
    "candidates": "the run file of the baseline in this world",
    "run": "the run file that is wanted",
}
"""What may stand in braces in a recipe."""


@dataclass(frozen=True)
class Places:
    """Where the files of a query set lie.

    ``topics``: its queries. ``collection``: folder of the counterfactual collection. ``documents``:
    the original ones, in words or as a file.
    """

    study: Study
    label: str
    topics: Path
    collection: Path
    documents: str

    def run_file(self, ranker: Ranker, world: str) -> Path:
        """The run file of a ranker in a world."""
        return Path(_filled(str(ranker.runs), {"world": world, "queries": self.label}))

    def recipe(self, ranker: Ranker, world: str) -> str:
        """How to make a run file; empty where the config does not say."""
        if not ranker.recipe:
            return ""
        baseline = self.study.rankers[self.study.baseline]
        original = world == WORLDS[0]
        index = self.collection.with_name("index")
        values = {
            "world": world,
            "queries": self.label,
            "topics": str(self.topics),
            "documents": self.documents if original else str(self.collection),
            "index": ranker.index if original else str(index),
            "candidates": str(self.run_file(baseline, world)),
            "run": str(self.run_file(ranker, world)),
        }
        steps = [_filled(ranker.recipe, values)]
        if not original and "{index}" in ranker.recipe and self.study.index_recipe:
            places = {"documents": str(self.collection), "index": str(index)}
            steps.insert(0, _filled(self.study.index_recipe, places))
        return ", then ".join(steps)


def _filled(text: str, places: Mapping[str, str]) -> str:
    """A text with its names in braces filled in; other braces stay, as a recipe may have some."""
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text
