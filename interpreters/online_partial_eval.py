"""Online partial evaluation: run a function on inputs of which some are known, and stage what needs the unknown ones.

Calls, checkpoints and functions with custom rules are inlined, so that only their equations that depend on an unknown
input are staged. Source: Jones, Gomard & Sestoft 1993. Left out: loops and branches with an unknown operand are staged
as a whole. `partial_eval.py` unzips derivatives, with tangents as the unknowns.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.custom import call_custom, custom_jvp_p, custom_vjp_p
from tapeless.tracer.staging import StagedTracer, StagingTrace
from tapeless.tracer.types import ShapedArray

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
