"""Language models in GGUF files, run by xllamacpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["load_server"]


def load_server(weights: Path, *, threads: int = 1, context: int = 4096) -> Any:
    """Load a GGUF language model.

    Parameters
    ----------
    weights : Path
        The ``.gguf`` file.
    threads : int, default 1
    context : int, default 4096
        Tokens of prompt and answer together.

    Returns
    -------
    xllamacpp.Server

    Raises
    ------
    ModuleNotFoundError
        If xllamacpp is not installed.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> load_server(Path("no-such.gguf"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: no language model at no-such.gguf
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
