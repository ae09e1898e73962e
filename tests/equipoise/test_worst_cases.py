"""Worst cases against their definition; trees by command against plain sums over their paths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import good_files
from commands import called
from equipoise.measures.worst_cases import worst_cases


def scored(values: list[float], weights: list[float] | None = None) -> pd.DataFrame:
    table = pd.DataFrame({"run": "a", "order": range(len(values)), "measure": "R", "value": values})
    return table if weights is None else table.assign(probability=weights)


def by_case(table: pd.DataFrame) -> dict[str, float]:
    return dict(zip(table["case"], table["value"], strict=True))


def quantile_integral(values: list[float], weights: list[float], worst: float) -> float:
    """CVaR by its definition: the mean of the quantile function below ``worst``, step by step."""
    steps = sorted(
        (value, weight / sum(weights)) for value, weight in zip(values, weights, strict=True)
    )
    mass = area = 0.0
    for value, weight in steps:
        part = max(0.0, min(weight, worst - mass))
        area, mass = area + part * value, mass + part
    return area / mass


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 9)), min_size=1, max_size=12),
    st.floats(0.01, 1),
)
@settings(deadline=None)
def test_the_tail_is_the_integral_of_the_quantiles(
    cases: list[tuple[float, int]], worst: float
) -> None:
    values, counts = [value for value, _ in cases], [count for _, count in cases]
    weights = [count / sum(counts) for count in counts]
    found = by_case(worst_cases(scored(values, weights), "order", worst=worst))
    assert found["mean"] == pytest.approx(np.average(values, weights=weights))
    assert found["worst"] == min(values)
    assert found[f"worst {worst:g}"] == pytest.approx(
        quantile_integral(values, weights, worst), abs=1e-9
    )
    high = by_case(
        worst_cases(
            scored([-value for value in values], weights), "order", worst=worst, worse="high"
        )
    )
    assert high == pytest.approx({name: -value for name, value in found.items()})


def test_each_score_has_its_own_cases() -> None:
    both = pd.concat([scored([0.4, 0.2]), scored([3.0, 1.0, 2.0]).assign(run="b")]).sample(
        frac=1, random_state=1
    )
    table = worst_cases(both, "order", worst=0.5)
    assert table.set_index(["run", "case"])["value"].to_dict() == pytest.approx(
        {("a", "mean"): 0.3, ("a", "worst"): 0.2, ("a", "worst 0.5"): 0.2}
        | {("b", "mean"): 2, ("b", "worst"): 1, ("b", "worst 0.5"): (1 + 0.5 * 2) / 1.5}
    )
    assert table.groupby("run")["cases"].first().to_dict() == {"a": 2, "b": 3}


def test_what_cannot_be_is_not_the_worst() -> None:
    assert by_case(worst_cases(scored([0.1, 0.5], [0.0, 1.0]), "order"))["worst"] == 0.5


@pytest.mark.parametrize(
    ("table", "over", "complaint"),
    [
        (scored([0.1, float("nan")]), "order", "1 not finite"),
        (scored([0.1, 0.2], [-1, 2]), "order", "must not be negative"),
        (scored([0.1, 0.2], [0, 0]), "order", "nor all be 0"),
        (
            scored([0.1, 0.2], [0.2, 0.4]),
            "order",
            "sum to 0.6 over the cases of run a, measure R, and not to 1 for 1 of 1 scores",
        ),
        (
            pd.concat([scored([1.0], [1.0]).assign(run="b"), scored([0.1, 0.2], [2, 3])]),
            "order",
            "sum to 5 over the cases of run a, measure R, and not to 1 for 1 of 2 scores",
        ),
        (scored([0.1, 1e308]), "order", r"scores: found 1e\+308, wanted numbers up to 1e\+100"),
        (scored([0.1, 0.2]).assign(order=1), "order", "order 1 of a score comes twice"),
        (scored([0.1, 0.2]).drop(columns="order"), "trial", "run 'a' names no trial"),
        (scored([0.1, 0.2]), "annotator", "annotator"),
    ],
)
def test_what_is_no_table_of_cases_is_refused(
    table: pd.DataFrame, over: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        worst_cases(table, over)


# --- commands -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    good_files.lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> pd.DataFrame:
    said = called(*words, "-o", "out.csv")
    assert said.exit_code == 0, said.output
    return pd.read_csv("out.csv", keep_default_na=False)


@pytest.mark.usefixtures("folder")
def test_the_worst_of_trials() -> None:
    table = run("score", "worst", "cases.csv", "--over", "trial", "--worst", "0.25")
    assert table["run"].unique().tolist() == ["a"]
    assert by_case(table) == {"mean": 0.375, "worst": 0.25, "worst 0.25": 0.25}


def by_hand(folder: Path) -> dict[str, float]:
    """GFRC2 of the two paths as plain conversations: the second nugget is at word 12 + 8."""
    first, nugget = "1,3,4,2,1 0,0 1 0\n", "2,20,20,1,0 1,0 1 0\n"
    texts = {"more": f"T,{first}a,T,2,,,0,,\n", "adhere": f"T,{first}a,T,{nugget}"}
    scores = {}
    for name, text in texts.items():
        (folder / "plain.csv").write_text(f"run,topic,turn,start,end,level,SIZE,KIND\na,{text}")
        table = run("score", "gfrc2", "plain.csv", "--attributes", "sets.yaml")
        scores[name] = table.loc[table["measure"] == "GFRC2", "value"].item()
    return scores


def test_a_tree_is_the_sum_over_its_paths(folder: Path) -> None:
    tree = ["score", "tree", "tree.csv", "node_nuggets.csv", "--attributes", "sets.yaml"]
    table = run(*tree, "--paths", "paths.csv", "--compare")
    paths = pd.read_csv("paths.csv", keep_default_na=False)
    assert paths.groupby("path")["probability"].first().to_dict() == {
        "T1/adhere": 0.25,
        "T1/more": 0.75,
    }
    for (measure, attribute), rows in paths.groupby(["measure", "attribute"]):
        found = by_case(table[(table["measure"] == measure) & (table["attribute"] == attribute)])
        assert found["mean"] == pytest.approx((rows["probability"] * rows["value"]).sum())
        assert found["worst"] == rows["value"].min()
    for name, value in by_hand(folder).items():
        assert (
            paths.loc[
                (paths["measure"] == "GFRC2") & (paths["path"] == f"T1/{name}"), "value"
            ].item()
            == value
        )
    assert {"R", "GFRC"} <= set(table["measure"])


def test_intents_take_their_own_branches_and_nuggets(folder: Path) -> None:
    Path("tree.csv").write_text(
        "run,topic,node,parent,probability,words,intent\na,T1,1,,1,12,\n"
        "a,T1,more,1,3/4,9,new\na,T1,adhere,1,1/4,20,new\na,T1,more,1,0,9,old\na,T1,adhere,1,1,20,old\n"
    )
    Path("node_nuggets.csv").write_text(
        "run,topic,node,start,end,level,SIZE,KIND,intent\n"
        "a,T1,1,3,4,2,1 0,0 1 0,\na,T1,adhere,8,8,1,0 1,0 1 0,old\n"
    )
    tree = ["score", "tree", "tree.csv", "node_nuggets.csv", "--attributes", "sets.yaml"]
    table = run(*tree, "--intent", "new=.8", "--intent", "old=.2")
    mean = table[(table["case"] == "mean") & (table["measure"] == "GFRC2")].set_index("intent")[
        "value"
    ]
    more, adhere = by_hand(folder).values()
    assert adhere > more
    assert mean.to_dict() == pytest.approx(
        {"new": more, "old": adhere, "all": 0.8 * more + 0.2 * adhere}
    )
    for shares, complaint in (
        (["new=.8"], "needs a share, and no other: old"),
        (["new=.8", "old=.1"], "sum to 0.9"),
        (["new"], "NAME=VALUE"),
        (["new=x", "old=1"], "NAME=SHARE"),
    ):
        said = called(*tree, *(word for share in shares for word in ("--intent", share)))
        assert (said.exit_code, complaint in said.output) == (2, True), said.output


@pytest.mark.usefixtures("folder")
def test_a_bad_tree_names_the_line() -> None:
    Path("tree.csv").write_text(
        "run,topic,node,parent,probability,words\na,T1,1,,1,x\na,T1,2,1,-1,3.5\n"
    )
    said = called("score", "tree", "tree.csv", "node_nuggets.csv", "--attributes", "sets.yaml")
    assert said.exit_code == 2
    for told in (
        "line 2, column words: found 'x'",
        "line 3, column probability",
        "line 3, column words",
    ):
        assert told in said.output


def test_the_worst_topic_is_none_of_the_means_and_whatever_was_seen() -> None:
    """What `score gfr` writes: a mean with an empty topic, and shares seen that differ by topic."""
    rows = [("q1", 0.9, 0.5), ("q2", 0.2, 1.0), ("", 0.55, 0.75)]
    table = pd.DataFrame(rows, columns=["topic", "value", "seen"]).assign(
        run="a", measure="ERR", low=0.1, high=0.9
    )
    found = worst_cases(table, "topic", worst=0.5)
    assert set(found["cases"]) == {2}
    assert by_case(found) == pytest.approx({"mean": 0.55, "worst": 0.2, "worst 0.5": 0.2})
    with pytest.raises(ValueError, match="means only"):
        worst_cases(table[table["topic"] == ""], "topic")
