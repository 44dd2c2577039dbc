"""Powers of integers, in which every bit of the exponent counts; complex functions near their zeros and far out."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer.primitives import elementwise as e

EXPONENTS = np.array([0, 1, 2, 63, 64, 65, 100, 127])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_large_powers_of_integers(dtype: Any):
    """Modulo the range of the dtype, as NumPy's."""
    y = EXPONENTS.astype(dtype)
    for base in (3, 31, 2, 0, 1):
        x = np.full_like(y, base)
        np.testing.assert_array_equal(lax.pow(x, y), np.power(x, y))


def test_greatest_exponent():
    x, y = np.array([3, 7], np.uint8), np.array([255, 254], np.uint8)
    np.testing.assert_array_equal(tl.jit(lax.pow)(x, y), [pow(3, 255, 256), pow(7, 254, 256)])


def test_negative_powers_of_integers():
    """Only those of 1 and -1 are integers; 0 is left of others."""
    x = np.array([1, -1, -1, 2, -3, 0, 5], np.int32)
    y = np.array([-4, -3, -2, -1, -2, -1, np.iinfo(np.int32).min], np.int32)
    np.testing.assert_array_equal(lax.pow(x, y), [1, -1, 1, 0, 0, 0, 0])


FUNCTIONS = {"sin": np.sin, "cos": np.cos, "sinh": np.sinh, "cosh": np.cosh}
TINY = [complex(x, y) for x in (0, 1e-12, -3e-5, 1.2) for y in (0, -1e-9, 4e-4, 0.7)]
LARGE = [complex(x, y) for x in (0.5, 9) for y in (-9, 2)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.complex64, 1e-6), (np.complex128, 2e-15)])
def test_complex_functions_are_accurate_near_their_zeros(name: str, dtype: Any, rtol: float):
    """Both parts, each relative to itself."""
    z = np.array(TINY + LARGE, dtype)
    found, wanted = np.asarray(getattr(e, name)(z)), FUNCTIONS[name](z.astype(np.complex128))
    np.testing.assert_allclose(found.real, wanted.real, rtol=rtol)
    np.testing.assert_allclose(found.imag, wanted.imag, rtol=rtol)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_functions_far_out(name: str):
    """Nothing times what has grown beyond all numbers is nothing."""
    z = np.array([1000j, -1000j, 1000, -1000], np.complex64)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(getattr(e, name)(z), FUNCTIONS[name](z))


def test_complex_powers_of_zero():
    y = np.array([1, 2 + 1j, 0.5 - 3j, 0])
    np.testing.assert_array_equal(lax.pow(np.zeros(4, complex), y), [0, 0, 0, 1])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_constants_divided_by_zero(dtype: Any):
    """XLA computes them as it compiles, and ends the process at that of StableHLO (as JAX does)."""
    x, zero = np.array([7, 0, 3], dtype), np.array(0, dtype)

    def f() -> Any:
        seven = np.array(7, dtype)
        nothing = lax.sub(seven, seven)
        return lax.div(seven, zero), lax.rem(seven, nothing), tnp.floor_divide(seven, zero), lax.div(x, nothing)

    all_bits = np.array(-1).astype(dtype)
    for found, wanted in zip(tl.jit(f)(), (all_bits, 7, 0, [all_bits] * 3)):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(tl.jit(lax.rem)(x, np.zeros(3, dtype)), x)


def test_log1p_of_negative_numbers():
    """XLA's has an error of 120 ulp around -0.41."""
    x = np.append(np.linspace(-1, 1, 20001), [-2, np.inf, np.nan, -0.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tnp.log1p(x), np.log1p(x), rtol=4e-16)


# ---- exponentials of nan that the compiler knows -------------------------------------------------------------

X, ONES = np.linspace(0.1, 0.9, 37, dtype=np.float32), np.ones(37, np.float32)
WITH_NAN = {
    "added": lambda x, y, c: x + np.nan,
    "written": lambda x, y, c: x.at[3].set(np.nan),
    "padded": lambda x, y, c: tnp.pad(x, 3, constant_values=np.nan),
    "quotient of paddings": lambda x, y, c: tnp.pad(x, 3) / tnp.pad(y, 3),
    "difference of infinities": lambda x, y, c: (x + np.inf) - np.inf,
    "logarithm of padding": lambda x, y, c: tnp.log(tnp.pad(x, 3, constant_values=-1.0)),
    "logarithm of a number": lambda x, y, c: x + tnp.log(-1.0),
    "chosen": lambda x, y, c: tnp.where(c, x, np.nan),
}
OF_EXPONENTIALS = {
    "exp": tnp.exp,
    "expm1": tnp.expm1,
    "logistic": lax.logistic,
    "sinh": tnp.sinh,
    "cosh": tnp.cosh,
    "complex sine": lambda x: tnp.sin(x * (1 + 2j)),
    "bfloat16": lambda x: tnp.exp(x.astype(tnp.bfloat16)),
}


@pytest.mark.parametrize("name", WITH_NAN)
def test_exponentials_of_nan(name: str, optimized: Any):
    """XLA's are memory that nobody wrote: see docs/xla_defects.md. Each is a program of its own."""
    make, args = WITH_NAN[name], (tnp.asarray(X), tnp.asarray(ONES), tnp.asarray(False))
    with_nan = make(*args)
    assert np.isnan(with_nan).any()
    for f in OF_EXPONENTIALS.values():
        found = tl.jit(lambda *args, f=f: f(make(*args)))(*args)
        np.testing.assert_allclose(found.astype(np.complex64), f(with_nan).astype(np.complex64), rtol=1e-5)  # fused
