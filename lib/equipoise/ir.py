"""GFR, AWRF, NFaiRR and TExFAIR as measures of ir_measures, and so of PyTerrier.

Importing this module registers them. What they need besides run and qrels is named once: `groups`
takes the group memberships of documents, `texts` a collection and the terms that represent groups.
Then ``GFR@20``, ``AWRF(groups='HINDEX')@20``, ``NFaiRR@10`` and ``TExFAIR(proportional=False)@10``
are measures as others are, in `ir_measures.calc_aggregate`, in `ir_measures.parse_measure` and in
PyTerrier's ``pt.Experiment``.

>>> import ir_measures, pandas
>>> from equipoise import ir
>>> pages = pandas.DataFrame({"document": ["d1", "d2"], "small": [1.0, 0.0], "large": [0.0, 1.0]})
>>> ir.groups("SIZE", pages, kind="ordinal")
>>> qrels, run = {"t1": {"d1": 2}}, {"t1": {"d1": 2.0, "d2": 1.0}}
>>> scores = ir_measures.calc_aggregate([ir_measures.nDCG, ir.GFR, ir.AWRF @ 2], qrels, run)
>>> sorted((str(measure), round(value, 4)) for measure, value in scores.items())
[('AWRF@2', 0.2263), ('GFR', 0.5587), ('nDCG', 1.0)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import ir_measures
import pandas as pd
from ir_measures import measures, providers
from ir_measures.util import Metric, QrelsConverter, RunConverter

from equipoise.arrays import by_score, numbered
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, judge
from equipoise.divergences import DIVERGENCES
from equipoise.errors import listed
from equipoise.loaders.documents import stream_documents
from equipoise.loaders.gender_terms import read_terms
from equipoise.loaders.groups import read_sets
from equipoise.measures.gfr import UTILITIES, gfr_table
from equipoise.measures.ranking_bias import (
    TermCounts,
    TermGroups,
    awrf,
    count_terms,
    score_ranking_bias,
)
from equipoise.options import Tokens

_COLUMNS = {
    "query_id": "topic",
    "qid": "topic",
    "doc_id": "document",
    "docno": "document",
    "relevance": "level",
}
# What `groups` and `texts` have named: measures of ir_measures take words and numbers only.
_groups: dict[str, tuple[AttributeSet, pd.DataFrame]] = {}
_texts: dict[str, tuple[TermCounts, TermGroups]] = {}


def groups(
    name: str,
    memberships: Any,
    target: str | Path | Sequence[float] = "uniform",
    *,
    kind: Literal["nominal", "ordinal"] = "nominal",
) -> None:
    """Name an attribute set, and the groups of documents in it.

    ``memberships`` are a file, a data frame or the group of each document. A file has lines of
    NTCIR FairWeb, or is a table such as ``docno,gender``. A table may have a column topic (qid,
    query_id); without one it is for all topics. ``target`` is ``uniform``, a file, numbers as
    ``female:1,male:1``, or the target share of each group. An existing name is redefined.
    """
    target_text = str(target) if isinstance(target, (str, Path)) else ""
    found = read_sets(memberships, [name], {name: kind}, {name: target_text})
    table, attribute = found[name]
    if not isinstance(target, (str, Path)):
        attribute = attribute.with_target(list(target))
    _groups[name] = attribute, table


def texts(
    documents: str | Path | Iterable[tuple[str, str]],
    terms: str | Path | Iterable[tuple[str, str]],
    *,
    name: str = "texts",
    tokens: Tokens = "word",
) -> None:
    """Count the terms of groups in a collection: files, or pairs of id and text, term and group."""
    pairs: Any = terms
    if isinstance(terms, (str, Path)):
        pairs = read_terms(terms).itertuples(index=False, name=None)
    if isinstance(documents, (str, Path)):
        documents = stream_documents(documents)
    term_groups = TermGroups.from_pairs(pairs)
    _texts[name] = count_terms(documents, term_groups.terms, tokens=tokens), term_groups


def _names(table: dict[str, Any], names: str | None, param: str) -> list[str]:
    """The names asked for, joined by +, or all that have been named."""
    wanted = list(table) if names is None else names.split("+")
    if not wanted or not table.keys() >= set(wanted):
        known = f"must be of {listed(table)}; " if table else ""
        raise ValueError(
            f"invalid param {param}={names!r}: {known}declare it by equipoise.ir.{param}(...)"
        )
    return wanted


class _Fairness(measures.Measure):
    """A measure that its own class computes; a topic for which a run has nothing has no value."""

    DEFAULT = float("nan")

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """Values by topic; run and qrels have the columns of `tidy_runs` and `tidy_qrels`."""
        raise NotImplementedError


def _info(dtype: Any, default: Any, desc: str, choices: Any = ()) -> measures.ParamInfo:
    if not choices:
        return measures.ParamInfo(dtype=dtype, default=default, desc=desc)
    return measures.ParamInfo(dtype=dtype, default=default, desc=desc, choices=list(choices))


def _by_topic(scores: pd.DataFrame) -> pd.Series:
    """Values by topic, without the mean, whose topic is empty."""
    return scores.set_index("topic")["value"].drop("")


def _members(
    name: str, run: pd.DataFrame, qrels: pd.DataFrame
) -> tuple[AttributeSet, pd.DataFrame]:
    """An attribute set and its memberships by topic, also where they hold for all topics."""
    attribute, table = _groups[name]
    if "topic" not in table.columns:
        columns = ["topic", "document"]
        pairs = pd.concat([run[columns], qrels[columns]])
        table = pairs.drop_duplicates().merge(table, on="document")
    return attribute, table


class _GFR(_Fairness):
    """Group fairness and relevance: what a user who leaves the ranking may expect (gfrc, Eq. 1)."""

    __name__ = NAME = "GFR"
    DEFAULT = 0.0
    SUPPORTED_PARAMS = {  # noqa: RUF012 - as ir_measures has it
        "cutoff": _info(int, 20, "ranks that are evaluated"),
        "groups": _info(str, None, "attribute sets, joined by +; all that are named by default"),
        "utility": _info(str, "iRBU", "utility", UTILITIES),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """GFR of each topic of the qrels."""
        attributes, memberships = {}, {}
        for name in _names(_groups, self["groups"], "groups"):
            attributes[name], memberships[name] = _members(name, run, qrels)
        scores = gfr_table(
            run,
            qrels,
            memberships,
            attributes,
            cutoff=self["cutoff"],
            utilities={self["utility"]: UTILITIES[self["utility"]]},
            similarities={"nominal": ["jsd"], "ordinal": ["rnod"]},
        )
        return _by_topic(scores[scores["measure"].str.startswith("GFR-")])


class _AWRF(_Fairness):
    """Attention-weighted rank fairness, the distance of exposure from its target."""

    __name__ = NAME = "AWRF"
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _info(int, 20, "ranks that are evaluated"),
        "groups": _info(str, None, "attribute set; needed where several are named"),
        "distance": _info(str, "l1", "distance or divergence", ["l1", *DIVERGENCES]),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:
        """AWRF of each topic of the run; a document without membership has all groups alike."""
        names = _names(_groups, self["groups"], "groups")
        if len(names) > 1:
            raise ValueError(
                f"invalid param groups={self['groups']!r}: must be one set, as AWRF(groups="
                f"{names[0]!r})"
            )
        (name,) = names
        attribute, table = _members(name, run, qrels)
        divergence = DIVERGENCES.get(self["distance"])
        if divergence is not None and divergence.ordinal and attribute.kind == "nominal":
            raise ValueError("distance must be l1, jsd or nvd for nominal groups, without order")
        ranked = run.loc[run["rank"] <= self["cutoff"], ["topic", "document", "rank"]]
        ranked = ranked.merge(table, how="left", on=["topic", "document"])
        groups = list(attribute.groups)
        without = ranked.loc[ranked[groups[0]].isna(), "document"]
        n_found, needed = len(ranked) - len(without), f"a membership in {name}"
        ids = first(without), first(_groups[name][1]["document"])
        judge([Seen("the run", "ranked documents", needed, n_found, len(ranked), *ids)])
        values = {}
        for topic, rows in ranked.groupby("topic"):
            vectors = rows.sort_values("rank")[groups].fillna(1 / len(groups)).to_numpy()
            target = attribute.target.tolist()
            values[topic] = awrf(vectors, [self["cutoff"]], target, distance=self["distance"])[0]
        return pd.Series(values)


class _OfTexts(_Fairness):
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _info(int, 10, "ranks that are evaluated"),
        "texts": _info(str, None, "name of the texts; needed where several are named"),
    }

    def by_topic(self, run: pd.DataFrame, qrels: pd.DataFrame) -> pd.Series:  # noqa: ARG002
        """The measure for each topic of the run, by the function that scores everything."""
        names = _names(_texts, self["texts"], "texts")
        if len(names) > 1:
            raise ValueError(
                f"invalid param texts={self['texts']!r}: must be one collection, as {self.NAME}"
                f"(texts={names[0]!r})"
            )
        variant = "" if self.params.get("proportional", True) else "(proportional=False)"
        scores = score_ranking_bias(run, *_texts[names[0]], cutoffs=[self["cutoff"]])
        return _by_topic(scores[scores["measure"] == f"{self.NAME}{variant}@{self['cutoff']}"])


class _NFaiRR(_OfTexts):
    """Normalised fairness of retrieval results, by the whole collection; higher is fairer."""

    __name__ = NAME = "NFaiRR"


class _TExFAIR(_OfTexts):
    """Term exposure-based fairness; higher is fairer (thesis, Eq. 4.13)."""

    __name__ = NAME = "TExFAIR"
    SUPPORTED_PARAMS = _OfTexts.SUPPORTED_PARAMS | {
        "proportional": _info(bool, True, "with the discounting of RBDF")
    }


class _Evaluator(providers.Evaluator):
    def __init__(self, wanted: Iterable[Any], qrels: Any) -> None:
        table = _with_our_columns(QrelsConverter(qrels))
        self.qrels = table.assign(level=table["level"].clip(lower=0).astype("int64"))
        super().__init__(list(wanted), set(self.qrels["topic"]))

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        ranked = _with_our_columns(RunConverter(run))[["topic", "document", "score"]]
        ranked = ranked[ranked["topic"].isin(self.qrels["topic"])].assign(run="run")
        if not len(ranked):
            return
        topic_of_row, _ = numbered(ranked["topic"])
        order = by_score(topic_of_row, ranked["document"], ranked["score"])
        ranked = ranked.iloc[order].reset_index(drop=True)
        ranked["rank"] = ranked.groupby("topic").cumcount() + 1
        ours: Iterable[Any] = self.measures
        for measure in ours:
            for topic, value in measure.by_topic(ranked, self.qrels).items():
                yield Metric(query_id=str(topic), measure=measure, value=float(value))


def _with_our_columns(converter: Any) -> pd.DataFrame:
    """What a converter of ir_measures holds, as a table with this library's names of columns."""
    return converter.as_pd_dataframe().rename(columns=_COLUMNS).astype({"topic": "str"})


class _Provider(providers.Provider):
    NAME = "equipoise"

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        return _Evaluator(measures, qrels)


_KINDS: tuple[Any, ...] = (_GFR, _AWRF, _NFaiRR, _TExFAIR, _Provider)
GFR, AWRF, NFaiRR, TExFAIR, _provider = (kind() for kind in _KINDS)
# ir_measures has no entry point for providers: they are registered when this module is imported.
_provider.SUPPORTED_MEASURES = [GFR, AWRF, NFaiRR, TExFAIR]
for _measure in _provider.SUPPORTED_MEASURES:
    measures.register(_measure)
ir_measures.DefaultPipeline.providers.append(providers.register(_provider))
