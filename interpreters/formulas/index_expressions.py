"""Definitions that are functions of their indices alone, as expressions of these: `(a + b) % 2 = 0`.

Search terms: index expression, pretty-printing, operator precedence, interval arithmetic. Such are the masks of a
checkerboard, and quotients and remainders of indices. They are printed where they are read, and need no names. What the
bounds of indices decide is left out, as the case of a remainder that is negative.
"""

import operator as python
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.formulas.let_form import Computed, Definition, LetForm
from tapeless.tracer import dtypes
from tapeless.tracer.formulas.text import COMPARISON, LOGIC, PRODUCT, SUM, IndexExpression
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import iota_p
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.term import Term, Use
from tapeless.tracer.types import ShapedArray

Bounds = tuple[int, int]


class _Operator(NamedTuple):
    """An operator: its signs in text and in LaTeX, how loosely it binds, and the bounds of its result; None if unknown.

    kinds: of the dtypes of results for which it has this meaning, among integers, inexact numbers and booleans.
    neutral: the operand that leaves the other as it is.
    """

    text: str
    latex: str
    level: int
    bounds: Callable[[Bounds, Bounds], Bounds | None]
    kinds: str = "iufb"
    neutral: int | None = None


class _BoundedExpression(NamedTuple):
    """An expression and the bounds of its values."""

    expression: IndexExpression
    bounds: Bounds


def index_expressions(form: LetForm) -> dict[int, IndexExpression]:
    """Find the definitions that are functions of their indices alone, and numbers, by their numbers."""
    known = dict[int, _BoundedExpression]()
    for k, d in enumerate(form.definitions, len(form.inputs)):
        found = _computed(d.value, d.aval, known) if isinstance(d.value, Computed) else _moved(d, known)
        if found is not None and _holds(d.aval, found.bounds):
            known[k] = found
    return {k: found.expression for k, found in known.items()}


def printed_where_read(form: LetForm) -> dict[int, IndexExpression]:
    """Find the expressions that need no definition, as no function of whole arrays is applied to them."""
    found = index_expressions(form)
    computed = [(k, d.value) for k, d in enumerate(form.definitions, len(form.inputs)) if isinstance(d.value, Computed)]
    named = {x for k, c in computed if k not in found for x in c.operands}
    sums = [*[d.value for d in form.definitions if not isinstance(d.value, Computed)], *form.results]
    named |= {s.operand for terms in sums for t in terms for a in t.indices for s, _ in a.symbols}
    return {k: x for k, x in found.items() if k not in named}


def _holds(aval: ShapedArray, bounds: Bounds) -> bool:
    """Tell whether a dtype holds all numbers from one to another exactly."""
    return dtypes.is_bool(aval.dtype) or dtypes.holds_integers(aval.dtype, *bounds)


def _computed(c: Computed, aval: ShapedArray, known: Mapping[int, _BoundedExpression]) -> _BoundedExpression | None:
    if c.primitive is iota_p:
        axis = c.params["dimension"]
        return _BoundedExpression(IndexExpression(f"{{{axis}}}", f"{{{axis}}}"), (0, c.params["shape"][axis] - 1))
    operands = [_number(x) if isinstance(x, Literal) else known.get(x) for x in c.operands]
    found = [x for x in operands if x is not None]
    if not found or len(found) < len(operands):
        return None
    if c.primitive is e.select_n_p:
        case = found[0].bounds
        return found[1 + case[0]] if case[0] == case[1] < len(found) - 1 else None
    if c.primitive is e.convert_element_type_p:
        return found[0] if found[0].expression.level < COMPARISON and not dtypes.is_bool(aval.dtype) else None
    operator = _operators.get(c.primitive)
    if operator is None or dtypes.kind(aval.dtype) not in operator.kinds:
        return None
    x, y = found
    bounds = operator.bounds(x.bounds, y.bounds)
    if bounds is None:
        return None
    if bounds[0] == bounds[1]:
        return _constant(bounds[0])
    for given, other in ((x, y), (y, x)):
        if given.bounds == (operator.neutral, operator.neutral):
            return other
    if c.primitive is e.add_p and y.bounds[0] == y.bounds[1] < 0:
        operator, y = _operators[e.sub_p], _constant(-y.bounds[0])
    return _BoundedExpression(_joined(operator, x.expression, y.expression), bounds)


def _number(x: Literal) -> _BoundedExpression | None:
    return _constant(int(np.asarray(x.value))) if dtypes.kind(x.aval.dtype) in "iub" else None


