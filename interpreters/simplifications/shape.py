"""Composition of shape operations: params of the operation that equals two in a row. Rows of rewrites.py name these."""

from collections.abc import Iterable, Sequence

import numpy as np

from tapeless.tracer.jaxpr import Atom, Literal

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
    """Return the starts of the slice that equals a pad which only cuts."""
    return tuple([-lo for lo, _, _ in config])


def cut_after(shape: Ints, config: Config) -> Ints:
    """Return the limits of the slice that equals a pad which only cuts."""
    return tuple([n + hi for n, (_, hi, _) in zip(shape, config)])
