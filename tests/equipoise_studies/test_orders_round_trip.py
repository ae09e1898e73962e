"""Guards the tool for anyone's system: the study's rankings, as runs, give its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import called
from equipoise.measures.orders import preference
from equipoise.orders.conversations import conversations, sampled_orders
from equipoise.orders.effects import conversation_spread, largest_differences, performance
from equipoise.orders.variance import anova
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import SYSTEMS
from equipoise_studies.systems.lexical import Collection

WORDS = [
    "throat",
    "cancer",
    "lung",
    "symptom",
    "treat",
    "shark",
    "water",
    "tooth",
    "film",
    "actor",
    "prize",
    "trade",
]
CLASSES = {"7": ["SE", "FT", "FT", "SE", "PT", "PT"], "8": ["SE", "FT", "FT", "FT"]}
SEED, DRAWN = 4, 5


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Conversations of six and four utterances, of 12 and 6 orders, over thirty passages."""
    rng = np.random.default_rng(11)
    texts = {f"d{n:02d}": " ".join(rng.choice(WORDS, 9)) for n in range(30)}
    rows = [
        (f"{topic}_{turn}", topic, turn, " ".join(rng.choice(WORDS, 3, replace=False)), name)
        for topic, classes in CLASSES.items()
        for turn, name in enumerate(classes, 1)
    ]
    table = pd.DataFrame(rows, columns=["query", "topic", "turn", "text", "class"])
    judged = [
        (query, document, int(rng.integers(0, 4)))
        for query in table["query"]
        for document in list(texts)[::2]
    ]
    qrels = pd.DataFrame(judged, columns=["query", "document", "grade"])
    return Experiment(Collection.from_texts(texts), conversations(table), qrels)


def lay(folder: Path, experiment: Experiment) -> None:
    """The files that a user has: topics, classes, judgements."""
    topics = [
        {
            "number": int(one.topic),
            "turn": [{"number": n, "raw_utterance": t} for n, t in enumerate(one.texts, 1)],
        }
        for one in experiment.conversations
    ]
    (folder / "topics.json").write_text(json.dumps(topics))
    lines = [
        f"{topic}_{n},{name}\n"
        for topic, names in CLASSES.items()
        for n, name in enumerate(names, 1)
    ]
    (folder / "classes.csv").write_text("query,class\n" + "".join(lines))
    rows = experiment.qrels.itertuples(index=False, name=None)
    (folder / "qrels").write_text(
        "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows)
    )


def rank(experiment: Experiment, system: str, inputs: Path, run: Path) -> None:
    """Rank each input as an evaluator would: what its conversation holds, the rest behind it."""
    conversation_of = {one.topic: one for one in experiment.conversations}
    lines = []
    for text in inputs.read_text().splitlines():
        line = json.loads(text)
        one = conversation_of[line["topic"]]
        begin = [one.queries.index(said["query"]) for said in [*line["context"], line]]
        order = [*begin, *(u for u in range(len(one.queries)) if u not in begin)]
        best = experiment.rankings(one, system, [order])[0, len(begin) - 1]
        lines += [
            f"{line['id']} Q0 {experiment.collection.documents[place]} {number} {10 - number} x\n"
            for number, place in enumerate(best, 1)
        ]
    run.write_text("".join(lines))


@pytest.mark.parametrize(
    ("context", "systems"),
    [("first-and-previous", ["BM25", "FU", "CU", "RM3p"]), ("history", ["CU", "RM3s"])],
)
def test_runs_of_the_study_s_systems_give_the_study_s_tables(
    context: str,
    systems: list[str],
    experiment: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, experiment)
    words = ["permute", "--topics", "topics.json", "--classes", "classes.csv", "--qrels", "qrels"]
    drawn = ["--context", context, "--orders", str(DRAWN), "--seed", str(SEED), "-o", "permuted"]
    said = called(*words, *drawn)
    assert said.exit_code == 0, said.output
    for system in systems:
        rank(experiment, system, tmp_path / "permuted" / "inputs.jsonl", tmp_path / system)
    runs = [word for system in systems for word in ("--run", system)]
    said = called("score", "orders", "permuted", *runs, "--qrels", "qrels", "-o", "out")
    assert said.exit_code == 0, said.output

    orders = sampled_orders(experiment.conversations, DRAWN, SEED)
    scores = experiment.scores(orders, systems)
    exact = experiment.exact(systems)
    found = {
        path.stem: pd.read_csv(path, dtype={"topic": str})
        for path in (tmp_path / "out").glob("*.csv")
    }
    md1 = anova(scores, "MD1")
    expected = {
        "scores": scores,
        "table-2": performance(scores),
        "table-3": largest_differences(scores),
        "table-4": anova(scores[scores["permutation"] == 0]),
        "table-5": md1,
        "figure-1": conversation_spread(scores),
        "figure-2": preference(scores),
    }
    for name, table in expected.items():
        pd.testing.assert_frame_equal(
            found[name][list(table.columns)], table, check_dtype=False, rtol=1e-11
        )
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == [
        "figure-1.svg",
        "figure-2.svg",
    ]
    two, every = found["table-2"].set_index("run"), found["conversations"]
    if context == "history":
        assert set(every["how"]) == {"drawn", "enumeration"}  # of 12 orders and of 6
        assert set(two["how"]) == {"5 orders drawn in 1 of 2 conversations"}
        assert two[["minimum of all", "maximum of all"]].isna().all(axis=None)
        whole = every["how"] == "enumeration"
        assert (two["low"] < two["high"]).all()
    else:
        assert set(two["how"]) == {"exact"}
        whole = every["how"] == "adjacency"
        assert whole.all()
        means = exact.groupby("run")[["mean", "minimum", "maximum"]].mean().add_suffix(" of all")
        pd.testing.assert_frame_equal(
            two[means.columns], means.loc[two.index], check_names=False, rtol=1e-11
        )
    for column in ("run", "topic", "orders", "mean", "sd", "minimum", "maximum"):
        pd.testing.assert_series_equal(
            every.loc[whole, column], exact.loc[whole, column], check_dtype=False, rtol=1e-9
        )
    assert {SYSTEMS[system].context for system in systems} >= {"previous"}
