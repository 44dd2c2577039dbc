"""Samples of contractions."""

import itertools
from typing import Any

import numpy as np

from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers
from tests.samples.sample import Sample, f32

NUMBERS = ("float16", "bfloat16", "float64", "complex64", "complex128", "int32", "uint8")
PRECISION = (c.Precision.DEFAULT, c.Precision.HIGHEST)

# ---- dot -----------------------------------------------------------------------------------------------------


def dot_reference(x: Any, y: Any, dimension_numbers: Any, precision: Any, preferred_element_type: Any) -> Any:
    (cx, cy), (bx, by) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    of_x, of_y = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for i, j in zip((*cx, *bx), (*cy, *by)):
        of_y[j] = of_x[i]
    free = (
        [of_x[i] for i in range(x.ndim) if i not in (*cx, *bx)],
        [of_y[j] for j in range(y.ndim) if j not in (*cy, *by)],
    )
    out = [*(of_x[i] for i in bx), *free[0], *free[1]]
    wide = preferred_element_type or x.dtype
    words = [*map("".join, (of_x, of_y, out))]
    return np.einsum(f"{words[0]},{words[1]}->{words[2]}", x.astype(wide), y.astype(wide))


def numbers(contracted: Any, batch: Any = ((), ()), dtype: Any = None) -> dict[str, Any]:
    preferred = None if dtype is None else np.dtype(dtype)
    return {"dimension_numbers": (contracted, batch), "precision": PRECISION, "preferred_element_type": preferred}


def dot(x: Any, y: Any, params: Any, **options: Any) -> list[Sample]:
    """A row for each operand that it is linear in."""
    label = options.pop("label", "")
    rows = [Sample(c.dot_general_p, (x, y), dot_reference, params, (0,), label=f"{label}-lhs", **options)]
    return [*rows, Sample(c.dot_general_p, (x, y), dot_reference, params, (1,), label=f"{label}-rhs")]


MATRICES = numbers(((1,), (0,)))
TENSORS = numbers(((1, 3), (2, 0)), ((0,), (3,)))
X, Y = f32(3, 4), f32(4, 2, seed=1)

DOTS = [
    *dot(
        X,
        Y,
        MATRICES,
        dtypes=NUMBERS,
        bad=(
            ((X, f32(3, 2)), MATRICES, TypeError),
            ((X, Y.astype(np.float64)), MATRICES, TypeError),
            ((f32(2, 3, 4), f32(5, 4, 2)), numbers(((2,), (1,)), ((0,), (0,))), TypeError),
        ),
    ),
    *dot(f32(2, 3, 4, 5), f32(5, 6, 3, 2, seed=1), TENSORS, label="tensors"),
    *dot(f32(2, 3), f32(2, 3, seed=1), numbers(((), ()), ((0, 1), (0, 1))), label="batch-only"),
    *dot(f32(3), f32(2, seed=1), numbers(((), ())), label="outer"),
    *dot(f32(3, 0), f32(0, 2), MATRICES, label="empty-sum"),
    *dot(f32(0, 4), Y, MATRICES, label="empty"),
    *dot(X, Y, numbers(((1,), (0,)), dtype=np.float64), label="wider"),
    Sample(c.dot_general_p, (X > 0, Y > 0), dot_reference, numbers(((1,), (0,)), dtype=np.int32), label="count"),
]

# ---- convolution ---------------------------------------------------------------------------------------------


def conv_reference(
    x: Any,
    y: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """Element by element, from the definition."""
    lhs, rhs, out = dimension_numbers
    x, y = x.transpose(lhs), y.transpose(rhs)
    x = spread_and_padded(x, lhs_dilation, padding)
    y = spread_and_padded(y, rhs_dilation, [(0, 0)] * len(padding))
    groups = feature_group_count * batch_group_count
    parts = zip(np.split(x, groups, 1 if feature_group_count > 1 else 0), np.split(y, groups, 0))
    whole = np.concatenate([correlated(a, b, window_strides) for a, b in parts], 1)
    return whole.transpose(np.argsort(out)).astype(preferred_element_type or x.dtype)


def spread_and_padded(x: Any, dilation: Any, padding: Any) -> Any:
    space = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], dilation)]
    wide = np.zeros((*x.shape[:2], *space), x.dtype)
    wide[(..., *[slice(None, None, d) for d in dilation])] = x
    padded = np.pad(wide, [(0, 0), (0, 0), *[(max(low, 0), max(high, 0)) for low, high in padding]])
    keep = [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(padded.shape[2:], padding)]
    return padded[(..., *keep)]


