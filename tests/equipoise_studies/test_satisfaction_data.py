"""Dialogues with ratings, samples of them, and their counterfactuals."""

from collections import Counter
from pathlib import Path
from statistics import multimode as mode

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.problems import InputError
from equipoise_compendium import registry
from equipoise_studies.satisfaction.data import read_relabelled
from equipoise_studies.satisfaction.dialogues import (
    label_of,
    parts_of,
    rated_rows,
    service_of,
    turn_samples,
    without_dissenters,
)
from equipoise_studies.satisfaction.readers import read_dialogues, read_samples
from equipoise_studies.satisfaction.readings import wrong_labels
from equipoise_studies.satisfaction.swapped import swap_responses

GOOD = "\nUSER\tA train?\tTrain-Inform\t3,3,2\nSYSTEM\tWhere to?\t\t\nUSER\tOVERALL\t\t3,3\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "data.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (GOOD.replace("3,3,2", ""), ["line 2, column ratings: found no rating of a user turn"]),
        (
            GOOD.replace("3,3,2", "3,7,x"),
            ["line 2, column ratings: found '7', 'x', wanted whole numbers from 1 to 5"],
        ),
        (
            GOOD.replace("SYSTEM", "ROBOT"),
            ["line 3, column speaker: found 'ROBOT', wanted USER or SYSTEM"],
        ),
        (GOOD[:40], ["line 2", "is the file cut off?"]),
        (GOOD.replace("USER\tOVERALL\t\t3,3\n", ""), ["does not end with OVERALL"]),
        ("\nSYSTEM\tHello\t\t\n", ["line 2, column ratings: found a dialogue without ratings"]),
        (GOOD.replace("\t\t\n", "\t\t4\n"), ["no rating of a system turn"]),
        (GOOD.replace("3,3,2", "9") + GOOD.replace("3,3", "0"), ["found '9'", "found '0'"]),
    ],
)
def test_dialogue_file_problems_are_named_together(
    tmp_path: Path, text: str, messages: list[str]
) -> None:
    with pytest.raises(InputError) as error:
        read_dialogues(written(tmp_path, text))
    for message in messages:
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("['a|||b']\t[0]\t3\n", "column class: found '3', wanted 0, 1 or 2"),
        ("['a|||b']\t[0]\n", "found 2 fields"),
        ("['a|||b'\t[0]\t1\n", "column exchanges"),
        ("[__import__('os').getcwd()]\t[0]\t1\n", "a list of strings, as Python writes it"),
        ("['a|||b', 3]\t[0, 0]\t1\n", "a list of strings"),
        ("['a|||b']\t[0, 1]\t1\n", "2 acts of 1 exchanges"),
        ("['a']\t[0]\t1\n", "wanted the user's, |||, the system's"),
        ("['a|||b']\t[True]\t1\n", "a list of whole numbers"),
    ],
)
def test_sample_file_problems_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match="line 2") as error:
        read_samples(written(tmp_path, "['u|||s']\t[0]\t1\n" + text))
    assert message in str(error.value)


def test_nothing_in_a_sample_file_is_run(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    with pytest.raises(InputError):
        read_samples(written(tmp_path, f"[open({str(target)!r}, 'w').write('x')]\t[0]\t1\n"))
    assert not target.exists()


def test_system_that_speaks_twice_is_one_response(tmp_path: Path) -> None:
    table = read_samples(written(tmp_path, "['a|||b|||c', 'OVERALL|||']\t[0, 1]\t1\n"))
    assert table.loc[0, ["users", "systems", "overall"]].tolist() == [
        ("a", "OVERALL"),
        ("b c", ""),
        True,
    ]


def test_dialogues_rated_twice_are_paired_by_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, classes in {"human_sgd": "0212", "gpt4_sgd": "0101"}.items():
        (tmp_path / folder).mkdir()
        for part, texts in {"train": "AB", "valid": "C", "test": "D"}.items():
            name = f"{part}_human_sgd.txt" if folder == "human_sgd" else f"{part}_gpt_sgd.txt"
            lines = [f"['{text}|||']\t[1]\t{classes['ABCD'.index(text)]}\n" for text in texts]
            lines += ["['twice|||']\t[1]\t0\n"]  # in every part: whose rating is whose is not known
            (tmp_path / folder / name).write_text("".join(lines))
    monkeypatch.setattr(registry, "fetch", lambda _, path: tmp_path / path)
    both = read_relabelled("SGD")
    assert both.to_numpy().tolist() == [["A", 0, 0], ["B", 2, 1], ["C", 1, 0], ["D", 2, 1]]


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=7), min_size=1, max_size=6))
def test_label_is_a_most_frequent_rating(ratings: list[list[int]]) -> None:
    found = {ties: label_of(ratings, ties) for ties in ("lower", "higher", "first")}
    for row, given_ratings in enumerate(ratings):
        count = Counter(given_ratings)
        most = [rating for rating in count if count[rating] == max(count.values())]
        assert found["lower"][row] == min(most)
        assert found["higher"][row] == max(most)
        assert found["first"][row] == min(most, key=given_ratings.index)


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(1, 6))
def test_dissenters_are_dropped_one_by_one(seed: int, raters: int, turns: int) -> None:
    given_ratings = np.random.default_rng(seed).integers(1, 4, (turns, raters)).tolist()
    left = list(range(raters))
    while len(left) > 4:
        labels = [min(mode([row[rater] for rater in left])) for row in given_ratings]
        both = list(zip(given_ratings, labels, strict=True))
        agreeing = {rater: sum(row[rater] == label for row, label in both) for rater in left}
        left.remove(min(left, key=agreeing.__getitem__))  # the first of several
    kept = without_dissenters(pd.Series(list(map(tuple, given_ratings)), index=["7"] * turns))
    assert kept.tolist() == [tuple(row[rater] for rater in left) for row in given_ratings]
    assert kept.index.tolist() == ["7"] * turns


