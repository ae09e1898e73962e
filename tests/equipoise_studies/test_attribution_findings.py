"""What the recorded answers say of the sentences of chapter 5: differences, intervals, words."""

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.attribution import bias_table, score_answers
from equipoise_compendium.claims import Evidence, stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution import derived, findings, from_print, marks, power, words
from equipoise_studies.attribution.design import of_experiment
from equipoise_studies.attribution.recorded import recorded_answers
from equipoise_studies.attribution.study import Study
from equipoise_studies.attribution.tables import printed_p


@pytest.fixture(scope="module")
def scored() -> pd.DataFrame:
    return score_answers(recorded_answers(Study.read("replica"), ["qwen-1.5b", "qwen-0.5b"]))


@pytest.fixture(scope="module")
def found(scored: pd.DataFrame) -> dict[str, Evidence]:
    return findings.evidence(scored)


@pytest.fixture(scope="module")
def biases(scored: pd.DataFrame) -> dict[str, Evidence]:
    return findings.pooled_biases(scored)


@pytest.fixture(scope="module")
def printed() -> dict[str, Evidence]:
    return derived.evidence() | marks.evidence(marks.verdicts(500, 0.05))


def rows(values: list[float], benchmark: str = "NQ") -> pd.DataFrame:
    questions = [f"q{number}" for number in range(len(values))]
    return pd.DataFrame({"benchmark": benchmark, "question": questions, "gap": values})


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("up", "down", "n"), [(0, 0, 15), (3, 1, 30), (20, 45, 300)])
def test_an_interval_is_that_of_bonett_and_price(up: int, down: int, n: int) -> None:
    """Adjusted Wald interval of paired proportions: its formula adds one change either way."""
    found = findings.pooled(
        rows([100.0] * up + [-100.0] * down + [0.0] * (n - up - down)), "gap", "a gap"
    )
    first, second = (up + 1) / (n + 2), (down + 1) / (n + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    assert found.low is not None
    assert found.high is not None
    assert found.estimate == pytest.approx(100 * (up - down) / n)
    assert (found.low, found.high) == pytest.approx(
        tuple(100 * (first - second + side * 1.96 * error) for side in (-1, 1)), abs=200 / (n + 2)
    )
    assert found.n == n


def test_rows_of_a_question_are_drawn_together() -> None:
    values = np.random.default_rng(3).choice([-100.0, 0.0, 100.0], 40).tolist()
    once = findings.pooled(rows(values), "gap", "a gap")
    thrice = findings.pooled(pd.concat([rows(values)] * 3), "gap", "a gap")
    assert (thrice.estimate, thrice.low, thrice.high, thrice.n) == pytest.approx(
        (once.estimate, once.low, once.high, 40)
    )
    two = findings.pooled(pd.concat([rows(values), rows(values, "NQ-UTD")]), "gap", "a gap")
    assert two.n == 80  # one name on two benchmarks is two questions
    assert findings.pooled(rows([]), "gap", "a gap").reason


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", ["modes", "mixed", "names", "placebo"])
def test_changes_are_those_of_the_table_of_biases(experiment: str, scored: pd.DataFrame) -> None:
    ours = findings.changes(findings.by_label(scored))
    ours = ours[ours["experiment"] == experiment]
    theirs = bias_table(of_experiment(scored, experiment), ["model", "benchmark"], resamples=9)
    keys = ["model", "benchmark", "relevant", "non-relevant", "score"]
    named = {
        "relevant_author": "relevant",
        "nonrelevant_author": "non-relevant",
        "measure": "score",
    }
    for quantity in ("CAB", "CAS"):
        table = theirs[theirs["quantity"] == quantity].rename(columns=named)
        expected = 100 * table.groupby(keys)["value"].mean()
        pd.testing.assert_series_equal(
            ours.groupby(keys)[quantity].mean(), expected, check_names=False
        )


def test_the_largest_record_of_a_model_speaks_for_it(scored: pd.DataFrame) -> None:
    small = scored[scored["model"] == "Qwen 1.5B"]
    few = small[small["question"].isin(small["question"].unique()[:4])].assign(model="few")
    found = findings.changes(findings.by_label(pd.concat([few, small], ignore_index=True)))
    assert set(found["model"]) == {"Qwen 1.5B"}
    vanilla = small[small["mode"] == "Vanilla"].assign(
        model="vanilla"
    )  # without labels there is nothing to compare
    more = pd.concat(
        [vanilla, vanilla.assign(question=vanilla["question"] + " again")], ignore_index=True
    )
    found = findings.changes(findings.by_label(pd.concat([more, small], ignore_index=True)))
    assert set(found["model"]) == {"Qwen 1.5B"}
    other = few.assign(weights="other.gguf")
    found = findings.changes(findings.by_label(pd.concat([other, small], ignore_index=True)))
    assert set(found["model"]) == {"Qwen 1.5B", "few"}


def test_chance_is_the_recall_of_random_citations() -> None:
    rng = np.random.default_rng(8)
    blind = pd.DataFrame(
        {"model": "blind", "benchmark": "NQ", "question": [f"q{n}" for n in range(300)], "k": 5}
    )
    blind = blind.assign(cited=2, recall=(rng.random(300) < 2 / 5).astype(float))
    knows = blind.assign(model="knows", cited=1, recall=1.0)
    found = findings.chance(pd.concat([blind, knows]))
    assert found["knows"].estimate == pytest.approx(80)
    assert abs(found["blind"].estimate or 0) < 8
    assert findings.above_chance(pd.concat([blind, knows])) == ["knows"]


def test_settings_weigh_alike_as_in_a_mean_of_printed_cells() -> None:
    few = rows([100.0, 0.0]).assign(setting="few")
    many = rows([0.0] * 9 + [-100.0]).assign(setting="many")
    table = pd.concat([few, many])
    by_setting = findings.pooled(table, "gap", "a gap", settings=["setting"])
    assert by_setting.estimate == pytest.approx((50 - 10) / 2)
    assert findings.pooled(table, "gap", "a gap").estimate == pytest.approx(0)
    assert by_setting.n == 10  # q0 and q1 are asked in both


def test_printed_means_are_of_the_same_settings(
    scored: pd.DataFrame, biases: dict[str, Evidence]
) -> None:
    table = printed_table("thesis/table-5.3")
    cells = table[["ΔPrecision", "ΔRecall"]].map(lambda text: float(text.rstrip("†")))
    assert biases["5.3-human"].printed == pytest.approx(cells.to_numpy().mean())
    nq = scored[scored["benchmark"] == "NQ"]
    of_nq = findings.over_settings(findings.changes(findings.by_label(nq)), "CAB", "modes")
    assert of_nq.printed == pytest.approx(cells[table["benchmark"] == "NQ"].to_numpy().mean())


def test_the_placebo_is_compared_question_by_question(
    scored: pd.DataFrame, found: dict[str, Evidence]
) -> None:
    people = scored[
        (scored["relevant_author"] == "Human") & (scored["nonrelevant_author"] == "Human")
    ]
    people = people[
        (people["k"] == 5) & (people["retriever"] == "BM25") & (people["model"] == "Qwen 1.5B")
    ]
    score = people.set_index(["labels", "mode", "benchmark", "question"])[
        ["precision", "recall"]
    ].T.to_dict("list")
    swaps = ("Informed/CF-informed", "CF-informed/Informed")
    moved, favoured = {}, {}
    for labels in ("plain", "placebo"):
        asked = [key[2:] for key in score if key[:2] == (labels, swaps[0])]
        pairs = [[np.array(score[labels, swap, *one]) for swap in swaps] for one in asked]
        plain = [np.array(score["none", "Vanilla", *one]) for one in asked]
        favoured[labels] = 100 * np.mean([a - b for a, b in pairs])
        moved[labels] = 100 * np.mean(
            [abs(one - v) for pair, v in zip(pairs, plain, strict=True) for one in pair]
        )
    assert found["placebo-bias"].estimate == pytest.approx(
        abs(favoured["plain"]) - abs(favoured["placebo"])
    )
    assert found["placebo-cas"].estimate == pytest.approx(moved["plain"] - moved["placebo"])
    assert favoured["plain"] != favoured["placebo"]
    assert moved["plain"] != moved["placebo"]


def test_confidence_is_pooled_over_citations(
    scored: pd.DataFrame, found: dict[str, Evidence]
) -> None:
    kept = of_experiment(scored[scored["model"] == "Qwen 1.5B"], "modes", "mixed")
    sides: dict[bool, list[float]] = {True: [], False: []}
    for row in kept.itertuples():
        for one in row.citations:
            if 1 <= one["document"] <= row.documents and one["probability"] is not None:
                sides[one["document"] in row.relevant].append(one["probability"])
    assert found["5.6-signal"].estimate == pytest.approx(
        100 * (np.mean(sides[True]) - np.mean(sides[False]))
    )


# --- what a number of questions can show ----------------------------------------------------------


def test_reach_is_what_the_bootstrap_and_the_exact_test_find() -> None:
    table = power.reach([15, 40], 0.05, 0.95).set_index("questions")
    for n, row in table.iterrows():
        size = int(str(n))
        least: dict[str, int] = {}
        for changed in range(1, size + 1):
            values = np.r_[np.ones(changed), np.zeros(size - changed)]
            drawn = np.random.default_rng(1).choice(values, (40_000, size)).mean(axis=1)
            if np.quantile(drawn, 0.025) > 0:
                least.setdefault("least CAB (bootstrap)", changed)
            if stats.binomtest(0, changed).pvalue < 0.05:
                least.setdefault("least CAB (permutation)", changed)
        assert row[[*least]].to_dict() == pytest.approx(
            {name: 100 * count / size for name, count in least.items()}
        )


def test_power_is_the_share_of_runs_that_find_it() -> None:
    changed, gap, n = 0.3, 0.2, 24
    exact = 0.0
    for up, down in product(range(n + 1), repeat=2):
        if 0 < up + down <= n and stats.binomtest(up, up + down).pvalue < 0.05:
            p = [(changed + gap) / 2, (changed - gap) / 2, 1 - changed]
            exact += stats.multinomial.pmf([up, down, n - up - down], n, p)
    assert power.power(n, np.array([changed]), np.array([gap]), 0.05)[0] == pytest.approx(
        exact, abs=1e-9
    )


def test_p_values_as_papers_print_them() -> None:
    assert [printed_p(p) for p in (np.nan, 0.0009, 0.001, 0.25)] == [
        "",
        "<0.001",
        "0.001",
        "0.250",
    ]


# --- claims and words -----------------------------------------------------------------------------


def test_each_claim_of_the_chapter_has_its_evidence(
    found: dict[str, Evidence], printed: dict[str, Evidence]
) -> None:
    known = stated("thesis")
    on_models = from_print.evidence(500)
    assert len({*found, *printed, *on_models}) == len(found) + len(printed) + len(on_models)
    assert {*found, *printed, *on_models} == {
        name for name in known.index if re.match(r"5\.|placebo", name)
    }
    assert {known.loc[name, "about"] for name in on_models} == {"these systems"}
    assert "these systems" not in {known.loc[name, "about"] for name in found}
    assert {known.loc[name, "kind"] for name in printed} == {"consistency", "beyond"}


@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_margins_over_gpt_4(number: int, printed: dict[str, Evidence]) -> None:
    cells = {}
    for row in printed_table(f"thesis/table-5.{number}").to_dict("records"):
        for score in ("ΔPrecision", "ΔRecall"):
            cells[row["model"], row["benchmark"], row["relevant"], score] = float(
                row[score].rstrip("†")
            )
    margins = [
        value - cells["GPT-4", *rest] for (model, *rest), value in cells.items() if model != "GPT-4"
    ]
    assert printed[f"5.{number}-gpt4-lower"].estimate == pytest.approx(min(margins))


def test_marks_are_counted_that_cannot_be_right() -> None:
    known = marks.verdicts(500, 0.05)
    wrong = marks.evidence(known.assign(marked=~known["marked"]))
    assert [one["5.2-marks"].estimate for one in (marks.evidence(known), wrong)] == [0, 12]


def test_printed_answers_are_scored_against_what_is_told() -> None:
    """Mistral cites [2] and [5], the others [5] alone; all are right."""
    everyone, table = ("Mistral", "Llama3", "GPT-4"), ("thesis/table-5.16", "model")
    for right, wrong, otherwise in [
        (everyone, ["Mistral"], 0),
        (everyone, [], 1),
        (["GPT-4"], ["Mistral"], 2),
    ]:
        assert derived.scored_otherwise(*table, right, wrong).estimate == otherwise


def test_words_follow_the_interval(
    scored: pd.DataFrame, found: dict[str, Evidence], biases: dict[str, Evidence]
) -> None:
    on_models = from_print.evidence(500)
    readings = [
        (1.0, 3.0, "above", "side further than these do (", "is shown where"),
        (-3.0, -1.0, "below", "side less far than", "is contradicted where"),
        (-1.0, 3.0, "not", "not shown to move citations to one side", "is not shown where"),
    ]
    for low, high, where, distance, of_models in readings:
        cab = Evidence("CAB", (low + high) / 2, low, high, n=8)
        other = found | {"placebo-bias": cab}
        changed = on_models | {"5.3-human": cab, "5.5-human": cab}
        biased = biases | {"5.5-human": cab}
        lead, first, second, third = words.answer(scored, other, biased, changed)
        assert lead == f"{words.title_of_overview(cab)}."
        assert first.startswith("For Qwen 1.5B, CAB is ")
        assert f"one author ({where}" in first
        assert distance in second
        assert third.count(of_models) == 2


def test_words_of_a_model_at_chance_and_of_what_is_undecided(
    scored: pd.DataFrame, biases: dict[str, Evidence], printed: dict[str, Evidence]
) -> None:
    on_models = from_print.evidence(500)
    weak = scored[scored["model"] == "Qwen 0.5B"]
    nothing = findings.evidence(weak)
    answer = words.answer(weak, nothing, findings.pooled_biases(weak), on_models)
    assert answer == [words.NOBODY]
    assert "Qwen 0.5B" in words.left_out(scored)
    assert "none is left out" in words.left_out(scored[scored["model"] == "Qwen 1.5B"])
    unprinted = {name: replace(finding, printed=None) for name, finding in biases.items()}
    assert "80 % power for biases as large as the printed ones needs n = " in words.undecided(
        on_models, biases
    )
    assert "power" not in words.undecided(on_models, unprinted)
    assert words.undecided(on_models, unprinted).startswith(f"Of the {len(on_models)} sentences")
    assert words.in_print(printed).count("these do not") == 1
    assert "50.0% of these" in words.one_number_twice(
        pd.DataFrame({"precision": [0.5, 1.0], "recall": [1.0, 1.0]})
    )


def test_the_model_that_bears_a_sentence_out_least_decides(scored: pd.DataFrame) -> None:
    together = findings.of_models(scored)
    lows = []
    for _, answers in scored.groupby("model"):
        low = findings.of_models(answers)["5.3-human"].low
        assert low is not None
        lows.append(low)
    assert together["5.3-human"].low == min(lows)
    assert together["5.9-passages-sensitive"].estimate is None
    assert set(together) == set(from_print.evidence(500))


@pytest.mark.parametrize(
    ("low", "high", "said"), [(1, 3, "more than"), (-3, -1, "less than"), (-1, 3, "not shown")]
)
def test_a_title_says_whether_authors_bias_more_than_a_placebo(
    low: float, high: float, said: str
) -> None:
    farther = Evidence("distance", (low + high) / 2, low, high)
    assert said in words.title_of_overview(farther)


def test_biases_over_passages_have_an_interval_where_no_answer_changes(
    scored: pd.DataFrame,
) -> None:
    table = findings.over_passages(scored)
    assert set(table["questions"]) == {15}
    assert table.groupby("quantity")["k"].agg(list).to_dict() == {
        "CAB": [2, 5, 8, 10],
        "CAS": [2, 5, 8, 10],
    }
    # A bootstrap alone gives a CAB of 0 [0, 0] where no question changes.
    assert (table["high"] - table["low"] > 5).all()
    at_two = scored[(scored["labels"] == "names") & (scored["k"] == 2)]
    at_two = at_two.pivot_table(["precision", "recall"], "question", "mode")
    swaps = ["Informed/CF-informed", "CF-informed/Informed"]
    gaps = [at_two[score][swaps[0]] - at_two[score][swaps[1]] for score in ("precision", "recall")]
    cab = table[(table["quantity"] == "CAB") & (table["k"] == 2)]["value"].item()
    assert cab == pytest.approx(100 * np.mean(gaps))
    title = words.span_over_passages(table, "CAB")
    assert title.endswith("n = 15 questions")
    assert f"to {table.loc[table['quantity'] == 'CAB', 'value'].max():.0f} " in title
    assert "no answers" in words.span_over_passages(table.head(0), "CAB")
    assert words.title_over_passages(table).startswith("Neither CAB nor CAS is shown to change")
    # Two intervals that have nothing in common are a change; of two models, they are none.
    apart = table[table["quantity"] == "CAS"].assign(low=table["k"], high=table["k"] + 1.0)
    assert words.title_over_passages(apart) == "CAS changes with the number of passages"
    of_models = apart.assign(model=apart["k"].map("model of {} passages".format))
    assert words.title_over_passages(of_models).startswith("Neither")


def test_a_legend_says_of_how_many_questions_a_group_is() -> None:
    table = pd.DataFrame({"model": ["a", "a", "b"], "questions": [3, 1200, 7]})
    names = words.with_questions(table, "model").tolist()
    assert names == ["a, n = 3 to 1,200", "a, n = 3 to 1,200", "b, n = 7"]


def test_a_title_tells_the_positions_of_the_record_of_most_questions() -> None:
    table = pd.DataFrame(
        [("few", 3, 1, 99.0), ("many", 9, 1, 50.0), ("many", 9, 2, 80.0), ("many", 9, 3, 20.0)],
        columns=["group", "questions", "position", "value"],
    ).assign(benchmark="NQ", low=0.0, high=100.0)
    assert words.title_of_positions(table) == (
        "NQ: recall is highest at position 2 (80), lowest at 3 (20)"
    )
    unknown = table.assign(low=np.nan, high=np.nan)
    assert words.title_of_positions(unknown) == "NQ: 9 questions a position are too few to tell"


def test_a_title_says_which_printed_model_cites_least() -> None:
    bars = pd.DataFrame(
        [("GPT-4", "printed", 1.5), ("Llama3", "printed", 2.5), ("ours", "recorded", 0.5)],
        columns=["model", "source", "total"],
    )
    assert words.title_of_citations(bars) == (
        "Of the printed models GPT-4 cites fewest passages:\n1.5 an answer, the others 2.5 or more"
    )
