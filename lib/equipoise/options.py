"""Options of measures: annotated types with bounds and help.

An option is a type annotated with `pydantic.Field`, whose description the help of the command, the
catalogue and the site show. Its default is in the signature of the function that takes it; how such
a function is declared is in `equipoise.declared`. Text is read as a command line writes it
(``1:0.5,2:1`` for gains), so that Python and the command share one reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

# --- readers of values ----------------------------------------------------------------------------


def read_pairs(value: Any) -> Any:
    """Read ``name:number,name:number``, each name once; other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    pairs: dict[str, str] = {}
    for text in value.split(","):
        name, colon, number = text.rpartition(":")
        name = name.strip()
        if not colon or not name or name in pairs:
            raise ValueError("must be written name:number,name:number, each name once")
        pairs[name] = number.strip()
    return pairs


def _exponential_or_pairs(value: Any) -> Any:
    return None if value == "exponential" else read_pairs(value)


def _read_list(value: Any) -> Any:
    """Read ``5,10``, or an array, as a list."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return value.tolist() if hasattr(value, "tolist") else value


def _read_cutoffs(value: Any) -> Any:
    """Read ``5,10``, each once and in order."""
    if not isinstance(value, str):
        return _read_list(value)
    cutoffs = dict.fromkeys(_read_list(value))
    return sorted(cutoffs, key=lambda cutoff: (len(cutoff), cutoff))


def _has_sum(shares: Any) -> Any:
    numbers = list(shares.values()) if isinstance(shares, Mapping) else shares
    if numbers is not None and not 0 < sum(numbers) < float("inf"):
        raise ValueError("must have a sum above 0")
    return shares


# --- what several options ask for -----------------------------------------------------------------

Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


# --- conversations --------------------------------------------------------------------------------

Patience = Annotated[float, Field(gt=1, description="L, the words that a user is willing to read.")]
EXPONENTIAL_GAINS = {1: 0.25, 2: 0.75}
"""(2^l - 1) / 2^2, the gains of levels 1 and 2 in gfrc2."""


def _read_gains(value: Any) -> Any:
    return EXPONENTIAL_GAINS if value == "exponential" else read_pairs(value)


Gains = Annotated[
    dict[Count, Share],
    BeforeValidator(_read_gains),
    AfterValidator(_has_sum),
    Field(title="level:gain,...", description="Gain of each level; exponential is 1:0.25,2:0.75."),
]
PositionWeight = Annotated[
    Literal["one-based", "zero-based", "zero-based-own-normaliser"],
    Field(description="Decrease of a nugget's weight with its position: gfrc2 Eqs. 6, 7 and 9."),
]
Distribution = Annotated[
    Literal["independent", "cumulative"],
    Field(description="Nuggets in the achieved distribution of a turn: its own, or all so far."),
]
EmptyTurns = Annotated[
    Literal["ignore", "uniform"],
    Field(description="Turns without relevant nuggets: left out, or taken as uniform."),
]
TurnWeight = Annotated[
    Literal["uniform", "largest-nugget"],
    Field(description="PW of a turn: 1, or the largest weight of its nuggets."),
]
Divergence = Literal["rnod", "nmd", "jsd", "nvd"]
Ordinal = Annotated[
    Divergence,
    Field(description="Divergence for ordinal groups; jsd and nvd ignore their order."),
]
Nominal = Annotated[
    Literal["jsd", "nvd"], Field(description="Divergence for nominal groups, which have no order.")
]
Weights = Annotated[
    dict[str, NonNegative],
    BeforeValidator(read_pairs),
    AfterValidator(_has_sum),
    Field(title="NAME:number,...", description="Weight of each part by name.  [equal]"),
]
StopModel = Annotated[
    Literal["words", "anywhere", "nuggets", "gain", "geometric", "turns"],
    Field(
        description="Share of users who leave at a relevant nugget. words: 1/L at each (gfrc2). "
        "anywhere: all who leave from its end to the next one. nuggets: equal shares. gain: as in "
        "ERR. geometric: 1/L of the remaining users. turns: all who leave at the end of its turn."
    ),
]
Utility = Annotated[
    Literal["gnp", "gains", "words"],
    Field(
        description="Utility of users who leave. gnp: GNP. gains: the gains so far, divided by L. "
        "words: 1 divided by the words read."
    ),
]
BeyondPatience = Annotated[
    Literal["counted", "ignored"],
    Field(description="Nuggets that end beyond L, in GF: counted, as in the papers, or ignored."),
]
Alpha = Annotated[
    float, Field(ge=0, le=1, description="Share of R in GFRC.  [the mean of R and every GF]")
]


# --- rankings -------------------------------------------------------------------------------------

Cutoff = Annotated[int, Field(ge=1, description="Ranks that are evaluated.")]
LevelGains = Annotated[
    Annotated[dict[int, NonNegative], AfterValidator(_has_sum)] | None,
    BeforeValidator(_exponential_or_pairs),
    Field(
        title="level:gain,...",
        description="Gain of each relevance level; level 0 has none.  "
        "[2^l - 1 up to the highest level judged, at least 2]",
    ),
]
RunOrder = Annotated[
    Literal["auto", "score", "file"],
    Field(
        description="Order of a ranking. score: by score, then by document id, both descending, as "
        "in trec_eval. file: the order of the rows. auto: file for NTCIR runs, which begin with "
        "<SYSDESC>, and score for all others."
    ),
]
Unjudged = Annotated[
    Literal["nonrelevant", "removed"],
    Field(description="Unjudged documents: gain 0, or removed from the ranking before the cutoff."),
]
Unrepresented = Annotated[
    Literal["uniform", "ignored"],
    Field(description="Documents without membership: spread evenly over the groups, or ignored."),
]


def _read_divergences(value: Any) -> Any:
    """Read ``nominal:name+name,ordinal:name``."""
    if not isinstance(value, str):
        return value
    return {kind: names.split("+") for kind, names in read_pairs(value).items()}


Similarities = Annotated[
    Mapping[Literal["nominal", "ordinal"], Sequence[Divergence]],
    BeforeValidator(_read_divergences),
    Field(title="kind:name+name,...", description="Divergences for each kind of groups."),
]
ByGroup = Annotated[
    bool, Field(description="Add each group's part of the utility, its exposure, or its share.")
]
Decimals = Annotated[
    int,
    Field(
        ge=0,
        le=15,
        description="Decimals to which each component is rounded first, half to even; 4 in the "
        "program of FairWeb.  [no rounding]",
    ),
]


# --- permutations of conversations ----------------------------------------------------------------

PermutationNumbers = Annotated[
    Sequence[Count],
    BeforeValidator(_read_list),
    Field(description="Numbers of permutations of each conversation to try."),
]
Repeats = Annotated[int, Field(ge=1, description="Random samples for each number of permutations.")]


# --- answers --------------------------------------------------------------------------------------

CitationStyle = Annotated[
    str,
    Field(
        title="auto|bracket|footnote|lenticular|doc|tag|superscript|paren|REGEX",
        description="Citation style. auto detects the style of each answer, and links. The others, "
        "in this order, are [1], [^1], \u30101\u2020source\u3011, [doc 1], <cite>1</cite>, "
        "\u00b9 and (1). The first group of a regular expression is the number.",
    ),
]
FirstNumber = Annotated[
    Literal["auto", "0", "1"],
    Field(description="Number of the first document in answers. auto reads it from the answers."),
]
Favoured = Annotated[str, Field(title="AUTHOR", description="Author that a positive CAB favours.")]


# --- statistics -----------------------------------------------------------------------------------

Level = Annotated[float, Field(gt=0, lt=1, description="Confidence level of intervals.")]
Resamples = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="Bootstrap samples, and permutations of the randomisation test.",
    ),
]
Seed = Annotated[int, Field(ge=0, description="Seed of the random numbers.")]
PairedTest = Annotated[
    Literal["tukey", "t", "wilcoxon", "permutation", "bootstrap"],
    Field(
        description="Test of the differences. tukey: randomised Tukey HSD for all pairs at once. "
        "The others test one pair at a time."
    ),
]
Correction = Annotated[
    Literal["bonferroni", "holm", "none"],
    Field(
        description="Correction of p over the comparisons of a table; Tukey's test has its own "
        "and takes no other."
    ),
]
Unpaired = Annotated[
    Literal["refuse", "drop"],
    Field(description="Topics without a score for every run: an error, or left out for all runs."),
]
MeanIntervals = Annotated[
    Literal["marginal", "simultaneous"],
    Field(
        description="Intervals of means. marginal: each is valid by itself. simultaneous: all are "
        "valid jointly (Bonferroni)."
    ),
]
Difference = Annotated[
    float,
    Field(
        ge=1e-100,
        le=1e100,
        description="Smallest difference worth finding, in the unit of the scores.",
    ),
]


# --- bias in the terms of rankings, and overlap of rankings ---------------------------------------

Cutoffs = Annotated[
    Sequence[Count],
    BeforeValidator(_read_cutoffs),
    Field(title="number,...", description="Cut-offs k: ranks at which the measures stop."),
]
Shares = Annotated[
    Sequence[NonNegative],
    BeforeValidator(_read_list),
    AfterValidator(_has_sum),
    Field(description="Target share of each group, in the order of the groups.  [equal]"),
]
Threshold = Annotated[
    float,
    Field(ge=0, description="Highest number of terms of a neutral text; 1 in the public program."),
]
Proportional = Annotated[
    bool, Field(description="With the factor RBDF (thesis Eq. 4.12), or without it (Eq. 4.10).")
]
TiedScores = Annotated[
    Literal["ranked", "expected"],
    Field(
        description="Documents with equal scores. ranked: in the order of the ranking. expected: "
        "the mean over all their permutations, which needs scores."
    ),
]
Background = Annotated[
    Literal["collection", "own"],
    Field(
        description="Background set of NFaiRR: the whole collection, as in the thesis, or the "
        "documents of the same ranking."
    ),
]
Tokens = Annotated[
    Literal["word", "whitespace", "space"],
    Field(
        description="How a text is split into terms. word: sequences of letters and digits, for "
        "raw "
        "text. whitespace: at any white space. space: at blanks only, as in the public program; "
        "for tokenised text, because 'He,' stays one term."
    ),
]
Undefined = Annotated[
    float, Field(allow_inf_nan=True, description="Value where the measure is 0 / 0.")
]
RankPersistence = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="p, the persistence: the probability of reading on to the next rank.",
    ),
]
Depth = Annotated[int, Field(ge=1, description="Ranks that are compared.")]
