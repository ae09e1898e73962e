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
from contextlib import contextmanager
from copy import deepcopy
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from equipoise_studies.attribution.answering import Model
from equipoise_studies.systems import Device, models_package
from equipoise_studies.systems.endpoint import Answer, Sampling
from equipoise_studies.systems.language_models import LocalModel

BATCH = 24
_PATIENCE = 0.5
"""Seconds to wait for a further prompt before those that have come are answered."""


class _Waiting(NamedTuple):
    """A prompt that waits for its answer.

    ``kind``: what it has in common with others, first messages and most tokens of an answer.
    """

    kind: tuple[str, int]
    tokens: list[int]
    answered: Future[Answer]


class _Written(NamedTuple):
    """The continuation of a prompt: tokens, each with its log-probability."""

    tokens: list[int]
    log_probabilities: list[float]


def _grouped(
    _module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float, **_: Any
) -> tuple[Any, None]:
    """Attention in which heads that share keys share them in place.

    Transformers' own copies the keys for each head.
    """
    texts, heads, places, width = query.shape
    key_heads = key.shape[1]
    sharing = heads // key_heads
    queries = query.reshape(texts, key_heads, sharing * places, width)
    mask = attention_mask
    if mask is not None:
        mask = mask.repeat(1, 1, sharing, 1)
    attend = models_package("torch").nn.functional.scaled_dot_product_attention
    attended = attend(queries, key, value, attn_mask=mask, scale=scaling)
    by_head = attended.reshape(texts, heads, places, width)
    return by_head.transpose(1, 2).contiguous(), None


class Network(LocalModel):
    """A model that writes the likeliest continuation of prompts."""

    def __init__(self, network: Any, tokens: Any, device: Device = "cpu") -> None:
        transformers = models_package("transformers")
        masks = models_package("transformers.masking_utils")
        transformers.AttentionInterface.register("grouped", _grouped)
        transformers.AttentionMaskInterface.register("grouped", masks.eager_mask)
        network.set_attn_implementation("grouped")
        super().__init__(network, tokens, device)
        self.caches = dict[tuple[int, ...], Any]()  # of beginnings that prompts have in common
        self.ends = {tokens.eos_token_id, tokens.convert_tokens_to_ids("<|endoftext|>")}
        # without the name of PyTorch's build, of which every index has its own
        torch_version = version("torch").partition("+")[0]
        self.program = f"transformers {version('transformers')}, torch {torch_version}, bfloat16"

    def _beginning(self, prompts: Sequence[list[int]]) -> tuple[int, ...]:
        """The longest read beginning of some prompts, which is read now if there is none."""
        common = _common_beginning(prompts)
        cached = []
        for tokens in self.caches:
            # One that is less than half of what they have in common is not worth taking.
            if common[: len(tokens)] == tokens and 2 * len(tokens) > len(common):
                cached.append(tokens)
        if cached:
            return max(cached, key=len)
        if common:
            self.caches[common] = self.empty_cache()
            read = self.tensor([common])
            self.network.model(read, past_key_values=self.caches[common])
        return common

    def continued(self, prompts: Sequence[list[int]], longest: int) -> list[_Written]:
        """The likeliest next tokens of each prompt, one by one, to its end."""
        torch = self.torch
        with torch.inference_mode():
            beginning = self._beginning(prompts)
            shared = len(beginning)
            cache = self.empty_cache()
            if shared:
                cache = deepcopy(self.caches[beginning])
                cache.batch_repeat_interleave(len(prompts))

            # Prompts of unequal length are filled up on the left, and the mask hides what fills.
            tails = [prompt[shared:] for prompt in prompts]
            width = max(len(tail) for tail in tails)
            padding = [width - len(tail) for tail in tails]
            rows = list(zip(tails, padding, strict=True))
            tokens = self.tensor([[0] * pad + tail for tail, pad in rows])
            mask = self.tensor([[1] * shared + [0] * pad + [1] * len(tail) for tail, pad in rows])

            written = [_Written([], []) for _ in prompts]
            unfinished = list(range(len(prompts)))
            for _ in range(longest):
                positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
                states = self.network.model(
                    tokens, attention_mask=mask, position_ids=positions, past_key_values=cache
                )
                best = self.log_probabilities(states.last_hidden_state[:, -1]).max(dim=-1)
                going = []  # places in the batch of the prompts that have not come to their end
                for place, number in enumerate(unfinished):
                    token = int(best.indices[place])
                    written[number].tokens.append(token)
                    written[number].log_probabilities.append(float(best.values[place]))
                    if token not in self.ends:
                        going.append(place)
                if not going:
                    break
                if len(going) < len(unfinished):
                    cache.batch_select_indices(self.tensor(going))
                unfinished = [unfinished[place] for place in going]
                tokens = best.indices[going][:, None]
                mask = torch.cat([mask[going], torch.ones_like(tokens)], dim=1)
            return written

    def answer(self, prompt: Sequence[int], written: _Written) -> Answer:
        """An answer as an endpoint would give it."""
        tokens = written.tokens
        ended = bool(tokens) and tokens[-1] in self.ends
        text_tokens = tokens[:-1] if ended else tokens

        # A token alone may be half a letter, so its piece is what it adds to the text before it.
        pieces: list[str] = []
        text = ""
        for count in range(1, len(text_tokens) + 1):
            longer = self.tokens.decode(text_tokens[:count])
            pieces.append(longer[len(text) :])
            text = longer
        return Answer(
            "".join(pieces),
            "stop" if ended else "length",
            "",
            self.program,
            {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)},
            tuple(zip(pieces, written.log_probabilities, strict=False)),
        )


