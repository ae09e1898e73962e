"""The modes of retrieval-augmented generation: what an answering model is told about authors.

Vanilla says nothing, Informed names each document's author, CF-informed (counterfactual) names the
other one. A mixed mode has one of them for the relevant and another for the non-relevant documents.

References
----------
thesis, sections 5.3.1 and 5.5 (Mixed RAG Mode).
"""

from __future__ import annotations

from collections.abc import Iterable

MODES = ("Vanilla", "Informed", "CF-informed")
"""The plain modes. X/Y is mixed, with X for the relevant and Y for the non-relevant documents."""


def mode_parts(mode: str) -> tuple[str, str]:
    """Mode of the relevant and of the non-relevant documents.

    ``mode``: one of `MODES`, or two of them with a slash between.

    thesis, Eq. 5.5.
    """
    relevant, slash, nonrelevant = mode.partition("/")
    if not slash:
        nonrelevant = relevant
    if relevant not in MODES or nonrelevant not in MODES:
        raise ValueError(
            f"a mode must be one of {', '.join(MODES)}, or two of them as X/Y, got {mode[:60]!r}"
        )
    return relevant, nonrelevant


def mode_name(mode: str) -> str:
    """The one name of a mode: what is the same for all documents is not written twice.

    thesis, Table 5.14, whose rows with equal modes are those of the plain mode.
    """
    relevant, nonrelevant = mode_parts(mode)
    if relevant == nonrelevant:
        return relevant
    return mode


def in_order(modes: Iterable[str]) -> list[str]:
    """Plain modes as `MODES` has them, then mixed ones by name."""
    plain = {mode: place for place, mode in enumerate(MODES)}
    return sorted(modes, key=lambda mode: (plain.get(mode, len(MODES)), mode))
