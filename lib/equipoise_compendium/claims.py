"""Claims: what a paper says, or we add, the number it rests on, and the verdict that follows.

The words stand in ``data/published/<paper>/claims.csv``, with what would contradict them; a
notebook brings the number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from equipoise_compendium import project
from equipoise_compendium.tables import read_columns

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
NAMED_SYSTEMS = "these systems"
METHOD = "the method"
ABOUT = {
    NAMED_SYSTEMS: "the systems, models or people that the paper names: nothing else can test it",
    METHOD: "a measure, a procedure or systems of a kind: others of that kind can test it",
}
"""What a finding is about; only one about the method can be judged on a stand-in."""
OWN_DATA = "the paper's own data"
PRINTED_NUMBERS = "printed numbers"
BASES = {
    "recomputed": "from what the paper prints or publishes",
    "replica": "on other data or systems, which stand in for the paper's",
}
"""What a verdict rests on."""
STATED = [
    "claim",
    "artefact",
    "kind",
    "about",
    "statement",
    "quote",
    "place",
    "contradicted_if",
    "null",
    "stand_in",
    "reason",
]
"""Columns of a file of claims.

``claim`` is a name, such as ``same-line``. ``null`` says what would be seen by chance alone: a
maximum, an absolute value or the best of several choices lies above zero with nothing behind it,
so such a number is judged by `less_chance`. ``stand_in`` says why data that are not the paper's
can test the claim, ``reason`` why nothing here can test it; then it is not testable.
"""
COLUMNS = [
    "paper",
    "artefact",
    "claim",
    "kind",
    "about",
    "quote",
    "place",
    "verdict",
    "estimate",
    "low",
    "high",
    "contradicted_if",
    "null",
    "p_value",
    "survives_holm",
    "n",
    "n_needed",
    "basis",
    "data",
    "stand_in",
    "notebook",
    "printed",
    "evidence",
    "reason",
    "name",
]
"""Columns of ``reports/claims.csv``."""
_NUMBERS = {"estimate", "low", "high", "p_value", "printed", "n", "n_needed"}
_FROM_95_TO_99 = stats.norm.ppf(0.995) / stats.norm.ppf(0.975)
"""How much wider an interval of 99 % is than one of 95 %, where errors are normal."""
FAMILY_ERROR = 0.05
"""Holm's correction lets a paper be contradicted wrongly at all with this probability."""
_SIGNS = {"<": "below", "<=": "at or below", ">": "above", ">=": "at or above"}
_NUMBER = r"([+-]?\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class Evidence:
    """The number that a claim rests on: an estimate and its 95 % interval, from ``n`` units.

    ``said`` says what the number is, with its unit; ``printed`` is what the paper prints of it.
    ``reason`` says why there is no interval (nothing was sampled) or, without an estimate too, why
    the claim is not testable here.
    """

    said: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    printed: float | None = None
    reason: str = ""

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


def less_chance(
    said: str,
    observed: float,
    by_chance: ArrayLike,
    *,
    n: int | None = None,
    printed: float | None = None,
) -> Evidence:
    """How far a number lies above what chance alone gives, such as with labels permuted.

    ``by_chance``: the same number under chance, shaped (draws,). The interval is of the difference
    from these draws: it lies above zero where fewer than 2.5 % of them reach the number observed.
    ``printed`` is the paper's number, held against the same chance.
    """
    draws = np.asarray(by_chance, dtype=float)
    if draws.ndim != 1 or len(draws) < 40:
        raise ValueError(f"{said}: an interval of 95 % needs 40 draws, not {draws.size}")
    expected = float(draws.mean())
    lowest, highest = np.quantile(draws, [0.025, 0.975])
    estimate = observed - expected
    return Evidence(
        f"{said}, less what chance gives ({observed:.4g} less {expected:.4g})",
        estimate,
        min(observed - float(highest), estimate),
        max(observed - float(lowest), estimate),
        n,
        None if printed is None else printed - expected,
    )


def of_all(parts: Sequence[Evidence]) -> Evidence:
    """One piece of evidence of several stand-ins, where none is nearer than the others.

    Its interval reaches from the lowest end to the highest, so that a verdict needs all of them.
    Their units differ, and are not counted.
    """
    if len(parts) == 1:
        return parts[0]
    words, estimates, lows, highs = [], [], [], []
    for part in parts:
        if part.estimate is None or part.low is None or part.high is None:
            return part
        words.append(f"{part.said}: {part.estimate:.3g} [{part.low:.3g}, {part.high:.3g}]")
        estimates.append(part.estimate)
        lows.append(part.low)
        highs.append(part.high)
    return Evidence(
        f"between {'; '.join(words)}",
        sum(estimates) / len(estimates),
        min(lows),
        max(highs),
        printed=parts[0].printed,
    )


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
    wide_low, wide_high = _wide_ends(evidence)
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


