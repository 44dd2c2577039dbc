"""Ranks, modes and standard errors against SciPy: ties, nan, axes, no elements."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy import stats

pytestmark = pytest.mark.usefixtures("eager_by_steps")

TIES = np.array([[3.0, 1, 3, 2, 1, 1], [0, -0.0, 5, 5, 5, 2], [np.nan, 1, np.nan, 4, np.nan, 1]])
METHODS = ["average", "min", "max", "dense", "ordinal"]


def test_ranks():
    scipy_stats = pytest.importorskip("scipy.stats")
    cases = [(x, a, p) for x in (TIES, TIES[:2].astype(int)) for a in (None, 0, -1) for p in ("propagate", "omit")]
    every = tl.jit(lambda: [stats.rankdata(x, m, axis=a, nan_policy=p) for x, a, p in cases for m in METHODS])()
    wanted = [scipy_stats.rankdata(x, m, axis=a, nan_policy=p) for x, a, p in cases for m in METHODS]
    for found, right in zip(every, wanted, strict=True):
        assert found.dtype == np.float32 and found.shape == right.shape
        np.testing.assert_array_equal(found, right)
    assert stats.rankdata(np.zeros((0, 3)), axis=0).shape == (0, 3) and stats.rankdata(7).tolist() == [1]


def test_modes():
    scipy_stats = pytest.importorskip("scipy.stats")
    cases = [
        (x, a, p, k)
        for x in (TIES, TIES[:2].astype(int))
        for a in (None, 0, -1)
        for p in ("propagate", "omit")
        for k in (False, True)
    ]
    every = tl.jit(lambda: [stats.mode(x, a, p, keepdims=k) for x, a, p, k in cases])()
    for found, (x, a, p, k) in zip(every, cases, strict=True):
        right = scipy_stats.mode(x, a, p, keepdims=k)
        np.testing.assert_array_equal(found.mode, right.mode)
        np.testing.assert_array_equal(found.count, right.count)
        assert found.mode.dtype == x.dtype and found.count.dtype == np.int32
    nothing = stats.mode(np.ones((0, 2)))
    np.testing.assert_array_equal(nothing, [[np.nan] * 2, [0, 0]])


def test_standard_errors():
    scipy_stats = pytest.importorskip("scipy.stats")
    for x, axis, policy in (
        (TIES[:2], 0, "propagate"),
        (TIES, None, "omit"),
        (TIES, 1, "omit"),
        (TIES, 1, "propagate"),
    ):
        found = stats.sem(x, axis, nan_policy=policy)
        np.testing.assert_allclose(found, np.asarray(scipy_stats.sem(x, axis, nan_policy=policy)), rtol=1e-14)
    assert stats.sem(np.ones((4, 2), int), keepdims=True).shape == (1, 2)
    tl.testing.check_grads(stats.sem, (np.array([1.0, 2, 5]),), 1)


def test_bad_input():
    for f in (stats.mode, stats.rankdata, stats.sem):
        name = f.__name__
        with pytest.raises(ValueError, match=f"{name}: axis 2 is out of range for float64"):
            f(TIES, axis=2)
        with pytest.raises(ValueError, match=f"{name}: nan_policy must be 'propagate' or 'omit', not 'x'"):
            f(TIES, nan_policy="x")
        with pytest.raises(NotImplementedError, match=f"{name}: nan_policy='raise'"):
            f(TIES, nan_policy="raise")
    with pytest.raises(ValueError, match="rankdata: method must be one of average, min"):
        stats.rankdata(TIES, "first")


# ---- several variables


def test_many_variables():
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 3))
    cov, x, mean = a @ a.T + np.eye(3), rng.normal(size=(4, 2, 3)), rng.normal(size=3)
    m = stats.multivariate_normal
    right = scipy_stats.multivariate_normal
    np.testing.assert_allclose(m.logpdf(x, mean, cov), right.logpdf(x, mean, cov), rtol=1e-12)
    np.testing.assert_allclose(m.pdf(x, mean, 2.0), right.pdf(x, mean, 2 * np.eye(3)), rtol=1e-12)
    np.testing.assert_allclose(m.logpdf(0.5, 0.1, np.float64(3)), right.logpdf(0.5, 0.1, 3.0), rtol=1e-6)
    many = np.stack([cov, 2 * cov])
    np.testing.assert_allclose(m.logpdf(x, mean, many)[:, 1], right.logpdf(x[:, 1], mean, 2 * cov), rtol=1e-12)
    tl.testing.check_grads(tl.jit(lambda *p: m.logpdf(x, *p)), (mean, many), 1, rtol=1e-4)
    with pytest.raises(ValueError, match=r"mean \[.., n\] and cov"):
        m.logpdf(x, mean, np.eye(2))

    alpha, p = np.array([1.0, 0.5, 3]), np.array([[0.2, 0.3, 0.5], [1, 0, 0.5], [0.3, 0.3, 0.3]]).T
    found = stats.dirichlet.pdf(p, alpha)
    np.testing.assert_allclose(found, [scipy_stats.dirichlet.pdf(p[:, 0], alpha), 0, 0], rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.logpdf(p[:2, 0], alpha), np.log(found[0]), rtol=1e-12)
    assert np.isnan(stats.dirichlet.pdf(p, -alpha)).all()
    tl.testing.check_grads(lambda q, a: stats.dirichlet.logpdf(q, a), (p[:2, 0], alpha), 1, rtol=1e-4)
    with pytest.raises(ValueError, match=r"dirichlet.logpdf: alpha \[n\]"):
        stats.dirichlet.pdf(p[:1], alpha)

    counts = np.array([[1, 2, 0], [3, 0, 0], [1, 1, 0], [-1, 3, 1]])
    found = stats.multinomial.pmf(counts, 3, p[:, 0])
    np.testing.assert_allclose(found, scipy_stats.multinomial.pmf(counts, 3, p[:, 0]), rtol=1e-12)
    assert (
        found.dtype == np.float64
        and np.isfinite(tl.grad(lambda q: stats.multinomial.pmf(counts[0], 3, q))(p[:, 0])).all()
    )
    with pytest.raises(TypeError, match=r"multinomial.logpmf: x and n must be integers"):
        stats.multinomial.pmf(1.0, 1, p)


@pytest.mark.parametrize("d", [1, 2])
def test_kernel_density(d: int):
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(d)
    data, weights, points = rng.normal(size=(d, 20)), rng.uniform(size=20), rng.normal(size=(d, 7))
    for options in (
        {},
        {"bw_method": "silverman", "weights": weights},
        {"bw_method": 0.3},
        {"bw_method": lambda k: 0.2},
    ):
        ours: Any = stats.gaussian_kde(data, **options)
        theirs = scipy_stats.gaussian_kde(data, **options)
        np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
        np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
        np.testing.assert_allclose(ours.neff, theirs.neff, rtol=1e-13)
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-10)
        gauss = np.full(d, 0.1), np.eye(d) * 2
        np.testing.assert_allclose(ours.integrate_gaussian(*gauss), theirs.integrate_gaussian(*gauss), rtol=1e-10)
    assert ours.resample(tl.random.key(0), (5,)).shape == (d, 5)
    copied = tl.jit(lambda k: k)(ours)
    np.testing.assert_array_equal(copied.pdf(points), ours.pdf(points))
    if d == 1:
        np.testing.assert_allclose(ours.integrate_box_1d(-1, 2), theirs.integrate_box_1d(-1, 2), rtol=1e-12)
    with pytest.raises(ValueError, match="gaussian_kde: bw_method"):
        stats.gaussian_kde(data, "other")
    with pytest.raises(ValueError, match="one for each point"):
        stats.gaussian_kde(data, weights=weights[1:])
