"""Counterfactual dialogues without a model: the same context with a real, opposite last response.

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
    pairs = nearest_donors(samples, donors)
    swapped = samples.iloc[pairs["row"]].reset_index(drop=True)
    chosen_donors = donors.iloc[pairs["donor_row"]].reset_index(drop=True)

    swapped["original"] = swapped["systems"]
    swapped["systems"] = swapped["systems"].str[:-1] + chosen_donors["systems"].str[-1:]
    swapped = with_labels_of(swapped, chosen_donors)
    return swapped.assign(donor=chosen_donors["sample"], similarity=pairs["similarity"])


def nearest_donors(samples: pd.DataFrame, donors: pd.DataFrame) -> pd.DataFrame:
    """Donor of each sample that has one: columns row, donor_row (places) and similarity."""
    words = TfidfVectorizer(token_pattern=r"\w+")  # noqa: S106 - no password
    donor_weights = words.fit_transform(donors["users"].str[-1])
    sample_weights = words.transform(samples["users"].str[-1])
    donor_groups = (
        donors.reset_index(drop=True)
        .groupby(["service", "act", "dissatisfied"], sort=False)
        .indices
    )
    donor_dialogues = donors["dialogue"].to_numpy(dtype=object)

    pairs = []
    keys = samples[["service", "act", "dissatisfied", "dialogue"]].itertuples(index=False)
    for row, (service, act, dissatisfied, dialogue) in enumerate(keys):
        candidates = donor_groups.get((service, act, not dissatisfied), np.empty(0, dtype=np.intp))
        candidates = candidates[donor_dialogues[candidates] != dialogue]
        if not len(candidates):
            continue
        cosines = (donor_weights[candidates] @ sample_weights[row].T).toarray().ravel()
        # Rounded, so that the last bits of a sum do not decide between equal donors.
        cosines = np.round(cosines, 12)
        nearest = cosines.argmax()
        pairs.append((row, int(candidates[nearest]), float(cosines[nearest])))
    return pd.DataFrame(pairs, columns=["row", "donor_row", "similarity"])


def with_labels_of(samples: pd.DataFrame, donors: pd.DataFrame) -> pd.DataFrame:
    """Samples with the labels of their donors, row by row, and the words of their responses."""
    words = samples["words"] - samples["response_words"] + donors["response_words"]
    samples = samples.assign(words=words, response_words=donors["response_words"])
    samples[["rating", "dissatisfied"]] = donors[["rating", "dissatisfied"]]
    return samples
