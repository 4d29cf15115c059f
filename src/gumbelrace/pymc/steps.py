"""Steps for `pymc.sample` that read a few rows of the data, beside NUTS or any other step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, NoMode, UnknownRange, optional
from gumbelrace.kernels.target import Decisions
from gumbelrace.laplace.model import Floats
from gumbelrace.methods.base import Asked, Method
from gumbelrace.methods.default import chain_method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import PROPOSED, Question
from gumbelrace.methods.thinning import Thinning
from gumbelrace.pymc.discrete import joint_states, levels_of, places_of, vector_of
from gumbelrace.pymc.discrete_rows import ExpandedRows, PlainRows, expanded_rows, plain_rows
from gumbelrace.pymc.functions import used

compound: Any = optional("pymc.step_methods.compound", "pymc")
of_pymc: Any = optional("pymc.util", "pymc")

Point = dict[str, Any]
MOVE = Asked(Question.ACCEPT)
# Steps after which the length of a walk is tuned, and its best length in d dimensions, times √d, where the
# law is normal.
TUNE_EVERY, BEST_LENGTH = 100, 2.4
STATISTICS: dict[str, tuple[Any, list[int]]] = {
    "evaluations": (np.int64, []),
    "fraction_read": (np.float64, []),
    "law_error": (np.float64, []),
}


class RowStep(compound.BlockedStep):  # type: ignore[misc]
    """What steps that read rows share."""

    rows: PlainRows
    method: Method

    def set_model(self, model: Any, variables: Any, rng: Any) -> Any:
        """Find the variables in a model, which is given back."""
        model = optional("pymc", "pymc").modelcontext(model)
        self.vars = of_pymc.get_value_vars_from_user_vars(variables, model)
        self.rng = of_pymc.get_random_generator(rng)
        return model

    def set_rows(self, rows: PlainRows) -> None:
        """Take log factors, and find where the step's variables are in joint vectors."""
        self.rows = rows
        found = places_of(rows.graph, self.vars)
        self.places = {value.name: places for value, places in found.items()}

    def moved(self, point: Point, vector: Floats) -> Point:
        """Give a point with the entries of a joint vector in place of those of the step's variables."""
        new = dict(point)
        for name, places in self.places.items():
            old = np.asarray(point[name])
            new[name] = vector[places].reshape(old.shape).astype(old.dtype)
        return new


def read_by(decisions: Decisions) -> Point:
    """Say what decisions have read."""
    return {
        "evaluations": decisions.evaluations,
        "fraction_read": decisions.evaluations / max(decisions.rewards, 1),
        "law_error": decisions.law_error,
    }


