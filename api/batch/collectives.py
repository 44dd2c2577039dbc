"""Collectives over the axis name of a `vmap`: psum, pmax, all_gather, all_to_all, ppermute and their like.

All take pytrees. An axis is named by any hashable that is neither a number nor a tuple; several axes by a tuple of
names, the first of which varies slowest. `axis_index_groups` are lists of positions along the one axis, all of one
length, each position in one of them: examples then deal with those of their group only.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import axes, dtypes, pytree
from tapeless.tracer.primitives import collective as c
from tapeless.tracer.primitives import reduction
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim
from tapeless.tracer.primitives.operands import canonical_axes, canonical_axis, ndim, shape_of
from tapeless.tracer.primitives.shape import expand_dims, pad, reshape, squeeze
from tapeless.tracer.types import aval_of, exact, is_arraylike

Groups = Sequence[Sequence[int]] | None


class _NamedAxes(NamedTuple):
    """The named axes of a call, their sizes, and how many examples deal with one another."""

    names: tuple[Hashable, ...]
    sizes: tuple[int, ...]
    members: int
    groups: tuple[tuple[int, ...], ...] | None


# ---- reductions ----------------------------------------------------------------------------------------------


def psum(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Sum over the examples of a named axis, the same for all of them. Booleans are summed as int32.

    Args:
      x: a pytree of arrays; of a number, the result is a number: `psum(1, "i")` is the size of the axis.
      axis_name: a name or several; an int among them is an axis of x itself, which is summed over and dropped.
      axis_index_groups: sum within groups only.
    Returns: the structure and shapes of x.
    Raises: NameError if no `vmap` around has the name; ValueError for wrong groups; TypeError for what is no array.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: x / psum(x, "i"), axis_name="i")(tnp.arange(4.0))
    Array([0.        , 0.16666667, 0.33333334, 0.5       ], dtype=float32)
    """
    positions, axis = _split("psum", axis_name, axis_index_groups)
    return _each("psum", lambda leaf: _sum(leaf, positions, axis), x)


def _sum(x: Any, positions: Sequence[int], axis: _NamedAxes) -> Any:
    if isinstance(x, (bool, int, float, complex)) and not positions:
        return x * axis.members
    if dtypes.is_bool(aval_of(x).dtype):
        x = convert_element_type(x, np.int32)
    return _reduced(x, reduction.reduce_sum, c.psum, positions, axis)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Compute the mean over the examples of a named axis, the same for all of them: see `psum`.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(tnp.arange(3.0))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    if _positions(axis_name):
        raise TypeError(f"pmean: takes names of axes, not {axis_name!r}; use tnp.mean for axes of the array itself.")
    n = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return pytree.tree_map(lambda total: total / n, psum(x, axis_name, axis_index_groups=axis_index_groups))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Compute the maximum over the examples of a named axis, elementwise, the same for all of them: see `psum`.

    Examples that share the maximum share its derivative equally.
    """
    positions, axis = _split("pmax", axis_name, axis_index_groups)
    return _each("pmax", lambda leaf: _reduced(leaf, reduction.reduce_max, c.pmax, positions, axis), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Compute the minimum over the examples of a named axis, elementwise, the same for all of them: see `pmax`."""
    positions, axis = _split("pmin", axis_name, axis_index_groups)
    return _each("pmin", lambda leaf: _reduced(leaf, reduction.reduce_min, c.pmin, positions, axis), x)


def _reduced(x: Any, within: Callable[..., Any], across: Callable[..., Any], positions: Any, axis: _NamedAxes) -> Any:
    """Reduce an array over axes of its own, then over named axes."""
    own = within(x, canonical_axes(positions, ndim(x))) if positions else x
    return across(own, axis.names, axis.groups)


