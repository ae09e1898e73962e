"""What a user waits for: runs read and checked, and whole commands, their start included.

Ratios of processor time, each of one thread, so that a busy machine changes them little.
"""

from __future__ import annotations

import math
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from equipoise.loaders.trec import read_run

TOPICS, DEPTH, DOCUMENTS, QUERIES = 2000, 1000, 1_000_000, 500
TERMS = {"f": ["she", "her", "woman", "girl", "mother"], "m": ["he", "him", "man", "boy", "father"]}

NEUTRALITY = '''"""Stand-in for the first script: the neutrality of each document, word by word."""
import json, sys
collection, terms, out = sys.argv[1:]
groups = {}
for line in open(terms):
    term, group = line.strip().split(",")
    groups.setdefault(group, set()).add(term)
found = {}
for line in open(collection, encoding="utf-8"):
    document, text = line.rstrip("\\n").split("\\t")
    counts = dict.fromkeys(groups, 0)
    for word in text.lower().split(" "):
        for group, words in groups.items():
            if word in words:
                counts[group] += 1
    total = sum(counts.values())
    bias = sum(abs(count / total - 1 / len(counts)) for count in counts.values()) \
if total > 1 else 0
    found[document] = 1 - bias
json.dump(found, open(out, "w"))
print(len(found))
'''
METRICS = '''"""Stand-in for the second script: FaiRR and NFaiRR at 10 of each query, \
the ideal from its own list."""
import json, math, sys
neutrality, run = json.load(open(sys.argv[1])), {}
for line in open(sys.argv[2]):
    query, _, document, *_ = line.split()
    run.setdefault(query, []).append(neutrality[document])
def fairr(values):
    return sum(value / math.log2(rank + 1) for rank, value in enumerate(values[:10], start=1))
scores = {query: fairr(values) / fairr(sorted(values, reverse=True)) \
for query, values in run.items()}
print(sum(scores.values()) / len(scores))
'''


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Fewest seconds of the processor that a few calls take."""
    taken = []
    for _ in range(times):
        begun = process_time()
        work()
        taken.append(process_time() - begun)
    return min(taken)


COMPILED = tempfile.TemporaryDirectory()


def child(*command: object) -> tuple[float, str]:
    """Seconds of the processor that a process takes, its start included, and what it prints.

    Modules are compiled, as installers leave them, from the second start on: sources alone cost
    more than a second.
    """
    compiled = os.environ | {"PYTHONPYCACHEPREFIX": COMPILED.name}
    compiled.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*map(str, command)], check=True, capture_output=True, text=True, env=compiled
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def equipoise(*arguments: object) -> tuple[float, float]:
    """Processor seconds, and largest size in MB, of a command; NaN where Linux does not tell it."""
    code = (
        "from pathlib import Path\nfrom equipoise_cli import main\nmain(standalone_mode=False)\n"
        # what getrusage tells counts what started the process, too
        "print(Path('/proc/self/status').read_text())"
    )
    taken, told = child(sys.executable, "-c", code, *arguments)
    size = re.search(r"VmHWM:\s*(\d+) kB", told)
    return taken, int(size[1]) * 1024 / 1e6 if size else math.nan


def bare(path: Path) -> Any:
    """What pyarrow alone reads of a run, in one thread."""
    return pyarrow.csv.read_csv(
        path,
        pyarrow.csv.ReadOptions(use_threads=False, column_names=list("abcdef")),
        pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 2,000 topics and 1,000 documents each."""
    rng, path = np.random.default_rng(7), tmp_path_factory.mktemp("run") / "bm25.run"
    with path.open("w") as file:
        for topic in range(TOPICS):
            documents = (rng.permutation(3000)[:DEPTH] + topic % 50 * 3000).tolist()
            rows = enumerate(documents, start=1)
            file.writelines(
                f"{topic} Q0 doc{one:07d} {rank} {30 - rank / 100:.6f} bm25\n" for rank, one in rows
            )
    return path


def test_a_run_of_2000000_lines_read_and_checked(benchmark: Any, run: Path) -> None:
    table = benchmark.pedantic(lambda: read_run(run), rounds=1)
    assert len(table) == TOPICS * DEPTH
    ratio = seconds(lambda: read_run(run)) / seconds(lambda: bare(run))
    benchmark.extra_info["times the bare reading by pyarrow"] = ratio
    print(f"\na run read and checked: {ratio:.1f} times the bare reading by pyarrow")
    assert ratio < 4


