"""Rows of functions that work on each element: of one operand, of two, and of those with options."""

import numpy as np

from tests.numpy_agreement.cases import SHAPES, SOME_SHAPES, Case, Row, call, numbers, of_kinds, sampled, special

PAIRS = [((), (3,)), ((2, 1), (1, 3)), ((0, 1), (3,)), ((2, 3, 4), (3, 1)), ((1,), ()), ((), ()), ((2, 0), (1, 1))]
MIXED = [
    ("int8", "uint8"),
    ("int8", "float16"),
    ("bool", "int16"),
    ("float32", "complex64"),
    ("uint16", "int32"),
    ("float16", "float32"),
    ("int32", "float64"),
    ("bool", "float32"),
    ("uint8", "complex128"),
    ("float64", "complex64"),
]
ENDS = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -2.5, 2.5], np.float32)


def unary(kinds: str = "biufc", low: float = -np.inf, high: float = np.inf, **options) -> Row:
    """Every dtype of these kinds with its special values, and a few shapes of float32, which has what is not finite."""
    cases = [call(special(d, low, high)) for d in of_kinds(kinds)]
    cases += [call(ENDS)] if "f" in kinds else []
    shaped = of_kinds(kinds)[-1] if "f" not in kinds else np.dtype("float32")
    low, high = max(low, -3), min(high, 3)
    cases += [call(numbers(shaped, s, low, high)) for s in sampled(SHAPES, 3, f"{kinds}{low}{high}")]
    return Row(cases, **options)


def outer(x: np.ndarray, y: np.ndarray) -> Case:
    """All pairs of two vectors."""
    return call(x[:, None], y)


def binary(
    kinds: str = "biufc", low: float = -np.inf, high: float = np.inf, second=(-np.inf, np.inf), **options
) -> Row:
    """All pairs of special values of every dtype, pairs of dtypes, and of shapes; a number of Python or of NumPy."""
    bounds = (low, high), second
    cases = [outer(*(special(d, *b)[:12] for b in bounds)) for d in of_kinds(kinds)]
    (low, high), (low2, high2) = ((max(a, -5), min(b, 5)) for a, b in bounds)
    mixed = [p for p in MIXED if all(np.dtype(d).kind in kinds for d in p)]
    salt = f"{kinds}{low}{high}"
    for a, b in sampled(mixed, 3, salt):
        cases += [call(numbers(a, (3,), low, high), numbers(b, (3,), low2, high2, "y"))]
    d = of_kinds(kinds)[-1] if "f" not in kinds else np.dtype("float32")
    for s, t in sampled(PAIRS, 3, salt):
        cases += [call(numbers(d, s, low, high), numbers(d, t, low2, high2, "y"))]
    if "f" in kinds:
        x = numbers("float32", (2, 3), low, high)
        cases += [outer(ENDS, ENDS), call(x, 2.0), call(x, np.float32(2))]
    return Row(cases, **options)


def bitwise(**options) -> Row:
    """Of booleans and integers."""
    return binary("biu", **options)


POSITIVE = {"low": 0}
ANGLES = {"low": -40, "high": 40}
UNIT = {"low": -1, "high": 1}
EXACT = {"inexact": True}
COMPLEX_ORDER = {"NumPy orders complex numbers by their parts, which XLA and JAX do not": lambda case: has(case, "c")}


def has(case: Case, kinds: str) -> bool:
    """Whether an operand is of one of these kinds."""
    return any(isinstance(x, np.ndarray) and x.dtype.kind in kinds for x in case.args)


def _i0(x: np.ndarray) -> np.ndarray:
    """NumPy's, but at infinity, where that is nan, the product of 0 and infinity."""
    return np.where(np.isinf(x), np.inf, np.i0(x))


def either(**options) -> dict[str, Row]:
    return options


