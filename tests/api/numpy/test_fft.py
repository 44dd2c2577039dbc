"""`tapeless.numpy.fft`: names, parameters, derivatives, what is refused.

Values are compared in tests/numpy_agreement/fourier.py.
"""

import inspect
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(8)
X = RNG.normal(size=(3, 4))
Z = X + 1j * RNG.normal(size=(3, 4))
FROM_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
TRANSFORMS = [name for name in tnp.fft.__all__ if not name.endswith(("freq", "shift"))]
each_transform = pytest.mark.parametrize("name", TRANSFORMS)


def ways(name: str) -> list[dict[str, Any]]:
    """Keywords: lengths that are more and less than those of X, odd and even, other axes, every norm."""
    if name.endswith(("n", "2")):
        return [{}, {"s": (2, 5), "norm": "ortho"}, {"s": (4, 3), "axes": (1, 0), "norm": "forward"}]
    return [{}, {"n": 3, "norm": "ortho"}, {"n": 6, "norm": "forward"}, {"n": 5, "axis": 0}]


def test_names_are_those_of_numpy():
    assert sorted(tnp.fft.__all__) == sorted(np.fft.__all__)
    assert set(vars(tnp.fft)) >= set(tnp.fft.__all__)


def test_it_is_loaded_when_it_is_used():
    code = "import sys, tapeless.numpy as tnp\nassert 'tapeless.numpy.fft' not in sys.modules\n"
    code += "import tapeless.numpy.fft as a\nfrom tapeless.numpy import fft as b\nassert a is b is tnp.fft"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", tnp.fft.__all__)
