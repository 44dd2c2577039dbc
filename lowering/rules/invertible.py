"""Lowering of invertible functions: calls of the function; its inverse is there for derivatives."""

from tapeless.lowering import dispatch, emit
from tapeless.lowering.rules.linear_while import lower_as_program
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import invertible as c

emit.rules[c.invertible_p] = emit.call
dispatch.inline[c.invertible_p] = lambda *args, jaxpr, **_: call.jit(jaxpr, *args)
lower_as_program(c.linear_scan_p, c.as_program)
