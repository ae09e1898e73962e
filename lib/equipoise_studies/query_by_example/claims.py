"""What the claims of thesis chapter 2 rest on: mean MAP over all facets, resampled by query paper.

A facet's rankings are those of its paper, so a paper is drawn with all of its facets. What the
thesis prints of the same difference is the mean over its four tasks. Findings about the thesis's
own rankers are given here for whatever ranks; `equipoise_studies.named_systems.judgeable` leaves
out those that stand-ins cannot test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise.statistics import percentile_interval, resampled
from equipoise_compendium.claims import Evidence, stated
from equipoise_compendium.printed import printed_table
from equipoise_studies.named_systems import judgeable
from equipoise_studies.query_by_example.chance import DEALS, Candidates, means_over_facets
from equipoise_studies.query_by_example.printed_checks import (
    QUERIES,
    marked_above,
    numbers_of,
)
from equipoise_studies.query_by_example.study import BM25_ROW, TILDE_ROW, TILDEV2_ROW, Study

_PRINTED = "counted in the printed cells"
RESAMPLES = 1999
_FACET = ["query", "task"]

Weighed = Callable[[Integers], float]
"""A statistic of the facets, from how often each was drawn."""

GENERAL = ["TILDE BERT", "TILDEv2 BERT"]
SCIENTIFIC = ["TILDE SciBERT", "TILDEv2 SciBERT"]
ZERO_SHOT = ["TILDE MSMARCO", "TILDEv2 MSMARCO"]
EXPANDED = [f"TILDEv2 SciBERT expansion w/ m={m}" for m in (200, 300)]
CROSS_ENCODER = "Cross-Encoder SciBERT"


def _over_papers(
    description: str, queries: pd.Index, statistic: Weighed, printed: float | None = None
) -> Evidence:
    """A statistic with its interval over the query papers; ``queries``: the paper of each facet."""
    paper, names = pd.factorize(queries)

    # A paper that is drawn twice counts twice in every facet that it has.
    def of_drawn_papers(drawn: Integers) -> float:
        times_drawn = np.bincount(drawn, minlength=len(names))
        return statistic(times_drawn[paper])

    rng = np.random.default_rng(0)
    interval = resampled(of_drawn_papers, len(names), rng, resamples=RESAMPLES)
    return Evidence(description, *interval, n=len(names), printed=printed)


def _map_by_run(values: pd.DataFrame) -> pd.DataFrame:
    """MAP, a row for each facet of a paper, a column for each run."""
    of_map = values[values["measure"] == "MAP"]
    return of_map.pivot_table(index=_FACET, columns="run", values="value")


def _map_by_row(values: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """The same, a column for each row of a printed table, by the ranker that stands for it.

    A row whose ranker has no values, such as word pieces under other parameters, has no column.
    """
    by_run = _map_by_run(values)
    rows = [row for row, name in names.items() if name in by_run]
    return by_run[[names[row] for row in rows]].set_axis(rows, axis=1)


def _printed_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Printed MAP as fractions: a row a model, a column a task."""
    cells = table.set_index("model").filter(like="MAP")
    return cells.map(lambda text: float(text.rstrip("%")) / 100)


def _printed_means(table: pd.DataFrame) -> pd.Series:
    return _printed_cells(table).mean(axis=1)


def _printed_lead(table: pd.DataFrame, ahead: Sequence[str], behind: Sequence[str]) -> float:
    """Difference of the mean printed MAP of two lists of models."""
    means = _printed_means(table)
    return float(means[list(ahead)].mean() - means[list(behind)].mean())


def _quoted(claim: str) -> float:
    """Mean of the weights that the thesis names in the sentence of a claim."""
    weights = re.findall(r"0\.\d", stated("thesis").loc[claim, "quote"])
    return float(np.mean([float(weight) for weight in weights]))


def _lead(
    scores: pd.DataFrame,
    ahead: Sequence[str],
    behind: Sequence[str],
    description: str,
    printed: float | None = None,
) -> Evidence:
    """How far the mean of some columns is above the mean of others."""
    gap = scores[list(ahead)].mean(axis=1) - scores[list(behind)].mean(axis=1)
    gaps = gap.to_numpy()
    papers = scores.index.get_level_values("query")
    return _over_papers(description, papers, lambda n: float(n @ gaps / n.sum()), printed)


