"""Make the derived data of the permutation study from the files of CAsT 2019 and 2020.

    python data/facts/permutations/make.py [--output FOLDER]

Upstream files come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. Without --output the tables next to this script are replaced.

The tables contain no texts. A *bag* replaces each text: the numbers of its terms, ascending, each
as often as it occurs. The number of a term is its position in the sorted vocabulary of the passages
of its year. All numbers have the same number of digits, so that they sort as the terms do, because
feedback breaks ties of terms by alphabetical order.
"""

import argparse
import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.loaders.trec import read_run
from equipoise.permutations.structures import class_structures
from equipoise_compendium import facts, project, registry
from equipoise_studies.permutations import data
from equipoise_studies.permutations import texts as upstream
from equipoise_studies.permutations.experiment import Experiment

OUTPUTS = ("outputs", "permutations")

# Public BERT rankings of the full collection, by how the utterances were rewritten.
REWRITING_RUNS = (
    "run_raw",
    "run_oracle",
    "run_cv",
    "run_self_learn",
    "run_self_learn_cv",
    "rule_based",
    "run_rule_based_cv",
)

# Systems of DECAF on the full collection, by the number of their experiment. A name has the
# rewriting method (CR: coreference, T5: a trained model, manual: by hand), the first ranker, and
# after ">" a second one. With FLC the query is the first, last and current utterance.
WHOLE_COLLECTION_RUNS = {
    1: "BM25",
    2: "CR + BM25",
    3: "T5 + BM25",
    4: "BM25 FLC",
    5: "T5 + BM25 FLC",
    6: "BM25 > BERT",
    7: "T5 + BM25 > BERT",
    8: "BM25 FLC > BERT",
    9: "T5 + BM25 FLC > BERT",
    10: "T5 + BERT",
    11: "SPLADE",
    12: "T5 + SPLADE",
    13: "manual + BM25",
    14: "manual + BM25 > BERT",
    15: "manual + BERT",
    16: "manual + SPLADE",
}
WHOLE_COLLECTION_DEPTH = 10  # the study uses three ranks

THIRD_PERSON = {
    "it", "its", "they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers",
}  # fmt: skip

# --- texts and bags -------------------------------------------------------------------------------


def bags(passages: pd.Series, texts: pd.Series) -> pd.Series:
    """Return the bag of each text: the numbers of its terms that some passage contains."""
    vocabulary = sorted({term for passage in passages for term in upstream.english_terms(passage)})
    digits = len(str(len(vocabulary)))
    number_of = {term: f"{number:0{digits}d}" for number, term in enumerate(vocabulary)}
    known = texts.map(lambda text: [t for t in upstream.english_terms(text) if t in number_of])
    return known.map(lambda terms: " ".join(sorted(number_of[term] for term in terms)))


def word_counts(texts: pd.Series) -> pd.Series:
    """Count the words of each text, split at white space."""
    return texts.str.split().str.len()


# --- upstream files -------------------------------------------------------------------------------


def judged_2019() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the judged utterances of CAsT 2019 with the classes by people, and the judgements."""
    utterances = upstream.utterances_of("2019/data/evaluation/evaluation_topics_v1.0.json")
    classes = upstream.fields_of(registry.fetch("mele_classes", "data/datasets/test_set.tsv"))
    qrels = upstream.judgements("2019/data/2019qrels.txt")
    table = utterances[utterances["query"].isin(qrels["query"])]
    class_of = {query: utterance_class for query, _, utterance_class in classes}
    return table.assign(**{"class": table["query"].map(class_of)}), qrels


def judged_2020() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the judged utterances of CAsT 2020 with classes by the classifier, and judgements."""
    utterances = upstream.utterances_of("2020/2020_manual_evaluation_topics_v1.0.json")
    qrels = upstream.judgements("2020/2020qrels.txt")
    features = class_features(utterances, rewritten_texts(2020, "11_Human.tsv"))
    labelled = pd.concat(labelled_turns())
    classifier = class_model().fit(labelled[features.columns], labelled["class"])
    utterances["class"] = "SE"  # of the first utterance of a conversation
    utterances.loc[features.index, "class"] = classifier.predict(features)
    return utterances[utterances["query"].isin(qrels["query"])], qrels


