"""Parameters of notebooks that are options of measures, and have their bounds."""

from __future__ import annotations

from typing import Any

from equipoise.options import checked_value, option_types


def bounds_missed(name: str, value: Any, default: Any) -> str | None:
    """The bounds that a value misses; None where it fits, or they do not apply.

    They are those of the option of that name, if the parameter's default is one of its values.
    """
    option = option_types().get(name)
    if option is None or _fault(default, option, name):
        return None
    fault = _fault(value, option, name)
    return fault and fault.partition(" must be ")[2].partition(", got ")[0]


def _fault(value: Any, option: Any, name: str) -> str | None:
    try:
        checked_value(value, option, name)
    except ValueError as error:
        return str(error)
    return None