OF_ONE = {
    **dict.fromkeys(["absolute", "abs"], unary()),
    "fabs": unary("biuf", **EXACT),
    "negative": unary(),
    "positive": unary("iufc"),
    "sign": unary(),
    "square": unary("iufc", tolerance=8),
    "sqrt": unary(**EXACT),
    "cbrt": unary("biuf", **EXACT),
    "reciprocal": unary("fc"),
    **dict.fromkeys(["conjugate", "conj"], unary("iufc")),
    "real": unary(),
    "imag": unary(),
    "exp": unary(high=80, low=-80, **EXACT),
    "exp2": unary(high=15, low=-80, **EXACT),
    "expm1": unary(high=80, low=-80, **EXACT),
    "log": unary(**EXACT),
    "log2": unary(**EXACT),
    "log10": unary(**EXACT),
    "log1p": unary(low=-1, **EXACT),
    "sin": unary(**ANGLES, **EXACT),
    "cos": unary(**ANGLES, **EXACT),
    "tan": unary(**ANGLES, **EXACT, tolerance=1000),
    "sinh": unary(low=-10, high=10, **EXACT),
    "cosh": unary(low=-10, high=10, **EXACT),
    "tanh": unary(**EXACT),
    **dict.fromkeys(["arcsin", "asin"], unary(**UNIT, **EXACT)),
    **dict.fromkeys(["arccos", "acos"], unary(**UNIT, **EXACT)),
    **dict.fromkeys(["arctan", "atan"], unary(**EXACT)),
    **dict.fromkeys(["arcsinh", "asinh"], unary(**EXACT)),
    **dict.fromkeys(["arccosh", "acosh"], unary(low=1, **EXACT)),
    **dict.fromkeys(["arctanh", "atanh"], unary(**UNIT, **EXACT)),
    **dict.fromkeys(["deg2rad", "radians", "rad2deg", "degrees"], unary("biuf", low=-1e3, high=1e3, **EXACT)),
    "sinc": unary(low=-20, high=20, **EXACT, tolerance=30),
    # At infinity NumPy's is nan, the product of 0 and infinity.
    "i0": unary(
        "biuf", low=-20, high=20, **EXACT, tolerance=30, numpy=lambda x: np.where(np.isinf(x), np.inf, np.i0(x))
    ),
    **dict.fromkeys(["floor", "ceil", "trunc"], unary("biuf")),
    "fix": unary("biuf"),
    "rint": unary(**EXACT),
    "signbit": unary("biuf"),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], unary()),
    **dict.fromkeys(["isneginf", "isposinf"], unary("iuf")),
    **dict.fromkeys(["iscomplex", "isreal"], unary()),
    "logical_not": unary(),
    **dict.fromkeys(["bitwise_not", "invert", "bitwise_invert"], unary("biu")),
    "bitwise_count": unary("iu", dtypes="NumPy counts in uint8, we as JAX in the dtype of the operand"),
    "spacing": unary("f", low=0.01, high=1000, **EXACT),
    "frexp": unary("biuf", low=-1000, high=1000, **EXACT),
    "modf": unary("biuf", **EXACT),
}

OF_TWO = {
    "add": binary(),
    "subtract": binary("iufc"),
    "multiply": binary(tolerance=8),
    **dict.fromkeys(["true_divide", "divide"], binary(**EXACT, tolerance=8)),
    "floor_divide": binary("iuf", low=-1000, high=1000, second=(-1000, 1000)),
    **dict.fromkeys(["remainder", "mod"], binary("iuf", low=-1000, high=1000, second=(-1000, 1000))),
    "fmod": binary("iuf", low=-1000, high=1000, second=(-1000, 1000)),
    "divmod": binary("iuf", low=-1000, high=1000, second=(-1000, 1000)),
    **dict.fromkeys(["power", "pow"], binary("iufc", low=0, high=20, second=(0, 5), tolerance=30)),
    "float_power": binary(
        low=0, high=20, second=(-5, 5), tolerance=30, **EXACT, dtypes="NumPy's powers are float64 or complex128"
    ),
    "hypot": binary("biuf", **EXACT),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], binary("biuf")),
    "gcd": binary("iu", low=-1000, high=1000, second=(-1000, 1000)),
    "lcm": binary("iu", low=-100, high=100, second=(-100, 100)),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], bitwise()),
    **dict.fromkeys(
        ["left_shift", "bitwise_left_shift", "right_shift", "bitwise_right_shift"], binary("iu", second=(0, 7))
    ),
    **dict.fromkeys(["equal", "not_equal"], binary()),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal"], binary("biufc")),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], binary()),
    **dict.fromkeys(["arctan2", "atan2"], binary("biuf", **EXACT)),
    "logaddexp": binary("biuf", **EXACT),
    "logaddexp2": binary("biuf", **EXACT),
    "copysign": binary("biuf", **EXACT),
    "nextafter": binary("f"),
    "heaviside": binary("biuf", **EXACT),
}

