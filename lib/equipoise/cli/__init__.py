"""The command ``equipoise``."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import click
import pandas as pd
from tqdm import tqdm

from equipoise.attributes import AttributeSet, read_attributes
from equipoise.divergences import DIVERGENCES
from equipoise.files import parse_number, write_csv
from equipoise.loaders import fairweb, trec
from equipoise.loaders.recorded_conversations import harvest_transcripts, read_harvest
from equipoise.loaders.transcripts import format_transcripts, nugget_frame, read_fairweb, read_transcripts
from equipoise.measures import gfr as gfr_measures
from equipoise.measures import gfrc as gfrc_measures
from equipoise.measures import gfrc2 as gfrc2_measures
from equipoise.nuggets import NuggetTable, nugget_table, read_nuggets
from equipoise.parquet_folders import cluster as connect
from equipoise.parquet_folders import parts, run_each, score_parts
from equipoise.problems import InputError, Problem

__all__ = ["main"]

_ORDINAL = [name for name, divergence in DIVERGENCES.items() if divergence.ordinal]
_NOMINAL = [name for name, divergence in DIVERGENCES.items() if not divergence.ordinal]


class _Group(click.Group):
    """Turns the errors of bad input into messages with exit status 2, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            for problem in error.problems:
                click.echo(f"error: {problem}", err=True)
            count = len(error.problems)
            click.echo(f"{count} problem{'s' if count > 1 else ''} in the input; nothing was written.", err=True)
            ctx.exit(2)
        except (ValueError, KeyError, FileNotFoundError, NotADirectoryError) as error:
            raise click.UsageError(str(error.args[0]) if isinstance(error, KeyError) else str(error)) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="equipoise")
def main() -> None:
    """Measures of bias and robustness in search and conversational systems, and the reports that compute them."""


# --- score --------------------------------------------------------------------------------------------------------


def _pairs(text: str, what: str) -> dict[str, float]:
    """Read ``name:number,name:number``."""
    pairs: dict[str, float] = {}
    for part in text.split(","):
        name, colon, number = part.rpartition(":")
        if not colon or not name.strip() or name.strip() in pairs:
            raise click.BadParameter(f"{what} are written name:number,name:number, each name once; found {text!r}")
        try:
            pairs[name.strip()] = parse_number(number.strip())
        except ValueError as error:
            raise click.BadParameter(f"{what}: {error}") from None
    return pairs


def _gains(_: click.Context, __: click.Parameter, text: str) -> gfrc_measures.Gains:
    if text == "exponential":
        return "exponential"
    pairs = _pairs(text, "gains")
    if not all(level.isdigit() and int(level) > 0 for level in pairs):
        raise click.BadParameter(f"the levels of gains are whole numbers from 1; found {text!r}")
    return {int(level): gain for level, gain in pairs.items()}


def _weights(_: click.Context, __: click.Parameter, text: str | None) -> dict[str, float] | None:
    return None if text is None else _pairs(text, "weights")


def _cutoffs(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"cut-offs are whole numbers from 1, between commas; found {text!r}")
    return sorted({int(part) for part in parts})


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_INPUT = _options(
    click.argument("nuggets", type=click.Path(path_type=Path)),
    click.option("--attributes", required=True, type=click.Path(path_type=Path), help="Attribute sets, a YAML file."),
    click.option("--attribute", "select", multiple=True, help="Score this attribute set only; may be repeated.  [all]"),
    click.option("--ordinal", type=click.Choice(_ORDINAL), default="rnod", help="Divergence for ordinal groups."),
    click.option("--nominal", type=click.Choice(_NOMINAL), default="jsd", help="Divergence for nominal groups."),
    click.option(
        "--duplicates",
        type=click.Choice(["nonrelevant", "relevant"]),
        default="nonrelevant",
        help="What naming an entity again within a conversation is; needs a column entity.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="CSV or .parquet file to write; where NUGGETS is a folder, a folder to make.  [standard output]",
    ),
    click.option(
        "--cluster", metavar="ADDRESS", help="Dask scheduler to score a folder on, such as tcp://127.0.0.1:8786."
    ),
)
_MAX_LEVEL = click.option(
    "--max-level", type=click.IntRange(1), default=2, help="Highest level, for exponential gains."
)


