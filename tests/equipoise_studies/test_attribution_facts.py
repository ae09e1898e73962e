"""Facts of chapter 5: made again from the upstream files, and enough to plan without them."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from equipoise_cli import main
from equipoise_compendium import facts, project, registry
from equipoise_studies.attribution import design
from equipoise_studies.attribution.facts import (
    passage_words,
    questions_at_hand,
)
from equipoise_studies.attribution.study import Study
from equipoise_studies.recording import read_settings

STUDY = Study.read("replica")


@pytest.mark.parametrize("sample", STUDY.samples)
def test_facts_are_those_of_the_recorded_inputs(sample: str) -> None:
    folder = STUDY.samples[sample].folder
    questions = facts.read("attribution", "questions.csv").set_index(["benchmark", "question"])
    for name, counts in read_settings(folder / "inputs.json")["benchmarks"].items():
        longest = STUDY.benchmarks[name].longest
        assert questions_at_hand(name, longest) == counts["questions"]
        inputs = design.inputs(name, folder)
        relevant = inputs[inputs["rank"] == 0].drop_duplicates("question")
        for row in relevant.itertuples():
            assert questions.loc[(name, row.question), "relevant"] == row.document
        words = inputs["document"].map(passage_words(name))
        assert words.notna().all()
        if name == "NQ":  # of NQ-UTD the relevant passages are searched however long they are
            assert words.between(1, longest).all()


def test_a_dry_run_without_the_texts_says_how_many_questions_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(item: str, path: str) -> Path:
        raise registry.DataUnreachable(f"{item}/{path} is not here")

    monkeypatch.setattr(registry, "fetch", unreachable)
    config = yaml.safe_load(
        (project.root() / "data" / "studies" / "attribution" / "replica.yaml").read_text()
    )
    config["samples"]["large"] |= {"folder": "else", "drawn": {"NQ": 680}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    result = CliRunner().invoke(
        main, ["study", "attribution", "--config", str(tmp_path / "config.yaml"), "--dry-run"]
    )
    assert result.exit_code == 0, result.output
    assert "qwen-1.5b: 825 of 825 answers recorded" in result.output
    assert "680 questions of NQ; there are 679" in result.output
    assert "nqoracle/qa_data/nq-open-oracle.jsonl.gz is not here" in result.output
