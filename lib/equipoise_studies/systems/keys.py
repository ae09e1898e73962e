"""The key of an endpoint: read from the environment, and kept out of everything that a server sends back.

A server may echo a key as it was sent, or in a form from which it can be had: URL-encoded, in
base64 or hexadecimal digits, escaped as in JSON or HTML, in other case, with other characters
strewn in, or a part of it only. So texts are compared by their letters and digits alone, with every
escape undone, and a part that is long enough tells.
"""

from __future__ import annotations

import base64
import functools
import html
import os
import re
from urllib.parse import unquote

_LEAST = 8  # letters and digits; a shorter one would be found in texts that do not tell it
_TELLING = 12  # letters and digits of a part that is taken for the key's
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[0abefnrtv])")


def read_key(variable: str, *, needed: bool) -> str:
    """The key in an environment variable, or an empty one where there is none and none is ``needed``.

    No message repeats the name of a variable that is not there: it may be the key, given in its
    place by mistake.
    """
    value = (
        os.environ.get(variable, "").strip()
        if re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII)
        else ""
    )
    if not value:
        if needed:
            raise ValueError(
                "the key variable must name an environment variable that holds the key; it names none"
            )
        return ""
    if not re.fullmatch(r"[!-~]+", value):
        raise ValueError(f"the key in {variable} has blanks or characters that no header can carry")
    if len(_plain(value)) < _LEAST:
        told = f"the key in {variable} has fewer than {_LEAST} letters and digits: too few to keep it out of a record"
        raise ValueError(f"{told}; unset the variable if the server needs no key")
    return value


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@functools.cache
def _parts(key: str) -> frozenset[str]:
    """Parts of a key that tell it, in each form."""
    least = min(_TELLING, max(_LEAST, len(_plain(key)) // 2))
    forms = [(key, least), (key.encode().hex(), 2 * least)]
    for shift in range(3):  # a key within a longer text begins anywhere in a group of three bytes
        coded = base64.b64encode(b"\0" * shift + key.encode()).decode()
        forms.append((coded[-(-shift * 4 // 3) : len(key) * 4 // 3], least * 4 // 3))
    parts = set()
    for form, length in forms:
        plain = _plain(form)
        parts |= {plain[at : at + length] for at in range(max(1, len(plain) - length + 1))}
    return frozenset(parts)


def tells(key: str, text: str) -> bool:
    """Whether a text has the key in it, or a telling part of it, in any form."""
    for _ in range(4 if key else 0):  # escapes may be escaped again
        plain = _plain(text)
        if any(part in plain for part in _parts(key)):
            return True
        undone = _ESCAPE.sub(
            lambda found: chr(int(found[1] or found[2] or "20", 16)), html.unescape(unquote(text))
        )
        if undone == text:
            break
        text = undone
    return False


def kept_out(key: str, text: str) -> str:
    """A text without the key; without anything, where more of the key can be told from what is left."""
    rest = text.replace(key, "[key]") if key else text
    return "[withheld: it repeats the key]" if tells(key, rest) else rest
