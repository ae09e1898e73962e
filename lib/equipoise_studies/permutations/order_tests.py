"""What an analysis of variance cannot say of orders: randomisation tests, variance components.

The F tests of MD1 take the orders of a conversation for independent draws. They are not: two orders
share utterances, and most share pairs of neighbours. So each F stands beside a test that makes no
such assumption.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers
from equipoise.measures.orders import score_matrix
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.structures import Orders
from equipoise.orders.variance import INTERACTION
from equipoise.statistics import resampled

_ROUNDING = 1e-9  # statistics that differ by no more, relatively, are equal


def relabelled(
    structure: ClassStructure, orders: ArrayLike, draws: int, rng: np.random.Generator
) -> Orders:
    """Orders with their blocks, and the followers in each block, renamed: (draws, orders, n).

    One renaming is drawn for all the orders of a draw. It maps the valid orders one to one onto
    themselves, and orders that shared neighbours share neighbours still.
    """
    stacked = np.asarray(orders, dtype=np.intp)
    position = np.argsort(stacked, axis=1)
    # by draw and utterance the one whose positions it takes
    source = np.tile(np.arange(structure.size), (draws, 1))
    for group in structure.exchangeable:
        if len(group) > 1:
            source[:, group] = rng.permuted(np.tile(group, (draws, 1)), axis=1)
    new_position = position[:, source].swapaxes(0, 1)
    within_block = np.where(structure.is_head, -1, new_position)
    return np.lexsort((within_block, new_position[..., structure.head]))


def _sums_of_squares(values: Floats) -> tuple[Floats, Floats]:
    """Of orders, and of the residual beside orders and systems, by draw.

    ``values``: shaped (draws, orders, systems).
    """
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=2, keepdims=True)
    of_orders = (means**2).sum(axis=(1, 2)) * values.shape[2]
    of_residual = ((centred - means) ** 2).sum(axis=(1, 2))
    return of_orders, of_residual


def _share_as_large(statistic: Floats) -> float:
    """P of a randomisation test: the observed statistic comes first, and counts as a draw."""
    observed, drawn = statistic[0], statistic[1:]
    as_large = (drawn >= observed * (1 - _ROUNDING)).sum()
    return float((as_large + 1) / len(statistic))


def order_randomisation(
    structures: Mapping[str, ClassStructure],
    orders: Mapping[str, Orders],
    scores_by_topic: Mapping[str, Floats],
    rng: np.random.Generator,
    *,
    draws: int = 999,
) -> tuple[float, float]:
    r"""F of permutation(topic) beside the interaction, and its p by random renamings.

    .. math:: F = \frac{SS_{\nu} / \sum_i (J_i - 1)}{SS_{\varepsilon} / \sum_i (J_i - 1) (K - 1)}

    Under the null hypothesis an order that suits one system says nothing of another: which
    utterances are neighbours matters to each system in its own way. So the utterances are renamed
    at random (`relabelled`), for each system and conversation apart. Each system keeps the way in
    which its scores depend on one another; what the systems share is lost.

    ``structures``, ``orders`` (shaped (orders, n)), ``scores_by_topic`` (shaped (valid orders,
    systems), by rank): by topic; the topics of ``scores_by_topic`` are taken.
    """
    systems = next(iter(scores_by_topic.values())).shape[1]
    of_orders = np.zeros(draws + 1)
    of_residual = np.zeros(draws + 1)
    freedom = 0
    for topic, values in scores_by_topic.items():
        structure, sampled = structures[topic], orders[topic]
        scores = np.empty((draws + 1, len(sampled), systems))
        scores[0] = values[structure.rank(sampled)]
        for system in range(systems):
            renamed = relabelled(structure, sampled, draws, rng)
            numbers = structure.rank(renamed.reshape(-1, structure.size)).astype(np.intp)
            scores[1:, :, system] = values[numbers, system].reshape(draws, -1)
        orders_of_topic, residual_of_topic = _sums_of_squares(scores)
        of_orders += orders_of_topic
        of_residual += residual_of_topic
        freedom += len(sampled) - 1
    statistic = of_orders / freedom / (of_residual / (freedom * (systems - 1)))
    return float(statistic[0]), _share_as_large(statistic)


def with_systems_exchanged(values: Floats, rng: np.random.Generator, *, draws: int) -> Floats:
    """Scores shaped (conversations, systems), the systems of each conversation in random places.

    Returns them shaped (draws, conversations, systems).
    """
    return rng.permuted(np.tile(values, (draws, 1, 1)), axis=2)


def exchange_ratios(values: Floats, rng: np.random.Generator, *, draws: int) -> Floats:
    """F of model against topic x model as it is, and then with the systems exchanged at random.

    ``values``: shaped (conversations, systems). Returns draws + 1 numbers.
    """
    topics = len(values)
    centred = values - values.mean(axis=1, keepdims=True)
    exchanged = with_systems_exchanged(centred, rng, draws=draws)
    observed_and_drawn = np.concatenate([centred[np.newaxis], exchanged])
    of_model = topics * (observed_and_drawn.mean(axis=1) ** 2).sum(axis=1)
    of_interaction = (centred**2).sum() - of_model
    ratios: Floats = of_model / of_interaction * (topics - 1)
    return ratios


def model_randomisation(
    means: pd.DataFrame, rng: np.random.Generator, *, draws: int = 9999
) -> tuple[float, float]:
    """F of model against topic x model, and its p by random exchanges of the systems.

    Under the null hypothesis it does not matter which system has which scores on a conversation. So
    the systems change places, for each conversation apart, with all of their orders.

    ``means``: columns run, topic, value, one row a system and conversation.
    """
    wide = means.pivot_table(index="topic", columns="run", values="value", sort=False)
    ratios = exchange_ratios(wide.to_numpy(dtype=np.float64), rng, draws=draws)
    return float(ratios[0]), _share_as_large(ratios)


def variance_components(table: pd.DataFrame, orders: int, systems: int) -> pd.DataFrame:
    r"""Components of MD1 with its interaction, systems fixed and everything else random.

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
    error = mean_square["Error"]
    nested = mean_square["permutation(topic)"]
    interaction = mean_square[INTERACTION]
    topic = mean_square["topic"]
    estimates = {
        "topic": (topic - nested - interaction + error) / (orders * systems),
        "permutation(topic)": (nested - error) / systems,
        INTERACTION: (interaction - error) / orders,
        "residual": error,
    }
    variance = pd.Series(estimates).clip(lower=0.0)
    components = pd.DataFrame({"variance": variance, "share": variance / variance.sum()})
    return components.reset_index(names="component")


