"""Count words to avoid and long sentences in what readers read; the counts may only go down.

    python tests/prose.py            compare with tests/prose.csv; status 1 where a count has risen
    python tests/prose.py --update   write lower counts into tests/prose.csv
    python tests/prose.py --list     print each finding with its place

Code, formulas, links and quotations are not counted.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = ROOT / "tests" / "prose.csv"
LONGEST = 30  # words of a sentence
AVOIDED = re.compile(
    r"""\b(
    h[eo]ld s? \s (?:\S+\s){0,4}? against | (?:is|are|not) \s (?:said|told) | told \s (?:apart|from)
    | tells? \s (?:\S+\s){0,3}? (?:apart|from) | printed | (?:in|the) \s print | stands? | stood
    | stand-ins? | (?:to|can|could) \s be \s had | \w+ \s less \s (?:that|those|the|what|its)
    | anew | (?:made|makes?|drawn|run) \s again | luck | dealt | behind | of \s (?:ours|yours)
    | (?:is|are) \s (?:ours|wanted) | wanted | refus(?:ed?|es|al) | lack(?:s|ing|ed)? | beside
    | go(?:es|ing)? \s on | went \s on | (?:a|an) \s (?:row|line|panel|bar|column) \s an? \b
    | (?:that|not) \s (?:is|are)? \s? there | at \s hand | in \s reach
    | that \s hold | holds? \s (?:no|an?|the) | in \s (?:the \s)? words \s of | the \s like
    | likewise | who(?:so)?ever | whatever | as \s printed | as \s (?:it|they) \s stands?
    | likeliest | surer | surest | mend(?:ed)? | mistyped | undecided
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def of_markdown(text: str) -> Iterator[str]:
    """Give the paragraphs and list items of Markdown, without code, links, quotes, tables."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\$[^$]+\$|“[^”]*”|<[^>]+>", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-#|>*\d])", text):
        if not block.lstrip().startswith(("|", ">")):
            yield " ".join(block.split())


def shipped() -> list[str]:
    """List the notebooks of this project, to which rules of style apply: those of ruff."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    paths = [Path(name) for name in table["tool"]["ruff"]["include"]]
    return [path.stem for path in paths if path.parent.name == "notebooks"]


def texts(group: str) -> Iterator[tuple[str, str]]:
    """Give place and text of each paragraph of a group."""
    if group == "README":
        paths = [ROOT / "README.md"]
    elif group == "guide":
        paths = sorted((ROOT / "lib").glob("*/guide/*.md")) + sorted(
            (ROOT / "lib").glob("*/*/guide/*.md")
        )
    else:
        paths = []
    for path in paths:
        for block in of_markdown(path.read_text(encoding="utf-8")):
            yield path.name, block
    if group == "notebooks":
        for name in shipped():
            path = ROOT / "notebooks" / f"{name}.ipynb"
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "markdown":
                    for block in of_markdown("".join(cell["source"])):
                        yield path.name, block
    if group in ("help", "errors"):
        for path in sorted((ROOT / "lib").rglob("*.py")):
            yield from of_module(path, group)


def of_module(path: Path, group: str) -> Iterator[tuple[str, str]]:
    """Give the help of options and commands of a module, or the texts that it raises."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts: list[ast.AST] = []
        if group == "errors" and isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            parts = list(node.exc.args)
        if group == "help" and isinstance(node, ast.Call):
            parts = [word.value for word in node.keywords if word.arg in ("help", "short_help")]
        if group == "help" and isinstance(node, ast.FunctionDef):
            if any("command" in ast.unparse(each) for each in node.decorator_list):
                yield path.name, " ".join((ast.get_docstring(node) or "").split())
        for part in parts:
            strings = [each.value for each in ast.walk(part) if isinstance(each, ast.Constant)]
            yield path.name, "X".join(text for text in strings if isinstance(text, str))


def findings(group: str) -> Iterator[tuple[str, str, str]]:
    """Give kind, place and text of each word to avoid and each long sentence."""
    for place, text in texts(group):
        for match in AVOIDED.finditer(text):
            yield "avoided", place, text[max(match.start() - 30, 0) : match.end() + 20]
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z“(])", text):
            if len(sentence.split()) > LONGEST:
                yield "long", place, sentence


def main() -> int:
    """Compare the counts with the committed ones."""
    with COUNTS.open(newline="", encoding="utf-8") as file:
        allowed = {row["group"]: row for row in csv.DictReader(file)}
    risen = False
    lower = []
    for group, row in allowed.items():
        found = list(findings(group))
        counts = {kind: sum(each[0] == kind for each in found) for kind in ("avoided", "long")}
        for kind, count in counts.items():
            if count > int(row[kind]):
                risen = True
                sys.stderr.write(f"{group}: {count} {kind}, at most {row[kind]}\n")
                named = [f"  {place}: {text}\n" for each, place, text in found if each == kind]
                sys.stderr.writelines(named)
        if "--list" in sys.argv:
            sys.stdout.writelines(
                f"{group}, {kind}, {place}: {text}\n" for kind, place, text in found
            )
        lower.append(
            {"group": group} | {kind: min(counts[kind], int(row[kind])) for kind in counts}
        )
    if "--update" in sys.argv:
        with COUNTS.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["group", "avoided", "long"], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lower)
    return int(risen)


if __name__ == "__main__":
    sys.exit(main())