def test_parameters_are_those_of_jax(name: str):
    theirs = getattr(pytest.importorskip("jax").numpy.fft, name)
    ours = getattr(tnp.fft, name)
    shown = [[(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()] for f in (ours, theirs)]
    assert shown[0] == shown[1]


# ---- derivatives ---------------------------------------------------------------------------------------------


@each_transform
def test_derivatives(name: str):
    """Both modes, to the second order, of all the ways in one function; it is not linear, so there is a second."""
    f = getattr(tnp.fft, name)

    def all_ways(x: Any) -> Any:
        found = [tnp.ravel(f(x, **keywords)) for keywords in ways(name)]
        return tnp.stack([tnp.sum(tnp.real(y * y * (1 + 0.5j)) + tnp.imag(y) ** 2) for y in found])

    tl.testing.check_grads(all_ways, (X if name in FROM_REAL else Z,), order=2, modes=("fwd", "rev"), rtol=1e-6)


@each_transform
def test_gradients_are_those_of_jax(name: str):
    jax = pytest.importorskip("jax")
    x = X if name in FROM_REAL else Z
    sizes = [[partial(total_size, space, name, keywords) for keywords in ways(name)] for space in (tnp, jax.numpy)]
    with jax.enable_x64(True):
        wanted = jax.jit(lambda x: [jax.grad(f)(x) for f in sizes[1]])(x)
    for f, gradient in zip(sizes[0], wanted, strict=True):
        np.testing.assert_allclose(tl.grad(f)(x), gradient, rtol=1e-10, atol=1e-12)


def total_size(numpy: Any, name: str, keywords: Any, x: Any) -> Any:
    return numpy.abs(getattr(numpy.fft, name)(x, **keywords)).sum()


@each_transform
def test_linear_transpose_is_the_adjoint(name: str, rng: np.random.Generator):
    f, x = getattr(tnp.fft, name), X if name in FROM_REAL else Z
    for keywords in ways(name):
        y = f(x, **keywords)
        ct = tnp.asarray(rng.normal(size=y.shape).astype(y.dtype) * (1 + 0.5j if y.dtype.kind == "c" else 1))
        (pulled,) = tl.linear_transpose(lambda x, k=keywords: f(x, **k), x)(ct)
        np.testing.assert_allclose(np.real(np.sum(np.asarray(y) * ct)), np.real(np.sum(pulled * x)), rtol=1e-12)


def test_inverses():
    for there, back in (("fft", "ifft"), ("fftn", "ifftn"), ("rfft", "irfft"), ("rfftn", "irfftn"), ("ihfft", "hfft")):
        for norm in (None, "ortho", "forward"):
            x = X if there in FROM_REAL else Z
            found = getattr(tnp.fft, back)(getattr(tnp.fft, there)(x, norm=norm), norm=norm)
            np.testing.assert_allclose(found, x, atol=1e-14)


def test_under_vmap_along_every_axis(rng: np.random.Generator):
    x = rng.normal(size=(2, 3, 4, 5))
    for d in range(4):
        for name, keywords in (("rfft2", {}), ("rfftn", {"axes": (2, 0)}), ("rfft", {"axis": 0, "n": 7})):
            mapped = tl.vmap(partial(getattr(tnp.fft, name), **keywords), in_axes=d)(x)
            wanted = [getattr(np.fft, name)(one, **keywords) for one in np.moveaxis(x, d, 0)]
            np.testing.assert_allclose(mapped, np.stack(wanted), atol=1e-13)


def test_convolution_theorem(rng: np.random.Generator):
    x, y = rng.normal(size=(2, 9))
    product = lambda x, y: tnp.fft.irfft(tnp.fft.rfft(x, 17) * tnp.fft.rfft(y, 17), 17)  # noqa: E731
    np.testing.assert_allclose(product(x, y), np.convolve(x, y), atol=1e-13)
    by_fft, plain = [tl.grad(lambda x, f=f: (f(x, y) ** 3).sum())(x) for f in (product, tnp.convolve)]
    np.testing.assert_allclose(by_fft, plain, rtol=1e-10)


def test_the_spacing_of_samples_has_a_derivative():
    np.testing.assert_allclose(tl.jacfwd(lambda d: tnp.fft.fftfreq(5, d))(2.0), -np.fft.fftfreq(5, 2.0) / 2, rtol=1e-6)
    assert tnp.fft.rfftfreq(4, dtype="float16").dtype == "float16"
    assert tnp.fft.fftfreq(4, np.ones((), np.float64)).dtype == "float64"
    with tl.enable_x64(True):
        assert tnp.fft.fftfreq(4).dtype == tnp.fft.fftfreq(4, np.ones((), np.float32)).dtype == "float64"


# ---- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "error", "message"), [
    (lambda: tnp.fft.fft(X, 0), ValueError, "fft: lengths must be at least 1: (0,) along axes (1,) of float64[3,4]."),
    (lambda: tnp.fft.fft(X[:, :0]), ValueError,
     "fft: lengths must be at least 1: (0,) along axes (1,) of float64[3,0]."),
    (lambda: tnp.fft.irfft(X[:, :1]), ValueError,
     "irfft: lengths must be at least 1: (0,) along axes (1,) of float64[3,1]."),
    (lambda: tnp.fft.fft(X, 2.5), TypeError, "fft: n must be an integer, not 2.5."),
    (lambda: tnp.fft.fftn(X, axes=(0, -2)), ValueError, "fftn: axes (0, -2) of float64[3,4] name an axis twice."),
    (lambda: tnp.fft.fft2(X, (2,)), ValueError,
     "fft2: there must be a length for each axis: s is (2,), axes (-2, -1)."),
    (lambda: tnp.fft.fft(X, axis=2), tl.errors.AxisError, "fft: axis 2 is out of range for an array of 2 axes."),
    (lambda: tnp.fft.fftn(X, axes=1), TypeError, "fftn: axes must be a sequence of integers, not 1."),
    (lambda: tnp.fft.rfftn(X, axes=()), ValueError,
     "rfftn: there must be an axis to transform: axes are () of float64[3,4]."),
    (lambda: tnp.fft.ihfft(X, norm="unit"), ValueError,
     "ihfft: norm must be one of 'backward', 'ortho', 'forward' or None, not 'unit'."),
    (lambda: tnp.fft.rfft(Z), TypeError,
     "rfft: the numbers must be real, not complex128[3,4]. Take their real part, or use fft."),
    (lambda: tnp.fft.fftfreq(0), ValueError, "fftfreq: n must be at least 1, not 0."),
    (lambda: tnp.fft.rfftfreq(4, X), ValueError, "rfftfreq: d must be a number, not float64[3,4]."),
    (lambda: tnp.fft.fftfreq(4, 1j), TypeError,
     "fftfreq: frequencies are real numbers, and d is complex64[], dtype float32."),
    (lambda: tnp.fft.fftfreq(4, device="cpu"), TypeError,
     "device: the device must be one of tl.devices(), not 'cpu'.\n  Write tl.devices('cpu')[0]."),
])  # fmt: skip
def test_refusals(f: Any, error: type[Exception], message: str):
    with raises(error, message):
        f()
