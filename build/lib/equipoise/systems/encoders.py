"""Transformer models from a folder on this machine: batches of texts in, token states out.

Only local folders with safetensors weights are read: nothing is fetched, and no pickle is opened. torch and
transformers are optional; without them an error says how to install them. Recorded outputs need neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Model:
    """A model in evaluation mode with its tokeniser.

    ``tokenizer``, ``network``: of the transformers library. ``head``: what the network returns: hidden states, or
    logits over the vocabulary. ``sha256``: of the weights file, in hexadecimal digits.
    """

    tokenizer: Any
    network: Any
    head: Literal["encoder", "masked-lm"]
    sha256: str


def load_model(folder: str | Path, head: Literal["encoder", "masked-lm"] = "encoder") -> Model:
    """Load a model from a local folder.

    ``folder``: with ``config.json``, a tokeniser and ``model.safetensors``. ``head``: which network to build.
    """
    weights = Path(folder) / "model.safetensors"
    if not weights.is_file():
        raise FileNotFoundError(f"no model.safetensors in {folder}")
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
        import transformers  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this system needs torch and transformers: pip install 'equipoise[models]'"
        ) from error
    kind = transformers.AutoModelForMaskedLM if head == "masked-lm" else transformers.AutoModel
    options = {"local_files_only": True, "trust_remote_code": False}
    network = kind.from_pretrained(str(folder), use_safetensors=True, dtype=torch.float32, **options).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Model(tokenizer, network, head, digest)


def token_states(
    model: Model, texts: Sequence[str], *, length: int = 256, batch: int = 32, progress: str = ""
) -> Iterator[tuple[NDArray[np.int64], Floats32, NDArray[np.bool_]]]:
    """Run texts through a model, similar lengths together.

    ``length``: Tokens after which a text is cut. ``batch``: Texts in one step. ``progress``: Label of a progress
    bar on the standard error; none where empty. Yields Positions of the texts, shaped (batch,); the network's
    output, shaped (batch, tokens, width); and which tokens are of the text, special tokens included, shaped (batch,
    tokens).

    One thread order and single precision: scores repeat on one machine, and agree to about six digits between machines.
    """
    if not texts:
        return
    import torch  # type: ignore[import-not-found,unused-ignore]

    order = np.argsort([len(text) for text in texts], kind="stable")[::-1]
    steps = range(0, len(texts), batch)
    for start in tqdm(steps, desc=progress, unit="batch", disable=not progress):
        rows = order[start : start + batch].astype(np.int64)
        coded = model.tokenizer(
            [texts[row] for row in rows], padding=True, truncation=True, max_length=length, return_tensors="pt"
        )
        with torch.inference_mode():
            output = model.network(**coded)
        states = output.logits if model.head == "masked-lm" else output.last_hidden_state
        yield rows, states.numpy(), coded["attention_mask"].numpy().astype(np.bool_)
