"""The index language: arrays by formulas of their elements.

`build(n, lambda i: ...)` is the array whose element i the body says; `sum(m, lambda j: ...)` adds over an index. In a
body `A[i, 2 * j + 1]` reads an element, and 0 outside of A; a product with a condition, `(i == j) * x[i]`, is 0 where
the condition is false, whatever it is a product of. A body is traced once and written as bulk operations: reads at
affine indices become slices, contractions and convolutions, never loops over elements.
"""

import builtins
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from tapeless.arguments.argument_checks import check_callable
from tapeless.index.explanations import IndexExplanation, explain
from tapeless.index.index_passes import (
    ProgramPass,
    fuse,
    gen_push_out,
    let_lift,
    lower_terms,
    merge,
    pair_eliminate,
    raise_terms,
    show,
    solve,
    tensor_ssa,
)
from tapeless.index.loops import steps
from tapeless.index.spaces import Range, Space, place_in, range_of
from tapeless.index.sparse import Entries, Relation, SparseArray
from tapeless.index.symbolic_gradients import free, grad, pullback, push
from tapeless.index.symbolic_sizes import IndexCost, SizedFormulas, cost
from tapeless.interpreters.index.index_bodies import over
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.array import Array
from tapeless.tracer.core import describe_function
from tapeless.tracer.indices.hints import is_noting
from tapeless.tracer.indices.index import Index, as_index
from tapeless.tracer.indices.sizes import Size, size
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy import asarray
from tapeless.tracer.numpy.promotion import array_operand
from tapeless.tracer.primitives.checkpoint import optimization_barrier
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.primitives.shape import static_shape
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Bracket, Lookup, Read, term

__all__ = [
    "Index",
    "IndexCost",
    "IndexExplanation",
    "ProgramPass",
    "Range",
    "Relation",
    "Size",
    "SizedFormulas",
    "Space",
    "SparseArray",
    "all",
    "any",
    "argmax",
    "argmin",
    "array",
    "build",
    "cond",
    "cost",
    "exists",
    "explain",
    "fold",
    "forall",
    "free",
    "fuse",
    "gather",
    "gen_push_out",
    "grad",
    "let_lift",
    "lower_terms",
    "max",
    "merge",
    "min",
    "pair_eliminate",
    "prod",
    "pullback",
    "push",
    "range",
    "raise_terms",
    "relation",
    "scan",
    "scatter",
    "show",
    "size",
    "solve",
    "sparse",
    "sum",
    "tensor_ssa",
    "where",
]

Shape = int | Size | Range | Sequence[int | Size | Range]
Body = Callable[..., Any]
Reduction = Callable[..., Any]


def array(a: Any) -> Array:
    """Make an array that indices read, of one of NumPy or of nested lists: `array(a)[i, j]`, 0 outside of `a`.

    Indices have no value while a body is traced, which NumPy's `a[i, j]` and lists need.

    Args:
      a: array of any kind, or nested lists of numbers; in a body, or before it.
    Returns: [same shape], in the dtype that `tapeless.numpy.asarray` gives it.
    Raises: TypeError if `a` is no array.

    >>> import numpy as np
    >>> a = np.array([1, 2, 4], np.float32)
    >>> build(3, lambda i: array(a)[i + 1] - array(a)[i])
    Array([ 1.,  2., -4.], dtype=float32)
    """
    return asarray(a)


