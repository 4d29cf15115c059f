"""Draws the pictures of the README and the documentation: docs/*.svg, in light and dark colours.

Run from anywhere: python docs/pictures.py [race gumbel ...]; it needs matplotlib (the extra cli).
"""

import csv
import re
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

import gumbelrace as gr
from gumbelrace.applications.demo import DELTA, PROBABILITIES, example_race, example_rewards
from gumbelrace.models import logistic
from gumbelrace.report.demo import draw_race
from gumbelrace.report.figures import Size, log_axis, standalone_svg
from gumbelrace.report.page import DARK, LIGHT, count, power_of_ten

DRAWS = 1000
ACCENT, QUIET, BAD = LIGHT["accent"], LIGHT["quiet"], LIGHT["bad"]
SERIES = [LIGHT[f"series-{n}"] for n in (1, 2, 3, 4)]
DASHES: list[Any] = ["-", "--", ":", "-."]  # no line is told by its colour alone


def titled(figure: Any, titles: list[str], **margins: float) -> list[Any]:
    """Give axes side by side, each under its title."""
    panels = figure.subplots(1, len(titles), squeeze=False)[0]
    figure.subplots_adjust(
        **{"left": 0.07, "right": 0.985, "top": 0.88, "bottom": 0.15, "wspace": 0.28} | margins
    )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left", fontweight="bold", fontsize="large")
    return list(panels)


def race(figure: Any) -> None:
    """Draw one race to the left, what each method reads to the right."""
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.05))
    halves = [part.subfigures(2, 1, height_ratios=(0.09, 0.91)) for part in (left, right)]
    for (top, _), title in zip(
        halves, ("One draw is one race", "Most of the rewards are never read"), strict=True
    ):
        top.text(0.03, 0.3, title, fontweight="bold", fontsize="large")
    draw_race(halves[0][1], example_race())
    shares(halves[1][1].add_axes((0.03, 0.133, 0.95, 0.852)), example_rewards())


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
    axes.barh(places, [100 * report.fraction for report in audits], color=ACCENT, height=0.28)
    for place, name, report in zip(places, methods, audits, strict=True):
        axes.text(0, place + 0.22, name, fontweight="bold")
        axes.text(100, place + 0.22, told(report), ha="right")
    axes.set_yticks([])
    axes.set(xlabel="rewards read, % of all", xlim=(0, 101), ylim=(-0.4, len(audits) - 0.4))


def told(report: gr.Audit) -> str:
    """Tell what one method did."""
    ground = "exact" if report.promise.delta == 0 else "proved" if report.promise.proved else "assumed"
    return f"{report.fraction:.1%} read, {report.errors} errors in {report.draws:,}, {ground}"


def gumbel(figure: Any) -> None:
    """Draw the maximum of one draw, and how often each state is it."""
    one, many = titled(figure, ["One draw", "10,000 draws"])
    states, log_p = np.arange(len(PROBABILITIES)), np.log(PROBABILITIES)
    noise = np.random.default_rng(2).gumbel(size=(10_000, len(states)))
    won = np.argmax(log_p + noise, axis=1)
    one.hlines(log_p, states - 0.3, states + 0.3, QUIET, linewidth=3)
    for state, begin, move in zip(states, log_p, noise[0], strict=True):
        colour = ACCENT if state == won[0] else QUIET
        one.annotate(
            "", (state, begin + move), (state, begin), arrowprops={"arrowstyle": "-|>", "color": colour}
        )
        one.plot(state, begin + move, "o", color=colour, markersize=7)
    one.axhline((log_p + noise[0]).max(), color=ACCENT, linestyle=":")
    one.set(xlabel="state", ylabel="log p (bar), with noise (dot)", xticks=states)
    many.bar(states, np.bincount(won, minlength=len(states)) / len(won), 0.5, color=ACCENT)
    many.plot(states, PROBABILITIES, "_", color=BAD, markersize=44, markeredgewidth=2.5)
    many.set(xlabel="state", ylabel="share of wins (bar), p (line)", xticks=states)


def wealth(figure: Any) -> None:
    """Draw what bets against each arm have won while rows are read, by the algorithm of docs/betting.md."""
    (axes,) = titled(figure, [f"Wealth of the bets against four arms, δ = {DELTA}"], left=0.1, wspace=0.0)
    rng, block = np.random.default_rng(1), 32
    rewards = rng.uniform(size=(20_000, 4)) + np.array([0.0, 0.02, 0.06, 0.09])
    paths = wealths(rng.permutation(rewards), block)
    for arm, path in enumerate(paths.T):
        shown = path[: 1 + np.argmax(path >= 1 / DELTA)] if path[-1] >= 1 / DELTA else path
        rows = block * np.arange(1, len(shown) + 1)
        axes.plot(rows, shown, color=SERIES[arm], linestyle=DASHES[arm], linewidth=1.8)
        told = f"arm {arm} is out" if len(shown) < len(path) or shown[-1] > 1 else f"arm {arm}, the best"
        axes.annotate(told, (rows[-1], shown[-1]), (0, 6), textcoords="offset points", ha="right")
    axes.axhline(1 / DELTA, color=QUIET, linestyle="--")
    axes.text(block, 1.1 / DELTA, "1/δ", va="bottom")
    log_axis(axes.xaxis, count)
    log_axis(axes.yaxis, power_of_ten)
    axes.set(xlabel="rows read, of 20,000", ylabel="wealth", ylim=(0.2, 200))


