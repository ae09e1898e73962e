"""What people say about written last responses: asked for in CSV files, read back, settled.

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

from equipoise.files import cells, read_columns, read_source
from equipoise.measures.agreement import cohen_kappa
from equipoise.problems import InputError, Problem
from equipoise_compendium import facts, project
from equipoise_compendium.writing import harmless, write_files
from equipoise_studies.satisfaction.data import STUDY, Collection, with_responses
from equipoise_studies.satisfaction.dialogues import dialogue_text

ANNOTATORS = ("annotator-1", "annotator-2")
ADJUDICATOR = "adjudicator"
QUESTIONS = ("satisfied", "coherent")
ITEM_COLUMNS = ["item", "sample", "written", "dissatisfied", "context", "response"]
INSTRUCTION = (
    "satisfied: after the last SYSTEM utterance, is the USER satisfied? yes: the system "
    "understands the request, and partially or fully satisfies it or provides information on how "
    "it can be fulfilled; no: it fails to understand or fulfil the request in any way. coherent: "
    "does that utterance fit the turns before it? yes or no."
)


# --- items ----------------------------------------------------------------------------------------


def item_name(collection: str, sample: str, written: bool, response: str) -> str:
    """Name of an item: a digest, which does not tell whether its response was written."""
    content = f"{collection} {sample} {written} {response}"
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def items_of(collection: Collection, responses: pd.DataFrame) -> pd.DataFrame:
    """What annotators are asked about, from the texts of a collection: `ITEM_COLUMNS`.

    ``responses``: those that were written, columns sample and response. ``dissatisfied``: the label
    that the user has with the own response, or is to have with the written one.
    """
    rows = []
    for row in with_responses(collection, responses).turned.itertuples():
        context = dialogue_text(row.users, (*row.original[:-1], ""))
        for written, response in ((False, row.original[-1]), (True, row.systems[-1])):
            item = item_name(collection.name, row.sample, written, response)
            dissatisfied = row.dissatisfied == written
            rows.append((item, row.sample, written, dissatisfied, context, response))
    return pd.DataFrame(rows, columns=ITEM_COLUMNS).sort_values("item", ignore_index=True)


def items_of_facts(name: str, responses: pd.DataFrame) -> pd.DataFrame:
    """The items of the committed record, without contexts and responses."""
    table = facts.read(STUDY, "annotated_items.csv")
    table = table[table["collection"] == name].drop(columns="collection")
    for column in ("written", "dissatisfied"):
        table[column] = table[column] == "True"

    # A written response is recorded here, so that its item can be named again.
    names = set()
    for sample, response in zip(responses["sample"], responses["response"], strict=True):
        names.add(item_name(name, sample, True, response))
    if names != set(table.loc[table["written"], "item"]):
        raise ValueError(
            f"the facts are of other responses than were written for {name}: "
            f"equipoise data facts {STUDY}"
        )
    return table.reset_index(drop=True)


def committed_responses(path: Path) -> dict[str, pd.DataFrame]:
    """Written responses by collection: columns collection, sample, response."""
    table = read_columns(path, ["collection", "sample", "response"])
    return {str(name): rows for name, rows in table.groupby("collection")}


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Annotations:
    """The round trip for one collection.

    ``items``: what is asked about, of `items_of` or `items_of_facts`; the latter can be scored, but
    not asked about. ``readers``: two annotators, or only one.
    """

    folder: Path
    collection: str
    items: pd.DataFrame
    readers: int = 2

    def path(self, annotator: str) -> Path:
        """The file of one of the people."""
        return self.folder / f"{self.collection}-{annotator}.csv"

    def ask(self, annotator: str, items: pd.DataFrame) -> None:
        """Write the file that one of the people fills in, unless it is there."""
        path = self.path(annotator)
        if path.is_file():
            return
        # Responses are a model's: a spreadsheet must not take one for a formula.
        questions = items[["item", "context", "response"]].map(harmless)
        questions = questions.assign(question=INSTRUCTION, **dict.fromkeys(QUESTIONS, ""))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_files({path: questions})

    def labels(self, annotator: str) -> pd.DataFrame:
        """What one of the people answered, of rows filled in: item, satisfied, coherent."""
        path = self.path(annotator)
        if not path.is_file():
            nothing = {"item": pd.Series(dtype="str")}
            for question in QUESTIONS:
                nothing[question] = pd.Series(dtype=bool)
            return pd.DataFrame(nothing)

        source = read_source(project.noted(path))
        source.check_header(["item", *QUESTIONS], ["context", "response", "question"])
        table = source.columns[["item", *QUESTIONS]].astype("str")
        for question in QUESTIONS:
            cells_as_written = cells(table[question])
            table[question] = table[question].str.strip().str.lower()
            bad_rows = np.flatnonzero(~table[question].isin(["yes", "no", ""]))
            source.report(bad_rows, question, cells_as_written, "yes, no, or nothing yet")
        unknown = ~table["item"].isin(self.items["item"]) | table["item"].duplicated()
        source.report(
            np.flatnonzero(unknown),
            "item",
            cells(table["item"]),
            "each item that was asked about, once",
        )
        source.problems.refuse()

        answered = (table[list(QUESTIONS)] != "").all(axis=1)
        labels = table[answered].reset_index(drop=True)
        for question in QUESTIONS:
            labels[question] = labels[question] == "yes"
        return labels

    @cached_property
    def label_pairs(self) -> pd.DataFrame:
        """Items that both annotators labelled, the second's columns ending in _2."""
        labels_1, labels_2 = map(self.labels, ANNOTATORS)
        pairs = self.items.merge(labels_1, on="item")
        return pairs.merge(labels_2, on="item", suffixes=("", "_2"))

    def disputed(self) -> pd.DataFrame:
        """Items that the two label differently."""
        pairs = self.label_pairs
        satisfied_differs = pairs["satisfied"] != pairs["satisfied_2"]
        coherent_differs = pairs["coherent"] != pairs["coherent_2"]
        return pairs[satisfied_differs | coherent_differs]

    @cached_property
    def settled(self) -> pd.DataFrame:
        """Items with the label that counts: of the reader, of both, or of who settles."""
        if self.readers == 1:
            return self.items.merge(self.labels(ANNOTATORS[0]), on="item")
        pairs = self.label_pairs[[*self.items.columns, *QUESTIONS]]
        disputed = pairs["item"].isin(self.disputed()["item"])
        adjudicated = pairs.loc[disputed, list(self.items.columns)]
        adjudicated = adjudicated.merge(self.labels(ADJUDICATOR), on="item")
        return pd.concat([pairs[~disputed], adjudicated], ignore_index=True)

    def go_on(self) -> None:
        """Ask whoever is next; raises InputError until everything is filled in, and says what."""
        annotators = ANNOTATORS[: self.readers]
        unanswered = {}
        for annotator in annotators:
            self.ask(annotator, self.items)
            unanswered[annotator] = len(self.items) - len(self.labels(annotator))
        # Who settles is asked only once both have answered everything.
        if not any(unanswered.values()) and len(self.settled) < len(self.items):
            self.ask(ADJUDICATOR, self.disputed())
            unanswered = {ADJUDICATOR: len(self.items) - len(self.settled)}

        problems = []
        for annotator, number in unanswered.items():
            if number:
                problem = Problem(
                    str(self.path(annotator)),
                    None,
                    None,
                    f"{number} items without an answer",
                    "yes or no in the columns satisfied and coherent of each row, "
                    "and then the same command again",
                )
                problems.append(problem)
        if problems:
            raise InputError(problems)

    def confirmed(self) -> pd.DataFrame:
        """Items of written responses after which the user is as satisfied as was asked for."""
        unsettled = len(self.items) - len(self.settled)
        if unsettled:
            raise ValueError(f"{self.collection}: {unsettled} items are not labelled, or settled")
        written = self.settled[self.settled["written"]]
        return written[written["satisfied"] != written["dissatisfied"]].reset_index(drop=True)

    def agreement(self) -> dict[str, float]:
        """Table 3.3: agreement on what was written: percent on coherence, kappa on satisfaction."""
        # The thesis's annotators judged its counterfactuals.
        pairs = self.label_pairs[self.label_pairs["written"]]
        coherence = 100 * float((pairs["coherent"] == pairs["coherent_2"]).mean())
        kappa = cohen_kappa(pairs["satisfied"], pairs["satisfied_2"])
        return {"Dialogue Coherence (PA)": coherence, "Satisfaction Label (κ)": kappa}
