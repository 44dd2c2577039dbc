"""Raise a program to sums of terms over its inputs, by composing the terms of its equations.

Search terms: raising, symbolic execution, expression swell, let form. Every value becomes a sum of products of inputs
and definitions. A definition is made of a value without terms, such as `exp`, and of a multiplied sum of several terms,
which would otherwise be multiplied out. Sums that depend on a cotangent get no definition: they are composed. Equal
definitions are one, so that nothing is computed twice. Real parts, imaginary parts and powers have terms here, as
numbers in a formula have no precision. Source: Li & Damle 2024.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.formulas.let_form import (
    Computed,
    Definition,
    LetForm,
    exact_number,
    used_definitions,
    with_written_results,
    without_conjugates,
)
from tapeless.interpreters.formulas.primitive_source import value_of_numbers
from tapeless.interpreters.index_rows import Combination, elements, index_row
from tapeless.interpreters.simplifications.fusion.affine_indexing import without_lookups
from tapeless.interpreters.simplifications.fusion.affine_values import Values
from tapeless.interpreters.terms.compose import Composer, Substitution
from tapeless.interpreters.writer import Writer
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import name_p
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Affine, variables
from tapeless.tracer.terms.solve import NO_AXES, Axes, merge_terms
from tapeless.tracer.terms.term import Lookup, Read, Sum, Term, Use, looked_up, term, variables_in
from tapeless.tracer.types import ShapedArray


def raise_program(
    jaxpr: Jaxpr,
    given: Mapping[int, Sum],
    symbols: Sequence[ShapedArray] = (),
    *,
    lets: bool = False,
    stays: Axes = NO_AXES,
) -> LetForm:
    """Raise a program to a let form.

    Args:
      given: inputs that are sums themselves, by position: cotangents and tangents. Values that depend on these are
        composed without definitions; the other inputs are the operands.
      symbols: types of further operands, after the inputs: scalars that the given sums have as symbols.
      lets: give a definition to every value that is more than moved or scaled, so that nothing is computed twice.
      stays: axes of operands; a variable that reads only these stays summed over.
    """
    inputs = [v for k, v in enumerate(jaxpr.invars) if k not in given]
    avals = [*[v.aval for v in inputs], *symbols]
    raising = _Raising(list(avals), lets, stays)
    for k, v in enumerate(inputs):
        raising.values[v] = (_read(k, v.aval.shape),)
    for k, terms in given.items():
        raising.values[jaxpr.invars[k]] = terms
        raising.linear.add(jaxpr.invars[k])
    raising.program(jaxpr)
    form = LetForm(tuple(avals), tuple(raising.definitions), tuple(map(raising.value, jaxpr.outvars)), stays=stays)
    return with_written_results(used_definitions(form)) if lets else used_definitions(form)


# ---- one program ---------------------------------------------------------------------------------------------


class _Raising:
    """The state of raising one program: the values of its variables as sums, and the definitions so far."""

    def __init__(self, avals: list[ShapedArray], lets: bool, stays: Axes) -> None:
        self._lets, self._composer = lets, Composer(stays=stays)
        self.values = dict[Var, Sum]()  # sums over operands, multiplied out
        self.linear = set[Var]()  # values that depend on the given sums
        self.definitions = list[Definition]()
        self._named = dict[Var, Sum]()  # for values of several terms, one term that reads a definition
        self._avals, self._inputs = avals, len(avals)
        self._made = dict[Var, Equation]()
        self._decided = dict[Var, Literal]()  # booleans that numbers decide
        self._known = dict[Any, int]()  # numbers of definitions, by their content
        self._indices = Values(lambda v: self._made.get(v) if isinstance(v, Var) else None, {})

    def program(self, jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            eqn = eqn.replace(invars=[self._decided.get(x, x) if isinstance(x, Var) else x for x in eqn.invars])
            self._made.update((v, eqn) for v in eqn.outvars)
            is_linear = any(v in self.linear for v in eqn.invars)
            (self.linear.update if is_linear else self.linear.difference_update)(eqn.outvars)
            for v in eqn.outvars:  # left from an earlier call of the same function
                self._named.pop(v, None)
            truth = _truth_of_numbers(eqn)
            if truth is not None:
                self._decided[eqn.outvars[0]], self.values[eqn.outvars[0]] = truth, _number(truth)
            elif eqn.primitive is jit_p:
                self._call(eqn)
            else:
                self._equation(eqn)

    def value(self, x: Atom) -> Sum:
        """Return an atom as a sum, multiplied out."""
        return self.values[x] if isinstance(x, Var) else _number(x)

    def _factor(self, x: Atom) -> Sum:
        """Return an atom as a factor: one term, by a definition if need be, unless it depends on the given sums."""
        return self._named.get(x, self.values[x]) if isinstance(x, Var) else _number(x)

    def _call(self, eqn: Equation) -> None:
        inner: Jaxpr = eqn.params["jaxpr"]
        for v, x in zip(inner.invars, eqn.invars, strict=True):
            self._copy(v, x)
        self.program(inner)
        for v, x in zip(eqn.outvars, inner.outvars, strict=True):
            self._copy(v, x)

    def _copy(self, v: Var, x: Atom) -> None:
        self.values[v], self._named[v] = self.value(x), self._factor(x)
        (self.linear.add if x in self.linear else self.linear.discard)(v)

    def _equation(self, eqn: Equation) -> None:
        same = self._same(eqn)
        if same is not None:
            self._copy(eqn.outvars[0], same)
            return
        sums = self._constant(eqn) or _terms_of(eqn)
        if sums is None:
            self._opaque(eqn)
            return
        for v, terms in zip(eqn.outvars, sums, strict=True):
            self._define(eqn, v, terms)

    def _same(self, eqn: Equation) -> Atom | None:
        """Return the operand that a result equals: the only case of a select, or that of a maximum with -inf."""
        if eqn.primitive is e.select_n_p:
            (p, *others) = self._indices.pieces(eqn.invars[0])
            is_known = not others and p.value is not None and p.value.is_constant
            found = eqn.invars[1 + p.value.constant] if is_known and p.value is not None else None
            return found if found is not None and found.aval.shape == eqn.outvars[0].aval.shape else None
        if eqn.primitive is e.max_p:
            shape = eqn.outvars[0].aval.shape
            return next((x for x, y in permutations(eqn.invars) if _is_least(y) and x.aval.shape == shape), None)
        return None

    def _constant(self, eqn: Equation) -> tuple[Sum] | None:
        """Return the terms of a value that is constant where brackets hold, as identities and triangles, or None."""
        v = eqn.outvars[0] if len(eqn.outvars) == 1 else None
        if v is None or v in self.linear or dtypes.is_key(v.aval.dtype):
            return None
        found = list[Term]()
        for p in self._indices.pieces(v):
            if p.value is None or not p.value.is_constant:
                return None
            if p.value.constant:
                found.append(term(variables(v.aval.shape), v.aval.shape, (), p.brackets, p.value.constant))
        return (tuple(found),) if len(found) <= limits.RAISED_PIECES else None

    def _define(self, eqn: Equation, v: Var, terms: Sum) -> None:
        """Set the value of a variable, given as terms over the operands of its equation."""
        products = any(len(t.factors) > 1 for t in terms)
        found = self._sum(eqn, terms, self._factor if products else self._operand_value)
        if len(found) > limits.RAISED_TERMS or any(len(t.factors) > limits.RAISED_FACTORS for t in found):
            found = (_read(self._new(Definition(v.aval, found)), v.aval.shape),)
        if self._lets and (len(found) > 1 or any(len(t.factors) > 1 for t in found)):
            found = (_read(self._new(Definition(v.aval, found, v in self.linear)), v.aval.shape),)
        self.values[v] = found
        if len(found) > 1 and v not in self.linear:
            short = self._sum(eqn, terms, self._factor)
            self._named[v] = short if len(short) == 1 else self._definition(v.aval, found)

    def _operand_value(self, x: Atom) -> Sum:
        return self.value(x)

    def _definition(self, aval: ShapedArray, terms: Sum) -> Sum:
        """Make a definition of a sum, without the common coefficient of its terms; return the term that reads it."""
        c = terms[0].coefficient
        is_common = not isinstance(c, complex) and all(abs(t.coefficient) == abs(c) for t in terms)
        common = c if is_common else 1  # dividing by i could make a real value complex
        number = self._new(Definition(aval, tuple([t.scaled(_quotient(1, common)) for t in terms])))
        return (_read(number, aval.shape).scaled(common),)

    def _new(self, d: Definition) -> int:
        """Return the number of a definition, the old one if an equal definition exists."""
        key = d.aval.shape, d.aval.dtype, d.value if isinstance(d.value, Computed) else frozenset(d.value)
        if isinstance(d.value, Computed):
            c = d.value
            operands = [k if isinstance(k, int) else (str(k.aval), str(k.value)) for k in c.operands]
            key = c.primitive, repr(sorted(c.params.items(), key=lambda p: p[0])), tuple(operands), c.result
        if key not in self._known:
            self._known[key] = self._inputs + len(self.definitions)
            self.definitions.append(d)
            self._avals.append(d.aval)
        return self._known[key]

    def _opaque(self, eqn: Equation) -> None:
        """Make definitions of the results of an equation by its primitive, or fold it if its operands are numbers."""
        number = self._folded(eqn)
        if number is not None:
            self.values[eqn.outvars[0]] = (term((), (), (), (), number),)
            return
        operands = tuple(map(self._operand_or_number, eqn.invars))
        for k, v in enumerate(eqn.outvars):
            number = self._new(Definition(v.aval, Computed(eqn.primitive, eqn.params, operands, k)))
            self.values[v] = (_read(number, v.aval.shape),)

    def _folded(self, eqn: Equation) -> Any:
        """Compute a function of numbers in Python's precision; None if an operand or the result is not a number."""
        numbers = [self._as_number(x) for x in eqn.invars]
        if any(x is None for x in numbers) or len(eqn.outvars) != 1 or eqn.outvars[0] in self.linear:
            return None
        aval = eqn.outvars[0].aval
        if aval.shape or not dtypes.is_inexact(aval.dtype):
            return None
        found = value_of_numbers(eqn.primitive, numbers, eqn.params)
        return None if found is None else exact_number(found)

    def _as_number(self, x: Atom) -> Any:
        if x.aval.shape or not dtypes.is_inexact(x.aval.dtype):
            return None
        terms = self.value(x)
        is_number = len(terms) == 1 and not terms[0].factors and not terms[0].brackets and not terms[0].sizes
        return terms[0].coefficient if is_number else None

    def _operand_or_number(self, x: Atom) -> int | Literal:
        number = self._as_number(x)
        if isinstance(x, Literal) or number is None or isinstance(number, complex):
            return x if isinstance(x, Literal) else self._operand(x)
        return Literal(x.aval.dtype.type(number), x.aval)

    def _operand(self, v: Var) -> int:
        """Return the number of the operand that a variable is; a new definition if it is none yet."""
        terms = self._factor(v)
        k = next((f.operand for t in terms for f in t.factors), None)
        if k is not None and _are_alike(self._avals[k], v.aval) and terms == (_read(k, v.aval.shape),):
            return k
        return self._new(Definition(v.aval, terms))

    # ---- composition of the terms of an equation

    def _sum(self, eqn: Equation, terms: Sum, value: Any) -> Sum:
        given = [t.with_operands(lambda k: -1 - k) for t in terms]
        found = self._composer.composed(given, lambda t: self._step(t, eqn, value)).terms
        return tuple([t.unit.scaled(exact_number(t.coefficient)) for t in merge_terms([self._real(t) for t in found])])

    def _step(self, t: Term, eqn: Equation, value: Any) -> Substitution | Sum | None:
        """Take a step towards a term over operands: operand k of the equation has the number -1 - k in it."""
        k = min([x for x in looked_up(t) if x < 0], default=0)
        if k:
            return self._without_lookup(t, k, eqn.invars[-1 - k])
        at = next((i for i, f in enumerate(t.factors) if f.operand < 0), None)
        if at is None:
            return None
        x, use = eqn.invars[-1 - t.factors[at].operand], t.factors[at].use
        if use is Use.DIVIDED:
            return (self._divided(t, at, x),)
        if use is Use.CONJUGATED and not dtypes.is_complex(x.aval.dtype):
            return (_with_factor(t, at, t.factors[at]._replace(use=Use.PLAIN)),)
        return Substitution(at, value(x))

    def _without_lookup(self, t: Term, k: int, x: Atom) -> Sum:
        """Rewrite a term that looks up `x`, operand `k`: by its pieces if it has few, else by its number."""
        pieces = self._indices.pieces(x)
        is_mask = dtypes.is_bool(x.aval.dtype) and sum(p.value != Affine() for p in pieces) > limits.RAISED_PIECES
        if not is_mask and all(p.value is not None for p in pieces) and not _is_symbol(t, k):
            return tuple([found for found in without_lookups(t, k, pieces, x.aval.shape) if found is not None])
        return (self._looking_up(t, k, x) if isinstance(x, Var) else _with_symbol(t, k, int(x.value)),)

    def _looking_up(self, t: Term, k: int, v: Var) -> Term:
        """Renumber looked-up operand `k`, which is `v`: read the operand that `v` was moved from, else `v` itself."""
        terms = self._factor(v)
        source = terms[0].factors[0] if _is_move(terms) and terms[0].out == variables(v.aval.shape) else None
        if source is None or len(terms[0].sizes) > v.aval.ndim or _is_symbol(t, k):
            number = self._operand(v)
            return t.with_operands(lambda n: number if n == k else n)

        def read(b: Any) -> Any:
            if not isinstance(b, Lookup) or b.operand != k:
                return b
            access = tuple([a.at(b.access) for a in source.access])
            return replace(b, operand=source.operand, access=access)

        return t.with_brackets(list(map(read, t.brackets)))

    def _divided(self, t: Term, at: int, x: Atom) -> Term:
        """Rewrite a divisor: as a number in the coefficient, as the inverse of a product, or as a definition."""
        f = t.factors[at]
        if isinstance(x, Literal):
            c = _number(x)[0].coefficient
            return term(
                t.out, t.sizes, (*t.factors[:at], *t.factors[at + 1 :]), t.brackets, _quotient(t.coefficient, c)
            )
        if dtypes.is_complex(x.aval.dtype):
            power = Computed(e.integer_pow_p, {"y": -1}, (self._operand(x),), 0)
            return _with_factor(t, at, f._replace(operand=self._new(Definition(x.aval, power)), use=Use.PLAIN))
        terms = self._factor(x)
        if len(terms) == 1 and self._is_invertible(terms[0], x.aval.shape):
            inverse = terms[0]
            factors = [
                Read(g.operand, tuple([a.at(f.access) for a in g.access]), Use.PLAIN if g.use else Use.DIVIDED)
                for g in inverse.factors
            ]
            others = (*t.factors[:at], *t.factors[at + 1 :], *factors)
            return term(t.out, t.sizes, others, t.brackets, _quotient(t.coefficient, inverse.coefficient))
        return _with_factor(t, at, f._replace(operand=self._operand(x)))

    def _is_invertible(self, t: Term, shape: tuple[int, ...]) -> bool:
        """Tell whether the inverse of a term is a term: it is one product of real numbers for each element."""
        real = all(not dtypes.is_complex(self._avals[f.operand].dtype) for f in t.factors)
        return real and not t.brackets and t.out == variables(shape) and len(t.sizes) == len(shape)

    def _real(self, t: Term) -> Term:
        conjugated = {f.operand for f in t.factors if f.use is Use.CONJUGATED and f.operand >= 0}
        return without_conjugates(t, frozenset(k for k in conjugated if not dtypes.is_complex(self._avals[k].dtype)))