def _sets(attributes: Path, select: Sequence[str]) -> tuple[dict[str, AttributeSet], dict[str, AttributeSet]]:
    """Attribute sets of the file, and those to score."""
    sets = read_attributes(attributes)
    unknown = [name for name in select if name not in sets]
    if unknown:
        raise click.BadParameter(f"{attributes} has no attribute set {', '.join(unknown)}; it has {', '.join(sets)}")
    return sets, {name: sets[name] for name in select} if select else sets


def _load(nuggets: Path, attributes: Path, select: Sequence[str]) -> tuple[NuggetTable, dict[str, AttributeSet]]:
    sets, chosen = _sets(attributes, select)
    return read_nuggets(nuggets, sets, list(chosen)), chosen


def _score_folder(
    measure: Literal["gfrc", "gfrc2"],
    nuggets: Path,
    attributes: Path,
    select: Sequence[str],
    output: Path | None,
    cluster: str | None,
    options: Mapping[str, Any],
) -> None:
    """Score a partitioned nugget table into a folder."""
    if output is None:
        raise click.UsageError(f"{nuggets} is a folder of partitions; name a folder to make with --output")
    sets, chosen = _sets(attributes, select)
    with connect(cluster) as executor:
        count = score_parts(nuggets, output, measure, sets, list(chosen), options, executor)
    click.echo(f"{count} conversations scored into {output}", err=True)


def _no_cluster(nuggets: Path, cluster: str | None) -> None:
    if cluster is not None:
        raise click.UsageError(f"--cluster scores a folder of Parquet files; {nuggets} is one file")


