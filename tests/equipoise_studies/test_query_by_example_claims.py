"""What the claims of chapter 2 rest on, against plain loops over papers drawn by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise_compendium.claims import stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.query_by_example import claims
from equipoise_studies.query_by_example.printed_checks import printed_checks
from equipoise_studies.query_by_example.study import (
    BM25_ROW,
    LEXICAL_ROWS,
    TILDE_ROW,
    TILDEV2_ROW,
    Source,
    Stage,
    Study,
    System,
    WordPieces,
)

PRINTED = {number: printed_table(f"thesis/table-2.{number}") for number in (1, 2, 3, 4)}
STAND_INS = {
    f"{ranker} {row}": f"{ranker} {ours}"
    for ranker in ("TILDE", "TILDEv2")
    for row, ours in (("BERT", "tiny"), ("SciBERT", "MiniLM"), ("MSMARCO", "zero"))
} | {f"TILDEv2 SciBERT expansion w/ m={m}": f"TILDEv2 m = {m}" for m in (200, 300)}
STAND_INS |= {"Cross-Encoder SciBERT": "Cross-encoder tiny"}
STUDY = Study(
    "replica",
    Source("csfcube"),
    {"BERT-Token": WordPieces(), "SciBERT-Token": WordPieces(label="domain-Token")},
    {
        ours: System(
            "tilde", label=ours, printed=row, model="general" if "tiny" in ours else "scientific"
        )
        for row, ours in STAND_INS.items()
    },
    Path("nowhere"),
)
FUSIONS = tuple(f"{BM25_ROW} + {STUDY.called(row)}" for row in (TILDE_ROW, TILDEV2_ROW))
LEXICAL = [STUDY.called(row) for row in LEXICAL_ROWS]


@pytest.fixture(scope="module")
def values() -> pd.DataFrame:
    """Seven papers of unequal numbers of facets, every system scored on each."""
    rng = np.random.default_rng(5)
    facets = [
        (f"p{paper}", task)
        for paper in range(7)
        for task in ("background", "method")[: 1 + paper % 2]
    ]
    rows = [
        (run, task, query, measure, rng.random())
        for run in [*STAND_INS.values(), *LEXICAL, *FUSIONS]
        for query, task in facets
        for measure in ("MAP", "nDCG")
    ]
    return pd.DataFrame(rows, columns=["run", "task", "query", "measure", "value"])


def mean(values: pd.DataFrame, run: str) -> float:
    return float(values.loc[(values["measure"] == "MAP") & (values["run"] == run), "value"].mean())


def test_differences_are_those_of_means_over_facets(values: pd.DataFrame) -> None:
    found = claims.of_rankers(STUDY, values, PRINTED[1])
    gap = mean(values, "TILDEv2 tiny") - mean(values, "TILDE tiny")
    assert found["2.1-v2-above"].estimate == pytest.approx(gap)
    assert found["2.1-v2-above"].n == 7
    trained = ["TILDE tiny", "TILDE MiniLM", "TILDEv2 tiny", "TILDEv2 MiniLM"]
    bm25 = mean(values, "BM25 STM2")
    assert found["2.1-competitive"].estimate == pytest.approx(
        bm25 - np.mean([mean(values, run) for run in trained])
    )
    gains = [
        mean(values, f"{ranker} MiniLM") - mean(values, f"{ranker} tiny")
        for ranker in ("TILDE", "TILDEv2")
    ]
    assert found["2.1-scientific"].estimate == pytest.approx(np.mean(gains))
    assert found["2.1-scientific-tilde"].estimate == pytest.approx(gains[0] - gains[1])
    ahead = [
        part.query("run == 'BM25 STM2'")["value"].mean()
        > part.query("run == @other")["value"].mean()
        for _, part in values.query("measure == 'MAP'").groupby("task")
        for other in ("TILDE tiny", "TILDEv2 tiny")
    ]
    assert found["2.1-most-tasks"].estimate == pytest.approx(np.mean(ahead))
    alike = np.mean([mean(values, f"{ranker} tiny") for ranker in ("TILDE", "TILDEv2")])
    cross = mean(values, "Cross-encoder tiny")
    assert found["2.1-cross-encoder"].estimate == pytest.approx(
        cross - alike
    )  # the same encoder's, not the others
    expanded = np.mean([mean(values, f"TILDEv2 m = {m}") for m in (200, 300)])
    assert found["2.1-expansion-bm25"].estimate == pytest.approx(bm25 - expanded)


def test_a_claim_on_what_is_not_there_is_not_testable(values: pd.DataFrame) -> None:
    fewer = replace(
        STUDY, systems={name: one for name, one in STUDY.systems.items() if "m = " not in name}
    )
    found = claims.of_rankers(fewer, values, PRINTED[1])
    assert found["2.1-expansion"].estimate is None
    assert "nothing stands for TILDEv2 SciBERT expansion w/ m=200" in found["2.1-expansion"].reason
    assert found["2.1-competitive"].estimate is not None


def test_a_trained_ranker_nearer_to_a_random_order_than_to_bm25_tests_nothing(
    values: pd.DataFrame,
) -> None:
    stage = Stage("judgements", epochs=1, batch=1, rate=0.1)
    trained = {
        name: replace(one, training=(stage,))
        for name, one in STUDY.systems.items()
        if one.kind == "tilde"
    }
    study = replace(STUDY, systems=trained | {"random": System("random", label="random order")})
    level = {"random order": 0.1, "BM25 STM2": 0.4, "Cross-encoder tiny": 0.24, "TILDE tiny": 0.26}
    fixed = pd.concat([values, values[values["run"] == "BM25 STM2"].assign(run="random order")])
    fixed["value"] = fixed["run"].map(level).fillna(0.39)
    found = claims.of_rankers(study, fixed, PRINTED[1])
    assert found["2.1-cross-encoder"].estimate is None
    assert found["2.1-cross-encoder"].reason.startswith(
        "Cross-encoder tiny: trained, and still nearer to a random order"
    )
    assert found["2.1-v2-above"].estimate == pytest.approx(0.39 - 0.26)
    fixed.loc[fixed["run"] == "TILDE tiny", "value"] = 0.2
    found = claims.of_rankers(study, fixed, PRINTED[1])
    assert found["2.1-competitive"].estimate == pytest.approx(
        0.4 - 0.39
    )  # of the three that learned
    assert {
        found[name].estimate for name in ("2.1-v2-above", "2.1-scientific-tilde", "2.1-most-tasks")
    } == {None}


def test_an_interval_draws_papers_with_all_their_facets(values: pd.DataFrame) -> None:
    found = claims.of_rankers(STUDY, values, PRINTED[1])["2.1-v2-above"]
    wide = values.query("measure == 'MAP'").pivot_table(
        index=["query", "task"], columns="run", values="value"
    )
    gap = wide["TILDEv2 tiny"] - wide["TILDE tiny"]
    parts = [part.to_numpy() for _, part in gap.groupby(level="query")]
    rng = np.random.default_rng(1)
    drawn = [
        np.concatenate([parts[place] for place in rng.integers(0, 7, 7)]).mean()
        for _ in range(4000)
    ]
    assert [found.low, found.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)


def test_printed_differences_are_the_tables_own(values: pd.DataFrame) -> None:
    cells = PRINTED[1].set_index("model").filter(like="MAP")
    cells = cells.map(lambda text: float(text.rstrip("%")) / 100)
    gaps = cells.loc["TILDEv2 BERT"] - cells.loc["TILDE BERT"]
    found = claims.of_rankers(STUDY, values, PRINTED[1])["2.1-v2-above"]
    assert found.printed == pytest.approx(sum(gaps) / 4)


def test_lexical_claims(values: pd.DataFrame) -> None:
    found = claims.of_tokenisations(STUDY, values, PRINTED[2])
    names = LEXICAL
    others = float(np.mean([mean(values, name) for name in names if name != "BM25 STM2"]))
    assert found["2.2-stm2-best"].estimate == pytest.approx(mean(values, "BM25 STM2") - others)
    leads = [
        mean(values, name) - mean(values, name.replace("BM25", "LM"))
        for name in names
        if "BM25" in name
    ]
    assert found["2.2-bm25-above"].estimate == pytest.approx(np.mean(leads))
    assert all(
        lead.printed is not None and lead.printed > 0
        for name, lead in found.items()
        if name != "2.2-word-pieces"
    )


def oracle(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(8)
    facets = values.query("run == 'BM25 STM2'")[["task", "query", "measure"]]
    parts = [
        facets.assign(fusion=name, alpha=rng.integers(0, 11, len(facets)) / 10) for name in FUSIONS
    ]
    best = pd.concat(parts, ignore_index=True)
    return best.assign(value=rng.random(len(best))), values[values["run"].isin(FUSIONS)]


def test_claims_on_the_best_weights(values: pd.DataFrame) -> None:
    best, tuned = oracle(values)
    found = claims.of_oracle(tuned, best, FUSIONS, PRINTED[4], printed_checks(PRINTED))
    of_map = best.query("measure == 'MAP'")
    first, second = (of_map.query("fusion == @name")["alpha"] for name in FUSIONS)
    assert found["2.4-bm25-alone"].estimate == pytest.approx(
        (second == 1).mean() - (first == 1).mean()
    )
    spread = [float(np.subtract(*np.percentile(part, [75, 25]))) for part in (first, second)]
    assert found["2.4-spread"].estimate == pytest.approx(spread[1] - spread[0])
    gap = of_map["value"].mean() - tuned.query("measure == 'MAP'")["value"].mean()
    assert found["2.4-oracle"].estimate == pytest.approx(gap)
    assert found["2.4-consistent"].estimate == 0


def test_claims_on_one_weight(values: pd.DataFrame) -> None:
    best, _ = oracle(values)
    steps = [best.assign(alpha=alpha, value=0.5 - abs(alpha - 0.3)) for alpha in np.arange(11) / 10]
    found = claims.of_one_weight(values, pd.concat(steps), FUSIONS, PRINTED[3])
    assert found["2.3-tilde-weight"].estimate == pytest.approx(0.3)
    parts = {
        name: max(mean(values, "BM25 STM2"), mean(values, name.removeprefix("BM25 STM2 + ")))
        for name in FUSIONS
    }
    gain = np.mean([mean(values, name) - part for name, part in parts.items()])
    assert found["2.3-together"].estimate == pytest.approx(gain)
    assert found["2.3-exceptions"].estimate == 2
    quoted = [found[name].printed for name in ("2.3-tilde-weight", "2.3-v2-weight")]
    assert quoted == pytest.approx([0.1, 0.55])  # section 2.5.1: 0.1, and the mean of 0.3 to 0.8


def test_every_claim_of_the_chapter_is_stated(values: pd.DataFrame) -> None:
    best, tuned = oracle(values)
    made: dict[str, Any] = claims.of_rankers(STUDY, values, PRINTED[1]) | claims.of_tokenisations(
        STUDY, values, PRINTED[2]
    )
    made |= claims.of_one_weight(values, best, FUSIONS, PRINTED[3])
    made |= claims.of_oracle(tuned, best, FUSIONS, PRINTED[4], printed_checks(PRINTED))
    known = stated("thesis").index
    assert {*made, "2.4-predicted"} == {name for name in known if name.startswith("2.")}