WITH_OPTIONS = {
    "angle": Row(
        unary().cases
        + [call(special(d), True) for d in of_kinds("biufc")]
        + [call(numbers("complex64", (3,)), deg=True)],
        inexact=True,
        jax={"float64 of one float32 number": lambda case: case.args[0].shape == ()},
    ),
    **dict.fromkeys(
        ["round", "around"],
        Row(
            unary("iufc", low=-1e4, high=1e4).cases
            + [call(special(d, -500, 500), 2) for d in of_kinds("iufc")]
            + [call(special(d, -1e4, 1e4), decimals=-1) for d in of_kinds("iufc")]
            + [call(np.array([15, 25, -25, -15, 4, 125], np.int8), -1)]
        ),
    ),
    "clip": Row(
        [call(special(d), numbers(d, (), 0, 2), 3) for d in of_kinds("iuf")]
        + [call(numbers("float32", s), -1, 1) for s in SHAPES]
        + [call(numbers("float32", (2, 3)), None, numbers("float32", (3,))), call(numbers("float32", (2, 3)), min=0)]
        + [call(numbers("float32", (2, 3)), a_min=-2, a_max=2.5), call(numbers("int8", (4,)), 3, -3)]
        + [call(np.array([1, np.nan, -np.inf], np.float32), -1, 1), call(numbers("int32", (3,)), 0.5, 2.5)]
    ),
    "ldexp": Row(
        [outer(special(d), np.array([-3, 0, 5, 200, -200], np.int32)) for d in of_kinds("f")]
        + [call(numbers("float32", (2, 3)), 2), call(numbers("int16", (3,)), numbers("int8", (3,)))],
    ),
    "nan_to_num": Row(
        [call(special(d)) for d in of_kinds("biufc")]
        + [call(special("float32"), nan=7.0, posinf=1.0, neginf=-1.0)]
        + [call(np.array([np.nan + 1j, complex(2, np.inf), complex(-np.inf, np.nan)], np.complex64))]
        + [call(np.array([[np.nan, np.inf]], np.float16), True, 1)]
    ),
    "isclose": Row(
        [outer(special(d, -1e3, 1e3), special(d, -1e3, 1e3)[::2]) for d in of_kinds("biufc")]
        + [
            call(
                np.array([1, np.nan, np.inf, 2.01], np.float32),
                np.array([1, np.nan, np.inf, 2], np.float32),
                equal_nan=True,
            )
        ]
        + [outer(ENDS, ENDS)]
        + [call(np.array([1, 2.01], np.float32), 2, 0.01, 0.02), call(numbers("float32", (2, 1)), 3, rtol=0.1, atol=1)]
        + [call(np.array([2**24 + 1, 5]), np.array([2**24, 5]), 0, 0)]
        + [call(np.array([100, -100], np.int8), np.array([-100, 100], np.int8), 0, 100)]
        + [call(np.array([0, 255], np.uint8), np.array([1, 0], np.uint8), rtol=0, atol=1)]
    ),
    "allclose": Row(
        [call(numbers(d, (2, 3)), numbers(d, (2, 3))) for d in of_kinds("biufc")]
        + [
            call(numbers("float32", s), numbers("float32", s) + np.float32(1e-4), rtol=1e-3, atol=1e-2)
            for s in SOME_SHAPES
        ]
        + [call(np.array([np.nan], np.float32), np.array([np.nan], np.float32), equal_nan=True)]
    ),
    "array_equal": Row(
        [call(special(d), special(d)) for d in of_kinds("biufc")]
        + [
            call(numbers("float32", (2, 3)), numbers("float32", (3,))),
            call(special("float32"), special("float32"), True),
        ]
        + [
            call(numbers("complex64", (0,)), numbers("int8", (0,))),
            call(np.array([np.nan]), np.array([np.nan]), equal_nan=True),
        ]
    ),
    "array_equiv": Row(
        [call(numbers(d, (1, 3)), numbers(d, (1, 3)).repeat(2, 0)) for d in of_kinds("biufc")]
        + [call(numbers("float32", (2, 3)), numbers("float32", (2,))), call(special("float32"), special("float32"))]
    ),
    "where": Row(
        [call(numbers("bool", (3,)), numbers(d, (3,)), numbers(d, (2, 1), salt="y")) for d in of_kinds("biufc")]
        + [call(numbers("bool", s), numbers("float32", s), 0) for s in SHAPES]
        + [
            call(numbers("float32", (3,)) > 0, 1, 2.5),
            call(numbers("int32", (2, 3))),
            call(numbers("float32", (4,)), 1, 0),
            call(True, numbers("float32", (2, 3)), 0.0),
        ]
    ),
    "select": Row(
        [call([x > 2, x < -2, x == 0], [x, x * 2, x - 1], 7) for x in (numbers(d, (6,)) for d in of_kinds("if"))]
        + [call([numbers("bool", (2, 1))], [numbers("float32", (3,))], default=-1.0)]
    ),
    "piecewise": Row(
        [call(x, [x < 0, x > 4], [lambda x: -x, lambda x: x * 2]) for x in (numbers(d, (6,)) for d in of_kinds("if"))]
        + [call(np.array([1.0, -2, 7], np.float32), [np.array([True, False, True])], [3, 4])]
        + [
            call(numbers("int32", (3,)), np.array([True, False, True]), [3, lambda x: x]),
            call(np.int32(3), True, [1, 2]),
        ]
    ),
    "unwrap": Row(
        [call(numbers(d, (8,), -20, 20)) for d in of_kinds("f")]
        + [call(numbers("float32", (2, 5), -20, 20), axis=0), call(numbers("float64", (6,), -20, 20), 5.0, period=4)]
        + [call(numbers("float64", (6,), -20, 20), discont=4.0, axis=-1)],
        tolerance=100,
    ),
    "interp": Row(
        [
            call(numbers(d, (5,), -4, 9), np.array([0, 1, 4, 5]).astype(d), np.array([3, -1, 2, 2]).astype(d))
            for d in of_kinds("iuf")
        ]
        + [
            call(numbers("float32", s, -4, 9), np.arange(3, dtype=np.float32), np.ones(3, np.complex64))
            for s in SOME_SHAPES
        ]
        + [call(numbers("float32", (5,)), np.arange(3.0), np.arange(3.0), left=-7, right=8)]
        + [call(numbers("float32", (5,)), np.array([3.0, 0, 5]), np.arange(3.0), period=4.5)],
        inexact=True,
        dtypes="NumPy interpolates in float64",
    ),
}

ROWS = {**OF_ONE, **OF_TWO, **WITH_OPTIONS}
