"""Provenance of residuals: inline the equations of broadcast and masked residuals into the linear jaxpr.

A value that was broadcast, or computed from such values by cheap elementwise operations, is no residual. Its equations
are written into the linear jaxpr instead, so that equations that read a part of it, or sum over it, can be simplified.
Those of its equations that are left after simplification, except broadcasts, are not computed again, as their values
are known. The same goes for coefficients selected by masks: masks are sunk into coefficients, and an array does not
tell where it is masked. But selects by masks that linear equations read stay in the linear jaxpr, as do equations that
compute masks from these. So the jaxpr, when it is linearized or simplified again, shows which masks it applies already;
and the mask is a residual, instead of the values that it was applied to.
This is for `linearize` of Python functions alone, where primal values are computed eagerly. The residuals of a jaxpr
are chosen after it is simplified (residuals/cut.py).
"""

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tapeless.tracer import dtypes, passes, source
from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, effects
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.elementwise import eq_p, select_n_p
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, iota_p, reshape_p, rev_p, transpose_p
from tapeless.tracer.source import Source
from tapeless.tracer.types import aval_of

if TYPE_CHECKING:
    from tapeless.interpreters import limits
    from tapeless.interpreters.simplifications import repeatable_equations
else:  # late, as it imports the index rows
    limits = LateModule("tapeless.interpreters.limits")
    repeatable_equations = LateModule("tapeless.interpreters.simplifications.repeatable_equations")

_REPEATING = frozenset((broadcast_in_dim_p, iota_p))
_OF_MASKS = frozenset((and_p, or_p, not_p, reduce_or_p, reshape_p, transpose_p, rev_p))


class Made(NamedTuple):
    """The operation that made a value."""

    primitive: Primitive
    args: Sequence[Any]
    params: dict[str, Any]
    source: Source | None


class _Noted(weakref.ref[Any]):
    """A weak reference to a value, with the operation that made it, the depth of its provenance, and its table key."""

    __slots__ = ("depth", "key", "made")

    made: Made
    depth: int
    key: int


class ResidualProvenance:
    """The table of repetitive or masked primal values of one trace: value -> operation, for as long as values live."""

    __slots__ = ("__weakref__", "_forget", "_made")

    def __init__(self) -> None:
        self._made: dict[int, _Noted] = {}
        self._forget = _forgetting(weakref.ref(self))  # weak: a cycle would keep values alive until garbage collection

    def remember(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Any) -> None:
        """Record the operation that made a value, if the value is repetitive, masked or a mask of masks."""
        if not isinstance(out, Array) or not self._has_structure(primitive, args, params, out):
            return
        depth = 1 + max([self._made[id(x)].depth for x in args if self.of(x) is not None], default=0)
        most = limits.PROVENANCE
        if depth <= most or primitive in _REPEATING:
            noted = self._made[id(out)] = _Noted(out, self._forget)
            noted.made, noted.depth = Made(primitive, args, params, source.current()), min(depth, most)
            noted.key = id(out)

    def of(self, x: Any) -> Made | None:
        """Return the operation that made a value; None if it is not recorded."""
        found = self._made.get(id(x))
        return found.made if found is not None and found() is x else None

    def forget(self, value: _Noted) -> None:
        """Forget a value that has died."""
        self._made.pop(value.key, None)

    def _has_structure(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Array) -> bool:
        """Tell whether to record a value: it is repetitive, a masked coefficient, or a mask computed from masks."""
        if primitive in _REPEATING:
            return out.aval.size > sum([aval_of(x).size for x in args if aval_of(x).shape])
        if primitive is select_n_p and any(not aval_of(x).shape for x in args[1:]):
            return True  # a coefficient that is a number outside of a mask
        if primitive in _OF_MASKS and all(dtypes.is_bool(aval_of(x).dtype) for x in args):
            return True  # a mask that is made of masks
        if primitive is eq_p and any(not aval_of(x).shape for x in args):
            return True  # the mask of one case of a `select_n`
        known = [self.of(x) is not None for x in args if aval_of(x).shape]
        if not known or not all(known):
            return False
        return repeatable_equations.is_cheap_on_elements(primitive, params, [aval_of(x) for x in args])


def _forgetting(provenance: weakref.ref[ResidualProvenance]) -> Callable[[_Noted], None]:
    """Return the callback for weak references to values, which removes them from the table."""

    def forget(value: _Noted) -> None:
        structure = provenance()
        if structure is not None:
            structure.forget(value)

    return forget


def hoist_primal_equations(jaxpr: Jaxpr, values: dict[Var, Any]) -> Jaxpr:
    """Compute the primal equations of a linear jaxpr now, and remove them, except broadcasts and `_made_of_masks`.

    values: of the primal inputs, and of variables computed before. Newly computed ones, under the current trace, are
    added; they are residuals of the returned jaxpr, free variables until `with_inputs` adds inputs for them.
    """
    known = [eqn for eqn in jaxpr.eqns if _is_known(eqn)]
    done = {eqn for eqn in known if eqn.primitive not in _REPEATING} - _made_of_masks(jaxpr, known)
    if not done:
        return jaxpr
    made = {v: eqn for eqn in known for v in eqn.outvars}
    rest = jaxpr.replace(eqns=[eqn for eqn in jaxpr.eqns if eqn not in done])
    used = passes.used_variables(passes.dead_code(rest))
    for v, eqn in made.items():  # in order: programs must not depend on where variables lie in memory
        if v in used and eqn in done:
            _compute(v, made, values)
    return passes.dead_code(rest)


def _made_of_masks(jaxpr: Jaxpr, known: Sequence[Equation]) -> set[Equation]:
    """Find the equations that compute masks from masks which linear equations read, and selects by any of these."""
    linear = [eqn for eqn in jaxpr.eqns if eqn.linear]
    masks = {v for eqn in linear for v in eqn.invars if dtypes.is_bool(v.aval.dtype)}
    masks.update(eqn.invars[0] for eqn in linear if eqn.primitive is select_n_p)
    found: set[Equation] = set()
    for eqn in known:
        if eqn.primitive is select_n_p and eqn.invars[0] in masks:
            found.add(eqn)
        elif not masks.isdisjoint(eqn.invars) and all(map(_counts, eqn.outvars)):
            found.add(eqn)
            masks.update(eqn.outvars)
    return found


def _counts(v: Var) -> bool:
    """Tell whether a value is boolean or integer: a mask, or a count or index computed from masks."""
    return dtypes.is_bool(v.aval.dtype) or dtypes.is_integer(v.aval.dtype)


def _is_known(eqn: Equation) -> bool:
    return not any(v.linear for v in (*eqn.invars, *eqn.outvars)) and not effects(eqn)


def _compute(v: Var, made: dict[Var, Equation], values: dict[Var, Any]) -> None:
    """Compute the value of a variable, and of the variables that it depends on."""
    todo = [v]
    while todo:
        eqn = made.get(todo[-1])
        if todo[-1] in values or eqn is None:
            todo.pop()
            continue
        missing = [x for x in eqn.invars if isinstance(x, Var) and x not in values]
        if missing:
            todo += missing
            continue
        read = [x.value if isinstance(x, Literal) else values[x] for x in eqn.invars]
        outs = source.at(eqn.source, eqn.primitive.apply, *read, **eqn.params)
        values.update(zip(eqn.outvars, outs, strict=True))
