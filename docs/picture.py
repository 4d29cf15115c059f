"""Draws docs/race.svg, the picture of the README: one race, and what it reads against an exact scan.

Run from anywhere: python docs/picture.py (needs matplotlib: pip install "gumbelrace[cli]").
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import gumbelrace as gr
from gumbelrace.models.synthetic import normalised

SIZE, ARMS, DELTA, FIRST = 100_000, 4, 0.05, 50
COLOURS = ["#0b6e99", "#e07a1f", "#3a9a5b", "#a23b72"]


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Rewards of the paper's kind, and one set of Gumbel variables."""
    rng = np.random.default_rng(3)
    log_p = np.log(np.array([0.4, 0.3, 0.2, 0.1]))
    rewards = normalised(rng.normal(size=(SIZE, ARMS)), log_p, 1e-4)
    return rewards, np.random.default_rng(2340).gumbel(size=ARMS)


def watch(axes: plt.Axes, rewards: np.ndarray, offset: np.ndarray) -> None:
    """One race of Algorithm 1: estimates and bounds of each arm until it is dropped."""
    rows = np.random.default_rng(5).permutation(SIZE)
    looks = FIRST * 2 ** np.arange(int(np.ceil(np.log2(SIZE / FIRST))))
    level = gr.b_normal(DELTA / (ARMS - 1), FIRST / SIZE)
    alive, tracks = list(range(ARMS)), {arm: [] for arm in range(ARMS)}
    for taken in looks:
        seen = rewards[rows[:taken]]
        value = seen.mean(axis=0) * SIZE + offset
        leader = max(alive, key=lambda arm: value[arm])
        spread = (seen - seen[:, [leader]]).std(axis=0) * SIZE
        margin = level * spread * np.sqrt((1 / taken) * (1 - (taken - 1) / (SIZE - 1)))
        for arm in alive:
            half = (
                margin[arm] if arm != leader else min(margin[other] for other in alive if other != leader)
            )
            tracks[arm].append((taken, value[arm] - value[leader], half))
        alive = [arm for arm in alive if arm == leader or value[leader] - value[arm] <= margin[arm]]
        if len(alive) == 1:
            break
    for arm, track in tracks.items():
        taken, gap, half = np.array(track).T
        shifted = taken * 1.06 ** (arm - 1.5)
        axes.errorbar(
            shifted, gap, half, fmt="-o", color=COLOURS[arm], markersize=4, linewidth=1.8, elinewidth=1
        )
        axes.annotate(
            f"state {arm} {'wins' if alive == [arm] else 'dropped'}",
            (shifted[-1], gap[-1]),
            textcoords="offset points",
            xytext=(9, 6 if alive == [arm] else -8),
            color=COLOURS[arm],
            fontsize=9,
            va="center",
        )
    axes.set(xscale="log", xlabel="rows read, of 100,000", ylabel="estimate, behind the leader")
    axes.set_xlim(40, max(t for track in tracks.values() for t, _, _ in track) * 5)
    axes.set_title("One draw is one race", loc="left", fontweight="bold")


def shares(axes: plt.Axes, rewards: np.ndarray) -> None:
    """Share of the rewards that each solver reads, over 1,000 draws."""
    population = gr.table(rewards)
    solvers = {
        "exact scan": gr.Exact(),
        "Race(Serfling)": gr.Race(gr.Serfling(), delta=DELTA),
        "Race(Normal)": gr.Race(gr.Normal(), delta=DELTA),
        "Betting": gr.Betting(delta=DELTA),
    }
    audits = {
        name: gr.audit(population, solver, draws=1000, rng=np.random.default_rng(0))
        for name, solver in solvers.items()
    }
    places = np.arange(len(audits))[::-1]
    axes.barh(places, [100 * a.fraction for a in audits.values()], color="#0b6e99", height=0.55)
    for place, report in zip(places, audits.values(), strict=True):
        ground = "exact" if report.promise.delta == 0 else "proved" if report.promise.proved else "assumed"
        text = f"{100 * report.fraction:.1f}%   {report.errors} errors in 1,000, {ground}"
        inside = report.fraction > 0.5
        axes.annotate(
            text,
            (100 * report.fraction, place),
            textcoords="offset points",
            xytext=(-6 if inside else 6, 0),
            ha="right" if inside else "left",
            va="center",
            fontsize=8.5,
            color="white" if inside else "#222",
        )
    axes.set_yticks(places, list(audits))
    axes.set(xlabel="rewards read, % of all", xlim=(0, 101))
    axes.set_title("Most of the rewards are never read", loc="left", fontweight="bold")


def main() -> None:
    """Draw both panels and write the picture beside this file."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 9.5, "svg.fonttype": "path"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.9), width_ratios=(1.15, 1))
    rewards, offset = problem()
    watch(left, rewards, offset)
    shares(right, rewards)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("race.svg"), metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
