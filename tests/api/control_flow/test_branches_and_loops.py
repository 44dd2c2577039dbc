"""Branches and loops of `tapeless.lax`: what they compute, and how types settle."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import dispatch
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.arange(6, dtype=np.float32).reshape(3, 2)
under_jit = pytest.mark.parametrize("under", [lambda f: f, tl.jit], ids=["eager", "jit"])


def primitives_of(f: Any, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in tl.make_jaxpr(f)(*args).eqns]


def equation(f: Any, *args: Any) -> Any:
    """The only equation of control flow."""
    (found,) = [e for e in tl.make_jaxpr(f)(*args).eqns if e.primitive.name in ("cond", "while", "scan")]
    return found


# ---- cond ----------------------------------------------------------------------------------------------------


def double(x):
    return {"y": 2 * x, "n": 1}


def half(x):
    return {"y": x / 2, "n": 2}


@under_jit
@pytest.mark.parametrize("pred", [True, False, np.True_, np.array(False), 3, 0, 2.5, np.int8(0)])
def test_cond(under: Any, pred: Any):
    found = under(lambda p, x: lax.cond(p, double, half, x))(pred, X)
    expected = double(X) if pred else half(X)
    np.testing.assert_array_equal(found["y"], expected["y"])
    assert found["n"] == expected["n"]


@under_jit
def test_cond_of_an_array_of_ours_and_of_what_depends_on_it(under: Any):
    f = under(lambda x: lax.cond(x.sum() > 3, lambda: x + 1, lambda: -x))
    np.testing.assert_array_equal(f(tnp.asarray(X)), X + 1)
    np.testing.assert_array_equal(f(tnp.asarray(X) / 10), -X / np.float32(10))


def test_operands_are_pytrees_and_may_be_none():
    def f(pair, extra, *, of=None):
        return pair[0] + pair[1]["b"], extra

    out, extra = lax.cond(True, f, f, (1, {"b": X}), None)
    np.testing.assert_array_equal(out, X + 1)
    assert extra is None
    assert lax.cond(False, lambda x: x + 1, lambda x: x - 1, operand=3) == 2
    assert lax.cond(True, lambda x: x is None, lambda x: x is None, operand=None)
    assert lax.cond(False, 1, lambda x: x + 1, 10, lambda x: x * 2) == 20  # JAX's older form


def test_branches_close_over_different_arrays():
    a, b = tnp.ones(3), tnp.zeros(3)

    def f(p, c):
        return lax.cond(p, lambda x: x + a + c, lambda x: x * b + a + c, c)

    np.testing.assert_array_equal(tl.jit(f)(True, tnp.ones(3)), [3, 3, 3])
    np.testing.assert_array_equal(tl.jit(f)(False, tnp.ones(3)), [2, 2, 2])
    assert len(equation(f, True, tnp.ones(3)).invars) == 1 + 4  # a, c and b, c; c is an operand too


def test_results_that_only_pass_on_an_operand_are_not_computed():
    found = equation(lambda p, x, y: lax.cond(p, lambda x, y: (x + 1, y), lambda x, y: (x, y), x, y), True, X, X)
    assert len(found.outvars) == 1
    out = lax.cond(True, lambda n: (n, 1), lambda n: (n, 2), 5)
    assert [type(x) for x in out] == [type(tnp.ones(1))] * 2
    assert out == (5, 1)


def test_switch():
    branches = [lambda x: x + 1, lambda x: 2 * x, lambda x: x**2]
    for under in (lambda f: f, tl.jit):
        f = under(lambda i, x: lax.switch(i, branches, x))
        assert [float(f(i, 5.0)) for i in (-7, 0, 1, 2, 9)] == [6, 6, 10, 25, 25]
        assert f(np.uint8(200), 5.0) == 25
        assert f(np.int64(2**40), 5.0) == 25
        assert f(np.int64(-(2**40)), 5.0) == 6
        assert f(np.uint32(2**32 - 1), 5.0) == 25
    assert lax.switch(3, branches[:1], 5) == 6
    assert lax.switch(1, branches, operand=5) == 10


def test_results_of_branches_that_differ_in_weakness_are_joined():
    strong = tnp.ones((), tnp.float64)
    out = lax.cond(True, lambda: 0.5, lambda: strong)
    assert (out.dtype, out.weak_type) == (np.float64, False)
    assert out == 0.5
    assert lax.switch(2, [lambda: 1, lambda: 2, lambda: np.int8(3)]).weak_type
    assert lax.cond(False, lambda: tnp.int8(1), lambda: 3).dtype == np.int8
    with pytest.raises(OverflowError):
        lax.cond(False, lambda: tnp.int8(1), lambda: 300)


# ---- while_loop ----------------------------------------------------------------------------------------------


@under_jit
def test_while_loop(under: Any):
    def collatz(n):
        def step(state):
            n, count = state["n"], state["count"]
            return {"n": lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), "count": count + 1}

        return lax.while_loop(lambda state: state["n"] > 1, step, {"n": n, "count": 0})["count"]

    assert under(collatz)(27) == 111
    assert under(collatz)(1) == 0


def test_while_loop_closes_over_traced_arrays():
    def f(limit, factor, x):
        return lax.while_loop(lambda x: x.sum() < limit, lambda x: x * factor, x)

    np.testing.assert_array_equal(tl.jit(f)(100.0, 2.0, tnp.ones(3)), [64, 64, 64])
    found = equation(f, 100.0, 2.0, tnp.ones(3))
    assert (found.params["n_condition"], found.params["n_body"], len(found.outvars)) == (1, 1, 1)


def test_what_a_loop_leaves_as_it_is_is_not_carried():
    def f(x, w):
        return lax.while_loop(lambda s: s[0].sum() < s[2], lambda s: (s[0] * s[1], s[1], s[2]), (x, w, 50))

    out = f(tnp.ones(2), 3.0)
    np.testing.assert_array_equal(out[0], [27, 27])
    assert (float(out[1]), int(out[2])) == (3, 50)
    found = equation(f, tnp.ones(2), 3.0)
    assert (found.params["n_condition"], found.params["n_body"], len(found.outvars)) == (2, 2, 1)


# ---- fori_loop -----------------------------------------------------------------------------------------------


@under_jit
@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 2), (5, 2), (-3, 4), (np.int64(1), np.int64(4))])
def test_fori_loop(under: Any, lower: Any, upper: Any):
    def f(lower, upper):
        return lax.fori_loop(lower, upper, lambda i, s: (s[0] + i * s[1], s[1] + 1), (0, 1))

    s = (0, 1)
    for i in range(lower, upper):
        s = s[0] + i * s[1], s[1] + 1
    assert tuple(map(int, under(f)(lower, upper))) == s


def test_fori_loop_of_known_bounds_is_a_scan():
    def f(n, x):
        return lax.fori_loop(0, n, lambda i, x: x * 2 + i, x)

    assert primitives_of(lambda x: f(3, x), 1.0) == ["scan"]
    three = tnp.asarray(3)
    assert primitives_of(lambda x: f(three, x), 1.0) == ["scan"]
    assert primitives_of(f, 3, 1.0) == ["while"]
    assert tl.grad(lambda x: f(3, x))(1.0) == 8
    assert tl.grad(lambda x, n: f(n, x))(1.0, 3) == 8  # under grad alone, n is known
    assert equation(lambda x: lax.fori_loop(0, 6, lambda i, x: x + i, x, unroll=3), 1.0).params["unroll"] == 3
    assert equation(lambda x: lax.fori_loop(0, 6, lambda i, x: x + i, x, unroll=True), 1.0).params["unroll"] == 6


@pytest.mark.parametrize("disable_jit", [False, True])
def test_a_fori_loop_whose_last_step_does_not_fit_its_counter(disable_jit: bool):
    """The counter would wrap: a body would see steps that `range` does not have."""
    steps = lambda low, high: lax.fori_loop(low, high, lambda i, c: i, low)  # noqa: E731
    with tl.disable_jit(disable_jit):
        assert steps(2**31 - 2, 2**31) == 2**31 - 1 and steps(tnp.int64(2**31), tnp.int64(2**31 + 2)) == 2**31 + 1
        assert steps(tnp.int8(126), tnp.int8(127)) == 126 and steps(2, -(2**40)) == 2
        for low, high, dtype in ((2**31 - 2, 2**31 + 2, "int32"), (0, 2**40, "int32"), (tnp.int8(126), 129, "int8")):
            with pytest.raises(OverflowError, match=f"the integer {high - 1} does not fit {dtype}, which holds"):
                steps(low, high)


def test_counter_of_a_fori_loop():
    def dtype_of(lower, upper, under=lambda f: f):
        seen = []

        def step(i, x):
            seen.append((i.dtype.name, i.weak_type))
            return x

        under(lambda lower, upper: lax.fori_loop(lower, upper, step, 0.0))(lower, upper)
        return seen[-1]

    assert dtype_of(0, 3) == ("int32", True)
    assert dtype_of(np.zeros((), np.int64), 3) == ("int64", False)
    assert dtype_of(0, tnp.asarray(3, tnp.uint8), tl.jit) == ("uint8", False)
    assert dtype_of(0, 3, tl.jit) == ("int32", True)
    assert tl.jit(lambda n: lax.fori_loop(250, n, lambda i, x: x + 1, 0))(tnp.asarray(255, tnp.uint8)) == 5


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_fori_loop_between_floats(dtype: str):
    """Traced floats step by 1 below the upper one; known ones must be whole numbers."""
    sums = lambda low, high: lax.fori_loop(low, high, lambda i, s: (s[0] + i, s[1] + 1), (0, 0))  # noqa: E731
    traced, f = tl.jit(sums), np.dtype(dtype).type
    for low, high in ((0, 4), (0.5, 3.25), (2, 2), (5, 2), (-1.5, 0.5), (0, np.nan)):
        steps = np.arange(low, high) if high == high else np.zeros(0)
        total, count = traced(f(low), f(high))
        assert (total, count, total.dtype) == (steps.sum(), len(steps), dtype)
    assert tl.vmap(sums, (None, 0))(f(0), np.arange(4, dtype=dtype))[1].tolist() == [0, 1, 2, 3]
    assert traced(tnp.float16(2046), tnp.float16(2056))[1] == 10  # 2048 + 1 is 2048
    total, count = sums(f(1), f(4))
    assert (total, count, total.dtype) == (6, 3, np.int32)


# ---- scan ----------------------------------------------------------------------------------------------------


def python_scan(f, carry, xs, length, reverse=False):
    ys: list[Any] = [None] * length
    for k in range(length)[:: -1 if reverse else 1]:
        carry, ys[k] = f(carry, tl.tree.map(lambda x, k=k: x[k], xs))
    return carry, tl.tree.map(lambda *rows: np.stack(rows), *ys)


def cell(carry, x):
    h = tnp.tanh(carry["h"] * x["u"] + x["v"])
    return {"h": h, "n": carry["n"] + 1}, (h, {"twice": 2 * x["u"]})


@under_jit
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3, True, 0, 99])
def test_scan(under: Any, reverse: bool, unroll: Any):
    xs = {"u": np.linspace(0, 1, 7, dtype=np.float32), "v": np.arange(14, dtype=np.float32).reshape(7, 2)}
    init = {"h": np.ones(2, np.float32), "n": 0}
    f = under(lambda init, xs: lax.scan(cell, init, xs, reverse=reverse, unroll=unroll))
    found, expected = f(init, xs), python_scan(cell, init, xs, 7, reverse)
    assert tl.tree.structure(found) == tl.tree.structure(expected)
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)  # XLA's tanh is within an ulp or two of another order


def test_scan_without_sequences():
    assert lax.scan(lambda c, x: (c + 1, None if x is None else 1), 0, length=4) == (4, None)
    last, ys = lax.scan(lambda c, _: (2 * c, c), 1, None, 5)
    assert (int(last), ys.tolist()) == (32, [1, 2, 4, 8, 16])
    assert lax.scan(lambda c, x: ((), x + 1), (), np.arange(3))[1].tolist() == [1, 2, 3]


@pytest.mark.parametrize("n", [0, 1])
def test_scan_of_nothing_and_of_one(n: int):
    last, ys = lax.scan(lambda c, x: (c + x.sum(), (x, 2 * c)), 1.5, X[:n])
    assert float(last) == 1.5 + X[:n].sum()
    np.testing.assert_array_equal(ys[0], X[:n])
    np.testing.assert_array_equal(ys[1], [3.0][:n])
    assert ys[1].dtype == np.float32


def test_what_a_scan_leaves_as_it_is_is_not_carried():
    def f(h, w, xs):
        return lax.scan(lambda c, x: ((c[0] * c[1] + x, c[1]), (x, c[0])), (h, w), xs)

    found = equation(f, 1.0, 2.0, X[:, 0])
    assert (found.params["n_consts"], found.params["n_carry"], len(found.outvars)) == (1, 1, 2)
    (h, w), (xs, hs) = f(1.0, 2.0, X[:, 0])
    assert (float(h), float(w), xs.tolist(), hs.tolist()) == (16, 2, [0, 2, 4], [1, 2, 6])


def test_scans_in_scans_close_over_what_is_around_them():
    def f(w, xs):
        def outer(c, x):
            return lax.scan(lambda d, k: (d * w + c, k * x), c, tnp.arange(2.0))

        return lax.scan(outer, 1.0, xs)

    last, ys = tl.jit(f)(0.5, np.arange(3, dtype=np.float32))
    c = 1.0
    for _ in range(3):
        d = c
        for _ in range(2):
            d = d * 0.5 + c
        c = d
    assert float(last) == c
    np.testing.assert_array_equal(ys, [[0, 0], [0, 1], [0, 2]])


def test_a_carry_that_begins_weak_takes_the_type_it_is_given():
    def end(init, xs):
        carry, _ = lax.scan(lambda c, x: (c + x, None), init, xs)
        return carry.dtype.name, carry.weak_type

    assert end(0.0, np.ones(3, np.float32)) == ("float32", False)
    assert end(0.0, np.ones(3)) == ("float64", False)
    assert end(0, np.ones(3, np.float16)) == ("float16", False)
    assert end(np.float64(0), np.ones(3, np.float32)) == ("float32", False)
    assert lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0).weak_type
    assert lax.fori_loop(0, 2, lambda i, c: c + 1j, 0).dtype == np.complex64
    swapped, _ = lax.scan(lambda c, _: ((c[1], c[2], c[2] + 1.5), None), (0, 0, 0), length=3)
    assert [x.dtype.name for x in swapped] == ["float32"] * 3
    assert [float(x) for x in swapped] == [1.5, 3.0, 4.5]


def test_a_body_may_return_a_bare_number():
    carry, _ = lax.scan(lambda c, x: (0.5, None), tnp.ones((), tnp.float64), length=2)
    assert (carry.dtype, carry.weak_type, float(carry)) == (np.float64, False, 0.5)
    with pytest.raises(OverflowError):
        lax.scan(lambda c, x: (300, None), tnp.int8(1), length=2)


def test_scan_is_traced_once_unless_types_must_settle():
    traced = []

    def step(c, x):
        traced.append(c.dtype)
        return c + x, None

    for init, times in ((tnp.float32(0), 1), (0.0, 1), (0, 2)):
        traced.clear()
        carry, _ = lax.scan(step, init, X[:, 0].astype(np.float32))
        assert (len(traced), carry.dtype, carry.weak_type) == (times, np.float32, False)


def test_a_carry_that_becomes_strong_is_weak_inside_the_body():
    """So a number that a loop begins with does not widen what the body computes; dtypes are those of JAX."""
    half = tnp.ones(3, tnp.bfloat16)
    carry, ys = lax.scan(lambda c, x: (c + x, (c * half, c * 2)), 0.0, np.ones(3, np.float32))
    assert [(y.dtype, y.weak_type) for y in (carry, *ys)] == [
        ("float32", False),
        ("bfloat16", False),
        ("float32", True),
    ]
    (a, b), _ = lax.scan(lambda c, x: ((c[0] + x, c[1] + c[0]), None), (0.0, 0.0), np.ones(3, np.float32))
    assert (a.weak_type, b.weak_type, float(a), float(b)) == (False, True, 3, 3)
    n, x, y = lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * np.array(2, np.float32), c[1] * half[0]), (0, 1.0, half[0])
    )
    assert (int(n), float(x), float(y), y.dtype) == (3, 8, 4, "bfloat16")


# ---- map, associative_scan -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("under", "batch_size"), [(lambda f: f, 3), (tl.jit, None), *[(tl.jit, n) for n in (0, 1, 3, 7, 10)]]
)
def test_map(under: Any, batch_size: int | None):
    xs = {"a": np.arange(14, dtype=np.float32).reshape(7, 2), "b": np.arange(7)}
    f = under(lambda xs: lax.map(lambda x: (x["a"].sum(), x["a"] * x["b"]), xs, batch_size=batch_size))
    total, scaled = f(xs)
    np.testing.assert_array_equal(total, xs["a"].sum(1))
    np.testing.assert_array_equal(scaled, xs["a"] * xs["b"][:, None])


def test_map_of_nothing():
    for batch_size in (None, 0, 3):
        assert lax.map(lambda x: 2 * x, X[:0], batch_size=batch_size).shape == (0, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n: int, reverse: bool):
    """Affine maps, which do not commute: x -> a x + b, in exact arithmetic."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(-3, 4, (2, 2, n, 1))

    def after(f, g):
        return {"a": f["a"] * g["a"], "b": f["b"] * g["a"] + g["b"]}

    found = tl.jit(lambda e: lax.associative_scan(after, e, reverse=reverse, axis=1))({"a": a, "b": b})
    for k in range(n):
        order = range(n - 1, k, -1) if reverse else range(k)
        each = [{"a": a[:, j], "b": b[:, j]} for j in (*order, k)]
        total = each[0]
        for f in each[1:]:
            total = after(total, f)
        np.testing.assert_array_equal(found["a"][:, k], total["a"])
        np.testing.assert_array_equal(found["b"][:, k], total["b"])


