"""Section 5.2 of the paper: the study of its setting, its statements held against that, and the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Estimates, log_normalised
from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    Plan,
    Runs,
    Sampled,
    Track,
    correlations,
    moments_of,
    spent,
    tracked,
)
from gumbelrace.applications.arch_compared import ComparedResult
from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.model_choice import ModelChoice
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.rows import points_of
from gumbelrace.paper.arch_setting import PAPER_NORMAL, PaperSetting
from gumbelrace.paper.claims import Claim, claims_section, claims_sentence, unsure
from gumbelrace.report.arch import answer, arch_sections, cost_table, four_panels
from gumbelrace.report.page import Files, Page, Panels, Section, Text, count, interval
from gumbelrace.verdict import clopper_pearson

CONFIDENCE = 0.95
Floats = NDArray[np.float64]
PILOTS = 20
# Steps of the paper's setting: it is not compiled.
PLAN = Plan(steps=4000, chains=5, first=50, adapt=8000, audited=1500)
TITLE = "ARCH order selection, reproduced"
LEAD = (
    "Section 5.2 of Chen and Ghahramani (2016): the order of an ARCH model by a chain that reads few rows "
    "of the data for each decision. First in the paper's own setting, beside its figures; then in ours."
)
SETTING = (
    "The paper's setting: softplus with τ = 1, Laplace pseudopriors, minibatch Langevin proposals "
    "accepted at 36%, bins of the data as control variates, a fifth of the rows read every time, first "
    "looks at 50 rows, and weights that start equal and adapt by 1 / (1 + t/100). The conditional of q has "
    "the ratio of prior to pseudoprior that the paper leaves out. A gradient of a row counts as a "
    "likelihood; exact sampling reads (K + 1) N a step."
)
CAPTION = (
    "The paper's setting. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler while its weights adapt, less those of importance sampling, against the likelihoods "
    "evaluated. (c) Share of the visits in each run with fixed weights. (d) Autocorrelation of q."
)
# A chain has converged when all its estimates of log p(q | r) stay within this of the reference. Chains of
# this setting mix slowly: some thousand steps come no closer.
CLOSE = 3.0
# Means of five runs that differ by more standard errors than this show a bias: by chance, one in 250 would.
NOTICED = 4.0
# The paper's figures.
# An error rate is "about" another if it is surely no more than so many times that.
ABOUT = 3.0
FASTER, EFFECTIVE, GIBBS_ERRORS, MOVE_ERRORS, REDUCTION = 3.0, 2.0, 4e-4, 2e-3, 100.0


class Checked(NamedTuple):
    """Decisions that were made again exactly, and how many differed."""

    errors: int
    decisions: int

    @property
    def rate(self) -> float:
        return self.errors / max(self.decisions, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """95% Clopper-Pearson interval for the probability of an error."""
        return clopper_pearson(self.errors, self.decisions, CONFIDENCE)


class Audits(NamedTuple):
    """Checks of both kinds of decisions, whose error rates the paper gives apart."""

    gibbs: Checked  # draws of the order
    moves: Checked  # Metropolis-Hastings tests of its parameter


def audits(trace: Trace[ModelChoice], steps: int, rng: np.random.Generator) -> Audits:
    """Make steps from states of a trace, picked at random, and check both decisions of each."""
    kernel: Any = trace.kernel
    kept, counts = trace.chains * trace.draws, np.zeros((2, 2), np.int64)
    for number in rng.choice(kept, min(steps, kept), replace=False):
        _, *checks = kernel.audited(rng, trace.state(*divmod(int(number), trace.draws)))
        counts += [[check.errors, check.decisions] for check in checks]
    (wrong_moves, moves), (wrong_draws, draws) = counts.tolist()
    return Audits(Checked(wrong_draws, draws), Checked(wrong_moves, moves))


@dataclass(frozen=True, eq=False)
class PaperStudy:
    """What the paper's setting gave."""

    setting: PaperSetting
    adapting: dict[str, Trace[ModelChoice]]  # chains of each sampler whose weights adapt
    raced: Sampled  # with fixed weights
    exact: Sampled
    audits: Audits  # decisions of the raced chains that were made again
    reference: Estimates  # log p(q | r) by importance sampling
    # How many times smaller the control variates make the variance of rewards, and of their differences
    # between two parameters of an order.
    reductions: tuple[float, float]

    @property
    def reached(self) -> list[int]:
        """Models that every adapting chain has visited."""
        count = len(self.setting.fits)
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
        """Difference between the samplers at each order, 0 if not all runs visited it or all agree.

        In standard errors as the runs have them: chains that mix slowly do not know their own.
        """
        raced, exact = (
            np.array([[one.log_probability for one in chain] for chain in sampler.by_chain])
            for sampler in (self.raced, self.exact)
        )
        seen = np.isfinite(raced).all(axis=0) & np.isfinite(exact).all(axis=0)
        variances = [x[:, seen].var(axis=0, ddof=1) / len(x) for x in (raced, exact)]
        differences = np.abs(raced[:, seen].mean(axis=0) - exact[:, seen].mean(axis=0))
        apart, errors = np.zeros(len(seen)), np.sqrt(np.sum(variances, axis=0))
        # An order with all of the probability has log p = 0 in every run.
        apart[seen] = np.divide(differences, errors, out=np.zeros_like(errors), where=errors > 0.0)
        return apart


