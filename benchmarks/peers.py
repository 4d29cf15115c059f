"""Ours beside what people would use instead: six jobs, the same work for everyone.

    python benchmarks/peers.py [--quick] [--only states regression ...] [--contenders ours ...]
        [--sizes candidates=40 ...] [--data MENTIONS] [--seconds 5] [--limit 300]
        [--results FILE [--show]] [--environments FOLDER]

Each contender runs in a process of its own, in an environment that is made with pip where there is none
(3 GB for MH-SS). Seconds are the processor's, one thread; set-up is what is done before the first draw,
compiling included, and rates are without it. "~" marks fewer than 100 effective draws. What it printed
on 2026-11-18 at full size, and where peers win and why, is in docs/benchmarks.md, "Peers".

states      Student-t regression, 100,000 rows, three coefficients of ten values each; a draw is a sweep
            over them. Ours is `gr.Gibbs` with a second-order control variate at the mode, and without one.
            NumPyro's DiscreteHMCGibbs also has an idle continuous parameter, without which it does not run;
            PyMC's CategoricalGibbsMetropolis proposes uniformly (its default) or proportionally, compiled
            by numba. "evaluations" are shares of those of an exact sweep; "law off" is the largest total
            variation of the law of one coefficient from enumeration, beside that of as many independent
            draws as the chain's are worth.
regression  logistic, 100,000 rows, 10 coefficients: the workers of `posteriors.py`, and SGLD of BlackJAX on
            batches of 1,000 rows with a control variate at the mode. All draw for --seconds.
graph       the Potts model of Poisson-Gibbs, every pair of 100 x 100 sites coupled; Poisson-Gibbs is
            written for this (λ = L², alias tables, compiled), and first compared with enumeration on four
            sites. Effective draws are those of the share of neighbours that are equal.
candidates  the best of 20 by right or wrong answers to 10,000 examples, 200 simulated runs of two settings.
            Successive halving is given 20% or 5% of the evaluations; the paired t-race drops whoever a
            t-test at 5% finds worse than the leader, after each row from the 20th, or the 500th, on.
            Seconds are what deciding takes, evaluations apart.
persons     inventors of PatentsView (--data; simulated without), held-out blocks of 100 to 500 mentions.
            Ours is what the command `coreference` does; Splink has the same columns, blocks and labels.
lags        the order of an ARCH model of 13,000 simulated returns, among 5, 10, ..., 30; true: 10. The
            package `arch` fits each order, and the smallest BIC wins.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import posteriors
from posteriors import COMMON, HERE, NOT_RUN, Runs, brief, interpreter
from shared import options, show

PACKAGES = posteriors.PACKAGES | {
    "splink": [*COMMON, "rapidfuzz", "splink"],
    "arch": [*COMMON, "arch"],
}
GIBBS = ("ours", "ours, no control variate", "exact Gibbs, numba", "NumPyro DiscreteHMCGibbs")
REGRESSION = ("numba", "NUTS, NumPyro", "NUTS, our law", "NUTS, nutpie", "HMCECS", "MH-SS", "SGLD")
GRAPHS = ("ours", "exact Gibbs, numba", "exact, zeros skipped", "exact, sums kept", "Poisson-Gibbs")
HALVING = ("successive halving, 20%", "successive halving, 5%")
CANDIDATES = ("ours, choose", "ours, best", *HALVING, "paired t-race", "paired t-race from row 500")
CHECK = "check"
# By job, the environment of each contender; those of regressions are in `posteriors`.
ENVIRONMENTS = {
    "states": dict.fromkeys((*GIBBS, "all states, once"), "jax")
    | dict.fromkeys(("PyMC CategoricalGibbs", "PyMC, proportional"), "pymc"),
    "graphs": dict.fromkeys((*GRAPHS, CHECK), "jax"),
    "candidates": dict.fromkeys(CANDIDATES, "jax"),
    "persons": dict.fromkeys(("ours", "Splink"), "splink"),
    "lags": {"ours, a chain": "jax", "ours, Laplace": "jax", "arch, BIC": "arch"},
}
# Of each section: all of it, and with --quick.
SIZES = {
    "states": (100_000, 5_000),
    "regression": (100_000, 5_000),
    "graph": (100, 20),
    "candidates": (200, 5),
    "persons": (500, 100),
    "lags": (13_000, 3_000),
}


class PeerRuns(Runs):
    """Runs the contenders of this file too, and remembers them in the same way."""

    packages = PACKAGES

    def _said(self, problem: str, contender: str, size: int | None, seconds: float) -> str:
        if problem not in ENVIRONMENTS:
            return super()._said(problem, contender, size, seconds)
        settings = {"size": size, "seconds": seconds}
        if problem == "persons":
            settings["data"] = self.arguments.data
        script = [HERE / "peers" / "worker.py", problem, contender]
        return self._call(ENVIRONMENTS[problem][contender], script, settings)

    def size(self, section: str) -> int:
        """Give how large a job is: rows, a side, runs, mentions of the largest block, returns."""
        return dict(self.arguments.sizes).get(section) or SIZES[section][self.arguments.quick]

    def asked(self, names: Iterable[str]) -> list[str]:
        chosen = self.arguments.contenders
        return [name for name in names if chosen is None or name in chosen]

    def table(
        self, job: str, size: int, title: str, header: str, line: Callable[[dict], list[str]]
    ) -> None:
        """Show a line of each contender of a job, or why it has none."""
        found = {name: self.of(job, name, size) for name in self.asked(ENVIRONMENTS[job]) if name != CHECK}
        width = header.count("|")
        rows = [
            [name, *(line(run) if "failed" not in run else [run["failed"], *[""] * (width - 1)])]
            for name, run in found.items()
            if run.get("failed") != NOT_RUN
        ]
        show(title, header, rows)


def states(runs: PeerRuns) -> None:
    def line(run: dict) -> list[str]:
        if "rate" not in run:
            return [brief(run["setup"]), "", f"{run['share']:.0%}", "0"]
        off, by_chance = run["off"]
        return [brief(run["setup"]), rate(run), f"{run['share']:.2%}", f"{off:.3f} ({by_chance:.3f})"]

    size = runs.size("states")
    title = f"states: three coefficients of ten values, N = {size:,}"
    runs.table(
        "states", size, title, "| set-up s | draws a second | evaluations | law off (by chance)", line
    )


def rate(run: dict) -> str:
    return ("~" if run["effective"] < 100 else "") + brief(run["rate"])


def regression(runs: PeerRuns) -> None:
    size = runs.size("regression")
    found = {name: runs.of("logistic_small", name, size) for name in runs.asked(REGRESSION)}
    first = next((run for run in found.values() if "failed" not in run), None)
    rows = [
        posteriors.line(name, run, first) for name, run in found.items() if run.get("failed") != NOT_RUN
    ]
    title = f"regression: logistic, N = {size:,}, d = 10 (in brackets the clock's seconds)"
    show(title, posteriors.HEADER, rows)


def graph(runs: PeerRuns) -> None:
    side = runs.size("graph")
    check = runs.of("graphs", CHECK, 10_000 if runs.arguments.quick else 100_000)
    if "failed" not in check:
        text = ", ".join(f"{name} {value:.3f}" for name, value in check.items() if name != "key")
        print(f"\nPoisson-Gibbs beside enumeration, total variation: {text}")

    def line(run: dict) -> list[str]:
        law = f"{run['equal']:.4f} ± {run['error']:.4f}"
        return [brief(run["setup"]), f"{run['milliseconds']:.2f}", brief(run["factors"]), rate(run), law]

    header = "| set-up s | ms a sweep | factors a site | draws a second | equal neighbours"
    runs.table("graphs", side, f"graph: Potts, {side} x {side}, q = 10, β = 4.6, γ = 1.5", header, line)


def candidates(runs: PeerRuns) -> None:
    count = runs.size("candidates")

    def line(run: dict) -> list[str]:
        settings = [value for name, value in run.items() if name != "key"]
        return [
            cell
            for one in settings
            for cell in (
                f"{one['share']:.1%}",
                f"{one['wrong'] / one['runs']:.1%}",
                f"{one['seconds']:.3f}",
            )
        ]

    header = "| .70-.80: evaluations | wrong | s | .80, rest to .78: evaluations | wrong | s"
    runs.table("candidates", count, f"candidates: best of 20, {count} runs", header, line)


def persons(runs: PeerRuns) -> None:
    most = runs.size("persons")

    def line(run: dict) -> list[str]:
        counts = (f"{run[name]:,}" for name in ("mentions", "blocks"))
        return [f"{run['f1']:.4f}", brief(run["setup"]), brief(run["seconds"]), *counts]

    header = "| B³ F1 | training s | held-out blocks s | mentions | blocks"
    runs.table("persons", most, f"persons: blocks of {most // 5} to {most} mentions", header, line)


def lags(runs: PeerRuns) -> None:
    size = runs.size("lags")

    def line(run: dict) -> list[str]:
        share = f"{run['share']:.1%}" if "share" in run else ""
        second = sorted(run["log_p"])[-2]
        return [str(run["order"]), f"{second:.1f}", brief(run["seconds"]), share]

    header = "| order | log p of the next | s | likelihoods of an exact chain"
    runs.table("lags", size, f"lags: ARCH, {size:,} returns", header, line)


SECTIONS: dict[str, Any] = {
    "states": states,
    "regression": regression,
    "graph": graph,
    "candidates": candidates,
    "persons": persons,
    "lags": lags,
}


def sized(text: str) -> tuple[str, int]:
    section, _, size = text.partition("=")
    if section not in SIZES or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not SECTION=SIZE; sections are {', '.join(SIZES)}")
    return section, int(size)


def main() -> None:
    parser = options(__doc__ or "", "small sizes")
    folder = Path(tempfile.gettempdir()) / "gumbelrace-posteriors"
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    known = sorted({*REGRESSION, *(name for job in ENVIRONMENTS.values() for name in job)})
    parser.add_argument("--contenders", nargs="+", choices=known, help="only these; default: all")
    parser.add_argument("--sizes", nargs="+", type=sized, default=[], help="SECTION=SIZE: other sizes")
    parser.add_argument("--data", type=Path, help="mentions, as `gumbelrace coreference` takes them")
    parser.add_argument("--seconds", type=float, default=5.0, help="to draw for, of the processor")
    parser.add_argument("--limit", type=int, default=300, help="seconds of the processor for each run")
    parser.add_argument("--results", type=Path, help="keep results there, and take what is there")
    parser.add_argument("--show", action="store_true", help="show what --results has, and run nothing")
    parser.add_argument("--environments", type=Path, default=folder, help="folder to find or make them in")
    parser.add_argument("--python", nargs="+", type=interpreter, default=[], help="ENVIRONMENT=INTERPRETER")
    parser.set_defaults(cold=False)
    runs = PeerRuns(parser.parse_args())
    for name in runs.arguments.only:
        SECTIONS[name](runs)


if __name__ == "__main__":
    main()
