"""Lowering of calls: a call of the function that the program becomes in the module."""

from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c
from tapeless.tracer.types import aval_of


def _run(*args: Any, jaxpr: Jaxpr) -> Any:
    c.jit_p.type(tuple(map(aval_of, args)), {"jaxpr": jaxpr})
    return dispatch.run(jaxpr, args)


emit.rules[c.jit_p] = emit.call
dispatch.inline[c.jit_p] = _run
