"""Language models of chapter 3: one on this machine, or one behind an endpoint in the OpenAI chat format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import takewhile
from pathlib import Path
from typing import Any

from equipoise_studies.satisfaction.prompts import Told, label_in
from equipoise_studies.systems import endpoint as chat
from equipoise_studies.systems.endpoint import Answer, Endpoint, Sampling
from equipoise_studies.systems.language_models import Device, LocalModel

LIKELIEST = 40
_ROWS = 16
_LABEL_TOKENS = 16

Label = Callable[[Sequence[str]], list[Told]]
"""Takes prompts that begin alike, and returns what each is labelled."""

Write = Callable[[str, int], str]
"""Takes a prompt and the most tokens, and returns what is written."""


def _asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class Reader(LocalModel):
    """A model and what it has read last: prompts of one dialogue begin alike, turn after turn."""

    def __init__(self, whole: Any, tokens: Any, device: Device = "cpu") -> None:
        super().__init__(whole, tokens, device)
        self.read, self.cache = list[int](), self.empty_cache()

    def first_tokens(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Log-probabilities of the `LIKELIEST` first tokens of the answer to each of some messages."""
        prompts = [self.prompt(_asked(text)) for text in texts]
        longest = max(prompts, key=len)
        with self.torch.inference_mode():
            self._go_on(longest[:-1])
            found: list[dict[str, float]] = []
            for place in range(0, len(prompts), _ROWS):
                found += self._ends(prompts[place : place + _ROWS])
        return found

    def _go_on(self, tokens: list[int]) -> None:
        """Read on from what this and the text before have in common."""
        known = min(_alike(self.read, tokens), len(tokens) - 1)
        if not known:
            self.cache = self.empty_cache()
        elif known < len(self.read):
            self.cache.crop(known - len(self.read))  # so many tokens less
        self.network.model(self.tensor([tokens[known:]]), past_key_values=self.cache)
        self.read = tokens

    def _ends(self, prompts: Sequence[list[int]]) -> list[dict[str, float]]:
        """Read what each prompt has beyond what was read, all at once."""
        torch = self.torch
        shared = [min(_alike(prompt, self.read), len(prompt) - 1) for prompt in prompts]
        rests = [prompt[known:] for prompt, known in zip(prompts, shared, strict=True)]
        width = max(map(len, rests))
        asked = self.tensor([rest + [0] * (width - len(rest)) for rest in rests])
        seen = torch.arange(len(self.read))[None, :] < torch.tensor(shared)[:, None]
        own = torch.arange(width)[None, :] < torch.tensor([len(rest) for rest in rests])[:, None]
        mask = torch.cat([seen, own], dim=1).long().to(self.device)
        places = (torch.tensor(shared)[:, None] + torch.arange(width)).to(self.device)
        cache = deepcopy(self.cache)
        cache.batch_repeat_interleave(len(prompts))
        states = self.network.model(
            asked, attention_mask=mask, position_ids=places, past_key_values=cache
        )
        last = torch.tensor([len(rest) - 1 for rest in rests], device=self.device)
        chosen = states.last_hidden_state[torch.arange(len(prompts), device=self.device), last]
        best = self.log_probabilities(chosen).topk(min(LIKELIEST, self.head.shape[1]), dim=-1)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [
            dict(zip(map(self.tokens.decode, ids), values, strict=True)) for ids, values in rows
        ]

    def written(self, text: str, most: int) -> str:
        """The likeliest answer to a message, of at most so many tokens."""
        prompt = self.prompt(_asked(text))
        with self.torch.inference_mode():
            self._go_on(prompt[:-1])
            asked = self.tensor([prompt])
            how = {
                "max_new_tokens": most,
                "do_sample": False,
                "past_key_values": deepcopy(self.cache),
            }
            how |= {
                "temperature": None,
                "top_p": None,
                "top_k": None,
                "attention_mask": self.torch.ones_like(asked),
            }
            answer = self.network.generate(asked, **how)[0, len(prompt) :]
        return str(self.tokens.decode(answer, skip_special_tokens=True))


def _told(answer: Answer) -> Told:
    """What an endpoint answered, with the token at which the label begins."""
    label, place = label_in(answer.text), 0
    for token, value in answer.written if label else ():
        place += len(token)
        if place > (label[1] if label else 0):
            return Told(answer.text, {} if value is None else {token: value}, alone=True)
    return Told(answer.text, {})


@contextmanager
def opened(
    model: str, endpoint: str, device: Device, models: Path | None
) -> Iterator[tuple[Label, Write]]:
    """A model to be asked; temperature 0 throughout."""
    if not endpoint:
        local = Reader.load((models or Path()) / model, device=device)
        yield (
            lambda prompts: [Told("", found) for found in local.first_tokens(prompts)],
            local.written,
        )
        return
    served = Endpoint(endpoint, model)
    with chat.connect() as client:

        def ask(prompt: str, tokens: int) -> Answer:
            sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=tokens)
            return chat.ask_patiently(client, served, sampling, _asked(prompt), logprobs=True)[0]

        yield (
            lambda prompts: [_told(ask(prompt, _LABEL_TOKENS)) for prompt in prompts],
            lambda prompt, tokens: ask(prompt, tokens).text,
        )