def _is_symbol(t: Term, k: int) -> bool:
    """Tell whether an index of a term has operand `k` as a symbol."""
    return any(s.operand == k for a in t.indices for s, _ in a.symbols)


def _with_symbol(t: Term, k: int, value: int) -> Term:
    """Substitute a number, clamped to its bounds, for the symbol of operand `k`."""

    def index(a: Affine) -> Affine:
        known = sum(c * min(max(value, s.low), s.high) for s, c in a.symbols if s.operand == k)
        return Affine(a.constant + known, a.variables, tuple([(s, c) for s, c in a.symbols if s.operand != k]))

    return t.with_indices(index)


def _read(k: int, shape: tuple[int, ...]) -> Term:
    """Make the term that reads operand `k` as it is."""
    i = variables(shape)
    return term(i, shape, [Read(k, i)])


def _with_factor(t: Term, at: int, f: Read) -> Term:
    return term(t.out, t.sizes, (*t.factors[:at], f, *t.factors[at + 1 :]), t.brackets, t.coefficient)


def _number(x: Literal) -> Sum:
    return (term((), (), (), (), exact_number(x.value)),)


def _quotient(a: Any, b: Any) -> Any:
    return exact_number(a / b)


# ---- terms of formulas, besides those of index rows --------------------------------------------------------------

