"""Claims of chapter 2: differences, chance, published cells; and all again by plain loops."""

from __future__ import annotations

import csv
import gzip
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_compendium.provenance import VARIANT_VARIABLE
from equipoise_studies.query_by_example import claims, systems
from equipoise_studies.query_by_example.data import BM25_ROW, PAIR
from equipoise_studies.query_by_example.systems import Candidates
from equipoise_studies.query_by_example.tables import published_numbers
from notebook_evidence import alike, committed_evidence, evidence_of, result_of

COMMITTED = committed_evidence("thesis_ch2_query_by_example")
PUBLISHED = {number: printed_table(f"thesis/table-2.{number}") for number in (1, 2, 3, 4)}
FACETS = [
    (f"p{paper}", task) for paper in range(7) for task in ("background", "method")[: 1 + paper % 2]
]
"""Seven papers of unequal numbers of facets."""


@pytest.fixture(scope="module")
def precision() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_tuples(FACETS, names=["query", "task"])
    return pd.DataFrame(rng.random((len(FACETS), 4)), index, list("abcd"))


def test_values_are_pivoted_to_one_row_per_facet(precision: pd.DataFrame) -> None:
    long = precision.reset_index().melt(["query", "task"], var_name="run").assign(measure="MAP")
    both = pd.concat([long, long.assign(measure="nDCG", value=9.0)])
    assert claims.map_by_ranker(both).equals(precision.rename_axis(columns="run"))


def test_a_difference_is_that_of_means_over_facets(precision: pd.DataFrame) -> None:
    found = claims.mean_difference(precision[["a", "b"]], precision["c"], 0.5)
    gap = (precision["a"].mean() + precision["b"].mean()) / 2 - precision["c"].mean()
    assert found.estimate == pytest.approx(gap)
    assert (found.n, found.published) == (7, 0.5)


def test_an_interval_draws_papers_with_all_their_facets(precision: pd.DataFrame) -> None:
    found = claims.mean_difference(precision["a"], precision["b"])
    gap = precision["a"] - precision["b"]
    parts = [part.to_numpy() for _, part in gap.groupby(level="query")]
    rng = np.random.default_rng(1)
    drawn = [
        np.concatenate([parts[place] for place in rng.integers(0, 7, 7)]).mean()
        for _ in range(4000)
    ]
    assert [found.low, found.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)


def test_published_leads_are_means_over_the_four_tasks() -> None:
    rows = {row["model"]: row for row in PUBLISHED[1].to_dict("records")}
    tasks = ("Co-view", "Co-read", "Co-cite", "Cite")

    def mean(model: str) -> float:
        return sum(float(rows[model][f"{task} MAP"].rstrip("%")) for task in tasks) / 400

    lead = claims.published_lead(PUBLISHED[1], ["TILDE BERT", "TILDEv2 BERT"], [BM25_ROW])
    expected = (mean("TILDE BERT") + mean("TILDEv2 BERT")) / 2 - mean(BM25_ROW)
    assert lead == pytest.approx(expected)


# --- chance ---------------------------------------------------------------------------------------


def noise_beside_bm25() -> tuple[Candidates, pd.DataFrame]:
    """BM25 knows the grades, and the other rankers' scores are noise."""
    rng = np.random.default_rng(6)
    rows = [(task, query, f"d{place}") for query, task in FACETS for place in range(10)]
    scores = pd.DataFrame(rows, columns=PAIR)
    grades = scores.assign(grade=np.tile([2, 1, 0, 0, 2, 0, 0, 0, 3, 0], len(FACETS)))
    scores[BM25_ROW] = grades["grade"] + 3 * rng.random(len(scores))
    for column in ("a.1", "a.2", "b.1"):
        scores[column] = rng.random(len(scores))
    splits = []
    for query, task in FACETS:
        for fold in (0, 1):
            part = "test" if int(query[1:]) % 2 == fold else "dev"
            splits.append((task, f"fold{fold}", part, query))
    candidates = Candidates.from_scores(scores, grades, 2, BM25_ROW, [["a.1", "a.2"], ["b.1"]])
    return candidates, pd.DataFrame(splits, columns=["task", "fold", "part", "query"])


