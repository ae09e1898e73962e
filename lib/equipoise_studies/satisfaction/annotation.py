"""What people say about last responses that were written: asked for in CSV files, read back, settled by a third.

Both responses of a context, its own and the written one, are items of their own, in an order that
does not tell which is which (thesis section 3.5.4: the counterfactual dialogues are mixed with
actual ones).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.files import cells, read_source
from equipoise.measures.agreement import cohen_kappa
from equipoise.problems import InputError, Problem
from equipoise_compendium import project
from equipoise_compendium.writing import harmless, write_files
from equipoise_studies.satisfaction.data import Collection, with_responses
from equipoise_studies.satisfaction.dialogues import dialogue_text

ANNOTATORS = ("annotator-1", "annotator-2")
THIRD = "adjudicator"
ASKED = ("satisfied", "coherent")
QUESTION = (
    "satisfied: after the last SYSTEM utterance, is the USER satisfied? yes: the system understands the request, and "
    "partially or fully satisfies it or provides information on how it can be fulfilled; no: it fails to understand or "
    "fulfil the request in any way. coherent: does that utterance fit the turns before it? yes or no."
)


@dataclass(frozen=True)
class Annotations:
    """The round trip for one collection.

    ``responses``: those that were written, columns sample and response. ``readers``: two
    annotators, or only one.
    """

    folder: Path
    part: Collection
    responses: pd.DataFrame
    readers: int = 2

    @cached_property
    def items(self) -> pd.DataFrame:
        """What is asked about: columns item, sample, written, dissatisfied (the label wanted), context, response."""
        turned = with_responses(self.part, self.responses).turned
        rows = []
        for row in turned.itertuples():
            context = dialogue_text(row.users, (*row.original[:-1], ""))
            for written, response in ((False, row.original[-1]), (True, row.systems[-1])):
                name = f"{self.part.name} {row.sample} {written} {response}"
                item = hashlib.sha256(name.encode()).hexdigest()[:10]
                rows.append(
                    (item, row.sample, written, row.dissatisfied == written, context, response)
                )
        columns = ["item", "sample", "written", "dissatisfied", "context", "response"]
        return pd.DataFrame(rows, columns=columns).sort_values("item", ignore_index=True)

    def path(self, who: str) -> Path:
        """The file of one of the people."""
        return self.folder / f"{self.part.name}-{who}.csv"

    def ask(self, who: str, items: pd.DataFrame) -> None:
        """Write the file that one of the people fills in, unless it is there."""
        if not self.path(who).is_file():
            asked = items[["item", "context", "response"]].map(harmless)
            self.folder.mkdir(parents=True, exist_ok=True)
            write_files(
                {self.path(who): asked.assign(question=QUESTION, **dict.fromkeys(ASKED, ""))}
            )

    def labels(self, who: str) -> pd.DataFrame:
        """What one of the people answered: columns item, satisfied, coherent, without the rows not yet filled in."""
        path = self.path(who)
        if not path.is_file():
            return pd.DataFrame(
                {"item": pd.Series(dtype="str")} | {name: pd.Series(dtype=bool) for name in ASKED}
            )
        source = read_source(project.noted(path))
        source.check_header(["item", *ASKED], ["context", "response", "question"])
        table = source.columns[["item", *ASKED]].astype("str")
        for name in ASKED:
            told = cells(table[name])
            table[name] = table[name].str.strip().str.lower()
            bad = np.flatnonzero(~table[name].isin(["yes", "no", ""]))
            source.report(bad, name, told, "yes, no, or nothing yet")
        unknown = ~table["item"].isin(self.items["item"]) | table["item"].duplicated()
        source.report(
            np.flatnonzero(unknown),
            "item",
            cells(table["item"]),
            "each item that was asked about, once",
        )
        source.problems.refuse()
        filled = table[(table[list(ASKED)] != "").all(axis=1)].reset_index(drop=True)
        return filled.assign(**{name: filled[name] == "yes" for name in ASKED})

    @cached_property
    def both(self) -> pd.DataFrame:
        """Items that both annotators labelled, the second's columns ending in _2."""
        one, two = map(self.labels, ANNOTATORS)
        return self.items.merge(one, on="item").merge(two, on="item", suffixes=("", "_2"))

    @cached_property
    def settled(self) -> pd.DataFrame:
        """Items with the label that counts: the one reader's, that of both, or where they differ the third's."""
        if self.readers == 1:
            return self.items.merge(self.labels(ANNOTATORS[0]), on="item")
        table = self.both[[*self.items.columns, *ASKED]]
        disputed = table["item"].isin(self.disputed()["item"])
        third = table[disputed][self.items.columns].merge(self.labels(THIRD), on="item")
        return pd.concat([table[~disputed], third], ignore_index=True)

    def disputed(self) -> pd.DataFrame:
        """Items that the two label differently."""
        table = self.both
        return table[
            (table["satisfied"] != table["satisfied_2"])
            | (table["coherent"] != table["coherent_2"])
        ]

    def go_on(self) -> None:
        """Ask whoever is next; raises InputError that says what is to be filled in, until everything is."""
        people = ANNOTATORS[: self.readers]
        for who in people:
            self.ask(who, self.items)
        waiting = {who: len(self.items) - len(self.labels(who)) for who in people}
        if not any(waiting.values()) and len(self.settled) < len(self.items):
            self.ask(THIRD, self.disputed())
            waiting = {THIRD: len(self.items) - len(self.settled)}
        wanted = "yes or no in the columns satisfied and coherent of each row, and then the same command again"
        left = {self.path(who): number for who, number in waiting.items() if number}
        if left:
            told = [
                Problem(str(path), None, None, f"{number} items without an answer", wanted)
                for path, number in left.items()
            ]
            raise InputError(told)

    def confirmed(self) -> pd.DataFrame:
        """Written responses after which the user is as satisfied as was wanted: columns sample, response."""
        if len(self.settled) < len(self.items):
            raise ValueError(
                f"{self.part.name}: {len(self.items) - len(self.settled)} items are not labelled, or settled"
            )
        table = self.settled[self.settled["written"]]
        kept = table[table["satisfied"] != table["dissatisfied"]]
        return kept[["sample", "response"]].reset_index(drop=True)

    def agreement(self) -> dict[str, float]:
        """Table 3.3: agreement on what was written, in percent on coherence, Cohen's kappa on satisfaction."""
        table = self.both[self.both["written"]]
        same = 100 * float((table["coherent"] == table["coherent_2"]).mean())
        kappa = cohen_kappa(table["satisfied"], table["satisfied_2"])
        return {"Dialogue Coherence (PA)": same, "Satisfaction Label (κ)": kappa}
