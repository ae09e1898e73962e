"""Claims: what a paper says, or we add, the number it rests on, and the verdict that follows.

The words stand in ``data/published/<paper>/claims.csv``, with what would contradict them; a
notebook brings the number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_columns
from equipoise.statistics import units_to_decide
from equipoise_compendium import project

KINDS = {
    "finding": "the paper's own words",
    "consistency": "printed numbers against printed numbers or words",
    "beyond": "ours: errata, placebos, questions that the papers leave",
}
VERDICTS = {
    "holds": "the interval allows nothing that would contradict it",
    "contradicted": "the interval, widened to 99 %, allows only what contradicts it",
    "undecided": "the interval, or the wider one, allows both",
    "not testable": "what it speaks of is not in the data at hand",
}
STATED = ["claim", "artefact", "kind", "statement", "quote", "place", "contradicted_if"]
"""Columns of a file of claims; ``claim`` is a name, such as ``2.2-stems``."""
COLUMNS = [
    "paper",
    "artefact",
    "claim",
    "kind",
    "quote",
    "place",
    "verdict",
    "estimate",
    "low",
    "high",
    "contradicted_if",
    "n",
    "n_needed",
    "data",
    "notebook",
    "printed",
    "evidence",
    "reason",
    "name",
]
"""Columns of ``reports/claims.csv``."""
_NUMBERS = {"estimate", "low", "high", "printed", "n", "n_needed"}
_FROM_95_TO_99 = 2.576 / 1.96
"""How much wider an interval of 99 % is than one of 95 %, where errors are normal."""
_SIGNS = {"<": "below", "<=": "at or below", ">": "above", ">=": "at or above"}
_NUMBER = r"([+-]?\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class Evidence:
    """The number that a claim rests on: an estimate and its 95 % interval, from ``n`` units.

    ``said`` says what the number is, with its unit; ``printed`` is what the paper prints of it.
    ``reason`` says why there is no interval (nothing was sampled) or, without an estimate too, why
    the claim is not testable here. ``data``: what it was computed on, where that is not what the
    artefact was.
    """

    said: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    printed: float | None = None
    reason: str = ""
    data: str = ""

    def __post_init__(self) -> None:
        numbers = [self.estimate, self.low, self.high, self.printed]
        if any(number is not None and math.isnan(number) for number in numbers):
            raise ValueError(f"{self.said}: NaN is no evidence")
        no_interval = self.low is None and self.high is None
        half_interval = (self.low is None) != (self.high is None)
        if half_interval or no_interval != bool(self.reason):
            raise ValueError(f"{self.said}: give an interval, or else the reason why there is none")
        if self.low is None or self.high is None:
            return
        if self.estimate is None or not self.low <= self.estimate <= self.high:
            raise ValueError(
                f"{self.said}: {self.estimate} is not within [{self.low}, {self.high}]"
            )


@dataclass(frozen=True)
class Allowed:
    """The values that do not contradict a claim: ``low`` to ``high``, without both if ``open``."""

    low: float
    high: float
    open: bool = False

    @classmethod
    def parse(cls, contradicted_if: str) -> Allowed:
        """From what contradicts: ``< 1``, ``<= 1``, ``> 1``, ``>= 1`` or ``outside [-1, 1]``."""
        bound = re.fullmatch(rf"(<|>)(=?) {_NUMBER}", contradicted_if)
        if bound:
            edge = float(bound[3])
            if bound[1] == "<":
                return cls(edge, math.inf, open=bool(bound[2]))
            return cls(-math.inf, edge, open=bool(bound[2]))
        span = re.fullmatch(rf"outside \[{_NUMBER}, {_NUMBER}\]", contradicted_if)
        if span:
            return cls(float(span[1]), float(span[2]))
        raise ValueError(
            f"{contradicted_if!r} says not what contradicts: "
            "write < 1, <= 1, > 1, >= 1 or outside [-1, 1]"
        )

    def __contains__(self, value: float) -> bool:
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def excludes(self, low: float, high: float) -> bool:
        """Whether every value from ``low`` to ``high`` contradicts the claim."""
        if high < self.low or low > self.high:
            return True
        return self.open and (high == self.low or low == self.high)


def verdict(evidence: Evidence, contradicted_if: str) -> str:
    """What evidence says of a claim, one of `VERDICTS`.

    To contradict takes more than to hold: ends of 99 % are beyond the edge, and do not have the
    printed value between them.
    """
    if evidence.estimate is None:
        return "not testable"
    low, high = _ends(evidence)
    allowed = Allowed.parse(contradicted_if)
    if low in allowed and high in allowed:
        return "holds"
    wide_low = evidence.estimate + _FROM_95_TO_99 * (low - evidence.estimate)
    wide_high = evidence.estimate + _FROM_95_TO_99 * (high - evidence.estimate)
    printed_within = evidence.printed is not None and wide_low <= evidence.printed <= wide_high
    if allowed.excludes(wide_low, wide_high) and not printed_within:
        return "contradicted"
    return "undecided"


def _ends(evidence: Evidence) -> tuple[float, float]:
    """Ends of the interval; where nothing was sampled, the estimate itself."""
    if evidence.low is not None and evidence.high is not None:
        return float(evidence.low), float(evidence.high)
    estimate = math.nan if evidence.estimate is None else float(evidence.estimate)
    return estimate, estimate


def units_needed(evidence: Evidence, contradicted_if: str, power: float = 0.8) -> int | None:
    """Units that would decide the printed effect four times in five; without one, the effect found.

    The interval is taken to shrink with the root of the units; None where the effect lies on the
    edge itself, or where there is no interval.
    """
    if evidence.n is None or evidence.low is None or evidence.estimate is None:
        return None
    low, high = _ends(evidence)
    effect = evidence.estimate if evidence.printed is None else evidence.printed
    allowed = Allowed.parse(contradicted_if)
    gap = min(abs(effect - edge) for edge in (allowed.low, allowed.high))
    if gap <= 1e-9 * max(1.0, abs(effect)) or high == low:
        return None
    return units_to_decide(evidence.n, low, high, gap, power=power)


def stated(paper: str) -> pd.DataFrame:
    """Claims of a paper by name, as `STATED`.

    An unknown kind, a claim named twice or a finding without its quote is refused.
    """
    table = read_columns(project.data("published", paper, "claims.csv"), STATED)
    for row in table.itertuples():
        claim = f"claim {row.claim} of {paper}"
        if row.kind not in KINDS:
            raise ValueError(f"{claim} is of kind {row.kind!r}; there are {', '.join(KINDS)}")
        if row.kind == "finding" and not (row.quote and row.place):
            raise ValueError(f"{claim} is a finding: it needs the paper's words and their place")
        Allowed.parse(str(row.contradicted_if))
    repeated = table["claim"].duplicated()
    if repeated.any():
        raise ValueError(f"{paper}: claim {table.loc[repeated, 'claim'].iloc[0]} stands twice")
    return table.set_index("claim")


def judged(paper: str, name: str, evidence: Evidence) -> dict[str, Any]:
    """A claim of a paper with its evidence and verdict, as a manifest keeps it."""
    claims = stated(paper)
    if name not in claims.index:
        raise ValueError(
            f"no claim {name!r} in data/published/{paper}/claims.csv; "
            f"there are {', '.join(claims.index)}"
        )
    words = claims.loc[name].to_dict()
    judgement = verdict(evidence, words["contradicted_if"])
    needed = None
    if judgement == "undecided":
        needed = units_needed(evidence, words["contradicted_if"])
    return {
        "name": name,
        **words,
        **asdict(evidence),
        "verdict": judgement,
        "n_needed": needed,
    }


def table_of(manifests: list[Mapping[str, Any]]) -> pd.DataFrame:
    """Every claim that reports judge, one row each, columns `COLUMNS`."""
    rows = []
    for manifest in manifests:
        for record in manifest["artefacts"]:
            paper, _, artefact = record["artefact"].partition("/")
            for claim in record["claims"]:
                row = dict(claim)
                row["paper"] = paper
                row["artefact"] = artefact
                row["claim"] = claim["statement"]
                row["evidence"] = claim["said"]
                row["data"] = _data(claim["kind"], claim["data"] or record["data"])
                row["notebook"] = manifest["notebook"]
                rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    table = table.astype({"n": "Int64", "n_needed": "Int64"})
    return table.sort_values(["paper", "artefact"], kind="stable")


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a ``claims.csv``, numbers as numbers or None, with the numbers in words too."""
    texts = dict.fromkeys(set(COLUMNS) - _NUMBERS, str)
    empty_numbers = dict.fromkeys(_NUMBERS, "")
    table = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=empty_numbers)
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    for row in rows:
        row["numbers"] = as_words(row | {"said": row["evidence"]})
    return rows


def _data(kind: str, data: str) -> str:
    """What a claim was judged on, in words."""
    if kind == "consistency":
        return "printed numbers"
    return data or "the paper's own data"


def as_words(claim: Mapping[str, Any]) -> str:
    """The numbers behind a verdict, and for an undecided one what would decide it."""
    if claim["estimate"] is None:
        return f"{claim['said']}: {claim['reason']}"
    words = f"{claim['said']}: {claim['estimate']:.4g}"
    if claim["low"] is not None:
        words += f" [{claim['low']:.4g}, {claim['high']:.4g}]"
    if claim["n"] is not None:
        words += f", n = {claim['n']:,.0f}"
    if claim["printed"] is not None:
        words += f"; printed {claim['printed']:.4g}"
    sign, _, edge = claim["contradicted_if"].partition(" ")
    words += f"; contradicted {_SIGNS.get(sign, sign)} {edge}"
    if claim["reason"]:
        words += f"; no interval: {claim['reason']}"
    if claim["n_needed"]:
        effect = "the effect found" if claim["printed"] is None else "the printed effect"
        words += f"; with n = {claim['n_needed']:,.0f} {effect} would be decided four times in five"
    return words
