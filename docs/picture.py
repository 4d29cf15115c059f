"""Draws docs/race.svg, the picture of the README: one race, and what it reads against an exact scan.

Run from anywhere: python docs/picture.py (needs matplotlib: pip install "gumbelrace[cli]").
"""

from pathlib import Path
from typing import Any

import numpy as np

import gumbelrace as gr
from gumbelrace.applications.demo import DELTA, example_race, example_rewards
from gumbelrace.report.demo import draw_race
from gumbelrace.report.figures import Size, standalone_svg
from gumbelrace.report.page import LIGHT

SIZE = Size(880, 380)
DRAWS = 1000


def shares(axes: Any, rewards: np.ndarray) -> None:
    """Draw the share of the rewards that each method reads, over many draws."""
    population = gr.table(rewards)
    methods = {
        "exact scan": gr.Exact(),
        "Race(Serfling)": gr.Race(gr.methods.Serfling(), delta=DELTA),
        "Race(Normal)": gr.Race(gr.methods.Normal(), delta=DELTA),
        "Betting": gr.Betting(delta=DELTA),
    }
    audits = [
        gr.audit(population, method, draws=DRAWS, rng=np.random.default_rng(0))
        for method in methods.values()
    ]
    places = np.arange(len(audits))[::-1]
    axes.barh(places, [100 * report.fraction for report in audits], color=LIGHT["accent"], height=0.28)
    for place, name, report in zip(places, methods, audits, strict=True):
        axes.text(0, place + 0.22, name, fontweight="bold")
        axes.text(100, place + 0.22, told(report), ha="right")
    axes.set_yticks([])
    axes.set(xlabel="rewards read, % of all", xlim=(0, 101), ylim=(-0.4, len(audits) - 0.4))


def told(report: gr.Audit) -> str:
    """Tell what one method did."""
    ground = "exact" if report.promise.delta == 0 else "proved" if report.promise.proved else "assumed"
    return f"{report.fraction:.1%} read, {report.errors} errors in {report.draws:,}, {ground}"


def draw(figure: Any) -> None:
    """Draw the race to the left, the shares to the right."""
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.05))
    race, read = (
        left.subfigures(2, 1, height_ratios=(0.09, 0.91)),
        right.subfigures(2, 1, height_ratios=(0.09, 0.91)),
    )
    for part, title in ((race[0], "One draw is one race"), (read[0], "Most of the rewards are never read")):
        part.text(0.03, 0.3, title, fontweight="bold", fontsize="large")
    draw_race(race[1], example_race())
    shares(read[1].add_axes((0.03, 0.133, 0.95, 0.852)), example_rewards())


def main() -> None:
    """Write the picture beside this file."""
    Path(__file__).with_name("race.svg").write_text(standalone_svg(draw, SIZE), encoding="utf-8")


if __name__ == "__main__":
    main()