def _write_all(tables: Mapping[Path | None, pd.DataFrame]) -> None:
    """Write every table or none: to temporary files first, then into place."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path, table in tables.items():
            if path is None:
                continue
            try:
                with tempfile.NamedTemporaryFile(
                    dir=path.absolute().parent, prefix=f".{path.name}-", delete=False
                ) as file:
                    staged.append((Path(file.name), path))
            except OSError as error:
                raise click.UsageError(f"cannot write {path}: {error.strerror}") from None
            if path.suffix == ".parquet":
                table.to_parquet(staged[-1][0], index=False)
            else:
                write_csv(table, staged[-1][0])
            staged[-1][0].chmod(0o644)
        for temporary, path in staged:
            temporary.replace(path)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    if None in tables:
        write_csv(tables[None], sys.stdout)


@main.group()
def score() -> None:
    """Score conversations, ranked lists and answers of your own: tidy CSV with a row for each measure and its value."""


@score.command("ranking-bias")
@click.option("--run", "runs", multiple=True, required=True, type=click.Path(path_type=Path), help="A run; repeat it.")
@click.option(
    "--documents",
    required=True,
    help="The collection: a .jsonl file with id and text, a file of id, tab and text, or a name of ir_datasets.",
)
@click.option("--terms", required=True, type=click.Path(path_type=Path), help="Representative terms, as term,group.")
@click.option(
    "--background",
    help="Background set of NFaiRR: a run, or the word collection.  [the documents of each list itself]",
)
@click.option("--cutoff", callback=_cutoffs, default="5,10,20", help="Ranks to stop at, as number,...")
@click.option("--target", callback=_weights, help="Wanted share of each group, as group:number,...  [equal]")
@click.option(
    "--tokens",
    type=click.Choice(["space", "whitespace", "word"]),
    default="space",
    help="How a text falls into terms: between blanks (for tokenised texts), white space, or as words (for raw text).",
)
@click.option("--threshold", type=click.FloatRange(0), default=1, help="Occurrences up to which a text is neutral.")
@click.option(
    "--decimals",
    type=click.IntRange(0),
    help="Places that the neutrality of a text is rounded to; 6 is the public NFaiRR program.  [none]",
)
@click.option(
    "--missing",
    type=click.Choice(["neutral", "refuse"]),
    default="neutral",
    help="A document that the collection lacks: one without representative terms, or an error.",
)
@click.option("--attribute", default="", help="Name of the attribute set, for the column attribute.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="CSV file to write.  [standard output]")
def score_ranking_bias(
    runs: tuple[Path, ...],
    documents: str,
    terms: Path,
    background: str | None,
    cutoff: list[int],
    target: dict[str, float] | None,
    output: Path | None,
    tokens: str,
    **options: Any,
) -> None:
    """NFaiRR, FaiRR, TED, TExFAIR and ARB of ranked lists, per topic and on average (topic all)."""
    from equipoise.loaders.documents import stream_documents
    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs
    from equipoise.measures import ranking_bias

    problems = []
    tables: dict[str, pd.DataFrame] = {}
    pool: Any = "collection" if background == "collection" else "own"
    readers: dict[str, Callable[[], Any]] = {"terms": lambda: read_terms(terms), "runs": lambda: read_runs(runs)}
    if background not in (None, "collection"):
        readers["background"] = lambda: read_run(str(background))
    for name, read in readers.items():
        try:
            tables[name] = read()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    pool = tables.get("background", pool)
    groups = ranking_bias.TermGroups.from_pairs(tables["terms"].itertuples(index=False, name=None))
    shares = None
    if target is not None:
        if set(target) != set(groups.groups):
            raise click.BadParameter(f"the target names {', '.join(target)}; {terms} has {', '.join(groups.groups)}")
        shares = [target[group] for group in groups.groups]
    if groups.shared:
        click.echo(f"note: {', '.join(groups.shared)} in more than one group of {terms}: counted for each", err=True)
    passing = tqdm(stream_documents(documents), unit="document", file=sys.stderr, disable=None)
    stream: Iterable[tuple[str, str]] = passing
    if background != "collection":  # only the documents that some list holds
        held = {str(name) for key in ("runs", "background") if key in tables for name in tables[key]["document"]}
        stream = (row for row in passing if row[0] in held)
    counts = ranking_bias.count_terms(stream, groups.terms, tokens=tokens)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = ranking_bias.score_ranking_bias(
            tables["runs"], counts, groups, cutoffs=cutoff, target=shares, background=pool, **options
        )
    for warning in caught:
        click.echo(f"note: {warning.message}", err=True)
    _write_all({output: scores})


@score.command("gfrc")
@_INPUT
@click.option("--patience", type=click.FloatRange(1, min_open=True), default=1250, help="L, in words.")
@click.option(
    "--gains", callback=_gains, default="1:0.5,2:1", help="Gain of each level, as level:gain,..., or exponential."
)
@_MAX_LEVEL
@click.option(
    "--position-weight",
    type=click.Choice(get_args(gfrc_measures.PositionWeight)),
    default="one-based",
    help="R by Eq. 6, 7 or 9 of gfrc2.",
)
@click.option(
    "--distribution",
    type=click.Choice(get_args(gfrc_measures.Distribution)),
    default="independent",
    help="Nuggets behind the achieved distribution of a turn: its own, or all up to it.",
)
@click.option(
    "--empty-turns",
    type=click.Choice(get_args(gfrc_measures.EmptyTurns)),
    default="ignore",
    help="Turns without relevant nuggets: left out, or taken as uniform.",
)
@click.option(
    "--turn-weight",
    type=click.Choice(get_args(gfrc_measures.TurnWeight)),
    default="uniform",
    help="PW of a turn: 1, or the largest weight of its nuggets.",
)
@click.option("--weights", callback=_weights, help="Weight of each attribute set, as NAME:number,...  [equal]")
@click.option("--alpha", type=click.FloatRange(0, 1), help="Share of R in GFRC.  [the mean of R and every GF]")
def score_gfrc(
    nuggets: Path,
    attributes: Path,
    select: tuple[str, ...],
    output: Path | None,
    cluster: str | None,
    **options: Any,
) -> None:
    """R, GF and GFRC of every conversation in NUGGETS, a CSV or Parquet file, or a folder of Parquet files."""
    if nuggets.is_dir():
        _score_folder("gfrc", nuggets, attributes, select, output, cluster, options)
        return
    _no_cluster(nuggets, cluster)
    table, sets = _load(nuggets, attributes, select)
    _write_all({output: gfrc_measures.gfrc(table, sets, **options)})


@score.command("gfrc2")
@_INPUT
@click.option("--patience", type=click.FloatRange(1), default=1000, help="L, in words.")
@click.option(
    "--weights", callback=_weights, help="Weight of utility and of each attribute set, as utility:1,NAME:1  [equal]"
)
@click.option("--clusters", type=click.Path(path_type=Path), help="CSV file for the user clusters.")
@click.option("--compare", is_flag=True, help="Add R, GF and GFRC at the same patience, as gfrc2's Table 5 does.")
@click.option("--gains", callback=_gains, default="exponential", help="Gain of each level for --compare.")
@_MAX_LEVEL
def score_gfrc2(
    nuggets: Path,
    attributes: Path,
    select: tuple[str, ...],
    output: Path | None,
    cluster: str | None,
    clusters: Path | None,
    compare: bool,
    gains: gfrc_measures.Gains,
    max_level: int,
    **options: Any,
) -> None:
    """EGNP, EGF and GFRC2 of every conversation in NUGGETS, a CSV or Parquet file, or a folder of Parquet files."""
    if nuggets.is_dir():
        if clusters is not None or compare:
            raise click.UsageError("a folder is scored without --clusters and --compare")
        _score_folder("gfrc2", nuggets, attributes, select, output, cluster, options)
        return
    _no_cluster(nuggets, cluster)
    table, sets = _load(nuggets, attributes, select)
    scores = gfrc2_measures.gfrc2(table, sets, **options)
    if compare:
        shared = {key: value for key, value in options.items() if key != "weights"}
        others = gfrc_measures.gfrc(table, sets, gains=gains, max_level=max_level, **shared)
        scores = pd.concat([scores, others], ignore_index=True)
    tables = {output: scores}
    if clusters is not None:
        tables[clusters] = gfrc2_measures.user_clusters(table, sets, **options)
    _write_all(tables)


def _named(texts: Sequence[str], what: str) -> dict[str, str]:
    """Read ``NAME=value`` options."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in found:
            raise click.BadParameter(f"{what} is written NAME=VALUE, each name once; found {text!r}")
        found[name] = value
    return found


