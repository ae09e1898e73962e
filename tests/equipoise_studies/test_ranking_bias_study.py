"""Ties and claims of chapter 4, on lists small enough to score by hand and on the printed cells."""

import csv
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from equipoise.measures import ranking_bias as bias
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.claims import Evidence
from equipoise_studies.ranking_bias import claims, sentences, ties
from equipoise_studies.ranking_bias.data import CountedCollection, read_counted
from equipoise_studies.ranking_bias.study import Study

FOLDER = project.root() / "data" / "published" / "thesis"
GROUPS = bias.TermGroups.from_pairs([("he", "m"), ("she", "f")])
TEXTS = {"a": "he he x", "b": "she she she", "c": "x x", "d": "he she x x", "e": "he he he x x"}
COUNTS = bias.count_terms(TEXTS.items(), GROUPS.terms)
COLLECTION = CountedCollection("x", "texts", pd.Series(), pd.DataFrame(), COUNTS, pd.DataFrame())


def runs_of(lists: dict[tuple[str, str], list[tuple[str, float]]]) -> pd.DataFrame:
    rows = [
        ("QS1", run, topic, document, rank, score)
        for (run, topic), listed in lists.items()
        for rank, (document, score) in enumerate(listed, start=1)
    ]
    return pd.DataFrame(rows, columns=["queries", "run", "topic", "document", "rank", "score"])


RUNS = runs_of(
    {
        ("r", "1"): [("a", 3), ("b", 2), ("c", 2), ("d", 2)],
        ("r", "2"): [("b", 1), ("e", 1)],
        ("s", "1"): [("e", 5), ("a", 4), ("b", 3)],
        ("s", "2"): [("c", 2), ("d", 1)],
    }
)


def score_of(documents: tuple[str, ...], cutoff: int) -> dict[str, float]:
    listed = pd.DataFrame(
        {"run": "x", "topic": "1", "document": documents, "rank": range(1, len(documents) + 1)}
    )
    table = bias.score_ranking_bias(listed, COUNTS, GROUPS, cutoffs=[cutoff])
    scores = table[table["topic"] == "1"].set_index("measure")["value"]
    return {name: float(scores[f"{name}@{cutoff}"]) for name in ("NFaiRR", "TExFAIR")}


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_extremes_over_ties_are_those_of_every_order_written_out(cutoff: int) -> None:
    extremes = ties.extremes_over_orders(RUNS, {"QS1": COLLECTION}, GROUPS, cutoff, 1.0)
    orders_of_r = [[("a", *tail) for tail in permutations("bcd")], list(permutations("be"))]
    for measure in ("NFaiRR", "TExFAIR"):
        least, greatest = [], []
        for orders in orders_of_r:
            scores = [score_of(order, cutoff)[measure] for order in orders]
            least.append(min(scores))
            greatest.append(max(scores))
        of_r = extremes.loc[("QS1", "r", measure)]
        assert of_r["least"] == pytest.approx(np.mean(least))
        assert of_r["greatest"] == pytest.approx(np.mean(greatest))
        of_s = extremes.loc[("QS1", "s", measure)]  # which ties nothing
        assert of_s["least"] == of_s["greatest"]


@pytest.mark.parametrize(("cutoff", "tied_ranks"), [(1, 1), (2, 3), (3, 4)])
def test_tied_ranks_are_counted_up_to_the_cut_off(cutoff: int, tied_ranks: int) -> None:
    tied = ties.tied_ranks(RUNS, cutoff).set_index("run")
    columns = ["queries with ties", "tied ranks"]
    assert tied.loc["r", columns].tolist() == [1 if cutoff == 1 else 2, tied_ranks]
    assert tied.loc["s", columns].tolist() == [0, 0]


# --- what the notebook computes, against the same written in plain Python -------------------------