def build(shape: Shape, fn: Body) -> Any:
    """Make the array whose element at i, j, ... is `fn(i, j, ...)`.

    Args:
      shape: one number, or one for each index.
      fn: indices -> an element, an array, or a pytree of these.
    Returns: [*shape, *element] for each leaf.
    Raises: TypeError if `fn` is no function of as many indices, if it asks for the value of one, if a shape depends on
      one, or if `fn` returns a whole relation or sparse array; IndexError for a number outside of an axis, negative
      ones among them.

    >>> build((2, 3), lambda i, j: 10 * i + j)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    return _evaluated("build", shape, fn)


def _evaluated(name: str, shape: Shape, fn: Body, reduced: Reduction | None = None) -> Any:
    """Evaluate a body for all indices, and reduce the leaves over the axes of the indices, if by anything."""
    check_callable(f"index.{name}", fn)
    ranges, sizes = _ranges(name, shape), _shape(name, shape)
    if 0 in sizes and name in _CHOOSING:
        raise ValueError(f"index.{name}: there is no element to choose over indices of shape {sizes}.")
    _check_takes(name, fn, _indices(len(sizes)), len(sizes))
    axes = tuple(builtins.range(len(sizes)))
    trees = list[pytree.PyTreeDef]()

    def body(*indices: Index) -> Sequence[Any]:
        given = [r.index(i) if isinstance(r, Range) else i for r, i in zip(ranges, indices)]
        found = fn(*given)
        if found is None:
            raise TypeError(f"index.{name}: {describe_function(fn)} returns None, not an element: is `return` missing?")
        _check_elements(name, fn, found)
        leaves, tree = pytree.flatten(found)
        trees.append(tree)
        elements = [array_operand(f"index.{name}", x) for x in leaves]
        return [_counted(x) for x in elements] if name in _ADDING else elements

    def finish(results: Sequence[Any]) -> Sequence[Any]:
        if reduced is None:
            return results
        if is_noting() and builtins.any(isinstance(r, Range) and not r.eliminate for r in ranges):
            results = optimization_barrier(*results)  # the sum stays apart from what it adds
        return [reduced(x, axis=axes) for x in results]

    outs = over(body, sizes, fn, finish)
    return pytree.unflatten(trees[-1], outs)


def _check_elements(who: str, fn: Any, found: Any) -> None:
    """Check that a body returns elements. Raises: TypeError for what holds coordinates; sums of sparse arrays are some.

    A result has an axis for each index, and coordinates have none: arrays of relations would be relations no more.
    """
    for x in pytree.leaves(found, is_leaf=lambda x: isinstance(x, Entries)):
        if isinstance(x, Relation) or (isinstance(x, SparseArray) and who != "sum"):
            name, kind = ("R", "relation") if isinstance(x, Relation) else ("S", "sparse array")
            element = f"{name}[{', '.join('ijklmnpq'[: x.ndim])}]"
            raise TypeError(
                f"index.{who}: {describe_function(fn)} returns a whole {kind} of shape {x.shape}, and a body returns "
                f"elements: write {element} for one of them, {name}.todense() for all."
            )


_ADDING = frozenset(("sum", "prod"))
_CHOOSING = frozenset(("max", "min", "argmax", "argmin"))


def _counted(x: Any) -> Any:
    """Convert a truth value to the number that it counts as."""
    return x.astype(int) if x.dtype == bool else x


def _shape(who: str, shape: Shape) -> tuple[int, ...]:
    return static_shape(_ranges(who, shape), f"index.{who}")


def _ranges(who: str, shape: Any) -> tuple[Any, ...]:
    """List the ranges of a shape: a number is one. Raises: TypeError for a size that depends on an index."""
    is_one = isinstance(shape, Index) or getattr(shape, "ndim", 1) == 0 or not isinstance(shape, Iterable)
    ranges = (shape,) if is_one else tuple(cast("Iterable[Any]", shape))
    for n in ranges:
        if isinstance(n, Index):
            raise TypeError(
                f"index.{who}: the shape depends on {n}, and shapes are known when tracing. Go over the whole range, "
                "with a condition: sum(n, lambda j: (j < i) * x[j])."
            )
    return ranges


def _indices(n: int) -> str:
    return f"{n} {'index' if n == 1 else 'indices'}"


def _check_takes(who: str, fn: Any, what: str, n: int) -> None:
    """Check that a function can be called with `what`, n arguments. Raises: TypeError naming the function."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # of a builtin nothing is known
        return
    try:
        signature.bind(*builtins.range(n))
    except TypeError:
        raise TypeError(f"index.{who}: {describe_function(fn)} takes {signature}, and is called with {what}.") from None


def _reduction(name: str, reduced: Reduction, what: str) -> Callable[[Shape, Body], Any]:
    def reduce(shape: Shape, fn: Body) -> Any:
        return _evaluated(name, shape, fn, reduced)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"""{what}

    Args:
      shape: one number, or one for each index.
      fn: indices -> an element, an array, or a pytree of these.
    Returns: [*element] for each leaf.
    Raises: what `build` raises; ValueError for a maximum or minimum over no element.
    """
    return reduce


