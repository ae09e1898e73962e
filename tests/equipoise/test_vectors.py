"""Guards the test vectors of ``data/vectors``: every expected value, by the library."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise
from equipoise.attributes import AttributeSet
from equipoise.measures.gfr import gfr_table
from equipoise.measures.ranking_bias import (
    awrf,
    fairr,
    ideal_fairr,
    neutrality,
    nfairr,
    ted,
    texfair,
)

door: Any = equipoise
FOLDER = Path(__file__).parents[2] / "data/vectors"
GROUPS = ["small", "middle", "large"]
SIZE = AttributeSet("SIZE", "ordinal", tuple(GROUPS), np.ones(3))
EXPECTED = pd.read_csv(FOLDER / "expected.csv")


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / name, keep_default_na=False)


def shares(cell: str) -> Any:
    return [float(Fraction(share)) for share in cell.split()]


def distributions() -> dict[tuple[str, str], float]:
    return {
        (row.achieved, name): float(function.function(shares(row.achieved), shares(row.target)))
        for row in read("distributions.csv").itertuples()
        for name, function in door.DIVERGENCES.items()
    }


def rankings() -> dict[tuple[str, str], float]:
    run, qrels, groups = read("run.csv").assign(run="run"), read("qrels.csv"), read("groups.csv")
    given = run, qrels, {"SIZE": groups}
    found: dict[Any, float] = {}
    kinds: Any = (("ordinal", ["nmd", "rnod"]), ("nominal", ["jsd"]))
    for kind, divergences in kinds:
        sets = {"SIZE": AttributeSet("SIZE", kind, tuple(GROUPS), np.ones(3))}
        table = gfr_table(*given, sets, similarities={kind: divergences})
        found |= table.set_index(["topic", "measure"])["value"].to_dict()
    table = gfr_table(run, qrels, gains={level: 2**level - 1 for level in range(1, 5)})
    for row in table[table["measure"] == "ERR"].itertuples():
        found[row.topic, "ERR (gains to level 4)"] = row.value
    for topic, rows in run.groupby("topic"):
        vectors = rows.merge(groups, "left", "document")[GROUPS].fillna(1 / 3)
        found[topic, "AWRF@20"] = awrf(vectors, [20])[0]
    table = door.exposure_over_relevance(run.assign(score=-run["rank"]), *given[1:], {"SIZE": SIZE})
    for row in table.itertuples():
        found[row.group, row.measure] = row.value
    return found


def terms() -> dict[tuple[str, str], float]:
    texts = read("terms.csv").set_index("document")
    omega = neutrality(texts[["female", "male"]])
    found = {}
    for topic, rows in read("run.csv").groupby("topic"):
        own = texts.loc[rows["document"]]
        given = own[["female", "male"]].to_numpy(), own["length"].to_numpy()
        places = texts.index.get_indexer(rows["document"])
        for k in (1, 3):
            ideal = ideal_fairr(omega, [k])
            found[topic, f"NFaiRR@{k}"] = nfairr(fairr(omega[places], [k]), ideal)[0]
            plain = ted(*given, [k], proportional=False)
            found[topic, f"TED(proportional=False)@{k}"] = plain[0]
            found[topic, f"TExFAIR@{k}"] = texfair(*given, [k])[0]
    return found


def nuggets() -> dict[tuple[str, str], float]:
    table = door.read_nuggets(FOLDER / "nuggets.csv", {"SIZE": SIZE})
    scores = pd.concat([door.gfrc(table, {"SIZE": SIZE}, patience=100)])
    scores = pd.concat([scores, door.gfrc2(table, {"SIZE": SIZE}, patience=100)])
    return scores.set_index(["topic", "measure"])["value"].to_dict()


def lists() -> dict[tuple[str, str], float]:
    table = read("rankings.csv")
    numbers, _ = pd.factorize(table[["first", "second"]].to_numpy().T.ravel())
    pair = np.reshape(numbers, (2, 1, -1))
    return {("first, second", "RBO(p=0.9)"): door.rbo(*pair, p=0.9)[0]}


def answers() -> dict[tuple[str, str], float]:
    table = read("answers.csv")
    table["relevant"] = [list(map(int, cell.split())) for cell in table["relevant"].astype(str)]
    table = table.assign(relevant_author="Human", nonrelevant_author="LLM", documents=4)
    return door.score_attribution(table).set_index(["mode", "measure"])["value"].to_dict()


BY_FILE = {
    "distributions.csv": distributions,
    "run.csv": rankings,
    "terms.csv": terms,
    "nuggets.csv": nuggets,
    "rankings.csv": lists,
    "answers.csv": answers,
}


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
@pytest.mark.parametrize("file", EXPECTED["file"].unique())
def test_every_value_is_that_of_the_library(file: str) -> None:
    found = BY_FILE[file]()
    for row in EXPECTED[EXPECTED["file"] == file].itertuples():
        # gdeval has five decimals.
        digits: Any = {"abs": 5e-6} if "gdeval" in row.source else {"rel": 1e-12, "abs": 1e-12}
        assert found[row.case, row.measure] == pytest.approx(row.value, **digits), row.measure


def test_a_fraction_is_the_value_next_to_it() -> None:
    exact = EXPECTED.dropna(subset="exact")
    assert [float(Fraction(text)) for text in exact["exact"]] == pytest.approx(exact["value"])
    assert len(exact) > 20