_terms: Table[Any] = Table(
    "formula",
    "terms(eqn) -> the terms of its result, in exact arithmetic; None if it has none",
    absent="its index row says its terms, if it has any",
)


def _integer_pow(eqn: Equation) -> Sum | None:
    y, avals = eqn.params["y"], [eqn.invars[0].aval]
    if not 0 < abs(y) <= limits.RAISED_POWER or (y < 0 and dtypes.is_complex(avals[0].dtype)):
        return None
    return (elements(avals, [0] * abs(y), uses=[Use.PLAIN if y > 0 else Use.DIVIDED] * abs(y)),)


def _part(a: Any, b: Any) -> Any:
    """Make the terms `a z + b conj(z)`, of the real or the imaginary part of z."""

    def terms(eqn: Equation) -> Sum:
        avals = [eqn.invars[0].aval]
        return elements(avals, [0], coefficient=a), elements(avals, [0], uses=[Use.CONJUGATED], coefficient=b)

    return terms


def _complex(eqn: Equation) -> Sum:
    avals = [x.aval for x in eqn.invars]
    return elements(avals, [0]), elements(avals, [1], coefficient=1j)


_terms[e.integer_pow_p], _terms[e.complex_p] = _integer_pow, _complex
_terms[e.real_p], _terms[e.imag_p] = _part(0.5, 0.5), _part(-0.5j, 0.5j)
_terms[name_p] = lambda eqn: (elements([eqn.invars[0].aval], [0]),)
_terms[e.difference_p] = lambda eqn: tuple(
    [elements([x.aval for x in eqn.invars], [k], coefficient=c) for k, c in enumerate((1, -1))]
)


