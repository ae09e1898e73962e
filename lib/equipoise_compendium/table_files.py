"""Printed tables read from the files of a paper: LaTeX, CSV, HTML, Markdown and PDF, as printed.

A reader returns the rows of every table of a file, header rows among them. A cell that spans
columns stands in each of them, and one that spans rows in each of these, so that a row says by
itself what it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

Rows = list[list[str]]

_NAMES = r"tabular[*xy]?|longtable|tabulary"
_BEGIN = re.compile(rf"\\begin\{{({_NAMES})\}}")
_END = re.compile(rf"\\end\{{({_NAMES})\}}")
_INNERMOST = re.compile(
    rf"\\begin\{{({_NAMES})\}}((?:(?!\\begin\{{(?:{_NAMES})\}}).)*?)\\end\{{\1\}}", re.DOTALL
)
_LINE_END = r"\\\\\*?(?:\[[^\]]*\])?|\\tabularnewline"
_TOKEN = re.compile(rf"{_LINE_END}|\\.|[{{}}&]", re.DOTALL)
_RULES = re.compile(
    r"\\(hline|toprule|midrule|bottomrule|addlinespace|endhead|endfirsthead|endfoot|endlastfoot)"
    r"(\[[^\]]*\])?|\\(cline|cmidrule|specialrule|noalign|rowcolor)(\([^)]*\))?"
    r"(\[[^\]]*\])?(\{[^{}]*\})+"
)
_SPAN = re.compile(r"\\multi(column|row)\s*(?:\[[^\]]*\])?\s*\{(\d+|\*)\}")
# What is typeset around or beside a number, and leaves it as it is.
_SYMBOLS = {
    r"\%": "%",
    r"\&": "&",
    r"\_": "_",
    r"\#": "#",
    r"\$": "$",
    r"\pm": "±",
    r"\times": "×",
    r"\dagger": "†",
    r"\ddagger": "‡",
    r"\dag": "†",
    r"\ddag": "‡",
    r"\ast": "*",
    r"\star": "*",
    r"\blacktriangle": "▲",
    r"\triangledown": "▽",
    r"\uparrow": "↑",
    r"\downarrow": "↓",
    r"\alpha": "α",
    r"\beta": "β",
    r"\lambda": "λ",
    r"\checkmark": "✓",
    r"\textendash": "–",
    r"\textasciitilde": "~",
}
_HIDDEN = re.compile(
    r"\\[hv]?phantom\s*\{[^{}]*\}"
    r"|\\(cite|label|footnote|cellcolor)[a-z]*\s*(\[[^\]]*\])?\{[^{}]*\}"
)
_COMMAND = re.compile(r"\\[A-Za-z]+\*?|\\.")
_SPACES = ("\\ ", "\\\\", "\\quad", "\\qquad", "\\,", "\\;", "\\:")
_MARKDOWN = re.compile(
    r"^[^\n]*\|[^\n]*\n[ ]*\|[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*(?:\n[ ]*\|[^\n]*)*",
    re.MULTILINE,
)
_LONGEST = 2**24
"""Bytes that a file of tables may have."""


def read_tables(path: Path, page: int | None = None) -> list[Rows]:
    """The tables of a file, by its ending; ``page`` is one of a PDF, by default all."""
    readers: dict[str, Callable[[], list[Rows]]] = {
        ".tex": lambda: _from_latex(_text(path)),
        ".csv": lambda: [_filled(list(csv.reader(_text(path).splitlines())))],
        ".tsv": lambda: [_filled(list(csv.reader(_text(path).splitlines(), delimiter="\t")))],
        ".html": lambda: _from_html(_text(path)),
        ".htm": lambda: _from_html(_text(path)),
        ".md": lambda: _from_markdown(_text(path)),
        ".pdf": lambda: _from_pdf(path, page),
    }
    ending = path.suffix.lower()
    if ending not in readers:
        raise ValueError(f"{path}: tables are read from {', '.join(readers)}, not from {ending!r}")
    if page is not None and ending != ".pdf":
        raise ValueError(f"{path}: only a PDF has pages")
    tables = [rows for rows in readers[ending]() if rows]
    if not tables:
        wanted = {".tex": r"\begin{tabular}", ".html": "<table>", ".htm": "<table>"}
        wanted[".md"] = "a row of cells above a row such as | --- | --- |"
        raise ValueError(f"{path}: found no table, wanted {wanted.get(ending, 'rows of cells')}")
    return tables


def with_one_header(rows: Rows, header: int) -> Rows:
    """Rows whose first ``header`` rows are joined into one; a repeated word stands once."""
    if len(rows) <= header:
        raise ValueError(f"{len(rows)} rows found, wanted {header} of the header and others")
    names = []
    for cells in zip(*rows[:header], strict=True):
        words = dict.fromkeys(cell for cell in cells if cell)
        names.append(" ".join(words))
    return [names, *rows[header:]]


def _text(path: Path) -> str:
    if path.stat().st_size > _LONGEST:
        raise ValueError(f"{path}: found {path.stat().st_size} bytes, wanted at most {_LONGEST}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is no UTF-8") from None


def _filled(rows: Sequence[Sequence[str]]) -> Rows:
    """Rows of one length, of stripped cells, without those that are empty."""
    width = max((len(row) for row in rows), default=0)
    filled = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        if any(cells):
            filled.append(cells + [""] * (width - len(cells)))
    return filled


# --- LaTeX ----------------------------------------------------------------------------------------


def _from_latex(text: str) -> list[Rows]:
    text = re.sub(r"(?<!\\)%.*", "", text)
    tables = []
    place = 0
    match = _INNERMOST.search(text)
    while match:
        before = text[: match.start()]
        is_within = len(_BEGIN.findall(before)) > len(_END.findall(before))
        if is_within:
            # A table within a cell breaks its lines: what it holds is the cell.
            content = " ".join(re.split(rf"{_LINE_END}|&", _after_group(match[2])))
            text = f"{before}{{{content}}}{text[match.end() :]}"
        else:
            tables.append(_latex_rows(match[2], has_width=match[1] not in ("tabular", "longtable")))
            place = match.end()
        match = _INNERMOST.search(text, place)
    return tables


def _latex_rows(body: str, *, has_width: bool) -> Rows:
    """The rows of an environment: its arguments gone, cells that span put into their places."""
    if has_width:
        body = _after_group(body)
    body = re.sub(r"^\s*\[[^\]]*\]", "", body)
    body = _RULES.sub(" ", _after_group(body))
    rows = []
    waiting: dict[int, tuple[int, str]] = {}  # by column: rows that a cell spans yet, and the cell
    for sources in _split(body):
        cells: list[str] = []
        for source in sources:
            n_columns, n_rows, content = _spans(source)
            text = _plain_latex(content)
            rows_below, above = waiting.get(len(cells), (0, ""))
            if rows_below and not text:
                text = above
                waiting[len(cells)] = (rows_below - 1, above)
            elif n_rows > 1:
                waiting[len(cells)] = (n_rows - 1, text)
            cells += [text] * n_columns
        if any(cells):
            rows.append(cells)
    return _filled(rows)


def _split(body: str) -> Rows:
    """Sources of the cells, by rows; what stands in braces is never parted."""
    rows: Rows = [[""]]
    depth = end = 0
    for token in _TOKEN.finditer(body):
        rows[-1][-1] += body[end : token.start()]
        end = token.end()
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "&":
            rows[-1].append("")
        elif depth == 0 and re.fullmatch(_LINE_END, token[0]):
            rows.append([""])
        else:
            rows[-1][-1] += token[0]
    rows[-1][-1] += body[end:]
    return rows


def _spans(source: str) -> tuple[int, int, str]:
    """How many columns and rows a cell spans, and what stands in it."""
    n_columns = n_rows = 1
    match = _SPAN.search(source)
    while match:
        span = int(match[2]) if match[2].isdigit() else 1
        if match[1] == "column":
            n_columns = span
        else:
            n_rows = span
        # Behind the number stands a group of the form, and then what is shown.
        rest = source[match.end() :]
        after_form = re.sub(r"^\s*\*", "", rest) if rest.lstrip().startswith("*") else None
        if after_form is None:
            after_form = _after_group(rest)
        content, remainder = _group(after_form)
        source = source[: match.start()] + content + remainder
        match = _SPAN.search(source)
    return n_columns, n_rows, source


def _group(text: str) -> tuple[str, str]:
    """What stands in the braces that a text begins with, and what stands behind them."""
    start = text.find("{")
    if start < 0 or text[:start].strip():
        return "", text
    depth = 0
    for place in range(start, len(text)):
        if text[place] in "{}" and text[place - 1 : place] != "\\":
            depth += 1 if text[place] == "{" else -1
        if depth == 0:
            return text[start + 1 : place], text[place + 1 :]
    return text[start + 1 :], ""


def _after_group(text: str) -> str:
    return _group(text)[1]


def _plain_latex(source: str) -> str:
    """A cell as it is printed: marks kept, fonts, spaces and mathematics' signs gone."""
    text = _HIDDEN.sub("", source)
    text = re.sub(r"\\(textcolor|color)\s*\{[^{}]*\}", "", text)
    text = re.sub(r"(?<!\\)\$", "", text)
    text = text.replace("~", " ").replace("---", "—").replace("--", "–")
    text = _COMMAND.sub(_symbol, text)
    text = re.sub(r"[{}^]|(?<!\w)_", "", text).replace("−", "-")
    text = re.sub(r"(?<=[+-])\s+(?=[\d.])", "", text)
    return " ".join(text.split())


