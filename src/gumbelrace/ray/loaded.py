"""Tables whose parts a user's function loads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.pool import of_shards
from gumbelrace.errors import InvalidArgument, ShapeMismatch

Load = Callable[[Any], Any]
Arrays = dict[str, NDArray[Any]]


def load_table(shards: Sequence[Any], load: Load, *, workers: Executor | None = None) -> "LoadedTable":
    """Make a table of parts that a function loads, each where it is worked on.

    Parameters
    ----------
    shards : sequence
        Names of the parts, or whatever `load` takes. Their order counts.
    load : callable
        ``load(shard)`` gives a dict of arrays, one for each column, or a table as `open_table` gives it. It
        must give the same each time: each pass calls it again, and nothing is kept between.
    workers : concurrent.futures.Executor, optional
        Who calls it, once for each shard, to learn its columns and how many rows it has, such as
        `Cluster`. Default: this process.

    Returns
    -------
    LoadedTable
        The table, to be given to `gr.Passes` or `population`.

    Examples
    --------
    >>> import numpy as np, gumbelrace.ray
    >>> def load(shard):
    ...     return {"x": np.arange(10.0 * shard), "y": np.ones(10 * shard, bool)}
    >>> table = gumbelrace.ray.load_table([1, 2, 3], load)
    >>> table.size, table.columns
    (60, ('x', 'y'))
    """
    names = list(shards)
    if not names:
        raise InvalidArgument("there is no shard; give at least one")
    if not callable(load):
        raise InvalidArgument("load is not callable; give a function load(shard)")
    found = list(of_shards(workers, partial(described, load), names))
    for name, one in zip(names, found, strict=True):
        if set(one.types) != set(found[0].types):
            raise ShapeMismatch(
                f"shard {name} has the columns {', '.join(one.types)}, and shard {names[0]} has "
                f"{', '.join(found[0].types)}; load the same of each"
            )
    types = {name: np.result_type(*(one.types[name] for one in found)) for name in found[0].types}
    each = zip(names, (one.size for one in found), strict=True)
    return LoadedTable(tuple(LoadedShard(str(name), name, load, types, size) for name, size in each))


class Described(NamedTuple):
    """What a shard has."""

    types: dict[str, np.dtype[Any]]
    size: int


def described(load: Load, shard: Any) -> Described:
    """Load a shard and say what it has."""
    found = load(shard)
    if hasattr(found, "chunks"):
        return Described({name: found.dtypes[name] for name in found.columns}, found.size)
    arrays = as_arrays(found, shard)
    return Described(
        {name: array.dtype for name, array in arrays.items()}, len(next(iter(arrays.values())))
    )


def as_arrays(found: Any, shard: Any) -> Arrays:
    """Give what was loaded as columns of the same length, or say what is wrong with it."""
    if not isinstance(found, Mapping) or not found:
        raise InvalidArgument(f"load({shard!r}) gave a {type(found).__name__}; give a dict of arrays")
    arrays = {str(name): np.asarray(array) for name, array in found.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 1:
        raise ShapeMismatch(f"load({shard!r}) gave arrays of shapes {shapes}; give a number for each row")
    return arrays


@dataclass(frozen=True)
class LoadedShard:
    """A part of a table, loaded whenever it is read."""

    name: str
    shard: Any
    load: Load
    dtypes: dict[str, np.dtype[Any]]
    size: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.dtypes)

    @property
    def shards(self) -> "tuple[LoadedShard, ...]":
        """Itself."""
        return (self,)

    def chunks(self, columns: Sequence[str], rows: int = 65_536) -> Iterator[tuple[int, Arrays]]:
        """Load it, and give columns, so many rows at a time."""
        found = self.load(self.shard)
        if hasattr(found, "chunks"):
            size, parts = found.size, found.chunks(columns, rows)
        else:
            loaded = as_arrays(found, self.name)
            size, parts = len(loaded[columns[0]]), sliced(loaded, columns, rows)
        if size != self.size:
            raise ShapeMismatch(f"shard {self.name} has {size:,} rows now, and had {self.size:,} before")
        for first, arrays in parts:
            yield first, {name: arrays[name].astype(self.dtypes[name], copy=False) for name in columns}


def sliced(arrays: Arrays, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Arrays]]:
    """Cut columns into parts."""
    for first in range(0, len(arrays[columns[0]]), rows):
        yield first, {name: arrays[name][first : first + rows] for name in columns}


@dataclass(frozen=True)
class LoadedTable:
    """A table of parts that a function loads. See `load_table`.

    Attributes
    ----------
    shards : tuple
        The parts, each a table.
    """

    shards: tuple[LoadedShard, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.shards[0].columns

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(shard.size for shard in self.shards)

    def chunks(
        self, columns: Sequence[str] | None = None, rows: int = 65_536
    ) -> Iterator[tuple[int, Arrays]]:
        """Read columns from front to back; see `DiskTable.chunks`."""
        before = 0
        for shard in self.shards:
            for first, arrays in shard.chunks(columns or self.columns, rows):
                yield before + first, arrays
            before += shard.size
