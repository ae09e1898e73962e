"""GFR, AWRF, NFaiRR and TExFAIR as measures of ir_measures, and so of PyTerrier, beside nDCG.

Importing this module registers them. What they look at beside run and qrels is named once: `groups`
takes the group memberships of documents, `texts` a collection and the terms that represent groups.
Then ``GFR@20``, ``AWRF(groups='HINDEX')@20``, ``NFaiRR@10`` and ``TExFAIR(proportional=False)@10``
are measures as others are, in `ir_measures.calc_aggregate`, in `ir_measures.parse_measure` and in
PyTerrier's ``pt.Experiment``.

>>> import ir_measures, pandas
>>> from equipoise import ir
>>> pages = pandas.DataFrame({"document": ["d1", "d2"], "small": [1.0, 0.0], "large": [0.0, 1.0]})
>>> ir.groups("SIZE", pages, kind="ordinal")
>>> qrels, run = {"t1": {"d1": 2}}, {"t1": {"d1": 2.0, "d2": 1.0}}
>>> found = ir_measures.calc_aggregate([ir_measures.nDCG, ir.GFR, ir.AWRF @ 2], qrels, run)
>>> {str(measure): round(value, 4) for measure, value in found.items()}
{'nDCG': 1.0, 'GFR': 0.5587, 'AWRF@2': 0.2263}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import measures, providers
from ir_measures.util import Metric, QrelsConverter, RunConverter

from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, judge
from equipoise.declare import choices_of, options_of
from equipoise.divergences import DIVERGENCES, refuse_order
from equipoise.loaders.documents import stream_documents
from equipoise.loaders.fairweb import read_memberships, read_target
from equipoise.loaders.gender_terms import read_terms
from equipoise.measures.gfr import UTILITIES, gfr_table
from equipoise.measures.ranking_bias import (
    TermCounts,
    TermGroups,
    awrf,
    count_terms,
    score_ranking_bias,
)
from equipoise.options import Attention, Tokens, Unrepresented
from equipoise.problems import need_columns

_COLUMNS = {
    "query_id": "topic",
    "qid": "topic",
    "doc_id": "document",
    "docno": "document",
    "relevance": "level",
}
_groups: dict[str, tuple[AttributeSet, pd.DataFrame]] = {}
_texts: dict[str, tuple[TermCounts, TermGroups]] = {}


def groups(
    name: str,
    memberships: str | Path | pd.DataFrame,
    target: str | Path | Sequence[float] = "uniform",
    *,
    kind: Literal["nominal", "ordinal"] = "nominal",
) -> None:
    """Name an attribute set: files of NTCIR FairWeb, or a table with a column of probabilities for each group.

    The table has a column document (docno, doc_id) and maybe topic (qid, query_id); without one it
    is for all topics. ``target``: the file, or the wanted share of each group. A name that is taken
    gets another meaning.
    """
    if isinstance(memberships, pd.DataFrame):
        table = memberships.rename(columns=_COLUMNS)
        need_columns(table, ["document"])
        names = tuple(
            str(column) for column in table.columns if column not in ("topic", "document")
        )
        attribute = AttributeSet(name, kind, names, np.ones(len(names)))
        if not isinstance(target, str | Path):
            attribute = attribute.with_target(list(target))
        elif target != "uniform":
            raise ValueError(
                f"target is {target}: with a table, it is uniform or the share of each group"
            )
        _groups[name] = attribute, table
        return
    attribute = read_target(str(target), name, kind)
    _groups[name] = attribute, read_memberships(memberships, attribute)


def texts(
    documents: str | Path | Iterable[tuple[str, str]],
    terms: str | Path | Iterable[tuple[str, str]],
    *,
    name: str = "texts",
    tokens: Tokens = "word",
) -> None:
    """Count the terms that represent groups in a collection: files or pairs of id and text, of term and group."""
    pairs = (
        read_terms(terms).itertuples(index=False, name=None)
        if isinstance(terms, (str, Path))
        else terms
    )
    found = TermGroups.from_pairs(pairs)
    stream = stream_documents(documents) if isinstance(documents, (str, Path)) else documents
    _texts[name] = count_terms(stream, found.terms, tokens=tokens), found


def _named(known: dict[str, Any], name: str | None, how: str) -> list[str]:
    """The names asked for, joined by +, or all there are."""
    found = list(known) if name is None else name.split("+")
    if not found or (unknown := [one for one in found if one not in known]):
        raise ValueError(
            f"{f'no {unknown[0]!r}; ' if found else ''}name it first: equipoise.ir.{how}(...)"
        )
    return found


def _default(function: Any, name: str) -> Any:
    return next(choice.value for choice in options_of(function) if choice.name == name)


class _Fairness(measures.Measure):
    """A measure that its own class computes; a topic for which a run has nothing has no value."""

    DEFAULT = float("nan")

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """Values by topic; ``run``: columns run, topic, document, rank, score; ``qrels``: topic, document, level."""
        raise NotImplementedError


def _info(dtype: Any, default: Any, desc: str, choices: Any = ()) -> measures.ParamInfo:
    more = {"choices": list(choices)} if choices else {}
    return measures.ParamInfo(dtype=dtype, default=default, desc=desc, **more)


def _members(
    name: str, run: pd.DataFrame, qrels: pd.DataFrame
) -> tuple[AttributeSet, pd.DataFrame]:
    """An attribute set and its memberships by topic; those for all topics become those of each topic's documents."""
    attribute, table = _groups[name]
    if "topic" not in table.columns:
        pairs = pd.concat([one[["topic", "document"]] for one in (run, qrels)])
        table = pairs.drop_duplicates().merge(table, on="document")
    return attribute, table


