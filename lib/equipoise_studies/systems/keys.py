"""The key of an endpoint: read from the environment, kept out of all that a server sends back.

A server may echo a key as it was sent, or in a form from which it can be had: URL-encoded, in
base64 or hexadecimal digits, escaped as in JSON or HTML, in other case, with other characters
strewn in, or a part of it only. So texts are compared by their letters and digits alone, with every
escape undone, and a part that is long enough tells.
"""

from __future__ import annotations

import base64
import functools
import html
import math
import os
import re
from urllib.parse import unquote

_SHORTEST_KEY = 8  # letters and digits; a shorter one is found in texts that do not tell it
_TELLING = 12  # letters and digits of a part that is taken for the key's
_MOST_ESCAPES = 4  # times that a text is unescaped: escapes may be escaped again
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[0abefnrtv])")


def read_key(variable: str, *, needed: bool) -> str:
    """The key in an environment variable, or an empty one where none is there, or ``needed``.

    No message repeats the name of a variable that is not there: it may be the key, given in its
    place by mistake.
    """
    is_name = re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII) is not None
    key = os.environ.get(variable, "").strip() if is_name else ""
    if not key and not needed:
        return ""
    if not key:
        raise ValueError(
            "the key variable must name an environment variable that holds the key; it names none"
        )
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError(f"the key in {variable} has blanks or characters that no header can carry")
    if len(_letters_and_digits(key)) < _SHORTEST_KEY:
        raise ValueError(
            f"the key in {variable} has fewer than {_SHORTEST_KEY} letters and digits: "
            "too few to keep it out of a record; unset the variable if the server needs no key"
        )
    return key


def _letters_and_digits(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@functools.cache
def _telling_parts(key: str) -> frozenset[str]:
    """Parts of a key that tell it, in each form."""
    length = min(_TELLING, max(_SHORTEST_KEY, len(_letters_and_digits(key)) // 2))
    forms = [(key, length), (key.encode().hex(), 2 * length)]
    # A key within a longer text begins anywhere in a group of three bytes, of which base64 makes
    # four letters: what depends on the bytes around the key is cut off.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + key.encode()).decode()
        own_letters = encoded[math.ceil(shift * 4 / 3) : len(key) * 4 // 3]
        forms.append((own_letters, length * 4 // 3))
    telling_parts = set()
    for form, part_length in forms:
        letters = _letters_and_digits(form)
        n_parts = max(1, len(letters) - part_length + 1)
        telling_parts |= {letters[start : start + part_length] for start in range(n_parts)}
    return frozenset(telling_parts)


def _unescaped(text: str) -> str:
    """A text with the escapes of URLs, HTML and JSON undone, once."""

    def letter(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        return chr(int(digits, 16)) if digits else " "

    return _ESCAPE.sub(letter, html.unescape(unquote(text)))


def tells(key: str, text: str) -> bool:
    """Whether a text has the key in it, or a telling part of it, in any form."""
    if not key:
        return False
    for _ in range(_MOST_ESCAPES):
        letters = _letters_and_digits(text)
        if any(telling_part in letters for telling_part in _telling_parts(key)):
            return True
        unescaped = _unescaped(text)
        if unescaped == text:
            break
        text = unescaped
    return False


def kept_out(key: str, text: str) -> str:
    """A text without the key; without anything, where the rest still tells more of the key."""
    remainder = text.replace(key, "[key]") if key else text
    return "[withheld: it repeats the key]" if tells(key, remainder) else remainder
