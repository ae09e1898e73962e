"""Make the derived data of the FairWeb-1 pilot pack from the upstream files.

    python data/facts/conversations/make.py [--output FOLDER]

Upstream files come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. Without --output the tables next to this script are replaced.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.loaders.trec import read_qrels, read_run
from equipoise_compendium import facts, registry

FOLDER = "NTCIR/FW1pilotpack"
RUNS = {
    "bm25": "run.bm25-depThre6.bm25-depThre6",
    "qld": "run.qld-depThre6.qld-depThre6",
    "qljm": "run.qljm-depThre6",
}
KINDS = {
    "R-GENDER": "nominal",
    "R-HINDEX": "ordinal",
    "M-ORIGIN": "nominal",
    "M-RATINGS": "ordinal",
    "T-FOLLOWERS": "ordinal",
    "Y-SUBSCS": "ordinal",
}
"""Attribute sets: researchers (R), movies (M), Twitter accounts (T) and YouTube channels (Y)."""


def fetch(name: str) -> Path:
    """Return the path of a file of the pack."""
    return registry.fetch("fairweb", f"{FOLDER}/{name}")


def numbers(values: np.ndarray) -> str:
    """Write numbers as one text, with enough digits to read the same numbers again."""
    return " ".join(repr(float(value)) for value in values)


def make_runs() -> pd.DataFrame:
    """Read the runs in the order of their files, which the campaign's program keeps."""
    runs = [read_run(fetch(file), run, order=None) for run, file in RUNS.items()]
    return pd.concat(runs, ignore_index=True).astype({"rank": np.int16})


def make_qrels() -> pd.DataFrame:
    """Read the judgements: 0 not relevant, 1 relevant, 2 highly relevant."""
    return read_qrels(fetch("fairweb1pilot.qrels"))


def make_targets() -> pd.DataFrame:
    """Read the target distribution of each attribute set, normalised."""
    rows = []
    for name, kind in KINDS.items():
        target = np.loadtxt(fetch(f"{name}.golddistr"))
        rows.append((name, kind, numbers(target / target.sum())))
    return pd.DataFrame(rows, columns=["attribute", "kind", "target"])


def make_memberships() -> pd.DataFrame:
    """Read the shares of each judged document over the groups of each attribute set."""
    parts = []
    for name in KINDS:
        fetch(f"{name}.golddistr")  # listed among the sources: it fixes the number of groups
        path = fetch(f"fairweb1pilot.{name}.gmemb")
        table = pd.read_csv(path, sep=r"\s+", header=None, dtype={0: str, 1: str})
        shares = table.drop(columns=[0, 1]).to_numpy(dtype=float)
        if not np.allclose(shares.sum(axis=1), 1, atol=1e-5):
            raise ValueError(f"{path}: shares must sum to 1")
        part = table[[0, 1]].set_axis(["topic", "document"], axis="columns")
        part.insert(0, "attribute", name)
        part["memberships"] = [numbers(row) for row in shares]
        parts.append(part)
    return pd.concat(parts)


TABLES = {
    "runs.parquet": make_runs,
    "qrels.csv": make_qrels,
    "targets.csv": make_targets,
    "memberships.csv": make_memberships,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, content in facts.make(TABLES).items():
        (output / name).write_bytes(content)