def _constant(n: int) -> _BoundedExpression:
    return _BoundedExpression(IndexExpression(str(n), str(n), 0 if n >= 0 else SUM), (n, n))


def _joined(operator: _Operator, x: IndexExpression, y: IndexExpression) -> IndexExpression:
    """Write an operator between two expressions, in parentheses where they bind no closer; it is left-associative."""
    level = operator.level
    x = x.in_parentheses(x.level > level or x.level == level >= COMPARISON)
    y = y.in_parentheses(y.level >= level)
    return IndexExpression(f"{x.text}{operator.text}{y.text}", f"{x.latex}{operator.latex}{y.latex}", level)


def _moved(d: Definition, known: Mapping[int, _BoundedExpression]) -> _BoundedExpression | None:
    """Return the expression that a sum only moves, indexed by indices of the result alone; None if it does more."""
    (t, *others) = d.value or (None,)
    if t is None:
        return _constant(0)
    if (
        not isinstance(t, Term)
        or others
        or t.brackets
        or t.out != variables(d.aval.shape)
        or len(t.sizes) > d.aval.ndim
    ):
        return None
    if not t.factors and isinstance(t.coefficient, int):
        return _constant(t.coefficient)
    if len(t.factors) != 1 or t.coefficient != 1:
        return None
    (f,) = t.factors
    axes = [a.variable for a in f.access]
    if f.operand not in known or f.use is not Use.PLAIN:
        return None
    x = known[f.operand]
    return None if None in axes else x._replace(expression=x.expression.over([f"{{{v}}}" for v in axes]))


# ---- operators -----------------------------------------------------------------------------------------------


def _corners(f: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    def bounds(x: Bounds, y: Bounds) -> Bounds:
        found = [f(a, b) for a in x for b in y]
        return min(found), max(found)

    return bounds


def _of_numerals(f: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds | None]:
    """Bound a quotient or remainder that rounds down as well as towards 0: of a number that is not negative."""

    def bounds(x: Bounds, y: Bounds) -> Bounds | None:
        return (0, f(x[1], y[0])) if x[0] >= 0 and y[0] == y[1] > 0 else None

    return bounds


def _compared(holds: Callable[[Any, Any], Any]) -> Callable[[Bounds, Bounds], Bounds]:
    """Bound a comparison: it is known if it is the same for all numbers from the one end to the other."""

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        found = [bool(holds(a, b)) for a in x for b in y]
        is_between = x[0] <= y[1] and y[0] <= x[1]  # equal numbers are possible
        found += [bool(holds(0, 0))] if is_between else []
        return int(min(found)), int(max(found))

    return bounds


def _meets(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), min(x[1], y[1])


def _joins(x: Bounds, y: Bounds) -> Bounds:
    return max(x[0], y[0]), max(x[1], y[1])


_operators: Table[_Operator] = Table(
    "index operators", "an `_Operator` of two functions of indices", absent="its result is no function of indices"
)
_operators[e.add_p] = _Operator(" + ", " + ", SUM, _corners(lambda a, b: a + b), neutral=0)
_operators[e.sub_p] = _Operator(" - ", " - ", SUM, _corners(lambda a, b: a - b))
_operators[e.mul_p] = _Operator(" * ", r" \, ", PRODUCT, _corners(lambda a, b: a * b))
_operators[e.div_p] = _Operator(" // ", " // ", PRODUCT, _of_numerals(lambda a, n: a // n), "iu")
_operators[e.rem_p] = _Operator(" % ", r" \bmod ", PRODUCT, _of_numerals(lambda a, n: min(a, n - 1)), "iu")
_operators[e.eq_p] = _Operator(" = ", " = ", COMPARISON, _compared(python.eq))
_operators[e.ne_p] = _Operator(" != ", r" \ne ", COMPARISON, _compared(python.ne))
_operators[e.lt_p] = _Operator(" < ", " < ", COMPARISON, _compared(python.lt))
_operators[e.le_p] = _Operator(" <= ", r" \le ", COMPARISON, _compared(python.le))
_operators[e.gt_p] = _Operator(" > ", " > ", COMPARISON, _compared(python.gt))
_operators[e.ge_p] = _Operator(" >= ", r" \ge ", COMPARISON, _compared(python.ge))
_operators[bits.and_p] = _Operator(" and ", r" \wedge ", LOGIC, _meets, "b", 1)
_operators[bits.or_p] = _Operator(" or ", r" \vee ", LOGIC, _joins, "b", 0)
