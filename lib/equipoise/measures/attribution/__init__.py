"""How well an answer cites its documents, and how that changes with what is said of their authors.

An answer to a question is written from k numbered documents, of which some are relevant, and cites
them by numbers in square brackets. `score_answers` gives precision and recall of its citations. The
same question is answered in several modes (`equipoise.answer_modes`): `cas` measures how far naming
the authors moves the scores, `cab` in whose favour, and `bias_table` gives both for a whole table
of answers, with intervals and tests. `attribution_confidence` compares the probabilities with which
relevant and non-relevant documents are cited. `score_attribution` has it all in one table, and
`verdicts` says what it shows in sentences. `citation_share` holds what is cited of each source
against what was retrieved of it, and needs no modes.

All scores lie between 0 and 1; the thesis prints them times 100.

References
----------
thesis: Abolghasemi, chapter 5. Rajpurkar et al. (2016), SQuAD, for the normalisation of answers.
"""

from equipoise.measures.attribution.bias import bias_table, cab, cas
from equipoise.measures.attribution.brackets import citations
from equipoise.measures.attribution.citation_share import citation_share, citation_verdicts
from equipoise.measures.attribution.confidence import attribution_confidence, citation_rows
from equipoise.measures.attribution.correctness import exact_match
from equipoise.measures.attribution.quality import score_answers
from equipoise.measures.attribution.scores import score_attribution
from equipoise.measures.attribution.verdicts import bias_rows, verdicts

__all__ = [
    "attribution_confidence",
    "bias_rows",
    "bias_table",
    "cab",
    "cas",
    "citation_rows",
    "citation_share",
    "citation_verdicts",
    "citations",
]
__all__ += ["exact_match", "score_answers", "score_attribution", "verdicts"]
