"""Distributions against SciPy: inside of supports, at their ends and beyond, bad parameters, derivatives, JAX's names.

All functions of a distribution, all of its parameters, are one program.
"""

import inspect
import math
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.scipy import stats
from tapeless.tracer.array import ArrayLike
from tests.messages import raises

inf, nan = np.inf, np.nan
X = np.array(
    [-inf, -30, -3, -1, -0.5, -0.0, 0, 1e-8, 0.25, 0.5, 0.9, 1 - 1e-9, 1, 1.5, 2, 3, 6.2, 6.5, 10, 40, inf, nan]
)
K = np.array([-1.0, 0, 1, 2, 3, 4.5, 7, 10, 11, 30, nan])
Q = np.array([-0.1, 0, 1e-300, 1e-9, 0.1, 0.2499, 0.25, 0.3, 0.5, 0.7, 0.75, 0.8, 1 - 1e-9, 1, 1.1, nan])
CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    **{name: [()] for name in "norm cauchy uniform expon laplace logistic gumbel_l gumbel_r".split()},
    "pareto": [(2.5,), (0.3,), (-1.0,)],
    "beta": [(2.0, 3.0), (0.5, 0.5), (1.0, 1.0), (1.0, 4.0), (0.0, 1.0)],
    "gamma": [(0.5,), (1.0,), (3.0,), (30.0,), (-1.0,)],
    "chi2": [(1.0,), (2.0,), (7.0,)],
    "gennorm": [(2.0,), (0.7,), (8.0,), (-1.0,)],
    "t": [(1.0,), (4.0,), (1e7,), (inf,), (-1.0,)],
    "truncnorm": [(-1.0, 2.0), (2.0, 5.0), (-inf, 1.2), (-1.2, inf), (9.0, 40.0), (-40.0, -10.0), (2.0, 1.0)],
    "vonmises": [(0.5,), (300.0,), (0.0,)],
    "wrapcauchy": [(0.3,), (0.9,), (1.0,)],
}
DISCRETE: dict[str, list[tuple[float, ...]]] = {
    "bernoulli": [(0.3,), (0.0,), (1.0,), (1.2,)],
    "binom": [(10.0, 0.3), (0.0, 0.4), (10.0, 0.0), (10.0, 1.0), (2.5, 0.3)],
    "nbinom": [(3.0, 0.2), (2.5, 1.0), (-1.0, 0.2)],
    "geom": [(0.3,), (1.0,), (0.0,)],
    "betabinom": [(10.0, 2.0, 3.0), (0.0, 1.0, 1.0), (10.0, -1.0, 2.0)],
    "poisson": [(0.0,), (3.0,), (200.0,), (-1.0,)],
}


def functions(name: str) -> list[str]:
    return [f for f in getattr(stats, name).__all__ if f != "entropy"]


def at(name: str, f: str, dtype: str = "f8") -> Any:
    """Where to compare; numbers of float32 if that is the dtype."""
    x = Q if f in ("ppf", "isf") else K if name in DISCRETE else X
    return x.astype(dtype).astype(float)


def parameters(name: str) -> list[Any]:
    """Each with loc and scale 0 and 1 and others, as columns [p, 1]; scale is once negative."""
    sets = {**CONTINUOUS, **DISCRETE}[name]
    moved = [(0.0,), (1.0,)] if name in DISCRETE else [(0.0, 1.0), (0.5, 2.0), (0.0, -1.0)]
    return [np.array(column)[:, None] for column in zip(*[(*p, *m) for p in sets for m in moved], strict=True)]


def right(scipy_stats: Any, name: str, f: str, dtype: str = "f8") -> Any:
    """SciPy's values, but for its nan at infinity, where densities are 0, and its quantile -1 of bernoulli at 0."""
    x, columns = at(name, f, dtype), parameters(name)
    with np.errstate(all="ignore"):
        wanted = np.array(getattr(getattr(scipy_stats, name), f)(x, *columns))
    if name.startswith(("gumbel", "gamma", "chi2")) and f in ("pdf", "logpdf"):
        valid = ~np.isnan(wanted).all(1)
        wanted[valid] = np.where(np.isinf(x), 0 if f == "pdf" else -inf, wanted[valid])
    if name == "bernoulli" and f == "ppf":
        p, loc = columns
        wanted = np.where((x == 0) & (p <= 1), loc, np.where((x == 1) & (p == 0), loc, wanted))
    return wanted


