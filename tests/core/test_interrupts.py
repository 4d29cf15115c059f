"""Ctrl-C that is lost on its way comes again."""

import signal
import time

import pytest

from gumbelrace.core.interrupts import never_missed


def lost():
    """Lose one Ctrl-C, as callbacks of C do, and wait for another."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        time.sleep(30.0)


def test_what_is_lost_is_raised_again():
    with pytest.raises(KeyboardInterrupt), never_missed():
        lost()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_handler_is_left_alone():
    before, seen = signal.signal(signal.SIGINT, lambda *_: seen.append(1)), []
    try:
        with never_missed():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]
