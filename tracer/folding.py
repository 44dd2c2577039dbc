"""Constant folding while a function is traced: primitives of concrete values are computed at once."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from tapeless.tracer import core


class FoldingTrace(core.Trace):
    """A trace that computes primitives of concrete values at once, and hands the others to its parent."""

    __slots__ = ("what",)

    def __init__(self, parent: core.Trace) -> None:
        super().__init__(parent, parent.function)
        self.what: Final = parent.what

    def process(self, primitive: core.Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        collective = "axis_names" in params and not primitive.keeps_programs
        waits = collective or primitive.effect or any(isinstance(x, core.Tracer) for x in args)
        trace = self.parent if waits else core.bottom_trace()
        return core.under(trace, trace.process, primitive, args, params)


@contextmanager
def ensure_compile_time_eval() -> Generator[None]:
    """Compute primitives of concrete values at once while a function is traced, in a with block or a decorated
    function; primitives of traced values are traced.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> @tl.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(tnp.arange(4).sum())
    ...     return x.reshape(n, 1).shape[0] * x
    >>> f(tnp.ones(6)).shape
    (6,)
    """
    outside = core.current_trace()
    try:
        if outside is not core.bottom_trace():
            core.current.set(FoldingTrace(outside))
        yield
    finally:
        core.current.set(outside)
