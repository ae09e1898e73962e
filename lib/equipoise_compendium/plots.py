"""Figures: one style for all, and files that have the same bytes at every run."""

from __future__ import annotations

import html
import io
import re
import textwrap
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from equipoise.errors import plain

COLOURS = ("#0072B2", "#A24400", "#338055", "#C377AA", "#C38811", "#4C80FF", "#441A00", "#3C444C")
"""Categories, in the order of use.

Each has a contrast of 3 to 1 on the light and on the dark page, and differs from the others for
readers who do not distinguish red and green.
"""
GREY = "#8A8A8A"
"""What is not the subject but must be visible."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
NARROW = 3.5
"""Inches of a figure on a phone."""
PNG_RESOLUTION = 120
"""Dots per inch of a PNG."""
_FONTS = "'DejaVu Sans', 'Verdana', sans-serif"
_UNUSED = re.compile(
    rb"""\n *<metadata>.*?</metadata>| id="[\w.]+_\d+"| transform="rotate\(-0 [^"]*"|"""
    rb"""(?<=\n) +|; font-family: 'DejaVu Sans', 'Verdana', sans-serif""",
    re.DOTALL,
)
"""What a reader of an SVG does not need; with the groups, two fifths of its bytes."""
_GROUP = re.compile(rb"<g>\n([^<]*(?:<(?!/?g\b)[^<]*)*)</g>\n")
"""A group without attributes that contains no other."""
_CLIP = re.compile(rb'<clipPath id="(p[0-9a-f]+)">')


def use_style() -> None:
    """Set the style of every figure that follows."""
    mpl.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (8.0, 4.0),
            # An SVG names the fonts at every text; the default is a list of ten.
            "font.sans-serif": ["DejaVu Sans", "Verdana"],
            "font.size": 10,
            "grid.color": "#E3E3E3",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "svg.fonttype": "none",
        }
    )


def rendered(figure: Figure, kind: str, title: str, name: str = "") -> bytes:
    """Draw a figure as svg, png or pdf, with the same bytes at every run.

    ``title`` is read out of an SVG to readers who cannot see it, ``name`` makes its ids.
    """
    title = plain(title)
    # Dates and versions would make other bytes at every run; None leaves them out.
    metadata: dict[str, Any] = {"CreationDate": None, "Creator": "Equipoise"}
    resolution: Any = "figure"
    if kind == "svg":
        metadata = {"Date": None, "Creator": None, "Title": title}
    elif kind == "png":
        metadata = {"Software": None}
        resolution = PNG_RESOLUTION
    file = io.BytesIO()
    # Matplotlib makes the ids of an SVG from random numbers unless it has a salt.
    with mpl.rc_context({"svg.hashsalt": name or title}):
        figure.savefig(file, format=kind, metadata=metadata, dpi=resolution, bbox_inches="tight")
    content = file.getvalue()
    if kind == "svg":
        content = re.sub(rb"<[^>]*>", _shortened, _UNUSED.sub(b"", content))
        while _GROUP.search(content):
            content = _GROUP.sub(rb"\1", content)
        # Matplotlib names clip paths by unrounded numbers, whose last bit may differ.
        for number, clip in enumerate(_CLIP.findall(content)):
            content = content.replace(clip, b"clip%d" % number)
        label = f'<svg role="img" aria-label="{html.escape(title)}" font-family="{_FONTS}" '
        return content.replace(b"<svg ", label.encode(), 1)
    # A command replaces a file with its own mark; a notebook contains its figures.
    return _with_palette(content, "" if name else "Equipoise") if kind == "png" else content


def _shortened(tag: re.Match[bytes]) -> bytes:
    """Round the numbers of a tag to hundredths of a point, and leave out spaces of its style.

    The sign of zero depends on the processor.
    """
    content = re.sub(rb"\d+\.\d{3,}", lambda number: b"%.2f" % float(number[0]), tag[0])
    content = re.sub(rb"-0(\.00)?(?![.\d])", b"0", content)
    return re.sub(rb"([:;]) ", rb"\1", content)


def _with_palette(png: bytes, software: str) -> bytes:
    """Reduce a PNG to 64 colours, a quarter of its size: executed notebooks contain it."""
    drawing = Image.open(io.BytesIO(png)).convert("RGB")
    file = io.BytesIO()
    reduced = drawing.quantize(64, dither=Image.Dither.NONE)
    info = PngInfo()
    if software:
        info.add_text("Software", software)
    resolution = (PNG_RESOLUTION, PNG_RESOLUTION)
    reduced.save(file, "PNG", optimize=True, dpi=resolution, pnginfo=info)
    return file.getvalue()


