"""Config and data of chapter 4: derived data and recorded rankings."""

import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.ranking_bias import score_ranking_bias
from equipoise_compendium import project
from equipoise_studies.ranking_bias.data import (
    Ranker,
    Study,
    gender_groups,
    missing_texts,
    read_collection,
    read_public_run,
    read_recorded,
    read_runs,
    read_settings,
    read_table,
)

FOLDER = project.root() / "data" / "facts" / "ranking_bias"
STUDY = Study.read("replica")
LABELS = ("QS1", "QS2", "NQ", "Grep-BiasIR")


# --- config ---------------------------------------------------------------------------------------


def test_the_config_of_the_thesis_has_its_11_rankers() -> None:
    thesis = Study.read("thesis")
    assert len(thesis.rankers) == 11
    assert {ranker.record["kind"] for ranker in thesis.rankers.values()} == {"run files"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("depths: 3", "depths: Extra inputs"),
        ("depth: 0", "depth: Input should be greater than 0"),
        ("baseline: bm52", "no ranker 'bm52'"),
        ("query_sets: {QS1: {}}", "query_sets.QS1.collection: Field required"),
    ],
)
def test_a_wrong_setting_is_named(line: str, problem: str, tmp_path: Path) -> None:
    text = (project.root() / "data/studies/ranking_bias/replica.yaml").read_text()
    name = line.partition(":")[0]
    # the setting that is replaced, with the lines of its parts
    text = re.sub(rf"^{name}:.*\n( .*\n)*", "", text, flags=re.MULTILINE)
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(problem)):
        Study.read(str(path))


