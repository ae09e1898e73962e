"""Conditions on scores by which a command fails: ``--fail-if 'CAB-precision>0.05'``."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from equipoise.problems import listed, plain, shown

FAILED = 3
"""The status that a command ends with where a condition holds; 2 is that of input it refuses."""

_CONDITION = re.compile(
    r"\s*(?P<measure>[^<>\[\]]*[^<>\[\]\s=])\s*(\[(?P<label>[^<>\[\]]+)\])?"
    r"\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[^<>=\s]+)\s*"
)
_IS_BEYOND = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_MOST_LINES = 10


@dataclass(frozen=True)
class Condition:
    """A measure's mean beyond a bound, in all rows or those that have a label."""

    text: str
    measure: str
    label: str
    sign: str
    bound: float

    @property
    def end(self) -> str:
        """The end of an interval that is the last to go beyond the bound."""
        return "low" if ">" in self.sign else "high"

    def is_beyond(self, value: float) -> bool:
        """Whether a value is beyond the bound."""
        return bool(_IS_BEYOND[self.sign](value, self.bound))


def read_condition(text: str) -> Condition:
    """Read ``MEASURE>NUMBER`` or ``MEASURE[LABEL]>NUMBER``, with > or >= or < or <=.

    >>> condition = read_condition("GF-NMD [SIZE] < 0.3")
    >>> condition.measure, condition.label, condition.sign, condition.bound
    ('GF-NMD', 'SIZE', '<', 0.3)
    """
    from equipoise.files import parse_number

    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"found {shown(text)}, wanted a measure, one of > >= < <=, and a number, such as"
            " 'CAB-precision>0.05' or 'GF-NMD[SIZE]<0.3' for one run or attribute"
        )
    bound = parse_number(match["bound"])
    return Condition(text, match["measure"].strip(), match["label"] or "", match["sign"], bound)


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
        f"End with status {FAILED} where the interval of a mean lies wholly beyond the number, or "
        "without an interval the mean; >, >=, <, <=; MEASURE[NAME] is of one run, attribute set or "
        "other name; repeatable."
    ),
)


def fails_on_conditions(command: Callable[..., Any]) -> Callable[..., None]:
    """Take ``--fail-if``, and judge the table of scores that the command returns."""

    @_FAIL_IF
    @functools.wraps(command)
    def judged(*args: Any, conditions: Sequence[Condition], **options: Any) -> None:
        scores = command(*args, **options)
        if conditions:
            judge(scores, conditions)

    return judged


def refuse_conditions(why: str) -> None:
    """Refuse conditions where a command, as it is called, has no table to judge."""
    if click.get_current_context().params.get("conditions"):
        raise click.UsageError(f"{why}: no --fail-if")


# --- judging --------------------------------------------------------------------------------------


def _means(scores: Any) -> tuple[Any, list[str]]:
    """A row for each mean with its interval, if it has one; and the columns that name it.

    Where a table has no row of a mean, with an empty topic, it is taken over the topics.
    """
    import numpy as np
    import pandas as pd

    numbers = [name for name in scores.columns if pd.api.types.is_numeric_dtype(scores[name])]
    labels = [name for name in scores.columns if name not in (*numbers, "topic", "measure")]
    table = scores.assign(**{name: scores[name].astype("str") for name in labels})
    for name in ("low", "high"):
        if name not in table.columns:
            table[name] = np.nan
    table = table[
        [*labels, "measure", *(["topic"] if "topic" in table else []), "value", "low", "high"]
    ]
    if "topic" not in table:
        return table, labels
    keys = [*labels, "measure"]
    is_mean = table["topic"].fillna("").astype("str") == ""
    means = table[is_mean].drop(columns="topic")
    topics = table[~is_mean]
    has_mean = pd.MultiIndex.from_frame(topics[keys]).isin(pd.MultiIndex.from_frame(means[keys]))
    over_topics = topics[~has_mean].groupby(keys, sort=False, dropna=False)["value"]
    computed = over_topics.agg(lambda values: values.mean(skipna=False)).reset_index()
    if len(computed):
        means = pd.concat([means, computed.assign(low=np.nan, high=np.nan)], ignore_index=True)
    return means, labels


def _rows_of(condition: Condition, means: Any, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The means that a condition is of; refused where there are none, or one has no value."""
    rows = means[means["measure"] == condition.measure]
    if rows.empty:
        names = listed(dict.fromkeys(means["measure"]), 40)
        raise click.BadParameter(
            f"no measure {shown(condition.measure)} for {condition.text!r}; there are {names}",
            param_hint="--fail-if",
        )
    if condition.label:
        has_label = (rows[list(labels)] == condition.label).any(axis=1)
        names_of_rows = [name for name in rows[list(labels)].to_numpy().ravel() if name]
        rows = rows[has_label]
        if rows.empty:
            raise click.BadParameter(
                f"nothing is named {shown(condition.label)} for {condition.text!r}; there are"
                f" {listed(dict.fromkeys(names_of_rows), 40)}",
                param_hint="--fail-if",
            )
    records: list[dict[str, Any]] = rows.to_dict("records")
    for record in records:
        if math.isnan(record["value"]):
            raise click.BadParameter(
                f"{condition.measure} has no value for {_name(record, labels)}:"
                f" {condition.text!r} cannot be judged",
                param_hint="--fail-if",
            )
    return records


def _name(record: Mapping[str, Any], labels: Sequence[str]) -> str:
    return ", ".join(record[name] for name in labels if record[name]) or "the scores"


def _judged(condition: Condition, record: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Whether a mean failed, passed, or passed since its interval reaches back; and in words."""
    value = f"{condition.text}: {name}: {record['value']:.4f}"
    has_interval = not (math.isnan(record["low"]) or math.isnan(record["high"]))
    if not has_interval:
        verdict = "failed" if condition.is_beyond(record["value"]) else "passed"
        return verdict, f"{value}, without an interval, by the value"
    interval = f"{value} [{record['low']:.4f}, {record['high']:.4f}]"
    if condition.is_beyond(record[condition.end]):
        return "failed", f"{interval} lies wholly beyond {condition.bound:g}"
    if condition.is_beyond(record["value"]):
        return "undecided", f"{interval} is not wholly beyond {condition.bound:g}"
    return "passed", f"{interval} is not beyond {condition.bound:g}"


def judge(scores: Any, conditions: Sequence[Condition]) -> None:
    """Say of each condition what it found, and end with status `FAILED` where one holds.

    ``scores``: columns measure, value, maybe topic, low, high, and names such as run or attribute.
    """
    means, labels = _means(scores)
    rows_of_conditions = [_rows_of(condition, means, labels) for condition in conditions]
    n_failed = 0
    for condition, records in zip(conditions, rows_of_conditions, strict=True):
        lines: dict[str, list[str]] = {"failed": [], "undecided": [], "passed": []}
        for record in records:
            verdict, sentence = _judged(condition, record, _name(record, labels))
            lines[verdict].append(f"{verdict}: {sentence}")
        n_failed += len(lines["failed"])
        for sentences in lines.values():
            for sentence in sentences[:_MOST_LINES]:
                click.echo(plain(sentence), err=True)
            n_more = len(sentences) - _MOST_LINES
            if n_more > 0:
                click.echo(f"... and {n_more} more {sentences[0].partition(':')[0]}", err=True)
    if n_failed:
        raise click.exceptions.Exit(FAILED)
