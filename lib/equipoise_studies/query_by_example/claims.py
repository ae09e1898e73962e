"""What the claims of thesis chapter 2 rest on: mean MAP over all facets, resampled by query paper.

A facet's rankings are those of its paper, so a paper is drawn with all of its facets. What the
thesis prints of the same difference is the mean over its four tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence, stated
from equipoise_studies.query_by_example.printed_checks import QUERIES
from equipoise_studies.query_by_example.study import BM25_ROW, Study

_PRINTED = "counted in the printed cells"
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

    interval = resampled(of_drawn_papers, len(names), np.random.default_rng(0))
    return Evidence(description, *interval, n=len(names), printed=printed)


def _map_by_run(values: pd.DataFrame) -> pd.DataFrame:
    """MAP, a row for each facet of a paper, a column for each run."""
    of_map = values[values["measure"] == "MAP"]
    return of_map.pivot_table(index=_FACET, columns="run", values="value")


def _map_by_row(values: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """The same, a column for each row of a printed table, by the ranker that stands for it."""
    by_run = _map_by_run(values)
    return by_run[list(names.values())].set_axis(list(names), axis=1)


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
            reason = "trained, and still nearer to a random order than to BM25"
            return Evidence("MAP", reason=f"{' and '.join(unlearned)}: {reason}")
        printed = _printed_lead(self.printed, ahead, behind)
        return _lead(self.by_row, ahead, behind, description, printed)


_LEADS = {
    "2.1-v2-above": (
        ["TILDEv2 BERT"],
        ["TILDE BERT"],
        "MAP of TILDEv2 less that of TILDE, general encoder",
    ),
    "2.1-scientific": (
        SCIENTIFIC,
        GENERAL,
        "mean gain in MAP of the scientific encoder over the general one",
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
    "2.1-zero-shot": (
        ZERO_SHOT,
        [*GENERAL, *SCIENTIFIC],
        "MAP of TILDE and TILDEv2 zero-shot less that of the fine-tuned ones",
    ),
}
"""Claims that some rows of Table 2.1 are above others: which ones, and what the number is."""


def of_rankers(study: Study, values: pd.DataFrame, printed: pd.DataFrame) -> dict[str, Evidence]:
    """Claims on Table 2.1, by name; what there is no ranker for is not testable."""
    names = study.rows(printed)
    unlearned = _unlearned(study, _map_by_run(values).mean())
    rankers = _Rankers(_map_by_row(values, names), printed, names, unlearned)
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

    # BM25 is held against those that learned; were there none, `lead` says so.
    learned = [row for row in tildes if names.get(row) not in rankers.unlearned] or tildes
    learned_names = ", ".join(names.get(row, row) for row in learned)
    evidence["2.1-competitive"] = rankers.lead(
        [BM25_ROW], learned, f"MAP of BM25 less the mean of {learned_names}"
    )
    return evidence | _of_tildes(rankers)


def _of_tildes(rankers: _Rankers) -> dict[str, Evidence]:
    """Claims that take all four of TILDE and TILDEv2, with both encoders."""
    tildes, names = [*GENERAL, *SCIENTIFIC], rankers.names
    unlearned = [names[row] for row in tildes if names.get(row) in rankers.unlearned]
    if unlearned or not set(tildes) <= set(names):
        lacking = " and ".join(unlearned) or "a ranker"
        reason = f"nothing to compare: {lacking} has not learned its task, or is absent"
        untestable = Evidence("MAP", reason=reason)
        return {"2.1-scientific-tilde": untestable, "2.1-most-tasks": untestable}

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
    # The thesis says "most tasks": each of its four, against each of the two rankers.
    cells = _printed_cells(rankers.printed)
    of_tasks = _share_ahead(
        by_row,
        BM25_ROW,
        GENERAL,
        "share of tasks in which BM25 is above TILDE, and TILDEv2, with the general encoder",
        float((cells.loc[BM25_ROW] > cells.loc[GENERAL]).to_numpy().mean()),
    )
    return {"2.1-scientific-tilde": of_encoders, "2.1-most-tasks": of_tasks}


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
    """Trained rankers of a replica that are nearer to a random order than to BM25."""
    random = [system.name for system in study.systems.values() if system.kind == "random"]
    # The thesis's own rankers are taken as they are.
    if study.stands_for == "thesis" or not random:
        return []
    middle = (means[random].mean() + means[BM25_ROW]) / 2
    trained = [system.name for system in study.systems.values() if system.training]
    return [name for name in trained if means[name] < middle]


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
    """How far BM25 STM2, the best row in print, is above the mean of the others."""
    scores, best = by_row.to_numpy(), by_row.columns.get_loc(BM25_ROW)

    def lead(n: Integers) -> float:
        means = n @ scores / n.sum()
        return float(means[best] - np.delete(means, best).mean())

    printed_means = _printed_means(printed)[list(by_row)]
    printed_lead = printed_means[BM25_ROW] - printed_means.drop(BM25_ROW).to_numpy().mean()
    papers = by_row.index.get_level_values("query")
    description = "MAP of BM25 STM2 less the mean of the others"
    return _over_papers(description, papers, lead, float(printed_lead))


def _lead_of_bm25(by_row: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """How far BM25 is above the language model, mean over what is counted as a term."""
    language = list(by_row.filter(regex="^LM "))
    bm25 = [row.replace("LM ", "BM25 ") for row in language]
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
    words = [row for row in by_row if row not in pieces]
    if not pieces:
        return Evidence("MAP", reason="no word pieces are among the rows")
    description = "mean MAP over word pieces less that over the three other analysers, both models"
    return _lead(by_row, pieces, words, description, _printed_lead(printed, pieces, words))


# --- mixtures: Figure 2.3, Tables 2.3 and 2.4 -----------------------------------------------------


def of_one_weight(
    values: pd.DataFrame, swept: pd.DataFrame, mixtures: Sequence[str], printed: pd.DataFrame
) -> dict[str, Evidence]:
    """Claims on Figure 2.3 and Table 2.3, by name.

    ``values``: of rankers and of mixtures with a tuned weight. ``swept``: of mixtures under every
    weight. ``mixtures``: what BM25 with TILDE, and with TILDEv2, is called.
    """
    return {
        "2.3-tilde-weight": _best_weight(swept, mixtures[0], "2.3-tilde-weight"),
        "2.3-v2-weight": _best_weight(swept, mixtures[1], "2.3-v2-weight"),
        "2.3-together": _gain_of_mixing(values, mixtures, printed),
        "2.3-exceptions": _exceptions(printed),
    }


def _best_weight(swept: pd.DataFrame, mixture: str, claim: str) -> Evidence:
    """The weight of a mixture whose mean over the facets is highest."""
    of_mixture = swept[(swept["measure"] == "MAP") & (swept["fusion"] == mixture)]
    by_weight = of_mixture.pivot_table(index=_FACET, columns="alpha", values="value", sort=False)
    by_weight = by_weight.sort_index(axis=1)
    curves, alphas = by_weight.to_numpy(), by_weight.columns.to_numpy(dtype=float)
    return _over_papers(
        "weight of BM25 with the highest mean MAP",
        by_weight.index.get_level_values("query"),
        lambda n: float(alphas[(n @ curves).argmax()]),
        _quoted(claim),
    )


def _gain_of_mixing(
    values: pd.DataFrame, mixtures: Sequence[str], printed: pd.DataFrame
) -> Evidence:
    """What both mixtures gain on the better of their parts."""
    by_run = _map_by_run(values)
    rankers = [mixture.removeprefix(f"{BM25_ROW} + ") for mixture in mixtures]
    scores = by_run[[*mixtures, BM25_ROW, *rankers]].to_numpy()

    def gain(n: Integers) -> float:
        means = n @ scores / n.sum()
        mixed, bm25, contextualised = means[:2], means[2], means[3:]
        return float((mixed - np.maximum(bm25, contextualised)).mean())

    # Rows of Table 2.3: BM25, TILDE, TILDEv2, and BM25 with each of these.
    rows = _printed_means(printed).to_numpy()
    printed_gain = (rows[3:] - np.maximum(rows[0], rows[1:3])).mean()
    return _over_papers(
        "mean gain in MAP of both interpolations over the better of their parts",
        by_run.index.get_level_values("query"),
        gain,
        float(printed_gain),
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


def of_oracle(
    tuned: pd.DataFrame,
    best: pd.DataFrame,
    mixtures: Sequence[str],
    printed: pd.DataFrame,
    checks: pd.DataFrame,
) -> dict[str, Evidence]:
    """Claims on Table 2.4, by name; ``checks``: those of the printed tables against one another."""
    of_map = best[best["measure"] == "MAP"]
    values = of_map.pivot_table(index=_FACET, columns="fusion", values="value")[list(mixtures)]
    margins = values - _map_by_run(tuned).loc[values.index, list(mixtures)]
    margin = margins.mean(axis=1).to_numpy()
    gain = _over_papers(
        "mean gain in MAP of the oracle over one tuned weight",
        values.index.get_level_values("query"),
        lambda n: float(n @ margin / n.sum()),
    )

    # A tuned weight may lie below its parts, and the counts at 0 are no relation between cells.
    is_relation = checks["check"].str.startswith(("oracle", "mean weight", "rows of"))
    relations = checks[is_relation]
    consistent = Evidence(
        f"of {int(relations['cells'].sum())} relations between printed cells, "
        "those that do not hold",
        int((relations["cells"] - relations["hold"]).sum()),
        reason=_PRINTED,
    )
    of_weights = _of_best_weights(of_map, mixtures, printed)
    return {"2.4-oracle": gain} | of_weights | {"2.4-consistent": consistent}


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


# --- the answer -----------------------------------------------------------------------------------


def answer(study: Study, values: pd.DataFrame, findings: Mapping[str, Evidence]) -> list[str]:
    """What the chapter's run says, in two or three sentences."""
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
    if "2.3-together" in findings:
        sentences.append(
            "Mixing BM25 with TILDE or TILDEv2 changes MAP by "
            f"{_interval(findings['2.3-together'])} against the better of the two; the best "
            "weight of each query, were it known, adds "
            f"{_interval(findings['2.4-oracle'])}."
        )
    return sentences


def _interval(evidence: Evidence) -> str:
    return f"{evidence.estimate:+.3f} [{evidence.low:+.3f}, {evidence.high:+.3f}]"
