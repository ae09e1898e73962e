"""Lists of references at the end of an answer, which name documents and cite none."""

from __future__ import annotations

import re

_LEAD = r"[ \t>*+•·|_-]*(?:<(?:li|p)>)?"
_NAMES = r"(?:doc(?:ument)?|source|passage|ref(?:erence)?|cit(?:e|ation)|context|result|text)"
_MARK = (
    rf"(?:\[\s*(?:\^|\#|{_NAMES}[\s._:-]*)?[0-9]{{1,3}}(?:[:†|][^\[\]\n]*)?\]"
    rf"|[(（]\s*{_NAMES}[\s._:-]*[0-9]{{1,3}}\s*[)）]"
    r"|[【［]\s*[0-9]{1,3}[^【［】］\n]*[】］]"
    r"|<(?:sup|cite|citation|ref|source|doc)\b[^<>\n]*>\s*\[?[0-9]{1,3}\]?\s*</\w+>"
    r"|[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})"
)
_TITLES = (
    r"(?:(?:cited |list of |key |main )?(?:references|sources|citations|literature|footnotes"
    r"|bibliography|works)(?: cited| used| consulted)?|quellen(?:verzeichnis|angaben)?"
    r"|literatur(?:verzeichnis)?|références|bibliographie|fuentes|referencias|bibliografía|fonti"
    r"|bronnen|referências|fontes|источники|出典|参考文献|参考资料|引用元?|来源|參考文獻|참고문헌|출처)"
)
_WORDS: tuple[str, ...] = (
    "sources",
    "reference",
    "citations",
    "literatur",
    "footnotes",
    "bibliogra",
    "works",
)
_WORDS += ("quellen", "référence", "fuentes", "referencias", "fonti", "bronnen", "referências")
_WORDS += ("fontes", "источники", "出典", "参考", "引用", "来源", "參考", "참고문헌", "출처")
_HEADING = re.compile(
    rf"(?im)^(?:[^\w\n]|<h\d>|\d{{1,2}}\.[ \t])*(?:(?P<title>{_TITLES})(?:[ \t]*\(\d+\))?"
    r"|[^\n\[\]]{0,40}\b(?:sources|references|citations)\b[^\n\[\]:]{0,20}(?=:))"
    r"[ \t]*(?:[*_:：=-]|</h\d>)*[ \t]*$\n?(?:[ \t=-]*\n)?"
)
# Of a list in one line: a heading, then a mark and a name, at least twice.
_ONE_LINE = re.compile(
    rf"(?i)(?:^|\n|(?<=[.!?\])。]) )[ \t>#*_-]*{_TITLES}[*_]*[:：][*_]*[ \t]*"
    rf"(?:{_MARK}[*_]*:?\s*[\[\"“(<*_]*[^\W\d_](?:(?!{_MARK})[^\n])*+){{2,}}+\s*\Z"
)
_ITEM = re.compile(
    rf"(?i){_LEAD}(?:(?P<mark>{_MARK}|\([0-9]{{1,3}}\))|(?P<place>[0-9]{{1,3}}[.)][ \t])"
    r"|[^\[\]\n]*https?://|\[[^\[\]\n]*\]\(<?https?://)|(?P<row>[ \t]*\|)|\s*</?(?:ol|ul)>"
)
_NAME_AND_MARK = re.compile(rf"(?i)[ \t]*(?:[-*+•]|[0-9]{{1,3}}[.)])[ \t].*{_MARK}\W*$")
_NAMED_ITEM = re.compile(
    rf"(?i){_LEAD}(?P<mark>{_MARK})[*_]*(?P<colon>[:：])?"
    r"(?P<between>(?:[ \t|*_\"'“„«(<–—-]|\[(?!\d))*)"
    r"(?P<name>[^\W_].*)"
)
_ANY_MARK = re.compile(_MARK, re.IGNORECASE)
_BEFORE_MARK = re.compile(rf"(?<=[\w.;,)\"][ \t])(?={_MARK})|(?<=\n)", re.IGNORECASE)
_FILE = re.compile(r"\S+\.[a-z]{2,5}\b|https?://")
_AFTER_EMPTY_LINE = re.compile(r"\n(?:[ \t]*|[-_*]{3,})\n\Z")
_QUOTE = re.compile("[\"'“„«]")
_LINE_END = re.compile(r"\r\n|<br ?/?>")
_TO_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def before_references(text: str) -> str:
    r"""Return an answer without its list of references: all of it where it has none.

    A list has a heading, or it ends the answer after an empty line. A list without a heading names
    all documents that the answer cites, in ascending order. It has at least two names, or colons
    after the numbers, and a name begins with a capital or is a file.

    >>> before_references("It boils [1].\n\nSources:\n- [1] Alpha\n- [2] Beta")
    'It boils [1].\n\n'
    >>> before_references("It boils [1].\n\n[1] shows this.\n[2] does not.")
    'It boils [1].\n\n[1] shows this.\n[2] does not.'
    """
    text = _LINE_END.sub("\n", text)
    lower = text.lower()
    has_title = any(word in lower for word in _WORDS)  # faster than the expressions
    one_line = _ONE_LINE.search(text) if has_title else None
    if one_line:
        return text[: one_line.start()]
    for heading in _HEADING.finditer(text) if has_title else ():
        end = _end_of_list(text, heading.end(), heading["title"] or "")
        if end > heading.end():
            return text[: heading.start()] + text[end:]
    return text[: _start_of_last_list(text)]


