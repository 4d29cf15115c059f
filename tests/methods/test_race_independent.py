"""Rules for arms whose sizes change from race to race, against those for sizes that are known."""

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.methods.race_independent import independent_looks, looks_of_any_size


@pytest.mark.parametrize("bound", [gr.methods.Normal(), gr.methods.Serfling()], ids=repr)
@pytest.mark.parametrize("arms", [1, 2, 7, 90])
def test_a_rule_for_any_size_is_the_rule_for_these_sizes_or_safer(bound, arms):
    sizes = np.random.default_rng(arms).integers(4, 500, arms)
    known = independent_looks(bound, 0.05, 3, 3.0, tuple(sizes.tolist()))
    table = looks_of_any_size(bound, 0.05, 3, 3.0, np.zeros(100, np.int64), largest=500)
    for side, expected in enumerate((known.per_deviation, known.per_range)):
        found = table.scale[arms - 1, side] * (table.per_deviation, table.per_range)[side][:, sizes]
        assert np.all(found >= expected * (1 - 1e-12))
        assert np.all(found <= expected * 1.03)


def test_a_negative_weight_is_refused():
    with pytest.raises(errors.InvalidArgument, match="shrink"):
        gr.methods.Marginal(shrink=-1.0)
