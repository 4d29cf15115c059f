"""Things that are dear to make, lent to one thread at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

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
