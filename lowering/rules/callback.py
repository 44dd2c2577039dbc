"""Lowering of host callbacks: a custom call of jaxlib's; in eager mode, a call of the Python function."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import dispatch, emit, ordering
from tapeless.lowering.array import DeviceArray, to_device
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.host import HostCall
from tapeless.tracer.jaxpr import Atom, Equation, Var
from tapeless.tracer.primitives import callback as c
from tapeless.tracer.types import ShapedArray


def _custom_call(f: Function, outs: Sequence[ShapedArray], operands: Any, callback: Any, effect: bool) -> Any:
    if f.platform not in ("cpu", "gpu"):
        name = getattr(callback, "__name__", "callback")
        raise f.unsupported(f"{name}: functions on the host are called from the CPU and from GPUs")
    number = f.callback(HostCall(callback, outs))
    attributes = (
        f'call_target_name = "xla_ffi_python_{f.platform}_callback", api_version = 4 : i32, '
        f"has_side_effect = {str(effect).lower()}, backend_config = {{index = {number} : ui64}}, "
        f"operand_layouts = {_layouts([x.aval for x in operands])}, result_layouts = {_layouts(outs)}"
    )
    return f.ops("custom_call", operands, outs, attributes)


def _layouts(avals: Sequence[ShapedArray]) -> str:
    """Print row-major layouts of all operands."""
    orders = [str(list(range(aval.ndim))[::-1] or "") for aval in avals]
    return f"[{', '.join(f'dense<{o}> : tensor<{x.ndim}xindex>' for o, x in zip(orders, avals))}]"


def _pure(f: Function, outs: Any, *operands: Value, callback: c.Callback, **_: Any) -> Any:
    return _custom_call(f, outs, operands, callback, False)


def _effectful(f: Function, outs: Any, *operands: Value, callback: c.Callback, **_: Any) -> Any:
    return _custom_call(f, outs, operands, callback, True)


emit.rules[c.pure_callback_p] = _pure
emit.rules[c.io_callback_p] = _effectful
emit.rules[c.debug_callback_p] = _effectful

# ---- ordered effects -----------------------------------------------------------------------------------------


class _Passing:
    """A callback that also takes a token, first, and returns it, first."""

    def __init__(self, callback: c.Callback) -> None:
        self._callback = callback
        self.__name__, self.__wrapped__ = getattr(callback, "__name__", "callback"), callback

    def __call__(self, avals: Sequence[ShapedArray], token: Any, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        return [token, *self._callback(avals[1:], *arrays)]


def _in_order(eqn: Equation, token: Atom, out: Var) -> Equation:
    """Rewrite a callback's equation to an io_callback, with the token as first operand and first result."""
    params = {
        "callback": _Passing(eqn.params["callback"]),
        "result_avals": (ordering.TOKEN, *[v.aval for v in eqn.outvars]),
        "ordered": True,
    }
    return Equation(c.io_callback_p, (token, *eqn.invars), params, (out, *eqn.outvars), eqn.source)


ordering.rules[c.io_callback_p] = _in_order
ordering.rules[c.debug_callback_p] = _in_order

# ---- eager mode ----------------------------------------------------------------------------------------------


def _run(*args: Any, callback: c.Callback, result_avals: Sequence[ShapedArray] = (), **_: Any) -> tuple[Any, ...]:
    device = dispatch.device_of(args)
    arrays = [np.asarray(DeviceArray(dispatch.buffer_on(x, device))) for x in args]
    outs = c.call_host(callback, result_avals, arrays)
    return tuple([to_device(y, aval, device) for y, aval in zip(outs, result_avals, strict=True)])


dispatch.inline[c.pure_callback_p] = _run
dispatch.inline[c.io_callback_p] = _run
dispatch.inline[c.debug_callback_p] = _run