def reported(name: str) -> list[dict[str, str]]:
    path = project.root() / "reports" / "thesis_ch4_ranking_bias" / "tables" / f"{name}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_reported_strata_are_those_of_the_lists_one_by_one() -> None:
    """Of each list, how many of its first ten documents hold a term of the long list."""
    runs = Study.read("replica").runs()
    rows = reported("strata")
    for label, name in (("QS1", "msmarco-dl"), ("QS2", "msmarco-dl-sensitive")):
        with_term = documents_with_a_term(name)
        of_set = runs[(runs["queries"] == label) & (runs["rank"] <= 10)]
        numbers: dict[tuple[str, str], int] = {}
        for run, topic, document in zip(
            of_set["run"], of_set["topic"], of_set["document"], strict=True
        ):
            numbers[run, topic] = numbers.get((run, topic), 0) + (document in with_term)
        bounds = {"0": (0, 0), "1 to 2": (1, 2), "3 to 5": (3, 5), "6 to 10": (6, 10)}
        for stratum, (low, high) in bounds.items():
            share = sum(low <= number <= high for number in numbers.values()) / len(numbers)
            (row,) = [
                row for row in rows if (row["queries"], row["with a term"]) == (label, stratum)
            ]
            assert float(row["share of lists"]) == pytest.approx(share)
            if stratum == "0":
                # a list without any term is fair by both measures
                assert float(row["NFaiRR"]) == float(row["TExFAIR"]) == 1


def sides_of_the_long_list() -> tuple[list[str], list[str]]:
    path = project.root() / "data" / "facts" / "ranking_bias" / "terms.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    long = [row for row in rows if row["list"] == "long"]
    male = [row["term"] for row in long if row["group"] == "m"]
    return male, [row["term"] for row in long if row["group"] == "f"]


def documents_with_a_term(name: str) -> set[str]:
    """Documents of a collection that hold a term of the long list."""
    male, female = ({term.lower() for term in terms} for terms in sides_of_the_long_list())
    term_counts = read_counted(name).term_counts
    entries = term_counts.counts.tocoo()
    documents = set()
    for row, column in zip(entries.row, entries.col, strict=True):
        if term_counts.terms[column] in male | female:
            documents.add(term_counts.documents[row])
    return documents


# --- claims ---------------------------------------------------------------------------------------


def topics_of(scores: dict[tuple[str, str, str], Any]) -> pd.DataFrame:
    rows = [
        (label, run, f"{number:02d}", measure, value)
        for (label, run, measure), values in scores.items()
        for number, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["queries", "run", "topic", "measure", "value"])


def random_topics(queries: int = 40) -> tuple[pd.DataFrame, dict[tuple[str, str, str], Any]]:
    rng = np.random.default_rng(7)
    keys = product(("QS1", "QS2"), ("bm25", "x", "y", "z"), ("NFaiRR", "TExFAIR", "CRBO"))
    scores = {key: rng.random(queries) + 0.1 * number for number, key in enumerate(keys)}
    return topics_of(scores), scores


def interval_of_mean(values: Any, found: Evidence) -> None:
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert found.estimate == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx(
        stats.norm.interval(0.95, np.mean(values), error), abs=0.3 * error
    )
    assert found.n == len(values)


def test_differences_from_the_baseline() -> None:
    topics, scores = random_topics()
    for measure, printed in (("TExFAIR", [0.8845, 0.8454]), ("CRBO", [0.9734, 0.9761])):
        gaps = (
            np.mean([scores["QS2", run, measure] for run in "xyz"], axis=0)
            - scores["QS2", "bm25", measure]
        )
        found = claims.above_baseline(topics, "QS2", measure, "bm25", "QS2")
        interval_of_mean(gaps, found)
        assert found.printed is not None
        assert (found.printed > 0) == (printed[0] > printed[1])
    means = {run: np.mean(scores["QS1", run, "CRBO"]) for run in ("bm25", "x", "y", "z")}
    above = claims.beyond_all_others(topics, "QS1", "CRBO", "bm25", 1, "QS1")
    assert above.estimate == pytest.approx(means["bm25"] - max(means[run] for run in "xyz"))
    below = claims.beyond_all_others(topics, "QS1", "CRBO", "bm25", -1, "QS1")
    assert below.estimate == pytest.approx(min(means[run] for run in "xyz") - means["bm25"])
    rows = list(csv.DictReader((FOLDER / "table-4.2.csv").read_text().splitlines()))
    crbo = {row["model"]: float(row["CRBO"]) for row in rows if row["queries"] == "QS1"}
    own = crbo.pop("BM25")
    assert above.printed == pytest.approx(own - max(crbo.values()))
    assert below.printed == pytest.approx(min(crbo.values()) - own)


