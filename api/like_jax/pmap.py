"""`pmap`, which needs several devices in one program, and says so."""

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import shown_attributes


def pmap(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., NoReturn]:
    """Return a function that raises NotImplementedError when it is called: mapping over devices is not supported.

    `vmap` maps over an axis on one device, with `axis_name` and collectives too.

    Raises: TypeError if `fun` is not callable.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> def share(x): return x / tl.lax.psum(x, "i")
    >>> pmap(share, axis_name="i")(tnp.array([1.0, 3.0]))
    Traceback (most recent call last):
    NotImplementedError: pmap: a program runs on one device; several are not supported yet.
      Use jit(vmap(f, axis_name=...)): the same function over the same axis, on one device.
    >>> tl.jit(tl.vmap(share, axis_name="i"))(tnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    check_callable("pmap", fun)

    @functools.wraps(fun, shown_attributes(fun))
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "pmap: a program runs on one device; several are not supported yet.\n"
            "  Use jit(vmap(f, axis_name=...)): the same function over the same axis, on one device."
        )

    return refused
