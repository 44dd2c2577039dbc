"""Rows of functions that move elements: shapes, axes, joining, splitting, padding, indexing, triangles, diagonals."""

import itertools
from functools import partial

import numpy as np

import tapeless.numpy as tnp
from tests.numpy_agreement.cases import SHAPES, Case, Row, call, numbers, of_kinds

X, M, V, S = (numbers("float32", s) for s in ((2, 3, 4), (3, 4), (5,), ()))
EMPTY = numbers("float32", (2, 0, 3))
ONES = numbers("float32", (1, 3, 1))
ALL = of_kinds("biufc")
POSITIONS = np.array([[1, 0], [-1, 1]])
COUNTS = "positions are of the default integer, or wider if they come so"


def dtypes(shape: tuple[int, ...], *args, **kwargs) -> list[Case]:
    """The call with a first operand of every dtype."""
    return [call(numbers(d, shape), *args, **kwargs) for d in ALL]


def everywhere(*args, **kwargs) -> list[Case]:
    """The call with a first operand of every shape."""
    return [call(numbers("float32", s), *args, **kwargs) for s in SHAPES]


def joined(*tails: tuple[int, ...]) -> list[Case]:
    """Sequences of two operands of every dtype, of pairs of dtypes, and of shapes."""
    first = tails[0]
    same = [call([numbers(d, first), numbers(d, first, salt="y")]) for d in ALL]
    mixed = [("int8", "uint8"), ("bool", "float32"), ("float16", "complex64"), ("int32", "int8")]
    different = [call((numbers(a, first), numbers(b, first))) for a, b in mixed]
    return same + different + [call([numbers("float32", s)] * 3) for s in tails]


def written(f):
    """A function that writes to its operand, as one that returns it."""

    def writing(x, *args, **kwargs):
        f(x, *args, **kwargs)
        return x

    return writing


SHAPING = {
    "reshape": Row(
        [
            *dtypes((2, 6), (3, 4)),
            call(X, (4, -1)),
            call(X, -1),
            call(X, (6, 4), "F"),
            call(EMPTY, (0, 5)),
            call(X, (5, 5)),
            call(X, (-1, -1)),
            call(S, ()),
            call(S, (1, 1)),
            call(X, shape=(24,), order="C"),
        ]
    ),
    "ravel": Row(dtypes((2, 3)) + everywhere() + [call(X, "F"), call(M, order="C")]),
    **dict.fromkeys(
        ["transpose", "permute_dims"],
        Row(
            dtypes((2, 3))
            + everywhere()
            + [call(X, p) for p in itertools.permutations(range(3))]
            + [call(X, (0, -1, 1)), call(X, axes=(1, 1, 0)), call(X, (0, 1))]
        ),
    ),
    "matrix_transpose": Row(dtypes((2, 3)) + everywhere()),
    "swapaxes": Row([call(X, a, b) for a in (0, -1, 2) for b in (1, -3)] + [call(X, 0, 3), call(V, 0, 0)]),
    "moveaxis": Row(
        [call(X, 0, -1), call(X, (0, 1), (2, 0)), call(X, [2], [0]), call(X, (0, 0), (1, 2)), call(X, 3, 0)]
    ),
    "rollaxis": Row(
        [call(X, a, s) for a in (0, 1, 2, -1) for s in (0, 1, 3, -1)] + [call(X, 2), call(X, 0, 4), call(X, 3)]
    ),
    "expand_dims": Row(
        dtypes((2, 3), 1) + everywhere(0) + [call(X, (0, -1)), call(X, -1), call(X, 5), call(X, (1, 1))]
    ),
    "squeeze": Row(
        dtypes((1, 3, 1))
        + everywhere()
        + [call(ONES, 0), call(ONES, (0, -1)), call(ONES, axis=1), call(ONES, ())]
        + [call(ONES, 3)]
    ),
    "atleast_1d": Row([*everywhere(), call(S, V), call()]),
    "atleast_2d": Row([*everywhere(), call(S, V), call(7)]),
    "atleast_3d": Row([*everywhere(), call(S, V, M, X)]),
    "broadcast_shapes": Row(
        [call((2, 1), (3,)), call(), call((0,), (1,)), call(3, (2, 1)), call((2,), (3,)), call((), (2,))]
    ),
    "broadcast_to": Row(
        dtypes((3, 1), (2, 3, 4))
        + everywhere((2, 3, 4))
        + [call(V, 5), call(S, ()), call(ONES[:, :0], (2, 0, 3))]
        + [call(X, (3, 4))]
    ),
    "broadcast_arrays": Row([call(M, V[:4], S), call(V), call(), call(EMPTY, ONES), call(M, V)]),
    "flip": Row(
        dtypes((2, 3)) + everywhere() + [call(X, 0), call(X, (0, -1)), call(X, axis=1), call(X, ()), call(X, 3)]
    ),
    "fliplr": Row(everywhere()),
    "flipud": Row(everywhere()),
    "rot90": Row(
        [call(X, k) for k in (-1, 0, 1, 2, 3, 4)]
        + [call(X, 1, (1, 2)), call(X, k=1, axes=(2, 0)), call(X, 1, (0, 0))]
        + [call(V)]
        + dtypes((2, 3))
    ),
    "roll": Row(
        dtypes((2, 3), 2)
        + everywhere(1)
        + [call(X, -5, 1), call(X, (1, -2), (0, 2)), call(X, (1, 2), 1)]
        + [call(X, 1, axis=(0, 0)), call(X, np.array([1, -2]), (0, 2)), call(X, np.array(3), 1), call(V, [2])]
        + [call(X, (1, 2, 3), (0, 1)), call(X, 1, 3), call(EMPTY, 2, 1)]
    ),
    "resize": Row(
        [*dtypes((2, 3), (4, 5)), call(X, 7), call(X, (2, 2)), call(EMPTY, (2,)), call(X, (0, 2)), call(X, (-1, 2))]
    ),
}

