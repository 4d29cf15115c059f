"""Posterior draws by this package beside what people use today, on the same simulated data.

    python benchmarks/posteriors.py [--quick] [--only rare ...] [--contenders numba HMCECS ...]
        [--seconds 5] [--limit 120] [--cold] [--results FILE [--show]] [--environments FOLDER]
    python benchmarks/posteriors.py --only reference [rare ...]

Each contender runs in a process of its own, in an environment that is made with pip where there is none.
Effective samples are those of the slowest coordinate, rates apart from set-up (compiling, mode, tuning);
seconds are the processor's, and in brackets the clock's, which other work on the machine stretches.
"1,000 draws" are seconds from the call to 1,000 effective draws, everything included but imports; ~ says
that fewer were drawn, and the rest is extrapolated. What numba has compiled of the package itself is taken
from its cache on disk, unless --cold. Errors of means are in standard deviations, the largest over all
coordinates, and those of standard deviations in percent, beside the first contender of the table: a run of
E effective draws is off by 2 to 3 / √E by chance.

Peers get what helps them: NUTS and HMCECS start at the mode and are tuned for 100 to 500 steps only.
"our law" is NUTS with the Laplace law as masses; HMCECS has them as well, 300 rows in 10 blocks and its
expansion at the mode; "all rows" are our proposals tested exactly by products of matrices; MH-SS is the
package PyMHSS, of order 2. ADVI is PyMC's, on batches of 1,000 rows, fitted for --seconds. SGLD is
BlackJAX's, on batches of 1,000 rows with gradients less those at the mode, from which it starts.

Effective samples a second of the processor, 2026-11-18. Ours and "all rows" were run side by side on two
cores, 4 s each, at a load of 3 (the first three columns) or 4 to 7; three runs of ours differ by a third
(by numba 28 to 33, 900 to 1,300 and 19 to 24 times all rows there). The other peers are from an
earlier run of that day on another machine, at a load of 1 to 6, in one thread, 2 to 20 s each and 60 draws
or more, whose "all rows" were 18,400, 431, 1,860, 3,460, 372, 574 and 47: the two agree to a third. ~ from
fewer than 200 effective draws, ? from fewer than 10, which tell no more than that the slowest coordinate
hardly moves; . not for this model:

                     logistic,  logistic,  logistic,  rare indi-  Student-t,    Poisson,      Poisson,
                       N = 3e4    N = 1e6     d = 50      cators     N = 1e6  100 groups  1,000 groups
    numba              454,000    479,000     38,700      16,200      34,600      29,200           476
    pymc                47,400     40,600     23,000      14,800      46,800      18,500           214
    jax                 75,600     58,700     14,000       3,440      71,200      11,100           221
    all rows            16,200        531      1,630       3,190         314         516            31
    NUTS, PyMC             ~64       ~1.7       ~2.1        ~4.8       ~0.45       ?0.36            ~2
    NUTS, nutpie           106       ~2.2        ~13        ~7.5        ~2.1       ?0.43            ~1
    NUTS, NumPyro          552       ~7.7        ~13         ~11       ?0.08       ?0.21         ?0.18
    NUTS, our law          619         ~7        ~14          64        ~6.1         ~15           ~15
    HMCECS               4,800      5,310        472         124       5,000         ~20          <0.2
    MH-SS                  705        952         93        ~3.8           .           .             .

Goals, on logistic regressions, by numba: 1,000 x NUTS as people run it: met (1,500 or more) but for 820 x
NumPyro's at N = 31,622; 100 x NUTS with our law: met (250 or more); 25 x HMCECS, 100 x with a million rows:
95, 90, 82, 130; 25 x all rows, 100 x with a million: 28, 900, 24 and, with rare indicators, 5.1: few rows
carry the residuals there, about 100 are read for a draw, twice as many as elsewhere; 100 x MH-SS: met (420
or more). Through PyMC and JAX all rows are beaten by less than was wanted: 2.9, 77, 14, 4.6 x and 4.7, 110,
8.6, 1.1 x. Elsewhere, beside all rows: Student-t 110 x (numba), 149 x (PyMC), 226 x (JAX), 100 groups 57,
36, 21 x, 1,000 groups 15, 7.0, 7.2 x; beside HMCECS: Student-t 6.9, 9.4, 14 x, 100 groups ~550 x or more.

With 1,000 groups HMCECS keeps 300 matrices of 1,005 x 1,005 numbers: in a trial apart, 72 s to expand, 9 s
and 11 GB for each of three steps, so that its 300 steps of tuning were not made; < and > are from these.
NumPyro's NUTS hardly moves in one coordinate of the Student-t regression after 100 steps of tuning; PyMC's
and nutpie's do after as many. Why was not looked into, and longer tuning was not tried.

ADVI, fitted for 5 s (7 to 17 s from the call), beside all rows: the largest error of a mean in standard
deviations, and of a standard deviation, in the order of the columns: 2.0, 6.7, 7.4, 2.0, 27, 9.5, 6.2 and
+21%, -37%, +77%, -81%, -49%, -96%, +101%. All rows are off by 0.2 and 14% themselves with 1,000 groups, by
0.1 and 7% or less elsewhere. One rate of learning (0.01) was tried, and fits have not settled: after 2 s
with a million rows means were off by 14, and after 3 s of Student-t by 15. Longer fits may do better.

Seconds of the processor to 1,000 effective draws, set-up included. From empty caches (--cold) through PyMC
with a million rows: 69, 63 of the clock (goal 60; the day before on another machine 55 and 51):

    numba                   10         22         20          18          79          16            48
    pymc                   7.8         24         13          15          33          29            83
    jax                     10         18         15          18          28          13            48
    all rows               6.6         13         11         8.6          56          10           ~43
    NUTS, PyMC             ~25       ~626       ~514        ~282      ~2,280      ~2,890          ~583
    NUTS, nutpie           ~20       ~505       ~107        ~180        ~526      ~2,360        ~1,020
    NUTS, NumPyro           11       ~182       ~117        ~129     ~12,700      ~4,910        ~5,550
    NUTS, our law           11       ~189       ~121         ~32        ~263         ~95          ~100
    HMCECS                  22         29         31         ~36          71        ~102        >8,000
    MH-SS                   11         22        ~50        ~278           .           .             .

Beside long runs of NUTS with our law, N = 20,000 (2026-11-18): largest difference of means in standard
errors (4 are allowed), of standard deviations (5%), and what chance alone gives once in a hundred
comparisons or more often; of 1,000 groups there are too few draws of ours to tell 5% from chance:

    posterior           by  means     sds  by chance  its draws  of NUTS
    logistic_small   numba    1.9    3.2%       3.6%    220,000    8,320  met
    logistic_small    pymc    2.0    3.1%       3.6%    230,000    8,320  met
    logistic_small     jax    2.1    3.4%       3.6%    229,000    8,320  met
    logistic_wide    numba    1.9    3.7%       4.9%     51,100    5,470  met
    logistic_wide     pymc    1.7    3.7%       4.9%     43,600    5,470  met
    logistic_wide      jax    2.5    3.8%       5.3%     11,400    5,470  met
    student          numba    2.3    2.8%       3.6%     54,300    9,430  met
    student           pymc    1.6    2.8%       3.5%    213,000    9,430  met
    student            jax    1.9    2.8%       3.6%     52,700    9,430  met
    groups_100       numba    2.9    2.9%       4.6%     10,700    8,740  met
    groups_100        pymc    2.3    2.7%       4.1%     12,200    8,740  met
    groups_100         jax    2.1    2.9%       5.0%      5,220    8,740  met
    rare             numba    2.5    2.2%       3.8%     40,200   23,100  met
    rare              pymc    2.7    2.3%       3.8%     40,100   23,100  met
    rare               jax    2.6    3.3%       4.4%     10,900   23,100  met
    groups_1000      numba    3.3    6.3%      10.9%      1,530   14,700  sds within chance
    groups_1000       pymc    3.0    6.5%      11.4%      1,460   14,700  sds within chance
    groups_1000        jax    3.4    6.4%       9.8%      1,600   14,700  sds within chance
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import NormalDist
from typing import Any

from shared import environment, last_line, options, show

HERE = Path(__file__).resolve().parent
# This package too, as results name its version; what runs is the source beside this file.
COMMON = ["numpy", "scipy", "numba", "arviz-stats", str(HERE.parent)]
PACKAGES = {"pymc": [*COMMON, "pymc", "nutpie"], "jax": [*COMMON, "jax", "numpyro"]}
PACKAGES["blackjax"] = [*COMMON, "jax", "blackjax"]
# One thread, as far as packages can be told.
QUIET = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",  # threads of JAX: two would wait for each other, which counts as work
    "PYTHONPATH": str(HERE.parent / "src"),
}

OURS = {"numba": "jax", "pymc": "pymc", "jax": "jax"}
PEERS = {
    "all rows": "jax",
    "NUTS, PyMC": "pymc",
    "NUTS, nutpie": "pymc",
    "NUTS, NumPyro": "jax",
    "NUTS, our law": "jax",
    "HMCECS": "jax",
    "MH-SS": "jax",
    "ADVI": "pymc",
    "SGLD": "blackjax",
}
BIASED = ("ADVI", "SGLD")  # so that effective draws a second say nothing
OF_LOGISTIC = ("MH-SS", "SGLD")  # which know no other likelihood here
CONTENDERS = OURS | PEERS  # and their environments
PROBLEMS = {
    "logistic_small": "logistic regression, N = 31,622, d = 10",
    "logistic_large": "logistic regression, N = 1,000,000, d = 10",
    "logistic_wide": "logistic regression, N = 100,000, d = 50",
    "rare": "logistic regression, rare indicator columns, N = 32,560, d = 72",
    "student": "Student-t regression, unknown scale and degrees of freedom, N = 1,000,000, d = 12",
    "groups_100": "Poisson regression, 100 group effects, unknown scale, N = 500,000, d = 105",
    "groups_1000": "Poisson regression, 1,000 group effects, unknown scale, N = 200,000, d = 1,005",
}
LOGISTIC = ("logistic_small", "logistic_large", "logistic_wide", "rare")
# How many times faster than a peer we want to be, on logistic regressions; with a million rows.
GOALS = {"NUTS, PyMC": 1000, "NUTS, nutpie": 1000, "NUTS, NumPyro": 1000, "NUTS, our law": 100}
GOALS |= {"HMCECS": 25, "all rows": 25, "MH-SS": 100}
GOALS_OF_MILLION = GOALS | {"HMCECS": 100, "all rows": 100}
WAIT = 60.0  # seconds to 1,000 draws from a million rows through PyMC

CLOCK = 6  # times the limit of the processor: the clock of a busy machine may need more
QUICK, REFERENCE = 5_000, 20_000  # rows
# Times --seconds that NUTS draws for, to compare with: longer where it is slow.
LONG, LONGER = 8, {"logistic_wide": 20, "rare": 40, "groups_1000": 60}
NOT_RUN = "not run"
HEADER = "contender | set-up | a second | rows a draw | 1,000 draws | mean off | sd off"


class Runs:
    """Runs contenders, and remembers in a file what they did."""

    packages = PACKAGES

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.pythons, self.done = arguments, dict(arguments.python), {}
        results = arguments.results
        self.laws = results.with_suffix(".laws") if results else Path(tempfile.mkdtemp())
        self.laws.mkdir(exist_ok=True)
        self.with_laws: set[tuple[str, int | None]] = set()
        if results and results.exists():
            lines = map(json.loads, results.read_text(encoding="utf-8").splitlines())
            self.done = {tuple(line["key"]): line for line in lines}

    def of(self, problem: str, contender: str, size: int | None = None, seconds: float = 0.0) -> dict:
        """Give what a contender did: {"failed": why} if it did not."""
        key = (problem, contender, size)
        if key not in self.done and self.arguments.show:
            return {"key": key, "failed": NOT_RUN}
        if key not in self.done:
            seconds = seconds or self.arguments.seconds
            self.done[key] = {"key": key, **self._run(problem, contender, size, seconds)}
            if self.arguments.results:
                with self.arguments.results.open("a", encoding="utf-8") as file:
                    print(json.dumps(self.done[key]), file=file)
        return self.done[key]

    def _run(self, problem: str, contender: str, size: int | None, seconds: float) -> dict:
        print(f"{problem}, {contender} ...", file=sys.stderr, flush=True)
        try:
            return json.loads(self._said(problem, contender, size, seconds).splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"failed": f"not in {CLOCK * self._limit(seconds)} s of the clock"}
        except subprocess.CalledProcessError as error:
            killed = error.returncode < 0
            why = f"not in {self._limit(seconds)} s" if killed else last_line(error)[:60]
            return {"failed": why, "said": error.stderr[-4000:]}

    def _limit(self, seconds: float) -> int:
        return self.arguments.limit + round(seconds)

    def _said(self, problem: str, contender: str, size: int | None, seconds: float) -> str:
        """Find Laplace's law first, if it is needed and not there; give what the contender prints."""
        settings = {"size": size, "seconds": seconds, "folder": self.laws}
        settings["environments"] = self.arguments.environments
        worker = HERE / "posteriors" / "worker.py"
        if contender in PEERS and (problem, size) not in self.with_laws:
            self._call("jax", [worker, problem, "law"], settings)
            self.with_laws.add((problem, size))
        return self._call(CONTENDERS[contender], [worker, problem, contender], settings)

    def _call(self, group: str, script: list[Any], settings: dict[str, Any]) -> str:
        """Run a script in an environment, in the time that is allowed."""
        command = [self.python(group), *script]
        limit = self._limit(settings["seconds"])
        for name, value in (settings | {"limit": limit}).items():
            command += [f"--{name}", str(value)] if value else []
        with tempfile.TemporaryDirectory() as empty:
            cold = {"NUMBA_CACHE_DIR": empty, "PYTENSOR_FLAGS": f"base_compiledir={empty}"}
            env = os.environ | QUIET | (cold if self.arguments.cold else {})
            options = {"capture_output": True, "text": True, "check": True, "env": env}
            return subprocess.run(command, timeout=CLOCK * limit, **options).stdout

    def python(self, group: str) -> Path:
        """Give the interpreter of an environment, made when it is first needed."""
        if group not in self.pythons:
            self.pythons[group] = environment(self.arguments.environments / group, self.packages[group])
        return self.pythons[group]


