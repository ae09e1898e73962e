"""Language models of chapter 3: one on this machine, or one behind an endpoint in the OpenAI chat format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from equipoise.conversations import endpoint as chat
from equipoise.conversations.endpoint import Answer, Endpoint, Sampling
from equipoise.studies.satisfaction.local_model import Device, LocalModel
from equipoise.studies.satisfaction.prompts import Told, label_in

_LABEL_TOKENS = 16

Label = Callable[[Sequence[str]], list[Told]]
"""Takes prompts that begin alike, and returns what each is labelled."""

Write = Callable[[str, int], str]
"""Takes a prompt and the most tokens, and returns what is written."""


def _told(answer: Answer) -> Told:
    """What an endpoint answered, with the token at which the label begins."""
    label, place = label_in(answer.text), 0
    for token, value in answer.written if label else ():
        place += len(token)
        if place > (label[1] if label else 0):
            return Told(answer.text, {} if value is None else {token: value}, alone=True)
    return Told(answer.text, {})


@contextmanager
def opened(model: str, endpoint: str, device: Device, models: Path | None) -> Iterator[tuple[Label, Write]]:
    """A model to be asked; temperature 0 throughout."""
    if not endpoint:
        local = LocalModel((models or Path()) / model, device)
        yield lambda prompts: [Told("", found) for found in local.first_tokens(prompts)], local.written
        return
    served = Endpoint(endpoint, model)
    with chat.connect() as client:

        def ask(prompt: str, tokens: int) -> Answer:
            sampling, messages = (
                Sampling(temperature=0.0, top_p=1.0, max_tokens=tokens),
                [{"role": "user", "content": prompt}],
            )
            return chat.ask_patiently(client, served, sampling, messages, logprobs=True)[0]

        yield (
            lambda prompts: [_told(ask(prompt, _LABEL_TOKENS)) for prompt in prompts],
            lambda prompt, tokens: ask(prompt, tokens).text,
        )