JOINING = {
    **dict.fromkeys(
        ["concatenate", "concat"],
        Row(
            [
                *joined((2, 3), (0, 3), (1,), (2, 1, 3), ()),
                call([X, X[:, :1]], 1),
                call([X, V], axis=None),
                call([M, M], -1, dtype=np.float64),
                call([M, V]),
                call([]),
                call((M, M[:0])),
                call(M),
                call([S, S], axis=None),
                call([numbers("int8", (2,)), 300, V], None),
            ]
        ),
    ),
    "stack": Row(
        joined((2, 3), (), (0, 2))
        + [call([X, X], a) for a in (1, 3, -1)]
        + [call([M, M], 2, dtype=np.float16)]
        + [call([M, V]), call([M, M], axis=3), call(X)]
    ),
    **{
        name: Row([*joined((2, 3), (3,), (), (1, 2, 2)), call([M, M], dtype=np.float64), call(X), call([M, V])])
        for name in ("vstack", "hstack")
    },
    "dstack": Row([*joined((2, 3), (3,), (), (1, 2, 2)), call(X), call([M, V])]),
    "column_stack": Row([*joined((2, 3), (3,), ()), call([V, V[:, None]]), call(M), call([M, V])]),
    "block": Row(
        [call([[M, M], [M * 2, M]]), call([V, V]), call([[V], [V]]), call([S, 1.0]), call([[[X]]]), call([[M], [V]])]
        + [call([numbers("float32", (2,)), numbers(d, (2,))]) for d in of_kinds("bfc")]
    ),
    "append": Row([*dtypes((2, 3), M), call(M, M[:1], 0), call(M, 3), call(S, V), call(M, V, 1), call(M, M, axis=-1)]),
    "tile": Row(
        dtypes((2, 3), (2, 1))
        + everywhere(2)
        + [call(M, (2, 1, 3)), call(M, ()), call(M, 0), call(M, (0, 1)), call(M, -1)]
    ),
    "repeat": Row(
        dtypes((2, 3), 2)
        + everywhere(2)
        + [call(M, [1, 0, 2], 0), call(M, 3, 1), call(M, np.array([2]), axis=-1)]
        + [call(M, 0), call(M, [1, 2], 0), call(M, -1), call(V, [1, 0, 2, 1, 0])]
    ),
    "insert": Row(
        [call(numbers(d, (2, 3)), 1, numbers(d, (3,)), 0) for d in ALL]
        + everywhere(0, 7)
        + [call(V, s, 9) for s in ([0, 2], slice(1, 4, 2), -1, 5, 6)]
        + [call(V, V > 0, 9), call(M, [0, 2], M[:2], 0), call(M, 1, M[:, 0], axis=1), call(M, [1], M[:, :2], 1)]
        + [call(M, [3, 1, 3], 5, 1), call(V, [0, 1], V[:3]), call(V, [], 3)]
    ),
    "delete": Row(
        dtypes((2, 3), 1, 0)
        + [call(V, s) for s in ([0, -1], slice(1, 4), 2, [], [1, 1], 5)]
        + [call(M, V[:4] > 0, 1), call(M, 1), call(M, [0], axis=-1)]
    ),
    "trim_zeros": Row(
        [call(np.pad(numbers(d, (2, 3), 1, 5), 1)) for d in of_kinds("iufc")]
        + [call(np.zeros((2, 2)), "f")]
        + [call(np.pad(M, 2), t, axis=a) for t in ("f", "B") for a in (0, (0, 1))]
        + [call(M * 0), call(S)]
    ),
    "unstack": Row(dtypes((2, 3)) + everywhere() + [call(X, axis=a) for a in (1, -1, 3)]),
    **{
        name: Row(
            dtypes((4, 3), 2)
            + everywhere(1)
            + [call(V, n) for n in ([1, 3], [3, 1], [9], 0, 3)]
            + [call(X, 3, 1), call(X, [1, -1], axis=-1), call(X, 2, 3), call(EMPTY, 2, 1)]
        )
        for name in ("split", "array_split")
    },
    "hsplit": Row([call(X, 3), call(V, 5), call(X, [1]), call(S, 1), call(X, 2)]),
    "vsplit": Row([call(X, 2), call(V, 5), call(X, [1]), call(X, 3)]),
    "dsplit": Row([call(X, 2), call(X, [1, 2]), call(M, 2), call(X, 3)]),
}

