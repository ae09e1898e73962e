"""Every recorded number has at most twelve digits, and none is what an error of rounding left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import nbformat
import pandas as pd

from equipoise_compendium import project

REPORTS = project.root() / "reports"
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
IN_TEXT = re.compile(rf"(?<![\w.,#-]){NUMBER.pattern}(?![\w-])")
"""A number of a text; digits in a word, such as an id or a colour, are none."""


def digits(number: str) -> int:
    """Count significant digits; the zeros at the end of a whole number are none."""
    mantissa = re.split("[eE]", number)[0].lstrip("-+−0.")
    if "." not in number:
        mantissa = mantissa.rstrip("0")
    return len(mantissa.replace(".", ""))


def faults(numbers: Sequence[str]) -> list[str]:
    """List the numbers of a column that are too long, or too small for the scale of the column."""
    values = [abs(Decimal(number.replace("−", "-"))) for number in numbers]
    scale = max([Decimal(1), *values])
    found = []
    for number, value in zip(numbers, values, strict=True):
        is_small = 0 < value < scale * Decimal("1e-12")
        if digits(number) > 12 or is_small:
            found.append(number)
    return found


def test_faults_are_found() -> None:
    assert faults(["0.123456789012", "12345678901.2", "120000000000000"]) == ["0.123456789012"]
    assert faults(["0.1234567890123", "1.1e-16"]) == ["0.1234567890123", "1.1e-16"]
    assert IN_TEXT.findall("a1234567890123456 has 3 of 0.1234567890123") == ["3", "0.1234567890123"]


def test_tables() -> None:
    found = {}
    for path in [
        *REPORTS.glob("*.csv"),
        *REPORTS.glob("*/tables/*.csv"),
        *REPORTS.glob("*/figures/*.csv"),
    ]:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        for name, column in table.items():
            numbers = [cell for cell in column if NUMBER.fullmatch(cell)]
            if wrong := faults(numbers):
                found[path.relative_to(REPORTS).as_posix(), name] = wrong
    assert found == {}


def leaves(content: Any) -> Iterator[str]:
    """Every value of a JSON document, as text."""
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from leaves(value)
    else:
        yield str(content)


def test_manifests() -> None:
    found = {}
    for path in REPORTS.glob("*/manifest.json"):
        content = json.loads(path.read_text(encoding="utf-8"), parse_float=str, parse_int=str)
        numbers = IN_TEXT.findall("\n".join(leaves(content)))
        if wrong := [number for number in numbers if faults([number])]:
            found[path.parent.name] = wrong
    assert found == {}


def test_outputs_of_notebooks() -> None:
    found = {}
    for path in REPORTS.glob("*/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                texts = [output.get("text", "")]
                for kind, content in output.get("data", {}).items():
                    if kind.startswith("text/"):
                        texts.append(re.sub(r"<[^>]*>", " ", content))
                numbers = IN_TEXT.findall("\n".join(texts))
                if wrong := [number for number in numbers if faults([number])]:
                    found[path.stem, cell.id] = wrong
    assert found == {}
