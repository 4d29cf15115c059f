"""Arguments that users of other samplers give by habit: each is refused with what to do instead."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from gumbelrace.errors import InvalidArgument

# Names for the same thing.
SAME = (
    {"draws", "num_samples", "n_samples", "samples", "steps"},
    {"chains", "num_chains", "n_chains"},
    {"tune", "warmup", "num_warmup", "n_warmup", "burn", "burnin"},
    {"random_seed", "rng_key", "rng", "seed", "key"},
    {"progressbar", "progress_bar", "progress"},
    {"initvals", "start", "init_params"},
    {"var_names", "vars"},
)
OF_NUTS = "a setting of NUTS, of which there is none here"
ONE_PROCESS = "all chains run in one process"
OWN_STEPS = "pm.sample takes steps, gumbelrace.pymc.Metropolis and Gibbs among them"
INSTEAD = {
    "cores": ONE_PROCESS,
    "chain_method": ONE_PROCESS,
    "mp_ctx": ONE_PROCESS,
    "blas_cores": ONE_PROCESS,
    "step": OWN_STEPS,
    "kernel": OWN_STEPS,
    "thin": "thin the draws afterwards, if at all",
    "thinning": "thin the draws afterwards, if at all",
    "return_inferencedata": "the result is as with return_inferencedata=True",
    "idata_kwargs": "call pm.compute_log_likelihood(result, model=model) afterwards",
    "discard_tuned_samples": "what is tuned is never kept",
    "compute_convergence_checks": "checks are always made; they warn by gumbelrace.errors.NotConverged",
    **dict.fromkeys(
        ("target_accept", "target_accept_prob", "nuts_sampler", "nuts_sampler_kwargs", "nuts", "init"),
        OF_NUTS,
    ),
    **dict.fromkeys(
        ("n_init", "jitter_max_retries", "step_kwargs", "max_treedepth", "max_tree_depth", "step_size"),
        OF_NUTS,
    ),
}


def refuse(names: Iterable[str], function: Callable[..., Any]) -> None:
    """Refuse arguments that a function does not take, if there are any.

    Examples
    --------
    >>> refuse(["num_samples", "cores"], lambda draws, chains: None)
    Traceback (most recent call last):
    ...
    gumbelrace.errors.InvalidArgument: num_samples: it is called draws; cores: all chains run in one
    process, leave it out. Arguments are draws, chains
    """
    taken = [
        name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD
    ]
    answers = [f"{name}: {answer(name, taken)}" for name in names]
    if answers:
        raise InvalidArgument(f"{'; '.join(answers)}. Arguments are {', '.join(taken)}")


def answer(name: str, taken: list[str]) -> str:
    """Say what to do instead of giving an argument."""
    meant = [other for names in SAME if name in names for other in taken if other in names]
    if meant:
        return f"it is called {meant[0]}"
    return f"{INSTEAD.get(name, 'unknown')}, leave it out"
