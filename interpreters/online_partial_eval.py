"""Online partial evaluation: apply a function to inputs of which some are known, run what needs only these, and write
the rest down.

Calls, checkpoints and functions with rules of their own are entered, so that of what they compute, too, only that is
unknown which depends on an unknown input. Source: Jones, Gomard & Sestoft 1993. Left out: loops and branches with an
unknown operand are unknown as a whole. Derivatives are unzipped by `partial_eval.py`; there tangents are the unknowns.
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

PartialValue = tuple[ShapedArray | None, Any]  # the type of what is unknown and None, or None and the known value
_CALLS = frozenset({jit_p, checkpoint_p})
_CUSTOM = frozenset({custom_jvp_p, custom_vjp_p})


def partial_eval(
    f: Callable[..., Sequence[Any]], inputs: Sequence[PartialValue]
) -> tuple[Jaxpr, list[PartialValue], tuple[Any, ...]]:
    """Apply a flat function to known values and to types of unknown ones.

    Returns: the program of the unknown results, whose inputs are its constants and then the unknown inputs; all
      results; the values of those constants.
    Raises: whatever `f` raises, as when Python needs the value of what is unknown.
    """
    trace = PartialEvalTrace(core.current_trace(), f, "partial evaluation")
    args = [value if aval is None else trace.input(aval) for aval, value in inputs]
    outs = core.under_new(trace, f, *args)
    unknown = [trace.is_unknown(x) for x in outs]
    atoms = [trace.atom(x) for x, is_unknown in zip(outs, unknown) if is_unknown]
    jaxpr, consts = trace.finish(atoms, getattr(f, "__name__", "f"))
    return jaxpr, [(x.aval, None) if is_unknown else (None, x) for x, is_unknown in zip(outs, unknown)], consts


class PartialEvalTrace(StagingTrace):
    """Write equations with an unknown operand down; hand all others to the parent trace."""

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
