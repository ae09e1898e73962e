"""Claims of chapter 4: by a second, plain implementation, by hand, and under permuted labels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.rank_overlap import crbo
from equipoise.measures.ranking_bias import score_ranking_bias
from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_compendium.printed import printed_table
from equipoise_studies.ranking_bias import claims
from equipoise_studies.ranking_bias.data import (
    Study,
    gender_groups,
    read_collection,
    read_runs,
)

CUTOFF = 10
CUTOFFS = [1, 2, 3, 5, 10, 15, 20]
NAMES = {
    "bm25": "BM25",
    "all-minilm": "all-MiniLM",
    "splade-tiny": "SPLADE-tiny",
    "cross-encoder": "cross-encoder",
}


# --- what the notebook computes -------------------------------------------------------------------


@cache
def fairness() -> pd.DataFrame:
    """Fairness of each list of NQ, set beside QS1, at all cut-offs, as the notebook has it."""
    study = Study.read("replica")
    runs = read_runs(study)
    original = runs[(runs["world"] == "original") & (runs["queries"] == "NQ")]
    scores = score_ranking_bias(
        original,
        read_collection(study, "NQ").term_counts,
        gender_groups(study, "long"),
        cutoffs=CUTOFFS,
        tied_scores="expected",
        undefined=0.0,
    )
    return scores.assign(queries="QS1")


@cache
def scores() -> pd.DataFrame:
    """Scores of each query of NQ, set beside QS1, at the cut-off, as the notebook has them."""
    study = Study.read("replica")
    runs = read_runs(study)
    runs = runs[runs["queries"] == "NQ"]
    original = runs[runs["world"] == "original"]
    names = {f"{name}@{CUTOFF}": name for name in ("NFaiRR", "TExFAIR")}
    at_cutoff = fairness().replace({"measure": names})
    at_cutoff = at_cutoff[at_cutoff["measure"].isin(names.values()) & (at_cutoff["topic"] != "")]
    overlap = crbo(
        original,
        runs[runs["world"] == "counterfactual"],
        p=0.9,
        depth=CUTOFF,
        tied_scores="expected",
    )
    overlap = overlap[overlap["topic"] != ""].assign(measure="CRBO")
    qrels = read_collection(study, "NQ").qrels
    gains = effectiveness(
        original.rename(columns={"topic": "query"}),
        qrels.rename(columns={"topic": "query", "level": "grade"}),
        measures={"nDCG": f"nDCG@{CUTOFF}"},
        tied_scores="expected",
    ).rename(columns={"query": "topic"})
    table = pd.concat([at_cutoff, overlap, gains]).assign(queries="QS1")
    return table[["queries", "run", "topic", "measure", "value"]]


# --- the same, list by list, from the committed files ---------------------------------------------


def lines(*parts: str) -> Iterator[dict[str, object]]:
    path = project.data(*parts)
    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
    else:
        table = pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",", dtype=str)
    yield from table.to_dict("records")


@cache
def terms_of_documents() -> tuple[dict[str, list[int]], dict[str, int]]:
    """Terms of women and of men in each document of nqoracle, and its length in words."""
    group = {}
    for line in lines("facts", "ranking_bias", "terms.csv"):
        if line["list"] == "long":
            group[str(line["term"]).lower()] = 0 if line["group"] == "f" else 1
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for line in lines("facts", "ranking_bias", "term_counts.parquet"):
        if line["collection"] == "nqoracle" and line["term"] in group:
            counts[str(line["document"])][group[str(line["term"])]] += int(str(line["word"]))
    lengths = {}
    for line in lines("facts", "ranking_bias", "documents.parquet"):
        if line["collection"] == "nqoracle":
            lengths[str(line["document"])] = int(str(line["word"]))
    return dict(counts), lengths


@cache
def lists() -> dict[tuple[str, str, str], dict[str, float]]:
    """Scores of the documents by world, run and query."""
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for line in lines("outputs", "ranking_bias", "nqoracle_runs.tsv.gz"):
        key = (str(line["world"]), NAMES[str(line["run"])], str(line["topic"]))
        found[key][str(line["document"])] = float(str(line["score"]))
    return dict(found)


def neutrality(document: str) -> float:
    women, men = terms_of_documents()[0].get(document, [0, 0])
    if women + men <= 1:
        return 1.0
    return 1 - abs(women / (women + men) - 0.5) - abs(men / (women + men) - 0.5)


@cache
def ideal() -> float:
    best = sorted(map(neutrality, terms_of_documents()[1]), reverse=True)[:CUTOFF]
    return sum(value / math.log(rank + 1) for rank, value in enumerate(best, start=1))


def plain_nfairr(ranked: list[str]) -> float:
    total = 0.0
    for rank, document in enumerate(ranked[:CUTOFF], start=1):
        total += neutrality(document) / math.log(rank + 1)
    return total / ideal()


def plain_texfair(ranked: list[str]) -> float:
    counts, lengths = terms_of_documents()
    attention = [0.0, 0.0]
    gendered = everything = 0.0
    for rank, document in enumerate(ranked[:CUTOFF], start=1):
        discount = 1 / math.log(rank + 1)
        everything += discount
        if document not in counts:
            continue
        gendered += discount
        for group in (0, 1):
            attention[group] += discount * counts[document][group] / lengths[document]
    if not gendered:
        return 1.0
    share = attention[0] / sum(attention)
    return 1 - gendered / everything * 2 * abs(share - 0.5)


def plain_ndcg(ranked: list[str], relevant: str) -> float:
    if relevant not in ranked[:CUTOFF]:
        return 0.0
    return 1 / math.log2(ranked.index(relevant) + 2)


def plain_rbo(first: list[str], second: list[str]) -> float:
    """Both lists of one length: what they share at the end is taken to go on."""
    first, second = first[:CUTOFF], second[:CUTOFF]
    depth = min(len(first), len(second))
    total = 0.0
    for d in range(1, depth + 1):
        shared = len(set(first[:d]) & set(second[:d]))
        total += 0.1 * 0.9 ** (d - 1) * shared / d
    return total + 0.9**depth * len(set(first[:depth]) & set(second[:depth])) / depth


def has_ties(scored: dict[str, float]) -> bool:
    """Whether documents of one score stand where their order can matter."""
    top = sorted(scored.values(), reverse=True)[: CUTOFF + 1]
    return len(set(top)) < len(top)


def orders(
    key: tuple[str, str, str], other: tuple[str, str, str], rng: np.random.Generator
) -> list[tuple[list[str], ...]]:
    """A list and its counterpart, their ties broken by one drawn order of documents for both."""
    both = [lists()[key], lists()[other]]
    documents = sorted({*both[0], *both[1]})
    drawn = []
    for _ in range(16 if any(map(has_ties, both)) else 1):
        lot = dict(zip(documents, rng.random(len(documents)), strict=True))
        ranked = []
        for scored in both:
            pairs = sorted((-score, lot[name], name) for name, score in scored.items())
            ranked.append([name for _, _, name in pairs])
        drawn.append(tuple(ranked))
    return drawn


@cache
def plain_scores() -> dict[tuple[str, str], list[float]]:
    """By measure and run, a score for each query of QS1, in one order of queries."""
    relevant = {}
    for line in lines("facts", "ranking_bias", "qrels.csv"):
        if line["collection"] == "nqoracle":
            relevant[str(line["topic"])] = str(line["document"])
    found = defaultdict(list)
    rng = np.random.default_rng(4)
    for topic in sorted(relevant):
        for run in NAMES.values():
            drawn = orders(("original", run, topic), ("counterfactual", run, topic), rng)
            values = {
                "NFaiRR": [plain_nfairr(ranked) for ranked, _ in drawn],
                "TExFAIR": [plain_texfair(ranked) for ranked, _ in drawn],
                "nDCG": [plain_ndcg(ranked, relevant[topic]) for ranked, _ in drawn],
                "CRBO": [plain_rbo(ranked, other) for ranked, other in drawn],
            }
            for measure, of_orders in values.items():
                found[measure, run].append(sum(of_orders) / len(of_orders))
    return dict(found)


def plain_interval(statistic: Callable[[np.ndarray], float], n: int) -> tuple[float, float, float]:
    rng = np.random.default_rng(99)
    samples = sorted(statistic(rng.choice(n, n)) for _ in range(1000))
    return statistic(np.arange(n)), samples[24], samples[974]


def alike(found: Evidence, plain: tuple[float, float, float], reach: float = 0.002) -> None:
    assert (found.estimate, found.low, found.high) == pytest.approx(plain, abs=reach)


OTHERS = ("all-MiniLM", "SPLADE-tiny", "cross-encoder")


def wide(measure: str) -> pd.DataFrame:
    return claims.by_query(scores(), "QS1", measure)


@pytest.mark.parametrize(("measure", "fairer"), [("NFaiRR", 1 / 3), ("TExFAIR", 0.0)])
def test_fairer_rankers_counted_again(measure: str, fairer: float) -> None:
    plain = plain_scores()
    above = below = 0
    for run in OTHERS:
        test = stats.ttest_rel(plain[measure, run], plain[measure, "BM25"])
        above += test.statistic > 0 and 3 * test.pvalue < 0.05
        below += test.statistic < 0 and 3 * test.pvalue < 0.01
    found = claims.share_above("share", wide(measure), "BM25", 0.05, 1.0)
    assert found.estimate == above / 3 == fairer
    # Clopper and Pearson's ends, by the beta distribution
    not_below = 3 - below
    low = stats.beta.ppf(0.025, above, 4 - above) if above else 0.0
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(stats.beta.ppf(0.975, not_below + 1, 3 - not_below))
    assert (found.n, verdict(found, "< 0.9")) == (3, "undecided")
    marked = 0
    for row in printed_table("thesis/table-4.1").to_dict("records"):
        marked += row["queries"] == "QS1" and row["method"] != "BM25" and "‡" in row[measure]
    assert claims.published_marks("QS1", measure).mean() == marked / 10


def test_correlation_again() -> None:
    plain = plain_scores()

    def mean_r(drawn: np.ndarray) -> float:
        r = []
        for run in NAMES.values():
            columns = [np.array(plain[name, run])[drawn] for name in ("NFaiRR", "TExFAIR")]
            r.append(np.corrcoef(*columns)[0, 1])
        return float(np.mean(r))

    found = claims.mean_correlation("r", wide("NFaiRR"), wide("TExFAIR"), 0.5)
    alike(found, plain_interval(mean_r, 2433), 0.004)


def test_gain_over_bm25_again() -> None:
    plain = plain_scores()
    gaps = [np.subtract(plain["nDCG", run], plain["nDCG", "BM25"]) for run in OTHERS]
    gain = np.mean(gaps, axis=0)
    again = plain_interval(lambda drawn: float(gain[drawn].mean()), 2433)
    ours = wide("nDCG")
    gaps_of_ours = ours.drop(columns="BM25").sub(ours["BM25"], axis=0)
    alike(claims.mean_evidence("gain", gaps_of_ours.mean(axis=1)), again)


@pytest.mark.parametrize(("measure", "sign"), [("TExFAIR", -1), ("CRBO", 1)])
def test_distance_from_the_nearest_ranker_again(measure: str, sign: int) -> None:
    plain = plain_scores()
    bm25 = np.array(plain[measure, "BM25"])
    others = [np.array(plain[measure, run]) for run in OTHERS]

    def distance(drawn: np.ndarray) -> float:
        nearest = max(sign * values[drawn].mean() for values in others)
        return float(sign * bm25[drawn].mean() - nearest)

    found = claims.lead_over_others("lead", sign * wide(measure), "BM25", 0.0)
    alike(found, plain_interval(distance, 2433))


def test_the_claims_of_published_cells_again() -> None:
    """What the notebook reports, from the published cells alone."""
    rows = {}
    for row in printed_table("thesis/table-4.2").to_dict("records"):
        rows[row["queries"], row["model"]] = row
    excess = []
    for (queries, model), row in rows.items():
        apart = {}
        for name in ("CRBO", "TExFAIR", "NFaiRR"):
            apart[name] = abs(float(row[name]) - float(rows[queries, "BM25"][name]))
        if model != "BM25":
            excess += [apart["TExFAIR"] - apart["CRBO"], apart["NFaiRR"] - apart["CRBO"]]
    first = printed_table("thesis/table-4.1").to_dict("records")
    cells = {(row["queries"], row["method"]): row for row in first}
    equal = {"as labelled": 0, "exchanged": 0}
    other = {"QS1": "QS2", "QS2": "QS1"}
    names = {"MiniLM": "MiniLM KD", "TinyBERT": "TinyBERT KD"}
    for (queries, model), row in rows.items():
        for name in ("TExFAIR", "NFaiRR"):
            method = names.get(model, model)
            equal["as labelled"] += cells[queries, method][name].rstrip("‡") == row[name]
            equal["exchanged"] += cells[other[queries], method][name].rstrip("‡") == row[name]
    expected = {
        "4.2-substantial": min(excess),
        "4.2-repeats-4.1": equal["as labelled"] / 16,
        "4.2-exchanged": equal["exchanged"] / 16,
        "4.1-printed-range": max(float(row["r"].rstrip("†")) for row in first),
        "4.1-fairer-marks": 39 / 40,
    }
    table = pd.read_csv(project.root() / "reports" / "claims.csv").set_index("name")
    for name, number in expected.items():
        assert table.loc[name, "estimate"] == pytest.approx(number), name


# --- chance ---------------------------------------------------------------------------------------


def permuted_values(
    table: pd.DataFrame, column: str, keys: list[str], rest: list[str]
) -> pd.DataFrame:
    """The scores with the values of a column exchanged at random within each unit.

    ``keys``: what tells units apart. ``rest``: what goes along with a value.
    """
    wide = table.pivot_table(index=keys, columns=[column, *rest], values="value")
    names = wide.columns.get_level_values(column).unique()
    # (units, values of the column, what goes along)
    values = np.stack([wide[name].to_numpy() for name in names], axis=1)
    order = np.random.default_rng(2).random(values.shape[:2]).argsort(axis=1)
    values = np.take_along_axis(values, order[:, :, np.newaxis], axis=1)
    parts = []
    for place, name in enumerate(names):
        part = pd.DataFrame(values[:, place], wide.index, wide[name].columns)
        parts.append(part.melt(ignore_index=False).reset_index().assign(**{column: name}))
    return pd.concat(parts, ignore_index=True)


@cache
def without_rankers() -> pd.DataFrame:
    """Scores in which the rankers of each query are exchanged."""
    return permuted_values(scores(), "run", ["queries", "topic"], ["measure"])


def without_measures() -> pd.DataFrame:
    """Fairness over the cut-offs with the measures of each list exchanged."""
    table = fairness()[fairness()["topic"] != ""].copy()
    table[["measure", "cutoff"]] = table["measure"].str.rsplit("@", n=1, expand=True)
    names = ["TExFAIR(proportional=False)", "TExFAIR", "NFaiRR"]
    table = table[table["measure"].isin(names)]
    table = permuted_values(table, "measure", ["queries", "run", "topic"], ["cutoff"])
    return table.assign(measure=table["measure"] + "@" + table["cutoff"])


def permuted(measure: str) -> pd.DataFrame:
    return claims.by_query(without_rankers(), "QS1", measure)


def choice(first: pd.DataFrame, second: pd.DataFrame) -> Evidence:
    return claims.against_permuted_rankers("choice", first, second, claims.smaller_lead)


def reversal(fair: pd.DataFrame, overlap: pd.DataFrame) -> Evidence:
    others = fair.columns.drop("BM25")
    return claims.against_permuted_rankers(
        "reversal", fair[others], overlap[others], claims.clearest_reversal
    )


NULLS: dict[str, Callable[[], Evidence]] = {
    "thesis/4.1-another-choice": lambda: choice(permuted("NFaiRR"), permuted("TExFAIR")),
    "thesis/4.2-cutoff": lambda: claims.excess_change("x", without_measures(), ["QS1"], CUTOFFS),
    "thesis/4.2-bm25-most-biased": lambda: claims.lead_over_others(
        "lead", -permuted("TExFAIR"), "BM25", 0.0
    ),
    "thesis/4.2-bm25-least-biased": lambda: claims.lead_over_others(
        "lead", permuted("CRBO"), "BM25", 0.0
    ),
    "thesis/4.2-not-necessarily-texfair": lambda: reversal(permuted("TExFAIR"), permuted("CRBO")),
    "thesis/4.2-not-necessarily-nfairr": lambda: reversal(permuted("NFaiRR"), permuted("CRBO")),
}
"""Evidence for claims with a null, where labels mean nothing."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_does_not_hold_by_chance(name: str) -> None:
    words = stated("thesis").loc[name.removeprefix("thesis/")]
    assert words["null"]
    assert verdict(NULLS[name](), words["contradicted_if"]) != "holds"


