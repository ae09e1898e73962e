"""Guards what anyone's system is run on, and the way back, by every order and plain loops."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import called as run
from equipoise.coverage import Unseen
from equipoise.declare import choices_of
from equipoise.loaders.topics import read_topics
from equipoise.measures.effectiveness import effectiveness
from equipoise.options import Context
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation
from equipoise.orders.structures import GraphStructure, Structure
from equipoise.problems import InputError, Note
from equipoise_cli import permuted_orders as folders
from equipoise_cli import scored_orders as scored
from equipoise_cli.order_labels import (
    propose_classes,
    read_classes,
    read_dependencies,
    without_others,
)
from equipoise_cli.permuted_orders import Inputs, Permuted, permute

CONTEXTS = choices_of(Context)
STRUCTURES: dict[str, Structure] = {
    "1": ClassStructure.from_classes(["SE", "PT", "FT", "SE", "PT", "PT"]),
    "2": GraphStructure(5, [(1, 3), (2, 3)]),
    "3": ClassStructure.from_classes(["SE"]),
}


def conversation(topic: str) -> Conversation:
    size = STRUCTURES[topic].size
    queries = tuple(f"{topic}_{n + 1}" for n in range(size))
    return Conversation(
        topic, queries, tuple(f"What is {query}?" for query in queries), STRUCTURES[topic]
    )


def seen(order: tuple[int, ...], place: int, context: str) -> tuple[int, ...]:
    """What a system sees of an order at a place, and the utterance, in words of the help."""
    before = order[:place]
    if context == "previous":
        before = before[-1:]
    elif context == "first":
        before = before[:1]
    elif context == "first-and-previous":
        before = tuple(dict.fromkeys([*before[:1], *before[-1:]]))
    return (*before, order[place])


@cache
def plan(context: Any, orders: int = 1000) -> Permuted:
    return permute(
        [conversation(topic) for topic in STRUCTURES], orders=orders, context=context, seed=3
    )


@pytest.mark.parametrize("context", CONTEXTS)
def test_inputs_are_distinct_and_complete(context: str) -> None:
    for one in plan(context).conversations:
        inputs = plan(context).inputs(one)
        every = [tuple(order) for order in one.structure.orders().tolist()]
        wanted = {
            seen(order, place, context) for order in every for place in range(one.structure.size)
        }
        lines = [
            tuple(inputs.lines[row][:length])
            for row, length in zip(inputs.row, inputs.length, strict=True)
        ]
        assert sorted(lines) == sorted(wanted)
        assert len(set(inputs.ids)) == len(wanted)
        for order, at in zip(
            plan(context).orders[one.topic].tolist(), inputs.of_orders, strict=True
        ):
            assert [lines[number] for number in at] == [
                seen(tuple(order), n, context) for n in range(len(order))
            ]
        assert inputs.asked == [line[-1] for line in lines]


def test_a_few_orders_of_a_system_with_a_short_memory_need_every_pair() -> None:
    few, every = plan("previous", 2), plan("previous")
    for one in few.conversations:
        assert len(few.orders[one.topic]) == min(3, one.structure.count)
        assert few.inputs(one).ids == every.inputs(one).ids


# --- the folder -----------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics of every structure, with classes, and dependencies for one."""
    monkeypatch.chdir(tmp_path)
    made = [conversation(topic) for topic in ("1", "3")]
    lines = [
        f"{query}\t{text}\n"
        for one in made
        for query, text in zip(one.queries, one.texts, strict=True)
    ]
    Path("topics.tsv").write_text("".join(lines))
    classes = ["SE", "PT", "FT", "SE", "PT", "PT", "SE"]
    rows = [
        f"{line.partition(chr(9))[0]},{name}\n" for line, name in zip(lines, classes, strict=True)
    ]
    Path("classes.csv").write_text("query,class\n" + "".join(rows))
    Path("needs.csv").write_text("query,depends_on\n1_4,1_2\n1_4,1_3\n")


