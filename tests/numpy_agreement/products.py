"""Rows of products, numerical calculus, polynomials, convolution and linear algebra."""

import numpy as np

import tapeless.numpy as tnp
from tests.numpy_agreement.cases import Case, Row, call, numbers, of_kinds

MATRICES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (5, 3, 1)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((), (3,)),
    ((2, 3), (2, 3)),
    ((1, 1), (1, 1)),
]
PAIRS = [("int8", "uint8"), ("bool", "float32"), ("float16", "complex64"), ("int32", "float32")]
A, B, V = numbers("float32", (3, 4)), numbers("float32", (4, 2)), numbers("float32", (5,))
X6, W6 = np.arange(6, dtype=np.float32), numbers("float32", (6,))


EXACT_INTEGERS = {
    "integers stay integers, as in NumPy, and exact": lambda case: {x.dtype.kind for x in case.args[:2]} <= {*"biu"}
}


def products(shapes, kinds: str = "biufc", s=(2, 3), t=(3, 4), **options) -> Row:
    """Operands of every dtype, of pairs of dtypes, and of shapes."""
    cases = [call(numbers(d, s, -3, 3), numbers(d, t, -3, 3, "y")) for d in of_kinds(kinds)]
    cases += [
        call(numbers(a, s, 0, 3), numbers(b, t, 0, 3, "y"))
        for a, b in PAIRS
        if {np.dtype(a).kind, np.dtype(b).kind} <= {*kinds}
    ]
    cases += [call(numbers("float32", p), numbers("float32", q, salt="y")) for p, q in shapes]
    extra = options.pop("extra", [])
    return Row([*cases, *extra], tolerance=100, **options)


VECTORS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (2, 3)),
    ((2, 1, 3), (4, 3)),
    ((0, 3), (3,)),
    ((3,), (4,)),
    ((), (3,)),
    ((2, 0), (0,)),
]

PRODUCTS = {
    "dot": products([*MATRICES, ((2, 3, 4), (5, 4, 2)), ((), ()), ((2,), ())]),
    "matmul": products(MATRICES),
    "inner": products([*VECTORS, ((), ()), ((2, 1, 3), (4, 5, 3))], t=(4, 3)),
    "outer": products([((3,), (2,)), ((2, 2), (3,)), ((), (3,)), ((0,), (2,))]),
    "vdot": products([((3,), (3,)), ((2, 3), (3, 2)), ((), ()), ((2,), (3,))], s=(2, 3), t=(6,)),
    "vecdot": products(
        VECTORS,
        t=(3,),
        extra=[call(A, A, axis=0), call(A, numbers("complex64", (3, 1)), axis=0), call(A, A, axis=2)],
        keywords={"axis": "NumPy's ufunc has it among its options"},
    ),
    "matvec": products([((2, 3), (3,)), ((5, 2, 3), (5, 3)), ((2, 3), (4, 3)), ((3,), (3,)), ((2, 3), (2,))], t=(3,)),
    "vecmat": products(
        [((3,), (3, 2)), ((5, 3), (5, 3, 2)), ((4, 3), (3, 2)), ((3,), (3,)), ((2,), (3, 2))], s=(3,), t=(3, 2)
    ),
    "kron": products([((2,), (3,)), ((2, 3), (2,)), ((), (2,)), ((2, 1, 2), (3, 2)), ((0,), (2,))], "iufc"),
    "cross": products(
        [((2, 3), (3,)), ((4, 1, 3), (5, 3)), ((3,), (2,)), ((4,), (4,))],
        "iufc",
        (3,),
        (3,),
        extra=[
            call(numbers("float32", (3, 4)), numbers("float32", (3, 4), salt="y"), axis=0),
            call(numbers("float32", (3, 4)), numbers("float32", (4, 3)), 0, -1, axisc=0),
            call(numbers("float32", (3, 4)), numbers("float32", (4, 3)), axisa=0, axisb=1),
        ],
        accepts={"vectors of two, which NumPy refuses from 2.5 on": lambda case: case.args[1].shape[-1] == 2},
    ),
    "tensordot": products(
        [((2, 3, 4), (3, 4, 5)), ((3, 4), (3, 4))],
        s=(2, 3, 4),
        t=(3, 4, 2),
        extra=[
            call(A, A, axes=([0, 1], [0, 1])),
            call(A, B, 1),
            call(A, B, 0),
            call(A, A, ((-1,), (1,))),
            call(A, A, (0, 0)),
            call(A, B),
        ],
    ),
    "einsum": Row(
        [call("ij,jk->ik", numbers(d, (2, 3), -3, 3), numbers(d, (3, 4), -3, 3)) for d in of_kinds("iufc")]
        + [call(s, numbers("float32", (3, 3))) for s in ("ii", "ii->i", "ij->ji", "ij->", "i...->...", "ij->j")]
        + [
            call("...ij,...jk->...ik", numbers("float32", (2, 3, 4)), B),
            call("i,i,i->", V, V, V),
            call("i,j", V[:2], V),
        ]
        + [
            call(A, [0, 1], B, [1, 2], [0, 2]),
            call("ij,jk,k", A, B, V[:2], optimize=True),
            call("ij,jk", A, A),
            call("ij", V),
        ],
        tolerance=100,
    ),
}


