"""Lowering of linear_while: a call of the program that it stands for."""

from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives.linear_while import as_program, linear_while_p
from tapeless.tracer.types import aval_of


def _linear_while(f: Function, outs: Any, *operands: Value, **params: Any) -> Any:
    return emit.apply(f, as_program([x.aval for x in operands], params), operands)


def _run_linear_while(*operands: Any, **params: Any) -> Any:
    linear_while_p.type(tuple(map(aval_of, operands)), params)
    return dispatch.run(as_program([aval_of(x) for x in operands], params), operands)


emit.rules[linear_while_p] = _linear_while
dispatch.inline[linear_while_p] = _run_linear_while
