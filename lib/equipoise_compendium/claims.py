"""Claims: what a paper says, or we add, the number it rests on with its interval, and the verdict that follows.

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
    *(
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
    ),
    *("n", "n_needed", "data", "notebook", "printed", "evidence", "reason", "name"),
]
_WIDER = 2.576 / 1.96  # from 95 to 99 %, where errors are normal
_SIGNS = {"<": "below", "<=": "at or below", ">": "above", ">=": "at or above"}
_NUMBER = r"([+-]?\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class Evidence:
    """The number that a claim rests on: an estimate and the ends of its 95 % interval, from ``n`` units.

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
        if (self.low is None) != (self.high is None) or (self.low is None) == (not self.reason):
            raise ValueError(f"{self.said}: give an interval, or else the reason why there is none")
        if self.low is None or self.high is None:
            return
        if self.estimate is None or not self.low <= self.estimate <= self.high:
            raise ValueError(
                f"{self.said}: {self.estimate} is not within [{self.low}, {self.high}]"
            )


@dataclass(frozen=True)
class Allowed:
    """The values of an estimate that do not contradict a claim: from ``low`` to ``high``, ends included or ``open``."""

    low: float
    high: float
    open: bool = False

    @classmethod
    def parse(cls, contradicted_if: str) -> Allowed:
        """From what contradicts: ``< 1``, ``<= 1``, ``> 1``, ``>= 1`` or ``outside [-1, 1]``."""
        if found := re.fullmatch(rf"(<|>)(=?) {_NUMBER}", contradicted_if):
            edge = float(found[3])
            ends = (edge, math.inf) if found[1] == "<" else (-math.inf, edge)
            return cls(*ends, open=bool(found[2]))
        if found := re.fullmatch(rf"outside \[{_NUMBER}, {_NUMBER}\]", contradicted_if):
            return cls(float(found[1]), float(found[2]))
        raise ValueError(
            f"{contradicted_if!r} says not what contradicts: write < 1, <= 1, > 1, >= 1 or outside [-1, 1]"
        )

    def __contains__(self, value: float) -> bool:
        return self.low < value < self.high if self.open else self.low <= value <= self.high


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
    low, high = (evidence.estimate + _WIDER * (end - evidence.estimate) for end in (low, high))
    apart = (
        high < allowed.low
        or low > allowed.high
        or (allowed.open and (high == allowed.low or low == allowed.high))
    )
    printed = evidence.printed is not None and low <= evidence.printed <= high
    return "contradicted" if apart and not printed else "undecided"


def _ends(evidence: Evidence) -> tuple[float, float]:
    estimate = evidence.estimate
    ends = (estimate if end is None else end for end in (evidence.low, evidence.high))
    low, high = (float("nan") if end is None else float(end) for end in ends)
    return low, high


def units_needed(evidence: Evidence, contradicted_if: str, power: float = 0.8) -> int | None:
    """Units that would decide the printed effect (where none is printed, the one found) four times in five.

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
    """Claims of a paper by name, as `STATED`; an unknown kind, a claim named twice or without its quote is refused."""
    table = read_columns(project.data("published", paper, "claims.csv"), STATED)
    for row in table.itertuples():
        if row.kind not in KINDS:
            raise ValueError(
                f"claim {row.claim} of {paper} is of kind {row.kind!r}; there are {', '.join(KINDS)}"
            )
        if row.kind == "finding" and not (row.quote and row.place):
            raise ValueError(
                f"claim {row.claim} of {paper} is a finding: it needs the paper's words and their place"
            )
        Allowed.parse(str(row.contradicted_if))
    if (repeated := table["claim"].duplicated()).any():
        raise ValueError(f"{paper}: claim {table.loc[repeated, 'claim'].iloc[0]} stands twice")
    return table.set_index("claim")


def judged(paper: str, name: str, evidence: Evidence) -> dict[str, Any]:
    """A claim of a paper with its evidence and verdict, as a manifest keeps it."""
    known = stated(paper)
    if name not in known.index:
        raise ValueError(
            f"no claim {name!r} in data/published/{paper}/claims.csv; there are {', '.join(known.index)}"
        )
    words = known.loc[name].to_dict()
    said = verdict(evidence, words["contradicted_if"])
    needed = units_needed(evidence, words["contradicted_if"]) if said == "undecided" else None
    return {"name": name, **words, **asdict(evidence), "verdict": said, "n_needed": needed}


def table_of(manifests: list[Mapping[str, Any]]) -> pd.DataFrame:
    """Every claim that reports judge, one row each, columns `COLUMNS`."""
    rows = [
        claim
        | {
            "paper": paper,
            "artefact": artefact,
            "claim": claim["statement"],
            "evidence": claim["said"],
        }
        | {
            "data": _data(claim["kind"], claim["data"] or record["data"]),
            "notebook": manifest["notebook"],
        }
        for manifest in manifests
        for record in manifest["artefacts"]
        for paper, _, artefact in [record["artefact"].partition("/")]
        for claim in record["claims"]
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype({"n": "Int64", "n_needed": "Int64"}).sort_values(
        ["paper", "artefact"], kind="stable"
    )


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a ``claims.csv``, numbers as numbers, None where there is none, with the numbers in words too."""
    numbers = {"estimate", "low", "high", "printed", "n", "n_needed"}
    texts = dict.fromkeys(set(COLUMNS) - numbers, str)
    table = pd.read_csv(
        path, dtype=texts, keep_default_na=False, na_values=dict.fromkeys(numbers, "")
    )
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [row | {"numbers": as_words(row | {"said": row["evidence"]})} for row in rows]


def _data(kind: str, data: str) -> str:
    return "printed numbers" if kind == "consistency" else data or "the paper's own data"


def as_words(claim: Mapping[str, Any]) -> str:
    """The numbers behind a verdict, and for an undecided one what would decide it."""
    if claim["estimate"] is None:
        return f"{claim['said']}: {claim['reason']}"
    words = f"{claim['said']}: {claim['estimate']:.4g}"
    words += f" [{claim['low']:.4g}, {claim['high']:.4g}]" if claim["low"] is not None else ""
    words += f", n = {claim['n']:,.0f}" if claim["n"] is not None else ""
    words += f"; printed {claim['printed']:.4g}" if claim["printed"] is not None else ""
    sign, _, edge = claim["contradicted_if"].partition(" ")
    words += f"; contradicted {_SIGNS.get(sign, sign)} {edge}"
    words += f"; no interval: {claim['reason']}" if claim["reason"] else ""
    if claim["n_needed"]:
        effect = "the effect found" if claim["printed"] is None else "the printed effect"
        words += f"; with n = {claim['n_needed']:,.0f} {effect} would be decided four times in five"
    return words