def test_label_needs_ratings() -> None:
    with pytest.raises(ValueError, match="no rating of turn 1"):
        label_of([(3,), ()])
    with pytest.raises(ValueError, match="from 1 to 5"):
        label_of([(6,)])


def test_service_follows_the_last_act_or_word() -> None:
    assert service_of(["Hotel-Inform", "Booking-Book"], ["A hotel", "Booked"]) == "hotel"
    assert (
        service_of(["INFORM"], ["a film, then a bus"], {"film": "films", "bus": "buses"}) == "buses"
    )
    assert service_of([], []) == ""


def turns(
    dialogue: str, number: int, rating: int = 3, act: str = "Train-Inform"
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for turn in range(number):
        rows.append((dialogue, 2 * turn, "USER", f"u{dialogue}.{turn}", act, (rating,), False))
        rows.append((dialogue, 2 * turn + 1, "SYSTEM", f"s{dialogue}.{turn}", "", (), False))
    return [*rows, (dialogue, 2 * number, "USER", "OVERALL", "", (rating,), True)]


COLUMNS = ["dialogue", "line", "speaker", "text", "act", "ratings", "overall"]


def test_samples_are_those_of_turns_4_to_16_and_end_with_a_response() -> None:
    long = pd.DataFrame(turns("0", 18), columns=COLUMNS)
    assert turn_samples(long)["sample"].tolist() == [f"0:{2 * turn - 2}" for turn in range(4, 17)]
    assert len(turn_samples(long, most=None)) == 15
    samples = turn_samples(pd.DataFrame(turns("0", 6), columns=COLUMNS))
    assert samples["sample"].tolist() == ["0:6", "0:8", "0:10"]
    assert samples["users"].tolist()[-1] == ("u0.0", "u0.1", "u0.2", "u0.3", "u0.4")
    assert samples["systems"].map(lambda texts: texts[-1]).tolist() == ["s0.2", "s0.3", "s0.4"]
    assert not samples["users"].map(lambda texts: "OVERALL" in texts).any()
    with pytest.raises(ValueError, match="second turn"):
        turn_samples(pd.DataFrame(turns("0", 6), columns=COLUMNS), least=1)


def test_parts_need_one_dialogue_each() -> None:
    table = pd.DataFrame(turns("0", 4) + turns("1", 4), columns=COLUMNS)
    sample = pd.DataFrame({"users": [("u1.2", "u1.3", "OVERALL")], "overall": [True]})
    assert parts_of(table, {"test": sample}).to_dict() == {"0": "train", "1": "test"}
    with pytest.raises(ValueError, match="wanted one of its own"):
        parts_of(table, {"test": sample, "valid": sample})


def both_outcomes() -> pd.DataFrame:
    train, hotel, taxi = "Train-Inform", "Hotel-Inform", "Taxi-Inform"
    kinds = [(3, train), (2, train), (2, hotel), (4, train), (1, taxi)]
    rows = [
        row
        for number, (rating, act) in enumerate(kinds)
        for row in turns(str(number), 5, rating, act)
    ]
    return turn_samples(pd.DataFrame(rows, columns=COLUMNS))


def test_swap_keeps_the_context_and_turns_the_outcome() -> None:
    samples = both_outcomes()
    swapped = swap_responses(samples, samples).set_index("sample")
    own, donors = samples.set_index("sample"), samples.set_index("sample")
    assert sorted(set(swapped["dialogue"])) == ["0", "1", "3"]  # a hotel and a taxi have no donor
    for name, row in swapped.iterrows():
        donor = donors.loc[row["donor"]]
        assert row["systems"][:-1] == own.loc[name, "systems"][:-1]
        assert row["users"] == own.loc[name, "users"]
        assert row["systems"][-1] == donor["systems"][-1]
        assert (donor["service"], donor["act"]) == (row["service"], row["act"])
        assert donor["dialogue"] != row["dialogue"]
        assert row["dissatisfied"] == donor["dissatisfied"] != own.loc[name, "dissatisfied"]
        assert 0 <= row["similarity"] <= 1 + 1e-9


def test_swap_needs_samples_and_donors() -> None:
    samples = both_outcomes()
    with pytest.raises(ValueError, match="nothing to swap"):
        swap_responses(samples.iloc[:0], samples)


def test_rated_rows_are_those_of_the_user_and_the_one_of_the_dialogue() -> None:
    rows = rated_rows(pd.DataFrame(turns("0", 2) + turns("1", 3), columns=COLUMNS))
    assert rows["dialogue"].tolist() == ["0"] * 3 + ["1"] * 4
    assert rows["turn"].tolist() == [1, 2, 0, 1, 2, 3, 0]
    assert rows["line"].tolist() == [0, 2, 4, 0, 2, 4, 6]


def test_doubt_is_the_mean_over_the_labels_shown() -> None:
    shares = pd.DataFrame(
        [("SGD", "dissatisfied", 0.4), ("SGD", "satisfied", 0.1), ("SGD", "all", 0.3)],
        columns=["collection", "shown", "at_most"],
    )
    turned = pd.DataFrame({"collection": "SGD", "dissatisfied": [True, True, False]})
    assert wrong_labels(shares, turned) == {"SGD": pytest.approx((2 * 0.4 + 0.1) / 3)}
    assert wrong_labels(shares.iloc[:0], turned) == {}
