"""Language models in GGUF files, run by xllamacpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_server(weights: Path, *, threads: int = 1, context: int = 4096) -> Any:
    """Load a GGUF language model.

    ``weights``: the ``.gguf`` file. ``context``: Tokens of prompt and answer together.
    """
    if not weights.is_file():
        raise FileNotFoundError(f"no language model at {weights}")
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this system needs xllamacpp: pip install 'equipoise[models]'") from error
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.n_ctx, settings.n_parallel = context, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.warmup, settings.verbosity = False, -1
    return xllamacpp.Server(settings)
