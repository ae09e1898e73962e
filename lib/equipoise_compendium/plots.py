"""Figures: one style for all, and files that have the same bytes at every run."""

from __future__ import annotations

import hashlib
import html
import io
import re
from itertools import chain, combinations, pairwise
from textwrap import TextWrapper
from typing import Any

import matplotlib as mpl
import numpy as np
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
PNG_RESOLUTION = 144
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
        label = f'<svg role="img" aria-label="{html.escape(title)}" font-family="{_FONTS}" '
        return _with_stable_clips(content.replace(b"<svg ", label.encode(), 1))
    # A command replaces a file with its own mark; a notebook contains its figures.
    return _with_palette(content, "" if name else "Equipoise") if kind == "png" else content


def _shortened(tag: re.Match[bytes]) -> bytes:
    """Round the numbers of a tag to hundredths of a point, and leave out spaces of its style."""
    content = re.sub(rb"\d+\.\d{3,}", lambda number: b"%.2f" % float(number[0]), tag[0])
    return re.sub(rb"([:;]) ", rb"\1", content)


def _with_stable_clips(svg: bytes) -> bytes:
    """Name clip paths by their order and the content.

    Matplotlib names them by unrounded numbers, whose last bit may differ from run to run.
    """
    names: list[bytes] = _CLIP.findall(svg)
    nameless = re.sub(rb"\bp[0-9a-f]{10}\b", b"", svg)
    digest = hashlib.sha256(nameless).hexdigest()
    for number, name in enumerate(names):
        svg = svg.replace(name, f"p{digest[:8]}-{number}".encode())
    return svg


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

    Returns False for a drawing without axes, for axes over axes, and if labels overlap then or need
    more room: such a figure must stay wide.
    """
    figure.draw_without_rendering()  # a PNG leaves the sizes of its own resolution
    panels = _stacked(figure)
    if not panels or any(ax.texts and not ax.axison for ax in figure.axes):
        return False
    n_rows, n_columns = np.max([*panels], axis=0) + 1
    heights = np.zeros(n_rows)
    titles = []
    for (row, _), ax in panels.items():
        titles += [(label, label.get_text(), ax) for label in [*_titles(ax), ax.xaxis.label]]
        height = ax.get_position().height * figure.get_figheight()
        heights[row] = max(heights[row], height, _break_ticks(ax, NARROW / n_columns))
        _break(ax.yaxis.label, max(1.4, height))
    for label in figure.texts:
        label.set_text(label.get_text().replace("\n", " "))
        _break(label, figure.get_figheight() if label.get_rotation() else NARROW)
    _stack_legends(figure)
    grid = figure.add_gridspec(n_rows, n_columns, height_ratios=heights)
    for at, ax in panels.items():
        ax.set_subplotspec(grid[at])
    figure.set_figwidth(NARROW)
    # What is no panel depends on the height, and lines of text on the width of a panel.
    for inches in (1.5, 1.5, 0.75):
        figure.draw_without_rendering()
        drawn = {row: ax.get_position().height for (row, _), ax in panels.items()}
        missing = heights.sum() - sum(drawn.values()) * figure.get_figheight()
        figure.set_figheight(figure.get_figheight() + missing)
        for title, words, ax in titles:
            left, right = NARROW * ax.get_position().intervalx
            is_left = title.get_horizontalalignment() == "left"
            unused = 0.1 + (left if is_left else abs(left + right - NARROW))
            title.set_text(words)
            # The title of axes that are alone in a row may leave their sides.
            _break(title, right - left if n_columns > 1 else NARROW - unused)
        if inches == 1.5 or overlapping(figure):
            for text in chain(*(ax.texts for ax in figure.axes)):
                _break(text, inches)
    return not overlapping(figure) and figure.get_tightbbox().width < NARROW + 0.2


def _stacked(figure: Figure) -> dict[tuple[int, int], Axes]:
    """Return the panels by their row and column on a phone, the first of a row with its labels."""
    panels: dict[tuple[int, int], Axes] = {}
    for ax in figure.axes:
        spec = ax.get_subplotspec()
        if spec is not None and ax.axison:
            at = spec.rowspan.start, spec.colspan.start
            if at in panels:
                return {}
            panels[at] = ax
    n_columns = max((column for _, column in panels), default=0) + 1
    fit = max(1, min(n_columns, int(1.25 * NARROW * n_columns / figure.get_figwidth())))
    # Where only the first panel of a row has a title, the row is one thing, otherwise the column.
    by_row = not any(_titles(ax) for (_, column), ax in panels.items() if column)
    rows: dict[tuple[int, int], int] = {}
    stacked = {}
    for row, column in sorted(panels, key=lambda at: (at[0] if by_row else at[1] // fit, *at)):
        number = rows.setdefault((row, column // fit), len(rows))
        ax = stacked[number, column % fit] = panels[row, column]
        first = panels.get((row, 0), ax)
        if column % fit == 0 and ax.get_shared_y_axes().joined(ax, first):
            ax.tick_params(labelleft=True)
            ax.yaxis.label.set_text(ax.get_ylabel() or first.get_ylabel())
    return stacked


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


class _Words(TextWrapper):
    """Breaks names after every hyphen, too."""

    wordsep_re = re.compile(r"( +|(?<=-))")


def _break(label: Text, inches: float) -> None:
    """Break a label into lines that are no longer than so many inches; "n = 5" is one word."""
    side = int(label.get_rotation() == 90)
    lines = label.get_text().replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}").split("\n")
    # No line has letters narrower than 0.4 of their size on average.
    longest = min(max(map(len, lines)), int(inches * 72 / 0.4 / float(label.get_fontsize())))
    for letters in range(longest, 7, -1):
        words = _Words(letters, break_long_words=False)
        label.set_text("\n".join(chain(*map(words.wrap, lines))))
        if Text.get_window_extent(label).size[side] <= inches * label.figure.dpi:
            return


def _break_ticks(ax: Axes, width: float) -> float:
    """Turn the labels of a crowded axis, break those at the left; return the height they need."""
    labels = ax.get_xticklabels() if isinstance(ax.xaxis.get_major_locator(), FixedLocator) else []
    needed = sum(Text.get_window_extent(label).width + 6 for label in labels) / ax.figure.dpi
    if needed > width - 0.4:
        ax.tick_params(axis="x", labelrotation=90)
    labels = ax.get_yticklabels()
    for label in labels:
        _break(label, 1.5)
    broken = [label.get_text() for label in labels]
    if "\n" not in "".join(broken):
        return 0
    ax.set_yticks(ax.get_yticks(), broken)
    n_lines = [(one + other).count("\n") / 2 + 1 for one, other in pairwise(broken)]
    gaps = np.diff(np.unique(ax.get_yticks())) / abs(np.subtract(*ax.get_ylim()))
    return (
        max(n_lines, default=0) * 1.3 * float(labels[0].get_fontsize()) / 72 / min(gaps, default=1)
    )


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Return the labels of a figure that overlap, as pairs."""
    figure.draw_without_rendering()
    labels = [*figure.texts]
    for legend in [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]:
        labels += legend.get_texts()
    for ax in figure.axes:
        labels += [*ax.texts, *_titles(ax), ax.xaxis.label, ax.yaxis.label]
        for number, axis in enumerate((ax.xaxis, ax.yaxis) if ax.axison else ()):
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_ticklabels()
            labels += [tick for tick in ticks if low <= tick.get_position()[number] <= high]
    boxes = []
    for label in labels:
        # The box of slanted text is larger than the text.
        if label.get_visible() and label.get_text().strip() and label.get_rotation() % 90 == 0:
            # the text without its arrow, and a pixel less on each side: lines of text may touch
            boxes.append((label.get_text(), Text.get_window_extent(label).padded(-1)))
    pairs = combinations(boxes, 2)
    return [(one[0], other[0]) for one, other in pairs if one[1].overlaps(other[1])]