def _symbol(match: re.Match[str]) -> str:
    """A command as the sign that it prints; one that only sets type prints nothing."""
    if match[0] in _SYMBOLS:
        return _SYMBOLS[match[0]]
    return " " if match[0] in _SPACES else ""


# --- HTML, Markdown and PDF -----------------------------------------------------------------------


def _from_html(text: str) -> list[Rows]:
    from bs4 import BeautifulSoup

    tables = []
    for table in BeautifulSoup(text, "html.parser").find_all("table"):
        if table.find("table"):
            continue  # a frame around others
        tables.append(_html_rows(table.find_all("tr")))
    return tables


def _html_rows(lines: Sequence[object]) -> Rows:
    rows: Rows = []
    waiting: dict[int, tuple[int, str]] = {}  # by column: rows that a cell spans yet, and the cell
    for line in lines:
        cells: list[str] = []
        for cell in line.find_all(["td", "th"]):  # type: ignore[attr-defined]
            _add_spanning(cells, waiting)
            for hidden in cell.find_all(["script", "style", "annotation"]):
                hidden.decompose()
            text = " ".join(cell.get_text().split()).replace("−", "-")
            n_rows = _bounded(cell.get("rowspan"))
            for _ in range(_bounded(cell.get("colspan"))):
                if n_rows > 1:
                    waiting[len(cells)] = (n_rows - 1, text)
                cells.append(text)
        _add_spanning(cells, waiting)
        rows.append(cells)
    return _filled(rows)


