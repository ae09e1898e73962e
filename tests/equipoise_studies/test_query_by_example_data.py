"""Chapter 2: configs, the committed derived data, recorded scores, and texts."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from equipoise_compendium import project, registry
from equipoise_compendium.printed import printed_table
from equipoise_studies.query_by_example import data, texts
from equipoise_studies.query_by_example.data import PAIR, read_derived, read_study
from equipoise_studies.query_by_example.systems import DerivedData
from upstream import skip_without

CONFIGS = project.root() / "data" / "studies" / "query_by_example"
DERIVED = project.root() / "data" / "facts" / "query_by_example"


# --- configs --------------------------------------------------------------------------------------


def test_the_text_of_a_paper_is_joined_as_the_config_says() -> None:
    row = {"document": "p", "title": "On graphs", "abstract": "Trees_2: cut"}
    papers = pd.DataFrame([row])
    assert texts.text_of(papers)["p"] == "On graphs Trees_2: cut"
    order = read_study("thesis").collection.text
    # A title follows the last word of an abstract that ends without a sign.
    assert texts.text_of(papers, order)["p"] == "Trees_2  cutOn graphs"


def test_committed_configs_are_read() -> None:
    published = printed_table("thesis/table-2.1")
    thesis = read_study("thesis")
    assert set(thesis.rows(published)) == set(published["model"])
    assert thesis.systems["tildev2_scibert_200"].terms == 200
    assert thesis.outputs == CONFIGS / "recorded"
    replica = read_study("replica_links")
    assert replica.derived == DERIVED
    assert replica.name_of("BM25 SciBERT-Token") == "BM25 domain-Token"
    assert replica.name_of("Cross-Encoder SciBERT") == ""
    assert replica.columns("TILDE tiny") == ["tilde_tiny.1", "tilde_tiny.2", "tilde_tiny.3"]
    mixture = pd.DataFrame({"model": ["BM25 STM2 + TILDE SciBERT", "BM25 STM2 + nothing"]})
    assert replica.rows(mixture) == {"BM25 STM2 + TILDE SciBERT": "BM25 STM2 + TILDE MiniLM"}
    names = replica.names_of_columns(["tilde_tiny.2", "BM25 STM2", "LM SciBERT-Token"])
    assert list(names.values()) == ["TILDE tiny", "BM25 STM2", "LM domain-Token"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("seads", [1], "seads: Extra inputs"),
        ("systems.tilde_tiny.modle", "x", "systems.tilde_tiny.modle: Extra inputs"),
        ("systems.tilde_tiny.kind", "bm25", "systems.tilde_tiny.kind: Input should be"),
        ("collection.trained_on", 1.5, "collection.trained_on: Input should be less than 1"),
        ("seeds", [], "seeds: Tuple should have at least 1 item"),
    ],
)
def test_a_wrong_setting_is_named(place: str, value: Any, message: str, tmp_path: Path) -> None:
    config = yaml.safe_load((CONFIGS / "replica.yaml").read_text())
    *above, name = place.split(".")
    part = config
    for step in above:
        part = part[step]
    part[name] = value
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_study(str(path))
    assert "mine.yaml" in str(caught.value)


# --- derived data ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["replica", "replica_links"])
def derived(request: pytest.FixtureRequest) -> DerivedData:
    return read_derived(read_study(request.param))


def test_derived_data_contain_no_text() -> None:
    files = [path for path in DERIVED.iterdir() if path.suffix in (".csv", ".parquet")]
    assert len(files) == 11
    for path in files:
        if path.name == "sources.csv":
            continue
        is_csv = path.suffix == ".csv"
        table = pd.read_csv(path, dtype=str) if is_csv else pd.read_parquet(path)
        for column in table.select_dtypes("str"):
            assert table[column].str.fullmatch(r"[A-Za-z0-9]{1,12}").all(), column


def test_derived_data_fit_together(derived: DerivedData) -> None:
    judged = derived.judgements[["query", "document"]].drop_duplicates()
    shared = derived.shared_terms
    assert len(shared.merge(judged)) == len(shared)  # of judged pairs only
    assert not shared.duplicated(["analyser", "query", "document", "term"]).any()
    known = shared.merge(derived.term_statistics, on=["analyser", "term"])
    assert len(known) == len(shared)
    assert (known["in_document"] <= known["occurrences"]).all()
    for analyser, terms in known.groupby("analyser"):
        lengths = derived.paper_lengths.set_index("document")[analyser]
        for paper, count in (("query", "in_query"), ("document", "in_document")):
            sums = terms.groupby(["query", "document"])[count].sum().reset_index()
            assert (sums[count] <= sums[paper].map(lengths)).all()


def test_a_query_is_tested_once_and_a_paper_of_links_is_in_one_fold(derived: DerivedData) -> None:
    tested = derived.splits[derived.splits["part"] == "test"]
    assert not tested.duplicated(["task", "query"]).any()
    queries = derived.judgements[["task", "query"]].drop_duplicates()
    assert len(tested.merge(queries)) == len(queries)
    tuned = derived.splits[derived.splits["part"] == "dev"]
    assert tested.merge(tuned, on=["task", "fold", "query"]).empty
    if len(queries) == 773:
        assert tested.groupby("query")["fold"].nunique().eq(1).all()


def test_queries_are_those_of_the_published_collections() -> None:
    queries = read_derived(read_study("replica")).judgements.groupby("task")["query"].nunique()
    assert queries.to_dict() == {"background": 16, "method": 17, "result": 17}
    links = read_derived(read_study("replica_links")).judgements
    queries = links.groupby("task")["query"].nunique()
    assert queries.to_dict() == {"cacmcite": 204, "cacmcocite": 289, "cisicocite": 280}
    by_query = links.groupby(["task", "query"])["grade"]
    assert by_query.size().eq(30).all()  # SciDocs's form
    assert by_query.sum().eq(5).all()


# --- recorded scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("config", ["replica", "replica_links"])
def test_recorded_scores_are_those_of_the_config(config: str) -> None:
    study = read_study(config)
    scores = data.read_scores(study, read_derived(study).judgements)
    assert np.isfinite(scores.drop(columns=PAIR).to_numpy()).all()
    assert (scores["tilde_minilm.1"] <= 0).all()  # a sum of logarithms of probabilities
    not_negative = scores.filter(regex="^(tildev2|BM25|LM)")
    assert (not_negative >= 0).all(axis=None)
    assert scores.filter(like="dense").abs().le(1.0).all(axis=None)
    recorded = json.loads((study.outputs / "record.json").read_text())["measured"]
    assert set(recorded) == {
        column
        for column in scores
        if column.partition(".")[0] in {name.partition(".")[0] for name in recorded}
    }


def test_scores_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    study = read_study("replica")
    judgements = read_derived(study).judgements
    full = pd.read_csv(study.outputs / "scores.csv.gz", dtype=dict.fromkeys(PAIR, str))
    moved = study.model_copy(update={"outputs": tmp_path})
    full.sample(frac=1, random_state=0).to_csv(tmp_path / "scores.csv.gz", index=False)
    scores = data.read_scores(moved, judgements)
    assert scores[PAIR].equals(judgements[PAIR])
    assert {"random.5", "specter.1"} <= set(scores)
    for broken, message in (
        (full.iloc[1:], "must score the 6242 judged pairs, got 6241"),
        (pd.concat([full, full.head(1)]), "got 6243"),
        (full.assign(**{"tilde_minilm.2": None}), "a score in every cell"),
        (full.drop(columns="tilde_minilm.2"), "got no tilde_minilm.2"),
    ):
        broken.to_csv(tmp_path / "scores.csv.gz", index=False)
        with pytest.raises(ValueError, match=message):
            data.read_scores(moved, judgements)
    (tmp_path / "scores.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"make it with data/outputs/.*record\.py"):
        data.read_scores(moved, judgements)


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.upstream
def test_the_kinds_of_links_of_cacm_are_what_their_counts_say() -> None:
    """Kind 5 is a citation; 4 counts the works that both cite, 6 the papers that cite both."""
    skip_without("cacm")
    _, links = texts.read_smart(registry.fetch("cacm", "cacm.all"))
    links = links[links["document"] != links["other"]]
    counts = {
        kind: Counter(zip(own["document"], own["other"], strict=True))
        for kind, own in links.groupby("kind")
    }
    # The later of two papers cites the earlier: papers are numbered much in their order.
    cited_by, citing = defaultdict(set), defaultdict(set)
    for document, other in counts[texts.CITATION]:
        if document > other:
            cited_by[document].add(other)
            citing[other].add(document)
    equal = {}
    for kind, sets in ((4, citing), (texts.CO_CITATION, cited_by)):
        derived = Counter(pair for papers in sets.values() for pair in permutations(papers, 2))
        equal[kind] = sum(counts[kind][pair] == n for pair, n in derived.items()), len(derived)
    assert equal == {4: (9836, 10798), 6: (9006, 11424)}


RULE = "=" * 30


def annotation(document: str, grade: int | None = None) -> str:
    graded = [] if grade is None else [f"adju relevance: Similar (+{grade})", "sources: specter"]
    lines = [RULE, f"paper_id: {document}; YEAR: 2001", *graded, f"TITLE: T{document}"]
    return "\n".join([*lines, "ABSTRACT: background_label: One.", "result_label: Two.", "", ""])


def test_csfcube_is_read_and_grades_that_differ_are_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "readable_annotations"
    folder.mkdir()
    text = annotation("1") + annotation("1", 3) + annotation("3", 2)
    (folder / "1-background-adju.txt").write_text(text)
    pool = {"cands": ["1", "3"], "relevance_adju": [3, 2]}
    for facet in ("background", "method", "result"):
        pools = {"1": pool} if facet == "background" else {}
        (tmp_path / f"test-pid2anns-csfcube-{facet}.json").write_text(json.dumps(pools))
    folds = {"fold1_dev": ["1_background"], "fold2_test": ["1_background"], "other": ["x"]}
    splits = {"background": folds, "all": folds}
    (tmp_path / "evaluation_splits.json").write_text(json.dumps(splits))

    def fetch(_: str, name: str) -> Path:
        return tmp_path / name

    papers, judgements, splits_read = texts.load_csfcube(fetch)
    assert papers.to_numpy().tolist() == [["1", "T1", "One. Two."], ["3", "T3", "One. Two."]]
    # A query that is its own candidate is left out.
    assert judgements.to_numpy().tolist() == [["background", "1", "3", 2]]
    assert splits_read.to_numpy().tolist() == [
        ["background", "fold1", "dev", "1"],
        ["background", "fold2", "test", "1"],
    ]
    (folder / "1-background-adju.txt").write_text(text.replace("(+2)", "(+1)"))
    with pytest.raises(ValueError, match="differ from the annotations"):
        texts.load_csfcube(fetch)
    (folder / "1-background-adju.txt").write_text(text.replace("TITLE: T3", "no field"))
    with pytest.raises(ValueError, match=r"adju\.txt, line 19: not in CSFCube's format"):
        texts.load_csfcube(fetch)


SMALL = """.I 1
.T
On
trees
.A
Someone
.W
 Leaves and
