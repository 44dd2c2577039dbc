"""The checker of gradient programs finds what it looks for, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests import dense_zeros

X = np.ones(16, np.float32)
ADDED, CONTRACTED = "zeros that are only added", "a one-hot that is only contracted"

FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "zeros": (lambda x: x + tnp.zeros(16), ADDED),
    "zeros subtracted": (lambda x: x - tnp.zeros((4, 4)).reshape(16), ADDED),
    "zeros in zeros": (lambda x: x + lax.dynamic_update_slice(tnp.zeros(16), tnp.zeros(4), (3,)), ADDED),
    "padded": (lambda x: x + lax.pad(tnp.zeros(4), np.float32(0), [(6, 6, 0)]), ADDED),
    "eye": (lambda x: tnp.eye(16) @ x, CONTRACTED),
    "chosen": (lambda x: tnp.where(lax.iota(np.int32, 16) == 3, x, 0) @ x, CONTRACTED),
    "in a call": (lambda x: tl.jit(lambda x: x + tnp.zeros(16))(x), ADDED),
}
NONE: dict[str, Callable[[Any], Any]] = {
    "a result": lambda x: (x, tnp.zeros(16)),
    "where a loop starts": lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, tnp.zeros(16)),
    "written into": lambda x: x + lax.dynamic_update_slice(tnp.zeros(16), x[:4], (3,)),
    "a scalar": lambda x: x + 0.0,
    "multiplied": lambda x: x * tnp.eye(16),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str):
    f, what = FAULTS[name]
    with pytest.raises(AssertionError, match=rf"^{what}: .* at .*test_dense_zeros\.py:\d+"):
        dense_zeros.check(tl.make_jaxpr(f)(X).jaxpr)


@pytest.mark.parametrize("name", NONE)
def test_none(name: str):
    jaxpr = tl.make_jaxpr(NONE[name])(X).jaxpr
    assert dense_zeros.check(jaxpr) is jaxpr
