"""Loops over the leading axis of arrays, with JAX's names and meanings: scan, map, associative_scan."""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import numpy as np

from tapeless.arguments.argument_checks import CLOSE_OVER, check_arrays, check_callable
from tapeless.batch.vmap import vmap
from tapeless.control_flow import forwarding, references, without_jit
from tapeless.control_flow.body_tracing import TracedBody, describe_result, trace, unify_carry_types
from tapeless.tracer import core, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives import control_flow as primitives
from tapeless.tracer.primitives.operands import canonical_axis, shape_of
from tapeless.tracer.primitives.shape import concatenate, expand_dims, reshape, rev, slice_in_dim
from tapeless.tracer.references import values_of
from tapeless.tracer.types import ShapedArray, aval_of

if TYPE_CHECKING:
    from tapeless.control_flow import loop_checkpoints
    from tapeless.interpreters.residuals.rematerialization import ProgramPolicy
else:
    loop_checkpoints = LateModule("tapeless.control_flow.loop_checkpoints")

Carry = TypeVar("Carry")
Y = TypeVar("Y")
Number: TypeAlias = complex | np.ndarray[Any, Any] | np.generic  # a carry that is an array of ours after a step
Checkpoints: TypeAlias = "int | float | str | ProgramPolicy | None"  # which states of a loop are saved


@overload
def scan(
    f: Callable[[Array, Any], tuple[Any, Y]],
    init: Number,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoint: Checkpoints = None,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Carry, Any], tuple[Carry, Y]],
    init: Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoint: Checkpoints = None,
) -> tuple[Carry, Y]: ...
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoint: Checkpoints = None,
) -> tuple[Any, Any]:
    """Run a loop `for x in xs: carry, y = f(carry, x)` from `init`; return the last carry, and all y stacked.

    Args:
      f: (carry, element of xs) -> (carry, y), the carry of the same structure and types; y is any pytree.
      init: the carry to begin with, a pytree of arrays. Bare numbers take the type that `f` gives them.
      xs: pytree of arrays [length, ...], and of references to such arrays, of which `f` gets a reference to one
        element each, and may write it; may be None if `length` is given.
      reverse: from the last element to the first; each y stands where its element of xs does.
      unroll: steps that the compiled loop takes at once, to the same results; True or 0 means all.
      _split_transpose: accepted for compatibility.
      checkpoint: which carries are saved for reverse mode; the others, and residuals, are computed again. "sqrt": at
        most 2 sqrt(length) carries and steps, each computed twice. An integer k >= 1: at most k carries, and the fewest
        computations of steps that these allow. "log": log2(length) carries, rounded up, so that steps are computed at
        most 2 + log2(length) / 2 times on average. A text such as "2GB", a part from 0.0 to 1.0, or
        `tl.checkpoint_policies.budget(limit)`: a budget for this loop. Results do not depend on it.
    Raises: TypeError if `f` returns no pair, or changes the carry: every leaf is named, or if `checkpoint` is none of
      these; ValueError if leading axes differ, there is neither `xs` nor `length`, or `checkpoint` is less than 1. In
      reverse mode, ValueError for a budget that cannot be kept.
    Source: Griewank & Walther 2000, "Algorithm 799: revolve", for `checkpoint`.

    >>> import tapeless.numpy as tnp
    >>> scan(lambda total, x: (total + x, total + x), 0.0, tnp.ones(3))
    (Array(3., dtype=float32), Array([1., 2., 3.], dtype=float32))
    """
    check_callable("scan", f, "f")
    check_arrays("scan: init{}", init, CLOSE_OVER)
    written = references.ElementReferences(xs)
    steps = _length("scan", written.arrays, length)
    how: dict[str, Any] = {"reverse": bool(reverse), "unroll": steps_at_once("scan", unroll, steps)}
    how.update(options_of("scan", checkpoint))
    return _over("scan", f, f, init, written, steps, **how)


