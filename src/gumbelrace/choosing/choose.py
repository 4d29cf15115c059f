"""`choose`: the best of a few candidates where one evaluation is expensive."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.choosing.attempts import Pause
from gumbelrace.choosing.campaign import Campaign, Task
from gumbelrace.choosing.claims import About, NewCandidates, OnFailure
from gumbelrace.choosing.progress import shown
from gumbelrace.choosing.result import Choice, conclude
from gumbelrace.choosing.settings import Settings, begun
from gumbelrace.choosing.workers import by_tasks, by_threads, ending_by_ctrl_c
from gumbelrace.errors import InvalidArgument

Score = Callable[[Any, Any], float | Awaitable[float]]
Candidates = Mapping[str, Any] | Sequence[Any]


def choose(
    score: Score,
    candidates: Candidates,
    examples: Sequence[Any],
    *,
    score_range: tuple[float, float],
    delta: float = 0.05,
    tolerance: float = 0.0,
    claim: About = "these examples",
    budget: float | None = None,
    cost: float | Sequence[float] | Mapping[Any, float] | None = None,
    workers: int = 16,
    retries: int = 3,
    pause: Pause | None = None,
    on_failure: OnFailure = "lowest",
    store: str | Path | None = None,
    new_candidates: NewCandidates | None = None,
    rng: int | np.random.Generator | None = None,
    progress: bool = True,
) -> Choice:
    """Choose the candidate with the highest mean score over the examples, with few evaluations.

    Candidates are raced on the same examples, in one random order, and dropped one after another by bets
    whose error bound is proved and holds at any time: one may stop, go on, and look as often as one likes.

    Parameters
    ----------
    score : callable
        Gives the score of a candidate on an example; a plain function, called in threads, or a coroutine
        function. Evaluations that are random (a temperature) are drawn once for each candidate and example.
    candidates : dict or sequence
        The candidates, by name or not.
    examples : sequence
        What they are evaluated on.
    score_range : tuple of float
        The lowest and the highest score that there can be.
    delta : float
        Bound on the probability that the choice is farther from the best than is said.
    tolerance : float
        How far from the best is good enough; 0 asks for the best itself.
    claim : {"these examples", "future examples"}
        Whether the mean is that over these examples, or over all those of which these are independent ones.
    budget : float, optional
        What evaluations may cost in all, with those of the store; their number if there is no `cost`.
    cost : float, sequence or dict, optional
        Of one evaluation: a number, or one for each candidate.
    workers : int
        How many evaluations are made at once.
    retries : int
        Tries after the first that failed, with growing pauses.
    pause : callable, optional
        Given an exception, the seconds for which no evaluation shall be started, or None. Exceptions with
        an attribute `retry_after` need none. Either may be the text of a header Retry-After. Such pauses
        are not counted as tries; if one evaluation meets 100 of them, the call ends with an error.
    on_failure : {"lowest", "worst case", "stop"}
        An evaluation that fails has the lowest score; or it counts as whatever is worst for the claim (for
        failures that are no fault of the candidate, such as those of a server); or it ends the call with an
        error. Leaving failures out would be wrong. If nothing but failures comes first, or if `score`
        raises `gumbelrace.errors.EvaluationFailed`, the call ends in any case.
    store : str or Path, optional
        A file that keeps every evaluation. Calling again goes on from there; nothing is paid for twice.
    new_candidates : {"independent", "informed"}, optional
        Needed if the candidates are not those of the store: whether they would be the same whatever its
        results, or results led to them. The latter get a fresh order of the examples (or, where the claim
        is about future examples, those that nobody has been evaluated on).
    rng : int or numpy.random.Generator, optional
        Seed of the order of the examples; a store keeps its own.
    progress : bool
        Show a table in a terminal or a notebook (with the package rich), or else a line now and then.

    Returns
    -------
    Choice
        The candidate, how near the best it is, and a table of all.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> chances = {"A": 0.5, "B": 0.9, "C": 0.6}
    >>> draws = np.random.default_rng(0).random(1000)
    >>> choice = gr.choose(
    ...     lambda chance, example: float(draws[example] < chance),
    ...     candidates=chances, examples=range(1000), score_range=(0, 1), workers=1, rng=0)
    >>> print(choice)
    B is the best (error at most 0.05, proved). ... of 3,000 evaluations.
    >>> choice.best, choice.within
    ('B', 0.0)
    """
    settings = Settings(
        score_range,
        delta,
        tolerance,
        claim,
        budget,
        cost,
        workers,
        retries,
        pause,
        on_failure,
        store,
        new_candidates,
        rng,
        progress,
    )
    candidates, examples = listed(candidates), listed_examples(examples)
    if is_coroutine(score):
        _refuse_running_loop()
    call = _of_task(score, candidates, examples)
    with opened(candidates, examples, settings) as (campaign, show):
        with ending_by_ctrl_c(campaign):
            if is_coroutine(score):
                asyncio.run(by_tasks(campaign, call, show))
            else:
                by_threads(campaign, call, show)
        return ended(campaign, candidates, settings)


async def choose_async(
    score: Score, candidates: Candidates, examples: Sequence[Any], **options: Any
) -> Choice:
    """Choose as `choose` does, from a running event loop: in notebooks and servers.

    Parameters
    ----------
    score : callable
        A coroutine function, or a plain one, which is called in threads.
    candidates, examples
        As of `choose`.
    **options
        Those of `choose`. If the call is cancelled, what is under way is finished and kept in the store.

    Returns
    -------
    Choice
        As of `choose`.

    Examples
    --------
    >>> import asyncio, gumbelrace as gr
    >>> async def score(candidate, example):
    ...     return float(candidate == "good")
    >>> options = dict(score_range=(0, 1), rng=0, workers=1)
    >>> asyncio.run(gr.choose_async(score, ["good", "bad"], range(100), **options)).best
    'good'
    """
    settings, candidates, examples = Settings(**options), listed(candidates), listed_examples(examples)
    with (
        opened(candidates, examples, settings) as (campaign, show),
        ThreadPoolExecutor(settings.workers) as pool,
    ):
        score_task = _of_task(score, candidates, examples)
        call = score_task if is_coroutine(score) else _in_threads(score_task, pool)
        running = asyncio.ensure_future(by_tasks(campaign, call, show))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            campaign.interrupt()
            await running
            raise
        return ended(campaign, candidates, settings)


@contextmanager
def opened(
    candidates: Candidates, examples: Sequence[Any], settings: Settings
) -> Iterator[tuple[Campaign, Callable[[], None]]]:
    """Lend a campaign and what shows how far it is; close its store in the end."""
    campaign = begun(candidates, examples, settings)
    try:
        with shown(campaign, settings.progress) as show:
            yield campaign, show
    finally:
        campaign.store.close()


def ended(campaign: Campaign, candidates: Candidates, settings: Settings) -> Choice:
    """Say what was found, or raise what went wrong."""
    if campaign.fault is not None:
        raise campaign.fault
    return conclude(campaign, list(candidates), settings.cost is not None)


def listed(candidates: Candidates) -> Candidates:
    """Give candidates that can be gone through again and again."""
    return candidates if isinstance(candidates, Mapping) else list(candidates)


def listed_examples(examples: Any) -> Sequence[Any]:
    """Give examples by number, as they are if they can be had so."""
    if hasattr(examples, "to_dict"):
        raise InvalidArgument("examples is a data frame: give its rows, as examples.to_dict('records')")
    by_number = hasattr(examples, "__getitem__") and hasattr(examples, "__len__")
    return examples if by_number and not isinstance(examples, Mapping) else list(examples)


def is_coroutine(score: Score) -> bool:
    """Whether a score is a coroutine function, or an object that is called as one."""
    return inspect.iscoroutinefunction(score) or inspect.iscoroutinefunction(type(score).__call__)


def _of_task(score: Score, candidates: Candidates, examples: Sequence[Any]) -> Callable[[Task], Any]:
    values = list(candidates.values()) if isinstance(candidates, Mapping) else candidates
    return lambda task: score(values[task.candidate], examples[task.example])


def _in_threads(
    score: Callable[[Task], float], pool: ThreadPoolExecutor
) -> Callable[[Task], Awaitable[float]]:
    return lambda task: asyncio.get_running_loop().run_in_executor(pool, score, task)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidArgument("an event loop is running: write `await gumbelrace.choose_async(...)`")
