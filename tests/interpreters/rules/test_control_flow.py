"""Derivatives and vmap of branches and loops: those of the program written out, and no more is saved than must be.

What is computed is computed step by step (see `tests/stepping.py`), and compiled once for each form.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs
from tests.close import many_roundings as close
from tests.stepping import in_steps, stepped

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)


def f64(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape)


class Form(NamedTuple):
    """A use of control flow, and the same written out; some of the arguments have no derivative."""

    staged: Callable[..., Any]
    written_out: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: tuple[int, ...]
    reverse: bool


FORMS: dict[str, Form] = {}


def form(written_out: Callable[..., Any], *args: Any, reverse: bool = True) -> Callable[[Any], Any]:
    def add(staged: Callable[..., Any]) -> Callable[..., Any]:
        argnums = tuple(k for k, x in enumerate(args) if np.asarray(x).dtype == np.float64)
        FORMS[staged.__name__] = Form(staged, written_out, args, argnums, reverse)
        return staged

    return add


def every_form(test: Any) -> Any:
    return pytest.mark.parametrize("name", FORMS)(test)


def every_form_with_a_way_back(test: Any) -> Any:
    return pytest.mark.parametrize("name", [name for name, found in FORMS.items() if found.reverse])(test)


# ---- branches ------------------------------------------------------------------------------------------------


def _one(w, x):
    return tnp.sin(w * x) * x


def _two(w, x):
    return x + 0 * w


@form(lambda p, w, x: tnp.where(p, _one(w, x), _two(w, x)), np.True_, f64(3), f64(3))
def cond(p, w, x):
    return lax.cond(p, _one, _two, w, x)


@form(lambda p, w, x: tnp.where(p, w * w, 1.0), np.False_, f64(2), f64(3))
def cond_with_operands_unused(p, w, x):
    return lax.cond(p, lambda w, x: w * w, lambda w, x: np.ones(2), w, x)


@form(lambda p, w, x: tnp.where(p, x, w) * w, np.True_, f64(2), f64(2))
def cond_of_operands(p, w, x):
    return lax.cond(p, lambda: x, lambda: w) * w


@form(lambda i, w, x: tnp.where(i < 1, _one(w, x), tnp.where(i < 2, w, tnp.cos(x))), np.int32(1), f64(2), f64(2))
def switch(i, w, x):
    return lax.switch(i, [_one, lambda w, x: w, lambda w, x: tnp.cos(x)], w, x)


@form(lambda w, x: tnp.where(w > 0.1, w * x, tnp.where(x > 0, tnp.sin(x), w)), np.float64(-0.2), np.float64(0.4))
def cond_in_cond(w, x):
    return lax.cond(w > 0.1, lambda: w * x, lambda: lax.cond(x > 0, tnp.sin, lambda _: w, x))


# ---- scans ---------------------------------------------------------------------------------------------------


def loop(body: Callable[..., Any], carry: Any, *xs: Any, length: int = 0, reverse: bool = False) -> Any:
    """`lax.scan` in Python; y are stacked."""
    n = len(xs[0]) if xs else length
    rows: list[Any] = [None] * n
    for k in range(n)[:: -1 if reverse else 1]:
        carry, rows[k] = body(carry, *[x[k] for x in xs])
    return carry, tnp.stack(rows)


def _cell(w, h, x):
    h = tnp.sin(w) * h + x * h
    return h, h * x


def _cells(w, h, xs, **how):
    h, ys = loop(partial(_cell, w), h, xs, **how)
    return h + tnp.sum(ys, 0)


@form(_cells, f64(3), f64(3), f64(4, 3))
def scan(w, h, xs):
    h, ys = lax.scan(partial(_cell, w), h, xs)
    return h + tnp.sum(ys, 0)


@form(partial(_cells, reverse=True), f64(3), f64(3), f64(4, 3))
def scan_reversed(w, h, xs):
    h, ys = lax.scan(partial(_cell, w), h, xs, reverse=True)
    return h + tnp.sum(ys, 0)


@form(_cells, f64(3), f64(3), f64(5, 3))
def scan_unrolled_in_part(w, h, xs):
    h, ys = lax.scan(partial(_cell, w), h, xs, unroll=2)
    return h + tnp.sum(ys, 0)


@form(partial(_cells, reverse=True), f64(3), f64(3), f64(3, 3))
def scan_unrolled(w, h, xs):
    h, ys = lax.scan(partial(_cell, w), h, xs, reverse=True, unroll=True)
    return h + tnp.sum(ys, 0)


@form(_cells, f64(3), f64(3), f64(1, 3))
def scan_of_one(w, h, xs):
    h, ys = lax.scan(partial(_cell, w), h, xs)
    return h + tnp.sum(ys, 0)


@form(lambda w, h: w * 0 + h * h, f64(3), f64(3))
def scan_of_none(w, h):
    h, ys = lax.scan(partial(_cell, w), h * h, np.zeros((0, 3)))
    return h + tnp.sum(ys, 0)


def _shifted(w):
    """w reaches the last place after three steps: what depends on it grows with the steps."""
    return tnp.stack([w, w * w, w * w * tnp.sin(w), w * w * tnp.sin(w) * 0 + tnp.sin(w * w) * w])


@form(lambda w: _shifted(w), np.float64(0.7))
def carry_that_comes_to_depend(w):
    def body(carry, _):
        a, b, *_ = carry
        return (w, a * w, b * tnp.sin(w), tnp.sin(b) * w), None

    one = np.float64(1)
    carry, _ = lax.scan(body, (one, one, one, one), None, length=5)
    return tnp.stack(carry)


def _mixed_body(w, carry, x, k, on):
    i, flag, h = carry
    h = tnp.where(flag, h * x, tnp.sin(h) * w) + k * x
    return (i + k, flag ^ on, h), h * i


def _mixed_written_out(w, xs, ks, on):
    (_, _, h), ys = loop(lambda c, *e: _mixed_body(w, c, *e), (np.int32(0), np.False_, w), xs, ks, on)
    return h + tnp.sum(ys, 0)


@form(_mixed_written_out, f64(2), f64(3, 2), np.array([1, 2, 0], np.int32), np.array([True, False, True]))
def scan_of_integers_and_flags(w, xs, ks, on):
    def body(carry, e):
        return _mixed_body(w, carry, *e)

    (_, _, h), ys = lax.scan(body, (np.int32(0), np.False_, w), (xs, ks, on))
    return h + tnp.sum(ys, 0)


@form(lambda w, x: tnp.stack([x[0], x[0] * w, x[0] * w, x[2] * w * w]), np.float64(0.3), f64(3))
def results_that_are_operands(w, x):
    def body(carry, e):
        kept, h = carry
        return (kept, kept), (e, e * h * kept, kept)

    _, (es, ys, ks) = lax.scan(body, (w, np.float64(1)), x)
    return tnp.stack([es[0], ys[0], es[0] * ks[2], ys[2]])


@form(lambda w, x: 3 * x + 0 * w, f64(2), f64(2))
def constants_without_a_tangent(w, x):
    def body(h, _):
        return h + tl.stop_gradient(w) - w + x, None

    return lax.scan(body, tl.stop_gradient(w) - w, None, length=3)[0] * 1.0 + 4 * (w - tl.stop_gradient(w))


def _nested_cell(w, h, x):
    return tnp.sin(h) * w + x, h


@form(
    lambda p, w, xs: tnp.where(p, loop(lambda h, r: (loop(partial(_nested_cell, w), h, r)[0], h), w, xs)[0], w),
    np.True_,
    np.float64(0.4),
    f64(2, 3),
)
def scan_in_scan_in_cond(p, w, xs):
    def outer(h, row):
        return lax.scan(partial(_nested_cell, w), h, row)[0], None

    return lax.cond(p, lambda: lax.scan(outer, w, xs)[0], lambda: w)


@form(
    lambda p, w, xs: tnp.where(p, loop(lambda h, x: (tnp.where(x > 0, h * x, w * h), h), w, xs)[0], w),
    np.True_,
    np.float64(0.4),
    np.array([0.3, -0.2, 0.5]),
)
def cond_in_scan_in_cond(p, w, xs):
    def body(h, x):
        return lax.cond(x > 0, lambda: h * x, lambda: w * h), h

    return lax.cond(p, lambda: lax.scan(body, w, xs)[0], lambda: w)


@form(lambda w, xs: tnp.stack([8 * x * w for x in xs]), np.float64(0.4), f64(2), reverse=False)
def while_in_scan(w, xs):
    def body(c, x):
        return c, lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, 2 * s[1]), (0, x * w))[1]

    return lax.scan(body, 0, xs)[1]


# ---- other loops ---------------------------------------------------------------------------------------------


@form(lambda w, x: tnp.sin(tnp.sin(tnp.sin(x) * w + 2) * w + 3) * w + 4, f64(2), f64(2))
def fori_loop(w, x):
    return lax.fori_loop(2, 5, lambda i, h: tnp.sin(h) * w + i, x)


@form(lambda n, w, x: tnp.sin(tnp.sin(x) * w) * w, np.int32(2), f64(2), f64(2), reverse=False)
def fori_loop_of_a_traced_number(n, w, x):
    return lax.fori_loop(0, n, lambda i, h: tnp.sin(h) * w, x)


@form(lambda w, x: x * w * w * w, np.float64(1.7), np.float64(0.5), reverse=False)
def while_loop(w, x):
    return lax.while_loop(lambda h: h < 2, lambda h: h * w, x)


@form(lambda w, xs: tnp.stack([tnp.sin(x * w) * x for x in xs]), np.float64(0.7), f64(3))
def map_of_elements(w, xs):
    return lax.map(lambda x: tnp.sin(x * w) * x, xs)


@form(lambda w, xs: tnp.stack([tnp.sin(x * w) for x in xs]), np.float64(0.7), f64(5))
def map_in_batches(w, xs):
    return lax.map(lambda x: tnp.sin(x * w), xs, batch_size=2)


def _linear_recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


@form(lambda a, b: tnp.stack(loop(lambda h, e: (e[0] * h + e[1], e[0] * h + e[1]), 0.0, tnp.stack([a, b], 1))[1:])[0],
      f64(5), f64(5))  # fmt: skip
def associative_scan(a, b):
    return lax.associative_scan(_linear_recurrence, (a, b))[1]


@form(lambda x: tnp.stack([tnp.sum(x[: k + 1], 0) * tnp.prod(x[k:], 0) for k in range(4)]), f64(4, 2))
def cumulative(x):
    return lax.cumsum(x) * lax.cumprod(x, reverse=True)


# ---- derivatives ---------------------------------------------------------------------------------------------


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tnp.sum(tnp.cos(f(*args)))


def tangents_of(found: Form) -> list[Any]:
    return [np.cos(np.arange(x.size, dtype=np.float64)).reshape(x.shape) for x in moved(found)]


def moved(found: Form) -> list[Any]:
    return [np.asarray(found.args[k]) for k in found.argnums]


def of_moved(found: Form, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of the arguments that have a derivative."""

    def g(*xs: Any) -> Any:
        args = list(found.args)
        for k, x in zip(found.argnums, xs, strict=True):
            args[k] = x
        return f(*args)

    return g


