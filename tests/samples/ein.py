"""Samples of `ein`, whose reference is a loop over all values of all variables."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.terms.affine import Affine, symbol, variables
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Sum, Use, term
from tests.samples.sample import Sample, f32
from tests.tracer.terms.random_terms import looped

FLOATS = ("float16", "bfloat16", "float64", "complex64")
NUMBERS = (*FLOATS, "complex128", "int32", "uint8")
i, j, k = variables((0, 0, 0))


def reference(*operands: Any, terms: Sum, shape: Any, dtype: Any, precision: Any) -> Any:
    """Booleans are counted."""
    factors = [operands[f.operand] for t in terms for f in t.factors]
    joint = np.asarray(factors[0]).dtype if factors else np.dtype(dtype)
    if joint.kind == "b":
        return looped(terms, [x.astype(np.int64) for x in operands], shape, np.int64) > 0
    return looped(terms, operands, shape, joint)


def params(*terms: Any, shape: Any = (), dtype: Any = None) -> dict[str, Any]:
    precision = (Precision.DEFAULT, Precision.DEFAULT)
    return {"terms": terms, "shape": shape, "dtype": dtype, "precision": precision}


def row(operands: Any, *terms: Any, shape: Any = (), dtype: Any = None, **options: Any) -> Sample:
    return Sample(ein_p, tuple(operands), reference, params(*terms, shape=shape, dtype=dtype), **options)


X, Y, V, W = f32(3, 4), f32(4, 2, seed=1), f32(4, seed=2), f32(6, seed=3)
MASK, CASES = np.array([True, False, True, True]), np.array([2, 0, 1, 5], np.int32)
PLACES = np.array([3, -1, 3, 0, 9], np.int32)
MATRICES = term((i, j), (3, 2, 4), [Read(0, (i, k)), Read(1, (k, j))])
DIAGONAL = [IsZero(i - j)]


def contractions() -> list[Sample]:
    bad = (
        ((X, f32(4, 2, 1)), params(MATRICES, shape=(3, 2)), ValueError),
        ((X, Y.astype(np.float64)), params(MATRICES, shape=(3, 2)), TypeError),
        ((X, f32(3, 2)), params(MATRICES, shape=(3, 2)), IndexError),
        ((X, Y), params(MATRICES, shape=(3, 1)), IndexError),
        ((X, Y), params(MATRICES, shape=(3,)), ValueError),
        ((X,), params(MATRICES, shape=(3, 2)), ValueError),
        ((X, Y), params(MATRICES.scaled(1j), shape=(3, 2)), TypeError),
    )
    both = [
        row((X, Y), MATRICES, shape=(3, 2), linear_in=(n,), label=f"matrices-{n}", dtypes=NUMBERS if not n else (),
            bad=bad if not n else ())
        for n in (0, 1)
    ]  # fmt: skip
    cube = term((i,), (4, 4), [Read(0, (i,)), Read(0, (j,)), Read(1, (j,)), Read(1, (i,))], coefficient=-2)
    plus = term((i,), (4,), [Read(2, (i,))]), term((i,), (4, 3), [Read(0, (j, i)), Read(1, (i,))])
    return [
        *both,
        row((V, f32(4, seed=5)), cube, shape=(4,), label="bilinear"),
        row((X, V, f32(4, seed=6)), *plus, shape=(4,), linear_in=(0, 2), label="sum"),
    ]


def accesses() -> list[Sample]:
    windows = term((i,), (4, 3), [Read(0, (i + j,)), Read(1, (j,))])
    turned = term((5 - i - j,), (4, 3), [Read(0, (i,)), Read(1, (2 - j,))])
    digits = term((3 * i + j,), (2, 3), [Read(0, (i, j))])
    window = term((i,), (2,), [Read(0, (i + symbol(1, 0, 2),))])
    put = term((i + symbol(1, 0, 2),), (4,), [Read(0, (i,))])
    kernel, two = f32(3, seed=4), np.array(2, np.int32)
    return [
        row((W, kernel), windows, shape=(4,), linear_in=(0,), label="windows", dtypes=NUMBERS),
        row((V, kernel), turned, shape=(6,), linear_in=(0,), label="overlapping"),
        row((f32(2, 3),), digits, shape=(6,), linear_in=(0,), label="digits"),
        row((V, two), window, shape=(2,), linear_in=(0,), label="symbol"),
        row((V, two), put, shape=(6,), linear_in=(0,), label="symbol-out"),
    ]


def brackets() -> list[Sample]:
    diagonal = term((i, j), (4, 4), [Read(0, (i,))], DIAGONAL)
    running = term((i,), (4, 4), [Read(0, (j,))], [NotNegative(i - j)])
    band = term((i,), (4, 4), [Read(0, (i, j)), Read(1, (j,))], [NotNegative(i - j + 1), NotNegative(j - i + 1)])
    chosen = term((i,), (4,), [Read(0, (i,)), Read(1, (i,))], [Lookup(Affine(1), 2, (i,))])
    case = term((), (4,), [Read(0, (i,))], [Lookup(Affine(2), 1, (i,), (0, 2))])
    gathered = term((i,), (5, 4), [Read(0, (j,))], [Lookup(j, 1, (i,))])
    scattered = term((j,), (5, 4), [Read(0, (i,))], [Lookup(j, 1, (i,))])
    outside = ((V[:2], PLACES), params(gathered, shape=(5,)), IndexError)
    inexact = ((V, PLACES.astype(np.float32)), params(gathered, shape=(5,)), TypeError)
    return [
        row((V,), diagonal, shape=(4, 4), linear_in=(0,), label="diagonal", dtypes=NUMBERS),
        row((V,), running, shape=(4,), linear_in=(0,), label="running"),
        row((f32(4, 4), V), band, shape=(4,), linear_in=(1,), label="band"),
        row((V, f32(4, seed=7), MASK), chosen, shape=(4,), linear_in=(1,), label="mask", dtypes=FLOATS),
        row((V, CASES), case, linear_in=(0,), label="case"),
        row((V, PLACES), gathered, shape=(5,), linear_in=(0,), label="gather", bad=(outside, inexact)),
        row((f32(5), PLACES), scattered, shape=(4,), linear_in=(0,), label="scatter"),
    ]


def others() -> list[Sample]:
    quotient = term((i,), (4,), [Read(0, (i,)), Read(1, (i,), Use.DIVIDED)], coefficient=3)
    conjugate = term((i,), (4, 3), [Read(0, (j, i), Use.CONJUGATED), Read(1, (i,))])
    real = term((i,), (4,), [Read(0, (i,), Use.CONJUGATED)]), term((i,), (4,), [Read(0, (i,))])
    every = term((i,), (3, 2), [Read(0, (i, j))])
    number = term((i, j), (2, 3), brackets=[NotNegative(i - j)], coefficient=7)
    turned = V * np.complex64(1 + 2j)
    return [
        row((V, V + 2), quotient, shape=(4,), linear_in=(0,), label="quotient"),
        row((X * np.complex64(1j), turned), conjugate, shape=(4,), linear_in=(1,), label="conjugate"),
        row((turned,), *real, shape=(4,), linear_in=(0,), label="real-part"),
        row((f32(3, 2) > 0,), every, shape=(3,), label="exists"),
        row((), number, shape=(2, 3), dtype=np.dtype(np.int32), label="number"),
        row((f32(4, 0), f32(0, 2)), term((i, j), (4, 2, 0), [Read(0, (i, k)), Read(1, (k, j))]), shape=(4, 2),
            linear_in=(0,), label="empty-sum"),
    ]  # fmt: skip


ROWS = [*contractions(), *accesses(), *brackets(), *others()]
