"""Batching rules of primitives.

A rule is given the operands and where the mapped axis of each is, None for those that all examples share; it gives the
results and where their mapped axes are.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tapeless.custom.primitives import Registry
from tapeless.interpreters import vmap
from tapeless.interpreters.vmap import align_operand, example_shape
from tapeless.tracer.user_primitives import Rule, UserPrimitive

not_mapped = None  # in the place of an axis: the operand is the same for all examples


class AxisData(NamedTuple):
    """The mapped axis: its size, and its name, or None."""

    size: int
    name: Any


def _of_values(primitive: UserPrimitive, rule: Rule) -> Rule:
    return lambda size, name, args, dims, /, **params: rule(args, dims, **params)


def _of_axis(primitive: UserPrimitive, rule: Rule) -> Rule:
    return lambda size, name, args, dims, /, **params: rule(size, name, None, args, dims, **params)


def _of_axis_data(primitive: UserPrimitive, rule: Rule) -> Rule:
    return lambda size, name, args, dims, /, **params: rule(AxisData(size, name), args, dims, **params)


primitive_batchers: Final = Registry("batching", _of_values)  # rule(args, dims, **params) -> results, dims
axis_primitive_batchers: Final = Registry("batching", _of_axis)  # rule(size, name, None, args, dims, **params)
fancy_primitive_batchers: Final = Registry("batching", _of_axis_data)  # rule(AxisData, args, dims, **params)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Return `x` with the mapped axis first, repeated `size` times if it has none."""
    return vmap.move_mapped_axis_first(x, bdim, size)


def broadcast(x: Any, sz: int, axis: int) -> Any:
    """Return `x` repeated `sz` times along a new axis at `axis`."""
    return vmap.move_mapped_axis(x, None, axis, sz)


def defvectorized(prim: Any) -> None:
    """Say that a primitive treats all axes alike, and that its operands have their mapped axes in one place.

    Raises: when it is mapped, ValueError if they have not, or if only some are mapped: see `defbroadcasting`.
    """

    def rule(args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
        if len(set(dims)) > 1:
            raise ValueError(f"{prim}: its operands are mapped along different axes, {tuple(dims)}.")
        return _with_dims(prim, prim.bind(*args, **params), dims[0])

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Any) -> None:
    """Say that a primitive works elementwise on operands of one shape, or scalars."""

    def rule(axis: AxisData, args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
        shape = max((example_shape(x, d) for x, d in zip(args, dims)), key=len)
        given = [align_operand(x, d, axis.size, shape) for x, d in zip(args, dims)]
        return _with_dims(prim, prim.bind(*given, **params), 0)

    fancy_primitive_batchers[prim] = rule


def _with_dims(prim: Any, out: Any, dim: int) -> Any:
    return (out, [dim] * len(out)) if prim.multiple_results else (out, dim)
