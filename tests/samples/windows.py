"""Samples of windows."""

import itertools
from typing import Any

import numpy as np

from tapeless.tracer.primitives import windows as w
from tests.samples.sample import Sample, f32

NUMBERS = ("float16", "bfloat16", "float64", "complex64", "int32", "uint8")
ORDERED = ("float16", "bfloat16", "float64", "int32", "uint8")
X = f32(5, 6)


def window(
    dimensions: Any, strides: Any = None, padding: Any = None, base_dilation: Any = None, window_dilation: Any = None
) -> dict[str, Any]:
    ones = (1,) * len(dimensions)
    return {
        "window_dimensions": dimensions,
        "window_strides": strides or ones,
        "padding": padding or ((0, 0),) * len(dimensions),
        "base_dilation": base_dilation or ones,
        "window_dilation": window_dilation or ones,
    }


def laid_out(
    x: Any,
    fill: Any,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> Any:
    """[the positions of the window, its elements in row-major order]; what is outside of x is `fill`."""
    each = zip(x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    starts, sizes = [], []
    for n, k, stride, (low, high), spacing, dilation in each:
        length = (n - 1) * spacing + 1 if n else 0
        starts.append(range(-low, length + high - (k - 1) * dilation, stride))
        sizes.append(range(0, k * dilation, dilation))

    def element(at: Any) -> Any:
        inside = all(i % d == 0 and 0 <= i // d < n for i, d, n in zip(at, base_dilation, x.shape))
        return x[tuple(i // d for i, d in zip(at, base_dilation))] if inside else fill

    found = [
        [element(tuple(a + b for a, b in zip(start, offset))) for offset in itertools.product(*sizes)]
        for start in itertools.product(*starts)
    ]
    shape = (*map(len, starts), int(np.prod(window_dimensions)))
    return np.asarray(found, x.dtype).reshape(shape)


def reduced(function: Any, fill: Any) -> Any:
    def reference(x: Any, **params: Any) -> Any:
        at_the_end = fill(x.dtype) if callable(fill) else fill
        return function(laid_out(x, at_the_end, **params), axis=-1).astype(x.dtype)

    return reference


def least(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def greatest(dtype: Any) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def gather_reference(tangents: Any, x: Any, select: str, **params: Any) -> Any:
    params = window(*params.values())
    places, found = chosen(x, select, params)
    out = np.take_along_axis(laid_out(tangents, 0, **params), places[..., None], -1)[..., 0]
    return np.where(found, out, 0).astype(tangents.dtype)


def scatter_reference(source: Any, x: Any, select: str, **params: Any) -> Any:
    params = window(*params.values())
    places, found = chosen(x, select, params)
    numbers = laid_out(np.arange(x.size, dtype=np.float64).reshape(x.shape), 0, **params)
    targets = np.take_along_axis(numbers, places[..., None], -1)[..., 0].astype(int)
    out = np.zeros(x.size, source.dtype)
    np.add.at(out, targets[found], source[found])
    return out.reshape(x.shape)


def chosen(x: Any, select: str, params: Any) -> Any:
    """Which element of each window is the first extreme, and whether there is any."""
    sign = 1 if select == "ge" else -1
    candidates = laid_out(sign * x, -np.inf, **params)
    return np.argmax(candidates, -1), np.max(candidates, -1) > -np.inf


def sums(params: Any, **options: Any) -> Sample:
    return Sample(w.reduce_window_sum_p, (X,), reduced(np.sum, 0), params, linear_in=(0,), **options)


PLAIN = window((2, 3))
MOVED = window((2, 3), (2, 1), ((1, 0), (2, 3)))
SPREAD = window((2, 2), (1, 2), ((0, 2), (1, 1)), (2, 1), (1, 3))
CUT = window((2, 1), None, ((-1, 0), (-1, 2)))
BEYOND = window((7, 1))
NOTHING = window((2, 1), None, ((0, 1), (0, -9)))  # more is cut than there is
EACH = (("moved", MOVED), ("spread", SPREAD), ("cut", CUT), ("beyond", BEYOND), ("nothing", NOTHING))


def extremes(primitive: Any, function: Any, fill: Any) -> list[Sample]:
    # Differences of infinities are nan: derivatives are tested where no window is nothing but padding.
    bad = (((X + 1j,), PLAIN, TypeError),)
    return [
        Sample(primitive, (X,), reduced(function, fill), PLAIN, dtypes=ORDERED, bad=bad),
        Sample(primitive, (X,), reduced(function, fill), window((2, 3), (2, 2), ((1, 0), (1, 1))), label="moved"),
        Sample(primitive, (X,), reduced(function, fill), window((2, 2), None, None, None, (2, 3)), label="spread"),
        Sample(primitive, (X,), reduced(function, fill), window((3, 3), None, None, (2, 2)), label="dilated"),
        Sample(primitive, (X,), reduced(function, fill), CUT, differentiable=(), label="cut"),
        Sample(primitive, (f32(0, 3),), reduced(function, fill), PLAIN, label="empty"),
        Sample(primitive, (X,), reduced(function, fill), NOTHING, label="nothing"),
    ]


POOL = {"select": "ge", "window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((1, 0), (0, 1))}
LOWEST = {"select": "le", "window_dimensions": (2, 2), "window_strides": (2, 2), "padding": ((0, 0), (0, 0))}
TIES = np.array([[1, 1, 0, 2], [1, 1, 2, 2], [0, 0, 0, 0]], np.float32)
POOLED, TIED = f32(5, 3, seed=1), f32(1, 2, seed=1)


def gathered(tangents: Any, x: Any, params: Any, **options: Any) -> Sample:
    return Sample(w.select_and_gather_add_p, (tangents, x), gather_reference, params, (0,), (0,), **options)


def scattered(source: Any, x: Any, params: Any, **options: Any) -> Sample:
    return Sample(w.select_and_scatter_add_p, (source, x), scatter_reference, params, (0,), (0,), **options)


ROWS = [
    sums(PLAIN, dtypes=NUMBERS, bad=(((X > 0,), PLAIN, TypeError),)),
    *[sums(params, label=label) for label, params in EACH],
    Sample(w.reduce_window_sum_p, (f32(0, 3),), reduced(np.sum, 0), PLAIN, linear_in=(0,), label="empty"),
    Sample(
        w.reduce_window_prod_p,
        (X,),
        reduced(np.prod, 1),
        PLAIN,
        dtypes=NUMBERS,
        bad=(((X > 0,), PLAIN, TypeError),),
    ),
    *[Sample(w.reduce_window_prod_p, (X,), reduced(np.prod, 1), params, label=label) for label, params in EACH],
    Sample(w.reduce_window_prod_p, (np.round(X),), reduced(np.prod, 1), PLAIN, label="zeros"),
    *extremes(w.reduce_window_max_p, np.max, least),
    *extremes(w.reduce_window_min_p, np.min, greatest),
    gathered(
        f32(5, 6, seed=1),
        X,
        POOL,
        dtypes=("float16", "bfloat16", "float64"),
        bad=(
            ((X, X[:3]), POOL, ValueError),
            ((X, X.astype(np.float64)), POOL, TypeError),
            ((X.astype(np.int32), X.astype(np.int32)), POOL, TypeError),
        ),
    ),
    gathered(f32(3, 4), TIES, LOWEST, label="ties"),
    scattered(
        POOLED,
        X,
        POOL,
        dtypes=("float16", "bfloat16", "float64"),
        bad=(
            ((X, X), POOL, ValueError),
            ((POOLED, X.astype(np.float64)), POOL, TypeError),
            ((POOLED.astype(np.int32), X.astype(np.int32)), POOL, TypeError),
        ),
    ),
    scattered(TIED, TIES, LOWEST, label="ties"),
]
