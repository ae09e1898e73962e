"""Bias in a ranked list, from the terms that represent groups: NFaiRR, AWRF, TExFAIR and ARB.

Two steps, kept apart so that a collection is counted once and scored many times:

1. `count_terms` reads texts and counts the representative terms in each: a sparse matrix
   shaped (documents, terms) and
   the document lengths, in `TermCounts`. Which term stands for which group is decided afterwards,
   in `TermGroups`, so that another term list over the same vocabulary needs no second pass over the
   collection.
2. The kernels score rankings. They take arrays whose axis *ranks* is the order of the list,
   rank 1 first, with any
   leading axes (queries, runs), and return every cut-off at once along a last axis. Lists of
   different lengths are padded; ``present`` says which ranks hold a document. `score_ranking_bias`
   does both ends for tidy tables.

Every measure weighs rank r with the attention 1 / log(r + 1). NFaiRR, AWRF, TED and TExFAIR are
ratios in which the base of the logarithm cancels; FaiRR alone depends on it.

References
----------
thesis chapter 4, Eqs. 4.1 to 4.14. Rekabsaz, N., Kopeinik, S., Schedl, M. (2021): Societal Biases
in Retrieved Contents, SIGIR 2021 (FaiRR, NFaiRR). Rekabsaz, N., Schedl, M. (2020): Do Neural
Ranking Models Intensify Gender Bias?, SIGIR 2020 (ARB). Sapiezynski, P. et al. (2019): Quantifying
the Impact of User Attention on Fair Group Representation in Ranked Lists, WWW 2019 companion
(AWRF).
"""

from equipoise.measures.ranked_lists import attention_weights, term_exposure
from equipoise.measures.ranking_bias.document_neutrality import (
    fairr,
    ideal_fairr,
    neutrality,
    nfairr,
)
from equipoise.measures.ranking_bias.group_balance import (
    arb,
    awrf,
    max_ted,
    rbdf,
    share_alignment,
    ted,
    texfair,
)
from equipoise.measures.ranking_bias.table import score_ranking_bias
from equipoise.measures.ranking_bias.terms import TermCounts, TermGroups, count_terms

__all__ = ["TermCounts", "TermGroups", "count_terms", "score_ranking_bias"]
__all__ += ["attention_weights", "fairr", "ideal_fairr", "neutrality", "nfairr"]
__all__ += ["arb", "awrf", "max_ted", "rbdf", "share_alignment", "ted", "term_exposure", "texfair"]
