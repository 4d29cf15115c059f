"""Draws of one of D states: rewards read and time a draw, by Absorb, Betting and Race(Normal).

tables     rewards in memory, N = 100,000 (and 1,000,000), σ from 1e-5 to 1e-2: mean and median of the share
           read, and processor time. Goal: D = 10, σ = 1e-4, at most 0.25 of what Betting reads.
growth     rewards that are computed, N = 1e6 to 1e8, σ = 10 / N, such that the error of a sum estimated
           from T rows does not depend on N. Goal: the mean draw grows less than twofold.
laws       total variation from the exact law on twenty kinds of rewards, with and without a known range,
           beside that of as many exact draws, and what the draws themselves report.

python benchmarks/draws.py [--quick] [--only tables growth laws]

Two busy cores, 2026-11-17, the whole run (15 to 22 minutes); mean (median) read and processor time, in
microseconds; Absorb(error=0.001), the others at δ = 0.05. At σ = 1e-3 and above all read nearly everything.

  tables            Absorb                   Betting                  Race(Normal)
  N = 1e5
  D=2,   σ=1e-5     0.117% (0.116%)    3     0.48% (0.03%)      2     0.21% (0.05%)      2
  D=2,   σ=1e-4     0.64%  (0.62%)     5     6.0%  (0.38%)      5     4.7%  (0.20%)      3
  D=10,  σ=1e-5     0.106% (0.106%)    8     0.70% (0.04%)      5     0.94% (0.05%)      4
  D=10,  σ=1e-4     0.89%  (0.89%)    37     7.3%  (1.1%)      28     8.9%  (1.3%)      21
  D=100, σ=1e-5     0.096% (0.099%)  119     0.10% (0.03%)     22     0.17% (0.05%)     23
  D=100, σ=1e-4     1.40%  (1.46%)   800     1.16% (0.32%)    132     1.75% (0.48%)    128
  N = 1e6
  D=2,   σ=1e-5     0.070% (0.070%)    6     3.8%  (0.06%)     23     3.1%  (0.08%)     17
  D=2,   σ=1e-4     1.7%   (1.7%)     60     36%   (6.4%)     164     35%   (5.1%)     171
  D=10,  σ=1e-5     0.094% (0.094%)   27     2.1%  (0.11%)     93     2.8%  (0.16%)    113
  D=10,  σ=1e-4     4.5%   (4.5%)    905     34%   (24%)    1,423     37%   (32%)    1,432
  growth, D = 10
  N = 1e6           0.093%            51     1.8%             664     2.3%           1,043
  N = 1e7           0.009%            47     0.54%          2,332     0.58%          2,334
  N = 1e8           0.001%            44     0.07%          2,669     0.10%          3,706

Of 320 laws, 315 are within the error and what counts make of it (1,000 to 40,000 draws: D = 10 and 100
show no less than 0.01 and 0.1). With a known range all are. Five without one, of which a row or a few
carry much, are off, and say so: "outlier", N = 1,000, TV 0.04 to 0.05, reported 0.07; N = 1e5, D = 3, TV
0.012, reported 0.010; "few rows", D = 2, N = 1,000, TV 0.014, reported 0.03.
"""

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from shared import judged, run_sections, show

import gumbelrace as gr

METHODS = {"Absorb": gr.Absorb(), "Betting": gr.Betting(), "Race(Normal)": gr.Race()}
COLUMNS = "D | N | sigma | method | mean read | median read | us a draw"