def _over(
    who: str,
    fun: Any,
    f: Callable[..., Any],
    init: Any,
    xs: references.ElementReferences,
    length: int,
    of_user: Callable[[Any], Any] = lambda pair: pair,
    **how: Any,
) -> tuple[Any, Any]:
    """Run `run_scan` over arrays and references."""
    if not xs:
        return run_scan(who, fun, f, init, xs.arrays, length, of_user=of_user, **how)
    step = xs.step(lambda carry, x: _pair(who, fun, f(carry, x)))
    how["of_user"] = lambda out: of_user((out[0], out[1][0]))
    return xs.run(who, lambda: run_scan(who, fun, step, init, xs.arrays, length, **how))


def _second(pair: Any) -> Any:
    return pair[1]


def run_scan(
    who: str,
    fun: Any,
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    length: int,
    rewritten: Callable[[TracedBody], tuple[TracedBody, list[Any]]] | None = None,
    of_user: Callable[[Any], Any] | None = None,
    **how: Any,
) -> tuple[Any, Any]:
    """Run `scan` of `f`, which calls the user's `fun`.

    Args:
      rewritten: of the traced body, it gives another one, and arrays whose elements are its last inputs.
      of_user: what `fun` returned in the result of `f`, if that is not all.
    """
    if length and without_jit.runs_in_python() and rewritten is None:
        return without_jit.scan(
            lambda carry, x: _pair(who, fun, f(carry, x)), init, xs, length, how.get("reverse", False)
        )
    elements = [primitives.element_type(aval_of(x)) for x in pytree.leaves(xs)]
    tree = pytree.structure((init, xs))

    def step(*flat: Any) -> Any:
        return _pair(who, fun, f(*pytree.unflatten(tree, flat)))

    def traced(avals: Sequence[ShapedArray]) -> TracedBody:
        return trace(who, fun, step, [*avals, *elements], taking_references=True, of_user=of_user)

    body, carry = unify_carry_types(who, fun, init, traced, lambda out: out[0], others=pytree.leaves(xs))
    arrays, n = pytree.leaves(xs), len(carry)
    if rewritten is not None:
        body, more = rewritten(body)
        arrays += more
    k = len(body.references)
    whole = references.in_the_carry(body, n, len(arrays))
    outs = forwarding.scan(whole, [*carry, *values_of(body.references)], arrays, length=length, **how)
    kept = references.put_back([body], [*outs[:n], *outs[n + k :], *outs[n : n + k]])
    return pytree.unflatten(pytree.structure(body.result), kept)


def _pair(who: str, f: Any, result: Any) -> tuple[Any, Any]:
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    raise TypeError(
        f"{who}: {core.describe_function(f)} must return a pair (carry, y), but returned {describe_result(result)}."
    )


def _length(who: str, xs: Any, length: Any) -> int:
    """Find the number of steps. Raises: TypeError if a leaf is no array; ValueError if leaves differ, or none is."""
    check_arrays(f"{who}: xs{{}}", xs, CLOSE_OVER)
    pairs = pytree.leaves_with_path(xs)
    for path, x in pairs:
        if not shape_of(x):
            raise ValueError(f"{who}: xs{pytree.keystr(path)} is {aval_of(x)}, which has no leading axis to go along.")
    sizes = {shape_of(x)[0] for _, x in pairs} | ({_as_int(who, "length", length)} if length is not None else set())
    if not sizes:
        raise ValueError(f"{who}: xs has no arrays, so length must be given.")
    if min(sizes) < 0:
        raise ValueError(f"{who}: length must not be negative, but is {length}.")
    if len(sizes) > 1:
        raise ValueError(f"{who}: leading axes differ in size. {_sizes(pairs, length)}")
    return sizes.pop()


def _sizes(pairs: Sequence[tuple[Any, Any]], length: Any) -> str:
    said = [] if length is None else [f"length is {length}"]
    return ", ".join(said + [f"xs{pytree.keystr(path)} has {shape_of(x)[0]} ({aval_of(x)})" for path, x in pairs]) + "."


def _as_int(who: str, name: str, x: Any) -> int:
    try:
        return operator.index(x)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(f"{who}: {name} must be an integer, not {x!r}.") from None