def content(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


LABELS = {
    "classes": ("--classes", "classes.csv"),
    "dependencies": ("--dependencies", "needs.csv"),
    "rule": (),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_the_folder_holds_the_orders_and_is_read_again(context: str, labels: str) -> None:
    words = [
        "permute",
        "--topics",
        "topics.tsv",
        *LABELS[labels],
        "--context",
        context,
        "--orders",
        "4",
    ]
    said = run(*words, "--seed", "1", "-o", "a")
    assert said.exit_code == 0, said.output
    assert ("proposals of a rule" in said.output) == (labels == "rule")
    found = folders.read_permuted(Path("a"))
    assert found.context == context
    lines = [json.loads(line) for line in Path("a/inputs.jsonl").read_text().splitlines()]
    n_orders = sum(map(len, found.orders.values()))
    numbers = f"2 conversations, 7 utterances, {n_orders} orders: {len(lines)} inputs"
    assert numbers in said.output
    assert [line["id"] for line in lines] == [
        name for one in found.conversations for name in found.inputs(one).ids
    ]
    by_id = {line["id"]: line for line in lines}
    assert len(by_id) == len(lines)
    orders = pd.read_csv("a/orders.csv", dtype=str)
    for (topic, number), part in orders.groupby(["topic", "permutation"]):
        assert part["position"].tolist() == [str(place + 1) for place in range(len(part))]
        order = tuple(part["query"])
        for place, name in enumerate(part["id"]):
            line, words_seen = by_id[name], seen(order, place, context)
            assert (line["topic"], line["query"]) == (topic, words_seen[-1])
            assert tuple(before["query"] for before in line["context"]) == words_seen[:-1]
            for one in (line, *line["context"]):
                assert one["utterance"] == f"What is {one['query']}?"
        assert number != "0" or list(order) == sorted(order)
    one = found.conversations[0]
    assert len(found.orders["1"]) == min(5, one.structure.count)
    assert len(np.unique(found.orders["1"], axis=0)) == len(found.orders["1"])
    # the topics file has each input at the turn that its id names
    texts = dict(
        read_topics("a/topics.tsv").utterances[["query", "text"]].itertuples(index=False, name=None)
    )
    assert {name: texts[name] for name in by_id} == {
        name: line["utterance"] for name, line in by_id.items()
    }
    for seed, same in (("1", True), ("2", False)):
        assert run(*words, "--seed", seed, "-o", f"b{seed}").exit_code == 0
        assert (content("a") == content(f"b{seed}")) is same
    assert run(*words, "-o", "a").exit_code == 2  # a folder that is there is not written into


@pytest.mark.usefixtures("here")
def test_judged_utterances_and_the_first_are_kept() -> None:
    Path("qrels").write_text("1_3 0 d 1\n1_6 0 d 1\n1_9 0 d 1\n")
    said = run(
        "permute",
        "--topics",
        "topics.tsv",
        "--classes",
        "classes.csv",
        "--qrels",
        "qrels",
        "-o",
        "out",
    )
    assert "2 of 7 utterances are judged, in 1 topics" in said.output
    assert folders.read_permuted(Path("out")).conversations[0].queries == ("1_1", "1_3", "1_6")
    Path("qrels").write_text("9_9 0 d 1\n")
    said = run("permute", "--topics", "topics.tsv", "--qrels", "qrels", "-o", "other")
    assert (said.exit_code, "no utterance of the topics has a judgement" in said.output) == (
        2,
        True,
    )


@pytest.mark.usefixtures("here")
def test_scripts_that_allow_no_other_order_are_told_and_not_scored() -> None:
    lines = Path("topics.tsv").read_text().splitlines(keepends=True)
    Path("topics.tsv").write_text("".join([*lines[:3], lines[-1]]))
    Path("classes.csv").write_text("query,class\n1_1,SE\n1_2,FT\n1_3,PT\n3_1,SE\n")
    said = run("permute", "--topics", "topics.tsv", "--classes", "classes.csv", "-o", "out")
    assert (said.exit_code, "note: no valid order beside the script, of any" in said.output) == (
        0,
        True,
    )
    Path("a.run").write_text("1-0_1 Q0 d 1 1 mine\n")
    Path("qrels").write_text("1_1 0 d 1\n")
    said = run("score", "orders", "out", "--run", "a.run", "--qrels", "qrels", "-o", "scores")
    assert (
        said.exit_code,
        "out: found no valid order beside the script, of any" in said.output,
    ) == (2, True)


@pytest.mark.usefixtures("here")
def test_runs_are_called_by_their_tags_and_what_is_judged_of_them_is_said() -> None:
    run("permute", "--topics", "topics.tsv", "--classes", "classes.csv", "-o", "out")
    names = [json.loads(line)["id"] for line in Path("out/inputs.jsonl").read_text().splitlines()]
    Path("a.run").write_text(
        "".join(f"{name} Q0 d{number % 2} 1 1 mine\n" for number, name in enumerate(names))
    )
    queries = [line.partition("\t")[0] for line in Path("topics.tsv").read_text().splitlines()]
    words = ["score", "orders", "out", "--run", "a.run", "--qrels", "qrels", "-o"]
    for document in "dx":
        Path("qrels").write_text("".join(f"{query} 0 {document}1 1\n" for query in queries))
        said = run(*words, document)
        assert (
            said.exit_code,
            f"seen: a ranking for {len(names)} of {len(names)} inputs" in said.output,
        ) == ((0, True) if document == "d" else (2, True))
    assert "run mine: found a judgement for none of" in said.output
    assert set(pd.read_csv("d/scores.csv")["run"]) == {"mine"}
    seen = pd.read_csv("d/seen.csv", index_col="needed")
    assert seen.loc["a ranking", ["place", "found", "whole", "share"]].tolist() == [
        "run mine",
        *2 * [len(names)],
        1,
    ]


def test_what_depended_on_one_that_is_left_out_depends_on_what_that_needs() -> None:
    needs = pd.DataFrame({"query": ["d", "c", "b", "e"], "depends_on": ["c", "b", "a", "d"]})
    assert without_others(needs, ["a", "b", "d", "e"]).to_numpy().tolist() == [
        ["b", "a"],
        ["d", "b"],
        ["e", "d"],
    ]
    assert without_others(needs, ["a", "e"]).to_numpy().tolist() == [["e", "a"]]
    circle = pd.DataFrame({"query": ["b", "a"], "depends_on": ["a", "b"]})
    assert without_others(circle, ["a"]).to_numpy().tolist() == [
        ["a", "a"]
    ]  # which no structure takes


TOPIC_OF = pd.Series({"1_1": "1", "1_2": "1", "2_1": "2"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "query,class\n1_1,SE\n1_2,XX\n2_1,SE\n",
            "labels, line 3, column class: found 'XX', wanted one of SE, FT, PT",
        ),
        (
            "query,class\n1_1,SE\n1_1,FT\n1_2,FT\n2_1,SE\n",
            "labels, line 3, column query: found 1_1 again",
        ),
        (
            "query,class\n1_1,SE\n1_2,FT\n\n2_1,SE\n9_9,SE\n",
            "labels, line 6, column query: found '9_9', wanted the id",
        ),
        (
            "query,class\n1_1,FT\n1_2,FT\n2_1,SE\n",
            "labels, line 2, column class: found 'FT', wanted SE, self-expl",
        ),
        (
            "query,class\n1_1,SE\n",
            "labels: found no class for 1_2, 2_1, wanted one for every utterance",
        ),
        ("query,label\n1_1,SE\n", "labels, line 1, column class: found no such column"),
        (
            "query,depends_on\n1_2,2_1\n",
            "labels, line 2, column depends_on: found '2_1', wanted an utterance of the sa",
        ),
        (
            "query,depends_on\n1_2,9_9\n",
            "labels, line 2, column depends_on: found '9_9', wanted the id of an utterance",
        ),
        (
            "query,depends_on\n9_9,1_1\n",
            "labels, line 2, column query: found '9_9', wanted the id of an utterance",
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused_by_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_text(text)
    depends = "depends_on" in text
    with pytest.raises(InputError) as caught:
        read_dependencies(path, TOPIC_OF) if depends else read_classes(
            path, TOPIC_OF.index, TOPIC_OF.index, ["1_1", "2_1"]
        )
    assert said in str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("classes.csv", "1_3,FT", "1_3,PT", "orders of topic 1 that are not valid by classes.csv"),
        (
            "orders.csv",
            "1_4,1-",
            "1_4,2-",
            "column id: found other ids of topic 1 than those of its inputs",
        ),
        ("orders.csv", "1,0,6,", "1,0,7,", "orders of topic 1 that are not whole"),
        ("orders.csv", "1,1,2,", "1,0,2,", "orders of topic 1 that are not whole"),
        (
            "orders.csv",
            "1,0,6,",
            "1,0,x,",
            "line 7, column position: found 'x', wanted a whole number",
        ),
        (
            "settings.json",
            "history",
            "all",
            "found the context 'all', wanted one of history, previous, first, first-a",
        ),
        ("settings.json", "{", "", "settings.json: found no JSON"),
    ],
)
def test_a_folder_that_was_changed_is_refused(name: str, old: str, new: str, said: str) -> None:
    assert (
        run("permute", "--topics", "topics.tsv", "--classes", "classes.csv", "-o", "out").exit_code
        == 0
    )
    path = Path("out", name)
    text = path.read_text().replace(
        f"{old[:3]},What is {old[:3]}?{old[3:]}", f"{old[:3]},x{new[3:]}"
    )
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        folders.read_permuted(Path("out"))


# --- classes proposed -----------------------------------------------------------------------------


def test_the_rule_proposes_by_words_that_point_back() -> None:
    texts = [
        "What is throat cancer?",
        "Is it treatable?",
        "Tell me about lung cancer.",
        "What are its symptoms?",
        "Why?",
    ]
    texts += ["What is the first sign?"]
    table = pd.DataFrame(
        {"query": [f"1_{n}" for n in range(6)], "topic": "1", "turn": range(6), "text": texts}
    )
    found = propose_classes(table)
    assert found["class"].tolist() == ["SE", "FT", "SE", "PT", "PT", "PT"]
    assert set(found["by"]) == {"rule"}
    turned = table.iloc[::-1]
    assert propose_classes(turned)["class"].tolist() == found["class"].tolist()[::-1]


# --- scores ---------------------------------------------------------------------------------------


def scores_at_random(permuted: Permuted, runs: int, seed: int) -> pd.DataFrame:
    """A score of every input for every run."""
    ids = [name for one in permuted.conversations for name in permuted.inputs(one).ids]
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        rng.random((len(ids), runs)), index=ids, columns=[f"r{n}" for n in range(runs)]
    )


JUDGED = pd.DataFrame(
    {"query": ["1_1", "1_2", "1_4", "1_5", "1_6", "2_2", "2_3", "2_4", "2_5", "3_1"]}
)


def listed(permuted: Permuted, values: pd.DataFrame, topic: str) -> pd.DataFrame:
    """Score of every run under every valid order of a topic, one by one."""
    one = next(one for one in permuted.conversations if one.topic == topic)
    inputs = permuted.inputs(one)
    lines = [
        tuple(inputs.lines[row][:length])
        for row, length in zip(inputs.row, inputs.length, strict=True)
    ]
    id_of = dict(zip(lines, inputs.ids, strict=True))
    judged = set(JUDGED["query"])
    rows = []
    for order in one.structure.orders().tolist():
        names = [id_of[seen(tuple(order), n, permuted.context)] for n in range(len(order))]
        kept = [name for name, u in zip(names, order, strict=True) if one.queries[u] in judged]
        rows.append(values.loc[kept].mean())
    return pd.DataFrame(rows)


@pytest.mark.parametrize("context", CONTEXTS)
def test_means_and_extremes_over_all_orders_are_those_of_listing_them(context: str) -> None:
    permuted = plan(context)
    values = scores_at_random(permuted, 3, 5)
    inputs = scored.judged_inputs(permuted, JUDGED)
    made = scored.scored_conversations(permuted, inputs, values.loc[inputs["id"]])
    every = scored.over_all_orders(made, list(values)).set_index(["run", "topic"])
    found = {topic: listed(permuted, values, topic) for topic in STRUCTURES}
    for run_name, topic in itertools.product(values, STRUCTURES):
        row, scores = every.loc[(run_name, topic)], found[topic][run_name].to_numpy()
        assert row["orders"] == len(scores) == row["drawn"] + 1
        assert row["how"] == ("enumeration" if context == "history" else "adjacency")
        expected = [scores.mean(), scores.std(), scores.min(), scores.max()]
        np.testing.assert_allclose(
            row[["mean", "sd", "minimum", "maximum"]].astype(float), expected, atol=1e-12
        )
    tables = scored.tables(made, list(values))
    two = tables["table-2"].set_index("run")
    leads = tables.get("table-3-all-orders")
    assert (leads is None) == (context == "history")
    for a, b in itertools.product(values, values):
        rivals = [name for name in values if name != a] if a == b else [b]
        largest = np.mean([(part[a] - part[rivals].mean(axis=1)).max() for part in found.values()])
        assert tables["table-3"].set_index("model").loc[a, b] == pytest.approx(
            largest
        )  # every order was drawn
        if leads is not None:
            assert leads.set_index("model").loc[a, b] == pytest.approx(largest)
    for name in ("mean", "minimum", "maximum"):
        expected = np.mean(
            [part.agg(name[:3] if name != "mean" else name) for part in found.values()], axis=0
        )
        np.testing.assert_allclose(two[name], expected, atol=1e-12)
        np.testing.assert_allclose(two[f"{name} of all"], expected, atol=1e-12)
    np.testing.assert_allclose(
        two["original"], np.mean([part.iloc[0] for part in found.values()], axis=0)
    )
    assert set(two["how"]) == {"exact"}
    assert (two["low"] == two["mean of all"]).all()


@pytest.mark.parametrize("drawn", [2, 3, 4])
def test_the_mean_of_drawn_orders_and_its_error_are_unbiased(drawn: int) -> None:
    """Over every choice of so many of the other five orders: the identity that defines both."""
    one = Conversation(
        "1", tuple(f"1_{n}" for n in range(4)), ("x",) * 4, ClassStructure([[n] for n in range(4)])
    )
    every, rng = one.structure.orders(), np.random.default_rng(2)
    truth, judged = rng.random(6), pd.DataFrame({"query": [f"1_{n}" for n in range(4)]})
    found = []
    for chosen in itertools.combinations(range(1, 6), drawn):
        ranks = [0, *chosen]
        few = Permuted([one], {"1": every[ranks]}, "history")
        inputs = few.inputs(one)
        values = pd.DataFrame({"a": 0.0}, index=inputs.ids)
        values.iloc[inputs.of_orders[:, -1], 0] = (
            4 * truth[ranks]
        )  # the last input is an order's own: all of it
        (made,) = scored.scored_conversations(few, scored.judged_inputs(few, judged), values)
        found.append(made.all_orders(np.ones(1)))
    assert {one["how"] for one in found} == {"drawn"}
    assert all(np.isnan([one["minimum"], one["maximum"]]).all() for one in found)
    assert np.mean([one["mean"] for one in found]) == pytest.approx(truth.mean(), abs=1e-12)
    variance = np.var([one["mean"] for one in found])
    assert np.mean([one["standard error"] ** 2 for one in found]) == pytest.approx(
        variance, abs=1e-12
    )


def test_the_interval_of_a_system_is_that_of_the_mean_over_conversations() -> None:
    every = pd.DataFrame(
        {"run": ["a"] * 2 + ["b"] * 2, "topic": ["1", "2"] * 2, "drawn": [4, 9, 5, 3]}
    )
    every = every.assign(
        mean=[0.2, 0.4, 0.5, 0.7], minimum=[0.1, np.nan, 0.1, 0.3], maximum=[0.3, np.nan, 0.9, 0.9]
    )
    every["how"] = ["enumeration", "drawn", "adjacency", "adjacency"]
    every["standard error"] = [0.0, 0.04, 0.0, 0.0]
    scores = pd.DataFrame(
        {"run": ["a", "b"] * 2, "topic": ["1", "1", "2", "2"], "permutation": 0, "value": 0.5}
    )
    table = scored.table_2(scores, every).set_index("run")
    assert table.loc["a", "low":"high"].tolist() == pytest.approx(
        [0.3 - 1.96 * 0.02, 0.3 + 1.96 * 0.02]
    )
    assert table.loc["b", "low":"maximum of all"].tolist() == pytest.approx([0.6, 0.6, 0.2, 0.9])
    assert table.loc["a", ["minimum of all", "maximum of all"]].isna().all()
    assert table["how"].tolist() == ["9 orders drawn in 1 of 2 conversations", "exact"]
    single = every.assign(**{"standard error": [0.0, np.nan, 0.0, 0.0]})
    assert scored.table_2(scores, single).set_index("run").loc["a", ["low", "high"]].isna().all()


def test_an_input_is_scored_as_a_ranking_of_its_utterance() -> None:
    permuted = plan("previous")
    inputs = scored.judged_inputs(permuted, JUDGED)
    rng = np.random.default_rng(8)
    documents = np.array([f"d{n}" for n in range(8)])
    qrels = pd.DataFrame(
        [(q, d, int(rng.integers(0, 4))) for q in JUDGED["query"] for d in documents[:6]],
        columns=["query", "document", "grade"],
    )
    rows = [
        ("mine", name, d, float(rng.integers(0, 4)))  # many ties
        for name in [*inputs["id"], "7-0_1"]
        for d in rng.permutation(documents)[:6]
    ]
    ranked = pd.DataFrame(rows, columns=["run", "topic", "document", "score"])
    one_by_one = ranked.rename(columns={"topic": "id"}).merge(inputs[["id", "query"]], on="id")
    for measure in ("nDCG@3", "AP(rel=2)", "RR@2", "Judged@3"):
        expected = effectiveness(one_by_one, qrels, by=("id",), measures={"m": measure}).set_index(
            "id"
        )["value"]
        found = scored.score_inputs(ranked, inputs, qrels, measure=measure)
        np.testing.assert_allclose(found, expected[found.index], atol=1e-12)
    short = ranked[ranked["topic"] != inputs["id"][2]]
    with pytest.warns(
        Note, match=f"mine has no ranking for 1 of {len(inputs)} inputs, which score 0"
    ):
        found = scored.score_inputs(short, inputs, qrels)
    assert found.iloc[2] == 0
    none = rf"run mine: found a ranking for none of {len(inputs)} inputs, such as 1-0_1, "
    none += r".*the other has 1_1"
    with pytest.raises(InputError, match=none):
        scored.score_inputs(ranked.assign(topic="1_1"), inputs, qrels)
    with pytest.raises(
        InputError, match=r"run mine: found a judgement for none of \d+ ranked documents, such as d"
    ):
        scored.score_inputs(ranked, inputs, qrels.assign(document="x" + qrels["document"]))
    with pytest.warns(Unseen, match=r"run mine: only a judgement for \d+ of \d+ ranked documents"):
        scored.score_inputs(ranked, inputs, qrels[qrels["document"] == "d0"])
    with pytest.raises(ValueError, match="ir_measures knows no measure 'nDGC'"):
        scored.score_inputs(ranked, inputs, qrels, measure="nDGC")


def test_topics_without_judgements_are_left_out_and_said() -> None:
    with pytest.warns(Note, match="topics 2, 3 have no judged utterance and are left out"):
        inputs = scored.judged_inputs(plan("first"), JUDGED[:3])
    assert set(inputs["query"]) == {"1_1", "1_2", "1_4"}
    with pytest.raises(ValueError, match="no utterance has a judgement: the qrels lack 1_1, 1_2"):
        scored.judged_inputs(plan("first"), JUDGED[:0])


def test_pairs_of_the_other_kind_are_refused() -> None:
    one = conversation("1")
    inputs = Inputs.of(one, np.arange(6)[None, :], "history")
    whole = scored.ScoredConversation(
        one, np.arange(6)[None, :], inputs, np.ones(6, bool), np.zeros((6, 1))
    )
    with pytest.raises(ValueError, match="depend on more than the utterance before"):
        whole.largest(np.ones(1))
