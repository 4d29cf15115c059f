"""What a run gives: the states of its chains, what they took, and how far errors shift their law.

ArviZ, to which a trace can be handed, is imported when it is first used.
"""

import copy
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from numbers import Real
from threading import Event
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.auditing import FEWEST_ANSWERS, joined
from gumbelrace.chain.worker import Layout, form, named_leaves, reform
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, PromiseBroken, optional
from gumbelrace.kernels.base import Checked, Info, Kernel, State, method_of
from gumbelrace.methods.base import Method, weakest
from gumbelrace.population.base import Floats, checked_count
from gumbelrace.verdict import SURE, Audit, Shift, checked_confidence, clopper_pearson

# Entries of a field that are watched, evenly spread; draws of a chain that tell its autocorrelation.
MOST_ENTRIES, MOST_DRAWS = 32, 2**16
# By default the checks of a run read this share of what it has read; a single one may read more.
SHARE, SHARE_OF_ONE, MOST = 0.02, 0.1, 100
# A law that is off by so many times what was promised is warned of; what rows say of it is rough.
FAR_OFF = 30.0
DIMENSIONS = ("chain", "draw")  # of all arrays in ArviZ


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Generic[State]):
    """The draws of one or more chains.

    ``trace["name"]`` gives a field of the states, an array of shape (chains, draws, ...); a field of a
    tuple within the state has a dotted name.

    Attributes
    ----------
    kernel : Kernel
        What made the steps.
    states : state
        The states kept: as one state, but each field an array of shape (chains, draws, ...).
    info : Info
        What each draw took, arrays of shape (chains, draws). A draw of a thinned chain counts all steps
        since the draw before: sums, and the mean of the acceptance.
    last : list of states
        Where each chain stands, to go on from.
    interrupted : bool
        Whether Ctrl-C ended the run before all steps were made.
    thin : int
        Steps from one draw to the next.
    checked : Audit or None
        What `run` found when it made a few decisions again exactly.
    """

    kernel: Kernel[State]
    states: State
    info: Info
    last: list[State]
    interrupted: bool = False
    thin: int = 1
    checked: Audit | None = None

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.last)

    @property
    def draws(self) -> int:
        """Number of draws kept of each chain."""
        return int(np.asarray(self.info.evaluations).shape[1])

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [name for name, _ in named_leaves(self.states)]

    def __getitem__(self, name: str) -> Any:
        """Give a field of the states."""
        fields = dict(named_leaves(self.states))
        if name not in fields:
            raise KeyError(f"{name!r}: the fields are {', '.join(fields)}")
        return fields[name]

    @property
    def fraction(self) -> float:
        """Share of factors read, of those that steps without a race would have read."""
        return float(np.sum(self.info.evaluations) / max(np.sum(self.info.rewards), 1))

    @property
    def acceptance(self) -> float:
        """Mean share of moves accepted; NaN without draws."""
        return float(np.mean(self.info.acceptance)) if self.draws else float("nan")

    @property
    def law_error(self) -> float:
        """How far the law of decisions is off on average, by what was read, if no winner is fixed."""
        return float(np.mean(self.info.law_error)) if self.draws else float("nan")

    def __repr__(self) -> str:
        """Say in one line what there is."""
        off = f", law of decisions off by about {self.law_error:.1g}" if self.law_error > 0.0 else ""
        remark = f"; {self.kernel.remark}" if self.kernel.remark else ""
        ended = off + (", interrupted" if self.interrupted else "") + remark
        return (
            f"Trace of {type(self.kernel).__name__}: {self.chains} chains of {self.draws} draws "
            f"({', '.join(self.names)}), {self.fraction:.2%} of factors read, "
            f"acceptance {self.acceptance:.2f}{ended}"
        )

    def audit(self, share: float = 0.01, *, rng: Rng = None, confidence: float = 0.95) -> Audit:
        """Measure how often the decisions of the chain are wrong, and what that does to its law.

        From states picked at random among those kept, a step is made whose every decision is checked
        by reading all factors. Decisions of a method that fixes no winner are made many times, and their
        law is compared: do moves keep detailed balance?

        Parameters
        ----------
        share : float
            Share of the states to check, at least one of them.
        rng : numpy.random.Generator, int, or None
            Picks the states and makes the steps.
        confidence : float
            Level of the interval.

        Returns
        -------
        Audit
            `draws` counts decisions, `law` has what was found of their law; `fraction` is that of the
            trace; `bias` has the shifts of means, variances and probabilities (see the page on errors
            along a chain).
        """
        rng = as_generator(rng)
        level = checked_confidence(confidence)
        if not (isinstance(share, Real) and 0.0 < share <= 1.0):
            raise InvalidArgument(f"share is {share!r}; it must be more than 0 and at most 1")
        if self.draws == 0:
            raise InvalidArgument("the trace has no draws; there is nothing to audit")
        checks = list(self.checks(max(1, round(share * self.chains * self.draws)), rng))
        bias = tuple(shifts(self.kernel, self.states, checks, self.thin))
        return replace(self.verdict(checks, level), bias=bias)

    def checks(self, count: int, rng: np.random.Generator) -> Iterator[Checked[State]]:
        """Make audited steps from `count` of the states kept, none of them twice."""
        for place in rng.choice(self.chains * self.draws, count, replace=False):
            yield self.kernel.audit(rng, self.state(*divmod(int(place), self.draws)))

    def verdict(self, checks: Sequence[Checked[State]], confidence: float) -> Audit:
        """Count the errors of audited steps."""
        errors, decisions = sum(c.errors for c in checks), sum(c.decisions for c in checks)
        interval = clopper_pearson(errors, decisions, confidence)
        promise = weakest([check.promise or method_of(self.kernel).promise for check in checks])
        impossible = sum(check.impossible for check in checks)
        law = joined([check.law for check in checks if check.law is not None], confidence)
        return Audit(errors, decisions, interval, confidence, self.fraction, promise, impossible, law=law)

    def state(self, chain: int, draw: int) -> State:
        """Give one of the states kept, as the kernel takes it."""
        values = (array[chain, draw] for _, array in named_leaves(self.states))
        forms = (form(value) for _, value in named_leaves(self.last[chain]))
        built: State = Layout(self.last[chain]).build([*map(reform, values, forms)])
        return built

    def to_arviz(
        self,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
    ) -> Any:
        """Convert to the DataTree of ArviZ; needs the extra ``arviz``.

        The group ``posterior`` has the variables of the target; ``sample_stats`` has `evaluations`,
        `rewards`, `looks`, `acceptance_rate` and `law_error`, and the fields of the state that tune the
        kernel. Where a field is not a variable of the target, as the parameter of a model that is not
        current (`Kernel.presence`), it is NaN. A field whose name ArviZ needs itself, such as `draw`, gets
        an underscore: `draw_`.

        Parameters
        ----------
        dims : mapping of str to sequence of str, optional
            Names for the dimensions of fields after (chain, draw).
        coords : mapping of str to sequence, optional
            Labels for the entries of dimensions.

        Notes
        -----
        Means of xarray leave NaN out: ``posterior["parameters.1"].mean(("chain", "draw"))`` is that of
        model 1, given that it is current. For the effective sample size, take the draws of a chain that
        are there::

            x = posterior["parameters.1"].sel(chain=[0])[..., 0].dropna("draw")
            arviz_stats.ess(x.values)
        """
        return tree(self.kernel, self.states, self.info, dims, coords)

    def ess(self, **options: Any) -> dict[str, Any]:
        """Effective sample size of each variable, by `arviz_stats.ess`, which takes the options."""
        return diagnostic("ess", self.to_arviz(), options)

    def rhat(self, **options: Any) -> dict[str, Any]:
        """Potential scale reduction of each variable, by `arviz_stats.rhat`, which takes the options."""
        return diagnostic("rhat", self.to_arviz(), options)


