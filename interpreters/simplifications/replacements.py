"""Conditions and replacements that rows of rewrites.py name."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.interpreters.simplifications.constant_values import broadcast_scalar, count, is_zero, number
from tapeless.interpreters.writer import Writer, fill_array, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.dtypes import is_bool
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, slice_p, transpose_p
from tapeless.tracer.types import ShapedArray

# ---- elementwise operations ----------------------------------------------------------------------------------
# Constants are folded, and broadcasts sink below operations.

operations: Final = tuple(p for p in vars(e).values() if isinstance(p, Primitive) and p is not e.clamp_p)


def before_broadcasts(
    primitive: Primitive, w: Writer, operands: tuple[Atom, ...], params: dict[str, Any]
) -> Atom | None:
    """Apply an elementwise primitive before the broadcasts of its operands; None if nothing can be gained.

    Operands that are all broadcast alike are combined first, and the result is broadcast. Else broadcast scalars become
    scalar operands.
    """
    made = [w.made_by(x, broadcast_in_dim_p) for x in operands]
    if not any(made):
        return None
    arrays = [k for k, x in enumerate(operands) if x.aval.shape]
    small = [eqn.invars[0] if eqn is not None else x for eqn, x in zip(made, operands)]
    if all(made[k] is not None for k in arrays):
        forms = {(made[k].params["dims"], small[k].aval.shape) for k in arrays if small[k].aval.shape}  # type: ignore[union-attr]
        if len(forms) <= 1:
            dims = next(iter(forms))[0] if forms else ()
            (of_all,) = primitive.type(tuple([x.aval for x in operands]), params)
            return w.write(broadcast_in_dim_p, w.write(primitive, *small, **params), shape=of_all.shape, dims=dims)
    scalars = [k for k in arrays if made[k] is not None and not small[k].aval.shape]
    if not scalars:
        return None
    return w.write(primitive, *[small[k] if k in scalars else x for k, x in enumerate(operands)], **params)


# ---- functions of rewrites -----------------------------------------------------------------------------------


def product(w: Writer, aval: ShapedArray, m: Literal, n: Literal) -> Atom:
    """Multiply two literals in their dtype, to a literal of type `aval`."""
    with np.errstate(all="ignore"):
        return literal(np.multiply(m.value, n.value), aval)


def negative(w: Writer, aval: ShapedArray, n: Literal) -> Atom | None:
    """Negate a literal; None if its dtype is none of NumPy's own numeric dtypes."""
    if aval.dtype.kind not in "fciu":
        return None
    with np.errstate(all="ignore"):
        return literal(np.negative(n.value), aval)


def equality(w: Writer, aval: ShapedArray, m: Literal, n: Literal) -> Atom:
    """Compare two literals for equality, as a literal of type `aval`."""
    return literal(np.equal(m.value, n.value), aval)


def has_type(x: Atom, dtype: Any, weak_type: bool) -> bool:
    """Tell whether a value has this dtype and weakness, so that converting it changes nothing."""
    return x.aval.dtype == dtype and x.aval.weak_type == weak_type


def is_boolean(x: Atom) -> bool:
    """Tell whether a value has boolean elements."""
    return x.aval.dtype == bool


def in_dtype(w: Writer, aval: ShapedArray, n: Literal) -> Literal | None:
    """Convert a literal to the dtype of `aval`; None if that is not exact, or either dtype is complex."""
    value = np.asarray(n.value)
    if "c" in (value.dtype.kind, aval.dtype.kind):
        return None
    with np.errstate(all="ignore"):
        there = value.astype(aval.dtype)
        back = there.astype(value.dtype)
    return literal(there, aval) if back == value else None


