"""Products and sums of values that are sums over entries, as sums over these or over pairs of these.

Search terms: sparse tensor algebra, Hadamard product of sparse matrices, join. Where a bracket does not hold, what it
multiplies does not count, infinite or nan: values at entries are left out there before they are multiplied.
"""

from collections.abc import Mapping, Sequence

from tapeless.interpreters.index.entries import BOOL, BodyIndices, SparseValue, select_entries, write_sum
from tapeless.interpreters.writer import Writer
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.terms.affine import Affine, Variable, variables
from tapeless.tracer.terms.solve import renumber_variables
from tapeless.tracer.terms.term import (
    Bracket,
    Lookup,
    Read,
    Term,
    Use,
    indices_of,
    is_case,
    looked_up,
    term,
    with_indices,
)
from tapeless.tracer.types import ShapedArray


def times(w: Writer, s: SparseValue, x: Atom, y: Atom | None, use: Use = Use.PLAIN) -> Atom:
    """Multiply a sum over entries by a value; by y, which is the value at entries, if that is given.

    A sum of truth values is the condition of a number.
    """
    t = s.term if x.aval.dtype == BOOL else _as_condition(s)
    if y is not None:  # what is not multiplied may be infinite: it is left out of the factor, too
        for b in t.brackets:
            y = select_entries(w, _holds(w, s, b), y, neutral(use)) if is_case(b) and b.access == s.at_entry else y
    axes = variables(x.aval.shape, len(t.sizes))
    factor = Read(len(s.operands), axes if y is None else (*s.at_entry, *axes), use)
    found = term(axes, (*t.sizes, *x.aval.shape), [*t.factors, factor], t.brackets, t.coefficient)
    return write_sum(w, [found], [*s.operands, x if y is None else y], x.aval.shape, x.aval)


def multiply_sums(w: Writer, x: SparseValue, y: SparseValue) -> Atom:
    """Multiply two sums over entries; if one is of truth values, it is the condition of the other."""
    x, y = (y, x) if x.is_truth and not y.is_truth else (x, y)
    if _implies(x, y):
        return x.value
    n, m = len(x.term.sizes), len(x.operands)
    other = (y.term if x.is_truth else _as_condition(y)).with_operands(lambda k: k + m)
    _, factors, brackets = renumber_variables(other, n)
    both = [*x.term.factors, *factors], [*x.term.brackets, *brackets], x.term.coefficient * other.coefficient
    return write_sum(w, [term((), (*x.term.sizes, *other.sizes), *both)], [*x.operands, *y.operands], (), x.value.aval)


def summed_entries(w: Writer, x: SparseValue, y: SparseValue, primitive: Primitive) -> Atom | None:
    """Add two sums over the same entries, or subtract them: one sum, so that differences stay exact; else None."""
    a, b = _values(w, x), _values(w, y)
    first, second = _brackets(x, y)
    return None if a is None or b is None or first != second else _with_values(w, x, w.write(primitive, a, b))


def _holds(w: Writer, s: SparseValue, b: Lookup) -> Atom:
    """Tell for each entry whether it has the number that a bracket asks for: a truth value, or a coordinate."""
    x = s.operands[b.operand]
    if x.aval.dtype == BOOL and b.index.constant == 1:
        return x
    return write_sum(w, [term(s.at_entry, s.term.sizes, (), [b])], s.operands, (s.entries,), ShapedArray((), BOOL))


def _as_condition(s: SparseValue) -> Term:
    """The term of a sum with truth values, by which numbers are multiplied, as brackets."""
    if not s.is_truth:
        return s.term
    cases = [Lookup(Affine(1), f.operand, f.access, (0, 1)) for f in s.term.factors]
    return term((), s.term.sizes, (), [*s.term.brackets, *cases], s.term.coefficient)


# ---- where brackets of others hold, too ------------------------------------------------------------------------


def neutral(use: Use) -> int:
    """Return the number that a factor is where its product does not count."""
    return 1 if use is Use.DIVIDED else 0


def keep_entries(w: Writer, s: SparseValue, mask: Atom) -> SparseValue:
    """Leave values out of a sum over entries where a mask of these is false, and the product is 0 for other reasons."""
    operands, read, (entry,) = list(s.operands), looked_up(s.term), s.at_entry
    for f in s.term.factors:
        is_same = all(other.access == f.access for other in s.term.factors if other.operand == f.operand)
        axis, x = f.access.index(entry) if entry in f.access else None, operands[f.operand]
        if axis is not None and x.aval.shape[axis] == s.entries and is_same and f.operand not in read:
            operands[f.operand] = select_entries(w, mask, x, neutral(f.use), axis)
    return s._replace(operands=tuple(operands))


