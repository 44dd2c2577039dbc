"""custom_vmap: calls of functions with a batching rule of their own."""

from collections.abc import Sequence
from typing import Any, Final

from tapeless.tracer import linear_vars
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.types import ShapedArray


def custom_vmap(rule: Any, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Call a program that has a rule for `vmap`.

    Args:
      rule: `rule(size, args, mapped) -> (results, mapped)` for args, and results, with the mapped axis first where
        `mapped` says so; `rule.__name__` names the function in messages. A rule with `linear` true promises that all
        results are linear where some inputs are, also those that for one example are zero.
      jaxpr: constants, args -> results, for one example.
      consts: what the function closes over, which the rule is not given.
    """
    return custom_vmap_p.bind(*consts, *args, rule=rule, jaxpr=jaxpr, n_consts=len(consts))


def _custom_vmap_type(*avals: ShapedArray, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[ShapedArray, ...]:
    return call.result_types("custom_vmap", jaxpr, avals)


def _mark(linear_in: tuple[bool, ...], *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[dict[str, Any], list[bool]]:
    program = linear_vars.marked(jaxpr, linear_in)
    every = getattr(rule, "linear", False)
    return {"rule": rule, "jaxpr": program, "n_consts": n_consts}, [every or v.linear for v in program.outvars]


custom_vmap_p: Final = Primitive("custom_vmap", _custom_vmap_type, remember=False)
linear_vars.rules[custom_vmap_p] = _mark