def _end_of_list(text: str, begin: int, title: str) -> int:
    """Return where the list that begins here ends; its begin where no list begins.

    Sources may be what an answer is about: under references a name may come before its mark.
    """
    are_references = bool(title) and not title.lower().endswith(("sources", "used"))
    end = begin
    is_in_item = False
    for line in text[begin:].splitlines(keepends=True):
        item = _ITEM.match(line)
        if not (are_references and _NAME_AND_MARK.match(line)):
            # An enumeration or a table whose lines cite is part of the answer.
            is_text = item and (item["place"] or item["row"])
            if item and is_text and _ANY_MARK.search(line, item.end() + 1):
                break
            if line.strip() and not item and not is_in_item:
                break
            named = _NAMED_ITEM.match(line)
            is_name = named and not named["name"][0].islower()
            if not title and end == begin and line.strip() and not is_name:
                break
        is_in_item = bool(line.strip())
        end += len(line)
    return end


def _start_of_last_list(text: str) -> int:
    """Return where a list without a heading begins, at the end of an answer; its end if none."""
    start = position = len(text)
    last_line = text.rstrip().rpartition("\n")[2]
    if not last_line[:1].isspace() and not _NAMED_ITEM.match(last_line):
        return start
    numbers = [10**9]
    has_colons = True
    for part in reversed(_BEFORE_MARK.split(text)):
        position -= len(part)
        item = _NAMED_ITEM.match(part)
        if item:
            name = item["name"]
            number = _number(item["mark"])
            is_named = item["colon"] or _QUOTE.search(item["between"]) or _FILE.match(name)
            has_capital = not name[0].islower() or is_named
            if number >= numbers[-1] or not has_capital:
                break
            numbers.append(number)
            start = position
            has_colons = has_colons and bool(item["colon"])
        elif part.startswith("|") and not _ANY_MARK.search(part):
            start = position  # the head of a table
        elif part.strip() and not part[0].isspace():
            break
    before = text[:start]
    cited = {_number(mark[0]) for mark in _ANY_MARK.finditer(before)}
    is_below = before.endswith("\n") if has_colons else _AFTER_EMPTY_LINE.search(before)
    is_list = is_below and len(numbers) > 2 - has_colons and cited <= set(numbers)
    return start if is_list else len(text)


def _number(mark: str) -> int:
    """Return the first number of a mark."""
    return int(re.findall("[0-9]+", mark.translate(_TO_DIGITS))[0])
