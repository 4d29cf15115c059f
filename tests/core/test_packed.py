"""How compiled code finds data behind an address."""

import numpy as np
import pytest

from gumbelrace.core.packed import pack
from gumbelrace.errors import InvalidArgument


def test_packed_data_are_kept_alive_and_not_copied():
    array = np.arange(6.0).reshape(2, 3)
    packed = pack((array, 2.5, np.int32(7), True))
    assert packed.parts[0].ctypes.data == array.ctypes.data
    assert packed.words[0] == array.ctypes.data
    assert packed.words[1:5].tolist() == [2, 3, 24, 8]
    assert [str(t) for t in packed.type.types] == ["array(float64, 2d, C)", "float64", "int32", "bool"]


@pytest.mark.parametrize("item", [[1, 2], (1, 2), "a", None, {1}, np.array(["a", None]), object()])
def test_item_that_is_no_data_is_named(item):
    with pytest.raises(InvalidArgument, match=r"data\[2\]"):
        pack((1.0, 2.0, item))