def test_associative_scan_of_no_elements_and_a_negative_axis():
    assert lax.associative_scan(tnp.add, X[:0]).shape == (0, 2)
    np.testing.assert_array_equal(lax.associative_scan(tnp.add, X, axis=-1), np.cumsum(X, -1))


def test_associative_scan_combines_about_2n_elements():
    combined = []

    def add(a, b):
        combined.append(len(a))
        return a + b

    sums = tl.jit(lambda x: lax.associative_scan(add, x))
    np.testing.assert_array_equal(sums(np.arange(64)), np.cumsum(np.arange(64)))
    assert sum(combined) < 2 * 64
    assert len(combined) < 2 * 6


def test_select():
    np.testing.assert_array_equal(lax.select(X > 2, X, -X), np.where(X > 2, X, -X))
    np.testing.assert_array_equal(lax.select(True, X, -X), X)


# ---- eagerly -------------------------------------------------------------------------------------------------


def test_a_fresh_closure_compiles_nothing_again():
    def run(scale):
        array = tnp.asarray(scale)
        total = lax.fori_loop(0, 3, lambda i, c: c * array, 1.0)
        return total + lax.while_loop(lambda c: c < array, lambda c: c + 1.0, 0.0)

    assert run(2.0) == 10
    before = dispatch._compiled.cache_info().misses
    assert run(3.0) == 30
    assert dispatch._compiled.cache_info().misses == before