def all_of(name: str) -> Any:
    module = getattr(stats, name)
    return tl.jit(lambda xs, *columns: [getattr(module, f)(x, *columns) for f, x in zip(functions(name), xs)])


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_values(name: str):
    scipy_stats = pytest.importorskip("scipy.stats")
    xs = [at(name, f) for f in functions(name)]
    for f, found in zip(functions(name), all_of(name)(xs, *parameters(name)), strict=True):
        wanted = right(scipy_stats, name, f)
        assert found.dtype == np.float64
        # Logarithms near 0 are differences; SciPy's own, of the truncated normal distribution, lose 8 digits there.
        loose = name == "truncnorm" and f in ("sf", "logsf", "cdf", "logcdf")
        atol = 1e-12 if f.startswith("log") else 1e-300
        np.testing.assert_allclose(found, wanted, rtol=1e-8 if loose else 2e-11, atol=atol, err_msg=f"{name}.{f}")


@pytest.mark.parametrize("name", ["norm", "beta", "gumbel_r"])
def test_single_precision(name: str):
    scipy_stats = pytest.importorskip("scipy.stats")
    narrow = [at(name, f).astype("f4") for f in functions(name)], *[c.astype("f4") for c in parameters(name)]
    for f, found in zip(functions(name), all_of(name)(*narrow), strict=True):
        assert found.dtype == np.float32
        wanted = right(scipy_stats, name, f, "f4")
        np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-6, err_msg=f"{name}.{f}")


INNER = {"pareto": (1.2, 3), "beta": (0.1, 0.9), "truncnorm": (-0.9, 1.9), "wrapcauchy": (0.5, 5)}
WITHOUT = {
    "beta": ("cdf", "logcdf", "sf", "logsf"),  # by a and b the incomplete beta function has no derivative
    "truncnorm": ("pdf", "cdf", "sf", "logsf"),  # they are made of the others, and slow to compile
}


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "chi2"])
def test_derivatives(name: str):
    """By all parameters, in both modes."""
    module, first = getattr(stats, name), CONTINUOUS[name][0]
    names = [f for f in functions(name) if f not in WITHOUT.get(name, ())]
    x = np.linspace(*INNER.get(name, (0.1, 0.9)), 5)
    columns = [x, *[np.full(5, p) for p in first], np.full(5, -0.01), np.full(5, 1.05)]
    tl.testing.check_grads(
        tl.jit(lambda *args: tnp.stack([getattr(module, n)(*args) for n in names])), columns, 1, rtol=1e-6, eps=1e-5
    )


@pytest.mark.parametrize("name", ["bernoulli", "binom", "nbinom", "geom", "poisson"])
def test_derivatives_of_probabilities(name: str):
    module = getattr(stats, name)
    first = np.float64((3.0,) if name == "poisson" else DISCRETE[name][0])
    fixed = int(name == "binom")  # n is a whole number
    k = np.float64([0, 1] if name == "bernoulli" else [1, 2, 4])
    tl.testing.check_grads(
        tl.jit(lambda *p: module.logpmf(k, *first[:fixed], *p)), first[fixed:], 1, rtol=1e-6, eps=1e-5
    )


def test_slopes_of_bernoulli_probabilities():
    """Those of p and 1 - p, also where a probability is 0 and its logarithm infinite."""
    slopes = tl.vmap(tl.grad(stats.bernoulli.pmf, 1))(np.float32([1, 1, 0, 0, 2]), np.float32([0, 1, 0, 1, 0.5]))
    np.testing.assert_array_equal(slopes, [1, 1, -1, -1, 0])


def test_nothing_is_nan_outside_of_supports():
    """Where the density is 0 for sure, so are its derivatives."""

    @tl.jit
    @tl.grad
    def slope(x: Any) -> Any:
        return sum(
            getattr(stats, n).pdf(x[0], *CONTINUOUS[n][0])
            for n in ("beta", "gamma", "chi2", "expon", "pareto", "uniform")
        ) + stats.truncnorm.pdf(x[0], -inf, -3.0)

    np.testing.assert_array_equal(slope(np.float64([-0.5])), 0)

    def tails(x: Any) -> Any:
        names = ("cdf", "sf", "logcdf", "logsf")
        return [getattr(d, f)(x, *[0.5] * n) for d, n in ((stats.beta, 2), (stats.gamma, 1)) for f in names]

    values, slopes = tl.jvp(tl.jit(tails), (np.float64(-1),), (1.0,))
    np.testing.assert_array_equal(values, [0, 1, -inf, 0] * 2)
    np.testing.assert_array_equal(slopes, 0)


