"""Prompts that ask for an answer with citations: an instruction, worked examples, passages.

The passages stand with or without labels of their authors.

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
        # A passage is one line, whatever white space it holds.
        line = f"Document [{number}] ({' '.join(self.text.split())})"
        return line if self.label is None else f"{line} (written by [{self.label}])"


@dataclass(frozen=True)
class Example:
    """A worked example: a question, its passages and the answer.

    ``passages``: each with the number of its author's group, 0 or 1.
    """

    question: str
    passages: tuple[tuple[str, int], ...]
    answer: str


@dataclass(frozen=True)
class Prompts:
    """Wording of the prompts.

    ``question`` holds ``{documents}`` and ``{question}``, ``paraphrase`` holds ``{passage}``.
    ``instruction_labelled``: where passages have labels; the usual one where empty.
    ``one_message``: whether an instruction begins the message of the user; otherwise it is the
    system's.
    """

    instruction: str
    question: str
    paraphrase: str
    names: str
    examples: tuple[Example, ...]
    instruction_labelled: str = ""
    one_message: bool = False

    def _asked(self, question: str, passages: Sequence[Passage]) -> dict[str, str]:
        lines = [passage.shown(number) for number, passage in enumerate(passages, start=1)]
        texts = {"{documents}": "\n".join(lines), "{question}": " ".join(question.split())}
        # In one pass, since a passage may itself hold the word {question}.
        placeholder = re.compile(r"\{documents\}|\{question\}")
        content = placeholder.sub(lambda match: texts[match[0]], self.question)
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
        instruction = self.instruction
        if notice:
            # The notice goes on with the numbering of the instruction, as in Figure 5.7.
            instruction = f"{self.instruction_labelled or self.instruction}\n3. {notice}"
        messages = []
        for example in self.examples:
            labelled = [Passage(text, labels(group, text)) for text, group in example.passages]
            messages.append(self._asked(example.question, labelled))
            messages.append({"role": "assistant", "content": example.answer})
        messages.append(self._asked(question, passages))
        if self.one_message:
            first_content = f"{instruction}\n\n{messages[0]['content']}"
            return [{"role": "user", "content": first_content}, *messages[1:]]
        return [{"role": "system", "content": instruction}, *messages]

    def rewriting(self, passage: str) -> Messages:
        """Messages that ask for a paraphrase of a passage (thesis, Figure 5.6)."""
        text = " ".join(passage.split())
        return [{"role": "user", "content": self.paraphrase.replace("{passage}", text)}]

    def pool_of_names(self) -> Messages:
        """Messages that ask for names of authors (thesis, Figure 5.8)."""
        return [{"role": "user", "content": self.names}]


FILES = ("instruction", "question", "paraphrase", "names")
"""Names of the texts in a folder of prompts, whose ending is txt."""

LABELLED = "instruction_labelled"
"""Name of a text that a folder of prompts may have, for passages with labels."""


def read_prompts(folder: Path, worked: Path | None = None, *, one_message: bool = False) -> Prompts:
    """Read the prompts of a folder; ``worked``: YAML of the examples before a question."""
    names = list(FILES)
    if (folder / f"{LABELLED}.txt").is_file():
        names.append(LABELLED)
    texts = {}
    for name in names:
        texts[name] = read_text(project.noted(folder / f"{name}.txt")).strip()
    examples: tuple[Example, ...] = ()
    if worked is not None:
        examples = _read_examples(worked)
    return Prompts(examples=examples, one_message=one_message, **texts)


def _read_examples(path: Path) -> tuple[Example, ...]:
    """Worked examples from a YAML file."""
    examples = []
    try:
        for entry in read_yaml(project.noted(path)):
            passages = []
            for passage in entry["passages"]:
                passages.append((passage["text"], int(passage["group"])))
            examples.append(Example(entry["question"], tuple(passages), entry["answer"]))
    except (TypeError, KeyError, ValueError) as error:
        entries_wanted = "a list with question, passages (text and group 0 or 1) and answer"
        raise refused(path, f"{type(error).__name__}: {error}", entries_wanted) from None
    return tuple(examples)


def prompts_of_figures(prompts: Prompts, notice: str) -> dict[str, pd.DataFrame]:
    """Lines of the prompts of Figures 5.2, 5.6, 5.7 and 5.8.

    Without documents 3 to 9 and the worked examples.
    """
    passages = [Passage(f"{{text of Document [{number}]}}") for number in range(1, 11)]
    labelled = [Passage(passage.text, "Author") for passage in passages]
    messages_of_figures = {
        "5.2": prompts.answer("{query}", passages),
        "5.7": prompts.answer("{query}", labelled, notice),
        "5.6": prompts.rewriting("{input passage}"),
        "5.8": prompts.pool_of_names(),
    }
    left_out = [f"Document [{number}]" for number in range(3, 10)]
    tables = {}
    for figure, messages in messages_of_figures.items():
        # The worked examples stand between the first message and the last; there may be only one.
        ends = messages if len(messages) == 1 else [messages[0], messages[-1]]
        lines = []
        for message in ends:
            for line in message["content"].splitlines():
                if line.strip() and not any(document in line for document in left_out):
                    lines.append(line)
        tables[figure] = pd.DataFrame({"line": range(1, len(lines) + 1), "text": lines})
    return tables
