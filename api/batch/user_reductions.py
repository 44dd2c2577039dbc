"""Reductions by any function: `lax.reduce` and `lax.reduce_window`, for pytrees of arrays.

The elements are combined in pairs of neighbours, then pairs of pairs: about log2(n) steps, each of which is one `vmap`
of the function. So the derivatives, in both modes, are those of the function. It must be associative; the order of the
elements is kept, so it need not commute. What has a primitive of its own (sums, products, extremes) uses it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_arrays, check_callable
from tapeless.batch.vmap import vmap
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.numpy import asarray
from tapeless.tracer.primitives import bits, elementwise, reduction, windows
from tapeless.tracer.primitives.operands import canonical_axes, known_elements
from tapeless.tracer.primitives.shape import concatenate, pad, reshape, slice_in_dim
from tapeless.tracer.types import ShapedArray, aval_of

Combine = Callable[[Any, Any], Any]


def reduce(
    operands: Any, init_values: Any, computation: Combine, dimensions: Sequence[int], out_sharding: None = None
) -> Any:
    """Reduce axes, which are dropped, by a function of two elements.

    Args:
      operands: a pytree of arrays of one shape [n..].
      init_values: scalars in the same structure, of the same dtypes, with which nothing changes; the result where there
        are no elements.
      computation: a function of two such pytrees of scalars, associative, giving a third.
      dimensions: the axes.
      out_sharding: accepted only as None.
    Returns: arrays without the axes, in the structure of `operands`.
    Raises: ValueError if structures or shapes differ; TypeError if dtypes do, or the function gives others; all are
      named. NotImplementedError for a sharding.

    >>> reduce(np.arange(1.0, 5.0), 1.0, lambda x, y: x * y, (0,))
    Array(24., dtype=float64)
    """
    if out_sharding is not None:
        raise NotImplementedError(f"reduce: out_sharding={out_sharding!r} is not supported, only None.")
    leaves, inits, combine = _checked("reduce", operands, init_values, computation)
    axes = canonical_axes(dimensions, leaves[0].ndim, "dimensions")
    own = _REDUCTIONS.get(computation)
    if own is not None and len(leaves) == 1 and leaves[0].size:
        out, known = own[0](leaves[0], axes), known_elements(inits[0])
        outs = [out if known is not None and known == own[1] else computation(out, inits[0])]
    else:
        outs = _reduced(combine, leaves, inits, axes)
    weak = [x.aval.weak_type and aval_of(init).weak_type for x, init in zip(leaves, pytree.leaves(init_values))]
    outs = [_of_weak_type(out, w) for out, w in zip(outs, weak, strict=True)]
    return pytree.unflatten(pytree.structure(operands), outs)


def _of_weak_type(x: Any, weak: bool) -> Any:
    """Make x weakly typed, or not."""
    same = x.aval.weak_type == weak
    return x if same else elementwise.convert_element_type_p.bind(x, dtype=x.dtype, weak_type=weak)[0]


_REDUCTIONS: dict[Any, tuple[Callable[..., Any], float]] = {
    elementwise.add: (reduction.reduce_sum, 0),
    elementwise.mul: (reduction.reduce_prod, 1),
    elementwise.max: (reduction.reduce_max, -math.inf),
    elementwise.min: (reduction.reduce_min, math.inf),
    bits.bitwise_and: (reduction.reduce_and, -1),
    bits.bitwise_or: (reduction.reduce_or, 0),
    bits.bitwise_xor: (reduction.reduce_xor, 0),
}


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Combine,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce windows by a function of two elements.

    Args:
      operand: a pytree of arrays of one shape [n..].
      init_value: scalars in the same structure, of the same dtypes, with which nothing changes; they pad `operand`.
      computation: a function of two such pytrees of scalars, associative, giving a third. lax.add, lax.mul, lax.max and
        lax.min have primitives of their own; any other makes all windows, elements as often as windows overlap.
      others: as for `reduce_window_sum`.
    Returns: an element for each position of the window, in the structure of `operand`.
    Raises: as `reduce`, and ValueError for a window that does not fit.
    """
    window = window_dimensions, window_strides, padding, base_dilation, window_dilation
    if computation in windows.REDUCTIONS and pytree.structure(operand) is pytree.LEAF:
        return windows.reduce_window(operand, init_value, computation, *window)
    leaves, inits, combine = _checked("reduce_window", operand, init_value, computation)
    params = windows.window_params("reduce_window", leaves[0].shape, *window)
    n = leaves[0].ndim
    made = [all_windows(x, init, **params) for x, init in zip(leaves, inits)]
    return pytree.unflatten(pytree.structure(operand), _reduced(combine, made, inits, range(n, 2 * n)))


