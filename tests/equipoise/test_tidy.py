"""The front door: what people hold, in Python or files, gives the tables of our own readers."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise
from commands import called
from equipoise import ir
from equipoise.errors import InputError, Note
from equipoise.loaders.groups import read_sets, tidy_memberships
from equipoise.tidy import tidy_qrels, tidy_runs, tidy_scores

door: Any = equipoise  # its names come when they are first used
RUN = {"q1": {"d1": 1.5, "d2": 3.0, "d3": 1.5}, "q2": {"d2": 0.5, "d4": 0.25}}
QRELS = {"q1": {"d1": 2, "d2": 0, "d3": -1}, "q2": {"d2": 1, "d4": 1}}
SIZE = {"d1": "large", "d2": "small", "d3": "large", "d4": "small"}
RANKED: list[Any] = [
    ["q1", "d2", 1],
    ["q1", "d3", 2],
    ["q1", "d1", 3],
    ["q2", "d2", 1],
    ["q2", "d4", 2],
]  # ties: later id first
ROWS = [
    (topic, document, score) for topic, ranked in RUN.items() for document, score in ranked.items()
]
JUDGED = [
    (topic, document, level)
    for topic, judged in QRELS.items()
    for document, level in judged.items()
]


class Ranx:
    """The part of ranx's Run and Qrels that is used."""

    def __init__(self, held: dict[str, dict[str, Any]], name: str | None = None) -> None:
        self.held, self.name = held, name

    def to_dataframe(self) -> pd.DataFrame:
        rows = [
            (topic, document, value)
            for topic, inner in self.held.items()
            for document, value in inner.items()
        ]
        return pd.DataFrame(rows, columns=["q_id", "doc_id", "score"])


def named(*columns: str) -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=list(columns))


@pytest.mark.parametrize(
    "held",
    [
        RUN,
        named("query_id", "doc_id", "score"),
        named("qid", "docno", "score").assign(
            docid=[7, 8, 9, 1, 2], query="some words"
        ),  # PyTerrier has these too
        named("topic", "document", "score"),
        [ir_measures.ScoredDoc(*row) for row in ROWS],
        (ir_measures.ScoredDoc(*row) for row in ROWS),
        Ranx(RUN),
    ],
)
def test_every_form_of_a_run_is_the_same_table(held: Any) -> None:
    table = tidy_runs(held)
    assert table[["topic", "document", "rank"]].to_numpy().tolist() == RANKED
    assert set(table["run"]) == {"run"}
    assert list(table.columns) == ["run", "topic", "document", "rank", "score"]


def test_runs_have_names_and_ranks_stand() -> None:
    assert set(tidy_runs(Ranx(RUN, "bm25"))["run"]) == {"bm25"}
    assert (
        tidy_runs({"a": RUN, "b": named("qid", "docno", "score")})["run"].tolist()
        == ["a"] * 5 + ["b"] * 5
    )
    ranked = pd.DataFrame({"tag": "x", "qid": 7, "docno": ["a", "b"], "rank": [1, 0]})
    assert tidy_runs(ranked).to_numpy().tolist() == [["x", "7", "b", 0], ["x", "7", "a", 1]]
    tidy = pd.DataFrame(
        {"run": "r", "topic": "t", "document": ["b", "a"], "rank": [2, 1], "score": [0.0, 1.0]}
    )
    assert tidy_runs(tidy) is tidy  # a reader's, in the order of its file


@pytest.mark.parametrize(
    "held",
    [
        QRELS,
        pd.DataFrame(JUDGED, columns=["query_id", "doc_id", "relevance"]).assign(iteration="0"),
        pd.DataFrame(JUDGED, columns=["qid", "docno", "label"]),
        pd.DataFrame(JUDGED, columns=["topic", "document", "level"]).astype({"level": "float"}),
        [ir_measures.Qrel(*row) for row in JUDGED],
        Ranx(QRELS),
    ],
)
def test_every_form_of_judgements_is_the_same_table(held: Any) -> None:
    expected = [[topic, document, max(level, 0)] for topic, document, level in JUDGED]
    assert tidy_qrels(held).to_numpy().tolist() == expected


