"""The evidence of notebooks on their claims: committed, or run again without a kernel."""

import json
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from equipoise_compendium import project
from equipoise_compendium.protocol import Criterion, Evidence, stated
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.verdicts import ERROR

ByPart = dict[str, dict[str, Evidence]]
"""Evidence on a claim, by collection and part; a claim about one number has the part ``""``."""


def evidence_of(
    notebook: str, folder: Path, parameters: str = "", until: str = ""
) -> tuple[dict[str, ByPart], dict[str, Any]]:
    """Evidence by claim (``paper/claim``), and the names that the notebook leaves behind.

    ``parameters``: assignments after those of the notebook's own parameters. ``until``: what stands
    in the last cell that is run.
    """
    evidence: dict[str, ByPart] = {}

    def claimed(_: Report, name: str, given: dict[str, Evidence | dict[str, Evidence]]) -> None:
        evidence[name] = {}
        for collection, parts in given.items():
            evidence[name][collection] = {"": parts} if isinstance(parts, Evidence) else parts

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
        patch.setattr(Report, "answer", lambda *_, **__: None)
        mpl.use("Agg")
        names = runpy.run_path(str(script), {"display": lambda *_: None})
    return evidence, names


def committed_evidence(notebook: str) -> dict[str, ByPart]:
    """Evidence by claim (``paper/claim``), as the manifest of a report has it.

    Other tests compare it with a run of the notebook.
    """
    path = project.root() / "reports" / notebook / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    evidence: dict[str, ByPart] = {}
    for record in [*manifest["artefacts"], *manifest["beyond"]]:
        paper = record["artefact"].partition("/")[0]
        for claim in record["claims"]:
            by_collection: ByPart = {}
            for collection, parts in claim["evidence"].items():
                by_collection[collection] = {
                    part.pop("part"): Evidence(**part) for part in map(dict, parts)
                }
            evidence[f"{paper}/{claim['name']}"] = by_collection
    return evidence


def alike(evidence: Evidence, estimate: float, ends: tuple[float, float]) -> None:
    """The same estimate, and ends that differ by no more than other draws do."""
    assert evidence.estimate == pytest.approx(estimate, abs=1e-6)
    assert evidence.low is not None
    assert evidence.high is not None
    width = evidence.high - evidence.low
    assert ends == pytest.approx((evidence.low, evidence.high), abs=0.15 * width)


def result_of(name: str, evidence: Evidence, criterion: str = "") -> str:
    """What one number says of a claim such as ``gfrc/recovery``, before Holm's correction.

    An additional analysis has no ``criterion`` of its own.
    """
    paper, _, claim = name.partition("/")
    criterion = criterion or stated(paper).loc[claim, "criterion"]
    support, against = Criterion.parse(criterion).tails(evidence)
    if 2 * min(support, against) > ERROR:
        return "imprecise"
    return "supports" if support < against else "contradicts"
