"""An oracle: what programs compute, and their derivatives, by NumPy and SciPy alone.

It shares no code with the library: it reads the equations of a `Jaxpr` and gives each primitive a meaning of its own.
`evaluate` computes values; `directional` derivatives, by complex steps or differences.
"""

from tests.fuzzing.oracle import (
    bits,
    calls,
    collectives,
    contractions,
    control_flow,
    elementwise,
    fourier,
    indexing,
    linalg,
    reductions,
    shapes,
    sorting,
    special,
    terms,
    windows,
)
from tests.fuzzing.oracle.collectives import evaluate_mapped
from tests.fuzzing.oracle.derivatives import directional
from tests.fuzzing.oracle.interpreter import evaluate, meanings

# Each enters its primitives into the table when it is imported.
FAMILIES = (
    bits,
    calls,
    collectives,
    contractions,
    control_flow,
    elementwise,
    fourier,
    indexing,
    linalg,
    reductions,
    shapes,
    sorting,
    special,
    terms,
    windows,
)

__all__ = ["directional", "evaluate", "evaluate_mapped", "meanings"]
