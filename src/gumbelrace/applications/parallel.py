"""Many independent pieces of long work in threads; what is finished is on disk."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from gumbelrace.applications.store import Store

# Does a piece of work; looks from time to time whether it is to stop, and then raises `Stopped`.
Work = Callable[[threading.Event], Any]


class Stopped(Exception):
    """The work was stopped before it was done."""


def done_in_threads(
    work: Mapping[str, Work], store: Store, jobs: int, finished: Callable[[str], None]
) -> None:
    """Do what is not in the store yet, and put its results there.

    Parameters
    ----------
    work : mapping from key to callable
        The pieces, begun in this order.
    store : Store
        Holds the results of finished pieces by their keys.
    jobs : int
        Threads.
    finished : callable
        Called with the key of each piece that is done, or was before.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        futures: dict[Future[Any], str] = {}
        for key, piece in work.items():
            if key in store.rows:
                finished(key)
            else:
                futures[pool.submit(piece, stop)] = key
        try:
            for future in as_completed(futures):
                store.add(futures[future], future.result())
                finished(futures[future])
        finally:  # also after Ctrl-C: what is under way ends soon
            stop.set()
            pool.shutdown(cancel_futures=True)