def look(number: int) -> dict[str, Any]:
    """Return colour and marker of the series of this number, from 0."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def literal(text: object) -> str:
    """Escape text from data: a dollar sign begins no formula."""
    return plain(text).replace("$", r"\$")


def note(
    ax: Axes, text: str, point: tuple[Any, Any], shift: tuple[float, float], **style: Any
) -> None:
    """Write next to a point, shifted from it by so many printer's points."""
    ax.annotate(text, point, xytext=shift, textcoords="offset points", **style)


# --- on a phone -----------------------------------------------------------------------------------


def narrow(figure: Figure) -> bool:
    """Rearrange a figure for a phone: panels below each other, long labels on several lines.

    Returns False for a drawing without axes, which stays wide.
    """
    panels = [ax for ax in figure.axes if ax.axison and ax.get_subplotspec() is not None]
    if not panels or any(ax.texts and not ax.axison for ax in figure.axes):
        return False
    figure.draw_without_rendering()  # a PNG leaves the sizes of its own resolution
    heights = []
    panels = _stacked(panels)
    for ax in panels:
        heights.append(max(ax.get_position().height * figure.get_figheight(), _fit_ticks(ax)))
        for label in [*_titles(ax), ax.xaxis.label]:
            label.set(x=1.0, horizontalalignment="right", multialignment="center")
            _break(label, NARROW - 0.1)
        _break(ax.yaxis.label, max(1.4, heights[-1]))
        for label in ax.texts:
            _break(label, 1.5)
    for label in figure.texts:
        label.set_text(label.get_text().replace("\n", " "))
        _break(label, sum(heights) if label.get_rotation() else NARROW)
    _stack_legends(figure)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for row, ax in enumerate(panels):
        ax.set_subplotspec(grid[row, 0])
    figure.set_size_inches(NARROW, 2 * sum(heights) + 2)
    for _ in range(3):  # what is no panel needs room, too, which depends on the height
        figure.draw_without_rendering()
        drawn = sum(ax.get_position().height for ax in panels) * figure.get_figheight()
        figure.set_figheight(figure.get_figheight() + sum(heights) - drawn)
    return True


def _stacked(panels: list[Axes]) -> list[Axes]:
    """Order panels column by column, or row by row where only the first of a row has a title."""
    places = {ax: ax.get_subplotspec() for ax in panels}
    starts = {ax: (spec.rowspan.start, spec.colspan.start) for ax, spec in places.items() if spec}
    first = {row: ax for ax, (row, column) in starts.items() if column == 0}
    for ax, (row, _) in starts.items():
        if ax.get_shared_y_axes().joined(ax, first.get(row, ax)):
            ax.tick_params(labelleft=True)
            ax.yaxis.label.set_text(ax.get_ylabel() or first.get(row, ax).get_ylabel())
    by_row = not any(_titles(ax) for ax in panels if ax not in first.values())
    return sorted(panels, key=lambda ax: starts[ax] if by_row else starts[ax][::-1])


def _titles(ax: Axes) -> list[Text]:
    """Return the titles of axes that have words."""
    texts = [child for child in ax.get_children() if isinstance(child, Text)]
    return [text for text in texts if text.get_text() and text not in ax.texts]


def _stack_legends(figure: Figure) -> None:
    """Write the entries of legends below each other."""
    for legend in [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]:
        columns = legend.get_children()[0].get_children()[1].get_children()
        for column in columns[1:]:
            columns[0].get_children().extend(column.get_children())
        del columns[1:]
        for label in legend.get_texts():
            _break(label, NARROW - 0.8)


def _break(label: Text, inches: float) -> None:
    """Break a label into lines of about so many inches; "n = 5" is one word."""
    text = label.get_text().replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    letters = max(8, int(inches * 72 / 0.6 / float(label.get_fontsize())))
    wrapped = [textwrap.fill(line, letters, break_long_words=False) for line in text.split("\n")]
    label.set_text("\n".join(wrapped))


def _fit_ticks(ax: Axes) -> float:
    """Turn the labels of a crowded axis, break those at the left; return the height they need."""
    labels = ax.get_xticklabels() if isinstance(ax.xaxis.get_major_locator(), FixedLocator) else []
    if sum(Text.get_window_extent(label).width + 6 for label in labels) > 72 * (NARROW - 0.4):
        ax.tick_params(axis="x", labelrotation=90)
    labels = ax.get_yticklabels()
    for label in labels:
        _break(label, 1.5)
    words = [label.get_text() for label in labels]
    if len(words) < 2 or not any("\n" in text for text in words):
        return 0.0
    ax.set_yticks(ax.get_yticks(), words)
    n_lines = max(text.count("\n") for text in words) + 1
    places = sorted(ax.get_yticks())
    gap = min(upper - lower for lower, upper in pairwise(places))
    bottom, top = sorted(ax.get_ylim())
    return (top - bottom) / gap * n_lines * 1.3 * float(labels[0].get_fontsize()) / 72
