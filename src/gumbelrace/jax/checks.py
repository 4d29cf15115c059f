"""After the chains: moves from states that they visited are judged again, many times, and exactly.

The law of moves is right if it keeps detailed balance, whatever its acceptance: the way there is compared
with the way back (`AuditedLaw` does the same for compiled kernels).
"""

from typing import Any

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.auditing import Comparison, joined
from gumbelrace.jax.chain import Chains
from gumbelrace.jax.packages import in_double, random
from gumbelrace.jax.sweep import Sweeps
from gumbelrace.laplace.model import Floats
from gumbelrace.methods.penalty import Penalty
from gumbelrace.methods.state import new_results
from gumbelrace.verdict import MOVES, SURE, Audit, clopper_pearson

# Moves that are checked: as many as read about so many rows, and no fewer and no more than that.
AFFORDABLE, FEWEST, MOST = 2e7, 4, 32


def audited(chains: Chains | Sweeps, key: Any, z: Floats, fraction: float) -> Audit:
    """Check moves from some of the states z, of shape (chains, draws, d), to proposals."""
    compared, (count, draws, _) = Comparison(MOVES), z.shape
    rng = np.random.default_rng(np.asarray(seed_of(key)))
    moves = int(np.clip(AFFORDABLE / (2 * chains.model.size), FEWEST, MOST))
    for turn in range(max(moves // count, 1)):
        here = z[np.arange(count), rng.integers(draws, size=count)]
        compare(chains, random.fold_in(key, turn), (here, chains.proposed(rng, here)), compared)
    nothing = clopper_pearson(0, 0, SURE)
    return Audit(0, 0, nothing, SURE, fraction, Penalty().promise, law=joined([compared], SURE))


def compare(chains: Chains | Sweeps, key: Any, ends: tuple[Floats, Floats], compared: Comparison) -> None:
    """Judge moves there and back, and compare their chances with the exact log ratios."""
    there, back = (
        chains.judged(way, *pair) for way, pair in zip(random.split(key), (ends, ends[::-1]), strict=True)
    )
    for n, log_ratio in enumerate(log_ratios(chains, *ends)):
        if not np.isfinite(log_ratio):
            continue
        chance = scipy.special.expit(log_ratio)
        sides = [np.exp(np.minimum(made.log_chance[n], 0.0)) for made in (there, back)]
        off = (1.0 - chance) * sides[0].mean() - chance * sides[1].mean()
        variance = ((1.0 - chance) ** 2 * sides[0].var() + chance**2 * sides[1].var()) / len(sides[0])
        # Seen from the other point it has the other sign: to what is less likely, lest all of it cancels.
        seen = [
            new_results(len(side))._replace(law_error=made.law_error[n])
            for side, made in zip(sides, (there, back), strict=True)
        ]
        compared.add(float(off if chance < 0.5 else -off), float(variance), seen)


def log_ratios(chains: Chains | Sweeps, here: Floats, there: Floats) -> Floats:
    """Give the exact log ratios of proposals, by all rows."""
    return heights(chains, there) - heights(chains, here)


def heights(chains: Chains | Sweeps, z: Floats) -> Floats:
    """Give log posterior densities, up to a constant, less those of the law."""
    mode = np.asarray(chains.law.mode)
    left = np.array([chains.model.residuals(mode, theta - mode).sum() for theta in chains.thetas(z)])
    return left + chains.known(z) - chains.log_proposal(z)


def seed_of(key: Any) -> Any:
    """Give numbers that seed a generator of NumPy."""
    with in_double():
        return random.key_data(key)