@pytest.mark.parametrize(
    "held",
    [
        SIZE,
        {name: {group: 1} for name, group in SIZE.items()},
        pd.DataFrame({"docno": list(SIZE), "group": list(SIZE.values())}),
        pd.DataFrame({"doc_id": list(SIZE), "large": [1.0, 0, 1, 0], "small": [0, 1, 0, 1.0]}),
        pd.DataFrame(
            {
                "docno": list(SIZE),
                "SIZE=large": [1, 0, 1, 0],
                "SIZE=small": [0, 1, 0, 1],
                "AGE=x": 1,
            }
        ),
    ],
)
def test_every_form_of_memberships_is_the_same_table(held: Any) -> None:
    table, attribute = tidy_memberships(held, "SIZE")
    assert table.to_numpy().tolist() == [["d1", 1, 0], ["d2", 0, 1], ["d3", 1, 0], ["d4", 0, 1]]
    assert (attribute.groups, attribute.kind, attribute.target.tolist()) == (
        ("large", "small"),
        "nominal",
        [0.5, 0.5],
    )


def test_a_document_of_several_groups_belongs_to_each_in_part() -> None:
    rows = pd.DataFrame({"document": ["d1", "d1", "d2"], "group": ["a", "b", "b"]})
    assert tidy_memberships(rows, "G")[0].to_numpy().tolist() == [["d1", 0.5, 0.5], ["d2", 0, 1]]
    shares = tidy_memberships(rows.assign(share=[3, 1, 2]), "G")[0]
    assert shares.to_numpy().tolist() == [["d1", 0.75, 0.25], ["d2", 0, 1]]
    cells = {"d1": "a; b", "d2": "b", "d3": "NA", "d4": "?"}
    several = "several groups, separated by ; or |, in G for 1 of 4 rows"
    with pytest.warns(Note, match="no group in G for 2 of 5"), pytest.warns(Note, match=several):
        in_a_cell = tidy_memberships(cells, "G")[0]
    assert in_a_cell.to_numpy().tolist() == [["d1", 0.5, 0.5], ["d2", 0, 1]]
    for column in (
        [["a", "b"], ["b"], [], []],
        ["['a', 'b']", "['b']", "[]", "n/a"],
        ["a|b", "b", "", ""],
    ):
        table = pd.DataFrame({"document": ["d1", "d2", "d3", "d4"], "G": column})
        with pytest.warns(Note):
            pd.testing.assert_frame_equal(read_sets(table)["G"][0], in_a_cell)
    again = pd.DataFrame({"document": ["d0", "d1", "d1"], "group": ["b", "a;b", "b"]})
    with pytest.warns(Note), pytest.raises(ValueError, match=r"line 3: .* got b again"):
        tidy_memberships(again, "G")
    by_topic = tidy_memberships(rows.assign(qid=["q1", "q2", "q1"]), "G")[0]
    assert by_topic.to_numpy().tolist() == [
        ["q1", "d1", 1, 0],
        ["q1", "d2", 0, 1],
        ["q2", "d1", 0, 1],
    ]


def test_from_dicts_to_scores_in_five_lines() -> None:
    scores = door.gfr(RUN, QRELS, {"SIZE": SIZE})
    long = [
        (topic, name, *((1.0, 0.0) if group == "large" else (0.0, 1.0)))
        for topic in RUN
        for name, group in SIZE.items()
    ]
    members = pd.DataFrame(long, columns=["topic", "document", "large", "small"])
    expected = door.gfr_table(
        pd.DataFrame(RANKED, columns=["topic", "document", "rank"]).assign(run="run", score=0.0),
        pd.DataFrame(JUDGED, columns=["topic", "document", "level"]).replace({"level": {-1: 0}}),
        {"SIZE": members},
        {"SIZE": door.AttributeSet("SIZE", "nominal", ("large", "small"), np.array([0.5, 0.5]))},
    )
    pd.testing.assert_frame_equal(scores, expected)
    alone = door.gfr(
        RUN,
        QRELS,
        SIZE,
        {"SIZE": {"kind": "nominal", "groups": ["large", "small"], "target": "uniform"}},
    )
    pd.testing.assert_frame_equal(alone, expected)


JUDGED_ROWS = [ir_measures.Qrel(*row) for row in JUDGED]


