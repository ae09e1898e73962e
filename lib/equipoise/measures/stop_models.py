r"""Where users leave a conversation, and the utility of what they have read: open in GFRC2.

A stopping model takes the `Places` of many conversations at once and returns the share of the users
that leaves at each; the shares of a conversation sum to 1 at most, and the rest leaves without any
relevant nugget. With :math:`wc_k` the last word of relevant nugget k, L the patience, T the number
of turns, :math:`t_k` the turn and :math:`g_k` the gain:

.. math::
    p_k &= 1 / L & \text{words: the paper's} \\
    p_k &= (\min(wc_{k+1}, L + 1) - wc_k) / L & \text{anywhere} \\
    p_k &= 1 / n & \text{nuggets} \\
    p_k &= g_k \prod_{j < k} (1 - g_j) & \text{gain: as ERR} \\
    p_k &= (1 - 1 / L)^{wc_k - 1} / L & \text{geometric} \\
    p_k &= (t_{k+1} - t_k) / T & \text{turns}

Each is 0 for nuggets that end beyond L, which nobody reads; but in ``geometric`` L is the mean of
what users read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Floats, cumulative_sums, ratio, starts
from equipoise.measures.gfrc import gain_values
from equipoise.nuggets import NuggetTable
from equipoise.options import StopModel, Utility


@dataclass(frozen=True)
class Places:
    """The relevant nuggets of conversations, where users may leave: rows of a nugget table.

    ``patience`` is L, ``gains`` is as in `gain_values`.
    """

    nuggets: NuggetTable
    rows: NDArray[np.intp]
    patience: float
    gains: Mapping[int, float]

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Place of the first nugget of each conversation that has any."""
        return starts(self.nuggets.conversation[self.rows])

    @property
    def end(self) -> Floats:
        """Position of the last word of each nugget, shaped (places,)."""
        return self.nuggets.end[self.rows].astype(np.float64)

    @property
    def read(self) -> NDArray[np.bool_]:
        """Which nuggets end within the patience, shaped (places,)."""
        return self.nuggets.end[self.rows] <= self.patience

    @property
    def gain(self) -> Floats:
        """Gain of each nugget, shaped (places,)."""
        return gain_values(self.nuggets.level[self.rows], self.gains)

    def repeated(self, values: NDArray[Any]) -> NDArray[Any]:
        """The value of its conversation for each place; ``values`` in the order of ``first``."""
        return np.repeat(values, np.diff(self.first, append=len(self.rows)))

    def to_next(self, values: Floats, end_value: Floats | float) -> Floats:
        """From the value of each place to that of the next in it, or ``end_value``."""
        following = np.roll(values, -1)
        last_places = np.append(self.first, len(values))[1:] - 1
        following[last_places] = np.broadcast_to(end_value, values.shape)[last_places]
        return following - values


Model = Callable[[Places], Floats]
"""From the places of many conversations to a number for each: a stopping model, or a utility."""


def _by_gain(places: Places) -> Floats:
    leave = np.where(places.read, places.gain, 0.0)
    # The product of those who stay is a sum of logarithms.
    with np.errstate(divide="ignore"):
        stay = np.exp(cumulative_sums(np.log1p(-leave), places.first))
    arrive = np.append(1.0, stay[:-1])[: len(stay)]
    arrive[places.first] = 1.0
    return leave * arrive


def _by_turn(places: Places) -> Floats:
    conversations = places.nuggets.conversation[places.rows[places.first]]
    n_turns = places.repeated(places.nuggets.turns_held[conversations])
    # A nugget beyond the patience counts as after the last turn: nobody leaves there.
    turn = np.where(places.read, places.nuggets.turn[places.rows], n_turns + 1)
    return places.to_next(turn.astype(np.float64), n_turns + 1.0) / n_turns


def _by_nugget(places: Places) -> Floats:
    read = places.read.astype(np.float64)
    if not len(read):
        return read
    n_read = places.repeated(np.add.reduceat(read, places.first))
    return ratio(read, n_read, 0.0)


def _anywhere(places: Places) -> Floats:
    last = places.patience + 1
    return places.to_next(np.minimum(places.end, last), last) / places.patience


def _geometric(places: Places) -> Floats:
    stay = 1 - 1 / places.patience
    return np.power(stay, places.end - 1) / places.patience


STOP_MODELS: dict[StopModel, Model] = {
    "words": lambda places: np.where(places.read, 1 / places.patience, 0.0),
    "anywhere": _anywhere,
    "nuggets": _by_nugget,
    "gain": _by_gain,
    "geometric": _geometric,
    "turns": _by_turn,
}
"""Stopping models by name."""

UTILITIES: dict[Utility, Model] = {
    "gains": lambda places: cumulative_sums(places.gain, places.first) / places.patience,
    "words": lambda places: 1 / places.end,
}
"""Utilities by name, in addition to GNP: gains so far over L, and one over the words read."""
