"""Workers that fill a campaign: threads for plain functions, tasks of an event loop for coroutines.

A worker takes the next evaluation itself and goes on at once. What workers have brought is put into the
store and into the race together, by whoever started them.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from gumbelrace.choosing.attempts import NAP, evaluated, finished
from gumbelrace.choosing.campaign import Campaign, Task

Show = Callable[[], None]
# Seconds for which results are gathered before they are settled together.
GATHERING = 0.002


def by_threads(campaign: Campaign, score: Callable[[Task], float], show: Show) -> None:
    """Evaluate with a plain function in as many threads as there are workers."""
    turns = _Turns()
    for _ in range(campaign.workers):
        threading.Thread(target=_work, args=(campaign, score, turns), daemon=True).start()
    with turns.lock:
        try:
            while not campaign.is_finished:
                if turns.news.wait_for(lambda: campaign.has_news, NAP):
                    turns.news.wait(GATHERING)
                campaign.settle()
                show()
                turns.room.notify_all()
        finally:  # whatever has happened, nobody shall go on
            campaign.patience.stopping = True
            turns.room.notify_all()


class _Turns:
    """Who may touch the campaign: one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.news, self.room = threading.Condition(self.lock), threading.Condition(self.lock)


def _work(campaign: Campaign, score: Callable[[Task], float], turns: _Turns) -> None:
    while (task := _next_task(campaign, turns)) is not None:
        outcome, fault = None, None
        try:
            outcome = finished(evaluated(_plain(score, task), _sleep, campaign.patience))
        except BaseException as error:  # raised where the campaign runs
            fault = error
        with turns.lock:
            if not campaign.has_news:
                turns.news.notify()
            campaign.put(task, outcome, fault)


def _next_task(campaign: Campaign, turns: _Turns) -> Task | None:
    """Wait for a task; None if there will be no more."""
    with turns.lock:
        while (task := campaign.take()) is None and not campaign.is_over:
            turns.room.wait()
        return task


def _plain(score: Callable[[Task], float], task: Task) -> Callable[[], Awaitable[float]]:
    async def call() -> float:
        return score(task)

    return call


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)


async def by_tasks(campaign: Campaign, score: Callable[[Task], Awaitable[float]], show: Show) -> None:
    """Evaluate with a coroutine, as many at once as there are workers."""
    brought, settled = asyncio.Event(), asyncio.Event()
    serving = [_serve(campaign, score, brought, settled) for _ in range(campaign.workers)]
    workers = asyncio.gather(*serving)
    try:
        while not campaign.is_finished:
            with suppress(TimeoutError):
                await asyncio.wait_for(brought.wait(), NAP)
                await asyncio.sleep(GATHERING)
            brought.clear()
            campaign.settle()
            show()
            settled.set()
            settled.clear()
    finally:  # whatever has happened, nobody shall go on
        campaign.patience.stopping = True
        settled.set()
        try:
            await workers
        finally:  # cancelled or not: it was paid for
            campaign.settle()


async def _serve(
    campaign: Campaign,
    score: Callable[[Task], Awaitable[float]],
    brought: asyncio.Event,
    settled: asyncio.Event,
) -> None:
    while not campaign.is_over:
        task = campaign.take()
        if task is None:
            await settled.wait()
            continue
        outcome, fault = None, None
        try:
            outcome = await evaluated(partial(score, task), asyncio.sleep, campaign.patience)
        except BaseException as error:  # raised where the campaign runs
            fault = error
        campaign.put(task, outcome, fault)
        brought.set()


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
