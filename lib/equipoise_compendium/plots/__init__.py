"""Figures: each function draws on matplotlib Axes and returns them; one style for all.

Axes are labelled with units, colours stay apart for colour-blind readers, and there is no more ink
than needed.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from equipoise_compendium.looks import COLOURS as COLOURS
from equipoise_compendium.looks import GREY as GREY
from equipoise_compendium.looks import NARROW_ENDING as NARROW_ENDING
from equipoise_compendium.looks import PNG_RESOLUTION
from equipoise_compendium.plots.narrow import narrow as narrow
from equipoise_compendium.words import plain

_CLIP = re.compile(rb'<clipPath id="(p[0-9a-f]+)">')

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def use_style(colours: Sequence[str] = ()) -> None:
    """Set the style of every figure that follows; ``colours`` in place of ours."""
    mpl.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.prop_cycle": cycler(color=colours or COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (8.0, 4.0),
            "font.size": 10,
            "grid.color": "#E3E3E3",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "svg.fonttype": "path",
        }
    )


def rendered(figure: Figure, kind: str, title: str, name: str = "") -> bytes:
    """A figure as the bytes of a file, svg, png or pdf, the same at every run.

    ``title`` is read out of an SVG to those who cannot see it, ``name`` makes its ids.
    """
    title = plain(title)
    # Dates and versions would make other bytes at every run; None leaves them out.
    metadata: dict[str, Any] = {"CreationDate": None}
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
        content = _with_stable_clips(content.replace(b"<svg ", label.encode(), 1))
    elif kind == "png":
        content = _with_palette(content)
    return content


def _with_stable_clips(svg: bytes) -> bytes:
    """An SVG whose clip paths are named by its content and their order.

    Matplotlib names them by unrounded numbers, whose last bit may differ from run to run.
    """
    names: list[bytes] = _CLIP.findall(svg)
    if not names:
        return svg
    either_name = re.compile(b"|".join(names))
    nameless = either_name.sub(b"", svg)
    stable: dict[bytes, bytes] = {}
    for number, name in enumerate(names):
        digest = hashlib.sha256(b"%d %s" % (number, nameless)).hexdigest()
        stable[name] = f"p{digest[:10]}".encode()
    return either_name.sub(lambda found: stable[found.group()], svg)


def _with_palette(png: bytes) -> bytes:
    """A PNG with 256 colours at most, a third as large; notebooks hold it beside the SVG."""
    drawing = Image.open(io.BytesIO(png)).convert("RGB")
    palette_drawing = drawing.quantize(256, dither=Image.Dither.NONE)
    file = io.BytesIO()
    palette_drawing.save(file, "PNG", optimize=True, dpi=(PNG_RESOLUTION, PNG_RESOLUTION))
    return file.getvalue()


def look(number: int) -> dict[str, Any]:
    """Colour and marker of the series of this number, from 0."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def literal(text: object) -> str:
    """Text that is data: a dollar sign begins no formula, and nothing hidden is obeyed."""
    return plain(text).replace("$", r"\$")


def note(
    ax: Axes, text: str, point: tuple[Any, Any], shift: tuple[float, float], **style: Any
) -> None:
    """Write beside a point, shifted from it by so many printer's points."""
    ax.annotate(text, point, xytext=shift, textcoords="offset points", **style)
