"""Whether derivatives that a user wrote are those of the log factors; looked at where no mode was found."""

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.compiled import CompiledModel

# Rows that are looked at, how far from the start, and the shortest part of that way.
ROWS, AWAY, STEP = 4_096, 0.1, 1e-3
# Numbers that differ by more than that share, and by so many times what rounding and the third derivative
# make of them, are not the same.
SHARE, TIMES, ROUNDING = 0.02, 10.0, 1e-15
SEED = 0


def check_terms(model: CompiledModel) -> None:
    """Refuse `terms` that are not those of `log_factor`, at some rows: value, slope, curvature."""
    rng, start = np.random.default_rng(SEED), model.given_start
    rows = np.sort(rng.choice(model.all_rows, min(model.all_rows, ROWS), replace=False))
    away = AWAY * rng.standard_normal(len(start))
    for n in rows.tolist():
        found = dict(zip(("value", "slope", "curvature"), compared(model, n, start, away), strict=True))
        wrong = [name for name, (said, right, error) in found.items() if differ(said, right, error)]
        if wrong:
            said, right, _ = found[wrong[0]]
            raise InvalidArgument(
                f"terms gives the {wrong[0]} {said:.6g} of row {n} at the start, where differences of "
                f"log_factor give {right:.6g}: one of the two functions is wrong"
            )


def compared(model: CompiledModel, n: int, start: np.ndarray, away: np.ndarray) -> list[tuple[float, ...]]:
    """Give what terms says of a row, differences of its log factor, and how far off these may be."""
    said = model.terms(n, start, away, *model.data)
    at = {
        k: float(model.log_factor(n, start + k * STEP * away, *model.data))
        for k in (-2.0, -1.0, 0.0, 1.0, 2.0)
    }
    slopes = [(at[k] - at[-k]) / (2.0 * k * STEP) for k in (1.0, 2.0)]
    curvatures = [(at[k] + at[-k] - 2.0 * at[0.0]) / (k * STEP) ** 2 for k in (1.0, 2.0)]
    rounding = ROUNDING * max(map(abs, at.values()))
    right = (
        (at[0.0], rounding),
        *(
            (one, abs(two - one) + rounding / STEP**power)
            for power, (one, two) in ((1, slopes), (2, curvatures))
        ),
    )
    return [(float(value), *pair) for value, pair in zip(said, right, strict=True)]


def differ(said: float, right: float, error: float) -> bool:
    """Whether two numbers are not the same but for an error; what is not finite says nothing."""
    if not np.isfinite([said, right, error]).all():
        return False
    return abs(said - right) > SHARE * max(abs(said), abs(right)) + TIMES * error
