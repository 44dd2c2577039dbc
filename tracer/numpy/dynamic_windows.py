"""Index windows of known size whose start may be traced (dynamic slices): `x[tl.ds(i, n)]`, `x.at[tl.ds(i, n)]`."""

import operator
from typing import Any, ClassVar, Final

import numpy as np

from tapeless.tracer import pytree
from tapeless.tracer.array import Array
from tapeless.tracer.numpy.index_plan import axes_used
from tapeless.tracer.primitives.elementwise import convert_element_type, select
from tapeless.tracer.primitives.indexing import dynamic_slice_in_dim
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.shape import full, iota, reshape
from tapeless.tracer.primitives.shape import slice as cut_out
from tapeless.tracer.types import ShapedArray


@pytree.register_pytree_node_class
class Slice:
    """A window as an index: the `size` elements start, start + stride, .., clamped to lie inside of the array.

    A node of pytrees, whose leaves are the start and the size if they are arrays.
    """

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        if stride < 1:
            raise ValueError(f"ds: the stride must be at least 1, not {stride}.")
        self.start: Final = start
        self.size: Final = size
        self.stride: Final = stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slice):
            return NotImplemented
        return (self.start, self.size, self.stride) == (other.start, other.size, other.stride)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # arrays, which `start` may be, have no hash

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return start and size, None for an int, as children; and the ints with the stride as static data."""
        parts = (self.start, self.size)
        known = tuple(x if isinstance(x, int) else None for x in parts)
        return tuple(None if isinstance(x, int) else x for x in parts), (*known, self.stride)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "Slice":
        """Rebuild the window from `tree_flatten`'s static data and children."""
        start, size = (k if x is None else x for x, k in zip(children, aux[:2], strict=True))
        return cls(start, size, aux[2])

    def window_of(self, x: Array, axis: int) -> Array:
        """Return the window of x along an axis.

        Raises: TypeError if the size is traced, or the start no integer; ValueError if it is longer than the axis.
        """
        size = self._checked_size(x.aval, axis)
        window = dynamic_slice_in_dim(x, self.start, max(size - 1, 0) * self.stride + min(size, 1), axis)
        if self.stride == 1:
            return window
        steps = [self.stride if d == axis else 1 for d in range(x.ndim)]
        return cut_out(window, (0,) * x.ndim, window.shape, steps)

    def is_inside(self, n: int) -> Any:
        """Tell whether the window lies inside of an axis of n elements as it is, before its start is clamped."""
        first = self.start if isinstance(self.start, Array) else np.asarray(self.start)
        last = first + (operator.index(self.size) - 1) * self.stride
        return (first >= 0) & (last < n)

    def _checked_size(self, aval: ShapedArray, axis: int) -> int:
        if not isinstance(self.size, int) and known_elements(self.size) is None:
            raise TypeError(f"ds: the size of a window must be known, that for axis {axis} of {aval} is traced.")
        size = operator.index(self.size)
        if not 0 <= (size - 1) * self.stride < max(aval.shape[axis], 1) and size:
            raise ValueError(f"ds: axis {axis} of {aval} has no window of {size} elements, {self.stride} apart.")
        return size


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """Make an index for a window of `size` elements from `start` on; `start` may be traced (dynamic slice).

    `x[ds(start, size)]` is `x[start : start + size]`, except that a window that would reach beyond the array is moved
    inside, as by `lax.dynamic_slice`; `x.at[...]` drops what is written to such a window, as in JAX.

    Args:
      start: an integer. In reading, negative ones count from the end; in writing they are outside. `ds(size)` starts
        at 0, `ds(None)` is the whole axis.
      size: a known integer.
      stride: the distance of the positions, 1 if None.
    Returns: a slice, or a `Slice`.
    Raises: ValueError if the stride is not positive.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.jit(lambda x, i: x[ds(i, 2)])(tnp.arange(5), 3)
    Array([3, 4], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else operator.index(stride))


# ---- in indices ----------------------------------------------------------------------------------------------


def without_windows(x: Array, index: Any) -> tuple[Array, tuple[Any, ...]]:
    """Cut the windows of an index out of x; return the result, and the index with a full slice for each window."""
    found = _windows(x.ndim, index)
    for axis, window in found.items():
        x = window.window_of(x, axis)
    given = index if isinstance(index, tuple) else (index,)
    return x, tuple(slice(None) if isinstance(item, Slice) else item for item in given)


def places(aval: ShapedArray, index: Any, moved: bool) -> Array:
    """Return the flat positions of the elements that an index names, in the shape of the indexed part.

    Args:
      moved: whether windows that reach beyond the array are moved inside; else all their elements have the position
        `aval.size`, which is outside.
    """
    dtype = np.dtype("int32" if aval.size <= np.iinfo(np.int32).max else "int64")
    numbers = reshape(iota(dtype, aval.size), aval.shape)
    part, rest = without_windows(numbers, index)
    found = part[rest]
    if moved:
        return found
    inside: Any = np.asarray(True)
    for axis, window in _windows(aval.ndim, index).items():
        inside = inside & window.is_inside(aval.shape[axis])
    return select(full(found.shape, inside), found, full(found.shape, convert_element_type(aval.size, dtype)))


def _windows(ndim: int, index: Any) -> dict[int, Slice]:
    """Map the axes of the array to the windows that index them. Raises: IndexError for too many indices."""
    given = index if isinstance(index, tuple) else (index,)
    lengths = [1 if isinstance(item, Slice) else axes_used(item) for item in given]
    axis, found = 0, dict[int, Slice]()
    for item, n in zip(given, lengths, strict=True):
        if isinstance(item, Slice):
            found[axis] = item
        axis += ndim - sum(lengths) if item is Ellipsis else n
    if axis > ndim:
        raise IndexError(f"too many indices: {axis} for the {ndim} axes of an array.")
    return found
