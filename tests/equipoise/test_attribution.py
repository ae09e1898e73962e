"""Guards the measures of attribution: thesis Eqs. 5.1 to 5.5, and what counts as a citation."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import precision_score, recall_score

from equipoise.answer_modes import MODES, mode_name, mode_parts
from equipoise.errors import Note
from equipoise.measures.attribution import (
    attribution_confidence,
    bias_table,
    cab,
    cas,
    citation_rows,
    exact_match,
    score_answers,
    score_attribution,
)
from equipoise.measures.citations import Citations, citations
from equipoise.statistics import mean_interval

MIXED = ("Informed/CF-informed", "CF-informed/Informed")
scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=8)


def scored(
    by_mode: dict[str, list[float]],
    relevant: str = "Human",
    nonrelevant: str = "LLM",
    name: str = "recall",
) -> pd.DataFrame:
    """Scores of the questions q0, q1, ... in some modes."""
    rows = [
        (f"q{place}", mode, value)
        for mode, values in by_mode.items()
        for place, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["question", "mode", name])
    return table.assign(relevant_author=relevant, nonrelevant_author=nonrelevant)


def bias(table: pd.DataFrame, by: tuple[str, ...] = (), **options: Any) -> pd.DataFrame:
    defaults: dict[str, Any] = {"measures": ["recall"], "resamples": 99, "seed": 7}
    return bias_table(table, **{"by": by} | defaults | options)


# --- citations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "cited", "out_of_range", "repeated", "malformed"),
    [
        ("", (), (), 0, 0),
        ("No source is named.", (), (), 0, 0),
        ("In Wales [2], and [1].", (2, 1), (), 0, 0),
        ("[1][2] [1, 2] [1,2] [1; 2] [ 3 ]", (1, 2, 3), (), 6, 0),
        ("[1-3] [4–5]", (1, 2, 3, 4, 5), (), 0, 0),
        ("[2-4, 1] [4-4]", (2, 3, 4, 1), (), 1, 0),
        ("[3-1] [0-2] [4-6] [2015-2019]", (), (), 0, 4),
        ("[6] [0] [6] [007]", (), (6, 0, 7), 1, 0),
        ("[05]", (5,), (), 0, 0),
        ("[5", (), (), 0, 1),
        ("[5 and [3]", (3,), (), 0, 1),
        ("[[5]]", (5,), (), 0, 0),
        ("[Document 5] [5a] [1.5] [-1] [1 2] [1,] [1 or 2] [and 2]", (), (), 0, 8),
        ("[1 and 2] [3 & 4] [1, 2, and 5]", (1, 2, 3, 4, 5), (), 2, 0),
        ("[1,, 2] [1 and and 2] [1 and]", (), (), 0, 3),
        ("`x[1]` is `rows[2, 3]` [4]", (4,), (), 0, 0),
        (
            "so:\n```python\nx[1] = `y[2]`\n```\nas `[3]` and ` [4] [5, 1] ` say",
            (3, 4, 5, 1),
            (),
            0,
            0,
        ),
        ("it ends in ```\nx[1]", (), (), 0, 0),
        ("a ` alone [1]\nand ` another [2]", (1, 2), (), 0, 0),
        ("[x] [] [sic] [citation needed] [", (), (), 0, 0),
        ("In 1977 (2) and (2015)", (), (), 0, 0),
        ("[٣] [５] 【5】 ［5］", (), (), 0, 4),
        ("[²]", (), (), 0, 0),
        ("[1,\n2]", (1, 2), (), 0, 0),
        ("array[4](5)", (4,), (), 0, 0),
    ],
)
def test_what_is_a_citation(
    answer: str,
    cited: tuple[int, ...],
    out_of_range: tuple[int, ...],
    repeated: int,
    malformed: int,
) -> None:
    assert citations(answer, 5) == Citations(cited, out_of_range, repeated, malformed)


def test_without_a_number_of_documents_only_zero_is_out_of_range() -> None:
    assert citations("[0] [1] [4000] [7-8]") == Citations((1, 4000, 7, 8), (0,), 0, 0)


@given(st.text(alphabet="[]0123, -;x\n１&", max_size=30))
def test_citations_of_any_text_keep_their_bounds(text: str) -> None:
    found = citations(text, 3)
    assert set(found.cited) <= {1, 2, 3}
    assert not set(found.out_of_range) & {1, 2, 3}
    assert len(set(found.cited)) == len(found.cited)
    assert found.repeated >= 0
    assert found.malformed <= text.count("[")
    brackets = citations(text + "][2]", 3)
    assert 2 in brackets.cited


# --- scores of answers ----------------------------------------------------------------------------


@st.composite
def cited_answers(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    documents = draw(st.integers(1, 8))
    numbers = st.integers(1, documents)
    return (
        draw(st.lists(numbers, max_size=10)),
        draw(st.lists(numbers, min_size=1, unique=True)),
        documents,
    )


@given(st.lists(cited_answers(), min_size=1, max_size=6))
def test_precision_and_recall_are_scikit_learn_s(
    rows: list[tuple[list[int], list[int], int]],
) -> None:
    answers = pd.DataFrame(
        {
            "question": [str(place) for place in range(len(rows))],
            "answer": ["So " + "".join(f"[{number}]" for number in cited) for cited, _, _ in rows],
            "relevant": [tuple(relevant) for _, relevant, _ in rows],
            "documents": [documents for _, _, documents in rows],
        }
    )
    ours = score_answers(answers)
    for place, (cited, relevant, documents) in enumerate(rows):
        truth = np.isin(np.arange(1, documents + 1), relevant)
        said = np.isin(np.arange(1, documents + 1), cited)
        assert ours["precision"][place] == precision_score(truth, said, zero_division=0)
        assert ours["recall"][place] == recall_score(truth, said, zero_division=0)
    assert ours["cited"].tolist() == [len(set(cited)) for cited, _, _ in rows]
    assert ours["repeated"].tolist() == [len(cited) - len(set(cited)) for cited, _, _ in rows]
    assert ours["uncited"].tolist() == [not cited for cited, _, _ in rows]


def test_a_document_that_is_not_there_is_not_cited_and_counted_apart() -> None:
    answers = pd.DataFrame(
        {"question": [*"abc"], "answer": ["[2][9]", "[9][0]", "none [4"], "documents": 5}
    )
    answers["relevant"] = [(2,), (1,), (4, 5)]
    found = score_answers(answers)
    assert found["precision"].tolist() == [1.0, 0.0, 0.0]
    assert found["recall"].tolist() == [1.0, 0.0, 0.0]
    assert found["out_of_range"].tolist() == [1, 2, 0]
    assert found["cited"].tolist() == [1, 0, 0]
    assert found["malformed"].tolist() == [0, 0, 1]
    assert found["uncited"].tolist() == [False, False, True]
    assert score_answers(answers.drop(columns="documents"))["precision"].tolist() == [0.5, 0.0, 0.0]


def test_documents_of_large_numbers_stay_with_their_answers() -> None:
    answers = pd.DataFrame(
        {"question": ["a", "b"], "answer": ["[7]", "[50000000]"], "relevant": [(50_000_000,), (3,)]}
    )
    assert score_answers(answers)["recall"].tolist() == [0.0, 0.0]
    assert score_answers(answers[::-1])["recall"].tolist() == [0.0, 0.0]


def test_other_columns_and_the_order_are_kept_and_the_input_is_left_alone() -> None:
    answers = pd.DataFrame(
        {
            "question": ["b", "a"],
            "answer": ["[1]", "x"],
            "relevant": [[1], [2]],
            "model": "m",
            "gold": [None, ["X"]],
        },
        index=[5, 3],
    )
    found = score_answers(answers)
    assert found.index.tolist() == [5, 3]
    assert found["model"].tolist() == ["m", "m"]
    assert found["exact_match"].tolist() == pytest.approx([np.nan, 1.0], nan_ok=True)
    assert "precision" not in answers
    assert len(score_answers(answers[:0])) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"relevant": [()]}, "relevant must have at least one"),
        ({"relevant": [(0,)]}, "relevant must have at least one"),
        ({"relevant": [(6,)]}, "relevant must have at least one"),
        ({"relevant": [(2, 2)]}, "each once"),
        ({"relevant": [(1.5,)]}, "relevant must have"),
        ({"relevant": [(True,)]}, "relevant must have"),
        ({"documents": 0}, "documents must be whole numbers"),
        ({"documents": np.nan}, "documents must be whole numbers"),
        (
            {"answer": [None]},
            "answer must be a text",
        ),
        ({"recall": 1.0}, "columns recall would be overwritten"),
    ],
)
def test_what_cannot_be_scored_is_refused(change: dict[str, Any], said: str) -> None:
    answers = pd.DataFrame(
        {"question": ["a"], "answer": ["[1]"], "relevant": [(1,)], "documents": 5}
    )
    with pytest.raises(ValueError, match=said):
        score_answers(answers.assign(**change))


# --- exact match ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "gold", "found"),
    [
        ("It was filmed in the Bay of Plenty.", ["bay of plenty"], True),
        ("Filmed at  Bay, of\nPlenty!", ["The Bay of Plenty"], True),
        ("Elsewhere.", ["Wales", "elsewhere"], True),
        ("Elsewhere.", ["Wales"], False),
        ("A party.", ["art"], True),
        ("In 1977[2] it began.", ["1977"], True),
        ("It began [5].", ["5"], False),
        ("It began in 5 [5].", ["5"], True),
        ("Anything.", ["The", "!?"], False),
        ("", ["Wales"], False),
    ],
)
def test_exact_match_is_a_substring_after_normalisation(
    answer: str, gold: list[str], found: bool
) -> None:
    assert exact_match(answer, gold) is found


# --- modes, sensitivity and bias ------------------------------------------------------------------


def test_modes_are_named_once() -> None:
    assert mode_parts("CF-informed/Vanilla") == ("CF-informed", "Vanilla")
    assert {mode_name(f"{mode}/{mode}") for mode in MODES} == set(MODES)
    for wrong in ("informed", "", "/", "Informed/", "Informed/Informed/Informed", "x" * 10**5):
        with pytest.raises(ValueError, match="a mode must be one of"):
            mode_parts(wrong)


def test_a_hand_worked_example_of_each_mode() -> None:
    """Two questions, five documents, [1] is relevant; precision by hand from the answers."""
    texts = {
        "Vanilla": ["[1]", "[2]"],  # 1, 0
        "Informed": ["[1][2]", "[1]"],  # 1/2, 1
        "CF-informed": ["[3]", "none"],  # 0, 0
        "Informed/CF-informed": ["[1]", "[1]"],  # 1, 1
        "CF-informed/Informed": ["[1][2][3][4]", "[2]"],  # 1/4, 0
    }
    rows = [
        (f"q{place}", mode, text) for mode, both in texts.items() for place, text in enumerate(both)
    ]
    answers = pd.DataFrame(rows, columns=["question", "mode", "answer"]).assign(documents=5)
    answers["relevant"] = [(1,)] * len(answers)
    plain = answers[answers["mode"].isin(MODES)]
    authorships = [
        (plain, "Human", "LLM"),
        (plain, "LLM", "Human"),
        (answers, "Human", "Human"),
        (answers, "LLM", "LLM"),
    ]
    whole = pd.concat(
        [part.assign(relevant_author=r, nonrelevant_author=n) for part, r, n in authorships]
    )
    found = bias_table(score_answers(whole), measures=["precision"], resamples=99, seed=7)
    values = {tuple(row[:4]): row[4] for row in found[[
        "relevant_author", "nonrelevant_author", "quantity", "mode", "value"
    ]].to_numpy()}  # fmt: skip
    here, there = MIXED
    assert values == {
        ("Human", "LLM", "CAS", "Informed"): (1 / 2 + 1) / 2,
        ("Human", "LLM", "CAB", "Informed"): (1 / 2 + 1) / 2,
        ("LLM", "Human", "CAS", "Informed"): (1 / 2 + 1) / 2,
        ("LLM", "Human", "CAB", "Informed"): -(1 / 2 + 1) / 2,
        ("Human", "Human", "CAS", "Informed"): (1 / 2 + 1) / 2,
        ("Human", "Human", "CAS", here): (0 + 1) / 2,
        ("Human", "Human", "CAS", there): (3 / 4 + 0) / 2,
        ("Human", "Human", "CAB", here): (3 / 4 + 1) / 2,
        ("LLM", "LLM", "CAS", "Informed"): (1 / 2 + 1) / 2,
        ("LLM", "LLM", "CAS", here): (0 + 1) / 2,
        ("LLM", "LLM", "CAS", there): (3 / 4 + 0) / 2,
        ("LLM", "LLM", "CAB", here): -(3 / 4 + 1) / 2,
    }
    assert found["left_out"].eq(0).all()
    assert found["questions"].eq(2).all()


@settings(max_examples=20)
@given(scores, st.data())
def test_cab_changes_sign_when_labels_swap_and_cas_does_not(
    first: list[float], data: st.DataObject
) -> None:
    second = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(first), max_size=len(first))
    )
    assert cab(first, second, "Human") == -cab(first, second, "LLM") == cab(second, first, "LLM")
    assert cas(first, second) == cas(second, first)
    assert abs(cab(first, second, "LLM")) <= cas(first, second) + 1e-15
    modes = {"Vanilla": second, "Informed": first, "CF-informed": second}
    here, there = (bias(scored(modes, *pair)) for pair in (("Human", "LLM"), ("LLM", "Human")))
    signs = np.where(here["quantity"] == "CAS", 1.0, -1.0)
    for column in ("value", "t"):  # no t where all differences are the same
        expected = pytest.approx(signs * here[column].to_numpy(), nan_ok=True)
        assert there[column].to_numpy() == expected
    assert there["p_t"].tolist() == pytest.approx(here["p_t"].tolist(), nan_ok=True)
    assert there["p_permutation"].tolist() == here["p_permutation"].tolist()


def test_cas_and_cab_broadcast() -> None:
    informed = np.random.default_rng(1).random((2, 3, 5))
    other = np.random.default_rng(2).random(5)
    assert cas(informed, other).shape == (2, 3)
    labels = np.array(["Human", "LLM", "Human"])
    expected = (informed - other).mean(axis=-1) * [1, -1, 1]
    assert cab(informed, other, labels) == pytest.approx(expected)


def test_bad_scores_and_labels_are_refused() -> None:
    for pair in (([], []), ([np.nan], [1.0]), (1.0, 1.0), ([1.0], [np.inf])):
        with pytest.raises(ValueError, match="at least one question in both modes"):
            cas(*pair)
    with pytest.raises(ValueError, match="relevant_label must be Human or LLM, got 'human'"):
        cab([1.0], [0.0], "human")


def test_intervals_and_tests_are_scipy_s() -> None:
    draws = np.random.default_rng(3).random((3, 30)).round(1)
    draws[1, :20] = draws[0, :20]  # many equal scores, which the randomisation test leaves out
    modes = dict(zip(MODES, draws.tolist(), strict=True))
    found = bias(scored(modes, "LLM", "Human"), resamples=4999).set_index("quantity")
    vanilla, informed, other = draws
    for quantity, pair, sign in (("CAS", (informed, vanilla), 1), ("CAB", (informed, other), -1)):
        row, gaps = found.loc[quantity], sign * (pair[0] - pair[1])
        theirs = stats.ttest_rel(*pair)
        assert row["t"] == pytest.approx(sign * theirs.statistic)
        assert row["p_t"] == pytest.approx(theirs.pvalue)
        exchanged = stats.permutation_test(
            pair,
            lambda a, b: np.mean(a - b),
            permutation_type="samples",
            n_resamples=4999,
            rng=np.random.default_rng(1),
        )
        assert row["p_permutation"] == pytest.approx(exchanged.pvalue, abs=0.03)
        values = np.abs(gaps) if quantity == "CAS" else gaps
        assert row["value"] == pytest.approx(values.mean())
        interval = stats.bootstrap(
            (values,), np.mean, n_resamples=4999, method="percentile", rng=np.random.default_rng(7)
        )
        assert [row["low"], row["high"]] == pytest.approx([*interval.confidence_interval], abs=0.02)


def test_the_randomisation_test_of_few_pairs_is_every_exchange() -> None:
    gaps = np.array([0.5, 0.0, -0.25, 0.75, 0.0, 1.0])
    found = bias(scored({"Informed": gaps.tolist(), "Vanilla": [0.0] * 6}))
    means = np.array(
        [np.mean(np.array(signs) * gaps) for signs in product([-1, 1], repeat=len(gaps))]
    )
    assert found["p_permutation"].tolist() == pytest.approx(
        [np.mean(np.abs(means) >= gaps.mean() - 1e-12)]
    )
    equal = bias(scored({"Informed": [1.0, 0.0, 1.0], "Vanilla": [1.0, 0.0, 1.0]}))
    assert equal[["value", "t", "p_t", "p_permutation"]].to_numpy().tolist() == [[0, 0, 1, 1]]
    assert equal[["low", "high"]].isna().all(axis=None)  # three questions have no interval


def test_only_questions_of_both_modes_count_and_the_others_are_told() -> None:
    table = scored(
        {"Vanilla": [1.0, 0.0, 1.0, np.nan], "Informed": [0.0, 0.0, 1.0, 1.0], "CF-informed": [1.0]}
    )
    table = table[~((table["mode"] == "Informed") & (table["question"] == "q0"))]
    found = bias(table).set_index("quantity")
    assert found["questions"].to_dict() == {"CAS": 2, "CAB": 0}
    assert found["left_out"].to_dict() == {"CAS": 2, "CAB": 4}
    assert found.loc["CAS", "value"] == 0
    assert found.loc["CAB", ["value", "low", "high", "t", "p_t", "p_permutation"]].isna().all()
    one = bias(scored({"Vanilla": [1.0], "Informed": [0.5]}))
    assert one[["questions", "value"]].to_numpy().tolist() == [[1, 0.5]]
    assert one[["low", "high", "t", "p_t", "p_permutation"]].isna().to_numpy().all()


def test_a_row_depends_neither_on_the_order_nor_on_other_groups() -> None:
    draws = np.random.default_rng(5).random((3, 12)).round(2)
    modes = dict(zip(MODES, draws.tolist(), strict=True))
    part = scored(modes).assign(model="b")
    whole = pd.concat([scored(modes, "LLM", "Human").assign(model="a"), part])
    alone = bias(part.sample(frac=1, random_state=1), ("model",))
    among = bias(whole, ("model",))
    assert among["model"].tolist() == ["a", "a", "b", "b"]
    pd.testing.assert_frame_equal(among[2:].reset_index(drop=True), alone, check_exact=True)


def test_equal_modes_of_a_pair_are_the_plain_mode() -> None:
    table = scored({"Vanilla/Vanilla": [1.0, 0.0], "Informed/Informed": [0.0, 0.0]}, "LLM", "LLM")
    assert bias(table)[["against", "mode", "value"]].to_numpy().tolist() == [
        ["Vanilla", "Informed", 0.5]
    ]
    with pytest.raises(ValueError, match="2 answers occur twice"):
        bias(pd.concat([table, scored({"Informed": [1.0, 0.0]}, "LLM", "LLM")]))


def test_what_has_no_bias_is_refused() -> None:
    table = scored({"Vanilla": [1.0, 0.0], "Informed": [0.0, 0.0]})
    cases: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
        (table.assign(mode="informed"), {}, "a mode must be one of .*got 'informed'"),
        (
            table.assign(relevant_author="Bot"),
            {},
            "favoured must be Bot or LLM, got 'Human'",
        ),
        (table, {"measures": ["precision"]}, "precision is missing"),
        (table[:0], {}, "at least one answer"),
        (table.assign(model=None), {"by": ["model"]}, "every answer must have model"),
    ]
    for broken, options, said in cases:
        with pytest.raises(ValueError, match=said):
            bias(broken, **options)
    renamed = bias(table.replace({"Human": "A", "LLM": "B"}), favoured="A")
    assert renamed["value"].tolist() == bias(table)["value"].tolist()


# --- confidence -----------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.one_of(
                st.just(np.nan), st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
            ),
            st.sampled_from(["Informed", "Vanilla"]),
        ),
        max_size=30,
    )
)
def test_confidence_is_the_mean_with_welch_s_test(rows: list[tuple[bool, float, str]]) -> None:
    cited = pd.DataFrame(rows, columns=["relevant", "probability", "mode"]).astype(
        {"relevant": bool}
    )
    found = attribution_confidence(cited, ["mode"])
    assert found["mode"].tolist() == sorted(set(cited["mode"]))
    for row in found.to_dict("records"):
        part = cited[cited["mode"] == row["mode"]]
        sides = {
            side: part.loc[part["relevant"] == (side == "relevant"), "probability"]
            for side in ("relevant", "nonrelevant")
        }
        for side, values in sides.items():
            assert row[f"{side}_citations"] == values.notna().sum()
            assert row[f"{side}_missing"] == values.isna().sum()
            assert row[f"{side}_ac"] == pytest.approx(values.mean(), nan_ok=True)
        a, b = (values.dropna().to_numpy() for values in sides.values())
        if min(len(a), len(b)) < 2:
            assert np.isnan([row["t"], row["p"]]).all()
        elif np.ptp(a) or np.ptp(b):
            theirs = stats.ttest_ind(a, b, equal_var=False)
            assert [row["t"], row["p"]] == pytest.approx(
                [theirs.statistic, theirs.pvalue], abs=1e-9
            )
        else:
            assert row["p"] == (1.0 if a[0] == b[0] else 0.0)


def test_one_author_of_all_documents_has_no_cab_and_is_told() -> None:
    modes = ["Vanilla", "Informed", "CF-informed"] * 3
    answers = pd.DataFrame({"question": [*"aaabbbccc"], "mode": modes, "answer": "[1]"})
    answers = answers.assign(relevant=[(1,)] * 9, relevant_author="LLM", nonrelevant_author="LLM")
    options: dict[str, Any] = {"resamples": 49}
    with pytest.raises(ValueError, match="must have the same authors, the actual ones"):
        score_attribution(answers, **options)
    # Of what is told of one mode alone there is a CAS, and no CAB is asked for.
    without = answers[answers["mode"] != "CF-informed"]
    assert "CAS-recall" in set(score_attribution(without, **options)["measure"])
    mixed = answers.replace({"mode": {"Vanilla": "Informed/CF-informed"}})
    both = pd.concat([answers, mixed, mixed.assign(mode="CF-informed/Informed")])
    both = both.drop_duplicates(["question", "mode"])
    assert "CAB-recall" in set(score_attribution(both, **options)["measure"])


def test_confidence_of_nothing_and_of_constants() -> None:
    empty = pd.DataFrame({"relevant": pd.Series(dtype=bool), "probability": pd.Series(dtype=float)})
    (row,) = attribution_confidence(empty).to_dict("records")
    assert row["relevant_citations"] == row["nonrelevant_missing"] == 0
    assert np.isnan([row["relevant_ac"], row["t"], row["p"]]).all()
    constant = pd.DataFrame({"relevant": [True] * 3 + [False] * 3, "probability": [0.9] * 6})
    assert attribution_confidence(constant)[["t", "p"]].to_numpy().tolist() == [[0.0, 1.0]]
    for broken, said in (
        ({"probability": 1.5}, "between 0 and 1"),
        ({"relevant": None}, "true or false"),
    ):
        with pytest.raises(ValueError, match=said):
            attribution_confidence(constant.assign(**broken))


def test_every_mention_of_a_document_that_is_there_is_a_row() -> None:
    cited = [
        [
            {"document": 2, "probability": 0.5},
            {"document": 2, "probability": None},
            {"document": 1},
        ],
        [],
        None,
        [
            {"document": 0, "probability": 0.1},
            {"document": 9, "probability": 0.1},
            {"document": 3, "probability": 1},
        ],
    ]
    answers = pd.DataFrame(
        {"question": [*"abcd"], "answer": "x", "documents": 3, "citations": cited}
    )
    with pytest.warns(Note, match="2 of 6 citations .* no document that was shown"):
        rows = citation_rows(answers.assign(relevant=[(2,), (1,), (1,), (3, 1)], gold=[()] * 4))
    assert rows.columns.tolist() == ["question", "documents", "document", "relevant", "probability"]
    assert rows["question"].tolist() == ["a", "a", "a", "d"]
    assert rows["document"].tolist() == [2, 2, 1, 3]
    assert rows["relevant"].tolist() == [True, True, False, True]
    assert rows["probability"].tolist() == pytest.approx([0.5, np.nan, np.nan, 1.0], nan_ok=True)
    found = attribution_confidence(rows)
    assert found[["relevant_ac", "relevant_citations", "relevant_missing"]].to_numpy().tolist() == [
        [0.75, 2, 1]
    ]


# --- tables ---------------------------------------------------------------------------------------


def test_the_whole_table_is_its_parts() -> None:
    draw = np.random.default_rng(8)
    rows = [
        (
            f"q{place}",
            mode,
            "So " + "".join(f"[{number}]" for number in draw.integers(1, 5, draw.integers(0, 4))),
        )
        for mode in MODES
        for place in range(8)
    ]
    answers = pd.DataFrame(rows, columns=["question", "mode", "answer"]).assign(
        model="m", documents=4
    )
    answers = answers.assign(
        relevant_author="Human", nonrelevant_author="LLM", relevant=[(1,)] * len(rows)
    )
    answers["citations"] = [
        [{"document": 1, "probability": draw.random()}, {"document": 2}] for _ in rows
    ]
    options: dict[str, Any] = {"resamples": 99, "seed": 7}
    whole = score_attribution(answers, ["model"], run="mine", **options)
    table = score_answers(answers)
    quality = table.groupby("mode")[["precision", "recall", "cited"]].mean()
    quality["malformed"] = table.groupby("mode")["malformed"].sum()
    for mode, name in product(MODES, ("precision", "recall", "cited", "malformed")):
        row = whole[(whole["mode"] == mode) & (whole["measure"] == name) & (whole["against"] == "")]
        assert row["value"].tolist() == [quality.loc[mode, name]]
        assert row["count"].tolist() == [8]
        values = table[table["mode"] == mode].sort_values("question")[name]
        expected = mean_interval(values, np.random.default_rng(7), resamples=99)
        ends = [np.nan] * 2 if name == "malformed" else [*expected]
        assert row[["low", "high"]].iloc[0].tolist() == pytest.approx(ends, nan_ok=True)
    assert set(whole["topic"]) == {""}
    both = bias_table(table, ["model"], resamples=99, seed=7)
    ours = whole[whole["against"] != ""]
    assert ours["measure"].tolist() == (both["quantity"] + "-" + both["measure"]).tolist()
    for column in ("value", "low", "high"):
        np.testing.assert_array_equal(ours[column], both[column])
    for column in ("t", "p_t", "p_permutation"):  # CAS, a mean of absolute differences, has no test
        of_cab = both[column].where(both["quantity"] == "CAB").tolist()
        assert ours[column].tolist() == pytest.approx(of_cab, nan_ok=True)
        assert ours[column].notna().sum() == 2
    confidence = attribution_confidence(citation_rows(answers), ["mode"])
    sides = whole[whole["measure"].str.startswith("AC-")]
    assert sides["measure"].tolist() == ["AC-relevant", "AC-nonrelevant", "AC-difference"] * 3
    assert (
        sides.loc[sides["measure"] == "AC-relevant", "value"].tolist()
        == confidence["relevant_ac"].tolist()
    )
    assert sides.loc[sides["measure"] == "AC-nonrelevant", "left_out"].tolist() == [8, 8, 8]
    assert set(whole["run"]) == {"mine"}
    assert not whole[["count", "left_out"]].isna().to_numpy().any()
    for by, said in (
        (["value"], "value"),
        (["lost"], "lost is missing"),
    ):
        with pytest.raises(ValueError, match=said):
            score_attribution(answers, by, **options)


# --- both modes, and no pair ----------------------------------------------------------------------


def answers_of(*rows: tuple[str, str, str, str]) -> pd.DataFrame:
    """Answers to one question each of mode, authors and a further key."""
    columns = ["mode", "relevant_author", "nonrelevant_author", "model"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(question="q", answer="[1]", relevant=[(1,)] * len(table))


def test_documents_of_one_author_have_no_cab_in_the_plain_modes() -> None:
    rows = [("Informed", "Human", "Human", "a"), ("CF-informed", "LLM", "LLM", "a")]
    with pytest.raises(ValueError, match="must have the same authors, the actual ones"):
        score_attribution(answers_of(*rows))
