"""Claims of chapter 3 recomputed from derived data and published tables, by plain loops."""

import csv
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise_compendium import project
from equipoise_compendium.claims import Evidence
from notebook_evidence import alike, committed_evidence, evidence_of

DATA = project.root() / "data"
RECORDED = DATA / "outputs" / "satisfaction"
COLLECTIONS = ("MultiWOZ", "SGD")
RESAMPLES = 1000


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Evidence], Any]:
    """What the notebook brings, and the estimators that it leaves out as at chance level."""
    name = "thesis_ch3_satisfaction"
    _, names = evidence_of(name, tmp_path_factory.mktemp("report"), until="left_out =")
    return committed_evidence(name), names["left_out"]


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


def test_most_labels_are_of_satisfied_users(notebook: tuple[dict[str, Evidence], Any]) -> None:
    labels: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rated():
        labels[row["collection"], row["dialogue"]].append(majority(row["ratings"]) >= 3)
    dialogues = list(labels.values())

    def share(drawn: Sequence[list[bool]]) -> float:
        return sum(map(sum, drawn)) / sum(map(len, drawn))

    ends = ends_of(lambda rng: share(rng.choices(dialogues, k=len(dialogues))))
    alike(notebook[0]["thesis/3.1-skewed"], share(dialogues), ends)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    n = len(pairs)
    same = sum(first == second for first, second in pairs) / n
    shares = [sum(pair[place] for pair in pairs) / n for place in (0, 1)]
    chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    return (same - chance) / (1 - chance)


def test_a_model_agrees_less_with_people(notebook: tuple[dict[str, Evidence], Any]) -> None:
    pairs: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for row in rows_of(DATA / "facts" / "satisfaction" / "relabelled.csv"):
        pairs[row["collection"]].append((row["human"] == "0", row["model"] == "0"))
    of_two = next(row for row in printed("3.3") if row["judgement"].startswith("Satisfaction"))
    annotated = {}
    sizes = {row["label"]: row for row in printed("3.2")}
    turned = {row["label"]: row for row in printed("3.5")}
    for name in COLLECTIONS:
        n = int(sizes["Total"][f"{name} Test"])
        n_kept = int(sizes["Dissatisfaction"][f"{name} Test"]) - int(
            turned["Satisfaction"][f"{name} CF"]
        )
        share = (int(turned["Dissatisfaction"][f"{name} CF"]) + n_kept) / n
        annotated[name] = n, share

    def annotators(rng: random.Random, name: str) -> float:
        """A kappa that two annotators of the printed agreement could have had."""
        n, share = annotated[name]
        agreement = float(of_two[name])
        drawn = []
        for _ in range(n):
            first = rng.random() < share
            # They agree by nature with probability kappa, else by chance.
            second = first if rng.random() < agreement else rng.random() < share
            drawn.append((first, second))
        return kappa(drawn)

    def gap(rng: random.Random) -> float:
        gaps = []
        for name in COLLECTIONS:
            drawn = rng.choices(pairs[name], k=len(pairs[name]))
            gaps.append(kappa(drawn) - annotators(rng, name))
        return sum(gaps) / 2

    estimate = sum(kappa(pairs[name]) - float(of_two[name]) for name in COLLECTIONS) / 2
    alike(notebook[0]["thesis/3.3-model-less"], estimate, ends_of(gap))


def binomial(rng: random.Random, n: int, share: float) -> int:
    return sum(rng.random() < share for _ in range(n))


def test_more_dissatisfying_utterances_are_confirmed(
    notebook: tuple[dict[str, Evidence], Any],
) -> None:
    sizes = {row["label"]: row for row in printed("3.2")}
    turned = {row["label"]: row for row in printed("3.5")}
    parts = []
    for name in COLLECTIONS:
        for own, other, sign in (
            ("Satisfaction", "Dissatisfaction", 1),
            ("Dissatisfaction", "Satisfaction", -1),
        ):
            n = int(sizes[own][f"{name} Test"])
            parts.append((n, int(turned[other][f"{name} CF"]) / n, sign))
    estimate = sum(sign * share for _, share, sign in parts) / 2

    def gap(rng: random.Random) -> float:
        return sum(sign * binomial(rng, n, share) / n for n, share, sign in parts) / 2

    alike(notebook[0]["thesis/3.4-dissatisfying"], estimate, ends_of(gap))


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


