"""Elementwise functions: what the rows of tests/numpy_agreement/elementwise.py do not say, and dtypes against JAX."""

import itertools
import math
import re

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
FLOATS = RNG.normal(size=(3, 4)).astype(np.float32)
OTHERS = RNG.normal(size=(3, 4)).astype(np.float32)
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -2.5, 2.5], np.float32)
INTEGERS = RNG.integers(-5, 6, (3, 4)).astype(np.int32)
POSITIVE = RNG.integers(1, 6, (3, 4)).astype(np.int32)

OF_FLOATS = """
sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
arctanh deg2rad rad2deg sinc i0
""".split()
CLOSE = {"rtol": 2e-5, "atol": 1e-6}  # float32 functions of XLA are within a few units in the last place of NumPy's


def check(actual, expected, **tolerance):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, **(tolerance or CLOSE))


def quiet(f, *args, **kwargs):
    with np.errstate(all="ignore"):
        return f(*args, **kwargs)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_functions_of_integers_are_of_the_default_float(name):
    found = getattr(tnp, name)(tnp.asarray(POSITIVE))
    assert found.dtype == np.float32 and not found.weak_type
    check(found, quiet(getattr(np, name), POSITIVE.astype(np.float32)))
    assert getattr(tnp, name)(1).weak_type


@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4),
    st.sampled_from(["add", "less", "logaddexp"]),
)
@settings(max_examples=40, deadline=None)
def test_shapes_broadcast(shapes, name):
    x, y = (np.ones(s, np.float32) for s in shapes.input_shapes)
    assert getattr(tnp, name)(x, y).shape == shapes.result_shape
    assert tl.eval_shape(getattr(tnp, name), x, y).shape == shapes.result_shape


def test_powers():
    x = tnp.asarray(FLOATS)
    check(x**2, FLOATS**2)
    check(x**-1, FLOATS**-1.0)
    check(tnp.asarray(POSITIVE) ** 0.5, POSITIVE**0.5)
    check(2**x, 2**FLOATS)
    check(tnp.asarray(INTEGERS) ** tnp.asarray(POSITIVE), INTEGERS**POSITIVE)
    check(tnp.power(3, tnp.asarray(POSITIVE)), 3**POSITIVE)
    assert (tnp.asarray(INTEGERS) ** 3).dtype == np.int32
    assert [str(e.primitive) for e in tl.make_jaxpr(lambda x: x**3)(1.0).eqns] == ["integer_pow"]
    with pytest.raises(TypeError):
        tnp.asarray(INTEGERS) ** -1


def test_rounding():
    check(tnp.round(tnp.asarray(FLOATS), 2), np.round(FLOATS, 2))
    check(tnp.round(tnp.asarray(FLOATS * 100), -1), np.round(FLOATS * 100, -1))
    check(tnp.round(tnp.asarray([0.5, 1.5, 2.5])), [0, 2, 2])
    x = np.array([123, -5.5, np.inf, np.nan, 0, 3e38], np.float32)
    for decimals in (39, 500):  # powers of 10 that float32 does not hold
        np.testing.assert_array_equal(tnp.round(x, decimals), x)
        np.testing.assert_array_equal(tnp.round(x, -decimals), np.where(np.isfinite(x), 0, x))
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.round(halves.astype(np.float64), -5).astype(np.float16)
    np.testing.assert_array_equal(tnp.round(halves, -5), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fractions_of_subnormal_numbers(dtype):
    """Where the processor takes them as 0, they are their own fractions; the product is right in either case."""
    x = np.array([1, 3, -1000, 0], dtype) * np.finfo(dtype).smallest_subnormal
    for compute in (tnp.frexp, tl.jit(tnp.frexp)):
        fraction, exponent = map(np.asarray, compute(x))
        np.testing.assert_array_equal(np.ldexp(fraction, exponent), x)


@pytest.mark.parametrize("name", ["i0", "iscomplex", "isreal", "trunc"])
def test_operands_by_name(name):
    """As NumPy's that are no ufuncs, and JAX's."""
    assert getattr(tnp, name)(x=1.5) == getattr(tnp, name)(1.5)


def test_divmod_has_the_sign_of_the_divisor():
    x, y = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    for dtype in (np.int32, np.float32):
        ours = divmod(tnp.asarray(x.astype(dtype)), tnp.asarray(y.astype(dtype)))
        check(ours[0], x // y)
        check(ours[1], x % y)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint32])
def test_integer_remainders_by_zero_are_zero(dtype):
    x = np.array([6, 5, 0, 127]).astype(dtype)
    x = x if dtype in (np.uint8, np.uint32) else -x
    zero = np.zeros(4, dtype)
    for run in (lambda f: f, tl.jit):
        for name in ("remainder", "mod", "fmod"):
            f = getattr(tnp, name)
            check(run(f)(x, zero), zero)
            check(run(lambda x, f=f: f(x, 0))(x), zero)
            check(run(f)(x, dtype(4)), getattr(np, name)(x, dtype(4)))
        check(run(tnp.divmod)(x, zero)[1], zero)
    check(tnp.asarray(x) % 0, zero)


