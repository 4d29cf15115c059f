"""A driver that is killed leaves nothing of its own Ray behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
if not Path("/proc/self/stat").exists():
    pytest.skip("processes are watched by /proc", allow_module_level=True)

from gumbelrace.ray.watch import descendants, end, stat_of, tree, watch

# Two pieces of work that do not end by themselves: one sleeps, one never lets go of Python's lock.
DRIVER = """
import os, sys, time
from pathlib import Path
from gumbelrace.ray import Cluster

def busy(folder, number):
    Path(folder, str(number)).touch()
    time.sleep(3600) if number == 0 else sum(range(10**12))

FOLDER = sys.argv[1]
cluster = Cluster("local", num_cpus=2, object_store_memory=100_000_000)
sent = [cluster.submit(busy, FOLDER, number) for number in range(2)]
while len(os.listdir(FOLDER)) < 2:
    time.sleep(0.1)
print("busy", flush=True)
time.sleep(3600)
"""
# Seconds; nothing is measured here, but without the watch some processes stay for a minute.
BOUND = 20.0


def running(processes):
    found = set()
    for pid, began in processes:
        try:
            if stat_of(pid)[2] == began:
                found.add(pid)
        except OSError:
            continue
    return found


def test_nothing_is_left_of_a_ray_whose_driver_was_killed(tmp_path):
    """All processes below the driver are gone within seconds, workers in the middle of a task too."""
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout.readline() == "busy\n"
            time.sleep(1.0)  # the watch looks twice a second
            below = descendants(tree(), {driver.pid})
            names = {stat_of(pid)[0] for pid, _ in below}
        finally:
            driver.kill()
    assert "raylet" in names
    assert sum(name.startswith("ray::") for name in names) >= 1
    deadline = time.monotonic() + BOUND
    while (left := running(below)) and time.monotonic() < deadline:
        time.sleep(0.1)
    end(below)
    assert not left


def test_a_process_that_has_its_number_from_another_is_spared():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        began = stat_of(child.pid)[2]
        end({(child.pid, began - 1)})
        assert stat_of(child.pid)[2] == began
        end({(child.pid, began)})
        assert child.wait() == -signal.SIGKILL


def test_what_others_have_started_is_not_its_business():
    """This process has a child, but no daemon of Ray's: there is nothing to wait for, or to end."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert watch(os.getppid()) == set()
        assert (child.pid, stat_of(child.pid)[2]) in descendants(tree(), {os.getpid()})
        child.communicate(b"\n")
