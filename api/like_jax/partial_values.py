"""Known and unknown values, and functions that are applied to both."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.like_jax.wrapped_functions import WrappedFun
from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr, OpenJaxpr, eval_jaxpr
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.custom import call_custom, custom_jvp_p, custom_vjp_p
from tapeless.tracer.staging import StagedTracer, StagingTrace, trace_to_jaxpr
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


# ---- evaluation of what is known -----------------------------------------------------------------------------
# Online partial evaluation: run a function on inputs of which some are known, and stage what needs the unknown ones.
#
# Calls, checkpoints and functions with custom rules are inlined, so that only their equations that depend on an
# unknown input are staged. Source: Jones, Gomard & Sestoft 1993. Left out: loops and branches with an unknown operand
# are staged as a whole. `partial_eval.py` unzips derivatives, with tangents as the unknowns.


PartialValue = tuple[ShapedArray | None, Any]  # unknown: (type, None); known: (None, value)
_CALLS = frozenset({jit_p, checkpoint_p})
_CUSTOM = frozenset({custom_jvp_p, custom_vjp_p})


def partial_eval(
    f: Callable[..., Sequence[Any]], inputs: Sequence[PartialValue]
) -> tuple[Jaxpr, list[PartialValue], tuple[Any, ...]]:
    """Partially evaluate a flat function, given known values and the types of unknown ones.

    Returns: the program of the unknown results, whose inputs are its constants and then the unknown inputs; all
      results; the values of those constants.
    Raises: whatever `f` raises, as when Python code needs an unknown value.
    """
    trace = PartialEvalTrace(core.current_trace(), f, "partial evaluation")
    args = [value if aval is None else trace.input(aval) for aval, value in inputs]
    outs = core.under_new(trace, f, *args)
    unknown = [trace.is_unknown(x) for x in outs]
    atoms = [trace.atom(x) for x, is_unknown in zip(outs, unknown) if is_unknown]
    jaxpr, consts = trace.finish(atoms, getattr(f, "__name__", "f"))
    return jaxpr, [(x.aval, None) if is_unknown else (None, x) for x, is_unknown in zip(outs, unknown)], consts


class PartialEvalTrace(StagingTrace):
    """The trace that stages equations with an unknown operand, and runs all others under the parent trace."""

    __slots__ = ()

    def is_unknown(self, x: Any) -> bool:
        """Tell whether a value depends on an unknown input."""
        return type(x) is StagedTracer and x.owner is self

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        if not any(map(self.is_unknown, args)):
            return core.under(self.parent, self.parent.process, primitive, args, params)
        if primitive in _CALLS:
            return tuple(eval_jaxpr(params["jaxpr"], args))
        if primitive in _CUSTOM:
            return call_custom(*args, **params)
        return super().process(primitive, args, params)