# ---- gathering and scattering --------------------------------------------------------------------------------


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Collect the values of all examples of a named axis, for each example.

    Args:
      x: a pytree of arrays.
      axis: where the values are stacked in the results; if `tiled`, the axis along which they are joined.
      to: accepted as "varying" only; other values are about arrays that are spread over devices.
    Returns: arrays with one axis more, of the size of the named one (or of the group), at `axis`; if `tiled`, with
      `axis` that many times as long.
    Raises: NameError if no `vmap` around has the name; ValueError for wrong groups or if `axis` is out of range.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: all_gather(x, "i"), axis_name="i")(tnp.arange(2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to != "varying":
        raise NotImplementedError(f"all_gather: to={to!r} is not supported, only to='varying'.")
    over = _axis("all_gather", axis_name, axis_index_groups)

    def gathered(leaf: Any) -> Any:
        at = canonical_axis(axis, ndim(leaf) + (not tiled))
        joined = leaf if tiled else expand_dims(leaf, (at,))
        for name, n in reversed(_singly(over)):
            joined = c.all_gather(joined, (name,), n, at, over.groups)
        return joined

    return _each("all_gather", gathered, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Groups = None, tiled: bool = False
) -> Any:
    """Sum over the examples of a named axis, and give each example its part of the sum.

    Args:
      x: a pytree of arrays.
      scatter_dimension: the axis along which the sum is cut into as many parts as there are examples (in the group).
      tiled: whether parts keep that axis; if not, parts have length 1 and are given without it.
    Raises: NameError if no `vmap` around has the name; ValueError if the axis cannot be cut so, both sizes named.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(tnp.arange(4).reshape(2, 2))
    Array([2, 4], dtype=int32)
    """
    over = _axis("psum_scatter", axis_name, axis_index_groups)

    def scattered(leaf: Any) -> Any:
        at = canonical_axis(scatter_dimension, ndim(leaf), "scatter_dimension")
        _check_cut("psum_scatter", leaf, at, over, tiled)
        part = leaf
        for name, n in _singly(over):
            part = c.psum_scatter(part, (name,), n, at, over.groups)
        return part if tiled else squeeze(part, (at,))

    return _each("psum_scatter", scattered, x)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Any:
    """Exchange parts between examples: each splits its value, sends one part to every example, and joins its parts.

    Args:
      x: a pytree of arrays.
      split_axis: the axis that is cut into as many parts as there are examples (in the group).
      concat_axis: where what was received is stacked in the results; if `tiled`, the axis along which it is joined.
      tiled: whether parts keep `split_axis`; if not, they have length 1 and are given without it.
    Raises: NameError if no `vmap` around has the name; ValueError if the axis cannot be cut so, both sizes named.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(tnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    over = _axis("all_to_all", axis_name, axis_index_groups)

    def exchanged(leaf: Any) -> Any:
        cut = canonical_axis(split_axis, ndim(leaf), "split_axis")
        join = canonical_axis(concat_axis, ndim(leaf), "concat_axis")
        _check_cut("all_to_all", leaf, cut, over, tiled)
        if tiled or cut == join:
            return _exchanged(leaf, over, cut, join)
        join += cut < join  # it counts in the result, where the axis that is cut is gone
        cut += join <= cut
        return squeeze(_exchanged(expand_dims(leaf, (join,)), over, cut, join), (cut,))

    return _each("all_to_all", exchanged, x)


def _exchanged(x: Any, over: _NamedAxes, cut: int, join: int) -> Any:
    """`all_to_all` that keeps the rank. For several names, one after the other: parts are cut by each name, on an axis
    of its own, and joined from the last name to the first, so that the first varies slowest."""
    k = len(over.names)
    if k == 1:
        return c.all_to_all(x, over.names, over.members, cut, join, over.groups)
    shape = shape_of(x)
    x = reshape(x, (*shape[:cut], *over.sizes, shape[cut] // over.members, *shape[cut + 1 :]))
    for i in reversed(range(k)):
        place = cut + i if join == cut else join + k * (join > cut)
        x = c.all_to_all(x, (over.names[i],), over.sizes[i], cut + i, place)
    shape = shape_of(x)
    return reshape(x, (*shape[:cut], math.prod(shape[cut : cut + k + 1]), *shape[cut + k + 1 :]))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Groups = None) -> Any:
    """Exchange a named axis with an axis of the arrays: `all_to_all(x, axis_name, axis, axis)`."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _check_cut(who: str, x: Any, axis: int, over: _NamedAxes, tiled: bool) -> None:
    aval, n = aval_of(x), over.members
    names = " and ".join(map(repr, over.names))
    if tiled and aval.shape[axis] % n:
        raise ValueError(f"{who}: axis {axis} of {aval} is not divisible by {n}, the number of examples of {names}.")
    if not tiled and aval.shape[axis] != n:
        raise ValueError(
            f"{who}: axis {axis} of {aval} has length {aval.shape[axis]}, but there are {n} examples of {names}.\n"
            "  Make them equal, or use tiled=True for parts of another length than 1."
        )


# ---- permutation and position --------------------------------------------------------------------------------


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send the value of each example to another example.

    Args:
      x: a pytree of arrays.
      perm: pairs (from, to) of positions along the axis, no sender and no receiver twice. Those that nothing is sent to
        get zeros.
    Raises: NameError if no `vmap` around has the name; ValueError for wrong pairs.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(tnp.array([5, 6, 7]))
    Array([0, 5, 6], dtype=int32)
    """
    over = _axis("ppermute", axis_name, None)
    pairs = tuple((int(start), int(to)) for start, to in perm)
    for positions in zip(*pairs):
        if len(set(positions)) < len(pairs) or not all(0 <= i < over.members for i in positions):
            raise ValueError(
                f"ppermute: perm must have each sender and each receiver once, all of 0 to {over.members - 1}, "
                f"not {list(pairs)}."
            )
    if len(over.names) == 1:
        return _each("ppermute", lambda leaf: c.ppermute(leaf, over.names, over.members, pairs), x)
    return _each("ppermute", lambda leaf: _received(leaf, over, pairs), x)


def _received(x: Any, over: _NamedAxes, pairs: tuple[tuple[int, int], ...]) -> Any:
    """Permute over several axes: gather everything, and look the sender up; without a sender, zeros."""
    sender = np.full(over.members, over.members, np.int32)
    for start, to in pairs:
        sender[to] = start
    everything = all_gather(x, over.names)
    padded = pad(everything, exact(0, aval_of(x).dtype), [(0, 1, 0), *[(0, 0, 0)] * ndim(x)])
    mine = dynamic_index_in_dim(sender, axis_index(over.names), keepdims=False)
    return dynamic_index_in_dim(padded, mine, keepdims=False)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Send to every example i the value of example `perm[i]`; `perm` is a permutation of positions: see `ppermute`."""
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"pshuffle: perm must be a permutation of 0 to {axis_size(axis_name) - 1}, not {list(perm)}.")
    return ppermute(x, axis_name, [(start, to) for to, start in enumerate(perm)])


def axis_index(axis_name: Any) -> Any:
    """Return the position along a named axis, an int32 counted from 0. Of several names, the first varies slowest.

    Raises: NameError if no `vmap` around has the name.

    >>> import tapeless as tl
    >>> tl.vmap(lambda: axis_index("i"), axis_name="i", axis_size=3)()
    Array([0, 1, 2], dtype=int32)
    """
    over = _axis("axis_index", axis_name, None)
    index: Any = np.zeros((), np.int32)
    for k, (name, n) in enumerate(_singly(over)):
        one = c.axis_index((name,), n)
        index = index * n + one if k else one
    return index


def axis_size(axis_name: Any) -> int:
    """Return the size of a named axis; of several names, the product.

    Raises: NameError if no `vmap` around has the name.
    """
    return _axis("axis_size", axis_name, None).members


# ---- names and groups ----------------------------------------------------------------------------------------


def _each(who: str, function: Callable[[Any], Any], x: Any) -> Any:
    """Make a function of arrays one of every leaf."""

    def checked(leaf: Any) -> Any:
        if not is_arraylike(leaf):
            raise TypeError(f"{who}: {leaf!r} of type {type(leaf).__name__} is not an array.")
        return function(leaf)

    return pytree.tree_map(checked, x)


def _listed(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _positions(axis_name: Any) -> tuple[int, ...]:
    """List the axes of the array itself among names."""
    return tuple([name for name in _listed(axis_name) if isinstance(name, int)])


def _split(who: str, axis_name: Any, groups: Groups) -> tuple[tuple[int, ...], _NamedAxes]:
    """Separate axes of the array itself from named axes."""
    positions = _positions(axis_name)
    if positions and groups is not None:
        raise ValueError(f"{who}: axis_index_groups are positions along one named axis, not along {axis_name!r}.")
    return positions, _axis(who, tuple([name for name in _listed(axis_name) if not isinstance(name, int)]), groups)


def _axis(who: str, axis_name: Any, groups: Groups) -> _NamedAxes:
    """Return the named axes, all of them bound, each named once; and the groups, checked."""
    names = _listed(axis_name)
    if any(isinstance(name, int) for name in names):
        raise TypeError(f"{who}: takes names of axes, not {axis_name!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{who}: {axis_name!r} names an axis twice.")
    sizes = tuple([axes.size_of(name, who) for name in names])
    members = math.prod(sizes)
    if groups is None:
        return _NamedAxes(names, sizes, members, None)
    checked = _groups(who, names, members, groups)
    return _NamedAxes(names, (len(checked[0]),), len(checked[0]), checked)


def _groups(who: str, names: Sequence[Any], size: int, groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    found = tuple([tuple(map(int, group)) for group in groups])
    if len(names) != 1:
        raise ValueError(f"{who}: axis_index_groups are positions along one named axis, not along {tuple(names)}.")
    if sorted(i for group in found for i in group) != list(range(size)) or len(set(map(len, found))) != 1:
        raise ValueError(
            f"{who}: axis_index_groups must have each position of the axis {names[0]!r} of size {size} once, in groups "
            f"of one length, not {list(map(list, found))}."
        )
    return found


def _singly(axis: _NamedAxes) -> list[tuple[Hashable, int]]:
    """Return names and sizes: of the group, if there is one."""
    return list(zip(axis.names, axis.sizes, strict=True))
