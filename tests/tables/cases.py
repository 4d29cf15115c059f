"""Arrays of every type and order, as .npy files in memory."""

import io

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gumbelrace.tables.rows import RowFile, npy_layout

DTYPES = ["?", "<i1", "<u2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8", ">f8"]
SHAPES = st.tuples(st.integers(1, 40), st.integers(2, 6))


@st.composite
def in_files(draw) -> tuple[np.ndarray, RowFile]:
    array = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), SHAPES, elements={"allow_nan": False}))
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if draw(st.booleans()) else array)
    file.seek(0)
    return array, RowFile(file, layout_of(file), "memory")


def layout_of(file: io.BytesIO):
    class InMemory:
        def stat(self):
            return type("Stat", (), {"st_size": len(file.getvalue())})

    return npy_layout(file, InMemory())
