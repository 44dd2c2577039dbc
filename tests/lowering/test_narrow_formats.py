"""Formats of fewer than 32 bits, compiled as users compile: conversions round once, and so does every operation.

The oracle is NumPy with ml_dtypes: functions are computed in float64.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.fuzzing import oracle

pytestmark = [
    pytest.mark.usefixtures("optimized"),
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in cast:RuntimeWarning"),
]

FLOATS = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3b11fnuz", "float4_e2m1fn"]
INTEGERS = ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint32"]


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def all_numbers(name: str) -> np.ndarray[Any, Any]:
    """Every number of a format, infinities and nan among them."""
    dtype = dtype_of(name)
    bits = np.arange(16 if name.startswith("float4") else 256**dtype.itemsize)
    return bits.astype(f"uint{8 * dtype.itemsize}").view(dtype)


def finite(name: str) -> np.ndarray[Any, Any]:
    x = all_numbers(name)
    return x[np.isfinite(x.astype(np.float64)) & ~subnormal(x)]


def subnormal(x: Any) -> Any:
    """Of float32, in which numbers of bfloat16 are computed: XLA takes them for 0."""
    size = np.abs(x.astype(np.float64))
    return (size > 0) & (size < 2.0**-126)


def assert_same(found: Any, wanted: Any) -> None:
    """Agree as numbers, signs of zeros included; a nan is a nan."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted))


def near_ties(name: str) -> np.ndarray[Any, Any]:
    """Numbers of a format, those halfway between them, some beyond the last, and the neighbours of all these."""
    grid = np.unique(finite(name).astype(np.float64))
    grid = grid if len(grid) < 300 else np.concatenate([grid[:: len(grid) // 1000], grid[-2:]])
    halfway = (grid[1:] + grid[:-1]) / 2
    beyond = grid[-1] + (grid[-1] - grid[-2]) * np.array([0.25, 0.5, 0.75, 1, 40])
    x = np.concatenate([grid, halfway, beyond, -beyond, [np.inf, -np.inf]]).astype(np.float32)
    with np.errstate(over="ignore"):
        x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, -np.float32(np.inf))])
    return x[~subnormal(x)]


def test_conversions_round_to_nearest():
    """A conversion to a narrower format and back rounds, too, and one by float16 rounds twice."""
    x = np.concatenate([near_ties(name) for name in FLOATS])
    narrow = [name for name in FLOATS if name != "float4_e2m1fn"]

    def f(x):
        rounded = [x.astype(name) for name in FLOATS]
        return rounded, [y.astype("float32") for y in rounded], [x.astype("float16").astype(name) for name in narrow]

    rounded, back, twice = tl.jit(f)(x)
    for name, y, z in zip(FLOATS, rounded, back, strict=True):
        wanted = x.astype(dtype_of(name))
        assert_same(y, wanted)
        assert_same(z, wanted.astype(np.float32))
    for name, y in zip(narrow, twice, strict=True):
        assert_same(y, x.astype(np.float16).astype(dtype_of(name)))


def test_conversions_in_small_loops():
    """XLA would make one kernel of such a loop, with other conversions."""
    names = ["float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"]
    points = [near_ties(name) for name in names]

    def f(*points):
        return [lax.map(lambda x, name=name: x.astype(name), x) for x, name in zip(points, names, strict=True)]

    for x, name, y in zip(points, names, tl.jit(f)(*points), strict=True):
        assert_same(y, x.astype(dtype_of(name)))


@pytest.mark.parametrize("name", FLOATS)
def test_conversions_to_integers_saturate(name: str):
    """Towards zero; nan becomes 0."""
    x = all_numbers(name)
    wide = np.nan_to_num(x.astype(np.float64), nan=0)
    for y in tl.jit(lambda x: [x.astype(integer) for integer in INTEGERS])(x):
        info = ml_dtypes.iinfo(y.dtype)
        wanted = np.clip(np.trunc(wide), int(info.min), int(info.max))
        np.testing.assert_array_equal(np.asarray(y).astype(np.int64), wanted.astype(np.int64))


