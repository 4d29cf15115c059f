"""The picture of the orders of an ARCH model: the probability of each, and how sure it is."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.report.figures import Size, inline_svg
from gumbelrace.report.page import LIGHT, Panel, Panels, chance

Floats = NDArray[np.float64]
SIZE = Size(440, 250)
CAPTION = (
    "The probability of each order, by the visits of the raced chains, with two standard errors to either "
    "side."
)


def orders_picture(orders: Sequence[Any], errors: Floats) -> Panels:
    """Draw the probability of each order, which has its logarithm, with its standard error."""
    best = max(orders, key=lambda one: one.log_probability)
    told = f"Order {best.order} has the highest probability, {chance(math.exp(best.log_probability))}."
    svg = inline_svg(lambda figure: draw(figure, orders, errors), told, SIZE)
    return Panels([Panel("", svg)], caption=CAPTION)


def draw(figure: Any, orders: Sequence[Any], errors: Floats) -> None:
    """Draw a bar for each order."""
    axes = figure.add_axes((0.13, 0.17, 0.85, 0.8))
    found = np.exp([one.log_probability for one in orders])
    bars = 2.0 * np.nan_to_num(errors, posinf=0.0)
    colours = [LIGHT["accent" if p == found.max() else "quiet"] for p in found]
    places, ends = range(len(orders)), np.clip([found - bars, found + bars], 0.0, 1.0)
    axes.bar(places, found, 0.7, color=colours)
    axes.vlines(places, *ends, color=LIGHT["ink"], linewidth=1.5)
    axes.set_xticks(places, [str(one.order) for one in orders])
    axes.set(ylim=(0.0, 1.0), xlabel="order q (lags)", ylabel="probability")
    axes.grid(False, axis="x")
