"""What an analysis of variance cannot say of orders that share utterances: randomisation tests, variance components.

The F tests of MD1 take the orders of a conversation for independent draws. They are not: two orders
share utterances, and most share pairs of neighbours. So each F stands beside a test that makes no
such assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers
from equipoise.measures.orders import score_matrix
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.structures import Orders
from equipoise.orders.variance import INTERACTION
from equipoise.statistics import resampled

_EQUAL = 1e-9  # statistics that differ by no more, relatively, are equal


def relabelled(
    structure: ClassStructure, orders: ArrayLike, draws: int, rng: np.random.Generator
) -> Orders:
    """Orders with their blocks, and the followers within each block, renamed at random, shaped (draws, orders, n).

    One renaming is drawn for all the orders of a draw. It maps the valid orders one to one onto
    themselves, and orders that shared neighbours share neighbours still.
    """
    stacked = np.asarray(orders, dtype=np.intp)
    place = np.argsort(stacked, axis=1)
    source = np.tile(
        np.arange(structure.size), (draws, 1)
    )  # by utterance: the one whose place it takes
    for group in structure.exchangeable:
        if len(group) > 1:
            source[:, group] = rng.permuted(np.tile(group, (draws, 1)), axis=1)
    takes = place[:, source].swapaxes(0, 1)
    within = np.where(structure.is_head, -1, takes)
    return np.lexsort((within, takes[..., structure.head]))


def _sums_of_squares(values: Floats) -> tuple[Floats, Floats]:
    """Of orders, and of the residual beside orders and systems, by draw; values shaped (draws, orders, systems)."""
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=2, keepdims=True)
    return (means**2).sum(axis=(1, 2)) * values.shape[2], ((centred - means) ** 2).sum(axis=(1, 2))


def order_randomisation(
    structures: Mapping[str, ClassStructure],
    orders: Mapping[str, Orders],
    every: Mapping[str, Floats],
    rng: np.random.Generator,
    *,
    draws: int = 999,
) -> tuple[float, float]:
    r"""F of permutation(topic) beside the interaction, and the share of random renamings whose F is as large.

    .. math:: F = \frac{SS_{\nu} / \sum_i (J_i - 1)}{SS_{\varepsilon} / \sum_i (J_i - 1) (K - 1)}

    Under the null hypothesis an order that suits one system says nothing of another: which
    utterances are neighbours matters to each system in its own way. So the utterances are renamed
    at random (`relabelled`), for each system and conversation apart. Each system keeps the way in
    which its scores depend on one another; what the systems share is lost.

    ``structures``, ``orders`` (shaped (orders, n)), ``every`` (shaped (valid orders, systems), by
    rank): by topic; the topics of ``every`` are taken.
    """
    systems = next(iter(every.values())).shape[1]
    shared, residual = np.zeros((2, draws + 1))
    freedom = 0
    for topic, values in every.items():
        structure, stacked = structures[topic], orders[topic]
        found = np.empty((draws + 1, len(stacked), systems))
        found[0] = values[structure.rank(stacked)]
        for system in range(systems):
            renamed = relabelled(structure, stacked, draws, rng)
            ranks = structure.rank(renamed.reshape(-1, structure.size)).astype(np.intp)
            found[1:, :, system] = values[ranks, system].reshape(draws, -1)
        for sums, part in zip((shared, residual), _sums_of_squares(found), strict=True):
            sums += part
        freedom += len(stacked) - 1
    statistic = shared / freedom / (residual / (freedom * (systems - 1)))
    as_large = int((statistic[1:] >= statistic[0] * (1 - _EQUAL)).sum())
    return float(statistic[0]), (as_large + 1) / (draws + 1)


def model_randomisation(
    means: pd.DataFrame, rng: np.random.Generator, *, draws: int = 9999
) -> tuple[float, float]:
    """F of model against topic x model, and the share of random exchanges of the systems whose F is as large.

    Under the null hypothesis it does not matter which system has which scores on a conversation. So
    the systems change places, for each conversation apart, with all of their orders.

    ``means``: columns run, topic, value, one row a system and conversation.
    """
    wide = means.pivot_table(index="topic", columns="run", values="value", sort=False).to_numpy(
        dtype=np.float64
    )
    topics = len(wide)
    centred = wide - wide.mean(axis=1, keepdims=True)
    exchanged = rng.permuted(np.tile(centred, (draws, 1, 1)), axis=2)
    among = topics * (np.concatenate([centred[None], exchanged]).mean(axis=1) ** 2).sum(axis=1)
    statistic = among / ((centred**2).sum() - among) * (topics - 1)
    as_large = int((statistic[1:] >= statistic[0] * (1 - _EQUAL)).sum())
    return float(statistic[0]), (as_large + 1) / (draws + 1)


def variance_components(table: pd.DataFrame, orders: int, systems: int) -> pd.DataFrame:
    r"""Components of the mixed model of MD1 with its interaction, systems fixed and everything else random.

    .. math::
        \sigma^2_\varepsilon = MS_{error}, \quad \sigma^2_\nu = \frac{MS_\nu - MS_{error}}{K}, \quad
        \sigma^2_{\tau\alpha} = \frac{MS_{\tau\alpha} - MS_{error}}{J}, \quad
        \sigma^2_\tau = \frac{MS_\tau - MS_\nu - MS_{\tau\alpha} + MS_{error}}{J K}

    With J orders of each conversation and K systems, all scored, these are the estimates of
    restricted maximum likelihood wherever none is negative; a negative one is given as 0.

    ``table``: of `anova` with the design MD1 and the interaction. Returns columns component,
    variance, share.
    """
    mean_square = table.set_index("source")["MS"]
    error, nested = mean_square["Error"], mean_square["permutation(topic)"]
    interaction, topic = mean_square[INTERACTION], mean_square["topic"]
    found = {
        "topic": (topic - nested - interaction + error) / (orders * systems),
        "permutation(topic)": (nested - error) / systems,
        INTERACTION: (interaction - error) / orders,
        "residual": error,
    }
    variance = pd.Series(found).clip(lower=0.0)
    return pd.DataFrame({"variance": variance, "share": variance / variance.sum()}).reset_index(
        names="component"
    )


def shared_by_systems(
    scores: pd.DataFrame, rng: np.random.Generator, *, resamples: int = 999
) -> tuple[float, float, float]:
    r"""How much of what an order does to a score it does to every system, with its interval over conversations.

    .. math:: \rho = \frac{\sigma^2_\nu}{\sigma^2_\nu + \sigma^2_\varepsilon}

    0 where no order suits all systems, 1 where every order does to all systems the same. Returns
    rho and the ends of its 95 % bootstrap interval, conversations drawn with replacement.
    """
    wide = score_matrix(scores)
    systems = wide.shape[1]
    parts: Sequence[Floats] = [
        part.to_numpy(dtype=np.float64)[None] for _, part in wide.groupby(level="topic")
    ]
    sums = np.array([[float(one[0]) for one in _sums_of_squares(part)] for part in parts])
    freedom = np.array([part.shape[1] - 1 for part in parts])

    def rho(places: Integers) -> float:
        (nested, error), orders = sums[places].sum(axis=0), freedom[places].sum()
        nested, error = nested / orders, error / orders / (systems - 1)
        return float((nested - error) / (nested + (systems - 1) * error))

    return resampled(rho, len(parts), rng, resamples=resamples)
