"""Share contractions among terms: a term that another one contains becomes a definition, computed once.

Search terms: common subexpression elimination, einsum factorization, Euler's theorem on homogeneous functions. A term
of a gradient is a term of the value without one of its factors, up to the symmetries that merged it; so the value is a
product with the gradient. Left out, knowingly: common parts of two terms that are neither of them; terms with brackets.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import NamedTuple

from tapeless.interpreters import limits
from tapeless.interpreters.formulas.let_form import Definition, LetForm, without_conjugates
from tapeless.interpreters.terms.plan import order_contraction
from tapeless.tracer import dtypes
from tapeless.tracer.formulas.symmetries import Symmetries, orbit
from tapeless.tracer.terms.affine import Affine, Variable, variables
from tapeless.tracer.terms.solve import explicit
from tapeless.tracer.terms.term import Read, Term, Use, indices_of, term, variables_in
from tapeless.tracer.types import ShapedArray

Place = tuple[int, int]  # a term: the number of its result, and its number in that


class _Sharing(NamedTuple):
    """The rewrite of the term `whole` to `after`, which reads the term `part`; `gain` is the work that it saves."""

    gain: int
    part: Place
    whole: Place
    after: Term


def with_shared_contractions(form: LetForm, avals: Sequence[ShapedArray], symmetries: Symmetries) -> LetForm:
    """Make definitions of the terms of results that other terms contain, while this saves work.

    Args:
      avals: types of the results.
      symmetries: of the inputs; a term may contain another one up to these.
    """
    if not 1 < sum(map(len, form.results)) <= limits.SHARED_TERMS:
        return form
    terms = {
        (r, k): explicit(t, x.shape, form.stays) or t
        for r, (found, x) in enumerate(zip(form.results, avals, strict=True))
        for k, t in enumerate(found)
    }
    parts, numbers = {at: t for at, t in terms.items() if _is_contraction(t)}, dict[Place, int]()
    definitions = list(form.definitions)
    while True:
        known = form._replace(definitions=tuple(definitions))
        best = max(_sharings(known, terms, parts, numbers, symmetries), key=lambda s: s.gain, default=None)
        if best is None:
            break
        if best.part not in numbers:
            t, shape = terms[best.part], avals[best.part[0]].shape
            numbers[best.part] = len(known.avals)
            definitions.append(_definition(known, t, shape))
            i = variables(shape)
            terms[best.part] = term(i, shape, [Read(numbers[best.part], i)], (), t.coefficient)
        terms[best.whole] = best.after
        parts.pop(best.whole, None)
    if not numbers:
        return form
    results = [tuple([terms[r, k] for k in range(len(found))]) for r, found in enumerate(form.results)]
    return known._replace(results=tuple(results))


def _is_contraction(t: Term) -> bool:
    """Tell whether a term is a contraction: no brackets, each index a variable, and one that is summed over."""
    read = {a.variable for f in t.factors for a in f.access}
    if t.brackets or None in read or len(set(t.out)) < len(t.out) or {a.variable for a in t.out} - read:
        return False
    return len(t.factors) > 1 and len(read) == len(t.sizes) > len(t.out)


def _definition(form: LetForm, t: Term, shape: tuple[int, ...]) -> Definition:
    read = [form.avals[f.operand].dtype for f in t.factors]
    return Definition(ShapedArray(shape, dtypes.result_type(*read)[0]), (t.unit,))


def _sharings(
    form: LetForm,
    terms: Mapping[Place, Term],
    parts: Mapping[Place, Term],
    numbers: Mapping[Place, int],
    symmetries: Symmetries,
) -> Iterator[_Sharing]:
    """Yield the rewrites of terms that contain others, where these save work."""
    real = form.real
    for part, t in parts.items():
        forms = orbit(t.unit, symmetries, real, form.periods) or {}
        number = numbers.get(part, len(form.avals))
        for small, sign in islice(forms.items(), limits.SHARED_FORMS):
            for use in (Use.PLAIN, Use.CONJUGATED):
                for whole, u in terms.items():
                    if whole == part or whole in numbers or not _is_contraction(small):
                        continue
                    for after in _replaced(u, small, Read(number, (), use), real):
                        gain = _work(u) - _work(after)
                        if gain > 0:
                            yield _Sharing(gain, part, whole, after.scaled(sign))


def _work(t: Term) -> int:
    labels = tuple([variables_in(f.access) for f in t.factors])
    return order_contraction(labels, variables_in(t.out), t.sizes)[1].work


def _replaced(t: Term, part: Term, read: Read, real: frozenset[int]) -> Iterator[Term]:
    """Yield the rewrites of a term in which factors matching those of `part` become one factor, a read of it."""
    is_conjugated = read.use is Use.CONJUGATED
    wanted = [f if not is_conjugated or f.operand in real else f._replace(use=_other(f.use)) for f in part.factors]
    if any(f.use is Use.DIVIDED for f in wanted):
        return
    for chosen in permutations(range(len(t.factors)), len(wanted)):
        values = _matched(t, part, wanted, chosen)
        if values is None:
            continue
        rest = [f for k, f in enumerate(t.factors) if k not in chosen]
        gone = {a.variable for v, a in values.items() if v not in {a.variable for a in part.out}}
        factor = read._replace(access=tuple([values[a.variable] for a in part.out if a.variable is not None]))
        sizes = {v: n for v, n in enumerate(t.sizes) if v not in gone}
        yield without_conjugates(term(t.out, sizes, [*rest, factor], t.brackets, t.coefficient), real)


def _other(use: Use) -> Use:
    return {Use.PLAIN: Use.CONJUGATED, Use.CONJUGATED: Use.PLAIN, Use.DIVIDED: Use.DIVIDED}[use]


def _matched(t: Term, part: Term, wanted: Sequence[Read], chosen: Sequence[int]) -> dict[Variable, Affine] | None:
    """Match the factors of `part` with the chosen ones of a term: return what its variables become; None on a mismatch.

    None also if a variable that `part` sums over occurs elsewhere in the term, or has another size.
    """
    values = dict[Variable, Affine]()
    for f, k in zip(wanted, chosen):
        other = t.factors[k]
        if (f.operand, f.use) != (other.operand, other.use):
            return None
        for a, b in zip(f.access, other.access, strict=True):
            assert a.variable is not None
            if values.setdefault(a.variable, b) != b:
                return None
    kept = {a.variable for a in part.out}
    summed = {v: a.variable for v, a in values.items() if v not in kept}
    if len({*summed.values()}) < len(summed) or None in summed.values():
        return None
    if any(part.sizes[v] != t.sizes[u] for v, u in summed.items() if u is not None):
        return None
    others = [*t.out, *[a for k, f in enumerate(t.factors) if k not in chosen for a in f.access]]
    others += [a for b in t.brackets for a in indices_of(b)] + [values[v] for v in values if v in kept]
    return None if {*summed.values()} & variables_in(others) else values
