"""Guards the page on reliability: the cases it counts are those that there are."""

import subprocess
import sys
from pathlib import Path

COUNT = Path(__file__).parents[1] / "count_cases.py"


def test_the_page_reliability_counts_what_is_tried() -> None:
    ran = subprocess.run(
        [sys.executable, str(COUNT), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"run python tests/{COUNT.name}\n{ran.stderr[-500:]}"
