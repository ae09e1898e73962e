"""The command ``permute``, which writes valid permutations of conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from equipoise_cli.outputs import FOLDER, refuse_outputs
from equipoise_cli.shared import FILE, TARGET, samples


@click.command(epilog=samples("--topics of a track", "--classes", "--qrels of utterances"))
@click.option(
    "--topics",
    required=True,
    type=FILE,
    help="CAsT or iKAT JSON, or lines of id, tab and utterance.",
)
@click.option(
    "--classes",
    required=True,
    type=FILE,
    help="Class of every utterance, CSV: query,class (SE, FT or PT).",
)
@click.option(
    "--qrels",
    type=FILE,
    help="Judgements. Keep judged utterances, as in the study, and the first of each topic.",
)
@click.option(
    "--context",
    type=click.Choice(["history", "previous"]),
    default="history",
    help="Utterances in an input. With the previous one only, there are fewer inputs to run.",
)
@click.option(
    "--permutations",
    type=click.IntRange(1, 10**6),
    default=100,
    help="Permutations of each conversation, in addition to the original order.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the random draws.")
@click.option("-o", "--output", required=True, type=TARGET, help="Folder to make.")
def permute(
    topics: Path,
    classes: Path,
    qrels: Path | None,
    context: str,
    permutations: int,
    seed: int,
    output: Path,
) -> None:
    """Write valid permutations of the conversations in TOPICS.

    The first utterance stays first. An utterance on a previous topic (PT) directly follows the one
    that it depends on. Run your system once on each line of inputs.jsonl. A line has an utterance,
    the utterances before it, and an id for the run. The table permutations.csv lists the input at
    each position of each permutation. Permutation 0 is the original order.
    """
    refuse_outputs({"output": FOLDER})
    import pandas as pd

    from equipoise.loaders.topics import read_topics
    from equipoise.loaders.trec import read_qrels
    from equipoise.permutations.structures import class_structures, sampled_permutations
    from equipoise_compendium.writing import new_folder, write_csv

    utterances = read_topics(topics)
    if qrels is not None:
        judged = utterances["query"].isin(read_qrels(qrels)["topic"])
        if not judged.any():
            raise click.UsageError(f"{qrels}: must judge at least one utterance of {topics}")
        # Later utterances may be unclear without the first one.
        has_judged = utterances["topic"].isin(utterances.loc[judged, "topic"])
        utterances = utterances[judged | (~utterances.duplicated("topic") & has_judged)]
    utterances = utterances.assign(**{"class": _read_classes(classes, utterances["query"])})
    structures = class_structures(utterances)
    drawn = sampled_permutations(structures, permutations, seed)

    lines = []
    rows = []
    for topic, turns in utterances.groupby("topic", sort=False):
        spoken = (
            turns[["query", "text"]].set_axis(["query", "utterance"], axis=1).to_dict("records")
        )
        id_of: dict[tuple[int, ...], str] = {}
        for number, order in enumerate(drawn[topic].tolist()):
            for position, utterance in enumerate(order, start=1):
                first = 0 if context == "history" else max(position - 2, 0)
                places = tuple(order[first:position])
                if places not in id_of:
                    id_of[places] = f"{topic}-{len(id_of) + 1}"
                    *earlier, last = [spoken[place] for place in places]
                    line = {"id": id_of[places], "topic": topic, **last, "context": earlier}
                    lines.append(line)
                rows.append((topic, number, position, spoken[utterance]["query"], id_of[places]))
    table = pd.DataFrame(rows, columns=["topic", "permutation", "position", "query", "id"])
    with new_folder(output) as staged:
        with (staged / "inputs.jsonl").open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        write_csv(table, staged / "permutations.csv")
    click.echo(
        f"{len(structures)} conversations, {len(utterances)} utterances, "
        f"{sum(map(len, drawn.values()))} permutations: {len(lines)} inputs to run, "
        f"in place of {len(table)}",
        err=True,
    )


def _read_classes(path: Path, queries: Any) -> list[str]:
    """Read the class of each query."""
    from equipoise.permutations.structures import CLASSES
    from equipoise.readers import read_table

    table = read_table(path)
    table.need(["query", "class"])
    table.once(["query"], "unique, one row per utterance")
    table.reject(~table.frame["class"].isin(CLASSES), "class", f"one of {', '.join(CLASSES)}")
    class_of = table.frame.set_index("query")["class"]
    missing = [query for query in queries if query not in class_of.index]
    if missing:
        raise click.UsageError(f"{path}: must have a class for utterance {missing[0]}")
    return class_of[list(queries)].tolist()
