"""Rules of host callbacks: debug_callback is called with primal values; the others have no derivative."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.user_checks import UserCheck
from tapeless.interpreters.vmap import Dim
from tapeless.tracer import core, source
from tapeless.tracer.primitives import callback as c
from tapeless.tracer.types import ShapedArray

# ---- jvp -----------------------------------------------------------------------------------------------------


def _opaque(who: str) -> Any:
    def rule(primals: Any, tangents: Any, *, callback: c.Callback, **_: Any) -> Any:
        here = source.describe_here()
        raise ValueError(
            f"{who}: {core.describe_function(callback)} is opaque, it has no derivative."
            f"{f' It was called at {here}.' if here else ''}\n"
            "  Call it in a function with a derivative of its own (tl.custom_jvp or tl.custom_vjp), or of "
            "tl.stop_gradient(x)."
        )

    return rule


def _debug_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return c.debug_callback_p.bind(*primals, **params), ()


jvp.rules[c.pure_callback_p] = _opaque("pure_callback")
jvp.rules[c.io_callback_p] = _opaque("io_callback")
jvp.rules[c.debug_callback_p] = _debug_jvp

# ---- vmap ----------------------------------------------------------------------------------------------------


class _OneByOne:
    """A callback on batched arrays that calls another callback for one example after another."""

    def __init__(self, callback: c.Callback, size: int, dims: Sequence[Dim]) -> None:
        self._callback, self._size, self._dims = callback, size, tuple(dims)
        self.__name__, self.__wrapped__ = getattr(callback, "__name__", "callback"), callback

    def __call__(self, avals: Sequence[ShapedArray], *arrays: Any) -> list[np.ndarray[Any, Any]]:
        outs = [np.empty(aval.shape, aval.dtype) for aval in avals]
        of_one = [aval.update(shape=aval.shape[1:]) for aval in avals]
        for i in range(self._size):
            given = [_example(x, d, i) for x, d in zip(arrays, self._dims, strict=True)]
            for out, y in zip(outs, self._callback(of_one, *given), strict=True):
                out[i] = y
        return outs


def _example(x: Any, d: Dim, i: int) -> Any:
    return x if d is None else np.asarray(x[(slice(None),) * d + (i,)])


def _of_all(avals: Sequence[ShapedArray], size: int) -> tuple[ShapedArray, ...]:
    return tuple([aval.update(shape=(size, *aval.shape)) for aval in avals])


def _pure_vmap(
    size: int, args: Any, dims: Any, *, callback: c.Callback, result_avals: Any, vmap_method: str | None
) -> Any:
    """Batch a callback: call it once for each example, or once for all with the mapped axis first."""
    if vmap_method is None:
        raise NotImplementedError(
            f"pure_callback: nothing says how vmap calls {core.describe_function(callback)}.\n"
            '  Set vmap_method: "sequential" calls it for each example, "expand_dims" and "broadcast_all" once for all.'
        )
    if vmap_method.startswith("sequential"):
        callback = _OneByOne(callback, size, dims)
    else:
        args = [_with_axis(x, d, size, vmap_method) for x, d in zip(args, dims)]
    outs = c.pure_callback(callback, _of_all(result_avals, size), *args, vmap_method=vmap_method)
    return outs, [0] * len(outs)


def _with_axis(x: Any, d: Dim, size: int, vmap_method: str) -> Any:
    """Move the mapped axis of an operand to the front; one without it is left alone, extended or repeated."""
    if d is None and vmap_method == "legacy_vectorized":
        return x
    return vmap.move_mapped_axis_first(x, d, 1 if d is None and vmap_method == "expand_dims" else size)


def _io_vmap(size: int, args: Any, dims: Any, *, callback: c.Callback, result_avals: Any, ordered: bool) -> Any:
    if ordered:
        raise ValueError(
            f"io_callback: {core.describe_function(callback)} cannot be called in order under vmap, where all examples "
            "are computed at once.\n  Use ordered=False, or a loop (lax.map, lax.scan) instead of vmap."
        )
    outs = c.io_callback(_OneByOne(callback, size, dims), _of_all(result_avals, size), *args)
    return outs, [0] * len(outs)


def _debug_vmap(size: int, args: Any, dims: Any, *, callback: c.Callback, ordered: bool) -> Any:
    batched = callback.batched(dims) if isinstance(callback, UserCheck) else _OneByOne(callback, size, dims)
    c.debug_callback(batched, *args, ordered=ordered)
    return (), ()


vmap.rules[c.pure_callback_p] = _pure_vmap
vmap.rules[c.io_callback_p] = _io_vmap
vmap.rules[c.debug_callback_p] = _debug_vmap

# ---- index rows ----------------------------------------------------------------------------------------------

without_row("the host computes it", c.pure_callback_p, c.io_callback_p, c.debug_callback_p)
