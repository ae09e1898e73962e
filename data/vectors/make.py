"""Write the inputs and expected values of this folder, with fractions and 50 decimal digits.

It imports nothing of Equipoise: each formula is written again, as its paper has it. ERR is also
computed by gdeval, which ir_measures contains and which needs Perl.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal, getcontext
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import ir_measures

getcontext().prec = 50
FOLDER = Path(__file__).parent
UNIFORM = [Fraction(1, 3)] * 3
ROWS: list[tuple[str, str, str, str, str, str]] = []


def decimal(number: Fraction | Decimal | int) -> Decimal:
    """Return a number with 50 digits."""
    if isinstance(number, Fraction):
        return Decimal(number.numerator) / Decimal(number.denominator)
    return Decimal(number)


def log2(number: Fraction | Decimal | int) -> Decimal:
    """Return the binary logarithm."""
    return decimal(number).ln() / Decimal(2).ln()


def expect(file: str, case: str, measure: str, value: Fraction | Decimal, source: str = "") -> None:
    """Note an expected value."""
    is_exact = isinstance(value, Fraction)
    source = source or ("fractions" if is_exact else "50 decimal digits")
    ROWS.append((file, case, measure, f"{decimal(value):.15g}", str(value) * is_exact, source))


def write(name: str, header: str, rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV."""
    with (FOLDER / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header.split(","), *rows])


# --- divergences ----------------------------------------------------------------------------------


def jsd(p: Sequence[Fraction], q: Sequence[Fraction]) -> Decimal:
    """Jensen-Shannon divergence with the base 2."""
    total = Decimal(0)
    for a, b in zip(p, q, strict=True):
        for share in (a, b):
            if share:
                total += decimal(share) * log2(2 * share / (a + b)) / 2
    return total


