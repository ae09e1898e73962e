"""The measures of the library as a table: formula, range, ideal, direction, source, options and their defaults.

Only what the code cannot say of itself is declared here: the name of a measure, its range, its ideal, whether more is
better, and the works it comes from. The meaning, the formula and the place in the source are read from the function's
documentation, the options and their defaults from its signature, so that the table cannot fall behind the code.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equipoise import divergences, project
from equipoise.measures import attribution, gfr, gfrc, gfrc2, orders, protocol, rank_overlap, ranking_bias, trees

Direction = Literal["higher is better", "lower is better", "neither"]


@dataclass(frozen=True)
class Option:
    """A choice that a measure leaves open.

    ``choices``: the words that may be given, where there are only some; else empty.
    """

    name: str
    default: str
    choices: str


@dataclass(frozen=True)
class Measure:
    """A measure, declared.

    ``family``: Heading under which it is listed. ``function``: That computes it; its documentation holds the
    meaning, the formula and the place in the source. ``range``: Smallest and largest value. ``ideal``: Value of the
    best system. ``sources``: Keys in ``data/published/sources.bib``. ``formula``: TeX, only where the documentation
    of the function gives none.
    """

    name: str
    family: str
    function: Callable[..., Any]
    range: str
    ideal: str
    direction: Direction
    sources: tuple[str, ...]
    formula: str = ""

    def __post_init__(self) -> None:
        """Take the formula from the documentation, unless it is given."""
        if not self.formula:
            block = re.search(r"^\.\. math::[ ]?(.+?)(?:\n[ ]*\n(?=\S)|\Z)", self._documentation, re.S | re.M)
            if block is None:
                raise ValueError(f"{self.path} documents no formula; give one")
            object.__setattr__(self, "formula", " ".join(block[1].split()))

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def anchor(self) -> str:
        """Name for links to it: module and name in lower case, with hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.function.__module__.split('.')[-1]} {self.name}".lower()).strip("-")

    @property
    def path(self) -> str:
        """Where to import it from."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def meaning(self) -> str:
        """First line of the function's documentation."""
        return self._documentation.partition("\n")[0].replace("`", "")

    @property
    def where(self) -> str:
        """Place in the source: the first paragraph of the documentation's notes."""
        notes = re.search(r"^Notes\n-+\n(.+?)(?:\n\n|\Z)", self._documentation, re.S | re.M)
        return re.sub(r":math:|`", "", " ".join(notes[1].split())) if notes else ""

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the function: every parameter with a default."""
        hints = typing.get_type_hints(self.function)
        found = []
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.default is inspect.Parameter.empty:
                continue
            hint = hints.get(parameter.name)
            choices = ", ".join(map(str, _words(hint)))
            found.append(Option(parameter.name, _written(parameter.default), choices))
        return tuple(found)


def _words(hint: Any) -> list[str]:
    """Literal words within a type, in their order."""
    if typing.get_origin(hint) is Literal:
        return [word for word in typing.get_args(hint) if isinstance(word, str)]
    return [word for part in typing.get_args(hint) for word in _words(part)]


def _written(value: Any) -> str:
    """A default as one would write it: functions by name, read-only mappings as plain ones."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_written(item)}" for key, item in value.items()) + "}"
    if callable(value):
        return str(value.__name__)
    return repr(value)


_DISTRIBUTIONS, _RANKED = "Divergences between distributions over groups", "Ranked lists: group fairness and relevance"
_CONVERSATIONS, _TERMS = "Conversations: GFRC and GFRC2", "Ranked lists: bias in their terms"
_OVERLAP, _PROTOCOL = "Overlap of rankings", "Protocol and order of conversations"
_ATTRIBUTION = "Answers: attribution to their sources"
_HIGHER, _LOWER, _NEITHER = "higher is better", "lower is better", "neither"
_CHAPTER_5 = ("thesis-ch5", "thesis")


def _declare(family: str, *rows: tuple[Any, ...]) -> list[Measure]:
    return [Measure(name, family, *rest) for name, *rest in rows]


