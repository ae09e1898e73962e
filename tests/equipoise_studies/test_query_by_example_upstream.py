"""What needs CSFCube's texts: its loader on the real files, and the facts made of them again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equipoise_compendium import facts as fact_files
from equipoise_compendium import project
from equipoise_studies.query_by_example import facts
from equipoise_studies.query_by_example.csfcube import load_csfcube

MIRROR = os.environ.get("EQUIPOISE_MIRROR", "")
if not MIRROR or not (project.root() / MIRROR / "csfcube").is_dir():
    pytest.skip("EQUIPOISE_MIRROR names no folder with csfcube", allow_module_level=True)


def test_csfcube_itself() -> None:
    loaded = load_csfcube()  # through the registry, which checks every sha256
    facets = loaded.judgements.groupby("task")["query"].nunique()
    assert facets.to_dict() == {"background": 16, "method": 17, "result": 17}
    assert len(loaded.papers) == 4205
    folder = project.root() / Path(MIRROR, "csfcube")
    assert len(load_csfcube(folder, own="keep").judgements) == 6244
    parts = loaded.splits.groupby(["task", "fold"])["query"].nunique()
    assert parts.eq(facets.reindex(parts.index.get_level_values("task")).to_numpy()).all()


def test_every_fact_table_is_made_again_with_the_same_bytes() -> None:
    assert fact_files.changed(facts.STUDY, fact_files.make(facts.TABLES)) == []
