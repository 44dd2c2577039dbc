"""Read arrays in bodies: `A[i, 2 * j + 1]` is an `ein`, an array of positions a gather; elements outside are 0."""

from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.indices.hints import note
from tapeless.tracer.indices.index import Index, TermForm, elements_of, in_array, name_of, of_value, stays
from tapeless.tracer.keys import prng_keys
from tapeless.tracer.numpy.index_plan import plan_index
from tapeless.tracer.numpy.indexing import read_plan as read_plan
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.primitives.indexing import GatherScatterMode
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Lookup, Read, term


def read(x: Array, index: Any) -> Any:
    """Compute x[index] as an `ein`, where an item of the index is an `Index`.

    Returns: the elements, 0 where an index is outside of its axis; an integer of rank 0 is an `Index` again.
    Raises: IndexError for numbers outside of an axis, and for too many items; TypeError for items that are no index.
    """
    items = _completed(index if isinstance(index, tuple) else (index,), x)
    if dtypes.is_key(x.dtype):
        return prng_keys.wrap_key_data(read(prng_keys.key_data(x), (*items, slice(None))))
    form, out, shape, access = TermForm(x), list[Affine](), list[int](), list[Affine]()
    for item in items:
        if item is None:
            out.append(Affine())
            shape.append(1)
        elif isinstance(item, slice):
            start, size, step = _cut(item, x, len(access))
            out.append(form.variable(size))
            shape.append(size)
            access.append(out[-1] * step + start)
        else:
            access.append(_position(form, item, x, len(access)))
    found = term(out, form.sizes, [Read(0, tuple(access))], form.brackets)
    return of_value(ein(form.operands, [found], shape))


def read_at_arrays(x: Array, index: Any) -> Array:
    """Compute x[index] as a gather, where items of the index are arrays of positions; 0 where one is outside or < 0.

    Raises: IndexError for known positions outside of an axis.
    """
    if dtypes.is_key(x.dtype):
        return prng_keys.wrap_key_data(read_at_arrays(prng_keys.key_data(x), index))
    plan, positions = plan_index(x.aval, index, wrap=False)
    return read_plan(x, plan, positions, GatherScatterMode.FILL_OR_DROP, 0)


def _completed(items: tuple[Any, ...], x: Array) -> list[Any]:
    """Replace `...`, or axes that are left out at the end, by whole slices. Raises: IndexError for too many items."""
    missing = x.ndim - sum(item is not None and item is not Ellipsis for item in items)
    if missing < 0:
        raise IndexError(f"{x.ndim - missing} indices for an array of {x.ndim} axes, {x.aval}.")
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{len(dots)} ellipses in an index of {x.aval}: there can be one.")
    place = dots[0] if dots else len(items)
    return [*items[:place], *[slice(None)] * missing, *items[place + 1 :]]


def _cut(item: slice, x: Array, axis: int) -> tuple[int, int, int]:
    """Return start, size and step of a slice. Raises: TypeError if an end is an `Index`."""
    if any(isinstance(end, Index) for end in (item.start, item.stop, item.step)):
        raise TypeError(
            f"the size of a slice of {x.aval} along axis {axis} depends on an index: shapes are known when tracing. "
            "Read elements: build(m, lambda k: A[i + k])."
        )
    taken = range(x.shape[axis])[item]
    return taken.start, len(taken), taken.step


def _position(form: TermForm, item: Any, x: Array, axis: int) -> Affine:
    n = x.shape[axis]
    item = of_value(item)
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return Affine(_known(int(item), x, axis))
    if not isinstance(item, Index):
        what = f"an array of type {item.aval}" if isinstance(item, Array) else f"{type(item).__name__} {item!r}"
        raise TypeError(
            f"axis {axis} of {x.aval} is read by {what} beside an index: items are indices, integers, slices, None and "
            "`...`."
        )
    note(x, axis, name_of(item), stays=stays(item))
    item = in_array(item, n)
    elements = list(elements_of(item))
    if not elements:
        return form.affine(item)
    position = form.variable(n)
    if len(elements) == 1 and abs(elements[0][1]) == 1:
        element, k = elements[0]
        rest = Index(item.constant, {p: c for p, c in item.parts.items() if p is not element})
        form.brackets.append(Lookup((position - form.affine(rest)) * k, form.operand(element.value), ()))
    else:
        form.brackets.append(Lookup(position, form.operand(item.position), ()))
    return position


def _known(i: int, x: Array, axis: int) -> int:
    if not 0 <= i < x.shape[axis]:
        raise IndexError(f"index {i} is outside of axis {axis} of {x.aval}.")
    return i
