"""Evidence on the claims of chapter 3: rates over bootstrap samples, and doubt about labels.

Each table of rates has one column per collection and run, and one row per bootstrap sample. Row 0
is the data. Whole dialogues of the replica are resampled, and single samples of the counts of the
published scores. Some labels of swapped responses are wrong, and it is not known which. So a number
that depends on them has a lowest and a highest value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_compendium.protocol import Evidence
from equipoise_studies.satisfaction.scoring import SCORES, binary_scores

LABELS = ("satisfied", "dissatisfied")
FEW_SHOT, FINE_TUNED = "few-shot", "fine-tuned"


# --- kinds of estimators --------------------------------------------------------------------------


def kind_of(run: str) -> str:
    """Return the kind of an estimator from the name of its run."""
    return FEW_SHOT if FEW_SHOT in run.lower() else FINE_TUNED


def by_system(table: pd.DataFrame) -> pd.DataFrame:
    """Average over the setups of each estimator: columns are collection, kind and system."""
    systems = [(name, kind_of(run), run.partition(", ")[0]) for name, run in table]
    levels = ["collection", "kind", "system"]
    table = table.set_axis(pd.MultiIndex.from_tuples(systems, names=levels), axis=1)
    return table.T.groupby(level=levels, sort=False).mean().T


def of_kind(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Select the estimators of a kind, each the mean of its setups."""
    return by_system(table).xs(kind, axis=1, level="kind", drop_level=False)


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Average over the estimators of a kind, each the mean of its setups, and over collections."""
    return by_system(table).T.groupby(level="kind", sort=False).mean().T


# --- bootstrap samples ----------------------------------------------------------------------------


def _drawn_collections(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> Iterator[tuple[str, pd.DataFrame, Floats]]:
    """Yield each collection, its predictions with the dialogue's number, and the draws.

    The draws, shaped (resamples + 1, dialogues), count how often each dialogue is drawn. All rates
    are computed from the same draws at once, so differences and products of them can be resampled.
    """
    for name, predictions in tested.groupby("collection", sort=True):
        place, dialogues = pd.factorize(predictions["sample"].str.partition(":")[0], sort=True)
        n_dialogues = len(dialogues)
        equal_shares = np.full(n_dialogues, 1 / n_dialogues)
        times = rng.multinomial(n_dialogues, equal_shares, size=resamples)
        yield str(name), predictions.assign(place=place), np.vstack([np.ones(n_dialogues), times])


def _sums(place: pd.Series, values: Floats, draws: Floats) -> Floats:
    """Sum values over the dialogues of each draw."""
    return draws @ np.bincount(place, weights=values, minlength=draws.shape[1])


def label_rates(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Compute the share labelled correctly, by collection, run, world and label."""
    rates = {}
    for name, predictions, draws in _drawn_collections(tested, rng, resamples):
        groups = predictions.groupby(["run", "world", "dissatisfied"])
        for (run, world, dissatisfied), samples in groups:
            correct = (samples["predicted"] == samples["dissatisfied"]).to_numpy(dtype=np.float64)
            n_correct = _sums(samples["place"], correct, draws)
            n_samples = _sums(samples["place"], np.ones(len(samples)), draws)
            # A draw may contain no sample of a label.
            with np.errstate(invalid="ignore"):
                rates[name, run, world, LABELS[int(dissatisfied)]] = n_correct / n_samples
    return pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])


