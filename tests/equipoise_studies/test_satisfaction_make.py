"""Texts of chapter 3, and the script that makes its derived data."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import project
from equipoise_studies.satisfaction import texts

SCRIPT = project.root() / "data" / "facts" / "satisfaction" / "make.py"
GOOD = "\nUSER\tA train?\tTrain-Inform\t3,3,2\nSYSTEM\tWhere to?\t\t\nUSER\tOVERALL\t\t3,3\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "data.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("3,3,2", ""), "line 2: must be a user turn with ratings"),
        (GOOD.replace("3,3,2", "3,7,x"), "line 2: ratings must be from 1 to 5, got '3,7,x'"),
        (GOOD.replace("SYSTEM", "ROBOT"), "line 3: must be a user turn with ratings or a system"),
        (GOOD.replace("\t\t\n", "\t\t4\n"), "line 3: must be a user turn .* system turn without"),
        (GOOD[:40], "line 3: must have 4 fields"),
        (GOOD.replace("USER\tOVERALL\t\t3,3\n", ""), "must end with OVERALL"),
    ],
)
def test_a_broken_file_of_dialogues_is_named_by_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        texts.read_dialogues(written(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "['a|||b']\t[0]\t3\n",
        "['a|||b']\t[0]\n",
        "['a|||b'\t[0]\t1\n",
        "[__import__('os').getcwd()]\t[0]\t1\n",
        "['a|||b', 3]\t[0, 0]\t1\n",
    ],
)
def test_a_broken_file_of_classes_is_named_by_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="line 2: must have a list of exchanges"):
        texts.read_classes(written(tmp_path, "['u|||s']\t[0]\t1\n" + text))


def test_a_system_that_speaks_twice_is_one_response(tmp_path: Path) -> None:
    table = texts.read_classes(written(tmp_path, "['a|||b|||c', 'OVERALL|||']\t[0, 1]\t1\n"))
    assert table.to_numpy().tolist() == [[("a", "OVERALL"), ("b c", ""), 1]]


def test_service_follows_the_last_act_or_word() -> None:
    service_of = texts.service_of
    assert service_of(["Hotel-Inform", "Booking-Book"], ["A hotel", "Booked"], {}) == "hotel"
    by_word = {"film": "films", "bus": "buses"}
    assert service_of(["INFORM"], ["a film, then a bus"], by_word) == "buses"
    assert service_of([], [], {}) == ""


def turns(dialogue: str, number: int, rating: int, act: str) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for turn in range(number):
        rows.append((dialogue, 2 * turn, "USER", f"u{dialogue}.{turn}", act, (rating,)))
        rows.append((dialogue, 2 * turn + 1, "SYSTEM", f"s{dialogue}.{turn}", "", ()))
    return [*rows, (dialogue, 2 * number, "USER", "OVERALL", "", (rating,))]


def dialogues() -> pd.DataFrame:
    train, hotel, taxi = "Train-Inform", "Hotel-Inform", "Taxi-Inform"
    kinds = [(3, train), (2, train), (2, hotel), (4, train), (1, taxi)]
    rows = []
    for number, (rating, act) in enumerate(kinds):
        rows += turns(str(number), 5, rating, act)
    return pd.DataFrame(rows, columns=["dialogue", "line", "speaker", "text", "act", "ratings"])


def test_samples_end_with_a_response() -> None:
    samples = texts.samples_of(dialogues().query("dialogue == '0'"), {})
    assert samples["sample"].tolist() == ["0:2", "0:4", "0:6", "0:8"]
    assert samples["users"].tolist()[-1] == ("u0.0", "u0.1", "u0.2", "u0.3")
    assert samples["systems"].str[-1].tolist() == ["s0.0", "s0.1", "s0.2", "s0.3"]
    assert samples["words"].tolist() == [2, 4, 6, 8]
    assert samples["response_words"].tolist() == [1, 1, 1, 1]


def test_parts_need_one_dialogue_each() -> None:
    sample = pd.DataFrame({"users": [("u1.3", "U1 . 4!", "OVERALL")]})
    parts = texts.parts_of(dialogues(), {"test": sample})
    assert parts.to_dict() == dict.fromkeys("0234", "train") | {"1": "test"}
    with pytest.raises(ValueError, match="must be of one dialogue, got 1"):
        texts.parts_of(dialogues(), {"test": sample, "valid": sample})


def test_donors_are_of_the_same_service_and_the_opposite_label() -> None:
    samples = texts.samples_of(dialogues(), {})
    pairs = runpy.run_path(str(SCRIPT))["nearest_donors"](samples, samples)
    by_sample = samples.set_index("sample")
    own, donors = by_sample.loc[pairs["sample"]], by_sample.loc[pairs["donor"]]
    assert sorted(set(own["dialogue"])) == ["0", "1", "3"]  # a hotel and a taxi have no donor
    assert (own["dissatisfied"].to_numpy() != donors["dissatisfied"].to_numpy()).all()
    assert (own["service"].to_numpy() == donors["service"].to_numpy()).all()
    assert (own["dialogue"].to_numpy() != donors["dialogue"].to_numpy()).all()
    assert pairs["similarity"].between(0, 1 + 1e-9).all()