def test_an_oracle_gains_by_chance_alone() -> None:
    candidates, splits = noise_beside_bm25()
    curves, times = candidates.curves(), np.ones((1, len(candidates.facets)))
    _, gains = systems.gains(curves, systems.folds_of(candidates.facets, splits), times)
    assert gains.min() > 0.01
    for found, gain in zip(claims.gain_of_oracle(candidates, splits), gains[:, 0], strict=True):
        assert found.estimate < gain - 0.01
        assert result_of("thesis/2.4-oracle", found) != "supports"


def test_mixing_with_noise_does_not_help() -> None:
    first, second = claims.gain_of_mixing(*noise_beside_bm25(), [0.02, 0.03])
    assert [first.published, second.published] == [0.02, 0.03]
    for found in (first, second):
        assert found.n == 7
        assert result_of("thesis/2.3-together", found) != "supports"


# --- published cells ------------------------------------------------------------------------------


def test_marks_name_rows_and_ranges_of_rows() -> None:
    assert claims.marked_above("a-cgij") == set("abcgij")
    assert claims.marked_above("c") == {"c"}
    assert claims.marked_above("") == set()


def test_a_missing_mark_bounds_nothing() -> None:
    cells = published_numbers(PUBLISHED[2]).droplevel("model").filter(like="MAP")
    marks = printed_table("thesis/table-2.2-marks").set_index("row").filter(like="MAP")
    # Twice the difference has twice the standard error.
    bound = claims.from_marks(cells, marks, [("h", "f")])
    twice = claims.from_marks(2 * cells, marks, [("h", "f")])
    assert None not in (bound.low, twice.low)
    assert twice.low == pytest.approx(2 * np.float64(bound.low))
    with pytest.raises(ValueError, match="h − j, Co-read MAP: no mark"):
        claims.from_marks(cells, marks, [("h", "j")])


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30))
def test_bounds_of_the_mean_weight_are_true_of_every_list_of_weights(steps: list[int]) -> None:
    low, high = claims.alpha_bounds(steps.count(0), steps.count(10), len(steps))
    assert low - 1e-12 <= np.mean(steps) / 10 <= high + 1e-12


def test_a_changed_cell_breaks_the_relations_it_is_in() -> None:
    before = claims.published_checks(PUBLISHED).set_index("check")
    repeated = "rows of Table 2.1 repeated in Table 2.3"
    assert (before["cells"] == before["hold"]).all()
    changed = PUBLISHED[3].copy()
    changed.loc[1, "Cite MAP"] = "99.0%"  # TILDE alone
    after = claims.published_checks(PUBLISHED | {3: changed}).set_index("check")
    assert after.loc[repeated, "hold"] == before.loc[repeated, "hold"] - 1
    weights = PUBLISHED[4].copy()
    weights.loc[weights["statistic"] == "alpha average", "Cite MAP"] = "0.99"
    after = claims.published_checks(PUBLISHED | {4: weights}).set_index("check")
    assert after.loc["mean weight within what the counts allow (2.4)", "hold"] == 14


def cells_of(table: str, *rows: str) -> Iterator[list[str]]:
    """The cells of some rows of a published table, without csv's reader of the study."""
    path = project.root() / "data" / "published" / "thesis" / f"{table}.csv"
    with path.open(newline="") as file:
        by_row = {line[0]: line[2:] for line in csv.reader(file)}
    for row in rows:
        yield by_row[row]


