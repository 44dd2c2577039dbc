"""What functions of scalars are said to cost is what they are lowered to: no function is said to cost more."""

import re
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import passmanager
from jaxlib.mlir.dialects import stablehlo

import tapeless as tl
from tapeless.interpreters.analysis.operation_counts import COMPOSED, operations
from tapeless.lowering.compile import parse
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise, gamma_functions, integrals, special
from tests.samples import SAMPLES
from tests.samples.sample import Sample

# Operations of StableHLO that compute nothing: choices, comparisons, truth values, bits, conversions, shapes, control.
FREE = {
    "constant", "iota", "select", "compare", "and", "or", "not", "xor", "is_finite", "convert", "bitcast_convert",
    "shift_left", "shift_right_logical", "real", "imag", "complex", "broadcast_in_dim", "reshape", "reduce", "while",
    "if", "case", "return", "optimization_barrier", "replica_id",
}  # fmt: skip
stablehlo.register_stablehlo_passes()


def sample(primitive: Primitive) -> Sample:
    return next(row for row in SAMPLES if row.primitive is primitive)


def lowered(row: Sample) -> int:
    """Operations on float32 scalars, chlo's decomposed; what a loop does counts once."""
    args = [np.asarray(x) for x in row.args]
    types = [tl.ShapeDtypeStruct((), "float32" if dtypes.is_inexact(x.dtype) else x.dtype) for x in args]
    module = parse(tl.jit(lambda *xs: row.primitive.bind(*xs, **row.params)).lower(*types).as_text())
    with module.context:
        run = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo),canonicalize,cse)")
        run.run(module.operation)
    return sum(name not in FREE for name in re.findall(r"stablehlo\.(\w+)", str(module)))


def of_floats(primitive: Any) -> bool:
    """Whether it is an elementwise primitive that computes float32 of float32."""
    if not isinstance(primitive, Primitive):
        return False
    row = sample(primitive)
    outs = tl.eval_shape(lambda *xs: row.primitive.bind(*xs, **row.params), *row.args)
    return all(dtypes.is_float(x.dtype) for x in (*map(np.asarray, row.args), *outs))


@pytest.mark.parametrize("primitive", COMPOSED, ids=str)
def test_composed_functions_cost_what_they_are_composed_of(primitive: Primitive):
    """They count as with the version of chlo that needs the fewest operations, so that others may need more."""
    assert COMPOSED[primitive] <= lowered(sample(primitive))


def test_all_composed_functions_are_there():
    every = [
        p
        for module in (elementwise, special, gamma_functions, integrals)
        for p in vars(module).values()
        if of_floats(p)
    ]
    assert [p.name for p in every if p not in operations and lowered(sample(p)) > 1] == []


def test_integer_powers_are_products():
    def cost(y: int) -> int:
        return tl.cost(lambda x: tl.lax.integer_pow(x, y), tl.ShapeDtypeStruct((), "float32")).sparse.work

    assert [cost(y) for y in (2, 3, 4, 7, 8, -1, -2)] == [1, 2, 2, 4, 3, 1, 2]
