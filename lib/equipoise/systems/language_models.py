"""Language models in GGUF files, run by xllamacpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equipoise.systems import models_package


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
