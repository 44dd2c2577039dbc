"""Applications of unknown functions, which have a name but no values, and of their derivatives.

Search terms: uninterpreted function, abstract function. `orders` are the numbers of the arguments that a function is
differentiated by, in increasing order, as derivatives commute; the axes of each such argument follow those of the
result. Axes of arguments in front of those that the function takes are batch axes.
"""

from typing import Any, Final

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.types import ShapedArray

DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def opaque(
    name: str, ranks: tuple[int, ...], shape: tuple[int, ...], *xs: ArrayLike, orders: tuple[int, ...] = ()
) -> Array:
    """Apply an unknown function, or one of its derivatives.

    Args:
      ranks: of the arguments of the function.
      shape: of its result.
      xs: [*batch, *argument] for each argument, real numbers of one dtype.
      orders: numbers of the arguments that it is differentiated by.
    Returns: [*batch, *shape, *argument for each of orders].
    """
    return opaque_p.bind(*xs, function=name, ranks=ranks, shape=shape, orders=tuple(sorted(orders)))[0]


def _opaque_type(
    *xs: ShapedArray, function: str, ranks: tuple[int, ...], shape: tuple[int, ...], orders: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    if len(xs) != len(ranks):
        raise TypeError(f"{function} is a function of {len(ranks)} arguments, not of {len(xs)}.")
    for k, (x, rank) in enumerate(zip(xs, ranks)):
        if x.ndim < rank:
            raise TypeError(f"{function}: argument {k} is {x}, of which the function takes {rank} axes.")
        if not dtypes.is_float(x.dtype) or x.dtype != xs[0].dtype:
            raise TypeError(f"{function}: arguments are real numbers of one dtype, not {', '.join(map(str, xs))}.")
    batches = [x.shape[: x.ndim - rank] for x, rank in zip(xs, ranks)]
    if len(set(batches)) != 1:
        raise TypeError(f"{function}: the axes in front of those of the function differ, {', '.join(map(str, xs))}.")
    behind = [n for k in orders for n in core_shape(xs[k], ranks[k])]
    return (ShapedArray((*batches[0], *shape, *behind), xs[0].dtype),)


def core_shape(x: Any, rank: int) -> tuple[int, ...]:
    """Return the shape of x without batch axes, that is, its last `rank` sizes."""
    return x.shape[len(x.shape) - rank :]


opaque_p: Final = Primitive("opaque", _opaque_type, registered=False)


def derivative_name(name: str, ranks: tuple[int, ...], orders: tuple[int, ...], *, is_latex: bool = False) -> str:
    """Name a derivative of a function: `f''` of a number, `∇R` of an array, `∂₁∂₂L` of several arguments."""
    if len(ranks) > 1:
        marks = [rf"\partial_{{{k + 1}}}" if is_latex else f"∂{str(k + 1).translate(DIGITS)}" for k in orders]
        return "".join(marks) + (" " if is_latex and marks else "") + name
    if ranks != (0,):
        return (r"\nabla " if is_latex else "∇") * len(orders) + name
    n = len(orders)
    if n > 3:
        return f"{name}^{{({n})}}" if is_latex else f"{name}^({n})"
    return name + "'" * n


def source_name(name: str, ranks: tuple[int, ...], orders: tuple[int, ...]) -> str:
    """Name a derivative as a variable of Python: `d_R`, `d1_d2_L`."""
    return "".join([f"d{k + 1 if len(ranks) > 1 else ''}_" for k in orders]) + name