def _add_spanning(cells: list[str], waiting: dict[int, tuple[int, str]]) -> None:
    """Add the cells of rows above that span this one, where the next cell would stand."""
    while waiting.get(len(cells), (0, ""))[0]:
        left, text = waiting[len(cells)]
        waiting[len(cells)] = (left - 1, text)
        cells.append(text)


def _bounded(span: object) -> int:
    """A span as a number; what is no number, or a made-up one, spans one."""
    text = str(span or "1")
    return int(text) if re.fullmatch(r"[1-9]\d{0,2}", text) else 1


def _from_markdown(text: str) -> list[Rows]:
    """Tables of bars, as READMEs have them: bold and italics are gone, as in LaTeX and HTML."""
    tables = []
    for block in _MARKDOWN.finditer(text):
        header, _, *lines = block[0].splitlines()
        rows = []
        for line in [header, *lines]:
            inner = re.sub(r"^\s*\||(?<!\\)\|\s*$", "", line)
            cells = re.split(r"(?<!\\)\|", inner)
            rows.append([_plain_markdown(cell.strip()) for cell in cells])
        tables.append(_filled(rows))
    return tables


def _plain_markdown(cell: str) -> str:
    text = re.sub(r"(\*{1,3}|__)(?=\S)(.+?)(?<=\S)\1", r"\2", cell)
    return re.sub(r"\\([\\|*_`~])", r"\1", text).replace("−", "-")


def _from_pdf(path: Path, page: int | None) -> list[Rows]:
    try:
        import pdfplumber
    except ModuleNotFoundError:
        raise ValueError(
            f"{path}: tables of a PDF are read with pdfplumber: python -m pip install pdfplumber, "
            "or type the cells in"
        ) from None

    tables = []
    with pdfplumber.open(path) as document:
        n_pages = len(document.pages)
        if page is not None and not 1 <= page <= n_pages:
            raise ValueError(f"{path}: page {page} wanted, pages 1 to {n_pages} found")
        pages = document.pages if page is None else [document.pages[page - 1]]
        for sheet in pages:
            extracted = sheet.extract_tables()
            if not extracted:
                # Most papers rule their tables across only: columns are then where words end.
                by_text = {"vertical_strategy": "text", "horizontal_strategy": "text"}
                extracted = sheet.extract_tables(by_text)
            for rows in extracted:
                cells = [[(cell or "").replace("−", "-") for cell in row] for row in rows]
                tables.append(_filled(cells))
    return tables
