"""Numbers that claims of chapter 3 rest on: rates over bootstrap samples, and doubt about labels.

Every table of rates has one column per collection and run, and one row per bootstrap sample; row 0
is the data. Whole dialogues of the replica are resampled, and single samples of the counts of the
published scores. The labels of some swapped responses are wrong, and nobody knows which: a number
that rests on them has a lowest and a highest value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_compendium.claims import Evidence
from equipoise_studies.satisfaction.scoring import SCORES, binary_scores

Run = tuple[str, str]
"""A collection and an estimator in one of its setups."""

LABELS = ("satisfied", "dissatisfied")
NOTHING_TO_COMPARE = (
    "no estimator of a kind is left to compare: those at chance level, few-shot ones by their "
    "labels too, are left out"
)


# --- kinds of estimators --------------------------------------------------------------------------


def few_shot(runs: Iterable[Run], name: str = "") -> list[Run]:
    """Select the few-shot estimators, of all collections or of one."""
    return [run for run in runs if "few-shot" in run[1].lower() and name in ("", run[0])]


def fine_tuned(runs: Iterable[Run], name: str = "", left_out: Collection[Run] = ()) -> list[Run]:
    """Select the trained estimators that are not left out, of all collections or of one."""
    selected = []
    for run in runs:
        is_trained = run[1] != "constant" and "few-shot" not in run[1].lower()
        if is_trained and name in ("", run[0]) and run not in left_out:
            selected.append(run)
    return selected


def by_collection(runs: Iterable[Run]) -> str:
    """List estimators in words, by collection."""
    table = pd.DataFrame(sorted(runs), columns=["collection", "run"])
    names = table["run"].str.replace(", up-sampling", "")
    names = names.str.replace(", w/o up-sampling", " without up-sampling")
    phrases = []
    for collection, collection_names in names.groupby(table["collection"]):
        phrases.append(f"{collection}: {', '.join(collection_names)}")
    return "; ".join(phrases)


# --- bootstrap samples ----------------------------------------------------------------------------


def _drawn_collections(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> Iterator[tuple[str, pd.DataFrame, Floats]]:
    """Yield each collection, its predictions with the dialogue's number, and the draws.

    The draws, shaped (resamples + 1, dialogues), count how often each dialogue is drawn.
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


def interval(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the value in the data and the 95% bootstrap interval, one row per column."""
    ends = draws.iloc[1:].quantile([0.025, 0.975])
    return pd.DataFrame({"value": draws.iloc[0], "low": ends.iloc[0], "high": ends.iloc[1]})


def at_chance(area_draws: pd.DataFrame) -> set[Run]:
    """Select the estimators whose area on Main may be 1/2: chance."""
    main = interval(area_draws.xs("Main", axis=1, level="world"))
    return set(main.index[main["low"] <= 0.5])


def labels_at_chance(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> set[Run]:
    """Select the few-shot estimators whose labels may be chance: Youden's J on Main may be 0.

    J, sensitivity plus specificity minus 1, is 0 where every sample gets the same label.
    """
    is_few_shot = tested["run"].str.lower().str.contains("few-shot")
    predictions = tested[is_few_shot & (tested["world"] == "Main")]
    if predictions.empty:
        return set()
    rates = label_rates(predictions, rng, resamples)
    # With one label only there is no J.
    sums = rates.T.groupby(level=["collection", "run"]).sum(min_count=2).T
    youden = interval(sums - 1)
    return set(youden.index[~(youden["low"] > 0)])


# --- doubt about labels ---------------------------------------------------------------------------


class Ends(NamedTuple):
    """A number over bootstrap samples, and the lowest and highest that doubt about labels allows.

    Each is a table with one column per collection and run.
    """

    value: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def mean(self, runs: Iterable[Run]) -> Ends:
        """Average over estimators."""
        columns = list(runs)
        return Ends(*(table[columns].mean(axis=1).to_frame() for table in self))

    def minus(self, other: Ends) -> Ends:
        """Subtract; the doubt of both adds up."""
        value = self.value - other.value
        return Ends(value, self.low - other.high, self.high - other.low)

    def lead(self, name: str, left_out: Collection[Run] = ()) -> Ends:
        """Compute the mean of the few-shot estimators minus that of the trained ones."""
        runs = self.value.columns
        trained = self.mean(fine_tuned(runs, name, left_out))
        return self.mean(few_shot(runs, name)).minus(trained)

    def interval(self) -> tuple[float, float, float]:
        """Return a single number and the ends of its 95% interval, NaN where there is none."""
        value, low, high = (table.squeeze(axis=1) for table in self)
        estimate = float(value.iloc[0])
        ends = float(low.iloc[1:].quantile(0.025)), float(high.iloc[1:].quantile(0.975))
        return estimate, float(np.minimum(ends[0], estimate)), float(np.maximum(ends[1], estimate))

    def percent(self) -> str:
        """Write a single share in percent with its interval."""
        value, low, high = self.interval()
        return f"{value:.0%} [{100 * low:.0f}, {100 * high:.0f}]"

    def evidence(self, said: str, n: int | None = None, published: float | None = None) -> Evidence:
        """Return a single number as the evidence of a claim."""
        numbers = self.interval()
        if np.isnan(numbers).any():
            return Evidence(said, reason=NOTHING_TO_COMPARE, printed=published)
        return Evidence(said, *numbers, n, published)


def certain(table: pd.DataFrame | pd.Series) -> Ends:
    """Return a number that rests on no doubtful label."""
    frame = pd.DataFrame(table)
    return Ends(frame, frame, frame)


def wrong_labels(shares: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """Return the highest share of labels of swapped samples that may be wrong, by collection.

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
    """How often estimators are right, by collection, run, world and label.

    ``sizes`` has the samples by collection, world and label; ``other`` is the name of the test set
    with other last responses, and ``wrong`` the share of its dissatisfied labels in doubt.
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
        """Compute the share found of all dissatisfied samples: the ends of Figures 3.4 and 3.5."""
        rate = self.correct(self.other, "dissatisfied")
        wrong = pd.Series([self.wrong.get(name, 0.0) for name, _ in rate.columns], rate.columns)
        # At worst all wrong labels are among those found, at best none is.
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
        """Compute the share of Main's accuracy that is left on dissatisfied samples only."""
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
