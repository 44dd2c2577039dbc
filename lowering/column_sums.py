"""Sums of the columns of a matrix that a product reads, as products: biases' gradients, beside those of weights.

On the CPU. XLA compiles a kernel for each of the two or three steps of such a sum (`rules/reduction.py`), by LLVM in
some 20 ms, but hands a product of matrices to a library that is compiled already. The matrix is stored, for the other
product reads it; so nothing is lost that XLA would compute with the sum. A product with one row of ones would be
compiled, too, as a product of a vector; so there are two, of which one is read.
Left out: longer columns, since the library adds one element after the other and errors grow with their number; sums of
other axes, for which the matrix would be moved.
"""

import math
from typing import Any

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_carried
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p, slice_p

FEWEST, LONGEST, NARROWEST = 1024, 1024, 8  # elements: of a matrix, fewer are summed by one kernel; of a column, a row
_ROWS = 2  # of ones
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


@core.memoize_by_program
def with_products(jaxpr: Jaxpr) -> Jaxpr:
    """Replace sums over the first axes of what `dot_general` reads; return the same object if there are none."""
    read = {v for eqn in jaxpr.eqns if eqn.primitive is dot_general_p for v in eqn.invars}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        params = map_carried(with_products, eqn)
        if eqn.primitive is reduce_sum_p and eqn.invars[0] in read and _is_cheaper(eqn):
            eqns += _product(eqn)
        else:
            eqns.append(eqn if params is eqn.params else eqn.replace(params=params))
    return jaxpr if all(old is new for old, new in zip(jaxpr.eqns, eqns)) else jaxpr.replace(eqns=eqns)


def _is_cheaper(eqn: Equation) -> bool:
    (x,), axes = eqn.invars, eqn.params["axes"]
    k, n = (math.prod(lengths) for lengths in (x.aval.shape[: len(axes)], x.aval.shape[len(axes) :]))
    first = axes == tuple(range(len(axes)))
    return first and k <= LONGEST and n >= NARROWEST and k * n > FEWEST and x.aval.dtype in _DTYPES


def _product(eqn: Equation) -> list[Equation]:
    """Write the sums as the first row of ones[2, k] @ x[k, n]."""
    eqns: list[Equation] = []

    def write(primitive: Primitive, *operands: Atom, **params: Any) -> Var:
        (aval,) = primitive.type(tuple([v.aval for v in operands]), params)
        out = Var(aval, any(v.linear for v in operands))
        eqns.append(Equation(primitive, operands, params, [out], eqn.source))
        return out

    (x,), (out,), axes = eqn.invars, eqn.outvars, eqn.params["axes"]
    k, n = math.prod(x.aval.shape[: len(axes)]), math.prod(x.aval.shape[len(axes) :])
    ones = write(broadcast_in_dim_p, Literal(x.aval.dtype.type(1)), shape=(_ROWS, k), dims=())
    matrix = x if x.aval.shape == (k, n) else write(reshape_p, x, shape=(k, n))
    numbers: Any = (((1,), (0,)), ((), ()))
    exact = (Precision.HIGHEST, Precision.HIGHEST)
    sums = write(
        dot_general_p, ones, matrix, dimension_numbers=numbers, precision=exact, preferred_element_type=x.aval.dtype
    )
    row = write(slice_p, sums, start_indices=(0, 0), limit_indices=(1, n), strides=(1, 1))
    return [*eqns, Equation(reshape_p, [row], {"shape": out.aval.shape}, [out], eqn.source)]
