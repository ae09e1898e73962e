"""A lock that dies with its process, so that what was killed stands in nobody's way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, held: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold a file as a lock, which is made for it and goes with it; wait while another process holds it.

    ``held`` is called once before a wait; where it raises, nothing is waited for.
    """
    import fcntl  # POSIX only, as nothing is locked where a measure alone is wanted

    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held()
                held = lambda: None  # noqa: E731
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    continue
            except FileNotFoundError:
                continue  # its holder has removed it since: the next one is another file
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