def test_correlation_is_the_mean_of_the_rankers() -> None:
    topics, scores = random_topics()
    r = [
        stats.pearsonr(scores["QS1", run, "NFaiRR"], scores["QS1", run, "TExFAIR"]).statistic
        for run in ("bm25", "x", "y", "z")
    ]
    assert claims.correlation(topics, "QS1", "QS1").estimate == pytest.approx(np.mean(r))


def exchanged_in_every_way(first: Any, second: Any) -> Any:
    """Means of two rankers in every exchange of them within queries: (exchanges, 2, measures)."""
    pair = np.stack([first, second])  # (rankers, queries, measures)
    means = []
    for kept in product((True, False), repeat=pair.shape[1]):
        keep = np.array(kept)[:, np.newaxis]
        means.append([np.where(keep, pair[n], pair[1 - n]).mean(axis=0) for n in (0, 1)])
    return np.array(means)


def test_a_choice_and_a_reversal_are_held_against_exchanged_rankers() -> None:
    rng = np.random.default_rng(3)
    values = rng.random((2, 9, 2))
    means = values.mean(axis=1)
    in_every_way = exchanged_in_every_way(*values)
    gaps = in_every_way[:, 0] - in_every_way[:, 1]  # (exchanges, measures)
    by_chance = np.where(gaps.prod(axis=1) < 0, np.abs(gaps).min(axis=1), 0)
    gap = means[0] - means[1]
    lead = np.abs(gap).min() if gap.prod() < 0 else 0.0
    names = ("NFaiRR", "TExFAIR")
    rankers = enumerate(("x", "y"))
    scores = {
        ("QS1", run, name): values[place, :, number]
        for place, run in rankers
        for number, name in enumerate(names)
    }
    found = claims.another_choice(topics_of(scores), "QS1")
    assert found.estimate == pytest.approx(lead - by_chance.mean(), abs=0.004)
    assert found.high == pytest.approx(lead - np.quantile(by_chance, 0.025), abs=0.01)
    assert found.low == pytest.approx(lead - np.quantile(by_chance, 0.975), abs=0.01)

    # The same two measures, called otherwise, and a baseline that counts for nothing.
    for number, name in enumerate(("NFaiRR", "CRBO")):
        scores["QS1", "bm25", name] = np.full(9, 7.0)
        for place, run in ((0, "x"), (1, "y")):
            scores["QS1", run, name] = values[place, :, number]
    reversed_by = np.where(gaps.prod(axis=1) < 0, 1, -1) * np.abs(gaps).min(axis=1)
    clear = np.abs(gap).min() * (1 if gap.prod() < 0 else -1)
    found = claims.clearest_reversal(topics_of(scores), "QS1", "NFaiRR", "bm25")
    assert found.estimate == pytest.approx(clear - reversed_by.mean(), abs=0.004)
    one = topics_of({key: value for key, value in scores.items() if key[1] != "y"})
    assert claims.clearest_reversal(one, "QS1", "NFaiRR", "bm25").estimate is None


