"""Schedules of saved states: the binomial optimum, as planned and as compiled programs count their steps."""

from collections.abc import Callable
from functools import lru_cache
from math import comb, log2
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.residuals.schedules import logarithmic, next_position
from tests.interpreters.residuals.revolve import fewest_repetitions, most_repetitions

LENGTHS, STATES = 60, 8
LARGE = [(10**6, 20), (2**31 - 2, 2), (2**31 - 2, 31), (10**9, 3), (10**5, 1000)]


@lru_cache
def by_search(length: int, states: int) -> int:
    """The fewest repetitions: of all positions of the next state, the best."""
    if length < 2 or states == 1:
        return length * (length - 1) // 2
    both = [k + by_search(k, states) + by_search(length - k, states - 1) for k in range(1, length)]
    return min(both)


def test_the_binomial_formula_is_the_optimum():
    for length in range(1, LENGTHS):
        for states in range(1, STATES):
            assert fewest_repetitions(length, states) == by_search(length, states)


def test_positions_are_optimal():
    """Those that compiled programs compute: each choice costs what the formula says."""
    pairs = [(n, s) for n in range(2, 2 * LENGTHS) for s in range(2, 2 * STATES)]
    n, s = (np.array(x, np.int32) for x in zip(*pairs, strict=True))
    found = tl.jit(tl.vmap(lambda n, s: next_position(np.int32(7), n + 7, s - 1)))(n, s)
    for k, length, states in zip(np.asarray(found) - 7, n.tolist(), s.tolist(), strict=True):
        behind = fewest_repetitions(length - k, states - 1)
        assert k + fewest_repetitions(k, states) + behind == fewest_repetitions(length, states)
    assert next_position(np.int32(3), np.int32(9), np.int32(0)) == 9
    assert next_position(np.int32(3), np.int32(4), np.int32(5)) == 4


@pytest.mark.parametrize(("length", "states"), LARGE)
def test_large_numbers_do_not_overflow(length: int, states: int):
    """The ranges of steps before and behind the next state, of which any choice is optimal, in Python's integers."""
    r = most_repetitions(length, states)
    k = int(tl.jit(next_position)(np.int32(0), np.int32(length), np.int32(states - 1)))
    assert comb(states + r - 2, states) <= k <= comb(states + r - 1, states)
    assert comb(states + r - 2, states - 1) <= length - k <= comb(states + r - 1, states - 1)


def test_log():
    for length in [*range(2, 400), 1000, 4000, 4096, 99991, 10**6]:
        states = logarithmic(length)
        assert states < log2(length) + 1
        assert length + 1 + fewest_repetitions(length, states) <= length * (2 + log2(length) / 2)
    assert logarithmic(4096) == 12


def test_the_table_of_the_documentation():
    found = [round(evaluations(4096, k) / 4096, 1) for k in (1, 2, 4, 8, 12, 16, 24, 48, 128)]
    assert found == [2048.5, 60.3, 13.2, 6.8, 5.4, 4.7, 4.2, 3.7, 3.0]


# ---- compiled programs ---------------------------------------------------------------------------------------


def counting(seen: list[int]) -> Callable[[Any], Any]:
    """Return a function of a carry that counts its calls, also of batches and of tangents, and changes nothing."""

    def note(x: Any) -> Any:
        seen.append(1)
        return np.ones(np.shape(x), np.float32)

    def observed(c: Any) -> Any:
        shape = tl.ShapeDtypeStruct(c.shape, np.float32)
        return c * tl.pure_callback(note, shape, lax.stop_gradient(c), vmap_method="broadcast_all")

    return observed


TRANSFORMS = {
    "value and gradient": tl.value_and_grad,
    "vmap": lambda f: lambda c: tl.vmap(tl.value_and_grad(f))(tnp.stack([c, 2 * c])),
    "of vmap": lambda f: tl.value_and_grad(lambda c: tl.vmap(f)(tnp.stack([c, 2 * c])).sum()),
    "jvp": lambda f: lambda c: tl.jvp(tl.value_and_grad(f), (c,), (c,)),
}


def evaluations(length: int, states: int) -> int:
    """Of steps in the forward and the backward pass: the last one for the result, too."""
    return length + 1 + fewest_repetitions(length, states)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("length", "checkpoint"), [(1, 3), (5, 5), (9, 2), (61, "log"), (64, 4)])
def test_compiled_programs_compute_as_few_steps_as_the_optimum(transform: str, length: int, checkpoint: Any):
    seen: list[int] = []
    step = counting(seen)
    f = lambda c: lax.scan(lambda c, x: (tnp.sin(step(c)) + x, c), c, tnp.ones(length), checkpoint=checkpoint)[0]  # noqa: E731
    tl.block_until_ready(tl.jit(TRANSFORMS[transform](f))(np.float32(0.5)))
    states = logarithmic(length) if checkpoint == "log" else checkpoint
    # a single step is a plain scan, which saves its residuals
    assert len(seen) == (evaluations(length, states) if length > 1 else 1)


def test_nested_loops():
    """Outside, each evaluation of a step runs the loop inside; each step backwards reverses it, without a result."""
    seen: list[int] = []
    step = counting(seen)

    def outer(c: Any, _: Any) -> Any:
        return lax.fori_loop(0, 6, lambda _, c: tnp.sin(step(c)), c, checkpoints=2), None

    f = tl.value_and_grad(lambda c: lax.scan(outer, c, None, 9, checkpoint=3)[0])
    tl.block_until_ready(tl.jit(f)(np.float32(0.5)))
    assert len(seen) == (fewest_repetitions(9, 3) + 1) * 6 + 9 * (evaluations(6, 2) - 1)


def test_counts_of_operations_are_those_of_the_schedule():
    """Of 64 steps; means of steps are rounded, and the first state of each loop is counted whole."""

    def work(checkpoint: Any) -> int:
        f = lambda c: lax.scan(lambda c, _: (tnp.sin(tnp.exp(c)), None), c, None, 64, checkpoint=checkpoint)[0]  # noqa: E731
        return tl.cost(tl.value_and_grad(f), 0.5).sparse.work

    ratios = [work(k) / evaluations(64, logarithmic(64) if k == "log" else k) for k in (1, 2, 4, "log")]
    assert max(ratios) <= 1.2 * min(ratios)