def test_numbers_too_large_for_a_dtype_are_infinite():
    x = tnp.asarray(np.array(2, np.float16))  # beside a weak one the widest counts, float32
    check(x * 1e10, np.inf)
    check(x - 1e10, -np.inf)
    check(tl.jit(lambda x: x * 1e10)(x), np.inf)


def test_closeness():
    assert bool(tnp.allclose(FLOATS, FLOATS + 1e-7))
    assert not tnp.allclose(FLOATS, OTHERS)
    assert bool(tnp.array_equal(FLOATS, FLOATS)) and not tnp.array_equal(FLOATS, FLOATS[0])
    assert bool(tnp.array_equal(SPECIAL, SPECIAL, equal_nan=True)) and not tnp.array_equal(SPECIAL, SPECIAL)
    assert bool(tnp.array_equiv(FLOATS[0], FLOATS[:1])) and not tnp.array_equiv(FLOATS[0], OTHERS)
    assert bool(tnp.array_equal([1, 2], [1, 2.0])) and not tnp.array_equal([1, 2], [[1, 2]])
    assert bool(tnp.array_equiv([1, 2], [[1, 2], [1, 2]])) and not tnp.array_equiv([1, 2], [1, 3])


# ---- dtypes --------------------------------------------------------------------------------------------------

DTYPES = "bool uint8 int8 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("name", ["add", "divide", "power", "maximum", "arctan2", "logaddexp", "where"])
def test_dtypes_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    exact = name in ("add", "maximum", "where")  # of integers the others are float32 in JAX, here the default float
    operands = [d for d in DTYPES if exact or d not in ("int64", "float64")] + [1, 2.0, 1j]
    with jax.enable_x64(exact), tl.enable_x64(exact):
        for a, b in itertools.product(operands, operands):
            theirs = joint_type(jax, name, a, b)
            if theirs is not None and not (name == "arctan2" and theirs.dtype.kind == "c"):
                ours = joint_type(tl, name, a, b)
                assert ours.dtype == theirs.dtype, (a, b)
                assert ours.weak_type == theirs.weak_type or not exact, (a, b)


def joint_type(lib, name, a, b):
    def f():
        x, y = (lib.numpy.ones(2, v) if isinstance(v, str) else v for v in (a, b))
        return lib.numpy.where(lib.numpy.ones(2, bool), x, y) if name == "where" else getattr(lib.numpy, name)(x, y)

    try:
        return lib.eval_shape(f)
    except (TypeError, ValueError, OverflowError):
        return None


def test_bare_numbers_give_way():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = tnp.ones(2, dtype)
        assert (x * 2.0).dtype == (1 + x).dtype == (x / 3).dtype == (x * np.float64(2)).dtype == dtype
    assert (tnp.ones(2, "int8") + 1).dtype == np.int8
    assert (tnp.ones(2, int) * 2.0).dtype == (tnp.ones(2, int) / 2).dtype == np.float32
    with pytest.raises(OverflowError):
        tnp.ones(2, "int8") + 300


# ---- derivatives where a naive formula has none --------------------------------------------------------------


def test_derivatives_at_awkward_places():
    assert tl.grad(tnp.sinc)(0.0) == 0
    assert math.isclose(tl.grad(tl.grad(tnp.sinc))(0.0), -(np.pi**2) / 3, rel_tol=1e-5)
    assert tl.grad(tnp.logaddexp)(0.0, 0.0) == 0.5
    assert np.isfinite(tl.grad(tnp.logaddexp)(-np.inf, -np.inf))
    assert np.isfinite(tl.grad(tnp.hypot)(0.0, 0.0))
    assert tl.grad(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0.0))(1.0) == 0.5


def test_derivatives_of_what_is_made_of_bits():
    """A fraction is proportional to its number; the next number is, up to rounding, the number."""
    for x, slope in ((3.0, 0.25), (-0.3, 2.0), (0.75, 1.0), (1e30, 2.0**-100), (0.0, 1.0)):
        assert tl.grad(lambda x: tnp.frexp(x)[0])(x) == slope
        assert tl.jvp(lambda x: tnp.frexp(x)[0], (x,), (1.0,))[1] == slope
    assert tl.grad(tl.grad(lambda x: tnp.frexp(x)[0]))(3.0) == 0
    assert tl.grad(tnp.nextafter, argnums=(0, 1))(3.0, 4.0) == (1.0, 0.0)
    assert tl.grad(lambda x: tnp.ldexp(x, 3))(3.0) == 8.0


def test_exponents_far_away():
    """Modulo 2³² they would be near."""
    np.testing.assert_array_equal(tnp.ldexp(1.0, np.array([2**32, -(2**40), 3])), [np.inf, 0, 8])
    assert tnp.ldexp(1.0, np.array(2**63, np.uint64)) == np.inf


