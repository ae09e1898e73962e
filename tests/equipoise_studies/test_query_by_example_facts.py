"""The facts of chapter 2, and tables of its report followed from them by plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import zscore

from equipoise_compendium import project
from equipoise_compendium.facts import read
from equipoise_studies.query_by_example import facts, term_tables
from equipoise_studies.query_by_example.data import PAIR, QueryByExample, task_name
from equipoise_studies.query_by_example.study import Study
from equipoise_studies.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise_studies.systems.tokenisation import ANALYSERS

TABLES = project.root() / "reports" / "thesis_ch2_query_by_example" / "tables"
ALPHAS = [step / 10 for step in range(11)]


@pytest.fixture(scope="module", params=facts.COMMITTED)
def any_collection(request: pytest.FixtureRequest) -> facts.CollectionFacts:
    return facts.committed(request.param)


@pytest.fixture(scope="module")
def collection() -> facts.CollectionFacts:
    """The one that the report's tables are of."""
    return facts.committed("links")


def test_facts_are_those_of_the_published_collection() -> None:
    collection = facts.committed()
    queries = collection.judgements.groupby("task")["query"].nunique()
    assert queries.to_dict() == {"background": 16, "method": 17, "result": 17}
    assert len(collection.paper_lengths) == 4205
    tested = collection.splits[collection.splits["part"] == "test"]
    assert tested.groupby("task")["query"].nunique().equals(queries)
    assert not tested.duplicated(["task", "query"]).any()
    assert facts.specter()[PAIR].equals(collection.judgements[PAIR])


@pytest.mark.parametrize("name", facts.TABLES)
def test_facts_are_ids_and_numbers_without_a_text(name: str) -> None:
    table = read(facts.STUDY, name)
    for column in table.select_dtypes("str"):
        assert table[column].str.fullmatch(r"[A-Za-z0-9]{1,12}").all(), column


def test_facts_fit_together(any_collection: facts.CollectionFacts) -> None:
    collection = any_collection
    judged = collection.judgements[["query", "document"]].drop_duplicates()
    shared = collection.shared_terms
    assert len(shared.merge(judged)) == len(shared)  # of judged pairs only
    assert not shared.duplicated(["analyser", "query", "document", "term"]).any()
    known = shared.merge(collection.term_statistics, on=["analyser", "term"])
    assert len(known) == len(shared)
    assert (known["in_document"] <= known["occurrences"]).all()
    for analyser, terms in known.groupby("analyser"):
        lengths = collection.paper_lengths.set_index("document")[analyser]
        for paper, count in (("query", "in_query"), ("document", "in_document")):
            sums = terms.groupby(["query", "document"])[count].sum().reset_index()
            assert (sums[count] <= sums[paper].map(lengths)).all()


def test_counted_facts_give_the_scores_of_the_kernels() -> None:
    """Sums over shared terms, as in the notebook, are BM25 and the language model over texts."""
    texts = {
        "1": "graphs of graphs, ranked",
        "2": "ranking a graph of users",
        "3": "users rank users by users",
        "4": "nothing alike",
    }
    papers = pd.DataFrame({"document": list(texts), "title": list(texts.values()), "abstract": ""})
    judged = [("t", "1", "2", 1), ("t", "1", "3", 0), ("t", "2", "3", 1), ("t", "2", "4", 0)]
    judgements = pd.DataFrame(judged, columns=[*PAIR, "grade"])
    splits = pd.DataFrame({"task": "t", "fold": "1", "part": "test", "query": ["1", "2"]})
    dataset = QueryByExample(papers, judgements, splits)
    lengths = term_tables.paper_lengths(dataset).set_index("document")
    shared = term_tables.shared_terms(dataset)
    shared = shared.merge(term_tables.term_statistics(dataset), on=["analyser", "term"])
    candidates = ["2", "3", "4"]
    for analyser, tokenise in ANALYSERS.items():
        kernel = Collection.from_texts({name: texts[name] for name in candidates}, tokenise)
        length = lengths.loc[candidates, analyser]
        for query, document in dataset.pairs.itertuples(index=False):
            of_pair = (shared["query"] == query) & (shared["document"] == document)
            rows = shared[of_pair & (shared["analyser"] == analyser)]
            lexical, language = 0.0, 0.0
            for row in rows.itertuples():
                rarity = math.log1p((3 - row.documents + 0.5) / (row.documents + 0.5))
                room = 1.2 * (0.25 + 0.75 * length[document] / length.mean())
                lexical += row.in_query * rarity * row.in_document * 2.2 / (row.in_document + room)
                share = (row.occurrences + 1) / (length.sum() + 1)
                odds = 0.7 * row.in_document / length[document] / (0.3 * share)
                language += row.in_query * math.log1p(odds)
            place = candidates.index(document)
            asked = kernel.queries([texts[query]])
            assert lexical == pytest.approx(bm25(kernel, asked, k1=1.2, b=0.75)[0, place])
            likely = jelinek_mercer(kernel, asked, smoothing=0.3)[0, place]
            assert language == pytest.approx(likely)