def all_windows(
    x: Any,
    init: Any,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Any:
    """Collect the windows of x, padded with `init`: [positions.., window..]."""
    n = x.ndim
    x = pad(x, init, [(low, high, gap - 1) for (low, high), gap in zip(padding, base_dilation, strict=True)])
    for i in range(n):
        size, width = x.shape[2 * i], (window_dimensions[i] - 1) * window_dilation[i] + 1
        starts = np.arange(0, max(size - width + 1, 0), window_strides[i])
        places = starts[:, None] + np.arange(window_dimensions[i]) * window_dilation[i]
        x = tnp.take(x, places, axis=2 * i)
    return tnp.transpose(x, (*range(0, 2 * n, 2), *range(1, 2 * n, 2)))


# ---- what both do --------------------------------------------------------------------------------------------


def _checked(name: str, operands: Any, inits: Any, computation: Combine) -> tuple[list[Any], list[Any], Any]:
    """Flatten a reduction: leaves of operands, leaves of initial values, the function of flat lists of scalars."""
    check_callable(name, computation, "computation")
    check_arrays(f"{name}: operand{{}}", operands)
    check_arrays(f"{name}: initial value{{}}", inits)
    tree = pytree.structure(operands)
    if tree != pytree.structure(inits):
        told = pytree.compare(tree, pytree.structure(inits), ("operands", "initial values"))
        raise ValueError(f"{name}: operands and initial values differ in structure.{told}")
    leaves = [asarray(x) for x in pytree.leaves(operands)]
    if not leaves or len({x.shape for x in leaves}) > 1:
        raise ValueError(f"{name}: operands of one shape are wanted, not {', '.join(str(x.aval) for x in leaves)}.")
    scalars = [_initial(name, x, init) for x, init in zip(leaves, pytree.leaves(inits))]

    def combine(xs: list[Any], ys: list[Any]) -> list[Any]:
        result = computation(pytree.unflatten(tree, xs), pytree.unflatten(tree, ys))
        return _combined(name, result, tree, [x.aval for x in scalars])

    return leaves, scalars, combine


def _initial(name: str, x: Any, init: Any) -> Any:
    """Convert an initial value to the type of the elements of x."""
    have = aval_of(init)
    if have.shape or not (have.weak_type or have.dtype == x.dtype):
        raise TypeError(f"{name}: an initial value must be a scalar of {x.dtype}, as operands are, not {have}.")
    return tnp.full((), init, x.dtype)


def _combined(name: str, result: Any, tree: Any, wanted: Sequence[ShapedArray]) -> list[Any]:
    """Flatten the result of the function. Raises: TypeError unless it is like the operands of the function."""
    check_arrays(f"{name}: the result{{}} of the computation", result)
    found, have = pytree.leaves(result), [aval_of(y) for y in pytree.leaves(result)]
    same = pytree.structure(result) == tree and all(
        a.shape == () and (a.dtype == w.dtype or a.weak_type) for a, w in zip(have, wanted, strict=False)
    )
    if not same:
        given, want = (", ".join(map(str, avals)) for avals in (have, wanted))
        raise TypeError(f"{name}: the computation must give {want} of {want} and {want}, but gave {given}.")
    return [asarray(y, w.dtype) for y, w in zip(found, wanted, strict=True)]


def _reduced(combine: Any, leaves: Sequence[Any], inits: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Combine the elements of leaves along axes, the initial values before them."""
    kept = [i for i in range(leaves[0].ndim) if i not in axes]
    shape = [leaves[0].shape[i] for i in kept]
    n = math.prod(leaves[0].shape[i] for i in axes)
    rows = [reshape(tnp.transpose(x, (*axes, *kept)), (n, math.prod(shape))) for x in leaves]
    every = vmap(vmap(combine))
    while n > 1:
        rows, n = _halved(every, rows, n)
    first = [tnp.broadcast_to(init, (1, math.prod(shape))) for init in inits]
    whole = every(first, rows) if n else first
    return [reshape(x, shape) for x in whole]


def _halved(every: Any, rows: list[Any], n: int) -> tuple[list[Any], int]:
    """Combine neighbours; of an odd number the last row stays."""
    half = n // 2
    pairs = [reshape(slice_in_dim(x, 0, 2 * half), (half, 2, x.shape[1])) for x in rows]
    out = every([x[:, 0] for x in pairs], [x[:, 1] for x in pairs])
    if n % 2:
        out = [concatenate([y, slice_in_dim(x, n - 1, n)], 0) for y, x in zip(out, rows)]
    return out, half + n % 2
