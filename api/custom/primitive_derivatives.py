"""Derivatives of primitives: the rules that they are defined by.

Tangents and cotangents that are zero are `Zero(aval)` in rules. A transpose rule is given `UndefinedPrimal(aval)`, the
`Linear` of transposition here, in the place of operands that it is linear in; it gives a cotangent for each of these,
None for the others.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tapeless.custom.primitives import FunctionPrimitive, OwnPrimitive, Registry, find_operation
from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, instantiate, zero_of
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.types import ShapedArray
from tapeless.tracer.user_primitives import Rule


class _Transposes(Registry):
    """Also takes a rule for a primitive of ours that has none: transposed, it counts as linear from then on."""

    def __init__(self) -> None:
        super().__init__("transpose")
        self._given: set[Any] = set()

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        operation = primitive.operation if isinstance(primitive, OwnPrimitive) else None
        if operation is None or (operation in transpose.rules and operation not in self._given):
            super().__setitem__(primitive, rule)
            return
        if operation in self._given:
            del transpose.rules[operation], jvp.structurally_linear[operation]
        transpose.rules[operation] = _of_one_result(rule)
        jvp.structurally_linear[operation] = jvp.All.JOINTLY
        self._given.add(operation)


def _of_one_result(rule: Rule) -> Rule:
    return lambda cts, /, *operands, **params: rule(cts[0], *operands, **params)


def _own_jvp(primitive: OwnPrimitive) -> Rule:
    """Return the rule of a primitive of ours, to be called as JAX's are."""
    if isinstance(primitive, FunctionPrimitive):
        return lambda primals, tangents, /, **params: _jvp_by(partial(primitive.bind, **params), primals, tangents)
    rule, several = jvp.rules[primitive.operation], primitive.multiple_results

    def as_jaxs(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        outs, pushed = rule(list(primals), list(tangents), **primitive.ours(params))
        return (list(outs), list(pushed)) if several else (outs[0], pushed[0])

    return as_jaxs


def _jvp_by(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Compute value and tangents of a function of arrays, whose results are an array or a list."""
    several = list[bool]()

    def flat(*args: Any) -> Sequence[Any]:
        outs = function(*args)
        several.append(isinstance(outs, list))
        return outs if several[-1] else (outs,)

    outs, pushed = jvp.jvp(flat, primals, tangents)
    return (outs, pushed) if several[-1] else (outs[0], pushed[0])


primitive_jvps: Final = Registry("jvp", own=_own_jvp)  # rule(primals, tangents, **params) -> results, their tangents
primitive_transposes: Final = _Transposes()  # rule(cotangents of the results, *operands, **params) -> cotangents


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Return zeros of a type."""
    return instantiate(Zero(aval))


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, each of which may be a `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add(x, y)


def defjvp(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Define the derivative of a primitive with one result, `rule(tangent, *operands, **params)` for each operand.

    None in the place of a rule: the result does not depend smoothly on that operand.
    """
    defjvp2(primitive, *[rule and _without_result(rule) for rule in jvprules])


def defjvp2(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Define the derivative of a primitive with one result, `rule(tangent, result, *operands, **params)` for each
    operand; None where it does not depend smoothly on it."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = zero_of(out)
        for rule, t in zip(jvprules, tangents):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defjvp_zero(primitive: Any) -> None:
    """Say that a primitive has no derivative: its results are piecewise constant."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, list(map(zero_of, out)) if primitive.multiple_results else zero_of(out)

    primitive_jvps[primitive] = jvp


def def_linear_in(primitive: Any, *operands: int | Sequence[int]) -> None:
    """Declare the operands that a primitive is linear in, for linearity checks and transposition.

    Args:
      primitive: of a library.
      operands: positions, each of an operand or of several. The result is linear in each of these, in several
        together, while the others are fixed: `(0, 1)` for a sum, `0, 1` for a product, `(0, 2), (1, 2)` for x * y + z.
        None at all for all operands together.
    Raises: TypeError if the primitive is one of Tapeless, or a position is no integer; ValueError if it is negative.

    Without it, a primitive counts as linear in no operand, but where its own derivative applies it to tangents.

    >>> import tapeless as tl
    >>> first_p = tl.core.Primitive("first")
    >>> _ = first_p.def_abstract_eval(lambda x, y: x)
    >>> def_linear_in(first_p, 0)
    >>> tl.check_linear(lambda x: first_p.bind(x, 2.0), 1.0).jaxpr.linear_in
    (True,)
    """
    sets = [tuple(each) if isinstance(each, Sequence) else (each,) for each in operands]
    positions: list[Any] = [k for each in sets for k in each]
    for k in positions:
        if not isinstance(k, int) or isinstance(k, bool):
            raise TypeError(f"def_linear_in: {primitive}: positions of operands are integers, not {k!r}.")
        if k < 0:
            raise ValueError(f"def_linear_in: {primitive}: positions of operands count from 0, not {k}.")
    find_operation(primitive).linear_sets = tuple(sets) or ((),)


def deflinear(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Say that a primitive is linear in all its operands together; `transpose_rule(cotangents, **params)`."""
    deflinear2(primitive, lambda ct, /, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Say that a primitive is linear in all its operands together; `transpose_rule(cotangents, *operands, **params)`
    gives one cotangent for each."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule
    def_linear_in(primitive)


def defbilinear(prim: Any, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Say that a primitive is linear in each of two operands; `rule(cotangent, x, y, **params)` gives the cotangent of
    the left one, or of the right one."""

    def transpose(ct: Any, x: Any, y: Any, /, **params: Any) -> tuple[Any, Any]:
        if is_linear(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(
        prim,
        lambda t, x, y, /, **params: prim.bind(t, y, **params),
        lambda t, x, y, /, **params: prim.bind(x, t, **params),
    )
    primitive_transposes[prim] = transpose
    def_linear_in(prim, 0, 1)


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, out, /, *operands, **params: rule(t, *operands, **params)
