"""The same files scored by ranx, ir_measures, PyTerrier and fairlearn, each as its user would.

Run in an environment that has them (PyTerrier wants Java), it prints ``other_tools.csv``::

    python tests/other_tools.py > tests/references/other_tools.csv

The body of each function of a tool is what its user writes; the guide counts these lines.
"""

# ruff: noqa: F401 - the lines are those of the tools' own documentation
# mypy: ignore-errors

from __future__ import annotations

import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

RUNS = {"bm25": 2.0, "dense": 1.5, "hybrid": 1.0, "random": 9.0}
"""Four runs, by how far their scores are from the levels of the documents."""


def write_files(folder: Path) -> None:
    """Judgements of 40 topics, four runs, and a group of each topic."""
    rng = np.random.default_rng(3)
    topics, documents = [f"q{number}" for number in range(40)], [f"d{n}" for n in range(60)]
    levels = {}
    for topic in topics:
        for document in documents:
            levels[topic, document] = int(rng.choice([0, 0, 0, 1, 2]))
    lines = [f"{topic} 0 {document} {level}\n" for (topic, document), level in levels.items()]
    (folder / "qrels.txt").write_text("".join(lines))
    for name, noise in RUNS.items():
        lines = []
        for topic in topics:
            scores = {d: levels[topic, d] + rng.normal(0, noise) for d in documents}
            best = sorted(scores, key=lambda document: -scores[document])[:20]
            for rank, document in enumerate(best, start=1):
                lines.append(f"{topic} Q0 {document} {rank} {scores[document]:.6f} {name}\n")
        (folder / f"{name}.run").write_text("".join(lines))
    lines = [f"q{number},{'short' if number % 2 else 'long'}\n" for number in range(40)]
    (folder / "topics.csv").write_text("topic,group\n" + "".join(lines))


def ranx():
    from ranx import Qrels, Run, compare

    qrels = Qrels.from_file("qrels.txt", kind="trec")
    runs = [Run.from_file(f"{name}.run", kind="trec", name=name) for name in RUNS]
    return compare(qrels, runs, ["ndcg@10", "map@20"], stat_test="tukey", max_p=0.05)


def measures_by_topic():
    import ir_measures
    from ir_measures import AP, nDCG

    qrels = list(ir_measures.read_trec_qrels("qrels.txt"))
    runs = {name: list(ir_measures.read_trec_run(f"{name}.run")) for name in RUNS}
    return {name: ir_measures.calc([nDCG @ 10, AP @ 20], qrels, run) for name, run in runs.items()}


def pyterrier():
    import pyterrier as pt
    from ir_measures import AP, nDCG

    runs = [pt.io.read_results(f"{name}.run") for name in RUNS]
    qrels = pt.io.read_qrels("qrels.txt")
    topics, measures = qrels[["qid"]].drop_duplicates().assign(query="x"), [nDCG @ 10, AP @ 20]
    how = {"names": list(RUNS), "baseline": 0, "correction": "holm"}
    return pt.Experiment(runs, topics, qrels, measures, **how)


def fairlearn(values_by_topic):
    import pandas as pd
    from fairlearn.metrics import MetricFrame

    values = pd.Series(values_by_topic)
    groups = pd.read_csv("topics.csv", index_col="topic")["group"][values.index]
    how = {"n_boot": 9999, "ci_quantiles": [0.025, 0.975], "random_state": 0}
    fields = {"y_true": values, "y_pred": values, "sensitive_features": groups}
    return MetricFrame(metrics=lambda _, value: value.mean(), **fields, **how)


def rows():
    """Tool, version, run, measure, quantity, value."""
    report = ranx()
    for name in RUNS:
        for measure, label in (("ndcg@10", "nDCG@10"), ("map@20", "AP@20")):
            value = report.results[name][measure]
            yield "ranx", version("ranx"), name, label, "mean", value
    p_value = report.comparisons[frozenset({"dense", "hybrid"})]["ndcg@10"]["p_value"]
    yield "ranx", version("ranx"), "hybrid", "nDCG@10", "p against dense", p_value
    by_topic = {}
    for name, result in measures_by_topic().items():
        for measure, value in result.aggregated.items():
            yield "ir_measures", version("ir_measures"), name, str(measure), "mean", value
        by_topic[name] = {m.query_id: m.value for m in result.per_query if "nDCG" in str(m.measure)}
    table = pyterrier().set_index("name")
    for name in RUNS:
        for measure in ("nDCG@10", "AP@20"):
            yield "PyTerrier", version("pyterrier"), name, measure, "mean", table.loc[name, measure]
            p_value = table.loc[name, f"{measure} p-value corrected"]
            yield "PyTerrier", version("pyterrier"), name, measure, "p against bm25", p_value
    for name in RUNS:
        frame = fairlearn(by_topic[name])
        gaps = {
            "difference": (frame.difference(), frame.difference_ci()),
            "ratio": (frame.ratio(), frame.ratio_ci()),
        }
        for gap, (value, ends) in gaps.items():
            numbers = {gap: value, f"{gap} low": ends[0], f"{gap} high": ends[1]}
            for quantity, number in numbers.items():
                yield "fairlearn", version("fairlearn"), name, "nDCG@10", quantity, number


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)
        print("tool,version,run,measure,quantity,value")
        for *words, number in rows():
            print(*words, f"{number:.6g}", sep=",")
