"""Let forms: programs as sums of terms over inputs and definitions; simplification and evaluation.

Search terms: let form, A-normal form, common subexpression. Operands are numbered: first inputs, then definitions, each
over the operands before it. Source: Li & Damle 2024.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.terms.compose import Composer, Substitution
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.formulas.adjacent_ranges import with_adjacent_ranges_joined
from tapeless.tracer.formulas.periodic import Periods, drop_quotients, wrap_accesses
from tapeless.tracer.formulas.symmetries import NO_PERIODS, Symmetries, merged_by_symmetry, select_symmetries
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.primitives.elementwise import convert_element_type, real
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.solve import NO_AXES, Axes, explicit, merge_terms, solve_term
from tapeless.tracer.terms.term import Read, Sum, Term, Use, conjugate, looked_up, term
from tapeless.tracer.types import ShapedArray, aval_of


class Computed(NamedTuple):
    """One result of a primitive that has no terms, applied to operands (by number) and literals."""

    primitive: Primitive
    params: Mapping[str, Any]
    operands: tuple[int | Literal, ...]
    result: int


class Definition(NamedTuple):
    """An operand that is computed from those before it; `is_linear`: it depends linearly on a cotangent or tangent."""

    aval: ShapedArray
    value: Sum | Computed
    is_linear: bool = False


class LetForm(NamedTuple):
    """A program: sums of terms over its inputs, operands 0, 1, .., and over definitions, numbered after these."""

    inputs: tuple[ShapedArray, ...]
    definitions: tuple[Definition, ...]
    results: tuple[Sum, ...]
    periods: Periods = NO_PERIODS  # axes of inputs that are read modulo their size
    stays: Axes = NO_AXES  # axes of inputs; a variable that reads only these stays summed over

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """Return the types of all operands."""
        return (*self.inputs, *[d.aval for d in self.definitions])

    @property
    def real(self) -> frozenset[int]:
        """Return the operands that are real."""
        return frozenset(k for k, x in enumerate(self.avals) if not dtypes.is_complex(x.dtype))


def used_definitions(form: LetForm) -> LetForm:
    """Drop definitions that nothing reads, and renumber the others in order."""
    n, todo = len(form.inputs), {k for terms in form.results for k in operands_of(terms)}
    used = set[int]()
    while todo:
        k = todo.pop()
        if k >= n and k not in used:
            used.add(k)
            todo |= operands_of(form.definitions[k - n].value)
    new = {k: n + i for i, k in enumerate(sorted(used))} | {k: k for k in range(n)}
    definitions = [d._replace(value=renumbered(d.value, new)) for k, d in enumerate(form.definitions, n) if k in used]
    results = tuple([_renumbered(terms, new) for terms in form.results])
    return form._replace(definitions=tuple(definitions), results=results)


def modular_axes(form: LetForm) -> list[tuple[int, int]]:
    """Return the periodic axes that are read at an index other than a single variable, as (operand, axis), sorted."""
    sums = [*[d.value for d in form.definitions if not isinstance(d.value, Computed)], *form.results]
    reads = [f for terms in sums for t in terms for f in t.factors]
    return sorted(
        {(f.operand, d) for f in reads for d, a in enumerate(f.access) if a.variable is None} & {*form.periods}
    )


def uses(form: LetForm) -> Counter[int]:
    """Count how often each operand is read."""
    found = Counter[int]()
    for value in (*[d.value for d in form.definitions], *form.results):
        if isinstance(value, Computed):
            found.update([k for k in value.operands if isinstance(k, int)])
        else:
            found.update([f.operand for t in value for f in t.factors])
            found.update([k for t in value for k in looked_up(t)])
    return found


def with_written_results(form: LetForm) -> LetForm:
    """Replace a result that only reads one definition by the value of that, if nothing else reads it."""
    n, counts = len(form.inputs), uses(form)

    def written(terms: Sum) -> Sum:
        k = terms[0].factors[0].operand if len(terms) == 1 and len(terms[0].factors) == 1 else -1
        d = form.definitions[k - n] if k >= n and counts[k] == 1 else None
        if d is None or isinstance(d.value, Computed):
            return terms
        i = variables(d.aval.shape)
        return d.value if terms[0] is term(i, d.aval.shape, [Read(k, i)]) else terms

    return used_definitions(form._replace(results=tuple(map(written, form.results))))


def operands_of(value: Sum | Computed) -> set[int]:
    """Return the operands that a value reads."""
    if isinstance(value, Computed):
        return {k for k in value.operands if isinstance(k, int)}
    return {k for t in value for k in (*looked_up(t), *[f.operand for f in t.factors])}


def renumbered(value: Sum | Computed, new: Mapping[int, int]) -> Sum | Computed:
    """Renumber operand k of a value as new[k]."""
    if isinstance(value, Computed):
        return value._replace(operands=tuple([new[k] if isinstance(k, int) else k for k in value.operands]))
    return _renumbered(value, new)


def _renumbered(terms: Sum, new: Mapping[int, int]) -> Sum:
    return tuple([t.with_operands(new.__getitem__) for t in terms])


def without_conjugates(t: Term, real: frozenset[int]) -> Term:
    """Drop the conjugation of real operands in a term."""
    if not any(f.use is Use.CONJUGATED and f.operand in real for f in t.factors):
        return t
    factors = [f._replace(use=Use.PLAIN) if f.use is Use.CONJUGATED and f.operand in real else f for f in t.factors]
    return term(t.out, t.sizes, factors, t.brackets, t.coefficient)


def multiplied_out(form: LetForm) -> LetForm:
    """Multiply out: substitute the sums among definitions into the products that read them, except as divisors.

    Sums that divide stay definitions.
    """
    n = len(form.inputs)
    sums = {k: d.value for k, d in enumerate(form.definitions, n) if not isinstance(d.value, Computed)}
    done = dict[int, Sum]()

    for k, terms in sums.items():
        found = _expanded(terms, done, form)
        if _is_plain(found):
            done[k] = found
    definitions = [d._replace(value=done.get(k, d.value)) for k, d in enumerate(form.definitions, n)]
    results = [_expanded(terms, done, form) for terms in form.results]
    return used_definitions(form._replace(definitions=tuple(definitions), results=tuple(results)))


def _expanded(terms: Sum, sums: Mapping[int, Sum], form: LetForm) -> Sum:
    """Substitute sums for the operands of terms, except for divisors."""

    def step(t: Term) -> Substitution | None:
        at = next((i for i, f in enumerate(t.factors) if f.operand in sums and f.use is not Use.DIVIDED), None)
        return None if at is None else Substitution(at, sums[t.factors[at].operand])

    found = Composer(stays=form.stays).composed(terms, step)
    return merge_terms([without_conjugates(t, form.real) for t in found.terms])


def _is_plain(terms: Sum) -> bool:
    """Tell whether no term divides, so that a sum can be conjugated term by term."""
    return not any(f.use is Use.DIVIDED for t in terms for f in t.factors)


def exact_number(value: Any) -> Any:
    """Convert a number to Python's: an int if it is whole, a float if it is real, else complex."""
    found = np.asarray(value).item()
    if isinstance(found, complex) and found.imag == 0:
        found = found.real
    return int(found) if isinstance(found, (bool, float)) and float(found).is_integer() else found


