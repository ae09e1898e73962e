"""What claims of chapter 3 rest on: rates, drawn anew, and what the doubt about swapped labels leaves of them.

Of the replica whole dialogues are drawn anew, of the counts behind the printed scores the samples.
The labels of some swapped responses are wrong, and which is known only of those that were read. So
a number of the swapped ones has two more values: the lowest and the highest that it can have among
those whose label is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.satisfaction.accuracy import SCORES, binary_scores
from equipoise_studies.satisfaction.readings import wrong_labels
from equipoise_studies.satisfaction.redrawn import label_rates

_LABELS = ("satisfied", "dissatisfied")
NONE_LEFT = "no estimator of a kind is left to compare: those at chance level, few-shot ones by their labels too, are left out"


class Ends(NamedTuple):
    """A number as found, and the lowest and highest that the doubt about labels allows.

    A row for each draw, the first of them the data, and a column for each collection and run.
    """

    value: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def over(self, other: Ends) -> Ends:
        """Quotient of positive numbers."""
        return Ends(self.value / other.value, self.low / other.high, self.high / other.low)

    def mean(self, runs: Iterable[tuple[str, str]]) -> Ends:
        """Mean over estimators, each a collection and a run."""
        return Ends(*(part[list(runs)].mean(axis=1).to_frame() for part in self))

    def less(self, other: Ends) -> Ends:
        """Difference; the doubt of both adds up."""
        return Ends(self.value - other.value, self.low - other.high, self.high - other.low)

    def evidence(self, said: str, n: int | None = None, printed: float | None = None) -> Evidence:
        """Evidence of a single number, with its 95% interval; ``n`` units, where nothing but the draw is in doubt."""
        value, low, high = (part.squeeze(axis=1) for part in self)
        ends = float(low.iloc[1:].quantile(0.025)), float(high.iloc[1:].quantile(0.975))
        estimate = float(value.iloc[0])
        if np.isnan([*ends, estimate]).any():
            return Evidence(said, reason=NONE_LEFT, printed=printed)
        return Evidence(said, estimate, min(ends[0], estimate), max(ends[1], estimate), n, printed)


def certain(table: pd.DataFrame) -> Ends:
    """A number that no label is in doubt for."""
    return Ends(table, table, table)


@dataclass(frozen=True)
class Rates:
    """How often estimators are right, by collection, run, world and label, drawn anew.

    ``sizes``: samples by collection, world and label. ``turned``: the world of the turned
    responses. ``wrong``: share of its dissatisfied samples, by collection, whose label may be
    wrong. ``units``: how many samples were drawn, or how many dialogues of the estimator that
    labelled the fewest, by collection.
    """

    table: pd.DataFrame
    sizes: Mapping[tuple[str, str, str], float]
    turned: str
    wrong: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)

    def n(self, name: str = "") -> int:
        """Units drawn, of all collections or of one."""
        return int(self.units[name] if name else sum(self.units.values()))

    def of(self, world: str, label: str) -> pd.DataFrame:
        """Share labelled correctly of a world's samples of a label, a column for each collection and run."""
        return self.table.xs((world, label), axis=1, level=("world", "label"))

    def size(self, world: str, label: str) -> pd.Series:
        """Samples of a label, for each column."""
        columns = self.of(world, label).columns
        return pd.Series([self.sizes[name, world, label] for name, _ in columns], columns)

    def doubt(self) -> pd.Series:
        """Share of labels in doubt, for each column."""
        columns = self.of(self.turned, "dissatisfied").columns
        return pd.Series([self.wrong.get(name, 0.0) for name, _ in columns], columns)

    def scores(self, world: str, score: str) -> pd.DataFrame:
        """One of `SCORES` on a world."""
        counts = []
        for label in _LABELS:
            size = np.broadcast_to(self.size(world, label), self.of(world, label).shape)
            counts += [self.of(world, label) * size, size]
        found = binary_scores(*counts)[..., SCORES.index(score)]
        return pd.DataFrame(found, columns=self.of(world, "satisfied").columns)

    def turned_found(self) -> Ends:
        """Share of the turned dissatisfied samples that is found.

        Of a share r found and a share w in doubt: max(0, (r - w) / (1 - w)) to min(1, r / (1 - w)).
        """
        found, wrong = self.of(self.turned, "dissatisfied"), self.doubt()
        return Ends(
            found,
            ((found - wrong) / (1 - wrong)).clip(lower=0),
            (found / (1 - wrong)).clip(upper=1),
        )

    def found(self) -> Ends:
        """Share of all dissatisfied samples, of Main and turned, that is found: the end of Figures 3.4 and 3.5."""
        own, there = self.of("Main", "dissatisfied"), self.size("Main", "dissatisfied")
        turned = self.size(self.turned, "dissatisfied")
        sure = turned * (1 - self.doubt())
        found = self.turned_found()
        ends = zip(found, (turned, sure, sure), strict=True)
        return Ends(*((own * there + rate * size) / (there + size) for rate, size in ends))

    def accuracy(self, *worlds: str) -> pd.DataFrame:
        """Accuracy on all samples of some worlds."""
        sets = [(world, label) for world in worlds for label in _LABELS]
        right, there = self.of(*sets[0]) * 0.0, self.size(*sets[0]) * 0.0
        for world, label in sets:
            right, there = (
                right + self.of(world, label) * self.size(world, label),
                there + self.size(world, label),
            )
        return right / there

    def kept(self) -> Ends:
        """Share of Main's accuracy that is left on dissatisfied samples only."""
        return self.found().over(certain(self.accuracy("Main")))