# ---- The table ----


def compare(runs: Runs, problem: str, contenders: list[str]) -> None:
    """Show the table of one posterior, and what the goals say."""
    size = QUICK if runs.arguments.quick else None
    asked = [name for name in contenders if problem in LOGISTIC or name not in OF_LOGISTIC]
    found = {name: runs.of(problem, name, size) for name in asked}
    good = {name: run for name, run in found.items() if "failed" not in run}
    first = next(iter(good.values()), None)
    rows = [line(name, run, first) for name, run in found.items() if run.get("failed") != NOT_RUN]
    show(PROBLEMS[problem] + (f" (N = {size:,} only)" if size else ""), HEADER, rows)
    ours, peers = ([name for name in good if name in group] for group in (OURS, PEERS))
    if ours and peers:
        header = " | ".join(["times as many a second as", *ours, "goal", ""])
        show("", header, [ratios(good, ours, peer, problem) for peer in peers if peer not in BIASED])
    if problem == "logistic_large" and "pymc" in good:
        cold = good["pymc"]["cold"][1]
        print(f"\n  1,000 draws through PyMC: {cold:.0f} s, goal {WAIT:.0f} s: {verdict(cold <= WAIT)}")


def line(name: str, run: dict, first: dict | None) -> list[str]:
    """A row under HEADER."""
    if "failed" in run:
        return [name, run["failed"], *[""] * 5]
    about = "~" if run["extrapolated"] else ""
    off = [abs(a - b) / sd for a, b, sd in zip(run["mean"], first["mean"], first["sd"], strict=True)]
    wide = [100.0 * abs(sd / of - 1.0) for sd, of in zip(run["sd"], first["sd"], strict=True)]
    errors = ["", ""] if run is first else [f"{max(off):.2f}", f"{max(wide):.0f}%"]
    rates = both(run["rate"]) if name not in BIASED else ""
    return [name, both(run["setup"]), rates, brief(run["rows"]), about + both(run["cold"]), *errors]


