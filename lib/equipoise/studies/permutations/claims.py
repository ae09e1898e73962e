"""Whether the paper's findings hold on the replica: the verdict on each, and the numbers that decide it."""

from __future__ import annotations

import pandas as pd

from equipoise.studies.permutations.tables import script_place

Verdict = tuple[bool, str]


def first_utterance_leads(table: pd.DataFrame) -> Verdict:
    """In the order of the script, of Table 2."""
    original = table.set_index("run")["original"]
    leader = original.idxmax()
    return leader == "FU", f"FU {original['FU']:.4f}, {leader} {original[leader]:.4f}"


def first_utterance_stays(table: pd.DataFrame) -> Verdict:
    """The same whatever the order, of Table 2."""
    low, high = table.set_index("run").loc["FU", ["minimum", "maximum"]]
    return bool(low == high), f"lowest {low:.4f}, highest {high:.4f}"


def permuting_lowers(moved: pd.DataFrame) -> Verdict:
    """The mean of every system that depends on the order, of Table 2."""
    return bool((moved["mean"] < moved["original"]).all()), _beside_original(moved, "mean")


def permuting_can_raise(moved: pd.DataFrame) -> Verdict:
    """Every system that depends on the order, of Table 2."""
    return bool((moved["maximum"] > moved["original"]).all()), _beside_original(moved, "maximum")


def _beside_original(moved: pd.DataFrame, column: str) -> str:
    triples = moved[["run", "original", column]].itertuples(index=False)
    return ", ".join(f"{run} {original:.4f} to {value:.4f}" for run, original, value in triples)


def script_seldom_best(spread: pd.DataFrame) -> Verdict:
    """In most conversations another order scores higher, of Figure 1."""
    place = script_place(spread)
    better = f"another order is better in {(place > 0).sum()} of {len(place)} conversations"
    return bool((place > 0).mean() > 0.5), (
        f"{better}; on average {place.mean():.0%} of the sampled orders score higher than the script"
    )


def anyone_can_lead(leads: pd.DataFrame) -> Verdict:
    """No entry of Table 3 is negative."""
    cells = leads.set_index("model").to_numpy(dtype=float)
    return bool((cells >= 0).all()), f"smallest entry {cells.min():.4f}, largest {cells.max():.4f}"


def seldom_always(wins: pd.DataFrame) -> Verdict:
    """One system wins on every order in fewer than a quarter of the pairs, of Figure 2."""
    always = 2 * (wins["wins"] == 1).mean()  # each pair of systems stands in the table twice, won and lost
    evidence = f"one system wins on all orders in {always:.1%} of the pairs of systems and conversations"
    return bool(always < 0.25), evidence


def alike_in_the_script(md0: pd.DataFrame, printed: pd.DataFrame) -> Verdict:
    """The factor model of MD0 is not significant, of Table 4."""
    p, theirs = (table.set_index("source").loc["model", "p"] for table in (md0, printed))
    return bool(p >= 0.05), f"replica: p = {p:.4g} for the factor model of MD0; printed: {theirs}"


def apart_with_permutations(md1: pd.DataFrame, printed: pd.DataFrame) -> Verdict:
    """The factor model of MD1 is significant, of Table 5."""
    ours, theirs = (table.set_index("source").loc["model", ["p", "omega_squared"]] for table in (md1, printed))
    evidence = f"replica: p = {ours['p']:.2g}, omega squared {ours['omega_squared']:.3f}; "
    return bool(ours["p"] < 0.05), f"{evidence}printed: p {theirs['p']}, omega squared {theirs['omega_squared']}"


def no_best_order(md1: pd.DataFrame, printed: pd.DataFrame) -> Verdict:
    """The factor permutation(topic) of MD1 is not significant, of Table 5."""
    p, theirs = (table.set_index("source").loc["permutation(topic)", "p"] for table in (md1, printed))
    return bool(p >= 0.05), f"replica: p = {p:.4f}; printed: {theirs}"


def more_tiers(after: pd.DataFrame, before: pd.DataFrame) -> Verdict:
    """Of systems, with permutations than without, of Table 5."""
    most, least = int(after["tier"].max()), int(before["tier"].max())
    return most > least, f"replica: {most} tiers with permutations, {least} without"