def same(actual: Any, expected: Any) -> None:
    for x, y in zip(tl.tree.leaves(actual), tl.tree.leaves(expected), strict=True):
        close(np.asarray(x), np.asarray(y))


@every_form
def test_values(name):
    found = FORMS[name]
    expected = stepped(found.written_out, *found.args)
    same(found.staged(*found.args), expected)
    same(stepped(found.staged, *found.args), expected)


@every_form
def test_forward_mode(name):
    found = FORMS[name]
    staged, written_out = (of_moved(found, f) for f in (found.staged, found.written_out))
    x, t = tuple(moved(found)), tuple(tangents_of(found))
    expected = stepped(lambda x, t: tl.jvp(written_out, x, t), x, t)
    same(stepped(lambda x, t: tl.jvp(staged, x, t), x, t), expected)
    same(stepped(lambda x, t: tl.linearize(staged, *x)[1](*t), x, t), expected[1])
    same(stepped(lambda x, t: tl.jvp(lambda *x: tl.jvp(staged, x, t)[1], x, t), x, t),
         stepped(lambda x, t: tl.jvp(lambda *x: tl.jvp(written_out, x, t)[1], x, t), x, t))  # fmt: skip


@every_form_with_a_way_back
def test_reverse_mode(name):
    found = FORMS[name]
    argnums = found.argnums
    staged, written_out = (tl.value_and_grad(total(f), argnums) for f in (found.staged, found.written_out))
    expected = stepped(written_out, *found.args)
    same(stepped(staged, *found.args), expected)
    same(tl.jit(staged)(*found.args), expected)


