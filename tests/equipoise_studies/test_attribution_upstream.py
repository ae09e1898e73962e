"""What chapter 5's recorder asks of the upstream texts; skipped where these are not at hand."""

from dataclasses import replace

import pytest

from equipoise.answer_modes import mode_parts
from equipoise_studies.attribution import design
from equipoise_studies.attribution.authorship import LabelSet
from equipoise_studies.attribution.study import Asked, Study
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without("nqoracle", "cocktail")
STUDY = Study.read("replica")
PLAIN = LabelSet("plain", {"Human": ("Human",), "LLM": ("LLM",)}, "Authors are given.")


def test_the_replica_asks_no_more_than_there_is() -> None:
    for record in STUDY.records:
        assert design.tasks(STUDY, record)


@pytest.mark.parametrize("sample", STUDY.samples)
def test_tasks_tell_the_labels_that_their_mode_says(sample: str) -> None:
    record = Asked(sample, STUDY.writer, {"NQ": ("modes", "mixed")}, 5)
    cells = STUDY.cells("NQ", "modes", "mixed")
    wanted = design.tasks(replace(STUDY, records={"x": record}, repeated=""), "x")
    # a record that is cut off has cells of one size
    assert [
        len({str(task.key["question"]) for task in wanted[: n * len(cells)]}) for n in range(6)
    ] == [*range(6)]
    for task in wanted:
        asked = task.messages()[-1]["content"]
        lines = [line for line in asked.splitlines() if line.startswith("Document [")]
        assert len(lines) == len(task.shown) == 5
        for number, line in enumerate(lines, start=1):
            part = 0 if number in task.relevant else 1
            author = str(task.key[("relevant_author", "nonrelevant_author")[part]])
            label = PLAIN.shown(mode_parts(str(task.key["mode"]))[part], author)
            assert line.endswith(f"(written by [{label}])") if label else "written by [" not in line
