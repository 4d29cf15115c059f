"""Work on the next parts while the first is used, or on the last one while the next is made."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Full, Queue
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
# Items of a part that wait, and seconds after which a thread looks whether they are still wanted.
HELD, PATIENCE = 2, 0.1
END = object()


def side_by_side(parts: Sequence[Callable[[], Iterator[Item]]], workers: int) -> Iterator[Item]:
    """Give what all parts give, in order, while threads work on the next parts.

    Parameters
    ----------
    parts : sequence of callable
        Each gives an iterator. A thread holds a few of its items until they are asked for.
    workers : int
        Number of threads.

    Examples
    --------
    >>> list(side_by_side([lambda: iter([1, 2]), lambda: iter([3])], workers=2))
    [1, 2, 3]
    """
    if min(workers, len(parts)) < 2:
        for part in parts:
            yield from part()
        return
    lines, stop = [Queue[Any](HELD) for _ in parts], threading.Event()
    threads = [
        threading.Thread(target=_work, args=(parts[k::workers], lines[k::workers], stop), daemon=True)
        for k in range(workers)
    ]
    for thread in threads:
        thread.start()
    try:
        for line in lines:
            yield from _taken(line)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _taken(line: "Queue[Any]") -> Iterator[Any]:
    while (item := line.get()) is not END:
        if isinstance(item, BaseException):
            raise item
        yield item


def _work(parts: Sequence[Any], lines: Sequence["Queue[Any]"], stop: threading.Event) -> None:
    for part, line in zip(parts, lines, strict=True):
        try:
            for item in part():
                _put(line, item, stop)
                if stop.is_set():
                    return
        except BaseException as error:  # raised where the items are used
            _put(line, error, stop)
            return
        _put(line, END, stop)


def _put(line: "Queue[Any]", item: Any, stop: threading.Event) -> None:
    while not stop.is_set():
        with suppress(Full):
            return line.put(item, timeout=PATIENCE)


class Behind:
    """A thread that does one thing while the next is made ready; a context that ends when all is done.

    Examples
    --------
    >>> with Behind() as behind:
    ...     for number in range(3):
    ...         behind.do(print, number)
    0
    1
    2
    """

    def __init__(self) -> None:
        self._thread, self._doing = ThreadPoolExecutor(1), Future[Any]()
        self._doing.set_result(None)

    def do(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin a call after the one before has ended; what that one raised is raised."""
        self._doing.result()
        self._doing = self._thread.submit(function, *arguments)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, failed: object, *error: object) -> None:
        """Wait for the last call."""
        self._thread.shutdown()
        if failed is None:
            self._doing.result()
