"""Linear systems and roots, whose solvers cannot be differentiated: loops of unknown length."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
A = 4 * np.eye(3) + 0.3 * RNG.normal(size=(3, 3))
B = RNG.normal(size=3)
BATCH = RNG.normal(size=(4, 3))
EXACT = 1e-9  # the solvers stop when the residual, squared, is below 1e-26


def richardson(matvec, b):
    """Steps against the residual until it is gone: no derivative could pass through it backwards."""

    def step(state):
        x, _ = state
        r = b - matvec(x)
        return x + 0.2 * r, tnp.vdot(r, r)

    return lax.while_loop(lambda state: state[1] > 1e-26, step, (tnp.zeros_like(b), tnp.ones((), b.dtype)))[0]


def solved(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, richardson)


def loss(a, b):
    return tnp.sum(tnp.sin(solved(a, b)))


def reference(a, b):
    """The gradient of the loss, by NumPy: A' w = cos x, and -w x'."""
    x = np.linalg.solve(a, b)
    w = np.linalg.solve(a.T, np.cos(x))
    return -np.outer(w, x), w


def test_solution_and_gradient():
    np.testing.assert_allclose(solved(A, B), np.linalg.solve(A, B), rtol=EXACT)
    for ours, theirs in zip(tl.grad(loss, (0, 1))(A, B), reference(A, B)):
        np.testing.assert_allclose(ours, theirs, rtol=EXACT, atol=EXACT)
    for ours, theirs in zip(tl.jit(tl.grad(loss, (0, 1)))(A, B), reference(A, B)):
        np.testing.assert_allclose(ours, theirs, rtol=EXACT, atol=EXACT)


def test_forward_equals_reverse():
    np.testing.assert_allclose(tl.jacfwd(loss)(A, B), tl.jacrev(loss)(A, B), rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("outer", [tl.jacfwd, tl.jacrev], ids=["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", [tl.jacfwd, tl.jacrev], ids=["jacfwd", "jacrev"])
def test_second_derivatives(outer, inner):
    x, inverse = np.linalg.solve(A, B), np.linalg.inv(A)
    wanted = -inverse.T @ np.diag(np.sin(x)) @ inverse
    np.testing.assert_allclose(outer(inner(loss, 1), 1)(A, B), wanted, rtol=1e-8, atol=EXACT)


def test_vmap_both_ways():
    wanted = np.stack([reference(A, b)[1] for b in BATCH])
    np.testing.assert_allclose(tl.vmap(tl.grad(loss, 1), (None, 0))(A, BATCH), wanted, rtol=EXACT)
    total = tl.grad(lambda bs: tl.vmap(loss, (None, 0))(A, bs).sum())
    np.testing.assert_allclose(total(BATCH), wanted, rtol=EXACT)


def test_symmetric_systems_need_one_solver():
    s = A + A.T

    def f(b):
        return tnp.sum(lax.custom_linear_solve(lambda x: s @ x, b, richardson_slow, symmetric=True) ** 2)

    def richardson_slow(matvec, b):
        return richardson(lambda x: matvec(x) / 2, b / 2)

    np.testing.assert_allclose(tl.grad(f)(B), 2 * np.linalg.solve(s, np.linalg.solve(s, B)), rtol=1e-8)


def test_trees_and_auxiliary_results():
    def solve(matvec, b):
        return {"u": b["u"] / 2.0, "v": b["v"] / 3.0}, {"steps": tnp.asarray(7)}

    def f(b):
        def matvec(x):
            return {"u": 2.0 * x["u"], "v": 3.0 * x["v"]}

        return lax.custom_linear_solve(matvec, b, solve, solve, has_aux=True)

    _, aux = f({"u": tnp.ones(2), "v": tnp.ones(())})
    assert int(aux["steps"]) == 7
    gradient = tl.grad(lambda b: tnp.sum(f(b)[0]["u"]) + f(b)[0]["v"])({"u": tnp.ones(2), "v": tnp.ones(())})
    np.testing.assert_allclose(gradient["u"], [0.5, 0.5])
    np.testing.assert_allclose(gradient["v"], 1 / 3, rtol=1e-6)


def test_reverse_mode_without_a_solver_for_the_transpose():
    def f(b):
        return tnp.sum(lax.custom_linear_solve(lambda x: A @ x, b, richardson))

    assert np.shape(tl.jacfwd(f)(B)) == (3,)
    with pytest.raises(NotImplementedError) as raised:
        tl.grad(f)(B)
    assert "custom_linear_solve: reverse mode solves the transposed system, and no solver is given for it.\n" in str(
        raised.value
    )


def test_what_is_not_linear_is_refused():
    with pytest.raises(tl.errors.LinearityError, match="nonlinear primitive"):
        lax.custom_linear_solve(tnp.sin, B, richardson)


def test_a_solver_must_give_what_b_is():
    with pytest.raises(TypeError) as raised:
        lax.custom_linear_solve(lambda x: 2.0 * x, B, lambda matvec, b: b[:2])
    assert "gives float64[2] where b is float64[3]." in str(raised.value)


# ---- roots ---------------------------------------------------------------------------------------------------


def newton(f, guess):
    def step(x):
        y, slope = tl.jvp(f, (x,), (tnp.ones_like(x),))
        return x - y / slope

    return lax.while_loop(lambda x: abs(f(x)) > 1e-14, step, guess)


def root(theta):
    """x with x^3 + theta x = 1."""
    return lax.custom_root(
        lambda x: x**3 + theta * x - 1.0, np.float64(0.5), newton, lambda g, y: y / g(tnp.ones_like(y))
    )


def test_a_root_and_its_derivatives():
    theta = tnp.array(1.7, dtype=tnp.float64)
    x = 0.5101406966
    slope = -x / (3 * x**2 + 1.7)
    np.testing.assert_allclose(root(theta), x, rtol=1e-9)
    for mode in (tl.grad, tl.jacfwd, tl.jacrev, lambda f: tl.jit(tl.grad(f))):
        np.testing.assert_allclose(mode(root)(theta), slope, rtol=1e-8)
    second = [outer(inner(root))(theta) for outer in (tl.jacfwd, tl.jacrev) for inner in (tl.jacfwd, tl.jacrev)]
    central = (tl.grad(root)(theta + 1e-5) - tl.grad(root)(theta - 1e-5)) / 2e-5
    np.testing.assert_allclose(second, [float(central)] * 4, rtol=1e-7)


def test_roots_under_vmap():
    thetas = tnp.array([0.5, 1.7, 3.0], dtype=tnp.float64)
    np.testing.assert_allclose(tl.vmap(tl.grad(root))(thetas), [tl.grad(root)(t) for t in thetas], rtol=1e-9)


def conjugate_gradients(matvec, b):
    """Hestenes & Stiefel 1952, on arrays."""

    def step(state):
        x, r, p, rr = state
        q = matvec(p)
        alpha = rr / tnp.vdot(p, q)
        r = r - alpha * q
        new = tnp.vdot(r, r)
        return x + alpha * p, r, r + (new / rr) * p, new

    start = (tnp.zeros_like(b), b, b, tnp.vdot(b, b))
    return lax.while_loop(lambda state: state[3] > 1e-26, step, start)[0]


def test_minimum_found_by_conjugate_gradients_has_all_derivatives():
    """The minimum of x'Mx/2 - b'x, whose gradient in b is the inverse of M, in both modes."""
    m = A @ A.T

    def minimum(b):
        return lax.custom_root(
            lambda x: m @ x - b,
            tnp.zeros(3, tnp.float64),
            lambda f, x: conjugate_gradients(lambda v: f(v) - f(0 * v), -f(0 * x)),
            conjugate_gradients,
        )

    for jacobian in (tl.jacfwd, tl.jacrev):
        np.testing.assert_allclose(jacobian(minimum)(tnp.array(B)), np.linalg.inv(m), rtol=1e-8, atol=EXACT)
    np.testing.assert_allclose(
        tl.hessian(lambda b: tnp.sum(minimum(b) ** 2))(tnp.array(B)), 2 * np.linalg.inv(m @ m), rtol=1e-7, atol=EXACT
    )


def halving(matvec, b):
    return b / 2.0


def doubled(b):
    return lax.custom_linear_solve(lambda x: 2.0 * x, b, halving, symmetric=True)


def square_root(a, guess):
    def solve(f, x):
        return lax.fori_loop(0, 6, lambda _, x: x - f(x) / (2.0 * x), x)

    return lax.custom_root(lambda x: x * x - a, guess, solve, lambda g, y: y / g(1.0))


def test_numbers_stay_weak():
    """A solution for bare numbers gives way to what it meets, as numbers do; derivatives too."""
    narrow = tnp.ones(2, tnp.bfloat16)
    for f, x in ((doubled, 3.0), (lambda a: square_root(a, 1.0), 2.0)):
        assert tl.eval_shape(f, x).weak_type
        for run in (f, tl.jit(f), tl.grad(f), tl.jit(tl.grad(f)), lambda x, f=f: tl.jvp(f, (x,), (1.0,))[1]):
            assert (run(x) * narrow).dtype == tnp.bfloat16
    np.testing.assert_allclose(tl.grad(lambda a: square_root(a, 1.0))(2.0), 0.5 / np.sqrt(2), rtol=1e-6)  # of float32


def test_types_that_are_given_stay_strong():
    narrow = tnp.ones(2, tnp.bfloat16)
    assert (doubled(np.ones((), np.float32)) * narrow).dtype == np.float32
    assert (square_root(np.ones((), np.float32), 1.0) * narrow).dtype == np.float32
    assert (square_root(2.0, np.ones((), np.float32)) * narrow).dtype == np.float32
    weight = np.full((), 2.0, np.float32)
    x = lax.custom_linear_solve(lambda x: weight * x, 3.0, lambda matvec, b: b / weight, symmetric=True)
    assert (x * narrow).dtype == np.float32


def test_solvers_call_with_numbers_and_are_told_of_other_types():
    def root(a, one):
        def newton(f, x):
            return lax.fori_loop(0, 20, lambda _, x: x - f(x) / (2 * x), x)

        return lax.custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(one))

    two = np.array(2.0)
    np.testing.assert_allclose(tl.grad(root)(two, 1.0), 0.5 / np.sqrt(2), rtol=1e-14)
    message = "custom_root: what a solver calls its function with is float64[3], but the function asks for float64[]."
    with raises(TypeError, message):
        tl.grad(root)(two, np.ones(3))


# ---- roots of what does not fit -------------------------------------------------------------------------------


def same(x):
    return x


def twice(x):
    return x, x


def positive(x):
    return x > 0


def given(f, x):
    return x


def given_twice(f, x):
    return x, x


def first(f, x):
    return x[:1]


def test_what_roots_refuse():
    guess = np.ones(3, np.float32)
    trees = (
        "gives another structure than that of initial_guess.\n"
        "  The root is a leaf in initial_guess, a tuple of 2 in the result."
    )
    for f, solve, message in (
        (twice, given, f"custom_root: {place(twice)} {trees}"),
        (positive, given, f"custom_root: {place(positive)} gives bool[3] where initial_guess is float32[3]."),
        (same, given_twice, f"custom_root: {place(given_twice)} {trees}"),
        (same, first, f"custom_root: {place(first)} gives float32[1] where initial_guess is float32[3]."),
        (same, lambda f, x: "a", "custom_root: {} gives 'a' of type str where initial_guess is float32[3]."),
    ):
        with raises(TypeError, message.format(place(solve))):
            lax.custom_root(f, guess, solve, given)
    with raises(TypeError, f"custom_root: {place(given_twice)} {trees}"):
        tl.grad(lambda a: lax.custom_root(lambda x: x - a, guess, given, given_twice).sum())(guess)


def test_solvers_must_give_what_is_besides():
    message = f"with has_aux=True {place(given)} must return (x, aux), but returned float32[3]."
    guess = np.ones(3, np.float32)
    with raises(TypeError, f"custom_root: {message}"):
        lax.custom_root(same, guess, given, given, has_aux=True)
    with raises(TypeError, f"custom_linear_solve: {message}"):
        lax.custom_linear_solve(same, guess, given, has_aux=True)


@pytest.mark.parametrize("has_aux", [False, True])
def test_a_solver_of_roots_closes_over_what_is_differentiated(has_aux):
    def cube_root(a):
        def solve(f, x):
            x = lax.fori_loop(0, 40, lambda _, x: x - (x**3 - a) / (3 * x**2), x)
            return (x, {"residual": f(x), "a": a}) if has_aux else x

        found = lax.custom_root(lambda x: x**3 - a, 1.0, solve, lambda g, y: y / g(1.0), has_aux)
        return found[0] * (1 + 0 * found[1]["a"]) if has_aux else found

    xs = np.array([8.0, 27.0], np.float32)
    for f in (cube_root, tl.jit(cube_root)):
        np.testing.assert_allclose(tl.vmap(f)(xs), [2, 3], rtol=1e-5)
        np.testing.assert_allclose(tl.vmap(tl.grad(f))(xs), [1 / 12, 1 / 27], rtol=1e-5)
        np.testing.assert_allclose(tl.grad(tl.grad(f))(8.0), -2 / 9 * 8 ** (-5 / 3), rtol=1e-4)


RIGHT = np.array([1.0, 2.0])


def _over_a(a):
    """Solutions of a x = RIGHT, by functions that all close over `a`."""
    yield lambda: lax.custom_root(
        lambda x: {"x": x["x"] * a - RIGHT}, {"x": RIGHT}, lambda f, x: {"x": RIGHT / a}, lambda g, y: {"x": y["x"] / a}
    )["x"]
    yield lambda: lax.custom_root(
        lambda x: a * x - RIGHT, RIGHT, lambda f, x: (RIGHT / a, a), lambda g, y: tl.jit(lambda y: y / a)(y), True
    )[0]
    yield lambda: lax.custom_linear_solve(lambda x: a * x, RIGHT, lambda g, b: b / a, lambda g, b: b / a)
    yield lambda: lax.custom_linear_solve(lambda x: a * x, RIGHT, lambda g, b: (b / a, a), None, True, True)[0]


def _within():
    """Places for a function of x: as it is, and in bodies whose own variables it closes over."""
    yield lambda f: f
    yield tl.jit
    yield lambda f: lambda a: lax.scan(lambda c, s: (c + f(a * s), f(c + a)), 0 * a, RIGHT)[0]
    yield lambda f: lambda a: lax.cond(a > 0, lambda a: f(2 * a) + f(a), lambda a: a, a)
    yield lambda f: lambda a: lax.fori_loop(0, 2, lambda i, c: c * f(a + i), a)
    yield lambda f: lambda a: tl.vmap(f)(a * RIGHT).sum()
    yield tl.checkpoint


def _derivatives(loss):
    """Second derivatives in all places, and derivatives of other modes and orders."""
    others = [tl.jacfwd, lambda f: tl.grad(tl.grad(f)), lambda f: lambda a: tl.vmap(tl.grad(f))(a * RIGHT)]
    every = [*[tl.hessian(within(loss)) for within in _within()], *[derived(loss) for derived in others]]
    return lambda a: [f(a) for f in every]


@pytest.mark.parametrize("k", range(4))
def test_functions_of_solvers_close_over_what_is_differentiated(k):
    def loss(a):
        return (list(_over_a(a))[k]() ** 2).sum()

    np.testing.assert_allclose(tl.grad(loss)(2.0), -10 / 8, rtol=1e-5)  # float32
    known = _derivatives(lambda a: ((RIGHT / a) ** 2).sum())
    for ours, right in zip(tl.jit(_derivatives(loss))(1.5), tl.jit(known)(1.5), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4)  # float32
