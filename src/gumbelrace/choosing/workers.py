"""Workers that fill a campaign: threads for plain functions, tasks of an event loop for coroutines."""

import asyncio
import queue
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gumbelrace.choosing.attempts import NAP, Outcome, evaluated, finished
from gumbelrace.choosing.campaign import Campaign, Task

Show = Callable[[], None]
Brought = tuple[Task, Outcome | None, BaseException | None]


def by_threads(campaign: Campaign, score: Callable[[Task], float], show: Show) -> None:
    """Evaluate with a plain function in as many threads as there are workers."""
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    brought: queue.SimpleQueue[Brought] = queue.SimpleQueue()
    for _ in range(campaign.workers):
        threading.Thread(target=_work, args=(campaign, score, tasks, brought), daemon=True).start()
    try:
        while _hand_out(campaign, tasks):
            for result in _arrived(brought):
                _take_in(campaign, result)
            campaign.settle()
            show()
    finally:
        for _ in range(campaign.workers):
            tasks.put(None)


def _hand_out(campaign: Campaign, tasks: "queue.SimpleQueue[Task | None]") -> bool:
    """Keep workers busy; False when nothing is under way any more."""
    while campaign.under_way < campaign.workers and (task := campaign.take()):
        tasks.put(task)
    return campaign.under_way > 0


def _arrived(brought: "queue.SimpleQueue[Brought]") -> Iterator[Brought]:
    """Give what has arrived, after a nap if nothing has."""
    try:
        yield brought.get(timeout=NAP)
        while True:
            yield brought.get_nowait()
    except queue.Empty:
        return


def _take_in(campaign: Campaign, result: Brought) -> None:
    task, outcome, fault = result
    campaign.put(task, outcome)
    if fault is not None:
        campaign.stop(fault)


def _work(
    campaign: Campaign,
    score: Callable[[Task], float],
    tasks: "queue.SimpleQueue[Task | None]",
    brought: "queue.SimpleQueue[Brought]",
) -> None:
    while (task := tasks.get()) is not None:
        try:
            outcome = finished(evaluated(_plain(score, task), _sleep, campaign.patience))
            brought.put((task, outcome, None))
        except BaseException as fault:  # raised where the campaign runs
            brought.put((task, None, fault))


def _plain(score: Callable[[Task], float], task: Task) -> Callable[[], Awaitable[float]]:
    async def call() -> float:
        return score(task)

    return call


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)


async def by_tasks(campaign: Campaign, score: Callable[[Task], Awaitable[float]], show: Show) -> None:
    """Evaluate with a coroutine, as many at once as there are workers."""
    under_way: dict[asyncio.Task[Outcome | None], Task] = {}
    while True:
        while campaign.under_way < campaign.workers and (task := campaign.take()):
            under_way[_started(campaign, score, task)] = task
        if not under_way:
            return
        done, _ = await asyncio.wait(under_way, timeout=NAP, return_when=asyncio.FIRST_COMPLETED)
        for finished_task in done:
            _take_in(campaign, _result(under_way.pop(finished_task), finished_task))
        campaign.settle()
        show()


def _started(
    campaign: Campaign, score: Callable[[Task], Awaitable[float]], task: Task
) -> "asyncio.Task[Outcome | None]":
    return asyncio.ensure_future(evaluated(lambda: score(task), asyncio.sleep, campaign.patience))


def _result(task: Task, done: "asyncio.Task[Outcome | None]") -> Brought:
    fault = done.exception()
    return (task, done.result(), None) if fault is None else (task, None, fault)


@contextmanager
def ending_by_ctrl_c(campaign: Campaign) -> Iterator[None]:
    """Let the first Ctrl-C stop the campaign, which finishes what is under way; the second is as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        campaign.interrupt()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