def test_entropy():
    scipy_stats = pytest.importorskip("scipy.stats")
    mu = np.array([0, 0.5, 3, 9, 30, 99, 101, 500])
    found = stats.poisson.entropy(mu, np.zeros((2, 1)))
    np.testing.assert_allclose(found[1], [scipy_stats.poisson.entropy(v) for v in mu], rtol=1e-9, atol=1e-12)
    k = np.arange(2000)
    p = scipy_stats.poisson.pmf(k, 500.0)
    np.testing.assert_allclose(found[0, -1], -np.sum(p[p > 0] * np.log(p[p > 0])), rtol=1e-11)
    # terms of the order of 1 cancel to 0.01: 20 of their units in the last place
    np.testing.assert_allclose(tl.grad(lambda m: stats.poisson.entropy(m))(50.0), 1 / 100 + 1 / 30000, atol=20 * 2**-23)


def test_parameters_are_those_of_jax():
    theirs = pytest.importorskip("jax.scipy.stats")
    for name in (n for n in dir(theirs) if not n.startswith("_")):
        mine, other = getattr(stats, name), getattr(theirs, name)
        names = [n for n in dir(other) if not n.startswith("_")] if isinstance(other, ModuleType) else None
        for f, g in [(getattr(mine, n), getattr(other, n)) for n in names] if names else [(mine, other)]:
            wanted = list(inspect.signature(g).parameters)
            assert list(inspect.signature(f).parameters)[: len(wanted)] == wanted, (name, f)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_functions_are_what_their_formulas_are_decorated_as(name: str):
    """Their parameters are declared once for all; to tools each looks like a function that is written out."""
    module = getattr(stats, name)
    shapes = len({**CONTINUOUS, **DISCRETE}[name][0])
    for f in (getattr(module, n) for n in module.__all__):
        declared = inspect.signature(f).parameters
        defaults = {n: p.default for n, p in declared.items() if p.default is not p.empty}
        assert defaults == ({"loc": 0} if name in DISCRETE else {"loc": 0, "scale": 1})
        assert len(declared) == shapes + len(defaults) + (f.__name__ != "entropy")
        assert f.__annotations__ == dict.fromkeys(declared, ArrayLike) | {"return": tl.Array}
        first, common, errors = inspect.getdoc(f).replace("\n\n", "\n").splitlines()
        assert first.startswith("Compute the ") and first.endswith(".") and ", elementwise" in first
        assert common.startswith("Operands broadcast; the result is nan unless ")
        assert errors == "Raises: TypeError for complex numbers, ValueError if shapes do not broadcast."
        assert f.__qualname__ == f.__name__ and f.__module__ == module.__name__ and pickle.loads(pickle.dumps(f)) is f
        names = list(inspect.signature(inspect.unwrap(f)).parameters)
        assert names == list(declared), "a formula takes what is declared, by position"


def test_calls_of_functions_whose_parameters_are_declared():
    """Operands by name, and Python's own errors for wrong calls."""
    x, a, b = np.float64([0.25, 0.5]), 2.0, np.float64(3)
    wanted = stats.beta.cdf(x, a, b, 0.1, 1.5)
    np.testing.assert_array_equal(stats.beta.cdf(scale=1.5, loc=0.1, b=b, x=x, a=a), wanted)
    np.testing.assert_array_equal(stats.beta.cdf(x, a, scale=1.5, b=b, loc=0.1), wanted)
    np.testing.assert_array_equal(stats.beta.cdf(x, a, b, scale=1.5), stats.beta.cdf(x, a, b, 0, 1.5))
    calls: list[tuple[Any, str]] = [
        (lambda: stats.beta.cdf(x), "cdf() missing 2 required positional arguments: 'a' and 'b'"),
        (lambda: stats.norm.ppf(), "ppf() missing 1 required positional argument: 'q'"),
        (lambda: stats.norm.pdf(x, 0, 1, 2), "pdf() takes from 1 to 3 positional arguments but 4 were given"),
        (lambda: stats.norm.pdf(x, x=1), "pdf() got multiple values for argument 'x'"),
        (lambda: stats.norm.pdf(x, sigma=1), "pdf() got an unexpected keyword argument 'sigma'"),
    ]
    for call, message in calls:
        with raises(TypeError, message):
            call()


