"""How reading and writing parts transforms.

What reads a part has an `Update` for a cotangent, which writes the part: no dense zeros are built, but for the
first. What writes a part reads it. Where windows may overlap the derivative follows the update that won.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.transpose import Update, is_linear
from tapeless.interpreters.zero import Zero, instantiate, zeros_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.elementwise import add, div, eq, lt, mul, select_n
from tapeless.tracer.primitives.shape import full, full_like, iota, reshape, zeros_like
from tapeless.tracer.types import ShapedArray, aval_of

# ---- one window ----------------------------------------------------------------------------------------------


def _zeros(aval: ShapedArray) -> Any:
    return full(aval.shape, 0, aval.dtype)


def _dynamic_slice_transpose(cts: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    ct = cts[0]

    def onto(whole: Any) -> Any:
        return i.dynamic_update_slice(whole, add(i.dynamic_slice(whole, starts, slice_sizes), ct), starts)

    return Update(lambda: i.dynamic_update_slice(_zeros(x.aval), ct, starts), onto), *[None] * len(starts)


jvp.linear_in(i.dynamic_slice_p, 0)
transpose.rules[i.dynamic_slice_p] = _dynamic_slice_transpose


def _dynamic_update_slice_transpose(cts: Any, x: Any, update: Any, *starts: Any) -> Any:
    ct, window = cts[0], aval_of(update)
    return (
        i.dynamic_update_slice(ct, _zeros(window), starts) if is_linear(x) else None,
        i.dynamic_slice(ct, starts, window.shape) if is_linear(update) else None,
        *[None] * len(starts),
    )


jvp.linear_in(i.dynamic_update_slice_p, 0, 1)
transpose.rules[i.dynamic_update_slice_p] = _dynamic_update_slice_transpose

# ---- gather --------------------------------------------------------------------------------------------------


def _gather_jvp(primals: Any, tangents: Any, *, fill_value: Any, **params: Any) -> Any:
    """Linear in the operand, but for what fills in: its tangent is zero."""
    out = i.gather_p.bind(*primals, fill_value=fill_value, **params)
    if type(tangents[0]) is Zero:
        return out, zeros_of((aval_of(out[0]),))
    return out, (i.gather(tangents[0], primals[1], fill_value=0, **params),)


def _gather_transpose(
    cts: Any, x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, fill_value: Any, **params: Any
) -> Any:
    numbers = i.ScatterDimensionNumbers(*dimension_numbers)

    def onto(whole: Any) -> Any:
        return i.scatter_add(whole, indices, cts[0], numbers, **params)

    return Update(lambda: onto(_zeros(x.aval)), onto), None


jvp.rules[i.gather_p] = _gather_jvp
jvp.structurally_linear[i.gather_p] = (0,)
transpose.rules[i.gather_p] = _gather_transpose


def _read(x: Any, indices: Any, updates: ShapedArray, dimension_numbers: Any, **params: Any) -> Any:
    """The windows of x that a scatter of updates of this type would write; zeros where it would write nothing."""
    sizes = i.window_sizes(aval_of(x), updates, dimension_numbers)
    numbers = i.GatherDimensionNumbers(*dimension_numbers)
    return i.gather(x, indices, numbers, sizes, fill_value=0, **params)


# ---- scatter -------------------------------------------------------------------------------------------------


def _scatter_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Linear, if no two windows overlap; otherwise the winners are found first, and no other update has a derivative.

    The result is then computed from the winners too, since what wins need not be the same every time.
    """
    operand, indices, updates = primals
    t, t_updates = tangents[0], tangents[2]
    if type(t) is Zero and type(t_updates) is Zero:
        out = i.scatter_p.bind(*primals, **params)
        return out, zeros_of((aval_of(out[0]),))
    write = _writer(primals, params) if type(t_updates) is not Zero else _plain_writer(indices, params)
    t_updates = zeros_like(updates) if type(t_updates) is Zero else t_updates
    return (write(operand, updates),), (write(instantiate(t), t_updates),)


def _plain_writer(indices: Any, params: Any) -> Callable[[Any, Any], Any]:
    return lambda x, updates: i.scatter(x, indices, updates, **params)


def _writer(primals: Any, params: Any) -> Callable[[Any, Any], Any]:
    """What writes updates into an operand, linear in both, and writes the same ones every time."""
    operand, indices, updates = primals
    if params["unique_indices"]:
        return _plain_writer(indices, params)
    wins = _winners(aval_of(operand), indices, aval_of(updates), params)
    zero = zeros_like(updates)

    def write(x: Any, updates: Any) -> Any:
        cleared = i.scatter(x, indices, zero, **params)
        return i.scatter_add(cleared, indices, select_n(wins, zero, updates), **params)

    return write


