"""Numba functions are tried out when a population is made: what they give, and how far they read."""

import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target
from tests.common import seeded, totals

import gumbelrace as gr
from gumbelrace.core import jit
from gumbelrace.errors import InvalidArgument, ShapeMismatch

here = sys.modules[__name__]
Y = seeded(1).normal(size=100)
WRONG = {
    "an array": numba.njit(lambda n, arm, y: y),
    "complex128": numba.njit(lambda n, arm, y: y[n] * 1j),
    "a tuple": numba.njit(lambda n, arm, y: (y[n], 1.0)),
    "None": numba.njit(lambda n, arm, y: None),
    "unicode": numba.njit(lambda n, arm, y: "text"),
}


@numba.njit
def sometimes(n, arm, y):
    if n > 3:
        return y[n]


@numba.njit
def plain(n, arm, y):
    return y[n] * arm


@numba.njit
def deep(y, n, depth):
    return y[n] if depth == 0 else deep(y, n, depth - 1)


@numba.njit
def nested(n, arm, y):
    return deep(y, n, 2) * arm


@jit.part
def only_for_compiled_code(y, n):
    return y[n]


@numba.njit
def by_a_part(n, arm, y):
    return only_for_compiled_code(y, n) * arm


@numba.njit
def by_a_module(n, arm, y):
    return here.deep(y, n, 0) * arm


@numba.njit
def writing(n, arm, y, seen):
    seen[n] += 1
    return y[n]


@numba.njit
def writing_logs(n, arm, y, seen):
    seen[n] += 1
    return math.log(seen[0]) + y[n]


@numba.njit
def logs(n, arm, x, y):
    return max(math.log(x[n]), -1.0) + deep(y, n, 1) * arm


@numba.njit
def handling(n, arm, y):
    try:
        return y[n] * arm
    except Exception:
        return 0.0


