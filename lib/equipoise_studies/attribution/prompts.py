"""Prompts that require an answer with citations, and the labels that name authors.

References
----------
thesis: chapter 5, section 5.3.1, appendix 5.C, Figures 5.2 and 5.6 to 5.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from equipoise.answer_modes import mode_parts
from equipoise_studies.attribution.data import Study
from equipoise_studies.configs import Settings

Messages = list[dict[str, str]]

_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


# --- labels ---------------------------------------------------------------------------------------


class LabelSet(Settings):
    """Labels of two groups of authors, and the sentence that introduces them to a model."""

    notice: str
    groups: dict[str, tuple[str, ...]]
    source: str = ""

    def shown(self, mode: str, group: str) -> str | None:
        """Return the group in the label of a document of ``group``; None in mode Vanilla."""
        if mode == "Vanilla":
            return None
        other_group = ({*self.groups} - {group}).pop()
        return group if mode == "Informed" else other_group


def read_names(path: Path) -> list[str]:
    """Read the distinct names, of two capitalised words each, that a model listed."""
    if not path.is_file():
        return []
    _, line = path.read_text(encoding="utf-8").splitlines()
    found = _NAME.findall(json.loads(line)["answer"])
    return list(dict.fromkeys(f"{first} {last}" for first, last in found))


def read_labels(path: Path, names: Sequence[str] = ()) -> dict[str, LabelSet]:
    """Read sets of labels; in a group of the file the word ``pool`` is replaced by the names.

    Sets that need names are left out while there are none.
    """
    sets = {}
    for key, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        groups = {}
        for group, labels in entry["groups"].items():
            groups[group] = list(names) if labels == "pool" else labels
        if all(groups.values()):
            sets[key] = LabelSet.model_validate(entry | {"groups": groups})
    return sets


def shown_in_modes(
    labels: LabelSet, modes: Sequence[str], relevant: str, nonrelevant: str
) -> pd.DataFrame:
    """Return the labels of three documents in each mode; the second one is relevant.

    ``relevant``, ``nonrelevant``: the authors of the relevant document and of the others.
    """
    rows = []
    for mode in modes:
        relevant_mode, nonrelevant_mode = mode_parts(mode)
        other = (nonrelevant, labels.shown(nonrelevant_mode, nonrelevant))
        rows.append((mode, 1, False, *other))
        rows.append((mode, 2, True, relevant, labels.shown(relevant_mode, relevant)))
        rows.append((mode, 3, False, *other))
    return pd.DataFrame(rows, columns=["mode", "document", "relevant", "author", "label"])


# --- prompts --------------------------------------------------------------------------------------


class Passage(NamedTuple):
    """Format a passage for a model, with or without a label of its author."""

    text: str
    label: str | None = None


class Prompts(Settings):
    """The wording of the prompts.

    ``question`` contains ``{documents}`` and ``{question}``, ``paraphrase`` contains ``{passage}``,
    ``document`` contains ``{number}`` and ``{text}``, and ``document_labelled`` ``{label}`` too.
    ``examples``: worked ones, each a question, its passages with the group of their author, 0 or 1,
    and the answer.
    """

    instruction: str
    instruction_labelled: str
    question: str
    paraphrase: str
    names: str
    document: str = "Document [{number}] ({text})"
    document_labelled: str = "Document [{number}] ({text}) (written by [{label}])"
    examples: tuple[dict[str, Any], ...] = ()
    one_message: bool = False

    def asked(self, question: str, passages: Sequence[Passage]) -> dict[str, str]:
        """Write the message with a question and its passages, which are numbered from 1."""
        lines = []
        for number, (text, label) in enumerate(passages, start=1):
            form = self.document if label is None else self.document_labelled
            words = " ".join(text.split())
            lines.append(_filled(form, number=str(number), text=words, label=label or ""))
        documents, asked = "\n".join(lines), " ".join(question.split())
        content = _filled(self.question, documents=documents, question=asked)
        return {"role": "user", "content": content}

    def answer(
        self,
        question: str,
        passages: Sequence[Passage],
        notice: str = "",
        label: Callable[[int, str], str | None] = lambda _group, _text: None,
    ) -> Messages:
        """Write messages that require an answer with citations (thesis, Figures 5.2 and 5.7).

        ``notice``: announces the labels. ``label``: returns the label of an example's passage, from
        the group of its author and its text.
        """
        instruction = self.instruction
        if notice:
            # The notice continues the numbering of the instruction, as in Figure 5.7.
            instruction = f"{self.instruction_labelled}\n3. {notice}"
        messages = []
        for example in self.examples:
            shown = []
            for passage in example["passages"]:
                shown.append(Passage(passage["text"], label(passage["group"], passage["text"])))
            messages.append(self.asked(example["question"], shown))
            messages.append({"role": "assistant", "content": example["answer"]})
        messages.append(self.asked(question, passages))
        if self.one_message:
            messages[0]["content"] = f"{instruction}\n\n{messages[0]['content']}"
            return messages
        return [{"role": "system", "content": instruction}, *messages]

    def rewriting(self, passage: str) -> Messages:
        """Write the message that requires a paraphrase of a passage (thesis, Figure 5.6)."""
        text = _filled(self.paraphrase, passage=" ".join(passage.split()))
        return [{"role": "user", "content": text}]


def _filled(form: str, **texts: str) -> str:
    """Fill the placeholders of a form in one pass, since a text may contain one itself."""
    return re.sub(r"\{(\w+)\}", lambda match: texts[match[1]], form)


def read_prompts(study: Study) -> Prompts:
    """Read the prompts of a study."""
    texts = {}
    for path in study.prompts.glob("*.txt"):
        texts[path.stem] = path.read_text(encoding="utf-8").strip()
    texts.setdefault("instruction_labelled", texts["instruction"])
    examples = []
    if study.examples is not None:
        examples = yaml.safe_load(study.examples.read_text(encoding="utf-8"))
    return Prompts(**texts, examples=tuple(examples), one_message=study.one_message)


def prompts_of_figures(prompts: Prompts, notice: str) -> dict[str, pd.DataFrame]:
    """Return the lines of the prompts of Figures 5.2, 5.6, 5.7 and 5.8.

    Without documents 3 to 9 and the worked examples.
    """
    passages = [Passage(f"{{text of Document [{number}]}}") for number in range(1, 11)]
    labelled = [Passage(passage.text, "Author") for passage in passages]
    figures = {
        "5.2": prompts.answer("{query}", passages),
        "5.7": prompts.answer("{query}", labelled, notice),
        "5.6": prompts.rewriting("{input passage}"),
        "5.8": [{"role": "user", "content": prompts.names}],
    }
    left_out = tuple(f"Document [{number}]" for number in range(3, 10))
    tables = {}
    for figure, messages in figures.items():
        lines = []
        for message in [messages[0], messages[-1]] if len(messages) > 1 else messages:
            for line in message["content"].splitlines():
                if line.strip() and not line.startswith(left_out):
                    lines.append(line)
        tables[figure] = pd.DataFrame({"line": range(1, len(lines) + 1), "text": lines})
    return tables
