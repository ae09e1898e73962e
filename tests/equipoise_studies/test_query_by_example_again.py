"""Claims of chapter 2 computed again from the facts, by loops that share no code with the study."""

import csv
import gzip
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise_compendium import project
from equipoise_compendium.provenance import VARIANT_VARIABLE
from notebook_evidence import alike, committed_evidence, evidence_of

FACTS = project.root() / "data" / "facts" / "query_by_example"
RECORDED = project.root() / "data" / "outputs" / "query_by_example_links" / "scores.csv.gz"
PUBLISHED = project.root() / "data" / "published" / "thesis"
HERE = "CISI and CACM"
RESAMPLES = 1000
COMMITTED = committed_evidence("thesis_ch2_query_by_example")

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


def resampled(
    facets: Iterable[Facet], statistic: Callable[[list[Facet]], float]
) -> tuple[float, float]:
    """Ends of the percentile interval, papers drawn with all of their facets."""
    by_paper: dict[str, list[Facet]] = defaultdict(list)
    for facet in facets:
        by_paper[facet[1]].append(facet)
    papers, draw = sorted(by_paper), random.Random(11)  # noqa: S311
    values = []
    for _ in range(RESAMPLES):
        drawn = [draw.choice(papers) for _ in papers]
        values.append(statistic([facet for paper in drawn for facet in by_paper[paper]]))
    values.sort()
    return values[round(0.025 * RESAMPLES)], values[round(0.975 * RESAMPLES)]


def mean(values: ByFacet, facets: Iterable[Facet]) -> float:
    chosen = [values[facet] for facet in facets]
    return sum(chosen) / len(chosen)


@pytest.fixture(scope="module")
def lexical(again: Again) -> dict[str, ByFacet]:
    analysers = ("SA", "STM1", "STM2", "BERT-Token", "SciBERT-Token")
    names = [f"{model} {analyser}" for model in ("LM", "BM25") for analyser in analysers]
    return {name: again.of([name]) for name in names}


def test_the_best_lexical_ranker(again: Again, lexical: dict[str, ByFacet]) -> None:
    parts = COMMITTED["thesis/2.2-stm2-best"][HERE]
    assert set(parts) == set(lexical) - {"BM25 STM2"}
    for name, part in parts.items():

        def lead(facets: Iterable[Facet], other: str = name) -> float:
            drawn = list(facets)
            return mean(lexical["BM25 STM2"], drawn) - mean(lexical[other], drawn)

        alike(part, lead(again.grade), resampled(again.grade, lead))


def test_bm25_above_the_language_model(again: Again, lexical: dict[str, ByFacet]) -> None:
    def lead(facets: Iterable[Facet]) -> float:
        drawn = list(facets)
        leads = [
            mean(lexical[name], drawn) - mean(lexical[name.replace("BM25", "LM")], drawn)
            for name in lexical
            if name.startswith("BM25")
        ]
        return sum(leads) / 5

    part = COMMITTED["thesis/2.2-bm25-above"][HERE][""]
    alike(part, lead(again.grade), resampled(again.grade, lead))


@pytest.mark.parametrize(
    ("claim", "better", "worse"),
    [("2.2-bm25-above", "fghij", "abcde"), ("2.2-control-stems", "h", "f")],
)
def test_marks_bound_standard_errors(claim: str, better: str, worse: str) -> None:
    """Every mark: p below 0.05 after Bonferroni's correction for 45 pairs, 1,000 queries."""
    cells: dict[str, dict[str, list[str]]] = {}
    for name in ("table-2.2", "table-2.2-marks"):
        cells[name] = {}
        with (PUBLISHED / f"{name}.csv").open() as file:
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


def test_word_pieces(again: Again, lexical: dict[str, ByFacet]) -> None:
    def lead(facets: Iterable[Facet]) -> float:
        drawn = list(facets)
        pieces = [mean(lexical[name], drawn) for name in lexical if "Token" in name]
        words = [mean(lexical[name], drawn) for name in lexical if "Token" not in name]
        return sum(pieces) / 4 - sum(words) / 6

    part = COMMITTED["thesis/2.2-two-points"][HERE][""]
    alike(part, lead(again.grade), resampled(again.grade, lead))


def test_the_cross_encoder_and_its_control(again: Again, lexical: dict[str, ByFacet]) -> None:
    cross_encoder = again.of(again.seeds("cross_tiny"))
    compared = {
        "TILDE": (again.of(again.seeds("tilde_tiny")), "2.1-cross-encoder"),
        "TILDEv2": (again.of(again.seeds("tildev2_tiny")), "2.1-cross-encoder"),
        "": (lexical["BM25 STM2"], "2.1-control-cross-encoder"),
    }
    for part, (other, claim) in compared.items():

        def lead(facets: Iterable[Facet], other: ByFacet = other) -> float:
            drawn = list(facets)
            return mean(cross_encoder, drawn) - mean(other, drawn)

        ends = resampled(again.grade, lead)
        alike(COMMITTED[f"thesis/{claim}"][HERE][part], lead(again.grade), ends)


def standardised(scores: dict[str, float]) -> dict[str, float]:
    middle = sum(scores.values()) / len(scores)
    spread = math.sqrt(sum((score - middle) ** 2 for score in scores.values()) / len(scores))
    return {document: (score - middle) / spread for document, score in scores.items()}


@pytest.mark.parametrize(
    ("design", "ranker"), [("TILDE", "tilde_minilm"), ("TILDEv2", "tildev2_minilm")]
)
def test_mixing_by_one_weight(again: Again, design: str, ranker: str) -> None:
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

    part = COMMITTED["thesis/2.3-together"][HERE][design]
    alike(part, gain(again.grade), resampled(again.grade, gain))


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
