"""Words that are safe to show, of bounded length, and the same on every platform."""

from __future__ import annotations

import errno
import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_REASONS = {
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EDQUOT: "no space left",
    errno.ENOSPC: "no space left",
    errno.EISDIR: "a folder",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a file where its path has a folder",
    errno.EROFS: "a file system that is read-only",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def plain(text: object) -> str:
    """Text that is only looked at: control characters and the like are escaped."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def reason(error: OSError) -> str:
    """What the system has met, in words."""
    return _REASONS.get(error.errno or 0) or (error.strerror or "an error of the system").lower()


def number_of(number: int, noun: str) -> str:
    """A number in words with its noun: ``one paper``, ``four papers``."""
    word = _NUMBERS[number] if number < len(_NUMBERS) else str(number)
    return f"{word} {noun}" if number == 1 else f"{word} {noun}s"
