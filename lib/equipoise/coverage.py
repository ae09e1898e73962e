"""Count the items that a measure could use; report them, or raise an error if there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from equipoise.arrays import Integers
from equipoise.errors import InputError, Problem, listed

_EXAMPLES = 3  # ids that a message shows
_HEAD = 1000  # ids that are looked through for them


class Seen(NamedTuple):
    """Count the items that have what a measure needs.

    ``Seen("run a", "ranked documents", "a judgement", 3, 4)`` is an example. ``lacking``: first ids
    of items without it. ``known``: first ids of the other file that are the id of no item.
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
        """Return the share of items, or 1 without items."""
        return self.found / self.whole if self.whole else 1.0

    def __str__(self) -> str:
        return (
            f"{self.found:,} of {self.whole:,} {self.items} have {self.needed} ({self.share:.0%})"
        )


def judge(seen: Iterable[Seen]) -> list[Seen]:
    """Return the counts, or raise `InputError` where nothing was seen of something."""
    counts = list(seen)
    blind = [count for count in counts if count.whole and not count.found]
    if blind:
        raise InputError(map(_nothing_seen, blind))
    return counts


def _nothing_seen(count: Seen) -> Problem:
    """Return the error for items that all have nothing: most often the ids of two files differ."""
    found = "none"
    if count.lacking:
        found += f" for {listed(count.lacking)}"
    if count.known:
        found += f"; other ids have one, such as {listed(count.known)}"
    wanted = f"at least one of {count.whole:,} {count.items} must have {count.needed}"
    return Problem(count.place, None, None, found, wanted)


def summaries(seen: Iterable[Seen]) -> list[str]:
    """Return one line per need, over all places, with the place that has the lowest share."""
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
            line += f"; missing for {listed(worst.lacking)}"
        lines.append(line)
    return lines


def first(ids: Any) -> tuple[str, ...]:
    """Return the first few different ids."""
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
    """Count for each run the ranked documents that have what is needed.

    ``found`` and ``whole`` (shaped (runs,)) are counts. ``lacking`` returns the ids without it by
    the number of the run. ``have`` are ids of the other file, and ``documents`` all different
    ranked ids.
    """
    # Ids of the other file that no run ranks show how the file writes ids.
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