def test_score_gfr_of_2000000_lines(benchmark: Any, run: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    judged = [
        (topic, one + topic % 50 * 3000)
        for topic in range(TOPICS)
        for one in rng.permutation(3000)[:100]
    ]
    (tmp_path / "qrels").write_text(
        "".join(f"{topic} 0 doc{one:07d} {one % 3}\n" for topic, one in judged)
    )
    (tmp_path / "size").write_text(
        "".join(f"{topic} doc{one:07d} 0.25 0.75\n" for topic, one in judged)
    )
    (tmp_path / "target").write_text("0.5\n0.5\n")
    sets = [
        f"--membership=A={tmp_path / 'size'}",
        f"--target=A={tmp_path / 'target'}",
        "--kind=A=ordinal",
    ]
    arguments = [
        "score",
        "gfr",
        "--run",
        run,
        "--qrels",
        tmp_path / "qrels",
        *sets,
        "-o",
        tmp_path / "out.csv",
    ]
    equipoise(*arguments)
    taken, size = benchmark.pedantic(lambda: min(equipoise(*arguments) for _ in range(2)), rounds=1)
    ratio = taken / seconds(lambda: bare(run))
    benchmark.extra_info["times the bare reading by pyarrow, the start included"] = ratio
    benchmark.extra_info["times the size of the file, peak memory"] = (
        size * 1e6 / run.stat().st_size
    )
    print(f"\nscore gfr: {ratio:.1f} times the bare reading by pyarrow, {size:.0f} MB")
    assert ratio < 20
    assert not size > 700


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million documents of about 56 words, one in a dozen a term of a group, and a run."""
    folder, rng = tmp_path_factory.mktemp("collection"), np.random.default_rng(2)
    terms = [term for own in TERMS.values() for term in own]
    words = np.array([f"word{number}" for number in range(20_000)] + terms * 180)
    with (folder / "collection.tsv").open("w") as file:
        for start in range(0, DOCUMENTS, 10_000):
            chosen = words[rng.integers(0, words.size, (10_000, 56))].tolist()
            file.writelines(
                f"{start + place}\t{' '.join(row)}\n" for place, row in enumerate(chosen)
            )
    (folder / "terms.csv").write_text(
        "".join(f"{term},{group}\n" for group, own in TERMS.items() for term in own)
    )
    ranked = rng.integers(0, DOCUMENTS // 100, (QUERIES, 100)) + 10_000 * np.arange(100)
    rows = [
        f"{query} Q0 {document} {rank} {100 - rank} x\n"
        for query, own in enumerate(ranked.tolist())
        for rank, document in enumerate(own, start=1)
    ]
    (folder / "run").write_text("".join(rows))
    return folder


def test_score_ranking_bias_of_1000000_documents(
    benchmark: Any, collection: Path, tmp_path: Path
) -> None:
    """Beside a stand-in for the public program's two scripts, written here by its algorithm."""
    documents, terms, run = (collection / name for name in ("collection.tsv", "terms.csv", "run"))
    held = tmp_path / "neutrality.json"
    (tmp_path / "first.py").write_text(NEUTRALITY)
    (tmp_path / "second.py").write_text(METRICS)
    first, count = child(sys.executable, tmp_path / "first.py", documents, terms, held)
    second, told = child(sys.executable, tmp_path / "second.py", held, run)
    assert int(count) == DOCUMENTS
    given = [
        "--run",
        run,
        "--documents",
        documents,
        "--terms",
        terms,
        "--background",
        "own",
        "--tokens",
        "space",
    ]
    whole = ["score", "ranking-bias", *given, "--cutoff", "10", "-o", tmp_path / "own.csv"]
    equipoise(*whole)
    rows = (line.split(",") for line in (tmp_path / "own.csv").read_text().splitlines())
    ours = [
        float(value)
        for _, topic, _, measure, value, _ in rows
        if (topic, measure) == ("", "NFaiRR@10")
    ]
    assert ours == pytest.approx([float(told)])
    # every document counted, as the first script does: the whole collection is the background
    every = ["collection" if argument == "own" else argument for argument in whole]

    def in_turn() -> tuple[float, float, float]:
        """Both once more: what the machine does beside them then troubles both."""
        return child(sys.executable, tmp_path / "first.py", documents, terms, held)[0], *equipoise(
            *every
        )

    turns = benchmark.pedantic(lambda: [in_turn() for _ in range(3)], rounds=1)
    plain, taken, size = (min(column) for column in zip(*turns, strict=True))
    ratio = (min(first, plain) + second) / taken
    benchmark.extra_info["times as fast as a stand-in for the public program's two scripts"] = ratio
    print(
        f"\nscore ranking-bias: {ratio:.1f} times as fast as a stand-in for the public scripts, "
        f"{size:.0f} MB"
    )
    assert ratio > 1
