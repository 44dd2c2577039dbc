"""Known and unknown values, and functions that are applied to both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeless.custom.wrapped_functions import WrappedFun
from tapeless.interpreters.online_partial_eval import partial_eval
from tapeless.tracer.jaxpr import Jaxpr
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
