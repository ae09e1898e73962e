"""Language models on this machine: GGUF files run by xllamacpp, and these or checkpoints run by transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from equipoise_studies.systems import models_package

Device = Literal["cpu", "cuda"]


def load_server(weights: Path, *, threads: int = 1, context: int = 4096) -> Any:
    """Load a language model from its ``.gguf`` file; ``context`` counts the tokens of prompt and answer together."""
    if not weights.is_file():
        raise FileNotFoundError(f"no language model at {weights}")
    xllamacpp = models_package("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.n_ctx, settings.n_parallel = context, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.warmup, settings.verbosity = False, -1
    return xllamacpp.Server(settings)


class LocalModel:
    """A causal language model that transformers runs, and its tokens."""

    def __init__(self, whole: Any, tokens: Any, device: Device = "cpu") -> None:
        self.torch, self.empty_cache = (
            models_package("torch"),
            models_package("transformers").DynamicCache,
        )
        self.network, self.tokens, self.device = whole.to(device).eval(), tokens, device
        self.head = self.network.lm_head.weight.detach().float().T

    @classmethod
    def load(cls, weights: Path, *, device: Device = "cpu", threads: int = 1) -> Self:
        """Load a GGUF file, its weights unpacked, or the folder of a checkpoint of safetensors, in bfloat16."""
        torch, transformers = models_package("torch"), models_package("transformers")
        torch.set_num_threads(threads)
        kept: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        folder, how = weights, {"use_safetensors": True}  # other checkpoints are pickles
        if weights.is_file():
            for name in ("accelerate", "gguf"):  # transformers asks for them
                models_package(name)
            folder, how = (
                weights.parent,
                {"quantization_config": transformers.GgufConfig(dequantize=True)},
            )
            kept["gguf_file"] = weights.name
        tokens = transformers.AutoTokenizer.from_pretrained(folder, **kept)
        load = transformers.AutoModelForCausalLM.from_pretrained
        return cls(load(folder, dtype=torch.bfloat16, **kept, **how), tokens, device)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Tokens of a prompt, by the model's chat template."""
        wanted = {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        return list(self.tokens.apply_chat_template(list(messages), **wanted))

    def log_probabilities(self, states: Any) -> Any:
        """Of the next token; in single precision, for in bfloat16 many words would be equally likely."""
        return self.torch.log_softmax(states.float() @ self.head, dim=-1)

    def tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        """Token ids where the model is."""
        return self.torch.tensor(rows, device=self.device)