range = range_of
sum: Final = _reduction("sum", tnp.sum, "Add `fn(i, j, ...)` over all indices.")
prod: Final = _reduction("prod", tnp.prod, "Multiply `fn(i, j, ...)` over all indices.")
max: Final = _reduction("max", tnp.max, "Find the maximum of `fn(i, j, ...)` over all indices.")
min: Final = _reduction("min", tnp.min, "Find the minimum of `fn(i, j, ...)` over all indices.")
exists: Final = _reduction("exists", tnp.any, "Tell whether `fn(i, j, ...)` is true for some indices.")
forall: Final = _reduction("forall", tnp.all, "Tell whether `fn(i, j, ...)` is true for all indices.")
any = exists
all = forall


def _flat(search: Reduction) -> Reduction:
    """Search the axes in front as one."""
    return lambda x, axis: search(x.reshape(-1, *x.shape[len(axis) :]), axis=0)


argmax: Final = _reduction(
    "argmax", _flat(tnp.argmax), "Find the first place of the maximum, counted along all indices."
)
argmin: Final = _reduction(
    "argmin", _flat(tnp.argmin), "Find the first place of the minimum, counted along all indices."
)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose an element: x where the condition is true, y where it is false; pytrees leaf by leaf.

    Neither the value nor a derivative depends on what is not chosen: it may be infinite or nan, or read outside.
    Raises: TypeError or ValueError if the trees differ in structure.
    """
    leaves, tree = pytree.flatten(x)
    others = pytree.flatten_up_to(tree, y, "index.where", ("x", "y"))
    return pytree.unflatten(tree, [tnp.where(condition, a, b) for a, b in zip(leaves, others, strict=True)])


def cond(condition: Any, on_true: Any, on_false: Any) -> Any:
    """Choose between the results of two functions without arguments, or between two values; both are computed.

    Raises: as `where`; TypeError if the condition is a function.
    """
    if callable(condition):
        raise TypeError(f"index.cond: the condition is {describe_function(condition)}: write cond(i > 0, f, g).")
    return where(condition, *[x() if callable(x) else x for x in (on_true, on_false)])


# ---- loops ---------------------------------------------------------------------------------------------------


def fold(fn: Callable[[Any, Index], Any], init: Any, n: int) -> Any:
    """Apply `carry = fn(carry, k)` for k from 0 to n - 1, starting with `init`.

    Args:
      fn: carry, index -> a carry of the same structure, shapes and dtypes. It reads arrays as bodies do: 0 outside,
        also at positions that were computed.
      init: pytree of arrays.
      n: number of steps.
    Returns: the last carry.
    Raises: TypeError if the carry changes its type, or n is no integer; ValueError if n is negative.

    >>> import tapeless.numpy as tnp
    >>> y = tnp.array([2.0, 3.0, 4.0])
    >>> fold(lambda c, k: c * y[k], 1.0, 3)
    Array(24., dtype=float32)
    """
    check_callable("fold", fn)
    _check_takes("fold", fn, "a carry and an index", 2)
    return steps("fold", fn, lambda carry, k: (fn(carry, k), None), init, n)[0]


def scan(fn: Callable[[Any, Index], tuple[Any, Any]], init: Any, n: int) -> tuple[Any, Any]:
    """Apply `carry, y = fn(carry, k)` for k from 0 to n - 1, starting with `init`, and stack every y.

    Returns: the last carry; [n, ...] for each leaf of y.
    Raises: TypeError if the carry changes its type, `fn` does not return a pair, or y holds a whole relation.
    """
    check_callable("scan", fn)
    _check_takes("scan", fn, "a carry and an index", 2)
    carry, ys = steps("scan", fn, fn, init, n)
    _check_elements("scan", fn, ys)
    return carry, ys


# ---- reads and writes at computed places -----------------------------------------------------------------------


def gather(shape: Shape, x: Any, fn: Callable[..., Any]) -> Any:
    """Make the array whose element at i, j, ... is the element of x at `fn(i, j, ...)`, 0 outside of x.

    Args:
      shape: of the result, but for the axes of x that `fn` does not index.
      x: array.
      fn: indices -> an index of x, or a tuple of one for each of its first axes.
    Returns: [*shape, *rest].
    Raises: what `build` raises.

    >>> gather(3, asarray([1, 2, 3, 4]), lambda i: 2 * i)
    Array([1, 3, 0], dtype=int32)
    """
    check_callable("gather", fn)
    rank = len(_shape("gather", shape))
    _check_takes("gather", fn, _indices(rank), rank)
    x = asarray(x)
    return build(shape, lambda *indices: x[_place(fn(*indices), fn)])


def _place(found: Any, fn: Any) -> Any:
    """Check that a function gave an index to read at. Raises: TypeError if it gave None."""
    if found is None:
        raise TypeError(f"index.gather: {describe_function(fn)} returns None, and not an index, an integer.")
    return found


def scatter(shape: Shape, x: Any, fn: Callable[..., Any]) -> Any:
    """Add every element of x, at i, j, ..., to a result of zeros at `fn(i, j, ...)`; outside of it nothing is added.

    Args:
      shape: of the result. Along a periodic range what is added to is modulo the size, along a symmetric one from -m.
      x: array.
      fn: indices, one for each axis of x -> an index of the result, or a tuple of one for each axis.
    Returns: [*shape] in the dtype of x.
    Raises: what `build` raises; ValueError if `fn` has not an index for each axis of the result, TypeError if one is no
      integer.

    >>> scatter(6, tnp.arange(1, 10), lambda i: i // 2)
    Array([ 3,  7, 11, 15,  9,  0], dtype=int32)
    """
    check_callable("scatter", fn)
    x = asarray(x)
    _check_takes("scatter", fn, _indices(x.ndim), x.ndim)
    ranges, sizes = _ranges("scatter", shape), _shape("scatter", shape)
    places = build(x.shape, lambda *indices: _places(fn, fn(*indices), ranges))
    return _added(x, places, sizes)


def _places(fn: Any, found: Any, ranges: Sequence[Any]) -> tuple[Any, ...]:
    """Write the indices that a function gives as positions, the first in each range being 0."""
    places = found if isinstance(found, tuple) else (found,)
    if len(places) != len(ranges):
        raise ValueError(f"scatter: {len(places)} indices for a result of shape {tuple(map(int, ranges))}.")
    indices = [as_index(place) for place in places]
    for place, index in zip(places, indices):
        if index is None:
            what = place.aval if isinstance(place, Array) else repr(place)
            raise TypeError(f"index.scatter: {describe_function(fn)} returns {what}, and not an index, an integer.")
    return tuple([place_in(r, i).position for r, i in zip(ranges, indices) if i is not None])


def _added(x: Any, places: Sequence[Any], sizes: tuple[int, ...]) -> Any:
    """Add the elements of x up at places that arrays of the shape of x hold."""
    read = tuple([Affine(0, ((k, 1),)) for k in builtins.range(x.ndim)])
    written = tuple([Affine(0, ((x.ndim + k, 1),)) for k in builtins.range(len(sizes))])
    brackets: list[Bracket] = [Lookup(v, k + 1, read) for k, v in enumerate(written)]
    return ein((x, *places), [term(written, (*x.shape, *sizes), [Read(0, read)], brackets)], sizes)


# ---- entries at coordinates ------------------------------------------------------------------------------------


def sparse(coords: Sequence[Any], values: Any, shape: Sequence[int]) -> SparseArray:
    """Make an array that is 0 except at given entries; bodies read it like any array, and work only for the entries.

    Args:
      coords: [entries] integers for each axis.
      values: [entries]; derivatives in them are values on the same pattern.
      shape: of the array.
    Raises: ValueError if coordinates and values differ in length, or there are not as many arrays as axes; TypeError if
      the shape or the coordinates are no sequence.

    >>> s = sparse(([0, 2], [1, 1]), [3.0, 4.0], (3, 2))
    >>> build(3, lambda i: sum(2, lambda j: s[i, j] * (j + 1.0)))
    Array([6., 0., 8.], dtype=float32)
    """
    return SparseArray(coords, values, shape)


def relation(coords: Sequence[Any], shape: Sequence[int]) -> Relation:
    """Make a boolean array that is true at known coordinates; products with it do work only for these entries.

    Args:
      coords: [entries] integers for each axis; what is repeated counts once.
      shape: of the array.
    Raises: ValueError if there are not as many arrays as axes; TypeError if shape or coordinates are no sequence.
    """
    return Relation(coords, shape)


_complete_namespace(globals())
