"""A PyMC model given a table on disk: its arrays are a few rows of it, and stand for its columns."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.rows import DrawnRows
from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch, optional
from gumbelrace.laplace.batched import BatchedLikelihood
from gumbelrace.laplace.columns import checked_table, is_names
from gumbelrace.laplace.from_table import Passes, TablePosterior, posterior_of_table
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices, Tried, tried_one_by_one
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.pymc.functions import Functions, functions_of_rows
from gumbelrace.pymc.graph import Leaf, RowGraph
from gumbelrace.pymc.model import PymcModel

Columns = Mapping[str, str | Sequence[str]]


# Of the last graph that came from another process: its key, and what was compiled of it here.
_COMPILED: dict[str, Functions] = {}


@dataclass(frozen=True)
class RowsOfTable(PymcModel):
    """The same model of other rows than it was built with."""

    given_data: tuple[NDArray[Any], ...] = ()
    given_rows: int = 0
    key: str = ""  # of the graph, among those that a process is given

    def __reduce__(self) -> Any:
        """Leave to pickle the graph: what is compiled of it does not go to other processes."""
        return of_graph, (self.graph, self.given_start, self.given_data, self.given_rows, self.key)

    @property
    def all_rows(self) -> int:  # type: ignore[override]
        """How many rows there are."""
        return self.given_rows

    @property
    def identity(self) -> dict[str, Any]:
        """What log factors follow from, but for the rows: the graphs; checkpoints compare it."""
        show = optional("pytensor", "pymc").dprint
        graphs = show([self.graph.prior, self.graph.terms], file="str", id_type="")
        return {"graphs": graphs, "names": self.graph.names, "start": self.given_start}

    @property
    def data(self) -> tuple[NDArray[Any], ...]:
        """Arrays that compiled code reads, rows first."""
        return self.given_data

    def of_data(self, data: tuple[Any, ...], size: int) -> "RowsOfTable":
        """Give the same model of other rows."""
        pairs = zip(data, self.graph.leaves, strict=True)
        typed = tuple(as_in_model(one, leaf) for one, leaf in pairs)
        return RowsOfTable(self.graph, self.functions, self.given_start, None, None, typed, size, self.key)

    def tried(self, centre: Floats, steps: Floats, laws: Indices) -> Tried:
        """Read all rows at the centre and `steps`; see `Tried`."""
        return tried_one_by_one(lambda step: self.residuals(centre, step), steps, laws, self.size)

    def likelihood_of_drawn(self, mode: Mode, data: tuple[Any, ...], rows: DrawnRows) -> BatchedLikelihood:
        """Give the log factors of rows drawn ahead, less their expansion, whose sums are those of all."""
        typed = self.of_data(data, rows.size).data
        return BatchedLikelihood(self.functions.residuals, typed, rows, mode.theta, mode.factors)


def as_in_model(array: NDArray[Any], leaf: Leaf) -> NDArray[Any]:
    """Give numbers in the type that the model was built with, if it can hold them."""
    with np.errstate(invalid="ignore"):
        typed = np.ascontiguousarray(array, leaf.array.dtype)
    if typed.dtype.kind == "f" or typed.dtype == array.dtype or np.array_equal(typed, array):
        return typed
    value = array[typed != array][0]
    if not np.isfinite(value):  # whoever looks for the mode says where
        raise NoMode(f"{leaf.name} is {value} in a row")
    raise InvalidArgument(
        f"{leaf.name} is {value} in a row of the table, which {typed.dtype}, its type in the model, cannot "
        f"hold; build the model with an array of {array.dtype}"
    )


def of_graph(
    graph: RowGraph, start: Floats, data: tuple[NDArray[Any], ...], rows: int, key: str
) -> RowsOfTable:
    """Compile what passes need of a graph that comes from another process, once."""
    if key not in _COMPILED:
        _COMPILED.clear()
        _COMPILED[key] = Functions(*functions_of_rows(graph), None, None)
    return RowsOfTable(graph, _COMPILED[key], start, None, None, data, rows, key)


def of_table(
    model: PymcModel, columns: Columns | None, passes: Passes, method: Method | None, said: Progress
) -> TablePosterior:
    """Give the posterior of a model, whose arrays are columns of a table."""
    table, given = checked_table(passes.table), dict(columns or {})
    names = [columns_of(leaf, given, list(table.columns)) for leaf in model.graph.leaves]
    if given:
        known = ", ".join(leaf.name for leaf in model.graph.leaves)
        raise InvalidArgument(f"columns has {', '.join(given)}; arrays of the model with rows are {known}")
    lengths = {len(leaf.array) for leaf in model.graph.leaves}
    if len(lengths) > 1:
        raise InvalidArgument(
            f"the model has arrays of {sorted(lengths)} rows; with a table, all have the same rows"
        )
    size, key = model.graph.size, uuid.uuid4().hex
    rows = RowsOfTable(model.graph, model.functions, model.given_start, None, None, model.data, size, key)
    return posterior_of_table(rows, names, model.functions.log_prior, method, passes, said)


def columns_of(leaf: Leaf, given: dict[str, Any], known: Sequence[str]) -> Any:
    """Take the columns that stand for an array of the model out of those given; by its name, by default."""
    names = given.pop(leaf.name, leaf.name if leaf.name in known else None)
    if names is None:
        raise InvalidArgument(
            f'{leaf.name} has rows, and no column of the table stands for it; write x = pm.Data("x", ...) '
            'and name its columns: columns={"x": ["x0", "x1"], "y": "y"}'
        )
    wanted = leaf.array.shape[1:]
    if len(wanted) > 1 or (wanted and (not is_names(names) or len(names) != wanted[0])):
        raise ShapeMismatch(
            f"{leaf.name} has rows of shape {wanted}, and its columns are {names!r}; give a list of as many"
        )
    return list(names) if is_names(names) else names
