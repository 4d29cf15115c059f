"""Heads of .npy files, of all three versions: names of columns may have any letters in the third.

NumPy reads and writes that one, too, but not by functions of the head alone that are public.
"""

import ast
import struct
from typing import Any

import numpy as np

READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# Numbers begin at a multiple of that many bytes; a head is no longer than NumPy itself allows by default.
ALIGNED, LONGEST = 64, 10_000
LENGTH = "<I"


def read_npy_head(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, whether columns lie one after another, and the type."""
    version = np.lib.format.read_magic(file)
    if version == (3, 0):
        return _read_utf8(file)
    found: tuple[tuple[int, ...], bool, np.dtype[Any]] = READERS[version](file)
    return found


def write_npy_head(file: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Write the head of a file in which rows lie one after another."""
    head = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    try:
        repr(head).encode("latin1")
    except UnicodeEncodeError:
        _write_utf8(file, repr(head))
    else:
        np.lib.format.write_array_header_2_0(file, head)


def _read_utf8(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    (length,) = struct.unpack(LENGTH, _exactly(file, struct.calcsize(LENGTH)))
    if length > LONGEST:
        raise ValueError(f"a head of {length} bytes")
    try:
        head = ast.literal_eval(_exactly(file, length).decode("utf8"))
        descr, by_column, shape = head["descr"], head["fortran_order"], head["shape"]
        found = tuple(map(int, shape)), bool(by_column), np.lib.format.descr_to_dtype(descr)
    except (SyntaxError, TypeError, KeyError) as error:
        raise ValueError("the head is damaged") from error
    return found


def _exactly(file: Any, count: int) -> bytes:
    found: bytes = file.read(count)
    if len(found) < count:
        raise EOFError
    return found


def _write_utf8(file: Any, text: str) -> None:
    magic, encoded = np.lib.format.magic(3, 0), text.encode("utf8")
    before = len(magic) + struct.calcsize(LENGTH)
    spaces = -(before + len(encoded) + 1) % ALIGNED
    file.write(magic + struct.pack(LENGTH, len(encoded) + spaces + 1) + encoded + b" " * spaces + b"\n")
