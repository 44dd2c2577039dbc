"""Rows of functions that make arrays and ask for dtypes and shapes; and names without a row, with the reason."""

import numpy as np

import tapeless.numpy as tnp
from tests.numpy_agreement.cases import SHAPES, Row, call, numbers, of_kinds

M, V = numbers("float32", (3, 4)), numbers("float32", (5,))
ALL = of_kinds("biufc")


def made(**options) -> Row:
    """By shape and dtype."""
    cases = (
        [call(s) for s in SHAPES]
        + [call((2, 3), d) for d in ALL]
        + [call(3, dtype=np.int8), call(np.int64(2)), call(-1), call(1.5)]
    )
    return Row(cases, **options)


def like(**options) -> Row:
    cases = [call(numbers(d, (2, 3))) for d in ALL] + [
        call(M, dtype=np.int8),
        call(M, shape=(2,)),
        call(M, np.complex64, shape=()),
    ]
    return Row(cases, **options)


RANGES = [
    call(5),
    call(2, 7),
    call(7, 2, -2),
    call(0.5, 3),
    call(1, 2, 0.25),
    call(0),
    call(-3),
    call(5, dtype=np.float64),
    call(2, 9, 3),
]
RANGES += [call(np.float32(3)), call(3, 10, step=4, dtype=np.uint8), call(1, 5, 0), call(0, 1, 0.1), call(10, stop=12)]
RANGES += [call(5, 1, -1, dtype=np.uint16), call(9, -1, -4, dtype=np.uint8)]
SPACED = [
    call(0, 1),
    call(2, 8, 4),
    call(2, 8, num=4, endpoint=False),
    call(1, 9, 5, dtype=np.int32),
    call(1, 2, 1),
    call(1, 2, 0),
    call(3, 3, 3),
]
SPACED += [
    call(np.array([1.0, 2]), np.array([[3.0], [5]]), 3, axis=-1),
    call(1, 5, -1),
    call(1j, 2 + 1j, 3),
    call(np.float32(1), 4, 7),
]


def spaced(*extra, **options) -> Row:
    """Linear, geometric and logarithmic ranges."""
    return Row([*SPACED, *extra], tolerance=100, **options)


NESTED = [
    1,
    2.5,
    1j,
    True,
    [1, 2],
    [1, 2.0],
    [[1], [2]],
    [],
    [[], []],
    [True, 2],
    [1, 2j],
    ((1, 2), [3, 4]),
    range(3),
    [[1], [1, 2]],
]

MAKING = {
    **{name: made() for name in ("zeros", "ones")},
    "empty": made(numpy=np.zeros),
    **{name: like() for name in ("zeros_like", "ones_like")},
    "empty_like": like(numpy=np.zeros_like),
    "full": Row(
        [call((2, 3), numbers(d, ())) for d in ALL]
        + [call(s, 7) for s in SHAPES]
        + [call(2, 1.5), call((2, 3), V[:3]), call(3, 2.7, int)]
        + [call((2,), True), call((2,), 1j, dtype=np.complex128), call((3,), V), call(2, 300, np.int8)],
        refuses={"integers that do not fit": lambda case: str(case).startswith("(2, 300")},
    ),
    "full_like": Row(
        [call(numbers(d, (2, 3)), 1) for d in ALL]
        + [call(M, V[:4]), call(M, 2.7, dtype=int), call(M, 5, shape=(2,)), call(M, V)]
    ),
    "eye": Row(
        [
            call(3),
            call(3, 4),
            call(3, 2, 1),
            call(3, k=-1),
            call(0),
            call(2, 3, -5, np.int8),
            call(2, M=3, dtype=bool),
            call(-1),
        ],
        accepts={"none is none": lambda case: str(case) == "(-1)"},
    ),
    "identity": Row([call(3), call(0), call(2, np.complex64), call(2, dtype=np.int8)]),
    "tri": Row(
        [call(3), call(3, 4), call(3, 2, 1), call(3, k=-1), call(0), call(2, 3, -5, np.int8), call(2, M=3, dtype=bool)]
    ),
    "arange": Row(RANGES),
    "linspace": spaced(call(0, 1, 3, retstep=True), call(0, 10, 4, True, True, np.float64)),
    "logspace": spaced(call(0, 1, 3, base=2.0), call(0, 2, 3, True, 3)),
    "geomspace": Row(
        [
            call(1, 8, 4),
            call(-1, -8, num=4),
            call(2, 32, 5, endpoint=False),
            call(1, 8, 4, dtype=np.int32),
            call(3, 3, 3),
            call(np.array([1.0, 2]), np.array([16.0, 32]), 5, axis=1),
            call(1, 5, 1),
            call(1, 5, 0),
            call(5, 1, 3),
            call(1, 8, -1),
            call(1j, 16j, 5),
            call(1, 1000, 4, dtype=np.float64),
        ],
        tolerance=100,
    ),
    **{
        name: Row(
            [call(x) for x in NESTED]
            + [call(numbers(d, s)) for d in ALL for s in ((), (2, 3))]
            + [call(M, np.int8), call([1, 2], dtype=np.float64), call([np.int8(1), np.float32(2)]), call([V, V])],
            keywords={"ndmin": "see test_shapes.py"} if name == "array" else {},
        )
        for name in ("array", "asarray")
    },
    "copy": Row([call(numbers(d, (2, 3))) for d in ALL] + [call(3.5)]),
    "astype": Row(
        [
            call(numbers(d, (5,), -100, 100), e)
            for d in of_kinds("iuf")
            for e in of_kinds("biufc")
            if (d.kind, e.kind) != ("f", "u")
        ]
        + [call(M, np.int8, copy=True)]
    ),
    "frombuffer": Row(
        [call(bytes(range(16)), d) for d in ALL[1:]]
        + [call(bytes(8), np.int16, 2, 1), call(bytes(8), np.int8, offset=3, count=2)]
        + [call(bytes(7), np.int16)]
    ),
    "fromfunction": Row(
        [
            call(lambda i, j: i + 2 * j, (2, 3)),
            call(lambda i: i * 2, (3,), dtype=np.int32),
            call(lambda i, k: i + k, (2,), k=1),
        ]
    ),
    **{name: Row([call(n) for n in (0, 1, 2, 5, 8)]) for name in ("bartlett", "blackman", "hamming", "hanning")},
    "kaiser": Row([call(n, b) for n in (0, 1, 5) for b in (0.0, 14.0)]),
}