def checked(trace: Trace[State], count: int | None, rng: np.random.Generator, stop: Event) -> Trace[State]:
    """Return the trace with what checks from `count` of its states have found: `run` does so by itself.

    A copy of the generator is used, as a chain that goes on would use it: the same for the same seed,
    whether the run was resumed or not, and nothing of the caller's is changed. Ctrl-C, which sets `stop`,
    ends it.
    """
    warn_of_law(trace)
    kept = trace.chains * trace.draws
    wanted = affordable(trace) if count is None else min(checked_count(count, "check", least=0), kept)
    if wanted == 0 or trace.interrupted:
        return trace
    try:
        steps = trace.checks(wanted, copy.deepcopy(rng))
        made = list(takewhile(lambda _: not stop.is_set(), steps))
    except Exception as error:
        # The run has ended well, and its draws are worth more than the check.
        warnings.warn(f"a step could not be checked exactly: {error}", PromiseBroken, stacklevel=3)
        return trace
    if not made:
        return trace
    verdict = trace.verdict(made, SURE)
    verdict.warn()
    return replace(trace, checked=verdict)


def warn_of_law(trace: Trace[State]) -> None:
    """Warn if what was read itself says that the law of decisions is far from what was promised."""
    promise = getattr(getattr(trace.kernel, "method", None), "promise", None)
    if promise is not None and trace.draws and trace.law_error > FAR_OFF * promise.delta > 0.0:
        warnings.warn(
            f"by what was read, the law of decisions is off by about {trace.law_error:.1g}, where "
            f"{promise.delta:g} was promised: a few rows carry the sums; give weights or an expansion, or "
            "use Exact()",
            PromiseBroken,
            stacklevel=4,  # whoever called `run`
        )


