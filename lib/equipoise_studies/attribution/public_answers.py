"""Answers of others that are public: those of large models, and those that people judged.

Both are read from the upstream files and become facts: ids, numbers cited, labels. No answer, claim
or passage is kept.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from equipoise.measures.attribution import exact_match
from equipoise.measures.citations import citations, in_brackets, mentions
from equipoise_compendium import registry
from equipoise_studies.attribution import benchmarks

MODELS = {
    "Gemini 2.5 Flash": "gemini-2.5-flash",
    "DeepSeek": "deepseek_deepseek-chat",
    "GPT-4.1": "gpt-4.1",
    "Claude Sonnet 4.6": "claude-sonnet-4-6",
}
"""Large models, and their folders in item ``litm2026``; by the chat names of 2025 and 2026."""
PASSAGES = (10, 20, 30)
"""Numbers of passages that each of them was shown."""
SYSTEMS = {
    "bing_chat": "Bing Chat",
    "gpt4": "GPT-4 alone",
    "rr_gs_gpt4": "GPT-4 on web search",
    "rr_sphere_gpt4": "GPT-4 on Sphere",
    "post_hoc_gs_gpt4": "GPT-4, then web search",
    "post_hoc_sphere_gpt4": "GPT-4, then Sphere",
}
"""Systems of item ``expertqa``: of the last two the sources were looked for after the answer."""
JUDGED = "data/lfqa/rand_test.jsonl"
_ALONE = re.compile(r"\[([0-9]+)\]")


def _numbers(numbers: tuple[int, ...]) -> str:
    """Numbers as a fact table holds them."""
    return " ".join(map(str, numbers))


# --- large models ---------------------------------------------------------------------------------


def _answers_of(folder: str, passages: int) -> Iterator[dict[str, str]]:
    """The rows of an upstream file."""
    name = f"results/{folder}/qa_{passages}docs_{folder}_per_example.csv"
    with registry.fetch("litm2026", name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def citations_by_form(answer: str, passages: int) -> dict[str, Any]:
    """The passages an answer cites, by the form of the citation, and how many are in lists.

    ``alone``: as ``[1]``, which is all that the authors' code reads. ``brackets``: as our own
    measures read it, lists and ranges too. ``named``: as ``[Document 1]`` or ``(Document 1)``.
    ``lists``: brackets with several numbers.
    """
    alone = dict.fromkeys(int(digits[:9]) for digits in _ALONE.findall(answer))
    named = in_brackets([answer], "doc")[0]
    lists = [numbers for numbers in mentions(answer, passages) if len(numbers) > 1]
    return {
        "alone": _numbers(tuple(number for number in alone if 1 <= number <= passages)),
        "brackets": _numbers(citations(answer, passages).cited),
        "named": _numbers(citations(named, passages).cited),
        "lists": len(lists),
    }


def make_large_models() -> pd.DataFrame:
    """What each answer of a large model cites, and whether it holds a gold answer."""
    questions = benchmarks.LOADERS["NQ"](None).questions
    ids = dict(zip(questions["text"], questions["question"], strict=True))
    gold = dict(zip(questions["text"], questions["gold"], strict=True))
    rows = []
    for model, folder in MODELS.items():
        for passages in PASSAGES:
            for line in _answers_of(folder, passages):
                text = line["question"]
                answer = line["model_answer"]
                row: dict[str, Any] = {
                    "model": model,
                    "passages": passages,
                    "place": int(line["gold_index"]) + 1,
                    "question": ids[text],
                    "correct": exact_match(answer, gold[text]),
                }
                rows.append(row | citations_by_form(answer, passages))
    return pd.DataFrame(rows)


# --- what people judged ---------------------------------------------------------------------------


def make_support() -> pd.DataFrame:
    """What each claim of an answer cites, and what an expert said of its support and its truth."""
    rows = []
    lines = registry.fetch("expertqa", JUDGED).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        item: Mapping[str, Any] = json.loads(line)
        for system, answer in item["answers"].items():
            for place, claim in enumerate(answer["claims"], start=1):
                rows.append(
                    {
                        "question": f"expertqa-{number:03}",
                        "system": SYSTEMS[system],
                        "claim": place,
                        "cited": len(citations(claim["claim_string"]).cited),
                        "sources": len(claim["evidence"] or []),
                        "support": claim["support"] or "",
                        "truth": claim["correctness"] or "",
                    }
                )
    return pd.DataFrame(rows)
