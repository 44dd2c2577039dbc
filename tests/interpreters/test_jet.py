"""Taylor mode: coefficients are those of Cauchy's integral formula, of NumPy's functions on a circle around the point.

Where NumPy has no function of complex numbers, they are compared with nested forward mode.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.experimental.jet import jet
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, V, W = np.array([0.3, 0.7, 0.45]), np.array([0.5, -0.2, 1.0]), np.array([-0.3, 0.4, 0.1])
ORDER, RADIUS, POINTS = 4, 0.125, 32


def curve(t: Any) -> Any:
    """A curve with derivatives X, V, W, 0, .. at 0."""
    return X + V * t + W * t**2 / 2


def derivatives(f: Callable[..., Any]) -> list[Any]:
    """Derivatives of f(curve(t)) at 0, of orders 0 to ORDER; f is analytic, of complex arrays of NumPy."""
    angles = 2 * np.pi * np.arange(POINTS) / POINTS
    values = np.stack([f(curve(RADIUS * np.exp(1j * a))) for a in angles])
    coefficients = np.fft.fft(values, axis=0)[: ORDER + 1] / POINTS
    return [coefficients[k].real * math.factorial(k) / RADIUS**k for k in range(ORDER + 1)]


def jets(*functions: Callable[..., Any], order: int = ORDER) -> list[Any]:
    """The same by jet, of several functions in one program."""
    series = [V, W, *[np.zeros(3)] * (order - 2)]
    values, found = tl.jit(lambda x: jet(lambda x: [f(x) for f in functions], (x,), (series,)))(X)
    return [[y, *terms] for y, terms in zip(values, found, strict=True)]


def nested(f: Callable[..., Any], order: int) -> list[Any]:
    """The same by forward mode of forward mode."""

    def along(t: Any) -> Any:
        return f(curve(t))

    found = [along]
    for _ in range(order):
        found.append(lambda t, g=found[-1]: tl.jvp(g, (t,), (tnp.ones_like(t),))[1])
    return [g(tnp.zeros((), "float64")) for g in found]


def assert_close(found: Any, expected: Any, name: str = "") -> None:
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-7, err_msg=f"{name}, order {k}")


# ---- elementwise functions, products, reductions -------------------------------------------------------------

ELEMENTARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{
        name: (getattr(tnp, name), getattr(np, name))
        for name in (
            "sin cos tan exp expm1 exp2 log log1p log2 sqrt reciprocal sinh cosh tanh arcsin arccos arctan arcsinh "
            "arctanh square negative cumsum cumprod prod sum mean"
        ).split()
    },
    "cbrt": (tnp.cbrt, lambda x: x ** (1 / 3)),
    "sigmoid": (tl.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": (tl.lax.rsqrt, lambda x: x**-0.5),
    "arccosh": (lambda x: tnp.arccosh(1 + x), lambda x: np.arccosh(1 + x)),
    "power": (lambda x: x**x, lambda x: x**x),
    "constant power": (lambda x: x**2.5, lambda x: x**2.5),
    "integer power": (lambda x: x**5 + x**-3, lambda x: x**5 + x**-3),
    "quotient": (lambda x: tnp.sin(x) / (1 + x), lambda x: np.sin(x) / (1 + x)),
    "quotients": (lambda x: 2 / x + x / 3, lambda x: 2 / x + x / 3),
    "division of scalars": (lambda x: x / x[0] + x[1] / x, lambda x: x / x[0] + x[1] / x),
    "logsumexp": (tl.nn.logsumexp, lambda x: np.log(np.exp(x).sum())),
    "softmax": (tl.nn.softmax, lambda x: np.exp(x) / np.exp(x).sum()),
    "where": (lambda x: tnp.where(X > 0.4, tnp.sin(x), x**2), lambda x: np.where(X > 0.4, np.sin(x), x**2)),
    "maximum": (lambda x: tnp.maximum(x, 0.4) * x, lambda x: np.where(X > 0.4, x, 0.4) * x),
    "clip": (lambda x: tnp.clip(x, 0.4, 0.5) * x, lambda x: np.where(X < 0.4, 0.4, np.where(X > 0.5, 0.5, x)) * x),
    "abs": (lambda x: abs(x - 0.5), lambda x: np.where(X > 0.5, x - 0.5, 0.5 - x)),
    "steps": (lambda x: (tnp.floor(3 * x) + tnp.sign(x - 0.5)) * x, lambda x: (np.floor(3 * X) + np.sign(X - 0.5)) * x),
    "constant": (lambda x: tnp.round(x), lambda x: np.round(X)),
    "sorted": (lambda x: tnp.sort(x) ** 2, lambda x: x[np.argsort(X)] ** 2),
    "filled": (lambda x: x.at[tnp.array([1, 7])].get(mode="fill", fill_value=2.0), lambda x: np.array([x[1], 2])),
    "padded": (lambda x: tnp.pad(x, 1, constant_values=3.0) ** 2, lambda x: np.array([3, *x, 3]) ** 2),
    "taken": (lambda x: x[tnp.array([2, 0])] * x[1], lambda x: x[[2, 0]] * x[1]),
    "dot": (lambda x: x @ tnp.outer(x, x) @ tnp.sin(x), lambda x: x @ np.outer(x, x) @ np.sin(x)),
    "one moving": (lambda x: tnp.asarray(np.eye(3) + 1) @ x, lambda x: (np.eye(3) + 1) @ x),
    "convolution": (lambda x: tnp.convolve(x, x), lambda x: np.convolve(x, x)),
    "spectrum": (lambda x: tnp.fft.ifft(tnp.fft.fft(x) ** 2).real, lambda x: np.fft.ifft(np.fft.fft(x) ** 2)),
    "stopped": (lambda x: tl.lax.stop_gradient(x) * x, lambda x: X * x),
    "written": (lambda x: tnp.zeros(5).at[1:4].set(x * x), lambda x: np.concatenate([[0], x * x, [0]])),
}


def test_elementary_functions():
    for name, found in zip(ELEMENTARY, jets(*[f for f, _ in ELEMENTARY.values()]), strict=True):
        assert_close(found, derivatives(ELEMENTARY[name][1]), name)


def test_special_functions():
    special = pytest.importorskip("scipy.special")
    ours = tl.scipy.special
    table = {
        "erf": (ours.erf, special.erf),
        "gammaln": (ours.gammaln, special.loggamma),
        "digamma": (ours.digamma, special.digamma),
        "i0": (ours.i0, lambda x: special.iv(0, x)),
        "expi": (ours.expi, lambda x: special.expi(x)),
    }
    for name, found in zip(table, jets(*[f for f, _ in table.values()]), strict=True):
        assert_close(found, derivatives(table[name][1]), name)


def test_singular_where_functions_are_not():
    """At 0 a power's derivatives are those of the polynomial, without nan."""
    value, terms = jet(lambda x: x**3.0 + x**2 + tnp.sinc(x), (0.0,), ((1.0, 0.0, 0.0, 0.0),))
    np.testing.assert_allclose([value, *terms], [1, 0, 2 - np.pi**2 / 3, 6, np.pi**4 / 5], rtol=1e-4, atol=1e-6)


