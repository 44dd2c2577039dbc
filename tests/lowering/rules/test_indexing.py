"""Lowered reads and writes at the edges of shapes."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.usefixtures("optimized")
def test_a_scatter_into_an_empty_array_writes_nothing(shape: tuple[int, ...], mode: str):
    update = np.ones(shape[1:], np.float64)
    for f in (lambda x, i: x.at[i].set(update, mode=mode), lambda x, i: x.at[..., i].add(1.0, mode=mode)):
        x = tnp.zeros(shape)
        assert tl.jit(f)(x, 0).shape == f(x, 0).shape == shape
        assert tl.grad(lambda x, f=f: f(x, 0).sum())(x).shape == shape
