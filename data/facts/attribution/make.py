"""Make the derived data of chapter 5 from the upstream files of ``data/registry.tsv``.

python data/facts/attribution/make.py [--output FOLDER]

The files are read from the mirror (``EQUIPOISE_MIRROR``) or downloaded. Derived data are ids,
cited numbers and labels; the texts of questions, passages and answers stay upstream.
"""

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import click
import pandas as pd

from equipoise.measures.attribution import exact_match
from equipoise.measures.citations import citations, mentions
from equipoise_compendium import facts, registry

# Large models by the names that their providers use, and their folders in litm2026.
LARGE_MODELS = {
    "Gemini 2.5 Flash": "gemini-2.5-flash",
    "DeepSeek": "deepseek_deepseek-chat",
    "GPT-4.1": "gpt-4.1",
    "Claude Sonnet 4.6": "claude-sonnet-4-6",
}
ALONE = re.compile(r"\[([0-9]+)\]")
_NAME = r"(?:(?:doc(?:ument)?|source|passage|result|text)s?[\s._:-]*|#)"
_NUMBERS = rf"{_NAME}[0-9]{{1,3}}(?:(?:\s*[,;&]|\s*\band\b)+\s*{_NAME}?[0-9]{{1,3}})*"
NAMED = re.compile(rf"[\[(]\s*({_NUMBERS})\s*[\])]", re.IGNORECASE)


def natural_questions() -> list[dict[str, Any]]:
    """Read Natural Questions with their gold passages, in the order of the file."""
    path = registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def cited_numbers(answer: str, n_passages: int) -> dict[str, Any]:
    """List the passages that an answer cites, by the form of the citation.

    ``alone``: as ``[1]``, the only form that the authors' code reads. ``brackets``: as our measures
    read them, including lists and ranges. ``named``: as ``[Document 1]`` or ``(Document 1)``.
    ``lists``: the number of brackets with several numbers.
    """
    named = " ".join(NAMED.findall(answer))
    numbers = {
        "alone": [int(digits[:9]) for digits in ALONE.findall(answer)],
        "brackets": citations(answer, n_passages).cited,
        "named": [int(digits) for digits in re.findall(r"[0-9]{1,3}", named)],
    }
    row: dict[str, Any] = {}
    for form, cited in numbers.items():
        shown = [number for number in dict.fromkeys(cited) if 1 <= number <= n_passages]
        row[form] = " ".join(map(str, shown))
    row["lists"] = sum(len(mention) > 1 for mention in mentions(answer, n_passages))
    return row


def large_models() -> pd.DataFrame:
    """List the citations of each answer by a large model, and whether it is correct."""
    questions = {}
    for number, question in enumerate(natural_questions(), start=1):
        questions[question["question"]] = (f"nq-{number:04}", question["answers"])
    rows = []
    for model, folder in LARGE_MODELS.items():
        for n_passages in (10, 20, 30):
            name = f"results/{folder}/qa_{n_passages}docs_{folder}_per_example.csv"
            with registry.fetch("litm2026", name).open(encoding="utf-8", newline="") as file:
                for entry in csv.DictReader(file):
                    key, gold = questions[entry["question"]]
                    answer = entry["model_answer"]
                    row: dict[str, Any] = {
                        "model": model,
                        "passages": n_passages,
                        "place": int(entry["gold_index"]) + 1,
                        "question": key,
                        "correct": exact_match(answer, gold),
                    }
                    rows.append(row | cited_numbers(answer, n_passages))
    return pd.DataFrame(rows)


def shown_to_people() -> dict[str, list[str]]:
    """Read the ids of the passages of each question of rag_crowd, in the order shown."""
    path = registry.fetch("rag_crowd", "data/raw/study1_retrieval.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {it["topic"]: it["references_ids"] for it in map(json.loads, lines)}


def people() -> pd.DataFrame:
    """List the citations of each answer by GPT-4o and by people, who were shown 20 passages."""
    rows = []
    for author, name in {"GPT-4o": "llm", "people": "human"}.items():
        path = registry.fetch("rag_crowd", f"data/raw/study1_responses_{name}.jsonl.gz")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            states = [json.loads(line) for line in lines]
        # The answers of people are a log, in which the last state of each counts.
        answers = {
            it["response"]: it for it in sorted(states, key=lambda it: it.get("timestamp", 0))
        }
        for answer in answers.values():
            numbers = {it[0] for mention in mentions(answer["text"]) for it in mention}
            cited = " ".join(str(it + 1) for it in sorted(numbers) if it < 20)  # from [0] upstream
            rows.append((author, answer["topic"], answer["style"], cited))
    table = pd.DataFrame(rows, columns=["author", "question", "style", "cited"])
    return table.sort_values(["author", "question", "style"])


def grades() -> pd.DataFrame:
    """List NIST's grades of the passages that were shown to people and to GPT-4o."""
    path = registry.fetch("rag24_qrels", "qrels/qrels.rag24.test.txt")
    names = ["question", "iteration", "passage", "grade"]
    judged = pd.read_csv(path, sep=r"\s+", names=names)
    rows = []
    for question, passages_shown in shown_to_people().items():
        rows += [(question, *it) for it in enumerate(passages_shown, start=1)]
    shown = pd.DataFrame(rows, columns=["question", "rank", "passage"])
    table = shown.merge(judged)[["question", "rank", "grade"]]
    return table.sort_values(["question", "rank"])


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path(__file__).parent)
def main(output: Path) -> None:
    """Make the tables of `README.md`, and sources.csv."""
    output.mkdir(parents=True, exist_ok=True)
    makers = {
        "large_models.parquet": large_models,
        "people.csv": people,
        "grades.csv": grades,
    }
    for name, content in facts.make(makers).items():
        (output / name).write_bytes(content)


if __name__ == "__main__":
    main()
