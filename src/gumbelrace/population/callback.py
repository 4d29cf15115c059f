"""Python that compiled code calls by its address: factors, many rewards at a time, and parts of steps."""

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.interrupts import INTERRUPTS
from gumbelrace.core.jit import address_of
from gumbelrace.errors import ShapeMismatch
from gumbelrace.population.arrays import floats

_WORD = ctypes.c_int64
_READER = ctypes.CFUNCTYPE(_WORD, *[_WORD] * 7)
_ENTRY = ctypes.CFUNCTYPE(_WORD, _WORD)
_SLOT = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD)

# rewards(index, arms) -> array of shape (len(index), len(arms))
Rewards = Callable[[NDArray[np.int64], NDArray[np.int64]], Any]


class _MainThread:
    """Whether Python that compiled code has called runs in the main thread, and Ctrl-C came before it."""

    inside = pending = False
    handler: Any = staticmethod(signal.default_int_handler)  # raises what Ctrl-C means

    def enter(self) -> None:
        """Let Ctrl-C be raised from here on: somebody catches it."""
        if threading.current_thread() is threading.main_thread():
            self.inside = True
            if self.pending:
                raise KeyboardInterrupt

    def note(self, number: int, frame: Any) -> None:
        """Handle Ctrl-C; should Python lose what is raised here (in a finaliser), it is raised later."""
        self.pending = True
        if self.inside:
            self.handler(number, frame)

    def leave(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.inside = False


_MAIN = _MainThread()


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Have Ctrl-C wait, while compiled code runs, for Python that it calls, or until it has returned.

    Raised where compiled code enters Python, before anything can catch it, it would be lost, and what is
    returned would be anything.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before not in (signal.default_int_handler, INTERRUPTS, _MAIN.note):
        yield
        return
    if before != _MAIN.note:
        _MAIN.handler = before
    inside, _MAIN.inside = _MAIN.inside, False
    signal.signal(signal.SIGINT, _MAIN.note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        pending, _MAIN.pending, _MAIN.inside = _MAIN.pending, False, inside
    if pending:
        raise KeyboardInterrupt


class Callback:
    """A READER that calls `rewards`, keeping its exception for the thread that asked."""

    def __init__(self, rewards: Rewards) -> None:
        self._rewards, self._local = rewards, threading.local()
        self._function = _READER(self._read)
        self.address = address_of(self._function)

    def __reduce__(self) -> Any:
        """Leave to pickle the function alone: an address means nothing to another process."""
        return Callback, (self._rewards,)

    def take_exception(self) -> BaseException | None:
        """Return what the last failed call in this thread raised."""
        error: BaseException | None = getattr(self._local, "error", None)
        self._local.error = None
        return error

    def _read(
        self, context: int, rows: int, n_rows: int, arms: int, n_arms: int, out: int, stride: int
    ) -> int:
        # An exception cannot cross compiled code (nor can Ctrl-C): it waits here until that returns.
        try:
            _MAIN.enter()
            index, chosen = _words(rows, n_rows), _words(arms, n_arms)
            values = floats(self._rewards(index, chosen.copy()), "what log_factors gave")
            if values.shape != (n_rows, n_arms):
                raise ShapeMismatch(
                    f"log_factors gave an array of shape {values.shape} for {n_rows} rows and "
                    f"{n_arms} arms; it must be {(n_rows, n_arms)}"
                )
            _block(out, int(chosen.max()) + 1, n_rows, stride)[chosen] = values.T
            _MAIN.leave()
        except BaseException as error:
            _MAIN.leave()
            self._local.error = error
            return 0
        return n_rows * n_arms


class Hooks:
    """Python functions that the compiled steps of a chain call by their addresses, in one thread.

    The steps hold the lock of their generator; while Python runs it is free.
    """

    def __init__(self) -> None:
        self._kept = list[Any]()
        self._lock: Any = None
        self._error: BaseException | None = None

    def of_slot(self, function: Callable[[int], None]) -> int:
        return self._address(_SLOT(lambda context, slot: self._call(lambda: function(slot))))

    def entry(self, function: Callable[[], None]) -> int:
        return self._address(_ENTRY(lambda words: self._call(function)))

    @contextmanager
    def locked(self, lock: Any) -> Iterator[None]:
        """Hold a lock while compiled code runs; raise what went wrong in Python."""
        self._lock = lock
        with held_interrupts() if self._kept else nullcontext(), lock:
            yield
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _address(self, function: Any) -> int:
        self._kept.append(function)
        return address_of(function)

    def _call(self, function: Callable[[], None]) -> int:
        # An exception cannot cross compiled code (nor can Ctrl-C): it waits here until that returns.
        self._lock.release()
        try:
            _MAIN.enter()
            function()
            _MAIN.leave()
        except BaseException as error:
            _MAIN.leave()
            self._error = error
            return -1
        finally:
            self._lock.acquire()
        return 0


def _words(address: int, count: int) -> NDArray[np.int64]:
    memory: Any = (_WORD * count).from_address(address)
    return np.frombuffer(memory, np.int64).copy()


def _block(address: int, arms: int, n_rows: int, stride: int) -> NDArray[np.float64]:
    memory: Any = (ctypes.c_double * ((arms - 1) * stride + n_rows)).from_address(address)
    return np.ndarray((arms, n_rows), np.float64, buffer=memory, strides=(8 * stride, 8))
