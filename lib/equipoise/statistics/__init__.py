"""Comparing systems over the units that all are scored on: tests, intervals, sample sizes.

Scores come as a tidy table with one row per system and unit of observation; distributions and most
resampling are SciPy's. A row whose topic is empty is a mean, and no test takes it for a topic.

References
----------
Carterette, B. (2012): Multiple Testing in Statistical Analysis of Systems-Based Information
Retrieval Experiments, ACM TOIS 30(1). Sakai, T. (2012): Evaluation with Informational and
Navigational Intents, WWW 2012 (discriminative power by the randomised Tukey HSD test). Sakai, T.
(2016): Topic Set Size Design, Information Retrieval Journal 19(3). Yilmaz, E., Aslam, J. A.,
Robertson, S. (2008): A New Rank Correlation Coefficient for Information Retrieval, SIGIR.
"""

from equipoise.statistics.agreement_of_measures import (
    correlations,
    discriminative_power,
    share_significant,
)
from equipoise.statistics.gaps import group_gaps, with_groups
from equipoise.statistics.intervals import (
    bootstrap_interval,
    finite,
    percentile_interval,
    resampled,
    units_to_decide,
)
from equipoise.statistics.leaderboards import Comparison, compare_systems, leaderboard
from equipoise.statistics.overviews import overview, pair_matrix
from equipoise.statistics.pairs import compare_pairs, corrected, topic_by_run
from equipoise.statistics.topic_set_size import power_of_anova, topic_set_size, topics_needed

__all__ = [
    "Comparison",
    "bootstrap_interval",
    "compare_pairs",
    "compare_systems",
    "corrected",
    "correlations",
    "discriminative_power",
    "finite",
    "group_gaps",
    "leaderboard",
    "overview",
    "pair_matrix",
    "percentile_interval",
    "power_of_anova",
    "resampled",
    "share_significant",
    "topic_by_run",
    "topic_set_size",
    "topics_needed",
    "units_to_decide",
    "with_groups",
]
