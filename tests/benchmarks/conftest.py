"""What is kept of a benchmark run: its ratios, which mean the same on the next machine; no seconds, host or time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

DIGITS = 2


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_generate_json(benchmarks: Iterable[Any]) -> dict[str, dict[str, float]]:
    """Ratios by benchmark, rounded: those of its extra information whose name begins with the word times."""
    kept = {}
    for benchmark in benchmarks:
        ratios = {name: value for name, value in benchmark.extra_info.items() if name.startswith("times ")}
        if ratios:
            kept[benchmark.fullname] = {name: float(f"{value:.{DIGITS}g}") for name, value in ratios.items()}
    return dict(sorted(kept.items()))
