"""Cosine transforms of all types, norms and lengths against SciPy."""

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy import fft

pytestmark = pytest.mark.usefixtures("eager_by_steps")


def test_values(rng: np.random.Generator):
    sf = pytest.importorskip("scipy.fft")
    xs = [rng.normal(size=(2, n)) + c for n in (1, 2, 5, 8) for c in (0, 1j)]
    cases = [(x, t, m) for x in xs for t in (1, 2, 3, 4) if t > 1 or x.shape[1] > 1 for m in (None, "ortho", "forward")]
    every = tl.jit(lambda: [(fft.dct(x, t, norm=m), fft.idct(x, t, norm=m)) for x, t, m in cases])()
    for (there, back), (x, t, m) in zip(every, cases, strict=True):
        assert there.dtype == x.dtype
        np.testing.assert_allclose(there, sf.dct(x, t, norm=m), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(back, sf.idct(x, t, norm=m), rtol=1e-12, atol=1e-12)


def test_lengths_and_axes(rng: np.random.Generator):
    sf = pytest.importorskip("scipy.fft")
    x = rng.normal(size=(4, 5, 3))
    for name, options in [
        ("dct", {"n": 3, "axis": 0}), ("idct", {"n": 7, "axis": 1}), ("dctn", {}), ("dctn", {"s": (3, 7)}),
        ("idctn", {"axes": (0, 2), "norm": "ortho"}), ("dctn", {"s": 2, "axes": 0}),
    ]:  # fmt: skip
        right = {**options, **({"s": [2], "axes": [0]} if options.get("s") == 2 else {})}
        np.testing.assert_allclose(getattr(fft, name)(x, **options), getattr(sf, name)(x, **right), atol=1e-12)
    assert fft.dct(np.ones(3, np.float32)).dtype == np.float32 == fft.dct(np.ones(3, np.int32)).dtype
    assert fft.dct(np.ones(3, int)).dtype == np.float64


def test_derivatives_and_bad_input(rng: np.random.Generator):
    for t in (1, 2, 3, 4):
        tl.testing.check_grads(lambda x, t=t: fft.dct(x, t, norm="ortho"), (rng.normal(size=5),), 1)
    for message, call in {
        "dct: type must be 1, 2, 3 or 4, not 5": lambda: fft.dct(np.ones(3), 5),
        "dct: norm must be": lambda: fft.dct(np.ones(3), norm="other"),
        "idct: axis 1 is out of range": lambda: fft.idct(np.ones(3), axis=1),
        "at least 2 for this type": lambda: fft.dct(np.ones(1), 1),
        "dctn: 2 lengths for 1 axes": lambda: fft.dctn(np.ones((2, 2)), s=(2, 2), axes=(0,)),
        "not distinct": lambda: fft.dctn(np.ones((2, 2)), axes=(0, -2)),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
