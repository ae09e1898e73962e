"""Claims: what a paper states, or we add, the number it rests on, and the verdict that follows.

The statements are in ``data/published/<paper>/claims.csv``, with what would contradict them; a
notebook computes the number.
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
from numpy.typing import ArrayLike
from scipy import stats

from equipoise_compendium import project
from equipoise_compendium.printed import read_columns

KINDS = {
    "finding": "the paper's own words",
    "consistency": "published numbers compared with published numbers or words",
    "beyond": "ours: errata, placebos, questions that the papers leave",
}
VERDICTS = {
    "holds": "the interval contains nothing that would contradict it",
    "contradicted": "the interval, widened to 99%, contains only what contradicts it",
    "undecided": "the interval, or the wider one, contains both",
    "not testable": "its subject is not in the available data",
}
NAMED_SYSTEMS = "these systems"
METHOD = "the method"
ABOUT = {
    NAMED_SYSTEMS: "the systems, models or people that the paper names: nothing else can test it",
    METHOD: "a measure, a procedure or systems of a kind: others of that kind can test it",
}
"""What a finding is about; only one about the method can be judged on other data."""
OWN_DATA = "the paper's own data"
PRINTED_NUMBERS = "printed numbers"
BASES = {
    "recomputed": "from what the paper publishes",
    "replica": "on other data or systems in place of the paper's",
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

``claim`` is a name, such as ``same-line``. ``null`` states what is expected by chance: a maximum,
an absolute value or the best of several choices lies above zero without any effect, so such a
number is judged by `less_chance`. ``stand_in`` states why data other than the paper's can test the
claim, ``reason`` why none here can; then it is not testable.
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
_NUMBERS = ("estimate", "low", "high", "p_value", "printed", "n", "n_needed")
_FROM_95_TO_99 = stats.norm.ppf(0.995) / stats.norm.ppf(0.975)
"""How much wider an interval of 99% is than one of 95%, where errors are normal."""
FAMILY_ERROR = 0.05
"""Probability, by Holm's correction, that any claim of a paper is contradicted wrongly."""
_SIGNS = {"<": "below", "<=": "at or below", ">": "above", ">=": "at or above"}


@dataclass(frozen=True)
class Evidence:
    """The number that a claim rests on: an estimate and its 95% interval, from ``n`` units.

    ``said`` names the number and its unit; ``printed`` is the published value. ``reason`` states
    why there is no interval (nothing was sampled) or, without an estimate, why the claim is not
    testable here.
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
            raise ValueError(f"{self.said}: a number must not be NaN")
        has_interval = self.low is not None
        if has_interval != (self.high is not None) or has_interval == bool(self.reason):
            raise ValueError(f"{self.said}: give an interval, or else the reason why there is none")
        low, high = self.ends
        if has_interval and (self.estimate is None or not low <= self.estimate <= high):
            raise ValueError(f"{self.said}: {self.estimate} must be in [{self.low}, {self.high}]")

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the interval; where nothing was sampled, the estimate itself."""
        if self.low is not None and self.high is not None:
            return float(self.low), float(self.high)
        return (math.nan if self.estimate is None else float(self.estimate),) * 2

    @property
    def wide_ends(self) -> tuple[float, float]:
        """Ends at 99% of an interval of 95%."""
        low, high = self.ends
        estimate = math.nan if self.estimate is None else float(self.estimate)
        return (
            estimate + _FROM_95_TO_99 * (low - estimate),
            estimate + _FROM_95_TO_99 * (high - estimate),
        )


@dataclass(frozen=True)
class Allowed:
    """The values that do not contradict a claim: ``low`` to ``high``, without both if ``open``."""

    low: float
    high: float
    open: bool = False

    @classmethod
    def parse(cls, contradicted_if: str) -> Allowed:
        """Read what contradicts: ``< 1``, ``<= 1``, ``> 1``, ``>= 1`` or ``outside [-1, 1]``."""
        number = r"([+-]?\d+(?:\.\d+)?)"
        bound = re.fullmatch(rf"(<|>)(=?) {number}", contradicted_if)
        span = re.fullmatch(rf"outside \[{number}, {number}\]", contradicted_if)
        if bound:
            edge = float(bound[3])
            low, high = (edge, math.inf) if bound[1] == "<" else (-math.inf, edge)
            return cls(low, high, open=bool(bound[2]))
        if span:
            return cls(float(span[1]), float(span[2]))
        raise ValueError(
            "contradicted_if must be < 1, <= 1, > 1, >= 1 or outside [-1, 1], "
            f"got {contradicted_if!r}"
        )

    def __contains__(self, value: float) -> bool:
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def excludes(self, low: float, high: float) -> bool:
        """Return whether every value from ``low`` to ``high`` contradicts the claim."""
        if high < self.low or low > self.high:
            return True
        return self.open and (high == self.low or low == self.high)