@every_form_with_a_way_back
def test_a_linear_jaxpr_pulls_back_what_it_pushes(name):
    found = FORMS[name]
    f, x, t = of_moved(found, found.staged), tuple(moved(found)), tuple(tangents_of(found))

    def both(x: Any, t: Any) -> Any:
        y, push = tl.linearize(f, *x)
        pulled = tl.linear_transpose(push, *t)(tnp.sin(y))
        return tnp.sum(push(*t) * tnp.sin(y)), sum(tnp.sum(a * b) for a, b in zip(pulled, t))

    close(*map(np.asarray, stepped(both, x, t)))


@every_form_with_a_way_back
def test_second_derivatives_in_both_nestings(name):
    found = FORMS[name]
    staged, written_out = (of_moved(found, total(f)) for f in (found.staged, found.written_out))
    x, t, argnums = tuple(moved(found)), tuple(tangents_of(found)), tuple(range(len(found.argnums)))

    def forward_over_reverse(f: Any) -> Any:
        return lambda x, t: tl.jvp(lambda *x: tl.grad(f, argnums)(*x), x, t)[1]

    def reverse_over_forward(f: Any) -> Any:
        return lambda x, t: tl.grad(lambda *x: tl.jvp(f, x, t)[1], argnums)(*x)

    expected = stepped(forward_over_reverse(written_out), x, t)
    same(stepped(forward_over_reverse(staged), x, t), expected)
    same(stepped(reverse_over_forward(staged), x, t), expected)


