"""A BERT of one layer drawn at random: configuration, safetensors and tokeniser as published."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def small_bert(
    folder: Path, pieces: Sequence[str], kind: str = "BertForMaskedLM", **sizes: int
) -> Any:
    """Make one whose tokens are these word pieces; a test that lacks PyTorch is skipped."""
    torch, transformers, tokenizers = (
        pytest.importorskip(name, reason=f"encoders need {name}: pip install 'equipoise[models]'")
        for name in ("torch", "transformers", "tokenizers")
    )
    torch.manual_seed(0)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    } | sizes
    network = getattr(transformers, kind)(transformers.BertConfig(vocab_size=len(pieces), **shape))
    network.save_pretrained(folder)
    model = tokenizers.models.WordPiece(
        {piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return network
