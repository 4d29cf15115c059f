"""What can go wrong, by name. Every error says what to do about it."""

from importlib import import_module
from typing import Any


class GumbelraceError(Exception):
    """Base of every error that the library raises on purpose."""


class InvalidArgument(GumbelraceError, ValueError):
    """An argument has a value that no call could work with."""


class InvalidGenerator(GumbelraceError, TypeError):
    """The random source is neither a `numpy.random.Generator` nor a seed."""


class ShapeMismatch(GumbelraceError, ValueError):
    """Arrays that must fit each other do not, or there is nothing in them."""


class InvalidReward(GumbelraceError, ValueError):
    """A reward is NaN, +inf or too large to be squared; the message names its row and arm."""


class RewardOutOfRange(GumbelraceError, ValueError):
    """A reward lies outside the range that was given; the message names its row and arm."""


class UnknownRange(GumbelraceError, ValueError):
    """The method needs a reward range and the population does not know one."""


class NoPossibleArm(GumbelraceError, ValueError):
    """Every arm has probability zero."""


class FactorFailed(GumbelraceError, RuntimeError):
    """The user's log factor raised an exception or gave rewards of the wrong shape."""


class WeakEvidence(UserWarning):
    """A model was visited too seldom to say how probable it is."""


class NoMode(GumbelraceError, RuntimeError):
    """No mode of a posterior was found."""


class CheckpointMismatch(GumbelraceError, ValueError):
    """The checkpoint is that of a run with other arguments."""


class CheckpointDamaged(GumbelraceError, RuntimeError):
    """What lies at the path is not a checkpoint, or has been changed since it was written."""


class CheckpointBusy(GumbelraceError, RuntimeError):
    """Another run is writing to the checkpoint."""


class InvalidFile(InvalidArgument):
    """A file cannot be read as a table, or not be written; the message names it."""


class NotSettled(GumbelraceError, RuntimeError):
    """A bet would use a score at a position that is not settled."""


class EvaluationFailed(GumbelraceError, RuntimeError):
    """A score could not be had, which ends `choose`; a score raises it if no other can be had either."""


class StoreBusy(GumbelraceError, RuntimeError):
    """Another process is writing to the store."""


class StoreMismatch(GumbelraceError, ValueError):
    """The store holds evaluations made under other settings; the message says what to do."""


class ShardFailed(GumbelraceError, RuntimeError):
    """Workers could not read a part of a table, or not work on it, several times; the message names it."""


class MissingPackage(GumbelraceError, ImportError):
    """A package of an extra is not installed; the message names the extra."""


class UnevenResiduals(UserWarning):
    """A few rows carry the residuals of a control variate: a normal bound would miss them."""


class BlindPilot(UserWarning):
    """The points of a pilot differ so little that it cannot tell which rows matter."""


class NoCache(UserWarning):
    """Compiled code cannot be kept on disk: every process compiles anew."""


class PoorFit(UserWarning):
    """A normal law is so far from a posterior that tests by few rows save little."""


class NotConverged(UserWarning):
    """Chains differ from each other, or are too short to say much."""


class UnseenData(UserWarning):
    """A checkpoint cannot compare all that a kernel owns; the message says what, `tag=` stands for it."""


class PromiseBroken(UserWarning):
    """Decisions are wrong more often than was promised, by a check or by the rows read, or impossible."""


def optional(name: str, extra: str) -> Any:
    """Import a module of a package that only some users need, or say which extra has it.

    Examples
    --------
    >>> optional("no_such_package", "cli")
    Traceback (most recent call last):
    ...
    gumbelrace.errors.MissingPackage: no_such_package is not installed; pip install "gumbelrace[cli]"
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise MissingPackage(f'{missing} is not installed; pip install "gumbelrace[{extra}]"') from error
    except ImportError as error:
        raise MissingPackage(f"{name} cannot be loaded ({error}); install it again") from error
