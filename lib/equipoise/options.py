"""The options of measures, each declared once: type, bounds, meaning, form on a command line."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MultipleOf, Predicate

from equipoise.declare import OneOf, Option, option_of
from equipoise.files import parse_number


@functools.cache
def by_name() -> dict[str, Any]:
    """Every option by the name that a parameter has: `PositionWeight` as ``position_weight``."""
    hints = {name: hint for name, hint in globals().items() if option_of(hint)}
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): hint for name, hint in hints.items()}


# --- how a command line writes them ---------------------------------------------------------------


def read_pairs(text: str) -> dict[str, float]:
    """Read ``name:number,name:number``, each name once."""
    pairs: dict[str, float] = {}
    for pair in text.split(","):
        name, colon, number = pair.rpartition(":")
        name = name.strip()
        if not colon or not name or name in pairs:
            raise ValueError(f"pairs are name:number,name:number, each name once; found {text!r}")
        pairs[name] = parse_number(number.strip())
    return pairs


def read_levels(text: str) -> dict[int, float]:
    """Read ``level:gain,level:gain``; levels are whole numbers from 1."""
    pairs = read_pairs(text)
    if not all(re.fullmatch("[1-9][0-9]{0,3}", level) for level in pairs):
        raise ValueError(f"the levels of gains are whole numbers from 1 to 9999; found {text!r}")
    return {int(level): gain for level, gain in pairs.items()}


def _read_gains(text: str) -> dict[int, float] | str:
    return text if text == "exponential" else read_levels(text)


def _read_similarities(text: str) -> dict[str, list[str]]:
    """Read ``kind:name+name,kind:name``, each kind of groups once."""
    names_by_kind: dict[str, list[str]] = {}
    for pair in text.split(","):
        kind, _, names = pair.partition(":")
        kind = kind.strip()
        if kind not in ("nominal", "ordinal") or kind in names_by_kind:
            wanted = "nominal:name+name,ordinal:name, each kind once"
            raise ValueError(f"divergences are {wanted}; found {text!r}")
        names_by_kind[kind] = [name.strip() for name in names.split("+")]
    return names_by_kind


def _read_cutoffs(text: str) -> list[int]:
    cutoffs = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch("[1-9][0-9]{0,8}", cutoff) for cutoff in cutoffs):
        raise ValueError(f"cut-offs are whole numbers from 1, between commas; found {text!r}")
    return sorted({int(cutoff) for cutoff in cutoffs})


# --- what several options ask for -----------------------------------------------------------------

STATISTICS = "Statistics"
"""The heading of options that say how sure a number is, in the help of commands."""
Count = Annotated[int, Ge(1)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]


def with_a_sum_above_0(shares: Mapping[str, float] | Sequence[float]) -> bool:
    """Whether shares can be divided by their sum; error messages show the name of this function."""
    numbers = list(shares.values()) if isinstance(shares, Mapping) else shares
    return not numbers or 0 < sum(numbers) < math.inf


# What is declared elsewhere is looked up when somebody asks, so that a further divergence or stop
# model is no further line here; and so that the help of a command loads neither NumPy nor pandas.


def _nominal_divergences() -> Sequence[str]:
    from equipoise.divergences import divergences_for

    return divergences_for("nominal")


def _ordinal_divergences() -> Sequence[str]:
    from equipoise.divergences import divergences_for

    return divergences_for("ordinal")


def _stop_models() -> Sequence[str]:
    from equipoise.measures.stop_models import STOP_MODELS

    return list(STOP_MODELS)


def _utilities() -> Sequence[str]:
    from equipoise.measures.stop_models import UTILITIES

    return ["gnp", *UTILITIES]


# --- conversations --------------------------------------------------------------------------------

Patience = Annotated[
    float, Ge(1), MultipleOf(1), Option("L, the words that a user is willing to read.")
]
TurnMarks = Annotated[
    Literal["line", "word"],
    Option("Where U: and S: open a turn of a FairWeb run: at the start of a line, or of any word."),
]
Units = Annotated[
    Literal["word", "character", "system-word", "system-character"],
    Option(
        "What positions count, over the conversation or its system turns alone: what white space "
        "separates, or characters other than white space (Japanese, Chinese)."
    ),
]
Offsets = Annotated[
    Literal["auto", "characters", "utf-16"],
    Option(
        "What the places of an export count; auto takes that in which every quoted text is found."
    ),
]
Nested = Annotated[
    Literal["refuse", "outermost", "innermost"],
    Option(
        "Spans of an export that lie within a span: refused, or the outermost or the innermost of "
        "them is the nugget."
    ),
]
Gains = Annotated[
    Annotated[Mapping[int, Share], Predicate(with_a_sum_above_0)] | Literal["exponential"],
    Option(
        "Gain of each level, or (2^l - 1) / 2^(highest level).",
        form="level:gain,...",
        parse=_read_gains,
    ),
]
MaxLevel = Annotated[int, Ge(1), Le(1000), Option("Highest level, for exponential gains.")]
PositionWeight = Annotated[
    Literal["one-based", "zero-based", "zero-based-own-normaliser"],
    Option("How a nugget loses weight along the conversation: gfrc2 Eqs. 6, 7 and 9."),
]
Distribution = Annotated[
    Literal["independent", "cumulative"],
    Option(
        "Nuggets behind the achieved distribution of a turn: its own, or those of all turns up to "
        "it."
    ),
]
EmptyTurns = Annotated[
    Literal["ignore", "uniform"],
    Option("Turns without relevant nuggets: left out, or taken as uniform."),
]
TurnWeight = Annotated[
    Literal["uniform", "largest-nugget"],
    Option("PW of a turn: 1, or the largest weight of its nuggets."),
]
Ordinal = Annotated[
    str,
    OneOf(_ordinal_divergences),
    Option("Divergence for ordinal groups; one for nominal groups is blind to their order."),
]
Nominal = Annotated[
    str,
    OneOf(_nominal_divergences),
    Option("Divergence for nominal groups, which have no order that one could depend on."),
]
Duplicates = Annotated[
    Literal["nonrelevant", "relevant"],
    Option(
        "What naming an entity again within a conversation is, nonrelevant or relevant; needs a "
        "column entity."
    ),
]
Weights = Annotated[
    Mapping[str, NonNegative],
    Predicate(with_a_sum_above_0),
    Option("Weight of each part by name.  [equal]", form="NAME:number,...", parse=read_pairs),
]
StopModel = Annotated[
    Annotated[str, OneOf(_stop_models)] | Callable[..., Any],
    Option(
        "Who leaves at a relevant nugget: 1/L of the users at each (gfrc2); who leaves at any "
        "word from it to the next; equal shares; ERR's shares by gain; 1/L of who is left at its "
        "last word; who leaves at the ends of turns."
    ),
]
Utility = Annotated[
    Annotated[str, OneOf(_utilities)] | Callable[..., Any],
    Option("Utility for users who leave: GNP; the gains so far over L; 1 over the words read."),
]
Unserved = Annotated[
    Mapping[str, Share],
    Option(
        "Value, by part, for users who leave without a relevant nugget: utility, or an attribute "
        "set.  [0]",
        form="NAME:number,...",
        parse=read_pairs,
    ),
]
BeyondPatience = Annotated[
    Literal["counted", "ignored"],
    Option("Nuggets that end beyond L, in GF: counted, as in the papers, or ignored."),
]
AskingOn = Annotated[
    float,
    Ge(0),
    Le(1),
    Option("p, that a user asks on after a round: the persistence is a probability."),
]
Alpha = Annotated[float, Ge(0), Le(1), Option("Share of R in GFRC.  [the mean of R and every GF]")]


# --- conversations with a chat system -------------------------------------------------------------

Trials = Annotated[int, Ge(1), Le(1000), Option("How often all topics are gone through.")]
Rounds = Annotated[
    int, Ge(1), Le(100), Option("Rounds of each conversation, unless it breaks down.")
]
Session = Annotated[
    Literal["topic", "trial"],
    Option(
        "What is held in one session: one topic, or all of a trial, where an earlier one can leak "
        "into a later."
    ),
]
Parallel = Annotated[int, Ge(1), Le(1000), Option("Sessions held at a time.")]
Temperature = Annotated[float, Ge(0), Option("Temperature of the sampling.")]
TopP = Annotated[
    float, Gt(0), Le(1), Option("Share of the probability that sampling keeps, the nucleus.")
]
MaxTokens = Annotated[int, Ge(1), Option("Longest answer.")]
FirstSeed = Annotated[int, Option("First seed; every turn has its own, counted on from it.")]
SystemPrompt = Annotated[str, Option("System prompt.")]
Note = Annotated[
    str, Option("Remark to keep with the settings, such as the sha256 of a local model.")
]
KeyVariable = Annotated[str, Option("Environment variable with the key, if one is needed.")]
Timeout = Annotated[
    float, Gt(0), Le(86_400), Option("Seconds for a whole answer, from its request to its end.")
]
Tries = Annotated[int, Ge(1), Option("Most requests for one answer.")]
Pause = Annotated[float, Ge(0), Le(86_400), Option("Seconds between requests.")]

# --- ranked lists ---------------------------------------------------------------------------------

Cutoff = Annotated[int, Ge(1), Option("Ranks that are looked at.")]
LevelGains = Annotated[
    Annotated[Mapping[int, NonNegative], Predicate(with_a_sum_above_0)] | Literal["exponential"],
    Option(
        "Gain of each relevance level, or 2^l - 1 up to the highest level judged, at least 2; "
        "level 0 has none.",
        form="level:gain,...",
        parse=_read_gains,
    ),
]
Order = Annotated[
    Literal["file", "score", "rank"],
    Option(
        "What a list is ordered by: rows as they stand, score (ties by document id, both "
        "descending, as trec_eval), or stated rank (ties as they stand)."
    ),
]
RunOrder = Annotated[
    Literal["auto", "score", "file", "rank"],
    Option(
        "What the lists of a run file are ordered by: score (ties by document id, both descending, "
        "as trec_eval), rows as they stand, or stated rank; auto is score for TREC and Parquet, "
        "and rows as they stand for NTCIR, whose files open with <SYSDESC>.",
        group="Input",
    ),
]
Unjudged = Annotated[
    Literal["nonrelevant", "removed"],
    Option("Unjudged documents: gain 0 in their place, or taken out of the list before it is cut."),
]
Unrepresented = Annotated[
    Literal["uniform", "ignored"],
    Option("Documents without membership: spread evenly over the groups, or not counted."),
]
Absent = Annotated[
    Literal["zero", "omitted"],
    Option("Topics of the qrels that a run lacks: scored 0, or without row and share in the mean."),
]
LeastSeen = Annotated[
    float,
    Ge(0),
    Le(1),
    Option(
        "Share that must have been seen, of ranked documents with judgement, membership or text, "
        "or of answers with a readable citation: below it there is a warning; where nothing was "
        "seen, nothing is scored."
    ),
]
Similarities = Annotated[
    Mapping[str, Sequence[Annotated[str, OneOf(_ordinal_divergences)]]],
    Option(
        "Divergences for each kind of groups.", form="kind:name+name,...", parse=_read_similarities
    ),
]
ByGroup = Annotated[
    bool,
    Option(
        "Add what each group has: the part of the utility it brings, its exposure, or its share."
    ),
]
Phi = Annotated[
    float,
    Gt(0),
    Le(1),
    Option("Share of the value that is left at the next rank; the campaign has 0.99."),
]
Decimals = Annotated[
    int,
    Ge(0),
    Le(15),
    Option(
        "Round each component first, half to even on its exact value; the campaign's program has "
        "4.  [no]"
    ),
]

# --- permutations of conversations ----------------------------------------------------------------

PermutationNumbers = Annotated[
    Sequence[Count], Option("Numbers of permutations of each conversation to try.")
]
Repeats = Annotated[int, Ge(1), Option("Draws for each number of permutations.")]
DrawnOrders = Annotated[
    int,
    Ge(1),
    Le(10**6),
    Option("Orders of each conversation to draw besides the script; all where there are fewer."),
]
Context = Annotated[
    Literal["history", "previous", "first", "first-and-previous"],
    Option(
        "What a system sees before an utterance; with less than the whole history it has fewer "
        "inputs to run."
    ),
]
RankingMeasure = Annotated[
    str, Option("Measure of each ranking, as ir_measures names it.", form="NAME")
]
# --- answers --------------------------------------------------------------------------------------

CitationStyle = Annotated[
    str,
    Option(
        "How citations are written: [1], [^1], 【1†source】, [doc 1], <cite>1</cite>, ¹, (1), or "
        "by an expression of RE2 whose first group is the number; auto takes the style that most "
        "answers have.",
        form="auto|bracket|footnote|lenticular|doc|tag|superscript|paren|REGEX",
    ),
]
OutOfRange = Annotated[
    Literal["ignored", "wrong"],
    Option(
        "A number that names no document: no citation, as for the thesis's authors, or a wrong one."
    ),
]
Match = Annotated[
    Literal["substring", "words"],
    Option("How a gold answer is found in the answer: anywhere, or as whole words."),
]
CitationMarks = Annotated[
    Literal["removed", "kept"], Option("Citations in the answer when a gold answer is looked for.")
]
Authors = Annotated[
    tuple[str, str], Option("The two authors; CAB is positive where the first is favoured.")
]
Favoured = Annotated[str, Option("Author whose favour makes CAB positive.", form="AUTHOR")]

# --- samples --------------------------------------------------------------------------------------

Level = Annotated[float, Gt(0), Lt(1), Option("Confidence level of intervals.", group=STATISTICS)]
Resamples = Annotated[
    int,
    Ge(1),
    Le(1_000_000),
    Option("Bootstrap samples, and random exchanges of the randomisation test.", group=STATISTICS),
]
Draws = Annotated[
    int,
    Ge(1),
    Le(100_000),
    Option("Random draws of what is drawn of two annotators.", group=STATISTICS),
]
Seed = Annotated[int, Ge(0), Option("Seed of what is drawn at random.", group=STATISTICS)]

# --- comparing systems ----------------------------------------------------------------------------

PairedTest = Annotated[
    Literal["tukey", "t", "wilcoxon", "permutation", "bootstrap"],
    Option(
        "Test of the differences: randomised Tukey HSD, of all pairs of systems at once, or of "
        "one pair at a time.",
        group=STATISTICS,
    ),
]
Correction = Annotated[
    Literal["bonferroni", "holm", "none"],
    Option(
        "Correction of p over the comparisons of a table; Tukey's test has it built in and takes "
        "no other.",
        group=STATISTICS,
    ),
]
Unpaired = Annotated[
    Literal["refuse", "drop"],
    Option(
        "Topics for which a run has no row or no number: refused, or left out for all runs.",
        group=STATISTICS,
    ),
]
MeanIntervals = Annotated[
    Literal["marginal", "simultaneous"],
    Option(
        "Intervals of means: each covers its own at the level, or all together do (Bonferroni "
        "over the runs).",
        group=STATISTICS,
    ),
]
Difference = Annotated[
    float,
    Ge(1e-100),
    Le(1e100),
    Option("Smallest difference worth finding, in the unit of the scores."),
]
Power = Annotated[float, Gt(0), Lt(1), Option("Chance to find that difference.")]
Systems = Annotated[
    int, Ge(2), Le(10_000), Option("How many systems will be compared.  [as many as there are]")
]
WithinSystems = Annotated[
    Literal["one-way", "two-way"],
    Option(
        "Variance of a system's scores over topics: whole, or without what all systems share of a "
        "topic."
    ),
]
Over = Annotated[
    str, Option("Column that tells the cases apart: trial, order, path, annotator or another.")
]
Worst = Annotated[
    float, Gt(0), Le(1), Option("Share of the cases that counts as the worst, for CVaR.")
]
Worse = Annotated[Literal["low", "high"], Option("Which values of the score are the worse ones.")]

# --- bias in the terms of ranked lists, and overlap of rankings -----------------------------------

Cutoffs = Annotated[
    Sequence[Count],
    Option("Ranks k to stop at, the cut-offs.", form="number,...", parse=_read_cutoffs),
]
Shares = Annotated[
    Sequence[NonNegative],
    Predicate(with_a_sum_above_0),
    Option("Wanted share of each group, in the order of the groups.  [equal]"),
]
Target = Annotated[
    Mapping[str, NonNegative] | Sequence[NonNegative],
    Predicate(with_a_sum_above_0),
    Option("Wanted share of each group.  [equal]", form="group:number,...", parse=read_pairs),
]
Threshold = Annotated[
    float, Ge(0), Option("Occurrences up to which a text is neutral; the public program has 1.")
]
Places = Annotated[
    int,
    Ge(0),
    Le(15),
    Option("Decimal places of the neutrality of a text; the public NFaiRR program has 6.  [none]"),
]
Base = Annotated[
    float,
    Gt(1),
    Option("Base of the logarithm, which FaiRR alone depends on; the public program has 2."),
]
Short = Annotated[
    Literal["length", "cutoff"],
    Option("Where the denominator of RBDF stops for a list that is shorter than k."),
]
Attention = Annotated[
    Literal["log", "geometric", "uniform"],
    Option("How the attention that a rank gets falls along the list."),
]
Decay = Annotated[
    float, Gt(0), Le(1), Option("Ratio of each geometric weight to the one before it.")
]
Proportional = Annotated[
    bool, Option("With the factor RBDF (thesis Eq. 4.12), or without it (Eq. 4.10).")
]
TiedScores = Annotated[
    Literal["ranked", "expected"],
    Option(
        "Documents of equal score: as they are ranked, or the mean over all their orders; this "
        "wants scores."
    ),
]
Magnitude = Annotated[
    Literal["log", "count", "boolean"],
    Option(
        "How ARB takes a count c of a group's terms: ln(c + 1), as its public program; c; or 1 "
        "where c > 0."
    ),
]
Towards = Annotated[
    str, Option("Group that ARB is positive for.  [the second by name]", form="GROUP")
]
Against = Annotated[
    str, Option("Group that ARB is negative for.  [the first by name]", form="GROUP")
]
GroupPlace = Annotated[int, Ge(0), Option("Place of a group in the order of the groups, from 0.")]
Background = Annotated[
    Literal["collection", "own"],
    Option(
        "Background set of NFaiRR: the whole collection, as in the thesis, or the documents of "
        "each list itself."
    ),
]
Missing = Annotated[
    Literal["neutral", "refuse"],
    Option("A document that the collection lacks: one without representative terms, or an error."),
]
Tokens = Annotated[
    Literal["word", "whitespace", "space"],
    Option(
        "How a text falls into terms: runs of letters and digits (for raw text); at any white "
        "space; or between blanks, as in the public program (for tokenised texts, for it leaves "
        "'He,' whole)."
    ),
]
AttributeName = Annotated[str, Option("Name of the attribute set, for the column attribute.")]
Undefined = Annotated[float, Option("Value where the measure is 0 / 0.", finite=False)]
Unaligned = Annotated[
    Literal["equal", "none"],
    Option(
        "A document without any representative term belongs equally to all groups, as in the "
        "thesis, or to none."
    ),
]
RankPersistence = Annotated[
    float, Gt(0), Lt(1), Option("p, the persistence: the chance to read on to the next rank.")
]
Depth = Annotated[int, Ge(1), Option("Ranks that are compared.")]
Beyond = Annotated[
    Literal["extrapolated", "truncated", "minimum", "maximum"],
    Option(
        "What the sum takes for depths beyond the end of the lists: the agreement goes on as it "
        "was; nothing; no further item in common; every further item in common."
    ),
]
