"""A table in several files, and what one process finds."""

import numpy as np
import pytest
from tests.laplace.cases import simulated
from tests.ray.cases import SHARDS, fitted

import gumbelrace as gr


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("rows")
    for k, part in enumerate(np.array_split(np.column_stack(simulated(30_000, 2)), SHARDS)):
        np.save(found / f"{k}.npy", part)
    return found


@pytest.fixture(scope="session")
def alone(folder):
    return fitted(gr.open_table(folder))
