"""What the page Find lists: places of the site with a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A place: its address, its name, what it is about, and other words to find it by."""

    address: str
    name: str
    about: str
    words: str = ""
