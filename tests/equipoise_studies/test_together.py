"""Answers of many prompts at a time are those of each alone, as transformers continues it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from equipoise_studies.attribution import together
from equipoise_studies.systems.endpoint import Sampling

torch = pytest.importorskip(
    "torch", reason="torch is not installed: pip install 'equipoise[models]'"
)
transformers = pytest.importorskip("transformers")
END = 3


class Letters(SimpleNamespace):
    """Tokens that are letters, and a chat that is the last message."""

    eos_token_id = END

    def convert_tokens_to_ids(self, _token: str) -> int:
        return END + 1

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(97 + token) for token in tokens)

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> list[int]:
        return [ord(letter) - 97 for message in messages for letter in message["content"]]


@pytest.fixture(scope="module")
def network() -> together.Network:
    torch.manual_seed(4)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 26}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False}
    whole = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**shape, **heads, initializer_range=0.5)
    )
    found = together.Network(deepcopy(whole), Letters())
    found.whole = whole  # type: ignore[attr-defined]
    return found


def alone(network: Any, prompt: list[int], longest: int) -> tuple[list[int], list[float]]:
    """What transformers' own loop writes, with the log-probabilities of its scores."""
    wanted = {
        "do_sample": False,
        "max_new_tokens": longest,
        "eos_token_id": sorted(network.ends),
        "pad_token_id": 0,
    }
    asked = torch.tensor([prompt])
    held = network.whole.generate(
        asked,
        attention_mask=torch.ones_like(asked),
        output_logits=True,
        return_dict_in_generate=True,
        **wanted,
    )
    tokens = held.sequences[0, len(prompt) :].tolist()
    values = [
        torch.log_softmax(row[0], -1)[token].item()
        for row, token in zip(held.logits, tokens, strict=True)
    ]
    return tokens, values


def test_prompts_together_are_continued_as_each_alone(network: Any) -> None:
    rng = np.random.default_rng(7)
    for beginning in (0, 12, 12):
        begin = [int(token) for token in np.random.default_rng(1).integers(5, 26, beginning)]
        prompts = [begin + rng.integers(5, 26, size).tolist() for size in (1, 9, 4, 4, 17, 2)]
        found = network.continued(prompts, 12)
        for prompt, (tokens, values) in zip(prompts, found, strict=True):
            wanted, chances = alone(network, prompt, 12)
            assert tokens == wanted
            np.testing.assert_allclose(values, chances, atol=1e-4)
    lengths = {len(network.continued([[token, 9, 8]], 12)[0][0]) for token in range(5, 26)}
    assert len(lengths) > 1  # some came to their end


def written(tokens: list[int], log_probabilities: list[float]) -> SimpleNamespace:
    return SimpleNamespace(tokens=tokens, log_probabilities=log_probabilities)


def test_an_answer_ends_where_the_model_ends_it(network: Any) -> None:
    whole = network.answer([7, 8], written([10, 11, END], [-0.1, -0.2, -0.3]))
    assert (whole.text, whole.finish, whole.written) == ("kl", "stop", (("k", -0.1), ("l", -0.2)))
    assert whole.tokens == {"prompt_tokens": 2, "completion_tokens": 3}
    assert network.answer([7], written([10, 11], [-0.1, -0.2])).finish == "length"


def test_threads_are_answered_together(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together.Network, "load", lambda *_, **__: network)
    sampling = Sampling(temperature=0, max_tokens=6)
    asked = [[{"role": "user", "content": text}] for text in ("hello", "hence", "so", "zebra")]
    with together.batch_model(Path("none.gguf"), threads=1) as (model, program):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda messages: model(messages, sampling), asked))
        assert program == network.program
        with pytest.raises(ValueError, match="temperature 0"):
            model(asked[0], Sampling(temperature=0.5))
        monkeypatch.setattr(network, "continued", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(asked[0], sampling)
    for messages, answer in zip(asked, found, strict=True):
        tokens, _ = alone(network, network.prompt(messages), 6)
        assert answer.text == network.tokens.decode(
            [token for token in tokens if token not in network.ends]
        )
