"""Conditions on scores by which a command fails: ``--fail-if 'CAB-precision>0.05'``.

``--fail-if`` fails where a condition is shown, ``--fail-unless`` where it is not.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from equipoise.errors import excerpt, listed, plain

FAILED = 3
"""The status with which a command ends where a condition holds; 2 is that of rejected input."""

_CONDITION = re.compile(
    r"\s*(?P<measure>[^<>\[\]]*[^<>\[\]\s=])\s*(\[(?P<label>[^<>\[\]]+)\])?"
    r"\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[^<>=\s%]+)\s*(?P<unit>%|points?)?\s*"
)
_IS_BEYOND = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_MOST_LINES = 10


class Condition(NamedTuple):
    """A mean of a measure beyond a bound, in all rows or in those that have a label.

    ``is_required``: the command fails unless it is shown, and not if it is shown.
    """

    text: str
    measure: str
    label: str
    sign: str
    bound: float
    is_required: bool = False

    def is_beyond(self, value: float) -> bool:
        """Return whether a value is beyond the bound; a value that rounds to the bound is it."""
        is_bound = math.isclose(value, self.bound, rel_tol=1e-12, abs_tol=1e-12)
        return bool(_IS_BEYOND[self.sign](self.bound if is_bound else value, self.bound))


def read_condition(text: str) -> Condition:
    """Read ``MEASURE>NUMBER`` or ``MEASURE[LABEL]>NUMBER``, with > or >= or < or <=.

    A number in percent or points is a hundredth of it.

    >>> condition = read_condition("GF-NMD [SIZE] < 0.3")
    >>> condition.measure, condition.label, condition.sign, condition.bound
    ('GF-NMD', 'SIZE', '<', 0.3)
    >>> read_condition("cited-over-retrieved > 5 points").bound
    0.05
    """
    from equipoise.readers import number

    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"must be a measure, one of > >= < <=, and a number, such as 'CAB-precision>0.05' or"
            f" '>5 points', or 'GF-NMD[SIZE]<0.3' for one run or attribute, got {excerpt(text)}"
        )
    label = match["label"] or ""
    bound = number(match["bound"]) / (100 if match["unit"] else 1)
    return Condition(text, match["measure"].strip(), label, match["sign"], bound)


class _ConditionType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return read_condition(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_CONDITION_OPTIONS = (
    click.option(
        "--fail-if",
        "failing",
        type=_ConditionType(),
        multiple=True,
        metavar="'MEASURE>NUMBER'",
        help=(
            f"Condition with >, >=, < or <= that ends the command with status {FAILED}; "
            "repeatable. It is met if the whole interval of a mean lies beyond the number (0.05, "
            "5%, 5 points). Without an interval, the mean decides. MEASURE[NAME] limits it to one "
            "run, attribute set or other name."
        ),
    ),
    click.option(
        "--fail-unless",
        "required",
        type=_ConditionType(),
        multiple=True,
        metavar="'MEASURE<NUMBER'",
        help=(
            f"Condition that the scores must show, else the command ends with status {FAILED}; "
            "repeatable. Two of them show that a mean lies between two numbers."
        ),
    ),
)


def fails_on_conditions(command: Callable[..., Any]) -> Callable[..., None]:
    """Take ``--fail-if`` and ``--fail-unless``, and judge the scores that the command returns."""

    @functools.wraps(command)
    def judged(
        *args: Any, failing: Sequence[Condition], required: Sequence[Condition], **options: Any
    ) -> None:
        scores = command(*args, **options)
        conditions = [*failing, *(one._replace(is_required=True) for one in required)]
        if conditions:
            judge(scores, conditions, options.get("level", 0.95))

    decorated: Any = judged
    for option in reversed(_CONDITION_OPTIONS):
        decorated = option(decorated)
    return decorated


def _means(scores: Any) -> tuple[Any, list[str]]:
    """Return one row per mean, with ``low, high, read, n``, and the columns that name it.

    A mean has an empty topic; where a table has no such row, the mean over its topics.
    """
    import pandas as pd

    numbers = [name for name in scores.columns if pd.api.types.is_numeric_dtype(scores[name])]
    labels = [name for name in scores.columns if name not in (*numbers, "topic", "measure")]
    columns = [*labels, "measure", "value", "low", "high", "read", "n"]
    table = scores.astype(dict.fromkeys(labels, "str"))
    counts = [name for name in ("count", "topics", "units") if name in table]
    table["n"] = table[counts].bfill(axis=1).iloc[:, 0] if counts else math.nan
    if "topic" not in table:
        return table.reindex(columns=columns), labels
    is_mean = table["topic"].fillna("").astype("str") == ""
    keys = [*labels, "measure"]
    over_topics = table[~is_mean].groupby(keys, sort=False, dropna=False)["value"]
    computed = over_topics.agg(lambda values: values.mean(skipna=False)).reset_index()
    means = pd.concat([table[is_mean], computed], ignore_index=True)
    # A mean in the table comes first, and may have an interval.
    means = means.drop_duplicates(keys).reindex(columns=columns)
    sizes = over_topics.size().rename("size").reset_index()
    sizes = means.merge(sizes, how="left", on=keys)["size"].to_numpy()
    return means.assign(n=means["n"].where(means["n"].notna(), sizes)), labels


def _rows_of(condition: Condition, means: Any, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the means that a condition is about; raise where there are none."""
    rows = means[means["measure"] == condition.measure]
    message = _out_of_range(condition, rows["value"])
    if rows.empty:
        names = listed(dict.fromkeys(means["measure"]), 40)
        measure = excerpt(condition.measure)
        message = f"unknown measure {measure} in {condition.text!r}, must be one of {names}"
    elif condition.label:
        names = listed(dict.fromkeys(filter(None, rows[list(labels)].to_numpy().ravel())), 40)
        rows = rows[(rows[list(labels)] == condition.label).any(axis=1)]
        if rows.empty:
            label = excerpt(condition.label)
            message = f"unknown name {label} in {condition.text!r}, must be one of {names}"
    if not message and rows["value"].isna().any():
        message = (
            f"{condition.measure} has a mean without a value: {condition.text!r} has no verdict"
        )
    if message:
        raise click.BadParameter(
            message, param_hint="--fail-unless" if condition.is_required else "--fail-if"
        )
    records: list[dict[str, Any]] = rows.to_dict("records")
    return records


