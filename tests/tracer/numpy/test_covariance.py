"""Covariances and correlations against NumPy: one program of all operands for each set of options."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 5))
OPERANDS = [X, X + 1j * X[::-1], X[0], X[:1]]
SECOND = [None, X[:1], X[1:] + 1j, X[0]]
TIMES, SHARES = np.array([1, 2, 0, 3, 1]), np.abs(X[1])


@pytest.mark.parametrize("options", [
    {}, {"bias": True}, {"ddof": 2}, {"fweights": TIMES}, {"aweights": SHARES},
    {"fweights": TIMES, "aweights": SHARES, "ddof": 0}, {"fweights": TIMES, "aweights": SHARES},
], ids=str)  # fmt: skip
def test_rows(options):
    pairs = [(m, y) for m in OPERANDS for y in SECOND]
    found = tl.jit(lambda: [tnp.cov(m, y, **options) for m, y in pairs])()
    for (m, y), c in zip(pairs, found, strict=True):
        np.testing.assert_allclose(c, np.cov(m, y, **options), atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's about degrees of freedom
def test_columns():
    """One row is as many variables, observed once; a second operand of one row is one variable all the same."""
    pairs = [(X, None), (X[:1], None), (X, X[:, :1]), (X.T, X[:1]), (X[0], X[0])]
    for name in ("cov", "corrcoef"):
        found = tl.jit(lambda name=name: [getattr(tnp, name)(m, y, rowvar=False) for m, y in pairs])()
        for (m, y), c in zip(pairs, found, strict=True):
            np.testing.assert_allclose(c, getattr(np, name)(m, y, rowvar=False), atol=1e-12)


def test_correlations():
    for m in OPERANDS:
        np.testing.assert_allclose(tnp.corrcoef(m), np.corrcoef(m), atol=1e-12)
    assert tnp.corrcoef(X, dtype=np.float32).dtype == np.float32
    large = np.array([[1, 2, 4], [3, -1, 2]]) * 1e200
    np.testing.assert_allclose(tnp.corrcoef(large * 1e-60), np.corrcoef(large * 1e-60), rtol=1e-12)


def test_what_has_no_covariance():
    with raises(ValueError, "cov: variables are the rows of a matrix, not float64[1,3,5]."):
        tnp.cov(X[None])
    with raises(ValueError, "cov: fweights must be one for each of the 5 observations, not int64[3]."):
        tnp.cov(X, fweights=TIMES[:3])
    with raises(TypeError, "cov: fweights must be integers, not float64[5]."):
        tnp.cov(X, fweights=SHARES)
    with raises(TypeError, "cov: dtype must be floating point or complex, not int32."):
        tnp.cov(X, dtype=int)