def test_claims_on_published_cells_by_plain_differences() -> None:
    def row(table: str, letter: str) -> list[float]:
        [cells] = cells_of(table, letter)
        return [float(cell.rstrip("%")) / (100 if "%" in cell else 1) for cell in cells]

    def minus(table: str, first: str, second: str) -> list[float]:
        return [x - y for x, y in zip(row(table, first), row(table, second), strict=True)]

    pairs = {
        "2.1-cross-encoder": [("k", design) for design in "cdefghij"],
        "2.1-v2-above": [("f", "c")],
        "2.1-scientific": [("e", "c"), ("h", "f")],
        "2.1-scientific-tilde": [("e", "f"), ("e", "h")],
        "2.1-expansion": [("e", "i"), ("e", "j")],
        "2.1-zero-shot": [("d", "c"), ("d", "e"), ("g", "f"), ("g", "h")],
    }
    expected: dict[str, list[float]] = {}
    for claim, rows in pairs.items():
        expected[claim] = []
        for first, second in rows:
            expected[claim] += minus("table-2.1", first, second)
    for claim, table, first, others in (("2.2-stm2-best", "table-2.2", "h", "abcdefgij"),):
        leads = [minus(table, first, other) for other in others]
        expected[claim] = [min(column) for column in zip(*leads, strict=True)]
    of_designs = zip(minus("table-2.1", "e", "c"), minus("table-2.1", "h", "f"), strict=True)
    gains = [first - second for first, second in of_designs]
    expected["2.1-scientific-tilde"] = gains + expected["2.1-scientific-tilde"]
    ahead = zip(minus("table-2.1", "a", "c"), minus("table-2.1", "a", "f"), strict=True)
    bm25 = [min(pair) for pair in ahead]
    expected["2.1-most-tasks"] = [min(bm25[i : i + 2]) for i in range(0, 8, 2)]
    for claim, differences in expected.items():
        parts = COMMITTED[f"thesis/{claim}"]["published numbers"].values()
        assert [part.estimate for part in parts] == pytest.approx(differences), claim
    # The sentence that has no hedge is not true of each cell.
    assert sum(difference <= 0 for difference in expected["2.1-v2-above"]) == 1


def test_marks_of_mixtures_by_hand() -> None:
    shares, agreement = [], []
    exceptions = {("e", "Co-view nDCG"), ("e", "Cite MAP"), ("e", "Cite nDCG")}
    for row, rankers in (("d", "ab"), ("e", "ac")):
        marks = printed_table("thesis/table-2.3-marks").set_index("row").loc[row]
        for cell, letters in marks.drop("model").items():
            shares.append(sum(ranker in letters for ranker in rankers) / 2)
            agreement.append(float((shares[-1] < 1) == ((row, cell) in exceptions)))
    for claim, values in (("2.3-significant", shares), ("2.3-exceptions", agreement)):
        parts = COMMITTED[f"thesis/{claim}"]["published marks, Table 2.3"].values()
        assert [part.estimate for part in parts] == values
    assert shares.count(1.0) == 13


# --- again, by a plain way ------------------------------------------------------------------------

FACTS = project.root() / "data" / "facts" / "query_by_example"
RECORDED = project.root() / "data" / "outputs" / "query_by_example" / "links" / "scores.csv.gz"
HERE = "CISI and CACM"

Facet = tuple[str, str]
ByFacet = dict[Facet, float]


