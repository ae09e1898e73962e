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

from equipoise.measures.rank_overlap import crbo
from equipoise.measures.ranking_bias import score_ranking_bias
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Evidence, stated
from equipoise_studies.ranking_bias import claims
from equipoise_studies.ranking_bias.data import (
    Study,
    gender_groups,
    read_collection,
    read_runs,
)
from notebook_evidence import committed_evidence, result_of

COMMITTED = committed_evidence("thesis_ch4_ranking_bias")
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
    table = pd.concat([at_cutoff, overlap]).assign(queries="QS1")
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
def ideal(cutoff: int) -> float:
    best = sorted(map(neutrality, terms_of_documents()[1]), reverse=True)[:cutoff]
    return sum(value / math.log(rank + 1) for rank, value in enumerate(best, start=1))


def plain_nfairr(ranked: list[str], cutoff: int = CUTOFF) -> float:
    total = 0.0
    for rank, document in enumerate(ranked[:cutoff], start=1):
        total += neutrality(document) / math.log(rank + 1)
    return total / ideal(cutoff)


def plain_texfair(ranked: list[str], cutoff: int = CUTOFF, proportional: bool = True) -> float:
    counts, lengths = terms_of_documents()
    attention = [0.0, 0.0]
    gendered = everything = 0.0
    for rank, document in enumerate(ranked[:cutoff], start=1):
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
    discount = gendered / everything if proportional else 1.0
    return 1 - discount * 2 * abs(share - 0.5)


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


def on_nq(claim: str) -> dict[str, Evidence]:
    """Committed evidence of NQ on a claim, by part."""
    return COMMITTED[f"thesis/{claim}"]["NQ"]


def plain_t_interval(run: str, measure: str) -> tuple[float, float, float]:
    """Mean difference from BM25, and its 95% interval by the t distribution."""
    gaps = np.subtract(plain_scores()[measure, run], plain_scores()[measure, "BM25"])
    half = stats.t.isf(0.025, len(gaps) - 1) * gaps.std(ddof=1) / math.sqrt(len(gaps))
    return float(gaps.mean()), float(gaps.mean() - half), float(gaps.mean() + half)


def test_differences_in_fairness_again() -> None:
    reported = on_nq("4.1-fairer-on-nq")
    assert len(reported) == 6
    for run in OTHERS:
        for measure in ("NFaiRR", "TExFAIR"):
            alike(reported[f"{run}, {measure}"], plain_t_interval(run, measure))


def test_differences_in_crbo_again() -> None:
    reported = on_nq("4.2-crbo")
    assert len(reported) == 3
    for run in OTHERS:
        alike(reported[f"{run}, CRBO"], plain_t_interval(run, "CRBO"))


@pytest.mark.parametrize("claim", ["4.1-correlated", "4.1-strength"])
def test_correlations_again(claim: str) -> None:
    reported = on_nq(claim)
    assert set(reported) == set(NAMES.values())
    for run, evidence in reported.items():
        pairs = np.array([plain_scores()[name, run] for name in ("NFaiRR", "TExFAIR")])

        def r(drawn: np.ndarray, pairs: np.ndarray = pairs) -> float:
            return float(np.corrcoef(pairs[:, drawn])[0, 1])

        plain = plain_interval(r, 2433)
        alike(evidence, plain, 0.004)


@pytest.mark.parametrize(
    ("claim", "measure"), [("4.1-control-bias", "NFaiRR"), ("4.2-control-substitution", "CRBO")]
)
def test_controls_again(claim: str, measure: str) -> None:
    values = np.array(plain_scores()[measure, "BM25"])
    alike(on_nq(claim)[""], plain_interval(lambda drawn: values[drawn].mean(), 2433))


def test_gain_over_bm25_again() -> None:
    plain = plain_scores()
    gain = np.mean([plain["nDCG", run] for run in OTHERS], axis=0) - plain["nDCG", "BM25"]
    again = plain_interval(lambda drawn: gain[drawn].mean(), 2433)
    alike(on_nq("4.1-more-effective")[""], again)


