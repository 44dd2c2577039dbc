"""Lowering of linear_while and linear_scan: a call of the program that they stand for."""

from collections.abc import Callable
from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import linear_while
from tapeless.tracer.types import aval_of


def lower_as_program(primitive: Primitive, as_program: Callable[..., Jaxpr]) -> None:
    """Enter the rules of a primitive that stands for a program, `as_program(operand types, params)`."""

    def emitted(f: Function, outs: Any, *operands: Value, **params: Any) -> Any:
        return emit.apply(f, as_program([x.aval for x in operands], params), operands)

    def run(*operands: Any, **params: Any) -> Any:
        primitive.type(tuple(map(aval_of, operands)), params)
        return dispatch.run(as_program([aval_of(x) for x in operands], params), operands)

    emit.rules[primitive], dispatch.inline[primitive] = emitted, run


lower_as_program(linear_while.linear_while_p, linear_while.as_program)
