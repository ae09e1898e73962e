"""Figures: one style for all, and files that have the same bytes at every run."""

from __future__ import annotations

import html
import io
import re
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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
PNG_RESOLUTION = 144
"""Dots per inch of a PNG."""
_CLIP = re.compile(rb'<clipPath id="(p[0-9a-f]+)">')
_PLACES = re.compile(rb' (?:[xy]\d?|c[xy]|d|width|height|points|transform)="[^"]*"')
_DECIMALS = re.compile(rb"(\.\d\d)\d+")


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
        label = f'<svg role="img" aria-label="{html.escape(title)}" '
        return _steady(content.replace(b"<svg ", label.encode(), 1))
    # A command replaces a file with its own mark; a notebook contains its figures.
    return _with_palette(content, "" if name else "Equipoise") if kind == "png" else content


def _steady(svg: bytes) -> bytes:
    """Write places with two decimals, and name clip paths by their order.

    The last bit of a number, from which Matplotlib makes names, may differ from run to run.
    """
    for number, name in enumerate(_CLIP.findall(svg)):
        svg = svg.replace(name, b"clip%d" % number)
    return _PLACES.sub(lambda places: _DECIMALS.sub(rb"\1", places[0]), svg)


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
