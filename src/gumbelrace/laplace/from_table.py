"""A posterior given all rows of a table on disk, in few passes over it.

A subsample gives a first mode. Newton's passes sum derivatives, until the mode of all rows is found. One
pass then tries the law around it, weighs all rows, and draws the pool of them from which chains read.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np

from gumbelrace.chain.fingerprint import data_fingerprint
from gumbelrace.chain.kernel_data import Search
from gumbelrace.chain.trace import Trace
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, InvalidGenerator, NoMode
from gumbelrace.kernels.metropolis import Mixture
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.kernels.pooled import PooledMetropolis, PooledPosition
from gumbelrace.laplace.columns import Columns, checked_table, is_names
from gumbelrace.laplace.mode import Mode, find_mode
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.other_modes import warn_of_other_modes
from gumbelrace.laplace.pass_store import opened_store, table_fingerprint
from gumbelrace.laplace.passes import Scanner, missing_number
from gumbelrace.laplace.pilot import LAWS
from gumbelrace.laplace.posterior import (
    FEW_SMALL_STEPS,
    OFTEN,
    SELDOM,
    SMALL_STEPS,
    Posterior,
    check_dimension,
    tuned,
)
from gumbelrace.laplace.progress import Progress
from gumbelrace.laplace.row_pool import Pools
from gumbelrace.laplace.table_model import TableModel, subsampled
from gumbelrace.laplace.table_pilot import FEWEST, Found, is_quiet, judged, planned, points_around
from gumbelrace.methods.base import Method
from gumbelrace.methods.penalty import Penalty
from gumbelrace.population.base import checked_count

# The last of so many parts of a pool is for trials.
TRIAL_PARTS = 8


@dataclass(frozen=True, repr=False)
class TablePosterior(Posterior):
    """A posterior given a table on disk. See `Posterior`."""

    kernel: PooledMetropolis  # type: ignore[assignment]

    @property
    def passes(self) -> int:
        """How many passes over the table were made."""
        return self._pools.scanner.made

    @property
    def bytes_read(self) -> int:
        """Bytes of columns that the passes have read."""
        return self._pools.scanner.bytes

    @property
    def pool_rows(self) -> int:
        """How many rows the first pool has."""
        return self._pools.length(0)

    @property
    def _pools(self) -> Pools:
        return cast(Pools, self.kernel.pools)

    def __repr__(self) -> str:
        """Say what a chain will do, and what was read."""
        return (
            f"TablePosterior(parameters={len(self.mode)}, forecast: {self.forecast}; {self._pools.remark})"
        )

    def sample(
        self, draws: int = 1000, *, chains: int = 4, warmup: int = 100, rng: Rng = None, **options: Any
    ) -> Trace[Any]:
        """Draw from the posterior, as `Posterior.sample` does; chains share the pool of rows.

        Decisions are not checked exactly, which would take all rows: `check` must be 0, or absent.
        """
        if options.setdefault("check", 0) != 0:
            raise InvalidArgument("steps of a chain on a table cannot be made again exactly; give check=0")
        kernel = replace(self.kernel, readers=checked_count(chains, "chains"))
        sharing = replace(self, kernel=kernel)
        return Posterior.sample(sharing, draws, chains=chains, warmup=warmup, rng=rng, **options)

    def starts(self, rng: np.random.Generator, chains: int) -> list[PooledPosition]:
        """Draw states to start from, each a reader of its own."""
        return [self.kernel.start(self.point(rng), reader=reader) for reader in range(chains)]


@dataclass(frozen=True)
class Passes:
    """A table that a posterior is to read in passes, and how.

    Parameters
    ----------
    table : table
        As `open_table` gives it.
    rng : numpy.random.Generator, int, or None
        What the rows that are drawn ahead follow from: a generator, a seed, or None for no seed.
    pool_rows : int, optional
        About how many rows are drawn ahead. Default: as many as 25,000 effective draws need, by what a
        subsample says, in 256 MB at most.
    checkpoint : path, optional
        Folder that keeps what each pass gave: called again with the same arguments, passes that were made
        are not made again. It needs a seed.
    workers : concurrent.futures.Executor, optional
        Who works on the files of the table, side by side, such as `gumbelrace.ray.Cluster`. The result is
        the same, bit for bit. Default: this process, one file after another.

    Examples
    --------
    ::

        passes = gr.Passes(gr.open_table("rows.parquet"), rng=0, checkpoint="passes")
        fit = gr.posterior(log_factor, terms, (["x0", "x1"], "y"), table=passes, start=[0.0, 0.0])
    """

    table: Any
    rng: Rng = None
    pool_rows: int | None = None
    checkpoint: str | PathLike[str] | None = None
    workers: Executor | None = None


class Ready(NamedTuple):
    """What the passes gave."""

    mode: Mode
    root: Floats  # L, such that L Lᵀ is the covariance of Laplace's law
    found: Found
    pools: Pools

    @property
    def law(self) -> NormalPseudoprior:
        """Laplace's law."""
        return NormalPseudoprior(self.mode.theta, self.root @ self.root.T)


