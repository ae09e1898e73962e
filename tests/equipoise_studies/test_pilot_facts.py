"""Guards the facts of the pilot study: made again with the same bytes, and read as the upstream files are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise_compendium import facts, registry
from equipoise_studies.pilot import upstream
from equipoise_studies.pilot.data import read_pack
from equipoise_studies.pilot.facts import TABLES

try:
    RUNS = upstream.fetch_runs("pilot")
    QRELS = upstream.fetch_qrels("pilot")
    ATTRIBUTES = upstream.fetch_attributes("pilot")
    MEMBERSHIPS = upstream.fetch_memberships("pilot")
except registry.DataUnreachable as error:
    pytest.skip(f"needs the FairWeb-1 pilot pack: {error}", allow_module_level=True)


def test_every_table_is_made_again_with_the_same_bytes() -> None:
    assert facts.changed("pilot", facts.make(TABLES)) == []


def test_the_pack_of_the_facts_is_the_upstream_one() -> None:
    pack = read_pack()
    pd.testing.assert_frame_equal(pack.runs, RUNS)
    pd.testing.assert_frame_equal(pack.qrels, QRELS)
    for name, attribute in ATTRIBUTES.items():
        assert pack.attributes[name].kind == attribute.kind
        np.testing.assert_array_equal(pack.attributes[name].target, attribute.target)
        pd.testing.assert_frame_equal(pack.memberships[name], MEMBERSHIPS[name])