def test_with_the_labels_as_they_are_the_same_claims_hold() -> None:
    """Else the test above would show nothing."""
    by_query = fairness()[fairness()["topic"] != ""]
    found = {
        "4.1-another-choice": choice(wide("NFaiRR"), wide("TExFAIR")),
        "4.2-cutoff": claims.excess_change("change", by_query, ["QS1"], CUTOFFS),
        "4.2-bm25-least-biased": claims.lead_over_others("lead", wide("CRBO"), "BM25", 0.0),
        "4.2-not-necessarily-texfair": reversal(wide("TExFAIR"), wide("CRBO")),
        "4.2-not-necessarily-nfairr": reversal(wide("NFaiRR"), wide("CRBO")),
    }
    for name, evidence in found.items():
        edge = stated("thesis").loc[name, "contradicted_if"]
        assert verdict(evidence, str(edge)) == "holds", name


# --- by hand, on random scores --------------------------------------------------------------------


def table_of(scores: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(scores)


def in_every_permutation(first: Any, second: Any) -> Any:
    """Means of two rankers in every exchange of them within queries: (exchanges, 2, measures)."""
    pair = np.stack([first, second])  # (rankers, queries, measures)
    means = []
    for kept in product((True, False), repeat=pair.shape[1]):
        keep = np.array(kept)[:, np.newaxis]
        means.append([np.where(keep, pair[n], pair[1 - n]).mean(axis=0) for n in (0, 1)])
    return np.array(means)


def test_a_choice_and_a_reversal_are_compared_with_every_permutation() -> None:
    values = np.random.default_rng(3).random((2, 9, 2))
    gap = np.subtract(*values.mean(axis=1))
    gaps = np.diff(in_every_permutation(*values), axis=1)[:, 0]  # (permutations, measures)
    by_chance = np.where(gaps.prod(axis=1) < 0, np.abs(gaps).min(axis=1), 0)
    lead = np.abs(gap).min() if gap.prod() < 0 else 0.0
    tables = [table_of({"x": values[0, :, n], "y": values[1, :, n]}) for n in (0, 1)]
    found = choice(*tables)
    assert found.estimate == pytest.approx(lead - by_chance.mean(), abs=0.004)
    assert found.high == pytest.approx(lead - np.quantile(by_chance, 0.025), abs=0.01)
    assert found.low == pytest.approx(lead - np.quantile(by_chance, 0.975), abs=0.01)

    reversed_by = np.where(gaps.prod(axis=1) < 0, 1, -1) * np.abs(gaps).min(axis=1)
    clear = np.abs(gap).min() * (1 if gap.prod() < 0 else -1)
    found = reversal(*(table.assign(BM25=7.0) for table in tables))
    assert found.estimate == pytest.approx(clear - reversed_by.mean(), abs=0.004)


def test_rankers_are_counted_that_are_significantly_above_or_may_be() -> None:
    rng = np.random.default_rng(5)
    base = rng.random(50)
    shifts = {"far above": 0.5, "open": 0.0, "far below": -0.5}
    table = pd.DataFrame({"bm25": base})
    for run, shift in shifts.items():
        table[run] = base + shift + rng.normal(0, 0.3, 50)
    found = claims.share_above("share", table, "bm25", 0.05, 1.0)
    # one of three above, two of three not below
    ends = stats.beta.ppf(0.025, 1, 3), stats.beta.ppf(0.975, 3, 1)
    assert (found.estimate, found.low, found.high) == pytest.approx((1 / 3, *ends))
    # Bonferroni: what one test alone would call significant, three need not
    gaps = rng.normal(0, 1, 50)
    p_value = 0.05 / 2
    gaps += stats.t.isf(p_value / 2, 49) * gaps.std(ddof=1) / np.sqrt(50) - gaps.mean()
    table["open"] = base + gaps
    assert claims.share_above("x", table, "bm25", 0.05, 1.0).estimate == pytest.approx(1 / 3)
    alone = table[["bm25", "open"]]
    assert claims.share_above("x", alone, "bm25", 0.05, 1.0).estimate == 1.0


def test_an_interval_of_a_mean_is_near_the_normal_one() -> None:
    values = pd.Series(np.random.default_rng(7).random(40))
    found = claims.mean_evidence("mean", values)
    error = values.std(ddof=1) / np.sqrt(40)
    expected = stats.norm.interval(0.95, values.mean(), error)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.3 * error)
    assert found.estimate == pytest.approx(values.mean())
    assert found.n == 40


