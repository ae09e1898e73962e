"""Guards the colours of figures: seen on both grounds (WCAG 2.2, 1.4.11), told apart by all."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb

import equipoise_compendium
from equipoise_compendium.plots import COLOURS, GREY

Colours = npt.NDArray[np.float64]

STYLE = (Path(equipoise_compendium.__file__).parent / "site" / "templates" / "style.css").read_text(
    encoding="utf-8"
)
LIGHT, DARK = (np.array(to_rgb(ground)) for ground in re.findall(r"--paper: (#\w{6})", STYLE))
HALF_TURN = np.array(
    [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]]
)  # hue-rotate(180deg)
SEEN = {  # Machado, Oliveira and Fernandes 2009, IEEE TVCG 15(6), table 1, severity 1.0
    "all": np.eye(3),
    "no red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def linear(colours: Colours) -> Colours:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def contrast(colours: Colours, ground: Colours) -> Colours:
    lights = [
        linear(each) @ np.array([0.2126, 0.7152, 0.0722]) + 0.05 for each in (colours, ground)
    ]
    return np.asarray(np.maximum(*lights) / np.minimum(*lights))


def turned(colours: Colours) -> Colours:
    """Colours as the dark page shows them: inverted, hue turned back, laid over the ground."""
    assert " img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }" in STYLE
    return np.asarray(1 - (1 - np.clip((1 - colours) @ HALF_TURN.T, 0, 1)) * (1 - DARK))


def lab(colours: Colours) -> Colours:
    """CIE L*a*b* of linear colours, white D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    part = np.clip(colours, 0, 1) @ (xyz / xyz.sum(axis=1, keepdims=True)).T
    x, y, z = np.where(part > 216 / 24389, np.cbrt(part), (24389 / 27 * part + 16) / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest) -> tuple[Colours, Colours]:
    """The ground of a page, and the palette with the grey as they are shown on it."""
    palette = np.array([to_rgb(colour) for colour in (*COLOURS, GREY)])
    return (LIGHT, palette) if request.param == "light" else (DARK, turned(palette))


def test_the_formula_of_contrast_is_that_of_the_guidelines() -> None:
    assert contrast(np.zeros(3), np.ones(3)) == pytest.approx(21)
    assert contrast(np.array(to_rgb("#767676")), np.ones(3)) == pytest.approx(
        4.54, abs=0.005
    )  # W3C, failure F24


def test_marks_reach_three_to_one(page: tuple[Colours, Colours]) -> None:
    ground, palette = page
    assert contrast(palette, ground).min() >= 3


@pytest.mark.parametrize("seen", SEEN)
def test_colours_stay_apart(page: tuple[Colours, Colours], seen: str) -> None:
    shown = lab(linear(page[1][: len(COLOURS)]) @ SEEN[seen].T)
    nearest = min(float(np.linalg.norm(a - b)) for a, b in combinations(shown, 2))
    assert (
        nearest > 18
    )  # 2.3 is just seen (Mahy 1994); Okabe's and Ito's, with brown for yellow, came to 4
