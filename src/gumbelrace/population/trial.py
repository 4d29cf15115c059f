"""A user's numba function is tried out before it is raced on: what it gives, and whether its data suffice.

Compiled code stores whatever it is given and checks no index. So numba says once what type a function
gives, and it runs once at the last row and arm, where an index that is too large shows: as plain Python, or
compiled with indices checked if Python cannot say.
"""

import functools
import types as python
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from gumbelrace.core.packed import pack
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import check_unmasked, real_array

# Arrays of at most so many bytes are copied for the trial, so that a function may write into them.
COPIED = 2**20
# What numba knows by the modules it is from.
KNOWN_TO_NUMBA = {"numpy", "math", "cmath", "operator", "builtins", "numba"}
# Options that change what a function computes.
ARITHMETIC = ("error_model", "fastmath")


class Call(NamedTuple):
    """A call of a user's function with the largest row and arm.

    Attributes
    ----------
    function : numba function
        The function.
    form : str
        How it is called, for messages: "log_factor(n, arm, *data)".
    first : dict
        The arguments before the data, by name.
    data : tuple
        The user's arrays and numbers.
    """

    function: Any
    form: str
    first: dict[str, Any]
    data: tuple[Any, ...] = ()

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (*self.first.values(), *self.data)

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return self.form.partition("(")[0]


def try_out(call: Call, numbers: int = 1) -> None:
    """Refuse a function that gives anything but real numbers, so many, or that reads beyond its data."""
    tried = _record(call.function, tuple(map(_likeness, call.arguments)))
    if not tried:
        check_result(call, numbers)
        if _reads_within(call):
            tried.append(True)


@functools.lru_cache(maxsize=1024)
def _record(function: Any, likeness: tuple[Any, ...]) -> list[bool]:
    """Remember a trial: kernels make populations of the same function at every step."""
    return []


def _likeness(item: Any) -> Any:
    """Give what an index, or the type of a result, may depend on."""
    if isinstance(item, np.ndarray):
        return item.dtype, item.shape
    return item if isinstance(item, (int, np.integer)) else type(item)


def checked_dispatcher(function: Any, name: str) -> Any:
    if not isinstance(function, Dispatcher):
        raise InvalidArgument(f"{name} is not compiled; decorate it with @numba.njit")
    return function


def checked_data(data: Any, example: str) -> tuple[Any, ...]:
    """Return a user's data, a tuple of array-likes and numbers of which nothing is masked, as arrays."""
    if not isinstance(data, tuple):
        raise InvalidArgument(f"data is a {type(data).__name__}; give a tuple, for example {example}")
    plain = tuple(_as_data(item, f"data[{k}]") for k, item in enumerate(data))
    pack(plain)  # says what is wrong with it
    return plain


def _as_data(item: Any, name: str) -> Any:
    """Give an array-like as an array; and one with a mask of nothing without it, which numba knows not."""
    check_unmasked(item, name)
    if isinstance(item, np.ma.MaskedArray):
        return np.ma.getdata(item)
    is_array_like = isinstance(item, list) or hasattr(type(item), "__array__")
    is_numpy = isinstance(item, np.ndarray | np.generic)
    return real_array(item, name) if is_array_like and not is_numpy else item


@contextmanager
def explained(form: str, data: tuple[Any, ...]) -> Iterator[None]:
    """Say in our words what numba cannot compile."""
    try:
        yield
    except NumbaError as error:
        given = f" with {len(data)} items of data: {pack(data).type}" if "data" in form else ""
        raise InvalidArgument(
            f"numba cannot compile {form.partition('(')[0]} for these data (its message is above); "
            f"it is called as {form}{given}"
        ) from error


def check_result(call: Call, numbers: int = 1) -> None:
    """Refuse a function that gives anything but real numbers, so many."""
    with explained(call.form, call.data):
        result = _result_type(call)
    results = result.types if numbers > 1 and isinstance(result, types.BaseTuple) else [result]
    wrong = [kind for kind in results if not isinstance(kind, types.Float | types.Integer | types.Boolean)]
    if wrong or len(results) != numbers:
        wanted = "a real number" if numbers == 1 else f"a tuple of {numbers} real numbers"
        raise InvalidArgument(f"{call.form} gives {_described(result)}; it must give {wanted}")


def _result_type(call: Call) -> Any:
    """Ask numba for the type of the result; what it compiles for that, a race will need.

    What numba knows is shared by all threads: they take turns, as when they compile.
    """
    context, kinds = cpu_target.typing_context, pack(call.arguments).type.types
    with global_compiler_lock:
        context.refresh()
        found = context.resolve_function_type(numba.typeof(call.function), kinds, {})
    return types.unliteral(found.return_type)


def _described(kind: Any) -> str:
    if isinstance(kind, types.Array):
        return "an array: an index such as [n] is missing"
    if isinstance(kind, types.Optional | types.NoneType):
        return "None, always or sometimes: a return is missing"
    return f"a result of type {kind}"