def both(pair: list[float]) -> str:
    """Give what the processor says, and the clock in brackets."""
    return f"{brief(pair[1])} ({brief(pair[0])})"


def brief(value: float) -> str:
    """Give a number with two digits or three."""
    digits = 1 if value < 10 else 0
    rounded = value if value < 100 else round(value, 2 - math.floor(math.log10(value)))
    return f"{rounded:,.{digits}f}"


def ratios(good: dict[str, dict], ours: list[str], peer: str, problem: str) -> list[str]:
    times = [good[name]["rate"][1] / good[peer]["rate"][1] for name in ours]
    goals = GOALS_OF_MILLION if problem == "logistic_large" else GOALS
    goal = goals[peer] if problem in LOGISTIC else None
    met = [name for name, ratio in zip(ours, times, strict=True) if goal and ratio >= goal]
    words = ["", ""] if goal is None else [f"{goal:,}", f"met by {', '.join(met)}" if met else "missed"]
    return [peer, *map(brief, times), *words]


def verdict(kept: bool) -> str:
    return "met" if kept else "missed"


# ---- Right answers ----


def reference(runs: Runs, problems: list[str]) -> None:
    """Compare means and standard deviations with long runs of NUTS on fewer rows."""
    size, rows = QUICK if runs.arguments.quick else REFERENCE, []
    for problem in problems:
        seconds = LONGER.get(problem, LONG) * runs.arguments.seconds
        long = runs.of(problem, "NUTS, our law", size, seconds)
        for name in (name for name in OURS if name in runs.arguments.contenders):
            rows.append([problem, name, *compared(runs.of(problem, name, size), long)])
    header = (
        "posterior | by | means off, standard errors | sds off | by chance | its draws | NUTS's draws | "
    )
    show(f"Beside long runs of NUTS, N = {size:,}: effective draws, and the largest errors", header, rows)


