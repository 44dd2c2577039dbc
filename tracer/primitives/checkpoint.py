"""Rematerialization primitives: checkpoint (a call computed again), name, move between memories, barriers, and a use
that keeps a value from being dropped."""

from typing import Any, Final

from tapeless.tracer import linear_vars, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.bodies import descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.types import ShapedArray, is_arraylike


def checkpoint(jaxpr: Jaxpr, *args: Any, policy: Any, prevent_cse: bool = True) -> tuple[Any, ...]:
    """Call a program whose residuals `policy` chooses: its linear half computes the other primal values again.

    Args:
      policy: `policy(primitive, *operand_avals, **params) -> bool`: may the results be saved?
      prevent_cse: keep the compiler from replacing the second computation by the results of the first.
    Raises: TypeError if the types of the arguments are not those of the program's inputs.
    """
    return checkpoint_p.bind(*args, jaxpr=jaxpr, policy=policy, prevent_cse=prevent_cse)


def _checkpoint_type(*avals: ShapedArray, jaxpr: Jaxpr, policy: Any, prevent_cse: bool) -> tuple[ShapedArray, ...]:
    return call.result_types("checkpoint", jaxpr, avals)


checkpoint_p: Final = Primitive("checkpoint", _checkpoint_type, remember=False)
descriptions[checkpoint_p] = call.call_of()


def name(x: Any, name: str) -> Array:
    """Return x, with a name by which checkpoint policies choose it."""
    return name_p.bind(x, name=name)[0]


def _name_type(x: ShapedArray, *, name: str) -> tuple[ShapedArray, ...]:
    return (x,)


name_p: Final = Primitive("name", _name_type, takes_keys=True)


def move(x: Any, src: str, dst: str) -> Array:
    """Move x from the memory `src` of its device to `dst`; memories go by their kinds: "device", "pinned_host"."""
    return move_p.bind(x, src=src, dst=dst)[0]


def _move_type(x: ShapedArray, *, src: str, dst: str) -> tuple[ShapedArray, ...]:
    return (x,)


move_p: Final = Primitive("move", _move_type, takes_keys=True)


def materialize(x: Any) -> Array:
    """Return x, computed once and stored: all that read the result see the same bits.

    Compilers compute a cheap value again in each kernel that reads it, and contract `a * b + c` to one rounding in some
    of them. So a value need not equal itself; a comparison with a value computed from it has to read one stored copy.
    """
    return materialize_p.bind(x)[0]


def _materialize_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    return (x,)


materialize_p: Final = Primitive("materialize", _materialize_type, takes_keys=True)


def optimization_barrier(*xs: Any) -> tuple[Any, ...]:
    """Return the operands behind a barrier: all are computed before any is used, and none is merged with its copy."""
    return optimization_barrier_p.bind(*xs) if xs else ()


def _optimization_barrier_type(*xs: ShapedArray) -> tuple[ShapedArray, ...]:
    return xs


optimization_barrier_p: Final = Primitive("optimization_barrier", _optimization_barrier_type, takes_keys=True)


def _mark_barrier(linear_in: tuple[bool, ...]) -> tuple[dict[str, Any], tuple[bool, ...]]:
    return {}, linear_in


linear_vars.rules[optimization_barrier_p] = _mark_barrier


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Use the arrays of a pytree without effect, so that dead code elimination keeps their equations.

    XLA may still drop them, as no result needs them.
    Raises: TypeError for a leaf that is not an array; NotImplementedError for `prevent_mlir_dce`, a call that XLA could
      not drop.
    """
    if prevent_mlir_dce:
        raise NotImplementedError(f"dce_sink: prevent_mlir_dce={prevent_mlir_dce!r} is not supported, only False.")
    for path, x in pytree.leaves_with_path(val):
        if not is_arraylike(x):
            raise TypeError(f"dce_sink: val{pytree.keystr(path)} is {x!r} of type {type(x).__name__}, not an array.")
        dce_sink_p.bind(x)


def _dce_sink_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    return ()


dce_sink_p: Final = Primitive("dce_sink", _dce_sink_type, effect="debug", takes_keys=True)
