"""Parameters of notebooks that are options of measures, and have their bounds."""

from __future__ import annotations

from typing import Any

from equipoise import options
from equipoise.declare import bounds_within, fit


def bounds_missed(name: str, value: Any, default: Any) -> str | None:
    """The bounds, in words, that a value misses; None where it fits, or they are not meant.

    They are those of the option of that name, if the parameter's default is one of its values.
    """
    option = options.by_name().get(name)
    if option is None or not _fits(default, option, name) or _fits(value, option, name):
        return None
    return bounds_within(option)


def _fits(value: Any, option: Any, name: str) -> bool:
    try:
        fit(value, option, name)
    except ValueError:
        return False
    return True
