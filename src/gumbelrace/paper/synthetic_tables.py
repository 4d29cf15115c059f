"""The tables of a study: what each solver did on one problem, and the paper's claims beside ours."""

from collections.abc import Sequence
from statistics import median

from gumbelrace.experiments.records import Claim, Problem, Record
from gumbelrace.report.numbers import count, interval, microseconds, percent, probability, times
from gumbelrace.report.page import Column, Table, Verdict

KEY_PROBLEM = Problem(10, "normal", 1e-4)
KEY_COLUMNS = [
    Column("solver", is_number=False),
    Column("share read"),
    Column("wrong draws"),
    Column("error"),
    Column("95% interval"),
    Column("µs a draw"),
    Column("speed-up"),
]
CLAIM_COLUMNS = [
    Column(title, is_number=False) for title in ("The paper says", "We found", "Verdict", "Why")
]
VERDICTS = {
    True: Verdict("held", "good"),
    False: Verdict("differs", "bad"),
    None: Verdict("cannot be said", "open"),
}


def key_records(records: Sequence[Record]) -> list[Record]:
    """Choose the records of the key problem at the middle δ."""
    here = [one for one in records if one.problem == KEY_PROBLEM]
    delta = middle([one.delta for one in here])
    return [one for one in here if one.delta == delta]


def middle(deltas: Sequence[float]) -> float:
    """Give the middle one of all δ."""
    grid = sorted(set(deltas))
    return grid[len(grid) // 2] if grid else 0.0


def key_table(records: Sequence[Record]) -> Table:
    """Give a row for the exact scan and one for each solver."""
    scan = median(one.scan_seconds for one in records)
    exact = ["exact scan", "100%", "none", "0", "", microseconds(scan), times(1.0)]
    problem, delta = records[0].problem, records[0].delta
    caption = f"D = {problem.arms}, σ = {problem.scale:g}, {problem.shape} rewards, δ = {delta:g}"
    return Table(KEY_COLUMNS, [exact, *map(key_row, records)], caption)


def key_row(one: Record) -> list[str]:
    """Lay out a record."""
    return [
        one.solver,
        percent(one.read),
        f"{count(one.errors)} of {count(one.draws)}",
        probability(one.error),
        interval(one.interval),
        microseconds(one.seconds),
        times(one.speed_up),
    ]


def key_sentence(records: Sequence[Record]) -> str:
    """Say what the key table means."""
    fastest = max(records, key=lambda one: one.speed_up)
    least = min(records, key=lambda one: one.read)
    if fastest.speed_up > 1.0:
        gain = f"{fastest.solver} is the fastest: {times(fastest.speed_up)} as fast as an exact scan"
    else:
        gain = "No solver is faster than an exact scan here"
    read = f"{least.solver} reads least, {percent(least.read)} of the rewards"
    if least is fastest:
        read = f"it reads {percent(least.read)} of the rewards, the least of all"
    return f"{gain}; {read}. {kept(records)}"


def kept(records: Sequence[Record]) -> str:
    """Say who erred more often than δ allows, for sure."""
    delta = records[0].delta
    broken = [one.solver for one in records if one.interval[0] > one.delta]
    if broken:
        return f"More errors than δ = {delta:g} allows were made by {', '.join(broken)}."
    return f"No solver erred more often than δ = {delta:g} allows."


def claims_table(claims: Sequence[Claim]) -> Table:
    """Give the paper's statements beside what was found."""
    rows = [(claim.paper, claim.ours, VERDICTS[claim.held], claim.why) for claim in claims]
    return Table(CLAIM_COLUMNS, rows, stacks=True)


def claims_sentence(claims: Sequence[Claim]) -> str:
    """Count the verdicts."""
    held = sum(claim.held is True for claim in claims)
    differs = sum(claim.held is False for claim in claims)
    text = f"Of {len(claims)} statements, {held} held and {differs} did not"
    rest = len(claims) - held - differs
    return f"{text}; of {rest} it cannot be said." if rest else f"{text}."