def run_paper_setting(
    setting: PaperSetting, reference: Estimates, plan: Plan, folder: Path, progress: bool = True
) -> PaperStudy:
    """Adapt the weights with both samplers, then fix them and run both.

    What was stopped goes on from its checkpoints in `folder`. The estimates are compared with `reference`.
    """
    race = Race(PAPER_NORMAL, plan.delta, plan.first)
    runs = Runs(setting, plan, folder, progress)
    adapting = {
        RACED: runs.adapted(setting.kernel(race, plan.adapt), chains=plan.chains),
        EXACT: runs.adapted(setting.kernel(Exact(), plan.adapt), "adapt exact", plan.chains),
    }
    start = adapting[RACED].last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, setting.kernel(race), start, plan.steps)
    exact = runs.sampled(EXACT, setting.kernel(Exact()), start, plan.steps)
    checked = audits(raced.trace, plan.audited, plan.rng("audit"))
    found = reductions(setting, plan.rng("evidence"))
    return PaperStudy(setting, adapting, raced, exact, checked, reference, found)


def adapting_tracks(name: str, trace: Trace[ModelChoice], study: PaperStudy) -> Iterator[Track]:
    """Follow minus the log weights of the orders visited so far, by the first chain."""
    moments, visited = moments_of(trace) - 1, np.asarray(trace["model"])[0]
    seen = [np.cumsum(visited == k)[moments] > 0 for k in range(len(study.setting.fits))]
    weights = np.asarray(trace["log_weights"])[0][moments]
    return tracked(name, trace, study.setting, np.where(np.stack(seen, axis=1), -weights, -np.inf))


def reductions(setting: PaperSetting, rng: np.random.Generator) -> tuple[float, float]:
    """Measure how the control variates reduce variances: medians over parameters."""
    control, data = setting.control, setting.data
    rows = control.rows.tail
    alone, between = [], []
    for fit in setting.fits:
        points = points_of(list(fit.sample(rng, PILOTS)), fit.model.tau, data.lags)
        rewards = setting.rewards(points, rows)
        residuals = rewards - control.at(points).values(rows, np.arange(len(points)))
        alone.append(np.var(rewards, axis=0) / np.var(residuals, axis=0))
        between.append(np.var(np.diff(rewards), axis=0) / np.var(np.diff(residuals), axis=0))
    return float(np.median(alone)), float(np.median(between))


