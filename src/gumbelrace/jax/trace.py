"""What chains of a JAX model leave behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gumbelrace.chain.worker import NOTHING, Plan, added
from gumbelrace.errors import optional
from gumbelrace.jax.chain import Made
from gumbelrace.jax.data import name_of
from gumbelrace.jax.packages import jax
from gumbelrace.kernels.base import Info
from gumbelrace.laplace.convergence import split_rhat, warn_of_rhat
from gumbelrace.laplace.model import Floats
from gumbelrace.verdict import Audit


class Pace:
    """How far chains that are computed side by side have come: what a line of progress shows of one."""

    def __init__(self, steps: int, warmup: int, shown: bool) -> None:
        self.plan, self.shown = Plan(steps - warmup, warmup, 1), shown
        self.begun = self.done = 0
        self.tally = NOTHING

    def add(self, made: Made, size: int) -> None:
        """Add steps of one of the chains."""
        steps = made.accepted.shape[1]
        self.done = min(self.done + steps, self.plan.total)
        read = int(2 * made.rows[0].sum()), 2 * size * steps
        self.tally = added(self.tally, Info(*read, steps, float(made.accepted[0].sum())))


@dataclass(frozen=True, eq=False, repr=False)
class JaxTrace:
    """Draws of a posterior of a JAX model.

    Attributes
    ----------
    draws : pytree of arrays
        The draws, of shape (chains, draws, ...) each.
    positions : ndarray of shape (chains, draws, d)
        The same as vectors.
    names : sequence of str
        The name of each coordinate of these.
    size : int
        Number of rows, N.
    checked : Audit or None
        What moves have shown that were judged again by all rows; None after Ctrl-C.
    interrupted : bool
        Whether Ctrl-C ended the chains.
    """

    draws: Any
    positions: Floats
    names: Sequence[str]
    size: int
    _made: Made
    checked: Audit | None = None
    interrupted: bool = False

    def __repr__(self) -> str:
        """Say what there is."""
        chains, draws, parameters = self.positions.shape
        what = f"chains={chains}, draws={draws}, parameters={parameters}"
        return f"JaxTrace({what}: {self.fraction:.2%} of the rows a step, {self.acceptance:.0%} accepted)"

    @property
    def rows(self) -> Floats:
        """Rows that each step read, of shape (chains, draws)."""
        read: Floats = self._made.rows
        return read

    @property
    def acceptance(self) -> float:
        """Share of the proposals that were accepted."""
        return float(self._made.accepted.mean())

    @property
    def fraction(self) -> float:
        """Rows that a step read, as a share of all."""
        return float(self.rows.mean() / self.size)

    @cached_property
    def rhat(self) -> Floats:
        """r-hat of each coordinate."""
        return split_rhat(self.positions)

    def warn(self) -> None:
        """Warn if the check has found a law that is off, or chains have not met."""
        if self.checked is not None:
            self.checked.warn()
        warn_of_rhat(self.rhat, self.names)

    def to_arviz(
        self,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
    ) -> Any:
        """Convert to the DataTree of ArviZ; needs the extra ``arviz``.

        The group ``posterior`` has the leaves of the draws, and ``sample_stats`` has `evaluations`,
        `acceptance_rate` and `law_error` of each step; the attributes have the promise and what the check
        found.

        Parameters
        ----------
        dims : mapping of str to sequence of str, optional
            Names for the dimensions of leaves after (chain, draw).
        coords : mapping of str to sequence, optional
            Labels for the entries of dimensions.
        """
        leaves = jax.tree_util.tree_flatten_with_path(self.draws)[0]
        return as_arviz({name_of(path): leaf for path, leaf in leaves}, self, dims, coords)


def as_arviz(
    posterior: Mapping[str, Any],
    trace: JaxTrace,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> Any:
    """Put draws into a DataTree, with what they took."""
    statistics = {
        "evaluations": (2 * trace.rows).astype(np.int64),
        "acceptance_rate": trace._made.accepted.astype(np.float64),
        "law_error": trace._made.law_error,
    }
    groups = {"posterior": dict(posterior), "sample_stats": statistics}
    attributes = {"inference_library": "gumbelrace", "checked": str(trace.checked or "nothing")}
    return optional("arviz_base", "arviz").from_dict(
        groups, dims=dims, coords=coords, attrs=dict.fromkeys(("/", *groups), attributes)
    )