def steps_at_once(who: str, unroll: Any, length: int) -> int:
    """Return the steps that `unroll` means, all if true or 0. Raises: ValueError if it is negative."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    steps = _as_int(who, "unroll", unroll)
    if steps < 0:
        raise ValueError(f"{who}: unroll must be True, False or a number of steps, not {steps}.")
    return steps or max(length, 1)


def options_of(who: str, given: Checkpoints) -> dict[str, Any]:
    """Return the argument of `forwarding.scan` that runs a loop with checkpoints; none if none are asked for."""
    return {} if given is None else {"loop": loop_checkpoints.loop_with(who, given)}


# ---- map -----------------------------------------------------------------------------------------------------


def map(f: Callable[[Any], Y], xs: Any, *, batch_size: int | None = None, checkpoint: Checkpoints = None) -> Y:
    """Apply `f` to each element along the leading axis, one after another, and stack the results.

    Args:
      f: a function of one element of xs, giving a pytree of arrays.
      xs: pytree of arrays [n, ...].
      batch_size: elements to compute at once by `vmap`; 0 means all.
      checkpoint: as of `scan`. There is no carry, so all but a budget compute one element or batch at a time again.
    Raises: ValueError if leading axes differ or `batch_size` is negative; TypeError if a leaf is no array; both as
      `scan` for `checkpoint`.

    >>> import tapeless.numpy as tnp
    >>> map(lambda x: x**2, tnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    check_callable("map", f, "f")
    how = {"reverse": False, "unroll": 1, **options_of("map", checkpoint)}
    written = references.ElementReferences(xs)
    n = _length("map", xs if batch_size is not None else written.arrays, None)
    if batch_size is not None and n:
        return _in_batches(f, xs, n, _positive(batch_size) or n, how)
    return _over("map", f, lambda _, x: ((), f(x)), (), written, n, of_user=_second, **how)[1]


def _positive(batch_size: Any) -> int:
    size = _as_int("map", "batch_size", batch_size)
    if size < 0:
        raise ValueError(f"map: batch_size must be a number of elements, not {size}.")
    return size


def _in_batches(f: Callable[[Any], Any], xs: Any, n: int, size: int, how: dict[str, Any]) -> Any:
    """Apply `f` to `size` elements at once; the last batch may be smaller."""
    of_batch, end = vmap(f), n - n % size
    if n <= size:
        return of_batch(xs)
    batches = pytree.tree_map(lambda x: reshape(slice_in_dim(x, 0, end), (end // size, size, *shape_of(x)[1:])), xs)
    ys = run_scan("map", f, lambda _, x: ((), of_batch(x)), (), batches, end // size, of_user=_second, **how)[1]
    flat = pytree.tree_map(lambda y: reshape(y, (end, *shape_of(y)[2:])), ys)
    if end == n:
        return flat
    rest = of_batch(pytree.tree_map(lambda x: slice_in_dim(x, end, n), xs))
    return pytree.tree_map(lambda y, z: concatenate([y, z], 0), flat, rest)


# ---- associative_scan ----------------------------------------------------------------------------------------


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combine all elements up to each one by an associative function, in O(log n) steps with O(n) work in total.

    Args:
      fn: (a, b) -> a and b combined, associative; of pytrees like `elems` with any number of elements along `axis`.
      elems: pytree of arrays [..., n, ...].
      reverse: combine from each element on instead, beginning with the last: `fn` is given the later one first.
      axis: where the elements are, in every leaf.
    Returns: pytree like `elems`.
    Raises: ValueError if there are no arrays, or they differ along `axis`; TypeError if `fn` changes their types.
    Source: Blelloch 1990, "Prefix sums and their applications".

    >>> import tapeless.numpy as tnp
    >>> associative_scan(tnp.add, tnp.arange(5))
    Array([ 0,  1,  3,  6, 10], dtype=int32)
    """
    check_callable("associative_scan", fn, "fn")
    check_arrays("associative_scan: elems{}", elems, CLOSE_OVER)
    leaves, tree = pytree.flatten(elems)
    axes = _axes(elems, axis)

    def combined(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return _combined(fn, tree, a, b)

    ends = [rev(x, (k,)) for x, k in zip(leaves, axes)] if reverse else leaves
    outs = _prefixes(combined, ends, axes)
    return pytree.unflatten(tree, [rev(x, (k,)) for x, k in zip(outs, axes)] if reverse else outs)


def _axes(elems: Any, axis: int) -> list[int]:
    """Find the axis of the elements in each leaf. Raises: ValueError if there is none, or sizes differ."""
    pairs = pytree.leaves_with_path(elems)
    if not pairs:
        raise ValueError("associative_scan: elems has no arrays.")
    axes = [canonical_axis(axis, aval_of(x).ndim, "associative_scan: axis") for _, x in pairs]
    sizes = [shape_of(x)[k] for (_, x), k in zip(pairs, axes)]
    if len(set(sizes)) > 1:
        said = [
            f"elems{pytree.keystr(path)} has {n} ({aval_of(x)}, axis {k})"
            for (path, x), n, k in zip(pairs, sizes, axes)
        ]
        raise ValueError(f"associative_scan: elements differ in number. {', '.join(said)}.")
    return axes


def _combined(fn: Callable[[Any, Any], Any], tree: Any, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    first = pytree.unflatten(tree, a)
    result = fn(first, pytree.unflatten(tree, b))
    check_arrays(f"associative_scan: the result{{}} of {core.describe_function(fn)}", result)
    outs = pytree.leaves(result)
    if not _alike(first, result):
        told = pytree.compare(tree, pytree.structure(result), ("the arguments", "the result"))
        raise TypeError(f"associative_scan: {core.describe_function(fn)} must return what it is given.{told}")
    given, found = ", ".join(str(aval_of(x)) for x in a), ", ".join(str(aval_of(y)) for y in outs)
    if given != found:
        raise TypeError(
            f"associative_scan: {core.describe_function(fn)} must return what it is given, ({given}), "
            f"but returned ({found})."
        )
    return outs


def _alike(x: Any, y: Any) -> bool:
    """Tell whether two pytrees have one structure, but for the classes of tuples, which may be named ones."""
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(_alike(a, b) for a, b in zip(x, y))
    return pytree.structure(x) == pytree.structure(y)


def _prefixes(combined: Callable[..., list[Any]], xs: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Combine neighbours, then all prefixes of pairs: these end at odd positions; each even one lacks one element."""
    n = shape_of(xs[0])[axes[0]]
    if n < 2:
        return list(xs)
    odd = _prefixes(combined, combined(_every_other(xs, axes, 0, n - 1), _every_other(xs, axes, 1, n)), axes)
    if n == 2:
        return [concatenate([slice_in_dim(x, 0, 1, axis=k), y], k) for x, y, k in zip(xs, odd, axes)]
    before = [slice_in_dim(y, 0, (n - 1) // 2, axis=k) for y, k in zip(odd, axes)]
    even = combined(before, _every_other(xs, axes, 2, n))
    firsts = [slice_in_dim(x, 0, 1, axis=k) for x, k in zip(xs, axes)]
    return [_interleaved(concatenate([x, y], k), z, k) for x, y, z, k in zip(firsts, even, odd, axes)]


def _every_other(xs: Sequence[Any], axes: Sequence[int], start: int, stop: int) -> list[Any]:
    return [slice_in_dim(x, start, stop, 2, k) for x, k in zip(xs, axes)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Interleave: even[0], odd[0], even[1], ...; there may be one more of the first."""
    n, shape = shape_of(odd)[axis], list(shape_of(odd))
    firsts = slice_in_dim(even, 0, n, axis=axis)
    pairs = concatenate([expand_dims(firsts, (axis + 1,)), expand_dims(odd, (axis + 1,))], axis + 1)
    shape[axis] = 2 * n
    both = reshape(pairs, shape)
    return both if shape_of(even)[axis] == n else concatenate([both, slice_in_dim(even, n, n + 1, axis=axis)], axis)
