"""Lowering rules of primitives.

Programs are written as StableHLO text here, not built by MLIR's Python bindings. So a rule is given traced arrays where
JAX's has MLIR values, and what it computes of them is the program: `lower_fun` makes one of a Python function.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.custom.primitives import find_operation
from tapeless.tracer.primitives import callback as host
from tapeless.tracer.types import ShapedArray
from tapeless.tracer.user_primitives import UserPrimitive


class LoweringRuleContext(NamedTuple):
    """The equation that a lowering rule is asked for: its primitive, and the types of its operands and results."""

    primitive: UserPrimitive
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]

    @property
    def module_context(self) -> "ModuleContext":
        """Return the module, which rules ask to keep alive what a program here keeps alive itself."""
        return ModuleContext()


class ModuleContext:
    """A module that is being written, as far as rules ask for it."""

    def add_keepalive(self, keepalive: Any) -> None:
        """Accept what has to live as long as the module."""


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Sequence[Any]]:
    """Make a lowering rule, `rule(context, *arrays, **params)`, of a function of arrays and params.

    Args:
      fun: `fun(*arrays, **params)` computes what the primitive computes, by functions that can be traced.
      multiple_results: does it give a sequence of arrays, rather than one?
    """

    def lowered(ctx: LoweringRuleContext, /, *args: Any, **params: Any) -> Sequence[Any]:
        outs = fun(*args, **params)
        return tuple(outs) if multiple_results else (outs,)

    return lowered


def register_lowering(prim: Any, rule: Callable[..., Sequence[Any]], platform: str | None = None) -> Any:
    """Define how a primitive is compiled: `rule(context, *arrays, **params)` gives a sequence of its results.

    A rule for one platform is not used: the one for all platforms is, and without that one compiling the primitive
    raises NotImplementedError.

    Returns: `rule`.
    """
    if platform is not None:
        find_operation(prim).rules.setdefault("lowering", _for_one_platform(prim, platform))
        return rule

    def lowered(avals_out: Sequence[ShapedArray], /, *args: Any, **params: Any) -> Sequence[Any]:
        return rule(LoweringRuleContext(operation, [x.aval for x in args], avals_out), *args, **params)

    operation = find_operation(prim)
    operation.rules["lowering"] = lowered
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, None]:
    """Call a Python function when the program runs: what a lowering rule may do.

    Args:
      callback: `callback(*arrays)` gives a sequence of arrays of `result_avals`.
      token, operand_avals, returns_token, partitioned: accepted as JAX's; there is one device, and no token is needed.
    Returns: the results, `token`, and None, for what JAX has to keep alive.
    Raises: NotImplementedError for a sharding; when it is called, what `callback` raises.

    >>> from tapeless import numpy as tnp, typeof
    >>> x = tnp.ones(2)
    >>> emit_python_callback(None, lambda x: [x + 1], None, [x], [typeof(x)], [typeof(x)], has_side_effect=False)[0]
    (Array([2., 2.], dtype=float32),)
    """
    if sharding is not None:
        raise NotImplementedError(f"emit_python_callback: there is one device, and no sharding, {sharding!r}.")

    @functools.wraps(callback)
    def on_host(avals: Sequence[ShapedArray], *arrays: Any) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(y, aval.dtype) for y, aval in zip(callback(*arrays), avals, strict=True)]

    call = host.io_callback if has_side_effect else host.pure_callback
    return call(on_host, result_avals, *operands), token, None


def _for_one_platform(prim: Any, platform: str) -> Callable[..., Any]:
    """Make the rule that raises in place of one for a single platform."""

    def lowered(avals_out: Sequence[ShapedArray], /, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"register_lowering: the only rule of {prim} is for {platform!r}.\n"
            "  Give one for all platforms, platform=None."
        )

    return lowered