# --- Table 2.1 ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rankers:
    """What claims on Table 2.1 are judged by.

    ``printed``: the printed table. ``by_row``: MAP of each facet by each of its rows. ``names``:
    the ranker that stands for each of its rows. ``unlearned``: rankers that have not learned their
    task.
    """

    by_row: pd.DataFrame
    printed: pd.DataFrame
    names: dict[str, str]
    unlearned: list[str]

    def lead(
        self,
        ahead: Sequence[str],
        behind: Sequence[str],
        description: str,
    ) -> Evidence:
        """How far some rows are above others; not testable where a ranker is absent or untaught."""
        rows = [*ahead, *behind]
        absent = [row for row in rows if row not in self.names]
        if absent:
            return Evidence("MAP", reason=f"nothing stands for {' and '.join(absent)}")
        unlearned = [self.names[row] for row in rows if self.names[row] in self.unlearned]
        if unlearned:
            reason = "nearer to a random order than to BM25, which is not to have learned the task"
            return Evidence("MAP", reason=f"{' and '.join(unlearned)}: {reason}")
        printed = _printed_lead(self.printed, ahead, behind)
        return _lead(self.by_row, ahead, behind, description, printed)

    def learned(self, rows: Sequence[str]) -> bool:
        """Whether there is a ranker for each of these rows, and none that has not learned."""
        return all(row in self.names and self.names[row] not in self.unlearned for row in rows)

    def zero_shot(self) -> Evidence:
        """How far zero-shot rankers are above fine-tuned ones of the same design."""
        designs = []
        for design in zip(ZERO_SHOT, GENERAL, SCIENTIFIC, strict=True):
            if self.learned(design):
                designs.append(design)
        ahead = [design[0] for design in designs]
        behind = [row for design in designs for row in design[1:]]
        if not designs:
            return self.lead(ZERO_SHOT, [*GENERAL, *SCIENTIFIC], "MAP")
        names = " and ".join(self.names[row] for row in ahead)
        return self.lead(ahead, behind, f"MAP of {names} less the mean of the fine-tuned ones")


_LEADS = {
    "2.1-v2-above": (
        ["TILDEv2 BERT"],
        ["TILDE BERT"],
        "MAP of TILDEv2 less that of TILDE, general encoder",
    ),
    "2.1-expansion": (
        ["TILDE SciBERT"],
        EXPANDED,
        "MAP of TILDE less that of TILDEv2 over expanded documents",
    ),
    "2.1-expansion-bm25": (
        [BM25_ROW],
        EXPANDED,
        "MAP of BM25 less that of TILDEv2 over expanded documents",
    ),
}
"""Claims that some rows of Table 2.1 are above others: which ones, and what the number is."""


def of_rankers(study: Study, values: pd.DataFrame, printed: pd.DataFrame) -> dict[str, Evidence]:
    """Claims on Table 2.1, by name; what there is no ranker for is not testable."""
    rankers = _rankers(study, values, printed)
    # A cross-encoder is held against rankers of its own encoder: a better encoder is no lead.
    tildes = [*GENERAL, *SCIENTIFIC]
    evidence = {
        "2.1-cross-encoder": rankers.lead(
            [CROSS_ENCODER],
            study.same_encoder(CROSS_ENCODER, tildes),
            "MAP of the cross-encoder less the mean of TILDE and TILDEv2 with the same encoder",
        )
    }
    for claim, (ahead, behind, description) in _LEADS.items():
        evidence[claim] = rankers.lead(ahead, behind, description)
    evidence["2.1-zero-shot"] = rankers.zero_shot()
    evidence["2.1-competitive"] = _lead_of_bm25_on_learned(rankers)
    return evidence | _of_encoders(rankers) | _of_tasks(rankers)


def _rankers(study: Study, values: pd.DataFrame, printed: pd.DataFrame) -> _Rankers:
    names = study.rows(printed)
    unlearned = _unlearned(study, _map_by_run(values).mean())
    return _Rankers(_map_by_row(values, names), printed, names, unlearned)


def _lead_of_bm25_on_learned(rankers: _Rankers) -> Evidence:
    """BM25 against those that learned; were there none, `lead` says so."""
    tildes, names = [*GENERAL, *SCIENTIFIC], rankers.names
    learned = [row for row in tildes if names.get(row) not in rankers.unlearned] or tildes
    learned_names = ", ".join(names.get(row, row) for row in learned)
    return rankers.lead([BM25_ROW], learned, f"MAP of BM25 less the mean of {learned_names}")


