"""What a measure could see of its input: counted, told, warned of where it is little, refused where it is nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pandas as pd

from equipoise.arrays import Integers
from equipoise.problems import InputError, Note, Problem, listed

_EXAMPLES, _HEAD = 3, 1000  # ids that are shown, and ids that are looked through for them
_gathering: ContextVar[list[Seen] | None] = ContextVar("gathering", default=None)


class Unseen(Note):
    """A measure saw less of its input than the least share that was asked for."""

    label = "warning"


@dataclass(frozen=True)
class Seen:
    """Of how many items a measure had what it needs: ``Seen("run a", "ranked documents", "a judgement", 3, 4)``.

    ``lacking``: first ids of items without it. ``known``: first ids that the other side has and no
    item. ``asked``: whether the least share is asked for; where it is not, only nothing at all is
    refused.
    """

    place: str
    items: str
    needed: str
    found: int
    whole: int
    lacking: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    asked: bool = True

    @property
    def share(self) -> float:
        """Of 1; 1 where there are no items."""
        return self.found / self.whole if self.whole else 1.0

    @property
    def sides(self) -> str:
        """The ids of both sides, one above the other."""
        names = {f"{self.items} without": self.lacking, "ids that have one": self.known}
        width = max(map(len, names))
        shown = (f"\n    {name:<{width}}  {'  '.join(ids)}" for name, ids in names.items() if ids)
        return "".join(shown)

    def __str__(self) -> str:
        return f"{self.needed} for {self.found:,} of {self.whole:,} {self.items} ({self.share:.0%})"


@contextmanager
def gathered() -> Iterator[list[Seen]]:
    """What measures see within the block, to be judged behind it, and not at once."""
    kept: list[Seen] = []
    token = _gathering.set(kept)
    try:
        yield kept
    finally:
        _gathering.reset(token)


def judge(seen: Iterable[Seen], least: float = 0.5) -> None:
    """Raise `InputError` where nothing was seen, and warn, once for each thing needed, where less than a share was."""
    every = list(seen)
    if (kept := _gathering.get()) is not None:
        kept.extend(every)
        return
    if blind := [one for one in every if one.whole and not one.found]:
        raise InputError(
            Problem(
                one.place,
                None,
                None,
                f"{one.needed} for none of {one.whole:,} {one.items}"
                + (f", such as {listed(one.lacking)}" if one.lacking else ""),
                f"the same ids on both sides; the other has {listed(one.known)}"
                if one.known
                else "one at least",
            )
            for one in blind
        )
    little: dict[tuple[str, str], list[Seen]] = {}
    for one in every:
        if one.asked and one.share < least:
            little.setdefault((one.items, one.needed), []).append(one)
    for some in little.values():
        worst = min(some, key=lambda one: one.share)
        more = f", and less than {least:.0%} in {len(some) - 1} more" if len(some) > 1 else ""
        warnings.warn(f"{worst.place}: only {worst}{more}{worst.sides}", Unseen, stacklevel=4)


def summaries(seen: Iterable[Seen]) -> list[str]:
    """A line for each thing needed, over all places, and the place where the share is least."""
    kinds: dict[tuple[str, str], list[Seen]] = {}
    for one in seen:
        kinds.setdefault((one.items, one.needed), []).append(one)
    lines = []
    for (items, needed), some in kinds.items():
        whole = Seen(
            "", items, needed, sum(one.found for one in some), sum(one.whole for one in some)
        )
        worst = min(some, key=lambda one: one.share)
        apart = (
            f"; least in {worst.place}, {worst.found:,} of {worst.whole:,}"
            if worst.share < whole.share
            else ""
        )
        without = (
            f"; not for {listed(worst.lacking)}"
            if worst.lacking and worst.found < worst.whole
            else ""
        )
        lines.append(f"{whole}{apart}{without}")
    return lines


def first(ids: Any) -> tuple[str, ...]:
    """The first few of the ids, each once."""
    return tuple(map(str, pd.unique(ids[:_HEAD])[:_EXAMPLES]))


def of_runs(
    needed: str,
    runs: Sequence[str],
    found: Integers,
    whole: Integers,
    lacking: Callable[[int], Any],
    have: Any,
    documents: pd.Index[Any],
) -> list[Seen]:
    """For each run, of how many of its ranked documents there is what is needed.

    ``found``, ``whole`` (shaped (runs,)): counts. ``lacking``: ids without it, by the run's number.
    ``have``: ids of the other side, which has it. ``documents``: all that are ranked, each once.
    """
    other = pd.Index(pd.unique(have[:_HEAD])) if (found < whole).any() else pd.Index([])
    apart = first(other[documents.get_indexer(other) < 0]) or first(other)
    counts = enumerate(zip(runs, found.tolist(), whole.tolist(), strict=True))
    return [
        Seen(
            f"run {run}",
            "ranked documents",
            needed,
            some,
            every,
            *((first(lacking(i)), apart) if some < every else ()),
        )
        for i, (run, some, every) in counts
    ]