def as_passes(table: Any, rng: Rng = None) -> Passes:
    """Give how a table is read, by default if it is a table; then its rows are drawn by `rng`."""
    return table if isinstance(table, Passes) else Passes(table, rng)


def posterior_of_table(
    model: Any,
    columns: Sequence[Any],
    log_prior: Any,
    method: Method | None,
    reading: Passes,
    said: Progress,
) -> TablePosterior:
    """Give the posterior of a model, whose data are columns of a table."""
    if method is not None and not isinstance(method, Penalty):
        raise InvalidArgument(f"with a table Penalty decides; method is {method!r}")
    ready = read_in_passes(model, columns, reading, said)
    kernel = kernel_of(ready, log_prior, method or Penalty())
    return TablePosterior(ready.mode.theta, ready.law, ready.found.forecast, model.names, kernel)


def read_in_passes(model: Any, columns: Sequence[Any], reading: Passes, said: Progress) -> Ready:
    """Make passes over a table until chains can begin, or find in a checkpoint what they gave."""
    check_dimension(model.names)
    table, chosen = checked_table(reading.table), Columns(columns)
    chosen.check(table)
    if reading.checkpoint is not None and reading.rng is None:
        raise InvalidGenerator("passes that are kept need a seed; give one, for example rng=0")
    if reading.pool_rows is not None:
        checked_count(reading.pool_rows, "pool_rows", least=FEWEST)
    entropy = tuple(int(word) for word in as_generator(reading.rng).integers(2**32, size=4))
    scanner = Scanner(table, chosen, entropy, said, workers=reading.workers)
    identity = identity_of(model, scanner) if reading.checkpoint is not None else {}
    with opened_store(reading.checkpoint, identity) as store:
        return made_ready(model, replace(scanner, store=store), reading.pool_rows)


def identity_of(model: Any, scanner: Scanner) -> dict[str, Any]:
    """Give what passes must have in common with those that a checkpoint has kept."""
    columns = scanner.columns
    return {
        "kernel": "passes over a table",
        "data": Search(model).found | table_fingerprint(scanner.table, columns, scanner.workers),
        "columns": [said_of(one) for one in columns.given],
        "rows": scanner.size,
        "rng": list(scanner.entropy),
    }


def said_of(one: Any) -> Any:
    """Give names of columns as they are, and a fingerprint of what all rows share."""
    if isinstance(one, str):
        return one
    return list(one) if is_names(one) else data_fingerprint(one) or str(one)


def made_ready(model: Any, scanner: Scanner, pool_rows: int | None) -> Ready:
    """Find the mode, try the law, and draw the first pool."""
    said, whole = scanner.said, TableModel(model, scanner, subsampled(scanner))
    mode = mode_of_table(whole)
    with said("other modes"):
        warn_of_other_modes(whole.few.few, mode, whole.size)
    points = points_around(mode, whole.size)
    for some in [points.of_normal] * is_quiet(whole, mode, points.of_normal) + [points]:
        pools = Pools(planned(whole, mode, some, pool_rows), mode)
        found = judged(whole, mode, some, pools.first(), 1.0)
        if found.settled:
            break
    said.tell(f"forecast: {found.forecast}")
    said.tell(pools.remark)
    return Ready(mode, points.root, found, pools)


def mode_of_table(whole: TableModel) -> Mode:
    """Find the mode; if there is none because a number is missing in the table, say which."""
    try:
        return find_mode(whole)
    except NoMode as error:
        missing = missing_number(whole.scanner)
        if missing is None:
            raise
        raise NoMode(f"{missing}: replace it, or leave the row out. With it, {error}") from error


def kernel_of(ready: Ready, log_prior: Any, method: Penalty) -> PooledMetropolis:
    """Give a kernel that reads pools, small steps tuned where others are seldom accepted."""
    law, found = ready.law, ready.found
    acceptance = found.forecast.acceptance
    small_steps = FEW_SMALL_STEPS if acceptance > OFTEN else SMALL_STEPS
    proposal = Mixture(law, *LAWS[found.law], small_steps=small_steps)
    kernel = PooledMetropolis(ready.pools, proposal, log_prior, method=method)
    if acceptance > SELDOM:
        return kernel
    tried = replace(kernel, readers=TRIAL_PARTS)
    best: PooledMetropolis = tuned(tried, tried.start(law.mean, reader=TRIAL_PARTS - 1))
    return replace(best, readers=1)
