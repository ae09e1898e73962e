"""Every table of chapter 5 as the report takes it: on the thesis's own data beside the print, else a replica.

Tables 5.3, 5.5, 5.12 and 5.13 follow from other printed tables: where there is only a replica, they
are derived from those, and the replica's own stand under names of their own.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from equipoise.problems import refused
from equipoise_studies.attribution import replica
from equipoise_studies.attribution.derived import (
    DIFFERENCES,
    SETTING,
    derived_citations,
    derived_differences,
)
from equipoise_studies.attribution.design import of_experiment
from equipoise_studies.attribution.study import Study, standing_for

_NEEDED = ("modes", "mixed", "names", "placebo", "retrievers", "documents")
_SCORES = ["questions", "Precision", "Recall", "EM"]
_PARTS = ["relevant mode", "non-relevant mode"]
_INTERVALS = ["score", "changed", "Δ", "low", "high", "p (t-test)", "p (permutation)"]
_CONFIDENCE = [
    "relevant AC",
    "non-relevant AC",
    "significant",
    "relevant citations",
    "non-relevant citations",
    "p",
]
_SOME_MODES = "modes with one label for all passages stand here only where they were recorded"
_MARKS = "the marks of significance are not compared here; the table of marks says what the printed means allow"
_LOST = "the text of Table 5.14 has lost GPT-4's ten rows, so one row cannot be derived; the marks are not compared here"
_NO_TOTAL = "the total number of citations cannot be derived, only a floor of it"


def artefacts(
    study: Study, scored: pd.DataFrame, bias: pd.DataFrame, alpha: float
) -> dict[str, dict[str, Any]]:
    """What `Report.table` takes of each table, by its number; ``bias`` as of `replica.biases`."""
    labelled = scored.loc[scored["labels"] != "none", "experiments"]
    if lacking := [name for name in _NEEDED if not any(name in held for held in labelled)]:
        wanted = "every experiment of the thesis (equipoise score attribution takes any answers)"
        raise refused("the study's records", f"no answers of {', '.join(lacking)}", wanted)
    usual = of_experiment(scored, "modes")
    quality, blended = (
        replica.quality_with_marks(usual, alpha),
        replica.quality(of_experiment(scored, "mixed", "same label")),
    )
    confident = replica.confidence(usual, alpha)
    swapped = blended[blended["relevant mode"] != blended["non-relevant mode"]]
    of_two = bias[bias["experiment"] == "retrievers"]
    with_names = bias[bias["experiment"] == "names"]
    retrieved = of_two[(of_two["relevant"] == "Human") & (of_two["mode"] == "Informed/CF-informed")]
    retrieved = retrieved.sort_values(["quantity", "score"], ascending=[False, True])
    cas, cab = (bias[bias["quantity"] == quantity] for quantity in ("CAS", "CAB"))
    modes, marked, by_parts = (
        [*SETTING, "mode"],
        [*_SCORES, "better than both others in"],
        [*SETTING, *_PARTS],
    )
    chosen: dict[str, tuple[pd.DataFrame, list[str], list[str], str, dict[str, Any]]] = {
        "5.1": (quality, modes, marked, "NQ", {"digits": 2}),
        "5.11": (quality, modes, marked, "MS MARCO", {"digits": 2}),
        "5.2": (cas[cas["experiment"] == "modes"], SETTING, _INTERVALS, "", {"digits": 2}),
        "5.3": (
            cab[cab["experiment"] == "modes"],
            SETTING,
            _INTERVALS,
            "",
            {"digits": 1, "note": _MARKS},
        ),
        "5.4": (swapped, by_parts, _SCORES, "NQ", {"digits": 2}),
        "5.5": (
            cab[cab["experiment"] == "mixed"],
            SETTING,
            _INTERVALS,
            "",
            {"digits": 1, "note": _LOST},
        ),
        "5.14": (blended, by_parts, _SCORES, "NQ", {"digits": 2, "note": _SOME_MODES}),
        "5.15": (blended, by_parts, _SCORES, "MS MARCO", {"digits": 2, "note": _SOME_MODES}),
        "5.6": (confident, modes, _CONFIDENCE, "NQ", {"digits": 3}),
        "5.10": (confident, modes, _CONFIDENCE, "MS MARCO", {"digits": 3}),
        "5.7": (
            with_names[with_names["quantity"] == "CAS"],
            SETTING,
            ["mode", *_INTERVALS],
            "",
            {"digits": 2},
        ),
        "5.8": (
            with_names[with_names["quantity"] == "CAB"],
            SETTING,
            _INTERVALS,
            "",
            {"digits": 2},
        ),
        "5.9": (
            retrieved,
            ["benchmark", "quantity", "model", "retriever"],
            _INTERVALS,
            "NQ",
            {"digits": 2},
        ),
        "5.12": (
            quality,
            modes,
            ["relevant cited", "total cited"],
            "NQ",
            {"digits": 3, "note": _NO_TOTAL},
        ),
        "5.13": (
            quality,
            modes,
            ["relevant cited", "total cited"],
            "MS MARCO",
            {"digits": 3, "note": _NO_TOTAL},
        ),
    }
    found = {}
    for number, (table, keys, columns, of, further) in chosen.items():
        derived = (
            None if study.stands_for == "thesis" else _derived(study, f"thesis/table-{number}")
        )
        rows = standing_for(table, of) if of else table
        told = (
            study.compared(f"thesis/table-{number}", rows, keys, columns, of)
            if derived is None
            else derived
        )
        found[number] = told | ({} if study.stands_for == "thesis" else further)
    return found


def _derived(study: Study, artefact: str) -> dict[str, Any] | None:
    """A table that follows from others in print."""
    if artefact in DIFFERENCES:
        parts = (
            "Tables 5.1 and 5.11" if artefact == "thesis/table-5.3" else "Tables 5.4, 5.14 and 5.15"
        )
        return {
            "ours": derived_differences(artefact),
            "keys": SETTING,
            "basis": "derived",
            "data": f"{parts}; for the replica's CAB the recorded answers of {', '.join(study.who())}",
        }
    if artefact in ("thesis/table-5.12", "thesis/table-5.13"):
        return {
            "ours": derived_citations(artefact),
            "keys": [*SETTING, "mode"],
            "columns": ["relevant cited"],
            "basis": "derived",
            "data": "recall of Tables 5.1 and 5.11",
        }
    return None


def own_tables(scored: pd.DataFrame, bias: pd.DataFrame, alpha: float) -> dict[str, dict[str, Any]]:
    """What `Report.table` takes of the replica's tables that stand beside printed ones."""
    cab = bias[bias["quantity"] == "CAB"]
    quality = replica.quality_with_marks(of_experiment(scored, "modes"), alpha)
    counts = quality[[*SETTING, "mode", "questions", "relevant cited", "total cited"]]
    found = {
        f"cab_{name}": {
            "ours": cab.loc[cab["experiment"] == name, [*SETTING, *_INTERVALS]],
            "caption": caption,
            "digits": 2,
        }
        for name, caption in {
            "modes": "CAB in the recorded three modes (Table 5.3), positive where people are favoured",
            "mixed": "CAB in the recorded mixed mode (Table 5.5)",
            "placebo": "CAB between two labels that mean nothing",
        }.items()
    }
    moved = replica.sensitivity_to_labels(bias[bias["quantity"] == "CAS"])
    told = "CAS against Vanilla, with labels of authors and with labels that mean nothing; passages by people"
    found["cas_placebo"] = {"ours": moved, "caption": told, "digits": 1}
    found["cited"] = {
        "ours": counts,
        "caption": "Citations of a recorded answer (Tables 5.12, 5.13)",
        "digits": 3,
    }
    return found
