"""Tables of clusters: a row for each mention, with how sure it is, and what a page shows beside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gumbelrace.applications.certainty import NOWHERE
from gumbelrace.applications.coreference import Resolved
from gumbelrace.applications.store import write_tables
from gumbelrace.tables.writing import Kind

DIGITS = 4  # of probabilities in tables
CLUSTERS = "the cluster of each mention"
SURE_CLUSTERS = (
    "the cluster of each mention, the probability that it belongs there, and the runner-up: the cluster it "
    "is in most often otherwise (-1: one of its own; nothing: it never left)"
)
THRESHOLDS_OF = "B³ if mentions below a probability are taken out of their clusters"


class Assigned(NamedTuple):
    """A row of the table of clusters."""

    mention_id: str
    block: str
    cluster: int


class SurelyAssigned(NamedTuple):
    """A row of the table of clusters that says how sure it is."""

    mention_id: str
    block: str
    cluster: int
    probability: float | None  # that the mention sits with the core of its cluster
    # The cluster it sits with most often otherwise; -1: by itself; None: it never left.
    runner_up: int | None
    runner_up_probability: float | None


def assigned(resolved: Resolved, ids: Sequence[str]) -> list[Any]:
    """Give the cluster of each mention, and how sure it is where that is known."""
    found = resolved.task.mentions
    clusters = resolved.clusters[resolved.task.samplers[0]].tolist()
    names = [found.block_names[number] for number in found.block.tolist()]
    rows = zip(ids, names, clusters, strict=True)
    if resolved.sure is None:
        return [Assigned(*row) for row in rows]
    return [
        SurelyAssigned(*row, round(p, DIGITS), None if other == NOWHERE else other, round(q, DIGITS))
        for row, p, other, q, _ in zip(rows, *resolved.sure, strict=True)
    ]


def write_resolved(
    folder: Path, resolved: Resolved, ids: Sequence[str], kind: Kind = Kind.CSV
) -> dict[str, str]:
    """Write the clusters and what a page shows; return the files and what is in them."""
    tables: dict[str, tuple[str, Sequence[Any]]] = {
        "clusters": (CLUSTERS if resolved.sure is None else SURE_CLUSTERS, assigned(resolved, ids)),
        "sweeps": ("what each sweep reached and took", resolved.points),
    }
    if resolved.thresholds:
        tables["thresholds"] = (THRESHOLDS_OF, resolved.thresholds)
    return write_tables(folder, tables, kind)
