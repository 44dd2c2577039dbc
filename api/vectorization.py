"""vmap, with JAX's signature."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.interpreters import vmap as batching
from tapeless.tracer import core, pytree
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.types import aval_of, is_arraylike


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None) -> Any:
    """A function of one example, for many at once.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: which axis of each argument runs over the examples; None for an argument that is the same for all. An
        int, or a sequence with one entry per positional argument, each an int, None, or a pytree of these that is a
        prefix of the argument. Keyword arguments are mapped over axis 0.
      out_axes: where that axis goes in the results: an int, None for a result that is the same for all, or a prefix.
      axis_size: number of examples, if no argument says it.
    Returns: a function of the same arguments with the mapped axis, giving the results with it.
    Raises: ValueError if sizes of mapped axes differ, each argument named, or `in_axes` does not fit.

    >>> import tapeless.numpy as tnp
    >>> vmap(tnp.dot)(tnp.ones((2, 3)), tnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"vmap: expected a function, not {fun!r}.")

    @functools.wraps(fun)
    def batched(*args: Any, **kwargs: Any) -> Any:
        flat, tree = pytree.flatten((args, kwargs))
        dims = _in_dims(fun, in_axes, args, kwargs, flat)
        size = _size(fun, args, kwargs, flat, dims, axis_size)
        out_tree: Any = None

        def flat_fun(*xs: Any) -> list[Any]:
            nonlocal out_tree
            given, named = pytree.unflatten(tree, xs)
            outs, out_tree = pytree.flatten(fun(*given, **named))
            return outs

        outs, out_dims = batching.vmap(flat_fun, flat, dims, size, fun)
        wanted = pytree.broadcast_prefix(out_axes, pytree.unflatten(out_tree, outs), _is_none, who="vmap", name="out_axes")
        return pytree.unflatten(out_tree, [_placed(x, d, w, size, fun) for x, d, w in zip(outs, out_dims, wanted)])

    return batched


def _is_none(x: Any) -> bool:
    return x is None


def _in_dims(fun: Any, in_axes: Any, args: Any, kwargs: Any, flat: Sequence[Any]) -> list[int | None]:
    """Where the mapped axis of each leaf is."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
        raise ValueError(
            f"vmap: in_axes has {len(in_axes)} entries, {in_axes}, but {core.describe_function(fun)} was called with "
            f"{len(args)} positional arguments."
        )
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    dims = pytree.broadcast_prefix((axes, 0), (args, kwargs), _is_none, who="vmap", name="in_axes")
    return [_dim(x, d) for x, d in zip(flat, dims)]


def _dim(x: Any, d: Any) -> int | None:
    if d is None:
        return None
    if not isinstance(d, int):
        raise TypeError(f"vmap: in_axes must be ints or None, not {d!r}.")
    if not is_arraylike(x):
        raise TypeError(f"vmap: {x!r} of type {type(x).__name__} is not an array; give it in_axes=None.")
    aval = aval_of(x)
    try:
        return canonical_axis(d, aval.ndim)
    except ValueError:
        raise ValueError(f"vmap: in_axes names axis {d} of an argument that is {aval}.") from None


def _size(fun: Any, args: Any, kwargs: Any, flat: Sequence[Any], dims: Sequence[int | None], given: Any) -> int:
    sizes = {aval_of(x).shape[d] for x, d in zip(flat, dims) if d is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError("vmap: no argument is mapped (in_axes is None everywhere) and axis_size is not given.")
    if len(sizes) > 1:
        raise ValueError(f"vmap: mapped axes differ in size. {_described(args, kwargs, dims, given)}\n" + _ADVICE)
    return sizes.pop()


_ADVICE = "  Give one of them in_axes=None, or make the sizes equal."


def _described(args: Any, kwargs: Any, dims: Sequence[int | None], given: Any) -> str:
    """Every mapped leaf: `argument [0]['w'] has 4 (float32[3,4], axis 1)`."""
    parts = [] if given is None else [f"axis_size is {given}"]
    for (path, x), d in zip(pytree.leaves_with_path((args, kwargs)), dims):
        if d is not None:
            aval = aval_of(x)
            parts.append(f"argument {pytree.keystr(path[1:])} has {aval.shape[d]} ({aval}, axis {d})")
    return ", ".join(parts) + "."


def _placed(x: Any, d: int | None, wanted: Any, size: int, fun: Any) -> Any:
    """A result with its mapped axis where it is wanted."""
    if wanted is None:
        if d is not None:
            raise ValueError(
                f"vmap: out_axes is None for a result of {core.describe_function(fun)} that differs between examples: "
                f"{aval_of(x)}."
            )
        return x
    ndim = aval_of(x).ndim + (d is None)
    return batching.placed(x, d, canonical_axis(wanted, ndim), size)
