"""Ray as an executor of Python's own kind: work becomes tasks, and workers that die are replaced."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from gumbelrace.core.pool import use_processors
from gumbelrace.errors import GumbelraceError, InvalidArgument, optional
from gumbelrace.population.base import checked_count
from gumbelrace.ray import watch

Watch = subprocess.Popen[bytes]
# Of the last function that this process, a worker, was given: its key, and itself.
_LAST: dict[str, Any] = {}


class Cluster(Executor):
    """Processors of one machine or many, by Ray: an executor, as those of `concurrent.futures` are.

    It goes where workers are asked for: ``gr.Passes(table, workers=)``, `population`, `load_table`. Each
    piece of work is a task on one processor. If its worker dies, or it fails with an error that is not one
    of gumbelrace's own (which would come again), it is tried again elsewhere. Functions and data go to
    workers as Ray sends them; gumbelrace must be installed there.

    Parameters
    ----------
    address : str, optional
        The Ray to join: "auto" for the one that runs on this machine, "ray://host:10001" for another.
        Default: what this process has joined already, or what runs on this machine, or else a Ray of its
        own, which ends with this process, also if that is killed.
    tries : int
        How often a piece of work is tried before its error is raised.
    **options
        Given to ``ray.init``, for example ``num_cpus=2`` or ``runtime_env=``.

    Examples
    --------
    ::

        with gumbelrace.ray.Cluster() as cluster:
            passes = gr.Passes(gr.open_table("rows/"), rng=0, workers=cluster)
            fit = gr.posterior(log_factor, terms, (["x0", "x1"], "y"), table=passes, start=[0.0, 0.0])
            trace = fit.sample()
    """

    def __init__(self, address: str | None = None, *, tries: int = 4, **options: Any) -> None:
        self.tries, self._ray = checked_count(tries, "tries"), optional("ray", "ray")
        self._joined, self._watch = join(self._ray, address, options)
        settings = {"num_cpus": 1, "max_retries": tries - 1, "retry_exceptions": True}
        self._call = self._ray.remote(**settings)(called)
        self._under_way: set[Sent] = set()
        self._closed = False
        self._sent: tuple[Any, Any] = (None, None)  # the last function, and where Ray keeps it

    def __repr__(self) -> str:
        """Say how many processors there are."""
        return f"Cluster(processors={self._ray.cluster_resources().get('CPU', 0):g}, tries={self.tries})"

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have a worker call a function; see `concurrent.futures.Executor.submit`."""
        if self._closed:  # Ray would start anew, by itself
            raise RuntimeError("this cluster has been shut down; do all work within its `with` block")
        if self._sent[0] is not function:
            self._sent = function, self._ray.put(self._ray.cloudpickle.dumps(function))
        sent = Sent(self._call.remote([self._sent[1]], arguments, named), self)
        self._under_way.add(sent)
        sent.add_done_callback(self._under_way.discard)
        return sent

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave Ray, after what is under way has ended, or at once; a Ray of its own ends."""
        for sent in list(self._under_way):
            if cancel_futures:
                sent.cancel()
            elif wait:
                sent.exception()
        self._sent, self._closed = (None, None), True
        if self._joined:
            self._ray.shutdown()
            self._joined = False
        if self._watch is not None:
            self._watch.wait()

    def plain(self, error: BaseException) -> BaseException:
        """Give the error that a function raised, or one that says how its worker ended."""
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError) and isinstance(error.cause, Exception):
            return error.cause
        if isinstance(error, errors.WorkerCrashedError):
            return RuntimeError(f"its worker was killed, {self.tries} times, perhaps for lack of memory")
        return error


def join(ray: Any, address: str | None, options: dict[str, Any]) -> tuple[bool, Watch | None]:
    """Join a Ray, or start one; give whether it is to be left at the end, and what watches over our own."""
    if ray.is_initialized():
        if address is not None or options:
            raise InvalidArgument("this process has joined a Ray already; leave it first: ray.shutdown()")
        return False, None
    quiet = {"log_to_driver": False, "logging_level": "warning"}
    if address is None:
        address = "auto" if runs_here(ray, options) else "local"
    if address == "local":
        quiet["include_dashboard"] = False
    if not ray.is_initialized():
        ray.init(address=address, **quiet | options)
    return True, watch_over() if address == "local" else None


def watch_over() -> Watch | None:
    """Have what our own Ray has started end with this process, even if that is killed; see `watch`."""
    if not Path("/proc/self/stat").exists():
        return None
    command = [sys.executable, "-I", "-S", watch.__file__]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def runs_here(ray: Any, options: dict[str, Any]) -> bool:
    """Whether a Ray runs on this machine, or its address is in the environment; if so, join it."""
    if options:  # of a Ray that is to be started
        return False
    with suppress(ConnectionError):
        ray.init(address="auto", log_to_driver=False, logging_level="warning")
    return bool(ray.is_initialized())


class Sent(Future[Any]):
    """A piece of work that Ray has been given."""

    def __init__(self, reference: Any, cluster: Cluster) -> None:
        super().__init__()
        self._reference, self._cluster = reference, cluster
        reference.future().add_done_callback(self._take)

    def cancel(self) -> bool:
        """Take it back from Ray; its worker ends."""
        if not super().cancel():
            return False
        with suppress(Exception):  # it may have ended meanwhile, as may have Ray
            self._cluster._ray.cancel(self._reference, force=True)
        return True

    def _take(self, done: Future[Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            found = self._cluster._ray.cloudpickle.loads(done.result())
        except BaseException as error:
            self.set_exception(self._cluster.plain(error))
            return
        if isinstance(found, Refused):
            self.set_exception(found.error)
        else:
            self.set_result(found)


class Refused:
    """An error that would come again if the work were tried again."""

    def __init__(self, error: GumbelraceError) -> None:
        self.error = error


def called(function: list[Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    """Call a function, in a worker.

    It is kept for the next call, with what it has compiled. It and its result go as bytes: arrays that Ray
    shares between processes cannot be written to.
    """
    ray = optional("ray", "ray")
    use_processors(1)
    key = function[0].hex()
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = ray.cloudpickle.loads(ray.get(function[0]))
    try:
        found = _LAST[key](*arguments, **named)
    except GumbelraceError as error:
        found = Refused(error)
    packed: bytes = ray.cloudpickle.dumps(found)
    return packed
