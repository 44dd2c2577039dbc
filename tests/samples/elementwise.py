"""Samples of elementwise operations; operands stay clear of kinks and branch cuts, which have tests of their own."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tests.samples.sample import Keys, Sample, f32, keys

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
ALL = ("bool", *INTEGERS, *INEXACT)


def c64(*shape: int, seed: int = 0) -> Any:
    """Random complex64 of a shape, in the square around 0."""
    return (f32(*shape, seed=seed) + 1j * f32(*shape, seed=seed + 100)).astype(np.complex64)


def i32(*shape: int, seed: int = 0, low: int = 1, high: int = 6) -> Any:
    """Random int32 of a shape, from low to below high, which every integer type holds."""
    return np.random.default_rng(seed).integers(low, high, shape, np.int32)


def truth(*shape: int, seed: int = 0) -> Any:
    """Random booleans of a shape."""
    return np.asarray(np.random.default_rng(seed).uniform(size=shape) < 0.5)


# ---- one operand ---------------------------------------------------------------------------------------------


def unary(
    primitive: Primitive, reference: Any, low: float, high: float, dtypes: tuple[str, ...], **more: Any
) -> Sample:
    """A row for a function of one operand between low and high."""
    bad = () if "int32" in dtypes else (((i32(3, 2),), more.get("params", {}), TypeError),)
    return Sample(primitive, (f32(3, 4, low=low, high=high),), reference, dtypes=dtypes, bad=bad, **more)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def round_away(x: Any, rounding_method: Any) -> Any:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


AWAY, EVEN = ({"rounding_method": method} for method in e.RoundingMethod)

UNARY = [
    unary(e.floor_p, np.floor, -3, 3, FLOATS),
    unary(e.ceil_p, np.ceil, -3, 3, FLOATS),
    unary(e.round_p, round_away, -3, 3, FLOATS, params=AWAY),
    unary(e.round_p, lambda x, rounding_method: np.round(x), -3, 3, FLOATS, params=EVEN, label="even"),
    unary(e.exp_p, np.exp, -2, 2, INEXACT),
    unary(e.exp2_p, lambda x: 2**x, -2, 2, INEXACT),
    unary(e.expm1_p, np.expm1, -2, 2, INEXACT),
    unary(e.log_p, np.log, 0.1, 3, INEXACT),
    unary(e.log1p_p, np.log1p, -0.8, 3, INEXACT),
    unary(e.log_plus_one_p, np.log1p, -0.8, 3, FLOATS),
    unary(e.logistic_p, logistic, -3, 3, INEXACT),
    unary(e.sin_p, np.sin, -3, 3, INEXACT),
    unary(e.cos_p, np.cos, -3, 3, INEXACT),
    unary(e.tan_p, np.tan, -1, 1, INEXACT),
    unary(e.asin_p, np.arcsin, -0.9, 0.9, INEXACT),
    unary(e.acos_p, np.arccos, -0.9, 0.9, INEXACT),
    unary(e.atan_p, np.arctan, -3, 3, INEXACT),
    unary(e.sinh_p, np.sinh, -2, 2, INEXACT),
    unary(e.cosh_p, np.cosh, -2, 2, INEXACT),
    unary(e.tanh_p, np.tanh, -2, 2, INEXACT),
    unary(e.asinh_p, np.arcsinh, -3, 3, INEXACT),
    unary(e.acosh_p, np.arccosh, 1.2, 3, INEXACT),
    unary(e.atanh_p, np.arctanh, -0.8, 0.8, INEXACT),
    unary(e.sqrt_p, np.sqrt, 0.1, 3, INEXACT),
    unary(e.root_of_squares_p, np.sqrt, 0.1, 3, FLOATS),
    unary(e.rsqrt_p, lambda x: 1 / np.sqrt(x), 0.1, 3, INEXACT),
    unary(e.cbrt_p, np.cbrt, 0.5, 3, FLOATS),
    unary(e.neg_p, np.negative, -3, 3, (*INTEGERS, *INEXACT), linear_in=(0,)),
    unary(e.sign_p, np.sign, 0.5, 3, (*INTEGERS, *INEXACT)),
    unary(e.abs_p, np.abs, 0.5, 3, (*INTEGERS, *INEXACT)),
    unary(e.square_p, np.square, -3, 3, (*INTEGERS, *INEXACT)),
    unary(e.copy_p, np.copy, -3, 3, ALL, linear_in=(0,)),
    # Its derivative is not that of its value: that is what it is for.
    unary(e.stop_gradient_p, np.copy, -3, 3, ALL, differentiable=()),
    unary(e.is_finite_p, np.isfinite, -3, 3, FLOATS),
]
UNARY += [
    Sample(
        e.integer_pow_p,
        (f32(3, low=0.5, high=2),),
        lambda x, y: x**y,
        {"y": n},
        dtypes=INEXACT,
        label=str(n),
        rtol=1e-5,
    )
    for n in (-3, -1, 0, 1, 2, 7)  # the error grows with the power
]
UNARY += [
    Sample(
        e.integer_pow_p,
        (i32(3),),
        lambda x, y: x**y,
        {"y": 3},
        dtypes=INTEGERS,
        label="integers",
        bad=(((i32(3),), {"y": -1}, TypeError), ((truth(3),), {"y": 2}, TypeError)),
    ),
    Sample(e.sign_p, (-i32(3),), np.sign, dtypes=SIGNED, label="integers", bad=(((truth(3),), {}, TypeError),)),
    Sample(e.abs_p, (-i32(3),), np.abs, dtypes=SIGNED, label="integers", bad=(((truth(3),), {}, TypeError),)),
    Sample(e.neg_p, (i32(3),), np.negative, dtypes=INTEGERS, label="integers", bad=(((truth(3),), {}, TypeError),)),
    Sample(e.square_p, (i32(3),), np.square, dtypes=INTEGERS, label="integers", bad=(((truth(3),), {}, TypeError),)),
]
# Square roots, logarithms and inverses off the real line, on all four sides of the branch points.
UNARY += [
    Sample(primitive, (2 * c64(9, seed=k),), reference, label="complex", rtol=3e-6)  # two real operations deep
    for k, (primitive, reference) in enumerate(
        {
            e.sign_p: lambda z: z / np.abs(z),
            e.abs_p: np.abs,
            e.sqrt_p: np.sqrt,
            e.rsqrt_p: lambda z: 1 / np.sqrt(z),
            e.log_p: np.log,
            e.log1p_p: np.log1p,
            e.asin_p: np.arcsin,
            e.acos_p: np.arccos,
            e.atan_p: np.arctan,
            e.asinh_p: np.arcsinh,
            e.acosh_p: np.arccosh,
            e.atanh_p: np.arctanh,
            e.tan_p: np.tan,
            e.tanh_p: np.tanh,
            e.logistic_p: logistic,
        }.items()
    )
]
UNARY += [
    Sample(primitive, (c64(3, 2),), reference, dtypes=COMPLEX, linear_in=(0,), bad=(((f32(3, 2),), {}, TypeError),))
    for primitive, reference in ((e.real_p, np.real), (e.imag_p, np.imag), (e.conj_p, np.conj))
]


# ---- two operands --------------------------------------------------------------------------------------------


def binary(
    primitive: Primitive,
    reference: Callable[..., Any],
    dtypes: tuple[str, ...],
    low: float = -2.0,
    linear: tuple[tuple[int, ...], ...] = (),
    **more: Any,
) -> list[Sample]:
    """Rows for a function of two operands: of one shape, and with either of rank 0. `linear`: in what it is linear."""
    differ = ((f32(3, 2), f32(2, 3)), {}, ValueError), ((i32(3), f32(3)), {}, TypeError)
    refused = () if "bool" in dtypes else (((truth(3), truth(3)), {}, TypeError),)
    rows = []
    for shapes, label in ((((3, 4), (3, 4)), ""), (((3, 4), ()), "scalar-right"), (((), (3, 4)), "scalar-left")):
        args = tuple(np.asarray(f32(*shape, seed=seed, low=low, high=3)) for seed, shape in enumerate(shapes))
        bad = () if label else (*differ, *refused)
        rows.append(Sample(primitive, args, reference, dtypes=dtypes, label=label, bad=bad, **more))
        rows += [
            Sample(
                primitive, args, reference, linear_in=where, label=f"{label}-linear-{''.join(map(str, where))}", **more
            )
            for where in linear
        ]
    return rows


BINARY = [
    *binary(e.add_p, np.add, (*INTEGERS, *INEXACT), linear=((0, 1),)),
    *binary(e.sub_p, np.subtract, INEXACT, linear=((0, 1),)),
    *binary(e.mul_p, np.multiply, (*INTEGERS, *INEXACT), linear=((0,), (1,))),
    *binary(e.div_p, np.divide, INEXACT, low=0.5, linear=((0,),)),
    *binary(e.rem_p, np.fmod, ("float16", "float32", "float64"), low=0.5, rtol=1e-5),  # relative to the quotient
    *binary(e.max_p, np.maximum, ALL),
    *binary(e.min_p, np.minimum, ALL),
    *binary(e.pow_p, np.power, INEXACT, low=0.5, rtol=1e-5),  # the error grows with the exponent
    *binary(e.atan2_p, np.arctan2, FLOATS, low=0.5),
    *binary(e.nextafter_p, np.nextafter, ("float32", "float64"), rtol=0, differentiable=(0,)),  # the identity
]
BINARY += [
    Sample(primitive, (i32(8, low=-9, high=9), i32(8, seed=1)), reference, dtypes=SIGNED, label="integers")
    for primitive, reference in (
        (e.sub_p, np.subtract),
        (e.div_p, lambda x, y: (np.sign(x) * (np.abs(x) // y)).astype(x.dtype)),
        (e.rem_p, np.fmod),
    )
]
BINARY += [
    Sample(e.pow_p, (i32(5, high=4), i32(5, high=4)), np.power, dtypes=INTEGERS, label="integers"),
    Sample(e.pow_p, (f32(5, low=0.5), i32(5, low=-3)), np.power, dtypes=INEXACT, label="integer-exponent", rtol=1e-5),
    Sample(e.pow_p, (c64(5), np.int32(3)), np.power, label="complex-integer-exponent", rtol=1e-5),
    Sample(e.pow_p, (c64(5), c64(5, seed=1)), np.power, label="complex", rtol=1e-5),
    Sample(e.max_p, (c64(5), c64(5, seed=1)), np.maximum, label="complex"),
    Sample(e.min_p, (c64(5), c64(5, seed=1)), np.minimum, label="complex"),
    *binary(e.complex_p, lambda x, y: x + 1j * y, ("float32", "float64"), linear=((0, 1),)),
]
COMPARISON = [
    Sample(
        primitive,
        (i32(9), i32(9, seed=1)),
        reference,
        dtypes=ALL if reference in (np.equal, np.not_equal) else tuple(d for d in ALL if d not in COMPLEX),
        bad=(
            ((f32(3, 2), f32(2, 3)), {}, ValueError),
            ((f32(3), i32(3)), {}, TypeError),
            *(() if reference in (np.equal, np.not_equal) else (((c64(3), c64(3)), {}, TypeError),)),
        ),
    )
    for primitive, reference in {
        e.eq_p: np.equal,
        e.ne_p: np.not_equal,
        e.lt_p: np.less,
        e.le_p: np.less_equal,
        e.gt_p: np.greater,
        e.ge_p: np.greater_equal,
    }.items()
]

# ---- choice and conversion -----------------------------------------------------------------------------------


def choose(which: Any, *cases: Any) -> Any:
    return np.choose(np.asarray(which, int), cases)


CHOICE = [
    Sample(
        e.select_n_p,
        (truth(3, 4), f32(3, 4), f32(3, 4, seed=1)),
        choose,
        dtypes=INEXACT,
        linear_in=(1, 2),
        bad=(
            ((truth(3), f32(3), i32(3)), {}, TypeError),
            ((truth(3), f32(3), f32(3), f32(3)), {}, TypeError),
            ((f32(3), f32(3), f32(3)), {}, TypeError),
            ((truth(2), f32(3), f32(3)), {}, ValueError),
            ((truth(3),), {}, TypeError),
        ),
    ),
    Sample(e.select_n_p, (np.array(True), f32(3), f32(3, seed=1)), choose, linear_in=(1, 2), label="scalar-choice"),
    Sample(e.select_n_p, (truth(6), f32(6), np.array(2, "f")), choose, linear_in=(1, 2), label="scalar-case"),
    Sample(
        e.select_n_p, (truth(6), np.array(1, "f"), np.array(2, "f")), choose, linear_in=(1, 2), label="scalar-cases"
    ),
    Sample(
        e.select_n_p,
        (i32(9, low=0, high=3), f32(9), f32(9, seed=1), f32(9, seed=2)),
        choose,
        linear_in=(1, 2, 3),
        label="three",
    ),
    Sample(e.select_n_p, (truth(6), i32(6), i32(6, seed=1)), choose, label="integers"),
    Sample(
        e.clamp_p,
        (f32(3, 4, low=-1, high=-0.2), f32(3, 4, low=-2, high=2), f32(3, 4, seed=1, low=0.2)),
        lambda lower, x, upper: np.clip(x, lower, upper),
        dtypes=FLOATS,
        bad=(
            ((f32(3), f32(), f32(3)), {}, ValueError),
            ((f32(2), f32(3), f32(3)), {}, ValueError),
            ((f32(3), f32(3), i32(3)), {}, TypeError),
            ((c64(3), c64(3), c64(3)), {}, TypeError),
        ),
    ),
    Sample(
        e.clamp_p,
        (np.array(-0.5, "f"), f32(3, 4, low=-2, high=2), np.array(0.5, "f")),
        lambda lower, x, upper: np.clip(x, lower, upper),
        label="scalar-bounds",
    ),
    Sample(
        e.clamp_p,
        (np.int32(2), i32(9), np.int32(4)),
        lambda lower, x, upper: np.clip(x, lower, upper),
        label="integers",
    ),
]
CHOICE += [
    Sample(
        e.convert_element_type_p,
        (x,),
        lambda x, dtype, weak_type: np.real(x).astype(dtype) if np.dtype(dtype).kind != "c" else x.astype(dtype),
        {"dtype": np.dtype(to), "weak_type": False},
        # float32 rounds what central differences in float64 have
        differentiable=None if to == "float64" or to == "complex128" else (),
        linear_in=(0,) if to == "float64" or to == "complex128" else (),
        label=f"{x.dtype}-{to}",
    )
    for x, to in (
        (f32(3), "float64"),
        (f32(3), "complex128"),
        (c64(3), "complex128"),
        (c64(3), "float64"),
        (f32(3), "float16"),
        (3 * f32(3), "int32"),
        (i32(3), "float32"),
        (i32(3, low=0, high=2), "bool"),
        (truth(3), "float32"),
        (i32(3), "uint8"),
    )
]

# ---- keys ----------------------------------------------------------------------------------------------------

SOME_EQUAL = keys(3, 4), np.where(truth(3, 4), keys(3, 4), keys(3, 4, seed=1)).view(Keys)
KEYS = [
    Sample(e.eq_p, SOME_EQUAL, operator.eq, label="keys", bad=(((keys(3), f32(3)), {}, TypeError),)),
    Sample(e.ne_p, SOME_EQUAL, operator.ne, label="keys", bad=(((keys(3), keys(4)), {}, ValueError),)),
    Sample(e.eq_p, (SOME_EQUAL[0], keys(3, 4)[1, 2:3].reshape(())), operator.eq, label="keys-scalar"),
    Sample(
        e.select_n_p,
        (truth(3, 4), *SOME_EQUAL),
        choose,
        label="keys",
        bad=(((truth(3), keys(3), f32(3)), {}, TypeError), ((keys(3), keys(3), keys(3)), {}, TypeError)),
    ),
    Sample(e.select_n_p, (np.array(True), keys(3), keys()), choose, label="keys-scalar-choice"),
    Sample(e.select_n_p, (truth(6), keys(), keys(seed=1)), choose, label="keys-scalar-cases"),
    Sample(e.select_n_p, (i32(9, low=0, high=3), keys(9), keys(9, seed=1), keys(seed=2)), choose, label="keys-three"),
    Sample(e.copy_p, (keys(3, 4),), np.copy, label="keys"),
    Sample(e.stop_gradient_p, (keys(3, 4),), np.copy, label="keys"),
]

ROWS = UNARY + BINARY + COMPARISON + CHOICE + KEYS
