"""Looking at a function without running it: its program, the types of its results."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tapeless.arguments.checks import check_callable
from tapeless.compile.jit import tracing_of
from tapeless.tracer.jaxpr import ClosedJaxpr


@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), *, return_shape: Literal[False] = False
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), *, return_shape: Literal[True]
) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), *, return_shape: bool
) -> Callable[..., Any]: ...
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), *, return_shape: bool = False
) -> Callable[..., Any]:
    """Make a function that traces `fun` for its arguments, and returns the program, which can be printed.

    Args:
      static_argnums: arguments that are not arrays.
      return_shape: return shapes and dtypes of the results too.
    Returns: a function of the arguments of `fun`, or of their types (`tl.ShapeDtypeStruct`), giving a `ClosedJaxpr`, or
      that and the result's pytree with a ShapeDtypeStruct at each leaf.
    Raises: TypeError if `fun` is no function; when called, TypeError if an argument, or a result, is no array,
      ValueError for a static argument that `fun` does not have or that is not hashable; whatever tracing `fun` raises.

    >>> make_jaxpr(lambda x: 2 * x)(1.5)
    { lambda a:~f32[]. let
        b:~f32[] = mul 2.0 a
      in b }
    """

    check_callable("make_jaxpr", fun)

    def jaxpr(*args: Any, **kwargs: Any) -> Any:
        traced = tracing_of("make_jaxpr", fun, static_argnums).trace(*args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    functools.update_wrapper(jaxpr, fun, updated=())
    jaxpr.__name__ = jaxpr.__qualname__ = f"jaxpr_of_{getattr(fun, '__name__', type(fun).__name__)}"
    return jaxpr


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Compute the shapes and dtypes of the result of `fun`, without running it.

    Args:
      args, kwargs: pytrees of arrays or of `tl.ShapeDtypeStruct`.
    Returns: the result's pytree with a ShapeDtypeStruct at each leaf; `fun` may return some, too.
    Raises: TypeError if `fun` is no function, or an argument, or a result, is no array; whatever tracing `fun` raises.
    """
    return tracing_of("eval_shape", fun).trace(*args, **kwargs).out_info