def _levels(_: click.Context, __: click.Parameter, text: str) -> dict[int, float]:
    gains = _gains(_, __, text)
    if isinstance(gains, str):
        raise click.BadParameter(f"gains of documents are written level:gain,...; found {text!r}")
    return dict(gains)


def _score_run(run: Path, arguments: Mapping[str, Any]) -> tuple[pd.DataFrame | None, list[Problem]]:
    """Score one run; a run is a task, so that its scores do not depend on what else is scored."""
    try:
        return gfr_measures.gfr_table(trec.read_run(run), **arguments), []
    except InputError as error:
        return None, list(error.problems)


@score.command("gfr")
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="Run, or a folder of runs in Parquet files; repeatable.",
)
@click.option("--qrels", required=True, type=click.Path(path_type=Path), help="Relevance judgements, TREC or NTCIR.")
@click.option("--membership", "memberships", multiple=True, metavar="NAME=FILE", help="Group memberships; repeatable.")
@click.option("--target", "targets", multiple=True, metavar="NAME=FILE", help="Target distribution; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME=ordinal|nominal", help="Kind of groups; repeatable.")
@click.option("--cutoff", type=click.IntRange(1), default=20, help="Ranks that are looked at.")
@click.option("--gains", callback=_levels, default="1:1,2:3", help="Gain of each level, as level:gain,...")
@click.option(
    "--order", type=click.Choice(["file", "score", "rank"]), default="file", help="What a list is ordered by."
)
@click.option(
    "--unjudged", type=click.Choice(["nonrelevant", "removed"]), default="nonrelevant", help="Unjudged documents."
)
@click.option(
    "--unrepresented",
    type=click.Choice(["uniform", "ignored"]),
    default="uniform",
    help="Documents without membership: spread evenly over the groups, or not counted.",
)
@click.option(
    "--absent", type=click.Choice(["zero", "omitted"]), default="zero", help="Topics of the qrels that a run lacks."
)
@click.option("--weights", callback=_weights, help="Weight of utility and of attribute sets, utility:1,NAME:1  [equal]")
@click.option("--decimals", type=click.IntRange(0, 15), help="Round components first, the campaign to 4.  [no]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="CSV or .parquet file.  [standard output]")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to score the runs on.")
def score_gfr(
    runs: tuple[Path, ...],
    qrels: Path,
    memberships: tuple[str, ...],
    targets: tuple[str, ...],
    kinds: tuple[str, ...],
    output: Path | None,
    cluster: str | None,
    **options: Any,
) -> None:
    """ERR, iRBU, GF and GFR of ranked lists, per topic, and their means with an empty topic."""
    members, aims, sorts = _named(memberships, "--membership"), _named(targets, "--target"), _named(kinds, "--kind")
    if not set(members) == set(aims) == set(sorts):
        raise click.UsageError("every attribute set needs a --membership, a --target and a --kind of its NAME")
    if wrong := sorted(set(sorts.values()) - {"ordinal", "nominal"}):
        raise click.BadParameter(f"--kind is ordinal or nominal; found {', '.join(wrong)}")
    files = [file for run in runs for file in ([run / name for name in parts(run)] if run.is_dir() else [run])]
    if len({file.name for file in files}) < len(files):
        raise click.BadParameter("two runs have the same file name; they could not be told apart in the output")
    problems: list[Problem] = []
    arguments: dict[str, Any] = {"memberships": {}, "attributes": {}, **options}
    try:
        arguments["qrels"] = trec.read_qrels(qrels)
    except InputError as error:
        problems += error.problems
    for name, file in aims.items():
        try:
            arguments["attributes"][name] = fairweb.read_target(file, name, cast("Any", sorts[name]))
            arguments["memberships"][name] = fairweb.read_memberships(members[name], arguments["attributes"][name])
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    with connect(cluster) as executor:
        scored = run_each(_score_run, [(file, arguments) for file in files], executor, "run")
    if problems := [problem for _, found in scored for problem in found]:
        raise InputError(problems)
    _write_all({output: pd.concat([table for table, _ in scored], ignore_index=True)})


