"""Squares of roots are smooth where the roots have kinks: value, gradient and Hessian there, in all modes."""

from functools import partial

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import roots

pytestmark = pytest.mark.usefixtures("eager_by_steps")

norm = tnp.linalg.norm

# Functions of two numbers that are x·x near 0, composed of roots.
SQUARES = {
    "abs ** 2": lambda x: tnp.sum(abs(x) ** 2),
    "abs ** 2.0": lambda x: tnp.sum(abs(x) ** 2.0),
    "abs ** 4": lambda x: tnp.sum(abs(x) ** 4) + tnp.sum(x**2),
    "abs * abs": lambda x: tnp.sum(abs(x) * abs(x)),
    "abs @ abs": lambda x: abs(x) @ abs(x),
    "norm ** 2": lambda x: norm(x) ** 2,
    "square(norm)": lambda x: lax.square(norm(x)),
    "r * r": lambda x: (lambda r: r * r)(norm(x)),
    "(-r) ** 2": lambda x: (-norm(x)) ** 2,
    "norm along an axis": lambda x: tnp.sum(norm(tnp.stack([x, 2 * x]), axis=1, keepdims=True)[:, 0] ** 2) / 5,
    "Frobenius": lambda x: norm(tnp.outer(x, np.array([0.6, 0.8], x.dtype))) ** 2,
    "hypot": lambda x: tnp.hypot(x[0], x[1]) ** 2,
    "complex abs": lambda x: abs(lax.complex(x[0], x[1])) ** 2,
    "sqrt": lambda x: tnp.sqrt(tnp.sum(x**2)) ** 2,
    "x ** 0.5": lambda x: (tnp.sum(x**2) ** 0.5) ** 2,
    "std": lambda x: 2 * tnp.std(tnp.concatenate([x, -x])) ** 2,
    "nanstd": lambda x: 2 * tnp.nanstd(tnp.concatenate([x, -x])) ** 2,
    "a kernel": lambda x: -18 * tnp.exp(-((norm(x) / 3) ** 2) / 2),
    "a choice": lambda x: tnp.where(x[0] > -1, 0.5 * norm(x), 0.0) ** 2 * 4,
    "in a loop": lambda x: lax.scan(lambda c, y: (c + abs(y) ** 2, None), 0 * x[0], x)[0],
    "of examples": lambda x: tl.vmap(norm)(x[None])[0] ** 2,
    "of a call": lambda x: tl.jit(lambda x, n: n * tl.jit(norm)(x))(x, 2) ** 2 / 4,
}
SECOND = {
    "forward over reverse": lambda f: tl.jacfwd(tl.jacrev(f)),
    "reverse over reverse": lambda f: tl.jacrev(tl.jacrev(f)),
    "forward over forward": lambda f: tl.jacfwd(tl.jacfwd(f)),
    "reverse over forward": lambda f: tl.jacrev(tl.jacfwd(f)),
}


def squares(x):
    return tnp.stack([f(x) for f in SQUARES.values()])


@pytest.mark.parametrize("dtype, modes", [("float64", [0, 1]), ("float32", [2, 3])])
def test_squares_of_roots_are_smooth_at_zero(dtype, modes):
    """Compiled: the value, the gradient, and the Hessian of x·x in all modes."""
    seconds = [[*SECOND.values()][k] for k in modes]
    smooth = tl.jit(lambda x: [squares(x), tl.jacrev(squares)(x), *[second(squares)(x) for second in seconds]])
    value, gradient, *hessians = smooth(np.zeros(2, dtype))
    value = value.at[list(SQUARES).index("a kernel")].add(18)
    np.testing.assert_array_equal(value, np.zeros_like(value))
    np.testing.assert_array_equal(gradient, np.zeros_like(gradient))
    for hessian in hessians:  # a division by 3 and one by 5 are rounded
        np.testing.assert_allclose(hessian, np.broadcast_to(2 * np.eye(2), hessian.shape), rtol=8 * np.finfo(dtype).eps)


def test_step_by_step():
    for f, second in zip((SQUARES[name] for name in ("norm ** 2", "abs ** 2", "of a call", "hypot")), SECOND.values()):
        np.testing.assert_array_equal(second(f)(np.zeros(2)), 2 * np.eye(2))