def test_models_on_main_and_cf(
    notebook: tuple[dict[str, Evidence], Any], behind: dict[Key, Counts]
) -> None:
    prompted = ("Zephyr", "MistralIF")

    def changes(sets: dict[Key, Counts], score: str) -> float:
        gaps = []
        for name in COLLECTIONS:
            for model in prompted:
                on_cf = scores(sets[name, "CF", model, "Few-shot"])[score]
                gaps.append(on_cf - scores(sets[name, "Main", model, "Few-shot"])[score])
        return sum(gaps) / 4

    def least_lead(sets: dict[Key, Counts]) -> float:
        leads = []
        for name in COLLECTIONS:
            f1 = {key[2:]: scores(sets[key])["F1"] for key in sets if key[:2] == (name, "Main")}
            best = max(f1[model, "Few-shot"] for model in prompted)
            leads += [f1[run] - best for run in f1 if run[0] not in prompted]
        return min(leads) / 100

    def drawn(rng: random.Random) -> dict[Key, Counts]:
        return {key: drawn_again(rng, counts) for key, counts in behind.items()}

    alike(
        notebook[0]["thesis/3.6-comparable"],
        changes(behind, "Acc"),
        ends_of(lambda rng: changes(drawn(rng), "Acc")),
    )
    alike(
        notebook[0]["thesis/3.6-macro-recall"],
        changes(behind, "R"),
        ends_of(lambda rng: changes(drawn(rng), "R")),
    )
    alike(
        notebook[0]["thesis/3.6-ahead-on-main"],
        least_lead(behind),
        ends_of(lambda rng: least_lead(drawn(rng))),
    )


# --- the replica ----------------------------------------------------------------------------------


def wilson_upper(count: int, n: int) -> float:
    z = 1.959963984540054
    middle = (count + z * z / 2) / (n + z * z)
    reach = z / (n + z * z) * math.sqrt(count * (n - count) / n + z * z / 4)
    return middle + reach


def test_fine_tuned_estimators_drop(notebook: tuple[dict[str, Evidence], Any]) -> None:
    evidence, left_out = notebook
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
        doubt[name] = wilson_upper(len(flips) - flips.count("yes"), len(flips))

    # By run, and in it by dialogue: world, label, and whether it was said.
    predictions: dict[tuple[str, str], dict[str, list[tuple[str, bool, bool]]]] = {}
    for system in ("encoder", "hawkes"):
        for row in rows_of(RECORDED / f"{system}.csv"):
            run = row["collection"], f"{row['system']}, {row['setup']}"
            if row["world"] == "valid" or run in left_out:
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

    def mean_kept(rng: random.Random | None = None) -> list[float]:
        drawn: dict[str, list[str]] = {}
        rows = []
        for (name, _), of_run in sorted(predictions.items()):
            # Every estimator of a collection labels the dialogues that are drawn.
            if name not in drawn:
                dialogues = sorted(of_run)
                drawn[name] = rng.choices(dialogues, k=len(dialogues)) if rng else dialogues
            samples = [sample for dialogue in drawn[name] for sample in of_run[dialogue]]
            rows.append(kept(name, samples))
        return [sum(column) / len(column) for column in zip(*rows, strict=True)]

    rng = random.Random(5)  # noqa: S311
    draws = [mean_kept(rng) for _ in range(400)]
    low = sorted(draw[1] for draw in draws)[10]
    high = sorted(draw[2] for draw in draws)[389]
    alike(evidence["thesis/3.4-drop"], mean_kept()[0], (low, high))
