"""The same posteriors as NumPyro models, and as log factors in jax.numpy."""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from problems import COLUMNS, NU_RATE, PRIOR_SD, SIGMA_SD, Problem

import numpyro

# ---- NumPyro ----


def model_of(problem: Problem, subsample: int | None = None):
    """Give a model of the data; `subsample` is the number of rows that HMCECS reads."""
    return lambda *data: MODELS[problem.kind](problem.names, subsample, *data)


def coefficients(names):
    return numpyro.sample("b", dist.Normal(0.0, PRIOR_SD).expand([names["b"]]).to_event(1))


def observed(law_of_rows, subsample, *data):
    """Observe the last of the data, by a law that the others make."""
    with numpyro.plate("rows", len(data[0]), subsample_size=subsample):
        *rows, y = (numpyro.subsample(part, event_dim=part.ndim - 1) for part in data)
        numpyro.sample("y", law_of_rows(*rows), obs=y)


def logistic(names, subsample, x, y):
    b = coefficients(names)
    observed(lambda x: dist.Bernoulli(logits=x @ b), subsample, x, y)


def student(names, subsample, x, y):
    b, sigma = coefficients(names), numpyro.sample("sigma", dist.HalfNormal(SIGMA_SD))
    nu = numpyro.sample("nu", dist.Gamma(2.0, NU_RATE))
    observed(lambda x: dist.StudentT(nu, x @ b, sigma), subsample, x, y)


def poisson(names, subsample, x, group, y):
    b, tau = coefficients(names), numpyro.sample("tau", dist.HalfNormal(1.0))
    effect = numpyro.sample("effect", dist.Normal(0.0, tau).expand([names["effect"]]).to_event(1))
    observed(lambda x, group: dist.Poisson(jnp.exp(x @ b + effect[group])), subsample, x, group, y)


MODELS = {"logistic": logistic, "student": student, "poisson": poisson}


# ---- Log factors of one row, θ a vector ----


def rows_of(problem: Problem) -> dict:
    names = ("x", "group", "y") if problem.kind == "poisson" else ("x", "y")
    return dict(zip(names, problem.data, strict=True))


def logistic_factor(theta, row):
    s = row["x"] @ theta
    return row["y"] * s - jnp.logaddexp(0.0, s)


def student_factor(theta, row):
    b, log_sigma, nu = theta[:-2], theta[-2], jnp.exp(theta[-1])
    r = (row["y"] - row["x"] @ b) * jnp.exp(-log_sigma)
    constant = gammaln(0.5 * nu + 0.5) - gammaln(0.5 * nu) - 0.5 * jnp.log(nu * jnp.pi)
    return constant - log_sigma - 0.5 * (nu + 1.0) * jnp.log1p(r * r / nu)


def poisson_factor(theta, row):
    s = row["x"] @ theta[:COLUMNS] + theta[COLUMNS + 1 + row["group"]]
    return row["y"] * s - jnp.exp(s)


def normal_prior(theta):
    return -0.5 * theta @ theta / PRIOR_SD**2


def student_prior(theta):
    log_sigma, log_nu = theta[-2], theta[-1]
    of_scale = log_sigma - 0.5 * (jnp.exp(log_sigma) / SIGMA_SD) ** 2
    return normal_prior(theta[:-2]) + of_scale + 2.0 * log_nu - NU_RATE * jnp.exp(log_nu)


def poisson_prior(theta):
    log_tau, effects = theta[COLUMNS], theta[COLUMNS + 1 :]
    of_effects = -0.5 * effects @ effects * jnp.exp(-2.0 * log_tau) - len(effects) * log_tau
    of_scale = log_tau - 0.5 * jnp.exp(2.0 * log_tau)
    return normal_prior(theta[:COLUMNS]) + of_effects + of_scale


FACTORS = {
    "logistic": (logistic_factor, normal_prior),
    "student": (student_factor, student_prior),
    "poisson": (poisson_factor, poisson_prior),
}


def log_factor_of(problem: Problem):
    return FACTORS[problem.kind][0]


def log_prior_of(problem: Problem):
    return FACTORS[problem.kind][1]
