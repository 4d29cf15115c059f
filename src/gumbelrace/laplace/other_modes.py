"""Whether a posterior has other modes than the one found: chains around one would never see them."""

import warnings
from collections.abc import Iterator

import numpy as np

from gumbelrace.errors import NoMode, PoorFit
from gumbelrace.laplace.mode import MANY, Mode, find_mode, named
from gumbelrace.laplace.model import Floats, Model

# Modes are looked for so many standard deviations away, to both sides, and twice that far from the start.
AWAY, TWICE, AROUND = (10.0, 30.0, 100.0), 2, 2.0
SEED = 0
# Modes are two if they are so many standard deviations apart. Where the log posterior is lower by so much,
# one is of no importance.
APART, LOWER = 1.0, 10.0


def warn_of_other_modes(model: Model, mode: Mode, size: int) -> None:
    """Warn if a posterior has another mode of importance.

    Parameters
    ----------
    model : Model
        The posterior given all rows, or only some of them.
    mode : Mode
        The mode given all rows.
    size : int
        Number of all rows.
    """
    if len(mode.theta) > MANY or (known := _found(model, mode.theta)) is None:
        return
    for start in starts(model, known):
        other = _found(model, start)
        if other is not None and differ(known, other, size / model.size):
            warnings.warn(
                f"the posterior has another mode at {named(model.names, other.theta)}, beside that at "
                f"{named(model.names, mode.theta)}: draws are of one of them only; order what can be "
                "swapped, give another start, or use a sampler for several modes",
                PoorFit,
                stacklevel=4,  # whoever called `posterior`
            )
            return


def starts(model: Model, mode: Mode) -> Iterator[Floats]:
    """Give points far from the mode, and some around the model's own start."""
    rng, sd = np.random.default_rng(SEED), 1.0 / np.sqrt(np.diag(mode.precision))
    for away in AWAY:
        step = away * sd * rng.normal(size=len(sd))
        yield mode.theta + step
        yield mode.theta - step
    for _ in range(TWICE):
        yield model.start + rng.uniform(-AROUND, AROUND, len(sd))


def differ(one: Mode, other: Mode, times: float) -> bool:
    """Whether two modes are apart and the second is of importance, given so many times as many rows."""
    step = other.theta - one.theta
    higher = times * (other.factors.value - one.factors.value) + other.prior.value - one.prior.value
    return bool(step @ one.precision @ step > APART**2 and higher > -LOWER)


def _found(model: Model, start: Floats) -> Mode | None:
    try:
        return find_mode(model, start)
    except NoMode:  # so far away, or with so few rows, that may be
        return None
