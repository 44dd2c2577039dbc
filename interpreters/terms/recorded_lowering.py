"""Lower sums of terms once for each structure: the equations are recorded, and then written for other operands.

Search terms: memoization, code template. How a sum of terms is lowered depends only on the terms and on the types of
the operands; which rewrites apply to what is written depends on what computes them. So what is recorded are the
equations before any rewrite, and the rewrites see each copy of them.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tapeless.interpreters.terms.lower_terms import lower_sum
from tapeless.interpreters.writer import Writer
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.terms.term import Sum
from tapeless.tracer.types import ShapedArray


def lower_alike(w: Writer, terms: Sum, operands: Sequence[Atom], aval: ShapedArray, precision: Any) -> Atom | None:
    """Write a sum of terms over `operands`, as `lower_sum` does."""
    recording = _recorded(terms, tuple([x.aval for x in operands]), aval, precision, w.linear)
    if recording is None:
        return lower_sum(w, terms, operands.__getitem__, aval, precision)
    now: dict[Atom, Atom] = dict(zip(recording.operands, operands, strict=True))
    for eqn in recording.eqns:
        invars = [_copied(x, now) for x in eqn.invars]
        now[eqn.outvars[0]] = w.write(eqn.primitive, *invars, **eqn.params)
    return None if recording.result is None else _copied(recording.result, now)


def _copied(x: Atom, now: dict[Atom, Atom]) -> Atom:
    """Translate an atom of a recording; a literal becomes a new one, as each lowering makes its own."""
    if x not in now:
        now[x] = Literal(x.value, x.aval)  # type: ignore[union-attr]
    return now[x]


class _Recording(NamedTuple):
    """The equations that a lowering writes before they are rewritten; its result, None if it cannot be lowered."""

    operands: Sequence[Var]
    eqns: Sequence[Equation]
    result: Atom | None


@lru_cache(maxsize=1024)
def _recorded(
    terms: Sum, avals: tuple[ShapedArray, ...], aval: ShapedArray, precision: Any, linear: bool
) -> _Recording | None:
    """Record the lowering of a sum of terms; None if it writes more than applications of primitives."""
    operands = [Var(x) for x in avals]
    w = _Recorder(Jaxpr(operands, [], [], "terms"))
    w.linear = linear
    result = lower_sum(w, terms, operands.__getitem__, aval, precision)
    return _Recording(operands, w.eqns, result) if w.is_complete else None


class _Recorder(Writer):
    """A writer without rewrites."""

    is_complete = True

    def write(self, primitive: Primitive, /, *operands: Atom, **params: Any) -> Atom:
        (aval,) = primitive.type(tuple([v.aval for v in operands]), params)
        out = Var(aval)
        self.eqns.append(Equation(primitive, operands, params, [out]))
        return out

    def keep(self, eqn: Equation) -> None:
        self.is_complete = False

    def inlined(self, program: Jaxpr, operands: Sequence[Atom]) -> list[Atom]:
        self.is_complete = False
        return [Var(v.aval) for v in program.outvars]