def _wide_ends(evidence: Evidence) -> tuple[float, float]:
    """Ends at 99 % of an interval of 95 %."""
    low, high = _ends(evidence)
    estimate = math.nan if evidence.estimate is None else float(evidence.estimate)
    return (
        estimate + _FROM_95_TO_99 * (low - estimate),
        estimate + _FROM_95_TO_99 * (high - estimate),
    )


def deciding_ends(evidence: Evidence, contradicted_if: str) -> tuple[float, float, float]:
    """Ends of the interval that the verdict rests on, and its level.

    It is the one of 99 % where that of 95 % allows only what contradicts.
    """
    low, high = _ends(evidence)
    if Allowed.parse(contradicted_if).excludes(low, high):
        return *_wide_ends(evidence), 0.99
    return low, high, 0.95


def p_value(evidence: Evidence, contradicted_if: str) -> float | None:
    """Two-sided p of the estimate if the truth lay on the edge of what is allowed; 1 within it.

    Errors are taken as normal, with the half of the interval that lies towards the edge; None
    without an interval.
    """
    if evidence.estimate is None or evidence.low is None:
        return None
    allowed = Allowed.parse(contradicted_if)
    estimate = float(evidence.estimate)
    low, high = _ends(evidence)
    if estimate < allowed.low:
        gap, half = allowed.low - estimate, high - estimate
    elif estimate > allowed.high:
        gap, half = estimate - allowed.high, estimate - low
    else:
        return 1.0
    if half == 0:
        return 0.0
    return float(2 * stats.norm.sf(stats.norm.ppf(0.975) * gap / half))


def excludes_printed(evidence: Evidence, contradicted_if: str) -> bool:
    """Whether the interval that the verdict rests on does not include the printed value."""
    if evidence.printed is None or evidence.low is None:
        return False
    low, high, _ = deciding_ends(evidence, contradicted_if)
    return not low <= evidence.printed <= high


def units_needed(evidence: Evidence, contradicted_if: str, power: float = 0.8) -> int | None:
    """Units for 80 % power for the printed effect; without one, for the effect found.

    An effect that contradicts is decided by the interval of 99 %, another by that of 95 %. The
    interval is taken to shrink with the root of the units; None where the effect lies on the edge
    itself, where there is no interval, or where it excludes the printed effect.
    """
    if evidence.n is None or evidence.low is None or evidence.estimate is None:
        return None
    if excludes_printed(evidence, contradicted_if):
        return None
    effect = evidence.estimate if evidence.printed is None else evidence.printed
    allowed = Allowed.parse(contradicted_if)
    level = 0.95 if effect in allowed else 0.99
    low, high = _ends(evidence) if effect in allowed else _wide_ends(evidence)
    gap = min(abs(effect - edge) for edge in (allowed.low, allowed.high))
    if gap <= 1e-9 * max(1.0, abs(effect)) or high == low:
        return None
    sides = stats.norm.ppf((1 + level) / 2)
    standard_error = (high - low) / (2 * sides)
    return math.ceil(evidence.n * ((sides + stats.norm.ppf(power)) * standard_error / gap) ** 2)


def stated(paper: str) -> pd.DataFrame:
    """Claims of a paper by name, as `STATED`.

    An unknown kind, a claim named twice, or a finding without its quote or without what it is about
    is refused.
    """
    table = read_columns(project.data("published", paper, "claims.csv"), STATED)
    for row in table.itertuples():
        claim = f"claim {row.claim} of {paper}"
        if row.kind not in KINDS:
            raise ValueError(f"{claim} is of kind {row.kind!r}; there are {', '.join(KINDS)}")
        if row.kind == "finding" and not (row.quote and row.place):
            raise ValueError(f"{claim} is a finding: it needs the paper's words and their place")
        if (row.kind == "finding" or row.about) and row.about not in ABOUT:
            raise ValueError(f"{claim} is about {row.about!r}; there are {', '.join(ABOUT)}")
        Allowed.parse(str(row.contradicted_if))
    repeated = table["claim"].duplicated()
    if repeated.any():
        raise ValueError(f"{paper}: claim {table.loc[repeated, 'claim'].iloc[0]} stands twice")
    return table.set_index("claim")