def average_precision(scores: pd.Series, pairs: pd.DataFrame) -> float:
    """Of linked papers; ties by document id, descending, scores in single precision."""
    order = sorted(
        zip(scores.astype(np.float32), pairs["document"], pairs["grade"], strict=True), reverse=True
    )
    precisions: list[float] = []
    for rank, (_, _, grade) in enumerate(order, start=1):
        if grade >= 1:
            precisions.append((len(precisions) + 1) / rank)
    return float(np.mean(precisions))


def bm25_by_hand(collection: facts.CollectionFacts, analyser: str) -> dict[tuple[str, str], float]:
    """BM25 of the thesis's parameters, k1 = 2.75 and b = 1, of each pair."""
    lengths = collection.paper_lengths.set_index("document")[analyser]
    lengths = lengths[sorted(set(collection.judgements["document"]))]
    terms = collection.shared_terms[collection.shared_terms["analyser"] == analyser]
    terms = terms.merge(collection.term_statistics, on=["analyser", "term"])
    sums: dict[tuple[str, str], float] = {}
    for row in terms.itertuples():
        rarity = math.log1p((len(lengths) - row.documents + 0.5) / (row.documents + 0.5))
        room = 2.75 * lengths[row.document] / lengths.mean()
        weight = row.in_query * rarity * row.in_document * 3.75 / (row.in_document + room)
        pair = (row.query, row.document)
        sums[pair] = sums.get(pair, 0.0) + weight
    return sums


@pytest.fixture(scope="module")
def scored(collection: facts.CollectionFacts) -> pd.DataFrame:
    """Judged pairs with the recorded scores, and BM25 STM2 by hand."""
    scores = Study.read("replica_links").scores(collection.judgements).merge(collection.judgements)
    by_hand = bm25_by_hand(collection, "STM2")
    pairs = zip(scores["query"], scores["document"], strict=True)
    return scores.assign(bm25=[by_hand.get(pair, 0.0) for pair in pairs])


def means_of(precisions: dict[tuple[str, str], float]) -> Iterable[tuple[str, float]]:
    """The mean over the queries of each task."""
    by_task: dict[str, list[float]] = {}
    for (task, _), precision in precisions.items():
        by_task.setdefault(task, []).append(precision)
    return [(task, float(np.mean(values))) for task, values in by_task.items()]


def test_table_2_2_has_the_map_of_bm25_by_hand(scored: pd.DataFrame) -> None:
    table = pd.read_csv(TABLES / "thesis-table-2.2.csv").set_index("model")
    precisions = {}
    for key, pairs in scored.groupby(["task", "query"]):
        precisions[key] = average_precision(pairs["bm25"], pairs)
    for task, mean in means_of(precisions):
        column = f"{task_name(task)} MAP"
        assert table.loc["BM25 STM2", column] == pytest.approx(mean, abs=1e-9)


def test_tables_2_3_and_2_4_have_the_weights_and_maps_of_a_plain_sweep(
    collection: facts.CollectionFacts, scored: pd.DataFrame
) -> None:
    """TILDE's mixture: the weight tuned on each fold, and the best one of each query."""
    columns = Study.read("replica_links").columns("tilde_minilm")
    sweep: dict[tuple[str, str], list[float]] = {}
    for key, pairs in scored.groupby(["task", "query"]):
        sweep[key] = []
        for alpha in ALPHAS:
            of_seeds = []
            for column in columns:
                tilde = zscore(pairs[column])
                mixed = alpha * zscore(pairs["bm25"]) + (1 - alpha) * tilde
                of_seeds.append(average_precision(mixed, pairs))
            sweep[key].append(float(np.mean(of_seeds)))

    tuned: dict[tuple[str, str], float] = {}
    weights = pd.read_csv(TABLES / "tuned_weights.csv").set_index(["run", "measure"])
    mixture = "BM25 STM2 + TILDE MiniLM"
    for (task, fold), split in collection.splits.groupby(["task", "fold"]):
        dev = [sweep[task, query] for query in split.loc[split["part"] == "dev", "query"]]
        place = int(np.mean(dev, axis=0).argmax())
        column = f"{task_name(task)}, fold {fold[-1]}"
        assert weights.loc[(mixture, "MAP"), column] == ALPHAS[place]
        for query in split.loc[split["part"] == "test", "query"]:
            tuned[task, query] = sweep[task, query][place]
    table = pd.read_csv(TABLES / "thesis-table-2.3.csv").set_index("model")
    for task, mean in means_of(tuned):
        printed = table.loc[mixture, f"{task_name(task)} MAP"]
        assert printed == pytest.approx(mean, abs=1e-9)

    best = {key: max(values) for key, values in sweep.items()}
    oracle = pd.read_csv(TABLES / "thesis-table-2.4.csv").set_index(["fusion", "statistic"])
    for task, mean in means_of(best):
        printed = oracle.loc[("BM25 + TILDE MiniLM", "ranking quality"), f"{task_name(task)} MAP"]
        assert float(printed) == pytest.approx(mean, abs=1e-9)
    at_0 = [task for (task, _), values in sweep.items() if values.index(max(values)) == 0]
    statistic = ("BM25 + TILDE MiniLM", "queries with optimal alpha 0")
    assert float(oracle.loc[statistic, "All MAP"]) == len(at_0)