@numba.njit
def of_theta(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


@numba.njit
def terms(n, centre, direction, y):
    return -0.5 * (y[n] - centre[0]) ** 2, (y[n] - centre[0]) * direction[0], -(direction[0] ** 2)


@pytest.mark.parametrize("kind", WRONG)
def test_result_that_is_no_real_number_is_refused(kind):
    for make in [gr.compiled, lambda f, data, size, arms: gr.pairs(f, data, size)]:
        with pytest.raises(InvalidArgument, match="must give a real number"):
            make(WRONG[kind], (Y,), 100, 2)


def test_threads_try_functions_out_in_turns(monkeypatch):
    """numba's tables of types are shared: two threads that refreshed them at once raised a ValueError."""
    context, inside, together = cpu_target.typing_context, [], []
    refresh = context.refresh

    def watched():
        inside.append(threading.get_ident())  # numba may call it again in the midst of it
        together.append(len(set(inside)))
        time.sleep(0.02)
        refresh()
        inside.remove(threading.get_ident())

    monkeypatch.setattr(context, "refresh", watched)
    functions = [numba.njit(lambda n, arm, y, k=k: y[n] + k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda function: gr.compiled(function, (Y,), 100, 2), functions))
    assert len(together) >= 4
    assert max(together) == 1


def test_messages_say_what_is_missing():
    with pytest.raises(InvalidArgument, match=r"an index such as \[n\] is missing"):
        gr.compiled(WRONG["an array"], (Y,), 100, 2)
    with pytest.raises(InvalidArgument, match="a return is missing"):
        gr.compiled(sometimes, (Y,), 100, 2)


@pytest.mark.parametrize(
    "factor", [lambda n, arm, y: n + arm, lambda n, arm, y: n > arm], ids=["int", "bool"]
)
def test_integers_and_truth_values_are_numbers(factor):
    found = totals(gr.compiled(numba.njit(factor), (Y,), 10, 2))
    np.testing.assert_array_equal(found, [sum(factor(n, arm, Y) for n in range(10)) for arm in range(2)])


def test_result_of_a_likelihood_is_refused_when_the_points_are_known():
    likelihood = gr.likelihood(numba.njit(lambda n, theta, y: y[n] - theta), (Y,), 100)
    assert likelihood([0.0, 1.0]).arms == 2  # numbers
    with pytest.raises(InvalidArgument, match="must give a real number"):
        likelihood([[0.0], [1.0]])


def test_terms_must_be_three_numbers():
    for wrong in (of_theta, numba.njit(lambda n, centre, direction, y: (y[n], 0.0))):
        with pytest.raises(InvalidArgument, match=r"terms.*(3 real numbers|data)"):
            gr.parameter_taylor(wrong, (Y,), 100, [0.0])


def test_control_variate_must_give_a_number():
    rewards = seeded(2).normal(size=(100, 2))
    for population in (gr.table(rewards), gr.factors(lambda i, a: rewards[np.ix_(i, a)], 100, 2)):
        with pytest.raises(InvalidArgument, match="must give a real number"):
            population.minus(gr.control_variates.ControlVariate(WRONG["an array"], (Y,), np.zeros(2)))


@pytest.mark.parametrize("factor", [plain, nested, by_a_part, by_a_module], ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [101, 10**8])
def test_size_beyond_the_data_is_refused(factor, size):
    assert gr.compiled(factor, (Y,), 100, 2).size == 100
    with pytest.raises(ShapeMismatch, match=rf"data\[0\], of shape \(100,\), at n = {size - 1}"):
        gr.compiled(factor, (Y,), size, 2)


# Data whose last logarithm is -inf to numba and an error to Python.
X = np.r_[np.ones(99), 0.0]
SHORT = {
    "compiled": lambda x, y: gr.compiled(logs, (x, y), 100, 2),
    "pairs": lambda x, y: gr.pairs(logs_of_a_pair, (x, y), 100),
    "likelihood": lambda x, y: gr.likelihood(logs_of_theta, (x, y), 100)([[0.0], [1.0]]),
}
logs_of_a_pair = numba.njit(lambda i, j, x, y: logs(j, i, x, y))
logs_of_theta = numba.njit(lambda n, theta, x, y: logs(n, theta[0], x, y))


@pytest.mark.parametrize("make", SHORT.values(), ids=SHORT)
def test_data_that_are_too_short_show_behind_what_only_python_calls_an_error(make):
    for x in (X, X + 1.0):
        with pytest.raises(ShapeMismatch, match=r"data\[1\].* of shape \(50,\)"):
            make(x, Y[:50])
        make(x, Y)


def test_data_that_are_too_short_show_where_the_function_handles_exceptions():
    with pytest.raises(ShapeMismatch, match=r"data\[0\], of shape \(99,\), at n = 99"):
        gr.compiled(handling, (Y[:99],), 100, 2)


@pytest.mark.parametrize("factor", [writing, writing_logs], ids=lambda f: f.__name__)
def test_data_that_are_too_short_show_where_the_function_writes_into_a_large_array(factor):
    seen = np.zeros(200_000, np.int64)
    with pytest.raises(ShapeMismatch, match=r"data\[0\] is of shape \(100,\)"):
        gr.compiled(factor, (Y, seen), len(seen), 2)
    assert not seen.any()


def test_a_trial_that_decided_nothing_is_not_remembered():
    @numba.njit
    def raising(n, arm, x, y):
        if x[n] == 0.0:
            raise ValueError
        return y[n]

    assert gr.compiled(raising, (X, Y[:50]), 100, 2).size == 100  # to raise is for the race
    with pytest.raises(ShapeMismatch, match=r"data\[1\], of shape \(50,\)"):
        gr.compiled(raising, (X + 1.0, Y[:50]), 100, 2)


def test_arms_beyond_the_data_are_refused():
    centred = numba.njit(lambda n, arm, y, centres: y[n] - centres[arm])
    with pytest.raises(ShapeMismatch, match=r"data\[1\], of shape \(3,\), at n = 99, arm = 3"):
        gr.compiled(centred, (Y, np.zeros(3)), 100, 4)


def test_likelihoods_pairs_terms_and_control_variates_are_checked_too():
    with pytest.raises(ShapeMismatch, match=r"data\[0\], of shape \(100,\), at n = 100"):
        gr.likelihood(of_theta, (Y,), 101)([[0.0], [1.0]])
    with pytest.raises(ShapeMismatch, match=r"theta, of shape \(0,\)"):
        gr.likelihood(of_theta, (Y,), 100)(np.zeros((2, 0)))
    with pytest.raises(ShapeMismatch, match=r"data\[0\].*j = 100"):
        gr.pairs(numba.njit(lambda i, j, y: y[i] - y[j]), (Y,), 101)
    with pytest.raises(ShapeMismatch, match=r"terms reads beyond data\[0\]"):
        gr.parameter_taylor(terms, (Y,), 101, [0.0])
    with pytest.raises(ShapeMismatch, match=r"function reads beyond data\[0\]"):
        gr.table(np.zeros((101, 2))).minus(gr.control_variates.ControlVariate(plain, (Y,), np.zeros(2)))


def test_data_that_numba_cannot_read_are_refused():
    with pytest.raises(InvalidArgument, match=r"dtype >f8.*astype"):
        gr.compiled(plain, (Y.astype(">f8"),), 100, 2)
    with pytest.raises(ShapeMismatch, match=r"data\[0\] is ragged"):
        gr.compiled(plain, ([Y, Y[:3]],), 100, 2)
    for item in ((Y, 1.0), "text"):
        with pytest.raises(InvalidArgument, match=rf"data\[0\] is a {type(item).__name__}"):
            gr.compiled(plain, (item,), 100, 2)


def test_masked_data_are_refused_and_a_mask_of_nothing_is_not():
    masked, whole = np.ma.masked_greater(Y, 1.0), np.ma.masked_greater(Y, 100.0)
    makers = [
        lambda data: gr.compiled(plain, data, 100, 2),
        lambda data: gr.likelihood(of_theta, data, 100),
        lambda data: gr.pairs(plain, data, 100),
        lambda data: gr.parameter_taylor(terms, data, 100, [0.0]),
        lambda data: gr.control_variates.ControlVariate(plain, data, np.zeros(2)),
    ]
    for make in makers:
        with pytest.raises(InvalidArgument, match=r"data\[0\] has masked entries"):
            make((masked,))
        make((whole,))


def test_another_length_of_the_same_data_is_tried_out_anew():
    assert gr.compiled(plain, (Y,), 100, 2).size == 100
    with pytest.raises(ShapeMismatch):
        gr.compiled(plain, (Y[:99],), 100, 2)


@pytest.mark.parametrize("size", [100, 200_000])  # data that are copied for the trial, and that are not
def test_a_trial_changes_nothing(size):
    seen = np.zeros(size, np.int64)
    gr.compiled(writing, (np.zeros(size), seen), size, 2)
    assert not seen.any()


@pytest.mark.parametrize("error", [ZeroDivisionError, NotImplementedError])
def test_other_errors_of_the_trial_are_left_to_the_race(error):
    @numba.njit
    def raising(n, arm, y):
        if n == 99:
            raise error
        return y[n]

    assert gr.compiled(raising, (Y,), 100, 2).size == 100
