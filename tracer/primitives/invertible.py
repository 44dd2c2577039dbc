"""Invertible functions: calls of a program together with that of its inverse."""

from typing import Any, Final

from tapeless.tracer import passes
from tapeless.tracer.bodies import Bodies, Description, descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.call import as_called, check_types, result_types
from tapeless.tracer.types import ShapedArray


def invertible(jaxpr: Jaxpr, inverse: Jaxpr, n_args: int, *operands: Any) -> tuple[Any, ...]:
    """Call a program whose last inputs can be computed from its first results.

    Args:
      jaxpr: `n_args` args, xs -> ys, other results. inverse: args, ys -> xs.
      operands: args, xs.
    Raises: TypeError if the types of operands and programs differ.
    """
    return invertible_p.bind(*operands, jaxpr=jaxpr, inverse=inverse, n_args=n_args)


def _invertible_type(*avals: ShapedArray, jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> tuple[ShapedArray, ...]:
    outs, given = result_types("invertible", jaxpr, avals), len(inverse.invars) - n_args
    check_types("invertible: the inverse", "takes", inverse.in_avals, (*avals[:n_args], *outs[:given]))
    check_types("invertible: the inverse", "gives", inverse.out_avals, avals[n_args:])
    return outs


invertible_p: Final = Primitive("invertible", _invertible_type, remember=False)
descriptions[invertible_p] = Description(
    lambda jaxpr, **_: Bodies((as_called(jaxpr),), fixed=True),
    lambda params, bodies: {**params, "jaxpr": bodies[0].jaxpr},
)


def invert(jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> dict[str, Any]:
    """Return the params of the inverse function, which is invertible itself: args, ys -> xs."""
    ys = range(len(inverse.invars) - n_args)
    forwards = passes.rearrange_program(jaxpr, range(len(jaxpr.invars)), ys)
    return {"jaxpr": inverse, "inverse": forwards, "n_args": n_args}
