"""Transformer models from a folder on this machine: batches of texts in, token states out.

Only local folders with safetensors weights are read: nothing is fetched, and no pickle is opened.
torch and transformers are imported when a model is loaded; without them an error says how to
install them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from equipoise_studies.systems import Device, models_package

Floats32 = NDArray[np.float32]
Head = Literal["encoder", "masked-lm"]
Precision = Literal["float32", "bfloat16"]

_LOCAL = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, eq=False)
class Model:
    """A model in evaluation mode, with its tokeniser.

    ``network``: of the transformers library; it returns hidden states (head "encoder") or logits
    over the vocabulary ("masked-lm"). ``sha256``: of the weights file, in hexadecimal digits.
    """

    folder: Path
    network: Any
    head: Head
    sha256: str

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The tokeniser of the transformers library, with the folder's own settings."""
        return models_package("transformers").AutoTokenizer.from_pretrained(
            str(self.folder), **_LOCAL
        )


def load_model(
    folder: str | Path,
    head: Head = "encoder",
    precision: Precision = "float32",
    device: Device = "cpu",
) -> Model:
    """Load a model from a local folder with ``config.json``, ``model.safetensors`` and a tokeniser.

    In ``precision`` bfloat16 a processor with matrix instructions is several times as fast; scores
    agree to two digits. Where a masked-language-model head is wanted and the folder holds none (as
    sentence encoders do not), PyTorch draws it at random and ties its decoder to the word
    embeddings.
    """
    folder = Path(folder)
    names = ("config.json", "model.safetensors")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"no {' and no '.join(missing)} in the model folder {folder.name}")
    torch, transformers = models_package("torch"), models_package("transformers")
    if head == "masked-lm":
        kind = transformers.AutoModelForMaskedLM
    else:
        kind = transformers.AutoModel
    dtype = getattr(torch, precision)
    network = kind.from_pretrained(str(folder), use_safetensors=True, dtype=dtype, **_LOCAL)
    # Records state it, so that scores are not taken for those of other weights.
    with (folder / "model.safetensors").open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Model(folder, network.to(device).eval(), head, sha256)


def token_states(
    model: Model, texts: Sequence[str], *, length: int = 256, batch: int = 32, progress: str = ""
) -> Iterator[tuple[NDArray[np.int64], Floats32, NDArray[np.bool_]]]:
    """Run texts through a model, similar lengths together.

    ``length``: tokens after which a text is cut. ``batch``: texts in one step. ``progress``: label
    of a progress bar on the standard error; none where empty. Yields positions of the texts, shaped
    (batch,); the network's output, shaped (batch, tokens, width); and which tokens are of the text,
    special tokens included, shaped (batch, tokens).

    With one order of threads and in single precision, scores repeat on one machine, and agree to
    about six digits between machines.
    """
    torch = models_package("torch")
    # The longest come first: little padding, and memory runs out at once or never.
    order = np.argsort([len(text) for text in texts], kind="stable")[::-1]
    starts = range(0, len(texts), batch)
    for start in tqdm(starts, desc=progress, unit="batch", disable=not progress):
        rows = order[start : start + batch].astype(np.int64)
        coded = model.tokenizer(
            [texts[row] for row in rows],
            padding=True,
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )
        on_device = coded.to(model.network.device)
        with torch.inference_mode():
            output = model.network(**on_device)
        if model.head == "masked-lm":
            states = output.logits
        else:
            states = output.last_hidden_state
        yield rows, states.float().cpu().numpy(), coded["attention_mask"].numpy().astype(np.bool_)