def wealths(rewards: np.ndarray, block: int) -> np.ndarray:
    """Bet against every arm, block by block, until one is left."""
    size, arms = rewards.shape
    width, wealth, seen, paths = np.ptp(rewards), np.ones(arms), np.zeros((0, arms)), []
    for begin in range(0, size - block, block):
        fresh, order = rewards[begin : begin + block], np.argsort(seen.sum(axis=0))
        for arm in range(arms):
            rival = order[-1] if order[-1] != arm else order[-2]
            z, eta = seen[:, rival] - seen[:, arm], -(seen[:, rival] - seen[:, arm]).sum() / (size - begin)
            gain = max(z.mean() - eta, 0.0) if begin else 0.0
            bet = min(gain / (z.var() + gain**2), 0.95 / (eta + width)) if gain else 0.0
            wealth[arm] *= np.prod(1.0 + bet * (fresh[:, rival] - fresh[:, arm] - eta))
        seen = np.concatenate([seen, fresh])
        paths.append(wealth.copy())
        if np.sum(wealth >= 1 / DELTA) == arms - 1:
            break
    return np.array(paths)


def no_winner(figure: Any) -> None:
    """Draw why no winner is needed: penalty, absorption, thinning."""
    penalty, absorb, thin = titled(figure, ["Penalty", "Absorption", "Thinning"], left=0.06)
    ratios = np.linspace(-4, 3, 200)
    for v, colour, dash in zip((0.0, 0.5, 2.0), SERIES, DASHES, strict=False):
        penalty.plot(ratios, accepted(ratios, v), color=colour, linestyle=dash, label=f"v = {v:g}")
    penalty.set(xlabel="log ratio Λ", ylabel="chance to accept")
    penalty.legend(frameon=False, loc="upper left")
    absorbed(absorb)
    rings(thin)


def accepted(ratio: np.ndarray, v: float) -> np.ndarray:
    """Give the chance to accept with penalty v / 2 (docs/penalty.md)."""
    if v == 0.0:
        return np.minimum(1.0, np.exp(ratio))
    return ndtr((ratio - v / 2) / v**0.5) + np.exp(ratio) * ndtr((-ratio - v / 2) / v**0.5)


