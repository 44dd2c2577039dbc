"""Samples of reading and writing parts, with a gather and a scatter that loop over windows as references."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from tests.samples.sample import RECORD, Sample, f32, keys

CLIP, FILL, PROMISE = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS


def i32(*items: Any) -> Any:
    return np.array(items, np.int32)


def scalars(*items: int) -> tuple[Any, ...]:
    return tuple(np.asarray(k, np.int32) for k in items)


# ---- references ----------------------------------------------------------------------------------------------


def window_reference(shape: Any, starts: Any, sizes: Any) -> tuple[slice, ...]:
    clamped = [int(np.clip(start, 0, n - k)) for start, n, k in zip(starts, shape, sizes)]
    return tuple(slice(start, start + k) for start, k in zip(clamped, sizes))


def dynamic_slice_reference(x: Any, *starts: Any, slice_sizes: Any) -> Any:
    return x[window_reference(x.shape, starts, slice_sizes)]


def dynamic_update_slice_reference(x: Any, update: Any, *starts: Any) -> Any:
    out = np.array(x)
    out[window_reference(x.shape, starts, update.shape)] = update
    return out


def windows(shape: Any, indices: Any, d: Any, sizes: Any, mode: Any) -> Iterator[tuple[Any, Any]]:
    """For every index vector: its place in the batch, and its window of an operand of `shape`, or None if outside."""
    _, _, index_map, batching, indices_batching = d
    for place in np.ndindex(indices.shape[:-1]):
        starts = np.zeros(len(shape), int)
        starts[list(index_map)] = indices[place]
        starts[list(batching)] = [place[k] for k in indices_batching]
        window = window_reference(shape, starts, sizes)
        inside = all(w.start == start for w, start in zip(window, starts))
        yield place, window if inside or mode is CLIP else None


def placed(place: Any, rank: int, window_dims: Any) -> tuple[Any, ...]:
    """Where the window for a place of the batch is among all windows."""
    batch = iter(place)
    return tuple(slice(None) if k in window_dims else next(batch) for k in range(rank))


NO_KEY = np.array((2**32 - 1, 2**32 - 1), RECORD)  # what is read outside of an array of keys


def gather_reference(
    x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any, **_: Any
) -> Any:
    d = dimension_numbers
    dropped = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    window_shape = [n for k, n in enumerate(slice_sizes) if k not in dropped]
    rank = indices.ndim - 1 + len(d.offset_dims)
    offsets, batch = iter(window_shape), iter(indices.shape[:-1])
    default = NO_KEY if x.dtype == RECORD else np.nan if x.dtype.kind in "fc" else True
    fill = default if fill_value is None else fill_value
    out = np.full([next(offsets) if k in d.offset_dims else next(batch) for k in range(rank)], fill, x.dtype)
    for place, window in windows(x.shape, indices, d, slice_sizes, mode):
        if window is not None:
            out[placed(place, rank, d.offset_dims)] = x[window].reshape(window_shape)
    return out


def scatter_reference(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reference(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **_: Any) -> Any:
        d, out = dimension_numbers, x.copy()
        sizes = np.ones(x.ndim, int)
        sizes[[k for k in range(x.ndim) if k not in (*d[1], *d[3])]] = [updates.shape[k] for k in d.update_window_dims]
        for place, window in windows(x.shape, indices, d, sizes, mode):
            if window is not None:
                update = updates[placed(place, updates.ndim, d.update_window_dims)].reshape(sizes)
                out[window] = combine(out[window], update)
        return out

    return reference


# ---- one window ----------------------------------------------------------------------------------------------

X = f32(5, 4)
SCALAR = np.float32(2.5).reshape(())
WHERE = {"inside": (1, 2), "before": (-3, 0), "after": (4, 9)}


def dynamic_slice_row(x: Any, starts: Any, sizes: Any, **options: Any) -> Sample:
    params = {"slice_sizes": sizes}
    return Sample(i.dynamic_slice_p, (x, *starts), dynamic_slice_reference, params, linear_in=(0,), **options)


def dynamic_update_slice_row(x: Any, update: Any, starts: Any, **options: Any) -> Sample:
    args = (x, update, *starts)
    return Sample(i.dynamic_update_slice_p, args, dynamic_update_slice_reference, linear_in=(0, 1), **options)


ONE_WINDOW = [
    *[dynamic_slice_row(X, scalars(*at), (2, 2), label=label) for label, at in WHERE.items()],
    *[dynamic_update_slice_row(X, f32(2, 2, seed=1), scalars(*at), label=label) for label, at in WHERE.items()],
    dynamic_slice_row(SCALAR, (), (), label="scalar"),
    dynamic_update_slice_row(SCALAR, SCALAR + 1, (), label="scalar"),
    dynamic_slice_row(f32(0, 3), scalars(1, 1), (0, 2), label="empty"),
    dynamic_update_slice_row(X, f32(0, 3), scalars(1, 1), label="empty"),
    dynamic_slice_row(np.arange(300), (np.asarray(-1, np.int8),), (2,), label="int8 index"),
    dynamic_slice_row(np.arange(300), (np.asarray(200, np.uint8),), (2,), label="uint8 index"),
    dynamic_slice_row(X, (np.asarray(1, np.int64), np.asarray(2, np.uint32)), (1, 1), label="mixed indices"),
    dynamic_slice_row(
        X > 0,
        scalars(1, 2),
        (2, 2),
        label="bool",
        bad=(
            ((X, *scalars(1, 2)), {"slice_sizes": (6, 2)}, ValueError),
            ((X, *scalars(1, 2)), {"slice_sizes": (2,)}, ValueError),
            ((X, *scalars(1)), {"slice_sizes": (2, 2)}, ValueError),
            ((X, i32(1), i32(2)), {"slice_sizes": (2, 2)}, TypeError),
            ((X, SCALAR, SCALAR), {"slice_sizes": (2, 2)}, TypeError),
        ),
    ),
    dynamic_update_slice_row(
        np.arange(4),
        np.arange(2),
        scalars(1),
        label="int",
        bad=(
            ((X, np.ones((2, 2), np.int32), *scalars(1, 2)), {}, TypeError),
            ((X, f32(6, 2), *scalars(1, 2)), {}, ValueError),
            ((X, f32(2), *scalars(1, 2)), {}, ValueError),
            ((X, f32(2, 2), *scalars(1)), {}, ValueError),
            ((X, f32(2, 2), SCALAR, SCALAR), {}, TypeError),
        ),
    ),
]

# ---- many windows --------------------------------------------------------------------------------------------

# Each layout: shape of the operand, indices, dimension numbers of the gather, shape of a window, shape of all windows.
ROWS_OF = ((1,), (0,), (0,))
ELEMENTS = ((), (0, 1), (0, 1))
LAYOUTS: dict[str, Any] = {
    "rows": ((5, 4), i32([0], [4], [2]), ROWS_OF, (1, 4), (3, 4)),
    "elements": ((5, 4), i32([0, 1], [3, 2], [4, 3]), ELEMENTS, (1, 1), (3,)),
    "blocks": ((5, 4), i32([1, 0], [0, 2]), ((0, 2), (), (1, 0)), (3, 2), (3, 2, 2)),
    "batched": ((2, 5, 4), i32([[0], [2]], [[3], [1]]), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 2), (2, 2, 2)),
    "one": ((5,), i32(3), ((), (0,), (0,)), (1,), ()),
    "no windows": ((5,), np.zeros((0, 1), np.int32), ((), (0,), (0,)), (1,), (0,)),
    "empty windows": ((0, 4), np.zeros((2, 1), np.int32), ((1, 2), (), (0,)), (0, 4), (2, 0, 4)),
    "no axes": ((2, 3), np.zeros((2, 0), np.int32), ((1, 2), (), ()), (2, 3), (2, 2, 3)),
    "scalar": ((), np.zeros((2, 0), np.int32), ((), (), ()), (), (2,)),
    "no axes, length 1": ((1, 2), np.zeros((2, 0), np.int32), ((1,), (0,), ()), (1, 2), (2, 2)),
}
OVERLAPPING: dict[str, Any] = {
    "repeated rows": ((5, 4), i32([1], [3], [1], [1]), ROWS_OF, (1, 4), (4, 4)),
    "overlapping blocks": ((5, 4), i32([1, 0], [0, 1], [1, 1]), ((0, 2), (), (1, 0)), (3, 2), (3, 3, 2)),
}
OUTSIDE: dict[str, Any] = {
    "outside": ((5, 4), i32([-1], [5], [2], [9]), ROWS_OF, (1, 4), (4, 4)),
    "half outside": ((5, 4), i32([3, 0], [-1, 2], [1, 1]), ((1, 2), (), (0, 1)), (3, 2), (3, 3, 2)),
    "int8 index": ((300,), np.array([[100], [-3], [7]], np.int8), ((), (0,), (0,)), (1,), (3,)),
    "uint8 index": ((20,), np.array([[200], [3]], np.uint8), ((), (0,), (0,)), (1,), (2,)),
    "int64 index": ((5,), np.array([[2**40], [3]], np.int64), ((), (0,), (0,)), (1,), (2,)),
}
DISJOINT = ("rows", "elements", "batched", "one")


def gathering(numbers: Any, sizes: Any, mode: Any = FILL, fill_value: Any = None) -> dict[str, Any]:
    return {
        "dimension_numbers": GatherDimensionNumbers(*numbers),
        "slice_sizes": sizes,
        "unique_indices": False,
        "indices_are_sorted": False,
        "mode": mode,
        "fill_value": fill_value,
    }


def gather_row(layout: Any, label: str, mode: Any = FILL, fill_value: Any = None, **options: Any) -> Sample:
    shape, indices, numbers, sizes, _ = layout
    params = gathering(numbers, sizes, mode, fill_value)
    return Sample(i.gather_p, (f32(*shape), indices), gather_reference, params, linear_in=(0,), label=label, **options)


X3 = f32(2, 5, 4)
ROW_INDICES = i32([0], [2])
GATHER_FAULTS = (
    ((X, SCALAR.reshape(1)), gathering(ROWS_OF, (1, 4)), TypeError),  # indices are no integers
    ((X, i32(0)[0]), gathering(ROWS_OF, (1, 4)), TypeError),  # no axis for the index vector
    ((X, ROW_INDICES), gathering(ROWS_OF, (1,)), ValueError),  # C20
    ((X, ROW_INDICES), gathering(ROWS_OF, (1, 5)), ValueError),  # C21
    ((X, ROW_INDICES), gathering(((), (0,), (0,)), (1, 4)), ValueError),  # C1
    ((X, ROW_INDICES), gathering(((2, 1), (), (0,)), (2, 4)), ValueError),  # C4, sorted
    ((X, ROW_INDICES), gathering(((1, 1), (), (0,)), (2, 4)), ValueError),  # C4, unique
    ((X, ROW_INDICES), gathering(((5,), (0,), (0,)), (1, 4)), ValueError),  # C5
    ((X3, ROW_INDICES), gathering(((1,), (0,), (1,), (0,), (0,)), (1, 1, 4)), ValueError),  # C6
    ((X3, ROW_INDICES), gathering(((1,), (1, 0), (0,)), (1, 1, 4)), ValueError),  # C7
    ((X, ROW_INDICES), gathering(((1,), (2,), (0,)), (1, 4)), ValueError),  # C8
    ((X, ROW_INDICES), gathering(ROWS_OF, (2, 4)), ValueError),  # C9
    ((X3, i32([[[0]]])), gathering(((2,), (), (2,), (1, 0), (0, 1)), (1, 1, 4)), ValueError),  # C10
    ((X3, ROW_INDICES), gathering(((1,), (0,), (0,), (3,), (0,)), (1, 1, 4)), ValueError),  # C11
    ((X3, ROW_INDICES), gathering(((1,), (1,), (1,), (0,), (0,)), (2, 1, 4)), ValueError),  # C12
    ((X3, ROW_INDICES), gathering(((1,), (), (2,), (0, 1), (0, 0)), (1, 1, 4)), ValueError),  # C13
    ((X3, ROW_INDICES), gathering(((1,), (1,), (1,), (0,), (2,)), (1, 1, 4)), ValueError),  # C14
    ((X3, ROW_INDICES), gathering(((1,), (1,), (1,), (0,), (1,)), (1, 1, 4)), ValueError),  # C15
    ((X3, ROW_INDICES), gathering(((1,), (1,), (1,), (0,), ()), (1, 1, 4)), ValueError),  # C16
    ((X3, i32([0], [2], [1])), gathering(((1,), (1,), (1,), (0,), (0,)), (1, 1, 4)), ValueError),  # C17
    ((X3, ROW_INDICES), gathering(((1,), (1,), (0,), (0,), (0,)), (1, 1, 4)), ValueError),  # C18
    ((X, ROW_INDICES), gathering(((1,), (0,), (2,)), (1, 4)), ValueError),  # C19
    ((X, ROW_INDICES), gathering(((1,), (0,), (0, 1)), (1, 4)), ValueError),  # C3
)

GATHERS = [
    gather_row(LAYOUTS["rows"], "faults", bad=GATHER_FAULTS),
    *[gather_row(layout, f"{label}, {PROMISE.value}", PROMISE) for label, layout in LAYOUTS.items()],
    *[
        gather_row(layout, f"{label}, {mode.value}", mode)
        for label, layout in {**OVERLAPPING, **OUTSIDE}.items()
        for mode in (CLIP, FILL)
    ],
    gather_row(OUTSIDE["outside"], "fill value", FILL, 2.5),
    Sample(
        i.gather_p, (X > 0, OUTSIDE["outside"][1]), gather_reference, gathering(ROWS_OF, (1, 4)), (0,), label="bool"
    ),
    Sample(
        i.gather_p,
        (np.arange(5), i32([1], [7])),
        gather_reference,
        gathering(((), (0,), (0,)), (1,), FILL, -1),
        (0,),
        label="int",
    ),
]

REFERENCES: dict[Any, Callable[..., Any]] = {
    i.scatter_p: scatter_reference(lambda old, new: new),
    i.scatter_add_p: scatter_reference(np.add),
    i.scatter_mul_p: scatter_reference(np.multiply),
    i.scatter_min_p: scatter_reference(np.minimum),
    i.scatter_max_p: scatter_reference(np.maximum),
}
LINEAR_IN = {i.scatter_p: (0, 2), i.scatter_add_p: (0, 2), i.scatter_mul_p: (0,)}


def scattering(numbers: Any, mode: Any = FILL, unique: bool = False) -> dict[str, Any]:
    return {
        "dimension_numbers": ScatterDimensionNumbers(*numbers),
        "indices_are_sorted": False,
        "unique_indices": unique,
        "mode": mode,
    }


def scatter_row(
    primitive: Any, layout: Any, label: str, mode: Any = FILL, unique: bool = False, **options: Any
) -> Sample:
    """Not linear in updates that overlap, nor in both operands of a product."""
    shape, indices, numbers, _, updates_shape = layout
    no_derivative_in_updates = primitive is i.scatter_mul_p and not unique
    return Sample(
        primitive,
        (f32(*shape), indices, f32(*updates_shape, seed=1)),
        REFERENCES[primitive],
        scattering(numbers, mode, unique),
        linear_in=LINEAR_IN.get(primitive, ()),
        differentiable=(0,) if no_derivative_in_updates else (0, 2),
        label=label,
        **options,
    )


ROW_UPDATES = f32(2, 4)
SCATTER_FAULTS = (
    ((X, ROW_INDICES, ROW_UPDATES.astype(np.float16)), scattering(ROWS_OF), TypeError),
    ((X, ROW_INDICES.astype(np.float32), ROW_UPDATES), scattering(ROWS_OF), TypeError),
    ((X, ROW_INDICES[0, 0], ROW_UPDATES), scattering(ROWS_OF), TypeError),
    ((X, ROW_INDICES, f32(3, 4)), scattering(ROWS_OF), ValueError),  # C4, batch
    ((X, ROW_INDICES, f32(2, 5)), scattering(ROWS_OF), ValueError),  # C4, window
    ((X, ROW_INDICES, f32(2)), scattering(ROWS_OF), ValueError),  # C4, rank
    ((X, ROW_INDICES, ROW_UPDATES), scattering(((), (0,), (0,))), ValueError),  # C2
    ((X, ROW_INDICES, f32(2, 4, 1)), scattering(((2, 1), (), (0,))), ValueError),  # C7
    ((X, ROW_INDICES, ROW_UPDATES), scattering(((3,), (0,), (0,))), ValueError),  # C8
    ((X3, ROW_INDICES, ROW_UPDATES), scattering(((1,), (0,), (1,), (0,), (0,))), ValueError),  # C9
    ((X3, ROW_INDICES, ROW_UPDATES), scattering(((1,), (1, 0), (0,))), ValueError),  # C10
    ((X, ROW_INDICES, ROW_UPDATES), scattering(((1,), (2,), (0,))), ValueError),  # C11
    ((X, ROW_INDICES, ROW_UPDATES), scattering(((1,), (0,), (0, 1))), ValueError),  # C19
    ((X, ROW_INDICES, ROW_UPDATES), scattering(((1,), (0,), (2,))), ValueError),  # C21
)
BOOL_UPDATES = ((X > 0, ROW_INDICES, ROW_UPDATES > 0), scattering(ROWS_OF), TypeError)
EVERY = (*REFERENCES,)

SCATTERS = [
    *[scatter_row(p, LAYOUTS["rows"], "faults", bad=SCATTER_FAULTS) for p in EVERY],
    *[scatter_row(p, LAYOUTS["rows"], "no bool", bad=(BOOL_UPDATES,)) for p in (i.scatter_add_p, i.scatter_mul_p)],
    *[scatter_row(p, layout, label, PROMISE) for label, layout in LAYOUTS.items() if label in DISJOINT for p in EVERY],
    *[scatter_row(p, LAYOUTS[label], f"{label}, unique", unique=True) for label in DISJOINT for p in EVERY],
    *[scatter_row(p, LAYOUTS[label], label) for label in LAYOUTS if label not in DISJOINT for p in EVERY],
    *[
        scatter_row(p, layout, f"{label}, {mode.value}", mode)
        for label, layout in {**OVERLAPPING, **OUTSIDE}.items()
        for mode in (CLIP, FILL)
        for p in EVERY
    ],
    *[
        Sample(
            p,
            (np.arange(5), i32([1], [7], [1]), np.array([3, 4, 5])),
            REFERENCES[p],
            scattering(((), (0,), (0,))),
            label="int",
        )
        for p in EVERY
    ],
    Sample(
        i.scatter_p,
        (X > 0, ROW_INDICES, ROW_UPDATES > 0),
        REFERENCES[i.scatter_p],
        scattering(ROWS_OF),
        label="bool",
    ),
]

# ---- keys ----------------------------------------------------------------------------------------------------

READ = {**dict.fromkeys(("rows", "blocks", "batched", "scalar"), PROMISE), "outside": FILL, "half outside": CLIP}
WRITTEN = ("rows", "batched", "one", "no axes, length 1", "outside")
EVERY_LAYOUT = {**LAYOUTS, **OUTSIDE}


def gather_keys(label: str, mode: Any) -> Sample:
    shape, indices, numbers, sizes, _ = EVERY_LAYOUT[label]
    args, params = (keys(*shape), indices), gathering(numbers, sizes, mode)
    return Sample(i.gather_p, args, gather_reference, params, label=f"keys, {label}")


def scatter_keys(label: str) -> Sample:
    shape, indices, numbers, _, updates_shape = EVERY_LAYOUT[label]
    args, params = (keys(*shape), indices, keys(*updates_shape, seed=1)), scattering(numbers)
    return Sample(i.scatter_p, args, REFERENCES[i.scatter_p], params, label=f"keys, {label}")


KEYS = [
    Sample(
        i.dynamic_slice_p,
        (keys(5, 4), *scalars(1, 9)),
        dynamic_slice_reference,
        {"slice_sizes": (2, 2)},
        label="keys",
        bad=(((X, keys(), keys()), {"slice_sizes": (2, 2)}, TypeError),),
    ),
    Sample(i.dynamic_slice_p, (keys(),), dynamic_slice_reference, {"slice_sizes": ()}, label="one key"),
    Sample(
        i.dynamic_update_slice_p,
        (keys(5, 4), keys(2, 2, seed=1), np.asarray(4, np.int8), np.asarray(1, np.uint32)),
        dynamic_update_slice_reference,
        label="keys",
        bad=(((keys(5, 4), X[:2], *scalars(1, 2)), {}, TypeError),),
    ),
    *[gather_keys(label, mode) for label, mode in READ.items()],
    *map(scatter_keys, WRITTEN),
]

ROWS = [*ONE_WINDOW, *GATHERS, *SCATTERS, *KEYS]