# ---- programs ------------------------------------------------------------------------------------------------


@tl.custom_jvp
def custom(x: Any) -> Any:
    return tnp.sin(x)


@custom.defjvp
def _custom_jvp(primals: Any, tangents: Any) -> Any:
    return custom(primals[0]), 2 * tnp.cos(primals[0]) * tangents[0]  # twice the derivative, to be told apart


@tl.custom_jvp
def recursive(x: Any) -> Any:
    return tnp.tanh(x)


@recursive.defjvp
def _recursive_jvp(primals: Any, tangents: Any) -> Any:
    y = recursive(primals[0])
    return y, (1 - y * recursive(primals[0])) * tangents[0]


@tl.custom_vjp
def backward(x: Any) -> Any:
    return tnp.sin(x) * x


backward.defvjp(lambda x: (backward(x), x), lambda x, ct: (ct * (tnp.cos(x) * x + tnp.sin(x)),))


def python_scan(x: Any) -> Any:
    carry, ys = x[0], []
    for a in x:
        carry, y = np.sin(carry) * a + x[1], carry * a
        ys.append(y)
    return np.array([carry, *ys])


def scanned(x: Any) -> Any:
    carry, ys = tl.lax.scan(lambda c, a: (tnp.sin(c) * a + x[1], c * a), x[0], x)
    return tnp.concatenate([carry[None], ys])


