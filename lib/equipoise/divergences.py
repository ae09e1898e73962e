"""Divergences between an achieved and a target distribution over groups.

Every function takes two arrays shaped ``(..., groups)``, which broadcast against each other, and
returns the divergence shaped ``(...)``: 0 where the distributions agree, at most 1.
`distribution_similarity` is one minus the divergence, the DistrSim of the GFR framework.

Jensen-Shannon divergence (JSD) and normalised variational distance (NVD) look at each group alone:
they are for nominal groups. Normalised match distance (NMD) and root normalised order-aware
divergence (RNOD) know that a neighbouring group is nearer than a distant one: they are for ordinal
groups, given in their order.

The inputs are taken to be distributions (non-negative, summing to one along the last axis):
`equipoise.nuggets` checks that once, where the data come in.

References
----------
Sakai, T. (2021): Evaluating Evaluation Measures for Ordinal Classification and Ordinal
Quantification. Proceedings of ACL-IJCNLP 2021, pp. 2759-2769, doi:10.18653/v1/2021.acl-long.214.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats
from equipoise.declared import measure

_FAMILY = "Divergences between distributions over groups"
_declared: dict[str, Divergence] = {}

Formula = Callable[[ArrayLike, ArrayLike], Floats]
"""Of achieved and target, shaped (..., groups), to the divergence, shaped (...)."""


@dataclass(frozen=True)
class Divergence:
    """A divergence by name.

    ``function``: Takes achieved and target, shaped (..., groups), and returns the divergence shaped
    (...). ``ordinal``: True where the order of the groups matters.
    """

    function: Formula
    ordinal: bool


DIVERGENCES: Mapping[str, Divergence] = MappingProxyType(_declared)
"""Every divergence by its lower-case name, with the kind of groups it is for."""


def divergence(
    name: str,
    *,
    groups: Literal["nominal", "ordinal"],
    range: str = "0 to 1",  # noqa: A002 - the field's word
    sources: tuple[str, ...] = ("sakai2021",),
) -> Callable[[Formula], Formula]:
    """Declare a divergence: a measure of the catalogue, and a word that options and commands take.

    ``groups`` is the kind of groups; divergences for ordinal groups depend on their order.
    """
    declaration = measure(
        name,
        family=_FAMILY,
        range=range,
        ideal="0",
        direction="lower is better",
        sources=sources,
    )

    def declare(
        function: Formula,
    ) -> Formula:
        declared = declaration(function)
        _declared[name.lower()] = Divergence(declared, ordinal=groups == "ordinal")
        return declared

    return declare


# --- arithmetic that they share -------------------------------------------------------------------


def _pair(achieved: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats]:
    p, q = np.asarray(achieved, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if p.ndim == 0 or q.ndim == 0 or p.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"distributions over different numbers of groups: shapes {p.shape} and {q.shape}"
        )
    if p.shape[-1] < 2:
        raise ValueError(f"a divergence needs at least two groups, found {p.shape[-1]}")
    return p, q


def _bounded(divergence: Floats) -> Floats:
    """Keep rounding errors within the bounds that each divergence has by definition."""
    bounded: Floats = np.clip(divergence, 0.0, 1.0)
    return bounded


def _relative_entropy(p: Floats, middle: Floats) -> Floats:
    """Sum of p log(p / middle) over the groups, to which zeros contribute zero."""
    terms = p / middle
    terms[terms == 0] = 1.0
    np.log(terms, out=terms)
    terms *= p
    total: Floats = terms.sum(axis=-1)
    return total


# --- the divergences ------------------------------------------------------------------------------


@divergence("JSD", groups="nominal", range="0 to 1 (bits)")
def jsd(achieved: ArrayLike, target: ArrayLike) -> Floats:
    r"""Jensen-Shannon divergence with logarithms to base 2, for nominal groups.

    .. math:: JSD(p, q) = \tfrac12 KL(p \| m) + \tfrac12 KL(q \| m), \quad m = (p + q) / 2

    - :math:`p, q`: the achieved distribution over the groups, and the target
    - :math:`m`: the distribution half-way between them
    - :math:`KL`: the Kullback-Leibler divergence, with logarithms to base 2

    Parameters
    ----------
    achieved, target : array_like, shaped (..., groups)
        Distributions; they broadcast. Groups of probability zero contribute zero.

    Returns
    -------
    ndarray, shaped (...)
        In bits, between 0 (equal) and 1 (disjoint).

    Raises
    ------
    ValueError
        If the numbers of groups differ, or there are fewer than two.

    Notes
    -----
    Sakai (2021); the divergence for nominal attribute sets in gfrc and gfrc2.

    Examples
    --------
    >>> jsd([1, 0, 0], [1 / 3, 1 / 3, 1 / 3]).round(6)
    np.float64(0.459148)
    >>> jsd([[1, 0], [0.5, 0.5]], [0.5, 0.5]).round(4)
    array([0.3113, 0.    ])
    """
    p, q = _pair(achieved, target)
    middle = np.atleast_1d((p + q) / 2)
    middle[middle == 0] = 1.0  # both are zero there
    return _bounded((_relative_entropy(p, middle) + _relative_entropy(q, middle)) / (2 * np.log(2)))


@divergence("NVD", groups="nominal")
def nvd(achieved: ArrayLike, target: ArrayLike) -> Floats:
    r"""Normalised variational distance: half the L1 distance, for nominal groups.

    .. math:: NVD(p, q) = \tfrac12 \sum_i |p_i - q_i|

    - :math:`p_i, q_i`: achieved and target share of group i

    Parameters
    ----------
    achieved, target : array_like, shaped (..., groups)
        Distributions; they broadcast.

    Returns
    -------
    ndarray, shaped (...)
        Between 0 (equal) and 1 (disjoint), without unit.

    Raises
    ------
    ValueError
        If the numbers of groups differ, or there are fewer than two.

    Notes
    -----
    Sakai (2021).

    Examples
    --------
    >>> nvd([1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25])
    np.float64(0.75)
    """
    p, q = _pair(achieved, target)
    return _bounded(np.abs(p - q).sum(axis=-1) / 2)


@divergence("NMD", groups="ordinal")
def nmd(achieved: ArrayLike, target: ArrayLike) -> Floats:
    r"""Normalised match distance (earth mover's distance along the groups), for ordinal groups.

    .. math:: NMD(p, q) = \frac{1}{n - 1} \sum_{i=1}^{n} \Bigl| \sum_{j \le i} p_j - \sum_{j \le i}
    q_j \Bigr|

    - :math:`p_j, q_j`: achieved and target share of group j
    - :math:`i, j`: groups, in their order
    - :math:`n`: number of groups
    - :math:`p, q`: the achieved distribution over the groups, and the target

    Parameters
    ----------
    achieved, target : array_like, shaped (..., groups)
        Distributions over n groups in their order; they broadcast.

    Returns
    -------
    ndarray, shaped (...)
        Between 0 (equal) and 1 (all mass at opposite ends), without unit.

    Raises
    ------
    ValueError
        If the numbers of groups differ, or there are fewer than two.

    Notes
    -----
    Sakai (2021); an alternative to RNOD for ordinal attribute sets in gfrc and gfrc2.

    Examples
    --------
    >>> nmd([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    np.float64(0.5)
    """
    p, q = _pair(achieved, target)
    apart = np.abs(np.cumsum(p - q, axis=-1))[..., :-1]  # the last step is 1 - 1 = 0
    return _bounded(apart.sum(axis=-1) / apart.shape[-1])


@divergence("RNOD", groups="ordinal")
def rnod(achieved: ArrayLike, target: ArrayLike) -> Floats:
    r"""Root normalised order-aware divergence, for ordinal groups.

    .. math::
        DW_i = \sum_j |i - j| (p_j - q_j)^2, \quad
        OD = \frac{1}{|\{i : q_i > 0\}|} \sum_{i : q_i > 0} DW_i, \quad
        RNOD = \sqrt{OD / (n - 1)}

    - :math:`p_j, q_j`: achieved and target share of group j
    - :math:`i, j`: groups, in their order
    - :math:`DW_i`: the squared differences, each times its distance from group i
    - :math:`OD`: their mean over the groups with a target above 0
    - :math:`n`: number of groups

    It is not symmetric: only groups that the target wants are visited.

    Parameters
    ----------
    achieved, target : array_like, shaped (..., groups)
        Distributions over n groups in their order; they broadcast.

    Returns
    -------
    ndarray, shaped (...)
        Between 0 (equal) and 1, without unit.

    Raises
    ------
    ValueError
        If the numbers of groups differ, or there are fewer than two.

    Notes
    -----
    Sakai (2021); the divergence for ordinal attribute sets in gfrc and gfrc2.

    Examples
    --------
    >>> rnod([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25]).round(6)
    np.float64(0.595119)
    """
    p, q = _pair(achieved, target)
    groups = p.shape[-1]
    wanted = (q > 0).astype(np.float64)
    steps = np.abs(np.subtract.outer(np.arange(groups), np.arange(groups))).astype(np.float64)
    # The two sums of OD are swapped: each squared difference is weighted by its mean distance to
    # the groups with a positive target.
    reach = wanted @ steps / wanted.sum(axis=-1, keepdims=True)
    return _bounded(np.sqrt(np.einsum("...g,...g->...", (p - q) ** 2, reach) / (groups - 1)))


@measure(
    "DistrSim",
    family=_FAMILY,
    range="0 to 1",
    ideal="1",
    direction="higher is better",
    sources=("gfrc", "gfrc2"),
    formula=r"DistrSim(D \| D_*) = 1 - divergence(D, D_*)",
)
def distribution_similarity(achieved: ArrayLike, target: ArrayLike, divergence: str) -> Floats:
    """DistrSim: one minus the named divergence.

    - :math:`D`: the achieved distribution over the groups, the mean membership of what was met
    - :math:`D_*`: the target distribution
    - :math:`divergence`: JSD or NVD for groups without order, NMD or RNOD for ordered ones

    Parameters
    ----------
    achieved, target : array_like, shaped (..., groups)
        Distributions; they broadcast.
    divergence : str
        A name in `DIVERGENCES`.

    Returns
    -------
    ndarray, shaped (...)
        Between 0 and 1 (equal distributions).

    Raises
    ------
    ValueError
        If the divergence has no such name, or the numbers of groups differ.

    Notes
    -----
    gfrc section 3.1, gfrc2 Eq. 17.

    Examples
    --------
    >>> distribution_similarity([0, 0, 0, 1], [0.25] * 4, "rnod").round(6)
    np.float64(0.404881)
    """
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"unknown divergence {divergence!r}, must be one of {', '.join(DIVERGENCES)}"
        )
    return 1.0 - DIVERGENCES[divergence].function(achieved, target)
