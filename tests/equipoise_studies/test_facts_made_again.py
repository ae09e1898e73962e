"""Guards fact tables: each is made again from the upstream files with the same bytes."""

from importlib import import_module

import pytest

import upstream
from equipoise_compendium import facts, project, registry

pytestmark = pytest.mark.upstream

SOURCES = (project.root() / "data/facts").glob("*/sources.csv")
# The script make.py of the others has tests of its own.
STUDIES = sorted(it.parent.name for it in SOURCES if not it.with_name("make.py").is_file())
upstream.skip_without(*registry.entries()["item"].unique())


@pytest.mark.parametrize("study", STUDIES)
def test_facts_are_made_again_with_the_same_bytes(study: str) -> None:
    makers = import_module(f"equipoise_studies.{study}.facts").TABLES
    assert facts.changed(study, facts.make(makers)) == []