def whole_polydiv(u, v):
    """NumPy's, the remainder with its leading zeros."""
    quotient, rest = np.polydiv(u, v)
    return quotient, np.pad(rest, (max(len(u) - len(rest), 0), 0))


CALCULUS = {
    "diff": Row(
        [call(numbers(d, (2, 5))) for d in of_kinds("biufc")]
        + [call(V, n) for n in (0, 2, 5, 7)]
        + [call(A, axis=0)]
        + [call(V, prepend=1, append=V[:2]), call(A, 2, 0, A[:1], 3), call(A, -1), call(numbers("float32", ()))]
        + [call(V, 0, prepend=1.0), call(A, 0, 0, None, 3.0)],
    ),
    "ediff1d": Row(
        [call(numbers(d, (2, 3))) for d in of_kinds("iufc")]
        + [call(V, 7, V[:2]), call(V, to_begin=1), call(V[:0])]
        + [call(numbers("int8", (4,)), to_end=np.array([3], np.int8))]
    ),
    "gradient": Row(
        [call(numbers(d, (4, 3))) for d in of_kinds("iufc")]
        + [call(V), call(V, 2.0), call(A, 1, 0.5), call(A, axis=-1), call(A, 2, axis=0)]
        + [call(A, axis=(1, 0)), call(V[:2]), call(V[:1]), call(A, edge_order=1)]
        + [call(A, edge_order=2), call(V, 0.5, edge_order=2), call(V[:2], edge_order=2)]
        + [call(V, V**2, edge_order=n) for n in (1, 2)]
        + [call(A, np.arange(A.shape[0]) ** 1.5, 2.0), call(A, V[:1])],
        inexact=True,
    ),
    "trapezoid": Row(
        [call(numbers(d, (2, 5))) for d in of_kinds("iufc")]
        + [
            call(A, numbers("float32", (4,))),
            call(A, axis=0, dx=0.5),
            call(A, x=A * A),
            call(V[:1]),
            call(V[:0]),
            call(A, V[:3], 1, 0),
        ],
        inexact=True,
        tolerance=30,
    ),
    "convolve": products(
        jax=EXACT_INTEGERS,
        shapes=[((5,), (2,)), ((2,), (5,)), ((1,), (1,)), ((0,), (2,)), ((2, 2), (2,)), ((), (3,))],
        kinds="iufc",
        s=(6,),
        t=(3,),
        extra=[
            call(V, V[:2], "same"),
            call(V[:2], V, mode="valid"),
            call(V, V[:4], "same"),
            call(V, V, "none"),
        ],
        refuses={"operands are vectors": lambda case: 0 in (case.args[0].ndim, case.args[1].ndim)},
    ),
    "correlate": products(
        jax=EXACT_INTEGERS,
        shapes=[((5,), (2,)), ((2,), (5,)), ((1,), (1,)), ((2,), (0,))],
        kinds="iufc",
        s=(6,),
        t=(3,),
        extra=[
            call(V, V[:2], "same"),
            call(V[:2], V, mode="full"),
            call(V[:3], V, "same"),
            call(V[:2] * np.complex64(1j), V, "full"),
        ],
    ),
    "polyval": products(
        [((3,), (2, 2)), ((1,), ()), ((0,), (3,)), ((3, 2), (4, 2)), ((2, 2), (3,))], "iufc", (4,), (5,)
    ),
    "polyadd": products([((3,), (2,)), ((), (2,)), ((1,), (1,))], "iufc", (4,), (2,)),
    "polysub": products([((3,), (2,)), ((2,), (4,)), ((1,), (1,))], "ifc", (4,), (2,)),
    "polymul": Row(
        jax=EXACT_INTEGERS,
        cases=[call(numbers(d, (4,), 1, 5), numbers(d, (2,), 1, 5)) for d in of_kinds("iufc")] + [call(V, V[:1])],
    ),
    "polyder": Row(
        dtypes="floating point, as in JAX",
        cases=[call(numbers(d, (4,))) for d in of_kinds("iufc")] + [call(V, n) for n in (0, 2, 5, 6)] + [call(V, m=1)],
    ),
    "polyint": Row(
        [call(numbers(d, (4,))) for d in of_kinds("iufc")]
        + [call(V, n) for n in (0, 2)]
        + [call(V, m=3), call(V, 2, k=[3.0, -1.0]), call(V, 3, 2.0), call(V, 2, [1, 2, 3]), call(V, -1)],
        inexact=True,
        refuses={"constants of more integrals than there are": lambda case: case.args[2:] == ([1, 2, 3],)},
        dtypes="NumPy's are of 64 bits",
    ),
    "poly": Row(
        [call(numbers(d, (4,), -3, 3)) for d in of_kinds("iufc")]
        + [call(V[:0]), call(V[:1])]
        + [call(np.array([[2, 1], [1, 3]], np.float32)), call(np.ones((2, 3)))],
        inexact=True,
        tolerance=200,
        dtypes="complex of a matrix, as in JAX",
    ),
    "polydiv": Row(
        [call(numbers(d, (5,), 1, 4), numbers(d, (n,), 1, 3)) for d in of_kinds("iuf") for n in (1, 3, 5, 6)]
        + [call(numbers("complex64", (4,)), numbers("complex64", (2,)))],
        inexact=True,
        tolerance=2000,
        numpy=whole_polydiv,
    ),
    "polyfit": Row(
        [call(X6, numbers(d, (6,)), n) for d in of_kinds("f") for n in (0, 1, 3) if d != np.float16]
        + [call(X6, numbers("float32", (6, 2)), 2, w=X6 + 1), call(X6, W6, deg=1, cov=True)]
        + [call(X6, W6, 1, None, True), call(X6, W6, 2, rcond=1e-3), call(X6, W6, 1, full=True)]
        + [call(X6, W6, 2, w=X6 + 1, cov="unscaled"), call(X6, numbers("float32", (6, 2)), 1, cov=True)]
        + [call(X6, W6[:5], 1), call(X6, W6, -1), call(X6[:2], V[:2], 1, cov=True), call(X6, W6, 1, w=V[:3])],
        tolerance=20000,
        dtypes="rcond is a number in NumPy",
    ),
    "roots": Row(
        [
            call(np.array(p, d))
            for d in (np.float32, np.float64, np.int32)
            for p in ([2, -3, 1], [0, 0, 1, 4], [1, 0, 1])
        ]
        + [call(np.array(p, np.float32)) for p in ([], [3], [0, 0], [1, 2, 0, 0], [[1, 2], [3, 4]])]
        + [call(np.array([1, -3 - 1j, 2 + 2j], np.complex64))],
        numpy=lambda p: np.sort_complex(np.roots(p)),
        ours=lambda p: tnp.sort_complex(tnp.round(tnp.roots(p), 5)),
        inexact=True,
        tolerance=3000,
        dtypes="complex, as in JAX",
    ),
}