PADS = [
    ("constant", {}),
    ("constant", {"constant_values": 5}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (3, 7)}),
    ("maximum", {}),
    ("minimum", {"stat_length": 2}),
    ("mean", {}),
    ("mean", {"stat_length": ((1, 2), (2, 3))}),
    ("median", {}),
]
PADDING = {
    "pad": Row(
        [call(numbers(d, (3, 4)), ((1, 2), (0, 6)), mode, **options) for d in of_kinds("iuf") for mode, options in PADS]
        + [call(numbers(d, (2, 2)), 1, mode) for d in of_kinds("bc") for mode in ("constant", "edge", "wrap", "mean")]
        + [
            call(X, {0: 1, -1: (2, 3)}),
            call(X, ((1, 2),)),
            call(S, 1),
            call(S, ()),
            call(EMPTY, 1),
            call(EMPTY, 1, "edge"),
        ]
        + [
            call(X, -1),
            call(X, ((1, 2), (3, 4))),
            call(X, 1, "nothing"),
            call(V, 1.5),
            call(V, 1, "edge", end_values=1),
        ]
        + [call(V, 2, "reflect", reflect_type="even"), call(X, (9, 2), "symmetric", reflect_type="odd")],
        tolerance=30,
    ),
}

INDEXING = {
    "take": Row(
        [
            *dtypes((2, 3), POSITIONS % 2, 1),
            call(X, POSITIONS),
            call(X, 1, 0),
            call(X, POSITIONS, axis=-1, mode="clip"),
            call(X, np.array([-5, 7, 2]), 1, mode="wrap"),
            call(V, np.array([], int)),
            call(X, np.array([0], np.uint8), 2),
            call(X, POSITIONS.astype(np.float32)),
            call(X, 0, 3),
        ]
    ),
    "take_along_axis": Row(
        [
            *dtypes((2, 3), np.array([[1, 0, -1, 2], [0, 0, 1, 1]]), 1),
            call(V, np.array([4, -5, 0])),
            call(X, np.zeros((2, 1, 4), int), axis=1),
            call(X, np.array([3, 1]), None),
            call(M, POSITIONS[:1, :], -1),
            call(X, POSITIONS, 0),
            call(M, M, 0),
        ]
    ),
    "put_along_axis": Row(
        [call(numbers(d, (2, 3)), np.array([[1], [2]]), numbers(d, (2, 1)), 1) for d in ALL]
        + [call(M, np.array([[0, 3], [1, 2], [0, 1]]), M[:, :2], 1), call(M, np.array([1, 5]), 7, None)]
        + [call(M, np.array([[2, 1, 0, 2]]), -1, axis=0)],
        numpy=written(np.put_along_axis),
        ours=partial(tnp.put_along_axis, inplace=False),
    ),
    "compress": Row(
        [call([True, False, True], x, 0) for x in (numbers(d, (3, 2)) for d in ALL)]
        + [call([False, True], X, axis=-1), call([True, False, True], X), call([], V), call([True] * 6, V)]
    ),
    "extract": Row(
        [call(numbers("bool", (2, 3)), numbers(d, (2, 3))) for d in ALL]
        + [call(numbers("int8", (4,)), numbers("int8", (4,)))]
    ),
    "ix_": Row(
        [
            call(np.array([0, 2]), np.array([1])),
            call(V[:0] > 0),
            call(np.array([True, False, True]), np.array([1, 2])),
            call(M),
        ],
        dtypes=COUNTS,
    ),
    "unravel_index": Row(
        [call(numbers(d, (2, 3), 0, 23), (2, 3, 4)) for d in of_kinds("iu")]
        + [call(5, 7), call(np.array([]), (2,))]
        + [call(numbers("uint8", (3,), 0, 200), (20, 300)), call(numbers("int64", (), 0, 5), (2, 3))],
        dtypes="positions are of the dtype they come in, as in JAX",
        refuses={"it is no array of integers": lambda case: case.args[0] is not None and np.size(case.args[0]) == 0},
    ),
    "ravel_multi_index": Row(
        [call((numbers(d, (3,), 0, 1), numbers(d, (3,), 0, 4)), (2, 5)) for d in of_kinds("iu")]
        + [call((np.array([-1, 9]), np.array([3, -7])), (4, 5), mode) for mode in ("clip", "wrap", "raise")]
        + [call((np.array([[1]]), np.array([0, 3])), (4, 5), order="F"), call((1, 2), (3, 4)), call((1,), (3, 4))],
        dtypes=COUNTS,
    ),
    "diag": Row(
        dtypes((3, 4))
        + dtypes((3,))
        + [call(M, k) for k in (1, -2, 9)]
        + [call(V, k=-1), call(S), call(X), call(V[:0], 2)]
    ),
    "diagflat": Row(dtypes((2, 3)) + everywhere(1) + [call(V, k=-2)]),
    "diagonal": Row(
        dtypes((3, 4))
        + everywhere()
        + [call(X, k, a, b) for k in (0, 1, -1) for a, b in ((0, 1), (2, 0), (-1, 1))]
        + [call(X, 9), call(X, axis1=1, axis2=1), call(X, offset=1, axis1=0, axis2=3)]
    ),
    "trace": Row(
        [call(numbers(d, (3, 4))) for d in ALL]
        + [call(X, 1, 2, 0), call(X, offset=-1, axis1=1, axis2=2), call(V), call(EMPTY)]
        + [call(numbers("int8", (3, 3)), dtype=np.float64), call(numbers("uint8", (20, 20), 200, 255))]
    ),
    **{
        name: Row(
            dtypes((3, 4)) + everywhere() + [call(M, k) for k in (1, -2, 9, -9)] + [call(X, k=1)],
            refuses={"a vector is no matrix": lambda case: case.args[0].ndim == 1},
        )
        for name in ("tril", "triu")
    },
    "fill_diagonal": Row(
        [call(numbers(d, (3, 4)), numbers(d, ())) for d in ALL]
        + [call(X[:2, :2, :2], 7), call(numbers("float32", (5, 2)), V[:2])]
        + [call(V, 1), call(numbers("float32", (7, 3)), 5, True), call(X, 1), call(numbers("float32", (3, 3)), V)],
        ours=partial(tnp.fill_diagonal, inplace=False),
        numpy=written(np.fill_diagonal),
    ),
    "vander": Row(
        dtypes="NumPy's are of the default integer at least",
        cases=[call(numbers(d, (4,), -3, 3)) for d in of_kinds("iufc")]
        + [call(V, 3), call(V, N=0), call(V, 4, increasing=True)]
        + [call(M), call(V[:0], 2)],
        tolerance=100,
    ),
    "diag_indices": Row([call(3), call(2, ndim=3), call(0)]),
    "diag_indices_from": Row([call(M[:, :3]), call(np.ones((2, 2, 2))), call(V), call(M)]),
    "tril_indices": Row([call(3), call(3, 1), call(3, -1, 5), call(0, k=2, m=1)]),
    "triu_indices": Row([call(3), call(3, 1), call(3, -1, 5), call(0, k=2, m=1)]),
    **{
        name: Row(
            [call(M), call(M, k=-1), call(X), call(V)],
            accepts={"the last two axes are those of matrices": lambda case: case.args[0].ndim > 2},
        )
        for name in ("tril_indices_from", "triu_indices_from")
    },
    "meshgrid": Row(
        [
            call(V, V[:2]),
            call(V, V[:2], V[:3], indexing="ij"),
            call(V, S, sparse=True),
            call(),
            call(V),
            call(V, copy=True),
            call(V, V[:2], indexing="x"),
            call(M, V),
        ]
    ),
    "indices": Row(
        [
            call((2, 3)),
            call((2, 0)),
            call(()),
            call((2, 3), sparse=True),
            call((3, 2), dtype=np.float32),
            call((2,), np.int8),
        ]
    ),
}

ROWS = {**SHAPING, **JOINING, **PADDING, **INDEXING}
