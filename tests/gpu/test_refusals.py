"""What a GPU program cannot do is refused before anything is compiled, with what it is and where it can be done."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tests.gpu import IS_GPU
from tests.gpu.comparing import on

pytestmark = pytest.mark.skipif(not IS_GPU, reason="the CPU refuses none of this")
SHAPE = tl.ShapeDtypeStruct((3,), np.float32)
CALLBACKS = {
    "pure_callback": lambda x: tl.pure_callback(lambda x: x, SHAPE, x),
    "io_callback": lambda x: tl.io_callback(lambda x: x, SHAPE, x),
    "debug.print": lambda x: tl.debug.print("{}", x) or x,
    "debug.callback": lambda x: tl.debug.callback(lambda x: None, x) or x,
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks(name: str, device: Any):
    with pytest.raises(NotImplementedError, match="cannot call functions on the host: only the CPU's can"):
        on(device, CALLBACKS[name], np.ones(3, np.float32))


@pytest.mark.parametrize("name", ["hessenberg", "schur"])
def test_factorizations(name: str, device: Any):
    with pytest.raises(NotImplementedError, match="this routine of LAPACK runs on the CPU; the program is for gpu"):
        on(device, getattr(tl.lax.linalg, name), np.eye(3, dtype=np.float32))


def test_convolutions_of_integers(device: Any):
    with pytest.raises(NotImplementedError, match=r"integers are convolved on the CPU only.*\n.*float64 is exact"):
        on(
            device,
            lambda x, y: tl.lax.conv(x, y, (1,), "SAME"),
            np.ones((1, 1, 5), np.int32),
            np.ones((1, 1, 3), np.int32),
        )
