"""The ARCH experiment in the paper's own setting, and what the paper says of it held against that."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    Plan,
    Runs,
    Sampled,
    Track,
    moments_of,
    spent,
    tracked,
)
from gumbelrace.applications.arch_evidence import Estimates
from gumbelrace.bounds.normal import Normal
from gumbelrace.chain.trace import Trace
from gumbelrace.experiments.records import Claim
from gumbelrace.kernels.carlin_chib import ModelChoice
from gumbelrace.models.arch.rows import points_of
from gumbelrace.paper.arch_audit import Audits, audits
from gumbelrace.paper.arch_setting import PaperSetting
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.race import Race

Floats = NDArray[np.float64]
# A chain has converged when all its estimates of log p(q | r) stay within this of the reference. Chains of
# this setting mix slowly: some thousand steps come no closer.
CLOSE = 3.0
# Means of five runs that differ by more standard errors than this show a bias: by chance, one in 250 would.
NOTICED = 4.0
# The paper's figures.
FASTER, EFFECTIVE, GIBBS_ERRORS, MOVE_ERRORS, REDUCTION = 3.0, 2.0, 4e-4, 2e-3, 100.0
PILOTS = 20
# Steps of the paper's setting: it is not compiled.
PLAN = Plan(steps=4000, exact_steps=4000, chains=5, first=50, adapt=8000, audited=1500)


@dataclass(frozen=True, eq=False)
class PaperStudy:
    """What the paper's setting gave.

    Attributes
    ----------
    adapting : dict
        Chains of each sampler whose weights adapt.
    raced, exact : Sampled
        Chains with fixed weights.
    audits : Audits
        Decisions of the raced chains that were made again.
    reference : Estimates
        log p(q | r) by importance sampling.
    reductions : (float, float)
        How many times smaller the control variates make the variance of rewards, and of the differences
        of rewards between two parameters of an order.
    """

    printed: PaperSetting
    adapting: dict[str, Trace[ModelChoice]]
    raced: Sampled
    exact: Sampled
    audits: Audits
    reference: Estimates
    reductions: tuple[float, float]

    @property
    def reached(self) -> list[int]:
        """Models that every adapting chain has visited."""
        count = len(self.printed.fits)
        visits = [set(chain) for trace in self.adapting.values() for chain in np.asarray(trace["model"])]
        return [k for k in range(count) if all(k in seen for seen in visits)]

    @property
    def tracks(self) -> list[Track]:
        """Estimates while the weights adapt, by the first chain of each sampler."""
        return [
            track for name, trace in self.adapting.items() for track in adapting_tracks(name, trace, self)
        ]

    @property
    def apart(self) -> Floats:
        """Difference between the samplers at each order, 0 if not all runs visited it.

        In standard errors as the runs have them: chains that mix slowly do not know their own.
        """
        raced, exact = (
            np.array([[one.log_probability for one in chain] for chain in sampler.by_chain])
            for sampler in (self.raced, self.exact)
        )
        seen = np.isfinite(raced).all(axis=0) & np.isfinite(exact).all(axis=0)
        variances = [x[:, seen].var(axis=0, ddof=1) / len(x) for x in (raced, exact)]
        apart = np.zeros(len(seen))
        apart[seen] = np.abs(raced[:, seen].mean(axis=0) - exact[:, seen].mean(axis=0))
        apart[seen] /= np.sqrt(sum(variances))
        return apart

    @property
    def claims(self) -> list[Claim]:
        """The paper's statements, and what was found."""
        return [*claims(self)]


def run_paper_setting(
    printed: PaperSetting, reference: Estimates, plan: Plan, folder: Path, progress: bool = True
) -> PaperStudy:
    """Adapt the weights with both samplers, then fix them and run both.

    Parameters
    ----------
    printed : PaperSetting
        The setting.
    reference : Estimates
        log p(q | r) to compare with.
    plan : Plan
        How long.
    folder : Path
        Where checkpoints lie; what was stopped goes on there.
    progress : bool
        Whether to show how far it is.
    """
    race = Race(Normal(student=False), plan.delta, plan.first)
    runs = Runs(printed, plan, folder, progress)
    adapting = {
        RACED: runs.adapted(printed.kernel(race, plan.adapt), chains=plan.chains),
        EXACT: runs.adapted(printed.kernel(Exact(), plan.adapt, exact=True), "adapt exact", plan.chains),
    }
    start = adapting[RACED].last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, printed.kernel(race), start)
    exact = runs.sampled(EXACT, printed.kernel(Exact(), exact=True), start)
    checked = audits(raced.trace, plan.audited, plan.rng("audit"))
    found = reductions(printed, plan.rng("evidence"))
    return PaperStudy(printed, adapting, raced, exact, checked, reference, found)


def adapting_tracks(name: str, trace: Trace[ModelChoice], study: PaperStudy) -> Iterator[Track]:
    """Follow minus the log weights of the orders visited so far, by the first chain."""
    moments, visited = moments_of(trace) - 1, np.asarray(trace["model"])[0]
    seen = [np.cumsum(visited == k)[moments] > 0 for k in range(len(study.printed.fits))]
    weights = np.asarray(trace["log_weights"])[0][moments]
    return tracked(name, trace, study.printed, np.where(np.stack(seen, axis=1), -weights, -np.inf))


