"""Calls of LAPACK: what fails is nan, matrix by matrix; nothing is called for matrices without elements."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering import emit
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of

linalg = tnp.linalg
NAN = np.eye(3)
NAN[1, 0] = np.nan


def test_infinite_elements_end():
    """Of this matrix the iteration of gesdd would not."""
    a = np.resize(np.array([0.0, -0.0, 1, 1, -1, np.inf, -np.inf]), (2, 3, 3))[1]
    assert np.isnan(np.asarray(linalg.svdvals(a))).all()


@pytest.mark.parametrize("function", ["eigvalsh", "svdvals", "inv", "det", "pinv"])
def test_nan_stays_in_its_matrix(function):
    found = np.asarray(getattr(linalg, function)(np.stack([NAN, np.eye(3)])))
    assert np.isnan(found[0]).any()
    np.testing.assert_allclose(found[1], getattr(linalg, function)(np.eye(3)), atol=1e-15)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (3, 0), (0, 3), (2, 0, 3)])
def test_no_elements(shape):
    x = np.zeros(shape)
    for full in (True, False):
        for y, z in zip(linalg.svd(x, full), np.linalg.svd(x, full)):
            np.testing.assert_array_equal(y, z)
        mode = "complete" if full else "reduced"
        for y, z in zip(linalg.qr(x, mode), np.linalg.qr(x, mode)):
            np.testing.assert_array_equal(y, z)
    if shape[-1] == shape[-2]:
        assert [y.shape for y in linalg.eigh(x)] == [y.shape for y in np.linalg.eigh(x)]
        np.testing.assert_array_equal(linalg.det(x), np.linalg.det(x))
        assert linalg.inv(x).shape == x.shape


def test_singular_matrices_are_no_failure_of_lu():
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert linalg.det(x) == 0
    assert [float(y) for y in linalg.slogdet(x)] == [0, -np.inf]
    assert not np.isfinite(np.asarray(linalg.inv(x))).any()


@pytest.mark.parametrize(
    ("function", "routine", "platform"),
    [("hessenberg", "gehrd", "gpu"), ("schur", "gees", "gpu"), ("lu", "getrf", "tpu")],
)
def test_other_devices(function, routine, platform):
    jaxpr, _ = trace_to_jaxpr(lambda x: tuple(getattr(tl.lax.linalg, function)(x)), [aval_of(np.eye(2))])
    with pytest.raises(NotImplementedError) as raised:
        emit.module(jaxpr, platform=platform)
    what, place = str(raised.value).split("\n  ")
    reason = "runs on the CPU, and no kernel computes the same here"
    assert what == f"{function}: LAPACK's {routine} {reason}; the program is for {platform}."
    assert place.startswith("At tests/lowering/test_lapack.py:") and "getattr(tl.lax.linalg" in place


def test_parts_of_a_function_are_not_named():
    """A missing routine is told by the function that calls it, and the line where it is called."""
    jaxpr, _ = trace_to_jaxpr(lambda x: (linalg.det(x),), [aval_of(np.eye(2))])
    with pytest.raises(NotImplementedError) as raised:
        emit.module(jaxpr, platform="tpu")
    assert str(raised.value).startswith("det: LAPACK's getrf runs on the CPU") and "linalg.det(x)" in str(raised.value)


def test_a_routine_that_jaxlib_lacks(monkeypatch):
    monkeypatch.setattr(compat, "load_lapack", lambda platform: frozenset({"lapack_dpotrf_ffi"}))
    with pytest.raises(NotImplementedError) as raised:
        tl.jit(lambda a: linalg.inv(a + 17))(np.eye(2))
    what, place, advice = str(raised.value).split("\n  ")
    assert what == f"lu: jaxlib {compat.jaxlib_version()} lacks lapack_dgetrf_ffi; the program is for cpu."
    assert "linalg.inv(a + 17)" in place and advice == "Install a release of jaxlib that has it."


def test_cholesky_is_lapacks_and_fails_matrix_by_matrix():
    good, bad = np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])
    found = np.asarray(tnp.linalg.cholesky(np.stack([good, bad])))
    np.testing.assert_allclose(found[0], np.linalg.cholesky(good), rtol=1e-15)
    assert np.isnan(found[1]).any() and found[1, 0, 1] == 0
    jaxpr, _ = trace_to_jaxpr(lambda x: (tnp.linalg.cholesky(x),), [aval_of(good)])
    assert "lapack_dpotrf_ffi" in emit.module(jaxpr).text
