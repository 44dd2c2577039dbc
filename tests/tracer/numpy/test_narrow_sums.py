"""Sums of 16-bit numbers are made in 32 bits, and rounded once."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("total", [tnp.sum, tnp.nansum, tnp.add.reduce, lambda x: tnp.trace(tnp.diag(x))])
def test_a_long_sum_is_rounded_once(total: Any, dtype: Any):
    x = np.full(2000, 0.1, dtype)
    expected = x.astype(np.float64).sum().astype(dtype)
    for found in (total(tnp.asarray(x)), tl.jit(total)(x)):
        assert found.dtype == dtype and float(found) == float(expected)


def test_the_gradient_is_of_the_dtype():
    x = tnp.ones(5, tnp.float16)
    assert tl.grad(lambda x: tnp.sum(x * x))(x).dtype == np.float16


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_long_sums_are_rounded_once(name: str, dtype: Any):
    x = np.random.default_rng(0).normal(size=500).astype(dtype)
    ours, theirs = getattr(tnp, name), getattr(np, name)
    expected = theirs.reduce(x.astype(np.float64)).astype(dtype)
    assert float(ours.reduce(x)) == float(ours.accumulate(x)[-1]) == float(expected)
