"""Dtypes of results under both default widths, where NumPy's rules and JAX's differ: they are JAX's."""

import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("eager_by_steps")

NARROW = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
AS_FLOATS = {
    "mean": lambda x: tnp.mean(x),
    "var": lambda x: tnp.var(x),
    "nanmean": lambda x: tnp.nanmean(x),
    "median": lambda x: tnp.median(x),
    "average": lambda x: tnp.average(x, weights=x),
    "sin": lambda x: tnp.sin(x),
    "sqrt": lambda x: tnp.sqrt(x),
    "hypot": lambda x: tnp.hypot(x, x),
    "divide": lambda x: x / x,
    "linspace": lambda x: tnp.linspace(x[0], x[1], 3),
    "norm": lambda x: tnp.linalg.norm(x),
    "histogram": lambda x: tnp.histogram(x, 2)[0],
    "edges": lambda x: tnp.histogram(x, 2)[1],
    "weights": lambda x: tnp.histogram(x, 2, weights=x)[0],
    "std": lambda x: tnp.std(x),
    "interp": lambda x: tnp.interp(x, x, x),
    "polyfit": lambda x: tnp.polyfit(x, x, 1),
    "trapezoid": lambda x: tnp.trapezoid(x),
    "inv": lambda x: tnp.linalg.inv(tnp.diag(x)),
    "solve": lambda x: tnp.linalg.solve(tnp.diag(x), x),
    "fft": lambda x: tnp.fft.fft(x).real,
    "gammaln": lambda x: tl.scipy.special.gammaln(x),
}
BESIDE_A_NUMBER = {
    "times": lambda x: 0.1 * x,
    "times a number of NumPy": lambda x: np.float64(0.1) * x + np.float32(0.1),
    "plus": lambda x: x + 0.5,
    "power": lambda x: x**0.3,
    "where": lambda x: tnp.where(x > 1, x, 0.5),
    "polyval": lambda x: tnp.polyval(x, 0.1),
    "rint": lambda x: tnp.rint(x),
    "complex": lambda x: (1j * x).real,
    "frequencies": lambda x: tnp.fft.fftfreq(4, x[0]),
}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("f", AS_FLOATS.values(), ids=AS_FLOATS)
def test_integers_become_floating_point(f, bits):
    """Those under 64 bits float32, those of 64 bits float64, whatever the default width."""
    with tl.enable_x64(bits == 64):
        for dtype in NARROW:
            assert tl.eval_shape(f, np.ones(2, dtype)).dtype == np.float32, dtype
        for dtype in (np.int64, np.uint64):
            assert tl.eval_shape(f, np.ones(2, dtype)).dtype == np.float64, dtype


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("f", BESIDE_A_NUMBER.values(), ids=BESIDE_A_NUMBER)
def test_integers_beside_a_float_of_no_stated_width(f, bits):
    """Those under 64 bits have the default width, those of 64 bits have 64."""
    with tl.enable_x64(bits == 64):
        for dtype in (np.int16, np.int32, np.uint32):
            assert tl.eval_shape(f, np.ones(2, dtype)).dtype == f"float{bits}", dtype
        for dtype in (np.int64, np.uint64):
            assert tl.eval_shape(f, np.ones(2, dtype)).dtype == np.float64, dtype


@pytest.mark.parametrize("f", (AS_FLOATS | BESIDE_A_NUMBER).values(), ids=AS_FLOATS | BESIDE_A_NUMBER)
def test_integers_of_64_bits_in_programs_that_are_as_in_jax(f):
    with tl.config.scope(numpy_bits=32):
        assert tl.eval_shape(f, tl.ShapeDtypeStruct((2,), np.int64)).dtype == np.float32


def test_integers_of_64_bits_are_not_rounded():
    """2**24 + 1 has no float32."""
    n = np.array([2**24 + 1, 2**24 + 3, 2**24 + 5])
    for mean in (tnp.mean, tl.jit(tnp.mean)):
        assert float(mean(n)) == 2**24 + 3
    np.testing.assert_array_equal(tl.jit(lambda n: 0.5 * n)(n), 0.5 * n)
    np.testing.assert_array_equal(tl.jit(lambda n: 0.5 * n)(n[0]), 0.5 * n[0])


