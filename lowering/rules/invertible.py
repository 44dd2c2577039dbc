"""Lowering of invertible functions: calls of the function; its inverse is there for derivatives."""

from tapeless.lowering import dispatch, emit
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.invertible import invertible_p

emit.rules[invertible_p] = emit.call
dispatch.inline[invertible_p] = lambda *args, jaxpr, **_: call.jit(jaxpr, *args)
