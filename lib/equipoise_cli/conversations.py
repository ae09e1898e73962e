"""Commands for one's own conversations: hold them, write them down, make nuggets."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import ANY, DRAWING, NUGGETS, TRANSCRIPT, refuse_outputs
from equipoise_cli.shared import FILE, FORCE, TARGET, samples, takes_output, write
from equipoise_cli.tables import check_figure

ENDPOINT_OPTIONS = ("key_variable", "timeout", "tries", "pause")
ENDPOINT = "equipoise_studies.systems.endpoint"
# They stand here too, so that --help imports no loader.
FORMS = ["fairweb", "harvest", "openai", "sharegpt", "wildchat", "mtrag", "ikat", "ikat-run"]


def _add(path: Path, conversations: Iterable[Any], force: bool) -> None:
    """Add conversations to a file of transcripts, and say so."""
    from equipoise_cli.transcript_files import add_transcripts

    n_added, n_present = add_transcripts(path, conversations, force=force)
    message = f"{n_added} conversations written to {path}"
    if n_present:
        message += f"; {n_present} were there, and are left as they are"
    click.echo(message, err=True)


@click.command(
    cls=DeclaredCommand,
    declared=[
        Declared("equipoise_cli.harvest.harvest"),
        Declared(f"{ENDPOINT}.Sampling"),
        Declared(f"{ENDPOINT}.Endpoint", only=ENDPOINT_OPTIONS),
    ],
    epilog=samples("--topics"),
)
@click.option(
    "--topics",
    required=True,
    type=FILE,
    help="Questions, one a line; or a CSV of topic,question, or topic,type,request,format,site.",
)
@click.option(
    "--endpoint", required=True, metavar="URL", help="Base url of an OpenAI-compatible endpoint."
)
@click.option("--model", required=True, help="Name of the model.")
@click.option(
    "-o", "--output", required=True, type=TARGET, help="Record to write, or go on with; JSON Lines."
)
@click.option(
    "--transcripts",
    type=TARGET,
    help="Also write transcripts to annotate, behind those that are there.",
)
@FORCE
def harvest(
    topics: Path,
    endpoint: str,
    model: str,
    output: Path,
    transcripts: Any,
    force: bool,
    trials: int,
    rounds: int,
    session: Any,
    parallel: int,
    note: str,
    **options: Any,
) -> None:
    """Hold conversations about topics with a chat system, by the two-round protocol; record them.

    There may be more rounds than two. Run it again with the same record to go on after an
    interruption. A file that is no record of the same settings is never written over, nor is a
    transcript that is there: conversations that it lacks are added at its end.
    """
    outputs = {"-o": (output, ANY), "--transcripts": (transcripts, TRANSCRIPT)}
    refuse_outputs(outputs, [topics], force=force)
    from tqdm import tqdm

    from equipoise_cli import harvest as harvesting
    from equipoise_studies.recorded_conversations import harvest_transcripts, read_harvest
    from equipoise_studies.systems.endpoint import Endpoint, Sampling

    endpoint_options = {name: options.pop(name) for name in ENDPOINT_OPTIONS}
    server = Endpoint(endpoint, model, **endpoint_options)
    sampling = Sampling(**options)  # the options that are not of the endpoint
    asked_topics = harvesting.read_topics(topics)
    n_conversations = len(asked_topics) * trials
    n_answers = n_conversations * rounds
    click.echo(
        f"{len(asked_topics):,} topics, {trials:,} trials, {rounds} rounds: at most "
        f"{n_answers:,} answers, and {n_answers * sampling.max_tokens:,} tokens of answers",
        err=True,
    )
    try:
        n_asked = harvesting.harvest(
            asked_topics,
            server,
            output,
            trials=trials,
            rounds=rounds,
            session=session,
            parallel=parallel,
            sampling=sampling,
            note=note,
            progress=partial(tqdm, unit="session", file=sys.stderr),
        )
    except harvesting.HarvestError as error:
        raise click.ClickException(str(error)) from None
    # The record is read again, with the turns that were recorded before.
    turns = read_harvest(output)
    if transcripts is not None:
        _add(transcripts, harvest_transcripts(turns), force)
    n_answered = (turns["outcome"] != "-").sum()
    click.echo(f"{n_asked} turns asked now, {n_answered} in {output}", err=True)


@click.command(
    "transcripts",
    cls=DeclaredCommand,
    declared=[Declared("equipoise_cli.loaders.fairweb_conversations.read_fairweb")],
    epilog=samples("FILES", "FILES of FairWeb"),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", required=True, type=TARGET, help="Text file to write.")
@click.option(
    "--from",
    "form",
    type=click.Choice(["auto", *FORMS]),
    default="auto",
    help="Format of the files.",
)
@click.option("--topics", type=FILE, help="Topics with the user's utterances, for an iKAT run.")
@click.option("--run", "name", help="What the run is called.  [as the file says, or by its name]")
@FORCE
def write_transcripts(
    files: tuple[Path, ...],
    form: str,
    topics: Any,
    name: Any,
    marks: Any,
    output: Path,
    force: bool,
) -> None:
    """Write conversations in FILES as transcripts to annotate.

    FILES are of OpenAI messages, ShareGPT, WildChat, MTRAG or TREC iKAT (JSON, JSON Lines,
    Parquet), FairWeb conversation runs, or harvest records (.jsonl). Transcripts that are there are
    left as they are: conversations that they lack are added behind them.
    """
    refuse_outputs({"-o": (output, TRANSCRIPT)}, [*files, topics], force=force)
    from equipoise.problems import together
    from equipoise_cli.loaders.any_conversations import read_conversations

    read = partial(read_conversations, form=form, topics=topics, run=name, marks=marks)
    conversations = chain(*together(partial(read, file) for file in files))
    _add(output, conversations, force)


@click.command(
    cls=DeclaredCommand,
    declared=[Declared("equipoise_cli.loaders.annotation_exports.read_export")],
    epilog=samples("FILES, annotated", "--attributes", "--labels"),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file.")
@click.option(
    "--from",
    "form",
    type=click.Choice(["auto", "transcript", "label-studio", "doccano"]),
    default="auto",
    help="Format of the files.",
)
@click.option(
    "--labels",
    type=FILE,
    help="What labels of an export mean; CSV: label,level,entity and the sets.",
)
@click.option("--annotator", help="Whose annotations of an export, where several have annotated.")
@click.option(
    "--figure", type=TARGET, help="Figure of the conversations to draw, .svg, .png or .pdf."
)
@takes_output
def nuggets(
    files: tuple[Path, ...],
    attributes: Path,
    form: str,
    labels: Any,
    annotator: Any,
    figure: Any,
    output: Any,
    force: bool,
    units: Any,
    offsets: Any,
    nested: Any,
) -> None:
    """Make the nugget table of annotated FILES, positions counted from the text.

    FILES are transcripts, or exports of Label Studio (JSON, JSON_MIN) or doccano (JSON Lines). In
    an export a label says the level (L2), a group (large, or SIZE=large), or both (L2|large);
    --labels says it of other labels.
    """
    check_figure(figure)
    outputs = {"-o": (output, NUGGETS), "--figure": (figure, DRAWING)}
    refuse_outputs(outputs, [*files, attributes, labels], force=force)
    import pandas as pd

    from equipoise.attributes import read_attributes
    from equipoise.loaders.transcripts import nugget_frame, read_transcripts, turn_frame
    from equipoise.nuggets import nugget_table
    from equipoise.problems import together
    from equipoise_cli.loaders.annotation_exports import Annotated, is_export, read_export
    from equipoise_cli.loaders.annotation_labels import read_labels

    sets = read_attributes(attributes)
    meanings = None if labels is None else read_labels(labels, sets)

    def read(file: Path) -> Annotated:
        # A transcript says levels and groups in lines of its own, and needs no labels.
        if form == "transcript" or (form == "auto" and not is_export(file)):
            transcripts = read_transcripts(file, sets)
            frame = nugget_frame(transcripts, sets, units=units)
            return Annotated(frame, turn_frame(transcripts))
        return read_export(
            file,
            sets,
            form,
            labels=meanings,
            annotator=annotator,
            units=units,
            offsets=offsets,
            nested=nested,
        )

    if figure is not None and units != "word":
        raise click.UsageError(f"--figure counts words; give it without --units {units}")
    annotated = together(partial(read, file) for file in files)
    frame = pd.concat([part.nuggets for part in annotated], ignore_index=True).fillna("")
    # What is made can be scored; so a conversation that is in two files is refused.
    table = nugget_table(frame, sets, name=", ".join(map(str, files)))
    tables: dict[Any, Any] = {output: frame}
    if figure is not None:
        turns = pd.concat([part.turns for part in annotated], ignore_index=True)
        tables[figure] = _figure_of_conversations(table, turns, sets, figure)
    write(tables)


def _figure_of_conversations(table: Any, turns: Any, sets: Any, path: Path) -> bytes:
    """The nuggets of every conversation over its words, as the bytes of a file."""
    import matplotlib as mpl

    mpl.use("Agg")  # no window is wanted
    from equipoise_compendium.plots import rendered, use_style
    from equipoise_studies.pilot.conversation_figures import annotated_conversations

    if not (table.level > 0).any():
        raise click.UsageError("--figure: there is no relevant nugget to draw")
    use_style()
    drawing = annotated_conversations(table, turns, sets, named=any(table.names))
    title = f"Nuggets of {len(table.conversations)} conversations"
    return rendered(drawing, path.suffix.lower().lstrip("."), title)


COMMANDS = (harvest, write_transcripts, nuggets)