def test_order_is_that_of_trec_eval() -> None:
    """Reciprocal rank by pytrec_eval, from the same dicts, and by the first relevant rank here."""
    rng = np.random.default_rng(3)
    run = {
        f"q{q}": {f"d{n}": float(rng.integers(4)) for n in rng.permutation(20)} for q in range(20)
    }
    qrels = {
        topic: {name: int(rng.random() < 0.2) for name in ranked} for topic, ranked in run.items()
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    table = tidy_runs(run).merge(tidy_qrels(qrels))
    first = table[table["level"] > 0].groupby("topic")["rank"].min()
    for topic, found in theirs.items():
        assert found["recip_rank"] == pytest.approx(1 / first[topic] if topic in first else 0)


def test_ranking_bias_and_overlap_take_dicts() -> None:
    texts = {"d1": "He left.", "d2": "She left.", "d3": "Rain.", "d4": "He, again."}
    scores = door.score_ranking_bias(RUN, texts, {"he": "m", "she": "f"}, cutoffs=[1])
    rows = scores.query("topic == 'q1' and measure == 'TExFAIR(proportional=False)@1'")
    assert rows["value"].tolist() == [0.0]  # the first document has terms of one group only
    assert door.crbo(RUN, RUN)["value"].tolist() == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    ("tidy", "held", "said"),
    [
        (
            tidy_runs,
            named("q", "d", "s"),
            r"topic or query_id .* and document",
        ),
        (tidy_runs, named("qid", "docno", "s"), "columns score, got qid"),
        (
            tidy_runs,
            named("qid", "docno", "score").assign(score="high"),
            "must be a finite number, got 'high'",
        ),
        (
            tidy_runs,
            named("qid", "docno", "score").assign(docno=[None, *"abcd"]),
            "a document in each row, got no document in 1 of",
        ),
        (tidy_runs, {"q1": 3}, "must be a table"),
        (tidy_runs, [("q1", "d1", 2.0)], "named tuples"),
        (tidy_qrels, named("qid", "docno", "x"), r"level or relevance or label"),
        (tidy_qrels, {"q1": {"d1": 0.5}}, "must be a whole number, got 0.5"),
        (tidy_memberships, {"d1": "a", "d2": "a"}, "two or more groups"),
        (
            tidy_memberships,
            pd.DataFrame({"document": ["a"], "x": [1.0]}),
            "a column group, or columns for each group",
        ),
        (
            tidy_memberships,
            pd.DataFrame({"docno": ["a"], "x": [1.0], "y": [1.0]}),
            "with a sum of 1, got .* for document a",
        ),
        (
            tidy_memberships,
            pd.DataFrame({"docno": ["a"] * 2, "group": ["x", "x"]}),
            "two or more groups",
        ),
    ],
)
def test_what_lacks_is_told_in_a_sentence(tidy: Any, held: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tidy(held, *(["SIZE"] if tidy is tidy_memberships else []))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=8),
    st.sampled_from([int, float, str, "float with a missing value"]),
)
def test_numbers_that_a_target_names_are_groups(codes: list[int], kind: Any) -> None:
    documents = [f"d{place}" for place in range(len(codes))]
    names = pd.DataFrame({"docno": documents, "size": [f"g{code}" for code in codes]})
    numbers = names.assign(size=pd.Series(codes).astype(kind if isinstance(kind, type) else float))
    if not isinstance(kind, type):
        numbers = pd.concat([numbers, pd.DataFrame({"docno": ["d"], "size": [np.nan]})])
    target = {"size": ",".join(f"{code}:{share}" for code, share in enumerate((0.5, 0.25, 0.25)))}
    expected, _ = read_sets(names, targets={"size": "g0:0.5,g1:0.25,g2:0.25"})["size"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)  # of the missing value
        table, attribute = read_sets(numbers, targets=target)["size"]
    assert attribute.groups == ("0", "1", "2")
    assert table.to_numpy().tolist() == expected.to_numpy().tolist()
    with pytest.raises(InputError, match="numbers are shares unless a target names them"):
        read_sets(numbers)


# --- files ----------------------------------------------------------------------------------------


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_scores_are_understood_alike_by_compare(tmp_path: Path) -> None:
    """Of ir_measures, ranx, PyTerrier, and files with and without names of runs."""
    runs = {"bm25": RUN, "dense": {topic: {"d4": 1.0, "d1": 0.5} for topic in RUN}}
    measures = [ir_measures.nDCG @ 3, ir_measures.RR]
    metrics, rows, evaluated, files = {}, [], [], []
    for name, run in runs.items():
        metrics[name] = list(ir_measures.iter_calc(measures, QRELS, run))
        evaluated.append(SimpleNamespace(name=name, scores={str(one): {} for one in measures}))
        lines = "all\tRR\t0.5\n"  # by which the reader knows the column of topics
        for query, measure, value in metrics[name]:
            rows.append((name, query, str(measure), value))
            evaluated[-1].scores[str(measure)][query] = value
            lines += f"{query}\t{measure}\t{value}\n"
        files.append(tmp_path / f"{name}.tsv")
        files[-1].write_text(lines)
    frame = pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])
    frame.to_csv(tmp_path / "all.csv", index=False)
    expected = door.compare_systems(frame, "RR", test="t").comparisons
    assert set(expected["a"]) | set(expected["b"]) == set(runs)
    for source in (metrics, evaluated, files, str(tmp_path / "all.csv")):
        compared = door.compare_systems(source, "RR", test="t").comparisons
        pd.testing.assert_frame_equal(compared, expected)
    with pytest.raises(ValueError, match="a run has a score twice"):
        tidy_scores([evaluated[0], evaluated[0]])


