"""Claims of chapter 3 recomputed from derived data and published tables, by plain loops."""

import csv
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise_compendium import project
from notebook_evidence import alike, committed_evidence

DATA = project.root() / "data"
RECORDED = DATA / "outputs" / "satisfaction"
COLLECTIONS = ("MultiWOZ", "SGD")
RESAMPLES = 1000
COMMITTED = committed_evidence("thesis_ch3_satisfaction")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def printed(number: str) -> list[dict[str, str]]:
    return rows_of(DATA / "published" / "thesis" / f"table-{number}.csv")


def ends_of(draw: Callable[[random.Random], float]) -> tuple[float, float]:
    """Ends of the percentile interval of what is drawn."""
    rng = random.Random(17)  # noqa: S311
    values = sorted(draw(rng) for _ in range(RESAMPLES))
    return values[round(0.025 * RESAMPLES)], values[round(0.975 * RESAMPLES)]


def majority(ratings: str) -> int:
    """The most frequent rating, of several the lowest."""
    counts = Counter(int(rating) for rating in ratings.split(","))
    return min(rating for rating in counts if counts[rating] == max(counts.values()))


def rated() -> list[dict[str, Any]]:
    return pd.read_parquet(DATA / "facts" / "satisfaction" / "rated_turns.parquet").to_dict(
        "records"
    )


def wilson(count: float, n: float) -> tuple[float, float]:
    z = 1.959963984540054
    middle = (count + z * z / 2) / (n + z * z)
    reach = z / (n + z * z) * math.sqrt(count * (n - count) / n + z * z / 4)
    return middle - reach, middle + reach


def newcombe(count: float, n: float, other_count: float, other_n: float) -> tuple[float, float]:
    """Interval of a difference of shares, by the Wilson intervals of both (Newcombe, 1998)."""
    share, other = count / n, other_count / other_n
    low, high = wilson(count, n)
    other_low, other_high = wilson(other_count, other_n)
    return (
        share - other - math.hypot(share - low, other_high - other),
        share - other + math.hypot(high - share, other - other_low),
    )


@pytest.mark.parametrize("name", COLLECTIONS)
def test_most_labels_are_of_satisfied_users(name: str) -> None:
    labels: dict[str, list[bool]] = defaultdict(list)
    for row in rated():
        if row["collection"] == name:
            labels[row["dialogue"]].append(majority(row["ratings"]) >= 3)
    dialogues = list(labels.values())

    def share(drawn: Sequence[list[bool]]) -> float:
        return sum(map(sum, drawn)) / sum(map(len, drawn))

    evidence = COMMITTED["thesis/3.1-skewed"]
    ends = ends_of(lambda rng: share(rng.choices(dialogues, k=len(dialogues))))
    alike(evidence["public ratings"][name], share(dialogues), ends)

    again = rows_of(DATA / "facts" / "satisfaction" / "relabelled.csv")
    people = [row["human"] != "0" for row in again if row["collection"] == name]
    ends = wilson(sum(people), len(people))
    alike(evidence["relabelled dialogues"][name], sum(people) / len(people), ends)


def binomial(rng: random.Random, n: int, share: float) -> int:
    return sum(rng.random() < share for _ in range(n))


def test_more_dissatisfying_utterances_are_confirmed() -> None:
    sizes = {row["label"]: row for row in printed("3.2")}
    turned = {row["label"]: row for row in printed("3.5")}
    for name in COLLECTIONS:
        counts = []
        for own, other in (
            ("Satisfaction", "Dissatisfaction"),
            ("Dissatisfaction", "Satisfaction"),
        ):
            counts += [int(turned[other][f"{name} CF"]), int(sizes[own][f"{name} Test"])]
        gap = counts[0] / counts[1] - counts[2] / counts[3]
        part = COMMITTED["thesis/3.4-dissatisfying"]["counts of Table 3.5"][name]
        alike(part, gap, newcombe(*counts))


# --- the counts behind Table 3.6 ------------------------------------------------------------------


Key = tuple[str, str, str, str]
"""Collection, test set, model and setup."""
Counts = tuple[int, int, int, int]
"""Satisfied samples that are labelled correctly, all of them, and the same of dissatisfied ones."""


def scores(counts: Counts) -> dict[str, float]:
    right_s, n_s, right_d, n_d = counts
    said_s, said_d = right_s + n_d - right_d, right_d + n_s - right_s
    precision = [right_s / said_s if said_s else 0.0, right_d / said_d if said_d else 0.0]
    recall = [right_s / n_s, right_d / n_d]
    f1 = [2 * right_s / (n_s + said_s), 2 * right_d / (n_d + said_d)]
    return {
        "Acc": 100 * (right_s + right_d) / (n_s + n_d),
        "P": 50 * sum(precision),
        "R": 50 * sum(recall),
        "F1": 50 * sum(f1),
    }


