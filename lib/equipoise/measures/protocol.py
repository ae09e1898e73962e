r"""Outcomes of conversations held by the two-round protocol.

Each system turn is useful (``o``), not useful (``x``), or was never held because the first turn
ended the conversation (``-``).

References
----------
gfrc, section 5, Figures 2 to 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, ratio
from equipoise.declare import measure


@measure(
    "Useful turns and recovery",
    family="Protocol and order of conversations",
    range="0 to 1",
    ideal="1",
    direction="higher is better",
    sources=("gfrc",),
)
def shares(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats, Floats]:
    r"""Useful turns, their average, and recovery.

    .. math::
        useful_t = \frac{|\{i : o_{it}\}|}{n}, \quad
        average = \frac{useful_1 + useful_2}{2}, \quad
        recovery = \frac{|\{i : \neg o_{i1} \wedge o_{i2}\}|}{|\{i : \neg o_{i1}\}|}

    - :math:`i, n`: a topic, and the number of topics
    - :math:`t`: round, 1 or 2
    - :math:`o_{it}`: whether the answer to topic i in round t was useful
    - :math:`useful_t`: share of the topics with a useful answer in round t
    - :math:`average, recovery`: the mean of the two, and the share of failed first answers that
      the second mends

    Parameters
    ----------
    first, second : array_like of bool, shaped (..., topics)
        Whether system turn 1 and 2 of each topic was useful; a turn that was never held was not.

    Returns
    -------
    useful : ndarray, shaped (..., 2)
        Share of the topics, per turn.
    average : ndarray, shaped (...)
        Mean of both.
    recovery : ndarray, shaped (...)
        Share of the topics with a useless first turn whose second was useful; NaN where there is no
        such topic.

    Raises
    ------
    ValueError
        If the shapes differ, or there is no topic.

    Notes
    -----
    gfrc, section 5 (%useful, ave%useful and %recovery, there in percent).

    Examples
    --------
    >>> shares([True, False, False], [True, True, False])
    (array([0.33333333, 0.66666667]), np.float64(0.5), array(0.5))
    """
    useful_1, useful_2 = np.asarray(first, dtype=np.bool_), np.asarray(second, dtype=np.bool_)
    if useful_1.shape != useful_2.shape or useful_1.ndim == 0 or useful_1.shape[-1] == 0:
        raise ValueError(
            "both turns need the same topics, at least one:"
            f" shapes {useful_1.shape} and {useful_2.shape}"
        )
    useful = np.stack([useful_1.mean(axis=-1), useful_2.mean(axis=-1)], axis=-1)
    n_failed = (~useful_1).sum(axis=-1)
    n_recovered = (~useful_1 & useful_2).sum(axis=-1)
    return useful, useful.mean(axis=-1), ratio(n_recovered, n_failed, np.nan)
