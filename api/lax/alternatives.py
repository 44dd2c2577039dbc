"""Functions in the place of others: by platform, and by the name of what they compute."""

import functools
import operator
from collections.abc import Callable
from typing import Any

from tapeless.arguments.argument_checks import check_callable
from tapeless.compile.jit import jit
from tapeless.control_flow.branches_and_loops import check_operands, choose_branch
from tapeless.tracer.core import Tracer
from tapeless.tracer.primitives.control_flow import platform_index


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call the function of the platform that the program is compiled for.

    All functions are traced, one is compiled. Derivatives and `vmap` are those of `switch`.

    Args:
      args: pytrees of arrays.
      default: the function of platforms that are not named; without one, compiling for them is an error.
      per_platform: functions of `args`, by the names cpu, cuda, rocm or tpu, giving pytrees of the same types.
    Returns: what that function gives.
    Raises: TypeError if something is no function, or results differ; ValueError if there are none, or for gpu=;
      NotImplementedError when the program is compiled for a platform without function.
    """
    functions = dict(per_platform)
    if "gpu" in functions:
        raise ValueError("platform_dependent: gpu is no platform: pass cuda= or rocm=.")
    if default is not None:
        functions["default"] = default
    for name, f in functions.items():
        check_callable("platform_dependent", f, f"the function of {name}")
    if not functions:
        raise ValueError("platform_dependent: there are no functions to choose from.")
    check_operands("platform_dependent", next(iter(functions.values())), args)
    names = [(name,) for name in per_platform]
    index: Any = platform_index((*names, None) if default is not None else tuple(names))
    if not isinstance(index, Tracer):
        return list(functions.values())[int(index)](*args)
    return choose_branch("platform_dependent", index, list(functions), list(functions.values()), args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Name an operation that is made of others: a call of that name in programs, compiled as its operations.

    Args:
      decomposition: a function of pytrees of arrays, whose arguments by keyword are constants.
      name: of the operation.
      version: which of its meanings; accepted, and of no effect here, where no compiler knows the name.
    Returns: a function that computes what `decomposition` does. Its derivatives are those of `decomposition`, where JAX
      has none.
    Raises: TypeError if `decomposition` is no function, or the version no integer.
    """
    check_callable("composite", decomposition, "decomposition")
    operator.index(version)

    @functools.wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        def named(*args: Any) -> Any:
            return decomposition(*args, **attributes)

        named.__name__ = named.__qualname__ = name
        return jit(named)(*args)

    return call
