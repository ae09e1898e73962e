"""How long a call takes."""

from collections.abc import Callable
from time import process_time
from typing import Any


def best_of(work: Callable[[], Any], rounds: int = 3) -> float:
    """Shortest processor time of a few calls, in seconds."""
    took = []
    for _ in range(rounds):
        begun = process_time()
        work()
        took.append(process_time() - begun)
    return min(took)