def test_a_ranker_of_one_score_has_no_correlation() -> None:
    table = table_of({"x": [0.1, 0.2, 0.4], "y": [1.0, 1.0, 1.0]})
    assert claims.mean_correlation("r", table, table, 0.5).estimate is None


def test_a_change_is_a_range_of_means_over_the_cut_offs() -> None:
    rng = np.random.default_rng(1)
    sizes = {"TExFAIR(proportional=False)": 5.0, "TExFAIR": 1.0, "NFaiRR": 2.0}
    rows = []
    changes = {}
    for name, size in sizes.items():
        by_run = []
        for run in "xy":
            means = []
            for k in (1, 2, 5):
                values = rng.random(12) + size * k
                means.append(values.mean())
                for topic, value in enumerate(values):
                    rows.append(("QS1", run, f"{topic:02d}", f"{name}@{k}", value))
            by_run.append(np.ptp(means))
        changes[name] = np.mean(by_run)
    table = pd.DataFrame(rows, columns=["queries", "run", "topic", "measure", "value"])
    found = claims.excess_change("change", table, ["QS1"], [1, 2, 5])
    expected = changes["TExFAIR(proportional=False)"] - max(changes["TExFAIR"], changes["NFaiRR"])
    assert found.estimate == pytest.approx(expected)


