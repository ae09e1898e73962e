"""What figures and pages have in common, for code that draws nothing and needs no matplotlib."""

from __future__ import annotations

COLOURS = ("#0072B2", "#A24400", "#338055", "#C377AA", "#C38811", "#4C80FF", "#441A00", "#3C444C")
"""Categories, in the order they are used.

Each has a contrast of 3 to 1 on the light and on the dark page, and stays apart from the others for
those who do not see red or green apart.
"""

GREY = "#8A8A8A"
"""What is beside the point but must be seen."""

NARROW_ENDING = ".narrow.svg"
"""End of the file of a figure for a phone, beside the one for a desk."""

PNG_RESOLUTION = 144
"""Dots to the inch of a PNG."""

PAGE_RESOLUTION = 96
"""Pixels to the inch of a page."""
