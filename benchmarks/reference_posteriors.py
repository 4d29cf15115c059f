"""Reference posteriors of posteriordb, which nobody here made, through NumPyro models.

    python benchmarks/reference_posteriors.py --data PATH/posteriordb.json.gz

The file has data, and mean and standard deviation of 10,000 reference draws, of three linear regressions.
A mean is right within 4 standard errors (ours and the reference's), a standard deviation within 5%.

2026-11-18, two shared cores, 4 × 10,000 draws: all 20 parameters are right. The largest difference of means
is 2.1 standard errors, of a standard deviation 1.2%; 48 rows a step are read of 434, 1,350 and 1,192; about
11 s of the processor each, of which most is compiling.
"""

import gzip
import json
import time

import numpy as np
from shared import options, show

import gumbelrace.numpyro as raced
from gumbelrace.chain.trace import autocorrelation_time

DRAWS, CHAINS = 10_000, 4


def kidscore_interaction(data):
    hs, iq = np.array(data["mom_hs"], float), np.array(data["mom_iq"], float)
    return np.column_stack([np.ones(len(hs)), hs, iq, hs * iq]), np.array(data["kid_score"], float), 2.5


def nes(data):
    columns = {name: np.array(values, float) for name, values in data.items() if name != "N"}
    ages = [columns["age_discrete"] == age for age in (2, 3, 4)]
    names = ("educ1", "gender", "income")
    x = [
        np.ones(data["N"]),
        columns["real_ideo"],
        columns["race_adj"],
        *ages,
        *(columns[name] for name in names),
    ]
    return np.column_stack(x).astype(float), columns["partyid7"], None


def logearn_interaction(data):
    height, male = np.array(data["height"], float), np.array(data["male"], float)
    x = np.column_stack([np.ones(len(male)), height, male, height * male])
    return x, np.log(np.array(data["earn"], float)), None


POSTERIORS = {
    "kidiq-kidscore_interaction": kidscore_interaction,
    "nes1992-nes": nes,
    "earnings-logearn_interaction": logearn_interaction,
}


def regression(x, y, scale):
    """A linear regression with a flat prior of the coefficients, and a half-Cauchy or flat one of sigma."""
    import numpyro
    from numpyro import distributions as dist

    flat = dist.ImproperUniform(dist.constraints.real, (), (x.shape[1],))
    beta = numpyro.sample("beta", flat)
    positive = dist.ImproperUniform(dist.constraints.positive, (), ())
    sigma = numpyro.sample("sigma", positive if scale is None else dist.HalfCauchy(scale))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


def line(name, draws, reference):
    """Compare the draws of one parameter with the reference."""
    times = autocorrelation_time(draws)
    error = np.hypot(
        draws.std() * np.sqrt(times / draws.size), reference["sd"] / np.sqrt(reference["draws"])
    )
    off, ratio = (draws.mean() - reference["mean"]) / error, draws.std() / reference["sd"]
    verdict = "right" if abs(off) < 4.0 and abs(ratio - 1.0) < 0.05 else "WRONG"
    return [name, f"{draws.mean():.4f}", f"{reference['mean']:.4f}", f"{off:+.1f}", f"{ratio:.3f}", verdict]


def main():
    parser = options(__doc__)
    parser.add_argument("--data", required=True, help="path of posteriordb.json.gz")
    arguments = parser.parse_args()
    with gzip.open(arguments.data) as file:
        stored = json.load(file)
    for name, prepared in POSTERIORS.items():
        x, y, scale = prepared(stored[name]["data"])
        began = time.perf_counter()
        count = DRAWS // 10 if arguments.quick else DRAWS
        trace = raced.sample(regression, x, y, scale, rng_key=0, num_samples=count, num_chains=CHAINS)
        found = trace.get_samples(group_by_chain=True)
        draws = {f"beta[{i + 1}]": np.asarray(found["beta"][:, :, i], float) for i in range(x.shape[1])}
        draws["sigma"] = np.asarray(found["sigma"], float)
        rows = [line(key, draws[key], of) for key, of in stored[name]["reference"].items()]
        took, read = time.perf_counter() - began, trace.trace.rows.mean()
        show(
            f"{name}: {took:.0f} s, {read:.0f} of {len(y)} rows a step",
            "parameter | mean | reference | standard errors | sd ratio | ",
            rows,
        )


if __name__ == "__main__":
    main()
