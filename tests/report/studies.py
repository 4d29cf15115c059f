"""A study and a demo with made-up numbers, for pages to show."""

from itertools import product

from gumbelrace.applications.demo import Row, Standing, WatchedRace
from gumbelrace.methods.base import Outcome, Promise
from gumbelrace.paper.claims import Claim
from gumbelrace.paper.synthetic_study import BoundPoint, Broken, Level, Record, SyntheticStudy
from gumbelrace.report.choosing import Chosen, Lane

DELTAS = (0.001, 0.003, 0.01, 0.03, 0.1)
SHAPES = ("normal", "uniform", "lognormal")
SCALES = (0.1, 1e-4, 1e-5)
METHODS = (
    "lil'UCB",
    "Racing-EBS",
    "Racing-EBS, marginal",
    "Racing-Normal",
    "Racing-Normal, marginal",
    "Betting",
)
DRAWS = 10_000


def record(arms, shape, scale, method, delta):
    """Make up a record: only Racing-Normal and Betting err, and what is read falls with σ and δ."""
    errors = {"Racing-Normal": 0.7, "Betting": 0.1}.get(method, 0.0) * delta * DRAWS
    read = min(1.0, 30 * scale**0.5 * (0.1 + METHODS.index(method)) / 5 * delta**-0.05)
    seconds = 1e-6 * (2 + 1000 * read)
    return Record(arms, shape, scale, method, delta, DRAWS, round(errors), read, seconds, 4e-4)


def records():
    return [record(*setting) for setting in product((2, 10, 100), SHAPES, SCALES, METHODS, DELTAS)]


def race():
    """Make up a race of three arms: arm 0 out at the first look, arm 2 at the second."""
    standings = (
        Standing(0, 50, 0, -9.0, -12.0, -6.0, False),
        Standing(0, 50, 1, 0.0, 0.0, 0.0, True),
        Standing(0, 50, 2, -1.0, -4.0, 2.0, True),
        Standing(1, 100, 1, 0.0, 0.0, 0.0, True),
        Standing(1, 100, 2, -3.0, -5.0, -1.0, False),
    )
    return WatchedRace(1000, 3, 0.05, standings, Outcome(1, 250, 2, False))


def study():
    broken = [
        Broken(case, method, delta, DRAWS, errors, 0.1)
        for case in ("skewed difference", "one outlier")
        for method, errors in (("Racing-Normal", 4000), ("Betting", 0))
        for delta in DELTAS
    ]
    bounds = [
        BoundPoint(method, rows, 3 / rows**0.5)
        for method in ("lil'UCB", "Racing-EBS", "Racing-Normal", "Betting")
        for rows in (10, 100, 1000, 10_000)
    ]
    levels = [
        Level(delta, fraction, 4.0 - delta, 4.0 - delta, 4.1 - delta)
        for delta in (1e-6, 1e-3, 0.49)
        for fraction in (5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
    ]
    return SyntheticStudy(
        facts={"Rows, N": "100,000", "Seed": "1"},
        notes=["Races go on to their end."],
        probabilities=[0.1] * 10,
        records=records(),
        claims=[
            Claim("It <never> fails.", "It did.", False, "An outlier."),
            Claim("It is fast.", "It is.", True),
            Claim("It is robust.", "Perhaps.", None, "Too few draws."),
        ],
        broken=broken,
        bounds=bounds,
        levels=levels,
        race=race(),
        files={"records & more.csv": "a line for each `method`"},
    )


def rows():
    return [
        Row("exact scan", 1.0, 0, 200, 6e-4, 1.0, Promise(0.0)),
        Row("Race(Normal())", 0.0207, 3, 2000, 7.01e-5, 8.5, Promise(0.05, "normal means")),
        Row("Betting()", 0.0152, 1, 2000, 6.1e-5, 9.9, Promise(0.05)),
    ]


def lane(name, state, out_at=-1, rows=(1, 10, 40, 100)):
    """Make up a candidate: its interval shrinks around 0.7."""
    seen = [n for n in rows if out_at < 0 or n <= out_at]
    ends = [[0.7 + side * 0.6 / n**0.5 for n in seen] for side in (0, -1, 1)]
    last = [values[-1] if values else float("nan") for values in ends]
    made = seen[-1] if seen else 0
    return Lane(name, state, *last, made, 1, 0.02 * made, 3.0, out_at, seen, *ends)


def chosen(*lanes, failures=(("B", 7, "TimeoutError: no answer"),)):
    statement = "A is the best (error at most 0.05, proved). 120 of 300 evaluations."
    lanes = lanes or (lane("A", "best"), lane("B", "out", 20))
    return Chosen("A", statement, {"Candidates": "2"}, "these examples", 0.05, lanes, failures)
