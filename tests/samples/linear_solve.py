"""Rows of linear_solve: a system of one matrix, whose solver divides by its diagonal."""

import numpy as np

from tapeless.tracer.primitives.linear_solve import System, linear_solve_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32

VECTOR = ShapedArray((3,), np.dtype(np.float64))  # in which derivatives are checked
SCALED, _ = trace_to_jaxpr(lambda d, x: (d * x,), (VECTOR, VECTOR))
DIVIDED, _ = trace_to_jaxpr(lambda d, b: (b / d,), (VECTOR, VECTOR))
PARAMS = {"system": tuple(System(SCALED, SCALED, DIVIDED, DIVIDED)), "counts": (1, 1, 1, 1)}
DIAGONAL = f32(3, low=0.5, high=1.5).astype(np.float64)

ROWS = [
    Sample(
        linear_solve_p,
        (DIAGONAL, DIAGONAL, DIAGONAL, DIAGONAL, f32(3).astype(np.float64)),
        lambda d, _, __, ___, b, **params: b / d,
        PARAMS,
        linear_in=(4,),
        differentiable=(4,),  # of the constants only those of `matvec` count, which must then be the same as the others
        bad=(((DIAGONAL, DIAGONAL, DIAGONAL, DIAGONAL, f32(2).astype(np.float64)), PARAMS, TypeError),),
    )
]