# --- evidence -------------------------------------------------------------------------------------


def less_chance(
    said: str,
    observed: float,
    by_chance: ArrayLike,
    *,
    n: int | None = None,
    printed: float | None = None,
) -> Evidence:
    """Compute how far a number is above its expectation under the null hypothesis.

    ``by_chance``: the same number under the null hypothesis, shaped (draws,). The interval of the
    difference lies above zero where fewer than 2.5% of the draws reach the number observed.
    ``printed`` is the paper's number, compared with the same expectation.
    """
    draws = np.asarray(by_chance, dtype=float)
    if draws.ndim != 1 or len(draws) < 40:
        raise ValueError(f"{said}: an interval of 95% needs 40 draws, got {draws.size}")
    expected = float(draws.mean())
    lowest, highest = np.quantile(draws, [0.025, 0.975])
    estimate = observed - expected
    return Evidence(
        f"{said}, minus its expectation by chance ({observed:.4g} minus {expected:.4g})",
        estimate,
        min(observed - float(highest), estimate),
        max(observed - float(lowest), estimate),
        n,
        None if printed is None else printed - expected,
    )


def joined(parts: Sequence[Evidence]) -> Evidence:
    """Join the evidence of several collections, of which none is closer to the paper's.

    The interval reaches from the lowest end to the highest, so that a verdict needs all of them.
    Units differ, and are not counted.
    """
    if len(parts) == 1:
        return parts[0]
    words, estimates = [], []
    for part in parts:
        if part.estimate is None or part.low is None or part.high is None:
            return part
        words.append(f"{part.said}: {part.estimate:.3g} [{part.low:.3g}, {part.high:.3g}]")
        estimates.append(part.estimate)
    return Evidence(
        f"between {'; '.join(words)}",
        sum(estimates) / len(estimates),
        min(part.ends[0] for part in parts),
        max(part.ends[1] for part in parts),
        printed=parts[0].printed,
    )


# --- the verdict ----------------------------------------------------------------------------------


def verdict(evidence: Evidence, contradicted_if: str) -> str:
    """Judge a claim by its evidence: one of `VERDICTS`.

    To contradict takes more than to hold: ends of 99% are beyond the edge, and do not have the
    published value between them.
    """
    if evidence.estimate is None:
        return "not testable"
    low, high = evidence.ends
    allowed = Allowed.parse(contradicted_if)
    if low in allowed and high in allowed:
        return "holds"
    wide_low, wide_high = evidence.wide_ends
    printed_within = evidence.printed is not None and wide_low <= evidence.printed <= wide_high
    if allowed.excludes(wide_low, wide_high) and not printed_within:
        return "contradicted"
    return "undecided"


def deciding_ends(evidence: Evidence, contradicted_if: str) -> tuple[float, float, float]:
    """Return the ends of the interval that the verdict rests on, and its level.

    It is the one of 99% where that of 95% contains only what contradicts.
    """
    if Allowed.parse(contradicted_if).excludes(*evidence.ends):
        return *evidence.wide_ends, 0.99
    return *evidence.ends, 0.95


def p_value(evidence: Evidence, contradicted_if: str) -> float | None:
    """Two-sided p of the estimate if the truth were on the edge of what is allowed; 1 within it.

    Errors are taken as normal, with the half of the interval towards the edge; None without an
    interval.
    """
    if evidence.estimate is None or evidence.low is None:
        return None
    allowed = Allowed.parse(contradicted_if)
    estimate = float(evidence.estimate)
    low, high = evidence.ends
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
    """Return whether the interval that the verdict rests on excludes the published value."""
    if evidence.printed is None or evidence.low is None:
        return False
    low, high, _ = deciding_ends(evidence, contradicted_if)
    return not low <= evidence.printed <= high


def units_needed(evidence: Evidence, contradicted_if: str, power: float = 0.8) -> int | None:
    """Compute the required sample size for the published effect; without one, for the observed.

    An effect that contradicts is decided by the interval of 99%, another by that of 95%. The
    interval is taken to shrink with the root of the units; None where the effect is on the edge
    itself, where there is no interval, or where it excludes the published effect.
    """
    if evidence.n is None or evidence.low is None or evidence.estimate is None:
        return None
    if excludes_printed(evidence, contradicted_if):
        return None
    effect = evidence.estimate if evidence.printed is None else evidence.printed
    allowed = Allowed.parse(contradicted_if)
    level = 0.95 if effect in allowed else 0.99
    low, high = evidence.ends if effect in allowed else evidence.wide_ends
    gap = min(abs(effect - edge) for edge in (allowed.low, allowed.high))
    if gap <= 1e-9 * max(1.0, abs(effect)) or high == low:
        return None
    sides = stats.norm.ppf((1 + level) / 2)
    standard_error = (high - low) / (2 * sides)
    return math.ceil(evidence.n * ((sides + stats.norm.ppf(power)) * standard_error / gap) ** 2)


