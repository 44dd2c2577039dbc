"""Views: which elements of a value are read, and where they stand in what is read.

Along each axis of the value the index is a start, plus steps along one axis of the result or along none. Slices,
diagonals, permutations, reshapes and any of these after another are views; where several axes of the value go along one
axis of the result, it is a diagonal, and an axis of the result that none goes along repeats.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from tapeless.interpreters.simplify import Writer, literal
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.types import ShapedArray

Shape = tuple[int, ...]


class Axis(NamedTuple):
    """Index along an axis of the value: `start` plus `step` times that along axis `along` of the result, if any.

    A window of `window` elements that begins at `base`, moved inside, is what it is the index in, if there is a base.
    """

    start: int
    step: int
    along: int | None
    base: Atom | None = None
    window: int = 0


class View(NamedTuple):
    """Elements of a value in another shape: an `Axis` for each axis of the value."""

    axes: tuple[Axis, ...]
    shape: Shape

    @property
    def size(self) -> int:
        """Number of elements of the result."""
        return prod(self.shape)

    @property
    def is_diagonal(self) -> bool:
        """Tell whether several axes of the value go along one axis of the result."""
        along = [a.along for a in self.axes if a.along is not None]
        return len(set(along)) < len(along)


def whole(shape: Shape) -> View:
    """All of a value, as it is."""
    return View(tuple([Axis(0, 1, d) for d in range(len(shape))]), shape)


def of_slice(shape: Shape, starts: Sequence[int], strides: Sequence[int]) -> View:
    """A slice, whose result has this shape."""
    return _normal(View(tuple([Axis(a, n, d) for d, (a, n) in enumerate(zip(starts, strides))]), shape))


def of_dynamic_slice(x: ShapedArray, starts: Sequence[Atom], sizes: Shape) -> View:
    """A window at starts that are computed, or known."""
    axes = [
        Axis(0, 1, d, start, size) if known is None else Axis(known, 1, d)
        for d, (known, start, size) in enumerate(zip(known_starts(starts, x.shape, sizes), starts, sizes))
    ]
    return _normal(View(tuple(axes), sizes))


def known_starts(starts: Sequence[Atom], shape: Shape, sizes: Shape) -> tuple[int | None, ...]:
    """Clamp the start of a window along each axis so that it is inside; None for each one not known."""
    rooms = [n - size for n, size in zip(shape, sizes)]
    return tuple([_inside(start, room) for start, room in zip(starts, rooms)])


def known_window(starts: Sequence[Atom], shape: Shape, sizes: Shape) -> Shape | None:
    """Clamp the starts of a window so that it is inside; None if any of them is not known."""
    known = tuple([start for start in known_starts(starts, shape, sizes) if start is not None])
    return known if len(known) == len(shape) else None


def _inside(start: Atom, room: int) -> int | None:
    if room == 0:
        return 0
    return min(max(int(start.value), 0), room) if type(start) is Literal else None


def of_transpose(shape: Shape, permutation: Sequence[int]) -> View:
    """A permutation of the axes of a value of this shape."""
    axes = [Axis(0, 1, permutation.index(d)) for d in range(len(shape))]
    return _normal(View(tuple(axes), tuple([shape[i] for i in permutation])))


def then(inner: View, outer: View, n: Shape) -> View | None:
    """The view of a value of shape n that `outer` has of the result of `inner`; None if that is none."""
    axes = []
    for size, a in zip(n, inner.axes):
        if a.along is None:
            axes.append(a)
            continue
        b = outer.axes[a.along]
        if b.base is None:
            axes.append(Axis(a.start + a.step * b.start, a.step * b.step, b.along, a.base, a.window))
        elif a.base is None and a.step == 1 and a.start == 0 and inner.shape[a.along] == size:
            axes.append(b)
        else:
            return None
    return _normal(View(tuple(axes), outer.shape))


def through_reshape(before: Shape, after: Shape, view: View) -> View | None:
    """The view of a value of shape `before` that `view` has of it reshaped to `after`; None if that is none."""
    if not prod(before):
        return None
    axes: list[Axis] = []
    for n_before, n_after in reshape_groups(before, after):
        found = _regrouped(before[n_before], after[n_after], view.axes[n_after], view.shape)
        if found is None:
            return None
        axes += found
    return _normal(View(tuple(axes), view.shape))


def _normal(view: View) -> View:
    """Along an axis of length 1 there are no steps."""
    moves = [a.along is not None and view.shape[a.along] != 1 for a in view.axes]
    axes = [a if moving else a._replace(step=1, along=None) for a, moving in zip(view.axes, moves)]
    return View(tuple(axes), view.shape)


def reshape_groups(before: Shape, after: Shape) -> list[tuple[slice, slice]]:
    """Axes that become axes, least groups of them at a time, of equal sizes; of nothing, all of them at once."""
    if 0 in before:
        return [(slice(len(before)), slice(len(after)))]
    groups, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        i_end, j_end = min(i + 1, len(before)), min(j + 1, len(after))
        while (a := prod(before[i:i_end])) != (b := prod(after[j:j_end])):
            i_end, j_end = (i_end + 1, j_end) if a < b else (i_end, j_end + 1)
        groups.append((slice(i, i_end), slice(j, j_end)))
        i, j = i_end, j_end
    return groups


def _regrouped(before: Shape, after: Shape, axes: Sequence[Axis], shape: Shape) -> list[Axis] | None:
    """Indices along axes `before`, from those along axes `after` that they were reshaped to."""
    if before == after:
        return list(axes)
    if [n for n in before if n != 1] == [n for n in after if n != 1]:
        left = iter([a for a, n in zip(axes, after) if n != 1])
        return [Axis(0, 1, None) if n == 1 else next(left) for n in before]
    moving = {a.along for a in axes} - {None}
    if len(moving) > 1 or any(a.base is not None for a in axes):
        return None
    strides = [prod(after[k + 1 :]) for k in range(len(after))]
    start = sum(a.start * n for a, n in zip(axes, strides))
    step = sum(a.step * n for a, n in zip(axes, strides) if a.along is not None)
    if not moving:
        return [Axis(digit, 1, None) for digit in _digits(start, before)]
    along = moving.pop()
    count = shape[along]  # type: ignore[index]
    first, steps = _digits(start, before), _digits(step, before)
    if any(a + b * (count - 1) >= n for a, b, n in zip(first, steps, before)):
        return None
    return [Axis(a, b or 1, along if b else None) for a, b in zip(first, steps)]


def _digits(number: int, shape: Shape) -> list[int]:
    """The index of an element by its number in row-major order."""
    digits = []
    for n in reversed(shape):
        number, digit = divmod(number, n)
        digits.append(digit)
    return digits[::-1]


# ---- as operations -------------------------------------------------------------------------------------------


def read(w: Writer, x: Atom, view: View) -> Atom:
    """The operations that read a view of a value."""
    axes = view.axes
    x, axes = _window(w, x, axes)
    counts = tuple([1 if a.along is None else view.shape[a.along] for a in axes])
    x = _sliced(w, x, axes, counts)
    along = [a.along for a in axes]
    x, along = _diagonal(w, x, along)
    kept = [a for a in along if a is not None]
    x = w.write(s.reshape_p, x, shape=tuple([view.shape[a] for a in kept]))
    x = w.write(s.transpose_p, x, permutation=argsort(kept))
    return spread(w, x, tuple(sorted(kept)), view.shape)


def spread(w: Writer, x: Atom, dims: Shape, shape: Shape) -> Atom:
    """A value broadcast to a shape in which its axes are `dims`; by a reshape, if that does."""
    if prod(shape) == prod(x.aval.shape):
        return w.write(s.reshape_p, x, shape=shape)
    return w.write(s.broadcast_in_dim_p, x, shape=shape, dims=dims)


def _window(w: Writer, x: Atom, axes: Sequence[Axis]) -> tuple[Atom, Sequence[Axis]]:
    if all(a.base is None for a in axes):
        return x, axes
    index = next(a.base.aval for a in axes if a.base is not None)
    starts = [_first(index) if a.base is None else a.base for a in axes]
    sizes = tuple([n if a.base is None else a.window for a, n in zip(axes, x.aval.shape)])
    return w.write(dynamic_slice_p, x, *starts, slice_sizes=sizes), [a._replace(base=None) for a in axes]


def _first(index: ShapedArray) -> Any:
    return literal(0, index)


def _sliced(w: Writer, x: Atom, axes: Sequence[Axis], counts: Shape) -> Atom:
    starts = tuple([a.start for a in axes])
    steps = tuple([a.step if n > 1 else 1 for a, n in zip(axes, counts)])
    limits = tuple([a + step * (n - 1) + 1 for a, step, n in zip(starts, steps, counts)])
    if not any(starts) and limits == x.aval.shape and all(n == 1 for n in steps):
        return x
    return w.write(s.slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)


def _diagonal(w: Writer, x: Atom, along: list[int | None]) -> tuple[Atom, list[int | None]]:
    """Axes that go along the same axis of the result made one."""
    for shared in {a for a in along if a is not None and along.count(a) > 1}:
        group = [k for k, a in enumerate(along) if a == shared]
        others = [k for k in range(len(along)) if k not in group]
        x = w.write(s.transpose_p, x, permutation=(*others, *group))
        n, shape = x.aval.shape[-1], x.aval.shape[: len(others)]
        x = w.write(s.reshape_p, x, shape=(*shape, n ** len(group)))
        step = sum(n**p for p in range(len(group)))
        x = _sliced(w, x, [*[Axis(0, 1, 0) for _ in others], Axis(0, step, 0)], (*shape, n))
        along = [*[along[k] for k in others], shared]
    return x, along
