"""What traced functions are made of: the names of `jax.core`."""

from collections.abc import Sequence
from typing import Any

from tapeless.tracer import jaxpr as _jaxpr
from tapeless.tracer.core import Trace, Tracer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.types import ShapedArray

__all__ = ["Atom", "ShapedArray", "Trace", "Tracer", "eval_jaxpr"]


def eval_jaxpr(jaxpr: _jaxpr.Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply a program, as `make_jaxpr(f)(*args).jaxpr` is one, to its constants and flat arguments."""
    return list(_jaxpr.eval_jaxpr(jaxpr, [*consts, *args]))
