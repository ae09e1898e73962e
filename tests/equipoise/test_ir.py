"""Guards the measures of ir_measures: the library's, by a plain way, in its syntax, beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest

from equipoise import ir
from equipoise.attributes import AttributeSet
from equipoise.errors import InputError
from equipoise.measures.gfr import gfr_table
from equipoise.measures.ranking_bias import awrf
from equipoise_compendium import project

QRELS = {"t1": {"d1": 2, "d2": 0, "d3": 1}, "t2": {"d2": 1}, "t3": {"d1": 1}}
RUN = {
    "t1": {"d2": 3.0, "d1": 2.0, "d4": 1.0},
    "t2": {"d3": 2.0, "d2": 2.0},
    "unjudged": {"d1": 1.0},
}
PAGES = pd.DataFrame(
    {"docno": ["d1", "d2", "d3"], "small": [1.0, 0.25, 0.0], "large": [0.0, 0.75, 1.0]}
)
TEXTS = {"d1": "He and his father.", "d2": "She sang.", "d3": "Rain", "d4": "he ran; she did not"}
TERMS = [("he", "m"), ("his", "m"), ("she", "f")]


@pytest.fixture(autouse=True)
def named() -> Iterator[None]:
    ir.groups("SIZE", PAGES, [1, 3], kind="ordinal")
    ir.texts(TEXTS.items(), TERMS)
    yield
    ir._groups.clear()
    ir._texts.clear()


def by_topic(measure: Any, run: Any = None) -> dict[str, float]:
    found = ir_measures.iter_calc([measure], QRELS, RUN if run is None else run)
    return {one.query_id: one.value for one in found}


def test_scores_that_trec_eval_cannot_tell_apart_are_tied() -> None:
    """Single precision has 1 + 1e-9 as 1, and the later id comes first, as in ir_measures."""
    run = {"t1": {"d1": 1 + 1e-9, "d2": 1.0}}
    plain = {"t1": {"d1": 1.0, "d2": 1.0}}
    assert by_topic(ir.GFR(groups="SIZE"), run) == by_topic(ir.GFR(groups="SIZE"), plain)
    (reciprocal_rank,) = ir_measures.iter_calc([ir_measures.RR], {"t1": QRELS["t1"]}, run)
    assert reciprocal_rank.value == 0.5


def test_gfr_is_that_of_the_table() -> None:
    topics = ["t1", "t1", "t1", "t2", "t2"]
    lists = pd.DataFrame({"run": "r", "topic": topics, "document": ["d2", "d1", "d4", "d3", "d2"]})
    lists = lists.assign(rank=[1, 2, 3, 1, 2], score=[3.0, 2, 1, 2, 1])
    qrels = pd.DataFrame([(t, d, level) for t, own in QRELS.items() for d, level in own.items()])
    qrels = qrels.set_axis(["topic", "document", "level"], axis=1)
    members = pd.concat(
        [PAGES.rename(columns={"docno": "document"}).assign(topic=topic) for topic in QRELS]
    )
    size = AttributeSet("SIZE", "ordinal", ("small", "large"), np.array([1.0, 3.0]))
    table = gfr_table(lists, qrels, {"SIZE": members}, {"SIZE": size}, cutoff=2)
    expected = (
        table[table["measure"] == "GFR-iRBU+RNOD"].set_index("topic")["value"].drop("").to_dict()
    )
    assert by_topic(ir.GFR @ 2) == pytest.approx(expected)
    assert by_topic(ir.GFR @ 2)["t3"] == 0
    other = table[table["measure"] == "GFR-ERR+RNOD"].set_index("topic")["value"].drop("").to_dict()
    assert by_topic(ir_measures.parse_measure("GFR(utility='ERR')@2")) == pytest.approx(other)


def test_awrf_is_computed_by_rank_with_documents_without_membership() -> None:
    rows = {row.docno: [row.small, row.large] for row in PAGES.itertuples()}
    found = by_topic(ir.AWRF @ 3)
    expected = awrf([rows["d2"], rows["d1"], [0.5, 0.5]], [3], [0.25, 0.75])
    assert found["t1"] == pytest.approx(expected[0])
    # t2: tied scores, document ids descending
    assert found["t2"] == pytest.approx(awrf([rows["d3"], rows["d2"]], [3], [0.25, 0.75])[0])
    assert np.isnan(found["t3"])
    distance = by_topic(ir.AWRF(distance="jsd") @ 1)["t1"]
    assert distance == pytest.approx(awrf([rows["d2"]], [1], [0.25, 0.75], distance="jsd")[0])


def test_measures_of_texts_by_hand() -> None:
    """TExFAIR at 1: of t1 one document, only of she, so 1 - TED = 0; of t2, rain, none, so 1."""
    assert by_topic(ir.TExFAIR @ 1) == pytest.approx(
        {"t1": 0.0, "t2": 1.0, "t3": np.nan}, nan_ok=True
    )
    # neutral texts are worth 1: rain, and she sang (one occurrence, at the threshold)
    assert by_topic(ir.NFaiRR @ 1) == pytest.approx(
        {"t1": 1.0, "t2": 1.0, "t3": np.nan}, nan_ok=True
    )
    discounted, plain = (by_topic(ir.TExFAIR(proportional=way) @ 2)["t2"] for way in (True, False))
    assert plain == pytest.approx(0.0)  # she alone
    assert discounted == pytest.approx(1 - (1 / np.log2(3)) / (1 + 1 / np.log2(3)))


def test_beside_others_in_one_call_and_with_the_names_they_print() -> None:
    wanted = [
        ir_measures.nDCG @ 2,
        ir.GFR @ 2,
        ir_measures.parse_measure("AWRF(groups='SIZE',distance='jsd')@2"),
    ]
    frame = pd.DataFrame([(t, d, s) for t, own in RUN.items() for d, s in own.items()])
    frame.columns = pd.Index(["query_id", "doc_id", "score"])
    complete = {"t1": QRELS["t1"], "t2": QRELS["t2"]}
    for run in (RUN, frame):
        found = ir_measures.calc_aggregate(wanted, complete, run)
        alone = {
            measure: ir_measures.calc_aggregate([measure], complete, run)[measure]
            for measure in wanted
        }
        assert found == pytest.approx(alone)
    assert [str(measure) for measure in wanted] == [
        "nDCG@2",
        "GFR@2",
        "AWRF(groups='SIZE',distance='jsd')@2",
    ]
    assert np.isnan(
        ir_measures.calc_aggregate([ir.AWRF], QRELS, RUN)[ir.AWRF]
    )  # t3 has no list: nothing is guessed
    assert by_topic(ir.GFR, {}) == dict.fromkeys(QRELS, 0.0)


def test_files_of_fairweb_are_named_alike(tmp_path: Path) -> None:
    for topic in QRELS:
        with (tmp_path / "m.gmemb").open("a") as file:
            file.write(
                "".join(
                    f"{topic} {row.docno} {row.small} {row.large}\n" for row in PAGES.itertuples()
                )
            )
    (tmp_path / "t.golddistr").write_text("1\n3\n")
    expected = by_topic(ir.GFR @ 2)
    ir.groups("SIZE", tmp_path / "m.gmemb", tmp_path / "t.golddistr", kind="ordinal")
    assert by_topic(ir.GFR @ 2) == pytest.approx(expected)


def test_what_was_not_named_is_said() -> None:
    with pytest.raises(ValueError, match=r"^invalid param groups='SIZE\+AGE': must be of SIZE; "):
        by_topic(ir.GFR(groups="SIZE+AGE"))
    ir.groups("KIND", PAGES)
    with pytest.raises(ValueError, match=r"^invalid param groups=None: must be one set, as AWRF"):
        by_topic(ir.AWRF)
    assert set(by_topic(ir.GFR(groups="SIZE+KIND"))) == set(QRELS)
    ir._texts.clear()
    with pytest.raises(
        ValueError, match=r"^invalid param texts=None: declare it by equipoise.ir.texts"
    ):
        by_topic(ir.NFaiRR)
    with pytest.raises(AssertionError, match="invalid param distance"):
        by_topic(ir.AWRF(distance="far"))


@pytest.mark.skipif(find_spec("pyterrier") is None, reason="PyTerrier is not installed")
def test_pyterrier_takes_them_as_the_guide_has_it() -> None:
    root = project.root()
    page = (root / "lib/equipoise_cli/guide/runs.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```py\n(.+?)^```", page, re.DOTALL | re.MULTILINE)
    (before,) = [
        code
        for code in re.findall(r"^```python\n(.+?)^```", page, re.DOTALL | re.MULTILINE)
        if "ir.groups(" in code
    ]
    code = f"{before}{block}".replace("pt.Experiment", "table = pt.Experiment")
    code += "alone = ir_measures.calc_aggregate(measures, qrels, run)\n"
    code += "row = table.set_index('name').loc['bm25']\n"
    code += "print(*(f'{row[str(m)]:.9f}' == f'{alone[m]:.9f}' for m in measures))"
    words = [sys.executable, "-c", code]
    ended = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert ended.stdout.split()[-2:] == ["True", "True"], ended.stderr


def test_a_fairness_of_nothing_is_an_error() -> None:
    """No group at all is the uniform distribution, which an AWRF of 0 would call perfectly fair."""
    ir.groups("SIZE", PAGES.assign(docno=["x1", "x2", "x3"]))
    message = r"at least one of 5 .* must have a membership in SIZE, got none for d2.*such as x1"
    with pytest.raises(InputError, match=message):
        by_topic(ir.AWRF @ 3)
    ir.groups("SIZE", PAGES.assign(docno=["d1", "x2", "x3"]))
    assert set(by_topic(ir.AWRF @ 3)) == {"t1", "t2", "t3"}


def test_an_order_that_groups_do_not_have_is_not_measured() -> None:
    assert by_topic(ir.AWRF(distance="nmd") @ 1)["t1"] == pytest.approx(0.25 - 0.25)
    ir.groups("KIND", PAGES)
    with pytest.raises(ValueError, match="l1, jsd or nvd for nominal groups"):
        by_topic(ir_measures.parse_measure("AWRF(groups='KIND',distance='rnod')@3"))