@numba.njit
def scattered(n: int, arm: int, sigma: float) -> float:
    """Give a reward that looks random: uniform of the given standard deviation, from mixed bits."""
    x = np.uint64(n * 64 + arm + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return sigma * 3.4641016151377544 * ((x >> np.uint64(11)) * 2.0**-53 - 0.5)


def measured(population: Any, method: gr.Method, prior: np.ndarray, draws: int) -> tuple[np.ndarray, float]:
    """Give the rewards that each draw read, and the processor time of one in microseconds."""
    gr.sample(population, prior, size=2, method=method, rng=0, check=False)  # compiles
    started = time.process_time()
    found = gr.sample(population, prior, size=draws, method=method, rng=1, check=False)
    return found.evaluations, (time.process_time() - started) / draws * 1e6


def lines(population: Any, sigma: float, prior: np.ndarray, draws: int) -> tuple[list[list[str]], dict]:
    """Give a line for each method, and the mean share that each has read."""
    rows, shares = [], {}
    for name, method in METHODS.items():
        read, microseconds = measured(population, method, prior, draws)
        share = read / population.rewards
        shares[name] = float(share.mean())
        figures = [f"{share.mean():.3%}", f"{np.median(share):.3%}", f"{microseconds:.1f}"]
        rows.append([str(population.arms), f"{population.size:.0e}", f"{sigma:g}", name, *figures])
    return rows, shares


def tables(quick: bool) -> None:
    """Rewards in memory."""
    rng, rows, goals = np.random.default_rng(0), [], []
    for arms in (2, 10) if quick else (2, 10, 100):
        for size in (100_000,) if quick or arms == 100 else (100_000, 1_000_000):
            rewards = rng.normal(size=(size, arms))
            rewards -= rewards.mean(0)
            prior = np.log(rng.dirichlet(np.ones(arms)))
            for sigma in (1e-5, 1e-4) if quick else (1e-5, 1e-4, 1e-3, 1e-2):
                found, shares = lines(gr.table(sigma * rewards), sigma, prior, 300 if quick else 1_000)
                rows += found
                if (arms, size, sigma) == (10, 100_000, 1e-4):
                    goals.append(
                        ["reads over Betting's", *judged(shares["Absorb"] / shares["Betting"], 0.25)]
                    )
    show("Tables", COLUMNS, rows)
    show("Goal", "what | found | goal |", goals)


def growth(quick: bool) -> None:
    """Rewards that are computed."""
    rows, means, prior = [], [], np.zeros(10)
    for size in (10**6, 10**7) if quick else (10**6, 10**7, 10**8):
        sigma = 10.0 / size
        half = sigma * np.sqrt(3.0)
        population = gr.compiled(scattered, (sigma,), size, 10, reward_range=(-half, half))
        found, shares = lines(population, sigma, prior, 100)
        rows += found
        means.append(shares["Absorb"] * size)
    show("Growth with the number of rows", COLUMNS, rows)
    show("Goal", "what | found | goal |", [["largest over 1e6", *judged(means[-1] / means[0], 2.0)]])


def with_impossible(rewards: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Rule the second arm out, by some of its rows."""
    rewards[:, 1] = np.where(rng.uniform(size=len(rewards)) < share, -np.inf, rewards[:, 1])
    return rewards


KINDS: dict[str, Callable[[tuple[int, int], np.random.Generator], np.ndarray]] = {
    "normal": lambda shape, rng: rng.normal(size=shape),
    "uniform": lambda shape, rng: rng.uniform(size=shape),
    "exponential": lambda shape, rng: rng.exponential(size=shape),
    "one skewed": lambda shape, rng: rng.normal(size=shape) + first(shape) * rng.exponential(size=shape),
    "lognormal(0, 1)": lambda shape, rng: rng.lognormal(0.0, 1.0, size=shape),
    "lognormal(0, 2)": lambda shape, rng: rng.lognormal(0.0, 2.0, size=shape),
    "left-skewed": lambda shape, rng: -rng.lognormal(0.0, 1.5, size=shape),
    "Student t, 3": lambda shape, rng: rng.standard_t(3, size=shape),
    "Pareto 2.5": lambda shape, rng: rng.pareto(2.5, size=shape),
    "two-point": lambda shape, rng: (rng.uniform(size=shape) < 0.3) * 1.0,
    "rare": lambda shape, rng: (rng.uniform(size=shape) < 0.01) * 1.0,
    "sparse": lambda shape, rng: rng.normal(size=shape) * (rng.uniform(size=shape) < 0.02),
    "few rows": lambda shape, rng: rng.normal(size=shape) + 50.0 * first(shape) * rows(shape, 1e-3),
    "outlier": lambda shape, rng: rng.normal(size=shape) + 1e3 * first(shape) * rows(shape, 0.0),
    "bimodal": lambda shape, rng: rng.normal(size=shape) + 8.0 * (rng.uniform(size=shape) < 0.5),
    "unequal scales": lambda shape, rng: rng.normal(size=shape) * 10.0 ** -(np.arange(shape[1]) % 4),
    "correlated": lambda shape, rng: 20.0 * rng.normal(size=(shape[0], 1)) + rng.normal(size=shape),
    "identical": lambda shape, rng: np.repeat(rng.normal(size=(shape[0], 1)), shape[1], axis=1),
    "-inf": lambda shape, rng: with_impossible(rng.normal(size=shape), 0.01, rng),
    "constant": lambda shape, rng: np.ones(shape),
}


def first(shape: tuple[int, int]) -> np.ndarray:
    """Mark the first arm."""
    return np.arange(shape[1]) == 0


def rows(shape: tuple[int, int], share: float) -> np.ndarray:
    """Mark every so many-th row, or the eighth alone."""
    numbers = np.arange(shape[0])[:, None]
    return numbers % round(1.0 / share) == 0 if share > 0.0 else numbers == 7


def rewards_of(kind: str, size: int, arms: int, rng: np.random.Generator) -> np.ndarray:
    """Make rewards of a kind, such that sums of all of them are about as far apart as noise."""
    found = KINDS[kind]((size, arms), rng)
    possible = np.isfinite(found)
    spread = np.max(np.std(found, axis=0, where=possible), initial=1e-12)
    return (found - np.mean(found, axis=0, where=possible)) / spread * (10.0 / size)


@numba.njit
def entry(n: int, arm: int, rewards: np.ndarray) -> float:
    """Give a reward of a table of which nothing is known beforehand."""
    return rewards[n, arm]


def law_line(kind: str, size: int, arms: int, knows_range: bool, reads: float) -> list[str]:
    """Compare the law of draws with the exact one, and with as many exact draws."""
    rng = np.random.default_rng([size, arms, list(KINDS).index(kind), knows_range])
    x, prior = rewards_of(kind, size, arms, rng), np.log(rng.dirichlet(np.full(arms, 2.0)))
    declared = np.flatnonzero(np.isinf(x).any(1)) if np.isinf(x).any() else None
    population = gr.table(x) if knows_range else gr.compiled(entry, (x,), size, arms, impossible=declared)
    trial = gr.sample(population, prior, size=50, method=gr.Absorb(), rng=rng, check=False)
    draws = int(np.clip(reads / max(trial.evaluations.mean(), 1.0), 1_000, 40_000))
    found = gr.sample(population, prior, size=draws, method=gr.Absorb(), rng=rng, check=False)
    p = np.exp(prior + x.sum(0) - np.max(prior + x.sum(0)))
    p /= p.sum()
    off = variation(np.bincount(found.arms, minlength=arms), p)
    noise = variation(rng.multinomial(draws, p, size=1_000), p)
    within, said = off <= gr.Absorb().error + np.quantile(noise, 0.999), found.law_error > gr.Absorb().error
    verdict = (
        ("within, said to be off" if said else "within") if within else ("off, said" if said else "OFF")
    )
    figures = [f"{found.fraction:.2%}", str(draws), f"{off:.4f}", f"{noise.mean():.4f}"]
    figures += [f"{np.quantile(noise, 0.999):.4f}", f"{found.law_error:.1e}", verdict]
    return [kind, "known" if knows_range else "unknown", str(arms), f"{size:.0e}", *figures]


def variation(counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Give the total variation of frequencies from a law."""
    return 0.5 * np.abs(counts / counts.sum(-1, keepdims=True) - p).sum(-1)


def laws(quick: bool) -> None:
    """Total variation from the exact law."""
    header = (
        "kind | range | D | N | read | draws | TV | of exact draws | at most, 99.9% | reported | verdict"
    )
    for size in (1_000,) if quick else (1_000, 100_000):
        for arms in (2, 10) if quick else (2, 3, 10, 100):
            reads = 3e6 if quick else 2e7
            found = [law_line(kind, size, arms, known, reads) for kind in KINDS for known in (True, False)]
            show(f"Laws, D = {arms}, N = {size:,}", header, found)


if __name__ == "__main__":
    run_sections(__doc__ or "", {"tables": tables, "growth": growth, "laws": laws})