def test_bad_input():
    with pytest.raises(TypeError, match=r"norm.pdf: takes real numbers"):
        stats.norm.pdf(1j)
    with pytest.raises(ValueError, match=r"gamma.cdf: shapes"):
        stats.gamma.cdf(np.ones(2), np.ones(3))
    assert stats.norm.cdf(np.ones(1, np.float16)).dtype == np.float16
    assert stats.norm.cdf(np.ones(1, np.int32)).dtype == np.float32
    assert stats.beta.pdf(np.zeros((0, 2)), 1, 1).shape == (0, 2)
    np.testing.assert_array_equal(stats.norm.pdf(np.ones(23, np.float32), 0, -1), np.full(23, nan))  # a defect of XLA


def test_upper_tails_of_beta_near_zero():
    """1 - x is 1 there, and most of the mass is below."""
    scipy_stats = pytest.importorskip("scipy.stats")
    args = np.array([[1e-300, 1e-10, 1e-10, 0.2], [1e-300, 1e-10, 3.0, 1e-10], [0.375, 2.0, 0.001, 1.0]])
    for dtype, rtol in (("f8", 1e-12), ("f4", 2e-7)):
        x, a, b = args[:, dtype == "f4" :].astype(dtype)
        expected = scipy_stats.beta.sf(*[v.astype(float) for v in (x, a, b)])
        np.testing.assert_allclose(stats.beta.sf(x, a, b), expected, rtol=rtol)
        np.testing.assert_allclose(stats.beta.logsf(x, a, b), np.log(expected), rtol=rtol, atol=1e-30)


def test_powers_that_underflow():
    """The generalized normal distribution of a large power is flat, and its distribution function is not."""
    x, density = np.array([-0.25, -1e-3, 1e-3, 0.25, 0.9]), 0.5 / math.gamma(1.001)
    for dtype, rtol in (("f8", 1e-13), ("f4", 2e-6)):
        y, power = x.astype(dtype), np.full(5, 1000, dtype)
        found, slope = tl.jvp(stats.gennorm.cdf, (y, power), (np.ones_like(y), np.zeros_like(power)))
        np.testing.assert_allclose(found, 0.5 + density * y, rtol=rtol)
        np.testing.assert_allclose(slope, density, rtol=rtol)


def test_truncated_normal_across_zero_and_far_outside():
    """Of intervals beside 0 the tails cancel; at 1e300 the logarithm of a tail overflows."""
    scipy_stats = pytest.importorskip("scipy.stats")
    x = np.array([1e-10, -1e-10, -1e300, -1e300, 1e300, 1e300])
    a, b = np.array([[0, 0.5], [-0.5, 1], [-inf, -4], [-inf, 0.5], [-40, inf], [5, inf]]).T
    density = np.exp(-0.5e-20) / np.sqrt(2 * np.pi)
    expected = np.append(1e-10 * density / (scipy_stats.norm.cdf(0.5) - 0.5), scipy_stats.truncnorm.cdf(x, a, b)[1:])
    for dtype, rtol in (("f8", 1e-13), ("f4", 3e-6)):
        far = np.sqrt(np.finfo(dtype).max) * 1e10  # its square overflows
        args = [v.astype(dtype) for v in (np.clip(x, -far, far), a, b)]
        np.testing.assert_allclose(stats.truncnorm.cdf(*args), expected, rtol=rtol)
        np.testing.assert_allclose(stats.truncnorm.sf(*args), 1 - expected, rtol=rtol)


def test_derivatives_at_the_ends():
    """The density, in both modes: where |y| has none, and of gamma at 0 and below."""
    for cdf, x, density in (
        (stats.laplace.cdf, [0.0, -0.0, 1.0], [0.5, 0.5, 0.5 / math.e]),
        (lambda x: stats.gennorm.cdf(x, 2.0), [0.0, -0.0], [1 / math.sqrt(math.pi)] * 2),
        (lambda x: stats.gamma.cdf(x, 2.5), [0.0, -1.0], [0, 0]),
        (lambda x: stats.chi2.sf(x, 2.0), [0.0, -1.0], [-0.5, 0]),
    ):
        x = np.array(x)
        np.testing.assert_allclose(tl.vmap(tl.grad(cdf))(x), density, rtol=1e-15)
        np.testing.assert_allclose(tl.jvp(cdf, (x,), (np.ones_like(x),))[1], density, rtol=1e-15)
