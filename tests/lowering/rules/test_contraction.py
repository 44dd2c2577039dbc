"""Convolutions: complex ones by parts, integers refused on a GPU, groups cut by negative padding."""

from functools import partial

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax
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
    what, place, advice = str(raised.value).split("\n  ")
    assert what == (
        "conv_general_dilated of int32[1,1,5] and int32[1,1,3]: integers are convolved on the CPU only; the program is "
        "for gpu."
    )
    assert place.startswith("At tests/lowering/rules/test_contraction.py:") and "tl.lax.conv(x, y" in place
    assert advice == "Convert to floating point: float64 is exact below 2**53."


@pytest.mark.parametrize("seed", range(12))
def test_grouped_convolutions_cut_by_negative_padding(seed):
    """The adjoints of a bilinear map: <x, gx> = <w, gw> = <y, c>; some of the results are empty."""
    rng = np.random.default_rng(seed)
    groups, by_features = int(rng.integers(2, 5)), seed % 2 == 0
    x = rng.normal(size=(2, groups, 7) if by_features else (2 * groups, 3, 7))
    w = rng.normal(size=(2 * groups, 1 if by_features else 3, int(rng.integers(1, 4))))
    convolve = partial(
        lax.conv_general_dilated,
        window_strides=(int(rng.integers(1, 4)),),
        padding=[tuple(rng.integers(-4, 1, 2).tolist())],
        lhs_dilation=(int(rng.integers(1, 3)),),
        rhs_dilation=(int(rng.integers(1, 3)),),
        **{"feature_group_count" if by_features else "batch_group_count": groups},
    )
    y, pull = tl.vjp(convolve, x, w)
    c = rng.normal(size=y.shape)
    for gx, gw in (pull(c), tl.jit(lambda x, w, c: tl.vjp(convolve, x, w)[1](c))(x, w, c)):
        np.testing.assert_allclose([np.vdot(gx, x), np.vdot(gw, w)], [np.vdot(y, c)] * 2, rtol=1e-12, atol=1e-12)