def _terms_of(eqn: Equation) -> tuple[Sum, ...] | None:
    """Return the terms of each result over the operands of an equation; None if it has none."""
    if any(isinstance(x, Literal) and not _is_finite(x) for x in eqn.invars):
        return None
    if eqn.primitive is e.div_p and isinstance(x := eqn.invars[1], Literal) and not x.value:
        return None
    if eqn.primitive in _terms or _drops_imaginary_part(eqn):
        found = _terms.get(eqn.primitive, _terms[e.real_p])(eqn)
        return None if found is None else (found,)
    row = index_row(eqn)
    if row is None or row.combination is not Combination.TERMS:
        return None
    numeric = all(dtypes.is_inexact(v.aval.dtype) for v in eqn.outvars)
    return row.results if numeric or all(map(_is_move, row.results)) else None


def _drops_imaginary_part(eqn: Equation) -> bool:
    """Tell whether an equation converts complex numbers to real ones."""
    return (
        eqn.primitive is e.convert_element_type_p
        and dtypes.is_complex(eqn.invars[0].aval.dtype)
        and dtypes.kind(eqn.outvars[0].aval.dtype) == "f"
    )


def _are_alike(x: ShapedArray, y: ShapedArray) -> bool:
    """Tell whether two arrays have one shape and numbers of one kind; a term that reads one may be a part of it."""
    return x.shape == y.shape and dtypes.kind(x.dtype) == dtypes.kind(y.dtype)