def logarithm(c, x):
    return c + tnp.log(x), None


@pytest.mark.parametrize("under", [lambda f: f, tl.jit])
def test_nan_in_a_loop_names_the_line(under: Any):
    xs = np.array([1, 2, -1], np.float32)
    with tl.config.scope(debug_nans=True):
        with raises(FloatingPointError, f"nan in the result of 'log', at {place(logarithm, 'tnp.log')}."):
            under(lambda xs: lax.scan(logarithm, 0.0, xs))(xs)
        with raises(FloatingPointError, f"nan in the result of 'log', at {place(logarithm, 'tnp.log')}."):
            under(lambda x: lax.while_loop(lambda x: x > -3, lambda x: logarithm(0, x)[0], x))(0.5)
        with raises(FloatingPointError, f"nan in the result of 'log', at {place(logarithm, 'tnp.log')}."):
            under(lambda p, x: lax.cond(p, lambda x: logarithm(0, x)[0], lambda x: x, x))(True, -1.0)
        assert lax.cond(False, lambda x: logarithm(0, x)[0], lambda x: x, -1.0) == -1
        with pytest.raises(FloatingPointError, match="nan in the result of 'cond', at "):
            under(lambda p: lax.cond(p, lambda: np.nan, lambda: 2.0))(True)
        assert under(lambda p: lax.cond(p, lambda: np.nan, lambda: 2.0))(False) == 2