def correlated(x: Any, y: Any, strides: Any) -> Any:
    """[n, c, space] with [o, c, kernel]: windows times the kernel, summed over features and space."""
    kernel = y.shape[2:]
    counts = [max((n - k) // s + 1, 0) for n, k, s in zip(x.shape[2:], kernel, strides)]
    out = np.zeros((x.shape[0], y.shape[0], *counts), x.dtype)
    for at in itertools.product(*map(range, counts)):
        window = x[(..., *[slice(i * s, i * s + k) for i, s, k in zip(at, strides, kernel)])]
        out[(..., *at)] = np.tensordot(window, y, (range(1, y.ndim), range(1, y.ndim)))
    return out


def convolution(
    strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, specs: Any = None, groups: Any = (1, 1)
) -> dict[str, Any]:
    plain = [tuple(range(len(strides) + 2))] * 3
    return {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "dimension_numbers": ConvDimensionNumbers(*(specs or plain)),
        "feature_group_count": groups[0],
        "batch_group_count": groups[1],
        "precision": PRECISION,
        "preferred_element_type": None,
    }


def conv(x: Any, y: Any, params: Any, **options: Any) -> list[Sample]:
    """A row for each operand that it is linear in. Sums of some dozen products, in another order."""
    label = options.pop("label", "")
    each: Any = {"primitive": c.conv_general_dilated_p, "args": (x, y), "reference": conv_reference, "params": params}
    return [
        Sample(**each, linear_in=(0,), label=f"{label}-lhs", rtol=1e-5, **options),
        Sample(**each, linear_in=(1,), label=f"{label}-rhs", rtol=1e-5),
    ]


LINE = convolution((1,), ((0, 0),), (1,), (1,))
PLANE = convolution((2, 1), ((1, 2), (-1, 1)), (1, 2), (2, 1))
CHANNELS_LAST = convolution((1, 2), ((1, 1), (0, 1)), (1, 1), (1, 1), ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)))
FEATURES = convolution((2,), ((1, 0),), (2,), (1,), groups=(3, 1))
BATCHES = convolution((1,), ((2, 1),), (1,), (2,), groups=(1, 2))
IMAGE, KERNEL = f32(2, 3, 6), f32(4, 3, 2, seed=1)

CONVOLUTIONS = [
    *conv(
        IMAGE,
        KERNEL,
        LINE,
        dtypes=NUMBERS,
        bad=(
            ((IMAGE, KERNEL.astype(np.float64)), LINE, TypeError),
            ((IMAGE, f32(4, 2, 2)), LINE, ValueError),
            ((IMAGE, f32(4, 1, 2)), {**LINE, "feature_group_count": 3}, ValueError),
            ((f32(3, 3, 6), KERNEL), {**LINE, "batch_group_count": 2}, ValueError),
            ((IMAGE, KERNEL), {**LINE, "feature_group_count": 3, "batch_group_count": 2}, ValueError),
            ((IMAGE, KERNEL), {**LINE, "feature_group_count": 0}, ValueError),
        ),
    ),
    *conv(f32(2, 3, 6, 5), f32(4, 3, 2, 3, seed=1), PLANE, label="plane"),
    *conv(f32(2, 6, 5, 3), f32(2, 3, 3, 4, seed=1), CHANNELS_LAST, label="channels-last"),
    *conv(f32(2, 6, 5), f32(3, 2, 3, seed=1), FEATURES, label="features"),
    *conv(f32(4, 3, 5), f32(6, 3, 2, seed=1), BATCHES, label="batches"),
    *conv(f32(0, 3, 6), KERNEL, LINE, label="empty"),
    *conv(f32(2, 3, 1), KERNEL, LINE, label="no-room"),
    *conv(f32(2, 3), f32(4, 3, seed=1), convolution((), (), (), ()), label="point"),
]

ROWS = [*DOTS, *CONVOLUTIONS]