def square(dtype, batch=(), definite=False) -> np.ndarray:
    """A matrix that is far from singular."""
    x = numbers(dtype, (*batch, 3, 3), -2, 2)
    x = x + 7 * np.eye(3, dtype=x.dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) if definite else x


WIDE = [d for d in of_kinds("iufc") if d != np.float16]


def linear(*extra: Case, batch=((2,), (0,)), **options) -> Row:
    cases = [call(square(d)) for d in WIDE] + [call(square("float32", b)) for b in batch] + [call(A), call(V)]
    return Row([*cases, *extra], inexact=True, tolerance=3000, **options)


S, D = square("float32"), square("float32", (), True)
LINALG = {
    "linalg.det": linear(call(S[:0, :0])),
    "linalg.slogdet": linear(call(-S), call(S * 0)),
    "linalg.inv": linear(),
    "linalg.pinv": Row(
        [call(square(d)) for d in WIDE]
        + [call(A), call(A.T), call(V), call(A, rtol=1e-3), call(D, hermitian=True)]
        + [call(A, 0.1), call(numbers("float32", (2, 3, 2)))],
        inexact=True,
        tolerance=3000,
        keywords={"rcond": "another name of rtol, which is given"},
    ),
    "linalg.solve": Row(
        [call(square(d), numbers(d, (3, 2))) for d in WIDE]
        + [call(S, V[:3]), call(square("float32", (2,)), V[:3])]
        + [call(square("float32", (2,)), numbers("float32", (2, 3, 1))), call(S, V), call(A, A)],
        inexact=True,
        tolerance=3000,
    ),
    "linalg.lstsq": Row(
        [call(numbers(d, (4, 2)), numbers(d, (4, 3))) for d in WIDE] + [call(A.T, V[:4], rcond=0.1)] + [call(A, V)],
        inexact=True,
        tolerance=3000,
    ),
    "linalg.matrix_power": Row(
        [call(square(d), n) for d in WIDE for n in (0, 3, -2) if d.kind in "fc"]
        + [call(numbers("int32", (2, 2), -3, 3), 5), call(A, 2), call(S, n=1)],
        tolerance=3000,
    ),
    "linalg.matrix_rank": linear(
        call(np.ones((3, 3), np.float32)),
        call(A, rtol=0.9),
        call(D, hermitian=True),
        batch=((2,),),
        dtypes="ranks are of the default integer",
        keywords={"tol": "another name of rtol, as in JAX; NumPy's is absolute"},
    ),
    "linalg.cond": linear(*[call(S, p) for p in (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc")], call(S, p=None)),
    "linalg.multi_dot": Row(
        [call([A, B]), call([A, B, B.T, V[:4]]), call([V[:3], A, B]), call([A]), call([A, A])], tolerance=100
    ),
    "linalg.tensorinv": Row(
        [call(numbers("float32", (4, 6, 8, 3)) + 0, 2), call(numbers("float32", (6, 2, 3)), ind=1), call(A)],
        tolerance=30000,
    ),
    "linalg.tensorsolve": Row(
        [
            call(numbers("float32", (2, 3, 6)), numbers("float32", (2, 3))),
            call(numbers("float32", (2, 6, 3)), numbers("float32", (2, 3)), axes=(1,)),
            call(A, V),
        ],
        tolerance=30000,
    ),
    "linalg.norm": Row(
        [call(numbers(d, (3, 4))) for d in of_kinds("biufc")]
        + [call(V, p) for p in (0, 1, 2, 3, -1, -2.5, np.inf, -np.inf)]
        + [call(A, p) for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, "none", 3)]
        + [call(numbers("float32", (2, 3, 4)))]
        + [call(numbers("float32", (2, 3, 4)), 2, axis=a, keepdims=True) for a in (1, (0, 2))]
        + [call(A, ord=None, axis=0)],
        inexact=True,
        tolerance=300,
    ),
    "linalg.vector_norm": Row(
        [call(numbers(d, (3, 4))) for d in of_kinds("fc")]
        + [call(A, axis=0, keepdims=True), call(A, ord=1)]
        + [call(A, axis=(1, 0), ord=3)],
        tolerance=300,
    ),
    "linalg.matrix_norm": Row(
        [call(numbers(d, (3, 4))) for d in of_kinds("fc")]
        + [call(A, keepdims=True, ord=1), call(A, ord="nuc")]
        + [call(numbers("float32", (2, 3, 4)), ord=-2), call(V)],
        tolerance=300,
    ),
    "linalg.svdvals": Row(
        [call(numbers(d, (3, 4))) for d in WIDE if d.kind in "fc"] + [call(numbers("float32", (2, 3, 2)))],
        tolerance=300,
    ),
    "linalg.eigvalsh": Row(
        [call(square(d, (), True)) for d in WIDE if d.kind in "fc"] + [call(D, "U"), call(D, UPLO="L"), call(A)],
        tolerance=3000,
    ),
    "linalg.cholesky": Row(
        [call(square(d, (), True)) for d in WIDE if d.kind in "fc"]
        + [call(square("float64", (2,), True)), call(A)]
        + [call(D, upper=True)],
        tolerance=3000,
    ),
    "linalg.matrix_transpose": Row([call(A), call(numbers("float32", (2, 3, 4))), call(V)]),
    "linalg.matmul": products(MATRICES),
    "linalg.outer": products([((3,), (2,)), ((0,), (2,))], s=(2,), t=(3,)),
    "linalg.cross": products(
        [((2, 3), (3,)), ((4, 1, 3), (5, 3)), ((2,), (2,))], "iufc", (3,), (3,), extra=[call(A, A * A, axis=0)]
    ),
    "linalg.diagonal": Row(
        [call(A), call(numbers("float32", (2, 3, 4)), offset=1), call(numbers("int8", (3, 3)), offset=-1), call(V)]
    ),
    "linalg.trace": Row(
        [call(numbers(d, (3, 4))) for d in of_kinds("biufc")]
        + [call(numbers("float32", (2, 3, 4)), offset=1)]
        + [call(numbers("int8", (3, 3)), dtype=np.float32), call(V)]
    ),
    "linalg.tensordot": products([((2, 3, 4), (3, 4, 5))], s=(2, 3, 4), t=(3, 4, 2), extra=[call(A, B, axes=1)]),
    "linalg.vecdot": products(VECTORS[:4], t=(3,), extra=[call(A, A, axis=0)]),
}

ROWS = {**PRODUCTS, **CALCULUS, **LINALG}
