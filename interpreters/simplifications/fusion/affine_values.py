"""Affine values: numbers that are an affine function of their own indices, and brackets that compare them.

Search terms: iota, induction variable, scalar evolution. Iotas, their sums and multiples are such values, and what
moves them, as far as their dtype holds every number exactly: others wrap around, or are rounded to their neighbours. A
comparison of two of them is a bracket of indices, and so are conjunctions of comparisons.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.interpreters.index_rows import Combination, rows
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Bracket, IsZero, NotNegative, Term, with_indices

Definition = Callable[[Atom], Equation | None]
comparisons: Table[Callable[[Affine, Affine], Bracket]] = Table(
    "index comparisons",
    "bracket(a, b): where it is true of two affine functions of indices",
    absent="it is no comparison, or not where a conjunction of brackets holds",
)
comparisons[e.eq_p] = lambda a, b: IsZero(a - b)
comparisons[e.lt_p] = lambda a, b: NotNegative(b - a - 1)
comparisons[e.le_p] = lambda a, b: NotNegative(b - a)
comparisons[e.gt_p] = lambda a, b: NotNegative(a - b - 1)
comparisons[e.ge_p] = lambda a, b: NotNegative(a - b)
_MOVES = frozenset((s.broadcast_in_dim_p, s.reshape_p, s.transpose_p, s.rev_p, s.slice_p, e.convert_element_type_p))


def affine_value(x: Atom, definition: Definition) -> Affine | None:
    """A value as an affine function of its indices, where variable d is that along axis d; None if it is no such.

    Args:
      definition: the equation that computes a variable, None for inputs and literals.
    """
    found = _affine(x, definition)
    return found if found is not None and _holds(x, found) else None


def _affine(x: Atom, definition: Definition) -> Affine | None:
    if type(x) is Literal:
        value = np.asarray(x.value)
        return Affine(int(value)) if not value.shape and _is_integral(value) else None
    eqn = definition(x)
    if eqn is None:
        return None
    if eqn.primitive is s.iota_p:
        return Affine(0, ((eqn.params["dimension"], 1),))
    if eqn.primitive in _MOVES:
        inner = affine_value(eqn.invars[0], definition)
        return None if inner is None else _moved(eqn, inner)
    return _combined(eqn, definition)


def _is_integral(value: Any) -> bool:
    if value.dtype.kind in "iu":
        return True
    return dtypes.is_inexact(value.dtype) and value.dtype.kind != "c" and float(value).is_integer()


def _combined(eqn: Equation, definition: Definition) -> Affine | None:
    """Sums, differences, and products with numbers."""
    if eqn.primitive not in (e.add_p, e.sub_p, e.mul_p, e.neg_p):
        return None
    operands = [a for x in eqn.invars if (a := affine_value(x, definition)) is not None]
    if len(operands) < len(eqn.invars):
        return None
    if eqn.primitive is e.neg_p:
        return -operands[0]
    a, b = operands
    if eqn.primitive is e.mul_p:
        a, b = (b, a) if a.is_constant else (a, b)
        return a * b.constant if b.is_constant else None
    return a + b if eqn.primitive is e.add_p else a - b


def _moved(eqn: Equation, inner: Affine) -> Affine | None:
    """The affine value of what moves another: the index that it reads, as a function of the place where it is put."""
    (t,) = _terms(eqn)
    if t is None or t.brackets:
        return None
    place: dict[int, Affine] = {}  # of each variable, that it is put where it is
    for d, a in enumerate(t.out):
        if len(a.variables) == 1 and abs(a.variables[0][1]) == 1:
            ((v, k),) = a.variables
            place[v] = (Affine(0, ((d, 1),)) - a.constant) * k
    if len(place) < len(t.sizes) or len(t.factors) != 1:
        return None
    found = Affine(inner.constant)
    for d, k in inner.variables:
        index = t.factors[0].access[d]
        found = found + k * sum((c * place[v] for v, c in index.variables), Affine(index.constant))
    return found


def _terms(eqn: Equation) -> tuple[Term | None]:
    row = rows[eqn.primitive](eqn.params, [x.aval for x in eqn.invars])
    return row.results[0] if row.combination is Combination.TERMS and len(row.results[0]) == 1 else (None,)


def _holds(x: Atom, found: Affine) -> bool:
    """Tell whether the dtype of a value holds every number that it is exactly."""
    if 0 in x.aval.shape:
        return False
    (low, high), dtype = found.bounds(x.aval.shape), x.aval.dtype
    if dtypes.is_integer(dtype):
        limits = dtypes.iinfo(dtype)
        return int(limits.min) <= low and high <= int(limits.max)
    return dtypes.is_inexact(dtype) and max(-low, high) <= 2 ** (dtypes.finfo(dtype).nmant + 1)


# ---- comparisons ---------------------------------------------------------------------------------------------


def brackets_where(x: Atom, definition: Definition) -> tuple[Bracket, ...] | None:
    """The brackets that hold where a boolean value is true, of variable d along axis d; None if these are not known."""
    eqn = definition(x)
    if eqn is None or 0 in x.aval.shape:
        return None
    if eqn.primitive in _MOVES:
        return _moved_brackets(eqn, definition)
    if eqn.primitive is bits.and_p:
        both = [brackets_where(v, definition) for v in eqn.invars]
        return None if None in both else (*both[0], *both[1])  # type: ignore[misc]
    if eqn.primitive not in comparisons:
        return None
    a, b = [affine_value(v, definition) for v in eqn.invars]
    return None if a is None or b is None else (comparisons[eqn.primitive](a, b),)


def _moved_brackets(eqn: Equation, definition: Definition) -> tuple[Bracket, ...] | None:
    if not dtypes.is_bool(eqn.invars[0].aval.dtype):
        return None
    inner = brackets_where(eqn.invars[0], definition)
    if inner is None:
        return None
    found: list[Bracket] = []
    for bracket in inner:
        moved = _moved(eqn, bracket.index)
        if moved is None:
            return None
        found.append(with_indices(bracket, lambda _, moved=moved: moved))
    return tuple(found)