def test_rankers_are_counted_that_are_significantly_above_or_may_be() -> None:
    rng = np.random.default_rng(5)
    base = rng.random(50)
    shifts = {"far above": 0.5, "open": 0.0, "far below": -0.5}
    scores = {("QS1", "bm25", "NFaiRR"): base}
    for run, shift in shifts.items():
        scores["QS1", run, "NFaiRR"] = base + shift + rng.normal(0, 0.3, 50)
    found = claims.significantly_above(topics_of(scores), "QS1", "NFaiRR", "bm25", 0.05, "QS1")
    # one of three above, two of three not below
    ends = stats.beta.ppf(0.025, 1, 3), stats.beta.ppf(0.975, 3, 1)
    assert (found.estimate, found.low, found.high) == pytest.approx((1 / 3, *ends))
    assert (found.n, found.printed) == (3, 1.0)
    # Bonferroni's correction: what one test alone would call significant, three need not.
    p_value = 0.05 / 2
    gaps = rng.normal(0, 1, 50)
    gaps += stats.t.isf(p_value / 2, 49) * gaps.std(ddof=1) / np.sqrt(50) - gaps.mean()
    scores["QS1", "open", "NFaiRR"] = base + gaps
    found = claims.significantly_above(topics_of(scores), "QS1", "NFaiRR", "bm25", 0.05, "QS1")
    assert found.estimate == pytest.approx(1 / 3)
    alone = topics_of({key: value for key, value in scores.items() if key[1] in ("bm25", "open")})
    assert claims.significantly_above(alone, "QS1", "NFaiRR", "bm25", 0.05, "QS1").estimate == 1.0


@pytest.mark.parametrize(("ranks", "testable"), [(10, True), (11, False)])
def test_a_baseline_that_ties_most_ranks_tests_nothing(ranks: int, testable: bool) -> None:
    columns = ["queries", "run", "number of queries", "queries with ties", "tied ranks"]
    tied = pd.DataFrame([("QS2", "bm25", 2, 2, ranks)], columns=columns)
    reason = claims.cannot_tell_apart(tied, "QS2", "bm25", 10)
    assert (not reason) == testable
    found = claims.not_testable(Evidence("x", 1.0, 0.0, 2.0, printed=0.4), reason)
    assert (found.estimate == 1.0) == testable
    assert found.printed == 0.4


def test_sensitivity_is_a_range_of_means_over_the_cut_offs() -> None:
    rng = np.random.default_rng(1)
    names = {"TExFAIR(proportional=False)": 5.0, "TExFAIR": 1.0, "NFaiRR": 2.0}
    values = {
        ("QS1", run, f"{name}@{k}"): rng.random(12) + size * k
        for name, size in names.items()
        for k in (1, 2, 5)
        for run in "xy"
    }
    spread = {
        name: np.mean(
            [np.ptp([values["QS1", run, f"{name}@{k}"].mean() for k in (1, 2, 5)]) for run in "xy"]
        )
        for name in names
    }
    found = claims.cutoff_sensitivity(topics_of(values), ["QS1"], [1, 2, 5])
    assert found.estimate == pytest.approx(
        spread["TExFAIR(proportional=False)"] - max(spread["TExFAIR"], spread["NFaiRR"])
    )


def test_printed_cells_are_compared_as_labelled_and_exchanged() -> None:
    texts = [(FOLDER / f"table-4.{number}.csv").read_text() for number in (1, 2)]
    first, second = (list(csv.DictReader(text.splitlines())) for text in texts)
    names = {"MiniLM": "MiniLM KD", "TinyBERT": "TinyBERT KD"}
    printed = {(row["queries"], row["method"]): row for row in first}
    other = {"QS1": "QS2", "QS2": "QS1"}
    equal = {"as labelled": 0, "exchanged": 0}
    for row, column in product(second, ("TExFAIR", "NFaiRR")):
        method = names.get(row["model"], row["model"])
        for reading, label in (
            ("as labelled", row["queries"]),
            ("exchanged", other[row["queries"]]),
        ):
            equal[reading] += printed[label, method][column].rstrip("‡") == row[column]
    rows = reported("exchanged_columns")
    assert {row["reading"]: int(row["equal cells"]) for row in rows} == equal
    checks = pd.DataFrame(rows).astype({"equal cells": int, "cells": int})
    assert claims.share_equal(checks, "exchanged").estimate == equal["exchanged"] / 16
    assert claims.largest_printed_r().estimate == max(float(row["r"].rstrip("†")) for row in first)


