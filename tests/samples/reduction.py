"""Samples of the reductions."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives import reduction as r
from tests.samples.sample import Sample, f32

INEXACT = ("float16", "bfloat16", "float64", "complex64", "complex128")
NUMBERS = (*INEXACT, "int8", "uint16", "int64")
ORDERED = ("float16", "bfloat16", "float64", "int8", "uint32", "int64", "bool")
X = f32(3, 4, 2)
BOOLS = np.array([[True, False, True], [True, True, True]])
BITS = np.array([[12, 7, 255], [9, 3, 128]], np.int32)
NAN = np.array([[1, np.nan, 3], [2, -np.inf, 2]], np.float32)
TIES = np.array([[2, 1, 2, 2], [0, 0, -1, 0]], np.float32)
ZEROS = np.array([[2, 0, 3, 1], [0, 4, 0, 1], [3, 2, 1, 2]], np.float32)
ENDS = np.array([-np.inf, -np.inf, 1, 90, -np.inf, 700, -200], np.float32)


def over_axes(function: Any) -> Any:
    """The reference of a reduction; the dtype of the operand is that of the result."""

    def reference(x: Any, axes: tuple[int, ...]) -> Any:
        initial = {np.max: -np.inf, np.min: np.inf}.get(function)
        given = {} if initial is None or x.size else {"initial": initial}
        return np.asarray(function(x, axis=axes, **given), x.dtype)

    return reference


def along_axis(function: Any) -> Any:
    """The reference of a cumulative reduction."""

    def reference(x: Any, axis: int, reverse: bool) -> Any:
        return flipped(function(flipped(x, axis, reverse), axis).astype(x.dtype), axis, reverse)

    return reference


def flipped(x: Any, axis: int, reverse: bool) -> Any:
    return np.flip(x, axis) if reverse else x


def position(function: Any) -> Any:
    return lambda x, axis, index_dtype: function(x, axis).astype(index_dtype)


def linear_recurrence(decay: Any, x: Any, axis: int, reverse: bool) -> Any:
    a, b = (np.moveaxis(flipped(v, axis, reverse), axis, 0) for v in (decay, x))
    z = np.array(b)
    for i in range(1, len(z)):
        z[i] = a[i] * z[i - 1] + b[i]
    return flipped(np.moveaxis(z, 0, axis), axis, reverse)


def reduction(primitive: Any, function: Any, x: Any = X, axes: tuple[int, ...] = (1,), **options: Any) -> Sample:
    return Sample(primitive, (x,), over_axes(function), {"axes": axes}, **options)


def cumulative(
    primitive: Any, function: Any, x: Any = X, axis: int = 1, reverse: bool = False, **options: Any
) -> Sample:
    return Sample(primitive, (x,), along_axis(function), {"axis": axis, "reverse": reverse}, **options)


def extreme(primitive: Any, function: Any) -> list[Sample]:
    return [
        reduction(primitive, function, axes=(0, 2), dtypes=ORDERED),
        reduction(primitive, function, axes=(), label="no-axes"),
        reduction(primitive, function, NAN, differentiable=(), label="nan"),
        reduction(primitive, function, TIES, differentiable=(), label="ties"),
        reduction(primitive, function, f32(0, 3), (0,), differentiable=(), label="empty"),
        reduction(primitive, function, X + 1j * X[::-1], label="complex"),
    ]


def positions(primitive: Any, function: Any) -> list[Sample]:
    at = {"axis": 1, "index_dtype": np.dtype("int32")}
    wide = {"axis": 0, "index_dtype": np.dtype("int64")}
    bad = (
        ((X + 1j,), at, TypeError),
        ((f32(3, 0),), at, ValueError),
        ((X,), {**at, "index_dtype": np.dtype("float32")}, TypeError),
        ((np.zeros((2, 300), np.float32),), {**at, "index_dtype": np.dtype("uint8")}, TypeError),
    )
    return [
        Sample(primitive, (X,), position(function), at, dtypes=ORDERED, bad=bad),
        Sample(primitive, (X,), position(function), wide, label="wide"),
        Sample(primitive, (TIES,), position(function), at, label="ties"),
        Sample(primitive, (NAN,), position(function), at, label="nan"),
        Sample(primitive, (np.full((2, 3), np.inf, np.float32),), position(function), at, label="infinite"),
        Sample(primitive, (f32(3, 0),), position(function), wide, label="empty"),
    ]


def logic(primitive: Any, function: Any) -> list[Sample]:
    return [
        reduction(primitive, function.reduce, BOOLS, bad=(((X,), {"axes": (0,)}, TypeError),)),
        reduction(primitive, function.reduce, BITS, (0,), dtypes=("uint8", "int64"), label="bits"),
        reduction(primitive, function.reduce, BOOLS[:0], (0,), label="empty"),
        reduction(primitive, function.reduce, BITS[:0], (0,), dtypes=("uint8",), label="empty-bits"),
    ]


def running_extreme(primitive: Any, function: Any) -> list[Sample]:
    bad = (((X + 1j,), {"axis": 0, "reverse": False}, TypeError),)
    return [
        cumulative(primitive, function, dtypes=ORDERED, bad=bad),
        cumulative(primitive, function, axis=0, reverse=True, label="reverse"),
        cumulative(primitive, function, TIES, differentiable=(), label="ties"),
        cumulative(primitive, function, NAN, differentiable=(), label="nan"),
        cumulative(primitive, function, f32(0, 3), 0, label="empty"),
        cumulative(primitive, function, f32(2, 100), 1, label="long"),
    ]


REDUCTIONS = [
    reduction(r.reduce_sum_p, np.sum, dtypes=NUMBERS, linear_in=(0,), bad=(((BOOLS,), {"axes": (0,)}, TypeError),)),
    reduction(r.reduce_sum_p, np.sum, axes=(0, 1, 2), linear_in=(0,), label="all"),
    reduction(r.reduce_sum_p, np.sum, f32(0, 3), (0,), linear_in=(0,), label="empty"),
    reduction(r.reduce_prod_p, np.prod, axes=(0, 2), dtypes=NUMBERS, bad=(((BOOLS,), {"axes": (0,)}, TypeError),)),
    reduction(r.reduce_prod_p, np.prod, ZEROS, label="zeros"),
    reduction(r.reduce_prod_p, np.prod, f32(0, 3), (0,), label="empty"),
    reduction(r.reduce_prod_p, np.prod, X + 1j * X[::-1], (0, 1), label="complex"),
    *extreme(r.reduce_max_p, np.max),
    *extreme(r.reduce_min_p, np.min),
    *logic(r.reduce_and_p, np.bitwise_and),
    *logic(r.reduce_or_p, np.bitwise_or),
    *logic(r.reduce_xor_p, np.bitwise_xor),
    *positions(r.argmax_p, np.argmax),
    *positions(r.argmin_p, np.argmin),
]

NOT_BOOL = (((BOOLS,), {"axis": 0, "reverse": False}, TypeError),)
CUMULATIVE = [
    cumulative(r.cumsum_p, np.cumsum, dtypes=NUMBERS, linear_in=(0,), bad=NOT_BOOL),
    cumulative(r.cumsum_p, np.cumsum, axis=0, reverse=True, linear_in=(0,), label="reverse"),
    cumulative(r.cumsum_p, np.cumsum, f32(0, 3), 0, linear_in=(0,), label="empty"),
    # Sums in another order than NumPy's.
    cumulative(r.cumsum_p, np.cumsum, f32(1000, low=0), 0, linear_in=(0,), label="long", rtol=1e-5),
    cumulative(r.cumprod_p, np.cumprod, dtypes=NUMBERS, bad=NOT_BOOL),
    cumulative(r.cumprod_p, np.cumprod, ZEROS, label="zeros"),
    cumulative(r.cumprod_p, np.cumprod, ZEROS, reverse=True, label="zeros-reverse"),
    cumulative(r.cumprod_p, np.cumprod, 1 + 0.1 * f32(2, 100), 1, label="long", rtol=1e-5),
    cumulative(r.cumprod_p, np.cumprod, f32(0, 3), 0, label="empty"),
    *running_extreme(r.cummax_p, np.maximum.accumulate),
    *running_extreme(r.cummin_p, np.minimum.accumulate),
    cumulative(
        r.cumlogsumexp_p,
        np.logaddexp.accumulate,
        dtypes=("float16", "bfloat16", "float64"),
        bad=(((X + 1j,), {"axis": 0, "reverse": False}, TypeError),),
    ),
    cumulative(r.cumlogsumexp_p, np.logaddexp.accumulate, 30 * f32(2, 100), 1, True, label="long", rtol=1e-5),
    cumulative(r.cumlogsumexp_p, np.logaddexp.accumulate, ENDS, 0, differentiable=(), label="infinite"),
    cumulative(r.cumlogsumexp_p, np.logaddexp.accumulate, ENDS, 0, True, differentiable=(), label="infinite-reverse"),
    cumulative(r.cumlogsumexp_p, np.logaddexp.accumulate, f32(0, 3), 0, label="empty"),
]


def recurrence(decay: Any, x: Any, axis: int, reverse: bool, **options: Any) -> Sample:
    params = {"axis": axis, "reverse": reverse}
    return Sample(r.linear_recurrence_p, (decay, x), linear_recurrence, params, linear_in=(1,), **options)


FORWARDS = {"axis": 0, "reverse": False}
RECURRENCES = [
    recurrence(
        X,
        X[::-1],
        1,
        False,
        dtypes=INEXACT,
        bad=(
            ((X, X.astype(np.float64)), FORWARDS, TypeError),
            ((X, X[:, :1]), FORWARDS, ValueError),
            ((X, X[0, 0, 0]), FORWARDS, ValueError),
            ((BITS, BITS), FORWARDS, TypeError),
        ),
    ),
    recurrence(f32(2, 100), f32(2, 100, seed=1), 1, True, label="long-reverse", rtol=1e-5),  # another order of sums
    recurrence(f32(0, 3), f32(0, 3), 0, False, label="empty"),
]

ROWS = [*REDUCTIONS, *CUMULATIVE, *RECURRENCES]