FUNCTIONS = {
    lax.logistic: scipy.special.expit,
    lax.exp: np.exp,
    lax.expm1: np.expm1,
    lax.log1p: np.log1p,
    lax.tanh: np.tanh,
    lax.erfc: scipy.special.erfc,
    lax.acosh: np.arccosh,
    lax.rsqrt: lambda x: 1 / np.sqrt(x),
    lax.bessel_i1e: scipy.special.i1e,
    lambda x: lax.pow(x, tnp.asarray(-0.15625, x.dtype)): lambda x: np.power(x, -0.15625),
    lambda x: lax.pow(x, np.int32(257)): lambda x: np.power(x, 257),
}


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_functions_of_all_numbers(name: str):
    """To one unit in the last place: no step of a function is rounded to the format, or leaves its range."""
    x, info = finite(name), ml_dtypes.finfo(dtype_of(name))
    found = tl.jit(lambda x: [f(x) for f in FUNCTIONS])(x)
    with np.errstate(all="ignore"):
        for function, y in zip(FUNCTIONS.values(), found, strict=True):
            exact = function(x.astype(np.float64))
            exact = np.where(np.abs(exact) < 2.0**-126, 0, exact)
            wanted = exact.astype(x.dtype).astype(np.float64)
            unit = np.maximum(np.abs(wanted) * float(info.eps), float(info.smallest_subnormal))
            off = np.abs(np.asarray(y).astype(np.float64) - wanted)
            assert ((off <= unit) | (y.astype(np.float64) == wanted) | np.isnan(wanted) & np.isnan(y)).all()


@pytest.mark.parametrize("divisor", [1e-5, 1.5e-5, 3.0, 257.0, 6e4])
def test_quotients_by_what_is_broadcast(divisor: float):
    """XLA multiplies by the reciprocal, which float16 has not or has with few digits: as in softmax."""
    x, y = finite("float16"), np.float16(divisor)
    with np.errstate(over="ignore"):
        assert_same(tl.jit(lax.div)(x, y), x / y)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_products_of_fewer_than_8_bits(name: str, rng: np.random.Generator):
    """XLA does not compile them to a wider result."""
    x, y = (rng.choice(finite(name), shape) for shape in ((3, 5), (5, 4)))
    total = x.astype(np.float64) @ y.astype(np.float64)
    results = ("float32", "bfloat16", None) if "float" in name else ("int32", "int8", None)
    dims = (((1,), (0,)), ((), ()))
    found = tl.jit(lambda x, y: [lax.dot_general(x, y, dims, preferred_element_type=r) for r in results])(x, y)
    for result, z in zip(results, found, strict=True):
        wanted = total if "float" in name else total.astype(np.int64)
        assert_same(z, wanted.astype(dtype_of(result or name)))


EXTREMES = {
    "softmax": lambda x: tl.nn.softmax(x),
    "masked softmax": lambda x: tl.nn.softmax(x, where=x > 0),
    "log_softmax": lambda x: tl.nn.log_softmax(x),
    "logsumexp": lambda x: tl.nn.logsumexp(x, 1, where=x > 0),
    "nanmax": lambda x: tnp.nanmax(x, 1),
    "argmax": lambda x: tnp.nanargmax(x, 1),
    "masked maximum": lambda x: tnp.max(x, 1, where=x < 0, initial=-3),
    "segments": lambda x: tl.ops.segment_max(x, np.array([1, 0]), 2),
    "running": lambda x: lax.cummin(x, 1),
}


def test_extremes_without_infinities():
    """The least number stands for -inf, which would be nan. The values are those of float32."""
    x = np.array([[0.5, 1, -2, 0.3125], [4, -1, 2, 3]], ml_dtypes.float8_e4m3fn)
    pairs = tl.jit(lambda x: [(f(x), f(x.astype("float32"))) for f in EXTREMES.values()])(x)
    for y, wide in pairs:
        np.testing.assert_allclose(np.asarray(y).astype(float), np.asarray(wide), rtol=0.1, atol=0.06)


PROGRAMS = {
    "product": lambda x, w: (x @ w).astype("float32"),
    "elementwise": lambda x, w: lax.sin(x) * x + x * w - lax.exp(x),
    "softmax": lambda x, w: tl.nn.softmax(x @ w),
    "attention": lambda x, w: tl.nn.softmax(x @ w.T) @ w,
    "loop": lambda x, w: lax.fori_loop(0, 5, lambda i, c: c * x - c * c + w, x),
    "gradient": lambda x, w: tl.grad(lambda w: ((x @ w) ** 2).astype("float32").sum())(w),
    "quantized": lambda x, w: (x.astype("float8_e4m3fn").astype(x.dtype) - x) * w,
}


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_programs_round_every_operation(name: str, rng: np.random.Generator):
    """The values are those of the operations one by one, but for sums in another order that are rounded otherwise."""
    x, w = rng.uniform(-1, 1, (2, 16, 16)).astype(dtype_of(name))
    found = tl.jit(lambda x, w: [f(x, w) for f in PROGRAMS.values()])(x, w)
    for f, y in zip(PROGRAMS.values(), found, strict=True):
        (wanted,) = oracle.evaluate(tl.make_jaxpr(f)(x, w), [x, w])
        y, wanted = (np.asarray(v).astype(np.float64) for v in (y, wanted))
        assert np.mean(y == wanted) > 0.98
