"""Colours that can be told apart, also by those who do not see all of them."""

from itertools import combinations

import numpy as np
import pytest
from tests.report.sight import contrast, linear

from gumbelrace.report.page import DARK, LIGHT

SERIES = [f"series-{number}" for number in (1, 2, 3, 4)]

# What is seen of a colour without one kind of cone (Machado, Oliveira & Fernandes 2009, severity 1).
SIGHTS = {
    "all": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# From linear RGB to OKLab (Ottosson 2020).
CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def seen(colour, sight):
    """Give a colour in OKLab, as seen."""
    return LAB @ np.cbrt(CONES @ np.clip(np.asarray(SIGHTS[sight]) @ linear(colour), 0.0, 1.0))


def closest(colours, sight):
    return min(np.linalg.norm(seen(a, sight) - seen(b, sight)) for a, b in combinations(colours, 2))


schemes = pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])


@schemes
@pytest.mark.parametrize("sight", SIGHTS)
def test_methods_can_be_told_apart(scheme, sight):
    assert closest([scheme[name] for name in SERIES], sight) >= 0.09


def test_red_and_green_would_be_refused():
    """Negative control: a red and a green of the same lightness, apart for most, close for some."""
    assert closest(["#c05050", "#5f8f3f"], "all") > 0.09
    assert closest(["#c05050", "#5f8f3f"], "no green") < 0.09


@schemes
def test_steps_go_one_way(scheme):
    ground = scheme["paper"]
    contrasts = [contrast(scheme[f"step-{number}"], ground) for number in range(1, 7)]
    assert contrasts == sorted(contrasts)


@schemes
def test_lines_can_be_told_from_the_ground(scheme):
    """WCAG 2 asks a contrast of 3 of what is drawn, and of 4.5 of what is written."""
    drawn = [*SERIES, "step-1"]
    written = ["ink", "quiet", "accent", "good", "bad"]
    assert min(contrast(scheme[name], scheme["paper"]) for name in drawn) >= 3.0
    assert min(contrast(scheme[name], scheme[on]) for name in written for on in ("paper", "panel")) >= 4.5


def test_contrast_is_that_of_wcag():
    """Oracle: the standard's own for black on white, and 4.54 for the grey #767676 on white."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
