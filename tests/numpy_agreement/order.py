"""Rows of sorting, searching, counting and sets."""

import inspect

import numpy as np

import tapeless.numpy as tnp
from tests.numpy_agreement.cases import Row, call, numbers, of_kinds, special
from tests.numpy_agreement.shapes import everywhere

X, M, V = (numbers("float32", s) for s in ((2, 3, 4), (3, 4), (7,)))
NAN = np.array([[3, np.nan, -1, np.nan], [np.inf, 0, -0.0, -np.inf]], np.float32)
REAL = of_kinds("biuf")
IN_32_BITS = {"JAX's positions are int32, whatever the default": lambda case: True}
COUNTS = "positions and counts are of the default integer, or int32"


def values(f):
    """What a partition is sure of: what is at kth, and what is on either side, sorted."""

    def certain(x, kth, axis=-1):
        found = f(x, kth, axis=axis)
        kth %= found.shape[axis]
        library = np if isinstance(found, np.ndarray) else tnp
        return [library.sort(part, axis) for part in library.split(found, [kth, kth + 1], axis)]

    return certain


def few(d, shape=(9,)) -> np.ndarray:
    """Numbers many of which are equal."""
    return numbers(d, shape, -2, 2).round().astype(d) if np.dtype(d).kind != "b" else numbers(d, shape)


# From NumPy 2.5 on. Only NumPy has nan last then; here nan comes first, as in JAX.
DESCENDING = [{"descending": True}] * ("descending" in inspect.signature(np.sort).parameters)

SETS = [call(few(d), few(d, (2, 3))) for d in of_kinds("biufc")] + [call(few("int8"), few("float32", (4,)))]
SETS += [call(V[:0], V), call(NAN, NAN), call(np.float32(2), few("float32"))]

