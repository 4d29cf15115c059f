"""A JAX model given a table on disk: passes sum and draw rows, and chains read the pool of these.

The first rows of every decision are read in the order of the pool, each once. The few decisions that need
more pick them from the whole pool at random; one that would read all rows of the table reads all of the
pool.
"""

import functools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.chain import Chains, Made, Small, law_of
from gumbelrace.jax.model import JaxModel, share_compiled
from gumbelrace.jax.packages import in_double, jax, jnp, lax
from gumbelrace.jax.penalty import Test, reading_of
from gumbelrace.jax.picking import Table
from gumbelrace.jax.recipe import JaxPosterior, check_numbers
from gumbelrace.jax.sums import chunk_of
from gumbelrace.jax.trace import JaxTrace
from gumbelrace.laplace.columns import is_names
from gumbelrace.laplace.from_table import Ready, as_passes, read_in_passes
from gumbelrace.laplace.model import Floats, Indices, Tried, tried_one_by_one
from gumbelrace.laplace.pilot import LAWS
from gumbelrace.laplace.progress import Progress
from gumbelrace.laplace.row_pool import Pools

# Pools differ in length by chance: that share of the first one is used of each, lest all is compiled again.
IN_COMMON = 0.95


@dataclass(frozen=True, eq=False)
class RowsOfTable(JaxModel):
    """A model of some rows of a table, compiled once for each number of them."""

    form: Any = None  # of the pytree of rows
    compiled: dict[int, "RowsOfTable"] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, Any]:
        """What log factors follow from, but for the rows; checkpoints compare it."""
        own = {"log_factors": self.log_factors, "prior": self.prior_of, "start": self.start}
        return {**own, "names": list(self.names), "form": str(self.form)}

    @property
    def given_start(self) -> Floats:
        """Where to look for the mode."""
        return self.start

    def of_data(self, data: tuple[Any, ...], size: int) -> "RowsOfTable":
        """Give the same model of other rows."""
        with in_double():
            rows = jax.tree.unflatten(self.form, [as_given(array) for array in data])
        made = replace(self, rows=rows)
        share_compiled(self.compiled.setdefault(size, made), made)
        return made

    def tried(self, centre: Floats, steps: Floats, laws: Indices) -> Tried:
        """Read all rows at the centre and `steps`; see `Tried`."""
        return tried_one_by_one(lambda step: self.residuals(centre, step), steps, laws, self.size)


def as_given(array: Any) -> Any:
    """Give an array of JAX in the widest type: a file has the narrowest, in which products overflow."""
    found = jnp.asarray(array)
    if jnp.issubdtype(found.dtype, jnp.floating):
        return found.astype(float)
    is_short = jnp.issubdtype(found.dtype, jnp.integer) and found.dtype.itemsize < 8
    return found.astype(int) if is_short else found


@dataclass(frozen=True)
class PooledTest(Test):
    """The test of a move by rows of a pool."""

    def exact(self, wanted: Any) -> Any:
        """Estimate the sum over all rows by all of the pool, if that is wanted; else give 0."""
        chunk, size = min(self.model.chunk, self.span.most), self.span.size

        def add(state: Any) -> Any:
            begin, total = state
            (rows, inverse), counts = chunk_of((self.table.rows, self.table.inverse), begin, chunk)
            return begin + chunk, total + jnp.where(counts, inverse * self.differences(rows), 0.0).sum()

        total = lax.while_loop(lambda state: state[0] < jnp.where(wanted, size, 0), add, (0, 0.0))[1]
        return total / size


@dataclass(frozen=True, eq=False)
class PooledChains(Chains):
    """Chains that read pools of rows, one after another."""

    pools: Any = None
    number: int = 0  # of the pool
    used: list[int] = field(default_factory=lambda: [0])  # rows of it

    @functools.cached_property
    def following(self) -> "PooledChains":
        """The same chains with the next pool."""
        model, table = table_of_pool(self.model, self.pools, self.number + 1, self.model.size)
        made = replace(self, model=model, table=table, number=self.number + 1, used=[0])
        if model.size == self.model.size:
            vars(made).update({name: getattr(self, name) for name in ("_steps", "_noise", "_heights")})
        return made

    def steps(self, key: Any, z: Floats, small: Small) -> Made:
        """Make BLOCK steps of each chain from z, of shape (chains, d)."""
        with in_double():
            noise = self._noise(key, len(z))
            shape = noise.rows.shape
            first, count = self.used[0], int(np.prod(shape))
            if first + count > self.model.size:
                if count > self.model.size:
                    raise InvalidArgument(
                        f"a pool of {self.model.size:,} rows is too small for {len(z)} chains; give a "
                        "larger pool_rows, or fewer chains"
                    )
                return self.following.steps(key, z, small)
            self.used[0] += count
            places = (first + jnp.arange(count) + 0.5) / self.model.size
            return self._made(noise._replace(rows=places.reshape(shape)), z, small, True)

    def test(self, *given: Any) -> Test:
        """Give the test of a move."""
        return PooledTest(**vars(super().test(*given)))