PEOPLE = "docno,gender,age\nd1,female,old\nd2,male,young\nd3,female,young\nd4,male,old\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A run, qrels, and groups of documents by several columns, as files."""
    lines = [f"{topic} Q0 {name} {rank} {9 - rank} mine\n" for topic, name, rank in RANKED]
    judged = [f"{topic} 0 {name} {level}\n" for topic, name, level in JUDGED]
    write(tmp_path, run="".join(lines), qrels="".join(judged), **{"people.csv": PEOPLE})
    return tmp_path / "people.csv"


def test_a_path_a_frame_and_dicts_are_understood_alike(people: Path) -> None:
    run, qrels = people.with_name("run"), people.with_name("qrels")
    table = pd.read_csv(people)
    by_set = {
        name: dict(zip(table["docno"], table[name], strict=True)) for name in ("gender", "age")
    }
    expected = door.gfr({"mine": RUN}, QRELS, by_set)
    assert {"gender", "age"} < set(expected["attribute"])
    for runs in (run, str(run), [run], {"mine": run}):
        for members in (people, str(people), table, dict.fromkeys(by_set, str(people))):
            scores = door.gfr(runs, qrels, members)
            pd.testing.assert_frame_equal(scores, expected, check_dtype=False)
    output = people.with_name("out.csv")
    for more in ([str(people)], [f"gender={people}", "--membership", f"age={people}"]):
        command = ["score", "gfr", "--run", run, "--qrels", qrels, "--membership", *more]
        assert called(*command, "-o", output).exit_code == 0
        np.testing.assert_allclose(pd.read_csv(output)["value"], expected["value"], rtol=1e-11)


def test_one_of_several_columns_by_its_name_or_by_its_attribute_set(people: Path) -> None:
    lists = people.with_name("run"), people.with_name("qrels")
    age = {"age": {"kind": "ordinal", "groups": ["young", "old"], "target": [2, 1]}}
    scores = door.gfr(*lists, people, age)
    assert set(scores["attribute"]) == {"", "age"}
    try:
        ir.groups("age", people, "young:2,old:1", kind="ordinal")
        measured = ir_measures.calc_aggregate([ir.GFR], QRELS, RUN)[ir.GFR]
        mean = scores.query("topic == '' and measure == 'GFR-iRBU+RNOD'")["value"].item()
        assert measured == pytest.approx(mean)
        ir.groups("gender", str(people))  # by its own default target
        assert ir._groups["gender"][0].target.tolist() == [0.5, 0.5]
    finally:
        ir._groups.clear()


def test_columns_of_shares_of_several_sets_are_read_from_one_file(people: Path) -> None:
    """As `SET=group`, next to a column of names; the command reads the same."""
    path = people.with_name("shares.csv")
    rows = ["d1,female,1,0", "d2,male,0,1", "d3,female,0,1", "d4,male,0.25,0.75"]
    path.write_text("\n".join(["docno,gender,age=young,age=old", *rows]))
    found = read_sets(path, kinds={"age": "ordinal"})
    assert list(found) == ["gender", "age"]
    table, attribute = found["age"]
    assert (attribute.groups, attribute.kind) == (("young", "old"), "ordinal")
    assert table.to_numpy().tolist()[3] == ["d4", 0.25, 0.75]
    run, qrels = people.with_name("run"), people.with_name("qrels")
    expected = door.gfr(run, qrels, path)
    output = people.with_name("out.csv")
    command = ["score", "gfr", "--run", run, "--qrels", qrels, "--membership", path]
    assert called(*command, "-o", output).exit_code == 0
    np.testing.assert_allclose(pd.read_csv(output)["value"], expected["value"], rtol=1e-11)