_truths: Table[Callable[..., bool]] = Table(
    "truths of numbers", "holds(x, y): a comparison of Python's", absent="its result is no truth of numbers"
)
_truths[e.eq_p], _truths[e.ne_p], _truths[e.lt_p] = operator.eq, operator.ne, operator.lt
_truths[e.le_p], _truths[e.gt_p], _truths[e.ge_p] = operator.le, operator.gt, operator.ge
_truths[e.copy_p] = bool


def _truth_of_numbers(eqn: Equation) -> Literal | None:
    """Compute a boolean that literals decide; None for others."""
    literals = [x.value for x in eqn.invars if isinstance(x, Literal) and not x.aval.shape]
    if eqn.primitive not in _truths or len(literals) < len(eqn.invars):
        return None
    out = eqn.outvars[0].aval
    return Literal(np.bool_(_truths[eqn.primitive](*literals)), out) if dtypes.is_bool(out.dtype) else None


def _is_least(x: Atom) -> bool:
    return isinstance(x, Literal) and dtypes.is_inexact(x.aval.dtype) and bool(np.isneginf(np.asarray(x.value, float)))


def _is_finite(x: Literal) -> bool:
    return dtypes.kind(x.aval.dtype) in "biufc" and bool(np.isfinite(np.asarray(x.value, complex)))


