"""Lowering of opaque (uninterpreted) functions: an error, as they have no values."""

from typing import Any, NoReturn

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives.opaque import derivative_name, opaque_p


def _opaque(f: Function, outs: Any, *xs: Value, function: str, ranks: Any, orders: Any, **params: Any) -> NoReturn:
    reached = f" It was reached from {f.source.describe()}." if f.source else ""
    raise TypeError(
        f"{derivative_name(function, ranks, orders)} is opaque: it has no values.{reached}\n"
        f"  Derive a formula by index.grad, index.pullback or index.push, and .instantiate({function}=f)."
    )


emit.rules[opaque_p] = _opaque