def test_undefined_correlations_and_two_verdicts_are_said() -> None:
    flat = topics_of(
        {
            ("QS1", run, name): [0.5, 0.5, 0.5]
            for run in ("bm25", "x")
            for name in ("NFaiRR", "TExFAIR")
        }
    )
    found = claims.correlation(flat, "QS1", "QS1")
    assert found.estimate is None
    table = pd.DataFrame(
        {"NFaiRR": [0.5, 0.6], "TExFAIR": [0.8, 0.7]},
        index=pd.MultiIndex.from_product([["QS1"], ["p", "q"]]),
    )
    lead = Evidence("a lead", 0.1, 0.05, 0.2, 9)
    said = sentences.of_two_verdicts(table, {"QS1": lead})
    assert said == [
        "On QS1 q has the highest NFaiRR and p the highest TExFAIR; the smaller of their leads, "
        "less chance, is 0.100 [0.050, 0.200], so the measures do choose different rankers."
    ]
    (open_,) = sentences.of_two_verdicts(table, {"QS1": replace(lead, low=-0.01)})
    assert open_.endswith("[-0.010, 0.200], not shown to be more than chance.")
    untested = Evidence("a lead", reason="ids decide")
    (untested_said,) = sentences.of_two_verdicts(table, {"QS1": untested})
    assert untested_said.endswith("nothing follows from that, since ids decide.")
    same = sentences.of_two_verdicts(table.assign(TExFAIR=[0.7, 0.8]), {"QS1": found})
    assert same == ["On QS1 q has the highest mean of both measures."]


def test_what_is_said_of_cut_offs_of_choices_and_of_the_substitution() -> None:
    curves = pd.DataFrame(
        {
            "queries": "QS1",
            "run": ["r", "r", "s", "s"],
            "measure": "NFaiRR",
            "cutoff": [1, 5, 1, 5],
            "value": [0.1, 0.4, 0.9, 0.8],
        }
    )
    (said,) = sentences.of_cutoffs(curves)
    assert said == "Between the cut-offs 1 and 5 the measures move, on average: NFaiRR by 0.20."
    places = pd.MultiIndex.from_tuples(
        [("QS1", "NFaiRR@10", "as above"), ("QS2", "TExFAIR@10", "64 words")]
    )
    assert sentences.of_choices(pd.DataFrame({"tau": [1.0, 1.0]}, index=places))[0].startswith(
        "No choice changes"
    )
    (said,) = sentences.of_choices(pd.DataFrame({"tau": [1.0, -1 / 3]}, index=places))
    assert "most with 64 words (TExFAIR@10 on QS2: tau -0.33)" in said
    assert (
        "no order" in sentences.of_choices(pd.DataFrame({"tau": [np.nan, np.nan]}, index=places))[0]
    )


def test_rankers_stand_in_the_order_of_the_config_on_every_query_set() -> None:
    study = Study.read("replica")
    runs = study.runs()
    assert list(runs["queries"].unique()) == list(study.query_sets)
    for (label, world), part in runs.groupby(["queries", "world"]):
        rankers = study.rankers_on(str(label))
        names = [study.called(key) for key, ranker in rankers.items() if world in ranker.worlds]
        assert part["run"].drop_duplicates().tolist() == names
        assert names[0] == study.called(study.baseline)


def config_with(folder: Path, **changes: Any) -> Path:
    """The replica's config with other parts."""
    source = project.root() / "data" / "studies" / "ranking_bias" / "replica.yaml"
    config = yaml.safe_load(source.read_text(encoding="utf-8"))
    for place, value in changes.items():
        *above, name = place.split("__")
        part = config
        for step in above:
            part = part[step]
        part[name] = value
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rankers__tasb__public": {}}, "public runs, and no other kind, name a run"),
        ({"rankers__tasb__worlds": ["original", "counterfactual"]}, "a public run with other"),
        ({"rankers__tasb__public": {"QS3": "DistilBERT-TASB"}}, "no query set QS3"),
        ({"rankers__tasb__name": "SPLADE++"}, "two rankers of QS1 have one name"),
        ({"rankers__bm25-public__name": "Lucene"}, "a ranker called BM25, as the baseline is"),
        ({"query_sets__QS1__tables": ["4.3"]}, "no table 4.3"),
    ],
)
def test_a_public_run_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem.replace("+", "[+]")):
        Study.read(str(config_with(tmp_path, **changes)))


