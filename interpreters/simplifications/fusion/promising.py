"""Find the roots of fusion: sums and masks of structured values, by one forward pass over the equations."""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final, NamedTuple

from tapeless.interpreters.simplifications.fusion.affine_values import comparisons
from tapeless.interpreters.simplifications.fusion.licence import find_summed
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.indexing import gather_p, scatter_add_p
from tapeless.tracer.primitives.reduction import cumsum_p, reduce_sum_p
from tapeless.tracer.rules import Rules


class Kind(Enum):
    """The kind of structure for which fusing a value may gain."""

    SPREAD = "some of its factors lack an index, or have two that must be equal"
    SUM = "it is a sum of products itself"
    RUNNING = "it is made of running sums, of which some may be read"
    INDEX = "its elements may be an affine function of their indices"
    MASK = "it may compare such values"


_COMPUTED = frozenset((Kind.SUM, Kind.RUNNING))
Kinds = Sequence[Kind | None]
_SUMS = frozenset((reduce_sum_p, dot_general_p))
kinds: Final = Rules(
    "fusion kinds",
    "rule(eqn, kind of each operand) -> kind of the result, or None",
    absent="it is an index comparison, or its result is not worth following",
)
_ALWAYS_ROOTS = frozenset((*_SUMS, cumsum_p, ein_p))
_ROOTS = frozenset((*_ALWAYS_ROOTS, gather_p, s.slice_p, e.select_n_p, e.mul_p))
_BEGINNINGS = frozenset((*_SUMS, cumsum_p, s.iota_p, s.broadcast_in_dim_p, s.pad_p, ein_p))


class StructuredValues(NamedTuple):
    """The equations that sum or mask structured values (`roots`), and all structured values."""

    roots: Sequence[Equation]
    values: Collection[Atom]


def structure(jaxpr: Jaxpr) -> StructuredValues:
    """Find the structured values of a program and the roots among their readers; fusing other values gains nothing."""
    found: list[Equation] = []
    known: dict[Atom, Kind] = {}
    rules = {p: _of_comparison if p in comparisons else kinds.get(p) for p in jaxpr.primitives}
    kind_of, are_unknown = known.get, known.keys().isdisjoint
    for eqn in jaxpr.eqns:
        rule, operands = rules[eqn.primitive], eqn.invars
        if rule is None:
            continue
        is_free = are_unknown(operands)
        if is_free and eqn.primitive not in _BEGINNINGS:
            continue
        given = [None] * len(operands) if is_free else [kind_of(x) for x in operands]
        kind = rule(eqn, given)
        if kind is not None:
            known[eqn.outvars[0]] = kind
        if not is_free and eqn.primitive in _ROOTS and _is_root(eqn, given):
            found.append(eqn)
    return StructuredValues(found, known.keys())


def _is_root(eqn: Equation, given: Kinds) -> bool:
    """Tell whether an equation with a structured operand is a root."""
    if eqn.primitive in _ALWAYS_ROOTS:
        return True
    if eqn.primitive is gather_p:
        return given[0] in (Kind.SPREAD, Kind.SUM, Kind.RUNNING)
    if eqn.primitive is s.slice_p:
        return given[0] is Kind.RUNNING
    if eqn.primitive is e.select_n_p:
        return given[0] is Kind.MASK and not _COMPUTED.isdisjoint(given)
    return Kind.SPREAD in given and not _COMPUTED.isdisjoint(given)


def _same(eqn: Equation, given: Kinds) -> Kind | None:
    return given[0]


def _of_broadcast(eqn: Equation, given: Kinds) -> Kind:
    return given[0] if given[0] in (Kind.INDEX, Kind.MASK) else Kind.SPREAD  # type: ignore[return-value]


def _of_product(eqn: Equation, given: Kinds) -> Kind | None:
    """Return the kind of a product: spread if a factor is, or if a structured value is scaled by a variable scalar."""
    x, y = eqn.invars
    scalar = any(given) and (not x.aval.shape or not y.aval.shape) and type(x) is type(y) is Var
    return Kind.SPREAD if scalar or Kind.SPREAD in given else None


def _of_sum(eqn: Equation, given: Kinds) -> Kind | None:
    if Kind.INDEX in given and any(type(x) is Literal for x in eqn.invars):
        return Kind.INDEX
    return Kind.SPREAD if all(kind is Kind.SPREAD for kind in given) else None


def _of_comparison(eqn: Equation, given: Kinds) -> Kind | None:
    indices = [kind is Kind.INDEX or type(x) is Literal for kind, x in zip(given, eqn.invars)]
    return Kind.MASK if all(indices) else None


def _of_choice(eqn: Equation, given: Kinds) -> Kind | None:
    return Kind.SPREAD if given[0] is Kind.MASK else None


def _of_conversion(eqn: Equation, given: Kinds) -> Kind | None:
    return Kind.SPREAD if given[0] is Kind.MASK else given[0] if given[0] is not Kind.SUM else None


def _of_concatenation(eqn: Equation, given: Kinds) -> Kind | None:
    return Kind.SPREAD if Kind.SPREAD in given else None


def _of_ein(eqn: Equation, given: Kinds) -> Kind:
    is_sum = any(find_summed(t) for t in eqn.params["terms"])
    return Kind.SUM if is_sum else Kind.SPREAD


def _of_conjunction(eqn: Equation, given: Kinds) -> Kind | None:
    return Kind.MASK if all(kind is Kind.MASK for kind in given) else None


def _of_scatter(eqn: Equation, given: Kinds) -> Kind | None:
    mostly_zeros = given[0] is Kind.SPREAD and 2 * eqn.invars[2].aval.size <= eqn.outvars[0].aval.size
    return Kind.SPREAD if mostly_zeros else given[2]


def _of_pad(eqn: Equation, given: Kinds) -> Kind | None:
    mostly_zeros = 2 * eqn.invars[0].aval.size <= eqn.outvars[0].aval.size
    return Kind.SPREAD if mostly_zeros else given[0]


for _primitive in (s.transpose_p, s.reshape_p, s.rev_p, s.slice_p, e.neg_p):
    kinds[_primitive] = _same
for _primitive in (e.add_p, e.sub_p):
    kinds[_primitive] = _of_sum
for _primitive in _SUMS:
    kinds[_primitive] = lambda eqn, given: Kind.SUM
kinds[cumsum_p], kinds[gather_p], kinds[scatter_add_p] = lambda eqn, given: Kind.RUNNING, _same, _of_scatter
kinds[s.iota_p] = lambda eqn, given: Kind.INDEX
kinds[s.broadcast_in_dim_p], kinds[s.pad_p], kinds[s.concatenate_p] = _of_broadcast, _of_pad, _of_concatenation
kinds[e.mul_p], kinds[e.convert_element_type_p], kinds[e.select_n_p] = _of_product, _of_conversion, _of_choice
kinds[and_p], kinds[ein_p] = _of_conjunction, _of_ein
