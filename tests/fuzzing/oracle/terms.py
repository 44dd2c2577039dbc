"""Sums of products with brackets, product by product."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, meaning
from tests.fuzzing.oracle.values import Values
from tests.tracer.terms.random_terms import looped


@meaning("ein")
def _ein(run: Run, eqn: Any, *operands: Values) -> Any:
    """Booleans are counted, and there is one where the count is not zero."""
    terms, shape = eqn.params["terms"], eqn.params["shape"]
    factors = [operands[f.operand] for t in terms for f in t.factors]
    joint = factors[0].dtype if factors else np.dtype(np.float64)
    if joint.kind == "b":
        return looped(terms, [x.astype(np.int64) for x in operands], shape, np.int64) > 0
    return looped(terms, operands, shape, joint)
