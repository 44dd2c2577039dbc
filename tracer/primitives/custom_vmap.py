"""custom_vmap: calls of functions with a custom batching rule."""

from collections.abc import Sequence
from typing import Any, Final

from tapeless.tracer import linear_vars
from tapeless.tracer.bodies import descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.types import ShapedArray, aval_of


def custom_vmap(rule: Any, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Call a jaxpr that has a custom rule for `vmap`.

    Args:
      rule: `rule(size, args, mapped) -> (results, mapped)`, where `mapped` tells for args, and for results, whether
        they have the mapped axis, as the first; `rule.__name__` names the function in messages. A rule with `linear`
        true promises that all results are linear if some inputs are, also those that for one example are zero.
      jaxpr: constants, args -> results, for one example.
      consts: values that the function closes over, which the rule does not take.
    """
    return custom_vmap_p.bind(*consts, *args, rule=rule, jaxpr=jaxpr, n_consts=len(consts))


def mapped_closure(name: str, x: Any, dim: int) -> TypeError:
    """Make the error for a function that closes over a mapped array."""
    return TypeError(
        f"custom_vmap: {name} closes over a value that is mapped, {aval_of(x)}, axis {dim}, which its rule is not "
        "given.\n  Pass it as an argument."
    )


def _custom_vmap_type(*avals: ShapedArray, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[ShapedArray, ...]:
    return call.result_types("custom_vmap", jaxpr, avals)


def _mark(linear_in: tuple[bool, ...], *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[dict[str, Any], list[bool]]:
    program = linear_vars.marked(jaxpr, linear_in)
    every = getattr(rule, "linear", False)
    return {"rule": rule, "jaxpr": program, "n_consts": n_consts}, [every or v.linear for v in program.outvars]


custom_vmap_p: Final = Primitive("custom_vmap", _custom_vmap_type, remember=False)
linear_vars.rules[custom_vmap_p] = _mark
descriptions[custom_vmap_p] = call.call_of(fixed=True)