def recovered(row: dict[str, str], name: str, n_s: int, n_d: int) -> Counts:
    """The counts that give the printed scores: accuracy fixes their sum, the rest is tried."""
    best = (math.inf, (0, n_s, 0, n_d))
    for right_d in range(n_d + 1):
        total = round(float(row[f"{name} Acc"]) / 100 * (n_s + n_d))
        counts = (total - right_d, n_s, right_d, n_d)
        if 0 <= counts[0] <= n_s:
            ours = scores(counts)
            gaps = [abs(value - float(row[f"{name} {key}"])) for key, value in ours.items()]
            best = min(best, (max(gaps), counts))
    assert best[0] < 0.0101  # rounded, or cut off
    return best[1]


@pytest.fixture(scope="module")
def behind() -> dict[Key, Counts]:
    sizes = {row["label"]: row for row in printed("3.5")}
    result = {}
    for row in printed("3.6"):
        if row["test data"] == "Mixed":
            continue
        for name in COLLECTIONS:
            column = f"{name} {row['test data']}"
            n_s, n_d = (int(sizes[f"{kind}atisfaction"][column]) for kind in ("S", "Diss"))
            key = name, row["test data"], row["model"], row["setup"]
            result[key] = recovered(row, name, n_s, n_d)
    return result


def drawn_again(rng: random.Random, counts: Counts) -> Counts:
    return (
        about_binomial(rng, counts[0], counts[1]),
        counts[1],
        about_binomial(rng, counts[2], counts[3]),
        counts[3],
    )


def about_binomial(rng: random.Random, right: int, n: int) -> int:
    """A draw of counts; where there are hundreds, a normal one serves, and is quick."""
    if n <= 100:
        return binomial(rng, n, right / n)
    spread = math.sqrt(right * (n - right) / n)
    return min(max(round(rng.gauss(right, spread)), 0), n)


SETUPS = {
    "BERT": ("w/o up-sampling", "up-sampling x10", "up-sampling x20"),
    "ASAP": ("w/o up-sampling", "up-sampling x10", "up-sampling x20"),
    "Zephyr": ("Few-shot",),
    "MistralIF": ("Few-shot",),
}


def drawn(rng: random.Random, behind: dict[Key, Counts]) -> dict[Key, Counts]:
    return {key: drawn_again(rng, counts) for key, counts in behind.items()}


def sensitivity_at_a_tenth(main: Counts, cf: Counts) -> float:
    """As many of CF are added to Main as make its dissatisfied samples a tenth."""
    added = main[1] / 9 - main[3]
    return (main[2] + cf[2] / cf[3] * added) / (main[3] + added)


def test_models_on_main_and_cf(behind: dict[Key, Counts]) -> None:
    """Claims on each model, which is the mean of its setups."""

    def numbers(sets: dict[Key, Counts]) -> dict[tuple[str, str], float]:
        result = {}
        for name in COLLECTIONS:
            accuracy, tenth = {}, {}
            for model, setups in SETUPS.items():
                main = [sets[name, "Main", model, setup] for setup in setups]
                cf = [sets[name, "CF", model, setup] for setup in setups]
                accuracy[model] = statistics.fmean(scores(counts)["Acc"] for counts in main)
                tenth[model] = statistics.fmean(map(sensitivity_at_a_tenth, main, cf))
                if setups == ("Few-shot",):
                    gain = {key: scores(cf[0])[key] - scores(main[0])[key] for key in ("Acc", "R")}
                    result["3.6-within-ten", f"{name}, {model}"] = gain["Acc"]
                    result["3.6-macro-recall", f"{name}, {model}"] = gain["R"]
            lead = accuracy["MistralIF"] - accuracy["Zephyr"]
            result["3.6-zephyr", f"{name}, Zephyr and MistralIF"] = lead
            for prompted in ("Zephyr", "MistralIF"):
                for tuned in ("BERT", "ASAP"):
                    pair = f"{name}, {prompted} and {tuned}"
                    result["3.6-ahead-on-main", pair] = accuracy[tuned] - accuracy[prompted]
                    result["3.5-tenth", pair] = tenth[tuned] - tenth[prompted]
        return result

    rng = random.Random(17)  # noqa: S311
    draws = [numbers(drawn(rng, behind)) for _ in range(RESAMPLES)]
    for (claim, part), estimate in numbers(behind).items():
        values = sorted(draw[claim, part] for draw in draws)
        ends = values[round(0.025 * RESAMPLES)], values[round(0.975 * RESAMPLES)]
        alike(COMMITTED[f"thesis/{claim}"]["counts of Table 3.6"][part], estimate, ends)