def nvd(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Half the sum of absolute differences."""
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def nmd(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Normalised match distance."""
    steps = [abs(sum(p[:i]) - sum(q[:i])) for i in range(1, len(p))]
    return sum(steps, Fraction(0)) / (len(p) - 1)


def rnod(p: Sequence[Fraction], q: Sequence[Fraction]) -> Decimal:
    """Root normalised order-aware divergence."""
    n = len(p)
    of_group = [
        sum((abs(i - j) * (p[j] - q[j]) ** 2 for j in range(n)), Fraction(0))
        for i in range(n)
        if q[i] > 0
    ]
    return (decimal(sum(of_group) / len(of_group)) / (n - 1)).sqrt()


DIVERGENCES = {"jsd": jsd, "nvd": nvd, "nmd": nmd, "rnod": rnod}
PAIRS = ["1 0 0,1/3 1/3 1/3", "3/4 1/4 0,1/3 1/3 1/3", "0 0 0 1,1/4 1/4 1/4 1/4", "1/2 1/2,1 0"]
for pair in PAIRS:
    achieved, target = ([Fraction(word) for word in side.split()] for side in pair.split(","))
    for name, function in DIVERGENCES.items():
        expect("distributions.csv", pair.split(",")[0], name, function(achieved, target))
write("distributions.csv", "achieved,target", [pair.split(",") for pair in PAIRS])

# --- a ranking: GFR, AWRF, exposure ---------------------------------------------------------------

LEVELS = {"t1": {"a": 2, "b": 1, "c": 1, "d": 1, "y": 0}, "t2": {"a": 1, "b": 0, "c": 2}}
RUN = {"t1": ["a", "x", "b", "c"], "t2": ["b", "a", "c"]}
MEMBERS = {"a": [1, 0, 0], "b": [0, 0, 1], "c": [0, 1, 0], "d": [0, 0, 1]}  # x has none
GAINS = {0: 0, 1: 1, 2: 3}
write(
    "qrels.csv", "topic,document,level", [(t, d, n) for t in LEVELS for d, n in LEVELS[t].items()]
)
write(
    "run.csv",
    "topic,document,rank",
    [(topic, name, rank) for topic in RUN for rank, name in enumerate(RUN[topic], start=1)],
)
write("groups.csv", "document,small,middle,large", [(d, *v) for d, v in MEMBERS.items()])

for topic, names in RUN.items():
    vectors = [[Fraction(x) for x in MEMBERS[d]] if d in MEMBERS else UNIFORM for d in names]
    reading, scores = Fraction(1), dict.fromkeys(["ERR", "iRBU"], Fraction(0))
    fair: dict[str, Fraction | Decimal] = {
        "NMD": Fraction(0),
        "RNOD": Decimal(0),
        "JSD": Decimal(0),
    }
    for rank, document in enumerate(names, start=1):
        stop = Fraction(GAINS[LEVELS[topic].get(document, 0)], 4)
        leaving, reading = reading * stop, reading * (1 - stop)
        scores["ERR"] += leaving / rank
        scores["iRBU"] += leaving * Fraction(99, 100) ** rank
        met = [sum(column) / rank for column in zip(*vectors[:rank], strict=True)]
        fair["NMD"] += leaving * (1 - nmd(met, UNIFORM))  # type: ignore[operator]
        fair["RNOD"] += decimal(leaving) * (1 - rnod(met, UNIFORM))
        fair["JSD"] += decimal(leaving) * (1 - jsd(met, UNIFORM))
    for utility, value in scores.items():
        expect("run.csv", topic, utility, value)
        for name, fairness in fair.items():
            same = value if isinstance(fairness, Fraction) else decimal(value)
            expect("run.csv", topic, f"GFR-{utility}+{name}", (same + fairness) / 2)  # type: ignore[operator]
    for name, fairness in fair.items():
        expect("run.csv", topic, f"GF-{name}", fairness)
    attention = [1 / log2(rank + 1) for rank in range(1, len(names) + 1)]
    exposure = [
        sum(
            (v * decimal(vector[g]) for v, vector in zip(attention, vectors, strict=True)),
            Decimal(0),
        )
        for g in range(3)
    ]
    gaps = [abs(part / sum(exposure) - decimal(Fraction(1, 3))) for part in exposure]
    expect("run.csv", topic, "AWRF@20", sum(gaps, Decimal(0)))

received, even = dict.fromkeys("012", Decimal(0)), dict.fromkeys("012", Decimal(0))
for topic, levels in LEVELS.items():
    exposure_of = {d: 1 / log2(rank + 1) for rank, d in enumerate(RUN[topic], start=1)}
    for level in (1, 2):
        documents = [d for d, own in levels.items() if own == level]
        given = [exposure_of.get(d, Decimal(0)) for d in documents]
        for document, value in zip(documents, given, strict=True):
            group = str(MEMBERS[document].index(1))
            received[group] += value
            even[group] += sum(given) / len(given)
for group, name in enumerate(("small", "middle", "large")):
    key = str(group)
    expect("run.csv", name, "exposure-over-relevance", received[key] / even[key])

# gdeval has five decimals, gains up to level 4, and numbers as topics.
qrels = [ir_measures.Qrel(t[1:], d, n) for t in LEVELS for d, n in LEVELS[t].items()]
run = [ir_measures.ScoredDoc(t[1:], d, -r) for t in RUN for r, d in enumerate(RUN[t])]
version = f"gdeval of ir_measures {metadata.version('ir_measures')}"
for metric in ir_measures.iter_calc([ir_measures.ERR @ 20], qrels, run):
    ROWS.append(
        ("run.csv", f"t{metric.query_id}", "ERR (gains to level 4)", f"{metric.value}", "", version)
    )

# --- terms of ranked texts: NFaiRR, TED, TExFAIR --------------------------------------------------

TERMS = {"a": (10, 2, 0), "b": (8, 0, 0), "c": (6, 1, 2), "x": (5, 0, 1)}  # length, female, male
write("terms.csv", "document,length,female,male", [(d, *v) for d, v in TERMS.items()])


def neutrality(document: str) -> Decimal:
    """Neutrality of a text: 1 with at most one term of any group."""
    _, *counts = TERMS[document]
    total = sum(counts)
    if total <= 1:
        return Decimal(1)
    return decimal(1 - sum(abs(Fraction(n, total) - Fraction(1, 2)) for n in counts))


for topic, names in RUN.items():
    for k in (1, 3):
        attention = [1 / log2(rank + 1) for rank in range(1, k + 1)]
        documents = names[:k]
        fairness = sum(
            (v * neutrality(d) for v, d in zip(attention, documents, strict=True)), Decimal(0)
        )
        best = sorted((neutrality(d) for d in TERMS), reverse=True)[:k]
        ideal = sum((v * omega for v, omega in zip(attention, best, strict=True)), Decimal(0))
        expect("terms.csv", topic, f"NFaiRR@{k}", fairness / ideal)
        parts = [Decimal(0), Decimal(0)]
        shown = Decimal(0)
        for v, document in zip(attention, documents, strict=True):
            length, *counts = TERMS[document]
            parts = [part + v * n / length for part, n in zip(parts, counts, strict=True)]
            shown += v * (sum(counts) > 0)
        gap = (
            sum((abs(part / sum(parts) - Decimal("0.5")) for part in parts), Decimal(0))
            if sum(parts)
            else Decimal(0)
        )
        expect("terms.csv", topic, f"TED(proportional=False)@{k}", gap)
        expect("terms.csv", topic, f"TExFAIR@{k}", 1 - gap * shown / sum(attention))

# --- nuggets of a conversation: GFRC, GFRC2 -------------------------------------------------------

NUGGETS = [(1, 3, 5, 2, 0), (1, 9, 10, 1, 2), (2, 20, 24, 2, 2)]  # turn, start, end, level, group
write(
    "nuggets.csv",
    "run,topic,turn,start,end,level,SIZE",
    [("run", "T", *n[:4], " ".join(str(int(i == n[4])) for i in range(3))) for n in NUGGETS],
)


def met_of(nuggets: Sequence[tuple[int, ...]]) -> list[Fraction]:
    """Mean membership of nuggets."""
    return [Fraction(sum(n[4] == group for n in nuggets), len(nuggets)) for group in range(3)]


patience, gain_of = 100, {1: Fraction(1, 2), 2: Fraction(1)}
relevance = sum(
    ((1 - Fraction(end - 1, patience)) * gain_of[level] for _, _, end, level, _ in NUGGETS),
    Fraction(0),
)
relevance *= Fraction(2, patience + 1)
by_turn = [[n for n in NUGGETS if n[0] == turn] for turn in (1, 2)]
fair_turns = sum((1 - rnod(met_of(own), UNIFORM) for own in by_turn), Decimal(0)) / 2
expect("nuggets.csv", "T", "R", relevance)
expect("nuggets.csv", "T", "GFRC", (decimal(relevance) + fair_turns) / 2)
utility, group_fairness = Fraction(0), Decimal(0)
for place in range(1, len(NUGGETS) + 1):
    so_far = NUGGETS[:place]
    graded = sum(level * (end - start + 1) for _, start, end, level, _ in so_far)
    others = so_far[-1][2] - sum(end - start + 1 for _, start, end, _, _ in so_far)
    utility += Fraction(graded, (others + graded) * patience)
    group_fairness += (1 - rnod(met_of(so_far), UNIFORM)) / patience
expect("nuggets.csv", "T", "EGNP", utility)
expect("nuggets.csv", "T", "GFRC2", (decimal(utility) + group_fairness) / 2)

# --- two rankings: RBO ----------------------------------------------------------------------------

LISTS = [("a", "b", "c", "d"), ("b", "a", "e", "c")]
write(
    "rankings.csv",
    "rank,first,second",
    [(r, *pair) for r, pair in enumerate(zip(*LISTS, strict=True), 1)],
)
p = Fraction(9, 10)
common = [len(set(LISTS[0][:d]) & set(LISTS[1][:d])) for d in range(1, 5)]
rbo = sum((Fraction(n, d) * p**d for d, n in enumerate(common, start=1)), Fraction(0)) * (1 - p) / p
expect("rankings.csv", "first, second", "RBO(p=0.9)", rbo + Fraction(common[-1], 4) * p**4)

# --- citations of answers: precision, recall, CAS, CAB --------------------------------------------

ANSWERS = [  # question, mode, relevant documents, answer
    ("q1", "Vanilla", "1 2", "So [1][3]."),
    ("q1", "Informed", "1 2", "So [1], [2]."),
    ("q1", "CF-informed", "1 2", "So [3]."),
    ("q2", "Vanilla", "2", "Thus [2]."),
    ("q2", "Informed", "2", "Thus [1, 2, 4]."),
    ("q2", "CF-informed", "2", "Thus."),
]
write("answers.csv", "question,mode,relevant,answer", ANSWERS)
cited = {("q1", "Vanilla"): {1, 3}, ("q1", "Informed"): {1, 2}, ("q1", "CF-informed"): {3}}
cited |= {("q2", "Vanilla"): {2}, ("q2", "Informed"): {1, 2, 4}, ("q2", "CF-informed"): set()}
values: dict[tuple[str, str, str], Fraction] = {}
for question, mode, relevant, _ in ANSWERS:
    wanted, found = set(map(int, relevant.split())), cited[question, mode]
    hits = len(wanted & found)
    values["precision", question, mode] = Fraction(hits, len(found)) if found else Fraction(0)
    values["recall", question, mode] = Fraction(hits, len(wanted))
for measure in ("precision", "recall"):
    for mode in ("Vanilla", "Informed", "CF-informed"):
        mean = sum((values[measure, q, mode] for q in ("q1", "q2")), Fraction(0)) / 2
        expect("answers.csv", mode, measure, mean)
    gaps_of = {
        other: [values[measure, q, "Informed"] - values[measure, q, other] for q in ("q1", "q2")]
        for other in ("Vanilla", "CF-informed")
    }
    expect(
        "answers.csv",
        "Informed",
        f"CAS-{measure}",
        sum(map(abs, gaps_of["Vanilla"]), Fraction(0)) / 2,
    )
    expect(
        "answers.csv", "Informed", f"CAB-{measure}", sum(gaps_of["CF-informed"], Fraction(0)) / 2
    )

write("expected.csv", "file,case,measure,value,exact,source", ROWS)