def test_columns_of_numbers_are_no_groups_and_said_so(people: Path) -> None:
    numbers = pd.read_csv(people).assign(age=[70, 20, 30, 60])
    lists = people.with_name("run"), people.with_name("qrels")
    with pytest.warns(Note, match="not read: column age of numbers, not of names of groups"):
        scores = door.gfr(*lists, numbers)
    assert set(scores["attribute"]) == {"", "gender"}


def test_a_column_of_titles_is_not_read_as_groups(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"d{number},{'ab'[number % 2]},Title {number}" for number in range(30)]
    path.write_text("\n".join(["docno,team,title", *rows]), encoding="utf-8")
    with pytest.warns(Note, match="not read: column title, whose values differ in most rows"):
        ((_, attribute),) = read_sets(path).values()
    assert (attribute.name, attribute.groups) == ("team", ("a", "b"))


def test_a_column_of_ids_is_no_column_of_groups() -> None:
    groups = {f"d{number}": f"person {number}" for number in range(1001)}
    with pytest.raises(ValueError, match="at most 1,000 groups, not of ids, got 1,001 names"):
        tidy_memberships(groups, "G")


def test_several_runs_come_in_a_list_and_of_one_name_they_are_refused() -> None:
    pair = [Ranx(RUN, "bm25"), Ranx(RUN, "dense")]
    assert set(tidy_runs(pair)["run"]) == {"bm25", "dense"}
    with pytest.raises(InputError, match="a dictionary of the runs by their names"):
        tidy_runs([pair[0], pair[0]])


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand in for ir_datasets with one test collection."""
    module: Any = ModuleType("ir_datasets")
    judged = SimpleNamespace(has_qrels=lambda: True, qrels_iter=lambda: iter(JUDGED_ROWS))

    def without_network() -> Iterator[Any]:
        raise RuntimeError("all download sources failed")

    module.load = {
        "vaswani": SimpleNamespace(has_qrels=lambda: True, qrels_iter=without_network),
        "small/test": judged,
        "small": SimpleNamespace(has_qrels=lambda: False),
    }.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    return iter(())


# --- commands -------------------------------------------------------------------------------------


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield from (
            commands(command, (*path, name))
            if isinstance(command, click.Group)
            else [(*path, name)]
        )


RUNS = ["--run", "run", "--qrels", "qrels", "--membership", "G=groups.csv"]


@pytest.fixture
def two_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{topic} Q0 {name} {rank} {9 - rank} mine" for topic, name, rank in RANKED]
    judged = [f"{topic} 0 {name} {level}" for topic, name, level in JUDGED]
    groups = "document,group\n" + "".join(f"{name},{group}\n" for name, group in SIZE.items())
    write(tmp_path, run="\n".join(lines), qrels="\n".join(judged), **{"groups.csv": groups})


def scores(*more: str) -> pd.DataFrame:
    result = called("score", "gfr", *RUNS, *more, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    return pd.read_csv(
        "out.csv", keep_default_na=False, na_values={"value": [""], "low": [""], "high": [""]}
    )


@pytest.mark.usefixtures("two_topics")
def test_the_command_gives_what_the_dicts_give() -> None:
    expected = door.gfr(RUN, QRELS, {"G": SIZE})
    np.testing.assert_allclose(scores()["value"], expected["value"], rtol=1e-11)


@pytest.mark.usefixtures("two_topics")
def test_two_topics_have_means_without_an_interval() -> None:
    table = scores("--intervals", "--resamples", "999", "--level", "0.9", "--seed", "4")
    assert (table["topic"] == "").any()
    assert table[["low", "high"]].isna().all(axis=None)
    assert "low" not in scores()


@pytest.mark.usefixtures("two_topics")
def test_what_the_groups_have_sums_to_the_whole() -> None:
    table = scores("--by-group")
    for utility in ("ERR", "iRBU"):
        whole = table[table["measure"] == utility].set_index("topic")["value"]
        parts = table[table["measure"].isin([f"{utility}(group=large)", f"{utility}(group=small)"])]
        assert set(parts["attribute"]) == {"G"}
        assert parts.groupby("topic")["value"].sum().to_dict() == pytest.approx(whole.to_dict())
    # q2: d2, level 1, leaves 1/4 of the users at rank 1, d4 1/4 of the rest at rank 2, and both are
    # small
    assert table.query("topic == 'q2' and measure == 'ERR(group=large)'")["value"].item() == 0
