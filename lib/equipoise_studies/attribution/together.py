"""A GGUF model run by transformers in bfloat16, which answers many prompts at a time.

On processors with matrix instructions (AMX) this reads prompts several times as fast as llama.cpp.
Prompts that wait together are sorted by what they have in common, which is read once. The weights
are those of the file, unpacked.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import deepcopy
from importlib.metadata import version
from itertools import groupby, takewhile
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from equipoise_studies.attribution.answering import Model
from equipoise_studies.systems import models_package
from equipoise_studies.systems.endpoint import Answer, Sampling
from equipoise_studies.systems.language_models import Device, LocalModel

BATCH = 24
_PATIENCE = 0.5
"""Seconds to wait for a further prompt before those that have come are answered."""


class _Asked(NamedTuple):
    """A prompt that waits: what it has in common with others (first messages, most tokens of an answer), its tokens."""

    kind: tuple[str, int]
    prompt: list[int]
    answered: Future[Answer]


def _grouped(
    _module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float, **_: Any
) -> tuple[Any, None]:
    """Attention in which heads that share keys share them in place: transformers' own copies them for each head."""
    texts, heads, places, width = query.shape
    alike = heads // key.shape[1]
    asked = query.reshape(texts, key.shape[1], alike * places, width)
    mask = attention_mask if attention_mask is None else attention_mask.repeat(1, 1, alike, 1)
    attend = models_package("torch").nn.functional.scaled_dot_product_attention
    found = attend(asked, key, value, attn_mask=mask, scale=scaling)
    return found.reshape(texts, heads, places, width).transpose(1, 2).contiguous(), None


class Network(LocalModel):
    """A model that writes the likeliest continuation of prompts."""

    def __init__(self, whole: Any, tokens: Any, device: Device = "cpu") -> None:
        transformers = models_package("transformers")
        transformers.AttentionInterface.register("grouped", _grouped)
        transformers.AttentionMaskInterface.register(
            "grouped", models_package("transformers.masking_utils").eager_mask
        )
        whole.set_attn_implementation("grouped")
        super().__init__(whole, tokens, device)
        self.begun = dict[tuple[int, ...], Any]()
        self.ends = {tokens.eos_token_id, tokens.convert_tokens_to_ids("<|endoftext|>")}
        # without the name of PyTorch's build, of which every index has its own
        torch_version = version("torch").partition("+")[0]
        self.program = f"transformers {version('transformers')}, torch {torch_version}, bfloat16"

    def continued(
        self, prompts: Sequence[list[int]], longest: int
    ) -> list[tuple[list[int], list[float]]]:
        """The likeliest next tokens of each prompt, one by one, to its end, with their log-probabilities."""
        torch = self.torch
        with torch.inference_mode():
            columns = zip(*(prompt[:-1] for prompt in prompts), strict=False)
            common = tuple(
                column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)
            )
            known = [
                begin
                for begin in self.begun
                if common[: len(begin)] == begin and 2 * len(begin) > len(common)
            ]
            if not known and common:
                self.begun[common] = self.empty_cache()
                self.network.model(torch.tensor([common]), past_key_values=self.begun[common])
            begin = max(known, key=len, default=common)
            shared, cache = len(begin), deepcopy(self.begun[begin]) if begin else self.empty_cache()
            if shared:
                cache.batch_repeat_interleave(len(prompts))
            rests = [prompt[shared:] for prompt in prompts]
            width = max(map(len, rests))
            asked = torch.tensor([[0] * (width - len(rest)) + rest for rest in rests])
            mask = torch.tensor(
                [[1] * shared + [0] * (width - len(rest)) + [1] * len(rest) for rest in rests]
            )
            rows, found = list(range(len(prompts))), [(list[int](), list[float]()) for _ in prompts]
            for _ in range(longest):
                places = (mask.cumsum(1) - 1).clamp(min=0)[:, -asked.shape[1] :]
                states = self.network.model(
                    asked, attention_mask=mask, position_ids=places, past_key_values=cache
                )
                best = self.log_probabilities(states.last_hidden_state[:, -1]).max(dim=-1)
                for row, token, value in zip(
                    rows, best.indices.tolist(), best.values.tolist(), strict=True
                ):
                    found[row][0].append(token)
                    found[row][1].append(value)
                going = [
                    place for place, row in enumerate(rows) if found[row][0][-1] not in self.ends
                ]
                if not going:
                    break
                rows = [rows[place] for place in going]
                chosen = torch.tensor(going)
                if len(going) < len(best.indices):
                    cache.batch_select_indices(chosen)
                asked = best.indices[chosen][:, None]
                mask = torch.cat([mask[chosen], torch.ones_like(asked)], dim=1)
            return found

    def answer(self, prompt: Sequence[int], tokens: list[int], values: list[float]) -> Answer:
        """An answer as an endpoint would give it."""
        ended = bool(tokens) and tokens[-1] in self.ends
        kept = tokens[:-1] if ended else tokens
        texts = [self.tokens.decode(kept[: count + 1]) for count in range(len(kept))]
        pieces = [text[len(before) :] for text, before in zip(texts, ["", *texts], strict=False)]
        counted = {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)}
        written = tuple(zip(pieces, values, strict=False))
        return Answer(
            "".join(pieces), "stop" if ended else "length", "", self.program, counted, written
        )


@contextmanager
def batch_model(weights: Path, *, threads: int) -> Iterator[tuple[Model, str]]:
    """Load a GGUF model that answers together what several threads ask of it, without chance (temperature 0).

    Yields the model and the programs that run it.
    """
    network, waiting = Network.load(weights, threads=threads), queue.Queue[_Asked | None]()

    def ask(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
        if sampling.temperature:
            raise ValueError("many prompts at a time are answered with temperature 0 alone")
        begin = json.dumps(list(messages[:-1]))
        asked = _Asked((begin, sampling.max_tokens), network.prompt(messages), Future())
        waiting.put(asked)
        return asked.answered.result()

    def answer(alike: Sequence[_Asked]) -> None:
        try:
            found = network.continued([asked.prompt for asked in alike], alike[0].kind[1])
            for asked, (tokens, values) in zip(alike, found, strict=True):
                asked.answered.set_result(network.answer(asked.prompt, tokens, values))
        except Exception as error:  # noqa: BLE001  whoever waits must hear of it
            for asked in alike:
                asked.answered.set_exception(error)

    def work() -> None:
        while (first := waiting.get()) is not None:
            come = [first]
            with suppress(queue.Empty):
                while (further := waiting.get(timeout=_PATIENCE)) is not None:
                    come.append(further)
                waiting.put(None)
            come.sort(key=lambda asked: (*asked.kind, len(asked.prompt)))
            for _, group in groupby(come, key=lambda asked: asked.kind):
                asked = list(group)
                for place in range(0, len(asked), BATCH):
                    answer(asked[place : place + BATCH])

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield ask, network.program
    finally:
        waiting.put(None)
        thread.join()
