"""How many workers there are changes nothing. Two of them: see the tests of the cluster."""

import numpy as np
import pytest
from tests.ray.cases import SMALL, fitted, same

import gumbelrace as gr

pytest.importorskip("ray", reason="Ray is not installed")

from gumbelrace.ray import Cluster


def test_one_worker_gives_what_one_process_gives(folder, alone):
    with Cluster("local", num_cpus=1, **SMALL) as cluster:
        assert same(fitted(gr.open_table(folder), workers=cluster), alone)
        assert cluster.submit(np.zeros, 3).result().flags.writeable
