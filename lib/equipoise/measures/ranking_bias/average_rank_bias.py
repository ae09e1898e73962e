"""Average rank bias (ARB): how far a ranked list leans from one group towards another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats
from equipoise.measures.ranking_bias.lists import declared, ratio, reached, sums_at
from equipoise.options import Against, Cutoffs, Magnitude, Towards, Undefined

_MAGNITUDES: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {"log": np.log1p, "count": np.asarray, "boolean": lambda counts: (counts > 0).astype(np.float64)}
)


@declared("ARB", range="no bounds", ideal="0", direction="neither", sources=("rekabsaz2020",))
def arb(
    magnitudes: ArrayLike,
    cutoffs: Cutoffs,
    *,
    towards: Towards = 1,
    against: Against = 0,
    magnitude: Magnitude = "log",
    present: ArrayLike | None = None,
    undefined: Undefined = np.nan,
) -> Floats:
    r"""Average rank bias: how far the list leans from one group towards another. Zero is unbiased.

    .. math:: RaB_x(q) = \frac1x \sum_{i=1}^{x} \left(m^{G}(d_i) - m^{H}(d_i)\right), \quad
        ARB_k(q) = \frac1k \sum_{x=1}^{k} RaB_x(q)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document. The public program subtracts female from male: with
        the groups in order of their names (f, m) that is the default.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; they are the first ones. All where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Signed and without bound, in the unit of the magnitude; undefined for an empty list. A list shorter than k is
        averaged over its own ranks, as in the public program.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Rekabsaz and Schedl (2020); thesis section 4.2 names it among the existing measures.

    Examples
    --------
    >>> arb([[0, 1], [1, 0]], [1, 2], magnitude="count")
    array([1. , 0.5])
    """
    counts, at, held = reached(np.asarray(magnitudes, dtype=np.float64), cutoffs, present, axis=-2)
    size = _MAGNITUDES[magnitude]
    lean = np.where(held, size(counts[..., towards]) - size(counts[..., against]), 0.0)
    running = np.where(held, np.cumsum(lean, axis=-1) / np.arange(1, lean.shape[-1] + 1), 0.0)
    return ratio(sums_at(running, at), sums_at(held.astype(np.float64), at), undefined)
