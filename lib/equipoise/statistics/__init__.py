"""Comparison of systems over the units that all are scored on: tests, intervals, gaps.

Scores are a tidy table with one row per system and unit of observation. A row whose topic is empty
is a mean, and no test takes it for a topic.

References
----------
Carterette, B. (2012): Multiple Testing in Statistical Analysis of Systems-Based Information
Retrieval Experiments, ACM TOIS 30(1).
"""

from equipoise.statistics.compare import (
    Comparison,
    compare_systems,
    group_gaps,
    leaderboard,
    overview,
    pair_matrix,
    with_groups,
)
from equipoise.statistics.intervals import (
    finite,
    mean_interval,
    percentile_interval,
    resampled,
    units_to_decide,
)
from equipoise.statistics.pairs import compare_pairs, corrected, topic_by_run

__all__ = [
    "Comparison",
    "compare_pairs",
    "compare_systems",
    "corrected",
    "finite",
    "group_gaps",
    "leaderboard",
    "mean_interval",
    "overview",
    "pair_matrix",
    "percentile_interval",
    "resampled",
    "topic_by_run",
    "units_to_decide",
    "with_groups",
]