def replica_rates(
    tested: pd.DataFrame,
    population: pd.DataFrame,
    shares: pd.DataFrame,
    turned: str,
    rng: np.random.Generator,
    resamples: int,
) -> Rates:
    """Rates of the recorded predictions, whole dialogues drawn anew.

    ``population``: of `equipoise_studies.satisfaction.tables.populations`. ``shares``: of
    `equipoise_studies.satisfaction.readings.reading_shares`. ``turned``: the world of the turned
    samples.
    """
    rows = population.melt(["collection", "world"], list(_LABELS)).set_index(
        ["collection", "world", "variable"]
    )
    dialogues = tested.assign(dialogue=tested["sample"].str.partition(":")[0])
    units = (
        dialogues.groupby(["collection", "run"])["dialogue"]
        .nunique()
        .groupby("collection")
        .min()
        .to_dict()
    )
    wrong = wrong_labels(shares, tested[(tested["world"] == turned) & tested["dissatisfied"]])
    return Rates(label_rates(tested, rng, resamples), rows["value"].to_dict(), turned, wrong, units)


def drawn_samples(behind: pd.DataFrame, rng: np.random.Generator, resamples: int) -> Rates:
    """Rates of the counts behind Table 3.6, samples drawn anew as if none had to do with another."""
    rates, sizes = {}, {}
    for row in behind.to_dict("records"):
        for label in _LABELS:
            there, right = row[label], row[f"correct_{label}"]
            drawn = rng.binomial(there, right / there, size=resamples) / there
            run = f"{row['model']}, {row['setup']}"
            rates[row["collection"], run, row["test data"], label] = [right / there, *drawn]
            sizes[row["collection"], row["test data"], label] = there
    units = pd.Series(sizes).groupby(level=0).sum().to_dict()
    table = pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])
    return Rates(table, sizes, "CF", units=units)


def index_ends(counts: pd.DataFrame, wrong: Mapping[str, float]) -> Ends:
    """Jaccard index of shared contexts, of which a share in doubt may be those in the index, or those beside it.

    ``counts``: of `equipoise_studies.satisfaction.redrawn.shared`. ``wrong``: share in doubt, by
    collection.
    """
    meet, join, contexts = (
        counts.xs(kind, axis=1, level="count") for kind in ("meet", "join", "contexts")
    )
    doubtful = contexts * pd.Series(
        [wrong.get(name, 0.0) for name, _ in contexts.columns], contexts.columns
    )
    off_meet, off_rest = np.minimum(doubtful, meet), np.minimum(doubtful, join - meet)
    low, high = (meet - off_meet) / (join - off_meet), meet / (join - off_rest)
    return Ends(meet / join, low.fillna(0.0), high.fillna(1.0))
