"""Samples of operations on the representation of numbers."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives import bits as b
from tests.samples.elementwise import INTEGERS, SIGNED, c64, i32, truth
from tests.samples.sample import Sample, f32


def _clz(x: Any) -> Any:
    return np.array([8 * x.dtype.itemsize - int(v).bit_length() for v in x], x.dtype)


_UNARY = {
    b.not_p: np.invert,
    b.population_count_p: lambda x: np.bitwise_count(x).astype(x.dtype),
    b.clz_p: _clz,
}
_BINARY = {
    b.and_p: np.bitwise_and,
    b.or_p: np.bitwise_or,
    b.xor_p: np.bitwise_xor,
    b.shift_left_p: np.left_shift,
    b.shift_right_logical_p: np.right_shift,
    b.shift_right_arithmetic_p: np.right_shift,
}
_LOGICAL = (b.not_p, b.and_p, b.or_p, b.xor_p)


def _logical_shift(x: Any, y: Any) -> Any:
    return (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32)


def _bad(primitive: Any, n: int) -> Any:
    rows: list[Any] = [((f32(3, 2),) * n, {}, TypeError)]
    if primitive not in _LOGICAL:
        rows.append(((truth(3, 2),) * n, {}, TypeError))
    if n == 2:
        rows += [((i32(3), i32(2)), {}, ValueError), ((i32(3), i32(3).astype("u4")), {}, TypeError)]
    return tuple(rows)


def _view(x: Any, dtype: Any) -> Any:
    narrower = dtype.itemsize < x.dtype.itemsize
    wider = dtype.itemsize > x.dtype.itemsize
    return x[..., None].view(dtype) if narrower else x.view(dtype)[..., 0] if wider else x.view(dtype)


def _reduced(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    return x.astype(np.float16).astype(x.dtype)


ROWS = [
    *(Sample(p, (i32(5),), reference, dtypes=INTEGERS, bad=_bad(p, 1)) for p, reference in _UNARY.items()),
    *(
        Sample(p, (i32(5), i32(5, seed=1)), reference, dtypes=INTEGERS, bad=_bad(p, 2))
        for p, reference in _BINARY.items()
    ),
    *(Sample(p, (i32(5), np.array(2, np.int32)), ref, label="scalar") for p, ref in _BINARY.items()),
    Sample(b.not_p, (truth(5),), np.invert, label="bool"),
    *(Sample(p, (truth(9), truth(9, seed=1)), _BINARY[p], label="bool") for p in _LOGICAL[1:]),
    Sample(b.shift_right_arithmetic_p, (-i32(5), i32(5)), np.right_shift, dtypes=SIGNED, label="negative"),
    Sample(b.shift_right_logical_p, (-i32(5), i32(5)), _logical_shift, label="negative"),
    *(
        Sample(
            b.bitcast_convert_type_p, (x,), _view, {"dtype": np.dtype(to)}, differentiable=(), label=f"{x.dtype}-{to}"
        )
        for x, to in (
            (f32(3), "int32"),
            (f32(3), "uint16"),
            (f32(3), "float32"),
            (c64(3), "complex64"),
            (i32(3, 2), "float64"),
            (i32(3, 2), "uint64"),
            (i32(3, 2), "uint8"),
        )
    ),
    Sample(
        b.bitcast_convert_type_p,
        (i32(3),),
        _view,
        {"dtype": np.dtype("float32")},
        bad=(
            ((c64(3),), {"dtype": np.dtype("int64")}, TypeError),
            ((truth(3),), {"dtype": np.dtype("uint8")}, TypeError),
            ((i32(3, 3),), {"dtype": np.dtype("int64")}, ValueError),
            ((i32(),), {"dtype": np.dtype("int64")}, ValueError),
        ),
    ),
    # A staircase: it is differentiated as the identity that it approximates.
    Sample(
        b.reduce_precision_p,
        (f32(9),),
        _reduced,
        {"exponent_bits": 5, "mantissa_bits": 10},
        differentiable=(),
        bad=(
            ((i32(3),), {"exponent_bits": 5, "mantissa_bits": 10}, TypeError),
            ((f32(3),), {"exponent_bits": 0, "mantissa_bits": 10}, ValueError),
            ((f32(3),), {"exponent_bits": 5, "mantissa_bits": -1}, ValueError),
        ),
    ),
]