@pytest.mark.parametrize("name", ["scan", "cond_in_scan_in_cond"])
def test_hessians(name):
    found = FORMS[name]
    staged, written_out = (total(of_moved(found, f)) for f in (found.staged, found.written_out))
    x = moved(found)
    same(tl.jit(tl.hessian(staged))(*x), stepped(tl.hessian(written_out), *x))
    same(stepped(tl.jacrev(tl.jacfwd(staged)), *x), stepped(tl.hessian(written_out), *x))


# ---- vmap ----------------------------------------------------------------------------------------------------


def examples(x: Any, axis: int | None) -> Any:
    """Three examples like x, along an axis."""
    x = np.asarray(x)
    if axis is None:
        return x
    if x.dtype == np.bool_:
        return np.stack([x, ~x, x], axis)
    if x.dtype != np.float64:
        return np.stack([x, x * 0, x + 1], axis)
    return np.stack([x, x[..., ::-1] if x.ndim else 1.1 * x, 0.8 * x + 0.4], axis)


def one(x: Any, axis: int | None, k: int) -> Any:
    return x if axis is None else np.take(x, k, axis)


@every_form
@pytest.mark.parametrize("strategy", ["select", "loop"])
def test_vmap_over_any_arguments(name, strategy):
    found = FORMS[name]
    n, alone = len(found.args), in_steps(found.staged, *found.args)
    for axes in [*product((None, 0), repeat=n), (-1,) * n, (-1, 0, None, -1)[:n]][1:]:
        batch = [examples(x, axis) for x, axis in zip(found.args, axes)]
        mapped = stepped(tl.vmap(found.staged, in_axes=axes, control_flow=strategy), *batch)
        for k in range(3):
            given = [one(x, axis, k) for x, axis in zip(batch, axes)]
            close(np.asarray(mapped)[k], np.asarray(alone(*given)), err_msg=str(axes))


@every_form_with_a_way_back
def test_gradients_of_many_examples(name):
    found = FORMS[name]
    batch = [examples(x, 0) for x in found.args]
    gradient = tl.grad(total(found.staged), found.argnums)
    each = [stepped(gradient, *[x[k] for x in batch]) for k in range(3)]
    for k, of_examples in enumerate(zip(*each)):
        close(np.asarray(stepped(tl.vmap(gradient), *batch)[k]), np.stack(of_examples))
    summed = tl.grad(lambda *xs: tnp.sum(tl.vmap(total(found.staged))(*xs)), found.argnums)
    for found_here, of_examples in zip(stepped(summed, *batch), zip(*each)):
        close(np.asarray(found_here), np.stack(of_examples))


# ---- linear transposition ------------------------------------------------------------------------------------


def test_linear_transpose_of_a_scan_that_counts():
    def f(x):
        def body(carry, e):
            i, h = carry
            return (i + 1, h * 2.0 + e * i), h

        (_, h), ys = lax.scan(body, (np.int32(0), np.float64(0.0) * x[0]), x)
        return h, ys

    x = np.arange(4.0)
    pulled = tl.linear_transpose(f, x)((np.float64(1.0), np.ones(4)))[0]
    columns = [np.concatenate([np.ravel(y) for y in tl.tree.leaves(f(e))]) for e in np.eye(4)]
    close(np.asarray(pulled), [np.sum(column) for column in columns])