# --- claims of a paper ----------------------------------------------------------------------------


def stated(paper: str) -> pd.DataFrame:
    """Read the claims of a paper by name, as `STATED`."""
    table = read_columns(project.data("published", paper, "claims.csv"), STATED)
    for row in table.itertuples():
        claim = f"claim {row.claim} of {paper}"
        if row.kind not in KINDS:
            raise ValueError(f"{claim}: kind must be one of {', '.join(KINDS)}, got {row.kind!r}")
        if row.kind == "finding" and not (row.quote and row.place):
            raise ValueError(f"{claim}: a finding needs the paper's words and their place")
        if (row.kind == "finding" or row.about) and row.about not in ABOUT:
            raise ValueError(f"{claim}: about must be {' or '.join(ABOUT)}, got {row.about!r}")
        Allowed.parse(str(row.contradicted_if))
    repeated = table["claim"].duplicated()
    if repeated.any():
        raise ValueError(f"{paper}: claim {table.loc[repeated, 'claim'].iloc[0]} is listed twice")
    return table.set_index("claim")


def judged(paper: str, name: str, evidence: Evidence, data: str = "") -> dict[str, Any]:
    """Judge a claim of a paper; returns the entry of a manifest.

    ``data`` names what the evidence was computed on: `OWN_DATA`, `PRINTED_NUMBERS`, or other data.
    Other data cannot test what is stated of named systems, and need a reason in ``stand_in``.
    """
    claims = stated(paper)
    if name not in claims.index:
        raise ValueError(f"no claim {name!r} in data/published/{paper}/claims.csv")
    claim = claims.loc[name].to_dict()
    if claim["kind"] == "consistency":
        data = data or PRINTED_NUMBERS
    if not data:
        raise ValueError(f"claim {name} of {paper}: say on which data it is judged")
    is_own = data in (OWN_DATA, PRINTED_NUMBERS)
    if not is_own and evidence.estimate is not None:
        if claim["about"] == NAMED_SYSTEMS:
            raise ValueError(
                f"claim {name} of {paper} is about {NAMED_SYSTEMS} and cannot be judged on {data}: "
                "give evidence without an estimate, with the reason"
            )
        if not claim["stand_in"]:
            raise ValueError(
                f"claim {name} of {paper}: the column stand_in must state why it can be tested on "
                f"{data}"
            )
    judgement = verdict(evidence, claim["contradicted_if"])
    needed = None
    if judgement == "undecided":
        needed = units_needed(evidence, claim["contradicted_if"])
    return {
        "name": name,
        **claim,
        **asdict(evidence),
        "data": data,
        "basis": "recomputed" if is_own else "replica",
        "verdict": judgement,
        "n_needed": needed,
    }


# --- the table of all claims ----------------------------------------------------------------------


