"""The commands ``nuggets`` and ``agreement``, which make tables of annotations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from equipoise_cli.outputs import DRAWING, NUGGETS, SCORES, UNMATCHED, refuse_outputs
from equipoise_cli.shared import FILE, TARGET, named, show_seen, takes_output, write
from equipoise_cli.tables import check_figure, drawn, need_matplotlib

_ATTRIBUTES = click.option("--attributes", required=True, type=FILE, help="Attribute sets, YAML.")
_LABELS = click.option(
    "--labels",
    type=FILE,
    help="Meaning of the labels of an export, CSV: label,level,entity,SET,...",
)
_KEYS = click.option(
    "--map",
    "keys",
    multiple=True,
    metavar="run=KEY",
    help="Key with the run or the topic in the tasks of an export.  [run, topic]",
)
_OFFSETS = click.option(
    "--offsets",
    type=click.Choice(["auto", "characters", "utf-16"]),
    default="auto",
    help="What the offsets of an export count. auto takes what fits the text.",
)


def _read(
    files: tuple[Path, ...],
    sets: Mapping[str, Any],
    labels: Path | None,
    keys: tuple[str, ...],
    offsets: str,
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Read files of any format: frames of nuggets and of turns, by annotator.

    The annotator of a file that names none is the file. A nugget table has no turns.
    """
    from equipoise.loaders.transcripts import nugget_frame, parse_transcripts, turn_frame
    from equipoise.nuggets import nugget_table
    from equipoise.readers import read_table, read_text
    from equipoise_cli.formats.annotations import parse_export, read_brat

    meanings = None
    if labels is not None:
        table = read_table(labels)
        table.need(["label"])
        table.once(["label"], "unique in the file")
        meanings = table.frame
        unknown = set(meanings.columns) - {"label", "level", "entity", *sets}
        if unknown:
            expected = ", ".join(["label", "level", "entity", *sets])
            raise click.UsageError(f"{labels}: columns must be label and any of {expected}")
    given = named(filter(None, ",".join(keys).split(",")), "--map")
    key_of = {"run": "run", "topic": "topic"} | given
    if set(key_of) != {"run", "topic"}:
        raise click.UsageError("--map must be run=KEY, topic=KEY or both, with a comma")
    nuggets: dict[str, list[Any]] = {}
    turns: dict[str, list[Any]] = {}
    for file in files:
        text = read_brat(file) if file.is_dir() else read_text(file)
        if text.lstrip().startswith(("{", "[")):
            export, missing = parse_export(text, file, sets, meanings, key_of, offsets)
            if missing:
                click.echo(
                    f"{file}: {', '.join(missing)}; then the run is the name of the file, the "
                    "topic is the id of the task (--map run=KEY,topic=KEY)",
                    err=True,
                )
            for name, (frame, boundaries) in export.items():
                annotator = name or str(file)
                nuggets.setdefault(annotator, []).append(frame)
                turns.setdefault(annotator, []).append(boundaries)
        elif text.lstrip().startswith("#"):
            lines = parse_transcripts(text, file, sets)
            nuggets.setdefault(str(file), []).append(nugget_frame(lines, sets))
            turns.setdefault(str(file), []).append(turn_frame(lines))
        else:
            table = read_table(file, text.encode())
            nugget_table(table, sets)  # which names the line of a fault
            nuggets.setdefault(str(file), []).append(table.frame)
    return nuggets, turns