def test_examples_of_other_values_are_no_roots():
    """Step by step: what was computed of the examples beside a variable is not taken for a root."""
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    beside = {
        "mul": (lambda x, w: (tnp.sin(w) * x) ** 2, 2 * np.sin(w) ** 2 * x),
        "div": (lambda x, w: (x / tnp.sin(w)) ** 2, 2 * x / np.sin(w) ** 2),
        "concatenate": (lambda x, w: tnp.sum(tnp.stack([x, tnp.sin(w)]) ** 2), 2 * x),
        "select_n": (lambda x, w: tnp.where(w > 3, tnp.sin(w), x) ** 2, np.where(w > 3, 0, 2 * x)),
        "hypot": (lambda x, w: tnp.hypot(x, tnp.sin(w)) ** 2, 2 * x),
    }
    for name, (f, expected) in beside.items():
        np.testing.assert_allclose(tl.vmap(tl.grad(f))(x, w), expected, rtol=1e-14, err_msg=name)


def test_values_and_first_derivatives_of_roots_stay():
    """The square of a root is computed from the root, so that its value has the same bits with derivatives."""
    x = np.random.default_rng(0).normal(size=(2, 100)).astype(np.float32)

    def f(x):
        return norm(x, axis=0) ** 2, tnp.hypot(x[0], x[1]) ** 2, abs(lax.complex(x[0], x[1])) ** 2

    for plain, (pushed, _) in zip(f(x), zip(*tl.jvp(f, (x,), (x,)))):
        np.testing.assert_array_equal(plain, pushed)
    for g in (norm, lambda x: tnp.hypot(x[0], x[1]), lambda x: norm(x) ** 3, lambda x: tnp.sum(abs(x))):
        np.testing.assert_array_equal(tl.grad(g)(np.zeros(2)), np.zeros(2))


def test_a_wider_format_is_no_root_of_a_narrow_square():
    """The square of 300 is no number of float16, so it is not the square there that is widened."""
    x = np.array([300.0], np.float16)

    def f(x):
        return tnp.sum(tnp.sqrt(tnp.square(x)).astype(np.float32) ** 2)

    assert tl.grad(lambda x: tnp.sum(abs(x).astype(np.float32) ** 2))(x) == 600
    assert tl.value_and_grad(f)(x)[0] == np.inf  # as without derivatives


def test_each_root_is_the_root_of_its_square():
    """By the table: the square that is differentiated equals the square of the result."""
    x = np.linspace(0.5, 2, 6).reshape(2, 3)
    known = {str(p) for p in roots.roots if roots.roots[p].applies is roots.always}
    assert known == {"abs", "sqrt", "root_of_squares"}
    made = {
        "copy": lambda r: lax.optimization_barrier(r) * 1,
        "reshape": lambda r: r.reshape(3, 2),
        "transpose": lambda r: r.T,
        "rev": lambda r: r[::-1],
        "slice": lambda r: r[:, 1:],
        "broadcast_in_dim": lambda r: tnp.broadcast_to(r, (2, 2, 3)),
        "concatenate": lambda r: tnp.concatenate([r, x, r]),
        "pad": lambda r: tnp.pad(r, 1, constant_values=3),
        "dynamic_slice": lambda r: lax.dynamic_slice(r, (tnp.asarray(1), tnp.asarray(1)), (1, 2)),
        "gather": lambda r: r[np.array([1, 0, 1])],
        "gather outside": lambda r: x.sum() * r.at[np.array([1, 5])].get(mode="fill", fill_value=-3.0),
        "select_n": lambda r: tnp.where(x > 1, r, 2.0),
        "neg": lambda r: -r,
        "mul": lambda r: (3 * r) * r[::-1],
        "div": lambda r: (r / x) / r[::-1] + 0,
        "convert_element_type": lambda r: r.astype(np.float32),
    }
    for name, f in made.items():
        square = tl.jvp(lambda x, f=f: f(tnp.sqrt(x)) ** 2, (x,), (x,))[1]
        expected = tl.jvp(lambda x, f=f: (lambda y: y * lax.stop_gradient(y) * 2)(f(tnp.sqrt(x))), (x,), (x,))[1]
        np.testing.assert_allclose(
            square, expected, rtol=3e-7 if name == "convert_element_type" else 1e-14, err_msg=name
        )


def test_factors_of_roots_that_are_read_outside_are_squared():
    x = np.array([4.0, 9.0])

    def f(y):
        read = tnp.sqrt(x * y**0).at[np.array([0, 5])].get(mode="fill", fill_value=3.0)
        return tnp.sum((read * y) ** 2)

    np.testing.assert_array_equal(tl.grad(f)(np.ones(2)), [8, 18])


