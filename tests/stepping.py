"""Programs computed by the oracle, without XLA.

Compiling takes XLA most of the time of a test; what a transform makes of a program can be seen without.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tapeless as tl
from tapeless.tracer.jaxpr import Jaxpr
from tests.fuzzing import oracle


def stepped(f: Callable[..., Any], *args: Any) -> Any:
    """Compute `f` by the program that it is traced to."""
    return in_steps(f, *args)(*args)


def in_steps(f: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """Trace `f` for such arguments, and return the program as a function of them."""
    closed, shape = tl.make_jaxpr(f, return_shape=True)(*examples)

    def computed(*args: Any) -> Any:
        outs = by_steps(closed.jaxpr, [*closed.consts, *tl.tree.leaves(args)])
        return tl.tree.unflatten(tl.tree.structure(shape), outs)

    return computed


def by_steps(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Compute the results of a program, one equation after the other."""
    return oracle.evaluate(jaxpr, args)
