"""A NumPyro model as log factors of rows and a prior, of values without constraints.

The plate over rows is given other indices than its own, so that the model computes some rows only. Data
come along in one of two ways: the model itself takes those rows (`numpyro.subsample`, or the indices that
the plate gives), or its arguments that have N rows are cut to them. Which one is right, trying shows: terms
of some rows must be the same as those entries of all terms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.data import as_array
from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import Later, in_double, jax, jnp
from gumbelrace.numpyro.sites import Plate, Sites, is_latent, latent_sites, plate_of_rows, plates_of

handlers, distributions = (Later(f"numpyro.{name}") for name in ("handlers", "distributions"))

# Rows of which terms are compared with all terms, at so many points, and how exactly they must agree.
TRIED_ROWS, TRIED_POINTS, AGREE = 5, 2, 1e-7
# How far points lie from a start, which is itself moved by a seed.
NEAR, SEED = 0.1, 17
# So many rows are computed where only the rest is wanted; one would stand for all, by broadcasting.
FEWEST_ROWS = 2


class Terms(NamedTuple):
    """What a model gives: log factors of rows, the rest of its log density, and the values of its sites."""

    rows: Any
    rest: Any
    values: dict[str, Any]


class Rows(NamedTuple):
    """Some rows: their numbers, and those arguments that are cut to them."""

    numbers: Any
    arguments: Sequence[Any]


@dataclass(frozen=True)
class RowwiseModel:
    """A NumPyro model of which some rows can be computed.

    Attributes
    ----------
    model : callable
        The model.
    form : treedef
        Of its arguments, (args, kwargs).
    leaves : sequence
        The leaves of these.
    cut : sequence of bool
        Which of the leaves are cut to rows.
    plate : Plate
        The plate over rows.
    """

    model: Callable[..., Any]
    form: Any
    leaves: Sequence[Any]
    cut: Sequence[bool]
    plate: Plate

    @property
    def all_rows(self) -> Rows:
        """All rows."""
        return Rows(
            np.arange(self.plate.size), [x for x, cut in zip(self.leaves, self.cut, strict=True) if cut]
        )

    @property
    def whole(self) -> Sequence[Any]:
        """The arrays that are not cut."""
        parts = zip(self.leaves, self.cut, strict=True)
        return [leaf for leaf, cut in parts if not cut and is_array(leaf)]

    def terms(self, theta: Sites, rows: Rows, whole: Sequence[Any]) -> Terms:
        """Compute some rows, at values without constraints."""
        own, others = iter(rows.arguments), iter(whole)
        leaves = [
            next(own) if cut else next(others) if is_array(leaf) else leaf
            for leaf, cut in zip(self.leaves, self.cut, strict=True)
        ]
        args, kwargs = jax.tree.unflatten(self.form, leaves)
        return terms_of(self.model, (args, kwargs), theta, (self.plate.name, rows.numbers))

    def as_jax(self, start: Sites) -> JaxModel:
        """Give what makes chains."""
        with in_double():
            rows, whole = jax.tree.map(as_array, (self.all_rows, self.whole))
            few = picked(rows, np.arange(FEWEST_ROWS))
        return JaxModel(
            lambda theta, some, others: self.terms(theta, some, others).rows,
            lambda theta, others: self.terms(theta, few, others).rest,
            rows,
            whole,
            dict(start),
        )

    def at_points(self, start: Sites, rows: Rows) -> Sequence[Terms]:
        """Compute some rows at points around a start."""
        terms = jax.jit(self.terms)
        return [terms(around(start, seed), rows, self.whole) for seed in range(TRIED_POINTS)]

    def values(self, theta: Sites, numbers: Any) -> dict[str, Any]:
        """Give the values of sites that do not lie in the plate, computing rows of these numbers only."""
        return self.terms(theta, picked(self.all_rows, numbers), self.whole).values


def rowwise(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[RowwiseModel, Sites]:
    """Find out how some rows of a model are computed, and where its latent sites may start.

    Raises
    ------
    InvalidArgument
        There is no plate over rows, or several; a site is discrete, or in the plate; terms of some rows are
        not those of all.
    """
    try:
        ways, start, complaints = compared(model, args, kwargs)
    except jax.errors.JAXTypeError as error:
        raise InvalidArgument(
            f"JAX cannot trace the model ({type(error).__name__}): latent sites within "
            "numpyro.contrib.control_flow.scan will not do (draw all steps at once, as "
            "dist.GaussianRandomWalk does), nor will Python's `if` on the value of a site"
        ) from error
    if "" in complaints:
        return ways[complaints.index("")], start
    raise InvalidArgument(
        f"the terms of plate {ways[0].plate.name!r} are not those of single rows: {complaints[1]}. Index "
        "data by the plate (numpyro.subsample(x, event_dim=0), or `with numpyro.plate(...) as n:` and "
        "x[n]), or hand them to the model as arguments whose first dimension is N; a time series or a "
        "process over rows will not do"
    )


def compared(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[RowwiseModel], Sites, list[str]]:
    """Give the ways in which some rows may be computed, a start, and what is wrong with each way."""
    with in_double():
        leaves, form = jax.tree.flatten((tuple(args), dict(kwargs)))
        leaves = [as_array(leaf) if is_array(leaf) else leaf for leaf in leaves]
        given = jax.tree.unflatten(form, leaves)
        sites = traced(model, given, at_start)
        plate = plate_of_rows(sites)
        start = around({name: unconstrained(sites[name]) for name in latent_sites(sites, plate)}, SEED)
        have_rows = [is_array(leaf) and leaf.shape[0] == plate.size for leaf in leaves]
        ways = [RowwiseModel(model, form, leaves, cut, plate) for cut in ([False] * len(leaves), have_rows)]
        # With all rows, in order, the plate is as it was, whatever the model does with its indices.
        whole = ways[0].at_points(start, ways[0].all_rows)
        return ways, start, [differing(way, start, whole) for way in ways]


def traced(model: Callable[..., Any], given: Any, substitute: Callable[[Any], Any]) -> Sites:
    """Give all sites of a model, some of them with other values."""
    replaced = handlers.substitute(handlers.seed(model, 0), substitute_fn=substitute)
    found: Sites = handlers.trace(replaced).get_trace(*given[0], **given[1])
    return found


def terms_of(model: Callable[..., Any], given: Any, theta: Sites, rows: tuple[str, Any]) -> Terms:
    """Compute a model at values without constraints, its plate over rows having the numbers given."""
    determinants: list[Any] = []

    def substitute(site: Any) -> Any:
        if site["type"] == "plate" and site["name"] == rows[0]:
            site["args"] = site["args"][0], len(rows[1])  # else the plate warns of a length not its own
            return jnp.asarray(rows[1])
        if site["type"] == "sample" and site["name"] in theta:
            value, determinant = constrained(site, theta[site["name"]])
            determinants.append(determinant)
            return value
        return None

    sites = traced(model, given, substitute)
    return added_up(sites, rows[0], sum(determinants, start=jnp.zeros(())))


def added_up(sites: Sites, plate: str, determinants: Any) -> Terms:
    """Add up the log densities of sites, by rows where they lie in the plate."""
    size, count = sites[plate]["args"][0], len(sites[plate]["value"])
    rows, rest, values = jnp.zeros(count), determinants, {}
    for name, site in sites.items():
        dim = plates_of(site).get(plate)
        if site["type"] == "sample":
            found = log_density(site)
            if dim is None:
                rest = rest + found.sum()
            else:
                others = [axis for axis in range(found.ndim) if axis != found.ndim + dim]
                rows = rows + found.sum(axis=others) * (count / size)  # the plate makes up for missing rows
        if dim is None and (site["type"] == "deterministic" or is_latent(site)):
            values[name] = site["value"]
    return Terms(rows, rest, values)


def log_density(site: Any) -> Any:
    """Give the log density of a site, not summed."""
    further = [site["intermediates"]] if site["intermediates"] else []
    found = site["fn"].log_prob(site["value"], *further)
    return jnp.asarray(found if site["scale"] is None else site["scale"] * found)


def constrained(site: Any, value: Any) -> tuple[Any, Any]:
    """Give the value of a site of one without constraints, and the logarithm of the volume's change."""
    transform = distributions.biject_to(site["fn"].support)
    natural = transform(value)
    return natural, jnp.sum(transform.log_abs_det_jacobian(value, natural))


