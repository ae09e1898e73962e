"""Language models on this machine.

GGUF files run by xllamacpp, and these or checkpoints run by transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from equipoise_studies.systems import Device, models_package

__all__ = ["Device", "LocalModel", "load_server"]


def load_server(weights: Path, *, threads: int = 1, context: int = 4096) -> Any:
    """Load a language model from its ``.gguf`` file.

    ``context``: tokens of prompt and answer together.
    """
    if not weights.is_file():
        raise FileNotFoundError(f"no language model at {weights}")
    xllamacpp = models_package("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.n_ctx = context
    settings.n_parallel = 1
    settings.cpuparams.n_threads = threads
    settings.cpuparams_batch.n_threads = threads
    settings.warmup = False
    settings.verbosity = -1
    return xllamacpp.Server(settings)


class LocalModel:
    """A causal language model that transformers runs, and its tokens."""

    def __init__(self, network: Any, tokens: Any, device: Device = "cpu") -> None:
        self.torch = models_package("torch")
        self.empty_cache = models_package("transformers").DynamicCache
        self.network = network.to(device).eval()
        self.tokens = tokens
        self.device = device
        self.head = self.network.lm_head.weight.detach().float().T

    @classmethod
    def load(cls, weights: Path, *, device: Device = "cpu", threads: int = 1) -> Self:
        """Load a GGUF file, unpacked, or a checkpoint's folder of safetensors, in bfloat16."""
        torch, transformers = models_package("torch"), models_package("transformers")
        torch.set_num_threads(threads)
        sources: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        network_options: dict[str, Any] = {"dtype": torch.bfloat16}
        if weights.is_file():
            for name in ("accelerate", "gguf"):  # transformers asks for them
                models_package(name)
            folder = weights.parent
            sources["gguf_file"] = weights.name
            unpacked = transformers.GgufConfig(dequantize=True)
            network_options["quantization_config"] = unpacked
        else:
            folder = weights
            network_options["use_safetensors"] = True  # other checkpoints are pickles
        tokens = transformers.AutoTokenizer.from_pretrained(folder, **sources)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            folder, **sources, **network_options
        )
        return cls(network, tokens, device)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Tokens of a prompt, by the model's chat template."""
        tokens = self.tokens.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return list(tokens)

    def log_probabilities(self, states: Any) -> Any:
        """Log-probabilities of the next token."""
        # In bfloat16 many words would be equally likely, so this is in single precision.
        return self.torch.log_softmax(states.float() @ self.head, dim=-1)

    def tensor(self, rows: Sequence[Sequence[int]] | Sequence[int]) -> Any:
        """Token ids where the model is."""
        return self.torch.tensor(rows, device=self.device)
