"""What the measures of bias share: padded lists and their cut-offs, targets, and the attention of ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.declare import checked, measure
from equipoise.options import Attention, Base, Decay

declared = partial(measure, family="Ranked lists: bias in their terms")


@checked
def attention_weights(
    ranks: int, attention: Attention = "log", *, base: Base = 2.0, persistence: Decay = 0.9
) -> Floats:
    r"""Weight of each rank: the attention it gets (thesis Eqs. 4.2, 4.4 and 4.8).

    .. math:: v_r = 1 / \log_b(r + 1) \quad\text{or}\quad v_r = \gamma^{r-1} \quad\text{or}\quad v_r = 1

    The paper weighs by the logarithm and leaves its base open; the others are common choices of AWRF.

    Examples
    --------
    >>> attention_weights(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    """
    if attention == "log":
        return np.log(base) / np.log(np.arange(2, ranks + 2))
    return persistence ** np.arange(ranks, dtype=np.float64) if attention == "geometric" else np.ones(ranks)


def wanted_shares(target: ArrayLike | None, groups: int) -> Floats:
    """The target as a distribution over so many groups; equal shares where there is none."""
    wanted = np.full(groups, 1 / groups) if target is None else np.asarray(target, dtype=np.float64)
    if wanted.shape != (groups,):
        raise ValueError(f"the target is shaped {wanted.shape}, wanted one share for each of {groups} groups")
    if (wanted < 0).any() or not np.isclose(wanted.sum(), 1):
        raise ValueError(f"the target is no distribution: {wanted.tolist()} sums to {wanted.sum():g}")
    return wanted


def reached(
    values: ArrayLike, cutoffs: ArrayLike, present: ArrayLike | None, axis: int = -1
) -> tuple[NDArray[Any], Integers, Booleans]:
    """The values of the ranks that a cut-off can reach, the cut-offs, and which of those ranks hold a document.

    ``axis``: that of the ranks, the last one or the one before it.
    """
    at, whole = np.asarray(cutoffs, dtype=np.int64), np.asarray(values)
    if at.size == 0:
        raise ValueError("no cut-offs are given")
    shape, reach = whole.shape[: whole.ndim + axis + 1], slice(int(at.max()))
    held = np.broadcast_to(np.True_, shape) if present is None else np.asarray(present, dtype=np.bool_)
    if held.shape != shape:
        raise ValueError(f"present is shaped {held.shape}, wanted one value for each rank, {shape}")
    return whole[..., reach] if axis == -1 else whole[..., reach, :], at, held[..., reach]


def sums_at(per_rank: Floats, cutoffs: Integers, axis: int = -1) -> Floats:
    """Sum over the ranks up to each cut-off; ranks beyond the end of the list add nothing."""
    total = np.cumsum(np.insert(per_rank, 0, 0.0, axis=axis), axis=axis)
    return np.take(total, np.minimum(cutoffs, per_rank.shape[axis]), axis=axis)


def ratio(part: ArrayLike, whole: ArrayLike, otherwise: float) -> Floats:
    """Divide, with a value for any division by zero."""
    over, under = np.broadcast_arrays(np.asarray(part, dtype=np.float64), whole)
    return np.divide(over, under, out=np.full(over.shape, otherwise), where=under != 0)
