"""Gibbs sampling of discrete variables: each draw is the argmax of log prior + Gumbel + Σ log f_n."""

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.kernels.checks import check_function, check_room, check_state, check_sweeps, set_method
from gumbelrace.kernels.schedules import Annealing, Constant, Scan, Systematic, checked_temperature
from gumbelrace.kernels.target import Decisions
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
from gumbelrace.population.base import Population, checked_count
from gumbelrace.population.table import as_population
from gumbelrace.sampling import checked_prior

Values = NDArray[np.integer[Any]]
Conditional = Callable[[Values, int], tuple[Population | ArrayLike, ArrayLike | None]]


class Labels(NamedTuple):
    """State of a chain on discrete variables.

    Attributes
    ----------
    labels : ndarray of integers
        The value of each variable. The dtype is kept.
    sweep : int
        Sweeps made so far, from which the temperature follows.
    """

    labels: Values
    sweep: int = 0


@dataclass(frozen=True, eq=False)
class Gibbs(Kernel[Labels]):
    """Gibbs sampling of discrete variables; a step is a sweep over them, each draw a race.

    Parameters
    ----------
    conditional : callable
        ``conditional(labels, variable)`` gives (population, log_prior): the population has an arm for
        each state of the variable, its rewards the log factors given the other variables (an array is taken
        as a `table`), and log_prior of shape (D,), or None, is added. `labels` is read-only and lasts as
        long as the call.
    variables : int
        Number of variables.
    scan : Scan
        Order of the visits: `Systematic`, `Shuffled` or `RandomScan`.
    annealing : callable
        Temperature of each sweep, by which the Gumbel noise is multiplied: `Constant`, `Geometric` or
        any function of the sweep's number. At 0 the best state is taken: the search ends in a mode.
    delta, method : optional
        Who decides: one of them, or neither. Default: `Absorb`, which needs no winner; with a `delta`, a
        race that finds one and is wrong with that probability at most: `Betting` where the population knows
        its reward range, else `Race`.

    Examples
    --------
    Two variables in {0, 1, 2} that like to be equal, each pair of rows a factor:

    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> liking = rng.uniform(0.0, 0.01, 1000)
    >>> def conditional(labels, variable):
    ...     return gr.table(np.outer(liking, np.arange(3) == labels[1 - variable])), [0.0, 0.0, 1.0]
    >>> kernel = gr.Gibbs(conditional, variables=2)
    >>> state = kernel.start([0, 1])
    >>> for _ in range(200):
    ...     state, info = kernel.step(rng, state)
    >>> bool(state.labels[0] == state.labels[1]), state.sweep
    (True, 200)
    """

    tuning: ClassVar[frozenset[str]] = frozenset({"sweep"})

    conditional: Conditional
    variables: int
    _: KW_ONLY
    scan: Scan = field(default_factory=Systematic)
    annealing: Annealing = field(default_factory=Constant)
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        set_method(self, delta, Question.DRAW)
        checked_count(self.variables, "variables")
        check_function(self.conditional, "conditional", "conditional(labels, variable)")
        check_sweeps(self.scan, self.annealing)

    def start(self, labels: ArrayLike | None = None, *, rng: Rng = None) -> Labels:
        """Give the state of a chain that starts from labels; by default, all variables have label 0."""
        as_generator(rng)
        return Labels(self._labels(np.zeros(self.variables, np.int64) if labels is None else labels))

    def step(self, rng: np.random.Generator, state: Labels) -> tuple[Labels, Info]:
        """Visit the variables of one sweep, and draw each given all others."""
        check_state(state, Labels)
        decisions, labels = Decisions(self.method, rng), self._labels(state.labels)
        temperature = checked_temperature(self.annealing(state.sweep))
        order, changes = self.scan.order(rng, self.variables), 0
        for variable in order.tolist():
            label = self._draw(decisions, labels, variable, temperature)
            changes += int(label != labels[variable])
            labels[variable] = label
        return Labels(labels, state.sweep + 1), decisions.info(changes / len(order))

    def _labels(self, given: ArrayLike) -> Values:
        labels = np.array(given)
        if labels.shape != (self.variables,) or labels.dtype.kind not in "iu":
            raise ShapeMismatch(
                f"labels has shape {labels.shape} and dtype {labels.dtype}; it must hold an integer for "
                f"each of {self.variables} variables"
            )
        return labels

    def _draw(self, decisions: Decisions, labels: Values, variable: int, temperature: float) -> int:
        given = labels.view()
        given.setflags(write=False)
        population, log_prior = checked_conditional(self.conditional(given, variable), variable)
        check_room(labels, population.arms)
        prior = checked_prior(log_prior, population)
        return decisions.draw(population, prior, temperature)


def checked_conditional(given: Any, variable: int) -> tuple[Population, ArrayLike | None]:
    """Return what a conditional gave if it is a population, or an array of rewards, and a log prior."""
    if not (isinstance(given, tuple) and len(given) == 2):
        raise InvalidArgument(
            f"the conditional of variable {variable} gave {type(given).__name__}; it must give "
            "(population, log_prior), and None for a log prior of zeros"
        )
    return as_population(given[0]), given[1]
