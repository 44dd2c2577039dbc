"""Lowering of `ein`: an internal error, as the pass lower_ein has rewritten each `ein` to other primitives."""

from typing import Any, NoReturn

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.errors import InternalError
from tapeless.tracer.primitives.ein import ein_p


def _ein(f: Function, outs: Any, *operands: Value, **params: Any) -> NoReturn:
    reached = f" It was reached from {f.source.describe()}." if f.source else ""
    raise InternalError(f"ein is lowered as it is, though the pass lower_ein comes before.{reached}")


emit.rules[ein_p] = _ein