def table_of(manifests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Collect every claim that reports judge, one row per claim, columns `COLUMNS`."""
    rows = []
    for manifest in manifests:
        # beyond: claims of ours on artefacts that another notebook reports
        for record in manifest["artefacts"] + manifest["beyond"]:
            paper, _, artefact = record["artefact"].partition("/")
            for claim in record["claims"]:
                p = p_value(evidence_of(claim), claim["contradicted_if"])
                extra = {"claim": claim["statement"], "evidence": claim["said"], "p_value": p}
                place = {"paper": paper, "artefact": artefact, "notebook": manifest["notebook"]}
                rows.append({**claim, **place, **extra})
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["survives_holm"] = ""
    for _, paper_rows in table[table["p_value"].notna()].groupby("paper"):
        # The smallest p is compared with 1/m of the error, the next with 1/(m - 1), and so on.
        ordered = paper_rows.sort_values("p_value", kind="stable")
        sizes = np.arange(len(ordered), 0, -1)
        below = ordered["p_value"].to_numpy(float) * sizes <= FAMILY_ERROR
        passes = np.logical_and.accumulate(below)
        contradicted = (ordered["verdict"] == "contradicted").to_numpy()
        table.loc[ordered.index[contradicted & passes], "survives_holm"] = "yes"
        table.loc[ordered.index[contradicted & ~passes], "survives_holm"] = "no"
    table = table.astype({"n": "Int64", "n_needed": "Int64"})
    return table.sort_values(["paper", "artefact"], kind="stable")


def read(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a ``claims.csv``, numbers as numbers or None."""
    texts = dict.fromkeys(set(COLUMNS) - set(_NUMBERS), str)
    empty_numbers = dict.fromkeys(_NUMBERS, "")
    table = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=empty_numbers)
    rows: list[dict[str, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")
    for row in rows:
        row["numbers"] = as_words(row)
    return rows


def evidence_of(claim: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a claim, from a manifest or a row of ``claims.csv``."""
    numbers = {name: claim[name] for name in ("estimate", "low", "high", "n", "printed")}
    said = claim["said"] if "said" in claim else claim["evidence"]
    return Evidence(said, **numbers, reason=claim["reason"])


def by_sentence(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join findings by the sentence of the paper that they test, and by what they rest on.

    A sentence is contradicted where one of its claims is, holds where all that can be tested hold,
    and is otherwise undecided; it is not testable where none of them is. Each has ``paper, quote,
    basis, verdict, claims``.
    """
    claims_of: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "finding":
            claims_of.setdefault((row["paper"], row["quote"], row["basis"]), []).append(row)
    sentences = []
    for (paper, quote, basis), claims in claims_of.items():
        verdicts = {row["verdict"] for row in claims}
        tested = verdicts - {"not testable"}
        if "contradicted" in verdicts:
            judgement = "contradicted"
        elif not tested:
            judgement = "not testable"
        else:
            judgement = "holds" if tested == {"holds"} else "undecided"
        sentence = {"paper": paper, "quote": quote, "basis": basis, "verdict": judgement}
        sentences.append({**sentence, "claims": claims})
    return sentences


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count the sentences of the papers by paper, by what they rest on, and by verdict.

    ``table`` is that of `table_of`. Columns ``paper, basis, verdict, sentences``; a paper, basis or
    verdict ``all`` is over all of them, and counts a sentence once that was judged on both.
    """
    rows = by_sentence(table.to_dict("records"))
    sentences = pd.DataFrame(rows, columns=["paper", "quote", "basis", "verdict"])
    counted = []
    for paper in [*sentences["paper"].unique(), "all"]:
        paper_rows = sentences if paper == "all" else sentences[sentences["paper"] == paper]
        for basis in [*BASES, "all"]:
            basis_rows = paper_rows if basis == "all" else paper_rows[paper_rows["basis"] == basis]
            distinct = basis_rows.drop_duplicates(["paper", "quote"])
            if basis != "all":
                for name in VERDICTS:
                    counted.append((paper, basis, name, int((distinct["verdict"] == name).sum())))
            counted.append((paper, basis, "all", len(distinct)))
    return pd.DataFrame(counted, columns=["paper", "basis", "verdict", "sentences"])


# --- claims as text -------------------------------------------------------------------------------


def interval_in_words(claim: Mapping[str, Any]) -> str:
    """Write the estimate of a claim, with the interval that its verdict rests on."""
    evidence = evidence_of(claim)
    if evidence.estimate is None:
        return ""
    words = f"{evidence.estimate:.4g}"
    if evidence.low is not None:
        low, high, level = deciding_ends(evidence, claim["contradicted_if"])
        words += f" [{low:.4g}, {high:.4g}]"
        words += f" ({level:.0%})" if level > 0.95 else ""
    return words


def criterion_in_words(claim: Mapping[str, Any]) -> str:
    """Write which values would contradict a claim."""
    sign, _, edge = claim["contradicted_if"].partition(" ")
    return f"contradicted {_SIGNS.get(sign, sign)} {edge}"


def as_words(claim: Mapping[str, Any]) -> str:
    """Write the numbers of a verdict, and for an undecided one the required sample size."""
    evidence = evidence_of(claim)
    if evidence.estimate is None:
        return f"{evidence.said}: {evidence.reason}"
    words = f"{evidence.said}: {interval_in_words(claim)}"
    if evidence.n is not None:
        words += f", n = {evidence.n:,.0f}"
    if evidence.printed is not None:
        words += f"; published {evidence.printed:.4g}"
    words += f"; {criterion_in_words(claim)}"
    if evidence.reason:
        words += f"; no interval: {evidence.reason}"
    if claim["verdict"] == "undecided" and excludes_printed(evidence, claim["contradicted_if"]):
        words += "; the published effect is excluded"
    if claim["n_needed"]:
        effect = "the observed effect" if evidence.printed is None else "the published effect"
        words += f"; 80% power for {effect} needs n = {claim['n_needed']:,.0f}"
    return words