def test_jaccard_index_of_zephyr(behind: dict[Key, Counts]) -> None:
    """An index is a share of the contexts that are correct in Main or CF."""
    published = {row["model"]: row for row in printed("3.7")}
    for name in COLLECTIONS:
        shares = []
        for model in ("Zephyr", "MistralIF"):
            main, cf = (behind[name, world, model, "Few-shot"] for world in ("Main", "CF"))
            without_cf = main[1] + main[3] - cf[1] - cf[3]
            fewest = max(cf[0] + cf[2], main[0] + main[2] - without_cf)
            shares.append((float(published[model][name]), fewest))
        variance = sum(share * (1 - share) / n for share, n in shares)
        gap, reach = shares[0][0] - shares[1][0], 1.96 * math.sqrt(variance)
        part = COMMITTED["thesis/3.7-zephyr"]["indices of Table 3.7"][
            f"{name}, Zephyr and MistralIF"
        ]
        alike(part, gap, (gap - reach, gap + reach))


# --- the replica ----------------------------------------------------------------------------------


def test_fine_tuned_estimators_drop() -> None:
    ratings = {}
    for row in rated():
        sample = f"{row['dialogue']}:{row['line']}"
        ratings[row["collection"], sample] = majority(row["ratings"]) < 3

    doubt = {}
    for name in COLLECTIONS:
        flips = [
            row["flips"]
            for row in rows_of(RECORDED / "readings.csv")
            if row["collection"] == name and row["shown"] == "dissatisfied"
        ]
        doubt[name] = wilson(len(flips) - flips.count("yes"), len(flips))[1]

    # By run, and in it by dialogue: world, label, and whether it was said.
    predictions: dict[tuple[str, str], dict[str, list[tuple[str, bool, bool]]]] = {}
    for system in ("encoder", "hawkes"):
        for row in rows_of(RECORDED / f"{system}.csv"):
            run = row["collection"], f"{row['system']}, {row['setup']}"
            if row["world"] == "valid":
                continue
            label = ratings[row["collection"], row["sample"]] != (row["world"] == "swapped")
            said = float(row["dissatisfaction"]) >= 0.5
            dialogue = row["sample"].split(":")[0]
            of_run = predictions.setdefault(run, defaultdict(list))
            of_run[dialogue].append((row["world"], label, said == label))
    assert {name for name, _ in predictions} == set(COLLECTIONS)

    sizes: dict[tuple[str, str], int] = {}
    for (name, _), of_run in predictions.items():
        everything = [sample for samples in of_run.values() for sample in samples]
        for world in ("Main", "swapped"):
            sizes[name, world] = sum(one[0] == world and one[1] for one in everything)
        sizes[name, "satisfied"] = sum(one[0] == "Main" and not one[1] for one in everything)

    def kept(name: str, samples: list[tuple[str, bool, bool]]) -> list[float]:
        """Share of Main's accuracy left: as labelled, and at least and at most."""
        rates = {}
        for world, label in (("Main", False), ("Main", True), ("swapped", True)):
            right = [one[2] for one in samples if one[:2] == (world, label)]
            rates[world, label] = sum(right) / len(right)
        n_main, n_turned, w = sizes[name, "Main"], sizes[name, "swapped"], doubt[name]
        n_satisfied = sizes[name, "satisfied"]
        in_main = rates["Main", True] * n_main
        accuracy = (in_main + rates["Main", False] * n_satisfied) / (n_main + n_satisfied)
        rate = rates["swapped", True]
        found = [(in_main + rate * n_turned) / (n_main + n_turned)]
        for certain in (max(0.0, (rate - w) / (1 - w)), min(1.0, rate / (1 - w))):
            n_certain = n_turned * (1 - w)
            found.append((in_main + certain * n_certain) / (n_main + n_certain))
        return [share / accuracy for share in found]

    def kept_by_part(rng: random.Random | None = None) -> dict[str, list[float]]:
        """Means over the setups of an estimator."""
        drawn: dict[str, list[str]] = {}
        rows = defaultdict(list)
        for (name, run), of_run in sorted(predictions.items()):
            # Every estimator of a collection labels the dialogues that are drawn.
            if name not in drawn:
                dialogues = sorted(of_run)
                drawn[name] = rng.choices(dialogues, k=len(dialogues)) if rng else dialogues
            samples = [sample for dialogue in drawn[name] for sample in of_run[dialogue]]
            rows[f"{name}, {run.partition(', ')[0]}"].append(kept(name, samples))
        return {
            part: [statistics.fmean(column) for column in zip(*setups, strict=True)]
            for part, setups in rows.items()
        }

    rng = random.Random(5)  # noqa: S311
    draws = [kept_by_part(rng) for _ in range(400)]
    for part, (estimate, _, _) in kept_by_part().items():
        low = sorted(draw[part][1] for draw in draws)[10]
        high = sorted(draw[part][2] for draw in draws)[389]
        alike(COMMITTED["thesis/3.4-drop"]["swapped responses"][part], estimate, (low, high))