def _of_encoders(rankers: _Rankers) -> dict[str, Evidence]:
    """What a scientific encoder adds; only SciBERT is one, whatever stands in for it."""
    stand_ins = [name for row, name in rankers.names.items() if row in SCIENTIFIC and name != row]
    if stand_ins or not rankers.learned([*GENERAL, *SCIENTIFIC]):
        reason = "a ranker has not learned its task, or is absent"
        if stand_ins:
            reason = f"{' and '.join(stand_ins)} stand for SciBERT: theirs is no scientific encoder"
        untestable = Evidence("MAP", reason=reason)
        return {"2.1-scientific": untestable, "2.1-scientific-tilde": untestable}

    by_row = rankers.by_row
    gains = by_row[SCIENTIFIC].to_numpy() - by_row[GENERAL].to_numpy()
    difference = gains[:, 0] - gains[:, 1]  # TILDE's gain less TILDEv2's
    printed = _printed_means(rankers.printed)
    printed_gains = printed[SCIENTIFIC].to_numpy() - printed[GENERAL].to_numpy()
    of_encoders = _over_papers(
        "gain in MAP of the scientific encoder: TILDE's less TILDEv2's",
        by_row.index.get_level_values("query"),
        lambda n: float(n @ difference / n.sum()),
        float(printed_gains[0] - printed_gains[1]),
    )
    of_both = rankers.lead(
        SCIENTIFIC, GENERAL, "mean gain in MAP of the scientific encoder over the general one"
    )
    return {"2.1-scientific": of_both, "2.1-scientific-tilde": of_encoders}


def _of_tasks(rankers: _Rankers) -> dict[str, Evidence]:
    """In how many tasks BM25 is above TILDE and TILDEv2 with the general encoder."""
    if not rankers.learned(GENERAL):
        reason = "nothing to compare: a ranker has not learned its task, or is absent"
        return {"2.1-most-tasks": Evidence("share of tasks", reason=reason)}
    # The thesis says "most tasks": each of its four, against each of the two rankers.
    cells = _printed_cells(rankers.printed)
    of_tasks = _share_ahead(
        rankers.by_row,
        BM25_ROW,
        GENERAL,
        "share of tasks in which BM25 is above TILDE, and TILDEv2, with the general encoder",
        float((cells.loc[BM25_ROW] > cells.loc[GENERAL]).to_numpy().mean()),
    )
    return {"2.1-most-tasks": of_tasks}


def _share_ahead(
    by_row: pd.DataFrame, row: str, rivals: Sequence[str], description: str, printed: float
) -> Evidence:
    """In how many pairs of a task and a rival a row has the higher mean."""
    gaps = by_row[[row]].to_numpy() - by_row[list(rivals)].to_numpy()
    task, names = pd.factorize(by_row.index.get_level_values("task"))
    in_task = np.equal(task, np.arange(len(names))[:, np.newaxis])  # (tasks, facets)

    def share(n: Integers) -> float:
        sums = (in_task * n) @ gaps  # (tasks, rivals): above 0 where the mean is
        return float((sums > 0).mean())

    return _over_papers(description, by_row.index.get_level_values("query"), share, printed)


def _unlearned(study: Study, means: pd.Series) -> list[str]:
    """Rankers of a replica that are nearer to a random order than to BM25."""
    random = [system.name for system in study.systems.values() if system.kind == "random"]
    # The thesis's own rankers are taken as they are.
    if study.stands_for == "thesis" or not random:
        return []
    middle = (means[random].mean() + means[BM25_ROW]) / 2
    names = {system.name for system in study.systems.values()} - set(random)
    return sorted(name for name in names if means[name] < middle)


# --- Table 2.2 ------------------------------------------------------------------------------------


def of_tokenisations(
    study: Study, values: pd.DataFrame, printed: pd.DataFrame
) -> dict[str, Evidence]:
    """Claims on Table 2.2, by name, on the rows that there are."""
    by_row = _map_by_row(values, study.rows(printed))
    return {
        "2.2-stm2-best": _lead_of_best(by_row, printed),
        "2.2-bm25-above": _lead_of_bm25(by_row, printed),
        "2.2-word-pieces": _lead_of_pieces(by_row, printed),
    }


