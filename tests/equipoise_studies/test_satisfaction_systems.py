"""Estimators of satisfaction: prompts, up-sampling, Hawkes intensities, recorded predictions."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies.satisfaction import systems as estimators
from equipoise_studies.satisfaction.data import Collection, predictions
from equipoise_studies.satisfaction.prompts import (
    LABELS,
    LabelAnswer,
    filled,
    label_probability,
    read_prompt,
    response_in,
)
from equipoise_studies.satisfaction.study import Study
from equipoise_studies.systems.language_models import load_server


def direct_intensity(base: np.ndarray, jumps: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """The sum of the definition, turn by turn."""
    found = np.empty_like(base)
    for dialogue, turn, kind in np.ndindex(base.shape):
        total = base[dialogue, turn, kind]
        for earlier in range(turn):
            total += jumps[dialogue, earlier, kind] * math.exp(-decay[kind] * (turn - earlier))
        found[dialogue, turn, kind] = math.log1p(math.exp(-abs(total))) + (
            total if total > 0 else 0.0
        )
    return found


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 9), st.integers(1, 3))
def test_hawkes_intensity_is_the_direct_sum(
    seed: int, dialogues: int, turns: int, kinds: int
) -> None:
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 3, (dialogues, turns, kinds))
    jumps = rng.exponential(1, (dialogues, turns, kinds))
    decay = rng.exponential(1, kinds)
    found = estimators.hawkes_intensity(base, jumps, decay)
    assert found == pytest.approx(direct_intensity(base, jumps, decay), rel=1e-10)
    assert (found > 0).all()


def test_hawkes_without_decay_counts_every_jump_and_with_much_forgets_all() -> None:
    base, jumps = np.zeros((1, 5, 1)), np.ones((1, 5, 1))
    kept = estimators.hawkes_intensity(base, jumps, [0.0])[0, :, 0]
    assert np.expm1(kept) == pytest.approx(np.exp(np.arange(5)))
    assert estimators.hawkes_intensity(base, jumps, [700.0]) == pytest.approx(
        np.full((1, 5, 1), math.log(2))
    )
    with pytest.raises(ValueError, match="do not fit"):
        estimators.hawkes_intensity(base, jumps[:, 1:], [1.0])
    with pytest.raises(ValueError, match="at least 0"):
        estimators.hawkes_intensity(base, jumps, [-1.0])


class Lengths:
    """Stands for the features: the length of an exchange."""

    def transform(self, texts: np.ndarray) -> np.ndarray:
        return np.array([[float(len(text))] for text in texts])


def test_hawkes_estimator_reads_the_last_exchange_and_the_earlier_ones() -> None:
    samples = pd.DataFrame({"users": [("aa", "b"), ("c",)], "systems": [("", "d"), ("e",)]})
    base, jump = np.array([[0.0, 1.0], [0.5, -1.0]]), np.array([[0.1, 0.2], [0.0, 0.3]])
    decay = np.array([0.7, 1.1])
    found = estimators.Hawkes(Lengths(), base, jump, decay).probability(samples)
    wanted = []
    for users, systems in samples.itertuples(index=False):
        lengths = [len(f"{user}\n{reply}") for user, reply in zip(users, systems, strict=True)]
        vectors = np.array([[length, 1.0] for length in lengths])
        jumps = np.log1p(np.exp(vectors @ jump))
        last = direct_intensity((vectors @ base)[None], jumps[None], decay)[0, -1]
        wanted.append(last[1] / last.sum())
    assert found == pytest.approx(wanted)


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(1, 5), st.integers(0, 99))
def test_up_sampling_repeats_dissatisfied_samples(
    labels: list[bool], times: int, seed: int
) -> None:
    rows = estimators.up_sampled(labels, times, np.random.default_rng(seed))
    assert np.bincount(rows, minlength=len(labels)).tolist() == [
        times if label else 1 for label in labels
    ]
    assert (rows == estimators.up_sampled(labels, times, np.random.default_rng(seed))).all()


def test_up_sampling_needs_a_number() -> None:
    with pytest.raises(ValueError, match="at least once"):
        estimators.up_sampled([True], 0, np.random.default_rng(1))


def test_a_prompt_is_filled_once_and_shows_labels_in_order(tmp_path: Path) -> None:
    study = Study.read("replica").estimators["few-shot"]
    assert study.prompt is not None
    text = read_prompt(study.prompt, [])
    prompt = filled(text, "USER: {Example Dialogue 1}", ["USER: one", "USER: two"])
    places = [
        prompt.index(part)
        for part in ("USER: one", f'"{LABELS[0]}".', "USER: two", f'"{LABELS[1]}".')
    ]
    assert places == sorted(places)
    assert prompt.endswith("USER: {Example Dialogue 1}\n\nLabel of Example 3 is:")
    (tmp_path / "other.txt").write_text("Label {this}")
    with pytest.raises(InputError, match=r"one with \{Input Dialogue\} in it"):
        read_prompt(tmp_path / "other.txt", ["{Input Dialogue}"])


def test_label_probability_adds_the_beginnings_of_each_label() -> None:
    shares = {"D": 0.2, ' "Dis': 0.1, "S": 0.25, "**Sat": 0.05, "Not": 0.3, "": 0.1, '"': 0.2}
    found = label_probability(
        LabelAnswer("", {token: math.log(share) for token, share in shares.items()})
    )
    assert found == pytest.approx(0.3 / 0.6)
    assert math.isnan(label_probability(LabelAnswer("", {"Not": -0.1})))


def test_a_label_that_was_written_is_on_its_side_whatever_its_probability() -> None:
    sure = {"Dis": math.log(0.4)}
    assert label_probability(LabelAnswer('is "Dissatisfied".', sure, alone=True)) == pytest.approx(
        0.7
    )
    assert label_probability(
        LabelAnswer("satisfied, not Dissatisfied", sure, alone=True)
    ) == pytest.approx(0.3)
    assert label_probability(LabelAnswer("Dissatisfied", {})) == 1
    assert math.isnan(label_probability(LabelAnswer("neither", sure, alone=True)))


def test_a_response_is_the_line_behind_its_speaker() -> None:
    assert response_in("**Counterfactual:**\n\nSYSTEM: Sorry.\nUSER: Oh.") == "Sorry."
    assert response_in("\n Sorry.\n") == "Sorry."
    assert response_in(" \n") == ""


def test_under_sampling_keeps_every_dissatisfied_sample() -> None:
    labels = np.array([True, False, False, True, False, False])
    rows = estimators.under_sampled(labels, np.random.default_rng(1))
    assert labels[rows].sum() == 2
    assert len(set(rows)) == len(rows) == 4


def test_models_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no language model"):
        load_server(tmp_path / "none.gguf")
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        estimators.fine_tune_encoder(tmp_path, ["a"], [True], ["b"])


def test_training_of_the_hawkes_estimator_repeats_and_learns() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'equipoise[models]'")
    words = ["yes booked it for you", "sorry no such thing here"]
    training = pd.DataFrame(
        {
            "users": [("hello", f"please book number {row % 7}") for row in range(40)],
            "systems": [("which one", words[row % 2]) for row in range(40)],
            "dissatisfied": [bool(row % 2) for row in range(40)],
        }
    )
    fits = [estimators.fit_hawkes(training, width=4, steps=60, rate=0.1, seed=5) for _ in range(2)]
    first, second = (fit.probability(training) for fit in fits)
    assert (first == second).all()
    assert ((first > 0.5) == training["dissatisfied"]).all()


def test_recorded_predictions_are_whole() -> None:
    study = Study.read("replica")
    paths = {name: study.file(f"{name}.csv") for name in study.estimators}
    table = predictions([], paths)
    assert set(table["collection"]) == {"MultiWOZ", "SGD"}
    complete = (
        table[table["system"] != "few-shot"]
        .groupby(["collection", "system", "setup", "world"])
        .size()
    )
    assert complete.groupby(["collection", "world"]).nunique().eq(1).all()
    assert len(complete) == 2 * 2 * 3 * 3
    keys = [table["collection"], table["system"], table["setup"]]
    assert table["dissatisfaction"].groupby(keys).nunique().gt(10).all()


def test_predictions_of_other_responses_are_refused() -> None:
    other = pd.DataFrame({"sample": ["0:6"], "donor": ["1:6"]})
    path = project.data("outputs", "satisfaction", "hawkes.csv")
    with pytest.raises(
        ValueError, match="hawkes labelled other last responses of SGD: record anew"
    ):
        predictions(
            [Collection("SGD", pd.DataFrame(), pd.DataFrame(), "turn", other)], {"hawkes": path}
        )


def test_broken_recordings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "x.json").write_text(json.dumps({"turned": {}}))
    header, path = "collection,world,sample,system,setup,dissatisfaction\n", tmp_path / "x.csv"
    path.write_text(header + "SGD,Main,1:6,x,,1.5\n")
    with pytest.raises(ValueError, match="probabilities"):
        predictions([], {"x": path})
    path.write_text("collection,world\nSGD,Main\n")
    with pytest.raises(InputError):
        predictions([], {"x": path})