@pytest.mark.parametrize(
    "init, step, dtype, weak",
    [
        (0, lambda c: c + 1.5, "float32", False),  # a carry that takes another dtype is strong, as in JAX
        (1.0, lambda c: c * 1j, "complex64", False),
        (0, lambda c: c + 1, "int32", True),
        (0.0, lambda c: c + 1, "float32", True),
        (0, lambda c: c + tnp.int8(1), "int8", False),
    ],
)
def test_carries_that_begin_as_python_numbers(init: Any, step: Any, dtype: str, weak: bool) -> None:
    loops = lax.fori_loop(0, 2, lambda _, c: step(c), init), lax.scan(lambda c, _: (step(c), None), init, length=2)[0]
    for found in loops:
        assert (found.dtype.name, found.weak_type) == (dtype, weak)


# ---- how often bodies are traced -------------------------------------------------------------------------------


def nested(depth, x, seen, wrap=lambda f: f):
    """Loops in one another, each with a bare 0.0 as its carry, which becomes a float64 with the innermost."""

    def body(c, e):
        if depth == 0:
            seen.append(e.dtype)
            return c + e, e * c
        inner, ys = wrap(lambda x: nested(depth - 1, x, seen, wrap))(x)
        return c + inner, ys

    return lax.scan(body, 0.0, x)


