"""Programs and their types, for libraries that transform them."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tapeless.tracer.check import check
from tapeless.tracer.core import Trace, Tracer, current_trace, is_evaluating
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, unwrap_program
from tapeless.tracer.jaxpr import eval_jaxpr as _eval_jaxpr
from tapeless.tracer.jaxpr import subjaxprs as _programs_in
from tapeless.tracer.passes import dead_code, used_variables
from tapeless.tracer.types import ShapedArray, is_arraylike


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply a program, as `make_jaxpr(f)(*args).jaxpr` is one, to its constants and flat arguments."""
    return list(_eval_jaxpr(unwrap_program(jaxpr), [*consts, *args]))


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example of an array of type `aval`, whose mapped axis is `axis`; None: it has none.

    Raises: ValueError if that axis has not `size` elements.
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} has {aval.shape[axis]} elements, not {size}.")
    axis %= aval.ndim
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of `size` examples of type `aval` along an axis at `axis`: the inverse of `mapped_aval`."""
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Any:
    """Return the function of flat arrays, to a list of them, that a program computes with its constants."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def check_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Check that a program, which somebody may have put together, is well formed and well typed, and return it.

    Raises: TypeError naming the equation.
    """
    try:
        check(unwrap_program(jaxpr))
    except InternalError as error:
        fault = str(error.args[0]).partition("\n  This is a bug")[0]
        raise TypeError(f"check_jaxpr: {fault}, in\n{jaxpr}") from None
    return jaxpr


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among the params of an equation."""
    return _programs_in(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs that the equations of a program carry."""
    for eqn in jaxpr.eqns:
        yield from _programs_in(eqn.params)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Drop some results of a program, the equations for them alone, and the inputs that nothing reads then.

    Args:
      used_outputs: which results are kept.
      instantiate: which inputs are kept even if nothing reads them; all if true.
    Returns: the program, and which of the inputs it has.
    """
    outvars = [v for v, kept in zip(jaxpr.outvars, used_outputs, strict=True) if kept]
    program = dead_code(jaxpr.replace(outvars=outvars))
    used = used_variables(program)
    always = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    kept = [v in used or stays for v, stays in zip(jaxpr.invars, always, strict=True)]
    return program.replace(invars=[v for v, yes in zip(jaxpr.invars, kept) if yes]), kept


def find_top_trace(xs: Any) -> Trace:
    """Return the innermost trace, which primitives are handed to; `xs` are not looked at, as in JAX."""
    return current_trace()


class OpaqueTraceState:
    """The transformations that code runs under: equal to another if both were asked for under the same ones."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    def __hash__(self) -> int:
        return hash(OpaqueTraceState)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return what tells the transformations around now from others; `convention` names the library that asks."""
    return OpaqueTraceState(current_trace())


def trace_state_clean() -> bool:
    """Tell whether nothing is being traced."""
    return is_evaluating()


def full_lower(x: Any) -> Any:
    """Return the value that a tracer stands for, if its class says so; any other value as it is."""
    return x.full_lower() if hasattr(type(x), "full_lower") else x


def valid_jaxtype(x: Any) -> bool:
    """Tell whether `x` is an array or a number that functions of arrays take."""
    return is_arraylike(x)


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """Apply a function such as `int` to the concrete value of an array, which a message calls `context`.

    Raises: ConcretizationTypeError if the value is not known, or if a derivative with respect to it is taken.

    >>> concrete_or_error(int, 3.0)
    3
    """
    concrete = val.number(context or "value") if isinstance(val, Tracer) else val
    return concrete if force is None else force(concrete)


def is_concrete(x: Any) -> bool:
    """Tell whether the value of an array is known, as it is where derivatives are taken without `jit`."""
    return not isinstance(x, Tracer) or x.concrete_value() is not None