@pytest.mark.parametrize("other", ["TExFAIR", "NFaiRR"])
def test_change_over_the_cutoffs_again(other: str) -> None:
    """Without proportionality: a ranking without any term has no divergence."""
    rng = np.random.default_rng(4)
    by_query = np.empty((len(CUTOFFS), 2433, len(NAMES), 2))
    topics = sorted({topic for _, _, topic in lists()})
    for place, topic in enumerate(topics):
        for column, run in enumerate(NAMES.values()):
            key = ("original", run, topic)
            drawn = [ranked for ranked, _ in orders(key, key, rng)]
            for row, cutoff in enumerate(CUTOFFS):
                values = []
                for ranked in drawn:
                    fair = plain_texfair if other == "TExFAIR" else plain_nfairr
                    values.append((plain_texfair(ranked, cutoff, False), fair(ranked, cutoff)))
                by_query[row, place, column] = np.mean(values, axis=0)

    def excess(drawn: np.ndarray) -> float:
        means = by_query[:, drawn].mean(axis=1)  # shape (cut-offs, rankers, measures)
        changes = (means.max(axis=0) - means.min(axis=0)).mean(axis=0)
        return float(changes[0] - changes[1])

    alike(on_nq("4.2-cutoff")[other], plain_interval(excess, 2433), 0.004)


def test_the_claims_of_published_cells_again() -> None:
    """What the notebook reports, from the published cells alone."""
    rows = {}
    for row in printed_table("thesis/table-4.2").to_dict("records"):
        rows[row["queries"], row["model"]] = row
    first = printed_table("thesis/table-4.1").to_dict("records")
    cells = {(row["queries"], row["method"]): row for row in first}
    other_set = {"QS1": "QS2", "QS2": "QS1"}
    names = {"MiniLM": "MiniLM KD", "TinyBERT": "TinyBERT KD"}
    expected: dict[str, dict[str, float]] = defaultdict(dict)
    for (queries, model), row in rows.items():
        apart = {}
        for name in ("CRBO", "TExFAIR", "NFaiRR"):
            apart[name] = float(row[name]) - float(rows[queries, "BM25"][name])
        for name in ("TExFAIR", "NFaiRR"):
            part, method = f"{queries}, {model}, {name}", names.get(model, model)
            if model != "BM25":
                expected["4.2-substantial"][part] = apart[name] + apart["CRBO"]
            for claim, label in {
                "4.2-repeats-4.1": queries,
                "4.2-exchanged": other_set[queries],
            }.items():
                repeated = float(cells[label, method][name].rstrip("‡"))
                expected[claim][part] = float(row[name]) - repeated
        if queries == "QS1" and model != "BM25":
            for name, gap in apart.items():
                lead = -gap if name == "CRBO" else gap
                expected["4.2-bm25-least-biased"][f"{model}, {name}"] = lead
    for row in first:
        part = f"{row['queries']}, {row['method']}"
        expected["4.1-not-strong"][f"{part}, r"] = float(row["r"].rstrip("†"))
        for name in ("NFaiRR", "TExFAIR"):
            if row["method"] != "BM25":
                expected["4.1-fairer"][f"{part}, {name}"] = float("‡" in row[name])
    for claim, parts in expected.items():
        reported = COMMITTED[f"thesis/{claim}"]["published numbers"]
        assert {part: each.estimate for part, each in reported.items()} == pytest.approx(parts)
    assert sum(expected["4.1-fairer"].values()) == 39


def test_values_of_another_laboratory_have_no_interval() -> None:
    bm25 = {}
    for row in printed_table("thesis/table-4.1").to_dict("records"):
        if row["method"] == "BM25":
            bm25[row["queries"]] = float(row["NFaiRR"])
    expected = {}
    for row in printed_table("thesis/another-laboratory").to_dict("records"):
        name = f"{row['ranker']} on {row['queries']}, NFaiRR"
        expected[name] = float(row["NFaiRR"]) - bm25[row["queries"]]
    reported = COMMITTED["thesis/4.1-fairer"]["values of another laboratory"]
    assert {name: it.estimate for name, it in reported.items()} == pytest.approx(expected)
    assert {(it.low, it.n, it.reason) for it in reported.values()} == {
        (None, None, "no interval is published")
    }


def test_the_numbers_of_queries_again() -> None:
    kinds = [line["kind"] for line in lines("facts", "ranking_bias", "public_queries.csv")]
    stated_numbers = {
        row["queries"]: int(row["number"])
        for row in printed_table("thesis/query-sets").to_dict("records")
    }
    reported = COMMITTED["thesis/4.1-query-count"]["public query files"]
    assert {label: each.estimate for label, each in reported.items()} == {
        "QS1": kinds.count("non-gendered") - stated_numbers["QS1"],
        "QS2": kinds.count("bias-sensitive") - stated_numbers["QS2"],
    }


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
    return claims.against_permuted_rankers(first, second, claims.smaller_lead)


