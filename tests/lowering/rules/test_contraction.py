"""Convolutions: complex ones by parts, integers by limbs, groups cut by negative padding."""

from functools import partial

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax
from tapeless.lowering.rules.contraction import _complex_convolution, _integer_convolution
from tests.samples.contraction import ROWS

CONVOLUTIONS = [row for row in ROWS if row.primitive.name == "conv_general_dilated"]


@pytest.mark.parametrize("row", CONVOLUTIONS, ids=str)
def test_complex_convolutions_by_parts(row):
    x, y = (np.asarray(a * (1 + 0.5j), np.complex64) for a in row.args)
    params = {**row.params, "preferred_element_type": None}
    (wanted,), found = row.primitive.bind(x, y, **params), _complex_convolution(x, y, **params)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)  # sums of products in another order


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("row", CONVOLUTIONS, ids=str)
def test_integer_convolutions_by_limbs(row, name):
    """What the CPU computes at once, with numbers of all bits, whose sums wrap."""
    info = np.iinfo(name)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, a.shape, name, endpoint=True) for a in row.args)
    for wider in (None, *([np.dtype(np.int32)] if info.bits < 32 else [])):
        params = {**row.params, "preferred_element_type": wider}
        (wanted,), found = row.primitive.bind(x, y, **params), _integer_convolution(x, y, **params)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


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
