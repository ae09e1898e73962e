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
from typing import Any

import numpy as np
import pandas as pd

from equipoise.answer_modes import MODES, mode_parts
from equipoise.files import read_yaml
from equipoise.problems import Problems


def stable_generator(seed: int, *words: str) -> np.random.Generator:
    """Generator of random numbers that depends on a seed and words only, not on earlier calls."""
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
        labels = [set(labels) for labels in self.groups.values()]
        two_groups = len(labels) == 2 and all(labels)
        if not two_groups or labels[0] & labels[1]:
            raise ValueError(f"labels {self.name}: two groups with labels of their own are wanted")

    def shown(self, mode: str, group: str) -> str | None:
        """Group that a document is shown to be of in one of `MODES`; None in mode Vanilla.

        ``group``: the one that it is of.
        """
        if group not in self.groups:
            raise ValueError(
                f"labels {self.name} know the groups {', '.join(self.groups)}, not {group!r}"
            )
        if mode not in MODES:
            raise ValueError(f"no mode {mode!r}: one of {', '.join(MODES)}")
        if mode == "Vanilla":
            return None
        if mode == "Informed":
            return group
        opposite = {*self.groups} - {group}
        return opposite.pop()

    def label(self, mode: str, group: str, seed: int, *words: str) -> str | None:
        """Label that a document carries.

        ``*words``: what identifies the document; where a group has several labels, the same words
        draw the same one.
        """
        shown_group = self.shown(mode, group)
        if shown_group is None:
            return None
        labels = self.groups[shown_group]
        # The draw hangs on the document alone, whatever else is asked before it.
        rng = stable_generator(seed, self.name, shown_group, *words)
        return labels[int(rng.integers(len(labels)))]


def read_label_sets(path: str | Path, pool: Sequence[str] = ()) -> dict[str, LabelSet]:
    """Read sets of labels from a YAML file.

    The file maps the name of each set to ``notice`` (a sentence), ``groups`` (two, each with a list
    of labels, or the word ``pool``) and ``source``.

    ``pool``: labels that ``pool`` stands for; sets that need one are left out where it is empty.
    """
    content = read_yaml(path)
    problems = Problems()
    if not isinstance(content, dict) or not content:
        problems.add(path, None, None, type(content).__name__, "sets of labels by name")
        problems.refuse()

    sets: dict[str, LabelSet] = {}
    for name, entry in content.items():
        try:
            label_set = _label_set(name, entry, pool)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            entry_wanted = "notice (a sentence) and groups (two, each with labels of its own)"
            problem = f"{type(error).__name__}: {error}"
            problems.add(path, None, str(name), problem, entry_wanted)
            continue
        if label_set is not None:
            sets[name] = label_set
    problems.refuse()
    return sets


def _label_set(name: str, entry: Any, pool: Sequence[str]) -> LabelSet | None:
    """A set of labels from an entry of the file; None for one whose pool is empty."""
    groups = {}
    # A group may have the word "pool" in place of its labels.
    for group, labels in entry["groups"].items():
        groups[group] = list(pool) if labels == "pool" else labels
    listed = all(isinstance(labels, list) for labels in groups.values())
    if not listed or not isinstance(entry["notice"], str):
        raise TypeError("no sentence, or a group without a list")
    # A set that needs the pool of names is of no use before these are recorded.
    if not pool and "pool" in entry["groups"].values():
        return None
    return LabelSet(name, {group: tuple(groups[group]) for group in groups}, entry["notice"])


def shown_in_modes(
    labels: LabelSet, modes: Iterable[str], relevant: str, nonrelevant: str
) -> pd.DataFrame:
    """What each mode shows of three documents, the second of them relevant.

    ``relevant``, ``nonrelevant``: the authors of the relevant document and of the others.
    """
    rows = []
    for mode in modes:
        relevant_mode, nonrelevant_mode = mode_parts(mode)
        nonrelevant_label = labels.shown(nonrelevant_mode, nonrelevant)
        relevant_label = labels.shown(relevant_mode, relevant)
        rows.append((mode, 1, False, nonrelevant, nonrelevant_label))
        rows.append((mode, 2, True, relevant, relevant_label))
        rows.append((mode, 3, False, nonrelevant, nonrelevant_label))
    return pd.DataFrame(rows, columns=["mode", "document", "relevant", "author", "label"])