class _GFR(_Fairness):
    """Group fairness and relevance: what a user who leaves the list may expect (gfrc, Eq. 1)."""

    __name__ = NAME = "GFR"
    DEFAULT = 0.0
    SUPPORTED_PARAMS = {  # noqa: RUF012 - as ir_measures has it
        "cutoff": _info(int, _default(gfr_table, "cutoff"), "ranks that are looked at"),
        "groups": _info(str, None, "attribute sets, joined by +; all that are named by default"),
        "utility": _info(str, "iRBU", "utility", UTILITIES),
        "nominal": _info(str, "jsd", "divergence for nominal groups", DIVERGENCES),
        "ordinal": _info(str, "rnod", "divergence for ordinal groups", DIVERGENCES),
        "gains": _info(dict, None, "gain of each level; 2^level - 1 by default"),
        "unrepresented": _info(
            str, "uniform", "documents without membership", choices_of(Unrepresented)
        ),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """GFR of each topic of the qrels."""
        sets = {
            name: _members(name, run, qrels) for name in _named(_groups, self["groups"], "groups")
        }
        levels = range(1, max(2, int(qrels["level"].max())) + 1)
        found = gfr_table(
            run,
            qrels,
            {name: table for name, (_, table) in sets.items()},
            {name: attribute for name, (attribute, _) in sets.items()},
            gains=self["gains"] or {level: 2.0**level - 1 for level in levels},
            cutoff=self["cutoff"],
            order="score",
            unrepresented=self["unrepresented"],
            utilities={self["utility"]: UTILITIES[self["utility"]]},
            similarities={"nominal": [self["nominal"]], "ordinal": [self["ordinal"]]},
        )
        return found[found["measure"].str.startswith("GFR-")].set_index("topic")["value"].drop("")


class _AWRF(_Fairness):
    """Attention-weighted rank fairness: distance of the groups' exposure from its target; lower is fairer."""

    __name__ = NAME = "AWRF"
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _info(int, _default(gfr_table, "cutoff"), "ranks that are looked at"),
        "groups": _info(str, None, "attribute set; needed where several are named"),
        "distance": _info(str, "l1", "distance or divergence", ["l1", *DIVERGENCES]),
        "attention": _info(str, "log", "how attention falls along the list", choices_of(Attention)),
        "unrepresented": _info(
            str, "uniform", "documents without membership", choices_of(Unrepresented)
        ),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """AWRF of each topic of the run."""
        names = _named(_groups, self["groups"], "groups")
        if len(names) > 1:
            raise ValueError(
                f"AWRF looks at one attribute set: AWRF(groups={names[0]!r}), or one of {', '.join(names)}"
            )
        attribute, table = _members(names[0], run, qrels)
        if attribute.kind == "nominal":
            refuse_order([self["distance"]], others=["l1"])
        pairs = run[["topic", "document", "rank"]].merge(
            table, how="left", on=["topic", "document"]
        )
        shown = pairs[pairs["rank"] <= self["cutoff"]]
        without = shown.loc[shown[attribute.groups[0]].isna(), "document"]
        counts = len(shown) - len(without), len(shown)
        known = first(_groups[names[0]][1]["document"])
        judge(
            [
                Seen(
                    "the run",
                    "ranked documents",
                    f"a membership in {names[0]}",
                    *counts,
                    first(without),
                    known,
                )
            ]
        )
        absent = 1 / len(attribute.groups) if self["unrepresented"] == "uniform" else 0.0
        members = np.vstack(
            [
                pairs[list(attribute.groups)].fillna(absent).to_numpy(),
                np.zeros(len(attribute.groups)),
            ]
        )
        places = run.assign(row=np.arange(len(run))).pivot(  # noqa: PD010 - a place is there once
            index="topic", columns="rank", values="row"
        )
        rows = places.fillna(-1).to_numpy(dtype=np.int64)
        found = awrf(
            members[rows],
            [self["cutoff"]],
            attribute.target.tolist(),
            distance=self["distance"],
            attention=self["attention"],
            present=places.notna().to_numpy(),
        )
        return pd.Series(found[:, 0], index=places.index)


class _OfTexts(_Fairness):
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _info(
            int, _default(score_ranking_bias, "cutoffs")[0], "ranks that are looked at"
        ),
        "texts": _info(str, None, "name of the texts; needed where several are named"),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:  # noqa: ARG002
        """The measure for each topic of the run, by the function that scores everything."""
        names = _named(_texts, self["texts"], "texts")
        if len(names) > 1:
            raise ValueError(
                f"{self.NAME} looks at one collection: texts={names[0]!r}, or one of {', '.join(names)}"
            )
        plain = "(proportional=False)" if not self.params.get("proportional", True) else ""
        found = score_ranking_bias(run, *_texts[names[0]], cutoffs=[self["cutoff"]])
        return (
            found[found["measure"] == f"{self.NAME}{plain}@{self['cutoff']}"]
            .set_index("topic")["value"]
            .drop("")
        )


class _NFaiRR(_OfTexts):
    """Normalised fairness of retrieval results, the ideal being that of the whole collection; higher is fairer."""

    __name__ = NAME = "NFaiRR"


class _TExFAIR(_OfTexts):
    """Term exposure-based fairness; higher is fairer (thesis, Eq. 4.13)."""

    __name__ = NAME = "TExFAIR"
    SUPPORTED_PARAMS = _OfTexts.SUPPORTED_PARAMS | {
        "proportional": _info(bool, True, "with the discounting of RBDF")
    }


class _Evaluator(providers.Evaluator):
    def __init__(self, wanted: Iterable[Any], qrels: Any) -> None:
        self.qrels = (
            QrelsConverter(qrels)
            .as_pd_dataframe()
            .rename(columns=_COLUMNS)
            .astype({"topic": "str"})
        )
        self.qrels["level"] = self.qrels["level"].clip(lower=0).astype("int64")
        super().__init__(list(wanted), set(self.qrels["topic"]))

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        lists = (
            RunConverter(run).as_pd_dataframe().rename(columns=_COLUMNS).astype({"topic": "str"})
        )
        lists = lists.loc[
            lists["topic"].isin(self.qrels["topic"]), ["topic", "document", "score"]
        ].assign(run="run")
        lists = lists.sort_values(
            ["topic", "score", "document"], ascending=[True, False, False], ignore_index=True
        )
        lists["rank"] = lists.groupby("topic").cumcount() + 1
        wanted: Iterable[Any] = self.measures if len(lists) else ()
        for measure in wanted:
            for topic, value in measure.by_topic(lists, self.qrels).items():
                yield Metric(query_id=str(topic), measure=measure, value=float(value))


class _Provider(providers.Provider):
    NAME = "equipoise"

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        return _Evaluator(measures, qrels)


_KINDS: tuple[Any, ...] = (_GFR, _AWRF, _NFaiRR, _TExFAIR, _Provider)
GFR, AWRF, NFaiRR, TExFAIR, _provider = (kind() for kind in _KINDS)
_provider.SUPPORTED_MEASURES = [GFR, AWRF, NFaiRR, TExFAIR]
for _measure in _provider.SUPPORTED_MEASURES:
    measures.register(_measure)
ir_measures.DefaultPipeline.providers.append(providers.register(_provider))