# ---- simplification ------------------------------------------------------------------------------------------


def simplify_form(
    form: LetForm, shapes: Sequence[tuple[int, ...]], symmetries: Symmetries
) -> tuple[LetForm, Symmetries]:
    """Merge terms that are equal by symmetries of inputs, and cancel factors against divisors.

    Args:
      shapes: the shapes of the results.
    Returns: the form; the symmetries that were used.
    """
    definitions = [
        d if isinstance(d.value, Computed) else d._replace(value=_prepared(d.value, d.aval.shape, form))
        for d in form.definitions
    ]
    results = [_prepared(terms, shape, form) for terms, shape in zip(form.results, shapes, strict=True)]
    sums = [*[d.value for d in definitions if not isinstance(d.value, Computed)], *results]
    real, used = form.real, dict[int, tuple[Any, ...]]()
    for terms in sums:
        for k, found in select_symmetries(terms, symmetries, real, form.periods).items():
            used[k] = tuple(dict.fromkeys((*used.get(k, ()), *found)))

    def change(terms: Sum) -> Sum:
        return merged_by_symmetry(terms, used, real, form.periods)

    definitions = [d if isinstance(d.value, Computed) else d._replace(value=change(d.value)) for d in definitions]
    after = form._replace(definitions=tuple(definitions), results=tuple(map(change, results)))
    return used_definitions(after), used