def rewritten_texts(year: int, file: str) -> pd.Series:
    """Read rewritten utterances by query."""
    path = registry.fetch("cast_rewrites", f"rewrites/{year}/{file}")
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, dtype=str, keep_default_na=False)
    return table.set_index("id")["query"]


def recorded(name: str) -> list[dict]:
    """Read cached model outputs, without the settings on the first line."""
    lines = project.data(*OUTPUTS, name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


# --- rules ----------------------------------------------------------------------------------------


def class_features(utterances: pd.DataFrame, resolved: pd.Series) -> pd.DataFrame:
    """Describe each utterance but the first of its conversation, by its terms and the added ones.

    ``resolved``: the utterances with their references resolved by people, by query.
    """
    rows = {}
    for _, turns in utterances.sort_values("turn", kind="stable").groupby("topic", sort=False):
        earlier: set[str] = set()
        first: set[str] = set()
        previous: set[str] = set()
        turns_in_order = zip(turns.index, turns["query"], turns["text"], strict=True)
        for place, (index, query, text) in enumerate(turns_in_order):
            words = set(re.findall(r"[^\W_]+", text.lower()))
            own, full = (
                set(upstream.english_terms(text)),
                set(upstream.english_terms(resolved[query])),
            )
            added = full - own
            if place == 0:
                first = full
            else:
                rows[index] = {
                    "turn": place,
                    "words": len(words),
                    "pronouns": len(words & THIRD_PERSON),
                    "terms": len(own),
                    "new terms": len(own - earlier),
                    "terms of the first": len(own & first),
                    "terms of the previous": len(own & previous),
                    "nothing added": not added,
                    "added": len(added),
                    "added, not of the first": len(added - first),
                    "added, of the previous": len(added & previous),
                    "added, all of the first": bool(added) and added <= first,
                    "added, share of the first": len(added & first) / max(1, len(added)),
                    "added, share of the previous": len(added & previous) / max(1, len(added)),
                    "of the previous, not of the first": len(previous - first),
                }
            earlier |= full
            previous = full
    return pd.DataFrame.from_dict(rows, orient="index").astype(float)


def labelled_turns() -> list[pd.DataFrame]:
    """Read features and class by people of turns of CAsT 2019: other conversations, the judged.

    Of the 1,564 utterances of the training set, only these have a resolved text.
    """
    resolved = upstream.resolved_texts()
    parts = []
    for file in ("training_set.tsv", "test_set.tsv"):
        lines = upstream.fields_of(registry.fetch("mele_classes", f"data/datasets/{file}"))
        table = pd.DataFrame(lines, columns=["query", "text", "class"])
        table[["topic", "turn"]] = table["query"].str.split("_", expand=True)
        table = table[table["query"].isin(resolved.index)].astype({"turn": int})
        parts.append(class_features(table, resolved).join(table[["topic", "class"]]))
    return parts


def class_model() -> Pipeline:
    """Return an untrained classifier, chosen after 16 variants were compared on CAsT 2019."""
    return make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))


def antecedent(text: str, line: dict) -> tuple[str, bool]:
    """Find the phrase that a later pronoun could refer to, "" for none, and pronouns.

    A pronoun of the third person refers to the last noun phrase, headed by a noun, of the nearest
    earlier utterance that has one, and no such pronoun. The rule ignores number and gender.
    """
    last_phrase = ""
    for start, end, head in line["phrases"]:
        if head in ("NOUN", "PROPN"):
            last_phrase = text[start:end]
    pronouns = {text[start:end].lower() for start, end in line["pronouns"]}
    return last_phrase, not pronouns.isdisjoint(THIRD_PERSON)


