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
from tests.interpreters.residuals.revolve import steps_to_next_state
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
    "reverse over reverse": lambda f: tl.grad(lambda *args: sum([(y**2).sum() for y in tl.grad(f, BOTH)(*args)]), BOTH),
    "forward over reverse": lambda f: tl.jacfwd(tl.grad(f, BOTH), BOTH),
    "reverse over forward": lambda f: tl.jacrev(tl.jacfwd(f, BOTH), BOTH),
    "stragglers": lambda f: lambda x, n, w: tl.vmap(tl.grad(f, BOTH), (None, 0, None))(x, tnp.stack([n, 0 * n, 7]), w),
    "linearize": lambda f: lambda x, n, w: tl.linearize(lambda x, w: f(x, n, w), x, w)[1](x, w),
}


@pytest.mark.parametrize(("order", "f"), [*[(order, looped) for order in ORDERS], ("grad", counted)])
def test_derivatives_are_those_of_a_masked_scan(order: str, f: Any):
    """All lengths in one program: none, one step, as many as slots, more."""
    wanted, found = tl.jit(ORDERS[order](masked)), tl.jit(ORDERS[order](f))
    for n in (0, 1, 3, 11):
        assert_same(found(X, n, W), wanted(X, n, W))


def test_without_jit():
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
        saved = {*self.levels}
        for end in range(trips)[::-1]:
            saved = {p for p in saved if p <= end}
            last = max(saved)
            while last < end:
                free = self.slots - len(saved)
                now = last + steps_to_next_state(end + 1 - last, free + 1) if free else end
                for k in range(last, now):
                    again[k] += 1
                saved.update([now] if free else [])
                self.most, last = max(self.most, len(saved)), now
        return again


def _repetitions(trips: int, slots: int) -> int:
    return trips - 1 if slots == 1 else next(r for r in range(trips) if trips <= comb(slots + r, r + 1))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 120), st.integers(1, 8))
def test_schedule_keeps_to_the_bound(trips, slots):
    """No state is computed again more than r times if there are at most binomial(slots + r, r + 1) steps."""
    schedule = _Schedule(slots)
    again = schedule.recomputed(trips)
    assert schedule.most <= slots
    assert max(again) <= _repetitions(trips, slots)
    assert trips > slots or sum(again) == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.sampled_from([1, 2, 3, 8]))
def test_gradients_for_random_steps_and_slots(trips, slots):
    """The derivative of x -> sin(2 x), `trips` times, by its chain rule in NumPy."""
    y, wanted = 0.3, 1.0
    for _ in range(trips):
        y, wanted = np.sin(2 * y), wanted * 2 * np.cos(2 * y)
    np.testing.assert_allclose(_GRADIENTS[slots](np.float64(0.3), trips), wanted, rtol=1e-10)  # 60 roundings


def _sines(slots: int, x: Any, trips: Any) -> Any:
    return lax.fori_loop(0, trips, lambda i, y: tnp.sin(2 * y), x, checkpoints=slots)


_GRADIENTS = {slots: tl.jit(tl.grad(partial(_sines, slots))) for slots in (1, 2, 3, 8)}


@pytest.mark.parametrize(("slots", "lengths"), [(1, [5]), (2, [9]), (3, [1, 3, 40])])
def test_compiled_program_computes_again_what_the_schedule_does(slots: int, lengths: list[int]):
    """Callbacks count steps: those of the schedule, and one for each residual backwards."""
    seen: list[int] = []

    def note(i: Any) -> Any:
        seen.append(int(i))
        return np.float32(1)

    def body(c: Any) -> Any:
        scale = tl.pure_callback(note, tl.ShapeDtypeStruct((), np.float32), c[0])
        return c[0] + 1, tnp.sin(c[1]) * scale

    f = tl.jit(tl.value_and_grad(lambda x, n: lax.while_loop(lambda c: c[0] < n, body, (0, x), checkpoints=slots)[1]))
    for trips in lengths:
        seen.clear()
        tl.block_until_ready(f(np.float32(0.5), trips))
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

    for slots in (4, None):
        assert temporaries(slots) <= ((slots or 32) + 2.2) * x.nbytes