class Again:
    """Average precision of rankings of the candidates of CISI and CACM, a number a query."""

    def __init__(self) -> None:
        self.grade: dict[Facet, dict[str, int]] = defaultdict(dict)
        judgements = pd.read_parquet(FACTS / "links_judgements.parquet")
        for task, query, document, grade in judgements.itertuples(index=False, name=None):
            self.grade[task, query][document] = grade
        self.fold_of: dict[Facet, str] = {}
        with (FACTS / "links_splits.csv").open() as file:
            for row in csv.DictReader(file):
                if row["part"] == "test":
                    self.fold_of[row["task"], row["query"]] = row["fold"]
        self.recorded: dict[str, dict[Facet, dict[str, float]]] = defaultdict(dict)
        with gzip.open(RECORDED, "rt") as file:
            for row in csv.DictReader(file):
                facet = row.pop("task"), row.pop("query")
                document = row.pop("document")
                for column, text in row.items():
                    self.recorded[column].setdefault(facet, {})[document] = float(text)
        self.lexical = self._lexical()

    def _lexical(self) -> dict[str, dict[tuple[str, str], float]]:
        """Scores of BM25 and the language model by query and document, for whole words."""
        lengths: dict[tuple[str, str], int] = {}
        table = pd.read_parquet(FACTS / "links_paper_lengths.parquet")
        candidates = {document for grades in self.grade.values() for document in grades}
        for row in table.to_dict("records"):
            if row["document"] in candidates:
                for analyser in ("SA", "STM1", "STM2"):
                    lengths[analyser, row["document"]] = row[analyser]
        totals: dict[str, int] = defaultdict(int)
        for (analyser, _), length in lengths.items():
            totals[analyser] += length
        terms_of: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        documents: dict[tuple[str, int], int] = defaultdict(int)
        occurrences: dict[tuple[str, int], int] = defaultdict(int)
        counts = pd.read_parquet(FACTS / "links_term_counts.parquet")
        for analyser, document, term, count in counts.itertuples(index=False, name=None):
            terms_of[analyser, document][term] = count
            if document in candidates:
                documents[analyser, term] += 1
                occurrences[analyser, term] += count

        n = len(candidates)
        scores: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
        judged = {(query, paper) for (_, query), grades in self.grade.items() for paper in grades}
        for analyser, total in totals.items():
            for query, document in judged:
                length = lengths[analyser, document]
                of_document = terms_of[analyser, document]
                bm25 = language = 0.0
                for term, in_query in terms_of[analyser, query].items():
                    count = of_document.get(term, 0)
                    holding = documents[analyser, term]
                    rarity = math.log(1 + (n - holding + 0.5) / (holding + 0.5))
                    saturation = 2.75 * length / (total / n)  # b is 1
                    bm25 += in_query * rarity * count * 3.75 / (count + saturation)
                    share = (occurrences[analyser, term] + 1) / (total + 1)
                    language += in_query * math.log(1 + 0.9 * count / length / (0.1 * share))
                scores[f"BM25 {analyser}"][query, document] = bm25
                scores[f"LM {analyser}"][query, document] = language
        return scores

    def scores(self, name: str) -> dict[Facet, dict[str, float]]:
        if name in self.recorded:
            return self.recorded[name]
        sums = self.lexical[name]
        return {
            facet: {document: sums[facet[1], document] for document in grades}
            for facet, grades in self.grade.items()
        }

    def precision(self, facet: Facet, scores: dict[str, float]) -> float:
        """Average precision, ties by document, descending."""
        keys = [(np.float32(score), document) for document, score in scores.items()]
        found, total = 0, 0.0
        for rank, (_, document) in enumerate(sorted(keys, reverse=True), start=1):
            if self.grade[facet][document] == 1:
                found += 1
                total += found / rank
        return total / found

    def of(self, names: Iterable[str]) -> ByFacet:
        """Mean over seeds."""
        columns = [self.scores(name) for name in names]
        return {
            facet: sum(self.precision(facet, column[facet]) for column in columns) / len(columns)
            for facet in self.grade
        }

    def seeds(self, name: str) -> list[str]:
        return [column for column in self.recorded if column.rpartition(".")[0] == name]


@pytest.fixture(scope="module")
def again() -> Again:
    return Again()


def by_paper(facets: Iterable[Facet]) -> list[list[Facet]]:
    """Facets of each paper, which are drawn together."""
    papers: dict[str, list[Facet]] = defaultdict(list)
    for facet in sorted(facets, key=lambda facet: facet[1]):
        papers[facet[1]].append(facet)
    return list(papers.values())


