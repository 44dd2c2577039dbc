"""`scipy.signal` against SciPy: convolutions of all modes, trends, spectra and the way back, derivatives, bad input."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.scipy import signal
from tests.close import other_algorithms as close

pytestmark = pytest.mark.usefixtures("eager_by_steps")

MODES = "full", "same", "valid"


@pytest.mark.parametrize("unit", [0, 1j], ids=["real", "complex"])
def test_convolutions(unit: complex, rng: np.random.Generator):
    ss = pytest.importorskip("scipy.signal")
    shapes = [((4,), (3,)), ((2,), (5,)), ((4, 4), (2, 3)), ((2, 2), (3, 4)), ((3, 2, 2), (2, 2, 2))]
    pairs = [[rng.normal(size=s) + unit * rng.normal(size=s) for s in two] for two in shapes]
    cases: list[tuple[str, Any, dict[str, Any]]] = []
    for pair in pairs:
        cases += [(f, pair, {"mode": m}) for f in ("convolve", "correlate", "fftconvolve") for m in MODES]
        if pair[0].ndim == 2:
            edges = [{}, {"boundary": "wrap"}, {"boundary": "symm"}, {"fillvalue": 2.0}]
            cases += [(f, pair, {"mode": m, **e}) for f in ("convolve2d", "correlate2d") for m in MODES for e in edges]
    every = tl.jit(lambda: [getattr(signal, f)(*pair, **options) for f, pair, options in cases])()
    for found, (f, pair, options) in zip(every, cases, strict=True):
        close(found, getattr(ss, f)(*pair, **options))


def test_axes_and_numbers(rng: np.random.Generator):
    ss = pytest.importorskip("scipy.signal")
    x, y = rng.normal(size=(3, 6)), rng.normal(size=(3, 4))
    close(signal.fftconvolve(x, y, axes=1), ss.fftconvolve(x, y, axes=1))
    close(signal.fftconvolve(x, y[:1], "same", axes=[-1]), ss.fftconvolve(x, y[:1], "same", axes=[-1]))
    close(signal.convolve(x, y, method="fft"), ss.convolve(x, y))
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == np.float64
    assert signal.convolve(tnp.arange(3), tnp.arange(2)).dtype == np.float32
    assert float(signal.convolve(2.0, 3.0)) == 6


def test_trends(rng: np.random.Generator):
    ss = pytest.importorskip("scipy.signal")
    x = rng.normal(size=(3, 20))
    for kind, bp in (("linear", 0), ("linear", [5, 12]), ("linear", [1, 19]), ("constant", 0)):
        close(signal.detrend(x, type=kind, bp=bp), ss.detrend(x, type=kind, bp=bp))
        close(signal.detrend(x.T, 0, kind, bp), ss.detrend(x.T, 0, kind, bp))


CUTS: list[dict[str, Any]] = [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 3, "nfft": 32, "fs": 3.0},
    {"nperseg": 8, "window": "hamming", "detrend": "linear"},
    {"nperseg": 60, "return_onesided": False},
    {"nperseg": 9, "window": ("kaiser", 2.0)},
    {"nperseg": 9, "window": ("gaussian", 2.0), "axis": 0},
    {"nperseg": 4, "window": np.arange(1.0, 5)},
]
EDGES: list[dict[str, Any]] = [
    {"boundary": None, "padded": False}, {"boundary": "even"}, {"boundary": "odd"}, {"boundary": "constant"},
    {}, {}, {},
]  # fmt: skip


@pytest.mark.parametrize("unit", [0, 1j], ids=["real", "complex"])
def test_spectra(unit: complex, rng: np.random.Generator):
    ss = pytest.importorskip("scipy.signal")
    x, y = rng.normal(size=(2, 60)) + unit, rng.normal(size=(2, 60))
    cases: list[tuple[str, Any, dict[str, Any]]] = []
    for cut, edge in zip(CUTS, EDGES, strict=True):
        xs = [v.T if cut.get("axis") == 0 else v for v in (x * np.exp(unit * np.arange(60)), y)]
        cases += [
            ("stft", xs[:1], {**cut, **edge}),
            ("welch", xs[:1], cut),
            ("csd", xs, {**cut, "scaling": "spectrum"}),
        ]
    cases += [("welch", [x], {"nperseg": 8, "average": "median"}), ("csd", [x, y[:, :40]], {"nperseg": 8})]
    every = tl.jit(lambda: [getattr(signal, f)(*xs, **options) for f, xs, options in cases])()
    for found, (f, xs, options) in zip(every, cases, strict=True):
        with warnings.catch_warnings(action="ignore"):
            right = getattr(ss, f)(*xs, **options)
        for mine, theirs in zip(found, right, strict=True):
            close(mine, theirs, 1e-6, 1e-6)


def test_windows():
    ss = pytest.importorskip("scipy.signal")
    x = np.ones(10)
    plain = "hann blackman nuttall blackmanharris flattop boxcar cosine bartlett "
    plain += "triang parzen bohman barthann lanczos tukey"
    given = ("tukey", 0.3), ("tukey", 0), ("tukey", 1), ("general_gaussian", 1.5, 2.0), ("general_hamming", 0.6)
    for name in (*plain.split(), *given, ("exponential", None, 2.0)):
        for n in (1, 9, 10):
            right = ss.stft(x, window=name, nperseg=n, noverlap=0, boundary=None)[2]
            close(signal.stft(x, window=name, nperseg=n, noverlap=0, boundary=None)[2], right, 1e-6, 1e-6)


def test_the_way_back(rng: np.random.Generator):
    ss = pytest.importorskip("scipy.signal")
    x = rng.normal(size=(2, 60))
    for cut in (
        CUTS[0],
        {"nperseg": 15, "noverlap": 9, "nfft": 32},
        {"nperseg": 16, "noverlap": 12, "window": "hamming"},
    ):
        z = ss.stft(x, **cut)[2]
        close(signal.istft(z, **cut)[1], ss.istft(z, **cut)[1], 1e-6, 1e-6)
        options = {"freq_axis": -1, "time_axis": 0, **cut}
        z = np.moveaxis(z, -1, 0)
        close(signal.istft(z, **options)[1], ss.istft(z, **options)[1], 1e-6, 1e-6)
    times, back = signal.istft(signal.stft(x, 2.0, nperseg=8)[2], 2.0, nperseg=8)
    close(back[:, :60], x, 1e-6, 1e-6)
    close(times, np.arange(back.shape[1]) / 2)


def test_derivatives(rng: np.random.Generator):
    x, y = rng.normal(size=12), rng.normal(size=5)
    tl.testing.check_grads(tl.jit(lambda x, y: signal.csd(x, y, nperseg=4)[1].real), (x, y), 1, rtol=1e-4)
    tl.testing.check_grads(tl.jit(lambda x: signal.istft(signal.stft(x, nperseg=4)[2], nperseg=4)[1]), (x,), 1)
    tl.testing.check_grads(tl.jit(lambda x, y: (signal.correlate(x, y), signal.fftconvolve(x, y))), (x, y), 1)


def test_bad_input():
    x = np.ones(4)
    for message, call in {
        "convolve: mode must be": lambda: signal.convolve(x, x, "other"),
        "convolve: method must be": lambda: signal.convolve(x, x, method="other"),
        "convolve: arrays with elements and as many axes": lambda: signal.convolve(x, np.ones((2, 2))),
        "one must be within the other": lambda: signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid"),
        "convolve2d: matrices": lambda: signal.convolve2d(x, x),
        "detrend: bp 5 is not within the 4": lambda: signal.detrend(x, bp=5),
        "noverlap=4, nfft=None do not fit": lambda: signal.stft(x, nperseg=4, noverlap=4),
        "csd: average must be": lambda: signal.csd(x, x, nperseg=4, average="other"),
        "istft: times and frequencies are both in axis 0": lambda: signal.istft(
            np.ones((3, 3)), time_axis=0, freq_axis=0
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="window 'other' is not among hann"):
        signal.stft(x, window="other", nperseg=4)
    with pytest.warns(UserWarning, match="nperseg=256 is more than the 4 elements"):
        signal.stft(x)


def test_parameters_are_those_of_jax():
    theirs = pytest.importorskip("jax.scipy.signal")
    for name in signal.__all__:
        wanted = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(signal, name)).parameters)[: len(wanted)] == wanted
