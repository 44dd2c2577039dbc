"""What a GPU program cannot do is refused before anything is compiled, with what it is and where it can be done."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tests.gpu import IS_GPU
from tests.gpu.comparing import on

pytestmark = pytest.mark.skipif(not IS_GPU, reason="the CPU refuses none of this")


@pytest.mark.parametrize("name", ["hessenberg", "schur"])
def test_factorizations(name: str, device: Any):
    with pytest.raises(NotImplementedError, match="no kernel computes the same here; the program is for gpu"):
        on(device, getattr(tl.lax.linalg, name), np.eye(3, dtype=np.float32))