def compared(run: dict, long: dict) -> list[str]:
    if "failed" in run or "failed" in long:
        return [run.get("failed") or "NUTS: " + long["failed"], *[""] * 5]
    names = "mean", "sd", "sizes", "errors_of_sd"
    pairs = zip(*(run[name] for name in names), *(long[name] for name in names), strict=True)
    off, wide, unsure = map(max, zip(*(errors(*pair) for pair in pairs), strict=True))
    # The largest of so many coordinates that agree is beyond this once in a hundred comparisons.
    chance = unsure * NormalDist().inv_cdf(1.0 - 0.005 / len(run["mean"]))
    sizes = [brief(min(one["sizes"])) for one in (run, long)]
    sds = "met" if wide <= 0.05 else "sds within chance" if wide <= chance else "missed"
    return [f"{off:.1f}", f"{wide:.1%}", f"{chance:.1%}", *sizes, sds if off <= 4.0 else "missed"]


def errors(mean, sd, size, error, other_mean, other_sd, other_size, other_error) -> tuple[float, ...]:
    """Difference of means in standard errors; of sds as a share, and the standard error of that."""
    standard_error = math.hypot(sd / math.sqrt(size), other_sd / math.sqrt(other_size))
    unsure = math.hypot(error / sd, other_error / other_sd)
    return abs(mean - other_mean) / standard_error, abs(sd / other_sd - 1.0), unsure