def _common_beginning(prompts: Sequence[list[int]]) -> tuple[int, ...]:
    """What all prompts begin with, without the last token of any."""
    common = []
    for column in zip(*(prompt[:-1] for prompt in prompts), strict=False):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    return tuple(common)


# --- many prompts at a time -----------------------------------------------------------------------


def _taken_together(waiting: queue.Queue[_Waiting | None]) -> list[_Waiting]:
    """The prompts that have come, after the first was waited for; empty once there is an end."""
    prompt = waiting.get()
    prompts = []
    while prompt is not None:
        prompts.append(prompt)
        try:
            prompt = waiting.get(timeout=_PATIENCE)
        except queue.Empty:
            return prompts
    if prompts:
        waiting.put(None)  # the end is met once more, when these are answered
    return prompts


def _answer_alike(network: Network, alike: Sequence[_Waiting]) -> None:
    """Answer prompts of one kind."""
    try:
        continuations = network.continued([prompt.tokens for prompt in alike], alike[0].kind[1])
        for prompt, written in zip(alike, continuations, strict=True):
            prompt.answered.set_result(network.answer(prompt.tokens, written))
    except Exception as error:  # noqa: BLE001  whoever waits must hear of it
        for prompt in alike:
            prompt.answered.set_exception(error)


def _answer_all(network: Network, waiting: queue.Queue[_Waiting | None]) -> None:
    """Answer the prompts that come, as many of a kind together as a batch holds."""
    while prompts := _taken_together(waiting):
        prompts.sort(key=lambda prompt: (*prompt.kind, len(prompt.tokens)))
        for _, group in groupby(prompts, key=lambda prompt: prompt.kind):
            alike = list(group)
            for place in range(0, len(alike), BATCH):
                _answer_alike(network, alike[place : place + BATCH])


@contextmanager
def batch_model(
    weights: Path, *, threads: int, device: Device = "cpu"
) -> Iterator[tuple[Model, str]]:
    """Load a GGUF model that answers together what several threads ask of it, at temperature 0.

    Yields the model and the programs that run it.
    """
    network = Network.load(weights, threads=threads, device=device)
    waiting = queue.Queue[_Waiting | None]()

    def ask(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
        if sampling.temperature:
            raise ValueError("many prompts at a time are answered with temperature 0 alone")
        beginning = json.dumps(list(messages[:-1]))
        kind = (beginning, sampling.max_tokens)
        prompt = _Waiting(kind, network.prompt(messages), Future())
        waiting.put(prompt)
        return prompt.answered.result()

    thread = Thread(target=_answer_all, args=(network, waiting), daemon=True)
    thread.start()
    try:
        yield ask, network.program
    finally:
        waiting.put(None)
        thread.join()
