"""What claims of chapter 3 rest on: rates, drawn anew, and what doubt about labels leaves of them.

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

LABELS = ("satisfied", "dissatisfied")
NOTHING_TO_COMPARE = (
    "no estimator of a kind is left to compare: those at chance level, few-shot ones by their "
    "labels too, are left out"
)


class Ends(NamedTuple):
    """A number in the data, and the lowest and highest that the doubt about labels allows.

    A row for each draw, the first of them the data, and a column for each collection and run.
    """

    value: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def over(self, divisor: Ends) -> Ends:
        """Quotient of positive numbers."""
        return Ends(self.value / divisor.value, self.low / divisor.high, self.high / divisor.low)

    def mean(self, runs: Iterable[tuple[str, str]]) -> Ends:
        """Mean over estimators, each a collection and a run."""
        columns = list(runs)
        means = [table[columns].mean(axis=1).to_frame() for table in self]
        return Ends(*means)

    def less(self, subtrahend: Ends) -> Ends:
        """Difference; the doubt of both adds up."""
        return Ends(
            self.value - subtrahend.value,
            self.low - subtrahend.high,
            self.high - subtrahend.low,
        )

    def evidence(
        self, statement: str, n: int | None = None, printed: float | None = None
    ) -> Evidence:
        """Evidence of a single number, with its 95% interval.

        ``n``: units, where nothing but the draw is in doubt.
        """
        value, low, high = (table.squeeze(axis=1) for table in self)
        estimate = float(value.iloc[0])
        # Row 0 is the data, the draws come after it.
        lower = float(low.iloc[1:].quantile(0.025))
        upper = float(high.iloc[1:].quantile(0.975))
        if np.isnan([lower, upper, estimate]).any():
            return Evidence(statement, reason=NOTHING_TO_COMPARE, printed=printed)
        lower, upper = min(lower, estimate), max(upper, estimate)
        return Evidence(statement, estimate, lower, upper, n, printed)


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
        if name:
            return int(self.units[name])
        return int(sum(self.units.values()))

    def of(self, world: str, label: str) -> pd.DataFrame:
        """Share labelled correctly of a world's samples of a label, by collection and run."""
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
        # Rates by sizes are expected counts, from which every score follows.
        counts = []
        for label in LABELS:
            rates = self.of(world, label)
            sizes = np.broadcast_to(self.size(world, label), rates.shape)
            counts += [rates * sizes, sizes]
        values = binary_scores(*counts)[..., SCORES.index(score)]
        return pd.DataFrame(values, columns=self.of(world, "satisfied").columns)

    def turned_found(self) -> Ends:
        """Share of the turned dissatisfied samples that is found.

        Of a share r found and a share w in doubt: max(0, (r - w) / (1 - w)) to min(1, r / (1 - w)).
        """
        # At worst all wrong labels are among those found, at best none is.
        rate = self.of(self.turned, "dissatisfied")
        wrong = self.doubt()
        lowest = ((rate - wrong) / (1 - wrong)).clip(lower=0)
        highest = (rate / (1 - wrong)).clip(upper=1)
        return Ends(rate, lowest, highest)

    def found(self) -> Ends:
        """Share found of all dissatisfied samples, turned ones too: the end of Figures 3.4, 3.5."""
        n_main = self.size("Main", "dissatisfied")
        found_in_main = self.of("Main", "dissatisfied") * n_main
        n_turned = self.size(self.turned, "dissatisfied")
        # A wrong label makes a sample one that should not count.
        n_certain = n_turned * (1 - self.doubt())
        shares = []
        for rate, n_samples in zip(
            self.turned_found(), (n_turned, n_certain, n_certain), strict=True
        ):
            shares.append((found_in_main + rate * n_samples) / (n_main + n_samples))
        return Ends(*shares)

    def accuracy(self, *worlds: str) -> pd.DataFrame:
        """Accuracy on all samples of some worlds."""
        n_correct = self.of(worlds[0], LABELS[0]) * 0.0
        n_samples = self.size(worlds[0], LABELS[0]) * 0.0
        for world in worlds:
            for label in LABELS:
                n_correct = n_correct + self.of(world, label) * self.size(world, label)
                n_samples = n_samples + self.size(world, label)
        return n_correct / n_samples

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

    ``population``: samples of each label, columns collection, world, satisfied and dissatisfied.
    ``shares``: as `equipoise_studies.satisfaction.readings.wrong_labels` takes them. ``turned``:
    the world of the turned samples.
    """
    sizes = population.melt(["collection", "world"], list(LABELS))
    sizes = sizes.set_index(["collection", "world", "variable"])["value"].to_dict()
    dialogues = tested.assign(dialogue=tested["sample"].str.partition(":")[0])
    # An estimator may have labelled a part of the dialogues: the fewest decide.
    dialogues_by_run = dialogues.groupby(["collection", "run"])["dialogue"].nunique()
    units = dialogues_by_run.groupby("collection").min().to_dict()
    turned_dissatisfied = tested[(tested["world"] == turned) & tested["dissatisfied"]]
    wrong = wrong_labels(shares, turned_dissatisfied)
    return Rates(label_rates(tested, rng, resamples), sizes, turned, wrong, units)


def drawn_samples(behind: pd.DataFrame, rng: np.random.Generator, resamples: int) -> Rates:
    """Rates of the counts behind Table 3.6, samples drawn anew as if independent."""
    rates, sizes = {}, {}
    for row in behind.to_dict("records"):
        run = f"{row['model']}, {row['setup']}"
        for label in LABELS:
            n_samples, n_correct = row[label], row[f"correct_{label}"]
            rate = n_correct / n_samples
            draws = rng.binomial(n_samples, rate, size=resamples) / n_samples
            rates[row["collection"], run, row["test data"], label] = [rate, *draws]
            sizes[row["collection"], row["test data"], label] = n_samples
    units = pd.Series(sizes).groupby(level=0).sum().to_dict()
    table = pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])
    return Rates(table, sizes, "CF", units=units)


def index_ends(counts: pd.DataFrame, wrong: Mapping[str, float]) -> Ends:
    """Jaccard index of shared contexts, of which those in doubt may be in the index, or beside it.

    ``counts``: of `equipoise_studies.satisfaction.redrawn.shared`. ``wrong``: share in doubt, by
    collection.
    """
    meet, join, contexts = (
        counts.xs(count, axis=1, level="count") for count in ("meet", "join", "contexts")
    )
    doubts = [wrong.get(name, 0.0) for name, _ in contexts.columns]
    n_doubtful = contexts * pd.Series(doubts, contexts.columns)
    # At worst the doubtful ones are among those that meet, at best among the rest of the join.
    from_meet = np.minimum(n_doubtful, meet)
    from_rest = np.minimum(n_doubtful, join - meet)
    low = (meet - from_meet) / (join - from_meet)
    high = meet / (join - from_rest)
    return Ends(meet / join, low.fillna(0.0), high.fillna(1.0))
