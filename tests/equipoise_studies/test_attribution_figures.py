"""Guards the figures of chapter 5, on a phone too."""

import matplotlib.pyplot as plt
import pandas as pd

from equipoise_compendium import plots
from equipoise_studies.attribution import figures


def test_a_name_breaks_nowhere_within_its_number_of_questions() -> None:
    rows = [
        ("Human / LLM", "Qwen 1.5B, NQ, n = 15", -1.0, -3.0, 1.0, 5.0, 6.0, 7.0),
        ("Birch / Maple", "Qwen 1.5B (large), NQ-UTD, n = 300", 0.0, -1.0, 1.0, 5.0, 6.0, 7.0),
    ]
    columns = ["group", "name", "value", "low", "high"]
    columns += ["printed low", "printed mean", "printed high"]
    _, ax = plt.subplots(figsize=(7, 3))
    figures.biases(ax, pd.DataFrame(rows, columns=columns), "CAB, points")
    plots.narrow(ax.figure)
    lines = []
    for label in ax.get_yticklabels():
        lines += label.get_text().split("\n")
    plt.close("all")
    assert len(lines) > len(rows)
    spaced = [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    assert sum("n = 15" in line or "n = 300" in line for line in spaced) == len(rows)
