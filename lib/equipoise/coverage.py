"""What a measure could see of its input: counted, warned of if little, refused if nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from equipoise.arrays import Integers
from equipoise.problems import InputError, Note, Problem, listed

_EXAMPLES = 3  # ids that a message shows
_HEAD = 1000  # ids that are looked through for them
_gathering: ContextVar[list[Seen] | None] = ContextVar("gathering", default=None)


class Unseen(Note):
    """A measure saw less of its input than the least share that was asked for."""

    label = "warning"


@dataclass(frozen=True)
class Seen:
    """Of how many items a measure had what it needs.

    Such as ``Seen("run a", "ranked documents", "a judgement", 3, 4)``.
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
        ids_by_side = {f"{self.items} without": self.lacking, "ids that have one": self.known}
        width = max(map(len, ids_by_side))
        lines = ""
        for side, ids in ids_by_side.items():
            if ids:
                lines += f"\n    {side:<{width}}  {'  '.join(ids)}"
        return lines

    def __str__(self) -> str:
        if not self.whole:
            return f"{self.needed} for none: there are no {self.items}"
        return f"{self.needed} for {self.found:,} of {self.whole:,} {self.items} ({self.share:.0%})"


@contextmanager
def gathered() -> Iterator[list[Seen]]:
    """What measures see within the block, to be judged behind it, and not at once."""
    gathering: list[Seen] = []
    token = _gathering.set(gathering)
    try:
        yield gathering
    finally:
        _gathering.reset(token)


def judge(seen: Iterable[Seen], least: float = 0.5) -> None:
    """Raise `InputError` where nothing was seen; warn, once for each need, where too little was."""
    coverages = list(seen)
    gathering = _gathering.get()
    if gathering is not None:
        gathering.extend(coverages)
        return
    blind = [coverage for coverage in coverages if coverage.whole and not coverage.found]
    if blind:
        raise InputError(map(_nothing_seen, blind))
    low = [coverage for coverage in coverages if coverage.asked and coverage.share < least]
    for similar in _by_kind(low).values():
        worst = min(similar, key=lambda coverage: coverage.share)
        message = f"{worst.place}: only {worst}"
        if len(similar) > 1:
            message += f", and less than {least:.0%} in {len(similar) - 1} more"
        warnings.warn(f"{message}{worst.sides}", Unseen, stacklevel=4)


def _nothing_seen(coverage: Seen) -> Problem:
    """What to say where no item has what is needed: most often the ids of two files differ."""
    complaint = f"{coverage.needed} for none of {coverage.whole:,} {coverage.items}"
    if coverage.lacking:
        complaint += f", such as {listed(coverage.lacking)}"
    wanted = "one at least"
    if coverage.known:
        wanted = f"the same ids on both sides; the other has {listed(coverage.known)}"
    return Problem(coverage.place, None, None, complaint, wanted)


def _by_kind(coverages: Iterable[Seen]) -> dict[tuple[str, str], list[Seen]]:
    """Coverages of the same items and the same need, from several places."""
    kinds: dict[tuple[str, str], list[Seen]] = {}
    for coverage in coverages:
        kinds.setdefault((coverage.items, coverage.needed), []).append(coverage)
    return kinds


def summaries(seen: Iterable[Seen]) -> list[str]:
    """A line for each thing needed, over all places, and the place where the share is least."""
    lines = []
    for (items, needed), places in _by_kind(seen).items():
        found = sum(coverage.found for coverage in places)
        whole = sum(coverage.whole for coverage in places)
        overall = Seen("", items, needed, found, whole)
        worst = min(places, key=lambda coverage: coverage.share)
        line = str(overall)
        if worst.share < overall.share:
            line += f"; least in {worst.place}, {worst.found:,} of {worst.whole:,}"
        if worst.lacking and worst.found < worst.whole:
            line += f"; not for {listed(worst.lacking)}"
        lines.append(line)
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
    known: tuple[str, ...] = ()
    if (found < whole).any():
        # Best shown are ids of the other side that no run ranks: they tell how it writes them.
        others = pd.Index(pd.unique(have[:_HEAD]))
        unranked = others[documents.get_indexer(others) < 0]
        known = first(unranked) or first(others)
    coverages = []
    for number, run in enumerate(runs):
        counts = int(found[number]), int(whole[number])
        coverage = Seen(f"run {run}", "ranked documents", needed, *counts)
        if coverage.found < coverage.whole:
            coverage = replace(coverage, lacking=first(lacking(number)), known=known)
        coverages.append(coverage)
    return coverages
