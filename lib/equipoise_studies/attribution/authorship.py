"""What a model is told about the authors of documents, truly or against the facts.

Documents belong to one of two groups (written by a human or by a language model, by a woman or by a
man, ...). A mode (`equipoise.answer_modes`) says which group a model is shown: none, the true one,
or the other one. A set of labels says by which words a group is shown.

References
----------
thesis: chapter 5, section 5.3.1, appendix 5.C (extended set of labels).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.answer_modes import MODES, mode_parts
from equipoise.files import read_yaml
from equipoise.problems import Problems


def stable_generator(seed: int, *words: str) -> np.random.Generator:
    """Generator of random numbers that depends on a seed and on words only, not on the order of calls."""
    digest = hashlib.sha256("\x1f".join([str(seed), *words]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@dataclass(frozen=True)
class LabelSet:
    """Words by which groups of authors are shown.

    ``groups``: two, each with the labels that may stand for it. ``notice``: the sentence that tells
    a model of the labels.
    """

    name: str
    groups: Mapping[str, tuple[str, ...]]
    notice: str

    def __post_init__(self) -> None:
        first, *rest = (set(labels) for labels in self.groups.values())
        if len(rest) != 1 or not first or not rest[0] or first & rest[0]:
            raise ValueError(f"labels {self.name}: two groups with labels of their own are wanted")

    def shown(self, mode: str, group: str) -> str | None:
        """Group that a document of some group is shown to be of in one of `MODES`; None in mode Vanilla."""
        if group not in self.groups:
            raise ValueError(
                f"labels {self.name} know the groups {', '.join(self.groups)}, not {group!r}"
            )
        if mode not in MODES:
            raise ValueError(f"no mode {mode!r}: one of {', '.join(MODES)}")
        if mode == "Vanilla":
            return None
        return (
            group if mode == "Informed" else next(other for other in self.groups if other != group)
        )

    def label(self, mode: str, group: str, seed: int, *words: str) -> str | None:
        """Label that a document carries.

        ``*words``: what identifies the document; where a group has several labels, the same words
        draw the same one.
        """
        shown = self.shown(mode, group)
        if shown is None:
            return None
        labels = self.groups[shown]
        return labels[int(stable_generator(seed, self.name, shown, *words).integers(len(labels)))]


def read_label_sets(path: str | Path, pool: Sequence[str] = ()) -> dict[str, LabelSet]:
    """Read sets of labels from a YAML file.

    The file maps the name of each set to ``notice`` (a sentence), ``groups`` (two, each with a list
    of labels, or the word ``pool``) and ``source``.

    ``pool``: labels that ``pool`` stands for; sets that need one are left out where it is empty.
    """
    content, sets, problems = read_yaml(path), dict[str, LabelSet](), Problems()
    wanted = "notice (a sentence) and groups (two, each with labels of its own)"
    if not isinstance(content, dict) or not content:
        problems.add(path, None, None, type(content).__name__, "sets of labels by name")
    for name, entry in content.items() if not problems else ():
        try:
            listed = {
                group: list(pool) if labels == "pool" else labels
                for group, labels in entry["groups"].items()
            }
            if not isinstance(entry["notice"], str) or not all(
                isinstance(labels, list) for labels in listed.values()
            ):
                raise TypeError("no sentence, or a group without a list")
            if pool or "pool" not in entry["groups"].values():
                sets[name] = LabelSet(
                    name,
                    {group: tuple(labels) for group, labels in listed.items()},
                    entry["notice"],
                )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problems.add(path, None, str(name), f"{type(error).__name__}: {error}", wanted)
    problems.refuse()
    return sets


def shown_in_modes(
    labels: LabelSet, modes: Iterable[str], relevant: str, nonrelevant: str
) -> pd.DataFrame:
    """What each mode shows of three documents, of whose authors the second's is that of the relevant ones."""
    rows = [
        (
            mode,
            number,
            number == 2,
            author,
            labels.shown(mode_parts(mode)[0 if number == 2 else 1], author),
        )
        for mode in modes
        for number, author in enumerate((nonrelevant, relevant, nonrelevant), start=1)
    ]
    return pd.DataFrame(rows, columns=["mode", "document", "relevant", "author", "label"])