NUMERIC = [np.float32, np.int8, np.uint16, np.complex64, np.bool_, np.float16, np.float64]
ASKING = {
    **{
        name: Row([call(numbers(d, (2, 3))) for d in ALL] + [call(3), call(1j), call(2.5)])
        for name in ("iscomplexobj", "isrealobj")
    },
    "isscalar": Row([call(3), call(2.5), call(np.float32(1)), call(True), call(V)]),
    "ndim": Row([call(numbers("float32", s)) for s in SHAPES] + [call(3), call([[1, 2]])]),
    "shape": Row([call(numbers("float32", s)) for s in SHAPES] + [call(3), call([[1, 2]])]),
    "size": Row(
        [call(numbers("float32", s)) for s in SHAPES]
        + [call(M, 1), call(M, axis=(0, 1)), call(M, -1), call(M, 2), call([[1, 2]])]
    ),
    "issubdtype": Row([call(d, k) for d in NUMERIC for k in (np.floating, np.integer, np.number, np.float32)]),
    "isdtype": Row(
        [
            call(np.dtype(d), k)
            for d in NUMERIC
            for k in ("bool", "integral", "real floating", "numeric", np.dtype("int8"))
        ]
        + [call(np.dtype("int8"), ("bool", "signed integer"))]
    ),
    "can_cast": Row([call(a, b) for a in NUMERIC for b in NUMERIC] + [call(np.float32, np.int8, "unsafe")]),
    "finfo": Row(
        [call(d) for d in of_kinds("f")],
        numpy=lambda d: [float(np.finfo(d).max), float(np.finfo(d).eps), int(np.finfo(d).bits)],
        ours=lambda d: [float(tnp.finfo(d).max), float(tnp.finfo(d).eps), int(tnp.finfo(d).bits)],
    ),
    "iinfo": Row(
        [call(d) for d in of_kinds("iu")],
        numpy=lambda d: [int(np.iinfo(d).max), int(np.iinfo(d).min), np.iinfo(d).bits],
        ours=lambda d: [int(tnp.iinfo(d).max), int(tnp.iinfo(d).min), tnp.iinfo(d).bits],
    ),
}

ROWS = {**MAKING, **ASKING}

TYPES = "an element type: tests/tracer/test_dtypes.py"
CONSTANTS = "a constant, or a grid that is indexed: tests/tracer/numpy/test_shapes.py"
PROMOTION = "types are promoted by JAX's rules, not NumPy's: tests/tracer/test_dtypes.py compares them with JAX's"
DECOMPOSITIONS = "determined up to signs and order: tests/api/numpy/test_linalg.py rebuilds the matrix"
_SCALAR_TYPES = """
bfloat16 bool bool_ cdouble complex128 complex64 complex_ complexfloating csingle double dtype float16 float32 float64
character flexible float4_e2m1fn float8_e3m4 float8_e4m3 float8_e8m0fnu object_
float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float_ floating generic half inexact int16
int2 int32 int4 int64 int8 int_ integer ndarray number signedinteger single uint uint16 uint2 uint32 uint4 uint64 uint8
unsignedinteger
"""
WITHOUT = {
    **dict.fromkeys(
        _SCALAR_TYPES.split(),
        TYPES,
    ),
    **dict.fromkeys("e euler_gamma inf nan newaxis pi index_exp s_ mgrid ogrid r_ c_".split(), CONSTANTS),
    **dict.fromkeys(["result_type", "promote_types"], PROMOTION),
    **dict.fromkeys(["linalg.eig", "linalg.eigvals", "linalg.eigh", "linalg.qr", "linalg.svd"], DECOMPOSITIONS),
    **dict.fromkeys(
        ["linalg.EigResult", "linalg.EighResult", "linalg.QRResult", "linalg.SVDResult", "linalg.SlogdetResult"],
        "names the parts of a result",
    ),
    **dict.fromkeys(["fft", "linalg"], "a namespace, whose functions have rows of their own"),
    "vectorize": "a function of functions: tests/api/batch/test_vmap.py",
    **dict.fromkeys(
        "fromfile fromiter fromstring load save savez".split(), "reads or writes: tests/tracer/numpy/test_files.py"
    ),
    **dict.fromkeys(["ufunc", "frompyfunc"], "makes functions: tests/tracer/numpy/test_ufuncs.py"),
    "from_dlpack": "takes arrays of other libraries: tests/lowering/test_array.py",
    "einsum_path": "an order of our own, not NumPy's: tests/tracer/numpy/test_contraction_order.py",
    "ComplexWarning": "NumPy's class",
    "iterable": "NumPy's function",
    **dict.fromkeys(
        ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"],
        "prints: tests/tracer/numpy/test_jax_array_protocol.py",
    ),
}