roots.
.X
2\t5\t1
3\t6\t1
.I 2
.T\x20
Forests
.X
1\t5\t2
.
"""


def test_a_file_in_smarts_format_is_read_as_papers_and_links(tmp_path: Path) -> None:
    path = tmp_path / "small.all"
    path.write_text(SMALL)
    papers, links = texts.read_smart(path)
    assert papers.to_numpy().tolist() == [[1, "On trees", "Leaves and roots."], [2, "Forests", ""]]
    assert links.to_numpy().tolist() == [[1, 2, 5], [1, 3, 6], [2, 1, 5]]
    path.write_text(SMALL.replace("3\t6\t1", "3\t6\t2"))
    with pytest.raises(ValueError, match="line 12: a link must end in its own paper's number"):
        texts.read_smart(path)


def test_five_linked_papers_are_relevant_and_25_without_any_link_are_not(tmp_path: Path) -> None:
    """Forty papers each; paper 1 is linked to 2 to 9, paper 2 to four others only."""
    cisi: dict[int, list[tuple[int, int]]] = {paper: [(paper, 9)] for paper in range(1, 41)}
    cisi[1] += [(other, 3) for other in range(2, 8)] + [(8, 2), (9, 1)]
    cisi[2] += [(other, 4) for other in (1, 3, 4, 5)]
    cacm: dict[int, list[tuple[int, int]]] = {paper: [(paper, 5)] * 3 for paper in range(1, 41)}
    cacm[1] += [(other, 6) for other in range(2, 8)] + [(8, 4), (9, 5)]
    cacm[2] += [(other, 5) for other in range(3, 9)]
    for name, links in (("CISI.ALL", cisi), ("cacm.all", cacm)):
        lines = []
        for paper in range(1, 41):
            words = [] if paper == 30 else [".W", f"Words of {paper}"]
            lines += [f".I {paper}", ".T", f"Title {paper}", *words, ".X"]
            lines += [f"{other}\t{kind}\t{paper}" for other, kind in links[paper]]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def fetch(_: str, name: str) -> Path:
        return tmp_path / name

    papers, judgements, splits = texts.load_links(fetch)
    by_query = judgements.groupby(["task", "query"])
    expected = {("cisicocite", "cisi1"), ("cacmcocite", "cacm1"), ("cacmcite", "cacm2")}
    assert set(by_query.groups) == expected
    assert by_query.size().eq(30).all()
    assert by_query["grade"].sum().eq(5).all()
    for (task, _), candidates in by_query:
        relevant = set(candidates.loc[candidates["grade"] == 1, "document"])
        others = set(candidates.loc[candidates["grade"] == 0, "document"])
        first = 3 if task == "cacmcite" else 2
        assert relevant < {f"{task[:4]}{number}" for number in range(first, first + 6)}
        # Neither the query itself nor a paper under a weaker or another link.
        linked = {f"{task[:4]}{number}" for number in range(1, 10)}
        assert not others & (linked if task != "cacmcite" else linked - {"cacm1", "cacm9"})
    # A paper without an abstract is left out.
    assert not {"cisi30", "cacm30"} & {*papers["document"], *judgements["document"]}
    assert splits.groupby(["query", "fold"])["part"].nunique().eq(1).all()
    assert judgements.equals(texts.load_links(fetch).judgements)
    assert not judgements.equals(texts.load_links(fetch, seed=1).judgements)
