"""Commands and loaders on real files of others, where a mirror has them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import called
from equipoise.attributes import AttributeSet
from equipoise_cli.formats.annotations import parse_export
from equipoise_compendium import registry

pytestmark = pytest.mark.upstream

if registry.mirror_folder() is None:
    pytest.skip("needs a mirror, named by EQUIPOISE_MIRROR", allow_module_level=True)
MIRROR = Path(os.environ["EQUIPOISE_MIRROR"])


def test_a_sample_of_doccano() -> None:
    path = MIRROR / "doccano/tests/data/labeling/labeling_text_label.jsonl"
    labels = pd.DataFrame({"label": ["LOC", "PER", "ORG"], "level": "1", "SIZE": "large"})
    sets = {"SIZE": AttributeSet("SIZE", "nominal", ("large", "small"), np.ones(2))}
    ((frame, _),) = parse_export(path.read_text("utf-8"), path, sets, labels)[0].values()
    assert (frame["level"] == "1").sum() == 11


def test_topics_of_ikat_become_transcripts(tmp_path: Path) -> None:
    path = MIRROR / "ikat/2024/data/2024_test_topics.json"
    done = called("harvest", "--from", path, "--transcripts", tmp_path / "out.txt")
    assert "17 conversations added" in done.stderr
    assert "I'm thinking about traveling" in (tmp_path / "out.txt").read_text()


def test_data_are_fetched_from_the_mirror() -> None:
    assert called("data", "fetch", "fairweb").exit_code == 0