def judged(paper: str, name: str, evidence: Evidence, data: str = "") -> dict[str, Any]:
    """A claim of a paper with its evidence and verdict, as a manifest keeps it.

    ``data``: what the evidence was computed on, in words; `OWN_DATA` or `PRINTED_NUMBERS` where it
    is the paper's. Anything else is a stand-in: it cannot test what is said of named systems, and
    what it can test it tests for a reason, which stands with the claim.
    """
    claims = stated(paper)
    if name not in claims.index:
        raise ValueError(
            f"no claim {name!r} in data/published/{paper}/claims.csv; "
            f"there are {', '.join(claims.index)}"
        )
    words = claims.loc[name].to_dict()
    if words["kind"] == "consistency":
        data = data or PRINTED_NUMBERS
    _check_data(f"claim {name} of {paper}", words, evidence, data)
    judgement = verdict(evidence, words["contradicted_if"])
    needed = None
    if judgement == "undecided":
        needed = units_needed(evidence, words["contradicted_if"])
    return {
        "name": name,
        **words,
        **asdict(evidence),
        "data": data,
        "basis": "recomputed" if data in (OWN_DATA, PRINTED_NUMBERS) else "replica",
        "verdict": judgement,
        "n_needed": needed,
    }


def _check_data(claim: str, words: Mapping[str, Any], evidence: Evidence, data: str) -> None:
    """Refuse a claim without its data, or one that its data cannot test."""
    if not data:
        raise ValueError(
            f"{claim}: say on which data it is judged, or claims.OWN_DATA or claims.PRINTED_NUMBERS"
        )
    if data in (OWN_DATA, PRINTED_NUMBERS) or evidence.estimate is None:
        return
    if words["about"] == NAMED_SYSTEMS:
        raise ValueError(
            f"{claim} is about {NAMED_SYSTEMS}, and cannot be judged on {data}: "
            "give evidence without an estimate, with the reason"
        )
    if not words["stand_in"]:
        raise ValueError(
            f"{claim}: data/published says under stand_in why it can be tested on {data}"
        )


def table_of(manifests: list[Mapping[str, Any]]) -> pd.DataFrame:
    """Every claim that reports judge, one row each, columns `COLUMNS`."""
    rows = []
    for manifest in manifests:
        # beyond: claims of ours on artefacts that another notebook reports; older reports lack it
        for record in manifest["artefacts"] + manifest.get("beyond", []):
            paper, _, artefact = record["artefact"].partition("/")
            for claim in record["claims"]:
                row = dict(claim)
                row["paper"] = paper
                row["artefact"] = artefact
                row["claim"] = claim["statement"]
                row["evidence"] = claim["said"]
                row["notebook"] = manifest["notebook"]
                row["p_value"] = p_value(evidence_of(claim), claim["contradicted_if"])
                rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["survives_holm"] = _survivors(table)
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


def evidence_of(claim: Mapping[str, Any]) -> Evidence:
    """The evidence of a claim, from a manifest or a row of ``claims.csv``."""
    numbers = {name: claim[name] for name in ("estimate", "low", "high", "n", "printed")}
    said = claim["said"] if "said" in claim else claim["evidence"]
    return Evidence(said, **numbers, reason=claim["reason"])


def _survivors(table: pd.DataFrame) -> pd.Series:
    """For each contradicted claim with an interval, whether Holm's correction leaves it so.

    The correction is over all claims of the paper that have an interval: ``yes``, ``no``, or empty.
    """
    survives = pd.Series("", index=table.index)
    for _, rows in table[table["p_value"].notna()].groupby("paper"):
        is_contradicted = rows["verdict"] == "contradicted"
        is_below = pd.Series(_below_by_holm(rows["p_value"].to_numpy(float)), index=rows.index)
        answers = is_below.map({True: "yes", False: "no"})
        survives[rows.index] = answers.where(is_contradicted, "")
    return survives