def test_linear_transpose_of_a_loop_and_a_branch():
    def f(x):
        x = lax.fori_loop(0, 3, lambda i, h: h.at[i].add(2 * h[i - 1]), x)
        return lax.cond(True, lambda x: 3 * x, lambda x: x, x)

    matrix = np.stack([np.asarray(f(e)) for e in np.eye(4)])
    close(np.asarray(tl.linear_transpose(f, np.zeros(4))(np.arange(4.0))[0]), matrix @ np.arange(4.0))


# ---- what is saved -------------------------------------------------------------------------------------------


def equations(jaxpr: Jaxpr, name: str) -> Iterator[Equation]:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for inner in subjaxprs(eqn.params):
            yield from equations(inner, name)


def gradient_scans(f: Callable[..., Any], *args: Any) -> tuple[Jaxpr, list[Equation]]:
    """The gradient's program and its scans: the one of the primal half, and the one that goes back."""
    jaxpr = tl.make_jaxpr(tl.grad(lambda *xs: tnp.sum(f(*xs)), tuple(range(len(args)))))(*args).jaxpr
    found = list(equations(jaxpr, "scan"))
    assert [eqn.params["reverse"] for eqn in found] == [False, True]
    return jaxpr, found


def stacked(eqn: Equation) -> list[Any]:
    """The arrays that a scan reads an element of at each step."""
    return eqn.invars[eqn.params["n_consts"] + eqn.params["n_carry"] :]


def test_what_no_step_changes_is_computed_before():
    def f(w, h, xs):
        return lax.scan(lambda h, x: (tnp.sin(w) * h + tnp.exp(w @ w) * x, h), h, xs)[1]  # h is a result, too

    jaxpr, (known, back) = gradient_scans(f, np.ones(3), np.ones(3), np.ones((7, 3)))
    assert not list(equations(known.params["jaxpr"], "cos"))
    assert len(list(equations(jaxpr, "cos"))) == len(list(equations(jaxpr, "exp"))) == 1
    # h at every step, the elements of xs as they came, and cotangents
    assert [v.aval.shape for v in stacked(back)] == [(7, 3)] * 3
    assert jaxpr.invars[2] in stacked(back)
    assert [v.aval.shape for v in known.outvars] == [(3,), (7, 3)]


def test_elements_are_read_again():
    def f(w, xs):
        return lax.scan(lambda h, x: (h + w * x, None), np.float64(0), xs)[0]

    jaxpr = tl.make_jaxpr(tl.grad(f, (0, 1)))(np.float64(0.5), np.ones(7)).jaxpr
    (back,) = equations(jaxpr, "scan")  # nobody asks for the value
    assert list(stacked(back)) == [jaxpr.invars[1]]


def test_a_scan_that_is_linear_saves_nothing():
    def f(xs):
        return lax.scan(lambda h, x: (0.5 * h + x, h), np.float64(0), xs)[1]

    jaxpr = tl.make_jaxpr(lambda x: tl.linearize(f, x)[1](x))(np.ones(7)).jaxpr
    (pushed,) = equations(jaxpr, "scan")
    assert len(stacked(pushed)) == 1  # the tangents of xs


def test_counters_are_not_saved_where_they_are_read():
    def f(x):
        return lax.fori_loop(0, 7, lambda i, s: s * x[i], np.float64(1))

    jaxpr = tl.make_jaxpr(tl.grad(f))(np.ones(7)).jaxpr
    _, back = equations(jaxpr, "scan")
    assert sorted(str(v.aval) for v in stacked(back)) == ["float64[7]", "int32[7]"]  # x is read again


def test_broadcasts_and_zeros_are_not_saved():
    def f(w, xs):
        def body(h, x):
            return lax.cond(x > 0, lambda: h * tnp.sin(x), lambda: tnp.zeros(5, np.float64)), None

        return lax.scan(body, w, xs)[0]

    _, (_, back) = gradient_scans(f, np.ones(5), np.ones(7))
    assert sorted(v.aval.shape for v in stacked(back)) == [(7,)] * 3 + [(7, 5)]  # whether, sin, cos; h


