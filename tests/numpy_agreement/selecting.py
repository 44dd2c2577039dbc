"""Rows of what selects by masks or positions, packs bits, and applies functions of users."""

import numpy as np

import tapeless.numpy as tnp
from tests.numpy_agreement.cases import Row, call, numbers, of_kinds

M, V = numbers("float32", (3, 4)), numbers("float32", (5,))
ANY = of_kinds("biufc")
BYTES = numbers("uint8", (2, 5), 0, 255)


def changed(name):
    """NumPy's function, which changes its first operand, as one that gives it back."""

    def f(x, *args, **kwargs):
        x = np.array(x)
        getattr(np, name)(x, *args, **kwargs)
        return x

    return f


def unchanged(name):
    return lambda *args, **kwargs: getattr(tnp, name)(*args, **kwargs, inplace=False)


SELECTING = {
    "choose": Row(
        [call(np.array([1, 0, 2, 1]), [numbers(d, (4,)), numbers(d, ()), numbers(d, (2, 4))]) for d in ANY]
        + [call(np.array([1, 0, 2, 1]), numbers("int8", (3, 4)))]
        + [call(np.array([5, -1, -4, 2]), [V[:4], V[1:]], mode=m) for m in ("wrap", "clip", "raise", "no")]
        + [call(np.array([0, 2]), [V[:2], V[2:4]]), call(np.array([True, False]), [V[:2], V[2:4]]), call(V, [V, V])]
    ),
    "place": Row(
        [call(numbers(d, (3, 4)), numbers("bool", (3, 4)), numbers(d, (n,))) for d in ANY for n in (1, 3)]
        + [call(V, V > 0, V[:2]), call(V, V > 9, V[:0]), call(V[:0], V[:0] > 0, V), call(V, V > 0, np.ones(9))]
        + [call(V, V[:2] > 0, V), call(V, V < 9, V[:0])],
        numpy=changed("place"),
        ours=unchanged("place"),
        refuses={"no values, though none are needed": lambda case: not case.args[2].size},
        accepts={"values are converted, as in JAX": lambda case: case.args[2].dtype != case.args[0].dtype},
    ),
    "put": Row(
        [call(numbers(d, (3, 4)), np.array([0, -1, 5]), numbers(d, (2,))) for d in ANY]
        + [call(M, np.array([14, -13, 3]), V, mode=m) for m in ("clip", "wrap")]
        + [call(V, 1, 2.0), call(V, np.array([[1, 2], [3, 4]]), np.float32(7)), call(V, np.array([], int), V)]
        + [call(V, np.array([0]), V, "round")],
        numpy=changed("put"),
        ours=unchanged("put"),
    ),
    "mask_indices": Row([call(3, np.triu), call(4, np.tril, -1), call(3, np.triu, k=1)], ours=lambda n, f, k=0: (
        tnp.mask_indices(n, getattr(tnp, f.__name__), k)
    ), dtypes="positions are of the default integer"),
}  # fmt: skip

PACKING = {
    "packbits": Row(
        [call(numbers(d, (3, 11), 0, 1).astype(d)) for d in of_kinds("biu")]
        + [call(numbers("bool", (9, 2, 8)), a, o) for a in (0, 1, -1, None) for o in ("big", "little")]
        + [call(numbers("bool", (2, 3)), axis=1, bitorder="little"), call(V), call(V > 0, 3), call(V > 0, 0, "no")]
        + [call(V[:0] > 0), call(numbers("bool", (0, 3)), 0), call(np.True_)],
    ),
    "unpackbits": Row(
        [call(BYTES, a, bitorder=o) for a in (0, 1, None) for o in ("big", "little")]
        + [call(BYTES, 1, n) for n in (0, 3, 40, 50, -1, -7)]
        + [call(BYTES, count=-90), call(BYTES, axis=0, count=3), call(V), call(BYTES[:0]), call(BYTES, 0, None, "no")],
    ),
}


def halves(row, by=2.0):
    return row.sum() / by


def outer_of(row):
    return row[:, None] * row[:2]


FUNCTIONS = {
    "apply_along_axis": Row(
        [call(f, a, M.reshape(2, 3, 2)) for f in (halves, outer_of) for a in (0, 1, -1)]
        + [call(halves, 0, V, 4.0), call(halves, 1, M, by=3.0), call(halves, 2, M)],
        numpy=lambda f, axis, x, *a, **k: np.apply_along_axis(f, axis, np.asarray(x), *a, **k),
    ),
    "apply_over_axes": Row([
        call(lambda x, axis: x.sum(axis), M.reshape(2, 3, 2), axes) for axes in (0, (0, 2), (1, -1), [0, 1, 2])
    ] + [call(lambda x, axis: x.max(axis, keepdims=True), M, (0, 1)), call(lambda x, axis: x[0, 0], M, (0,))]),
}  # fmt: skip

ROWS = {**SELECTING, **PACKING, **FUNCTIONS}
