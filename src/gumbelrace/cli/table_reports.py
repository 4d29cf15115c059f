"""What `gumbelrace best` and `sample` say of a table: as a dictionary for programs, and as text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.cli.shared import paragraphs
from gumbelrace.cli.text import one_line
from gumbelrace.methods.base import Method, Outcome, Promise
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.state import is_tie
from gumbelrace.population.base import Floats
from gumbelrace.tables.population import Chunks, Scores
from gumbelrace.tables.totals import Totals

SHOWN = 20  # columns
IN_WORDS = "no number is -inf, unless --reward-range goes down to it"
HINT = "; --reward-range LOW HIGH would prove it"
ADDED_UP = "; then the file was added up, and the other draws are exact"
SCANNED = ": a scan of what was left was faster than to race on"

Indices = NDArray[np.int64]


class Drawn(NamedTuple):
    """Draws: their columns, the numbers that each has read, and the probabilities if they are known."""

    arms: Indices
    read: Indices
    probabilities: Floats | None = None  # of all columns


def tied_with(sums: Floats, arm: int, names: Sequence[str | int]) -> list[str | int]:
    """Name all columns that have the same sum as the best, up to rounding, if there are others."""
    same = np.flatnonzero(is_tie.py_func(sums[arm], sums) & (sums > -np.inf))  # type: ignore[attr-defined]
    return [names[column] for column in same.tolist()] if len(same) > 1 else []


def report(table: Scores | Totals, read: int, promise: Promise) -> dict[str, Any]:
    assumption = promise.assumption
    return {
        "columns": len(table.names),
        "rows": table.rows,
        "numbers_read": read,
        "read_through_first": isinstance(table, Totals),
        "proved": promise.proved,
        "assumption": None if assumption is None else assumption.replace(DECLARED, IN_WORDS),
        "notes": list(table.notes),
    }


def best_of_totals(totals: Totals, lowest: bool) -> dict[str, Any]:
    """Give what was found of a file that was added up, for programs."""
    arm, sign = int(np.argmax(totals.sums)), -1.0 if lowest else 1.0
    means = sign * totals.sums / totals.rows
    second = int(np.argmax(np.where(np.arange(len(means)) == arm, -np.inf, totals.sums)))
    return {
        "column": totals.names[arm],
        "mean": float(means[arm]),
        "runner_up": totals.names[second],
        "gap": float(abs(means[arm] - means[second])),
        "mean_between": [float(means[arm])] * 2,
        "rows_read": totals.rows,
        "share_of_rows": 1.0,
        "share_of_numbers": 1.0,
        "delta": 0.0,
        "scanned": False,
        "tied": tied_with(totals.sums, arm, totals.names),
        **report(totals, totals.size, Promise(0.0)),
    }


def means_of_race(found: Outcome, names: Sequence[str | int], lowest: bool) -> dict[str, Any]:
    """Give the means of the best column and of the next, as far as what was read tells them."""
    if found.estimates is None or not np.isfinite(found.estimates.means[found.arm]):
        return {}
    sign, second, ends = -1.0 if lowest else 1.0, found.runner_up, found.estimates
    between = sorted([sign * float(ends.low[found.arm]), sign * float(ends.high[found.arm])])
    return {
        "mean": sign * float(ends.means[found.arm]),
        "runner_up": None if second is None else names[second],
        "gap": None if second is None else found.gap,
        "mean_between": between if np.isfinite(between).all() else None,
    }


def best_of_race(population: Chunks, found: Outcome, method: Method, lowest: bool) -> dict[str, Any]:
    """Give what was found by a race; of what was read from end to end nothing needs a promise."""
    scores = population.scores
    everything = population.scores_read >= scores.size
    promise = Promise(0.0) if everything else method.promise.on(population)
    return {
        "column": scores.names[found.arm],
        **means_of_race(found, scores.names, lowest),
        "rows_read": population.rows_read,
        "share_of_rows": population.rows_read / scores.rows,
        "share_of_numbers": population.scores_read / scores.size,
        "delta": promise.delta,
        "scanned": found.exhausted and found.looks > 0,
        "tied": tied_with(population.totals(), found.arm, scores.names) if found.tied else [],
        **report(scores, population.scores_read, promise),
    }


def sample_report(
    table: Scores | Totals, drawn: Drawn, promise: Promise, out: Path | None
) -> dict[str, Any]:
    names, draws, read = [str(name) for name in table.names], len(drawn.arms), int(drawn.read.sum())
    counts = np.bincount(drawn.arms, minlength=len(names)).tolist()
    known = drawn.probabilities
    return {
        "draws": draws,
        "counts": dict(zip(names, counts, strict=True)),
        "probabilities": None if known is None else dict(zip(names, known.tolist(), strict=True)),
        "fraction": read / (draws * table.size),
        "added_up": known is not None,
        "total_variation": promise.delta,
        "out": None if out is None else str(out),
        **report(table, read, promise),
    }


def ground(result: dict[str, Any], knows_range: bool) -> str:
    """Say what a bound rests on, and what would prove it."""
    words = "proved" if result["proved"] else f"assuming that {result['assumption']}"
    return words + ("" if knows_range else HINT)


def best_text(result: dict[str, Any], file: str, knows_range: bool) -> str:
    best = str(result["column"])
    if tied := [str(name) for name in result["tied"]]:
        best += f": columns {', '.join(tied[:-1])} and {tied[-1]} tie for the best"
    parts = [("best column", best)]
    if "mean" in result:
        parts.append(("mean", mean_text(result)))
    parts += [("error", error_text(result, knows_range)), ("read", read_text(result, file))]
    return paragraphs([*parts, *(("note", note) for note in result["notes"])])


def mean_text(result: dict[str, Any]) -> str:
    """Say the mean of the best column, how well it is known, and which column is next."""
    exact, between = result["share_of_numbers"] == 1.0, result["mean_between"]
    mean = f"{result['mean']:.6g}" if exact else f"about {result['mean']:.4g}"
    if not exact and between is not None and between[0] < between[1]:
        mean += f", between {between[0]:.4g} and {between[1]:.4g}"
    if result["runner_up"] is None:
        return mean
    return f"{mean}; next is {result['runner_up']}, {'' if exact else 'about '}{result['gap']:.3g} off"


def error_text(result: dict[str, Any], knows_range: bool) -> str:
    if result["delta"] > 0.0:
        return f"at most {result['delta']:g} likely, {ground(result, knows_range)}"
    return "none: every number was read"


def read_text(result: dict[str, Any], file: str) -> str:
    if result["read_through_first"]:
        return f"{file} once, all {result['rows']:,} rows, and added up: exact"
    read = f"{result['rows_read']:,} of {result['rows']:,} rows ({percent(result['share_of_rows'])}), "
    return f"{read}{percent(result['share_of_numbers'])} of the numbers{SCANNED * result['scanned']}"


def sample_text(result: dict[str, Any], file: str, knows_range: bool) -> str:
    law = f"within {result['total_variation']:g} of the exact one in total variation, "
    law += ground(result, knows_range)
    read = f"{percent(result['fraction'])} of the numbers a draw, {result['numbers_read']:,} in all"
    read += ADDED_UP * result["added_up"]
    if result["read_through_first"]:
        law, read = "exact", read_text(result, file)
    parts = [("law", law), ("read", read), *(("note", note) for note in result["notes"])]
    if result["out"] is not None:
        parts.append(("written", result["out"]))
    return f"{shares(result)}\n\n{paragraphs(parts)}"


def shares(result: dict[str, Any]) -> str:
    """Lay out a line for each column, the most frequent first, with its probability if that is known."""
    counts, draws, known = result["counts"], result["draws"], result["probabilities"]
    most = sorted(counts, key=lambda name: -counts[name])
    shown = {name: one_line(name) for name in most[:SHOWN]}
    width = max(len("column"), *map(len, shown.values()))
    lines = [f"{'column':<{width}}  {'draws':>9}  {'share':>7}" + "  probability" * (known is not None)]
    for name, text in shown.items():
        line = f"{text:<{width}}  {counts[name]:>9,}  {counts[name] / draws:>7.2%}"
        lines.append(line if known is None else f"{line}  {known[name]:>11.5g}")
    if len(most) > SHOWN:
        rest = sum(counts[name] for name in most[SHOWN:])
        lines.append(f"... and {len(most) - SHOWN:,} columns with {rest:,} draws together")
    return "\n".join(lines)


def percent(share: float) -> str:
    return f"{100 * share:.3g}%"
