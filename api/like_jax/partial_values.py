"""Known and unknown values, and functions that are applied to both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeless.interpreters.online_partial_eval import partial_eval
from tapeless.like_jax.wrapped_functions import WrappedFun
from tapeless.tracer.jaxpr import Jaxpr, OpenJaxpr
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray


class PartialVal(NamedTuple):
    """The type of an unknown value, and None; or None, and a known value."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> "PartialVal":
        """Make a known value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> "PartialVal":
        """Make an unknown value of a type."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Tell whether the value is known."""
        return self.aval is None


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal]
) -> tuple[Jaxpr, list[PartialVal], tuple[Any, ...]]:
    """Apply a flat function to known and unknown values: what depends on known ones alone is computed at once.

    Returns: the program of the unknown results, whose first inputs are its constants; the results; those constants.

    >>> from tapeless.extend.linear_util import wrap_init
    >>> known, unknown = PartialVal.known(2.0), PartialVal.unknown(ShapedArray((), "float32"))
    >>> fun = wrap_init(lambda x, y: (x**3, x**3 * y))
    >>> jaxpr, (cube, product), consts = trace_to_jaxpr_nounits(fun, [known, unknown])
    >>> float(cube.const), product.is_known()
    (8.0, False)
    >>> jaxpr
    { lambda a:f32[]. let
        b:f32[] = mul 8.0 a
      in b }
    """
    jaxpr, outs, consts = partial_eval(fun.call_wrapped, pvals)
    return jaxpr, [PartialVal(*out) for out in outs], consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray]
) -> tuple[OpenJaxpr, list[ShapedArray], tuple[Any, ...]]:
    """Trace a flat function of arrays of these types to a program, which keeps its constants apart from its inputs.

    Returns: the program; the types of its results; the values of its constants, which are known, or belong to a
      transformation around.
    Raises: whatever `fun` raises.

    >>> import numpy as np
    >>> from tapeless.extend.linear_util import wrap_init
    >>> scale = np.arange(3, dtype="float32")
    >>> fun = wrap_init(lambda x: (x * scale,))
    >>> jaxpr, out_avals, consts = trace_to_jaxpr_dynamic(fun, [ShapedArray((), "float32")])
    >>> len(jaxpr.invars), len(jaxpr.constvars), out_avals, len(consts)
    (1, 1, [ShapedArray(float32[3])], 1)
    """
    jaxpr, consts = trace_to_jaxpr(fun.call_wrapped, in_avals, what="trace_to_jaxpr_dynamic", function=fun.f)
    return OpenJaxpr(jaxpr, len(consts)), list(jaxpr.out_avals), consts