def test_files_of_a_config_are_next_to_it_or_in_the_repository(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text((project.root() / "data/studies/ranking_bias/thesis.yaml").read_text())
    study = Study.read(str(path))
    assert study.outputs == tmp_path / "recorded"
    assert study.query_sets["QS1"].documents == tmp_path / "msmarco/collection.tsv"
    assert STUDY.outputs == project.root() / "data" / "outputs" / "ranking_bias"


# --- derived data ---------------------------------------------------------------------------------


def test_every_table_is_described() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FOLDER.iterdir():
        if path.suffix in (".csv", ".parquet"):
            assert f"`{path.name}`" in readme, path.name
            for column in read_table(FOLDER, path.name).columns:
                assert f"`{column}`" in readme, f"{path.name}: {column}"


@pytest.mark.parametrize("label", LABELS)
def test_a_collection_has_its_counts_under_every_tokenisation(label: str) -> None:
    occurrences = {}
    for tokens in ("word", "whitespace", "space"):
        collection = read_collection(STUDY, label, tokens)
        assert set(collection.qrels["topic"]) <= set(collection.queries)
        judged = collection.qrels["document"].isin(collection.term_counts.documents)
        if label.startswith("QS"):
            # of MS MARCO passages were judged that none of the four runs has found
            assert 0.6 < judged[collection.qrels["level"] >= 2].mean() < 0.65
        else:
            assert judged.all()
        assert (collection.term_counts.counts.sum(axis=1) <= collection.term_counts.lengths).all()
        assert collection.term_counts.magnitudes(gender_groups(STUDY, "short")).sum() > 0
        occurrences[tokens] = collection.term_counts.counts.sum()
    # a term beside a mark of punctuation is a term between words only
    assert occurrences["word"] > occurrences["whitespace"] >= occurrences["space"] > 0


def test_term_lists_are_326_and_64_terms_of_two_groups() -> None:
    long, short = gender_groups(STUDY, "long"), gender_groups(STUDY, "short")
    assert (len(long.terms), len(short.terms)) == (326, 64)
    assert long.shared == ()
    assert set(short.terms) <= set(long.terms)


PUBLIC = ("BM25", "SPLADE++", "DistilBERT-TASB", "RepLLaMA")


def public_run(name: str, label: str = "QS1", *, rounded: bool = False) -> pd.DataFrame:
    ranker = Ranker(about="", public={label: name}, rounded=rounded)
    return read_public_run(STUDY, label, ranker)


def test_public_runs_give_the_fairness_that_was_found_beforehand() -> None:
    """Issue 32: with the 64 words, between white space, at cut-off 10."""
    runs = [public_run(name, rounded=name == "RepLLaMA") for name in PUBLIC]
    collection = read_collection(STUDY, "QS1", "whitespace")
    table = score_ranking_bias(
        pd.concat(runs), collection.term_counts, gender_groups(STUDY, "short"), cutoffs=[10]
    )
    of_queries = table[table["topic"] != ""]
    scores = of_queries.pivot_table(index=["run", "topic"], columns="measure", values="value")
    scores = scores[["NFaiRR@10", "TExFAIR@10"]]
    means = scores.groupby("run").mean().round(3)
    assert means.loc["BM25"].tolist() == [0.952, 0.901]
    assert means.loc["DistilBERT-TASB"].tolist() == [0.953, 0.894]
    assert means.loc["SPLADE++"].tolist() == [0.945, 0.888]
    of_tasb, of_bm25 = (scores.loc[name]["TExFAIR@10"] for name in ("DistilBERT-TASB", "BM25"))
    p_value = stats.ttest_rel(of_tasb, of_bm25).pvalue
    assert round(p_value, 2) == 0.66
    correlations = [scores.loc[name].corr().iloc[0, 1] for name in PUBLIC]
    assert (round(min(correlations), 2), round(max(correlations), 2)) == (0.77, 0.86)
    # a third of the lists hold a gendered term at all
    assert 0.31 < (scores["TExFAIR@10"] < 1).mean() < 0.34


def test_bm25_has_its_published_effectiveness_on_both_years() -> None:
    """Anserini's documentation has nDCG@10 .5058 for 2019 and .4796 for 2020."""
    run = public_run("BM25")
    qrels = read_collection(STUDY, "QS1").qrels.rename(columns={"topic": "query", "level": "grade"})
    values = effectiveness(
        run.rename(columns={"topic": "query"}), qrels, measures={"nDCG": "nDCG@10"}
    )
    # one query of 2020 names a gender and is not here: the mean of the others
    assert values["value"].mean() == pytest.approx((43 * 0.5058 + 54 * 0.4796) / 97, abs=0.005)


def test_passages_without_a_text_are_passed_over_and_counted() -> None:
    run = public_run("TK", "QS2")
    texts = set(read_collection(STUDY, "QS2").term_counts.documents)
    assert set(run["document"]) <= texts
    assert (run.groupby("topic")["rank"].min() == 1).all()
    assert (run.groupby("topic")["rank"].max() == run.groupby("topic").size()).all()
    upstream = read_table(FOLDER, "public_runs.parquet")
    of_run = upstream[(upstream["run"] == "TK") & (upstream["rank"] <= 10)]
    lacking = int((~of_run["document"].isin(texts)).sum())
    missing = missing_texts(STUDY, 10).set_index(["queries", "run"])
    assert missing.loc[("QS2", "TK"), "without a text"] == lacking == 9


def test_rounded_scores_are_no_ties() -> None:
    as_scored = public_run("RepLLaMA")
    as_ranked = public_run("RepLLaMA", rounded=True)
    assert as_scored.duplicated(["topic", "score"]).any()
    assert not as_ranked.duplicated(["topic", "score"]).any()
    assert as_ranked.groupby("topic").size().eq(20).all()


# --- recorded rankings ----------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["QS1 pool", "QS2 pool", "NQ", "Grep-BiasIR"])
def test_recorded_rankings_are_complete(label: str) -> None:
    name = STUDY.query_sets[label].collection
    runs = read_recorded(STUDY.outputs, name)
    settings = json.loads((STUDY.outputs / f"{name}_settings.json").read_text(encoding="utf-8"))
    lists = runs.groupby(["world", "run", "topic"])
    assert set(runs["run"]) == set(settings["runs"]) == set(STUDY.recorded_on(label))
    assert len(lists) == 2 * len(settings["runs"]) * settings["account"]["queries"]
    assert (lists["rank"].max() == lists.size()).all()
    # ties with the last rank are kept whole
    last = runs[runs["rank"] == STUDY.depth].set_index(["world", "run", "topic"])["score"]
    beyond = runs[runs["rank"] > STUDY.depth].set_index(["world", "run", "topic"])["score"]
    assert (beyond == last.reindex(beyond.index)).all()
    falls = runs.sort_values(["world", "run", "topic", "rank"])
    same = falls.duplicated(["world", "run", "topic"])
    assert (falls["score"].diff()[same] <= 0).all()
    account = settings["account"]
    assert account["words restored by substituting twice"] / account["words"] > 0.99

    collection = read_collection(STUDY, label)
    assert set(runs["topic"]) == set(collection.queries) == set(collection.qrels["topic"])
    assert set(runs["document"]) <= set(collection.term_counts.documents)


def test_rewritten_collections_are_ranked_by_every_ranker_of_their_config() -> None:
    study = Study.read("rewritten")
    label = "Grep-BiasIR, rewritten"
    runs = read_recorded(study.outputs, study.query_sets[label].collection)
    settings = read_settings(study, label)
    assert set(runs["run"]) == set(settings["runs"]) == set(study.recorded_on(label))
    assert set(runs["world"]) == set(settings["rewritten"]["changed"])
    wordings = read_table(FOLDER, "qrels.csv")
    is_relevant = (wordings["collection"] == "grepbiasir") & (wordings["level"] == "1")
    assert set(runs["document"]) == set(wordings.loc[is_relevant, "document"])
    lists = runs.drop_duplicates(["world", "run", "topic"]).groupby(["world", "run"]).size()
    assert lists.drop(index="bm25", level="run").eq(117).all()


def test_rankers_are_in_the_order_of_the_config_on_every_query_set() -> None:
    runs = read_runs(STUDY)
    assert list(runs["queries"].unique()) == list(STUDY.query_sets)
    for (label, world), part in runs.groupby(["queries", "world"]):
        rankers = STUDY.rankers_on(str(label))
        # public runs rank the original collection only
        names = []
        for key, ranker in rankers.items():
            if world == "original" or not ranker.public:
                names.append(STUDY.called(key))
        assert part["run"].drop_duplicates().tolist() == names
        assert names[0] == STUDY.called(STUDY.baseline)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["original\ta\t1\td1\t1\t2", "original\ta\t1\td1\t2\t1"], "twice"),
        (["original\ta\t1\td1\tfirst\t2"], "first"),
    ],
)
def test_broken_files_of_rankings_are_rejected(
    rows: list[str], problem: str, tmp_path: Path
) -> None:
    lines = ["world\trun\ttopic\tdocument\trank\tscore", *rows]
    (tmp_path / "x_runs.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(ValueError, match=problem):
        read_recorded(tmp_path, "x")
