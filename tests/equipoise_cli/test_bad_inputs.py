"""Every bad input ends in one sentence that names it, or the command reports what it left out.

``bad_inputs.csv`` has one bad input per row. ``command`` is a name of `COMMANDS` and further
options. In ``file``, one of `FILES`, ``old`` is replaced by ``new``; without ``old`` the file is
``new``. All three are written as Python writes bytes. ``status`` is the exit status, ``message``
what standard error must contain; ``same`` is an input that only looks bad, whose scores are those
of the good one.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import called

ANSWER: dict[str, Any] = {
    "question": "q1",
    "mode": "Informed",
    "relevant_author": "Human",
    "nonrelevant_author": "LLM",
    "answer": "In Wales [2].",
    "relevant": [2],
}
CONTEXT = [
    {"id": "d1", "page_content": "Wales", "metadata": {"source": "a.example"}},
    {"id": "d2", "page_content": "France", "metadata": {"source": "b.example"}},
]
TURNS = [
    {"number": 1, "raw_utterance": "What is it?"},
    {"number": 2, "raw_utterance": "Is it old?"},
    {"number": 3, "raw_utterance": "And this?"},
]
CHAT = [
    {"role": "user", "content": "A film?"},
    {"role": "assistant", "content": "Tenet."},
]


def lines(*objects: dict[str, Any]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(one) + "\n" for one in objects)


FILES = {
    "nuggets.csv": (
        "run,topic,turn,start,end,level,SIZE,KIND\n"
        "a,T1,1,3,4,2,0 1,1 0\n"
        "a,T1,2,8,9,1,1/2 1/2,0 1\n"
        "b,T1,1,5,5,2,1 0,1 0\n"
    ),
    "second.csv": (
        "run,topic,turn,start,end,level,SIZE,KIND\n"
        "a,T1,1,3,4,1,0 1,1 0\n"
        "a,T1,2,8,9,1,1 0,0 1\n"
        "b,T1,1,5,5,2,1 0,0 1\n"
    ),
    "sets.yaml": (
        "SIZE: {kind: ordinal, groups: [small, large], target: uniform}\n"
        "KIND: {kind: nominal, groups: [x, y], target: [2, 1]}\n"
    ),
    "transcript.txt": (
        "##### T1 mine\n### U1\nA film?\n### S1 o\nTenet\n#L2\nwc= 3\n#SIZE: (1,0)\n"
        "#KIND: (0,1)\n### U2\nMore?\n### S2 x\nNo.\n"
    ),
    "export.jsonl": lines(
        {
            "text": "User: A film?\nAssistant: Tenet is one.",
            "label": [[25, 30, "L2|large|x"]],
            "meta": {"topic": "T1", "run": "mine"},
        }
    ),
    "labels.csv": "label,level\nfilm,2\n",
    "a.run": "t1 Q0 d1 1 3 a\nt1 Q0 d2 2 2 a\nt2 Q0 d3 1 1 a\n",
    "b.run": "t1 Q0 d2 1 3 b\nt1 Q0 d1 2 2 b\nt2 Q0 d3 1 1 b\n",
    "cf.run": "t1 Q0 d2-cf 1 3 a\nt1 Q0 d1-cf 2 2 a\nt2 Q0 d3-cf 1 1 a\n",
    "ids.csv": "document,counterfactual\nd1,d1-cf\nd2,d2-cf\nd3,d3-cf\n",
    "qrels.txt": "t1 0 d1 2\nt1 0 d2 1\nt2 0 d3 1\n",
    "members.txt": "t1 d1 1 0\nt1 d2 0 1\nt2 d3 0.5 0.5\n",
    "target.txt": "0.5\n0.5\n",
    "people.csv": "document,gender\nd1,female\nd2,male\nd3,male\n",
    "shares.csv": "document,f,m\nd1,1,0\nd2,0,1\nd3,0.5,0.5\n",
    "docs.jsonl": lines(
        {"id": "d1", "text": "he and him"},
        {"id": "d2", "text": "she said"},
        {"id": "d3", "text": "rain"},
    ),
    "docs.tsv": "d1\the and him\nd2\tshe said\nd3\train\n",
    "terms.csv": "he,m\nhim,m\nshe,f\n",
    "answers.jsonl": lines(
        ANSWER,
        ANSWER | {"mode": "CF-informed", "answer": "No [1]."},
        ANSWER | {"question": "q2", "answer": "[2]"},
        ANSWER | {"question": "q2", "mode": "CF-informed", "answer": "[1][2]"},
    ),
    "log.jsonl": lines(
        {"input": "Where?", "answer": "In Wales [1].", "context": CONTEXT, "model": "m"},
        {"input": "Who?", "answer": "They [2].", "context": CONTEXT, "model": "n"},
    ),
    "trec.jsonl": lines(
        {
            "topic_id": "t1",
            "references": ["d1", "d2"],
            "answer": [{"text": "So it is.", "citations": [0]}],
        },
        {
            "topic_id": "t2",
            "references": ["d3"],
            "answer": [{"text": "So it was.", "citations": ["d3"]}],
        },
    ),
    "sources.csv": "document,source\nd1,a.example\nd2,b.example\nd3,a.example\n",
    "scores.csv": (
        "run,topic,attribute,measure,value\n"
        "a,t1,,R,0.5\na,t2,,R,0.25\na,t3,,R,0.75\nb,t1,,R,0.9\nb,t2,,R,0\nb,t3,,R,1\n"
    ),
    "alpha.tsv": "t1\tR\t0.5\nt2\tR\t0.25\nall\tR\t0.375\n",
    "beta.tsv": "R  \tt1\t1\nR  \tt2\t0\nrunid\tall\tbeta\n",
    "groups.csv": "topic,group\nt1,easy\nt2,hard\nt3,hard\n",
    "cast.json": json.dumps([{"number": 7, "turn": TURNS}]),
    "turns.tsv": "7_1\tWhat is it?\n7_2\tIs it old?\n7_3\tAnd this?\n",
    "classes.csv": "query,class\n7_1,SE\n7_2,FT\n7_3,PT\n",
    "asked.txt": "7_1 0 d1 2\n7_2 0 d1 0\n7_3 0 d3 1\n",
    "chats.json": json.dumps([{"id": "T1", "model": "m", "messages": CHAT}]),
    "topics.csv": (
        "topic,type,request,format,site\n"
        "F1,F,List films.,title,a.org\nF2,F,List more.,title,a.org\n"
    ),
    "notes.txt": "two years of work\n",
}
SETS = "--attributes sets.yaml"
GFR = "score gfr --run a.run --qrels qrels.txt"
COMMANDS = {
    "gfrc": f"score gfrc nuggets.csv {SETS} -o out.csv",
    "gfrc2": f"score gfrc2 nuggets.csv {SETS} -o out.csv",
    "gfrc2-all": (
        f"score gfrc2 nuggets.csv {SETS} --clusters out1.csv --factors out2.csv -o out.csv"
    ),
    "nuggets": f"nuggets transcript.txt {SETS} -o out.csv",
    "nuggets-export": f"nuggets export.jsonl --labels labels.csv {SETS} -o out.csv",
    "agreement": f"agreement nuggets.csv second.csv {SETS} --unmatched out1.csv -o out.csv",
    "gfr": f"{GFR} --membership people.csv -o out.csv",
    "gfr-shares": (
        f"{GFR} --membership S=members.txt --target S=target.txt --kind S=ordinal -o out.csv"
    ),
    "gfr-columns": f"{GFR} --membership G=shares.csv -o out.csv",
    "exposure": ("score exposure --run a.run --qrels qrels.txt --membership people.csv -o out.csv"),
    "ranking-bias": (
        "score ranking-bias --run a.run --documents docs.jsonl --terms terms.csv -o out.csv"
    ),
    "ranking-bias-tabs": (
        "score ranking-bias --run a.run --documents docs.tsv --terms terms.csv"
        " --background b.run -o out.csv"
    ),
    "crbo": "score crbo --run a.run cf.run --ids ids.csv -o out.csv",
    "attribution": "score attribution answers.jsonl --resamples 99 -o out.csv",
    "attribution-trec": (
        "score attribution trec.jsonl --qrels qrels.txt --resamples 99 -o out.csv"
    ),
    "citations": "score citations log.jsonl --resamples 99 -o out.csv",
    "citations-sources": (
        "score citations trec.jsonl --sources sources.csv --qrels qrels.txt --resamples 99"
        " -o out.csv"
    ),
    "compare": "compare scores.csv --resamples 99 --format csv -o out.csv",
    "compare-others": "compare alpha.tsv beta.tsv --resamples 99 --format csv -o out.csv",
    "compare-runs": (
        "compare --qrels qrels.txt --run a.run --run b.run --measure P@1 --resamples 99"
        " --format csv -o out.csv"
    ),
    "compare-groups": (
        "compare scores.csv --groups groups.csv --resamples 99 --format csv -o out.csv"
    ),
    "permute": "permute --topics cast.json --classes classes.csv --qrels asked.txt -o out",
    "permute-lines": "permute --topics turns.tsv --classes classes.csv -o out",
    "harvest-from": "harvest --from chats.json --transcripts out.txt",
    "harvest": (
        "harvest --topics topics.csv --endpoint http://127.0.0.1:9/v1 --model m -o out.jsonl"
    ),
}
TABLE = Path(__file__).with_name("bad_inputs.csv")
ROWS = pd.read_csv(TABLE, dtype=str, keep_default_na=False)


def in_bytes(text: str) -> bytes:
    """A text of the table as bytes, without its escapes."""
    return text.encode().decode("unicode_escape").encode("latin-1")


def words_of(command: str) -> list[str]:
    """The words that call a command of `COMMANDS` with further options."""
    name, _, options = command.partition(" ")
    return [*shlex.split(COMMANDS.get(name, name)), *shlex.split(options)]


def outputs(folder: Path) -> dict[str, bytes]:
    """Content of the files that a command has written."""
    written = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.name: path.read_bytes()
        for path in written
        if path.name not in FILES or path.read_bytes() != FILES[path.name].encode()
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@cache
def good_outputs(name: str) -> dict[str, bytes]:
    """The files that a command writes from the good files."""
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for file, text in FILES.items():
            Path(file).write_text(text)
        called(*words_of(name))
        return outputs(Path(place))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "harvest"])
@pytest.mark.usefixtures("folder")
def test_the_files_are_good(name: str) -> None:
    result = called(*words_of(name))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "row",
    list(ROWS.itertuples(index=False)),
    ids=lambda row: " ".join([row.command, row.file, row.new]),
)
def test_a_bad_input_is_named_or_counted(row: Any, folder: Path) -> None:
    changed = b""
    if row.file:
        changed = FILES[row.file].encode()
        assert not row.old or in_bytes(row.old) in changed
        changed = (
            changed.replace(in_bytes(row.old), in_bytes(row.new)) if row.old else in_bytes(row.new)
        )
        (folder / row.file).write_bytes(changed)
    result = called(*words_of(row.command))
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code == int(row.status), result.stderr

    written = outputs(folder)
    if row.file:
        assert written.pop(row.file, changed) == changed
    good = good_outputs(row.command.partition(" ")[0]) if row.command in COMMANDS else {}
    if row.message == "same":
        assert written == good
    else:
        assert row.message in result.stderr.replace("\n", " ")
    if row.status == "2":
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1
        # A condition that no score can meet is found when all is written.
        assert not written or "--fail-if" in row.command


COLUMNS = sorted({name for text in FILES.values() for name in text.split("\n")[0].split(",")})


def in_parquet(values: pa.Array) -> bytes:
    """A Parquet file whose columns, which have the names of all files, have these values."""
    file = io.BytesIO()
    parquet.write_table(pa.table(dict.fromkeys(COLUMNS, values)), file)
    return file.getvalue()


DAMAGES = {
    "empty": b"",
    "UTF-16": "run,topic\n".encode("utf-16"),
    "no text": b"\x00\x01\xff\xfe\x80" * 9,
    "half of a gzip file": b"\x1f\x8b\x08\x00\x00",
    "no Parquet": b"PAR1 and more",
    "a page": b"<!DOCTYPE html>\n<html><body>404: not found</body></html>\n",
    "deep JSON": b"[" * 5000,
}
DAMAGES |= {
    "circle": b"",
    "a gzip file of blanks": gzip.compress(b"\n" * 4, 1),
    **{
        f"Parquet {name}": in_parquet(values)
        for name, values in {
            "without rows": pa.array([], pa.string()),
            "of null": pa.array([None], pa.null()),
            "of bytes": pa.array([b"\xff"]),
            "of structures": pa.array([{"a": 1}]),
        }.items()
    },
}
READ = [
    (name, file)
    for name, command in COMMANDS.items()
    for file in FILES
    if re.search(rf"(^|[ =]){re.escape(file)}($| )", command)
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "file"), READ)
def test_a_damaged_file_is_named(name: str, file: str, damage: str, folder: Path) -> None:
    (folder / file).write_bytes(DAMAGES[damage])
    if damage == "circle":
        (folder / file).unlink()
        (folder / file).symlink_to(folder / file)
    result = called(*words_of(name))
    assert result.exit_code == 2, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert file in errors[0]
    assert outputs(folder).keys() <= {file}


def words_with(name: str, file: str, source: str, output: str) -> list[str]:
    """The words of a command with another input in place of a file, and one output for all."""
    words = []
    for word in shlex.split(COMMANDS[name]):
        word = output if word.startswith("out") else word
        words.append(
            source if word == file else re.sub(rf"=({re.escape(file)})$", f"={source}", word)
        )
    has_force = not name.startswith(("permute", "harvest"))
    return [*words, *["--force"][:has_force]]


@pytest.mark.parametrize("way", ["the same", "a symbolic link", "a hard link"])
@pytest.mark.parametrize(("name", "file"), READ)
def test_an_input_is_never_an_output(name: str, file: str, way: str, folder: Path) -> None:
    output = folder / ("linked" + Path(file).suffix if way != "the same" else file)
    if way == "a symbolic link":
        output.symlink_to(folder / file)
    elif way == "a hard link":
        output.hardlink_to(folder / file)
    result = called(*words_with(name, file, file, str(output)))
    assert result.exit_code == 2, result.output
    assert "must differ from the input" in " ".join(result.stderr.split())
    assert (folder / file).read_text() == FILES[file]


FOLDERS = {
    "gfrc": "nuggets.csv",
    "gfr": "a.run",
    "exposure": "a.run",
    "ranking-bias": "docs.jsonl",
    "attribution": "answers.jsonl",
    "citations": "log.jsonl",
    "compare": "scores.csv",
    "compare-runs": "a.run",
}


@pytest.mark.parametrize("output", ["in/{}", "in/deep/{}", "in/new.csv", "target/{}"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_in_an_input_folder_is_never_an_output(name: str, output: str, folder: Path) -> None:
    file = FOLDERS[name]
    for inner in ("in/deep", "target"):
        (folder / inner).mkdir(parents=True)
    (folder / file).rename(folder / "target" / file)
    (folder / "in" / "linked").symlink_to(folder / "target" / file)
    for inner in ("in", "in/deep"):
        (folder / inner / file).write_text(FILES[file])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = called(*words_with(name, file, "in", output.format(file)))
    assert result.exit_code == 2, result.output
    assert re.search("must (differ from|be outside of) (a file in )?the input", result.stderr)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


WRITES = [name for name in COMMANDS if not name.startswith(("permute", "harvest"))]
MORE = [f"compare --format {form}" for form in ("table", "latex", "markdown", "html")]
MORE += [
    f"{name} --figure out.{kind}"
    for name in ("compare", "nuggets", "attribution")
    for kind in ("svg", "png", "pdf")
]


@pytest.mark.filterwarnings("ignore:More than 20 figures")
@pytest.mark.parametrize("command", [*WRITES, *MORE])
def test_a_command_replaces_its_own_outputs_and_no_others(command: str, folder: Path) -> None:
    assert called(*words_of(command)).exit_code == 0
    own = outputs(folder)
    # People write nugget tables by hand, too, and nothing in a table shows who did.
    has_nuggets = command.startswith("nuggets")
    again = called(*words_of(command))
    assert again.exit_code == (2 if has_nuggets else 0)
    assert outputs(folder) == own
    for name in own:
        others = {
            **dict.fromkeys((".svg", ".png", ".pdf"), "<svg>%PDF-1.7 \x89PNG another program"),
            ".csv": "measure,value\nours,0.5\n**run** \\begin{table} <style> mean\n",
        }[Path(name).suffix]
        (folder / name).write_text(others)
        result = called(*words_of(command))
        assert result.exit_code == 2
        assert f"{name} exists and is not a" in result.stderr
        assert (folder / name).read_text() == others
        assert called(*words_of(command), "--force").exit_code == 0
        assert outputs(folder) == own


LONG = "x" * 200_000


@pytest.mark.parametrize(("name", "file"), [pair for pair in READ if pair[1].endswith(".csv")])
def test_a_long_text_is_no_traceback(name: str, file: str, folder: Path) -> None:
    first, _, rest = FILES[file].partition("\n")
    for text in (f"{LONG},{first}\n{rest}", f'{first}\n"{LONG}",{rest}'):
        (folder / file).write_text(text)
        result = called(*words_of(name))
        assert isinstance(result.exception, SystemExit | None), result.exception


@pytest.mark.parametrize(
    ("name", "file"),
    [("gfr", "a.run"), ("ranking-bias", "docs.jsonl"), ("attribution", "answers.jsonl")],
)
def test_a_file_that_unpacks_to_gigabytes_is_named(name: str, file: str, folder: Path) -> None:
    (folder / file).write_bytes(gzip.compress(bytes(2**28 + 2**20), 1))
    result = called(*words_of(name))
    assert result.exit_code == 2
    assert f"{file}: must be a gzip file of at most 268,435,456 bytes" in result.stderr


@pytest.mark.parametrize(
    "measure", ["nDCG@0", "P@99999999999", "AP(rel=0)", "P(rel=99999999999)@5"]
)
@pytest.mark.usefixtures("folder")
def test_a_measure_that_would_end_python_is_named(measure: str) -> None:
    result = called(*words_of("compare-runs"), "--measure", measure)
    assert result.exit_code == 2
    assert measure in result.stderr


@pytest.mark.skipif(not shutil.which("perl"), reason="ERR is computed by a Perl program")
def test_topics_of_err_need_not_be_numbers(folder: Path) -> None:
    result = called(*words_of("compare-runs"), "--measure", "ERR@10")
    assert result.exit_code == 0, result.output
    assert (folder / "out.csv").exists()
