"""Calls of jaxprs: the `jit` primitive, and checks of the types of operands and results."""

from collections.abc import Sequence
from typing import Any, Final

from tapeless.tracer.bodies import CONST, VALUE, Bodies, Body, Description, descriptions, in_groups
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, unwrap_program
from tapeless.tracer.types import ShapedArray


def jit(jaxpr: Jaxpr, *args: Any) -> tuple[Any, ...]:
    """Call a jaxpr, which is one function of the compiled module, however often it is called.

    Raises: TypeError if the types of the arguments are not those of the program's inputs.
    """
    return jit_p.bind(*args, jaxpr=jaxpr)


def _jit_type(*avals: ShapedArray, jaxpr: Jaxpr) -> tuple[ShapedArray, ...]:
    return result_types("jit", jaxpr, avals)


def result_types(who: str, jaxpr: Jaxpr, given: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
    """Return the types of the results of a call. Raises: TypeError as `check_takes`."""
    check_takes(who, jaxpr, given)
    return jaxpr.out_avals


def check_takes(who: str, jaxpr: Jaxpr, given: Sequence[ShapedArray]) -> None:
    """Check that a jaxpr takes arguments of these types. Raises: TypeError with both lists of types."""
    check_types(f"{who}: {jaxpr.name}", "takes", jaxpr.in_avals, given)


def check_types(who: str, verb: str, have: Sequence[ShapedArray], want: Sequence[ShapedArray]) -> None:
    """Check that two lists of types are equal, weak or not. Raises: TypeError `who verb have, not want`."""
    if tuple(have) != tuple(want) and [x.strong() for x in have] != [x.strong() for x in want]:
        raise TypeError(f"{who} {verb} {_list(have)}, not {_list(want)}.")


def _list(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(map(str, avals))})"


class _CallPrimitive(Primitive):
    """The primitive of calls. Libraries that take programs apart bind it, too, with results of `make_jaxpr`."""

    __slots__ = ()

    def bind(self, *args: Any, jaxpr: Jaxpr | ClosedJaxpr, name: str = "", inline: bool = False) -> tuple[Any, ...]:
        """Call a program, which has a name of its own, and need not be inlined.

        Raises: TypeError if the types of the arguments are not those of its inputs.
        """
        return super().bind(*jaxpr.consts, *args, jaxpr=unwrap_program(jaxpr.jaxpr))


jit_p: Final = _CallPrimitive("jit", _jit_type, remember=False)


def as_called(jaxpr: Jaxpr, first: int = 0) -> Body:
    """Describe the program of a call, which takes all operands, or those from the position `first` on."""
    return in_groups(jaxpr, [(CONST, len(jaxpr.invars))], [(VALUE, len(jaxpr.outvars))], first)


def call_of(fixed: bool = False) -> Description:
    """Describe a primitive that calls its param `jaxpr`; `fixed` if a user's rule takes its operands, too."""
    return Description(
        lambda jaxpr, **_: Bodies((as_called(jaxpr),), fixed=fixed),
        lambda params, bodies: {**params, "jaxpr": bodies[0].jaxpr},
    )


descriptions[jit_p] = call_of()
