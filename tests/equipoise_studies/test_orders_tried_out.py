"""Guards the guide's commands for anyone's system, with one not ours, from topics to Table 2."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import project, registry
from equipoise_studies.permutations import upstream as cast
from upstream import skip_without

GUIDE = project.root() / "lib" / "equipoise_cli" / "guide" / "orders.md"


def follow(folder: Path) -> pd.DataFrame:
    """Do what the guide says, in a folder of the files it names, and return Table 2 by run."""
    (folder / "tests").mkdir()
    shutil.copy(project.root() / "tests" / "their_system.py", folder / "tests")
    (block,) = re.findall(r"```sh\n(.+?)```", GUIDE.read_text(), re.DOTALL)
    # on files of our own in the place of the examples
    block = block.replace("data/examples/topics.tsv", "topics.json")
    block = block.replace("data/examples/utterances.qrels", "qrels.txt")
    block = block.replace("data/examples/", "")
    for line in block.splitlines():
        if "pip install" in line:
            continue  # these modules are here
        command, _, output = line.partition("#")[0].strip().partition(" > ")
        command, _, given = command.partition(" < ")
        name, *words = shlex.split(command)
        called = [sys.executable, *(["-m", "equipoise_cli"] if name == "equipoise" else []), *words]
        read = (folder / given).read_text() if given else None
        ended = subprocess.run(
            called, cwd=folder, input=read, capture_output=True, text=True, check=True
        )
        if output:
            (folder / output).write_text(ended.stdout)
    return pd.read_csv(folder / "results" / "table-2.csv").set_index("run")


def test_the_commands_of_the_guide_lead_from_topics_to_table_2(tmp_path: Path) -> None:
    said = [
        "What is throat cancer?",
        "Is it treatable?",
        "What are its symptoms?",
        "Tell me about lung cancer.",
    ]
    said += ["Can it spread to the throat?", "Why?"]
    turns = [
        f'{{"number": {number}, "raw_utterance": "{text}"}}' for number, text in enumerate(said, 1)
    ]
    turn = f'"turn": [{", ".join(turns)}]'
    (tmp_path / "topics.json").write_text(f'[{{"number": 1, {turn}}}, {{"number": 2, {turn}}}]')
    queries = [f"{topic}_{number}" for topic in (1, 2) for number in range(1, len(said) + 1)]
    classes = ["SE", "FT", "FT", "SE", "PT", "PT"] * 2
    rows = [f"{query},{name}\n" for query, name in zip(queries, classes, strict=True)]
    (tmp_path / "classes.csv").write_text("query,class\n" + "".join(rows))
    texts = [
        "throat cancer treatable symptoms",
        "lung cancer spread",
        "throat symptoms",
        "lung",
        "sharks",
    ]
    (tmp_path / "passages.tsv").write_text(
        "".join(f"d{number}\t{text}\n" for number, text in enumerate(texts))
    )
    judged = [f"{query} 0 d{number % 5} {1 + number % 3}\n" for number, query in enumerate(queries)]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    table = follow(tmp_path)
    assert table.index.tolist() == ["rewrite", "raw"]
    assert set(table["how"]) == {"exact"}
    assert table.loc["raw", "minimum of all"] == pytest.approx(table.loc["raw", "original"])
    assert table.loc["rewrite", "minimum of all"] < table.loc["rewrite", "maximum of all"]


@pytest.mark.upstream
def test_the_numbers_of_the_guide_are_those_of_cast_2019(tmp_path: Path) -> None:
    skip_without("cast19", "mele_classes", "case_saac")
    topics = registry.fetch("cast19", "2019/data/evaluation/evaluation_topics_v1.0.json")
    qrels = registry.fetch("cast19", "2019/data/2019qrels.txt")
    classes = cast.read_classes(registry.fetch("mele_classes", "data/datasets/test_set.tsv"))
    passages = cast.fetch_passages()
    shutil.copy(topics, tmp_path / "topics.json")
    shutil.copy(qrels, tmp_path / "qrels.txt")
    classes[["query", "class"]].to_csv(tmp_path / "classes.csv", index=False)
    passages[["document", "text"]].to_csv(
        tmp_path / "passages.tsv", sep="\t", header=False, index=False, quoting=3
    )
    row = follow(tmp_path).loc["rewrite"]
    inputs = len((tmp_path / "permuted" / "inputs.jsonl").read_text().splitlines())
    orders = pd.read_csv(tmp_path / "permuted" / "orders.csv").drop_duplicates(
        ["topic", "permutation"]
    )
    script, mean, low, high = (
        f"{row[name]:.4f}"[1:]
        for name in ("original", "mean of all", "minimum of all", "maximum of all")
    )
    said = " ".join(GUIDE.read_text().split())
    assert f"{len(passages)} passages" in said
    assert f"{inputs} inputs stand for {len(orders):,} orders" in said
    assert f"{script} in the order of the script and {mean} over all orders" in said
    assert f"the lowest gives {low} and the highest {high}" in said
