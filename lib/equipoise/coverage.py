"""What a measure could use of its input: counted, reported, and an error where it is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from equipoise.arrays import Integers
from equipoise.errors import InputError, Problem, listed

_EXAMPLES = 3  # ids that a message shows
_HEAD = 1000  # ids that are looked through for them


class Seen(NamedTuple):
    """Of how many items a measure had what it needs.

    Such as ``Seen("run a", "ranked documents", "a judgement", 3, 4)``. ``lacking``: first ids of
    items without it. ``known``: first ids that the other side has and no item.
    """

    place: str
    items: str
    needed: str
    found: int
    whole: int
    lacking: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Of 1; 1 where there are no items."""
        return self.found / self.whole if self.whole else 1.0

    def __str__(self) -> str:
        return f"{self.needed} for {self.found:,} of {self.whole:,} {self.items} ({self.share:.0%})"


def judge(seen: Iterable[Seen]) -> list[Seen]:
    """Return the counts, or raise `InputError` where nothing was seen of something."""
    counts = list(seen)
    blind = [count for count in counts if count.whole and not count.found]
    if blind:
        raise InputError(map(_nothing_seen, blind))
    return counts


def _nothing_seen(count: Seen) -> Problem:
    """What to say where no item has what is needed: most often the ids of two files differ."""
    found = f"none for {count.whole:,} {count.items}"
    if count.lacking:
        found += f", such as {listed(count.lacking)}"
    wanted = f"{count.needed} for at least one"
    if count.known:
        wanted += f" (there is one for {listed(count.known)})"
    return Problem(count.place, None, None, found, wanted)


def summaries(seen: Iterable[Seen]) -> list[str]:
    """A line for each thing needed, over all places, and the place where the share is least."""
    by_need: dict[tuple[str, str], list[Seen]] = {}
    for count in seen:
        by_need.setdefault((count.items, count.needed), []).append(count)
    lines = []
    for (items, needed), places in by_need.items():
        found, whole = sum(count.found for count in places), sum(count.whole for count in places)
        overall = Seen("", items, needed, found, whole)
        worst = min(places, key=lambda count: count.share)
        line = str(overall)
        names = {count.place for count in places}
        is_equal = len({(count.found, count.whole) for count in places}) == 1
        if is_equal and len(names) == 1:
            line = str(worst)
        elif is_equal and all(name.startswith("run ") for name in names):
            line = f"{worst}, in each of {len(names)} runs"
        if worst.share < overall.share:
            line += f"; least in {worst.place}, {worst.found:,} of {worst.whole:,}"
        if worst.lacking and worst.found < worst.whole:
            line += f"; not for {listed(worst.lacking)}"
        lines.append(line)
    return lines


def first(ids: Any) -> tuple[str, ...]:
    """The first few of the ids, each once."""
    return tuple(map(str, pd.unique(ids[:_HEAD])[:_EXAMPLES]))


def runs_seen(
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
    # Ids of the other side that no run ranks tell how it writes them.
    others = pd.Index(pd.unique(have[:_HEAD]))
    known = first(others[documents.get_indexer(others) < 0]) or first(others)
    counts = []
    for number, run in enumerate(runs):
        count = Seen(
            f"run {run}", "ranked documents", needed, int(found[number]), int(whole[number])
        )
        if count.found < count.whole:
            count = count._replace(lacking=first(lacking(number)), known=known)
        counts.append(count)
    return counts