def ends(values: Iterable[float]) -> tuple[float, float]:
    """Ends of the percentile interval of what is drawn."""
    drawn = sorted(values)
    return drawn[round(0.025 * len(drawn))], drawn[round(0.975 * len(drawn))]


def mean_with_ends(values: ByFacet) -> tuple[float, tuple[float, float]]:
    """Mean over facets, and the ends of its interval from 1,000 draws of papers."""
    papers = by_paper(values)
    sums = np.array([sum(values[facet] for facet in paper) for paper in papers])
    sizes = np.array([len(paper) for paper in papers])
    drawn = np.random.default_rng(11).integers(len(papers), size=(1000, len(papers)))
    return sums.sum() / sizes.sum(), ends(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))


def minus(one: ByFacet, other: ByFacet) -> ByFacet:
    return {facet: value - other[facet] for facet, value in one.items()}


def averaged(many: Sequence[ByFacet]) -> ByFacet:
    return {facet: sum(each[facet] for each in many) / len(many) for facet in many[0]}


def mean(values: ByFacet, facets: Iterable[Facet]) -> float:
    chosen = [values[facet] for facet in facets]
    return sum(chosen) / len(chosen)


@pytest.fixture(scope="module")
def lexical(again: Again) -> dict[str, ByFacet]:
    analysers = ("SA", "STM1", "STM2", "BERT-Token", "SciBERT-Token")
    names = [f"{model} {analyser}" for model in ("LM", "BM25") for analyser in analysers]
    return {name: again.of([name]) for name in names}


def test_the_best_lexical_ranker(lexical: dict[str, ByFacet]) -> None:
    parts = COMMITTED["thesis/2.2-stm2-best"][HERE]
    assert set(parts) == set(lexical) - {"BM25 STM2"}
    for name, part in parts.items():
        alike(part, *mean_with_ends(minus(lexical["BM25 STM2"], lexical[name])))


def test_bm25_above_the_language_model(lexical: dict[str, ByFacet]) -> None:
    leads = []
    for name in lexical:
        if name.startswith("BM25"):
            leads.append(minus(lexical[name], lexical[name.replace("BM25", "LM")]))
    assert len(leads) == 5
    alike(COMMITTED["thesis/2.2-bm25-above"][HERE][""], *mean_with_ends(averaged(leads)))


@pytest.mark.parametrize(
    ("claim", "better", "worse"),
    [("2.2-bm25-above", "fghij", "abcde"), ("2.2-control-stems", "h", "f")],
)
def test_marks_bound_standard_errors(claim: str, better: str, worse: str) -> None:
    """Every mark: p below 0.05 after Bonferroni's correction for 45 pairs, 1,000 queries."""
    cells: dict[str, dict[str, list[str]]] = {}
    for name in ("table-2.2", "table-2.2-marks"):
        cells[name] = {}
        with project.data("published", "thesis", f"{name}.csv").open() as file:
            for row in csv.DictReader(file):
                cells[name][row["row"]] = [row[key] for key in row if "MAP" in key]
    differences = []
    for first, second in zip(better, worse, strict=True):
        texts = zip(cells["table-2.2"][first], cells["table-2.2"][second], strict=True)
        differences += [(float(x.rstrip("%")) - float(y.rstrip("%"))) / 100 for x, y in texts]
        # Each mark begins with a range of letters from a.
        for marks in cells["table-2.2-marks"][first]:
            assert marks.startswith("a-")
            assert second <= marks[2]
    estimate = sum(differences) / len(differences)
    half = 1.959964 * estimate / stats.t.isf(0.05 / 90, 999)
    part = COMMITTED[f"thesis/{claim}"]["published marks, Table 2.2"][""]
    assert (part.estimate, part.low, part.high) == pytest.approx(
        (estimate, estimate - half, estimate + half)
    )


def test_word_pieces(lexical: dict[str, ByFacet]) -> None:
    pieces = averaged([values for name, values in lexical.items() if "Token" in name])
    words = averaged([values for name, values in lexical.items() if "Token" not in name])
    part = COMMITTED["thesis/2.2-two-points"][HERE][""]
    alike(part, *mean_with_ends(minus(pieces, words)))