def match_entries(
    w: Writer,
    s: SparseValue,
    others: Sequence[SparseValue],
    body: BodyIndices,
    fixed: frozenset[Atom] = frozenset(),
) -> Atom:
    """Tell for each entry of a sum whether its brackets and those of other sums hold together, for any indices.

    Args:
      fixed: indices that are as they are.
    """
    sums = [s, *others]
    sizes = [n for x in sums for n in x.term.sizes]
    free = {i: len(sizes) + k for k, i in enumerate([i for i in body.indices if i not in fixed])}
    brackets, operands, n = list[Bracket](), list[Atom](), 0
    for x in sums:
        own = _renumbered(_as_condition(x), n, len(operands))
        operands += x.operands
        freed = [_freed(b, operands, body, free) for b in own]
        brackets += [b for b in freed if b is not None]
        n += len(x.term.sizes)
    sizes += [body.indices[i].size for i in free]
    t = term(s.at_entry, sizes, (), brackets)
    return write_sum(w, [t], operands, (s.entries,), ShapedArray((), BOOL))


def _renumbered(t: Term, n: int, m: int) -> list[Bracket]:
    """Add n to the numbers of variables in brackets of a term, and m to those of operands."""
    moved = t.with_operands(lambda k: k + m)
    return [with_indices(b, lambda a: a.renamed(lambda v: v + n)) for b in moved.brackets]


def _freed(b: Bracket, operands: Sequence[Atom], body: BodyIndices, free: Mapping[Atom, Variable]) -> Bracket | None:
    """Write a bracket with variables for indices of the body; None if it has symbols that are no indices."""
    symbols = {s for a in indices_of(b) for s, _ in a.symbols}
    axes = {s: body.indices.get(operands[s.operand]) for s in symbols}
    if any(axis is None or s.low > 0 or s.high < axis.size - 1 for s, axis in axes.items()):
        return None

    def change(a: Affine) -> Affine:
        variables = [Affine(0, ((free[operands[s.operand]], c),)) for s, c in a.symbols if operands[s.operand] in free]
        fixed = tuple([(s, c) for s, c in a.symbols if operands[s.operand] not in free])
        return sum(variables, Affine(a.constant, a.variables, fixed))

    return with_indices(b, change)


# ---- brackets of two sums --------------------------------------------------------------------------------------


def _brackets(x: SparseValue, y: SparseValue) -> tuple[set[Bracket], set[Bracket]]:
    """Collect the brackets of two sums, over operands that are numbered together."""
    number = {v: k for k, v in enumerate(dict.fromkeys([*x.operands, *y.operands]))}
    first, second = [s.term.with_operands(lambda k, s=s: number[s.operands[k]]).brackets for s in (x, y)]
    return set(first), set(second)


def _implies(x: SparseValue, y: SparseValue) -> bool:
    """Tell whether a sum of truth values is known to be 1 where the product of another is not 0."""
    if not (y.is_truth and y.is_distinct) or y.term.factors or x.term.sizes[: len(y.term.sizes)] != y.term.sizes:
        return False
    first, second = _brackets(x, y)
    return first.issuperset(second)


def _values(w: Writer, s: SparseValue) -> Atom | None:
    """Multiply the factors of a sum for each entry: [entries]; None if there are other variables, or brackets."""
    brackets = [b for b in s.term.brackets if isinstance(b, Lookup) and b.access == s.at_entry]
    if len(s.term.sizes) != 1 or len(brackets) != len(s.term.brackets) or any(map(is_case, brackets)):
        return None
    t = term(s.at_entry, s.term.sizes, s.term.factors, (), s.term.coefficient)
    return write_sum(w, [t], s.operands, (s.entries,), s.value.aval)


def _with_values(w: Writer, s: SparseValue, values: Atom) -> Atom:
    """Sum other values over the same entries."""
    t = term((), s.term.sizes, [Read(len(s.operands), s.at_entry)], s.term.brackets)
    return write_sum(w, [t], [*s.operands, values], (), values.aval)
