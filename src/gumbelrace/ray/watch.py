"""A small process that ends what a Ray leaves behind whose driver was killed; run by its path.

A driver that is killed takes Ray's daemon (`raylet`) along, but not what that has started: workers follow
within seconds, others after a minute. So this process, a child of the driver, notes the children of the
daemon, and kills them once driver or daemon are gone. It needs `/proc`, and imports next to nothing.
"""

import os
import signal
import time
from contextlib import suppress

# Seconds between two looks; and how many times as long as a look takes, where there are many processes.
OFTEN, SELDOM = 0.5, 50.0
DAEMON = "raylet"

Process = tuple[int, int]  # its number, and when it began: numbers are given again


def stat_of(pid: int) -> tuple[str, int, int]:
    """Give the name of a process, its parent, and when it began; OSError: it is gone."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        head, _, rest = file.read().rpartition(")")
    fields = rest.split()
    if fields[0] == "Z":
        raise ProcessLookupError(pid)
    return head.partition("(")[2], int(fields[1]), int(fields[19])


def tree() -> dict[int, tuple[str, int, int]]:
    """Give all processes of this machine that can be seen."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            found[int(pid)] = stat_of(int(pid))
    return found


def descendants(seen: dict[int, tuple[str, int, int]], of: set[int]) -> set[Process]:
    """Give all processes that these have started, and those in turn."""
    found: set[Process] = set()
    while of:
        below = {pid for pid, (_, parent, _) in seen.items() if parent in of}
        found |= {(pid, seen[pid][2]) for pid in below}
        of = below
    return found


def watch(driver: int) -> set[Process]:
    """Wait until the driver, our parent, or its daemon are gone; give what the daemon has started."""
    started: set[Process] = set()
    while os.getppid() == driver:
        begun = time.monotonic()
        seen = tree()
        daemons = {pid for pid, (name, parent, _) in seen.items() if (name, parent) == (DAEMON, driver)}
        if not daemons:
            break
        started |= descendants(seen, daemons)
        time.sleep(max(OFTEN, SELDOM * (time.monotonic() - begun)))
    return started


def end(processes: set[Process]) -> None:
    """Kill those that still run."""
    for pid, began in processes:
        with suppress(OSError):
            if stat_of(pid)[2] == began:
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    # Ctrl-C is for the driver, and does not end it at once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end(watch(os.getppid()))