def test_strong_floats_decide_beside_integers_of_64_bits():
    """As in JAX's lattice; the product of such integers and a Python number is weak."""
    n, x = np.arange(3), tnp.ones(3)
    assert (n * x).dtype == (0.1 * tnp.asarray(n) * x).dtype == (tnp.sqrt(np.int64(2)) * x).dtype == np.float32
    assert (tnp.sqrt(n) * x).dtype == np.float64


def test_positions_and_sizes_have_the_default_width():
    """So that they widen nothing."""
    x = tnp.ones((2, 3))
    found = (tnp.argmax(x), tnp.argsort(x), tnp.nonzero(x)[0], tnp.arange(3), tnp.asarray(x.shape), tnp.sum(x > 0))
    assert {y.dtype.name for y in found} == {"int32"}


@pytest.mark.parametrize("bits", [32, 64])
def test_places_are_integers_of_the_default_width(bits):
    """As the array API says; JAX's have 32 bits."""
    x = np.arange(3.0)
    with tl.enable_x64(bits == 64):
        assert tnp.searchsorted(x, 1.0).dtype == f"int{bits}"
        assert tnp.digitize(x, x).dtype == tnp.digitize(x, x[:0]).dtype == f"int{bits}"


@pytest.mark.parametrize("bits", [32, 64])
def test_dtypes_that_do_not_depend_on_the_default_width(bits):
    x = np.arange(3.0, dtype=np.float16)
    with tl.enable_x64(bits == 64):
        assert tnp.tri(3).dtype == np.float32
        assert tnp.histogram(x, 2)[0].dtype == np.float16


@pytest.mark.parametrize("make", [tnp.full, lax.full])
def test_arrays_full_of_a_number_of_python_are_weak(make):
    """As in JAX: they do not widen what they are combined with. A dtype that is asked for is strong."""
    half = tnp.ones(3, tnp.bfloat16)
    for x in (make((3,), 2.5), make((3,), 2), tl.jit(lambda: make((3,), 2.5))()):
        assert x.weak_type and (x + half).dtype == tnp.bfloat16
    for x in (make((3,), True), make((3,), 2.5, np.float32), make((3,), tnp.ones(()))):
        assert not x.weak_type
    weak = make((3,), 2.5)
    assert tnp.zeros_like(weak).weak_type and tnp.ones_like(2).weak_type and tnp.full_like(weak, 1).weak_type
    assert not tnp.zeros_like(weak, np.float32).weak_type and not tnp.zeros_like(half).weak_type
    assert make((), 2.5).weak_type and make((), 2.5).shape == ()


def test_scalar_types_in_sets():
    """They are equal to the scalar types of NumPy, so they have the same hash."""
    for name in ("int32", "float64", "bool_", "complex64", "bfloat16"):
        ours, theirs = getattr(tnp, name), np.dtype(getattr(tnp, name)).type
        assert ours == theirs and ours in {theirs} and theirs in {ours} and {ours: 1}[theirs] == 1
    assert str(tl.lax.Precision.HIGHEST) == "HIGHEST"  # as of JAX


def test_element_types_can_be_derived_from():
    """As libraries do for named values of an element type: it is that type, with members."""

    class StepType(tnp.int8):
        FIRST = tnp.int8(0)

    assert StepType.dtype == np.int8 and StepType == tnp.int8 and StepType(3).dtype == np.int8
    assert StepType.FIRST == 0 and tnp.zeros(2, StepType).dtype == np.int8


def test_the_step_of_fewer_than_two_numbers_is_nan_of_no_axes():
    """As in NumPy and JAX, also between arrays."""
    jnp = pytest.importorskip("jax.numpy")
    for num, endpoint, dtype, start in itertools.product(
        (0, 1, 2), (True, False), (None, "int32"), (0.0, np.zeros(2, "f4"))
    ):
        ours, theirs = (m.linspace(start, 1.0, num, endpoint=endpoint, retstep=True, dtype=dtype) for m in (tnp, jnp))
        for x, y in zip(ours, theirs, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y), strict=True)
