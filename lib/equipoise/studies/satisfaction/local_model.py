"""A language model on this machine, run by transformers: what it writes next, and how likely it finds each token.

Prompts of one dialogue begin alike, turn after turn: what they have in common is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from equipoise.systems import models_package

LIKELIEST = 40
_ROWS = 16
Device = Literal["cpu", "cuda"]


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class LocalModel:
    """A causal language model, its tokens, and what it has read last."""

    def __init__(self, weights: Path, device: Device = "cpu", threads: int = 1) -> None:
        """Load a GGUF file, its weights unpacked, or the folder of a checkpoint, in bfloat16."""
        torch, transformers = models_package("torch"), models_package("transformers")
        torch.set_num_threads(threads)
        kept: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        folder = weights
        if weights.is_file():
            folder = weights.parent
            kept |= {"gguf_file": weights.name}
        self.tokens = transformers.AutoTokenizer.from_pretrained(folder, **kept)
        if weights.is_file():
            kept |= {"quantization_config": transformers.GgufConfig(dequantize=True)}
        else:
            kept["use_safetensors"] = True  # other checkpoints are pickles
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.network = load(folder, dtype=torch.bfloat16, **kept).to(device).eval()
        self.torch, self.device, self.empty = torch, device, transformers.DynamicCache
        self.read, self.cache = list[int](), transformers.DynamicCache()

    def prompt(self, text: str) -> list[int]:
        """Tokens of a message, by the model's chat template."""
        wanted = {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        return list(self.tokens.apply_chat_template([{"role": "user", "content": text}], **wanted))

    def first_tokens(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Log-probabilities of the `LIKELIEST` first tokens of the answer to each of some messages."""
        prompts = [self.prompt(text) for text in texts]
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
            self.cache = self.empty()
        elif known < len(self.read):
            self.cache.crop(known - len(self.read))  # so many tokens less
        self.network.model(self._tensor([tokens[known:]]), past_key_values=self.cache)
        self.read = tokens

    def _ends(self, prompts: Sequence[list[int]]) -> list[dict[str, float]]:
        """Read what each prompt has beyond what was read, all at once."""
        torch = self.torch
        shared = [min(_alike(prompt, self.read), len(prompt) - 1) for prompt in prompts]
        rests = [prompt[known:] for prompt, known in zip(prompts, shared, strict=True)]
        width = max(map(len, rests))
        asked = self._tensor([rest + [0] * (width - len(rest)) for rest in rests])
        seen = torch.arange(len(self.read))[None, :] < torch.tensor(shared)[:, None]
        own = torch.arange(width)[None, :] < torch.tensor([len(rest) for rest in rests])[:, None]
        mask = torch.cat([seen, own], dim=1).long().to(self.device)
        places = (torch.tensor(shared)[:, None] + torch.arange(width)).to(self.device)
        cache = deepcopy(self.cache)
        cache.batch_repeat_interleave(len(prompts))
        states = self.network.model(asked, attention_mask=mask, position_ids=places, past_key_values=cache)
        last = torch.tensor([len(rest) - 1 for rest in rests], device=self.device)
        chosen = states.last_hidden_state[torch.arange(len(prompts), device=self.device), last]
        # the last layer in single precision: in bfloat16 many words would be equally likely
        logits = torch.log_softmax(chosen.float() @ self.network.lm_head.weight.float().T, dim=-1)
        best = logits.topk(min(LIKELIEST, logits.shape[1]), dim=-1)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [dict(zip(map(self.tokens.decode, ids), values, strict=True)) for ids, values in rows]

    def written(self, text: str, most: int) -> str:
        """The likeliest answer to a message, of at most so many tokens."""
        prompt = self.prompt(text)
        with self.torch.inference_mode():
            self._go_on(prompt[:-1])
            asked = self._tensor([prompt])
            how = {"max_new_tokens": most, "do_sample": False, "past_key_values": deepcopy(self.cache)}
            how |= {"temperature": None, "top_p": None, "top_k": None, "attention_mask": self.torch.ones_like(asked)}
            answer = self.network.generate(asked, **how)[0, len(prompt) :]
        return str(self.tokens.decode(answer, skip_special_tokens=True))

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        return self.torch.tensor(rows, device=self.device)