def unconstrained(site: Any) -> Any:
    """Give the value without constraints of that of a site."""
    return np.asarray(distributions.biject_to(site["fn"].support).inv(site["value"]))


def at_start(site: Any) -> Any:
    """Give a value of a latent site that is neither an edge nor far off: its mean, or where 0 leads to."""
    if not is_latent(site) or site["fn"].support.is_discrete:
        return None
    law = site["fn"]
    try:
        mean = jnp.broadcast_to(law.mean, law.shape())
    except NotImplementedError:
        mean = jnp.full(law.shape(), jnp.nan)
    transform = distributions.biject_to(law.support)
    inner = transform.inv(mean)
    return jnp.where(jnp.isfinite(inner).all(), mean, transform(jnp.zeros_like(inner)))


def around(start: Sites, seed: int) -> Sites:
    """Give a point near a start.

    At 0 itself derivatives may be wrong: what NumPyro takes for log(1 + exp(s)) has none by JAX's rules
    where s is exactly 0, as it is in all rows if all coefficients are.
    """
    rng = np.random.default_rng(seed)
    return {name: value + NEAR * rng.normal(size=np.shape(value)) for name, value in start.items()}


def differing(way: RowwiseModel, start: Sites, whole: Sequence[Terms]) -> str:
    """Say how terms of some rows differ from those entries of all terms; nothing if they do not."""
    return next(filter(None, (differing_at(way, start, whole, some) for some in tried(way.plate.size))), "")


