"""Text that is safe to show, and the reasons of the system."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: object) -> str:
    """Escape control characters and marks that change the direction of text."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def reason(error: OSError) -> str:
    """Return what the system reports, in lower case."""
    return (error.strerror or "an error of the system").lower()
