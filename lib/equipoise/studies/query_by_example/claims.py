"""Findings of thesis chapter 2 as claims: whether each holds in the tables computed here, and the numbers behind it.

A table is what `lettered` returns; means are MAP over all queries, and one row beats another where the difference is
significant. ``fusions`` maps what BM25 and a contextualised ranker together are called to the ranker's column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from equipoise.studies.query_by_example.letters import BETTER_THAN
from equipoise.studies.query_by_example.systems import SYSTEMS
from equipoise.studies.query_by_example.tables import BM25_RUN

Claim = tuple[bool, str]
_BM25 = SYSTEMS[BM25_RUN]


def _means(table: pd.DataFrame) -> pd.Series:
    return table.set_index("run")["all MAP"]


def _beats(table: pd.DataFrame, run: str, other: str) -> bool:
    rows = table.set_index("run")
    return rows.loc[other, "row"] in rows.loc[run, f"all MAP {BETTER_THAN}"]


def _told(means: pd.Series, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {means[name]:.4f}" for name in names)


def bm25_is_not_beaten(table: pd.DataFrame) -> Claim:
    """No TILDE or TILDEv2 beats BM25."""
    rankers = [name for name in table["run"] if name.startswith("TILDE")]
    shown = [name for name in table["run"] if name == _BM25 or name in rankers]
    return not any(_beats(table, name, _BM25) for name in rankers), _told(_means(table), shown)


def scientific_encoder_is_better(table: pd.DataFrame) -> Claim:
    """Over MiniLM, TILDE and TILDEv2 have the higher mean than over SPLADE-tiny."""
    means = _means(table)
    names = [SYSTEMS[name] for name in ("tilde_tiny", "tilde_minilm", "tildev2_tiny", "tildev2_minilm")]
    general, scientific = means[names[::2]].to_numpy(), means[names[1::2]].to_numpy()
    return bool((scientific > general).all()), _told(means, names)


def expansion_does_not_lead(table: pd.DataFrame) -> Claim:
    """No TILDEv2 over expanded documents has a mean above BM25's."""
    means = _means(table)
    plain, *longer = (SYSTEMS[name] for name in ("tildev2_tiny", "tildev2_tiny_m200", "tildev2_tiny_m300"))
    return max(means[longer]) <= means[_BM25], _told(means, [plain, *longer, _BM25])


def cross_encoder_is_best(table: pd.DataFrame) -> Claim:
    """The cross-encoder has the highest mean."""
    means, cross = _means(table), SYSTEMS["cross_tiny"]
    best = means.drop(cross).idxmax()
    return means.idxmax() == cross, f"{cross} {means[cross]:.4f}, best of the others {best} {means[best]:.4f}"


def stems_are_not_better(table: pd.DataFrame) -> Claim:
    """BM25 over stems beats BM25 over neither of the word pieces."""
    pieces = [SYSTEMS["bm25_bert"], SYSTEMS["bm25_domain"]]
    return not any(_beats(table, _BM25, name) for name in pieces), _told(_means(table), [_BM25, *pieces])


def bm25_is_above_the_language_model(table: pd.DataFrame) -> Claim:
    """The lowest mean of BM25 lies above the highest of the language model."""
    means = _means(table)
    worst, best = (means[means.index.str.startswith(name)] for name in ("BM25", "LM"))
    return min(worst) > max(best), f"worst BM25 {min(worst):.4f}, best language model {max(best):.4f}"


def together_is_better(table: pd.DataFrame, fusions: Mapping[str, str]) -> Claim:
    """Each fusion has a higher mean than both of its parts."""
    means = _means(table)
    ahead = [means[label] > max(means[_BM25], means[SYSTEMS[run]]) for label, run in fusions.items()]
    return all(ahead), _told(means, means.index)


def gain_is_significant(table: pd.DataFrame, fusions: Mapping[str, str]) -> Claim:
    """Each fusion beats both of its parts."""
    beaten = table.set_index("run")[f"all MAP {BETTER_THAN}"]
    sure = [_beats(table, label, part) for label, run in fusions.items() for part in (_BM25, SYSTEMS[run])]
    return all(sure), "; ".join(f"{label} beats {', '.join(beaten[label]) or 'none'}" for label in fusions)


def oracle_gains_more(table: pd.DataFrame, fusions: Mapping[str, str]) -> Claim:
    """The oracle gains more over one tuned weight than that weight gains over the better part."""
    means = _means(table)
    gains = {
        label: (means[f"{label}, oracle"] - means[label], means[label] - max(means[_BM25], means[SYSTEMS[run]]))
        for label, run in fusions.items()
    }
    told = "; ".join(f"{label}: {oracle:+.4f} MAP after {one:+.4f}" for label, (oracle, one) in gains.items())
    return all(oracle > one for oracle, one in gains.values()), told


def tilde_needs_less_bm25(statistics: pd.DataFrame, fusions: Mapping[str, str]) -> Claim:
    """The best weights of the first fusion have the lower mean and the smaller quartile range."""
    rows = statistics.query("task == 'all' and measure == 'MAP'").set_index("fusion")
    first, second = (rows.loc[label, ["alpha average", "IQR of the optimal alpha"]].to_numpy() for label in fusions)
    return bool((first < second).all()), (
        f"mean {first[0]:.3f} and {second[0]:.3f}, quartile range {first[1]:.2f} and {second[1]:.2f}"
    )
