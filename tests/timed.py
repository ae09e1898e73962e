"""How long a call takes."""

import time
from collections.abc import Callable
from typing import Any


def best_of(work: Callable[[], Any], rounds: int = 3) -> float:
    """Shortest wall-clock time of a few calls, in seconds."""
    took = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)
