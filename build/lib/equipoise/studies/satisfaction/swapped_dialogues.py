"""Counterfactual dialogues: the same context with a last system response of the opposite outcome.

Two ways: a real response of opposite outcome, swapped in from another dialogue of the same service and act, which needs
no model; and a response that a language model writes. Neither has been read by a person: that the outcome is opposite
is presumed, and every counterfactual says where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from equipoise.studies.satisfaction.dialogues import dialogue_text

_TASK = (
    "You rewrite the last SYSTEM utterance of a dialogue so that its outcome is the opposite.\n"
    "If the last SYSTEM utterance does not understand or fulfil what the USER asks for, write one that does.\n"
    "If the last SYSTEM utterance understands and fulfils what the USER asks for, write one that does not.\n"
    "Keep to the dialogue so far.\n"
)


def swap_responses(samples: pd.DataFrame, donors: pd.DataFrame, *, most: int | None = None) -> pd.DataFrame:
    """Swap in a real last response of opposite outcome.

    The donor is the sample of opposite outcome, from another dialogue of the same service whose last user utterance has
    the same act, whose last user utterance is most like the sample's own (cosine of TF-IDF weights). Ties go to the
    donor that comes first.

    ``samples``: Samples to turn round, with the columns that `equipoise.studies.satisfaction.dialogues.turn_samples`
    gives. ``donors``: Samples whose responses may be taken, with the same columns. ``most``: how often one response
    may be taken, the samples choosing in their order; without it, as often as it fits best. Returns One row for each
    sample that has a donor, with the columns of ``samples``: the last of ``systems`` is the donor's, ``dissatisfied``
    is turned round and ``rating`` is the donor's. ``donor`` is the donor's id, ``similarity`` the cosine, from 0 to 1.

    thesis section 3.4.1 has the response written by GPT-4 and keeps what two people accept. This way writes nothing and
    judges nothing: whether the donor's response leaves this user (dis)satisfied was not checked.
    """
    if most is not None and most < 1:
        raise ValueError(f"a response is taken at least once, found {most}")
    if samples.empty or donors.empty:
        raise ValueError(f"nothing to swap: {len(samples)} samples and {len(donors)} donors")
    asked = [users[-1] for users in samples["users"]]
    told = [users[-1] for users in donors["users"]]
    weights = TfidfVectorizer(token_pattern=r"\w+").fit(told)  # noqa: S106 - no password
    left, right = weights.transform(asked), sparse.csr_array(weights.transform(told))
    groups = donors.reset_index(drop=True).groupby(["service", "act", "dissatisfied"], sort=False).indices
    homes = donors["dialogue"].to_numpy(dtype=object)
    taken = np.zeros(len(donors), dtype=np.int64)
    chosen: list[tuple[int, int, float]] = []
    keys = samples[["service", "act", "dissatisfied", "dialogue"]].itertuples(index=False)
    for row, (service, act, dissatisfied, home) in enumerate(keys):
        fitting = groups.get((service, act, not dissatisfied), np.empty(0, dtype=np.intp))
        fitting = fitting[homes[fitting] != home]
        if most is not None:
            fitting = fitting[taken[fitting] < most]
        if not len(fitting):
            continue
        likeness = np.round((right[fitting] @ left[row].T).toarray().ravel(), 12)
        best = int(fitting[likeness.argmax()])
        taken[best] += 1
        chosen.append((row, best, float(likeness.max())))
    rows, origin = [row for row, _, _ in chosen], [donor for _, donor, _ in chosen]
    swapped, given = samples.iloc[rows].reset_index(drop=True), donors.iloc[origin].reset_index(drop=True)
    swapped["systems"] = [
        (*own[:-1], other[-1]) for own, other in zip(swapped["systems"], given["systems"], strict=True)
    ]
    swapped["rating"], swapped["dissatisfied"] = given["rating"], given["dissatisfied"]
    return swapped.assign(donor=given["sample"], similarity=[cosine for _, _, cosine in chosen])


def counterfactual_prompt(
    users: Sequence[str], systems: Sequence[str], examples: Sequence[tuple[str, str]], last: int | None = None
) -> str:
    """Prompt for a counterfactual last response.

    ``users``, ``systems``: Exchanges of the dialogue to turn round. ``examples``: Dialogues and the responses that
    turn them round; the thesis shows one of each direction. ``last``: Exchanges of the dialogue that are shown,
    from the end. Returns: It ends where the response begins.

    thesis Figure 3.6: the task, what a counterfactual response is in either direction, examples, the dialogue. The
    wording and the examples are our own.
    """
    parts = [_TASK]
    dialogues = [*examples, (dialogue_text(users, systems, last), None)]
    for number, (shown, answer) in enumerate(dialogues, start=1):
        ending = "" if answer is None else f" {answer}\n"
        parts.append(
            f"Dialogue {number}:\n{shown}\nCounterfactual last utterance of Dialogue {number}: SYSTEM:{ending}"
        )
    return "\n".join(parts)


def cut_response(text: str) -> str:
    """What a model wrote, up to the end of the utterance.

    Returns: The first line that is not empty, without a speaker's name before it.
    """
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.removeprefix("SYSTEM:").strip()


def written_responses(
    samples: pd.DataFrame,
    write: Callable[[str], str],
    examples: Sequence[tuple[str, str]],
    *,
    writer: str,
    last: int | None = None,
) -> pd.DataFrame:
    """Let a language model write the last response of opposite outcome.

    ``write``: Takes a prompt and returns what the model goes on with. ``writer``: name of the model, for the
    provenance. ``last``: Exchanges shown. Returns One row for each sample for which the model wrote something else
    than the response there was, with the columns of ``samples``, ``dissatisfied`` turned round, ``rating`` missing,
    and ``writer``.

    thesis section 3.4.1.
    """
    rows = []
    for row in samples.to_dict("records"):
        response = cut_response(write(counterfactual_prompt(row["users"], row["systems"], examples, last)))
        if response and response != row["systems"][-1]:
            systems = (*row["systems"][:-1], response)
            rows.append(row | {"systems": systems, "dissatisfied": not row["dissatisfied"], "writer": writer})
    return pd.DataFrame(rows, columns=[*samples.columns, "writer"]).assign(rating=pd.NA)
