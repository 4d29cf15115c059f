"""All of section 5.1 and its appendices: a study's records, what they say, and what goes with them."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gumbelrace.applications.demo import example_race
from gumbelrace.experiments.files import write_rows
from gumbelrace.experiments.records import DataFile, Record, SyntheticStudy
from gumbelrace.paper.bounds import bound_curves, compared_levels, unit_rewards
from gumbelrace.paper.failures import broken
from gumbelrace.paper.synthetic_claims import claims
from gumbelrace.paper.synthetic_problem import probabilities
from gumbelrace.paper.synthetic_study import ENOUGH_SCANS, PULLS_A_DRAW, READS_A_DRAW, Settings

CONTENTS = {
    "records": "what every solver did at every point of the figures",
    "claims": "the paper's statements, what was found, and whether they held",
    "broken": "races in the cases made to break Racing-Normal",
    "bounds": "the curves of Figure 1e",
    "b_normal": "B_Normal as printed, and ours in both readings",
}


def whole_study(settings: Settings, records: Sequence[Record]) -> SyntheticStudy:
    """Add to the records what is computed from them, and what needs no study.

    Parameters
    ----------
    settings : Settings
        What was run.
    records : sequence of Record
        What came of it.
    """
    hurt = list(broken(settings.draws, settings.seed))
    return SyntheticStudy(
        facts(settings, records),
        notes(settings),
        probabilities(10).tolist(),
        records,
        claims(records, hurt, settings.seed),
        hurt,
        bound_curves(unit_rewards()),
        compared_levels(),
        example_race(),
    )


def facts(settings: Settings, records: Sequence[Record]) -> dict[str, str]:
    """Say what was run."""
    return {
        "Rewards of each state": f"{settings.size:,}",
        "Draws a point": f"{settings.draws:,}",
        "Points": f"{len(records):,}",
        "Draws in all": f"{sum(r.draws for r in records):,}",
        "Processor time": f"{sum(r.seconds * r.draws for r in records) / 60:.0f} minutes",
        "Seed": str(settings.seed),
        "gumbelrace": version("gumbelrace"),
        "Date": date.today().isoformat(),
    }


def notes(settings: Settings) -> list[str]:
    """Say where the study departs from the paper, and why."""
    return [
        "The paper shows its p(X) in a picture only; ours is a linear ramp. Races go on to their end, as "
        "in the paper, and do not turn to an exact scan when that is faster, as the library's do.",
        f"Not every point has all its draws. Where each of the first {ENOUGH_SCANS} draws read everything, "
        "all are exact scans and there are no more. A point ends after "
        f"{settings.draws * READS_A_DRAW:,} rewards: with 100 states and σ = 0.1, at half of its draws. "
        "lil'UCB reads one reward at a time, some fifty times slower than a scan, and its points end after "
        f"{settings.draws * PULLS_A_DRAW:,}.",
    ]


def write_data(folder: Path, study: SyntheticStudy) -> SyntheticStudy:
    """Write everything that the page shows as tables; return the study with the list of these files."""
    tables: dict[str, Sequence[Any]] = {
        "records": study.records,
        "claims": study.claims,
        "broken": study.broken,
        "bounds": study.bounds,
        "b_normal": study.levels,
    }
    files = [
        DataFile(written, CONTENTS[name])
        for name, rows in tables.items()
        for written in write_rows(folder, name, rows)
    ]
    return study._replace(files=files)
