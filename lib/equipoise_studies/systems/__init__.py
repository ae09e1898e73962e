"""Systems under evaluation, and what they are made of."""

from __future__ import annotations

import importlib
from typing import Any


def models_package(name: str) -> Any:
    """A package of the extra ``models``, imported where a system needs it; a replay needs none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this system needs {name}: pip install '.[models]'") from error