def _is_move(terms: Sum) -> bool:
    """Tell whether terms only move elements of one operand, as integers and booleans may be, too.

    A sum does not: for booleans it is `or`, not a sum of numbers.
    """
    if len(terms) != 1 or len(terms[0].factors) != 1 or terms[0].coefficient != 1 or terms[0].brackets:
        return False
    return variables_in(terms[0].out) == frozenset(range(len(terms[0].sizes)))


# ---- squares of absolute values ------------------------------------------------------------------------------


def with_squared_moduli(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite squares of absolute values of complex numbers to `real(conj(z) z)`, which is differentiable at 0."""
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        w.source = eqn.source
        modulus = _squared(now)
        made = None if modulus is None else w.made_by(modulus, e.abs_p)
        z = None if made is None else made.invars[0]
        if z is None or not dtypes.is_complex(z.aval.dtype):
            w.keep(now)
            continue
        square = w.write(e.mul_p, w.write(e.conj_p, z), z)
        if not w.replace(eqn, w.write(e.real_p, square)):
            w.keep(now)
    return w.finish()


def _squared(eqn: Equation) -> Atom | None:
    """Return the operand that an equation squares, or None."""
    if eqn.primitive is e.square_p or (eqn.primitive is e.integer_pow_p and eqn.params["y"] == 2):
        return eqn.invars[0]
    return eqn.invars[0] if eqn.primitive is e.mul_p and eqn.invars[0] is eqn.invars[1] else None
