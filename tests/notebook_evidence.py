"""The evidence that notebooks bring for their claims: committed, or run again without a kernel."""

import json
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest

from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report


def evidence_of(
    notebook: str, folder: Path, parameters: str = "", until: str = ""
) -> tuple[dict[str, Evidence], dict[str, Any]]:
    """Evidence by claim (``paper/claim``), and the names that the notebook leaves behind.

    ``parameters``: assignments after those of the notebook's own parameters. ``until``: what stands
    in the last cell that is run.
    """
    evidence: dict[str, Evidence] = {}

    def claimed(_: Report, name: str, of_claim: Evidence, _data: str = "") -> None:
        evidence[name] = of_claim

    book = json.loads((project.root() / "notebooks" / f"{notebook}.ipynb").read_text("utf-8"))
    cells = []
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cells.append("".join(cell["source"]))
            if until and until in cells[-1]:
                break
        if "parameters" in cell["metadata"].get("tags", []):
            cells.append(parameters)
    script = folder / f"{notebook}.py"
    script.write_text("\n\n".join(cells), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(REPORT_FOLDER_VARIABLE, str(folder))
        patch.setattr(Report, "claim", claimed)
        patch.setattr(Report, "answer", lambda *_: None)
        mpl.use("Agg")
        names = runpy.run_path(str(script), {"display": lambda *_: None})
    return evidence, names


def committed_evidence(notebook: str) -> dict[str, Evidence]:
    """Evidence with an interval, by claim, as the report of a notebook has it.

    Other tests hold that a run of the notebook gives what is committed.
    """
    claims = pd.read_csv(project.root() / "reports" / "claims.csv")
    with_interval = claims[(claims["notebook"] == notebook) & claims["low"].notna()]
    evidence = {}
    for row in with_interval.to_dict("records"):
        name = f"{row['paper']}/{row['name']}"
        evidence[name] = Evidence(row["evidence"], row["estimate"], row["low"], row["high"])
    return evidence


def alike(evidence: Evidence, estimate: float, ends: tuple[float, float]) -> None:
    """The same estimate, and ends that differ by no more than other draws do."""
    assert evidence.estimate == pytest.approx(estimate, abs=1e-6)
    assert evidence.low is not None
    assert evidence.high is not None
    width = evidence.high - evidence.low
    assert ends == pytest.approx((evidence.low, evidence.high), abs=0.15 * width)


def verdict_of(name: str, evidence: Evidence) -> str:
    """What evidence says of a claim such as ``gfrc/recovery``."""
    paper, _, claim = name.partition("/")
    return verdict(evidence, str(stated(paper).loc[claim, "contradicted_if"]))
