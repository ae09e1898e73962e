"""Guards the pilot study's facts: made again with the same bytes, and read as upstream's are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise_studies.pilot import upstream
from equipoise_studies.pilot.data import read_pack
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without("fairweb")
RUNS = upstream.fetch_runs("pilot")
QRELS = upstream.fetch_qrels("pilot")
ATTRIBUTES = upstream.fetch_attributes("pilot")
MEMBERSHIPS = upstream.fetch_memberships("pilot")


def test_the_pack_of_the_facts_is_the_upstream_one() -> None:
    pack = read_pack()
    pd.testing.assert_frame_equal(pack.runs, RUNS)
    pd.testing.assert_frame_equal(pack.qrels, QRELS)
    for name, attribute in ATTRIBUTES.items():
        assert pack.attributes[name].kind == attribute.kind
        np.testing.assert_array_equal(pack.attributes[name].target, attribute.target)
        pd.testing.assert_frame_equal(pack.memberships[name], MEMBERSHIPS[name])
