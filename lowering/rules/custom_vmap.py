"""Lowering of custom_vmap: a call of the function, as its vmap rule plays no part."""

from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.custom_vmap import custom_vmap_p


def _run(*args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return call.jit(jaxpr, *args)


emit.rules[custom_vmap_p] = emit.call
dispatch.inline[custom_vmap_p] = _run
