"""The command ``harvest``, which runs the two-round protocol with a chat endpoint.

The first user turn asks for entities in a stated format. The second turn asks for more if the
answer looks useful, and otherwise asks to keep to the format. If the system declines, there is no
second turn (gfrc, section 4.1 and Figure 1). In the paper a person judged the answers. Here `judge`
applies written rules, and every conversation starts without a history.

A record is JSON Lines: the settings, then one line per answered turn. Recorded turns are not
repeated, so the same command continues an interrupted harvest.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import input_error
from equipoise_cli.outputs import Kind, refuse_outputs
from equipoise_cli.shared import FILE, TARGET

if TYPE_CHECKING:
    from equipoise_cli.endpoint import Endpoint

_RECORD = Kind("record of harvest", lambda path: b'"record": "settings"' in path.read_bytes())
_TRANSCRIPTS = Kind("file of transcripts", lambda path: b"#####" in path.read_bytes())
PROTOCOL = {
    "first": "{request}\nFormat: {format}",
    "more": "Can you name a few more?",
    "adhere": 'Adhere to the output format I specified:\n"Format: {format}"',
}
"""The wording of user turn 1, and of user turn 2 after a useful and after a useless answer."""
QUESTIONS = {
    "first": "{request}",
    "more": "Can you tell me more about that?",
    "adhere": "Please answer my question:\n{request}",
}
"""The wording for plain questions, which state no format."""
REFUSALS = (
    r"\b(?:unable|not able) to (?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:can(?:no|')t|cannot|could not|couldn't) "
    r"(?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:only|just) an? (?:\w+ )?(?:language model|assistant)",
    r"\bas an? (?:\w+[ -])*?(?:language model|assistant)",
    r"\boutside (?:of )?my capabilities",
    r"\b(?:don't|do not) have (?:the necessary )?(?:access|information|ability|abilities)",
)
"""Regular expressions, case ignored, by which a system declines a request."""
_TURN = {"trial": int, "topic": str, "turn": int, "user": str, "system": str, "outcome": str}
_TURN |= {"breakdown": bool}
"""What a recorded turn must have, to be continued."""
_URL = re.compile(r"(?:https?://|\bwww\.)([^\s/<>()\[\]\"'?#]+)[^\s<>()\[\]\"']*", re.IGNORECASE)


@click.command(short_help="Run conversations with a chat endpoint, or read chat logs.")
@click.option(
    "--topics",
    type=FILE,
    help="Questions, one per line, or a CSV of topic,question or topic,type,request,format,site.",
)
@click.option("--endpoint", metavar="URL", help="Base URL of an OpenAI-compatible endpoint.")
@click.option("--model", help="Name of the model.")
@click.option("-o", "--output", type=TARGET, help="Record to write or continue, JSON Lines.")
@click.option(
    "--from",
    "chats",
    type=FILE,
    help="Chat log instead of an endpoint: OpenAI messages, ShareGPT or iKAT topics.",
)
@click.option(
    "--transcripts", type=TARGET, help="Transcripts to annotate; new conversations are appended."
)
@click.option("--trials", type=click.IntRange(1), default=2, help="Conversations per topic.")
@click.option(
    "--temperature", type=click.FloatRange(0, 2), default=0.7, help="Sampling temperature."
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=512, help="Longest answer, in tokens."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    help="Seed of the first answer; each answer has its own seed.",
)
@click.option("--parallel", type=click.IntRange(1), default=1, help="Conversations at a time.")
@click.option("--key-variable", default="OPENAI_API_KEY", help="Environment variable with the key.")
@click.option("--note", default="", help="Remark for the record, such as a checksum of the model.")
@click.option("--yes", is_flag=True, help="Do not ask before the first call.")
def harvest(
    topics: Path | None,
    endpoint: str | None,
    model: str | None,
    output: Path | None,
    chats: Path | None,
    transcripts: Path | None,
    yes: bool,
    **options: Any,
) -> None:
    """Run conversations about topics by the two-round protocol, and record them.

    With --from, conversations come from a chat log instead of an endpoint. Run the same command
    again to continue after an interruption.
    """
    refuse_outputs({"output": _RECORD, "transcripts": _TRANSCRIPTS})
    if chats is not None:
        if transcripts is None:
            raise click.UsageError("--transcripts is missing; --from writes to this file")
        from equipoise_cli.formats.chats import read_chats

        _write_transcripts(transcripts, read_chats(chats))
        return
    if topics is None or endpoint is None or model is None or output is None:
        raise click.UsageError(
            "must have --topics, --endpoint, --model and --output; or --from and --transcripts"
        )
    asked = read_topics(topics)
    from equipoise_cli.endpoint import Endpoint

    key = os.environ.get(options.pop("key_variable"), "").strip()
    server = Endpoint(endpoint, key)
    n_calls = 2 * options["trials"] * len(asked)
    questions = "".join(f"\n  {topic['request']:.100}" for topic in asked[:3])
    click.echo(
        f"{len(asked):,} topics, {options['trials']} trials: at most {n_calls:,} calls to "
        f"{endpoint}. The first topics:{questions}",
        err=True,
    )
    if not yes:
        click.confirm("Continue?", abort=True, err=True)
    import asyncio  # which takes as long as all else that help needs

    try:
        turns = asyncio.run(hold(asked, server, model, output, **options))
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; run the same command again to continue") from None
    if transcripts is not None:
        conversations: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for turn in sorted(turns, key=lambda turn: (turn["trial"], turn["turn"])):
            name = f"{output.stem}-{turn['trial']}", turn["topic"]
            texts = turn["user"], turn["system"], turn["outcome"]
            conversations.setdefault(name, []).append(texts)
        _write_transcripts(transcripts, conversations)


def _write_transcripts(
    path: Path, conversations: dict[tuple[str, str], list[tuple[str, str, str]]]
) -> None:
    from equipoise.loaders.transcripts import add_transcripts, format_transcript

    texts = {key: format_transcript(*key, turns) for key, turns in conversations.items()}
    click.echo(f"{add_transcripts(path, texts)} conversations added to {path}", err=True)


def read_topics(path: Path) -> list[dict[str, str]]:
    """Read topics: CSV, or plain questions, one per line (named q1, q2 and so on).

    Each has ``topic, kind, request, format, site``. Plain questions have no format.
    """
    import pandas as pd

    from equipoise.readers import read_table, read_text

    text = read_text(path)
    header = [name.strip(' "\r') for name in text.lstrip().partition("\n")[0].split(",")]
    if "topic" not in header:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        if path.suffix == ".csv" or not lines or lines[0].startswith(("{", "[", "<")):
            raise ValueError(
                f"{path}: must be plain questions, one per line, or CSV with a column topic"
            )
        table = pd.DataFrame({"question": lines})
        table["topic"] = [f"q{number}" for number in range(1, len(lines) + 1)]
    else:
        table = read_table(path, text.encode()).frame
    if "question" in table:
        table = table.rename(columns={"question": "request"}).assign(
            type="question", format="", site=""
        )
    missing = {"topic", "type", "request", "format"} - set(table.columns)
    if missing:
        raise ValueError(f"{path}: column {', '.join(sorted(missing))} is missing")
    table = table.assign(site=table.get("site", "")).rename(columns={"type": "kind"})
    for column in ("topic", "request"):
        if (table[column].str.strip() == "").any():
            raise ValueError(f'{path}, column "{column}": must not be empty')
    if table["topic"].duplicated().any():
        twice = table.loc[table["topic"].duplicated(), "topic"].iloc[0]
        raise ValueError(f"{path}: topic {twice} must occur once")
    return table[["topic", "kind", "request", "format", "site"]].to_dict("records")


def judge(text: str, site: str = "", *, asks_for_format: bool = True) -> tuple[str, bool]:
    """Judge the form of an answer: mark ``o`` or ``x``, and whether the conversation ends.

    With a format, an answer is useful if a line has a name and an address on the site. A useless
    answer that declines or is empty is a breakdown. Without a format, an answer is useful unless it
    declines or is empty. Annotators judge whether names and addresses are right.

    >>> judge("Tenet: https://www.imdb.com/title/tt6723592/", "imdb.com")
    ('o', False)
    >>> judge("As a language model, I cannot browse the web.")
    ('x', True)
    """
    straight = text.replace("’", "'")
    declines = any(re.search(wording, straight, re.IGNORECASE) for wording in REFUSALS)
    is_breakdown = declines or not text.strip()
    if not asks_for_format:
        return ("x", True) if is_breakdown else ("o", False)
    for line in text.splitlines():
        hosts = [match[1].lower().rstrip(".,:;") for match in _URL.finditer(line)]
        has_url = any(not site or host == site or host.endswith(f".{site}") for host in hosts)
        if has_url and re.search(r"\w{2,}", _URL.sub(" ", line)):
            return "o", False
    return "x", is_breakdown


async def hold(
    topics: list[dict[str, str]],
    endpoint: Endpoint,
    model: str,
    record: Path,
    *,
    trials: int,
    temperature: float,
    max_tokens: int,
    seed: int,
    parallel: int,
    note: str,
) -> list[dict[str, Any]]:
    """Run the conversations that the record does not contain; return all of its turns.

    The answer in turn u to topic i (from 0) in trial t (from 1) has the seed ``seed + 2 (n (t - 1)
    + i) + u - 1`` with n topics. Each trial covers all topics in their order before the next trial,
    so that order and trial are not confounded.
    """
    from tqdm import tqdm

    protocol = PROTOCOL if any(topic["format"] for topic in topics) else QUESTIONS
    sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    settings = {
        "record": "settings",
        "endpoint": endpoint.url,
        "model": model,
        "note": note,
        "sampling": sampling,
        "protocol": protocol | {"refusals": list(REFUSALS)},
        "topics": topics,
        "rounds": 2,
    }
    turns = _resume(record, endpoint.line(settings))
    n_bytes = record.stat().st_size
    answered = {(turn["trial"], turn["topic"], turn["turn"]): turn for turn in turns}
    numbers = iter(range(trials * len(topics)))
    bar = tqdm(total=trials * len(topics), unit="conversation", file=sys.stderr)

    def write(line: str) -> None:
        nonlocal n_bytes
        if record.stat().st_size != n_bytes:
            raise click.ClickException(
                f"{record}: another harvest writes to it; run one at a time, or choose another "
                "--output"
            )
        with record.open("a", encoding="utf-8") as file:
            file.write(line)
        n_bytes = record.stat().st_size

    async def converse(number: int) -> None:
        trial, topic = number // len(topics) + 1, topics[number % len(topics)]
        messages: list[Any] = []
        wording = protocol["first"]
        for turn in (1, 2):
            text = wording.replace("{request}", topic["request"]).replace(
                "{format}", topic["format"]
            )
            messages.append({"role": "user", "content": text})
            line = answered.get((trial, topic["topic"], turn))
            if line is None:
                arguments: Any = sampling | {"seed": seed + 2 * number + turn - 1}
                reply = await endpoint.chat(model=model, messages=messages, **arguments)
                system = reply.choices[0].message.content or ""
                mark, breakdown = judge(
                    system, topic["site"], asks_for_format=bool(topic["format"])
                )
                line = {"record": "turn", "trial": trial, "topic": topic["topic"], "turn": turn}
                line |= {"user": text, "system": system, "outcome": mark, "breakdown": breakdown}
                line |= {"finish": reply.choices[0].finish_reason, "seed": arguments["seed"]}
                line = endpoint.masked(line | {"answered_by": reply.model})
                write(endpoint.line(line))
                turns.append(line)
            if line["breakdown"]:
                return
            messages.append({"role": "assistant", "content": line["system"]})
            wording = protocol["more"] if line["outcome"] == "o" else protocol["adhere"]

    from asyncio import gather

    async def converse_in_turn() -> None:
        for number in numbers:  # which all share
            await converse(number)
            bar.update()

    with bar:
        await gather(*(converse_in_turn() for _ in range(parallel)))
    return turns


def _resume(record: Path, settings: str) -> list[dict[str, Any]]:
    """Return the turns in a record with the same settings; create the record if missing."""
    from equipoise.readers import read_json_lines
    from equipoise_compendium.writing import write_files

    if not record.exists() or not record.stat().st_size:
        write_files({record: settings})
        return []
    complete, _, torn = record.read_text("utf-8").rpartition("\n")
    (_, first), *lines = list(read_json_lines(record, complete)) or [(1, {})]
    if first.get("record") != "settings":
        raise ValueError(f"{record}: must be a record of equipoise harvest, or a new file")
    wanted = json.loads(settings)
    differing = [name for name in wanted if first.get(name) != wanted[name]]
    if differing:
        raise ValueError(
            f"{record} has other settings ({', '.join(differing)}); choose another --output"
        )
    recorded = set()
    for number, line in lines:
        missing = [name for name, kind in _TURN.items() if not isinstance(line.get(name), kind)]
        if missing:
            raise input_error(record, "a turn as recorded", f"no valid {missing[0]}", number)
        turn = line["trial"], line["topic"], line["turn"]
        if turn in recorded:
            found = f"turn {turn[2]} of topic {turn[1]} in trial {turn[0]} again"
            raise input_error(record, "the record of one harvest", found, number)
        recorded.add(turn)
    if torn:  # an interrupted write
        write_files({record: f"{complete}\n"})
    return [line for _, line in lines]
