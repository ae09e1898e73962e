"""Counterfactual dialogues without a model: the same context with a real last response of the opposite outcome.

No person has read them: that the outcome is opposite is presumed, and every counterfactual says
where it comes from.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer


def swap_responses(samples: pd.DataFrame, donors: pd.DataFrame) -> pd.DataFrame:
    """Swap in a real last response of opposite outcome.

    The donor is the sample of opposite outcome, from another dialogue of the same service whose
    last user utterance has the same act, whose last user utterance is most like the sample's own
    (cosine of TF-IDF weights). Ties go to the donor that comes first.

    ``samples``, ``donors``: Samples to turn round, and those whose responses may be taken, as
    `equipoise_studies.satisfaction.dialogues.turn_samples` gives them. Returns one row for each
    sample that has a donor, with the columns of ``samples``: the last of ``systems`` is the
    donor's, and so are ``dissatisfied`` and ``rating``. ``original`` are the systems' own
    utterances, ``donor`` is the donor's id, ``similarity`` the cosine, from 0 to 1.

    thesis section 3.4.1 has the response written by GPT-4 and keeps what two people accept. This
    way writes nothing and judges nothing: whether the donor's response leaves this user
    (dis)satisfied was not checked.
    """
    if samples.empty or donors.empty:
        raise ValueError(f"nothing to swap: {len(samples)} samples and {len(donors)} donors")
    weights = TfidfVectorizer(token_pattern=r"\w+").fit(donors["users"].str[-1])  # noqa: S106 - no password
    left, right = (weights.transform(part["users"].str[-1]) for part in (samples, donors))
    groups = (
        donors.reset_index(drop=True)
        .groupby(["service", "act", "dissatisfied"], sort=False)
        .indices
    )
    homes = donors["dialogue"].to_numpy(dtype=object)
    chosen: list[tuple[int, int, float]] = []
    keys = samples[["service", "act", "dissatisfied", "dialogue"]].itertuples(index=False)
    for row, (service, act, dissatisfied, home) in enumerate(keys):
        fitting = groups.get((service, act, not dissatisfied), np.empty(0, dtype=np.intp))
        fitting = fitting[homes[fitting] != home]
        if len(fitting):
            likeness = np.round((right[fitting] @ left[row].T).toarray().ravel(), 12)
            best = likeness.argmax()
            chosen.append((row, int(fitting[best]), float(likeness[best])))
    rows, origin, similarity = ([choice[part] for choice in chosen] for part in range(3))
    swapped, given = (
        samples.iloc[rows].reset_index(drop=True),
        donors.iloc[origin].reset_index(drop=True),
    )
    swapped["original"] = swapped["systems"]
    swapped["systems"] = swapped["systems"].str[:-1] + given["systems"].str[-1:]
    swapped[["rating", "dissatisfied"]] = given[["rating", "dissatisfied"]]
    return swapped.assign(donor=given["sample"], similarity=similarity)
