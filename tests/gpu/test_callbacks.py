"""Functions on the host that a program on a GPU calls: their values, their order, and their exceptions."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.gpu.comparing import on

X = np.array([0.5, -1.0, 2.0], np.float32)
SHAPE = tl.ShapeDtypeStruct((3,), np.float32)


def test_values(device: Any):
    def f(x: Any) -> Any:
        return 2 * tl.pure_callback(np.sin, SHAPE, x + 1)

    np.testing.assert_allclose(on(device, f, X)[0], 2 * np.sin(X + 1), rtol=1e-6)  # float32


def test_several_dtypes(device: Any):
    def host(x: Any, k: Any, mask: Any) -> Any:
        return np.where(mask, x, 0), k + 1, ~mask

    def f(x: Any) -> Any:
        shapes = SHAPE, tl.ShapeDtypeStruct((3,), np.int32), tl.ShapeDtypeStruct((3,), bool)
        return tl.pure_callback(host, shapes, x, tnp.arange(3, dtype=np.int32), x > 0)

    found = on(device, f, X)
    assert [y.tolist() for y in found] == [[0.5, 0.0, 2.0], [1, 2, 3], [False, True, False]]


def test_batched_and_differentiated(device: Any):
    @tl.custom_vjp
    def f(x: Any) -> Any:
        return tl.pure_callback(np.sin, tl.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential")

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (tnp.cos(x) * ct,))
    np.testing.assert_allclose(on(device, tl.vmap(tl.grad(f)), X)[0], np.cos(X), rtol=1e-6)  # float32


def test_effects_happen_in_order(device: Any):
    seen: list[int] = []

    def f(x: Any) -> Any:
        for k in range(3):
            tl.io_callback(lambda k: seen.append(int(k)), None, np.int32(k), ordered=True)
        for k in range(3, 6):
            tl.debug.callback(lambda k: seen.append(int(k)), np.int32(k), ordered=True)
        return x

    on(device, f, X)
    tl.effects_barrier()
    assert seen == list(range(6))


def test_exceptions(device: Any):
    def host(x: Any) -> Any:
        raise KeyError("from the host")

    with pytest.raises(KeyError, match="from the host"):
        on(device, lambda x: tl.pure_callback(host, SHAPE, x), X)


def test_printing(device: Any, capsys: Any):
    on(device, lambda x: tl.debug.print("x = {}", x) or x, X)
    tl.effects_barrier()
    assert capsys.readouterr().out == "x = [ 0.5 -1.   2. ]\n"
