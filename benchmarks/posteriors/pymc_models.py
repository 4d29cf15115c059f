"""The same posteriors as PyMC models, written as people write them."""

import pymc as pm
from problems import COLUMNS, NU_RATE, PRIOR_SD, SIGMA_SD, Problem


def model_of(problem: Problem, batch: int | None = None) -> pm.Model:
    """Give the model, of all rows or of random batches of them."""
    data = problem.data if batch is None else pm.Minibatch(*problem.data, batch_size=batch)
    total = None if batch is None else problem.size
    with pm.Model() as model:
        MODELS[problem.kind](data, problem.names, total)
    return model


def logistic(data, names, total):
    x, y = data
    b = pm.Normal("b", 0.0, PRIOR_SD, shape=names["b"])
    pm.Bernoulli("y", logit_p=x @ b, observed=y, total_size=total)


def student(data, names, total):
    x, y = data
    b = pm.Normal("b", 0.0, PRIOR_SD, shape=names["b"])
    sigma, nu = pm.HalfNormal("sigma", SIGMA_SD), pm.Gamma("nu", 2.0, NU_RATE)
    pm.StudentT("y", nu=nu, mu=x @ b, sigma=sigma, observed=y, total_size=total)


def poisson(data, names, total):
    x, group, y = data
    b = pm.Normal("b", 0.0, PRIOR_SD, shape=COLUMNS)
    tau = pm.HalfNormal("tau", 1.0)
    effect = pm.Normal("effect", 0.0, tau, shape=names["effect"])
    pm.Poisson("y", pm.math.exp(x @ b + effect[group]), observed=y, total_size=total)


MODELS = {"logistic": logistic, "student": student, "poisson": poisson}