def _reads_within(call: Call) -> bool:
    """Refuse a function that reads beyond its data; say whether it is known that it does not."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _passes_interpreted(call) or _passes_compiled(call)
    except IndexError as error:
        what = str(error) if isinstance(error, _BeyondTheEnd) else f"an array or a tuple{_shapes(call)}"
        at = ", ".join(f"{key} = {value}" for key, value in call.first.items() if np.ndim(value) == 0)
        where = f"{what} at {at}" if at else what.rstrip(",")
        advice = "the numbers of rows and arms must fit the data" if call.data else "the index is too large"
        raise ShapeMismatch(f"{call.name} reads beyond {where}: {advice}") from error


def _shapes(call: Call) -> str:
    arrays = [(f"data[{k}]", item) for k, item in enumerate(call.data) if isinstance(item, np.ndarray)]
    shapes = ", ".join(f"{name} is of shape {item.shape}" for name, item in arrays)
    return f" ({shapes})" if shapes else ""


def _passes_interpreted(call: Call) -> bool:
    """Whether a function runs as plain Python; an index that is too large is an IndexError."""
    beyond: list[IndexError] = []
    names = [*call.first, *(f"data[{k}]" for k in range(len(call.data)))]
    watched = [_watched(*item, beyond) for item in zip(call.arguments, names, strict=True)]
    try:
        interpreted(call.function)(*watched)
    except IndexError:
        raise
    except Exception:
        # Python's arithmetic raises where compiled code goes on, and not all of that can be interpreted.
        return False
    if beyond:  # in a function that handles exceptions: compiled, there would be none
        raise beyond[0]
    return True


def _passes_compiled(call: Call) -> bool:
    """Whether a function runs compiled with indices checked; large arrays are copied if it writes."""
    for most in (COPIED, np.inf):
        try:
            bounds_checked(call.function)(*(_lent(item, most) for item in call.arguments))
        except IndexError:
            raise
        except NumbaError:
            continue  # it writes into an array that was not copied
        except Exception:
            return False  # at this row it fails by itself: a race will tell
        return True
    return False


def _lent(item: Any, most: float) -> Any:
    """Give an array to read, and a copy to write into if it has at most so many bytes; else the item."""
    if not isinstance(item, np.ndarray):
        return item
    lent = np.array(item, order="K") if item.nbytes <= most else np.asarray(item).view()
    lent.flags.writeable = item.nbytes <= most and item.flags.writeable
    return lent


class _BeyondTheEnd(IndexError):
    """An index that is too large for an array that was watched; the message is about the array."""


class _Watched(np.ndarray[Any, Any]):
    """An array that says which one it is when an index is too large, and remembers that there was one."""

    name: str
    beyond: list[IndexError]

    def __array_finalize__(self, whole: Any) -> None:
        self.name, self.beyond = getattr(whole, "name", ""), getattr(whole, "beyond", [])

    def __getitem__(self, key: Any) -> Any:
        with self._named():
            return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._named():
            super().__setitem__(key, value)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except IndexError as error:
            self.beyond.append(_BeyondTheEnd(f"{self.name}, of shape {self.shape},"))
            raise self.beyond[-1] from error


def _watched(item: Any, name: str, beyond: list[IndexError]) -> Any:
    """Give an array that may be read, and written without effect on the original; a number as it is."""
    if not isinstance(item, np.ndarray):
        return np.int64(item) if isinstance(item, int) and not isinstance(item, bool) else item
    watched = _lent(item, COPIED).view(_Watched)
    watched.name, watched.beyond = name, beyond
    return watched


# ---- A function built anew, with all that it calls: to be run where indices are checked ----
#
# Plain Python checks all, and nothing need be compiled for it, but it raises where compiled code goes on
# (math.log(0.0)) and cannot run all of that; numba checks indices, too, in what it compiles for it.


def interpreted(function: Any) -> Any:
    """Give a numba function as plain Python."""
    return _Rebuilding(lambda plain, options: plain).function(function)


@functools.lru_cache(maxsize=256)
def bounds_checked(function: Any) -> Any:
    """Give a numba function that raises IndexError at an index that is too large."""
    return _Rebuilding(_with_bounds_checked).function(function)


def _with_bounds_checked(plain: Any, options: dict[str, Any]) -> Any:
    kept = {name: options[name] for name in ARITHMETIC if name in options}
    return numba.njit(boundscheck=True, **kept)(plain)


class _Rebuilding:
    """Makes functions anew by `finish`, which is given their plain Python and numba's options for them."""

    def __init__(self, finish: Callable[[Any, dict[str, Any]], Any]) -> None:
        self._finish, self._made = finish, dict[Any, Any]()

    def function(self, dispatcher: Any) -> Any:
        """Make a function and what it calls, once: it may call itself."""
        if dispatcher not in self._made:
            given = dispatcher.py_func
            around, cells = dict(given.__globals__), [python.CellType() for _ in given.__closure__ or ()]
            plain = python.FunctionType(
                given.__code__, around, given.__name__, given.__defaults__, tuple(cells)
            )
            plain.__kwdefaults__ = given.__kwdefaults__
            self._made[dispatcher] = self._finish(plain, dispatcher.targetoptions)
            around.update(
                {name: self.item(around[name]) for name in _names(plain.__code__) if name in around}
            )
            for cell, original in zip(cells, given.__closure__ or (), strict=True):
                cell.cell_contents = self.item(original.cell_contents)
        return self._made[dispatcher]

    def item(self, item: Any) -> Any:
        """Give what stands for something that a function names."""
        if isinstance(item, Dispatcher):
            return self.function(item)
        if isinstance(item, python.ModuleType) and item.__name__.partition(".")[0] not in KNOWN_TO_NUMBA:
            return _Module(item, self)
        return item


class _Module(python.ModuleType):
    """A module whose numba functions are built anew."""

    def __init__(self, original: python.ModuleType, rebuilding: _Rebuilding) -> None:
        super().__init__(original.__name__)
        self._original, self._rebuilding = original, rebuilding

    def __getattr__(self, name: str) -> Any:
        return self._rebuilding.item(getattr(self._original, name))


def _names(code: python.CodeType) -> Iterator[str]:
    """List what a function names, also in functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, python.CodeType):
            yield from _names(constant)