def test_squares_of_float16_do_not_overflow_or_vanish_in_quotients_and_products():
    """Squares of roots above 256, or below 0.0002, are no numbers of float16; what is made of them may be."""
    quotients = [
        lambda x: (x / norm(x)) ** 2,
        lambda x: (abs(x) / abs(x[::-1]) / 3) ** 2,
        lambda x: (tnp.concatenate([abs(x), x])[1:3] / norm(x)) ** 2,
        lambda x: (tl.jit(abs)(x) / tl.jit(norm)(x)) ** 2,
    ]
    cases = [(f, [300.0, 400.0]) for f in quotients] + [(f, [0.0003, 0.0004]) for f in quotients]
    for f, numbers in [*cases, (lambda x: (abs(x) * x[::-1]) ** 2, [1000.0, 0.001])]:
        x = np.array(numbers, np.float16)
        found, expected = tl.jacrev(f)(x), np.asarray(tl.jacrev(f)(x.astype(np.float32)))
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3 * np.max(abs(expected)))  # four roundings


def test_squares_of_a_root_along_a_chain_are_computed_once():
    """The gradient of a sum of squares of all multiples costs a constant times the sum; long chains do not recur."""

    def f(x, n, every):
        r, total = norm(x), 0.0
        for _ in range(n):
            r = r * 0.9
            total = total + r**2 if every else 0.0
        return total + r**2

    x = np.array([3.0, 4.0])
    for n in (8, 64):
        total = partial(f, n=n, every=True)
        assert tl.cost(tl.grad(total), x).work <= 4 * tl.cost(total, x).work
    np.testing.assert_allclose(tl.grad(lambda x: f(x, 200, False))(x), 2 * x * 0.9**400, rtol=1e-12)
    held = tl.jit(lambda x: [x := x * x for _ in range(50)][-1])  # a search along all paths would not end
    assert tl.grad(held)(1.0) == 2.0**50


def test_arrays_of_other_transformations_are_no_roots():
    """Step by step, in each nesting: the factor belongs to vmap, or to an outer derivative, or to a program."""

    def f(x, y):
        return (x * tnp.sin(y)) ** 2

    def by_closure(x, y):
        z = tnp.sin(y)
        return tl.grad(lambda x: (x * z / 1) ** 2)(x)

    x, expected = np.ones(2), np.full(2, 2 * np.sin(1.0) ** 2)
    for g in (tl.grad(f), by_closure, tl.jit(by_closure), tl.checkpoint(by_closure)):
        np.testing.assert_allclose(tl.vmap(g)(x, x), expected, rtol=1e-15)
    np.testing.assert_allclose(tl.grad(by_closure, 1)(1.0, 1.0), 2 * np.sin(2.0), rtol=1e-6)
    rooted = tl.vmap(tl.grad(lambda y, x: tl.grad(lambda x: (x * abs(y)) ** 2)(x)))(x - 1, x)
    np.testing.assert_array_equal(rooted, [0, 0])
    curved = tl.vmap(tl.hessian(lambda y, x: tl.grad(lambda x: (x * abs(y)) ** 2)(x)))(x - 1, x)
    np.testing.assert_array_equal(curved, [4, 4])


def test_squares_of_calls_keep_the_rules_of_users_and_repeat_no_effects():
    """The program of the square of a call differentiates as the call does; what prints or counts is no root."""
    scaled = tl.custom_jvp(abs)
    scaled.defjvps(lambda t, y, x: 100 * t)
    halved = tl.custom_vjp(abs)
    halved.defvjp(lambda x: (abs(x), None), lambda _, ct: (0.5 * ct,))
    for inner, slope in ((scaled, 100.0), (halved, 0.5)):
        for call in (tl.jit(lambda x, inner=inner: abs(inner(x))), tl.jit(lambda x, inner=inner: tl.jit(inner)(x) / 1)):
            assert tl.grad(lambda x, call=call: call(x) ** 2)(3.0) == 6 * slope
            assert tl.jit(tl.grad(lambda x, call=call: (2 * call(x)) ** 2))(3.0) == 24 * slope
    seen = []

    @tl.jit
    def noting(x):
        tl.debug.callback(seen.append, x)
        return abs(x)

    assert tl.grad(lambda x: noting(x) ** 2)(3.0) == 6
    tl.effects_barrier()
    assert len(seen) == 1
