"""Prompts that ask for an answer with citations: an instruction, worked examples, passages with or without labels.

References
----------
thesis: chapter 5, Figures 5.2 and 5.6 to 5.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from equipoise.files import read_text, read_yaml
from equipoise.problems import refused
from equipoise_compendium import project

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Passage:
    """A passage as a model sees it.

    ``label``: of its author; without one the passage is shown plain.
    """

    text: str
    label: str | None = None

    def shown(self, number: int) -> str:
        """Line of the prompt, with the number, from 1, by which the passage is cited."""
        line = f"Document [{number}] ({' '.join(self.text.split())})"
        return line if self.label is None else f"{line} (written by [{self.label}])"


@dataclass(frozen=True)
class Example:
    """A worked example: a question, its passages with the number of their authors' group (0 or 1), and the answer."""

    question: str
    passages: tuple[tuple[str, int], ...]
    answer: str


@dataclass(frozen=True)
class Prompts:
    """Wording of the prompts.

    ``question`` holds ``{documents}`` and ``{question}``, ``paraphrase`` holds ``{passage}``.
    """

    instruction: str
    question: str
    paraphrase: str
    names: str
    examples: tuple[Example, ...]

    def _asked(self, question: str, passages: Sequence[Passage]) -> dict[str, str]:
        lines = "\n".join(passage.shown(number) for number, passage in enumerate(passages, start=1))
        filled = {"{documents}": lines, "{question}": " ".join(question.split())}
        content = re.sub(
            r"\{documents\}|\{question\}", lambda match: filled[match[0]], self.question
        )
        return {"role": "user", "content": content}

    def answer(
        self,
        question: str,
        passages: Sequence[Passage],
        notice: str = "",
        labels: Callable[[int, str], str | None] = lambda _group, _text: None,
    ) -> Messages:
        """Messages that ask for an answer with citations.

        ``passages``: in the order in which they are numbered. ``notice``: announces the labels;
        empty where there are none. ``labels``: takes the group and the text of an example's passage
        and returns its label.

        thesis, Figures 5.2 and 5.7.
        """
        if not passages:
            raise ValueError("an answer from no passages cannot cite any")
        instruction = f"{self.instruction}\n3. {notice}" if notice else self.instruction
        messages = [{"role": "system", "content": instruction}]
        for example in self.examples:
            shown = [Passage(text, labels(group, text)) for text, group in example.passages]
            messages += [
                self._asked(example.question, shown),
                {"role": "assistant", "content": example.answer},
            ]
        return [*messages, self._asked(question, passages)]

    def rewriting(self, passage: str) -> Messages:
        """Messages that ask for a paraphrase of a passage (thesis, Figure 5.6)."""
        return [
            {
                "role": "user",
                "content": self.paraphrase.replace("{passage}", " ".join(passage.split())),
            }
        ]

    def pool_of_names(self) -> Messages:
        """Messages that ask for names of authors (thesis, Figure 5.8)."""
        return [{"role": "user", "content": self.names}]


FILES = ("instruction", "question", "paraphrase", "names")
"""Names of the texts in a folder of prompts, whose ending is txt."""


def read_prompts(folder: Path, worked: Path | None = None) -> Prompts:
    """Read the prompts of a folder; ``worked``: YAML of the examples that stand before a question."""
    texts = {name: read_text(project.noted(folder / f"{name}.txt")).strip() for name in FILES}
    examples = []
    try:
        for entry in read_yaml(project.noted(worked)) if worked else ():
            passages = tuple(
                (passage["text"], int(passage["group"])) for passage in entry["passages"]
            )
            examples.append(Example(entry["question"], passages, entry["answer"]))
    except (TypeError, KeyError, ValueError) as error:
        wanted = "a list with question, passages (text and group 0 or 1) and answer"
        raise refused(worked, f"{type(error).__name__}: {error}", wanted) from None
    return Prompts(examples=tuple(examples), **texts)


def prompts_of_figures(prompts: Prompts, notice: str) -> dict[str, pd.DataFrame]:
    """Lines of the prompts of Figures 5.2, 5.6, 5.7 and 5.8, without documents 3 to 9 and the worked examples."""
    shown = [Passage(f"{{text of Document [{number}]}}") for number in range(1, 11)]
    told = [Passage(passage.text, "Author") for passage in shown]
    asked = {
        "5.2": prompts.answer("{query}", shown),
        "5.7": prompts.answer("{query}", told, notice),
        "5.6": prompts.rewriting("{input passage}"),
        "5.8": prompts.pool_of_names(),
    }
    found = {}
    for figure, messages in asked.items():
        ends = [message["content"] for message in (messages[0], messages[-1])][-len(messages) :]
        lines = [line for text in ends for line in text.splitlines() if line.strip()]
        lines = [
            line
            for line in lines
            if not any(f"Document [{middle}]" in line for middle in range(3, 10))
        ]
        found[figure] = pd.DataFrame({"line": range(1, len(lines) + 1), "text": lines})
    return found
