"""Guards the figures for a phone: all that the wide one says, narrow, and the page that chooses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from equipoise_compendium import plots
from equipoise_compendium.plots import narrow
from equipoise_compendium.plots.narrow import NAME, WIDTH
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.shown import CAPTION, KeyFigure
from equipoise_compendium.site import markup

RUNS = ["a run with quite a long name", "b"]


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    plots.use_style()
    yield
    plt.close("all")


def panels(count: int = 3, width: float = 12.0) -> Figure:
    """Panels side by side that share their names, with a legend in each and one of the figure."""
    figure, axes = plt.subplots(1, count, figsize=(width, 3), sharey=True)
    for number, ax in enumerate(axes):
        ax.plot([0, 1], [0, 1], label=f"line {number}")
        ax.set_title(f"panel {number}")
        ax.set_xlabel("share of the samples")
        ax.legend()
    axes[0].set_yticks([0, 1], RUNS)
    axes[0].set_ylabel("run")
    return figure


def words(figure: Figure) -> str:
    """Every word that a figure shows."""
    artists = [artist for artist in figure.findobj() if isinstance(artist, Text)]
    texts = [text.get_text() for text in artists if text.get_visible()]
    return " ".join(" ".join(texts).split())


def width_of(svg: bytes) -> float:
    """Inches of a drawing."""
    match = re.search(rb'width="([\d.]+)pt"', svg)
    assert match is not None
    return float(match[1]) / 72


def test_panels_stand_below_each_other_and_nothing_is_lost() -> None:
    figure = panels()
    before = set(words(figure).split())
    narrow(figure)
    figure.draw_without_rendering()
    boxes = [ax.get_position() for ax in figure.axes]
    assert all(upper.y0 >= lower.y1 for upper, lower in itertools.pairwise(boxes))
    assert before <= set(words(figure).split())
    assert [ax.get_ylabel() for ax in figure.axes] == ["run"] * 3
    assert all(ax.yaxis.get_tick_params()["labelleft"] for ax in figure.axes)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert max(len(line) for name in names for line in name.split("\n")) <= NAME
    for number, ax in enumerate(figure.axes):
        legend = ax.get_legend()
        assert legend is not None
        assert legend.get_texts()[0].get_text() == f"line {number}"
    assert width_of(plots.rendered(figure, "svg", "x")) < WIDTH + 0.3


def test_many_panels_stand_two_in_a_row_with_labels_of_their_own_rows() -> None:
    figure, axes = plt.subplots(2, 4, figsize=(13, 6))
    for row, label in enumerate(["recall", "precision"]):
        axes[row, 0].set_ylabel(label)
    narrow(figure)
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels == ["recall", "", "recall", "", "precision", "", "precision", ""]


def test_panels_stay_above_the_axis_that_they_share() -> None:
    figure, axes = plt.subplots(3, 2, figsize=(8, 6), sharex="col", sharey="row")
    for row, column in itertools.product(range(3), range(2)):
        axes[row, column].set_title(f"{row} over {column}")
    axes[0, 0].set_ylabel("recall")
    narrow(figure)
    figure.draw_without_rendering()
    from_top = sorted(figure.axes, key=lambda ax: -ax.get_position().y0)
    titles = [ax.get_title() for ax in from_top]
    assert titles == [f"{row} over {column}" for column in range(2) for row in range(3)]
    has_numbers = [ax.xaxis.get_tick_params().get("labelbottom", True) for ax in from_top]
    assert has_numbers == [False, False, True, False, False, True]
    assert [ax.get_ylabel() for ax in from_top] == ["recall", "", "", "recall", "", ""]


def test_a_figure_that_is_narrow_already_is_left_alone() -> None:
    figure = panels(count=2, width=4.0)
    places = [ax.get_subplotspec() for ax in figure.axes]
    legends = [ax.get_legend() for ax in figure.axes]
    narrow(figure)
    assert figure.get_size_inches().tolist() == [4.0, 3.0]
    assert [ax.get_subplotspec() for ax in figure.axes] == places
    assert [ax.get_legend() for ax in figure.axes] == legends


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(tmp_path / "book"))
    return Report("book")


def test_a_report_keeps_both_the_same_bytes_again(report: Report) -> None:
    files = []
    for _ in range(2):
        report.figure("seen", panels(), "Lines")
        files.append((report.folder / "figures" / "seen.narrow.svg").read_bytes())
    assert files[0] == files[1]
    assert width_of(files[0]) < WIDTH + 0.3
    assert width_of((report.folder / "figures" / "seen.svg").read_bytes()) > 11
    report.figure("seen", panels(), "Lines", narrow=panels(count=2, width=3.5))
    assert (report.folder / "figures" / "seen.narrow.svg").read_bytes() != files[0]


def test_the_page_chooses_and_the_notebook_has_the_caption(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = report.figure("seen", panels(), "Lines that *rise*")
    file = report.folder / "figures" / "seen.svg"
    page = markup.picture("../book/figures/seen.svg", file, "lines")
    assert markup.clean(page) == page
    assert 'srcset="../book/figures/seen.narrow.svg" width=' in page
    outputs: list[tuple[dict[str, str], dict[str, Any]]] = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, metadata, **_: outputs.append((data, metadata))
    )
    shown._ipython_display_()
    (image, about), (caption, mark) = outputs
    assert "image/svg+xml" in image
    assert about["image/svg+xml"]["alt"] == "Lines that *rise*"
    assert caption["text/markdown"] == r"*Lines that \*rise\**"
    cell = nbformat.v4.new_code_cell("shown")
    for data, metadata in outputs:
        cell.outputs.append(nbformat.v4.new_output("display_data", data, metadata=metadata))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), report.folder / "book.ipynb")
    assert mark == CAPTION
    assert markup.body(report.folder).count("Lines that *rise*</figcaption>") == 1
    assert "<em>" not in markup.body(report.folder)


def test_the_figure_of_an_answer_has_its_caption_in_the_notebook(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs: dict[str, tuple[Any, Any]] = {}

    def displayed(data: Any, metadata: Any = None, display_id: str = "", **_: object) -> None:
        outputs[display_id] = (data, metadata)

    monkeypatch.setattr("IPython.display.display", displayed)
    monkeypatch.setattr("IPython.core.display_functions.display", displayed)
    place = KeyFigure()
    place.show(report.figure("seen", panels(), "Lines that rise"))
    (image, _), (caption, mark), (words, drawn_here) = outputs.values()
    assert "image/png" in image
    assert caption["text/markdown"] == "*Lines that rise*"
    assert mark == CAPTION  # so that the page, which has it in the figure, leaves it out
    assert words["text/plain"].startswith("The figure stands at the top")

    opening = nbformat.v4.new_code_cell("first_cell")
    drawing = nbformat.v4.new_code_cell("drawing_cell")
    for data, metadata in list(outputs.values())[:2]:
        opening.outputs.append(nbformat.v4.new_output("display_data", data, metadata=metadata))
    drawing.outputs = [nbformat.v4.new_output("display_data", words, metadata=drawn_here)]
    nbformat.write(nbformat.v4.new_notebook(cells=[opening, drawing]), report.folder / "book.ipynb")
    page = markup.body(report.folder)
    assert page.index("first_cell") < page.index('id="code-seen"') < page.index("drawing_cell")
    assert 'href="#code-seen"' in page
    assert "stands at the top" not in page


def test_no_narrow_image_comes_from_elsewhere() -> None:
    hostile = '<picture><source srcset="//192.0.2.1/x.svg" onload="a"><img src="x"></picture>'
    assert "192.0.2.1" not in markup.clean(hostile)
    assert "onload" not in markup.clean(hostile)


def test_clip_paths_are_named_by_what_is_drawn() -> None:
    """Matplotlib names them by unrounded numbers: another last bit, another name."""
    figure, axes = plt.subplots(2)
    for number, ax in enumerate(axes):
        ax.plot([0, 1], [number, 1])
    drawing = plots.rendered(figure, "svg", "A title")
    names = re.findall(rb'<clipPath id="(\w+)">', drawing)
    assert len(names) == len(set(names)) == 2
    assert all(b"url(#%s)" % name in drawing for name in names)
    otherwise_named = drawing.replace(names[0], b"p0123456789").replace(names[1], b"pfedcba9876")
    assert plots._with_stable_clips(otherwise_named) == drawing
    other_title = plots.rendered(figure, "svg", "Another title")
    assert not any(name in other_title for name in names)
