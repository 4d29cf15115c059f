"""The best of 20 candidates by right or wrong answers to 10,000 examples: the settings of `choose.py`."""

import time
from collections.abc import Callable
from typing import Any

import choose
import numpy as np

WORKED = "accuracies .70-.80, linear", "one at .80, rest up to .78"


def measured(way: Callable[[Any, Any], Any], ask: Any) -> dict[str, Any]:
    """Choose in `ask.size` simulated runs of each setting."""
    settings = [setting for setting in choose.SETTINGS if setting.name in WORKED]
    return {setting.name: in_setting(way, setting, ask.size) for setting in settings}


def in_setting(way: Callable[[Any, Any], Any], setting: Any, runs: int) -> dict[str, float]:
    took, seconds = [], 0.0
    way(choose.simulated(setting, np.random.default_rng(runs)), np.random.default_rng(runs))  # compiles
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        scores = choose.simulated(setting, rng)
        began = time.process_time()
        took.append(way(scores, rng))
        seconds += time.process_time() - began
    shares, wrong = zip(*took, strict=True)
    return {
        "share": float(np.mean(shares)),
        "wrong": int(sum(wrong)),
        "runs": runs,
        "seconds": seconds / runs,
    }


def halving(share: float) -> Callable[[Any, Any], Any]:
    return lambda scores, rng: choose.by_halving(scores, share * scores.size)


WAYS = {
    "ours, choose": lambda ask: measured(lambda scores, rng: choose.by_choose(scores), ask),
    "ours, best": lambda ask: measured(choose.by_table, ask),
    "successive halving, 20%": lambda ask: measured(halving(0.2), ask),
    "successive halving, 5%": lambda ask: measured(halving(0.05), ask),
    "paired t-race": lambda ask: measured(lambda scores, rng: choose.by_t_race(scores), ask),
    "paired t-race from row 500": lambda ask: measured(
        lambda scores, rng: choose.by_t_race(scores, 500), ask
    ),
}