MEASURES: tuple[Measure, ...] = (
    *_declare(
        _DISTRIBUTIONS,
        ("JSD", divergences.jsd, "0 to 1 (bits)", "0", _LOWER, ("sakai2021",)),
        ("NVD", divergences.nvd, "0 to 1", "0", _LOWER, ("sakai2021",)),
        ("NMD", divergences.nmd, "0 to 1", "0", _LOWER, ("sakai2021",)),
        ("RNOD", divergences.rnod, "0 to 1", "0", _LOWER, ("sakai2021",)),
        (
            "DistrSim",
            divergences.distribution_similarity,
            "0 to 1",
            "1",
            _HIGHER,
            ("gfrc", "gfrc2"),
            r"DistrSim(D \| D_*) = 1 - divergence(D, D_*)",
        ),
    ),
    *_declare(
        _RANKED,
        (
            "Expected utility and DistrSim",
            gfr.gfr_components,
            "0 to 1",
            "close to 1",
            _HIGHER,
            ("sakai2023", "chapelle2009"),
        ),
        ("GFR", gfr.gfr, "0 to 1", "close to 1", _HIGHER, ("gfrc", "sakai2023")),
        (
            "GFR of runs",
            gfr.gfr_table,
            "0 to 1",
            "close to 1",
            _HIGHER,
            ("gfrc", "sakai2023"),
            r"GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k)"
            r" + \sum_{m=1}^{M} w_m DistrSim^m(L, k) \Bigr)",
        ),
    ),
    *_declare(
        _CONVERSATIONS,
        ("pw", gfrc.nugget_weights, "0 to 1", "1", _HIGHER, ("gfrc", "gfrc2")),
        ("R", gfrc.relevance, "0 to 1", "1", _HIGHER, ("gfrc", "gfrc2")),
        ("GF and GFRC", gfrc.gfrc, "0 to 1", "1", _HIGHER, ("gfrc", "gfrc2")),
        ("GNP", gfrc2.graded_nugget_precision, "0 to 1", "1", _HIGHER, ("gfrc2",)),
        ("EGNP, EGF and GFRC2", gfrc2.gfrc2, "0 to 1", "close to 1", _HIGHER, ("gfrc2",)),
        (
            "Expectation over a conversation tree",
            trees.expected_scores,
            "that of the measure",
            "that of the measure",
            _NEITHER,
            ("gfrc", "gfrc2"),
            r"E[M] = \sum_{\text{leaf } l} P(l)\, M(C_l), \quad"
            r" P(l) = \prod_{v \text{ on the way to } l} P(v \mid parent(v))",
        ),
    ),
    *_declare(
        _TERMS,
        (
            "Neutrality",
            ranking_bias.neutrality,
            "0 to 1 for two groups with equal targets",
            "1",
            _HIGHER,
            ("rekabsaz2021", "thesis"),
        ),
        ("FaiRR", ranking_bias.fairr, "from 0, no bound", "IFaiRR", _HIGHER, ("rekabsaz2021", "thesis")),
        (
            "NFaiRR",
            ranking_bias.nfairr,
            "0 to 1",
            "1",
            _HIGHER,
            ("rekabsaz2021", "thesis"),
            r"NFaiRR(q, k) = \frac{FaiRR(q, k)}{IFaiRR(q, k, S)}",
        ),
        ("AWRF", ranking_bias.awrf, "from 0; to 2 with L1", "0", _LOWER, ("sapiezynski2019", "thesis")),
        ("RBDF", ranking_bias.rbdf, "0 to 1", "none", _NEITHER, ("thesis-ch4", "thesis")),
        ("TED", ranking_bias.ted, "0 to max(TED)", "0", _LOWER, ("thesis-ch4", "thesis")),
        ("TExFAIR", ranking_bias.texfair, "0 to max(TED)", "max(TED)", _HIGHER, ("thesis-ch4", "thesis")),
        ("ARB", ranking_bias.arb, "no bounds", "0", _NEITHER, ("rekabsaz2020",)),
    ),
    *_declare(
        _OVERLAP,
        ("RBO", rank_overlap.rbo, "0 to 1", "1", _HIGHER, ("webber2010", "corsi2024")),
        (
            "CRBO",
            rank_overlap.crbo,
            "0 to 1",
            "1",
            _HIGHER,
            ("thesis-ch4", "thesis"),
            r"CRBO(q) = RBO\bigl(L_q(\text{collection}),\, L_q(\text{counterfactual}),\, p\bigr)",
        ),
    ),
    *_declare(
        _PROTOCOL,
        ("Useful turns and recovery", protocol.shares, "0 to 1", "1", _HIGHER, ("gfrc",)),
        (
            "Preference",
            orders.preference,
            "0 to 1",
            "none",
            _NEITHER,
            ("permutations",),
            r"wins(a, b) = \frac{|\{\pi : M_a(\pi) > M_b(\pi)\}|}{|\{\pi\}|}",
        ),
        ("Stability of a ranking", orders.ranking_stability, "-1 to 1", "1", _HIGHER, ("permutations",)),
    ),
    *_declare(
        _ATTRIBUTION,
        ("Precision and recall of attribution", attribution.score_answers, "0 to 1", "1", _HIGHER, _CHAPTER_5),
        ("CAS", attribution.cas, "0 to 1", "0", _LOWER, _CHAPTER_5),
        ("CAB", attribution.cab, "-1 to 1", "0", _NEITHER, _CHAPTER_5),
        ("AC", attribution.attribution_confidence, "0 to 1", "none", _NEITHER, _CHAPTER_5),
        ("Exact match", attribution.exact_match, "0 or 1", "1", _HIGHER, (*_CHAPTER_5, "rajpurkar2016")),
    ),
)
"""Every measure, in the order of the families."""


def references() -> dict[str, str]:
    """BibTeX entries of the works cited, by key, in the order of ``data/published/sources.bib``."""
    # not noted as used: no report computes anything from it
    text = (project.root() / "data" / "published" / "sources.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    keyed = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    if len(keyed) < len(entries):
        raise ValueError("data/published/sources.bib holds a key twice")
    return keyed