@pytest.mark.parametrize(
    ("x", "y", "value", "derivatives"),
    [
        (np.inf, np.nan, np.inf, (1.0, 0.0)),
        (np.nan, -np.inf, np.inf, (0.0, -1.0)),
        (-np.inf, 2.0, np.inf, (-1.0, 0.0)),
        (0.0, -2.0, 2.0, (0.0, -1.0)),
        (0.0, 0.0, 0.0, (0.0, 0.0)),
        (3e30, -4e30, 5e30, (0.6, -0.8)),
        (3e-30, 4e-30, 5e-30, (0.6, 0.8)),
    ],
)
def test_hypot_at_extremes(x, y, value, derivatives):
    """What is infinite beside nan is infinite, as in C, and its derivatives are finite, in both modes and orders."""
    assert math.isclose(tnp.hypot(x, y), value, rel_tol=1e-6)
    np.testing.assert_allclose(tl.grad(tnp.hypot, argnums=(0, 1))(x, y), derivatives, rtol=1e-6)
    forward = [tl.jvp(tnp.hypot, (x, y), t)[1] for t in ((1.0, 0.0), (0.0, 1.0))]
    np.testing.assert_allclose(forward, derivatives, rtol=1e-6)
    assert np.isfinite(tl.hessian(tnp.hypot, argnums=(0, 1))(x, y)).all()


# ---- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tnp.ones((3, 4)) + tnp.ones((5, 6)), ValueError, "+: shapes (3,4) and (5,6) do not broadcast."),
        (lambda: tnp.add([1], 2), TypeError, "add: argument 0 must be an array or a number, not list: [1]."),
        (lambda: tnp.exp("a"), TypeError, "exp: argument 0 must be an array or a number, not str: 'a'."),
        (lambda: -tnp.ones(2, bool), TypeError, "-: booleans have no negative: bool[2]."),
        (
            lambda: tnp.clip(tnp.ones(2, complex), 0, 1),
            TypeError,
            "clip: complex numbers are not ordered: complex64[2].",
        ),
        (
            lambda: tnp.left_shift(1.0, 2),
            TypeError,
            "left_shift: operands must be integers, not float32[] and float32[].",
        ),
        (lambda: tnp.where(True, 1), ValueError, "where: give both x and y, or neither."),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_logaddexp_of_complex_numbers_is_the_principal_value():
    x = np.array([1 + 3j, 100 - 3j, 2 + 40j, np.pi * 1j, -1e3 + 1j])
    y = np.array([2 + 3.5j, 101 - 3.5j, 1 - 3j, -np.pi * 1j, -1e3 - 2j])
    shift = x.real + 0j  # so that nothing overflows
    expected = np.log(np.exp(x - shift) + np.exp(y - shift)) + shift
    found = tl.jit(tnp.logaddexp)(x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(np.abs(found.imag) <= np.pi)
    np.testing.assert_allclose(
        tnp.logaddexp2(x, y), tnp.logaddexp(x * np.log(2), y * np.log(2)) / np.log(2), rtol=1e-12
    )
    derivative = tl.grad(lambda x: tnp.logaddexp(x, y[0]), holomorphic=True)(tnp.asarray(x[0]))
    np.testing.assert_allclose(derivative, np.exp(x[0]) / (np.exp(x[0]) + np.exp(y[0])), rtol=1e-12)


def test_squares_of_booleans_are_integers() -> None:
    """As in JAX; NumPy has them in int8."""
    found = tnp.square(np.array([True, False]))
    assert found.tolist() == [1, 0] and found.dtype == np.int32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spacing_of_small_numbers_is_subnormal(dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.outer([1, -1], smallest * 2.0 ** np.arange(0, 100, 3)).astype(dtype)
    x = np.append(x, np.array([0, -0.0, 1, -1, 3e38, np.inf, -np.inf, np.nan], dtype))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(tnp.spacing(x), np.spacing(x))


def test_booleans_as_exponents_and_shifts():
    mask = np.array([True, False])
    np.testing.assert_array_equal(tnp.ldexp(np.float32([3, 3]), mask), np.ldexp(np.float32([3, 3]), mask))
    for mine, theirs in ((tnp.left_shift, np.left_shift), (tnp.right_shift, np.right_shift)):
        found = mine(mask, np.array([True, True]))
        np.testing.assert_array_equal(found, theirs(mask, np.array([True, True])))
        assert found.dtype == tnp.arange(1).dtype


def test_replacements_of_nan_are_broadcast():
    x, low = np.array([[np.nan, -np.inf], [-np.inf, 1]], np.float32), np.array([3, 4], np.float32)
    np.testing.assert_array_equal(tnp.nan_to_num(x, neginf=low), np.nan_to_num(x, neginf=low))
    message = "nan_to_num: a replacement, float32[3], does not broadcast to the array, float32[2,2]."
    with pytest.raises(ValueError, match=re.escape(message)):
        tnp.nan_to_num(x, nan=np.ones(3, np.float32))


def test_what_is_complex_and_what_is_close_among_other_objects():
    assert tnp.iscomplexobj([1, 2j]) and tnp.isrealobj((np.arange(5),)) and not tnp.iscomplexobj(None)
    keys = tl.random.split(tl.random.key(0), 2)
    np.testing.assert_array_equal(tnp.isclose(keys, keys[0]), [True, False])
