"""Ctrl-C for programs that must not miss it.

What Python raises at Ctrl-C is lost now and then: in modules of C that are being loaded, in finalisers, in
callbacks. So it is raised again until somebody says that it was heard.
"""

import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

# Seconds after which it is raised again.
AGAIN = 1.0


class Interrupts:
    """Handles Ctrl-C: raises KeyboardInterrupt, and again from time to time until `heard` is called."""

    _timer: threading.Timer | None = None

    def __call__(self, number: int, frame: Any) -> NoReturn:
        """Raise it now, and prepare to do so once more."""
        self.heard()
        self._timer = threading.Timer(AGAIN, _wake_main)
        self._timer.daemon = True
        self._timer.start()
        raise KeyboardInterrupt

    def install(self) -> None:
        """Take the place of Python's own handler, if that is in use."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGINT, self)
        sys.unraisablehook = _unless_interrupted

    def heard(self) -> None:
        """Do not raise it again."""
        if self._timer is not None:
            self._timer.cancel()

    def leave_to_system(self) -> None:
        """Let Ctrl-C end the process at once from now on, without a word."""
        self.heard()
        if signal.getsignal(signal.SIGINT) is self:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wake_main() -> None:
    """Press Ctrl-C once more; where there are signals, what the main thread waits for ends, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        interrupt_main()


def _unless_interrupted(lost: Any) -> None:
    """Say nothing of a Ctrl-C that was lost: it comes again."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


INTERRUPTS = Interrupts()


@contextmanager
def never_missed() -> Iterator[None]:
    """Raise Ctrl-C until it is heard, within a block: numba loses it while it compiles."""
    own = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if (
        before is not signal.default_int_handler
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    signal.signal(signal.SIGINT, own)
    try:
        yield
    finally:
        own.heard()
        signal.signal(signal.SIGINT, before)