def test_the_cross_encoder_and_its_control(again: Again, lexical: dict[str, ByFacet]) -> None:
    cross_encoder = again.of(again.seeds("cross_tiny"))
    compared = {
        "TILDE": (again.of(again.seeds("tilde_tiny")), "2.1-cross-encoder"),
        "TILDEv2": (again.of(again.seeds("tildev2_tiny")), "2.1-cross-encoder"),
        "": (lexical["BM25 STM2"], "2.1-control-cross-encoder"),
    }
    for part, (other, claim) in compared.items():
        found = mean_with_ends(minus(cross_encoder, other))
        alike(COMMITTED[f"thesis/{claim}"][HERE][part], *found)


def standardised(scores: dict[str, float]) -> dict[str, float]:
    middle = sum(scores.values()) / len(scores)
    spread = math.sqrt(sum((score - middle) ** 2 for score in scores.values()) / len(scores))
    return {document: (score - middle) / spread for document, score in scores.items()}


@pytest.mark.parametrize(
    ("part", "ranker"),
    [
        ("TILDE MiniLM", "tilde_minilm"),
        ("TILDEv2 MiniLM", "tildev2_minilm"),
        ("TILDE tiny", "tilde_tiny"),
        ("TILDEv2 tiny", "tildev2_tiny"),
    ],
)
def test_mixing_by_one_weight(again: Again, part: str, ranker: str) -> None:
    bm25 = {facet: standardised(scores) for facet, scores in again.scores("BM25 STM2").items()}
    curve: list[ByFacet] = [defaultdict(float) for _ in range(11)]
    columns = again.seeds(ranker)
    for column in columns:
        for facet, scores in again.scores(column).items():
            other = standardised(scores)
            for step in range(11):
                mixed = {
                    document: step / 10 * bm25[facet][document] + (1 - step / 10) * score
                    for document, score in other.items()
                }
                curve[step][facet] += again.precision(facet, mixed) / len(columns)

    def gain(facets: Iterable[Facet]) -> float:
        drawn = list(facets)
        by_task: dict[str, list[Facet]] = defaultdict(list)
        for facet in drawn:
            by_task[facet[0]].append(facet)
        tuned = 0.0
        for of_task in by_task.values():
            for fold in ("fold1", "fold2"):
                dev = [facet for facet in of_task if again.fold_of[facet] != fold]
                test = [facet for facet in of_task if again.fold_of[facet] == fold]
                sums = [round(sum(values[facet] for facet in dev), 12) for values in curve]
                tuned += sum(curve[sums.index(max(sums))][facet] for facet in test)
        return tuned / len(drawn) - max(mean(curve[0], drawn), mean(curve[10], drawn))

    papers, draw = by_paper(again.grade), random.Random(11)  # noqa: S311
    gains = []
    for _ in range(400):
        drawn = draw.choices(papers, k=len(papers))
        gains.append(gain([facet for paper in drawn for facet in paper]))
    alike(COMMITTED["thesis/2.3-together"][HERE][part], gain(again.grade), ends(gains))