def _declared_range(measure: str) -> tuple[float, float]:
    """Return the lowest and highest value that a measure can have, as far as it declares them."""
    from equipoise import catalogue

    prefix, _, rest = measure.partition("-")
    if prefix in ("difference", "gap"):
        low, high = _declared_range(rest)
        return low - high, high - low
    scale = catalogue.SCALES.get(catalogue.plain_name(measure))
    ends = re.fullmatch(r"(-?\d+) (?:to|or) (\d+)( \(bits\))?", scale.range if scale else "")
    return (float(ends[1]), float(ends[2])) if ends else (-float("inf"), float("inf"))


def _out_of_range(condition: Condition, values: Any) -> str:
    """Return what is wrong with a bound that no value of the measure can be beyond, or below."""
    low, high = _declared_range(condition.measure)
    # Values of another scale belong to another measure of this name.
    if not values.between(low, high).all():
        return ""
    if not low <= condition.bound <= high:
        return (
            f"the bound of {condition.text!r} must be between {low:g} and {high:g}, the range of"
            f" {condition.measure}; for points of 100 write '{condition.bound:g} points' or"
            f" {condition.bound / 100:g}"
        )
    ends = condition.is_beyond(low), condition.is_beyond(high)
    if all(ends) or not any(ends):
        return (
            f"{condition.text!r} is {'always' if all(ends) else 'never'} met: {condition.measure}"
            f" is between {low:g} and {high:g}"
        )
    return ""


def _judged(
    condition: Condition,
    record: Mapping[str, Any],
    labels: Sequence[str],
    level: float,
    *,
    has_intervals: bool,
) -> tuple[str, str]:
    """Return a verdict and a sentence on one mean."""
    from equipoise.statistics.intervals import FEWEST_UNITS, units_to_decide
    from equipoise.statistics.unknown import unless_unread

    # By a key of a log the run has the name of its value.
    names = dict.fromkeys(record[label] for label in labels if record[label])
    name = ", ".join(names) or "the scores"
    option = "--fail-unless" if condition.is_required else "--fail-if"
    value = f"{option} {condition.text}: {name}: {record['value']:.4f}"
    verdict_if_met, verdict_if_not = "failed", "passed"
    if condition.is_required:
        verdict_if_met, verdict_if_not = verdict_if_not, verdict_if_met
    verdict_if_open = "failed" if condition.is_required else "inconclusive"
    low, high = record["low"], record["high"]
    if not low <= high:  # NaN: it has no interval
        if has_intervals and record["n"] < FEWEST_UNITS:
            return (
                verdict_if_open,
                f"{value}, n = {record['n']:g}: an interval needs {FEWEST_UNITS}",
            )
        is_met = condition.is_beyond(record["value"])
        verdict = verdict_if_met if is_met else verdict_if_not
        return verdict, f"{value}, without an interval, by the value"
    interval = f"{value} [{low:.4f}, {high:.4f}]"
    side = "above" if ">" in condition.sign else "below"
    side += " or at" if "=" in condition.sign else ""
    ends = condition.is_beyond(low), condition.is_beyond(high)
    if all(ends) or not any(ends):
        lowest, highest = _declared_range(condition.measure)
        row: dict[Any, Any] = {**record, "count": record["n"]}
        tipping = unless_unread(row, level, bound=condition.bound, widest=highest - lowest)
        if all(ends):
            return verdict_if_met, f"{interval} lies wholly {side} {condition.bound:g}{tipping}"
        return verdict_if_not, f"{interval} has no part {side} {condition.bound:g}{tipping}"
    sentence = f"{interval} lies only partly {side} {condition.bound:g}"
    gap = abs(record["value"] - condition.bound)
    if gap > 0 and record["n"] > 0:
        needed = units_to_decide(int(record["n"]), low, high, gap, level=level)
        sentence += f"; for 80% power it needs n = {needed:,}, has {record['n']:.0f}"
    return verdict_if_open, sentence


def judge(
    scores: Any,
    conditions: Sequence[Condition],
    level: float = 0.95,
) -> None:
    """Report each condition on standard error, and end with status `FAILED` where one fails.

    ``level``: that of the intervals.
    """
    means, labels = _means(scores)
    rows_of_conditions = [_rows_of(condition, means, labels) for condition in conditions]
    any_failed = False
    for condition, records in zip(conditions, rows_of_conditions, strict=True):
        counts = Counter[str]()
        judged = [
            _judged(condition, record, labels, level, has_intervals="low" in scores.columns)
            for record in records
        ]
        for verdict, sentence in sorted(judged, key=lambda pair: pair[0] != "failed"):
            counts[verdict] += 1
            if counts[verdict] <= _MOST_LINES:
                click.echo(plain(f"{verdict}: {sentence}"), err=True)
        for verdict, count in counts.items():
            if count > _MOST_LINES:
                click.echo(f"... and {count - _MOST_LINES} more {verdict}", err=True)
        any_failed |= counts["failed"] > 0
    if any_failed:
        raise click.exceptions.Exit(FAILED)
