"""What needs CSFCube's texts: its loader on the real files, and the facts made of them again."""

from __future__ import annotations

import os

import pytest

from equipoise_compendium import project, registry
from equipoise_studies.query_by_example.csfcube import load_csfcube
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without("csfcube")


def test_csfcube_itself() -> None:
    loaded = load_csfcube()  # through the registry, which checks every sha256
    facets = loaded.judgements.groupby("task")["query"].nunique()
    assert facets.to_dict() == {"background": 16, "method": 17, "result": 17}
    assert len(loaded.papers) == 4205
    folder = project.root() / os.environ[registry.MIRROR_VARIABLE] / "csfcube"
    assert len(load_csfcube(folder, own="keep").judgements) == 6244
    parts = loaded.splits.groupby(["task", "fold"])["query"].nunique()
    assert parts.eq(facets.reindex(parts.index.get_level_values("task")).to_numpy()).all()