def areas(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Compute the area under the receiver operating characteristic, by collection, run and world.

    That is the share of pairs of a dissatisfied and a satisfied sample whose scores are in order.
    """
    area_draws = {}
    for name, predictions, draws in _drawn_collections(tested, rng, resamples):
        # One row per dialogue, with a 1 at its place.
        dialogues = np.eye(draws.shape[1])
        for (run, world), samples in predictions.groupby(["run", "world"]):
            high, low = samples[samples["dissatisfied"]], samples[~samples["dissatisfied"]]
            gaps = np.subtract.outer(
                high["dissatisfaction"].to_numpy(), low["dissatisfaction"].to_numpy()
            )
            in_order = (np.sign(gaps) + 1) / 2  # a tie counts half
            # Summed over the samples of two dialogues, shape (dialogues, dialogues).
            in_order = dialogues[high["place"]].T @ in_order @ dialogues[low["place"]]
            n_high = _sums(high["place"], np.ones(len(high)), draws)
            n_low = _sums(low["place"], np.ones(len(low)), draws)
            with np.errstate(invalid="ignore"):
                pairs_in_order = np.einsum("bi,ij,bj->b", draws, in_order, draws)
                area_draws[name, run, world] = pairs_in_order / (n_high * n_low)
    return pd.DataFrame(area_draws).rename_axis(columns=["collection", "run", "world"])


def jaccard_indices(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Compute the Jaccard index of shared contexts, by collection and run (thesis Table 3.7).

    A context is shared if it has its own response in Main and another one in the other test set.
    """
    tested = tested.assign(correct=tested["predicted"] == tested["dissatisfied"])
    indices = {}
    for name, predictions, draws in _drawn_collections(tested, rng, resamples):
        for run, samples in predictions.groupby("run"):
            correct = samples.pivot_table(
                index=["sample", "place"], columns="world", values="correct"
            )
            correct = correct.dropna().astype(bool).reset_index("place")
            worlds = correct.drop(columns="place").to_numpy()
            both = _sums(correct["place"], worlds.all(axis=1).astype(np.float64), draws)
            either = _sums(correct["place"], worlds.any(axis=1).astype(np.float64), draws)
            with np.errstate(invalid="ignore"):
                indices[name, run] = both / either
    return pd.DataFrame(indices).rename_axis(columns=["collection", "run"])


def accuracy_at(rates: pd.DataFrame, world: str, share: float) -> pd.DataFrame:
    """Compute the accuracy where a share of the samples is dissatisfied, by collection and run.

    ``rates`` is the table of `label_rates`. At one half it is the macro recall.
    """
    satisfied, dissatisfied = (
        rates.xs((world, label), axis=1, level=("world", "label")) for label in LABELS
    )
    return (1 - share) * satisfied + share * dissatisfied


# --- doubt about labels ---------------------------------------------------------------------------


class Ends(NamedTuple):
    """A number over bootstrap samples, and the extremes that doubt about labels allows.

    Each is a table with one column per collection and run.
    """

    value: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def of_kind(self, kind: str) -> Ends:
        """Select the estimators of a kind, each the mean of its setups."""
        return Ends(*(of_kind(table, kind) for table in self))

    def by_kind(self) -> Ends:
        """Average over the estimators of a kind and over collections."""
        return Ends(*map(by_kind, self))

    def leads(self) -> Ends:
        """Subtract each fine-tuned estimator from each few-shot one, and add up their doubt."""
        few_shot, fine_tuned = self.of_kind(FEW_SHOT), self.of_kind(FINE_TUNED)
        pairs = {}
        for one, other in product(few_shot.value, fine_tuned.value):
            if one[0] == other[0]:
                pairs[one[0], f"{one[2]} and {other[2]}"] = one, other
        return few_shot.minus(fine_tuned, pairs)

    def over(self, baseline: str, setups: Collection[str]) -> Ends:
        """Subtract a setup of each estimator from other setups of it, and add up their doubt."""
        pairs = {}
        for name, run in self.value:
            system, _, setup = run.partition(", ")
            if setup in setups:
                pairs[name, run] = (name, run), (name, f"{system}, {baseline}")
        return self.minus(self, pairs)

    def minus(self, other: Ends, pairs: Mapping[Any, tuple[Any, Any]]) -> Ends:
        """Subtract columns of another table from columns of this one; ``pairs``: by new name."""
        ends = []
        for ours, theirs in ((self[0], other[0]), (self[1], other[2]), (self[2], other[1])):
            gaps = {name: ours[one] - theirs[another] for name, (one, another) in pairs.items()}
            ends.append(pd.DataFrame(gaps))
        return Ends(*ends)

    def interval(self) -> pd.DataFrame:
        """Return the values in the data and the ends of their 95% intervals, one row per column."""
        value = self.value.iloc[0]
        low, high = self.low.iloc[1:].quantile(0.025), self.high.iloc[1:].quantile(0.975)
        ends = {"value": value, "low": np.minimum(low, value), "high": np.maximum(high, value)}
        return pd.DataFrame(ends)

    def evidence(self, sizes: Mapping[str, int] | None = None) -> dict[str, Evidence]:
        """Return the evidence of a claim, one part per column; ``sizes`` are by collection."""
        parts = {}
        for column, row in self.interval().iterrows():
            name, part = column[0], column[-1]
            n = sizes[name] if sizes else None
            parts[f"{name}, {part}"] = Evidence(row["value"], row["low"], row["high"], n)
        return parts


def certain(table: pd.DataFrame) -> Ends:
    """Return numbers that depend on no doubtful label."""
    return Ends(table, table, table)


def wrong_labels(shares: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """Return the largest share of wrong labels of swapped samples, by collection.

    ``shares`` has the columns collection, shown and at_most; ``other`` has collection and
    dissatisfied, one row per sample.
    """
    if shares.empty:
        return {}
    labels = np.where(other["dissatisfied"], "dissatisfied", "satisfied")
    doubt = other[["collection"]].assign(shown=labels).merge(shares, how="left")
    return dict(doubt.groupby("collection")["at_most"].mean())


@dataclass(frozen=True)
class Rates:
    """Shares of correct labels, by collection, run, world and label.

    ``sizes`` has the samples by collection, world and label. ``other`` names the test set with
    other last responses, and ``wrong`` is the share of its dissatisfied labels in doubt.
    """

    table: pd.DataFrame
    sizes: Mapping[tuple[str, str, str], float]
    other: str
    wrong: Mapping[str, float] = field(default_factory=dict)

    def correct(self, world: str, label: str) -> pd.DataFrame:
        """Return the share labelled correctly, by collection and run."""
        return self.table.xs((world, label), axis=1, level=("world", "label"))

    def size(self, world: str, label: str) -> pd.Series:
        """Return the number of samples, by collection and run."""
        columns = self.correct(world, label).columns
        return pd.Series([self.sizes[name, world, label] for name, _ in columns], columns)

    def scores(self, world: str, score: str) -> pd.DataFrame:
        """Compute one of `SCORES` on a test set."""
        counts = []
        for label in LABELS:
            rates = self.correct(world, label)
            sizes = np.broadcast_to(self.size(world, label), rates.shape)
            counts += [rates * sizes, sizes]  # expected counts
        values = binary_scores(*counts)[..., SCORES.index(score)]
        return pd.DataFrame(values, columns=self.correct(world, "satisfied").columns)

    def accuracy(self, *worlds: str) -> pd.DataFrame:
        """Compute the accuracy on the samples of several test sets together."""
        n_correct = self.correct(worlds[0], LABELS[0]) * 0.0
        n_samples = self.size(worlds[0], LABELS[0]) * 0.0
        for world in worlds:
            for label in LABELS:
                n_correct = n_correct + self.correct(world, label) * self.size(world, label)
                n_samples = n_samples + self.size(world, label)
        return n_correct / n_samples

    def found(self) -> Ends:
        """Compute the share of all dissatisfied samples that is found (end of Figure 3.5)."""
        rate = self.correct(self.other, "dissatisfied")
        wrong = pd.Series([self.wrong.get(name, 0.0) for name, _ in rate.columns], rate.columns)
        # At worst all wrong labels are among the samples found, at best none is.
        lowest = ((rate - wrong) / (1 - wrong)).clip(lower=0)
        highest = (rate / (1 - wrong)).clip(upper=1)
        n_main = self.size("Main", "dissatisfied")
        found_in_main = self.correct("Main", "dissatisfied") * n_main
        n_other = self.size(self.other, "dissatisfied")
        n_certain = n_other * (1 - wrong)  # a sample with a wrong label does not count
        shares = []
        for rates, sizes in ((rate, n_other), (lowest, n_certain), (highest, n_certain)):
            shares.append((found_in_main + rates * sizes) / (n_main + sizes))
        return Ends(*shares)

    def kept(self) -> Ends:
        """Divide the accuracy on dissatisfied samples only by the accuracy on Main."""
        return Ends(*(found / self.accuracy("Main") for found in self.found()))


def replica_rates(
    tested: pd.DataFrame,
    population: pd.DataFrame,
    shares: pd.DataFrame,
    other: str,
    rng: np.random.Generator,
    resamples: int,
) -> Rates:
    """Compute the rates of recorded predictions; whole dialogues are resampled.

    ``population`` has the samples of each label: collection, world, satisfied and dissatisfied.
    ``shares`` is as in `wrong_labels`, ``other`` the name of the other test set.
    """
    sizes = population.melt(["collection", "world"], list(LABELS))
    sizes = sizes.set_index(["collection", "world", "variable"])["value"].to_dict()
    dissatisfied = tested[(tested["world"] == other) & tested["dissatisfied"]]
    wrong = wrong_labels(shares, dissatisfied)
    return Rates(label_rates(tested, rng, resamples), sizes, other, wrong)


def published_rates(counts: pd.DataFrame, rng: np.random.Generator, resamples: int) -> Rates:
    """Compute the rates of the counts of Table 3.6; samples are resampled as if independent."""
    rates, sizes = {}, {}
    for row in counts.to_dict("records"):
        run = f"{row['model']}, {row['setup']}"
        for label in LABELS:
            n_samples, n_correct = row[label], row[f"correct_{label}"]
            rate = n_correct / n_samples
            draws = rng.binomial(n_samples, rate, size=resamples) / n_samples
            rates[row["collection"], run, row["test data"], label] = [rate, *draws]
            sizes[row["collection"], row["test data"], label] = n_samples
    table = pd.DataFrame(rates).rename_axis(columns=["collection", "run", "world", "label"])
    return Rates(table, sizes, "CF")
