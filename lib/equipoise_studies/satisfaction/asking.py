"""Language models of chapter 3: on this machine, or behind an endpoint of the OpenAI form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from equipoise_studies.satisfaction.prompts import LabelAnswer, label_in
from equipoise_studies.systems import endpoint as chat
from equipoise_studies.systems.endpoint import Answer, Endpoint, Sampling
from equipoise_studies.systems.language_models import Device, LocalModel

LIKELIEST = 40
PROMPTS_AT_ONCE = 16
LABEL_TOKENS = 16
"""Most tokens of an answer that is a label."""

Answers = Literal["words", "first token"]

Label = Callable[[Sequence[str]], list[LabelAnswer]]
"""Takes prompts that begin alike, and returns what each is labelled."""

Write = Callable[[str, int], str]
"""Takes a prompt and the most tokens, and returns what is written."""


def _message(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two prompts have in common at their beginning."""
    token_pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], token_pairs))


class Reader(LocalModel):
    """A model and what it has read last: prompts of one dialogue begin alike, turn after turn."""

    def __init__(self, network: Any, tokens: Any, device: Device = "cpu") -> None:
        super().__init__(network, tokens, device)
        self.context = list[int]()
        self.cache = self.empty_cache()

    def first_tokens(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Log-probabilities of the `LIKELIEST` first tokens of the answer to each message."""
        prompts = [self.prompt(_message(text)) for text in texts]
        longest = max(prompts, key=len)
        log_probabilities = []
        with self.torch.inference_mode():
            self._read(longest[:-1])
            for start in range(0, len(prompts), PROMPTS_AT_ONCE):
                batch = prompts[start : start + PROMPTS_AT_ONCE]
                log_probabilities += self._read_ends(batch)
        return log_probabilities

    def _read(self, tokens: list[int]) -> None:
        """Read on from what these tokens have in common with those read before."""
        n_common = min(_common_length(self.context, tokens), len(tokens) - 1)
        if not n_common:
            self.cache = self.empty_cache()
        elif n_common < len(self.context):
            # A negative length takes so many tokens off the end.
            self.cache.crop(n_common - len(self.context))
        self.network.model(self.tensor([tokens[n_common:]]), past_key_values=self.cache)
        self.context = tokens

    def _read_ends(self, prompts: Sequence[list[int]]) -> list[dict[str, float]]:
        """Read what each prompt has beyond what was read, all at once."""
        torch = self.torch
        n_common = [
            min(_common_length(prompt, self.context), len(prompt) - 1) for prompt in prompts
        ]
        ends = [prompt[length:] for prompt, length in zip(prompts, n_common, strict=True)]
        end_lengths = torch.tensor([len(end) for end in ends])
        width = int(end_lengths.max())
        padded = self.tensor([end + [0] * (width - len(end)) for end in ends])

        # A prompt sees what it has in common with the context, and its own end.
        lengths = torch.tensor(n_common)[:, None]
        sees_context = torch.arange(len(self.context))[None, :] < lengths
        sees_end = torch.arange(width)[None, :] < end_lengths[:, None]
        mask = torch.cat([sees_context, sees_end], dim=1).long().to(self.device)
        positions = (lengths + torch.arange(width)).to(self.device)
        cache = deepcopy(self.cache)
        cache.batch_repeat_interleave(len(prompts))
        states = self.network.model(
            padded, attention_mask=mask, position_ids=positions, past_key_values=cache
        ).last_hidden_state

        prompt_places = torch.arange(len(prompts), device=self.device)
        last_states = states[prompt_places, (end_lengths - 1).to(self.device)]
        n_tokens = min(LIKELIEST, self.head.shape[1])
        likeliest = self.log_probabilities(last_states).topk(n_tokens, dim=-1)
        answers = []
        for ids, values in zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True):
            tokens = map(self.tokens.decode, ids)
            answers.append(dict(zip(tokens, values, strict=True)))
        return answers

    def written(self, text: str, most: int) -> str:
        """The likeliest answer to a message, of at most so many tokens."""
        generated, _ = self._generated(text, most)
        return str(self.tokens.decode(generated, skip_special_tokens=True))

    def labelled(self, text: str, most: int) -> LabelAnswer:
        """The likeliest answer to a message, with the token at which its label begins."""
        generated, log_probabilities = self._generated(text, most)
        special = set(self.tokens.all_special_ids)
        written = []
        for token, log_probability in zip(generated, log_probabilities, strict=True):
            if token not in special:
                written.append((str(self.tokens.decode([token])), log_probability))
        # Read from the tokens themselves, so that places in the text are theirs.
        words = "".join(token for token, _ in written)
        return _label_answer(words, written)

    def _generated(self, text: str, most: int) -> tuple[list[int], list[float]]:
        """The likeliest next tokens, one by one, and the log-probability of each."""
        prompt = self.prompt(_message(text))
        with self.torch.inference_mode():
            self._read(prompt[:-1])
            tokens = self.tensor([prompt])
            output = self.network.generate(
                tokens,
                attention_mask=self.torch.ones_like(tokens),
                past_key_values=deepcopy(self.cache),
                max_new_tokens=most,
                do_sample=False,
                # Without sampling these have no meaning, and a model's own would be warned of.
                temperature=None,
                top_p=None,
                top_k=None,
                output_logits=True,
                return_dict_in_generate=True,
            )
        generated = output.sequences[0, len(prompt) :].tolist()
        log_probabilities = []
        for token, logits in zip(generated, output.logits, strict=True):
            of_token = self.torch.log_softmax(logits[0].float(), dim=-1)[token]
            log_probabilities.append(float(of_token))
        return generated, log_probabilities


def _label_answer(text: str, written: Sequence[tuple[str, float | None]]) -> LabelAnswer:
    """What a model answered, with the token at which the label begins.

    ``written``: the tokens with their log-probabilities, as far as these are known.
    """
    label = label_in(text)
    if label is None:
        return LabelAnswer(text, {})
    label_start = label[1]
    token_end = 0
    for token, log_probability in written:
        token_end += len(token)
        if token_end > label_start:
            likely = {} if log_probability is None else {token: log_probability}
            return LabelAnswer(text, likely, alone=True)
    return LabelAnswer(text, {})


@contextmanager
def open_model(
    model: str,
    served: Endpoint | None,
    device: Device,
    models: Path | None,
    answers: Answers = "words",
) -> Iterator[tuple[Label, Write]]:
    """A model to be asked, of this machine or as it is served; temperature 0 throughout.

    ``answers``: whether a model on this machine is read by what it writes, as one behind an
    endpoint is, or by its likeliest first tokens, which takes a fraction of the time.
    """
    if served is None:
        reader = Reader.load((models or Path()) / model, device=device)

        def by_words(prompts: Sequence[str]) -> list[LabelAnswer]:
            return [reader.labelled(prompt, LABEL_TOKENS) for prompt in prompts]

        def by_first_token(prompts: Sequence[str]) -> list[LabelAnswer]:
            return [LabelAnswer("", likely) for likely in reader.first_tokens(prompts)]

        yield by_words if answers == "words" else by_first_token, reader.written
        return

    with chat.connect() as client:

        def ask(prompt: str, tokens: int) -> Answer:
            sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=tokens)
            messages = _message(prompt)
            return chat.ask_patiently(client, served, sampling, messages, logprobs=True)[0]

        def label(prompts: Sequence[str]) -> list[LabelAnswer]:
            labels = []
            for prompt in prompts:
                answer = ask(prompt, LABEL_TOKENS)
                labels.append(_label_answer(answer.text, answer.written))
            return labels

        def write(prompt: str, tokens: int) -> str:
            return ask(prompt, tokens).text

        yield label, write