def absorbed(axes: Any) -> None:
    """Draw the density of a Gumbel variable, and of normal noise plus the library's correction."""
    table = files("gumbelrace.methods").joinpath("corrections.csv").read_text("utf-8").splitlines()
    lines = [
        line for line in csv.DictReader(table) if line["law"] == "gumbel" and line["deviation"] == "0.55"
    ]
    values, weights = (np.array([float(line[key]) for line in lines]) for key in ("value", "weight"))
    at, s = np.linspace(-3, 6, 300), 0.55
    parts = np.exp(-0.5 * ((at[:, None] - values) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    axes.plot(at, np.exp(-at - np.exp(-at)), color=QUIET, linewidth=6, alpha=0.45, label="Gumbel")
    axes.plot(at, parts @ (weights / weights.sum()), color=ACCENT, linestyle="--", label="normal + C")
    axes.plot(at, np.exp(-0.5 * (at / s) ** 2) * 0.36, color=SERIES[0], linestyle=":", label="normal part")
    axes.set(xlabel="noise", yticks=[])
    axes.legend(frameon=False)


def rings(axes: Any) -> None:
    """Draw rows with their bounds and losses, and the few that ring."""
    rng = np.random.default_rng(13)
    rows, bounds = np.arange(40), rng.gamma(2.0, 0.02, 40)
    losses, rang = bounds * rng.uniform(0.1, 0.7, 40), rng.poisson(bounds) > 0
    axes.bar(rows, bounds, 0.8, color=LIGHT["rule"], label="bound")
    axes.bar(rows, losses, 0.8, color=SERIES[1], label="loss")
    axes.plot(rows[rang], bounds[rang] + 0.006, "v", color=BAD, label="rings, is read")
    axes.set(xlabel="row", yticks=[], ylim=(0, 1.45 * bounds.max()))
    axes.legend(frameon=False, loc="upper left", ncols=3, columnspacing=0.9, handlelength=1.2)


def rows(figure: Any) -> None:
    """Draw the rows per step of a random walk, with and without an expansion, while N grows."""
    (axes,) = titled(figure, ["Rows read per step, logistic regression"], left=0.12, wspace=0.0)
    sizes = [1_000, 3_162, 10_000, 31_622, 100_000]
    found = np.array([rows_a_step(size) for size in sizes])
    names = ("without control variate", "with an expansion at the mode")
    for name, line, colour, dash, place in zip(
        names, found.T, (BAD, ACCENT), DASHES, (0.2, 1.5), strict=False
    ):
        axes.plot(sizes, line, "o", color=colour, linestyle=dash)
        axes.text(sizes[-1], place * line[-1], name, ha="right", color=colour)
    axes.plot(sizes, sizes, color=QUIET, linestyle=":")
    axes.text(sizes[1], 1.6 * sizes[1], "all rows", ha="right")
    log_axis(axes.xaxis, count)
    log_axis(axes.yaxis, count)
    axes.set(xlabel="rows in all, N", ylim=(10, 2e5))


def rows_a_step(size: int) -> list[float]:
    """Run a plain chain and one with an expansion."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, 2))
    y = (rng.random(size) < 1 / (1 + np.exp(-x @ [1.0, -0.5]))).astype(float)
    mode, _ = logistic.mode(x, y)
    plain = gr.likelihood(logistic.log_factor, (x, y), size=size)
    expanded = plain.minus(gr.parameter_taylor(logistic.terms, (x, y), size, mode))
    kernels = [gr.Metropolis(one, gr.kernels.RandomWalk(2.0 / np.sqrt(size))) for one in (plain, expanded)]
    traces = [gr.run(one, one.start(mode), steps=500, rng=1, check=0, progress=False) for one in kernels]
    return [trace.fraction * size for trace in traces]


def breaks(figure: Any) -> None:
    """Draw how often one of two tied arms is dropped, by what differs between them."""
    (axes,) = titled(figure, ["How often one of two tied arms is dropped, δ = 0.05"], left=0.2, wspace=0.0)
    rng = np.random.default_rng(0)
    outlier = np.zeros(5_000) + 0.01 * rng.normal(size=5_000)
    outlier[0] = 100.0
    kinds = {
        "normal": rng.normal(size=5_000),
        "lognormal(0, 2)": rng.lognormal(0, 2, 5_000),
        "one outlier": outlier,
    }
    methods = {"Race(Normal)": gr.Race(delta=0.05), "Betting": gr.Betting(delta=0.05)}
    for shift, (name, method), colour in zip((0.17, -0.17), methods.items(), (BAD, ACCENT), strict=True):
        found = [dropped(values - values.mean(), method) for values in kinds.values()]
        places = np.arange(len(kinds))[::-1] + shift
        axes.barh(places, found, 0.3, color=colour, label=name)
        for place, share in zip(places, found, strict=True):
            axes.text(share + 0.01, place, f"{share:.3f}", va="center")
    axes.axvline(0.05, color=QUIET, linestyle="--")
    axes.set_yticks(np.arange(len(kinds))[::-1], list(kinds))
    axes.set(xlabel="share of 2,000 races", xlim=(0, 1.08))
    axes.legend(frameon=False, loc="upper right")


def dropped(difference: np.ndarray, method: gr.Method) -> float:
    """Race `difference`, ahead by a hair, against an arm of zeros; give how often it was dropped."""
    population = gr.factors(
        lambda index, arms: np.where(arms == 0, difference[index, None] + 1e-12, 0.0),
        size=len(difference),
        arms=2,
        reward_range=([difference.min() - 1e-9, 0.0], [difference.max() + 1e-9, 0.0]),
    )
    rng = np.random.default_rng(1)
    return float(np.mean([method.best(population, np.zeros(2), rng).arm == 1 for _ in range(2_000)]))


PICTURES: dict[str, tuple[Callable[[Any], None], Size]] = {
    "race": (race, Size(880, 380)),
    "gumbel": (gumbel, Size(760, 300)),
    "wealth": (wealth, Size(640, 320)),
    "no_winner": (no_winner, Size(880, 300)),
    "rows": (rows, Size(640, 320)),
    "breaks": (breaks, Size(640, 280)),
}


def both_schemes(svg: str) -> str:
    """Add rules by which a dark screen has colours of its own; without them the picture is light."""
    used = [name for name, colour in LIGHT.items() if colour in svg]
    rules = [
        f'[style*="{part}: {LIGHT[name]}"] {{ {part}: {DARK[name]} !important }}'
        for name in used
        for part in ("fill", "stroke")
        if f"{part}: {LIGHT[name]}" in svg
    ]
    style = "<style>@media (prefers-color-scheme: dark) { " + " ".join(rules) + " }</style>"
    return re.sub(r"(<svg[^>]*>)", lambda root: root[1] + style, svg, count=1)


def main() -> None:
    """Write the pictures that are named, or all, beside this file."""
    for name in sys.argv[1:] or PICTURES:
        draw, size = PICTURES[name]
        svg = both_schemes(standalone_svg(draw, size))
        Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
