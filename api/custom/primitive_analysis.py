"""Index rows and costs of primitives that libraries define, for the simplifier and `tl.cost`."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.custom.primitives import find_operation
from tapeless.interpreters import index_rows
from tapeless.interpreters.analysis import cost as counting
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.types import ShapedArray


def def_elementwise(primitive: Any) -> None:
    """Say that each element of a result is a function of the same element of every operand, and of parameters alone.

    The simplifier then computes only those elements that are read. Operands have the shape of the results, or none.
    Raises: TypeError if the primitive is one of Tapeless.

    >>> import tapeless as tl
    >>> def_elementwise(tl.core.Primitive("sine"))
    """
    operation = find_operation(primitive)

    def row(params: index_rows.Params, avals: Sequence[ShapedArray]) -> index_rows.IndexRow:
        types, _ = core.Primitive.abstract_eval(operation, *avals, **params)
        return index_rows.pointwise(params, avals, len(types))

    index_rows.rows.pop(operation, None)
    index_rows.rows[operation] = row


def def_cost(primitive: Any, operations: Callable[..., int]) -> None:
    """Say how many scalar operations a primitive takes: `operations(*types of the operands, **params)`, for `tl.cost`.

    Applied to linear values, they count as multiplications. Without it, there is one for each scalar of the results.
    Raises: TypeError if the primitive is one of Tapeless.

    >>> import tapeless as tl
    >>> sine_p = tl.core.Primitive("sine")
    >>> _ = sine_p.def_abstract_eval(lambda x: x)
    >>> def_cost(sine_p, lambda x: 10 * x.size)
    >>> tl.cost(sine_p.bind, 1.0).work
    10
    """

    def count(eqn: Equation) -> int:
        return int(operations(*[v.aval for v in eqn.invars], **eqn.params))

    operation = find_operation(primitive)
    counting.prices.pop(operation, None)
    counting.prices[operation] = counting.Price(lambda eqn: counting.Arithmetic(0, count(eqn)), count)