def _below_by_holm(p_values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which p-values of a family are significant by Holm.

    The smallest is held to 1/m of the error, the next to 1/(m - 1), none behind one that fails.
    """
    order = np.argsort(p_values, kind="stable")
    sizes = np.arange(len(p_values), 0, -1)
    passes = np.logical_and.accumulate(p_values[order] * sizes <= FAMILY_ERROR)
    return passes[np.argsort(order)]


def by_sentence(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings joined by the sentence of the paper that they test, and by what they rest on.

    A sentence is contradicted where one of its claims is, holds where all that can be tested hold,
    and is otherwise undecided; it is not testable where none of them is. Each has ``paper, quote,
    basis, verdict, claims``.
    """
    claims_of: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "finding":
            key = (row["paper"], row["quote"], row["basis"])
            claims_of.setdefault(key, []).append(row)
    sentences = []
    for (paper, quote, basis), of_sentence in claims_of.items():
        verdicts = {row["verdict"] for row in of_sentence}
        sentences.append(
            {
                "paper": paper,
                "quote": quote,
                "basis": basis,
                "verdict": _joined(verdicts),
                "claims": of_sentence,
            }
        )
    return sentences


def _joined(verdicts: set[str]) -> str:
    """The verdict on a sentence of which several claims were judged."""
    if "contradicted" in verdicts:
        return "contradicted"
    tested = verdicts - {"not testable"}
    if not tested:
        return "not testable"
    return "holds" if tested == {"holds"} else "undecided"


def counts(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """How many sentences of the papers have each verdict, by paper and by what it rests on.

    Columns ``paper, basis, verdict, sentences``; a paper, basis or verdict ``all`` is over all of
    them, and counts a sentence once that was judged on both.
    """
    sentences = pd.DataFrame(by_sentence(rows), columns=["paper", "quote", "basis", "verdict"])
    table = []
    for paper in [*dict.fromkeys(sentences["paper"]), "all"]:
        of_paper = sentences if paper == "all" else sentences[sentences["paper"] == paper]
        for basis in [*BASES, "all"]:
            of_basis = of_paper if basis == "all" else of_paper[of_paper["basis"] == basis]
            distinct = of_basis.drop_duplicates(["paper", "quote"])
            if basis != "all":
                for name in VERDICTS:
                    number = int((distinct["verdict"] == name).sum())
                    table.append((paper, basis, name, number))
            table.append((paper, basis, "all", len(distinct)))
    return pd.DataFrame(table, columns=["paper", "basis", "verdict", "sentences"])


def by_chance(rows: list[dict[str, Any]]) -> dict[str, float]:
    """What chance alone would contradict, and what it did not.

    ``intervals``: claims with an interval; ``expected``: how many of them chance contradicts at
    most, were each true and on the edge of its criterion; ``contradicted`` of them, and
    ``survive`` Holm's correction.
    """
    with_interval = [row for row in rows if row["p_value"] is not None]
    contradicted = [row for row in with_interval if row["verdict"] == "contradicted"]
    # Half of the 1 % that an interval of 99 % misses lies beyond one edge, all of it beyond two.
    n_two_edges = sum(row["contradicted_if"].startswith("outside") for row in with_interval)
    return {
        "intervals": len(with_interval),
        "expected": 0.005 * (len(with_interval) + n_two_edges),
        "contradicted": len(contradicted),
        "survive": sum(row["survives_holm"] == "yes" for row in contradicted),
    }


def interval_in_words(claim: Mapping[str, Any]) -> str:
    """The estimate of a claim, with the interval that its verdict rests on where there is one."""
    evidence = evidence_of(claim)
    if evidence.estimate is None:
        return ""
    words = f"{evidence.estimate:.4g}"
    if evidence.low is not None:
        low, high, level = deciding_ends(evidence, claim["contradicted_if"])
        words += f" [{low:.4g}, {high:.4g}]"
        if level > 0.95:
            words += f" ({level:.0%})"
    return words


def criterion_in_words(claim: Mapping[str, Any]) -> str:
    """Which values would contradict a claim."""
    sign, _, edge = claim["contradicted_if"].partition(" ")
    return f"contradicted {_SIGNS.get(sign, sign)} {edge}"


def as_words(claim: Mapping[str, Any]) -> str:
    """The numbers behind a verdict, and for an undecided one what would decide it."""
    evidence = evidence_of(claim)
    if evidence.estimate is None:
        return f"{evidence.said}: {evidence.reason}"
    words = f"{evidence.said}: {interval_in_words(claim)}"
    if evidence.n is not None:
        words += f", n = {evidence.n:,.0f}"
    if evidence.printed is not None:
        words += f"; printed {evidence.printed:.4g}"
    words += f"; {criterion_in_words(claim)}"
    if evidence.reason:
        words += f"; no interval: {evidence.reason}"
    if claim["verdict"] == "undecided" and excludes_printed(evidence, claim["contradicted_if"]):
        words += "; the printed effect is excluded"
    if claim["n_needed"]:
        effect = "the effect seen" if evidence.printed is None else "the printed effect"
        words += f"; 80 % power for {effect} needs n = {claim['n_needed']:,.0f}"
    return words
