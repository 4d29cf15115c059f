"""Where other packages and classes keep data: pandas, sparse matrices, slots, classes of the user's own."""

import contextlib
import sys
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from gumbelrace.chain.contents import ROWS, SETS, is_array, is_value, origin

LIBRARY = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages")


def is_frame(value: Any) -> bool:
    """Whether a value is a table or a series of pandas."""
    return origin(value) == "pandas" and hasattr(value, "iloc")


def columns_of(frame: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a table of pandas, or of a series, each as an array, and what names the rows."""
    yield "index", frame.index
    if frame.ndim == 1:
        yield "values", frame.to_numpy()
        return
    yield "columns", frame.columns
    for place, label in enumerate(frame.columns):
        name = f"[{label!r}]" if frame.columns.is_unique else f"[{place}]"
        yield name, frame.iloc[:, place].to_numpy()


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix or array of SciPy."""
    return origin(value) == "scipy" and hasattr(value, "tocsr")


def parts_of_sparse(matrix: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a sparse matrix says, in whatever order it has it, and nothing that it keeps for later."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()  # sorts them, too
    yield "shape", rows.shape
    yield "data", rows.data
    yield "indices", rows.indices.astype(np.int64)
    yield "indptr", rows.indptr.astype(np.int64)


def slots_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that lie in slots, but for those of Python's own classes, which keep caches."""
    for base in type(value).__mro__:
        if "__slots__" in vars(base) and not _is_standard(base):
            for name, slot in vars(base).items():
                with contextlib.suppress(AttributeError):  # not set yet
                    if isinstance(slot, types.MemberDescriptorType):
                        yield name, slot.__get__(value)


def is_users(kind: type) -> bool:
    """Whether a class is of the user's own code: neither Python's nor ours nor of an installed package."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    installed = any(folder in file for folder in INSTALLED)
    return not (installed or _root(kind) == LIBRARY or _is_standard(kind) or issubclass(kind, Enum))


def class_data(kind: type) -> dict[str, Any]:
    """Give the data that a class of the user's own has, inherited ones too."""
    bases = [base for base in reversed(kind.__mro__) if is_users(base)]
    everything = {name: within for base in bases for name, within in vars(base).items()}
    return {name: within for name, within in everything.items() if not _is_machinery(name, within)}


def _is_machinery(name: str, within: Any) -> bool:
    is_data = is_value(within) or is_array(within) or isinstance(within, (dict, *ROWS, *SETS))
    return name.startswith(("__", "_abc_")) or not is_data


def _is_standard(kind: type) -> bool:
    return _root(kind) in sys.stdlib_module_names  # a user's script is not: it is __main__


def _root(kind: type) -> str:
    return (kind.__module__ or "").partition(".")[0]
