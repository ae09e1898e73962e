"""Recorded answers of chapter 5, and what answered."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from equipoise.loaders.answers import read_answers
from equipoise_studies.attribution.design import with_experiments
from equipoise_studies.attribution.study import Study
from equipoise_studies.config import recorded
from equipoise_studies.recording import read_settings


def recorded_answers(study: Study, records: Sequence[str]) -> pd.DataFrame:
    """Answers of some records, with model, weights and the experiments that each is of."""
    tables = []
    for record in records:
        path = recorded(study.answers(record), study.chapter)
        answers = read_answers(path)
        answers["model"] = study.display_name(record)
        # Several records may be of one model, which its weights tell.
        answers["weights"] = " ".join(read_settings(path)["models"])
        tables.append(answers)
    return with_experiments(pd.concat(tables, ignore_index=True), study)


def models(study: Study) -> pd.DataFrame:
    """What answered: weights, program and sampling of each record."""
    rows = []
    for record in study.answered():
        settings = read_settings(study.answers(record))
        sampling = settings["sampling"]
        for weights, sha256 in settings["models"].items():
            row = {
                "model": study.display_name(record),
                "weights": weights,
                "sha256": sha256[:16] + "…" if sha256 else "",  # an endpoint may not say
                "program": settings["program"],
            }
            for name in ("temperature", "max_tokens", "seed"):
                row[name] = sampling[name]
            rows.append(row)
    return pd.DataFrame(rows)