@dataclass(frozen=True, repr=False)
class JaxTablePosterior(JaxPosterior):
    """A posterior given a table on disk. See `JaxPosterior`."""

    _chains: PooledChains

    can_check: ClassVar[bool] = False

    @property
    def passes(self) -> int:
        """How many passes over the table were made."""
        return int(self._chains.pools.scanner.made)

    @property
    def bytes_read(self) -> int:
        """Bytes of columns that the passes have read."""
        return int(self._chains.pools.scanner.bytes)

    @property
    def pool_rows(self) -> int:
        """How many rows the first pool has."""
        return self._chains.model.size

    def __repr__(self) -> str:
        """Say what a chain will do, and what was read."""
        what = f"parameters={len(self.law.mean)}, forecast: {self.forecast}"
        return f"JaxTablePosterior({what}; {self._chains.pools.remark})"

    def sample(self, *counts: Any, **options: Any) -> JaxTrace:
        """Draw from the posterior, as `JaxPosterior.sample` does, without a check by all rows."""
        self._chains.used[0] = 0
        vars(self._chains).pop("following", None)
        trace = JaxPosterior.sample(self, *counts, **options)
        return replace(trace, size=self._chains.pools.size)


def posterior_of_table(
    log_factors: Any, prior: Any, data: Any, start: Any, table: Any, progress: bool
) -> JaxTablePosterior:
    """Give the posterior of a model, whose data are columns of a table."""
    names, form = jax.tree.flatten(data, is_leaf=is_column)
    model = RowsOfTable(log_factors, prior, (), (), start, form=form)
    check_numbers(model.of_data(tuple(an_example(one) for one in names), 1))
    ready = read_in_passes(model, names, as_passes(table), Progress(progress))
    return with_pools(model, ready)


def is_column(item: Any) -> bool:
    """Whether something names a column, or several."""
    return isinstance(item, str) or is_names(item)


def an_example(names: Any) -> Any:
    """Give a row of zeros."""
    if not is_column(names):
        raise InvalidArgument(
            f"data has {names!r}; with a table, give names of its columns in the place of arrays"
        )
    return np.zeros(1) if isinstance(names, str) else np.zeros((1, len(names)))


def with_pools(model: RowsOfTable, ready: Ready) -> JaxTablePosterior:
    """Make chains ready."""
    mode, root, found, pools = ready
    with in_double():
        law = jax.tree.map(jnp.asarray, law_of(mode, root, np.zeros_like(mode.theta)))
        at_mode = jax.tree.map(np.asarray, model.unravel(jnp.asarray(mode.theta)))
    most = int(IN_COMMON * pools.length(0))
    rule, of_pool = reading_of(found.forecast.rows), table_of_pool(model, pools, 0, most)
    chains = PooledChains(of_pool[0], rule, LAWS[found.law], of_pool[1], law, pools)
    return JaxTablePosterior(at_mode, ready.law, found.forecast, chains)


def table_of_pool(model: Any, pools: Pools, number: int, most: int) -> tuple[RowsOfTable, Table]:
    """Give the model of rows of a pool, at most so many, and a table by which they are read in order."""
    pool = pools.pool(number)
    size = min(len(pool.inverse), most)
    drawn = model.of_data(pools.scanner.columns.with_rows([array[:size] for array in pool.rows]), size)
    with in_double():
        places = jnp.arange(size, dtype=jnp.int32)
        table = Table(drawn.rows, drawn.whole, jnp.ones(size), places, jnp.asarray(pool.inverse[:size]))
    return drawn, table