def test_findings_count_rankers_by_pretrained_models_alone() -> None:
    study = Study.read("replica")
    names = {study.called(key) for key in study.rankers_on("QS2")}
    left_out = {"BM25+RM3", "KNRM", "Conv-KNRM", "MatchPyramid", "TK", "AdvBERT-L2", "AdvBERT-L4"}
    assert names - study.counted_in_claims() == left_out
    assert study.set_of("QS1", "4.1") == "QS1"
    assert study.set_of("QS1", "4.2") == "QS1 pool"
    assert study.printed_set("NQ") == "QS1"
    thesis = Study.read("thesis")
    assert thesis.sets_in("4.1") == thesis.sets_in("4.2") == ["QS1", "QS2"]
    assert len(thesis.counted_in_claims()) == len(thesis.rankers)


def test_printed_differences_stand_beside_ours() -> None:
    gaps = claims.printed_gaps({"NQ": "QS1"}).set_index(["queries", "measure"])
    assert gaps.loc[("NQ", "NFaiRR")].tolist() == pytest.approx([0.7702 - 0.7227, 0.7989 - 0.7227])
    assert claims.printed_gap("QS2", "TExFAIR", "SBERT") == pytest.approx(0.8999 - 0.8454)
    tests = pd.DataFrame(
        {
            "queries": ["QS1", "QS1"],
            "run": ["SPLADE++", "DistilBERT-TASB"],
            "measure": "NFaiRR",
            "units": 96,
            "difference": [0.005, -0.02],
            "low": [-0.01, -0.03],
            "high": [0.02, -0.01],
            "significant": [False, True],
        }
    )
    study = Study.read("replica")
    assert sentences.of_differences(tests, study) == (
        "Neural rankers less BM25: on QS1 (96 queries, 2 rankers) NFaiRR -0.020 to +0.005."
    )
    fairer = tests.assign(significant=tests["difference"] > 0)
    two_sets = pd.concat([tests, fairer.assign(queries="NQ"), fairer.assign(measure="TExFAIR")])
    assert sentences.of_differences(two_sets, study).endswith(
        "NFaiRR -0.020 to +0.005, TExFAIR -0.020 to +0.005; "
        "on NQ (96 queries, 2 rankers) NFaiRR -0.020 to +0.005."
    )
    assert sentences.of_fairer(two_sets, study) == (
        "Of 4 comparisons of a neural ranker with BM25 (QS1, NQ), significantly "
        "1 fairer and 1 less fair by NFaiRR; 1 fairer and 0 less fair by TExFAIR."
    )
    assert sentences.of_intervals(tests) == "Intervals above zero: 0 of 2; below zero: 1."
    assert sentences.of_named(tests, study) == [
        "DistilBERT-TASB, which the thesis has too, less BM25: NFaiRR on QS1 -0.020 "
        "[-0.030, -0.010], printed +0.067."
    ]
    assert sentences.of_named(tests.head(1), study) == []


def test_what_is_said_of_overlaps_and_texts_that_are_not_there() -> None:
    places = pd.MultiIndex.from_product(
        [["QS1 pool"], ["BM25", "x", "y"]], names=["queries", "run"]
    )
    overlaps = pd.DataFrame({"CRBO": [0.96, 0.93, 0.95]}, index=places)
    (said,) = sentences.of_overlaps(overlaps, "BM25")
    assert said.endswith("0.960 for BM25 and 0.930 to 0.950 for the others on QS1 pool.")
    assert sentences.of_overlaps(None, "BM25") == []
    assert sentences.of_overlaps(overlaps.head(1), "BM25") == []
    assert sentences.of_overlaps(overlaps.tail(2), "BM25") == []
    columns = ["queries", "run", "ranks", "without a text"]
    passed_over = pd.DataFrame([("QS1", "x", 960, 7), ("QS1", "y", 960, 0)], columns=columns)
    (said,) = sentences.of_passed_over(passed_over, 10)
    assert "7 of 1,920 on QS1 (at most 7 of 960 of one run)" in said
    assert sentences.of_passed_over(passed_over.tail(1), 10) == []
