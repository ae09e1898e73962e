"""Every number of the findings against its source, read here with csv, not by the library."""

import csv
import re

import pytest

from equipoise_compendium import findings, project

TEMPLATE = (project.root() / "data" / "findings.md").read_text(encoding="utf-8")
REPORTS = project.root() / "reports"
PLACES = re.findall(r"\{(.*?)\}", TEMPLATE)
NAMES = (
    r"\[[^\]]*\]\([^)]*\)|(?:Tables?|Figures?|chapters?|topic|GFRC|TILDEv|MD)[ ]?[\d.]+"
    r"(?: and [\d.]+)?|R112|bm25|BM25|QS\d|GPT-4|95% CI|CAsT \d{4}|rank \d+|Qwen [\d.]+B"
)


def pairs(keys: str) -> list[tuple[str, str]]:
    """Columns and values; a part without "=" belongs to the value before it."""
    found: list[tuple[str, str]] = []
    for part in keys.split(",") if keys.strip() else []:
        key, given, value = part.partition("=")
        if given:
            found.append((key.strip(), value))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]},{part}")
    return [(key, value.strip()) for key, value in found]


def source(place: str) -> str:
    """What a place should show."""
    file, keys, column, form = (part.strip() for part in place.split("|"))
    with (REPORTS / file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for key, value in pairs(keys):
        rows = [row for row in rows if row[key] == value]
    if column == "#":
        return str(len(rows))
    assert len(rows) == 1, place
    cell = rows[0][column]
    return cell if form == "s" else f"{float(cell):{form}}".replace("-", "−")


def test_the_committed_findings_are_these() -> None:
    parts = re.split(r"\{.*?\}", TEMPLATE)
    text = "".join(
        part + value for part, value in zip(parts, [*map(source, PLACES), ""], strict=True)
    )
    assert (REPORTS / "findings.md").read_text(encoding="utf-8").replace("\\", "") == text


def test_no_number_is_typed() -> None:
    typed = re.sub(NAMES, "", re.sub(r"\{.*?\}", "", TEMPLATE))
    assert re.findall(r"[^\n]*\d[^\n]*", typed) == []
    assert len(PLACES) > 10


def test_every_sentence_leads_to_a_page() -> None:
    for line in TEMPLATE.splitlines():
        if line.startswith("- "):
            pages = re.findall(r"\]\(site/([^)#]*)", line)
            assert pages, line
            assert all((REPORTS / "site" / page).is_file() for page in pages)


def test_a_place_without_its_one_row_is_refused() -> None:
    made = {"x.csv": "a,b\n1,2\n1,3\n"}
    assert findings.render("{x.csv | a=1 | # | d}", made) == "2"
    for keys in ("a=1", "a=9"):
        with pytest.raises(ValueError, match="must match one row"):
            findings.render(f"{{x.csv | {keys} | b | .2f}}", made)


def test_text_from_reports_is_no_markup() -> None:
    made = {"x.csv": "a,b\n1,<script>[x](y)\n"}
    assert findings.render("{x.csv | a=1 | b | s}", made) == r"&lt;script&gt;\[x\](y)"