@click.command(short_help="Make a nugget table from annotated conversations.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@_ATTRIBUTES
@_LABELS
@_KEYS
@_OFFSETS
@click.option("--annotator", help="Annotator to take from an export that has several.")
@click.option("--figure", type=TARGET, help="Figure of the conversations, .svg, .png or .pdf.")
@takes_output
def nuggets(
    files: tuple[Path, ...],
    attributes: Path,
    labels: Path | None,
    keys: tuple[str, ...],
    offsets: str,
    annotator: str | None,
    figure: Path | None,
    output: Path | None,
) -> None:
    """Make the nugget table of annotated FILES, with word positions.

    FILES are transcripts, or exports of Label Studio (JSON), doccano (JSON Lines) or brat (a
    folder). In an export a label is a level (L2), a group (large, or SIZE=large), or both
    (L2|large). Explain other labels with --labels.
    """
    check_figure(figure, alone=False)
    refuse_outputs({"output": NUGGETS, "figure": DRAWING})
    import pandas as pd

    from equipoise.attributes import read_attributes
    from equipoise.nuggets import nugget_table

    sets = read_attributes(attributes)
    frames, turns = _read(files, sets, labels, keys, offsets)
    in_files = {str(file) for file in files}
    annotators = [name for name in frames if name not in in_files]
    if annotator is None and len(annotators) > 1:
        names = ", ".join(annotators)
        raise click.UsageError(f"--annotator is missing; must be one of {names}")
    if annotator is not None and annotator not in annotators:
        raise click.UsageError(f"--annotator must be one of {', '.join(annotators) or 'none'}")
    chosen = [name for name in frames if name in in_files or annotator in (None, name)]
    frame = pd.concat([part for name in chosen for part in frames[name]], ignore_index=True)
    frame = frame.fillna("")
    table = nugget_table(frame, sets, name=", ".join(map(str, files)))
    write({output: frame})
    if figure is not None:
        boundaries = [part for name in chosen for part in turns.get(name, [])]
        if not boundaries:
            raise click.UsageError("--figure: FILES must be transcripts or exports, with turns")
        drawing = _drawn(table, pd.concat(boundaries, ignore_index=True), sets, figure)
        write({figure: drawing})


def _drawn(table: Any, turns: Any, sets: Any, path: Path) -> bytes:
    """Draw the nuggets of every conversation by word position."""
    need_matplotlib()
    from equipoise_compendium.nugget_figure import annotated_conversations
    from equipoise_compendium.plots import use_style

    if not (table.level > 0).any():
        raise click.UsageError("--figure: at least one nugget must be relevant")
    use_style()
    title = f"Nuggets of {len(table.conversations)} conversations"
    return drawn(annotated_conversations(table, turns, sets), path, title)


@click.command(short_help="Compare annotators: alpha, kappa, and the range of each score.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@_ATTRIBUTES
@_LABELS
@_KEYS
@_OFFSETS
@click.option(
    "--unmatched", type=TARGET, help="Also write the nuggets that only one annotator found."
)
@click.option(
    "--gains", metavar="level:gain,...", help="Gain of each level in the scores.  [those of each]"
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the bootstrap.")
@takes_output
def agreement(
    files: tuple[Path, ...],
    attributes: Path,
    labels: Path | None,
    keys: tuple[str, ...],
    offsets: str,
    unmatched: Path | None,
    gains: str | None,
    seed: int,
    output: Path | None,
) -> None:
    """Compare annotators of the same conversations, and the resulting scores.

    FILES are exports of Label Studio or doccano with several annotators, or one nugget table or
    transcript per annotator. The table has Krippendorff's alpha and, for two annotators, Cohen's
    kappa of levels and groups, with 95% bootstrap intervals. It also counts the nuggets found by
    one or several annotators, and has the mean and range of R, GF, GFRC, EGNP, EGF and GFRC2.
    """
    refuse_outputs({"output": SCORES, "unmatched": UNMATCHED})
    import pandas as pd

    from equipoise.agreement import agreement as compare_annotators
    from equipoise.agreement import found_nuggets
    from equipoise.attributes import read_attributes
    from equipoise.loaders.transcripts import run_name
    from equipoise.nuggets import nugget_table

    sets = read_attributes(attributes)
    frames, _ = _read(files, sets, labels, keys, offsets)
    tables = {name: pd.concat(parts).fillna("") for name, parts in frames.items()}
    run = run_name(files[0])
    if all(set(table["run"]) == {run_name(name)} for name, table in tables.items()):
        click.echo(f"note: no file names a run: all conversations are of run {run}", err=True)
        tables = {name: table.assign(run=run) for name, table in tables.items()}
    annotations = {
        name: nugget_table(table.reset_index(drop=True), sets, name=f"annotations of {name}")
        for name, table in tables.items()
    }
    scores = compare_annotators(annotations, sets, seed, gains)
    show_seen(scores)
    outputs: dict[Any, Any] = {output: scores}
    if unmatched is not None:
        found = found_nuggets(annotations)
        found = found[found["level"] > 0]
        alone = ~found["unit"].duplicated(keep=False)
        outputs[unmatched] = found[alone].drop(columns=["row", "unit"])
    click.echo(f"annotators: {', '.join(annotations)}", err=True)
    write(outputs)


COMMANDS = (nuggets, agreement)
