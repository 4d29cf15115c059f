"""What a normal variable lacks of a Gumbel or a logistic one: the table that `Absorb` draws from.

For a standard deviation s we look for a distribution of C with N(0, s²) + C as close as can be to

- a Gumbel variable, which one arm of many adds to its value: against an arm with a Gumbel variable of its
  own, and a value lower by x, it wins with probability 1 / (1 + exp(-x));
- a logistic variable, which the difference of two arms adds: it is above -x with the same probability.

In both cases the probability p(x) is linear in the chances of the values of C, which a linear programme
finds: it minimises the largest |p̂(x) - p(x)| / (p (1 - p)). An error that is relative to p (1 - p) cannot
add up to more than itself over many arms, most of which are improbable. The optimum has few values.

python benchmarks/corrections.py            prints the largest errors, on a finer grid
python benchmarks/corrections.py --write    writes the table as well

  gumbel 0.3   5.2e-08  59 values      pair 1     7.6e-07  65 values
  gumbel 0.35  1.5e-07  53 values      pair 1.05  4.0e-06  56 values
  gumbel 0.4   1.3e-06  46 values      pair 1.1   1.7e-05  50 values
  gumbel 0.45  1.2e-05  39 values      pair 1.15  6.4e-05  46 values
  gumbel 0.5   6.2e-05  34 values      pair 1.2   2.0e-04  40 values
  gumbel 0.55  2.5e-04  30 values      pair 1.25  5.3e-04  38 values
  gumbel 0.6   6.9e-04  26 values      pair 1.3   1.3e-03  33 values
  gumbel 0.65  1.7e-03  23 values      pair 1.35  2.7e-03  30 values
  gumbel 0.7   3.5e-03  21 values      pair 1.4   5.4e-03  28 values
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit, ndtr

from gumbelrace.methods import corrections

STEP = 0.1  # between values of C; probabilities are compared at half of it
REACH = 18.0  # of x: chances down to 1.5e-8
DEVIATIONS = {
    "gumbel": (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7),
    "pair": (1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4),
}
NEGLIGIBLE = 1e-13  # chance of a value


def wins(law: str, deviation: float, x: np.ndarray) -> np.ndarray:
    """Give the chance to win by x against a variable of the law, with no correction."""
    if law == "pair":
        return ndtr(x / deviation)
    z = np.arange(-9.0, 9.01, 0.05)
    weights = np.exp(-0.5 * z * z)
    beaten = np.exp(-np.exp(np.minimum(-(x[..., None] + deviation * z), 700.0)))
    return beaten @ (weights / weights.sum())


def loses(law: str, deviation: float, x: np.ndarray) -> np.ndarray:
    """Give the chance not to win, to full precision where it is small."""
    if law == "pair":
        return ndtr(-x / deviation)
    z = np.arange(-9.0, 9.01, 0.05)
    weights = np.exp(-0.5 * z * z)
    unbeaten = -np.expm1(-np.exp(np.minimum(-(x[..., None] + deviation * z), 700.0)))
    return unbeaten @ (weights / weights.sum())


def relative_chances(law: str, deviation: float, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Give the smaller of both chances over p (1 - p), for each x (down) and value of C (across)."""
    # They depend on x + c alone, which takes few different values.
    sums, places = np.unique(np.round(np.add.outer(x, values), 9), return_inverse=True)
    shape = len(x), len(values)
    win, lose = (chance(law, deviation, sums)[places].reshape(shape) for chance in (wins, loses))
    return np.where((x <= 0.0)[:, None], win, lose) / (expit(x) * expit(-x))[:, None]


def error_of(law: str, deviation: float, values: np.ndarray, weights: np.ndarray, step: float) -> float:
    """Give the largest relative error of a correction on a grid."""
    x = np.arange(-REACH, REACH + step / 2, step)
    right = np.where(x <= 0.0, expit(x), expit(-x)) / (expit(x) * expit(-x))
    return float(np.max(np.abs(relative_chances(law, deviation, x, values) @ weights - right)))


def correction(law: str, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """Find the values of C and their chances by linear programming."""
    highest = REACH + 6.0
    values = np.arange(-5.0 if law == "gumbel" else -highest, highest + STEP / 2, STEP)
    x = np.arange(-REACH, REACH + STEP / 4, STEP / 2)
    # Chances fall as exp(-|c|): in these units all numbers of the programme are of one size.
    unit = np.maximum(np.exp(-np.abs(values)), 1e-12)
    rows = relative_chances(law, deviation, x, values) * unit
    right = np.where(x <= 0.0, expit(x), expit(-x)) / (expit(x) * expit(-x))
    slack = -np.ones((len(x), 1))
    found = linprog(
        np.append(np.zeros(len(values)), 1.0),
        A_ub=np.vstack([np.hstack([rows, slack]), np.hstack([-rows, slack])]),
        b_ub=np.concatenate([right, -right]),
        A_eq=[np.append(unit, 0.0)],
        b_eq=[1.0],
    )
    weights = found.x[:-1] * unit
    kept = weights > NEGLIGIBLE
    return values[kept], weights[kept] / weights[kept].sum()


def lines() -> Iterator[tuple[str, float, str, str, str]]:
    """Give the lines of the table; print what was found."""
    for law, deviations in DEVIATIONS.items():
        for deviation in deviations:
            values, weights = correction(law, deviation)
            error = error_of(law, deviation, values, weights, STEP / 16)
            print(f"  {law} {deviation:<5g} {error:.1e}  {len(values)} values", flush=True)
            for value, weight in zip(values, weights, strict=True):
                yield law, deviation, f"{error:.2e}", f"{value:.1f}", f"{weight:.14g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="replace the table of the package")
    write, found = parser.parse_args().write, list(lines())
    if write:
        path = Path(corrections.__file__).with_name(corrections.FILE)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([corrections.COLUMNS, *found])


if __name__ == "__main__":
    main()
