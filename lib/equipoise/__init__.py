"""Measures of bias and robustness in search and conversational systems.

>>> import equipoise, pandas
>>> size = {"kind": "ordinal", "groups": ["small", "large"], "target": "uniform"}
>>> sets = equipoise.attribute_sets({"SIZE": size})
>>> rows = {"run": ["mine"], "topic": "t1", "turn": 1, "start": 5, "end": 6, "level": 2}
>>> nuggets = equipoise.nugget_table(pandas.DataFrame(rows).assign(SIZE="1/4 3/4"), sets)
>>> scores = equipoise.gfrc2(nuggets, sets, patience=100)
>>> scores.round(5).to_dict("split")["data"][-1]
['mine', 't1', '', 'GFRC2', 0.00625]

The names below are stable, as the command line is; they are loaded when first used. Everything else
may move.
"""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

_FRONT_DOOR = {
    "agreement": "agreement",
    "attributes": "AttributeSet attribute_sets read_attributes",
    "catalogue": "MEASURES references",
    "divergences": "DIVERGENCES distribution_similarity jsd nmd nvd rnod",
    "loaders.answers": "read_answers",
    "loaders.documents": "stream_documents",
    "loaders.fairweb": "read_memberships read_target",
    "loaders.gender_terms": "read_terms",
    "loaders.groups": "tidy_memberships",
    "loaders.scores": "read_scores",
    "loaders.transcripts": "nugget_frame read_transcripts turn_frame",
    "loaders.trec": "read_qrels read_run read_runs",
    "measures.attribution": "cab cas score_answers score_attribution verdicts",
    "measures.citations": "citation_share",
    "measures.exposure": "exposure_over_relevance exposure_verdicts",
    "measures.gfr": "gfr_clusters gfr_table",
    "measures.gfrc": "gfrc nugget_scores turns",
    "measures.gfrc2": "gfrc2 user_clusters",
    "measures.rank_overlap": "crbo rbo",
    "measures.ranking_bias": "TermGroups awrf count_terms fairr nfairr score_ranking_bias ted"
    " texfair",
    "permutations.scores": "preference ranking_stability",
    "nuggets": "NuggetTable nugget_table read_nuggets",
    "errors": "InputError Problem",
    "statistics": "mean_interval compare_pairs compare_systems corrected leaderboard",
    "tidy": "tidy_qrels tidy_runs tidy_scores",
}
_MODULE_OF = {}
for _module, _names in _FRONT_DOOR.items():
    for _name in _names.split():
        _MODULE_OF[_name] = _module

# Here a measure's name is its function of tables, as gfrc is; in its module gfr is the kernel.
_TABLES = {"gfr": "gfr_table"}
_MODULE_OF["gfr"] = _MODULE_OF["gfr_table"]

__all__ = sorted(_MODULE_OF)

# In their modules they take tidy tables only.
_OF_TABLES = {"gfr_table", "gfr_clusters", "exposure_over_relevance", "crbo", "score_ranking_bias"}
_OF_TABLES |= {"compare_systems"}


def _with_tidy_tables(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make dictionaries, data frames and files tidy, once, before a function of tables."""
    from equipoise import tidy
    from equipoise.loaders.groups import tidy_sets

    reader_of = {"qrels": tidy.tidy_qrels, "scores": tidy.tidy_scores}
    reader_of |= dict.fromkeys(["runs", "original", "counterfactual"], tidy.tidy_runs)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        given = signature.bind_partial(*args, **options)
        tables = given.arguments
        for name, table in tables.items():
            if name in reader_of:
                tables[name] = reader_of[name](table)
        if "memberships" in signature.parameters:
            memberships, attributes = tables.get("memberships"), tables.get("attributes")
            found = tidy_sets({} if memberships is None else memberships, attributes or {})
            tables["memberships"], tables["attributes"] = found
        return function(*given.args, **given.kwargs)

    return call


class _OfTables:
    """A function of tables, imported when first used: pandas takes a third of a second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__module__ = f"equipoise.{_MODULE_OF[name]}"

    @functools.cached_property
    def _function(self) -> Any:
        module = import_module(f"equipoise.{_MODULE_OF[self._name]}")
        return _with_tidy_tables(getattr(module, _TABLES.get(self._name, self._name)))

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return _OfTables, (self._name,)

    # As help, signature and isroutine look at it.
    __class__ = property(lambda self: type(self._function))
    __doc__ = property(lambda self: self._function.__doc__)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    value: Any
    if _TABLES.get(name, name) in _OF_TABLES:
        value = _OfTables(name)
    else:
        value = getattr(import_module(f"equipoise.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # so that it is looked up once
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULE_OF]
