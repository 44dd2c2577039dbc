"""Samples of the operations that move elements."""

from dataclasses import replace
from typing import Any

import numpy as np

from tapeless.tracer.primitives import shape as s
from tests.samples.sample import Sample, f32, keys

ANY = ("bool", "int8", "uint32", "int64", "bfloat16", "float16", "float64", "complex64")


def broadcast_reference(x: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    aligned = np.ones(len(shape), int)
    aligned[list(dims)] = x.shape
    return np.broadcast_to(x.reshape(aligned), shape)


def pad_reference(x: Any, value: Any, padding_config: Any) -> Any:
    """Spread x over an array with room enough, then cut."""
    spread = [max(n + (n - 1) * gap, 0) if n else 0 for n, (_, _, gap) in zip(x.shape, padding_config)]
    room = [max(low, 0) + n + max(high, 0) for n, (low, high, _) in zip(spread, padding_config)]
    out = np.full(room, value, x.dtype)
    at = [slice(max(low, 0), max(low, 0) + n, gap + 1) for n, (low, _, gap) in zip(spread, padding_config)]
    out[tuple(at)] = x
    cut = [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high, _) in zip(room, padding_config)]
    return out[tuple(cut)]


def slice_reference(x: Any, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return x[tuple(slice(*bounds) for bounds in zip(start_indices, limit_indices, strides))]


def split_reference(x: Any, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def iota_reference(dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    return np.indices(shape)[dimension].astype(dtype)


def cut(starts: Any, limits: Any, strides: Any) -> dict[str, Any]:
    return {"start_indices": starts, "limit_indices": limits, "strides": strides}


def joined(*args: Any, dimension: int = 0, **options: Any) -> Sample:
    linear = tuple(range(len(args)))
    return Sample(
        s.concatenate_p,
        args,
        lambda *xs, dimension: np.concatenate(xs, dimension),
        {"dimension": dimension},
        linear_in=linear,
        **options,
    )


def padded(x: Any, config: Any, **options: Any) -> Sample:
    params = {"padding_config": config}
    return Sample(s.pad_p, (x, np.asarray(0.5, x.dtype)), pad_reference, params, linear_in=(0, 1), **options)


X = f32(3, 4)
SCALAR = np.float32(2.5).reshape(())
TWO = {"padding_config": ((0, 0, 0), (0, 0, 0))}

CREATION = [
    Sample(
        s.broadcast_in_dim_p,
        (f32(3, 1),),
        broadcast_reference,
        {"shape": (2, 3, 4), "dims": (1, 2)},
        linear_in=(0,),
        dtypes=ANY,
        bad=(
            ((X,), {"shape": (2, 3, 4), "dims": (1,)}, ValueError),
            ((X,), {"shape": (4, 3), "dims": (1, 0)}, ValueError),
            ((X,), {"shape": (3, 4), "dims": (0, 2)}, ValueError),
            ((X,), {"shape": (3, 5), "dims": (0, 1)}, ValueError),
        ),
    ),
    Sample(s.broadcast_in_dim_p, (SCALAR,), broadcast_reference, {"shape": (2, 0), "dims": ()}, (0,), label="empty"),
    Sample(s.broadcast_in_dim_p, (SCALAR,), broadcast_reference, {"shape": (), "dims": ()}, (0,), label="scalar"),
    Sample(
        s.iota_p,
        (),
        iota_reference,
        {"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 1},
        bad=(
            ((), {"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 2}, ValueError),
            ((), {"dtype": np.dtype(bool), "shape": (2, 3), "dimension": 0}, TypeError),
        ),
    ),
    Sample(s.iota_p, (), iota_reference, {"dtype": np.dtype(np.complex64), "shape": (3,), "dimension": 0}),
]

SAME_ELEMENTS = [
    Sample(
        s.reshape_p,
        (X,),
        lambda x, shape: x.reshape(shape),
        {"shape": (2, 6)},
        linear_in=(0,),
        dtypes=ANY,
        bad=(((X,), {"shape": (5,)}, ValueError),),
    ),
    Sample(s.reshape_p, (SCALAR,), lambda x, shape: x.reshape(shape), {"shape": (1, 1)}, (0,), label="scalar"),
    Sample(s.reshape_p, (f32(0, 3),), lambda x, shape: x.reshape(shape), {"shape": (2, 0)}, (0,), label="empty"),
    Sample(
        s.transpose_p,
        (f32(2, 3, 4),),
        lambda x, permutation: x.transpose(permutation),
        {"permutation": (2, 0, 1)},
        linear_in=(0,),
        dtypes=ANY,
        bad=(((X,), {"permutation": (0, 0)}, ValueError), ((X,), {"permutation": (0,)}, ValueError)),
    ),
    Sample(
        s.rev_p,
        (X,),
        lambda x, dimensions: np.flip(x, dimensions),
        {"dimensions": (0, 1)},
        linear_in=(0,),
        dtypes=ANY,
        bad=(((X,), {"dimensions": (2,)}, ValueError), ((X,), {"dimensions": (1, 1)}, ValueError)),
    ),
    Sample(s.rev_p, (SCALAR,), lambda x, dimensions: x, {"dimensions": ()}, (0,), label="scalar"),
]

JOINING = [
    joined(
        f32(2, 3),
        f32(2, 1, seed=1),
        f32(2, 0, seed=2),
        dimension=1,
        dtypes=ANY,
        bad=(
            ((X, X.astype(np.float16)), {"dimension": 0}, TypeError),
            ((X, f32(3, 5)), {"dimension": 0}, ValueError),
            ((X, f32(3)), {"dimension": 0}, ValueError),
            ((X, X), {"dimension": 2}, ValueError),
            ((SCALAR, SCALAR), {"dimension": 0}, ValueError),
        ),
    ),
    joined(f32(3), label="one"),
    joined(f32(0, 2), f32(0, 2), label="empty"),
    padded(
        X,
        ((1, 2, 0), (0, 1, 2)),
        dtypes=ANY,
        bad=(
            ((X, f32(1)), TWO, TypeError),
            ((X, np.asarray(1, np.int32)), TWO, TypeError),
            ((X, SCALAR), {"padding_config": ((0, 0, 0),)}, ValueError),
            ((X, SCALAR), {"padding_config": ((0, 0, -1), (0, 0, 0))}, ValueError),
            ((X, SCALAR), {"padding_config": ((-2, -2, 0), (0, 0, 0))}, ValueError),
        ),
    ),
    padded(X, ((-1, 2, 1), (0, -2, 2)), label="cuts"),
    padded(X, ((-2, -1, 0), (0, 0, 0)), label="cuts all"),
    padded(f32(0), ((1, 2, 3),), label="empty"),
    padded(SCALAR, (), label="scalar"),
]

CUTTING = [
    Sample(
        s.slice_p,
        (X,),
        slice_reference,
        cut((1, 1), (3, 3), (1, 1)),
        linear_in=(0,),
        dtypes=ANY,
        bad=(
            ((X,), cut((0,), (3,), (1,)), ValueError),
            ((X,), cut((-1, 0), (3, 4), (1, 1)), ValueError),
            ((X,), cut((2, 0), (1, 4), (1, 1)), ValueError),
            ((X,), cut((0, 0), (4, 4), (1, 1)), ValueError),
            ((X,), cut((0, 0), (3, 4), (0, 1)), ValueError),
        ),
    ),
    Sample(s.slice_p, (X,), slice_reference, cut((0, 1), (3, 4), (2, 2)), (0,), label="strided"),
    Sample(s.slice_p, (X,), slice_reference, cut((1, 2), (1, 4), (1, 2)), (0,), label="empty"),
    Sample(s.slice_p, (SCALAR,), slice_reference, cut((), (), ()), (0,), label="scalar"),
    Sample(
        s.split_p,
        (X,),
        split_reference,
        {"sizes": (1, 0, 3), "axis": 1},
        linear_in=(0,),
        dtypes=ANY,
        bad=(
            ((X,), {"sizes": (1, 2), "axis": 1}, ValueError),
            ((X,), {"sizes": (3,), "axis": 2}, ValueError),
            ((SCALAR,), {"sizes": (1,), "axis": 0}, ValueError),
        ),
    ),
    Sample(s.split_p, (f32(2, 0),), split_reference, {"sizes": (1, 1), "axis": 0}, (0,), label="empty"),
]

KEYS = [
    Sample(s.broadcast_in_dim_p, (keys(3, 1),), broadcast_reference, {"shape": (2, 3, 4), "dims": (1, 2)}),
    Sample(s.broadcast_in_dim_p, (keys(),), broadcast_reference, {"shape": (2, 0), "dims": ()}, label="empty"),
    Sample(s.reshape_p, (keys(3, 4),), lambda x, shape: x.reshape(shape), {"shape": (2, 6)}),
    Sample(s.reshape_p, (keys(),), lambda x, shape: x.reshape(shape), {"shape": (1, 1)}, label="scalar"),
    Sample(
        s.transpose_p, (keys(2, 3, 4),), lambda x, permutation: x.transpose(permutation), {"permutation": (2, 0, 1)}
    ),
    Sample(s.rev_p, (keys(3, 4),), lambda x, dimensions: np.flip(x, dimensions), {"dimensions": (0, 1)}),
    joined(
        keys(2, 3), keys(2, 1, seed=1), keys(2, 0), dimension=1, bad=(((keys(3), X[0]), {"dimension": 0}, TypeError),)
    ),
    Sample(
        s.pad_p,
        (keys(3, 4), keys(seed=1)),
        pad_reference,
        {"padding_config": ((1, -1, 0), (0, 1, 2))},
        bad=(((keys(3, 4), SCALAR), TWO, TypeError),),
    ),
    Sample(s.slice_p, (keys(3, 4),), slice_reference, cut((0, 1), (3, 4), (2, 2))),
    Sample(s.split_p, (keys(3, 4),), split_reference, {"sizes": (1, 0, 3), "axis": 1}),
]
KEYS = [replace(row, linear_in=(), label=f"keys{row.label and '-' + row.label}") for row in KEYS]

ROWS = [*CREATION, *SAME_ELEMENTS, *JOINING, *CUTTING, *KEYS]
