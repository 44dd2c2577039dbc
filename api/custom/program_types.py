"""Programs and their types, for libraries that transform them."""

from collections.abc import Iterator, Sequence
from typing import Any

from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from tapeless.tracer.jaxpr import eval_jaxpr as _eval_jaxpr
from tapeless.tracer.types import ShapedArray, is_arraylike


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply a program, as `make_jaxpr(f)(*args).jaxpr` is one, to its constants and flat arguments."""
    return list(_eval_jaxpr(jaxpr, [*consts, *args]))


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example of an array of type `aval`, whose mapped axis is `axis`; None: it has none.

    Raises: ValueError if that axis has not `size` elements.
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} has {aval.shape[axis]} elements, not {size}.")
    axis %= aval.ndim
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of `size` examples of type `aval` along an axis at `axis`: what `mapped_aval` undoes."""
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Any:
    """Return the function of flat arrays, to a list of them, that a program computes with its constants."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among the params of an equation."""
    return subjaxprs(params)


def valid_jaxtype(x: Any) -> bool:
    """Tell whether `x` is an array or a number that functions of arrays take."""
    return is_arraylike(x)