@pytest.mark.parametrize(("limit", "slots"), [("1MB", 22), (1_000_000, 22), ("2MB", 32), (0.5, 15), ("130kB", 1)])
def test_a_budget_around_a_loop_chooses_its_states(limit: Any, slots: int):
    """What fits beside the state at hand and its cotangent, at most those that the loop asks for."""
    x = np.ones(10_000, np.float32)

    def f(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, tnp.sin(c[1])), (0, x))[1].sum()

    jaxpr = tl.make_jaxpr(tl.grad(f, memory_budget=limit))(x, 3)
    assert f"f32[{slots},10000]" in str(jaxpr)


def test_a_budget_in_the_place_of_a_number_of_states():
    x = np.ones(10_000, np.float32)

    def g(n: Any, checkpoints: Any) -> Any:
        f = lambda x: lax.fori_loop(0, n, lambda _, x: tnp.sin(x), x, checkpoints=checkpoints).sum()  # noqa: E731
        return tl.grad(f)(x)

    for limit, slots in (("2MB", 48), ("1MB", 23), (0.5, 15), ("100MB", 1024)):
        assert f"f32[{slots},10000]" in str(tl.make_jaxpr(lambda n, limit=limit: g(n, limit))(3)), limit
    np.testing.assert_allclose(tl.jit(g, static_argnums=1)(5, "200kB"), g(5, None), rtol=1e-6)
    with pytest.raises(ValueError, match=r"while_loop, checkpoints=9: 9 bytes are too few .* at least 80036"):
        tl.grad(lambda x: lax.while_loop(lambda x: x[0] < 3, tnp.exp, x, checkpoints="9B").sum())(x)


# ---- effects -------------------------------------------------------------------------------------------------


def test_effects_happen_once():
    """Not again backwards, in loops, branches and calls of a step either; where a checkpoint repeats a loop, too."""
    seen: list[str] = []

    def noted(x: Any, kind: str, ordered: bool = False) -> Any:
        tl.debug.callback(lambda _: seen.append(kind), x, ordered=ordered)
        return x

    def step(c: Any) -> Any:
        k, x = c
        tl.experimental.io_callback(lambda _: seen.append("io"), None, lax.stop_gradient(x))
        x = noted(lax.fori_loop(0, k // k + 1, lambda _, x: tnp.sin(noted(x, "loop")), x), "step", ordered=True)
        x = lax.cond(x > -5, lambda x: noted(x, "branch"), lambda x: 2 * x, x)
        return k + 1, tl.jit(lambda x: tnp.sin(noted(x, "call")))(x)

    def f(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] <= n, step, (1, x), checkpoints=2)[1]

    wanted = {"io": 5, "step": 5, "loop": 10, "branch": 5, "call": 5}
    for g in (f, tl.checkpoint(f)):
        seen.clear()
        tl.block_until_ready(tl.jit(tl.value_and_grad(g))(np.float32(0.5), 5))
        tl.effects_barrier()
        assert {kind: seen.count(kind) for kind in wanted} == wanted


def test_results_of_effects_are_not_kept_for_an_unknown_number_of_steps():
    def body(c: Any) -> Any:
        y = tl.experimental.io_callback(np.sin, tl.ShapeDtypeStruct((), np.float32), lax.stop_gradient(c[1]))
        return c[0] + 1, c[1] * c[1] * y

    with pytest.raises(
        NotImplementedError, match=r"needs the results of io_callback at .*, y = tl\.experimental.*again"
    ):
        tl.grad(lambda x: lax.while_loop(lambda c: c[0] < 3, body, (0, x))[1])(0.5)


def test_errors_of_checkpoints():
    def f(checkpoints: Any) -> Any:
        return lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0.0, checkpoints=checkpoints)

    wanted = (
        "checkpoints must be a number of states, or a budget, which is a text such as '2GB', a part from 0.0 to 1.0, "
    )
    wanted += "or tl.checkpoint_policies.budget(limit); not "
    with raises(ValueError, f"while_loop: {wanted}0, and a loop saves one state at least."):
        f(0)
    with raises(ValueError, f"while_loop: {wanted}2.5."):
        f(2.5)
    with raises(ValueError, f"while_loop: {wanted}'log'."):
        f("log")
    with raises(TypeError, f"while_loop: {wanted}True of type bool."):
        f(True)
    with raises(ValueError, f"fori_loop: {wanted}-1, and a loop saves one state at least."):
        lax.fori_loop(0, 3, lambda i, x: x, 0.0, checkpoints=-1)
    with raises(ValueError, "fori_loop: give checkpoint='log' or checkpoints=3, not both."):
        lax.fori_loop(0, 3, lambda i, x: x, 0.0, checkpoints=3, checkpoint="log")
