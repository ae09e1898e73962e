"""Claims that cannot be tested share a box for each reason; the others keep their own."""

import html
import json
from pathlib import Path

import pytest

from equipoise_compendium.claims import Evidence, stated
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_studies.claim_boxes import judged_claims
from equipoise_studies.named_systems import OTHERS_STAND_IN

NOBODY = "no estimator <is> left"
EVIDENCE = {
    "3.4-robust-multiwoz": Evidence("a share", reason=NOBODY),
    "3.4-drop": Evidence("a share", 0.2, 0.1, 0.3),
    "3.4-robust-sgd": Evidence("a share", reason=NOBODY),
    "3.6-replica-upsampling-multiwoz": Evidence("x", reason=f"{OTHERS_STAND_IN}, which give 0.13"),
    "3.6-replica-upsampling-sgd": Evidence("x", reason=f"{OTHERS_STAND_IN}, which give 0.14"),
    "3.6-replica-main": Evidence("x", reason="a reason of its own"),
}


def test_claims_of_one_reason_share_a_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(tmp_path / "book"))
    report = Report("book")
    for artefact in ("thesis/figure-3.4", "thesis/table-3.6"):
        report.words(artefact, [("a", "b")])
    boxes = judged_claims(report, "thesis", EVIDENCE, "other data")
    pages = [box.formats["text/html"] for box in boxes]
    drop, alone, nobody, stand_ins = pages
    assert "Holds" in drop
    assert "Fine-tuned estimators are ahead" in alone

    for page, reason in ((nobody, NOBODY), (stand_ins, OTHERS_STAND_IN)):
        assert page.count(f"2 claims, each because {html.escape(reason)}.") == 1
        assert page.count("Not testable") == 1
        assert page.count("<li>") == 2
    statements = stated("thesis")["statement"]
    for name in ("3.4-robust-multiwoz", "3.4-robust-sgd"):
        assert html.escape(statements[name]) in nobody
    # What the stand-ins give is a number of each claim.
    assert stand_ins.count("which give 0.13") == stand_ins.count("which give 0.14") == 1
    assert boxes[2].formats["text/markdown"].count("\n- ") == 2

    # A box says less, but every claim is judged and recorded.
    report.finish()
    manifest = json.loads((tmp_path / "book" / "manifest.json").read_text(encoding="utf-8"))
    verdicts = {}
    for artefact in manifest["artefacts"]:
        for claim in artefact["claims"]:
            verdicts[claim["statement"]] = claim["verdict"]
    expected = {statements[name]: "not testable" for name in EVIDENCE}
    assert verdicts == expected | {statements["3.4-drop"]: "holds"}
