"""Reverse mode of loops of unknown length: values, higher orders, the schedule of saved states, and memory."""

from functools import partial
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

X, W = np.linspace(0.1, 0.9, 3), np.linspace(0.5, 1.4, 9).reshape(3, 3)
N = 12


def _step(i: Any, y: Any, w: Any) -> Any:
    return tnp.sin(w @ y) + 0.1 * y * (i + 1.0)


def looped(x: Any, n: Any, w: Any, checkpoints: int | None = 3) -> Any:
    def body(carry: Any) -> Any:
        i, on, (y, key) = carry
        return i + 1, ~on, (_step(i, y, w), key)

    begun = (0, True, (x, tl.random.key(0)))
    return lax.while_loop(lambda carry: carry[0] < n, body, begun, checkpoints=checkpoints)[2][0].sum()


def counted(x: Any, n: Any, w: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, y: _step(i, y, w), x, checkpoints=2).sum()


def masked(x: Any, n: Any, w: Any) -> Any:
    """The same loop as a scan of fixed length, which has reverse mode by stacked residuals."""
    return lax.scan(lambda y, i: (tnp.where(i < n, _step(i, y, w), y), None), x, tnp.arange(N))[0].sum()


def assert_same(found: Any, wanted: Any) -> None:
    for a, b in zip(tl.tree.leaves(found), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)  # float64, sums of 12 steps in another order


BOTH = (0, 2)
ORDERS = {
    "grad": lambda f: tl.grad(f, BOTH),
    "reverse over reverse": lambda f: tl.jacrev(tl.grad(f, BOTH), BOTH),
    "forward over reverse": lambda f: tl.jacfwd(tl.grad(f, BOTH), BOTH),
    "reverse over forward": lambda f: tl.jacrev(tl.jacfwd(f, BOTH), BOTH),
    "stragglers": lambda f: lambda x, n, w: tl.vmap(tl.grad(f, BOTH), (None, 0, None))(x, tnp.stack([n, 0 * n, 7]), w),
    "linearize": lambda f: lambda x, n, w: tl.linearize(lambda x, w: f(x, n, w), x, w)[1](x, w),
}


@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_are_those_of_a_masked_scan(order):
    """All lengths in one program: none, one step, as many as slots, more."""
    wanted = tl.jit(ORDERS[order](masked))
    for f in (looped, counted):
        found = tl.jit(ORDERS[order](f))
        for n in (0, 1, 3, 11):
            assert_same(found(X, n, W), wanted(X, n, W))
    assert_same(tl.grad(looped, BOTH)(X, 5, W), tl.grad(masked, BOTH)(X, 5, W))


def test_gradients_of_captured_arrays_and_of_linear_loops():
    found = tl.grad(lambda w: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, w * c[1]), (0, X))[1].sum())(2.0)
    np.testing.assert_allclose(found, 80 * X.sum(), rtol=1e-6)  # float32
    (pulled,) = tl.linear_transpose(
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, 2 * c[1]), (0, x))[1], X
    )(X)
    np.testing.assert_allclose(pulled, 32 * X)


# ---- the schedule --------------------------------------------------------------------------------------------


class _Schedule:
    """The schedule in Python: `again[k]` counts how often the step k was computed again to reach a later one."""

    def __init__(self, slots: int) -> None:
        self.levels: dict[int, float] = {}  # of positions
        self.slots, self.most = slots, 0

    def save(self, position: int, last: int) -> int:
        """Save the state at `position` after that at `last`; return the last one saved."""
        free = [p for p, level in self.levels.items() if level < 0]
        if self.slots == 1:
            self.levels.setdefault(0, float("inf"))
            return 0
        level: float = 0
        if len(self.levels) == self.slots and free:
            del self.levels[min(free)]
        elif len(self.levels) == self.slots:
            level = self.levels.pop(last) + 1
            self.levels = {p: -1 if v < level else v for p, v in self.levels.items()}
        self.levels[position] = level if position else float("inf")
        self.most = max(self.most, len(self.levels))
        return position

    def recomputed(self, trips: int) -> list[int]:
        last, again = 0, [0] * trips
        for k in range(trips):
            last = self.save(k, last)
        for end in range(trips)[::-1]:
            self.levels = {p: v for p, v in self.levels.items() if p <= end}
            last = max(self.levels)
            for k in range(last, end):
                again[k] += 1
                last = self.save(k + 1, last)
        return again