def only_case(w: Writer, aval: ShapedArray, cases: tuple[Atom, ...]) -> Atom | None:
    """Return the value that `select_n` gives if all cases are one value or equal numbers, else None."""
    first = cases[0]
    if all(x is first for x in cases):
        return broadcast_scalar(w, first, aval)
    known = [number(w, x) for x in cases]
    if all(k is not None and k.tobytes() == known[0].tobytes() for k in known):
        return fill_array(w, known[0], aval)
    return None


def no_case(w: Writer, aval: ShapedArray, cases: tuple[Atom, ...]) -> Atom | None:
    """Return zeros if all cases of a select are zeros, of either sign; else None."""
    return fill_array(w, 0, aval) if all(is_zero(w, x) for x in cases) else None


def products_of_cases(w: Writer, aval: ShapedArray, p: Atom, x: tuple[Atom, ...], n: Literal) -> Atom | None:
    """Select by `p` among the products of the cases and `n`; None unless each case is one number."""
    return _computed_cases(w, aval, p, np.multiply, x, (n,) * len(x))


def sums_of_cases(w: Writer, aval: ShapedArray, p: Atom, x: tuple[Atom, ...], y: tuple[Atom, ...]) -> Atom | None:
    """Select by `p` among the sums of the cases of two selects; None unless each case is one number."""
    return _computed_cases(w, aval, p, np.add, x, y)


def _computed_cases(
    w: Writer, aval: ShapedArray, p: Atom, compute: Any, x: tuple[Atom, ...], y: tuple[Atom, ...]
) -> Atom | None:
    """Select among the results of `compute`, folded for each pair of cases; None unless each case is one number."""
    pairs = [(number(w, a), number(w, b)) for a, b in zip(x, y)]
    if any(a is None or b is None for a, b in pairs):
        return None
    with np.errstate(all="ignore"):
        found = [literal(compute(a, b), aval) for a, b in pairs]
    return w.write(e.select_n_p, p, *[fill_array(w, c.value, aval) for c in found])


# ---- shapes --------------------------------------------------------------------------------------------------
# Params of the operation that equals two in a row.


Ints = tuple[int, ...]


def shape(x: Atom) -> Ints:
    """Return the shape of an operand."""
    return x.aval.shape


def picked(items: Sequence[int], places: Iterable[int]) -> Ints:
    """Return the `items` at `places`."""
    return tuple([items[i] for i in places])


def places(items: Sequence[int], wanted: Iterable[int]) -> Ints:
    """Find the positions of `wanted` in `items`."""
    return tuple([items.index(i) for i in wanted])


def ordered(items: Iterable[int]) -> Ints:
    """Sort integers."""
    return tuple(sorted(items))


def is_ordered(permutation: Sequence[int]) -> bool:
    """Tell whether a permutation is the identity."""
    return permutation == tuple(range(len(permutation)))


def are_ones(lengths: Iterable[int]) -> bool:
    """Tell whether all lengths are 1."""
    return all(n == 1 for n in lengths)


def once(some: Iterable[int], others: Iterable[int]) -> Ints:
    """Return the integers in exactly one of two collections, sorted."""
    return tuple(sorted(set(some) ^ set(others)))


def stretches(inner: Ints, shape: Ints, dims: Ints) -> bool:
    """Tell whether the broadcast of shape `inner` to `shape` along `dims` repeats an axis of length 1."""
    return any(n != shape[d] for n, d in zip(inner, dims))


def same_but_ones(shape: Ints, other: Ints) -> bool:
    """Tell whether shapes are equal up to axes of length 1."""
    return [n for n in shape if n != 1] == [n for n in other if n != 1]


def of_long(dims: Ints, shape: Ints) -> Ints:
    """Return the `dims` of the axes of `shape` that are longer than 1."""
    return tuple([d for d, n in zip(dims, shape) if n != 1])


def after_ones(shape: Ints, new: Ints) -> dict[int, int] | None:
    """Map axes longer than 1 through a reshape that adds or drops axes of length 1; None for other reshapes."""
    before, after = ([d for d, n in enumerate(sizes) if n != 1] for sizes in (shape, new))
    return dict(zip(before, after)) if same_but_ones(shape, new) else None