def _winners(operand: ShapedArray, indices: Any, updates: ShapedArray, params: Any) -> Any:
    """Which elements of updates are there in the end: they are numbered from 1, and the numbers are scattered."""
    numbers = add(reshape(iota(np.int32, (updates.size,)), updates.shape), 1)
    kept = i.scatter(full(operand.shape, 0, np.int32), indices, numbers, **params)
    return eq(_read(kept, indices, updates, **params), numbers)


def _scatter_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct, whole, windows = cts[0], aval_of(operand), aval_of(updates)
    ct_updates = _read(ct, indices, windows, **params) if is_linear(updates) else None
    if is_linear(updates) and not params["unique_indices"]:
        ct_updates = select_n(_winners(whole, indices, windows, params), _zeros(windows), ct_updates)
    return i.scatter(ct, indices, _zeros(windows), **params) if is_linear(operand) else None, None, ct_updates


jvp.rules[i.scatter_p] = _scatter_jvp
jvp.structurally_linear[i.scatter_p] = (0, 2)
transpose.rules[i.scatter_p] = _scatter_transpose


def _scatter_add_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    return (
        cts[0] if is_linear(operand) else None,
        None,
        _read(cts[0], indices, aval_of(updates), **params) if is_linear(updates) else None,
    )


jvp.linear_in(i.scatter_add_p, 0, 2)
transpose.rules[i.scatter_add_p] = _scatter_add_transpose


def _scatter_mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """The product rule; several factors for one element would need the product of the others."""
    operand, indices, updates = primals
    t, _, t_updates = tangents
    out = i.scatter_mul(operand, indices, updates, **params)
    if type(t_updates) is not Zero and not params["unique_indices"]:
        raise NotImplementedError(
            f"scatter_mul: the derivative in updates {aval_of(updates)} is there only for unique_indices=True "
            f"(operand {aval_of(operand)}, indices {aval_of(indices)}). Promise it, or multiply one after another."
        )
    if type(t) is Zero and type(t_updates) is Zero:
        return (out,), zeros_of((aval_of(out),))
    tangent = _zeros(aval_of(out)) if type(t) is Zero else i.scatter_mul(t, indices, updates, **params)
    if type(t_updates) is not Zero:
        factor = _read(operand, indices, aval_of(updates), **params)
        tangent = i.scatter_add(tangent, indices, mul(t_updates, factor), **params)
    return (out,), (tangent,)


def _scatter_mul_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    if is_linear(updates):
        raise transpose.not_linear(i.scatter_mul_p, "it multiplies by updates that are linear")
    return i.scatter_mul(cts[0], indices, updates, **params), None, None


jvp.rules[i.scatter_mul_p] = _scatter_mul_jvp
jvp.structurally_linear[i.scatter_mul_p] = (0,)
transpose.rules[i.scatter_mul_p] = _scatter_mul_transpose


def _extreme(primitive: Primitive, loses: Callable[[Any, Any], Any]) -> None:
    """The rule of scatter_min and scatter_max: those that are the result share its derivative equally.

    `loses(x, result)` is false for nan, so that a nan wins.
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        operand, indices, updates = primals
        t, _, t_updates = tangents
        (out,) = primitive.bind(*primals, **params)
        if type(t) is Zero and type(t_updates) is Zero:
            return (out,), zeros_of((aval_of(out),))
        wins = _one_where_not(loses(operand, out), out)
        updates_win = _one_where_not(loses(updates, _read(out, indices, aval_of(updates), **params)), out)
        share = div(full_like(out, 1), i.scatter_add(wins, indices, updates_win, **params))
        tangent = _zeros(aval_of(out)) if type(t) is Zero else mul(t, mul(wins, share))
        if type(t_updates) is not Zero:
            weight = mul(updates_win, _read(share, indices, aval_of(updates), **params))
            tangent = i.scatter_add(tangent, indices, mul(t_updates, weight), **params)
        return (out,), (tangent,)

    jvp.rules[primitive] = rule


def _one_where_not(lost: Any, like: Any) -> Any:
    dtype = aval_of(like).dtype
    return select_n(lost, full((), 1, dtype), full((), 0, dtype))


_extreme(i.scatter_min_p, lambda x, out: lt(out, x))
_extreme(i.scatter_max_p, lambda x, out: lt(x, out))
