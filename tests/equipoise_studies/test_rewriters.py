"""Guards the rewriter, its record, spreads over orders, CAsT 2020: loops, a model, real files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation
from equipoise_compendium import project
from equipoise_studies.permutations import record, rewrites, spreads
from equipoise_studies.permutations.class_rule import proposed_classes
from equipoise_studies.permutations.systems import REWRITER, context_rankings
from equipoise_studies.systems.lexical import Collection, bm25, top

TEXTS = ("What are sharks?", "Are they endangered?", "Tell me about whales.", 'What is a "pod"?')
ONE = Conversation(
    "1", ("1_1", "1_2", "1_3", "1_4"), TEXTS, ClassStructure.from_classes(["SE", "FT", "SE", "PT"])
)
JUDGED = pd.DataFrame({"query": ONE.queries, "topic": "1", "turn": [1, 2, 3, 4], "text": TEXTS})
JUDGED["class"] = ["SE", "FT", "SE", "PT"]


class Model:
    """Stands where a language model would: it answers with the number of its call."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def handle_completions(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Fail at the fourth call of all, as a machine may."""
        self.prompts.append(asked["prompt"])
        if len(self.prompts) == 4:
            raise KeyboardInterrupt
        return {"choices": [{"text": f" rewrite {len(self.prompts)} ", "finish_reason": "stop"}]}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the recorder with a model that counts, in a folder of its own."""
    model, weights = Model(), tmp_path / "weights.gguf"
    weights.write_bytes(b"weights")
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    monkeypatch.setattr(project, "used_files", dict)
    monkeypatch.setattr(record, "fetch_judged", lambda: (JUDGED, None))
    monkeypatch.setattr(record, "load_server", lambda *_args, **_options: model)
    monkeypatch.setattr("equipoise_studies.recording.version", lambda _name: "1.0")
    run = lambda: CliRunner().invoke(record.main, ["rewrites", "--weights", str(weights)])  # noqa: E731
    return model, weights, tmp_path.joinpath("data", *rewrites.RECORD), run


def test_the_recorder_goes_on_where_it_stopped_and_refuses_other_weights(recorded: Any) -> None:
    model, weights, path, run = recorded
    assert run().exit_code != 0
    assert len(path.read_text().splitlines()) == 1 + 3
    assert run().exit_code == 0
    pairs = 3 * 3  # no pair has the first utterance for its current one
    assert len(model.prompts) == pairs + 1
    assert model.prompts[3] == model.prompts[4]
    assert len({*model.prompts}) == pairs
    (made,) = rewrites.read_rewrites(path, [ONE])
    before, current = rewrites.pairs_of(ONE)[0]
    said = made.rewrites[before, current]
    assert rewrites.prompt_of(ONE, before, current) == model.prompts[int(said.split()[1]) - 1]
    weights.write_bytes(b"others")
    refused = run()
    assert "models" in str(refused.exception)
    with pytest.raises(
        ValueError,
        match=r"no rewrite of 1_2 behind 1_1 and \d more|no rewrite of 1_2 behind 1_1, 1_3",
    ):
        rewrites.read_rewrites(path, [replace(ONE, texts=("What are rays?", *TEXTS[1:]))])


def test_valid_pairs_come_first_and_the_prompt_holds_what_the_rewriter_may_see() -> None:
    asked = rewrites.wanted([ONE], 0)
    orders = ONE.structure.orders()
    neighbours = {(v, u) for order in orders.tolist() for v, u in pairwise(order)}
    assert (
        {pair[1:] for pair in asked[: len(neighbours)]} == neighbours == {*rewrites.pairs_of(ONE)}
    )
    assert len({pair[1:] for pair in asked}) == len(asked) == 9
    prompt = rewrites.prompt_of(ONE, 2, 3).removeprefix(rewrites.INSTRUCTION)
    lines = [
        'First: "What are sharks?"',
        'Before: "Tell me about whales."',
        "Last: \"What is a 'pod'?\"",
        'Rewritten: "',
    ]
    assert prompt.splitlines() == lines
    assert "Before" not in rewrites.prompt_of(ONE, 0, 1).removeprefix(rewrites.INSTRUCTION)


def test_the_rewriter_ranks_what_was_written_for_each_pair() -> None:
    texts = {"a": "sharks endangered", "b": "whales", "c": "pod of whales", "d": "what are sharks"}
    collection = Collection.from_texts(texts)
    written = {
        pair: f"{TEXTS[pair[1]]} {['sharks', '', 'whales', 'pod'][pair[0]]}"
        for pair in rewrites.pairs_of(ONE)
    }
    found = context_rankings(collection, replace(ONE, rewrites=written), REWRITER)
    for order in ONE.structure.orders():
        said = [
            TEXTS[0],
            *(written[v, u] for v, u in zip(order[:-1].tolist(), order[1:].tolist(), strict=True)),
        ]
        expected = top(bm25(collection, collection.queries(said)), 3)
        np.testing.assert_array_equal(found.of(order[None])[0], expected)
    with pytest.raises(ValueError, match="Rewriter needs the rewrites"):
        context_rankings(collection, ONE, REWRITER)


def spread_table(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Exact values and scores of the script of four systems on twelve conversations, made up."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product(
        [["CU", "LP", "RM3p", REWRITER], [str(n) for n in range(12)]]
    )
    exact = pd.DataFrame(
        {"mean": rng.uniform(0.3, 0.5, 48), "sd": rng.uniform(0.05, 0.1, 48)}, index=index
    )
    exact.loc[REWRITER, "sd"] = rng.uniform(0.01, 0.02, 12)
    exact = exact.assign(minimum=exact["mean"] - 0.2, maximum=exact["mean"] + 0.3).rename_axis(
        ["run", "topic"]
    )
    scripts = exact["mean"].add(0.1).rename("value").reset_index()
    return exact.reset_index(), scripts


def test_spreads_are_means_over_conversations() -> None:
    exact, scripts = spread_table(1)
    wide = exact.pivot_table(index="topic", columns="run", values="sd")
    gain = spreads.steadier(exact)
    assert gain.estimate == pytest.approx(
        wide[["CU", "LP", "RM3p"]].to_numpy().mean() - wide[REWRITER].mean()
    )
    assert (gain.low or 0) > 0
    means = exact.groupby("run")["mean"].mean()
    shares = wide.mean() / means
    relative = spreads.steadier(exact, relative=True).estimate
    assert relative == pytest.approx(shares[["CU", "LP", "RM3p"]].mean() - shares[REWRITER])
    lower = spreads.falls(exact, scripts, "x")
    assert lower.estimate == pytest.approx(-0.1)
    reach = spreads.relative_range(exact, "LP")
    assert reach.estimate == pytest.approx(0.5 / means["LP"])
    assert (reach.low or 0) < (reach.estimate or 0) < (reach.high or 0)


def test_classes_are_proposed_by_what_people_added() -> None:
    rewritten = pd.Series(
        [
            "What are sharks?",
            "Are sharks endangered?",
            "Tell me about whales.",
            "What is a whale pod?",
        ],
        index=list(ONE.queries),
    )
    assert proposed_classes(JUDGED, rewritten).tolist() == ["SE", "FT", "SE", "PT"]
    turned = JUDGED.assign(
        text=[
            "What are sharks?",
            "Are they endangered?",
            "Tell me about whales.",
            "What is a whale pod?",
        ]
    )
    assert proposed_classes(turned.iloc[::-1], rewritten).tolist() == ["SE", "SE", "FT", "SE"]