def python_loop(x: Any, n: int) -> Any:
    y = np.ones(3)
    for _ in range(n):
        y = np.sin(y * x)
    return y


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scan": (scanned, python_scan),
    "fori_loop": (
        lambda x: tl.lax.fori_loop(0, 4, lambda i, y: tnp.sin(y * x), tnp.ones(3, "float64")),
        lambda x: python_loop(x, 4),
    ),
    "while_loop": (
        lambda x: tl.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, tnp.sin(c[1] * x)), (0, 1 + 0 * x))[1],
        lambda x: python_loop(x, 3),
    ),
    "cond": (
        lambda x: tl.lax.cond(x[0] > 0, lambda x: tnp.sin(x), lambda x: tnp.ones(3, "float64"), x),
        lambda x: np.sin(x),
    ),
    "other branch": (
        lambda x: tl.lax.cond(x[0] > 5, lambda x: tnp.sin(x), lambda x: tnp.ones(3, "float64"), x) * x,
        lambda x: x,
    ),
    "jit": (tl.jit(lambda x: tnp.exp(x) * x), lambda x: np.exp(x) * x),
    "checkpoint": (tl.checkpoint(lambda x: tnp.sin(x) * tnp.exp(x)), lambda x: np.sin(x) * np.exp(x)),
    "vmap": (tl.vmap(lambda x: tnp.sin(x) * x), lambda x: np.sin(x) * x),
    "grad": (tl.grad(lambda x: tnp.sin(x).prod()), lambda x: np.cos(x) * np.sin(x).prod() / np.sin(x)),
    "custom_jvp of itself": (recursive, np.tanh),
    "custom_vjp": (backward, lambda x: np.sin(x) * x),
    "custom_linear_solve": (
        lambda x: tl.lax.custom_linear_solve(lambda y: (2 + x) * y, tnp.sin(x), lambda mv, b: b / mv(tnp.ones_like(b))),
        lambda x: np.sin(x) / (2 + x),
    ),
    "custom_root": (
        lambda x: tl.lax.custom_root(
            lambda y: y**3 - x,
            tnp.ones(3, "float64"),
            lambda f, y: tl.lax.fori_loop(0, 40, lambda i, y: y - f(y) / (3 * y**2), y),
            lambda g, y: y / g(tnp.ones_like(y)),
        ),
        lambda x: x ** (1 / 3),
    ),
    "solve": (
        lambda x: tnp.linalg.solve(tnp.outer(x, x) + tnp.eye(3), tnp.sin(x)),
        lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), np.sin(x)),
    ),
    "inv": (lambda x: tnp.linalg.inv(tnp.diag(x) + 1), lambda x: np.linalg.inv(np.diag(x) + 1)),
}


def test_programs():
    for name, found in zip(PROGRAMS, jets(*[f for f, _ in PROGRAMS.values()]), strict=True):
        assert_close(found, derivatives(PROGRAMS[name][1]), name)


def test_user_rules_are_followed():
    """A rule gives the derivative, of higher orders too, whatever the function is."""
    value, (first, second) = jet(custom, (0.3,), ((1.0, 0.0),))
    np.testing.assert_allclose([value, first, second], [np.sin(0.3), 2 * np.cos(0.3), -2 * np.sin(0.3)], rtol=1e-6)


def test_factorizations():
    def symmetric(x: Any) -> Any:
        return tnp.outer(x, x) + tnp.diag(x)

    functions = [
        lambda x: tnp.linalg.cholesky(symmetric(x)),
        lambda x: tnp.linalg.eigh(symmetric(x))[0],
        lambda x: tnp.linalg.qr(symmetric(x))[1],
    ]
    expected = tl.jit(lambda: [nested(f, 2) for f in functions])()
    for found, derivative in zip(jets(*functions, order=2), expected, strict=True):
        assert_close(found, derivative)


# ---- with other transformations ------------------------------------------------------------------------------


def test_compositions():
    def third(x: Any) -> Any:
        return jet(lambda x: tnp.sin(x) * x, (x,), ((1.0, 0.0, 0.0),))[1][2]

    def expected(x: Any, order: int = 3) -> Any:  # of sin(x) x
        return x * np.sin(x + order * np.pi / 2) + order * np.sin(x + (order - 1) * np.pi / 2)

    x = np.float32([0.3, 1.2])
    np.testing.assert_allclose(tl.vmap(third)(x), expected(x), rtol=1e-5)
    np.testing.assert_allclose(tl.jit(tl.vmap(tl.grad(third)))(x), expected(x, 4), rtol=1e-4)
    np.testing.assert_allclose(tl.jvp(third, (0.3,), (1.0,))[1], expected(0.3, 4), rtol=1e-4)
    np.testing.assert_allclose(jet(third, (0.3,), ((1.0, 0.0),))[1], expected(0.3, np.array([4, 5])), rtol=1e-4)