def reproduced_page(
    studies: tuple[PaperStudy, ComparedResult],
    found: Sequence[Claim],
    returns: Sequence[float],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page of the paper's setting and of ours; facts and files are as in `arch_page`."""
    paper, ours = studies
    sections = [
        claims_section(found, SETTING),
        Section("The paper's setting", [Text(wrong(paper.audits)), cost_table((paper.raced, paper.exact))]),
        *arch_sections(ours, returns),
        Section("The data", [Files(files)]),
    ]
    answered = f"{claims_sentence(found)} {answer(ours)}"
    return Page(TITLE, answered, facts, sections, LEAD, paper_figure(paper, returns))


def paper_facts(plan: Plan) -> dict[str, str]:
    lengths = f"{plan.chains} chains of {plan.adapt:,} steps that adapt, {plan.steps:,} that do not"
    return {"The paper's setting": lengths}


def paper_figure(study: PaperStudy, returns: Sequence[float]) -> Panels:
    """Give the panels of the paper's setting."""
    setting, samplers = study.setting, (study.raced, study.exact)
    found = [one for sampler in samplers for one in correlations(sampler, setting)]
    final = {setting.orders[k]: float(study.reference.log_probability[k]) for k in study.reached}
    return four_panels(returns, (study.tracks, final), samplers, found, CAPTION)


def wrong(audits: Audits) -> str:
    draws, moves = share_wrong("draws of the order", audits.gibbs), share_wrong("moves", audits.moves)
    return f"Made again exactly: {draws}, {moves}."


def share_wrong(name: str, found: Checked) -> str:
    return (
        f"{count(found.errors)} of {count(found.decisions)} {name} were wrong (95% interval "
        f"{interval(found.interval)})"
    )


def claims(study: PaperStudy) -> Iterator[Claim]:
    alone, between = study.reductions
    yield Claim(
        "Control variates reduce the reward variance by 2 to 3 orders of magnitude.",
        f"Of the other rows: {alone:,.0f} times; that of differences {between:,.0f} times.",
        alone >= REDUCTION,
        "Differences between parameters decide; they vary less in the first place.",
    )
    yield converges_faster(study)
    yield all_orders_are_visited(study)
    audited = (
        ("Racing-Normal Gibbs", GIBBS_ERRORS, study.audits.gibbs),
        ("Racing-Normal MH", MOVE_ERRORS, study.audits.moves),
    )
    for name, paper, found in audited:
        low, high = found.interval
        open_yet = low <= paper and high > ABOUT * paper
        yield Claim(
            f"The error rate of {name} is about {paper:g}.",
            f"{found.errors} of {found.decisions:,} wrong: {found.rate:.2g} (95% {low:.2g} to {high:.2g}).",
            None if open_yet else low <= paper,
            f"It is {unsure(found.errors, found.decisions, high)}." if open_yet else "",
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
        f"Most at order {study.setting.orders[furthest]}, where {raced:.2%} of the raced steps are and "
        f"{exact:.2%} of the exact ones."
    )
    return Claim(
        "No noticeable bias in the adjusted posterior over 5 runs.",
        f"Means over runs of both samplers differ by {most:.1f} standard errors at most.",
        most < NOTICED,
        "" if most < NOTICED else why,
    )


def converges_faster(study: PaperStudy) -> Claim:
    raced, exact = (reads_to_converge(name, study) for name in (RACED, EXACT))
    statement = "The subsampled chain converges about three times faster."
    if not np.isfinite(raced):
        return Claim(statement, "Not all chains came close enough; make them longer.", None)
    all_reads = float(spent(study.adapting[EXACT], study.setting)[-1])
    ratio, least = min(exact, all_reads) / raced, "" if np.isfinite(exact) else "at least "
    return Claim(
        statement,
        f"{least}{ratio:.1f} times fewer likelihoods until all estimates stay within {CLOSE:g}.",
        bool(ratio >= FASTER) if not least or ratio >= FASTER else None,
    )


def all_orders_are_visited(study: PaperStudy) -> Claim:
    orders, reached = study.setting.orders, study.reached
    missed = [str(order) for k, order in enumerate(orders) if k not in reached]
    return Claim(
        "Adapted weights make the chain visit every order sufficiently often.",
        f"Not visited by every chain: {', '.join(missed)}." if missed else "All are visited.",
        not missed,
        "Gains of 1 / (1 + t/100) move weights too slowly for an order that is hundreds of nats worse."
        if missed
        else "",
    )


def reads_to_converge(name: str, study: PaperStudy) -> float:
    """Give the likelihoods evaluated until a chain has converged, the median over chains.

    Orders that are never reached are left out of it.
    """
    trace, reached = study.adapting[name], study.reached
    reference = study.reference.log_probability[reached]
    reads = spent(trace, study.setting)
    counts = []
    for weights in np.asarray(trace["log_weights"])[:, :, reached]:
        apart = np.abs(log_normalised(-weights) - log_normalised(reference)).max(axis=1)
        late = np.flatnonzero(apart > CLOSE)
        step = late[-1] + 1 if len(late) else 0
        counts.append(reads[step] if step < len(reads) else np.inf)
    return float(np.median(counts))
