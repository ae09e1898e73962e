"""Conditions on scores by which a command fails: ``--fail-if 'CAB-precision>0.05'``."""

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
    """A mean of a measure beyond a bound, in all rows or in those that have a label."""

    text: str
    measure: str
    label: str
    sign: str
    bound: float

    def is_beyond(self, value: float) -> bool:
        """Return whether a value is beyond the bound."""
        return bool(_IS_BEYOND[self.sign](value, self.bound))


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


_FAIL_IF = click.option(
    "--fail-if",
    "conditions",
    type=_ConditionType(),
    multiple=True,
    metavar="'MEASURE>NUMBER'",
    help=(
        f"Condition with >, >=, < or <= that ends the command with status {FAILED}; repeatable. "
        "It is met if the whole interval of a mean lies beyond the number (0.05, 5%, 5 points). "
        "Without an "
        "interval, the mean decides. MEASURE[NAME] limits it to one run, attribute set or other "
        "name. The status is the same if too few answers could be read."
    ),
)


def fails_on_conditions(command: Callable[..., Any]) -> Callable[..., None]:
    """Take ``--fail-if``, and judge the table of scores that the command returns."""

    @_FAIL_IF
    @functools.wraps(command)
    def judged(*args: Any, conditions: Sequence[Condition], **options: Any) -> None:
        scores = command(*args, **options)
        if conditions:
            judge(scores, conditions, options.get("least_read", 0.0))

    return judged


def _means(scores: Any) -> tuple[Any, list[str]]:
    """Return one row per mean, with ``low, high, read``, and the columns that name it.

    A mean has an empty topic; where a table has no such row, the mean over its topics.
    """
    import pandas as pd

    numbers = [name for name in scores.columns if pd.api.types.is_numeric_dtype(scores[name])]
    labels = [name for name in scores.columns if name not in (*numbers, "topic", "measure")]
    columns = [*labels, "measure", "value", "low", "high", "read"]
    table = scores.astype(dict.fromkeys(labels, "str"))
    if "topic" not in table:
        return table.reindex(columns=columns), labels
    is_mean = table["topic"].fillna("").astype("str") == ""
    keys = [*labels, "measure"]
    over_topics = table[~is_mean].groupby(keys, sort=False, dropna=False)["value"]
    computed = over_topics.agg(lambda values: values.mean(skipna=False)).reset_index()
    means = pd.concat([table[is_mean], computed], ignore_index=True)
    # A mean in the table comes first, and may have an interval.
    return means.drop_duplicates(keys).reindex(columns=columns), labels


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
        raise click.BadParameter(message, param_hint="--fail-if")
    records: list[dict[str, Any]] = rows.to_dict("records")
    return records


def _declared_range(measure: str) -> tuple[float, float]:
    """Return the lowest and highest value that a measure can have, as far as it declares them."""
    from equipoise import catalogue

    prefix, _, rest = measure.partition("-")
    if prefix in ("difference", "gap"):
        low, high = _declared_range(rest)
        return low - high, high - low
    ends = re.fullmatch(r"(-?\d+) (?:to|or) (\d+)( \(bits\))?", catalogue.range_of(measure))
    return (float(ends[1]), float(ends[2])) if ends else (-float("inf"), float("inf"))


def _out_of_range(condition: Condition, values: Any) -> str:
    """Return what is wrong with a bound that no value of the measure can be beyond, or below."""
    low, high = _declared_range(condition.measure)
    # Values of another scale belong to another measure of this name.
    if low <= condition.bound <= high or not values.between(low, high).all():
        return ""
    return (
        f"the bound of {condition.text!r} must be between {low:g} and {high:g}, the range of"
        f" {condition.measure}; for points of 100 write '{condition.bound:g} points' or"
        f" {condition.bound / 100:g}"
    )


def _judged(
    condition: Condition, record: Mapping[str, Any], labels: Sequence[str], least_read: float
) -> tuple[str, str]:
    """Return a verdict and a sentence on one mean."""
    # By a key of a log the run has the name of its value.
    names = dict.fromkeys(record[label] for label in labels if record[label])
    name = ", ".join(names) or "the scores"
    value = f"{condition.text}: {name}: {record['value']:.4f}"
    if record["read"] < least_read:
        percent = math.floor(100 * record["read"] + 1e-9)
        return "failed", f"{value}, no verdict, {percent}% read, less than {100 * least_read:g}%"
    if not record["low"] <= record["high"]:  # NaN: it has no interval
        verdict = "failed" if condition.is_beyond(record["value"]) else "passed"
        return verdict, f"{value}, without an interval, by the value"
    interval = f"{value} [{record['low']:.4f}, {record['high']:.4f}]"
    last_end = record["low" if ">" in condition.sign else "high"]
    if condition.is_beyond(last_end):
        return "failed", f"{interval} lies wholly beyond {condition.bound:g}"
    if condition.is_beyond(record["value"]):
        return "inconclusive", f"{interval} is not wholly beyond {condition.bound:g}"
    return "passed", f"{interval} is not beyond {condition.bound:g}"


def judge(scores: Any, conditions: Sequence[Condition], least_read: float = 0.0) -> None:
    """Report each condition on standard error, and end with status `FAILED` where one is met.

    It is also the status where a mean has read less than the share ``least_read``.
    """
    means, labels = _means(scores)
    rows_of_conditions = [_rows_of(condition, means, labels) for condition in conditions]
    any_failed = False
    for condition, records in zip(conditions, rows_of_conditions, strict=True):
        counts = Counter[str]()
        judged = [_judged(condition, record, labels, least_read) for record in records]
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