def regrouped(dims: Ints, shape: Ints, new: Ints) -> Ints:
    """Map `dims`, axes longer than 1, through a reshape that only adds or drops axes of length 1; () for others."""
    moved = after_ones(shape, new)
    return () if moved is None else tuple([moved[d] for d in dims])


# ---- slices and pads -----------------------------------------------------------------------------------------


def sizes(starts: Ints, limits: Ints, strides: Ints) -> Ints:
    """Compute the shape of a slice."""
    return tuple([-(-(b - a) // n) for a, b, n in zip(starts, limits, strides)])


def starts_in(starts: Ints, outer: Ints, strides: Ints) -> Ints:
    """Compose two slices: return where `starts` are in the operand of a slice that starts at `outer` by `strides`."""
    return tuple([a + i * n for a, i, n in zip(outer, starts, strides)])


def limits_in(starts: Ints, strides: Ints, shape: Ints) -> Ints:
    """Compute the limits of the slice of this shape from `starts`."""
    return tuple([a + n * (size - 1) + 1 for a, n, size in zip(starts, strides, shape)])


def times(items: Ints, others: Ints) -> Ints:
    """Multiply two tuples element by element."""
    return tuple([i * j for i, j in zip(items, others)])


Config = tuple[tuple[int, int, int], ...]


def pads_nothing(config: Config) -> bool:
    """Tell whether a pad neither adds nor cuts."""
    return all(triple == (0, 0, 0) for triple in config)


def only_cuts(config: Config) -> bool:
    """Tell whether a pad adds nothing."""
    return not any(lo > 0 or hi > 0 or between for lo, hi, between in config)


def are_around(config: Config, inner: Config) -> bool:
    """Tell whether both pads cut nothing, and the outer one puts nothing between elements."""
    return all(lo >= 0 and hi >= 0 for lo, hi, _ in (*config, *inner)) and not any(gap for _, _, gap in config)


def added(config: Config, inner: Config) -> Config:
    """Compose two pads: add the edges of the outer one to those of the inner one."""
    return tuple([(a + lo, b + hi, gap) for (a, b, _), (lo, hi, gap) in zip(config, inner)])


def same_number(u: Atom, v: Atom) -> bool:
    """Tell whether two scalars are one variable, or literals of the same bits."""
    if type(u) is not Literal or type(v) is not Literal:
        return u is v
    return np.asarray(u.value, u.aval.dtype).tobytes() == np.asarray(v.value, v.aval.dtype).tobytes()


def cut_before(config: Config) -> Ints:
    """Return the starts of the slice equal to a pad which only cuts."""
    return tuple([-lo for lo, _, _ in config])


def cut_after(shape: Ints, config: Config) -> Ints:
    """Return the limits of the slice equal to a pad which only cuts."""
    return tuple([n + hi for n, (_, hi, _) in zip(shape, config)])


# ---- reductions ----------------------------------------------------------------------------------------------
# Sums of broadcasts, and sums of sums.


def sum_of_repeated(w: Writer, aval: ShapedArray, x: Atom, shape: Ints, dims: Ints, axes: Ints) -> Atom | None:
    """Rewrite the sum along `axes` of the broadcast of `x` as a multiple of `x`, broadcast along the remaining axes.

    `x` is summed along its own axes among `axes`. None if one of these is repeated from length 1, if `x` is repeated 0
    times, or if the dtype does not hold the multiple.
    """
    own = tuple([k for k, d in enumerate(dims) if d in axes])
    if any(x.aval.shape[k] != shape[dims[k]] for k in own):
        return None
    n = math.prod([shape[a] for a in axes if a not in dims])
    times = count(w, n, x.aval) if n != 1 else None
    if n == 0 or (times is None and n != 1):
        return None
    summed = w.write(reduce_sum_p, x, axes=own) if own else x
    scaled = w.write(mul_p, times, summed) if times is not None else summed
    left = without(range(len(shape)), axes)
    kept = tuple([left.index(d) for d in dims if d not in axes])
    return w.write(broadcast_in_dim_p, scaled, shape=aval.shape, dims=kept)


def together(axes: Sequence[int], inner: Ints, x: Atom) -> Ints:
    """Return all axes of `x` that are summed when its sum along `inner` is summed along `axes`."""
    kept = without(range(x.aval.ndim), inner)
    return tuple(sorted([*inner, *[kept[a] for a in axes]]))


# ---- contractions --------------------------------------------------------------------------------------------
# Those without a contracted axis are elementwise products.


def contracts(x: Atom, y: Atom, numbers: Any) -> bool:
    """Tell whether a contraction is no elementwise product: no operand is a scalar, and not all axes are batch axes."""
    elementwise = len(numbers[1][0]) == x.aval.ndim == y.aval.ndim
    return bool(x.aval.shape) and bool(y.aval.shape) and not elementwise


def summed(numbers: Any) -> Sequence[int]:
    """Return the axes of the first operand that are summed over."""
    return numbers[0][0]


def elementwise_product(w: Writer, aval: ShapedArray, x: Atom, y: Atom, numbers: Any) -> Atom | None:
    """Write a contraction that sums nothing as an elementwise product, "and" for booleans; None if dtypes differ."""
    if aval.dtype != x.aval.dtype:
        return None
    if x.aval.shape and y.aval.shape:
        x, y = spread_factors(w, x, y, numbers, aval.shape)
    return w.write(and_p if is_bool(aval.dtype) else mul_p, x, y)


def outer_with_number(w: Writer, aval: ShapedArray, x: Atom, y: Atom, numbers: Any) -> Atom | None:
    """Write an outer product as an elementwise one if all elements of a factor are one number; else None."""
    if number(w, x) is None and number(w, y) is None:
        return None
    return elementwise_product(w, aval, x, y, numbers)


def spread_factors(w: Writer, x: Atom, y: Atom, dimension_numbers: Any, shape: tuple[int, ...]) -> tuple[Atom, Atom]:
    """Broadcast both factors of a contraction that sums nothing to `shape`, the shape of its result."""
    _, (bx, by) = dimension_numbers
    return _spread(w, x, bx, len(bx), shape), _spread(w, y, by, x.aval.ndim, shape)


def _spread(w: Writer, x: Atom, batch: Sequence[int], at: int, shape: tuple[int, ...]) -> Atom:
    """Broadcast an operand to `shape`: batch axes first, its other axes from `at` on."""
    order = (*batch, *without(range(x.aval.ndim), batch))
    dims = (*range(len(batch)), *range(at, at + x.aval.ndim - len(batch)))
    return w.write(broadcast_in_dim_p, w.write(transpose_p, x, permutation=order), shape=shape, dims=dims)


# ---- dynamic slices ------------------------------------------------------------------------------------------
# With known starts.


def known_slice(w: Writer, aval: ShapedArray, x: Atom, starts: Sequence[Atom]) -> Atom | None:
    """Rewrite a dynamic slice as a slice at clamped starts; None if a start is no literal and could move the window."""
    rooms = [n - size for n, size in zip(x.aval.shape, aval.shape)]
    if any(room and type(start) is not Literal for start, room in zip(starts, rooms)):
        return None
    first = tuple([min(max(int(start.value), 0), room) if room else 0 for start, room in zip(starts, rooms)])  # type: ignore[union-attr]
    limits = tuple([a + n for a, n in zip(first, aval.shape)])
    return w.write(slice_p, x, start_indices=first, limit_indices=limits, strides=(1,) * len(first))


def same_type(x: Atom, y: Atom) -> bool:
    """Tell whether two operands have the same type."""
    return x.aval is y.aval