def test_curves_stay_apart():
    """A curve inside of another's function does not take part in it."""

    def inner(x: Any, y: Any) -> Any:
        return jet(lambda z: z * x, (y,), ((1.0, 0.0),))[1][0]

    assert [float(t) for t in jet(lambda x: inner(x, 2.0) * x, (3.0,), ((1.0, 0.0),))[1]] == [6.0, 2.0]
    assert [float(t) for t in jet(lambda x: inner(2.0, x), (3.0,), ((1.0, 0.0),))[1]] == [0.0, 0.0]


def test_polynomial_cost():
    """Twice the order takes about four, at most eight times as many operations."""
    x = np.float32([0.3, 0.7, 0.45])
    functions = [f for name, (f, _) in ELEMENTARY.items() if name in ("sin", "power", "softmax", "arcsin", "quotient")]
    for f in [*functions, recursive, PROGRAMS["solve"][0], PROGRAMS["custom_vjp"][0]]:

        def operations(order: int, f: Any = f) -> int:
            return len(tl.make_jaxpr(lambda x: jet(f, (x,), ([x] * order,)))(x).jaxpr.eqns)

        assert operations(16) <= 8 * operations(8)


# ---- arguments -----------------------------------------------------------------------------------------------


def test_pytrees_and_scaling():
    def f(p: Any, n: Any) -> Any:
        return {"y": p["a"] * p["b"] * n, "n": n}

    zero = np.zeros((), tl.dtypes.float0)
    p, first, second = ({"a": a, "b": b} for a, b in ((2.0, 3.0), (1.0, 0.0), (0.0, 4.0)))
    value, series = jet(f, (p, 5), ((first, second), (zero, zero)))
    assert float(value["y"]) == 30.0 and [float(t) for t in series["y"]] == [15.0, 40.0]
    assert int(value["n"]) == 5 and [t.dtype for t in series["n"]] == [tl.dtypes.float0] * 2
    _, scaled = jet(f, (p, 5), ((first, second), (zero, zero)), factorial_scaled=False)
    assert [float(t) for t in scaled["y"]] == [15.0, 40.0]
    _, scaled = jet(tnp.exp, (0.0,), ((1.0, 0.0, 0.0),), False)
    np.testing.assert_allclose(scaled, [1, 1 / 2, 1 / 6], rtol=1e-6)
    value, nothing = jet(tnp.exp, (0.0,), ((),))
    assert float(value) == 1.0 and nothing == []
    _, terms = jet(tnp.sin, (tnp.ones(2, "float16"),), ((tnp.ones(2, "float16"),),))
    assert terms[0].dtype == np.float16


def test_errors():
    with raises(ValueError, "jet: series differ in length: they have 1, 2 terms."):
        jet(tnp.add, (1.0, 2.0), ((1.0,), (1.0, 2.0)))
    with raises(ValueError, "jet: there are 1 primals, but 2 series."):
        jet(tnp.sin, (1.0,), ((1.0,), (1.0,)))
    with raises(TypeError, "jet: primals and series must be tuples or lists, and each of series, too."):
        jet(tnp.sin, (1.0,), (1.0,))
    with raises(TypeError, "jet: term 2 of x is float32[2], but the primal float32[3] asks for float32[3]."):
        jet(tnp.sin, (tnp.ones(3),), ((tnp.ones(3), tnp.ones(2)),))
    with pytest.raises(TypeError, match="belongs to a primal of integer type, int32"):
        jet(lambda x: x * 1.0, (3,), ((1.0,),))
    with pytest.raises(ValueError, match=r"pure_callback: .* is opaque, it has no derivative"):
        jet(lambda x: tl.pure_callback(np.sin, tl.ShapeDtypeStruct((), np.float32), x), (1.0,), ((1.0,),))


def test_numbers_of_jax():
    """In the words of JAX: the same arguments, the same nesting of what is returned."""
    pytest.importorskip("jax")
    from jax import numpy as jnp  # noqa: PLC0415
    from jax.experimental.jet import jet as theirs  # noqa: PLC0415  # where JAX is

    def f(xp: Any, x: Any, y: Any) -> Any:
        return xp.sin(x) * xp.exp(y), (xp.tanh(x @ y), xp.log(y) / x)

    x, y = np.float32([0.3, 0.7]), np.float32([1.2, 0.4])
    series = ((y, x, y), (x, y, x))
    expected = theirs(lambda x, y: f(jnp, x, y), (x, y), series)
    found = jet(lambda x, y: f(tnp, x, y), (x, y), series)
    assert str(tl.tree.structure(found)) == str(tl.tree.structure(expected))
    for a, b in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
