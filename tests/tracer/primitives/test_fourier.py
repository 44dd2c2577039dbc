"""lax.fft: kinds and their names, dtypes, shapes beside NumPy's and JAX's, and what is refused."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

LENGTHS = [
    (1,),
    (2,),
    (3,),
    (8,),
    (17,),
    (1, 1),
    (2, 1),
    (1, 5),
    (3, 4),
    (4, 3),
    (1, 1, 1),
    (2, 3, 4),
    (3, 1, 5),
    (101,),
]


def operand(kind: str, lengths: tuple[int, ...], batch: tuple[int, ...], dtype: str) -> np.ndarray:
    shape = (*batch, *lengths) if kind != "IRFFT" else (*batch, *lengths[:-1], lengths[-1] // 2 + 1)
    rng = np.random.default_rng(3)
    real = rng.normal(size=shape).astype(dtype)
    return real if kind == "RFFT" else (real + 1j * rng.normal(size=shape)).astype(np.result_type(dtype, np.complex64))


@pytest.mark.parametrize("kind", [*lax.FftType.__members__])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float64", 1e-13)])
def test_values(kind: str, dtype: str, rtol: float):
    """Compiled as users compile: every length with every batch, empty ones too."""
    cases = [(n, operand(kind, n, batch, dtype)) for n in LENGTHS for batch in ((), (2,), (1, 3), (0,), (2, 0))]
    outs = tl.jit(lambda xs: [lax.fft(x, kind, n) for (n, _), x in zip(cases, xs)])([x for _, x in cases])
    for (n, x), y in zip(cases, outs, strict=True):
        wanted = getattr(np.fft, f"{kind.lower()}n")(x, n, tuple(range(-len(n), 0)))
        assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(y, wanted, rtol=rtol, atol=rtol * np.max(np.abs(wanted), initial=1))


def test_kinds_are_those_of_jax():
    theirs = pytest.importorskip("jax").lax.FftType
    assert {k: v.value for k, v in lax.FftType.__members__.items()} == {
        k: v.value for k, v in theirs.__members__.items()
    }


def test_kinds_by_name():
    x = tnp.arange(4.0)
    for kind in ("fft", "FFT", lax.FftType.FFT):
        np.testing.assert_allclose(lax.fft(x, kind, (4,)), np.fft.fft(np.arange(4)), atol=1e-6)
    printed = str(tl.make_jaxpr(lambda x: lax.fft(x, "rfft", [4]))(np.ones(4)))
    assert "fft[fft_type=RFFT fft_lengths=(4,)]" in printed


@pytest.mark.parametrize(
    ("given", "real", "complex_"),
    [
        ("bool", "float32", "complex64"),
        ("int8", "float32", "complex64"),
        ("float16", "float32", "complex64"),
        ("bfloat16", "float32", "complex64"),
        ("float32", "float32", "complex64"),
        ("float64", "float64", "complex128"),
    ],
)
def test_real_numbers_are_converted(given: str, real: str, complex_: str):
    x = tnp.ones(3, given)
    assert lax.fft(x, "fft", (3,)).dtype == lax.fft(x, "rfft", (3,)).dtype == complex_
    assert lax.fft(x, "irfft", (5,)).dtype == real


def test_no_axes():
    x = np.arange(3.0)
    assert lax.fft(x, "fft", ()).dtype == lax.fft(x, "ifft", ()).dtype == np.complex128
    np.testing.assert_array_equal(lax.fft(x, "fft", ()), x)


def test_bins_that_are_their_own_conjugates_are_real(rng: np.random.Generator):
    """Imaginary parts of bins 0 and n / 2 are not read, and have no derivative."""
    x = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    real = x.copy()
    real[:, [0, -1]] = real[:, [0, -1]].real
    np.testing.assert_allclose(lax.fft(x, "irfft", (4,)), lax.fft(real, "irfft", (4,)), rtol=1e-15)
    gradient = tl.grad(lambda x: (lax.fft(x, "irfft", (4,)) ** 3).sum())(x)
    np.testing.assert_array_equal(np.asarray(gradient).imag[:, [0, -1]], 0)


def test_refusals():
    x, z = np.ones((2, 4), np.float32), np.ones((2, 4), np.complex64)
    kinds = "FFT, IFFT, RFFT, IRFFT"
    with raises(ValueError, f"fft: fft_type 'dct' is none of {kinds}."):
        lax.fft(x, "dct", (4,))
    with raises(TypeError, f"fft: fft_type must be one of {kinds}, or its name, not 0."):
        lax.fft(x, 0, (4,))
    with raises(TypeError, "fft: fft_lengths must be a sequence of integers, not (4.0,)."):
        lax.fft(x, "fft", (4.0,))
    with pytest.raises(TypeError, match="fft is not defined for keys of random numbers: key<fry>"):
        lax.fft(tl.random.split(tl.random.key(0), 4), "fft", (4,))
    for operand, kind, lengths, error, what in [
        (z, "RFFT", (4,), TypeError, "the operand must be float32 or float64"),
        (z, "FFT", (5,), ValueError, "the last axes must have the lengths (5,)"),
        (z, "IRFFT", (2, 4), ValueError, "the last axes must have the lengths (2, 3)"),
        (z, "IRFFT", (0,), ValueError, "a length must be at least 1"),
        (x, "RFFT", (), ValueError, "there must be one to 3 lengths, one for each of the last axes"),
        (x, "RFFT", (1, 2, 4), ValueError, "there must be one to 3 lengths, one for each of the last axes"),
    ]:
        with raises(error, f"fft: {what}: {kind} of fft_lengths {lengths}, operand {tl.typeof(operand)}."):
            lax.fft(operand, kind, lengths)