def shared_by_systems(
    scores: pd.DataFrame, rng: np.random.Generator, *, resamples: int = 999
) -> tuple[float, float, float]:
    r"""How much of what an order does to a score it does to every system, with its interval.

    .. math:: \rho = \frac{\sigma^2_\nu}{\sigma^2_\nu + \sigma^2_\varepsilon}

    0 where no order suits all systems, 1 where every order does to all systems the same. Returns
    rho and the ends of its 95 % bootstrap interval, conversations drawn with replacement.
    """
    wide = score_matrix(scores)
    systems = wide.shape[1]
    sums = []
    freedom = []
    for _, part in wide.groupby(level="topic"):
        of_orders, of_residual = _sums_of_squares(part.to_numpy(dtype=np.float64)[None])
        sums.append([of_orders[0], of_residual[0]])
        freedom.append(len(part) - 1)
    sums_of_topic, freedom_of_topic = np.array(sums), np.array(freedom)

    def rho(places: Integers) -> float:
        of_orders, of_residual = sums_of_topic[places].sum(axis=0)
        orders = freedom_of_topic[places].sum()
        nested = of_orders / orders
        error = of_residual / orders / (systems - 1)
        return float((nested - error) / (nested + (systems - 1) * error))

    return resampled(rho, len(sums), rng, resamples=resamples)
