"""Lowering of invertible functions: calls of the function; its inverse is there for derivatives."""

from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.lowering.rules.linear_while import lower_as_program
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import invertible as c
from tapeless.tracer.types import aval_of


def _run(*operands: Any, jaxpr: Jaxpr, **params: Any) -> Any:
    c.invertible_p.type(tuple(map(aval_of, operands)), {"jaxpr": jaxpr, **params})
    return call.jit(jaxpr, *operands)


emit.rules[c.invertible_p] = emit.call
dispatch.inline[c.invertible_p] = _run
lower_as_program(c.linear_scan_p, c.as_program)
