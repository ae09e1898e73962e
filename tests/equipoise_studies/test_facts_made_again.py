"""Guards fact tables: each is made again from the upstream files with the same bytes."""

from importlib import import_module

import pytest

import upstream
from equipoise_compendium import facts, project, registry

pytestmark = pytest.mark.upstream

FACTS = project.root() / "data" / "facts"
# The others have a script make.py, which their own tests run.
STUDIES = sorted(
    path.parent.name
    for path in FACTS.glob("*/sources.csv")
    if not path.with_name("make.py").exists()
)
upstream.skip_without(*registry.entries()["item"].unique())


@pytest.mark.parametrize("study", STUDIES)
def test_facts_are_made_again_with_the_same_bytes(study: str) -> None:
    makers = import_module(f"equipoise_studies.{study}.facts").TABLES
    assert facts.changed(study, facts.make(makers)) == []
