"""Rules of a user's own: they never stand for others of the same name."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np

import gumbelrace as gr
from gumbelrace.methods import rules
from gumbelrace.methods.state import ALIVE, LOOKS

REWARDS = np.random.default_rng(0).uniform(size=(2000, 3)) + np.array([0.0, 0.0, 1.0])
ELSEWHERE = (
    "import numpy as np, gumbelrace as gr; print(gr.Exact().best(np.eye(50, 2), None, 0).evaluations)"
)


def rule_for(winner):
    """Make a rule of the name and fields of `Exact`'s, by which `winner` wins after seven rows."""

    class Scan(NamedTuple):
        keeps: bool = False
        patient: bool = False

        def working_memory(self, arms):
            return 0

    @rules.implements(rules.begin, Scan)
    def begin(rule, workspace):
        return None

    @rules.implements(rules.next_look, Scan)
    def next_look(rule, workspace, arm):
        return 7

    @rules.implements(rules.judge, Scan)
    def judge(rule, workspace):
        workspace.state.tally[LOOKS] += 1
        for a in range(workspace.state.tally[ALIVE]):
            workspace.state.out[workspace.state.arms[a]] = workspace.state.arms[a] != winner

    return Scan()


class Mine(gr.Method):
    promise = gr.Promise(1.0)

    def __init__(self, winner):
        self._rule = rule_for(winner)

    def rule(self, population):
        return self._rule


def test_rules_that_share_a_name_are_told_apart():
    for winner in (0, 1):
        found = gr.best(REWARDS, method=Mine(winner), rng=0)
        assert (found.arm, found.evaluations) == (winner, 21)
    assert gr.best(REWARDS, method=gr.Exact(), rng=0).arm == 2
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["100"], done.stderr