def reads_to_converge(name: str, study: PaperStudy) -> float:
    """Give the likelihoods evaluated until a chain has converged, the median over chains.

    Orders that are never reached are left out of it.
    """
    trace, reached = study.adapting[name], study.reached
    reference = study.reference.log_probability[reached]
    reads = spent(name, trace, study.printed)
    counts = []
    for weights in np.asarray(trace["log_weights"])[:, :, reached]:
        apart = np.abs(normalised(-weights) - normalised(reference)).max(axis=1)
        late = np.flatnonzero(apart > CLOSE)
        step = late[-1] + 1 if len(late) else 0
        counts.append(reads[step] if step < len(reads) else np.inf)
    return float(np.median(counts))


def normalised(log_p: Floats) -> Floats:
    """Normalise logarithms of probabilities along the last axis."""
    return log_p - np.logaddexp.reduce(log_p, axis=-1, keepdims=True)


def reductions(printed: PaperSetting, rng: np.random.Generator) -> tuple[float, float]:
    """Measure how the control variates reduce variances: medians over parameters."""
    control, data = printed.control, printed.data
    rows = np.arange(data.size) if control.always is None else control.always.raced
    alone, between = [], []
    for fit in printed.fits:
        points = points_of(list(fit.sample(rng, PILOTS)), fit.model.tau, data.lags)
        rewards = printed.rewards(points, rows)
        residuals = rewards - control.at(points).values(rows, np.arange(len(points)))
        alone.append(np.var(rewards, axis=0) / np.var(residuals, axis=0))
        between.append(np.var(np.diff(rewards), axis=0) / np.var(np.diff(residuals), axis=0))
    return float(np.median(alone)), float(np.median(between))


def claims(study: PaperStudy) -> Iterator[Claim]:
    """Hold the paper's statements against the study."""
    alone, between = study.reductions
    yield Claim(
        "Control variates reduce the reward variance by 2 to 3 orders of magnitude.",
        f"Of the rows not always read: {alone:,.0f} times; that of differences {between:,.0f} times.",
        alone >= REDUCTION,
        "Differences between parameters decide; they vary less in the first place.",
    )
    yield converges_faster(study)
    yield all_orders_are_visited(study)
    audited = (
        ("Racing-Normal Gibbs", GIBBS_ERRORS, study.audits.gibbs),
        (
            "Racing-Normal MH",
            MOVE_ERRORS,
            study.audits.moves,
        ),
    )
    for name, paper, found in audited:
        low, high = found.interval
        yield Claim(
            f"The error rate of {name} is about {paper:g}.",
            f"{found.errors} of {found.decisions:,} wrong: {found.rate:.2g} (95% {low:.2g} to {high:.2g}).",
            low <= paper,
        )
    gain = study.raced.cost.effective_a_read / study.exact.cost.effective_a_read
    yield Claim(
        "Over twice the effective sample size of q in the same time (likelihoods evaluated).",
        f"{gain:.2f} times, with {study.raced.cost.share:.0%} of the likelihoods of an exact step.",
        gain > EFFECTIVE,
    )
    yield is_unbiased(study)


def is_unbiased(study: PaperStudy) -> Claim:
    """Compare what the runs of both samplers say, and how often they are at the order that differs most."""
    most, furthest = float(study.apart.max()), int(study.apart.argmax())
    raced, exact = (
        sampler.orders[furthest].visits / sum(one.visits for one in sampler.orders)
        for sampler in (study.raced, study.exact)
    )
    why = (
        f"Most at order {study.printed.orders[furthest]}, where {raced:.2%} of the raced steps are and "
        f"{exact:.2%} of the exact ones."
    )
    return Claim(
        "No noticeable bias in the adjusted posterior over 5 runs.",
        f"Means over runs of both samplers differ by {most:.1f} standard errors at most.",
        most < NOTICED,
        "" if most < NOTICED else why,
    )


def converges_faster(study: PaperStudy) -> Claim:
    """Compare the likelihoods that both samplers need."""
    raced, exact = (reads_to_converge(name, study) for name in (RACED, EXACT))
    statement = "The subsampled chain converges about three times faster."
    if not np.isfinite(raced):
        return Claim(statement, "Not all chains came close enough; make them longer.", None)
    all_reads = float(spent(EXACT, study.adapting[EXACT], study.printed)[-1])
    ratio, least = min(exact, all_reads) / raced, "" if np.isfinite(exact) else "at least "
    return Claim(
        statement,
        f"{least}{ratio:.1f} times fewer likelihoods until all estimates stay within {CLOSE:g}.",
        bool(ratio >= FASTER) if not least or ratio >= FASTER else None,
    )


def all_orders_are_visited(study: PaperStudy) -> Claim:
    """Say which orders the adapted weights have made the chain visit."""
    orders, reached = study.printed.orders, study.reached
    missed = [str(order) for k, order in enumerate(orders) if k not in reached]
    return Claim(
        "Adapted weights make the chain visit every order sufficiently often.",
        f"Not visited by every chain: {', '.join(missed)}." if missed else "All are visited.",
        not missed,
        "Gains of 1 / (1 + t/100) move weights too slowly for an order that is hundreds of nats worse."
        if missed
        else "",
    )