# --- tables of the report -------------------------------------------------------------------------


def test_the_reported_strata_are_those_of_the_lists_one_by_one() -> None:
    """Of each list, how many of its first ten documents have a term of the long list."""
    terms = {str(x["term"]).lower() for x in lines("facts", "ranking_bias", "terms.csv")}
    with_term = set()
    for line in lines("facts", "ranking_bias", "term_counts.parquet"):
        if line["collection"] == "msmarco-pool" and line["term"] in terms and line["word"]:
            with_term.add(line["document"])
    path = project.root() / "reports" / "thesis_ch4_ranking_bias" / "tables" / "strata.csv"
    reported = pd.read_csv(path, dtype={"with a term": str}).set_index(["queries", "with a term"])
    runs = read_runs(Study.read("replica"))
    for label in ("QS1", "QS2"):
        top = runs[(runs["queries"] == label) & (runs["rank"] <= 10)]
        numbers: dict[tuple[str, str], int] = {}
        for run, topic, document in zip(top["run"], top["topic"], top["document"], strict=True):
            numbers[run, topic] = numbers.get((run, topic), 0) + (document in with_term)
        bounds = {"0": (0, 0), "1 to 2": (1, 2), "3 to 5": (3, 5), "6 to 10": (6, 10)}
        for stratum, (low, high) in bounds.items():
            share = sum(low <= number <= high for number in numbers.values()) / len(numbers)
            row = reported.loc[(label, stratum)]
            assert row["share of lists"] == pytest.approx(share)
            if stratum == "0":
                # a list without any term is fair by both measures
                assert row["NFaiRR"] == row["TExFAIR"] == 1