def affordable(trace: Trace[State]) -> int:
    """Give the number of steps that are checked by default."""
    method = getattr(trace.kernel, "method", None)
    kept, read = trace.chains * trace.draws, float(np.sum(trace.info.evaluations))
    if kept == 0 or method is None or method.promise.delta == 0.0:
        return 0
    a_step = float(np.sum(trace.info.rewards)) / (kept * trace.thin)
    if not method.finds_winners:
        a_step = 3.0 * max(a_step, FEWEST_ANSWERS * read / (kept * trace.thin))  # there, back, and exactly
    steps = min(int(SHARE * read / max(a_step, 1.0)), MOST, kept)
    return max(steps, int(0.0 < a_step <= SHARE_OF_ONE * read))


def tree(
    kernel: Kernel[Any],
    states: Any,
    info: Info,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> Any:
    presence = kernel.presence(states)
    fields = {name: _masked(values, presence.get(name)) for name, values in named_leaves(states)}
    tuning = {name for name in fields if name.split(".")[0] in kernel.tuning}
    statistics = {
        "evaluations": info.evaluations,
        "rewards": info.rewards,
        "looks": info.looks,
        "acceptance_rate": info.acceptance,
        "law_error": info.law_error,
    }
    posterior = {name: fields[name] for name in fields if name not in tuning}
    tuned = _renamed({name: fields[name] for name in tuning}, statistics)
    groups = {"posterior": _renamed(posterior), "sample_stats": {**statistics, **tuned}}
    attributes = dict.fromkeys(("/", *groups), _attributes(kernel))
    return optional("arviz_base", "arviz").from_dict(groups, dims=dims, coords=coords, attrs=attributes)


def _masked(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Put NaN where a field is not a variable of the target."""
    if present is None:
        return values
    shape = present.shape + (1,) * (values.ndim - present.ndim)
    return np.where(present.reshape(shape), values, np.nan)


def _renamed(fields: Mapping[str, Any], taken: Collection[str] = ()) -> dict[str, Any]:
    """Give fields other names where theirs would be lost: those of dimensions, and those that are taken."""
    renamed: dict[str, Any] = {}
    for name, values in fields.items():
        free = name
        while free in DIMENSIONS or free in taken or (free != name and free in fields):
            free += "_"
        renamed[free] = values
    return renamed


def diagnostic(name: str, data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Give a diagnostic of arviz_stats for each variable: a number, or an array for an array."""
    found = getattr(optional("arviz_stats", "arviz"), name)(data, **options)
    return {str(variable): found[variable].values[()] for variable in found.data_vars}


def _attributes(kernel: Kernel[Any]) -> dict[str, str]:
    from importlib.metadata import version

    return {
        "inference_library": "gumbelrace",
        "inference_library_version": version("gumbelrace"),
        "kernel": type(kernel).__qualname__,
        "method": name_of(getattr(kernel, "method", None)),
    }


def name_of(method: Any) -> str:
    """Give what users know a method by; a kernel of theirs may have something else there, or nothing."""
    return method.name if isinstance(method, Method) else type(method).__qualname__


class Watched(NamedTuple):
    """One entry of the state: along the chains, and after audited steps with and without errors."""

    name: str
    along: NDArray[Any]  # (chains, draws)
    raced: NDArray[Any]
    exact: NDArray[Any]
    weights: Floats


def shifts(kernel: Kernel[Any], states: Any, checks: Sequence[Checked[Any]], thin: int) -> list[Shift]:
    """Estimate the shifts of means and variances of real fields, and of probabilities of others' values.

    Each field of `states` is an array of shape (chains, draws, ...), `checks` are audited steps from some
    of them, and `thin` steps lead from one of the states to the next.

    Let P be the kernel without errors, π its target, P' the kernel with errors and π' the law that it
    settles in. For a function f of the state, let g solve Poisson's equation g - P g = f - π(f). Then,
    exactly,

        π'(f) - π(f) = E[(P' g)(x) - (P g)(x)],    x ~ π'.

    Audited steps start from states of the chain, x ~ π', and go to x' with errors and to x'' without, by
    the same random numbers: g(x') - g(x'') estimates the right side without bias. g is not known; the
    multiple of f that is closest to it is c f with c = Σ_{k ≥ 0} ρ_k = (τ + 1) / 2, where ρ_k are the
    autocorrelations of f along the chain and τ = 1 + 2 Σ_{k ≥ 1} ρ_k. The first-order estimate is the mean
    of c (f(x') - f(x'')).
    """
    found: list[Shift] = []
    if any(np.isnan(check.weight) for check in checks):
        return found
    can_err = any(_may_be_wrong(kernel, check) for check in checks)
    for entry in entries(kernel, states, checks):
        of_entry = _moments if entry.along.dtype.kind == "f" else _probabilities
        found += of_entry(entry, thin, can_err)
    return found


def _may_be_wrong(kernel: Kernel[Any], check: Checked[Any]) -> bool:
    """Whether errors that a check can miss are promised to be rare, and no more."""
    return check.law is None and (check.promise or method_of(kernel).promise).delta > 0.0


def entries(kernel: Kernel[Any], states: Any, checks: Sequence[Checked[Any]]) -> Iterator[Watched]:
    ends = [
        [dict(named_leaves(kernel.watched(s))) for s in side]
        for side in zip(*((c.raced, c.exact) for c in checks), strict=True)
    ]
    weights = np.array([check.weight for check in checks])
    for name, values in named_leaves(kernel.watched(states)):
        if name in kernel.tuning:
            continue
        along = values.reshape(*values.shape[:2], -1)
        raced, exact = (np.array([end[name] for end in side]).reshape(len(side), -1) for side in ends)
        for k in np.unique(np.linspace(0, along.shape[2] - 1, MOST_ENTRIES).astype(int)).tolist():
            index = ", ".join(map(str, np.unravel_index(k, values.shape[2:])))
            label = name if values.ndim == 2 else f"{name}[{index}]"
            yield Watched(label, along[:, :, k], raced[:, k], exact[:, k], weights)


def _moments(entry: Watched, thin: int, can_err: bool) -> list[Shift]:
    middle, spread = float(entry.along.mean()), float(entry.along.std())
    if not spread > 0.0:
        return []
    along, raced, exact = ((values - middle) / spread for values in entry[1:4])
    mean, error = _shift(along, entry.weights * (raced - exact), thin, can_err)
    # The chain's variance is too large by this share of itself; reported is the share of the right one.
    share, its_error = _shift(along**2, entry.weights * (raced**2 - exact**2), thin, can_err)
    right = 1.0 - share
    variance = (share / right, its_error / right**2) if right > 0.0 else (np.inf, np.inf)
    return [Shift(entry.name, "mean", mean, error), Shift(entry.name, "variance", *variance)]


def _probabilities(entry: Watched, thin: int, can_err: bool) -> list[Shift]:
    found = []
    for value in np.unique(np.concatenate([entry.along.ravel(), entry.raced, entry.exact])):
        along, raced, exact = (np.where(values == value, 1.0, 0.0) for values in entry[1:4])
        shift = _shift(along, entry.weights * (raced - exact), thin, can_err)
        found.append(Shift(f"{entry.name} = {value}", "probability", *shift))
    return found


def _shift(along: Floats, differences: Floats, thin: int, can_err: bool) -> tuple[float, float]:
    """Estimate the shift of the mean of f from its values along the chains and f(x') - f(x'')."""
    factor = 0.5 * (thin * autocorrelation_time(along[:, -MOST_DRAWS:]) + 1.0)
    # One error more than was seen, by a typical move: none seen does not prove that there are none.
    unseen = float(np.mean(np.diff(along, axis=1) ** 2)) if can_err and along.shape[1] > 1 else 0.0
    error = np.sqrt(np.sum(differences**2) + unseen) / len(differences)
    return factor * float(differences.mean()), float(factor * error)


def autocorrelation_time(values: Floats) -> float:
    """Give 1 + 2 Σ ρ_k of chains, by Geyer's initial monotone sequence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros((4, 20_000))
    >>> for t in range(1, 20_000):
    ...     x[:, t] = 0.5 * x[:, t - 1] + rng.normal(size=4)
    >>> bool(abs(autocorrelation_time(x) - 3.0) < 0.2)
    True
    """
    draws = values.shape[1]
    centred = values - values.mean()
    waves = np.fft.rfft(centred, 2 * draws, axis=1)
    products = np.fft.irfft((waves * waves.conj()).mean(axis=0))[:draws]
    covariances = products / draws
    if draws < 4 or not covariances[0] > 0.0:
        return 1.0
    pairs = (covariances / covariances[0])[: draws - draws % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    positive = pairs[: ends[0] if len(ends) else len(pairs)]
    return float(max(2.0 * np.minimum.accumulate(positive).sum() - 1.0, 1.0))
