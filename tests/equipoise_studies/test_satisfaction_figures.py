"""Guards the figures of chapter 3: a band of fine-tuned estimators, and names that do not cross."""

import itertools
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex

from equipoise_compendium import plots
from equipoise_studies.satisfaction import figures

RATIOS = np.linspace(0.1, 1, 10)
LINES = {
    "constant": 1 - RATIOS,
    "encoder, w/o up-sampling": 0.9 - 0.8 * RATIOS,
    "encoder, up-sampling x10": 0.7 - 0.4 * RATIOS,
    "few-shot": RATIOS + 0.005,
    "Zephyr, Few-shot": 0.8 + 0 * RATIOS,
}


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    plots.use_style()
    yield
    plt.close("all")


def table_of(lines: dict[str, np.ndarray], measure: str = "Acc") -> pd.DataFrame:
    tables = []
    for run, values in lines.items():
        rows = {"ratio": RATIOS, "value": values, "low": values - 0.01, "high": values + 0.02}
        tables.append(pd.DataFrame(rows).assign(collection="SGD", run=run, measure=measure))
    return pd.concat(tables)


def drawn(table: pd.DataFrame, measure: str = "Acc") -> Axes:
    return figures.curve_panels(table, [measure], {"SGD": 1234}, "A finding", "95% CI").axes[0]


def colour_of(area: Collection) -> str:
    return to_hex(np.asarray(area.get_facecolor())[0])


def names_at_ends(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_fine_tuned_estimators_are_a_band_around_their_mean() -> None:
    ax = drawn(table_of(LINES))
    names = names_at_ends(ax)
    assert sorted(names) == [
        "Zephyr",
        "always satisfied",
        "few-shot: almost\nalways dissatisfied",
        "fine-tuned (2)",
    ]
    assert len(ax.lines) == len(names)
    tuned = [LINES[run] for run in LINES if run.startswith("encoder")]
    mean_line = next(line for line in ax.lines if line.get_color() == "#0072B2")
    assert mean_line.get_ydata() == pytest.approx(np.mean(tuned, axis=0))
    band = next(area for area in ax.collections if colour_of(area) == "#0072b2")
    corners = np.asarray(band.get_paths()[0].vertices)
    at_one = corners[corners[:, 0] == 1][:, 1]
    assert (at_one.min(), at_one.max()) == pytest.approx((0.1 - 0.01, 0.3 + 0.02))


@pytest.mark.parametrize(
    ("measure", "values"),
    [("Acc", RATIOS), ("F1", RATIOS / (1 + RATIOS)), ("sensitivity", np.ones(10))],
)
def test_only_an_estimator_that_predicts_one_label_is_marked(
    measure: str, values: np.ndarray
) -> None:
    is_said = {}
    for shift in (0.0, 0.05):
        names = names_at_ends(drawn(table_of({"few-shot": values - shift}, measure), measure))
        is_said[shift] = any("always dissatisfied" in name for name in names)
    assert is_said == {0.0: True, 0.05: False}


NEAR = {"MistralIF, Few-shot": 0.81 + 0 * RATIOS, "Zephyr, Few-shot": 0.8 + 0 * RATIOS}


@pytest.mark.parametrize("lines", [NEAR, LINES | NEAR], ids=["low", "up to the top"])
def test_a_figure_says_the_finding_and_n_and_no_names_overlap(
    lines: dict[str, np.ndarray],
) -> None:
    ax = drawn(table_of(lines))
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert figure.get_suptitle() == "A finding"
    assert figure.legends[0].get_texts()[-1].get_text().endswith("with 95% CI")
    assert ax.get_title(loc="left") == "SGD, n = 1,234 samples"
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(boxes))
    assert not any(getattr(text, "arrow_patch", None) for text in ax.texts)
