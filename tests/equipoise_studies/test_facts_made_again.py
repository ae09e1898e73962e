"""Guards fact tables: each is made again from the upstream files with the same bytes."""

from importlib import import_module

import pytest

import upstream
from equipoise_compendium import facts, project, registry

pytestmark = pytest.mark.upstream

MADE = sorted(path.parent for path in (project.root() / "data/facts").glob("*/sources.csv"))
STUDIES = [folder.name for folder in MADE if not (folder / "make.py").is_file()]
upstream.skip_without(*registry.entries()["item"].unique())


def test_every_study_with_upstream_data_has_facts() -> None:
    assert len(MADE) == 6


@pytest.mark.parametrize("study", STUDIES)
def test_facts_are_made_again_with_the_same_bytes(study: str) -> None:
    makers = import_module(f"equipoise_studies.{study}.facts").TABLES
    assert facts.changed(study, facts.make(makers)) == []