@pytest.mark.parametrize("depth", range(5))
def test_nested_loops_are_traced_once_for_each_level(depth):
    seen = []
    x = np.arange(1.0, 3.0)
    total, ys = nested(depth, x, seen)
    assert len(seen) <= depth + 2
    assert total.dtype == ys.dtype == np.float64
    np.testing.assert_array_equal(total, 3.0 * 2**depth)
    assert (
        tl.make_jaxpr(lambda x: nested(depth, x, []))(x).out_avals[0].strong()
        == tl.make_jaxpr(lambda: np.zeros(()))().out_avals[0]
    )


@pytest.mark.parametrize("wrap", [tl.jit, tl.checkpoint, lambda f: lambda x: tl.vmap(f)(x[None])[0]])
def test_what_is_remembered_is_not_guessed(wrap):
    """The programs of functions inside are those for the types that there are in the end."""
    f = wrap(lambda x: lax.scan(lambda c, e: (c + e, c), 0.0, x)[0])

    def body(c, e):
        return c + f(x), e

    x = np.array([1.0, 1e-12])
    total, _ = lax.scan(body, 0.0, x)
    np.testing.assert_array_equal(total, 2 * (1 + 1e-12))
    assert np.asarray(f(x)).dtype == np.float64


def test_kinds_of_loops_in_one_another():
    seen = []
    x = np.float64(1e-12) * np.ones(())

    def inner(_, s):
        seen.append(None)
        return s + x

    def middle(state):
        n, s = state
        return n + 1, s + lax.fori_loop(0, 2, inner, 1.0)

    def outer(s, _):
        _, t = lax.while_loop(lambda state: state[0] < 2, middle, (0, 1.0))
        return lax.cond(s > 0, lambda s: s + t, lambda s: s, s), None

    total, _ = tl.jit(lambda: lax.scan(outer, 1.0, length=2))()
    np.testing.assert_allclose(total, 7 + 8e-12, rtol=1e-15)
    assert len(seen) <= 6


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_gradients_of_a_switch_with_an_index_out_of_range(dtype):
    """What is computed before the switch matters to the branch that is taken, which is the nearest there is."""
    x, limits = np.array([1.0, 2.0, 3.0]), np.iinfo(dtype)

    def f(x, i):
        s = tnp.sum(tnp.abs(tnp.diag(tnp.outer(x, x))))
        return lax.switch(i, [lambda: 0.0 * s, lambda: 3 * s, lambda: s])

    gradient = tl.grad(f)
    for i in (limits.min, 0, 1, 2, 15, limits.max):
        index, expected = tnp.asarray(np.array(i, dtype)), (0, 6, 2)[min(max(i, 0), 2)] * x
        for each in (gradient, tl.jit(gradient), lambda x, i: tl.vmap(gradient, (None, 0))(x, i[None])[0]):
            np.testing.assert_array_equal(each(tnp.asarray(x), index), expected)


def test_a_function_that_is_several_branches_is_traced_once():
    calls = []

    def f(x):
        calls.append(x)
        return x + 1

    found = tl.jit(lambda i, x: lax.switch(i, [f, lambda x: 2 * x, f], x))
    assert [float(found(i, 3.0)) for i in range(3)] == [4, 6, 4] and len(calls) == 1
    assert tl.jit(lambda p, x: lax.cond(p, f, f, x))(True, 3.0) == 4 and len(calls) == 2


def test_associative_scan_of_a_named_tuple_may_combine_to_a_plain_one():
    class Pair(NamedTuple):
        a: Any
        b: Any

    x = np.arange(1.0, 6.0)
    found = lax.associative_scan(lambda p, q: (p.a * q.a, p.b + q.b), Pair(x, x))
    assert type(found) is Pair
    np.testing.assert_array_equal(found.a, np.cumprod(x))
    np.testing.assert_array_equal(found.b, np.cumsum(x))