def test_checkpoints_differentiated_at_every_step_of_a_small_loop():
    """XLA ends the process where it meets a barrier in a loop that it makes one kernel of."""

    @tl.checkpoint
    def f(x):
        return tnp.sin(tnp.sin(x) * x)

    def descend(x):
        return lax.fori_loop(0, 3, lambda _, x: x - 0.1 * tl.grad(f)(x), x)

    close(float(tl.jit(descend)(np.float64(0.5))), float(stepped(descend, np.float64(0.5))))


def test_branches_share_the_places_of_what_they_save():
    def f(p, x):
        return lax.cond(p, lambda x: tnp.sin(x) * tnp.exp(x), lambda x: tnp.cos(x) * x, x)

    jaxpr = tl.make_jaxpr(lambda p, x: tl.grad(lambda x: tnp.sum(f(p, x)))(x))(True, np.ones(5)).jaxpr
    known, _ = equations(jaxpr, "cond")
    assert len(known.outvars) <= 5  # the value, and for the first branch four


def test_a_loop_that_nothing_differentiable_enters_stays_as_it_is():
    def f(x):
        n = lax.while_loop(lambda i: i < 5, lambda i: i + 2, 0)
        count = lax.scan(lambda i, _: (i + n, None), 0, None, length=3)[0]
        return x * count

    close(float(tl.grad(f)(np.float64(2.0))), 18)
    jaxpr = tl.make_jaxpr(tl.grad(f))(np.float64(2.0)).jaxpr
    assert len(list(equations(jaxpr, "scan"))) == len(list(equations(jaxpr, "while"))) == 1


# ---- mapped axes ---------------------------------------------------------------------------------------------


def test_what_is_the_same_for_all_examples_is_not_mapped():
    def f(w, x):
        (i, h), ys = lax.scan(lambda c, _: ((c[0] + 1, c[1] * x + w), c[0]), (0, w), None, length=4)
        return h, ys, i

    batch = np.ones(3)
    jaxpr = tl.make_jaxpr(tl.vmap(f, in_axes=(None, 0), out_axes=(0, None, None)))(np.float64(0.5), batch).jaxpr
    (eqn,) = equations(jaxpr, "scan")
    assert [v.aval.shape for v in eqn.outvars] == [(), (3,), (4,)]


def test_a_loop_whose_steps_differ_in_number_keeps_what_is_done():
    counted = tl.vmap(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0))
    np.testing.assert_array_equal(counted(np.array([0, 3, 5], np.int32)), [0, 3, 10])


@pytest.mark.parametrize("strategy", ["select", "loop"])
def test_examples_that_do_not_take_a_branch_do_not_reach_its_nans(strategy):
    def f(x):
        return lax.cond(x > 0, tnp.log, lambda x: x, x)

    x = np.array([2.0, -1.0, 0.0])
    close(np.asarray(tl.vmap(tl.grad(f), control_flow=strategy)(x)), [0.5, 1, 1])
    close(np.asarray(tl.grad(lambda x: tnp.sum(tl.vmap(f, control_flow=strategy)(x)))(x)), [0.5, 1, 1])


def test_a_branch_that_no_example_takes_does_not_run_for_ever():
    def f(x):
        return lax.cond(x > 100, lambda x: lax.while_loop(lambda y: y < 1000, lambda y: y * 1.0, x), lambda x: x, x)

    close(np.asarray(tl.jit(tl.vmap(f))(np.arange(3.0))), np.arange(3.0))


# ---- what has no way back ------------------------------------------------------------------------------------


def test_a_while_loop_that_only_known_values_enter_is_no_obstacle():
    def f(x):
        return x * lax.while_loop(lambda y: y < 10, lambda y: y * 2, tl.stop_gradient(x))

    close(float(tl.grad(f)(np.float64(3))), 12)


# ---- traced values around ------------------------------------------------------------------------------------


def test_values_traced_outside_are_differentiated_and_mapped():
    def f(x, y):
        def inner(z):
            return lax.scan(lambda h, e: (h * x + e * y * z, None), z, tnp.stack([x, y]))[0]

        return tl.grad(inner)(x * y)

    def written_out(x, y):
        return tl.grad(lambda z: (z * x + x * y * z) * x + y * y * z)(x * y)

    x, y = np.float64(0.3), np.float64(-0.7)
    same(stepped(tl.grad(f, (0, 1)), x, y), tl.grad(written_out, (0, 1))(x, y))
    xs, ys = np.array([0.3, 0.5]), np.array([-0.7, 0.1])
    same(stepped(tl.vmap(tl.grad(f)), xs, ys), tl.vmap(tl.grad(written_out))(xs, ys))
