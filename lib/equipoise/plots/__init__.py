"""Figures: each function draws on matplotlib Axes and returns them; one style for all, labelled axes with units."""

from equipoise.plots.style import COLOURS, MARKERS, use_style

__all__ = ["COLOURS", "MARKERS", "use_style"]
