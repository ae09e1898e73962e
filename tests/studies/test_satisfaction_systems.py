"""Estimators of user satisfaction: prompts, up-sampling, Hawkes intensities, recorded predictions."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import project
from equipoise.problems import InputError
from equipoise.studies.satisfaction import systems as estimators
from equipoise.studies.satisfaction.data import Collection, predictions
from equipoise.studies.satisfaction.prompts import few_shot_prompt, label_probability
from equipoise.systems.language_models import load_server


def direct_intensity(base: np.ndarray, jumps: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """The sum of the definition, turn by turn."""
    found = np.empty_like(base)
    for dialogue, turn, kind in np.ndindex(base.shape):
        total = base[dialogue, turn, kind]
        for earlier in range(turn):
            total += jumps[dialogue, earlier, kind] * math.exp(-decay[kind] * (turn - earlier))
        found[dialogue, turn, kind] = math.log1p(math.exp(-abs(total))) + (total if total > 0 else 0.0)
    return found


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 9), st.integers(1, 3))
def test_hawkes_intensity_is_the_direct_sum(seed: int, dialogues: int, turns: int, kinds: int) -> None:
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
    assert estimators.hawkes_intensity(base, jumps, [700.0]) == pytest.approx(np.full((1, 5, 1), math.log(2)))
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
def test_up_sampling_repeats_dissatisfied_samples(labels: list[bool], times: int, seed: int) -> None:
    rows = estimators.up_sampled(labels, times, np.random.default_rng(seed))
    assert np.bincount(rows, minlength=len(labels)).tolist() == [times if label else 1 for label in labels]
    assert (rows == estimators.up_sampled(labels, times, np.random.default_rng(seed))).all()


def test_up_sampling_and_constant() -> None:
    with pytest.raises(ValueError, match="at least once"):
        estimators.up_sampled([True], 0, np.random.default_rng(1))
    samples = pd.DataFrame({"sample": ["a", "b"]})
    assert estimators.constant(samples, pd.DataFrame({"dissatisfied": [True, True, False]})).tolist() == [1.0, 1.0]


def test_prompt_shows_labels_in_order_and_ends_where_the_label_belongs() -> None:
    examples = [("USER: one", "Satisfied"), ("USER: two", "Dissatisfied")]
    prompt = few_shot_prompt(["a", "b"], ["c", "d"], examples, last=1)
    assert prompt.index("USER: one") < prompt.index('"Satisfied".') < prompt.index("USER: two")
    assert prompt.endswith('USER: b\nSYSTEM: d\nLabel of Example 3 is "')
    assert "USER: a" not in prompt
    with pytest.raises(ValueError, match="found Neutral"):
        few_shot_prompt(["a"], ["b"], [("x", "Neutral")])


def test_label_probability_adds_the_beginnings_of_each_label() -> None:
    shares = {"D": 0.2, " Dis": 0.1, "S": 0.25, "Sat": 0.05, "Not": 0.3, "": 0.1}
    found = label_probability({token: math.log(share) for token, share in shares.items()})
    assert found == pytest.approx(0.3 / 0.6)
    assert label_probability({"Not": -0.1}) == 0.5


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
    table = predictions([], "encoder", "hawkes", "few-shot")
    assert set(table["collection"]) == {"MultiWOZ", "SGD"}
    complete = table[table["system"] != "few-shot"].groupby(["collection", "system", "setup", "world"]).size()
    assert complete.groupby(["collection", "world"]).nunique().eq(1).all()
    assert len(complete) == 2 * 2 * 3 * 3
    pairs = table[table["system"] == "few-shot"].groupby(["collection", "sample"])["world"].agg(set)
    assert pairs.map({"Main", "swapped"}.__eq__).all()
    assert (
        table["dissatisfaction"].groupby([table["collection"], table["system"], table["setup"]]).nunique().gt(10).all()
    )


def test_predictions_of_other_swapped_responses_are_refused() -> None:
    other = pd.DataFrame({"sample": ["0:6"], "donor": ["1:6"]})
    with pytest.raises(ValueError, match="hawkes labelled other swapped responses of SGD: record anew"):
        predictions([Collection("SGD", pd.DataFrame(), pd.DataFrame(), other)], "hawkes")


def test_broken_recordings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "outputs" / "satisfaction"
    (folder / "settings").mkdir(parents=True)
    (folder / "settings" / "x.json").write_text(json.dumps({"swapped": {}}))
    monkeypatch.setattr(project, "data", lambda *parts: tmp_path.joinpath("data", *parts))
    header = "collection,world,sample,system,setup,dissatisfaction\n"
    (folder / "x.csv").write_text(header + "SGD,Main,1:6,x,,1.5\n")
    with pytest.raises(ValueError, match="probabilities"):
        predictions([], "x")
    (folder / "x.csv").write_text("collection,world\nSGD,Main\n")
    with pytest.raises(InputError):
        predictions([], "x")