@score.command("attribution")
@click.argument("answers", type=click.Path(path_type=Path))
@click.option("--by", multiple=True, metavar="KEY", help="Score each value of this further key apart; repeatable.")
@click.option("--favoured", default="Human", help="Author whose favour makes CAB positive.")
@click.option(
    "--out-of-range",
    type=click.Choice(["wrong", "ignored"]),
    default="wrong",
    help="A cited number without a document: a wrong citation, or none.",
)
@click.option(
    "--match",
    type=click.Choice(["substring", "words"]),
    default="substring",
    help="How a gold answer is found in the answer: anywhere, or as whole words.",
)
@click.option(
    "--citation-marks",
    type=click.Choice(["removed", "kept"]),
    default="removed",
    help="Citations in the answer when a gold answer is looked for.",
)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, help="Of intervals.")
@click.option("--resamples", type=click.IntRange(1), default=9999, help="Of the bootstrap and the randomisation test.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of both.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="CSV or .parquet file.  [standard output]")
def score_attribution(
    answers: Path, by: tuple[str, ...], favoured: str, seed: int, output: Path | None, **options: Any
) -> None:
    """Precision and recall of the citations in ANSWERS, a .jsonl file, and how they change with the authors named.

    A line holds question, mode (Vanilla, Informed, CF-informed, or two of them as X/Y), relevant_author,
    nonrelevant_author, answer, relevant (document numbers), and optionally documents (how many were shown), gold
    (answers), citations ([{"document": 2, "probability": 0.9}]), and further keys. CAS compares Informed with Vanilla,
    CAB compares Informed with CF-informed; AC is the mean probability of citations.
    """
    import numpy as np

    from equipoise.loaders.answers import read_answers
    from equipoise.measures import attribution

    table = read_answers(answers)
    others = sorted({*table["relevant_author"], *table["nonrelevant_author"]} - {favoured})
    if len(others) > 1:
        raise click.BadParameter(f"--favoured is {' or '.join(others)}, the authors of {answers}; found {favoured!r}")
    authors = (favoured, others[0] if others else f"not {favoured}")
    scores = attribution.score_attribution(
        table, by, run=answers.stem, authors=authors, rng=np.random.default_rng(seed), **options
    )
    _write_all({output: scores})


# --- conversations of one's own -----------------------------------------------------------------------------------


@main.command()
@click.option("--topics", required=True, type=click.Path(path_type=Path), help="CSV: topic,type,request,format,site.")
@click.option("--endpoint", required=True, metavar="URL", help="Base url of an OpenAI-compatible endpoint.")
@click.option("--model", required=True, help="Name of the model.")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Record to write, or go on with; JSON Lines."
)
@click.option("--transcripts", type=click.Path(path_type=Path), help="Also write transcripts to annotate.")
@click.option("--trials", type=click.IntRange(1), default=2, help="How often all topics are gone through.")
@click.option("--temperature", type=click.FloatRange(0), default=0.7, help="Of the sampling.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=0.95, help="Of the sampling.")
@click.option("--max-tokens", type=click.IntRange(1), default=512, help="Longest answer.")
@click.option("--seed", type=int, default=0, help="First seed; every turn has its own, counted on from it.")
@click.option("--system", default="", help="System prompt.")
@click.option("--note", default="", help="Remark to keep with the settings, such as the sha256 of a local model.")
@click.option("--key-variable", default="OPENAI_API_KEY", help="Environment variable with the key, if one is needed.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=120, help="Seconds for a whole answer.")
@click.option("--tries", type=click.IntRange(1), default=4, help="Most requests for one answer.")
@click.option("--pause", type=click.FloatRange(0), default=0, help="Seconds between requests.")
def harvest(
    topics: Path,
    endpoint: str,
    model: str,
    output: Path,
    transcripts: Path | None,
    trials: int,
    note: str,
    key_variable: str,
    timeout: float,
    tries: int,
    pause: float,
    **sampling: Any,
) -> None:
    """Hold two-round conversations about TOPICS with a chat system, and record them.

    Run it again with the same record to go on after an interruption.
    """
    from equipoise.conversations import harvest as harvesting
    from equipoise.conversations.endpoint import Endpoint, Sampling

    server = Endpoint(endpoint, model, key_variable, timeout, tries, pause)
    try:
        asked = harvesting.harvest(
            harvesting.read_topics(topics),
            server,
            output,
            trials=trials,
            sampling=Sampling(**sampling),
            note=note,
            progress=lambda steps: tqdm(list(steps), unit="conversation", file=sys.stderr),
        )
    except harvesting.HarvestError as error:
        raise click.ClickException(str(error)) from None
    turns = read_harvest(output)
    if transcripts is not None:
        transcripts.write_text(format_transcripts(harvest_transcripts(turns)), encoding="utf-8")
    click.echo(f"{asked} turns asked now, {(turns['outcome'] != '-').sum()} in {output}", err=True)


@main.command("transcripts")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--marks",
    type=click.Choice(["line", "word"]),
    default="line",
    help="Where U: and S: open a turn of a FairWeb run: at the start of a line, or of any word.",
)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Text file to write.")
def write_transcripts(files: tuple[Path, ...], marks: Literal["line", "word"], output: Path) -> None:
    """Write FILES, FairWeb conversation runs or harvest records (.jsonl), as transcripts to annotate."""
    found, problems = [], list[Problem]()
    for file in files:
        try:
            if file.suffix == ".jsonl":
                found += harvest_transcripts(read_harvest(file))
            else:
                found += read_fairweb(file, marks=marks)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    output.write_text(format_transcripts(found), encoding="utf-8")
    click.echo(f"{len(found)} conversations in {output}", err=True)


@main.command()
@click.argument("transcripts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--attributes", required=True, type=click.Path(path_type=Path), help="Attribute sets, a YAML file.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="CSV or .parquet file.  [standard output]")
def nuggets(transcripts: tuple[Path, ...], attributes: Path, output: Path | None) -> None:
    """Make the nugget table of annotated TRANSCRIPTS, word positions counted from the text."""
    sets, _ = _sets(attributes, [])
    found, problems = [], list[Problem]()
    for file in transcripts:
        try:
            found += read_transcripts(file, sets)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    frame = nugget_frame(found, sets)
    nugget_table(frame, sets, name=", ".join(map(str, transcripts)))  # refuses a conversation that is in two files
    _write_all({output: frame})


@main.command()
@click.argument("name")
@click.option("--from", "source", default="own_conversation", help="Notebook to begin from.")
@click.option("--topic", required=True, help="Id of the topic, one word.")
def new(name: str, source: str, topic: str) -> None:
    """Start a notebook NAME for a topic of your own: data files to fill in, a notebook, a test."""
    from equipoise import project, scaffold

    made = scaffold.new_topic(name, Path(source).stem if source.endswith(".ipynb") else source, topic)
    click.echo("Fill in, keeping the form of what is there:")
    for path in made.data:
        click.echo(f"  {path.relative_to(project.root())}")
    click.echo(f"Then: equipoise build {name}, and pytest {made.test.relative_to(project.root())}")


# --- reports ------------------------------------------------------------------------------------------------------


@main.command()
@click.argument("notebooks", nargs=-1)
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--profile", type=click.Choice(["full", "smoke"]), default="full", help="smoke: small, to see it run.")
@click.option("--jobs", type=click.IntRange(1), help="Notebooks to run at a time.  [number of processors]")
@click.option("--strict", is_flag=True, help="Fail where data cannot be reached, instead of keeping the report.")
@click.option("--force", is_flag=True, help="Run what is up to date too.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to run the notebooks on; one thread a worker.")
def build(
    notebooks: tuple[str, ...],
    parameters: tuple[str, ...],
    profile: Any,
    jobs: int | None,
    strict: bool,
    force: bool,
    cluster: str | None,
) -> None:
    """Regenerate the reports of NOTEBOOKS (all, if none is named) that are out of date.

    With a parameter other than its default, or the smoke profile, a report goes to reports/variants.
    """
    from equipoise.reports import build as builder

    given: dict[str, str] = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"a parameter is written NAME=VALUE; found {text!r}")
        given[name.strip()] = value
    names = [Path(name).stem if name.endswith(".ipynb") else name for name in notebooks]
    with connect(cluster, single_threaded=True) as executor:
        outcomes = builder.build(
            names, given, profile=profile, jobs=jobs, strict=strict, force=force, executor=executor
        )
    for outcome in outcomes:
        click.echo(f"{outcome.state:>6}  {outcome.notebook}" + (f"  {outcome.message}" if outcome.message else ""))
    failed = sum(outcome.state == "failed" for outcome in outcomes)
    if failed:
        click.echo(f"{failed} of {len(outcomes)} notebooks failed; their last good reports stand.", err=True)
    if profile == "full" and not given:
        from equipoise.site import pages

        if pages.refresh():
            click.echo(" built  the site: reports/site/index.html")
    if failed:
        sys.exit(1)


@main.command("list")
def list_notebooks() -> None:
    """List the notebooks, their parameters, and the tables and figures that each makes."""
    from equipoise.reports import build as builder

    for row in builder.listing().itertuples():
        click.echo(f"{row.notebook}\n  {row.title}")
        for parameter in row.parameters:
            click.echo(f"    -p {parameter.name}={parameter.default!r}  ({parameter.type})  {parameter.help}")
        click.echo(f"  makes {', '.join(row.artefacts) or 'no table or figure of a paper'}\n")


@main.command()
def check() -> None:
    """Check that every report is up to date and no status in the ledger has fallen."""
    from equipoise.reports import build as builder
    from equipoise.site import pages

    faults = builder.check() + pages.check()
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        sys.exit(1)
    click.echo("Every report is up to date, and no status has fallen.")


@main.command()
@click.option("--serve", is_flag=True, help="Serve it on 127.0.0.1 until interrupted, instead of making it.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port for --serve; 0 takes a free one.")
def site(serve: bool, port: int) -> None:
    """Make the site of the reports as they are, reports/site/index.html; a browser opens it from disk."""
    from equipoise.site import pages
    from equipoise.site import serve as serving

    if serve:
        try:
            server = serving.server(port)
        except OSError as error:
            raise click.UsageError(f"cannot serve on port {port}: {error.strerror or error}") from None
        with server:
            click.echo(f"http://127.0.0.1:{server.server_port}/site/index.html  (stop with Ctrl-C)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return
    elif pages.refresh():
        click.echo("reports/site/index.html")
    elif not pages.reported():
        raise click.UsageError("no notebook has a report yet: run equipoise build")
    else:
        click.echo("reports/site is up to date.")


@main.command()
@click.argument("names", nargs=-1)
def measures(names: tuple[str, ...]) -> None:
    """Describe the measures NAMES (all, if none is named): formula, range, ideal, direction, options, source."""
    from equipoise import catalogue

    known = {measure.name.casefold(): measure for measure in catalogue.MEASURES}
    unknown = [name for name in names if name.casefold() not in known]
    if unknown:
        there = ", ".join(measure.name for measure in catalogue.MEASURES)
        raise click.BadParameter(f"no measure {', '.join(unknown)}; there are {there}")
    cited: dict[str, str] = {}
    for measure in [known[name.casefold()] for name in names] if names else catalogue.MEASURES:
        click.echo(f"{measure.name}\n  {measure.meaning}\n  {measure.formula}")
        click.echo(f"  range {measure.range}; ideal {measure.ideal}; {measure.direction}")
        click.echo(f"  {measure.path}")
        for option in measure.options:
            choices = f"  ({option.choices})" if option.choices else ""
            click.echo(f"    {option.name} = {option.default}{choices}")
        click.echo(f"  source: {', '.join(measure.sources)}. {measure.where}\n")
        cited |= {key: catalogue.references()[key] for key in measure.sources}
    click.echo("\n\n".join(cited.values()))


@main.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Open JupyterLab at the notebooks; ARGUMENTS behind -- go to it."""
    import os

    from equipoise import project

    root = f"--ServerApp.root_dir={project.root()}"  # reports, variants too, are in reach of its file browser
    command = [sys.executable, "-m", "jupyterlab", root, "--LabApp.default_url=/lab/tree/notebooks", *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - JupyterLab of this environment, no shell


# --- data ---------------------------------------------------------------------------------------------------------


@main.group()
def data() -> None:
    """Upstream data: the registry, and what of it is on this machine."""


def _chosen(items: tuple[str, ...]) -> pd.DataFrame:
    from equipoise.loaders import registry

    table = registry.entries()
    unknown = sorted(set(items) - set(table["item"]))
    if unknown:
        raise click.BadParameter(f"no item {', '.join(unknown)}; there are {', '.join(sorted(set(table['item'])))}")
    return table[table["item"].isin(items)] if items else table


@data.command("list")
def data_list() -> None:
    """List the items of the registry: files, size, licence."""
    table = _chosen(())
    for item, part in table.groupby("item"):
        size = part["bytes"].astype(int).sum() / 1e6
        click.echo(f"{item:<14} {len(part):>4} files {size:>8.2f} MB  {', '.join(sorted(set(part['licence'])))}")


@data.command("fetch")
@click.argument("items", nargs=-1)
def data_fetch(items: tuple[str, ...]) -> None:
    """Fetch every file of ITEMS (all, if none is named) that is not on this machine."""
    from equipoise.loaders import registry

    unreachable = []
    for row in tqdm(_chosen(items).to_dict("records"), unit="file", file=sys.stderr):
        try:
            registry.fetch(row["item"], row["path"])
        except registry.DataUnreachable as error:
            unreachable.append(str(error))
    for line in unreachable:
        click.echo(line, err=True)
    if unreachable:
        sys.exit(1)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of every file of ITEMS (all, if none is named) that is on this machine."""
    from equipoise.loaders import registry

    table = _chosen(items)
    states = [registry.verify(row) for _, row in tqdm(table.iterrows(), total=len(table), unit="file", file=sys.stderr)]
    table = table.assign(state=states)
    for (item, state), part in table.groupby(["item", "state"]):
        click.echo(f"{item:<14} {len(part):>4} files  {state}")
    damaged = table[table["state"] == "damaged"]
    for row in damaged.itertuples():
        click.echo(f"damaged: {row.item}/{row.path}", err=True)
    if len(damaged):
        sys.exit(1)


if __name__ == "__main__":
    main()
