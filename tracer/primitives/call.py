"""Calls of programs: jit."""

from typing import Any

from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.types import ShapedArray


def jit(jaxpr: Jaxpr, *args: Any) -> tuple[Any, ...]:
    """Call a program: one function of the compiled module, however often it is called.

    Raises: TypeError if the types of the arguments are not those of the program's inputs.
    """
    return jit_p.bind(*args, jaxpr=jaxpr)


def _jit_type(*avals: ShapedArray, jaxpr: Jaxpr) -> tuple[ShapedArray, ...]:
    if [x.strong() for x in avals] != [x.strong() for x in jaxpr.in_avals]:
        raise TypeError(f"jit: {jaxpr.name} takes {_list(jaxpr.in_avals)}, not {_list(avals)}.")
    return jaxpr.out_avals


def _list(avals: tuple[ShapedArray, ...]) -> str:
    return f"({', '.join(map(str, avals))})"


jit_p = Primitive("jit", _jit_type, remember=False)
