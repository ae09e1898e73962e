"""Guards the printed tables of thesis chapter 5: they agree, which proves where a row belongs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise_compendium.printed import printed_table

QUESTIONS = 500  # per benchmark, section 5.4
ROUNDING = (
    0.1 + 1e-9
)  # a difference of two numbers rounded to a tenth, itself rounded, is off by a tenth at most
HUMAN_RELEVANT, LLM_RELEVANT = (
    ("Informed", "CF-informed"),
    ("CF-informed", "Informed"),
)  # modes, and which is labelled so
WORDS = {
    "benchmark": {"NQ", "MS MARCO"},
    "model": {"Mistral", "Llama3", "GPT-4"},
    "relevant": {"Human", "LLM"},
    "non-relevant": {"Human", "LLM"},
    "mode": {"Vanilla", "Informed", "CF-informed"},
    "relevant mode": {"Vanilla", "Informed", "CF-informed"},
    "non-relevant mode": {"Vanilla", "Informed", "CF-informed"},
    "quantity": {"CAS", "CAB"},
    "retriever": {"uniCOIL", "TCT-ColBERT"},
}


def printed(*tables: int) -> pd.DataFrame:
    """Printed tables below each other, indexed by their keys."""
    table = pd.concat(
        [printed_table(f"thesis/table-5.{number}") for number in tables], ignore_index=True
    )
    table = table.set_index([column for column in table.columns if column in WORDS]).sort_index()
    assert table.index.is_unique
    return table


def numbers(*tables: int) -> pd.DataFrame:
    """The same as numbers, without the marks."""
    return printed(*tables).apply(lambda column: column.str.removesuffix("†").astype(float))


def quality(*tables: int, mode: tuple[str, ...]) -> pd.DataFrame:
    """Precision and recall in one mode, or one pair of mixed modes, named as their differences."""
    levels = ["mode"] if len(mode) == 1 else ["relevant mode", "non-relevant mode"]
    return numbers(*tables).xs(mode, level=levels)[["Precision", "Recall"]].add_prefix("Δ")


def bias(*tables: int, mixed: bool) -> pd.DataFrame:
    """Quality with the relevant passages labelled Human, less that with them labelled LLM.

    thesis, Eqs. 5.2 and 5.5.
    """
    informed, swapped = (
        quality(*tables, mode=modes if mixed else modes[:1])
        for modes in (HUMAN_RELEVANT, LLM_RELEVANT)
    )
    sign = np.where(informed.index.get_level_values("relevant") == "Human", 1, -1)
    return (informed - swapped).mul(sign, axis=0)


@pytest.mark.parametrize("table", range(1, 16))
def test_keys_are_the_same_words_everywhere_and_each_model_has_the_same_rows(table: int) -> None:
    keys = printed(table).index.to_frame(index=False)
    for name in keys.columns:
        assert set(keys[name]) <= WORDS[name]
    rows = {
        group: {tuple(row) for row in part.drop(columns=["benchmark", "model"]).to_numpy()}
        for group, part in keys.groupby(["benchmark", "model"])
    }
    assert len({frozenset(part) for part in rows.values()}) == 1
    # the text has lost GPT-4's rows of Table 5.14
    assert {model for _, model in rows} == WORDS["model"] - ({"GPT-4"} if table == 14 else set())


def test_table_5_3_is_the_difference_of_the_modes() -> None:
    ours, theirs = bias(1, 11, mixed=False), numbers(3)
    assert ours.index.equals(theirs.index)
    assert (ours - theirs).abs().max(axis=None) <= ROUNDING


def test_table_5_5_is_the_difference_of_the_mixed_modes() -> None:
    ours, theirs = bias(14, 15, mixed=True).combine_first(bias(4, mixed=True)), numbers(5)
    assert theirs.index.difference(ours.index).tolist() == [("NQ", "GPT-4", "LLM", "LLM")]
    assert (ours - theirs.loc[ours.index]).abs().max(axis=None) <= ROUNDING


def test_table_5_4_repeats_table_5_14() -> None:
    short, full = numbers(4), numbers(14)
    both = short.index.intersection(full.index)
    assert len(both) == 4
    pd.testing.assert_frame_equal(short.loc[both], full.loc[both])


def test_citations_recall_and_precision_bound_each_other() -> None:
    attribution, cited = numbers(1, 11) / 100, numbers(12, 13)
    assert attribution.index.equals(cited.index)
    np.testing.assert_allclose(cited["relevant cited"], attribution["Recall"], atol=1e-9)
    # one relevant passage a question: precision is 1 / citations where it is cited, else 0 (Cauchy
    # and Schwarz)
    assert (attribution["Precision"] >= attribution["Recall"] ** 2 / cited["total cited"]).all()
    for table in (attribution, numbers(4), numbers(14), numbers(15)):
        assert (table["Precision"] <= table["Recall"]).all()


@pytest.mark.parametrize("table", [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15])
def test_recall_citations_and_exact_match_count_whole_questions(table: int) -> None:
    share = {"Recall": 100, "ΔRecall": 100, "EM": 1, "relevant cited": 1, "total cited": 1}
    cells = numbers(table)
    counts = pd.DataFrame(
        {name: cells[name] * QUESTIONS / unit for name, unit in share.items() if name in cells}
    )
    off = counts.sub(counts.round()).abs().gt(1e-6)
    # one cell of Table 5.15 is the share of no number of questions: an exact match
    wrong = [("MS MARCO", "Mistral", "Human", "Human", *HUMAN_RELEVANT)] if table == 15 else []
    assert off.index[off.any(axis=1)].tolist() == wrong
    assert off.sum().sum() == len(wrong)


def test_sensitivity_is_no_less_than_the_change_of_the_mean() -> None:
    change, sensitivity = (
        quality(1, 11, mode=("Informed",)) - quality(1, 11, mode=("Vanilla",)),
        numbers(2),
    )
    assert change.index.equals(sensitivity.index)
    assert (sensitivity - change.abs()).min(axis=None) >= -ROUNDING


def test_marks_of_recall_in_table_5_2_follow_from_the_printed_numbers() -> None:
    """CAS counts the questions that flip; with the difference of the means it gives the t-test."""
    change = quality(1, 11, mode=("Informed",)) - quality(1, 11, mode=("Vanilla",))
    net = (change["ΔRecall"] * QUESTIONS / 100).round()
    flips = (numbers(2)["ΔRecall"] * QUESTIONS / 100).round()
    assert ((flips - net) % 2 == 0).all()
    variance = (flips - net**2 / QUESTIONS) / (QUESTIONS - 1)
    p = 2 * stats.t.sf((net / QUESTIONS).abs() / np.sqrt(variance / QUESTIONS), QUESTIONS - 1)
    marked = printed(2)["ΔRecall"].str.endswith("†")
    assert marked.nunique() == 2  # some are marked, some are not
    assert (p < 0.05).tolist() == marked.tolist()


@pytest.mark.parametrize("table", [16, 17])
def test_example_answers_are_right_where_they_cite_the_relevant_passage(table: int) -> None:
    examples = printed_table(f"thesis/table-5.{table}")
    cited = [
        f"[{document}]" in answer
        for answer, document in zip(examples["answer"], examples["relevant document"], strict=True)
    ]
    right = [
        any(gold in answer for gold in golds.split("; "))
        for answer, golds in zip(examples["answer"], examples["gold answer"], strict=True)
    ]
    assert cited == right == examples["mode"].eq("Informed").tolist()