def tried(size: int) -> list[Any]:
    """Give rows that are computed by themselves: a few, and all in two parts, out of order.

    A few do not show what single rows do to others, as the day of an event does in a sum over days.
    """
    rng = np.random.default_rng(0)
    few = rng.choice(size, min(TRIED_ROWS, size), replace=False)
    return [few, *(np.array_split(rng.permutation(size), 2) if size >= 2 * FEWEST_ROWS else [])]


def differing_at(way: RowwiseModel, start: Sites, whole: Sequence[Terms], numbers: Any) -> str:
    """Say how the terms of these rows differ from those entries of all terms; nothing if they do not."""
    try:
        found = way.at_points(start, picked(way.all_rows, numbers))
    except Exception as error:  # whatever a model does with data of another length than its own
        return f"with {len(numbers)} rows it gives {type(error).__name__} ({str(error)[:200]})"
    for some, everything in zip(found, whole, strict=True):
        among = everything.rows[numbers]
        off = np.flatnonzero(~np.isclose(some.rows, among, AGREE, AGREE))[:TRIED_ROWS]
        if len(off):
            return f"rows {numbers[off]} give {some.rows[off]} by themselves, and {among[off]} among all"
        if not np.allclose(some.rest, everything.rest, AGREE, AGREE):
            return "what lies outside of the plate changes with the rows that are computed"
    return ""


def picked(rows: Rows, numbers: Any) -> Rows:
    """Give some of all rows."""
    return Rows(rows.numbers[numbers], [argument[numbers] for argument in rows.arguments])


def is_array(leaf: Any) -> bool:
    return np.ndim(leaf) > 0 and hasattr(leaf, "dtype")