def _repetitions(trips: int, slots: int) -> int:
    return trips - 1 if slots == 1 else next(r for r in range(trips) if trips <= comb(slots + r, r + 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 12))
def test_schedule_keeps_to_the_bound(trips, slots):
    """No state is computed again more than r times if there are at most binomial(slots + r, r + 1) steps."""
    schedule = _Schedule(slots)
    again = schedule.recomputed(trips)
    assert schedule.most <= slots
    assert max(again) <= _repetitions(trips, slots)
    assert trips > slots or sum(again) == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.integers(1, 8))
def test_gradients_for_random_steps_and_slots(trips, slots):
    """The derivative of x -> sin(2 x), `trips` times, by its chain rule in NumPy."""
    y, wanted = 0.3, 1.0
    for _ in range(trips):
        y, wanted = np.sin(2 * y), wanted * 2 * np.cos(2 * y)
    np.testing.assert_allclose(_GRADIENTS[slots](np.float64(0.3), trips), wanted, rtol=1e-10)  # 60 roundings


def _sines(slots: int, x: Any, trips: Any) -> Any:
    return lax.fori_loop(0, trips, lambda i, y: tnp.sin(2 * y), x, checkpoints=slots)


_GRADIENTS = {slots: tl.jit(tl.grad(partial(_sines, slots))) for slots in range(1, 9)}


def test_compiled_program_computes_again_what_the_schedule_does():
    """Callbacks count steps: those of the schedule, and one for each residual backwards."""
    for slots, trips in ((1, 5), (2, 9), (3, 3), (3, 40), (8, 61)):
        seen: list[int] = []

        def note(i: Any, seen: list[int] = seen) -> Any:
            seen.append(int(i))
            return np.float32(1)

        def body(c: Any, note: Any = note) -> Any:
            scale = tl.pure_callback(note, tl.ShapeDtypeStruct((), np.float32), c[0])
            return c[0] + 1, tnp.sin(c[1]) * scale

        def f(x: Any, n: Any, body: Any = body, slots: int = slots) -> Any:
            return lax.while_loop(lambda c: c[0] < n, body, (0, x), checkpoints=slots)[1]

        tl.block_until_ready(tl.jit(tl.value_and_grad(f))(np.float32(0.5), trips))
        again = np.bincount(seen, minlength=trips)
        np.testing.assert_array_equal(again, [2 + k for k in _Schedule(slots).recomputed(trips)])


def test_memory_is_that_of_the_slots():
    """Compiled temporaries: the slots, and few states more; one program serves all numbers of steps."""
    x = np.ones(10_000, np.float32)

    def temporaries(slots: int | None) -> int:
        def f(x: Any, n: Any) -> Any:
            return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, tnp.sin(c[1])), (0, x), checkpoints=slots)[
                1
            ].sum()

        return tl.jit(tl.grad(f)).lower(x, 100).compile().memory_analysis().temp_size_in_bytes

    for slots in (4, 16, None):
        assert temporaries(slots) <= ((slots or 32) + 6) * x.nbytes


def test_errors_of_checkpoints():
    def f(checkpoints: Any) -> Any:
        return lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0.0, checkpoints=checkpoints)

    with raises(ValueError, "while_loop: checkpoints must be at least 1, for the first state is saved, not 0."):
        f(0)
    with raises(TypeError, "while_loop: checkpoints must be None or a number of states, not 2.5 of type float."):
        f(2.5)
    with raises(ValueError, "fori_loop: checkpoints must be at least 1, for the first state is saved, not -1."):
        lax.fori_loop(0, 3, lambda i, x: x, 0.0, checkpoints=-1)
    with raises(ValueError, "fori_loop: unroll=2 is of a scan, but with checkpoints=3 it is a while_loop."):
        lax.fori_loop(0, 3, lambda i, x: x, 0.0, checkpoints=3, unroll=2)
