"""Convolutions where the compiler has those of real numbers only: complex ones by parts, those of integers refused."""

import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import emit
from tapeless.lowering.rules.contraction import _complex_convolution
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.samples.contraction import ROWS

CONVOLUTIONS = [row for row in ROWS if row.primitive.name == "conv_general_dilated"]


@pytest.mark.parametrize("row", CONVOLUTIONS, ids=str)
def test_complex_convolutions_by_parts(row):
    x, y = (np.asarray(a * (1 + 0.5j), np.complex64) for a in row.args)
    params = {**row.params, "preferred_element_type": None}
    (wanted,), found = row.primitive.bind(x, y, **params), _complex_convolution(x, y, **params)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)  # sums of products in another order


def test_integers_are_refused_on_a_gpu():
    x, y = np.ones((1, 1, 5), np.int32), np.ones((1, 1, 3), np.int32)
    jaxpr, _ = trace_to_jaxpr(lambda x, y: (tl.lax.conv(x, y, (1,), "SAME"),), [aval_of(x), aval_of(y)])
    with pytest.raises(NotImplementedError) as raised:
        emit.module(jaxpr, platform="gpu")
    assert str(raised.value) == (
        "conv_general_dilated: integers are convolved on the CPU only, and this program is for gpu: int32[1,1,5] and "
        "int32[1,1,3].\n  Convert to floating point: float64 is exact below 2**53."
    )
