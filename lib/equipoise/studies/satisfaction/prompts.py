"""What language models are asked, and what is read from their answers: a label, or a last response written anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pandas as pd

from equipoise.studies.satisfaction.dialogues import dialogue_text

Examples = Sequence[tuple[str, str]]
"""Dialogues shown in a prompt, each with its label, or with the response that turns it round."""

LABELS = ("Satisfied", "Dissatisfied")
"""Labels of the few-shot prompt."""

_LABELLING = (
    "Label how satisfied the user is at the end of each dialogue. There are two labels:\n"
    '"Dissatisfied": the system does not understand what the user asks for, or fails to fulfil it.\n'
    '"Satisfied": the system understands what the user asks for, and fulfils all or part of it or says how it can be '
    "fulfilled.\n",
    'Example {number}:\n{dialogue}\nLabel of Example {number} is "{answer}".\n',
)
_TURNING = (
    "You rewrite the last SYSTEM utterance of a dialogue so that its outcome is the opposite.\n"
    "If the last SYSTEM utterance does not understand or fulfil what the USER asks for, write one that does.\n"
    "If the last SYSTEM utterance understands and fulfils what the USER asks for, write one that does not.\n"
    "Keep to the dialogue so far.\n",
    "Dialogue {number}:\n{dialogue}\nCounterfactual last utterance of Dialogue {number}: SYSTEM: {answer}\n",
)


def _prompt(task: tuple[str, str], examples: Examples, dialogue: str) -> str:
    instruction, form = task
    shown = [form.format(number=place, dialogue=text, answer=label) for place, (text, label) in enumerate(examples, 1)]
    asked = form.partition("{answer}")[0].rstrip(" ").format(number=len(examples) + 1, dialogue=dialogue)
    return "\n".join([instruction, *shown, asked])


def few_shot_prompt(users: Sequence[str], systems: Sequence[str], examples: Examples, last: int | None = None) -> str:
    """Prompt for the label of a dialogue; it ends within the quotation marks where the label belongs.

    ``users``, ``systems``: the dialogue's utterances in turn. ``examples``: the thesis shows a satisfied one, then a
    dissatisfied one. ``last``: how many exchanges of the dialogue are shown, from the end.

    thesis Figure 3.3: instruction, what the two labels mean, examples with their labels, the dialogue. The wording of
    the instruction is our own.
    """
    unknown = sorted({label for _, label in examples} - set(LABELS))
    if unknown:
        raise ValueError(f"labels are {' and '.join(LABELS)}, found {', '.join(unknown)}")
    return _prompt(_LABELLING, examples, dialogue_text(users, systems, last))


def counterfactual_prompt(
    users: Sequence[str], systems: Sequence[str], examples: Examples, last: int | None = None
) -> str:
    """Prompt for a counterfactual last response; it ends where the response begins.

    ``users``, ``systems``: the dialogue's utterances in turn. ``examples``: the thesis shows one of each direction.
    ``last``: how many exchanges of the dialogue are shown, from the end.

    thesis Figure 3.6: the task, what a counterfactual response is in either direction, examples, the dialogue. The
    wording and the examples are our own.
    """
    return _prompt(_TURNING, examples, dialogue_text(users, systems, last))


def label_probability(candidates: Mapping[str, float]) -> float:
    r"""Probability of "Dissatisfied" against "Satisfied", by the token that a model would write first.

    .. math:: P = \frac{\sum_{t \in D} p_t}{\sum_{t \in D} p_t + \sum_{t \in S} p_t}

    where D and S hold the tokens that the one label begins with and the other does not.

    ``candidates``: the natural logarithm of the probability of each of the likeliest tokens. Returns: from 0 to 1; 0.5
    where neither label begins with any of them.
    """
    sums = dict.fromkeys(LABELS, 0.0)
    for (token, logarithm), label in product(candidates.items(), LABELS):
        if token.strip() and label.startswith(token.strip()):
            sums[label] += math.exp(logarithm)
    total = sum(sums.values())
    return sums["Dissatisfied"] / total if total else 0.5


def written_responses(
    samples: pd.DataFrame, write: Callable[[str], str], examples: Examples, *, writer: str, last: int | None = None
) -> pd.DataFrame:
    """Let a language model write the last response of opposite outcome (thesis section 3.4.1).

    ``write``: takes a prompt and returns what the model goes on with, of which the first line that is not empty
    counts. ``writer``: the model's name. ``last``: how many exchanges are shown. Returns: one row for each sample for
    which the model wrote something else than the response there was: the columns of ``samples``, with ``dissatisfied``
    turned round and ``rating`` missing, and ``writer``.
    """
    rows = []
    for row in samples.to_dict("records"):
        text = write(counterfactual_prompt(row["users"], row["systems"], examples, last))
        response = "".join(text.strip().splitlines()[:1]).removeprefix("SYSTEM:").strip()
        if response and response != row["systems"][-1]:
            systems = (*row["systems"][:-1], response)
            rows.append(row | {"systems": systems, "dissatisfied": not row["dissatisfied"], "writer": writer})
    return pd.DataFrame(rows, columns=[*samples.columns, "writer"]).assign(rating=pd.NA)
