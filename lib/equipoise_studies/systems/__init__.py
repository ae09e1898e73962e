"""Systems under evaluation, and what they are made of."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Literal

Device = Literal["cpu", "cuda"]
"""Where a model runs."""


def lacking_device(device: Device) -> tuple[str, ...]:
    """What is lacking where a config asks for a GPU and PyTorch finds none."""
    if device == "cpu":
        return ()
    if not find_spec("torch"):
        return ("PyTorch: pip install '.[models]'",)
    if models_package("torch").cuda.is_available():
        return ()
    return (f"a GPU: the config asks for {device}, and PyTorch finds none",)


def models_package(name: str) -> Any:
    """A package of the extra ``models``, imported where a system needs it; a replay needs none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this system needs {name}: pip install '.[models]'") from error