def _lead_of_best(by_row: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """How far BM25 STM2, the best row in print, is above the best of the others."""
    scores, best = by_row.to_numpy(), by_row.columns.get_loc(BM25_ROW)

    # Which of the others is best is asked again of every draw of papers.
    def lead(n: Integers) -> float:
        means = n @ scores / n.sum()
        return float(means[best] - np.delete(means, best).max())

    printed_means = _printed_means(printed)[list(by_row)]
    printed_lead = printed_means[BM25_ROW] - printed_means.drop(BM25_ROW).to_numpy().max()
    papers = by_row.index.get_level_values("query")
    second = by_row.drop(columns=BM25_ROW).mean().idxmax()
    description = f"MAP of BM25 STM2 less that of the best other row (here {second})"
    return _over_papers(description, papers, lead, float(printed_lead))


def _lead_of_bm25(by_row: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """How far BM25 is above the language model, mean over what is counted as a term."""
    bm25 = []
    language = []
    for row in by_row.filter(regex="^LM "):
        same_tokens = str(row).replace("LM ", "BM25 ")
        if same_tokens in by_row:
            bm25.append(same_tokens)
            language.append(str(row))
    leads = by_row[bm25].to_numpy() - by_row[language].to_numpy()
    ahead = int((leads.mean(axis=0) > 0).sum())
    return _over_papers(
        "mean lead in MAP of BM25 over the language model with the same tokens, "
        f"ahead in {ahead} of {len(language)}",
        by_row.index.get_level_values("query"),
        lambda n: float((n @ leads / n.sum()).mean()),
        _printed_lead(printed, bm25, language),
    )


def _lead_of_pieces(by_row: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """How far word pieces are above whole words and stems, whatever vocabulary stands in."""
    pieces = list(by_row.filter(regex="-Token$"))
    if not pieces:
        return Evidence("MAP", reason="no word pieces are among the rows")
    # A model whose word pieces are left out is left out altogether.
    models = sorted({row.partition(" ")[0] for row in pieces})
    words = []
    for row in by_row:
        if row not in pieces and row.partition(" ")[0] in models:
            words.append(row)
    description = "mean MAP over word pieces less that over the three other analysers, " + (
        "both models" if len(models) == 2 else models[0]
    )
    return _lead(by_row, pieces, words, description, _printed_lead(printed, pieces, words))


# --- mixtures: Figure 2.3, Tables 2.3 and 2.4 -----------------------------------------------------


def of_one_weight(
    candidates: Candidates,
    splits: pd.DataFrame,
    values: pd.DataFrame,
    swept: pd.DataFrame,
    mixtures: Sequence[str],
    printed: pd.DataFrame,
    significant: pd.DataFrame,
) -> dict[str, Evidence]:
    """Claims on Figure 2.3 and Table 2.3, by name.

    ``values``: of rankers. ``swept``: of mixtures under every weight. ``mixtures``: what BM25 with
    TILDE, and with TILDEv2, is called. ``significant``: the differences of Table 2.3, ``column,
    better, worse``.
    """
    return {
        "2.3-broader": _broader(swept, mixtures),
        "2.3-significant": _share_significant(values, significant, mixtures),
        "2.3-tilde-weight": _best_weight(swept, mixtures[0], "2.3-tilde-weight"),
        "2.3-v2-weight": _best_weight(swept, mixtures[1], "2.3-v2-weight"),
        "2.3-together": _together(candidates, splits, printed),
    }


def _by_weight(swept: pd.DataFrame, mixture: str) -> pd.DataFrame:
    """MAP of a mixture, a row for each facet, a column for each weight."""
    of_mixture = swept[(swept["measure"] == "MAP") & (swept["fusion"] == mixture)]
    by_weight = of_mixture.pivot_table(index=_FACET, columns="alpha", values="value", sort=False)
    return by_weight.sort_index(axis=1)


def _broader(swept: pd.DataFrame, mixtures: Sequence[str]) -> Evidence:
    """How many more weights are effective, above both parts, with TILDEv2 than with TILDE."""
    by_mixture = [_by_weight(swept, mixture) for mixture in mixtures]
    curves = np.stack([by_weight.to_numpy() for by_weight in by_mixture])

    def difference(n: Integers) -> float:
        means = n @ curves / n.sum()  # (mixtures, weights); the parts are the first and the last
        better_part = np.maximum(means[:, :1], means[:, -1:])
        with_tilde, with_tildev2 = (means > better_part).sum(axis=1)
        return float(with_tildev2 - with_tilde)

    papers = by_mixture[0].index.get_level_values("query")
    description = "weights whose mean MAP is above both parts: with TILDEv2 less with TILDE"
    return _over_papers(description, papers, difference)


def _share_significant(
    values: pd.DataFrame, significant: pd.DataFrame, mixtures: Sequence[str]
) -> Evidence:
    """Share of cells in which a mixture is significantly better than both of its parts."""
    columns = (values["task"] + " " + values["measure"]).unique()
    pairs = set(significant[["column", "better", "worse"]].itertuples(index=False, name=None))
    n_better = 0
    for mixture in mixtures:
        parts = mixture.split(" + ")
        for column in columns:
            n_better += all((column, mixture, part) in pairs for part in parts)
    n_cells = len(mixtures) * len(columns)
    printed = _marks_of_mixtures().estimate
    return Evidence(
        f"share of {n_cells} cells in which a mixture is significantly better than both parts",
        n_better / n_cells,
        reason="tests of the table's own cells",
        printed=printed,
    )


def _best_weight(swept: pd.DataFrame, mixture: str, claim: str) -> Evidence:
    """The weight of a mixture whose mean over the facets is highest."""
    by_weight = _by_weight(swept, mixture)
    curves, alphas = by_weight.to_numpy(), by_weight.columns.to_numpy(dtype=float)
    return _over_papers(
        "weight of BM25 with the highest mean MAP",
        by_weight.index.get_level_values("query"),
        lambda n: float(alphas[(n @ curves).argmax()]),
        _quoted(claim),
    )


def _together(candidates: Candidates, splits: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """What both mixtures gain on the better of their parts."""
    # Rows of Table 2.3: BM25, TILDE, TILDEv2, and BM25 with each of these.
    rows = _printed_means(printed).to_numpy()
    printed_gain = (rows[3:] - np.maximum(rows[0], rows[1:3])).mean()
    description = "mean gain in MAP of both interpolations over the better of their parts"
    evidence = _gain_of_mixing(description, candidates, splits)
    return replace(evidence, printed=float(printed_gain))


_ENCODERS = {
    "specter": ("2.3-specter", "SPECTER"),
}
"""Kinds of rankers that compare one vector a paper: the claim on each, and what it is called."""


def of_other_encoders(
    study: Study, scores: pd.DataFrame, judgements: pd.DataFrame, splits: pd.DataFrame
) -> dict[str, Evidence]:
    """Whether encoders of BERT's size see what BM25 misses, by claim; of each kind the first."""
    evidence: dict[str, Evidence] = {}
    relevant = study.collection.relevant
    for column, system in study.systems.items():
        claim, name = _ENCODERS.get(system.kind, ("", ""))
        if not claim or claim in evidence:
            continue
        candidates = Candidates.of(scores, judgements, relevant, BM25_ROW, [study.columns(column)])
        description = f"gain in MAP of BM25 mixed with {name} over the better of the two"
        evidence[claim] = _gain_of_mixing(description, candidates, splits)
    return evidence


def _drawn_facets(candidates: Candidates, rng: np.random.Generator) -> tuple[Floats, int]:
    """How often each facet is drawn, (1 + resamples, facets), and the number of papers.

    Papers are drawn with all of their facets; row 0 is the data.
    """
    paper, names = pd.factorize(candidates.facets.get_level_values("query"))
    shares = np.full(len(names), 1 / len(names))
    times = rng.multinomial(len(names), shares, size=RESAMPLES)
    return np.vstack([np.ones(len(paper)), times[:, paper]]), len(names)


def _gain_of_mixing(description: str, candidates: Candidates, splits: pd.DataFrame) -> Evidence:
    """What mixtures gain on the better of their parts, weights tuned again on each draw."""
    times, n_papers = _drawn_facets(candidates, np.random.default_rng(0))
    means = means_over_facets(candidates.curves(), candidates.facets, splits, times)
    gains = means.gain_of_mixing()
    low, high = percentile_interval(gains[1:])
    estimate = float(gains[0])
    return Evidence(description, estimate, min(low, estimate), max(high, estimate), n_papers)


def _oracle_beyond_chance(candidates: Candidates, splits: pd.DataFrame) -> Evidence:
    """What the oracle gains on one tuned weight, less what it gains where rankers know nothing."""
    rng = np.random.default_rng(0)
    times, n_papers = _drawn_facets(candidates, rng)
    facets = candidates.facets
    gains = means_over_facets(candidates.curves(), facets, splits, times).gain_of_oracle()
    dealt_curves = candidates.deals(DEALS, rng)
    by_chance = means_over_facets(dealt_curves, facets, splits, times).gain_of_oracle()

    # A draw of papers goes with one deal, so that the interval holds the luck of both.
    deal = rng.integers(DEALS, size=RESAMPLES)
    differences = gains[1:] - by_chance[deal, np.arange(1, RESAMPLES + 1)]
    low, high = percentile_interval(differences)
    observed, expected = float(gains[0]), float(by_chance[:, 0].mean())
    n_reached = int((by_chance[:, 0] >= observed).sum())
    estimate = observed - expected
    return Evidence(
        "mean gain in MAP of the oracle over one tuned weight, less what it gains with scores "
        f"dealt anew among the candidates ({observed:.3f} less {expected:.3f}; {n_reached} of "
        f"{DEALS} deals reach as much)",
        estimate,
        min(low, estimate),
        max(high, estimate),
        n_papers,
    )


def of_oracle(
    candidates: Candidates,
    splits: pd.DataFrame,
    best: pd.DataFrame,
    mixtures: Sequence[str],
    printed: pd.DataFrame,
) -> dict[str, Evidence]:
    """Claims on Table 2.4, by name."""
    of_map = best[best["measure"] == "MAP"]
    evidence = {"2.4-oracle": _oracle_beyond_chance(candidates, splits)}
    return evidence | _of_best_weights(of_map, mixtures, printed)


def _of_best_weights(
    best: pd.DataFrame, mixtures: Sequence[str], printed: pd.DataFrame
) -> dict[str, Evidence]:
    """Claims on how the best weights for MAP are spread."""
    alphas = best.pivot_table(index=_FACET, columns="fusion", values="alpha")[list(mixtures)]
    papers = alphas.index.get_level_values("query")
    weights = alphas.to_numpy()  # (facets, mixtures): with TILDE, with TILDEv2
    bm25_alone = weights == 1

    def difference_alone(n: Integers) -> float:
        with_tilde, with_tildev2 = n @ bm25_alone
        return float((with_tildev2 - with_tilde) / n.sum())

    def difference_of_spreads(n: Integers) -> float:
        drawn: Floats = np.repeat(weights, n, axis=0)
        low, high = np.percentile(drawn, [25, 75], axis=0)
        with_tilde, with_tildev2 = high - low
        return float(with_tildev2 - with_tilde)

    return {
        "2.4-bm25-alone": _over_papers(
            "share of facets for which BM25 alone is best: with TILDEv2 less with TILDE",
            papers,
            difference_alone,
            _printed_difference(printed, "queries with optimal alpha 1") / QUERIES,
        ),
        "2.4-spread": _over_papers(
            "quartile range of the best weights: TILDEv2's less TILDE's",
            papers,
            difference_of_spreads,
            _printed_difference(printed, "IQR of the optimal alpha"),
        ),
    }


def _printed_difference(printed: pd.DataFrame, statistic: str) -> float:
    """A printed statistic of Table 2.4 for MAP, mean over tasks: with TILDEv2 less with TILDE."""
    rows = printed[printed["statistic"] == statistic].filter(like="MAP").astype(float)
    with_tilde, with_tildev2 = rows.mean(axis=1)
    return float(with_tildev2 - with_tilde)


def of_prediction(predictions: pd.DataFrame) -> dict[str, Evidence]:
    """Whether a weight predicted from the query gains on one weight."""
    of_map = predictions[predictions["measure"] == "MAP"]
    by_weight = of_map.pivot_table(index=_FACET, columns=["weight", "fusion"], values="value")
    gaps = (by_weight["predicted"] - by_weight["one weight"]).mean(axis=1).to_numpy()
    gain = _over_papers(
        "mean gain in MAP of a predicted weight over one weight, both interpolations",
        by_weight.index.get_level_values("query"),
        lambda n: float(n @ gaps / n.sum()),
    )
    return {"2.4-predicted": gain}


# --- two collections ------------------------------------------------------------------------------


def of_method(
    study: Study,
    values: pd.DataFrame,
    scores: pd.DataFrame,
    judgements: pd.DataFrame,
    splits: pd.DataFrame,
    printed: Mapping[int, pd.DataFrame],
) -> dict[str, Evidence]:
    """Findings that stand-ins can test, on one collection, by name; ``printed``: by number."""
    evidence = of_rankers(study, values, printed[1]) | of_tokenisations(study, values, printed[2])
    mixtures = [study.columns_of_row(row) for row in (TILDE_ROW, TILDEV2_ROW)]
    relevant = study.collection.relevant
    candidates = Candidates.of(scores, judgements, relevant, BM25_ROW, mixtures)
    evidence["2.3-together"] = _together(candidates, splits, printed[3])
    evidence["2.4-oracle"] = _oracle_beyond_chance(candidates, splits)
    evidence |= of_other_encoders(study, scores, judgements, splits)
    return judgeable("thesis", evidence, study)


_DIFFERENCES = {
    "2.2-stm2-best": "BM25 STM2 less the best other lexical ranker",
    "2.2-bm25-above": "BM25 less the language model",
    "2.2-word-pieces": "Word pieces less words and stems",
    "2.1-cross-encoder": "Cross-encoder less TILDE and TILDEv2",
    "2.1-zero-shot": "Zero-shot less fine-tuned",
    "2.3-together": "BM25 and TILDE, mixed, less the better",
    "2.3-specter": "BM25 and SPECTER, less the better",
    "2.4-oracle": "Oracle's weights less one weight and luck",
    "2.4-predicted": "Predicted weights less one weight",
}
"""Findings that are a difference in MAP, which stand-ins can test: what is less what."""


def differences(evidence_of: Mapping[str, Mapping[str, Evidence]]) -> pd.DataFrame:
    """Differences in MAP on each collection: ``finding, collection, MAP, low, high, papers``.

    ``evidence_of``: of each collection, by its name in words, the evidence by claim. What a
    collection cannot test is left out.
    """
    rows = []
    for claim, difference in _DIFFERENCES.items():
        for collection, evidence_by_claim in evidence_of.items():
            evidence = evidence_by_claim.get(claim)
            if evidence is not None and evidence.estimate is not None:
                row = {"finding": difference, "collection": collection, "MAP": evidence.estimate}
                rows.append(
                    row | {"low": evidence.low, "high": evidence.high, "papers": evidence.n}
                )
    return pd.DataFrame(rows, columns=["finding", "collection", "MAP", "low", "high", "papers"])


# --- printed numbers ------------------------------------------------------------------------------


def of_printed(printed: Mapping[int, pd.DataFrame], checks: pd.DataFrame) -> dict[str, Evidence]:
    """Sentences and printed numbers against printed numbers and marks, by name.

    ``printed``: the tables by number. ``checks``: those of the tables against one another.
    """
    return {
        "2.1-printed-cross-encoder": _printed_share(
            printed[1], [CROSS_ENCODER], [*GENERAL, *SCIENTIFIC]
        ),
        "2.1-printed-v2-above": _printed_share(printed[1], GENERAL[1:], GENERAL[:1]),
        "2.1-printed-expansion": _printed_share(printed[1], [TILDE_ROW], EXPANDED),
        "2.1-printed-most-tasks": _printed_share(printed[1], [BM25_ROW], GENERAL),
        "2.1-tilde-scibert": _printed_share(printed[1], [TILDE_ROW], [GENERAL[1], TILDEV2_ROW]),
        "2.2-marks": _marks_of_bm25(),
        "2.3-marks": _marks_of_mixtures(),
        "2.3-exceptions": _exceptions(printed[3]),
        "2.4-printed-weights": _printed_weights(printed[4]),
        "2.4-consistent": _consistent(checks),
    }


def _printed_share(printed: pd.DataFrame, ahead: Sequence[str], behind: Sequence[str]) -> Evidence:
    """Share of printed cells of Table 2.1 in which each of some rows is above each of others."""
    cells = numbers_of(printed).droplevel("row")
    n_above, n_pairs = 0, 0
    for row in ahead:
        for rival in behind:
            is_above = cells.loc[row] > cells.loc[rival]
            n_above += int(is_above.sum())
            n_pairs += len(is_above)
    rows, rivals = " and ".join(ahead), " and ".join(behind)
    description = f"share of {n_pairs} printed pairs of cells, MAP and nDCG, {rows} above {rivals}"
    return Evidence(description, n_above / n_pairs, reason=_PRINTED)


def _marks_of_bm25() -> Evidence:
    """Printed cells of BM25 that are not marked as better than every row of the language model."""
    marks = printed_table("thesis/table-2.2-marks").set_index("row").drop(columns="model")
    cells = marks.loc[list("fghij")].map(marked_above).to_numpy().ravel()
    unmarked = [letters for letters in cells if not letters >= set("abcde")]
    return Evidence(
        f"of {len(cells)} printed cells, those not marked as better than rows a to e",
        len(unmarked),
        reason=_PRINTED,
    )


def _marks_of_mixtures() -> Evidence:
    """Share of printed cells of Table 2.3 that are marked as better than both parts."""
    marks = printed_table("thesis/table-2.3-marks").set_index("row").drop(columns="model")
    n_marked = 0
    # Rows d and e mix row a, BM25, with row b, TILDE, and row c, TILDEv2.
    for row, parts in (("d", {"a", "b"}), ("e", {"a", "c"})):
        n_marked += sum(marked_above(text) >= parts for text in marks.loc[row])
    n_cells = 2 * len(marks.columns)
    return Evidence(
        f"share of {n_cells} printed cells marked as better than both parts",
        n_marked / n_cells,
        reason=_PRINTED,
    )


def _exceptions(printed: pd.DataFrame) -> Evidence:
    """Printed cells of Table 2.3 in which a mixture is not above both of its parts."""
    cells = printed.set_index("model").drop(columns="row")
    numbers = cells.map(lambda text: float(text.rstrip("%"))).to_numpy()
    better_part = np.maximum(numbers[:1], numbers[1:3])
    return Evidence(
        "printed cells in which an interpolation is not above both parts",
        int((numbers[3:] <= better_part).sum()),
        reason=_PRINTED,
    )


def _printed_weights(printed: pd.DataFrame) -> Evidence:
    """Printed columns in which the weights beside TILDEv2 are not spread more than with TILDE."""
    numbers = numbers_of(printed)
    n_failing = 0
    for statistic in ("queries with optimal alpha 1", "IQR of the optimal alpha"):
        with_tilde, with_tildev2 = numbers.xs(statistic, level="statistic").to_numpy()
        n_failing += int((with_tildev2 <= with_tilde).sum())
    description = (
        f"of {2 * len(numbers.columns)} printed pairs (queries for which BM25 alone is best, and "
        "quartile ranges), those that are not larger with TILDEv2"
    )
    return Evidence(description, n_failing, reason=_PRINTED)


def _consistent(checks: pd.DataFrame) -> Evidence:
    """Relations between printed cells that do not hold."""
    # A tuned weight may lie below its parts, and the counts at 0 are no relation between cells.
    is_relation = checks["check"].str.startswith(("oracle", "mean weight", "rows of"))
    relations = checks[is_relation]
    return Evidence(
        f"of {int(relations['cells'].sum())} relations between printed cells, "
        "those that do not hold",
        int((relations["cells"] - relations["hold"]).sum()),
        reason=_PRINTED,
    )


# --- the answer -----------------------------------------------------------------------------------


def answer(study: Study, values: pd.DataFrame, findings: Mapping[str, Evidence]) -> list[str]:
    """What the chapter's run says, in a few sentences; ``findings``: those of this module."""
    mean = _map_by_run(values)[BM25_ROW].groupby("query").mean().mean()
    sentences = [
        f"On {study.collection.about}, BM25 reaches a mean average precision of {mean:.3f} "
        "over the query papers."
    ]
    lead = findings["2.1-competitive"]
    if lead.estimate is not None:
        small = ", whose encoders are small here" if study.stands_for == "replica" else ""
        sentences.append(
            "Compared with the mean of TILDE and TILDEv2 where they learned their task"
            f"{small}, that is {_interval(lead)}, over {lead.n:,} papers."
        )
    if study.stands_for == "replica":
        sentences.append("The rankers here cannot test what the thesis finds of its own.")
    if "2.3-together" in findings:
        sentences.append(
            "Mixing BM25 with TILDE or TILDEv2 changes MAP by "
            f"{_interval(findings['2.3-together'])} against the better of the two; the best "
            "weight of each query, were it known, adds "
            f"{_interval(findings['2.4-oracle'])} more than beside rankers that know nothing."
        )
    return sentences


def _interval(evidence: Evidence) -> str:
    return f"{evidence.estimate:+.3f} [{evidence.low:+.3f}, {evidence.high:+.3f}]"
