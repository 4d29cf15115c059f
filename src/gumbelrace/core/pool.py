"""Things that are dear to make, lent to one thread at a time; and who does work that is cut into pieces."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from gumbelrace.errors import GumbelraceError, ShardFailed

Item = TypeVar("Item")


class Pool(Generic[Item]):
    """Things that are dear to make, each used by one thread at a time."""

    def __init__(self, make: Callable[[], Item]) -> None:
        self._make = make
        self._idle: list[Item] = []

    def __reduce__(self) -> Any:
        """Leave to pickle how things are made, not the things."""
        return Pool, (self._make,)

    @contextmanager
    def lend(self) -> Iterator[Item]:
        """Lend an idle item, or a new one if there is none."""
        try:
            item = self._idle.pop()
        except IndexError:
            item = self._make()
        yield item
        # An error leaves an item somewhere in the middle of its work: it is not lent again.
        self._idle.append(item)


# Processors that this process was given, of those of its machine; empty: all.
_OWN: list[int] = []


def use_processors(count: int) -> None:
    """Have this process use so many processors: others work beside it."""
    _OWN[:] = [count]


def processors() -> int:
    """Give how many processors this process may use."""
    if _OWN:
        return _OWN[0]
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def of_shards(
    workers: Executor | None, function: Callable[..., Any], shards: Iterable[Any], *more: Iterable[Any]
) -> Iterator[Any]:
    """Give what a function makes of each shard of a table, in their order.

    Parameters
    ----------
    workers : Executor or None
        Who does it; None: this process, one after another. An error of workers names the shard.
    function : callable
        Is called with a shard and an item of each of `more`.
    shards, more : iterable
        The shards, and what else the function needs for each.

    Examples
    --------
    >>> list(of_shards(None, pow, [2, 3], [10, 2]))
    [1024, 9]
    """
    if workers is None:
        yield from map(function, shards, *more)
        return
    shards = list(shards)
    results = workers.map(function, shards, *more)
    for shard in shards:
        yield _named(results, shard)


def _named(results: Iterator[Any], shard: Any) -> Any:
    try:
        return next(results)
    except GumbelraceError:
        raise
    except Exception as error:
        name = getattr(shard, "name", shard)
        raise ShardFailed(
            f"{name} could not be worked on: {type(error).__name__}: {error}; see to it, and run again"
        ) from error
