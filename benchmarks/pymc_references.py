"""Posteriors with reference draws in Stan's posteriordb, through PyMC models: means and sds.

    python benchmarks/pymc_references.py posteriordb.json.gz

The file has, by the name of a posterior, its `data` and the `reference`: mean, sd and number of draws of
each parameter. About a minute each.

2026-11-18, two shared cores, 4 × 10,000 draws: all 20 parameters agree. The largest difference of means is
1.3 standard errors, of a standard deviation 1.2%.
"""

import argparse
import gzip
import json
import sys

import numpy as np
import pymc as pm

import gumbelrace.pymc as raced


def kidscore(data):
    hs, iq = (np.array(data[name], float) for name in ("mom_hs", "mom_iq"))
    return [hs, iq, hs * iq], np.array(data["kid_score"], float)


def nes(data):
    named = {name: np.array(data[name], float) for name in data if name != "N"}
    ages = [(named["age_discrete"] == age).astype(float) for age in (2, 3, 4)]
    last = [named[name] for name in ("educ1", "gender", "income")]
    return [named["real_ideo"], named["race_adj"], *ages, *last], named["partyid7"]


def logearn(data):
    height, male = (np.array(data[name], float) for name in ("height", "male"))
    return [height, male, height * male], np.log(np.array(data["earn"], float))


COLUMNS = {
    "kidiq-kidscore_interaction": kidscore,
    "nes1992-nes": nes,
    "earnings-logearn_interaction": logearn,
}


def regression(name, data):
    columns, y = COLUMNS[name](data)
    x = np.column_stack([np.ones_like(y), *columns])
    with pm.Model() as model:
        beta = pm.Flat("beta", shape=x.shape[1])
        sigma = pm.HalfCauchy("sigma", 2.5) if name.startswith("kidiq") else pm.HalfFlat("sigma")
        pm.Normal("y", x @ beta, sigma, observed=y)
    return model


def error_of_mean(draws, batches=25):
    """Standard error of the mean of chains, of shape (chains, draws), by means of batches."""
    means = np.concatenate([part.mean(axis=1) for part in np.array_split(draws, batches, axis=1)])
    return means.std(ddof=1) / np.sqrt(len(means))


def compared(name, posterior):
    """Draw, and compare each parameter with its reference; give whether all agree."""
    result = raced.sample(
        regression(name, posterior["data"]), draws=10_000, random_seed=0, progressbar=False
    )
    agree = True
    print(f"{name}: {result.posterior.attrs['forecast']}")
    for parameter, reference in posterior["reference"].items():
        variable, _, place = parameter.partition("[")
        draws = result.posterior[variable].values
        draws = draws[..., int(place.rstrip("]")) - 1] if place else draws
        error = np.hypot(error_of_mean(draws), reference["sd"] / np.sqrt(reference["draws"]))
        off, ratio = (draws.mean() - reference["mean"]) / error, draws.std() / reference["sd"]
        agree &= bool(abs(off) < 4 and abs(ratio - 1) < 0.05)
        print(
            f"  {parameter:8} mean {draws.mean():10.4f}, {off:+.1f} errors off; sd {ratio:.3f} of its own"
        )
    return agree


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="posteriordb.json.gz")
    with gzip.open(parser.parse_args().file) as file:
        posteriors = json.load(file)
    agree = [compared(name, posterior) for name, posterior in posteriors.items() if name in COLUMNS]
    print("all agree" if all(agree) else "some differ")
    sys.exit(not all(agree))


if __name__ == "__main__":
    main()
