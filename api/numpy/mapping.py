"""Functions of NumPy that apply a user's function to parts of arrays, mapped by `vmap`: see `tapeless.numpy`."""

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any

from tapeless.batch.vmap import vectorize, vmap
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import padding
from tapeless.tracer.numpy.promotion import array_operand
from tapeless.tracer.numpy.shaping import expand_dims, moveaxis, reshape
from tapeless.tracer.numpy.ufuncs import ufunc
from tapeless.tracer.primitives.operands import canonical_axis


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Apply a function of vectors to every vector along an axis, all at once.

    Args:
      func1d: a vector [n], then `args` and `kwargs` -> an array [r..], which `vmap` can map.
      arr: [a.., n, b..].
    Returns: [a.., r.., b..].
    Raises: ValueError if the axis is out of range.
    """
    x = array_operand("apply_along_axis", arr)
    axis = canonical_axis(axis, x.ndim)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    rows = moveaxis(x, axis, -1)
    rows = reshape(rows, (_product(rest), x.shape[axis]))
    found = array_operand("apply_along_axis", vmap(lambda row: func1d(row, *args, **kwargs))(rows))
    found, r = reshape(found, (*rest, *found.shape[1:])), found.ndim - 1
    return moveaxis(found, tuple(range(len(rest), len(rest) + r)), tuple(range(axis, axis + r)))


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """Pad an array; `tapeless.tracer.numpy.pad` describes the modes.

    Args:
      mode: a name, or a function that is mapped over the vectors of the array with margins of 0, axis after axis:
        vector [n], its widths (before, after), the axis, `kwargs` as a dict -> vector [n].
    Raises: as that; ValueError if the function gives another shape than it was given.
    """
    if not callable(mode):
        return padding.pad(array, pad_width, mode, **kwargs)
    x = array_operand("pad", array)
    widths = padding.widths_of(x, pad_width)
    x = padding.pad(x, widths)
    for axis, width in enumerate(widths):
        found = apply_along_axis(mode, axis, x, width, axis, kwargs)
        if found.shape != x.shape:
            raise ValueError(f"pad: {mode!r:.80} made {found.aval} of {x.aval}: it must return each vector, filled.")
        x = found
    return x


def _product(sizes: Sequence[int]) -> int:
    found = 1
    for n in sizes:
        found *= n
    return found


def apply_over_axes(func: Callable[[Array, int], ArrayLike], a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """Apply a reduction of an array and an axis to one axis after another, keeping the axes with length 1.

    Args:
      func: x, axis -> x with this axis reduced, which may be dropped.
    Raises: ValueError if an axis is out of range, or `func` gives other than as many axes or one less.
    """
    x = array_operand("apply_over_axes", a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        given = canonical_axis(axis, x.ndim)
        found = array_operand("apply_over_axes", func(x, given))
        if found.ndim not in (x.ndim, x.ndim - 1):
            raise ValueError(f"apply_over_axes: the function made {found.aval} of {x.aval} over axis {given}.")
        x = found if found.ndim == x.ndim else expand_dims(found, given)
    return x


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make a ufunc from a function of numbers, which is mapped over broadcast arrays.

    Args:
      func: `nin` numbers, arrays without axes -> `nout` of them, a tuple if there are several; traced as by `vmap`.
      identity: an operand that changes nothing, for `reduce`.
    Raises: TypeError if `func` is no function; ValueError if nin or nout is less than 1.
    """
    if not callable(func):
        raise TypeError(f"frompyfunc: {func!r:.80} is no function.")
    if nin < 1 or nout < 1:
        raise ValueError(f"frompyfunc: there must be operands and results, not nin={nin} and nout={nout}.")
    name = getattr(func, "__name__", "frompyfunc")
    return ufunc(vectorize(func), nin, nout, name, identity, _signature_by_name(func, nin))


def _signature_by_name(func: Callable[..., Any], nin: int) -> Signature | None:
    """Make the signature of a ufunc, with the operand names of a function, if it names so many."""
    try:
        parameters = signature(func).parameters.values()
    except (TypeError, ValueError):
        return None
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:nin]
    if len(names) < nin or not {"out", "where"}.isdisjoint(names):
        return None
    operands = [Parameter(name, Parameter.POSITIONAL_ONLY, annotation=ArrayLike) for name in names]
    return Signature([*operands, *[Parameter(k, Parameter.KEYWORD_ONLY, default=None) for k in ("out", "where")]])