def _prepared(terms: Sum, shape: tuple[int, ...], form: LetForm) -> Sum:
    """Solve terms for the indices of their result, cancel divisors, and merge: equal terms become one."""
    found = [explicit(x, shape, form.stays) for t in terms for x in _cancelled(t, form.stays)]
    terms = merge_terms(
        [x for t in found if t is not None and (x := drop_quotients(t, form.periods, form.stays)) is not None]
    )
    return with_adjacent_ranges_joined(terms, shape, form.stays)


def _cancelled(t: Term, stays: Axes) -> Sum:
    """Cancel factors against equal divisors; () if the term is 0."""
    kept = list[Read]()
    for f in t.factors:
        inverse = f._replace(use=Use.PLAIN if f.use is Use.DIVIDED else Use.DIVIDED)
        if f.use is not Use.CONJUGATED and inverse in kept:
            kept.remove(inverse)
        else:
            kept.append(f)
    if len(kept) == len(t.factors):
        return (t,)
    found = solve_term(term(t.out, t.sizes, kept, t.brackets, t.coefficient), stays)
    return () if found is None else (found,)


def conjugate_sum(terms: Sum, real: frozenset[int]) -> Sum:
    """Conjugate a sum without complex divisors."""
    return merge_terms([conjugate(t, real) for t in terms])


# ---- evaluation ----------------------------------------------------------------------------------------------


Apply = Callable[[Computed, Sequence[Any]], Any]


def evaluate_form(
    form: LetForm, inputs: Sequence[Any], shapes: Sequence[ShapedArray], apply: Apply | None = None
) -> list[Any]:
    """Evaluate the results under the current trace; the width of their dtypes follows from the inputs.

    Args:
      shapes: the types of the results.
      apply: (definition by a primitive, operands) -> its value; binds the primitive if None.
    """
    values, compute, avals = list(inputs), apply or bind_definition, form.avals
    for d in form.definitions:
        if isinstance(d.value, Computed):
            values.append(compute(d.value, _of_one_width(d.value, values, avals)))
        else:
            values.append(_summed(d.value, d.aval, values, form.periods))
    return [_summed(terms, aval, values, form.periods) for terms, aval in zip(form.results, shapes, strict=True)]


def _of_one_width(c: Computed, values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Convert the operands of a primitive that had one dtype, and were given in several widths, to the widest of them.

    Numbers take the dtype of arrays.
    """
    found = [values[k] if isinstance(k, int) else k.value for k in c.operands]
    derived = [avals[k].dtype if isinstance(k, int) else k.aval.dtype for k in c.operands]
    for dtype in {d for d in derived if dtypes.is_inexact(d)}:
        places = [i for i, d in enumerate(derived) if d == dtype]
        given = [aval_of(found[i]).dtype for i in places if isinstance(c.operands[i], int)]
        if given:
            common = reduce(dtypes.wider, given)
            for i in places:
                if aval_of(found[i]).dtype != common:
                    found[i] = convert_element_type(found[i], common)
    return found


def bind_definition(c: Computed, operands: Sequence[Any]) -> Any:
    """Bind the primitive of a definition, and return the result that it names."""
    return c.primitive.apply(*operands, **c.params)[c.result]


def _summed(terms: Sum, aval: ShapedArray, values: Sequence[Any], periods: Periods) -> Any:
    """Evaluate a sum of terms by `ein`, in the promoted dtype of its factors."""
    terms = tuple([wrap_accesses(t, periods) for t in terms])
    factors = sorted({f.operand for t in terms for f in t.factors})
    numbers = [values[k] for k in factors if dtypes.is_inexact(aval_of(values[k]).dtype)]
    dtype = dtypes.result_type(*numbers)[0] if numbers and dtypes.is_inexact(aval.dtype) else aval.dtype
    if dtypes.is_complex(aval.dtype) or any(isinstance(t.coefficient, complex) for t in terms):
        dtype = dtypes.complex_of(dtype)
    if not terms:
        return full(aval.shape, 0, dtype)
    looked = {k for t in terms for k in looked_up(t)}
    given = [convert_element_type(x, dtype) if k in factors and k not in looked else x for k, x in enumerate(values)]
    found = ein(given, terms, aval.shape, dtype=dtype)
    return real(found) if dtypes.is_complex(dtype) and not dtypes.is_complex(aval.dtype) else found