def interpreter(text: str) -> tuple[str, Path]:
    group, _, path = text.partition("=")
    return group, Path(path)


def main() -> None:
    parser = options(__doc__ or "", f"{QUICK:,} rows of each posterior")
    known, folder = [*PROBLEMS, "reference"], Path(tempfile.gettempdir()) / "gumbelrace-posteriors"
    parser.add_argument("--only", nargs="+", choices=known, default=list(PROBLEMS))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--seconds", type=float, default=5.0, help="to draw for, of the processor")
    text = "seconds of the processor for each run, beside those to draw for"
    parser.add_argument("--limit", type=int, default=120, help=text)
    parser.add_argument("--cold", action="store_true", help="with empty caches of compiled code")
    parser.add_argument("--results", type=Path, help="keep results there, and take what is there")
    parser.add_argument("--show", action="store_true", help="show what --results has, and run nothing")
    parser.add_argument("--environments", type=Path, default=folder, help="folder to find or make them in")
    text = "use this interpreter: pymc=PATH or jax=PATH"
    parser.add_argument("--python", nargs="+", type=interpreter, default=[], help=text)
    runs = Runs(parser.parse_args())
    if not (runs.arguments.cold or runs.arguments.show):
        for name in OURS.keys() & runs.arguments.contenders:  # compiles the package, once for all runs
            runs._run("logistic_small", name, QUICK, 0.1)
    named = [name for name in runs.arguments.only if name != "reference"]
    if named != runs.arguments.only:
        # With fewer rows logistic_large is logistic_small.
        reference(runs, named or [name for name in PROBLEMS if name != "logistic_large"])
    else:
        for name in named:
            compare(runs, name, runs.arguments.contenders)


if __name__ == "__main__":
    main()
