"""Samples of sorting."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives import sorting as s
from tests.samples.sample import Sample, f32

X = f32(3, 5)
TIES = np.array([3, 1, 2, 1, 3, 1], np.float32)
SPECIAL = np.array([np.nan, 1, np.inf, 0.0, -0.0, -np.inf, np.nan, -1], np.float32)
PLACES = np.arange(6, dtype=np.int32)
ORDERED = ("bool", "int8", "uint32", "int64", "float16", "bfloat16", "float64", "complex64")


def sort_reference(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    order = np.lexsort(xs[:num_keys][::-1], axis=dimension)
    return tuple(np.take_along_axis(x, order, dimension) for x in xs)


def top_k_reference(x: Any, k: int) -> Any:
    """The last of the sorted, backwards; sorting the reversed one keeps the order of ties."""
    places = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)


def by(dimension: int, num_keys: int = 1) -> dict[str, Any]:
    return {"dimension": dimension, "is_stable": True, "num_keys": num_keys}


def sorting(*xs: Any, dimension: int = 0, num_keys: int = 1, **options: Any) -> Sample:
    return Sample(s.sort_p, xs, sort_reference, by(dimension, num_keys), **options)


def largest(x: Any, k: int, **options: Any) -> Sample:
    return Sample(s.top_k_p, (x,), top_k_reference, {"k": k}, **options)


ROWS = [
    sorting(
        X,
        dimension=1,
        dtypes=ORDERED,
        bad=(
            ((X, X[:, :1]), by(0), ValueError),
            ((X, X), by(0, 3), ValueError),
            ((X, X), by(0, 0), ValueError),
        ),
    ),
    sorting(X, dimension=0, label="first-axis"),
    sorting(TIES, PLACES, f32(6), differentiable=(2,), label="ties"),
    sorting(TIES, f32(6), PLACES, num_keys=2, differentiable=(1,), label="two-keys"),
    sorting(f32(6), f32(6, seed=1), label="carried"),
    sorting(SPECIAL, np.arange(8), differentiable=(), label="special"),
    sorting((TIES - 1j * TIES[::-1]).astype(np.complex64), PLACES, differentiable=(), label="complex"),
    sorting(f32(0), label="empty"),
    sorting(f32(2, 0), dimension=0, label="empty-other"),
    largest(
        X,
        3,
        dtypes=tuple(name for name in ORDERED if name not in ("bool", "complex64")),
        bad=(
            ((X,), {"k": 6}, ValueError),
            ((X,), {"k": -1}, ValueError),
            ((np.float32(1).reshape(()),), {"k": 0}, ValueError),
            ((X > 0,), {"k": 1}, TypeError),
            ((X + 1j,), {"k": 1}, TypeError),
        ),
    ),
    largest(TIES, 4, differentiable=(), label="ties"),
    largest(SPECIAL[1:], 7, differentiable=(), label="special"),
    largest(X, 0, label="none"),
    largest(f32(0, 3), 2, label="empty"),
]
