"""Masks of positions: whether brackets of affine indices hold somewhere along axes, for every element that is left.

Existential quantifiers over integer variables, as in quantifier elimination. Of equalities, `terms.solve` eliminates a
variable; of an inequality, it takes its best value. Left out: results that are neither everywhere true nor false.
"""

from collections.abc import Sequence

from tapeless.interpreters.simplifications.fusion.affine_values import Definition, brackets_where
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.terms.affine import Affine, Variable, variables
from tapeless.tracer.terms.solve import solved
from tapeless.tracer.terms.term import Bracket, NotNegative, Term, indices_of, term, with_indices


def holds_somewhere(x: Atom, axes: Sequence[int], definition: Definition) -> bool | None:
    """Tell whether a mask holds somewhere along axes, at all places of the other axes or at none; None if unknown.

    Args:
      definition: the equation that computes a variable, None for inputs and literals.
    """
    brackets, shape = brackets_where(x, definition), x.aval.shape
    if brackets is None:
        return None
    for v in axes:
        brackets = _at_best(brackets, v, shape[v])
    index, kept = variables(shape), without(range(len(shape)), axes)
    found = solved(term([index[d] for d in kept], shape, brackets=brackets))
    if found is None:
        return False
    return True if _is_everywhere(found, [shape[d] for d in kept]) else None


def _at_best(brackets: tuple[Bracket, ...], v: Variable, size: int) -> tuple[Bracket, ...]:
    """Put in the place of a variable the value at which the only bracket that it is in, an inequality, holds first."""
    read = [b for b in brackets if any(index.coefficient(v) for index in indices_of(b))]
    if len(read) != 1 or not isinstance(read[0], NotNegative):
        return brackets
    best = Affine(size - 1 if read[0].index.coefficient(v) > 0 else 0)
    return tuple([with_indices(b, lambda index: index.substituted(v, best)) for b in brackets])


def _is_everywhere(t: Term, shape: Sequence[int]) -> bool:
    """Tell whether a term without factors is added to every element of a result of this shape."""
    found = [a.variable for a in t.out]
    one = [a == Affine() and n == 1 for a, n in zip(t.out, shape)]
    all_along = [v is not None and t.sizes[v] == n for v, n in zip(found, shape)]
    distinct = [v for v in found if v is not None]
    return not t.brackets and len(set(distinct)) == len(distinct) and all(a or b for a, b in zip(one, all_along))