@pytest.mark.upstream  # half of the notebook is run
def test_recorded_word_pieces_go_with_no_other_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIANT_VARIABLE, "k1=1.2, test=wilcoxon")
    parameters = 'k1, test = 1.2, "wilcoxon"'
    other, names = evidence_of(
        "thesis_ch2_query_by_example", tmp_path, parameters, until="thesis/2.2-two-points"
    )
    lexical = set(names["table_2"]["model"])
    assert {"BM25 STM2", "LM STM2", "LM BERT-Token"} <= lexical
    assert not [row for row in lexical if re.fullmatch("BM25 .*-Token", row)]
    # BM25 over pieces is missing, so that three pairs of rankers have the same terms.
    assert len([row for row in lexical if row.startswith("BM25 ")]) == 3
    # Pieces are compared with words by the same model.
    means = names["values"].query("measure == 'MAP'").groupby("run")["value"].mean()
    pieces = means[["LM BERT-Token", "LM domain-Token"]].mean()
    words = means[["LM SA", "LM STM1", "LM STM2"]].mean()
    part = other["thesis/2.2-two-points"][HERE][""]
    assert part.estimate == pytest.approx(pieces - words)
    first = names["comparisons"].iloc[0]
    task, measure = first["column"].rsplit(" ", 1)
    is_column = (names["values"]["task"] == task) & (names["values"]["measure"] == measure)
    by_run = names["values"][is_column].pivot_table(index="query", columns="run", values="value")
    # Equal differences are ties, whatever their last bits.
    differences = (by_run[first["better"]] - by_run[first["worse"]]).round(9)
    assert first["p"] == pytest.approx(stats.wilcoxon(differences)[1])


def test_tables_2_2_to_2_4_have_the_values_of_a_plain_sweep(again: Again) -> None:
    """BM25; and TILDE's mixture: the weight tuned on each fold, and the best of each query."""
    folder = project.root() / "reports" / "thesis_ch2_query_by_example" / "tables"
    names = {"cisicocite": "CISI co-cite", "cacmcocite": "CACM co-cite", "cacmcite": "CACM cite"}
    bm25 = again.scores("BM25 STM2")
    columns = [again.scores(column) for column in again.seeds("tilde_minilm")]
    sweep: dict[Facet, list[float]] = {}
    for facet in again.grade:
        first = standardised(bm25[facet])
        others = [standardised(column[facet]) for column in columns]
        sweep[facet] = []
        for step in range(11):
            alpha, total = step / 10, 0.0
            for other in others:
                mixed = {name: alpha * first[name] + (1 - alpha) * other[name] for name in first}
                total += again.precision(facet, mixed)
            sweep[facet].append(total / len(others))

    tables = {}
    for table in ("thesis-table-2.2", "thesis-table-2.3", "thesis-table-2.4", "tuned_weights"):
        tables[table] = pd.read_csv(folder / f"{table}.csv")
    by_model = {name: tables[f"thesis-table-{name}"].set_index("model") for name in ("2.2", "2.3")}
    weights = tables["tuned_weights"].query("measure == 'MAP'").set_index("run")
    oracle = tables["thesis-table-2.4"].set_index(["fusion", "statistic"])
    for task, name in names.items():
        facets = [facet for facet in again.grade if facet[0] == task]
        tuned = 0.0
        for fold in ("fold1", "fold2"):
            dev = [sweep[facet] for facet in facets if again.fold_of[facet] != fold]
            sums = [round(sum(values), 12) for values in zip(*dev, strict=True)]
            place = sums.index(max(sums))
            column = f"{name}, fold {fold[-1]}"
            assert weights.loc["BM25 STM2 + TILDE MiniLM", column] == place / 10
            tuned += sum(sweep[facet][place] for facet in facets if again.fold_of[facet] == fold)
        column, n = f"{name} MAP", len(facets)
        alone = sum(again.precision(facet, bm25[facet]) for facet in facets) / n
        assert by_model["2.2"].loc["BM25 STM2", column] == pytest.approx(alone, abs=1e-9)
        mixture = by_model["2.3"].loc["BM25 STM2 + TILDE MiniLM", column]
        assert mixture == pytest.approx(tuned / n, abs=1e-9)
        best = float(oracle.loc[("BM25 + TILDE MiniLM", "ranking quality"), column])
        assert best == pytest.approx(sum(max(sweep[facet]) for facet in facets) / n, abs=1e-9)
    at_0 = sum(values.index(max(values)) == 0 for values in sweep.values())
    statistic = ("BM25 + TILDE MiniLM", "queries with optimal alpha 0")
    assert float(oracle.loc[statistic, "All MAP"]) == at_0
