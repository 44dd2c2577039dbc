"""Composition of sums of terms: sums are substituted for what factors read, until none is left or a limit ends it.

Search terms: producer-consumer fusion, inlining, multiplying out. Whoever composes says in a step what is substituted
in a term; the order of terms, the limits and the numbers of operands are those of this module.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.ein import operands_of
from tapeless.tracer.terms.solve import NO_AXES, Axes, substitute_sum
from tapeless.tracer.terms.term import Lookup, Sum, Term, Use
from tapeless.tracer.terms.term_limits import Limit


class NumberedAtoms:
    """The operands of sums, numbered in the order in which they are met; `atoms` lists them."""

    def __init__(self, atoms: Iterable[Atom] = ()) -> None:
        self._numbers: dict[Atom, int] = {}
        self.atoms: list[Atom] = []
        for x in atoms:
            self.number(x)

    def number(self, x: Atom) -> int:
        """Return the number of an operand, a new one if it has none."""
        if x not in self._numbers:
            self._numbers[x] = len(self.atoms)
            self.atoms.append(x)
        return self._numbers[x]


def compress_numbers(terms: Sum) -> tuple[Sum, tuple[int, ...]]:
    """Number the operands that terms read from 0 on, in the same order; return the terms, and the old numbers."""
    read = sorted({k for t in terms for k in operands_of(t)})
    if read == list(range(len(read))):
        return terms, tuple(read)
    new = {k: n for n, k in enumerate(read)}
    return tuple([t.with_operands(new.__getitem__) for t in terms]), tuple(read)


def positions_of(t: Term, operand: int) -> Iterator[int]:
    """Yield the positions of the factors that read an operand."""
    return (k for k, f in enumerate(t.factors) if f.operand == operand)


def may_compose(reader: Sum, operand: int, producer: Sum) -> bool:
    """Tell whether terms may be substituted for an operand: no factor divides by it, or conjugates a quotient."""
    uses = {f.use for t in reader for f in t.factors if f.operand == operand}
    divides = any(f.use is Use.DIVIDED for t in producer for f in t.factors)
    return Use.DIVIDED not in uses and not (divides and Use.CONJUGATED in uses)


class Substitution(NamedTuple):
    """A sum that takes the place of what factor number `at` of a term reads."""

    at: int
    producer: Sum


class ComposedTerms(NamedTuple):
    """The terms of a composition, in order and not merged, and the limit that ended it before its end, if one did."""

    terms: list[Term]
    passed: Limit | None


# term -> what is substituted in it, or the terms that it is rewritten to; None if it stays
Step = Callable[[Term], Substitution | Sequence[Term] | None]


class Composer(NamedTuple):
    """A composer of sums, with its limits; None for those that it does not have.

    compositions: of the terms that are composed. pending: of the terms that there are at any time, before they are
    merged. terms, factors: of the result. stays: axes of operands; a variable that reads only these stays summed over.
    """

    compositions: Limit | None = None
    pending: Limit | None = None
    terms: Limit | None = None
    factors: Limit | None = None
    stays: Axes = NO_AXES

    def composed(self, reader: Sequence[Term], step: Step) -> ComposedTerms:
        """Take steps until all terms stay, or a limit is passed."""
        todo, done, compositions = [*reversed(reader)], list[Term](), 0
        while todo:
            t = todo.pop()
            found = step(t)
            if found is None:
                done.append(t)
                continue
            if isinstance(found, Substitution):
                compositions += len(found.producer)
                if self.compositions is not None and compositions > self.compositions:
                    return ComposedTerms(done, self.compositions)
                found = substitute_sum(t, found.at, found.producer, self.stays)
            todo += reversed(found)
            if self.pending is not None and len(todo) + len(done) > self.pending:
                return ComposedTerms(done, self.pending)
        return ComposedTerms(done, None)

    def inlined(self, reader: Sequence[Term], operand: int, producer: Sum) -> ComposedTerms:
        """Substitute a sum for an operand of another, as `composed` does."""

        def step(t: Term) -> Substitution | None:
            at = next(positions_of(t, operand), None)
            return None if at is None else Substitution(at, producer)

        return self.composed(reader, step)

    def passed_by(self, terms: Sequence[Term]) -> Limit | None:
        """Return the limit that a result passes, None if it passes none."""
        if self.terms is not None and len(terms) > self.terms:
            return self.terms
        if self.factors is not None and any(len(t.factors) > self.factors for t in terms):
            return self.factors
        return None

    def passed_by_counts(self, reader: Sum, operand: int, n: int) -> Limit | None:
        """Return the limit passed by n terms in the place of an operand, even if all that can cancel do."""
        uses = [sum(f.operand == operand for f in t.factors) for t in reader]
        left = [t for t, k in zip(reader, uses) if not k]
        if self.compositions is not None and n * sum(map(bool, uses)) > self.compositions:
            return self.compositions
        new = sum(n**k for k in uses if k)
        if self.terms is not None and len(left) - new > self.terms:
            return None if any(isinstance(b, Lookup) for t in left for b in t.brackets) else self.terms
        return None
