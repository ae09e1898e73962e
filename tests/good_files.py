"""A small good file of every format that a command reads, and the commands that read them all."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

TURN = {
    "record": "turn",
    "trial": 1,
    "topic": "T1",
    "user": "A film?",
    "breakdown": False,
    "finish": "stop",
}
RECORD: list[dict[str, Any]] = [
    {
        "record": "settings",
        "endpoint": "http://127.0.0.1:9/v1",
        "model": "m",
        "topics": [{"topic": "T1", "kind": "T"}],
    },
    TURN | {"turn": 1, "system": "Tenet: https://a/1", "outcome": "o"},
    TURN | {"turn": 2, "system": "Looper.", "outcome": "x"},
]
ANSWER = {
    "question": "q1",
    "mode": "Informed",
    "relevant_author": "Human",
    "nonrelevant_author": "LLM",
    "answer": "In Wales [2].",
    "relevant": [2],
    "documents": 5,
    "gold": ["Wales"],
    "citations": [{"document": 2, "probability": 0.9}],
    "model": "mine",
}


def lines(*objects: dict[str, Any]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(one) + "\n" for one in objects)


TEXTS = {
    "nuggets.csv": (
        "run,topic,turn,start,end,level,SIZE,KIND,entity\n"
        "a,T1,1,3,4,2,1 0,1/2 1/2 0,Tenet\n"
        "a,T1,1,8,8,1,0 1,0 1 0,Looper\n"
        "a,T1,2,,,0,,,\n"
        "b,T1,1,2,2,1,.5 .5,0 0 1,Tenet\n"
    ),
    "tree.csv": (
        "run,topic,node,parent,probability,words\n"
        "a,T1,1,,1,12\na,T1,more,1,3/4,9\na,T1,adhere,1,.25,20\n"
    ),
    "node_nuggets.csv": (
        "run,topic,node,start,end,level,SIZE,KIND,entity\n"
        "a,T1,1,3,4,2,1 0,0 1 0,Tenet\na,T1,adhere,8,8,1,0 1,0 1 0,\n"
    ),
    "known.csv": "topic,name,url\nT1,Tenet,https://a/1\nT1,Looper,\n",
    "cases.csv": "run,topic,attribute,measure,value\na-1,T1,,R,.5\na-2,T1,,R,1/4\n",
    "sets.yaml": (
        "SIZE: {kind: ordinal, groups: [small, large], target: uniform}\n"
        "KIND: {kind: nominal, groups: [x, y, z], target: [2, 1, 1]}\n"
    ),
    "transcript.txt": (
        "##### T1 mine\n### U1\nA film?\n### S1 o\nTenet\n#L2\n#SIZE: (1,0)\n#KIND: (0,1/2,1/2)\n"
        "Looper again\n#L1\nwc= 5\n#SIZE: (0,1)\n#KIND: (0,1,0)\n#ENTITY: Looper\n"
        "### U2\nMore?\n### S2 x\nNo.\n"
    ),
    "conversation.txt": "<T1>\nU:A film?\nS:Here:\nTenet https://a/1\n</T1>\n",
    "record.jsonl": lines(*RECORD),
    "messages.jsonl": lines(
        {
            "id": "T1",
            "messages": [
                {"role": "user", "content": "A film?"},
                {"role": "assistant", "content": "Tenet."},
            ],
        }
    ),
    "export.jsonl": lines(
        {"text": "U:A film?\nS:Tenet.", "label": [[12, 17, "L2|large|x"]], "meta": {"topic": "T1"}}
    ),
    "labels.csv": "label,level\nfilm,2\n",
    "second.csv": (
        "run,topic,turn,start,end,level,SIZE,KIND\na,T1,1,4,4,1,0 1,1 0 0\nb,T1,1,2,2,1,1 0,0 1 0\n"
    ),
    "topics.csv": (
        "topic,type,request,format,site\n"
        "T1,T,Please list films.,title,\nT2,T,Please list books.,title,a.org\n"
    ),
    "a.run": "T1 Q0 d1 1 3.5 a.run\nT1 Q0 d2 2 2.5 a.run\nT2 Q0 d3 1 1.5 a.run\n",
    "qrels.txt": "T1 0 d1 2\nT1 0 d2 0\nT2 0 d3 1\n",
    "members.txt": "T1 d1 1 0\nT1 d2 0.5 0.5\nT2 d3 0 1\n",
    "target.golddistr": "0.5\n0.5\n",
    "docs.jsonl": lines(
        {"id": "d1", "text": "he and him"},
        {"id": "d2", "text": "she said"},
        {"_id": 3, "text": "rain"},
    ),
    "docs.tsv": "d1\the and him\nd2\tshe said\nd3\train\n",
    "terms.csv": "he,m\nhim,m\nshe,f\nher,f\n",
    "cast.json": json.dumps(
        [
            {
                "number": 7,
                "turn": [{"number": n, "raw_utterance": f"What is {n}?"} for n in (1, 2, 3)],
                "title": "n",
            }
        ]
    ),
    "ids.tsv": "7_1\tWhat is 1?\n7_2\tWhat is 2?\n7_3\tAnd 3?\n",
    "classes.csv": (
        "query,text,class,by\n7_1,What is 1?,SE,me\n7_2,What is 2?,FT,rule\n7_3,What is 3?,FT,\n"
    ),
    "asked.txt": "7_1 0 d1 2\n7_2 0 d1 0\n7_2 0 d2 1\n7_3 0 d3 1\n",
    "background.run": "T1 Q0 d1 1 9 x\nT1 Q0 d2 2 8 x\nT2 Q0 d2 1 7 x\nT2 Q0 d3 2 6 x\n",
    "scores.csv": "run,topic,measure,value\na,T1,M,0.5\na,T2,M,0.25\nb,T1,M,1\nb,T2,M,0\n",
    "two.csv": (
        "run,topic,measure,value\na,T1,M,0.5\na,T2,M,0.25\nb,T1,M,1\nb,T2,M,0\n"
        "a,T1,N,0.4\na,T2,N,0.25\nb,T1,N,1\nb,T2,N,0.1\n"
    ),
    "twin.run": "T1 Q0 d1-x 1 3.5 twin\nT1 Q0 d2-x 2 2.5 twin\nT2 Q0 d3-x 1 1.5 twin\n",
    "alpha.tsv": "T1\tM\t0.5\nT2\tM\t0.25\nall\tM\t0.375\n",
    "beta.txt": "M  \tT1\t1\nM  \tT2\t0\nrunid\tall\tbeta\n",
    "answers.jsonl": lines(
        ANSWER,
        ANSWER | {"mode": "CF-informed", "answer": "No [1]."},
        ANSWER | {"mode": "Vanilla", "answer": "[3]"},
    ),
    "retrieved.jsonl": lines(
        {
            "input": "Where?",
            "answer": "In Wales [1].",
            "context": [
                {"id": "d1", "page_content": "Wales", "metadata": {"source": "a.example"}},
                {"id": "d2", "page_content": "France", "metadata": {"source": "b.example"}},
            ],
        }
    ),
}


def parquet(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    file = io.BytesIO()
    table.to_parquet(file, index=False)
    return file.getvalue()


def frame(name: str) -> pd.DataFrame:
    """A CSV text of those above as a table of texts."""
    return pd.read_csv(io.StringIO(TEXTS[name]), dtype="str", keep_default_na=False)


RUN = pd.DataFrame(
    {"topic": ["T1", "T1"], "document": ["d1", "d2"], "rank": [1, 2], "score": [2.0, 1.0]}
)
FILES: dict[str, bytes] = {name: text.encode() for name, text in TEXTS.items()} | {
    "nuggets.parquet": parquet(frame("nuggets.csv")),
    "parts/one.parquet": parquet(frame("nuggets.csv")),
    "run.parquet": parquet(RUN),
}

_SETS = ["--attributes", "sets.yaml"]
_GFR = (
    "score gfr --qrels qrels.txt --membership SIZE=members.txt "
    "--target SIZE=target.golddistr --kind SIZE=ordinal"
)
_HARVEST = (
    "harvest --topics topics.csv --endpoint http://127.0.0.1:9/v1 --model m --tries 1 -o out.jsonl"
)
_BIAS = "score ranking-bias --run a.run --terms terms.csv -o out.csv"
COMMANDS = {
    "gfrc": ["score", "gfrc", "nuggets.csv", *_SETS, "-o", "out.csv"],
    "gfrc2": [
        "score",
        "gfrc2",
        "nuggets.csv",
        *_SETS,
        "--clusters",
        "clusters.csv",
        "-o",
        "out.csv",
    ],
    "gfrc of Parquet": ["score", "gfrc", "nuggets.parquet", *_SETS, "-o", "out.parquet"],
    "gfrc2 of a folder": ["score", "gfrc2", "parts", *_SETS, "-o", "out"],
    "nuggets": ["nuggets", "transcript.txt", *_SETS, "-o", "out.csv"],
    "transcripts": ["transcripts", "conversation.txt", "-o", "out.txt"],
    "nuggets of an export": [
        "nuggets",
        "export.jsonl",
        "--labels",
        "labels.csv",
        *_SETS,
        "-o",
        "out.csv",
    ],
    "agreement": [
        "agreement",
        "nuggets.csv",
        "second.csv",
        *_SETS,
        "--draws",
        "9",
        "-o",
        "out.csv",
    ],
    "transcripts of a record": ["transcripts", "record.jsonl", "-o", "out.txt"],
    "transcripts of messages": ["transcripts", "messages.jsonl", "-o", "out.txt"],
    "harvest": _HARVEST.split(),
    "gfr": [*_GFR.split(), "--run", "a.run", "-o", "out.csv"],
    "gfr of Parquet": [*_GFR.split(), "--run", "run.parquet", "-o", "out.csv"],
    "bias": [*_BIAS.split(), "--documents", "docs.jsonl"],
    "bias of tabs": [*_BIAS.split(), "--documents", "docs.tsv", "--background", "background.run"],
    "permute": [
        "permute",
        "--topics",
        "cast.json",
        "--classes",
        "classes.csv",
        "--qrels",
        "asked.txt",
        "--context",
        "previous",
        "-o",
        "out",
    ],
    "permute lines": ["permute", "--topics", "ids.tsv", "--classes", "classes.csv", "-o", "out"],
    "compare": ["compare", "scores.csv", "--resamples", "9", "-o", "out.csv", "--format", "csv"],
    "compare of others": [
        "compare",
        "alpha.tsv",
        "beta.txt",
        "--resamples",
        "9",
        "-o",
        "out.csv",
        "--format",
        "csv",
    ],
    "crbo": ["score", "crbo", "--run", "a.run", "twin.run", "--suffix", "-x", "-o", "out.csv"],
    "tree": [
        "score",
        "tree",
        "tree.csv",
        "node_nuggets.csv",
        *_SETS,
        "--paths",
        "paths.csv",
        "-o",
        "out.csv",
    ],
    "worst": ["score", "worst", "cases.csv", "-o", "out.csv"],
    "outcomes": [
        "score",
        "outcomes",
        "record.jsonl",
        "--known",
        "known.csv",
        "--names",
        "names.csv",
        "-o",
        "out.csv",
    ],
    "study": ["study", "query_by_example", "--config", "replica"],
    "attribution": ["score", "attribution", "answers.jsonl", "-o", "out.csv"],
    "citations": ["score", "citations", "retrieved.jsonl", "-o", "out.csv"],
    "typed": ["typed", "gfrc2/table-3"],  # of the project's own tables, into which nothing is typed
}
READ = [
    *[
        ("gfrc", "nuggets.csv"),
        ("gfrc2", "nuggets.csv"),
        ("gfrc2", "sets.yaml"),
        ("gfrc of Parquet", "nuggets.parquet"),
    ],
    *[
        ("gfrc2 of a folder", "parts/one.parquet"),
        ("nuggets", "transcript.txt"),
        ("nuggets", "sets.yaml"),
    ],
    *[("nuggets of an export", name) for name in ("export.jsonl", "labels.csv")],
    *[("agreement", "second.csv"), ("transcripts of messages", "messages.jsonl")],
    *[
        ("transcripts", "conversation.txt"),
        ("transcripts of a record", "record.jsonl"),
        ("harvest", "topics.csv"),
    ],
    *[("gfr", name) for name in ("a.run", "qrels.txt", "members.txt", "target.golddistr")],
    *[
        ("gfr of Parquet", "run.parquet"),
        ("bias", "a.run"),
        ("bias", "docs.jsonl"),
        ("bias", "terms.csv"),
    ],
    *[
        ("bias of tabs", "docs.tsv"),
        ("bias of tabs", "background.run"),
        ("attribution", "answers.jsonl"),
        ("citations", "retrieved.jsonl"),
    ],
    *[("permute", name) for name in ("cast.json", "classes.csv", "asked.txt")],
    ("permute lines", "ids.tsv"),
    *[
        ("compare", "scores.csv"),
        ("compare of others", "alpha.tsv"),
        ("compare of others", "beta.txt"),
    ],
    *[("tree", "tree.csv"), ("tree", "node_nuggets.csv"), ("worst", "cases.csv")],
    *[("outcomes", "record.jsonl"), ("outcomes", "known.csv")],
]
"""Each command with each file that it reads."""


def lay(folder: Path) -> None:
    """Write every good file into a folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
