"""What the claims of thesis chapter 2 rest on: mean MAP over all query facets, resampled by the papers that make them.

A facet's rankings are those of its paper, so a paper is drawn with all of its facets. What the
thesis prints of the same difference is the mean over its four tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence, stated
from equipoise_studies.query_by_example.study import Study
from equipoise_studies.query_by_example.tables import BM25_ROW, QUERIES

_PRINTED = "counted in the printed cells"
Weighed = Callable[[Integers], float]
"""A statistic of the facets, from how often each was drawn."""


def _of_papers(
    said: str, queries: pd.Index, statistic: Weighed, printed: float | None = None
) -> Evidence:
    """A statistic with its interval over the query papers; ``queries`` names the paper of each facet."""
    paper, names = pd.factorize(queries)
    found = resampled(
        lambda drawn: statistic(np.bincount(drawn, minlength=len(names))[paper]),
        len(names),
        np.random.default_rng(0),
    )
    return Evidence(said, *found, n=len(names), printed=printed)


def _wide(values: pd.DataFrame) -> pd.DataFrame:
    """MAP, a row for each facet of a paper, a column for each run."""
    return values.query("measure == 'MAP'").pivot_table(
        index=["query", "task"], columns="run", values="value"
    )


def _printed(table: pd.DataFrame, ahead: Sequence[str], behind: Sequence[str]) -> float:
    """Difference of the mean printed MAP of two lists of models."""
    return float(
        _printed_means(table)[list(ahead)].mean() - _printed_means(table)[list(behind)].mean()
    )


def _printed_means(table: pd.DataFrame) -> pd.Series:
    return _printed_cells(table).mean(axis=1)


def _printed_cells(table: pd.DataFrame) -> pd.DataFrame:
    return (
        table.set_index("model").filter(like="MAP").map(lambda text: float(text.rstrip("%")) / 100)
    )


def _quoted(claim: str) -> float:
    """Mean of the weights that the thesis names in the sentence of a claim."""
    return float(
        np.mean(
            [float(number) for number in re.findall(r"0\.\d", stated("thesis").loc[claim, "quote"])]
        )
    )


def _ahead(
    wide: pd.DataFrame,
    ahead: Sequence[str],
    behind: Sequence[str],
    said: str,
    printed: float | None = None,
) -> Evidence:
    """How far the mean of some runs is above the mean of others."""
    gap = (wide[list(ahead)].mean(axis=1) - wide[list(behind)].mean(axis=1)).to_numpy()
    return _of_papers(
        said, wide.index.get_level_values("query"), lambda n: float(n @ gap / n.sum()), printed
    )


def _share_ahead(
    wide: pd.DataFrame, run: str, others: Sequence[str], said: str, printed: float
) -> Evidence:
    """In how many pairs of a task and another run a run has the higher mean."""
    gaps = wide[[run]].to_numpy() - wide[list(others)].to_numpy()
    task = pd.factorize(wide.index.get_level_values("task"))[0]
    member = (task == np.arange(task.max() + 1)[:, None]).astype(float)
    return _of_papers(
        said,
        wide.index.get_level_values("query"),
        lambda n: float(((member * n) @ gaps > 0).mean()),
        printed,
    )


def of_rankers(study: Study, values: pd.DataFrame, printed: pd.DataFrame) -> dict[str, Evidence]:
    """Claims on Table 2.1, by name; what there is no ranker for is not testable."""
    wide, cells = _wide(values), _printed_cells(printed)
    rows = study.rows(printed)
    paper = wide.index.get_level_values("query")
    lost = _unlearned(study, wide.mean())

    def ahead(
        first: Sequence[str], second: Sequence[str], said: str, theirs: float | None = None
    ) -> Evidence:
        if absent := [row for row in (*first, *second) if row not in rows]:
            return Evidence("MAP", reason=f"nothing stands for {' and '.join(absent)}")
        if unlearned := [rows[row] for row in (*first, *second) if rows[row] in lost]:
            said = f"{' and '.join(unlearned)}: trained, and still nearer to a random order than to BM25"
            return Evidence("MAP", reason=said)
        names = [rows[row] for row in first], [rows[row] for row in second]
        return _ahead(
            wide, *names, said, _printed(printed, first, second) if theirs is None else theirs
        )

    general, scientific = ["TILDE BERT", "TILDEv2 BERT"], ["TILDE SciBERT", "TILDEv2 SciBERT"]
    expanded = [f"TILDEv2 SciBERT expansion w/ m={m}" for m in (200, 300)]
    zero_shot, both = ["TILDE MSMARCO", "TILDEv2 MSMARCO"], [*general, *scientific]
    cross = "Cross-Encoder SciBERT"
    alike = study.same_encoder(cross, both)
    learned = [row for row in both if rows.get(row) not in lost] or both
    learned_names = [rows.get(row, row) for row in learned]
    found = {
        "2.1-cross-encoder": ahead(
            [cross],
            alike,
            "MAP of the cross-encoder less the mean of TILDE and TILDEv2 with the same encoder",
        ),
        "2.1-v2-above": ahead(
            general[1:], general[:1], "MAP of TILDEv2 less that of TILDE, general encoder"
        ),
        "2.1-scientific": ahead(
            scientific, general, "mean gain in MAP of the scientific encoder over the general one"
        ),
        "2.1-expansion": ahead(
            ["TILDE SciBERT"], expanded, "MAP of TILDE less that of TILDEv2 over expanded documents"
        ),
        "2.1-expansion-bm25": ahead(
            [BM25_ROW], expanded, "MAP of BM25 less that of TILDEv2 over expanded documents"
        ),
        "2.1-zero-shot": ahead(
            zero_shot, both, "MAP of TILDE and TILDEv2 zero-shot less that of the fine-tuned ones"
        ),
        "2.1-competitive": ahead(
            [BM25_ROW], learned, f"MAP of BM25 less the mean of {', '.join(learned_names)}"
        ),
    }
    unlearned = [rows[row] for row in both if rows.get(row) in lost]
    if unlearned or not set(both) <= set(rows):
        reason = f"nothing to compare: {' and '.join(unlearned) or 'a ranker'} has not learned its task, or is absent"
        found |= {
            name: Evidence("MAP", reason=reason)
            for name in ("2.1-scientific-tilde", "2.1-most-tasks")
        }
    else:
        gain = (
            wide[[rows[row] for row in scientific]].to_numpy()
            - wide[[rows[row] for row in general]].to_numpy()
        )
        found["2.1-scientific-tilde"] = _of_papers(
            "gain in MAP of the scientific encoder: TILDE's less TILDEv2's",
            paper,
            lambda n: float(n @ (gain[:, 0] - gain[:, 1]) / n.sum()),
            float(-_printed_means(printed)[both].to_numpy() @ [1, -1, -1, 1]),
        )
        found["2.1-most-tasks"] = _share_ahead(
            wide,
            BM25_ROW,
            [rows[row] for row in general],
            "share of tasks in which BM25 is above TILDE, and TILDEv2, with the general encoder",
            float((cells.loc[BM25_ROW] > cells.loc[general]).to_numpy().mean()),
        )
    return found


def _unlearned(study: Study, means: pd.Series) -> list[str]:
    """Trained rankers of a replica that have not learned their task: they are nearer to a random order than to BM25."""
    random = [system.name for system in study.systems.values() if system.kind == "random"]
    if study.stands_for == "thesis" or not random:
        return []
    middle = (means[random].mean() + means[BM25_ROW]) / 2
    return [
        system.name
        for system in study.systems.values()
        if system.training and means[system.name] < middle
    ]


def of_tokenisations(
    study: Study, values: pd.DataFrame, printed: pd.DataFrame
) -> dict[str, Evidence]:
    """Claims on Table 2.2, by name, on the rows that there are."""
    ours = study.rows(printed)
    wide, theirs = _wide(values), _printed_means(printed)[list(ours)]
    pieces, others = (
        [row for row in ours if row.endswith("-Token") == found] for found in (True, False)
    )
    scored, paper = wide[list(ours.values())].to_numpy(), wide.index.get_level_values("query")
    best = list(ours).index(BM25_ROW)
    language = [row for row in ours if row.startswith("LM ")]
    matched = [row.replace("LM ", "BM25 ") for row in language]
    pairs = (
        wide[[ours[row] for row in matched]].to_numpy()
        - wide[[ours[row] for row in language]].to_numpy()
    )

    def lead(n: Integers) -> float:
        mean = n @ scored / n.sum()
        return float(mean[best] - np.delete(mean, best).mean())

    found = {
        "2.2-stm2-best": _of_papers(
            "MAP of BM25 STM2 less the mean of the others",
            paper,
            lead,
            float(theirs.iloc[best] - np.delete(theirs.to_numpy(), best).mean()),
        ),
        "2.2-bm25-above": _of_papers(
            "mean lead in MAP of BM25 over the language model with the same tokens, "
            f"ahead in {int((pairs.mean(axis=0) > 0).sum())} of {len(language)}",
            paper,
            lambda n: float((n @ pairs / n.sum()).mean()),
            float(theirs[matched].mean() - theirs[language].mean()),
        ),
    }
    found["2.2-word-pieces"] = Evidence("MAP", reason="no word pieces are among the rows")
    if pieces:
        names = [ours[row] for row in pieces], [ours[row] for row in others]
        said = "mean MAP over word pieces less that over the three other analysers, both models"
        found["2.2-word-pieces"] = _ahead(wide, *names, said, _printed(printed, pieces, others))
    return found


def of_one_weight(
    together: pd.DataFrame, swept: pd.DataFrame, names: Sequence[str], printed: pd.DataFrame
) -> dict[str, Evidence]:
    """Claims on Figure 2.3 and Table 2.3, by name; ``names``: what TILDE and TILDEv2 with BM25 are called."""
    wide, means = _wide(together), _printed_means(printed)
    paper = wide.index.get_level_values("query")
    scored = wide[
        [*names, BM25_ROW, *(name.removeprefix(f"{BM25_ROW} + ") for name in names)]
    ].to_numpy()

    def gain(n: Integers) -> float:
        mean = n @ scored / n.sum()
        return float((mean[:2] - np.maximum(mean[2], mean[3:])).mean())

    theirs = means.to_numpy()
    steps = swept.query("measure == 'MAP'").pivot_table(
        index=["query", "task"], columns=["fusion", "alpha"], values="value", sort=False
    )

    def best_alpha(label: str) -> tuple[pd.Index, Weighed]:
        curve = steps[label].to_numpy()
        alphas = steps[label].columns.to_numpy(dtype=float)
        return steps.index.get_level_values("query"), lambda n: float(alphas[(n @ curve).argmax()])

    cells = printed.set_index("model").drop(columns="row").map(lambda text: float(text.rstrip("%")))
    fused, parts = (
        cells.iloc[3:].to_numpy(),
        np.maximum(cells.iloc[[0]].to_numpy(), cells.iloc[1:3].to_numpy()),
    )
    return {
        "2.3-tilde-weight": _of_papers(
            "weight of BM25 with the highest mean MAP",
            *best_alpha(names[0]),
            _quoted("2.3-tilde-weight"),
        ),
        "2.3-v2-weight": _of_papers(
            "weight of BM25 with the highest mean MAP",
            *best_alpha(names[1]),
            _quoted("2.3-v2-weight"),
        ),
        "2.3-together": _of_papers(
            "mean gain in MAP of both interpolations over the better of their parts",
            paper,
            gain,
            float((theirs[3:] - np.maximum(theirs[0], theirs[1:3])).mean()),
        ),
        "2.3-exceptions": Evidence(
            "printed cells in which an interpolation is not above both parts",
            int((fused <= parts).sum()),
            reason=_PRINTED,
        ),
    }


def of_oracle(
    tuned: pd.DataFrame,
    best: pd.DataFrame,
    names: Sequence[str],
    printed: pd.DataFrame,
    checks: pd.DataFrame,
) -> dict[str, Evidence]:
    """Claims on Table 2.4, by name; ``checks`` are those of the printed tables against one another."""
    facets = ["query", "task"]
    of_map = best.query("measure == 'MAP'")
    chosen = of_map.pivot_table(index=facets, columns="fusion", values="alpha")[list(names)]
    reached = of_map.pivot_table(index=facets, columns="fusion", values="value")[list(names)]
    alphas, paper = chosen.to_numpy(), chosen.index.get_level_values("query")
    margin = (reached - _wide(tuned).loc[reached.index, list(names)]).mean(axis=1).to_numpy()
    rows = printed.set_index(["fusion", "statistic"]).filter(like="MAP")

    def spread(n: Integers) -> float:
        drawn: Floats = np.repeat(alphas, n, axis=0)
        low, high = np.percentile(drawn, [25, 75], axis=0)
        return float((high - low) @ [-1, 1])

    def of(statistic: str) -> float:
        means = rows.xs(statistic, level="statistic").astype(float).mean(axis=1).to_numpy()
        return float(means[1] - means[0])

    failing = checks[checks["check"].str.startswith(("oracle", "mean weight", "rows of"))]
    return {
        "2.4-oracle": _of_papers(
            "mean gain in MAP of the oracle over one tuned weight",
            paper,
            lambda n: float(n @ margin / n.sum()),
        ),
        "2.4-bm25-alone": _of_papers(
            "share of facets for which BM25 alone is best: with TILDEv2 less with TILDE",
            paper,
            lambda n: float(n @ (alphas == 1) @ [-1, 1] / n.sum()),
            of("queries with optimal alpha 1") / QUERIES,
        ),
        "2.4-spread": _of_papers(
            "quartile range of the best weights: TILDEv2's less TILDE's",
            paper,
            spread,
            of("IQR of the optimal alpha"),
        ),
        "2.4-consistent": Evidence(
            f"of {int(failing['cells'].sum())} relations between printed cells, those that do not hold",
            int((failing["cells"] - failing["hold"]).sum()),
            reason=_PRINTED,
        ),
    }


def of_prediction(predictions: pd.DataFrame) -> dict[str, Evidence]:
    """Whether a weight predicted from the query gains on one weight."""
    gains = predictions.query("measure == 'MAP'").pivot_table(
        index=["query", "task"], columns=["weight", "fusion"], values="value"
    )
    gap = (gains["predicted"] - gains["one weight"]).mean(axis=1).to_numpy()
    said = "mean gain in MAP of a predicted weight over one weight, both interpolations"
    return {
        "2.4-predicted": _of_papers(
            said, gains.index.get_level_values("query"), lambda n: float(n @ gap / n.sum())
        )
    }


def answer(study: Study, values: pd.DataFrame, found: Mapping[str, Evidence]) -> list[str]:
    """What the chapter's run says, in two or three sentences."""
    mean = _wide(values)[BM25_ROW].groupby("query").mean().mean()
    said = [
        f"On {study.collection.about}, BM25 reaches a mean average precision of {mean:.3f} over the query papers."
    ]
    lead = found["2.1-competitive"]
    if lead.estimate is not None:
        small = ", whose encoders are small here" if study.stands_for == "replica" else ""
        said.append(
            f"Compared with the mean of TILDE and TILDEv2 where they learned their task{small}, that is "
            f"{_interval(lead)}, over {lead.n:,} papers."
        )
    if "2.3-together" in found:
        said.append(
            f"Mixing BM25 with TILDE or TILDEv2 changes MAP by {_interval(found['2.3-together'])} against the better "
            f"of the two; the best weight of each query, were it known, adds {_interval(found['2.4-oracle'])}."
        )
    return said


def _interval(found: Evidence) -> str:
    return f"{found.estimate:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
