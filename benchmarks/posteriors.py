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

Peers get what helps them: NUTS and HMCECS start at the mode and are tuned for a few hundred steps only.
"our law" is NUTS with the Laplace law as masses; HMCECS has them as well, 300 rows in 10 blocks and its
expansion at the mode; "all rows" are our proposals tested exactly by products of matrices; MH-SS is the
package PyMHSS, of order 2. ADVI is PyMC's, on batches of 1,000 rows, fitted for --seconds.

Effective samples a second of the processor, 2026-11-17, two cores with six times as much other work, not
all of it run (-): a first look, good to a factor of two, and less where 14 to 200 draws were made (~):

                     logistic,  logistic,  logistic,  rare indi-  Student-t,  Poisson, 100
                      N = 3e4    N = 1e6     d = 50      cators     N = 1e6        groups
    numba             762,000  1,180,000     23,700       2,860      29,500         8,310
    pymc               64,700     54,300          -           -           -         6,210
    jax                70,200          -          -           -           -             -
    all rows           16,600        525      1,850       3,080           -             -
    NUTS, nutpie           88          -          -           -           -             -
    NUTS, NumPyro         408       ~5.6          -        ~3.5           -             -
    NUTS, our law         489       ~2.6          -         ~34           -             -
    HMCECS              3,640      3,520       ~131         ~37           -             -
    MH-SS                 682          -          -           -           -             -

Seconds of the processor to 1,000 effective draws with a million rows: 17 by numba, 20 through PyMC, 33 by
HMCECS, about 230 by NumPyro. With rare indicators few rows carry the residuals: 211 are read for a draw, in
blocks, and the test with all rows is as fast. 1,000 groups were not ready after 120 s by numba.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import environment, last_line, options, show

HERE = Path(__file__).resolve().parent
COMMON = ["numpy", "scipy", "numba", "arviz-stats"]
PACKAGES = {"pymc": [*COMMON, "pymc", "nutpie"], "jax": [*COMMON, "jax", "numpyro"]}
# One thread, as far as packages can be told.
QUIET = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
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
}
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
NOT_RUN = "not run"
HEADER = "contender | set-up | a second | rows a draw | 1,000 draws | mean off | sd off"


class Runs:
    """Runs contenders, and remembers in a file what they did."""

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
            if contender in PEERS and (problem, size) not in self.with_laws:
                self._call("jax", problem, "law", size, seconds)
                self.with_laws.add((problem, size))
            said = self._call(CONTENDERS[contender], problem, contender, size, seconds)
            return json.loads(said.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"failed": f"not in {CLOCK * self.arguments.limit} s of the clock"}
        except subprocess.CalledProcessError as error:
            killed = error.returncode < 0
            why = f"not in {self.arguments.limit} s" if killed else last_line(error)[:60]
            return {"failed": why, "said": error.stderr[-4000:]}

    def _call(self, group: str, problem: str, contender: str, size: int | None, seconds: float) -> str:
        command = [self.python(group), HERE / "posteriors" / "worker.py", problem, contender]
        settings = {"seconds": seconds, "limit": self.arguments.limit, "size": size, "folder": self.laws}
        settings["environments"] = self.arguments.environments
        for name, value in settings.items():
            command += [f"--{name}", str(value)] if value else []
        with tempfile.TemporaryDirectory() as empty:
            cold = {"NUMBA_CACHE_DIR": empty, "PYTENSOR_FLAGS": f"base_compiledir={empty}"}
            env = os.environ | QUIET | (cold if self.arguments.cold else {})
            options = {"capture_output": True, "text": True, "check": True, "env": env}
            return subprocess.run(command, timeout=CLOCK * self.arguments.limit, **options).stdout

    def python(self, group: str) -> Path:
        """Give the interpreter of an environment, made when it is first needed."""
        if group not in self.pythons:
            self.pythons[group] = environment(self.arguments.environments / group, PACKAGES[group])
        return self.pythons[group]


# ---- The table ----


def compare(runs: Runs, problem: str, contenders: list[str]) -> None:
    """Show the table of one posterior, and what the goals say."""
    size = QUICK if runs.arguments.quick else None
    asked = [name for name in contenders if name != "MH-SS" or problem in LOGISTIC]
    found = {name: runs.of(problem, name, size) for name in asked}
    good = {name: run for name, run in found.items() if "failed" not in run}
    first = next(iter(good.values()), None)
    rows = [line(name, run, first) for name, run in found.items() if run.get("failed") != NOT_RUN]
    show(PROBLEMS[problem] + (f" (N = {size:,} only)" if size else ""), HEADER, rows)
    ours, peers = ([name for name in good if name in group] for group in (OURS, PEERS))
    if ours and peers:
        header = " | ".join(["times as many a second as", *ours, "goal", ""])
        show("", header, [ratios(good, ours, peer, problem) for peer in peers if peer != "ADVI"])
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
    rates = both(run["rate"]) if name != "ADVI" else ""
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
        long = runs.of(problem, "NUTS, our law", size, 8 * runs.arguments.seconds)
        for name in (name for name in OURS if name in runs.arguments.contenders):
            rows.append([problem, name, *compared(runs.of(problem, name, size), long)])
    header = "posterior | by | means off, standard errors | sds off | its draws | NUTS's draws | "
    show(f"Beside long runs of NUTS, N = {size:,}: effective draws, and the largest errors", header, rows)


def compared(run: dict, long: dict) -> list[str]:
    if "failed" in run or "failed" in long:
        return [run.get("failed") or "NUTS: " + long["failed"], *[""] * 4]
    names = "mean", "sd", "sizes"
    pairs = zip(*(run[name] for name in names), *(long[name] for name in names), strict=True)
    off, wide = zip(*(errors(*pair) for pair in pairs), strict=True)
    sizes = [brief(min(one["sizes"])) for one in (run, long)]
    kept = verdict(max(off) <= 4.0 and max(wide) <= 0.05)
    return [f"{max(off):.1f}", f"{max(wide):.1%}", *sizes, kept]


def errors(mean, sd, size, other_mean, other_sd, other_size) -> tuple[float, float]:
    """Difference of means in standard errors, and of standard deviations as a share."""
    standard_error = math.hypot(sd / math.sqrt(size), other_sd / math.sqrt(other_size))
    return abs(mean - other_mean) / standard_error, abs(sd / other_sd - 1.0)


def interpreter(text: str) -> tuple[str, Path]:
    group, _, path = text.partition("=")
    return group, Path(path)


def main() -> None:
    parser = options(__doc__ or "", f"{QUICK:,} rows of each posterior")
    known, folder = [*PROBLEMS, "reference"], Path(tempfile.gettempdir()) / "gumbelrace-posteriors"
    parser.add_argument("--only", nargs="+", choices=known, default=list(PROBLEMS))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--seconds", type=float, default=5.0, help="to draw for, of the processor")
    parser.add_argument("--limit", type=int, default=120, help="seconds of the processor for each run")
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