def deciding(qrels: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    """Select the judgements above 0, and the judgements of passages with text.

    All other documents are judged 0 and cannot be retrieved. They change neither an ideal ranking
    nor the share of a ranking that is judged.
    """
    decides = (qrels["grade"] > 0) | qrels["document"].isin(passages["document"])
    table = qrels[decides].sort_values(["query", "document"])
    return table.astype({"grade": np.int8})[["query", "document", "grade"]]


# --- tables ---------------------------------------------------------------------------------------


def make_utterances() -> pd.DataFrame:
    """List the judged utterances of CAsT 2019, with antecedents of later pronouns."""
    judged, _ = judged_2019()
    passages = upstream.passages_2019()["text"]
    line_of = {line["query"]: line for line in recorded("noun_phrases.jsonl")}
    pairs = zip(judged["query"], judged["text"], strict=True)
    antecedents = [antecedent(text, line_of[query]) for query, text in pairs]
    phrases = pd.Series([phrase for phrase, _ in antecedents], judged.index)
    table = judged[["query", "topic", "turn", "class"]].copy()
    table["words"] = word_counts(judged["text"])
    table = table.assign(terms=bags(passages, judged["text"]))
    table["anaphoric"] = [int(has_pronoun) for _, has_pronoun in antecedents]
    # A later pronoun refers to a phrase also where no passage has a term of it.
    terms = bags(passages, phrases)
    table["phrase"] = terms.mask((terms == "") & (phrases != ""), "-")
    return table


def make_passages() -> pd.DataFrame:
    """List the passages of CAsT 2019 with text."""
    passages = upstream.passages_2019().sort_values("document")
    table = passages[["document", "source"]].copy()
    table["words"] = word_counts(passages["text"]).astype(np.int32)
    return table.assign(terms=bags(passages["text"], passages["text"]))


def make_qrels() -> pd.DataFrame:
    """List the judgements of CAsT 2019 that affect a score."""
    _, qrels = judged_2019()
    return deciding(qrels, upstream.passages_2019())


def make_model_rewrites() -> pd.DataFrame:
    """List the language model's rewrites of each utterance after each other utterance."""
    judged, _ = judged_2019()
    text_of = {(line["query"], line["before"]): line for line in recorded("rewrites.jsonl")}
    rows = []
    for topic, structure in class_structures(judged).items():
        queries = judged.loc[judged["topic"] == topic, "query"].tolist()
        for before, current in zip(*np.nonzero(structure.adjacency()), strict=True):
            pair = queries[current], queries[before]
            rows.append((*pair, text_of[pair]["rewrite"]))
    table = pd.DataFrame(rows, columns=["query", "before", "text"])
    table["terms"] = bags(upstream.passages_2019()["text"], table["text"])
    return table.drop(columns="text")


def ranks(name: str, path: Path, judged: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """List the ranks of the judged turns, with relevant documents and whether each is judged."""
    # Equal scores by document id, descending, scores in single precision: as trec_eval ranks.
    run = read_run(path, order=None).astype({"topic": "str"}).rename(columns={"topic": "query"})
    run = run[run["query"].isin(judged["query"])].astype({"score": np.float32})
    run = run.sort_values(["query", "score", "document"], ascending=[True, False, False])
    run["rank"] = (run.groupby("query").cumcount() + 1).astype(np.int16)
    run = run.merge(qrels, how="left", on=["query", "document"])
    run["judged"] = run["grade"].notna()
    run["document"] = run["document"].where(run["grade"] > 0, "")
    return run.assign(run=name)


def make_rankings() -> pd.DataFrame:
    """List the public rankings of the full collection."""
    judged, qrels = judged_2019()
    parts = []
    for name in REWRITING_RUNS:
        path = registry.fetch("cqr_runs", f"results/bert_base_{name}.trec")
        label = name.removeprefix("run_").replace("_", "-")
        parts.append(ranks(label, path, judged, qrels))
    return pd.concat(parts)[["run", "query", "rank", "document"]]


def make_whole_collection() -> pd.DataFrame:
    """List the first ranks of the systems of DECAF on the full collection."""
    judged, qrels = judged_2019()
    parts = []
    for number, name in WHOLE_COLLECTION_RUNS.items():
        path = registry.fetch("decaf", f"SIGIR2023-experiments/TREC CAsT 2019/{number}/run.txt")
        table = ranks(name, path, judged, qrels)
        parts.append(table[table["rank"] <= WHOLE_COLLECTION_DEPTH])
    return pd.concat(parts)[["run", "query", "rank", "document", "judged"]]


def make_utterances_2020() -> pd.DataFrame:
    """List the judged utterances of CAsT 2020, with classes by the classifier."""
    judged, _ = judged_2020()
    table = judged[["query", "topic", "turn", "class"]].copy()
    return table.assign(terms=bags(upstream.passages_2020()["text"], judged["text"]))


def make_passages_2020() -> pd.DataFrame:
    """List the passages of CAsT 2020 with text."""
    passages = upstream.passages_2020().sort_values("document")
    table = passages[["document"]].copy()
    return table.assign(terms=bags(passages["text"], passages["text"]))


def make_class_agreement() -> pd.DataFrame:
    """Count the judged conversations' turns by class: by people, and by the classifier.

    Each tenth of the conversations is left out in turn; the other labelled turns train.
    """
    others, judged = labelled_turns()
    features = others.columns.drop(["topic", "class"])
    proposed = pd.Series("", judged.index)
    for kept, left_out in GroupKFold(10).split(judged, groups=judged["topic"]):
        labelled = pd.concat([others, judged.iloc[kept]])
        classifier = class_model().fit(labelled[features], labelled["class"])
        proposed.iloc[left_out] = classifier.predict(judged[features].iloc[left_out])
    pairs = pd.DataFrame({"class": judged["class"], "proposed class": proposed})
    return pairs.groupby(["class", "proposed class"]).size().reset_index(name="utterances")


def make_qrels_2020() -> pd.DataFrame:
    """List the judgements of CAsT 2020 that affect a score."""
    _, qrels = judged_2020()
    return deciding(qrels, upstream.passages_2020())


def make_dependencies() -> pd.DataFrame:
    """List the judged utterances of CAsT 2019 with the judged one that people say they need."""
    judged, _ = judged_2019()
    path = registry.fetch("castur", "CAsTUR.tsv")
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    table = table.set_axis(["query", "needs"], axis=1)
    return table[table["query"].isin(judged["query"]) & table["needs"].isin(judged["query"])]


def make_sequential() -> pd.DataFrame:
    """Score RM3s on every valid permutation, in the order of the structure's permutations.

    It depends on all earlier utterances, so no table of pairs gives its scores.
    """
    parts = []
    for year in (2019, 2020):
        conversations = data.conversations(data.read_utterances(year))
        collection, qrels = data.read_collection(year), data.read_qrels(year)
        experiment = Experiment(collection, conversations, qrels)
        for topic, scores in experiment.scores_of_all(["RM3s"]).items():
            parts.append(pd.DataFrame({"topic": topic, "value": scores[:, 0]}))
    return pd.concat(parts)


TABLES = {
    "utterances.csv": make_utterances,
    "passages.parquet": make_passages,
    "qrels.parquet": make_qrels,
    "model_rewrites.csv": make_model_rewrites,
    "rankings.parquet": make_rankings,
    "whole_collection.parquet": make_whole_collection,
    "class_agreement.csv": make_class_agreement,
    "utterances_2020.csv": make_utterances_2020,
    "passages_2020.parquet": make_passages_2020,
    "qrels_2020.parquet": make_qrels_2020,
    "dependencies.csv": make_dependencies,
    "sequential.parquet": make_sequential,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, content in facts.make(TABLES).items():
        (output / name).write_bytes(content)