class Gibbs(RowStep):
    """A step for discrete variables of few states, which draws them given all others by a few rows.

    Entries are drawn one after another, each between its states, whose rewards are the log factors of the
    rows. States of zero prior are left out.

    Parameters
    ----------
    vars : list
        Discrete variables of the model: Bernoulli, Categorical, DiscreteUniform or Binomial.
    method, delta : optional
        Who draws, as in `gumbelrace.Gibbs`. Default: `Absorb`.
    reward_range : (float, float), optional
        Numbers that bound the log factor of every row, wherever the other parameters are: `Betting` needs
        them.
    model : pymc.Model, optional
        The model. Default: that of the ``with`` block around the call.
    rng, blocked : optional
        As other steps of PyMC take them.

    Notes
    -----
    ``sample_stats`` has `evaluations` (log factors read), `fraction_read`, `law_error`, and `changed`, the
    share of the entries that changed. Where a log factor may be -inf in some state but not in others, use
    `Exact`: a few rows would not tell.

    Examples
    --------
    ::

        with model:
            idata = pm.sample(step=[raced.Gibbs([q]), pm.NUTS([theta])])
    """

    name = "raced_gibbs"
    stats_dtypes_shapes = STATISTICS | {"changed": (np.float64, [])}
    _state_class = compound.StepMethodState

    def __init__(
        self,
        vars: Sequence[Any],
        *,
        method: Method | None = None,
        delta: float | None = None,
        reward_range: tuple[ArrayLike, ArrayLike] | None = None,
        model: Any = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        model = self.set_model(model, vars, rng)
        levels = {value.name: levels_of(model, value) for value in self.vars}
        self.method = chain_method(delta, method, Question.DRAW)
        self.method.check_question(Question.DRAW)
        check_range(self.method, reward_range is not None, self.method.without_range)
        self.set_rows(plain_rows(model, reward_range))
        check_needed(self.rows, self.vars)
        self.entries = [(int(at), levels[name]) for name, places in self.places.items() for at in places]

    def step(self, point: Point) -> tuple[Point, list[Point]]:
        """Draw each entry given all others."""
        vector = vector_of(self.rows.graph.values, point)
        decisions, changed = Decisions(self.method, self.rng), 0
        for place, levels in self.entries:
            points = np.repeat(vector[None], len(levels), axis=0)
            points[:, place] = levels
            prior = np.array([self.rows.log_prior(one) for one in points])
            drawn = levels[decisions.draw(self.rows(points), prior)]
            changed += drawn != vector[place]
            vector[place] = drawn
        statistics = read_by(decisions) | {"changed": changed / len(self.entries)}
        return self.moved(point, vector), [statistics]


def check_range(method: Method, is_known: bool, otherwise: str) -> None:
    """Refuse a method that needs to know what it does not."""
    if method.needs_range and not is_known:
        raise UnknownRange(f"{method.name} needs to know how large rewards can be; {otherwise}")


def check_needed(rows: PlainRows, variables: Sequence[Any]) -> None:
    """Refuse variables that the log factors do not depend on."""
    needed = used(rows.graph, rows.graph.terms)
    others = [value.name for value in variables if value not in needed]
    if others:
        raise InvalidArgument(
            f"{', '.join(others)}: no log factor depends on it, so there are no rows to draw it by; leave "
            "it to a step of PyMC"
        )


@optional("pymc.step_methods.state", "pymc").dataclass_state
class WalkState(compound.StepMethodState):  # type: ignore[misc]
    """What a chain changes of a walk."""

    scaling: float
    tune: bool
    until_tuned: int
    accepted: int


class Metropolis(RowStep):
    """A random walk on continuous variables, each step tested by a few rows.

    The walk is on the values as PyMC transforms them. Its log factors are read less their expansion around
    the mode, of each state of the discrete variables if there are any: a test reads few rows then, however
    many there are.

    Parameters
    ----------
    vars : list
        Continuous variables of the model, all moved at once.
    method, delta : optional
        Who tests, as in `gumbelrace.Metropolis`: `Penalty` (default), `Race`, or `Exact` (default without
        an expansion).
    scaling : float, optional
        Length of the walk: standard deviations of Laplace's law, or of the values themselves without an
        expansion. It is tuned as `pymc.Metropolis` does. Default: 2.4 / √d, or 1.
    expand : bool
        Whether log factors are expanded. Modes are looked for now, and all rows read at some points.
    model, rng, blocked : optional
        As in `Gibbs`.

    Raises
    ------
    NoMode
        The posterior has no mode; without an expansion steps read all rows.

    Notes
    -----
    ``sample_stats`` has `evaluations` (log factors read), `fraction_read`, `law_error`, `accepted` and
    `scaling`.

    Examples
    --------
    ::

        with model:
            idata = pm.sample(step=[raced.Metropolis([theta]), pm.NUTS([others])])
    """

    name = "raced_metropolis"
    stats_dtypes_shapes = STATISTICS | {"accepted": (np.float64, []), "scaling": (np.float64, [])}
    _state_class = WalkState

    def __init__(
        self,
        vars: Sequence[Any],
        *,
        method: Method | None = None,
        delta: float | None = None,
        scaling: float | None = None,
        expand: bool = True,
        model: Any = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        model = self.set_model(model, vars, rng)
        check_continuous(self.vars)
        if method is None and delta is None and not expand:
            method = Exact()  # other tests would read most rows as well
        self.method = chain_method(delta, method, Question.ACCEPT)
        self.method.check_question(Question.ACCEPT)
        check_no_bounds(self.method)
        self.set_rows(expanded(model) if expand else plain_rows(model))
        self.roots = roots_of(self.rows, np.concatenate(list(self.places.values())))
        default = BEST_LENGTH / np.sqrt(len(self.roots[0])) if expand else 1.0
        self.first_scaling = default if scaling is None else float(scaling)
        self.reset_tuning()

    def reset_tuning(self) -> None:
        """Go back to where tuning starts."""
        self.scaling, self.tune = self.first_scaling, True
        self.until_tuned, self.accepted = TUNE_EVERY, 0

    def step(self, point: Point) -> tuple[Point, list[Point]]:
        """Propose a point, and go there or stay."""
        if self.tune and self.until_tuned == 0:
            self._tune()
        vector = vector_of(self.rows.graph.values, point)
        proposed = self._proposed(vector)
        decisions = Decisions(self.method, self.rng)
        accepted = self._accepts(decisions, np.stack([vector, proposed]))
        self.accepted += accepted
        self.until_tuned -= 1
        statistics = read_by(decisions) | {"accepted": float(accepted), "scaling": self.scaling}
        return self.moved(point, proposed) if accepted else point, [statistics]

    def _tune(self) -> None:
        tuned = optional("pymc.step_methods.metropolis", "pymc").tune
        self.scaling = float(tuned(self.scaling, self.accepted / TUNE_EVERY))
        self.until_tuned, self.accepted = TUNE_EVERY, 0

    def _proposed(self, vector: Floats) -> Floats:
        state = self.rows.state_of(vector) if isinstance(self.rows, ExpandedRows) else 0
        root, proposed = self.roots[state], vector.copy()
        places = np.concatenate(list(self.places.values()))
        proposed[places] += self.scaling * root @ self.rng.standard_normal(len(root))
        return proposed

    def _accepts(self, decisions: Decisions, points: Floats) -> bool:
        prior = np.array([self.rows.log_prior(one) for one in points])
        if prior[PROPOSED] == -np.inf:
            return False  # and nothing is read
        return decisions.answer(MOVE, self.rows(points), prior) == PROPOSED


def check_continuous(variables: Sequence[Any]) -> None:
    """Refuse discrete variables."""
    discrete = [value.name for value in variables if not value.type.dtype.startswith("float")]
    if discrete:
        raise InvalidArgument(f"{', '.join(discrete)}: discrete; use gumbelrace.pymc.Gibbs([...])")


def check_no_bounds(method: Method) -> None:
    """Refuse methods that need to know how large log factors can be, which a graph does not tell."""
    otherwise = "a PyMC model does not tell; use Penalty(), Race() or Exact()"
    check_range(method, False, otherwise)
    if isinstance(method, Thinning):
        raise UnknownRange(f"{method.name} needs to know how large rewards can be; {otherwise}")


def expanded(model: Any) -> ExpandedRows:
    """Expand the log factors of a model; where that cannot be, say what else to do."""
    otherwise = "or give expand=False, with which steps read all rows"
    try:
        joint_states(model)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error}; {otherwise}") from error
    try:
        return expanded_rows(model)
    except NoMode as error:
        raise NoMode(f"{error}; {otherwise}") from error


def roots_of(rows: PlainRows, places: Any) -> list[Floats]:
    """Give the root of a covariance for the steps in each state: that of Laplace's law given the rest."""
    if not isinstance(rows, ExpandedRows):
        return [np.eye(len(places))]
    inverses = [np.linalg.inv(expansion.root)[:, places] for expansion in rows.expansions]
    precisions = [inverse.T @ inverse for inverse in inverses]
    return [np.asarray(np.linalg.cholesky(np.linalg.inv(one)), np.float64) for one in precisions]
