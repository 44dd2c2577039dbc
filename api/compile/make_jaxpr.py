"""Looking at a function without running it: its program, the types of its results."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from inspect import Signature
from numbers import Integral
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import with_result
from tapeless.compile.jit import tracing_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.tracer import axes, pytree
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.references import Ref
from tapeless.tracer.types import is_arraylike

P = ParamSpec("P")
Program = TypeVar("Program", covariant=True)


class TracingFunction(Protocol[P, Program]):
    """A function of the same arguments, or of their types, that gives a program."""

    @overload
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Program: ...
    @overload
    def __call__(self, /, *args: Any, **kwargs: Any) -> Program: ...


@overload
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: Literal[False] = False,
) -> TracingFunction[P, ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> TracingFunction[P, tuple[ClosedJaxpr, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    *,
    return_shape: bool,
) -> TracingFunction[P, Any]: ...
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Make a function that traces `fun` for its arguments, and returns the program in printable form.

    Args:
      static_argnums: arguments that are not arrays.
      axis_env: names of axes with their sizes, for collectives in `fun`, as if `vmap` had named them.
      return_shape: return shapes and dtypes of the results too.
    Returns: a function of the arguments of `fun`, or of their types (`tl.ShapeDtypeStruct`), giving a `ClosedJaxpr`, or
      that and the result's pytree with a ShapeDtypeStruct at each leaf.
    Raises: TypeError if `fun` is no function, or `axis_env` not as above; when called, TypeError if an argument, or a
      result, is no array, ValueError for a static argument that `fun` does not have or that is not hashable; whatever
      tracing `fun` raises.

    >>> make_jaxpr(lambda x: 2 * x)(1.5)
    { lambda a:~f32[]. let
        b:~f32[] = mul 2.0 a
      in b }
    """

    check_callable("make_jaxpr", fun)
    axis: Any
    for axis in axis_env or ():
        if not isinstance(axis, (tuple, list)) or len(axis) != 2 or not isinstance(axis[1], Integral):
            raise TypeError(f"make_jaxpr: axis_env asks for pairs of a name and a size, as ('i', 4), not {axis!r}.")

    def jaxpr(*args: Any, **kwargs: Any) -> Any:
        trace = tracing_of("make_jaxpr", fun, static_argnums).trace
        for name, size in reversed(axis_env or ()):
            trace = partial(axes.binding, name, size, trace)
        traced = trace(*args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    with_result(jaxpr, fun, Signature.empty if return_shape else ClosedJaxpr)
    jaxpr.__name__ = jaxpr.__qualname__ = f"jaxpr_of_{getattr(fun, '__name__', type(fun).__name__)}"
    return jaxpr


def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Compute the shapes and dtypes of the result of `fun`, without running it.

    Args:
      args, kwargs: pytrees of arrays, of `tl.ShapeDtypeStruct`, or of other objects that have `shape` and `dtype`.
    Returns: the result's pytree with a ShapeDtypeStruct at each leaf; `fun` may return some, too.
    Raises: TypeError if `fun` is no function, or an argument, or a result, is no array; whatever tracing `fun` raises.
    """
    args, kwargs = pytree.tree_map(_described, (args, kwargs))
    return tracing_of("eval_shape", fun).trace(*args, **kwargs).out_info


def _described(x: Any) -> Any:
    """Make the ShapeDtypeStruct of an object that is no array, but has its `shape` and `dtype`."""
    if isinstance(x, (np.ndarray, Ref, ShapeDtypeStruct)) or is_arraylike(x):
        return x
    return ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "shape") and hasattr(x, "dtype") else x
