"""Lowering of collectives: an error, as the `vmap` that binds their axes should have resolved them."""

from typing import Any, NoReturn

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import collective as c


def _unresolved(primitive: Primitive) -> Any:
    def rule(f: Function, outs: Any, *operands: Value, axis_names: c.Names, **_: Any) -> NoReturn:
        names = " and ".join(map(repr, axis_names))
        reached = f"\n  It was reached from {f.source.describe()}." if f.source else ""
        raise NameError(
            f"{primitive}: the axis {names} is not bound where the program runs.{reached}\n"
            "  Compile it inside of the vmap that has this axis_name, or map the whole program."
        )

    return rule


for _primitive in (
    c.psum_p,
    c.pmax_p,
    c.pmin_p,
    c.all_gather_p,
    c.psum_scatter_p,
    c.all_to_all_p,
    c.ppermute_p,
    c.axis_index_p,
):
    emit.rules[_primitive] = _unresolved(_primitive)
