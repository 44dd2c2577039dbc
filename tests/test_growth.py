"""Gradients of loops grow as the loops do: n steps over arrays of n elements cost of the order of n, not n².

Judged by what is compiled, which does not vary from run to run: the size of the program, its memory, and that no loop
makes an array of n elements at every step, be it by a copy that XLA inserts or by arithmetic on all of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.xla_workarounds import in_place_loops
from tests.growing import SIZES, arrays_made_in_loops, compiled, linear
from tests.jaxlib_release import RELEASE

pytestmark = pytest.mark.usefixtures("optimized")
LOOPS: dict[str, Callable[[Any], Any]] = {}
FORWARDS = set[str]()


def loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loop of len(x) steps whose gradient is tested."""
    LOOPS[f.__name__] = f
    return f


def loop_forwards(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One that is tested without differentiation as well."""
    FORWARDS.add(f.__name__)
    return loop(f)


def over(x: Any, body: Callable[[Any, Any], Any], init: Any, start: int = 0) -> Any:
    return lax.fori_loop(start, x.shape[0], body, init)


def zeros(x: Any) -> Any:
    return tnp.zeros(x.shape, x.dtype)


ZERO = np.float32(0)

# ---- reads ---------------------------------------------------------------------------------------------------


@loop
def reads(x):
    return over(x, lambda i, s: tnp.sin(0.5 * s + x[i]), ZERO)


@loop
def reads_in_a_scan(x):
    return lax.scan(lambda s, i: (tnp.sin(0.5 * s + x[i]), s), ZERO, np.arange(x.shape[0], dtype=np.int32))[0]


@loop
def reads_rows(x):
    rows = tnp.stack([x, 2 * x, x * x], axis=1)
    return tnp.sum(over(x, lambda i, s: tnp.sin(0.5 * s + rows[i]), np.zeros(3, np.float32)))


@loop
def reads_reversed(x):
    return over(x, lambda i, s: tnp.sin(0.5 * s + x[::-1][i]), ZERO)


@loop
def reads_reshaped(x):
    return over(x, lambda i, s: tnp.sin(0.5 * s + x.reshape(-1, 2)[i // 2, i % 2]), ZERO)


@loop
def reads_columns(x):
    rows = tnp.stack([x, 2 * x, x * x], axis=0)
    return tnp.sum(over(x, lambda i, s: tnp.sin(0.5 * s + rows.T[i]), np.zeros(3, np.float32)))


@loop
def reads_scaled_in_inner_loops(x):
    def body(i, s):
        return lax.fori_loop(0, 2, lambda j, s: tnp.sin(0.5 * s + (2 * x)[::-1][i]), s)

    return over(x, body, ZERO)


@loop
def reads_windows(x):
    return tnp.sum(over(x, lambda i, s: s * lax.dynamic_slice(x, (i,), (3,)), np.ones(3, np.float32)))


@loop
def reads_in_a_branch(x):
    def body(i, s):
        return lax.cond(s > 0.5, lambda s: 0.4 * s, lambda s: tnp.sin(s + x[i]), s)

    return over(x, body, ZERO)


@loop
def reads_in_three_branches(x):
    branches = (lambda i, s: s * x[i], lambda i, s: s + x[i - 1], lambda i, s: tnp.sin(s))
    return over(x, lambda i, s: lax.switch(i % 3, branches, i, s), np.float32(1))


@tl.jit
def element(x, i):
    return x[i]


@loop
def reads_through_a_call(x):
    return over(x, lambda i, s: tnp.sin(0.5 * s + element(x, i)), ZERO)


@loop
def reads_through_a_checkpoint(x):
    return over(x, tl.checkpoint(lambda i, s: tnp.sin(0.5 * s + x[i])), ZERO)


@loop
def reads_by_a_table(x):
    table = tnp.asarray(np.arange(x.shape[0], dtype=np.int32)[::-1].copy())
    return over(x, lambda i, s: tnp.sin(0.5 * s + x[table[i]]), ZERO)


@loop
def reads_in_inner_loops(x):
    def body(i, s):
        return lax.fori_loop(0, 3, lambda j, s: tnp.sin(0.5 * s + x[(i + j) % x.shape[0]]), s)

    return over(x, body, ZERO)


@loop
def reads_other_places_for_each_example(x):
    def example(start):
        return over(x, lambda i, s: tnp.sin(0.5 * s + x[(i + start) % x.shape[0]]), ZERO)

    return tnp.sum(tl.vmap(example)(np.arange(4, dtype=np.int32)))


# ---- writes --------------------------------------------------------------------------------------------------


def written(x: Any, write: Callable[[Any, Any, Any], Any], buffer: Any) -> Any:
    """A running value that every step writes: write(buffer, i, value)."""

    def body(i, carry):
        s, buffer = carry
        s = tnp.sin(0.5 * s + x[i])
        return s, write(buffer, i, s)

    return tnp.sum(over(x, body, (ZERO, buffer))[1])


@loop
def sets(x):
    return written(x, lambda buffer, i, s: buffer.at[i].set(s), zeros(x))


@loop
def updates_slices(x):
    return written(x, lambda buffer, i, s: lax.dynamic_update_slice(buffer, tnp.stack([s, -s]), (i,)), zeros(x))


@loop
def adds(x):
    return written(x, lambda buffer, i, s: buffer.at[i].add(s), x)


@loop
def multiplies(x):
    return tnp.sum(over(x, lambda i, buffer: buffer.at[i].multiply(x[i]), 2 * x))


@loop
def keeps_the_greatest(x):
    return tnp.sum(over(x, lambda i, buffer: buffer.at[i].max(x[i] * x[i - 1]), 0.3 * x))


@loop
def keeps_the_least_of_a_recurrence(x):
    return tnp.sum(over(x, lambda i, b: b.at[i].min(tnp.sin(b[i - 1]) + x[i]), 2 * x, 1))


@loop
def multiplies_what_was_written(x):
    return tnp.sum(over(x, lambda i, b: b.at[i].multiply(tnp.sin(b[i - 1])), 2 * x, 1))


@loop_forwards
def writes_or_not(x):
    def body(i, carry):
        s, buffer = carry
        s = tnp.sin(0.5 * s + x[i])
        return s, tnp.where(s < 0.7, buffer.at[i].set(s), buffer)

    return tnp.sum(over(x, body, (ZERO, zeros(x)))[1])


@loop_forwards
def recurrence_or_not(x):
    def body(i, b):
        return tnp.where(x[i] < 0.7, b.at[i].set(tnp.sin(b[i - 1]) + x[i]), b)

    return tnp.sum(over(x, body, zeros(x), 1))


@loop_forwards
def adds_in_a_scan_or_not(x):
    def body(b, step):
        i, element = step
        return tnp.where(element < 0.7, b, b.at[i].add(0.5 * b[i - 1])), element

    return tnp.sum(lax.scan(body, 2 * x, (np.arange(x.shape[0], dtype=np.int32), x))[0])


@loop
def writes_rows(x):
    def body(i, buffer):
        return buffer.at[i].set(0.5 * tnp.sin(buffer[i - 1]) + x[i])

    return tnp.sum(over(x, body, tnp.zeros((x.shape[0], 3), x.dtype), 1))


@loop
def writes_in_a_branch(x):
    def body(i, carry):
        s, buffer = carry
        s = tnp.sin(0.5 * s + x[i])
        return s, lax.cond(i % 3 == 0, lambda b: b.at[i].set(s), lambda b: b, buffer)

    return tnp.sum(over(x, body, (ZERO, zeros(x)))[1])


@loop
def writes_for_each_example(x):
    def example(start):
        def body(i, carry):
            s, buffer = carry
            s, place = tnp.sin(0.5 * s + x[i]), (i + start) % x.shape[0]
            return s, buffer.at[place].set(s)

        return tnp.sum(over(x, body, (ZERO, zeros(x)))[1])

    return tnp.sum(tl.vmap(example)(np.arange(4, dtype=np.int32)))


# ---- reads and writes ----------------------------------------------------------------------------------------


@loop_forwards
def reads_and_overwrites(x):
    def body(i, carry):
        s, buffer = carry
        value = buffer[i]
        return 0.5 * s + value * tnp.sin(value), buffer.at[i].set(s)

    s, buffer = over(x, body, (ZERO, 2 * x))
    return s + tnp.sum(buffer)


@loop_forwards
def recurrence(x):
    return tnp.sum(over(x, lambda i, b: b.at[i].set(tnp.sin(b[i - 1]) + x[i]), zeros(x), 1))


@loop_forwards
def recurrence_of_two_terms(x):
    def body(i, b):
        return b.at[i].set(0.5 * tnp.sin(b[i - 1]) + 0.3 * b[i - 2] + x[i])

    return tnp.sum(over(x, body, zeros(x), 2))


@loop
def recurrence_in_a_scan(x):
    def body(buffer, step):
        i, element = step
        return buffer.at[i].set(tnp.sin(buffer[i - 1]) + element), buffer[i]

    buffer, before = lax.scan(body, 2 * x, (np.arange(x.shape[0], dtype=np.int32), x))
    return tnp.sum(buffer * before)


@loop
def recurrence_in_a_branch(x):
    def body(i, b):
        written = lambda b: b.at[i].set(tnp.sin(b[i - 1]) + x[i])  # noqa: E731  # as users write them
        return lax.cond(x[i] > 0.5, written, lambda b: b.at[i].set(0.5 * x[i]), b)

    return tnp.sum(over(x, body, zeros(x), 1))


@loop
def recurrence_through_a_call(x):
    step = tl.jit(lambda b, i: b.at[i].set(tnp.sin(b[i - 1]) + x[i]))
    return tnp.sum(over(x, lambda i, b: step(b, i), zeros(x), 1))


@loop
def recurrence_of_two_buffers(x):
    def body(i, buffers):
        a, b = buffers
        return a.at[i].set(tnp.sin(b[i - 1]) + x[i]), b.at[i].set(0.5 * a[i - 1])

    a, b = over(x, body, (x, 2 * x), 1)
    return tnp.sum(a * b)


@loop
def recurrence_for_each_example(x):
    def example(scale):
        return tnp.sum(over(x, lambda i, b: b.at[i].set(scale * tnp.sin(b[i - 1]) + x[i]), zeros(x), 1))

    return tnp.sum(tl.vmap(example)(np.linspace(0.1, 0.9, 4, dtype=np.float32)))


@loop
def recurrence_in_inner_loops(x):
    def body(i, b):
        def inner(j, b):
            place = (i + j) % x.shape[0]
            return b.at[place].set(0.5 * tnp.sin(b[i]) + x[place])

        return lax.fori_loop(0, 3, inner, b)

    return tnp.sum(over(x, body, 2 * x))


@loop_forwards
def swaps(x):
    def body(i, b):
        j = (7 * i) % x.shape[0]
        return b.at[i].set(b[j]).at[j].set(0.9 * b[i])

    return tnp.sum(x * over(x, body, 2 * x))


@tl.jit
def with_element(x, i, value):
    return x.at[i].set(value)


@loop_forwards
def swaps_through_calls(x):
    def body(i, b):
        j = (7 * i) % x.shape[0]
        here, there = element(b, i), element(b, j)
        return with_element(with_element(b, i, there), j, 0.9 * here)

    return tnp.sum(x * over(x, body, 2 * x))


@loop_forwards
def swaps_in_a_branch(x):
    def body(i, b):
        j = (7 * i) % x.shape[0]
        here, there = b[i], b[j]
        return lax.cond(here > 0.3, lambda b: b.at[i].set(there).at[j].set(0.9 * here), lambda b: b, b)

    return tnp.sum(x * over(x, body, 2 * x))


CASES = [(name, "gradient") for name in LOOPS] + [(name, "forwards") for name in LOOPS if name in FORWARDS]


@pytest.mark.parametrize("name, mode", CASES, ids=["-".join(case) for case in CASES])
def test_a_loop_of_n_steps_costs_of_the_order_of_n(name, mode):
    linear(LOOPS[name] if mode == "forwards" else tl.grad(LOOPS[name]))


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_a_step_that_accumulates_few_narrow_numbers_converts_no_array(name):
    """Several updates may meet at an element, and are summed in float32 before they are added."""

    def f(x):
        def body(i, buffer):
            return getattr(buffer.at[(7 * i + tnp.arange(6) // 2) % len(x)], name)(tnp.float16(0.5))

        return over(x, body, x.astype(tnp.float16))

    linear(f)


MEASURES = {  # each put out of action, and a loop that then copies
    "settling": ("find_unsettled", lambda jaxpr, overwritten: {}, "swaps"),
    "settling in a call": ("find_unsettled", lambda jaxpr, overwritten: {}, "swaps_through_calls"),
    "waiting": ("order", lambda jaxpr, overwritten: in_place_loops.Order(jaxpr.eqns, {}), "sets"),
    "branches in place": ("homes", lambda branches: [], "writes_in_a_branch"),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_copies_are_found_where_nothing_prevents_them(measure, monkeypatch):
    name, nothing, of = MEASURES[measure]
    if name == "homes" and RELEASE >= (0, 12):
        pytest.skip("XLA copies nothing there by itself")
    monkeypatch.setattr(in_place_loops, name, nothing)
    f = tl.grad(lambda x: LOOPS[of](x))
    made = arrays_made_in_loops(compiled(f, SIZES[0]).text, SIZES[0])
    assert any(each.startswith("copy") for each in made)


def test_arithmetic_on_whole_arrays_is_found():
    def body(i, b):
        return b + lax.dynamic_slice(b, (i,), (1,))

    f = lambda x: over(x, body, x)  # noqa: E731
    assert any(each.startswith("fusion") for each in arrays_made_in_loops(compiled(f, SIZES[0]).text, SIZES[0]))


@pytest.mark.parametrize("name", ["reads_in_a_branch", "recurrence_of_two_terms", "swaps_through_calls", "adds"])
def test_gradients_of_long_loops_are_those_of_differences(name):
    x, t = np.linspace(0.1, 0.9, 9), np.cos(np.arange(9.0))
    f = LOOPS[name]
    with tl.enable_x64():
        expected = (f(tnp.asarray(x + 1e-6 * t)) - f(tnp.asarray(x - 1e-6 * t))) / 2e-6
        np.testing.assert_allclose(np.sum(np.asarray(tl.grad(f)(x)) * t), expected, rtol=1e-6)
