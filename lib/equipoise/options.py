"""The options of measures, each declared once: its type, its bounds, what it decides, how a command line writes it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from equipoise.declare import Option, option_of
from equipoise.files import parse_number


@functools.cache
def by_name() -> dict[str, Any]:
    """Every option type by the name that a parameter has: `PositionWeight` as ``position_weight``."""
    hints = {name: hint for name, hint in globals().items() if option_of(hint)}
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): hint for name, hint in hints.items()}


def read_pairs(text: str) -> dict[str, float]:
    """Read ``name:number,name:number``, each name once."""
    pairs: dict[str, float] = {}
    for part in text.split(","):
        name, colon, number = part.rpartition(":")
        if not colon or not name.strip() or name.strip() in pairs:
            raise ValueError(f"pairs are name:number,name:number, each name once; found {text!r}")
        pairs[name.strip()] = parse_number(number.strip())
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
    pairs = [part.partition(":") for part in text.split(",")]
    found = {kind.strip(): [name.strip() for name in names.split("+")] for kind, _, names in pairs}
    if len(found) < len(pairs) or not set(found) <= {"nominal", "ordinal"}:
        raise ValueError(
            f"divergences are nominal:jsd+nvd,ordinal:rnod, each kind once; found {text!r}"
        )
    return found


def _read_cutoffs(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[1-9][0-9]{0,8}", part) for part in parts):
        raise ValueError(f"cut-offs are whole numbers from 1, between commas; found {text!r}")
    return sorted({int(part) for part in parts})


# --- conversations --------------------------------------------------------------------------------

Patience = Annotated[
    float, Option("L, the words that a user is willing to read.", least=1, whole=True)
]
TurnMarks = Annotated[
    Literal["line", "word"],
    Option("Where U: and S: open a turn of a FairWeb run: at the start of a line, or of any word."),
]
Units = Annotated[
    Literal["word", "character", "system-word", "system-character"],
    Option(
        "What positions count, over the conversation or its system turns alone: what white space separates, or "
        "characters other than white space (Japanese, Chinese)."
    ),
]
Offsets = Annotated[
    Literal["auto", "characters", "utf-16"],
    Option(
        "What the places of an export count; auto takes that in which every quoted text is found."
    ),
]
Gains = Annotated[
    Mapping[int, float] | Literal["exponential"],
    Option(
        "Gain of each level, or (2^l - 1) / 2^(highest level).",
        least=0,
        most=1,
        form="level:gain,...",
        parse=_read_gains,
    ),
]
MaxLevel = Annotated[int, Option("Highest level, for exponential gains.", least=1, most=1000)]
PositionWeight = Annotated[
    Literal["one-based", "zero-based", "zero-based-own-normaliser"],
    Option("How a nugget loses weight along the conversation: gfrc2 Eqs. 6, 7 and 9."),
]
Distribution = Annotated[
    Literal["independent", "cumulative"],
    Option(
        "Nuggets behind the achieved distribution of a turn: its own, or those of all turns up to it."
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
    Literal["rnod", "nmd", "jsd", "nvd"],
    Option("Divergence for ordinal groups; jsd and nvd are blind to their order."),
]
Nominal = Annotated[
    Literal["jsd", "nvd"],
    Option("Divergence for nominal groups, which have no order that one could depend on."),
]
Duplicates = Annotated[
    Literal["nonrelevant", "relevant"],
    Option(
        "What naming an entity again within a conversation is, nonrelevant or relevant; needs a column entity."
    ),
]
Weights = Annotated[
    Mapping[str, float],
    Option(
        "Weight of each part by name.  [equal]",
        least=0,
        shares=True,
        form="NAME:number,...",
        parse=read_pairs,
    ),
]
StopModel = Annotated[
    Literal["words", "anywhere", "nuggets", "gain", "geometric", "turns"] | Callable[..., Any],
    Option(
        "Who leaves at a relevant nugget: 1/L of the users at each (gfrc2); who leaves at any word from it to the next;"
        " equal shares; ERR's shares by gain; 1/L of who is left at its last word; who leaves at the ends of turns."
    ),
]
Utility = Annotated[
    Literal["gnp", "gains", "words"] | Callable[..., Any],
    Option("Utility for users who leave: GNP; the gains so far over L; 1 over the words read."),
]
Unserved = Annotated[
    Mapping[str, float],
    Option(
        "Value, by part, for users who leave without a relevant nugget: utility, or an attribute set.  [0]",
        least=0,
        most=1,
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
    Option(
        "p, that a user asks on after a round: the persistence is a probability.", least=0, most=1
    ),
]
Alpha = Annotated[
    float, Option("Share of R in GFRC.  [the mean of R and every GF]", least=0, most=1)
]


# --- conversations with a chat system -------------------------------------------------------------

Trials = Annotated[int, Option("How often all topics are gone through.", least=1)]
Rounds = Annotated[int, Option("Rounds of each conversation, unless it breaks down.", least=1)]
Session = Annotated[
    Literal["topic", "trial"],
    Option(
        "What is held in one session: one topic, or all of a trial, where an earlier one can leak into a later."
    ),
]
Parallel = Annotated[int, Option("Sessions held at a time.", least=1, most=1000)]
Temperature = Annotated[float, Option("Temperature of the sampling.", least=0)]
TopP = Annotated[
    float, Option("Share of the probability that sampling keeps, the nucleus.", above=0, most=1)
]
MaxTokens = Annotated[int, Option("Longest answer.", least=1)]
FirstSeed = Annotated[int, Option("First seed; every turn has its own, counted on from it.")]
SystemPrompt = Annotated[str, Option("System prompt.")]
Note = Annotated[
    str, Option("Remark to keep with the settings, such as the sha256 of a local model.")
]
KeyVariable = Annotated[str, Option("Environment variable with the key, if one is needed.")]
Timeout = Annotated[
    float, Option("Seconds for a whole answer, from its request to its end.", above=0, most=86_400)
]
Tries = Annotated[int, Option("Most requests for one answer.", least=1)]
Pause = Annotated[float, Option("Seconds between requests.", least=0, most=86_400)]

# --- ranked lists ---------------------------------------------------------------------------------

Cutoff = Annotated[int, Option("Ranks that are looked at.", least=1)]
LevelGains = Annotated[
    Mapping[int, float],
    Option(
        "Gain of each relevance level; level 0 has none.",
        least=0,
        form="level:gain,...",
        parse=read_levels,
    ),
]
Order = Annotated[
    Literal["file", "score", "rank"],
    Option(
        "What a list is ordered by: rows as they stand, score (ties by document id, both descending, as trec_eval),"
        " or stated rank (ties as they stand)."
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
    Option(
        "Share that must have been seen, of ranked documents with judgement, membership or text, or of answers with a "
        "readable citation: below it there is a warning; where nothing was seen, nothing is scored.",
        least=0,
        most=1,
    ),
]
Similarities = Annotated[
    Mapping[str, Sequence[Literal["rnod", "nmd", "jsd", "nvd"]]],
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
    Option(
        "Share of the value that is left at the next rank; the campaign has 0.99.", above=0, most=1
    ),
]
Decimals = Annotated[
    int,
    Option(
        "Round each component first, half to even on its exact value; the campaign's program has 4.  [no]",
        least=0,
        most=15,
    ),
]

# --- permutations of conversations ----------------------------------------------------------------

PermutationNumbers = Annotated[
    Sequence[int], Option("Numbers of permutations of each conversation to try.", least=1)
]
Repeats = Annotated[int, Option("Draws for each number of permutations.", least=1)]
DrawnOrders = Annotated[
    int,
    Option(
        "Orders of each conversation to draw besides the script; all where there are fewer.",
        least=1,
        most=10**6,
    ),
]
Context = Annotated[
    Literal["history", "previous", "first", "first-and-previous"],
    Option(
        "What a system sees before an utterance; with less than the whole history it has fewer inputs to run."
    ),
]
RankingMeasure = Annotated[
    str, Option("Measure of each ranking, as ir_measures names it.", form="NAME")
]
# --- answers --------------------------------------------------------------------------------------

CitationStyle = Annotated[
    str,
    Option(
        "How citations are written: [1], [^1], 【1†source】, [doc 1], <cite>1</cite>, ¹, (1), or by an expression of "
        "RE2 whose first group is the number; auto takes the style that most answers have.",
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

Level = Annotated[float, Option("Confidence level of intervals.", above=0, below=1)]
Resamples = Annotated[
    int,
    Option(
        "Bootstrap samples, and random exchanges of the randomisation test.",
        least=1,
        most=1_000_000,
    ),
]
Draws = Annotated[
    int, Option("Random draws of what is drawn of two annotators.", least=1, most=100_000)
]
Seed = Annotated[int, Option("Seed of what is drawn at random.", least=0)]

# --- comparing systems ----------------------------------------------------------------------------

PairedTest = Annotated[
    Literal["tukey", "t", "wilcoxon", "permutation", "bootstrap"],
    Option(
        "Test of the differences: randomised Tukey HSD, of all pairs of systems at once, or of one pair at a time."
    ),
]
Correction = Annotated[
    Literal["bonferroni", "holm", "none"],
    Option(
        "Correction of p over the comparisons of a table; Tukey's test has it built in and takes no other."
    ),
]
Unpaired = Annotated[
    Literal["refuse", "drop"],
    Option("Topics for which a run has no row or no number: refused, or left out for all runs."),
]
MeanIntervals = Annotated[
    Literal["marginal", "simultaneous"],
    Option(
        "Intervals of means: each covers its own at the level, or all together do (Bonferroni over the runs)."
    ),
]
Difference = Annotated[
    float, Option("Smallest difference worth finding, in the unit of the scores.", above=0)
]
Power = Annotated[float, Option("Chance to find that difference.", above=0, below=1)]
Systems = Annotated[
    int, Option("How many systems will be compared.  [as many as there are]", least=2, most=10_000)
]
WithinSystems = Annotated[
    Literal["one-way", "two-way"],
    Option(
        "Variance of a system's scores over topics: whole, or without what all systems share of a topic."
    ),
]
Over = Annotated[
    str, Option("Column that tells the cases apart: trial, order, path, annotator or another.")
]
Worst = Annotated[
    float, Option("Share of the cases that counts as the worst, for CVaR.", above=0, most=1)
]
Worse = Annotated[Literal["low", "high"], Option("Which values of the score are the worse ones.")]

# --- bias in the terms of ranked lists, and overlap of rankings -----------------------------------

Cutoffs = Annotated[
    Sequence[int],
    Option("Ranks k to stop at, the cut-offs.", least=1, form="number,...", parse=_read_cutoffs),
]
Shares = Annotated[
    Sequence[float],
    Option(
        "Wanted share of each group, in the order of the groups.  [equal]", least=0, shares=True
    ),
]
Target = Annotated[
    Mapping[str, float] | Sequence[float],
    Option(
        "Wanted share of each group.  [equal]",
        least=0,
        shares=True,
        form="group:number,...",
        parse=read_pairs,
    ),
]
Threshold = Annotated[
    float, Option("Occurrences up to which a text is neutral; the public program has 1.", least=0)
]
Places = Annotated[
    int,
    Option(
        "Decimal places of the neutrality of a text; the public NFaiRR program has 6.  [none]",
        least=0,
        most=15,
    ),
]
Base = Annotated[
    float,
    Option(
        "Base of the logarithm, which FaiRR alone depends on; the public program has 2.", above=1
    ),
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
    float, Option("Ratio of each geometric weight to the one before it.", above=0, most=1)
]
Proportional = Annotated[
    bool, Option("With the factor RBDF (thesis Eq. 4.12), or without it (Eq. 4.10).")
]
TiedScores = Annotated[
    Literal["ranked", "expected"],
    Option(
        "Documents of equal score: as they are ranked, or the mean over all their orders; this wants scores."
    ),
]
Magnitude = Annotated[
    Literal["log", "count", "boolean"],
    Option(
        "How ARB takes a count c of a group's terms: ln(c + 1), as its public program; c; or 1 where c > 0."
    ),
]
Towards = Annotated[
    int,
    Option(
        "Group that ARB is positive for: its place in the order of the groups, from 0.", least=0
    ),
]
Against = Annotated[
    int,
    Option(
        "Group that ARB is negative for: its place in the order of the groups, from 0.", least=0
    ),
]
Background = Annotated[
    Literal["collection", "own"],
    Option(
        "Background set of NFaiRR: the whole collection, as in the thesis, or the documents of each list itself."
    ),
]
Missing = Annotated[
    Literal["neutral", "refuse"],
    Option("A document that the collection lacks: one without representative terms, or an error."),
]
Tokens = Annotated[
    Literal["word", "whitespace", "space"],
    Option(
        "How a text falls into terms: runs of letters and digits (for raw text); at any white space; or between "
        "blanks, as in the public program (for tokenised texts, for it leaves 'He,' whole)."
    ),
]
AttributeName = Annotated[str, Option("Name of the attribute set, for the column attribute.")]
Undefined = Annotated[float, Option("Value where the measure is 0 / 0.", finite=False)]
Unaligned = Annotated[
    Literal["equal", "none"],
    Option(
        "A document without any representative term belongs equally to all groups, as in the thesis, or to none."
    ),
]
RankPersistence = Annotated[
    float, Option("p, the persistence: the chance to read on to the next rank.", above=0, below=1)
]
Depth = Annotated[int, Option("Ranks that are compared.", least=1)]
Beyond = Annotated[
    Literal["extrapolated", "truncated", "minimum", "maximum"],
    Option(
        "What the sum takes for depths beyond the end of the lists: the agreement goes on as it was; nothing; no "
        "further item in common; every further item in common."
    ),
]
