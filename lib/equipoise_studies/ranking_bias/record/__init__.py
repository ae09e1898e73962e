"""Record what rankers return on a collection and on its counterfactual, for thesis chapter 4.

``equipoise study ranking_bias`` runs the steps of `plan`; rankers need the packages of the extra
``models``. Notebooks read only what it has written: no spaCy runs there.
"""

from __future__ import annotations

from pathlib import Path

from equipoise_studies.config import Step
from equipoise_studies.ranking_bias.record.query_set import Recorder
from equipoise_studies.ranking_bias.study import NOTEBOOK, Study

__all__ = ["NOTEBOOK", "Study", "plan"]


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what the steps keep, the counterfactual
    documents among it.
    """
    recorders = {}
    for label in study.query_sets:
        if study.recorded_rankers(label):
            recorders[label] = Recorder(study, label, models, work)
    recording: list[Step] = []
    to_record: set[str] = set()
    substituted: set[Path] = set()
    for recorder in recorders.values():
        # documents that query sets share are substituted once, by the first that wants them
        folder = recorder.texts.folder
        recording += recorder.steps(substituting=folder not in substituted)
        if recorder.new_runs():
            substituted.add(folder)
        to_record |= set(recorder.new_rankers())

    # a ranker is trained before any query set is ranked by it
    training: list[Step] = []
    for name in sorted(to_record):
        settings = study.rankers[name].training
        if settings is not None:
            training += recorders[settings.queries].training_steps(name)
    return training + recording
