"""With other data, notebooks give other results on each kind of claim."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import project, protocol, verdicts
from equipoise_compendium.provenance import VARIANT_VARIABLE
from notebook_evidence import evidence_of


def later(table: pd.DataFrame) -> pd.DataFrame:
    """Move the nuggets of Bing by 1,100 words, almost to the end of the users' patience."""
    is_bing = table["run"] == "bing-1"
    for place in ("start", "end"):
        table.loc[is_bing, place] = (table.loc[is_bing, place].astype(int) + 1100).astype(str)
    return table


def halved(table: pd.DataFrame) -> pd.DataFrame:
    """Halve the relevance that Table 1 reports for Google."""
    is_total = (table["run"] == "google-1") & (table["nugget"] == "all")
    table.loc[is_total, "R"] = (table.loc[is_total, "R"].astype(float) / 2).map("{:.4f}".format)
    return table


def exchanged(table: pd.DataFrame) -> pd.DataFrame:
    """Give the nuggets of each of the two runs to the other run."""
    one, other = table["run"].unique()
    return table.assign(run=table["run"].map({one: other, other: one}))


CHANGES = {
    "gfrc_time_travel_movies": {
        "conversations/M002.csv": later,
        "published/gfrc/table-1.csv": halved,
    },
    "gfrc2_iclr_researchers": {"conversations/R112.csv": exchanged},
}
"""By notebook and file below ``data/``."""
EXPECTED = {
    "gfrc_time_travel_movies": {
        ("finding", "bing-outperforms"),
        ("consistency check", "percentages-rounded"),
        ("additional analysis", "s-measure-is-r"),
        ("additional analysis", "s-measure-outperforms"),
    },
    "gfrc2_iclr_researchers": {("positive control", "r-as-published")},
}
"""Kind and name of the claims whose result on some collection is the opposite then."""


@pytest.mark.parametrize("notebook", CHANGES)
def test_other_data_give_other_verdicts(
    notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_path = project.data_path

    def changed(*parts: str) -> Path:
        path, change = data_path(*parts), CHANGES[notebook].get("/".join(parts))
        if change is None:
            return path
        table = change(pd.read_csv(path, dtype=str, keep_default_na=False))
        table.to_csv(tmp_path / path.name, index=False)
        return tmp_path / path.name

    monkeypatch.setattr(project, "data_path", changed)
    monkeypatch.setenv(VARIANT_VARIABLE, "other data")
    rows = []
    for name, evidence in evidence_of(notebook, tmp_path)[0].items():
        paper, _, claim = name.partition("/")
        record = protocol.evidence_of(paper, claim, evidence)
        rows += [{**row, "notebook": notebook} for row in verdicts.rows_of(paper, record)]
    keys = ["paper", "kind", "claim", "collection"]
    after = verdicts.judge(rows).set_index(keys)["result"]
    before = pd.read_csv(project.root() / "reports" / "claims.csv", keep_default_na=False)
    before = before.set_index(keys)["result"].reindex(after.index)
    changed_kinds = {(kind, claim) for _, kind, claim, _ in after.index[before != after]}
    assert changed_kinds == EXPECTED[notebook]