ROWS = {
    "sort": Row(
        [call(special(d)) for d in of_kinds("biuf")]
        + [call(X, a) for a in (0, 1, -1, None, 3)]
        + everywhere(None)
        + [call(NAN), call(V, stable=True), call(few("complex64"))]
        + [call(x, **given) for given in DESCENDING for x in (X, few("int8"), few("complex64"))]
    ),
    "argsort": Row(
        [call(few(d), stable=True) for d in of_kinds("biuf")]
        + [call(X, a) for a in (0, 1, -1, None)]
        + [call(NAN)]
        + [call(np.float32(3)), call(X[:0], axis=0)]
        + [call(X, **given) for given in DESCENDING],
        dtypes=COUNTS,
    ),
    "lexsort": Row(
        [call((few("int8"), few(d))) for d in REAL] + [call([M, M * 0], axis=0), call(few("int8", (3, 5))), call([V])],
        dtypes=COUNTS,
    ),
    "partition": Row(
        [call(numbers(d, (7,)), 3) for d in REAL] + [call(X, 1, axis=0), call(X, -2, 1), call(NAN, 1), call(V, 9)],
        numpy=values(np.partition),
        ours=values(tnp.partition),
    ),
    "argpartition": Row(
        [call(V, 0), call(V, 6), call(X, 1, axis=0)],
        numpy=values(lambda x, kth, axis: np.take_along_axis(x, np.argpartition(x, kth, axis), axis)),
        ours=values(lambda x, kth, axis: tnp.take_along_axis(x, tnp.argpartition(x, kth, axis), axis)),
    ),
    "sort_complex": Row([call(few(d)) for d in of_kinds("iufc")], dtypes="NumPy's complex numbers are wider"),
    "searchsorted": Row(
        [call(np.sort(few(d)), few(d, (2, 3))) for d in REAL]
        + [call(np.sort(V), V[0]), call(np.sort(V), few("float32"), "right")]
        + [
            call(V, V, sorter=np.argsort(V)),
            call(np.sort(few("int8")), V, side="right"),
            call(V[:0], V),
            call(V, V, "middle"),
        ]
        + [
            call(np.array([0, 1, np.nan], np.float32), np.array([np.nan, 5, -1], np.float32), s)
            for s in ("left", "right")
        ]
        + [call(np.sort(few("complex64")), few("complex64"))],
        dtypes=COUNTS,
        jax=IN_32_BITS,
    ),
    "digitize": Row(
        [call(few(d), np.array([-1, 0, 1]).astype(d)) for d in of_kinds("if")]
        + [call(V, np.array([5, 0, -5.0]), right=True)]
        + [
            call(few("float32"), np.array([-1, 0, 1.0]), True),
            call(V, M),
            call(V, V[:0]),
            call(3.0, np.array([1.0, 3])),
        ],
        dtypes=COUNTS,
        jax=IN_32_BITS,
    ),
    **{
        name: Row(
            [call(few(d)) for d in of_kinds("biufc")] + everywhere() + [call(np.array([[True, False], [True, True]]))],
            dtypes=COUNTS,
        )
        for name in ("nonzero", "argwhere", "flatnonzero")
    },
    "bincount": Row(
        [call(numbers(d, (6,), 0, 5)) for d in of_kinds("iu")]
        + [call(np.array([3, 1, 3]), minlength=6), call(np.array([], int))]
        + [call(np.array([3, 1, 3]), numbers(d, (3,))) for d in of_kinds("iuf")]
        + [call(np.array([0, 2]), V[:2], 1), call(V)]
        + [call(np.array([1, -1])), call(np.array([[1]]))],
        dtypes="of weights, or the default integer",
        tolerance=30,
        accepts={"negative numbers count as 0, as in JAX": lambda case: case.args[0].min(initial=0) < 0},
    ),
    "histogram": Row(
        [call(numbers(d, (20,), 0, 9)) for d in of_kinds("iuf")]
        + [call(M, 4), call(M, np.array([-5.0, 0, 1, 9])), call(V[:0])]
        + [
            call(M, 3, (-2, 2)),
            call(M, 5, range=(0, 3), density=True),
            call(M, bins=4, weights=numbers("float32", (3, 4), 0, 1)),
        ]
        + [call(np.array([2, 2, 2]), 3), call(M, np.array([0, 1, 2]), density=True), call(V, 0), call(V, 2, (3, 1))],
        inexact=True,
        dtypes="counts are floating point, as in JAX",
    ),
    "histogram_bin_edges": Row(
        [call(numbers(d, (20,), 0, 9)) for d in of_kinds("biuf")]
        + [call(M, 4, (-2, 2)), call(M, np.array([1.0, 2, 4])), call(M, bins=3)]
        + [call(M, range=(1, 1)), call(M, 3, weights=M)],
        inexact=True,
        dtypes="of the dtype of the operand, as in JAX",
    ),
    "histogram2d": Row(
        [call(numbers(d, (9,), 0, 5), numbers(d, (9,), 1, 4, "y"), 3) for d in of_kinds("iuf")]
        + [call(V, V[::-1], [2, np.array([-9.0, 0, 1, 9])]), call(V, V, np.array([-2.0, 0, 9]), density=True)]
        + [call(V, V * 2, bins=(2, 3), range=[(-3, 3), (-5, 9)], weights=np.abs(V)), call(V, V[:3]), call(V, M)],
        inexact=True,
        dtypes="counts of the default integer, edges of the operands' dtype, as in JAX",
    ),
    "histogramdd": Row(
        [
            call(numbers("float32", (20, 2)), 3),
            call([V, V[::-1], V * 2], [2, 3, 1]),
            call(M[:, :1], bins=2),
            call(M, (1, 2, 1, 2), range=[None, (-2, 2), None, None], density=True),
            call(numbers("int8", (6, 2)), 4, weights=V[:6]),
            call(M, [1, 2]),
            call(V),
            call(M, 2, weights=V),
        ],
        inexact=True,
        dtypes="counts of the default integer, edges of the operands' dtype, as in JAX",
        refuses={"a vector, for points": lambda case: getattr(case.args[0], "ndim", 2) == 1},
    ),
    "unique": Row(
        [call(few(d), True, True, True) for d in of_kinds("biufc")]
        + [call(few("int8", (3, 2)), axis=a) for a in (0, 1)]
        + everywhere()
        + [
            call(NAN, return_counts=True),
            call(NAN, equal_nan=False, return_index=True),
            call(few("float32", (2, 4)), return_inverse=True),
        ]
        + [call(few("int8", (4, 2)) % 2, True, True, True, 0), call(few("int8"), sorted=True)],
        dtypes=COUNTS,
    ),
    "unique_values": Row(
        [call(few(d)) for d in of_kinds("biufc")] + [call(NAN)], numpy=lambda x: np.sort(np.unique_values(x))
    ),
    **{
        name: Row([call(few(d, (2, 5))) for d in of_kinds("biufc")] + [call(NAN), call(V[:0])], dtypes=COUNTS)
        for name in ("unique_all", "unique_counts", "unique_inverse")
    },
    "isin": Row(
        [
            *SETS,
            call(M, 3),
            call(few("int8"), few("int8"), invert=True),
            call(few("int8"), few("int8"), assume_unique=False),
            call(few("int8"), V[:0]),
        ]
    ),
    "union1d": Row(SETS),
    **{
        name: Row([*SETS, call(np.unique(few("int8")), np.unique(few("uint8")), assume_unique=True)])
        for name in ("setdiff1d", "setxor1d")
    },
    "intersect1d": Row(
        [*SETS, call(np.unique(few("int8")), np.unique(few("uint8")), assume_unique=True)]
        + [call(few(d), few(d, (2, 3)), return_indices=True) for d in of_kinds("if")],
        dtypes=COUNTS,
    ),
}