def reversal(fair: pd.DataFrame, overlap: pd.DataFrame) -> Evidence:
    others = fair.columns.drop("BM25")
    return claims.against_permuted_rankers(fair[others], overlap[others], claims.clearest_reversal)


def wide(measure: str) -> pd.DataFrame:
    return claims.by_query(scores(), "QS1", measure)


NULLS: dict[str, Callable[[], list[Evidence]]] = {
    "thesis/4.1-another-choice": lambda: [choice(permuted("NFaiRR"), permuted("TExFAIR"))],
    "thesis/4.2-cutoff": lambda: [
        claims.excess_change(without_measures(), "QS1", other, CUTOFFS)
        for other in ("TExFAIR", "NFaiRR")
    ],
    "thesis/4.2-not-necessarily": lambda: [
        reversal(permuted(measure), permuted("CRBO")) for measure in ("TExFAIR", "NFaiRR")
    ],
}
"""Evidence on claims with a null distribution, where labels mean nothing."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_is_not_supported_by_chance(name: str) -> None:
    assert stated("thesis").loc[name.removeprefix("thesis/"), "null"]
    for evidence in NULLS[name]():
        assert result_of(name, evidence) != "supports"


def test_with_unchanged_labels_the_same_claims_are_supported() -> None:
    """Else the test above would show nothing."""
    by_query = fairness()[fairness()["topic"] != ""]
    found = {
        "4.1-another-choice": choice(wide("NFaiRR"), wide("TExFAIR")),
        "4.2-cutoff": claims.excess_change(by_query, "QS1", "TExFAIR", CUTOFFS),
        "4.2-not-necessarily": reversal(wide("TExFAIR"), wide("CRBO")),
    }
    for name, evidence in found.items():
        assert result_of(f"thesis/{name}", evidence) == "supports", name


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


def test_correlations_are_those_of_scipy_and_need_scores_that_differ() -> None:
    rng = np.random.default_rng(6)
    first, second = (
        table_of({"x": rng.random(30), "y": np.ones(30), "z": rng.random(30)}) for _ in range(2)
    )
    found = claims.correlation_evidence(first, second, {"x": 0.5})
    assert found["y"].estimate is None
    assert (found["x"].published, found["z"].published) == (0.5, None)
    for run in ("x", "z"):
        expected = stats.pearsonr(first[run], second[run])
        ends = expected.confidence_interval()
        assert found[run].estimate == pytest.approx(expected.statistic)
        assert (found[run].low, found[run].high) == pytest.approx((ends.low, ends.high), abs=0.12)


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
    for other in ("TExFAIR", "NFaiRR"):
        found = claims.excess_change(table, "QS1", other, [1, 2, 5])
        expected = changes["TExFAIR(proportional=False)"] - changes[other]
        assert found.estimate == pytest.approx(expected)


def test_published_values_are_those_of_the_same_ranker_and_query_set() -> None:
    index = [("QS2", "BM25"), ("NQ", "BM25"), ("QS1", "DistilBERT-TASB"), ("NQ", "all-MiniLM")]
    table = pd.DataFrame({"NFaiRR": 1.0}, pd.MultiIndex.from_tuples(index))
    found = claims.with_published(table, ["NFaiRR"], Study.read("replica"))
    cells = printed_table("thesis/table-4.1").set_index(["queries", "method"])["NFaiRR"]
    published = [cells["QS2", "BM25"], cells["QS1", "BM25"], cells["QS1", "DistillBERT TASB"]]
    expected = [*(float(cell.rstrip("‡")) for cell in published), np.nan]
    assert found["NFaiRR, published"].tolist() == pytest.approx(expected, nan_ok=True)


def test_bounds_from_tables_are_those_of_the_tables() -> None:
    """The protocol states a bound of chapter 4 that comes from Table 4.2."""
    table = printed_table("thesis/table-4.2").set_index(["queries", "model"]).astype(float)
    bm25 = table.xs("BM25", level="model")
    criteria = stated("thesis")["criterion"]
    assert criteria["4.1-control-bias"] == f"<= {bm25['NFaiRR'].max():.4f}"
