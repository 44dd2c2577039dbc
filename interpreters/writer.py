"""The rewriter of programs, on which the rules and passes of the simplifier are built, and the table of its rules.

Equations are written one after another; a rule sees what computes an operand, and replaces an equation by something
cheaper. Linear values that become zero lose their mark; it is inferred anew.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tapeless.tracer import passes
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import InternalError
from tapeless.tracer.flags import where_true
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects, map_carried
from tapeless.tracer.linear_vars import linear_results
from tapeless.tracer.primitives.elementwise import convert_element_type_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p, slice_p
from tapeless.tracer.rules import Table
from tapeless.tracer.source import Source
from tapeless.tracer.types import ShapedArray, exact


class Simplification(NamedTuple):
    """The rule that replaces equations of a primitive by something cheaper.

    apply: (writer, *operands, **params) -> an equal atom, or a sequence of them for several results; None if it fails.
    looks_at: `apply` fails unless an operand is a literal or is computed by one of these; None if there is no such set.
    """

    apply: Callable[..., Atom | Sequence[Atom] | None]
    looks_at: frozenset[Primitive] | None = None


rules: Table[Simplification] = Table(
    "simplify",
    "simplification.apply(writer, *operands, **params) -> an equal atom, or None; which primitives it looks at",
    absent="the equation is never replaced by a simpler one",
)
_NO_RULE = Simplification(lambda w, /, *operands, **params: None, frozenset())


def _as_it_is(jaxpr: Jaxpr) -> Jaxpr:
    return jaxpr


class Writer:
    """A rewriter: builds a new program from `jaxpr`, equation by equation, and tells rules what computes an operand.

    body: what the rewriter makes of the bodies of equations.
    """

    def __init__(self, jaxpr: Jaxpr, body: Callable[[Jaxpr], Jaxpr] = _as_it_is) -> None:
        self.jaxpr: Final = jaxpr
        self._body = body
        linear = True in jaxpr.linear_in
        self._mixed = linear and False in [v.linear for v in jaxpr.outvars]
        self.linear: bool = linear and not self._mixed  # do only linear results depend on what is written?
        self._is_linear = linear, self._mixed
        self.changed: bool = False
        self.sparser: bool = False  # was a linear value replaced by one that is not linear, a zero?
        self.eqns: list[Equation] = []
        self._made: dict[Var, Equation] = {}
        self._same: dict[Var, Atom] = {}
        self._is_same = self._same.keys().isdisjoint  # are all of these atoms as they were?
        self.source: Source | None = None  # source line of the equations that are written next

    def rewritten(self, before: "Writer | None" = None) -> Jaxpr:
        """Rewrite the whole program by the rules. Args: as in `visit_all`."""
        self.visit_all(before)
        return self.finish()

    def visit_all(self, before: "Writer | None" = None) -> None:
        """Write all equations of the old program, by the rules.

        Args:
          before: the writer of an earlier form of the program. An equation left as it is by that writer is looked at
            again only if it depends on one that is new since then.
        """
        wanted = {p: None if p.carries_programs else rules.get(p, _NO_RULE).looks_at for p in self.jaxpr.primitives}
        known = self._known_from(before)
        new = set[Atom]()  # the results of the equations that are new, or that depend on such
        keep, visit = self.keep, self.visit
        for eqn in self.jaxpr.eqns:
            if known:
                if eqn in known and new.isdisjoint(eqn.invars) and not self.sparser:
                    keep(eqn)
                    continue
                new.update(eqn.outvars)
            if self._is_idle(eqn, wanted[eqn.primitive]) and not (self.sparser and _is_of_zeros(eqn)):
                keep(eqn)
            else:
                visit(eqn)

    def _known_from(self, before: "Writer | None") -> set[Equation]:
        """Return the equations that another writer has written, unless it wrote them by other rules than this one."""
        if before is None or before.sparser or before._is_linear != self._is_linear:
            return set()
        return set(before.eqns)

    def visit(self, eqn: Equation) -> None:
        """Write an equation of the old program: its replacement by a rule, or itself with its bodies simplified."""
        now = self.renamed(eqn)
        if self.sparser and _is_of_zeros(now):
            self.source, self.changed = eqn.source, True
            self._same.update((v, fill_array(self, 0, v.aval)) for v in eqn.outvars)
            return
        rule = rules.get(eqn.primitive)
        if self._mixed:
            self.linear = eqn.linear
        if rule is not None and not (eqn.primitive.carries_programs and effects(eqn)):
            self.source = eqn.source
            found = rule.apply(self, *now.invars, **eqn.params)
            if found is not None and self.replace(eqn, found):
                return
        if eqn.primitive.carries_programs:
            params = map_carried(self._body, eqn)
            if params is not eqn.params:
                self.changed, now = True, now.replace(params=params)
        self.keep(self._without_lost(now) if self.sparser and now.linear else now)

    def _without_lost(self, eqn: Equation) -> Equation:
        """Substitute zeros for results that no longer depend on a linear operand, as those of a loop of zeros.

        The bodies stay as they are: their linear inputs take zeros, too.
        """
        lost = [v.linear and not yes for v, yes in zip(eqn.outvars, linear_results(eqn), strict=True)]
        for v in where_true(lost, eqn.outvars):
            self.substitute(v, fill_array(self, 0, v.aval))
        return (
            eqn.replace(outvars=[Var(v.aval) if yes else v for v, yes in zip(eqn.outvars, lost)]) if any(lost) else eqn
        )

    def _is_idle(self, eqn: Equation, wanted: frozenset[Primitive] | None) -> bool:
        """Tell whether no rule can replace an equation, by its operands alone: a quick test, as that holds for most."""
        if wanted is None:
            return False
        same, made = self._same, self._made
        for v in eqn.invars:
            if type(v) is Literal:
                if wanted:
                    return False
            elif v in same or ((before := made.get(v)) is not None and before.primitive in wanted):  # type: ignore[arg-type]
                return False
        return True

    def renamed(self, eqn: Equation) -> Equation:
        """Rename the operands of an equation of the old program to variables of the new one."""
        if not self._same or self._is_same(eqn.invars):
            return eqn
        return Equation(eqn.primitive, [self.now(v) for v in eqn.invars], eqn.params, eqn.outvars, eqn.source)

    def now(self, v: Atom) -> Atom:
        """Translate a variable of the old program to the new one."""
        return self._same.get(v, v) if type(v) is Var else v

    def keep(self, eqn: Equation) -> None:
        """Append an equation to the new program as it is."""
        self.eqns.append(eqn)
        for v in eqn.outvars:
            self._made[v] = eqn

    def replace(self, eqn: Equation, outs: Atom | Sequence[Atom]) -> bool:
        """Substitute `outs` for the results of an old equation; False, and nothing is done, if types differ."""
        atoms = (outs,) if isinstance(outs, (Var, Literal)) else outs
        if any(v.aval is not found.aval for v, found in zip(eqn.outvars, atoms, strict=True)):
            return False
        for v, found in zip(eqn.outvars, atoms):
            self.substitute(v, found)
        return True

    def substitute(self, v: Var, found: Atom) -> None:
        """Substitute an atom of the same type for a variable of the old program."""
        self._same[v], self.changed = found, True
        self.sparser |= v.linear and not found.linear

    def write(self, primitive: Primitive, /, *operands: Atom, **params: Any) -> Atom:
        """Append the application of a primitive with one result, unless its rule replaces it; return the result."""
        rule = rules.get(primitive)
        found = rule.apply(self, *operands, **params) if rule else None
        (aval,) = primitive.type(tuple([v.aval for v in operands]), params)
        if isinstance(found, (Var, Literal)) and found.aval is aval:
            return found
        out = Var(aval, any(v.linear for v in operands))
        self.keep(Equation(primitive, operands, params, [out], self.source))
        return out

    def inlined(self, program: Jaxpr, operands: Sequence[Atom]) -> list[Atom]:
        """Inline a call: write the equations of its program by the rules, and return the results."""
        now: dict[Atom, Atom] = dict(zip(program.invars, operands, strict=True))
        linear = any(v.linear for v in operands)  # else linear marks are of another use of the program
        for eqn in program.eqns:
            here = eqn.replace(invars=[now.get(v, v) for v in eqn.invars])
            outs = [Var(v.aval, yes) for v, yes in zip(eqn.outvars, linear_results(here))]
            self.visit(here.replace(outvars=outs))
            for v, out in zip(eqn.outvars, outs):
                now[v] = fill_array(self, 0, v.aval) if linear and v.linear and not out.linear else self.now(out)
        return [now.get(v, v) for v in program.outvars]

    def made_by(self, v: Atom, primitive: Primitive) -> Equation | None:
        """Return the equation that computes `v` if it applies this primitive, else None."""
        eqn = self._made.get(v)  # type: ignore[arg-type]  # which no literal is in
        return eqn if eqn is not None and eqn.primitive is primitive else None

    def definition(self, v: Atom) -> Equation | None:
        """Return the equation that computes `v`; None for an input or a literal."""
        return self._made.get(v)  # type: ignore[arg-type]

    def finish(self) -> Jaxpr:
        """Return the new program, or the old one if nothing changed."""
        if not self.changed:
            return self.jaxpr
        outvars = [self.now(v) for v in self.jaxpr.outvars]
        after = passes.dead_code(self.jaxpr.replace(eqns=self.eqns, outvars=outvars))
        return reinfer_linearity(self.jaxpr, after) if self.sparser else after


def literal(value: Any, aval: ShapedArray) -> Literal:
    """Return a number as a scalar literal with the dtype and weak type of `aval`."""
    scalar = aval.update(shape=())
    return Literal(scalar.dtype.type(value) if scalar.weak_type else exact(value, scalar.dtype), scalar)


def fill_array(w: Writer, value: Any, aval: ShapedArray) -> Atom:
    """Write a value of type `aval` whose elements all equal `value`."""
    scalar = literal(value, aval)
    return w.write(broadcast_in_dim_p, scalar, shape=aval.shape, dims=()) if aval.shape else scalar


def convert_type(w: Writer, x: Atom, aval: ShapedArray) -> Atom:
    """Convert `x` to the dtype and weak type of `aval`."""
    if x.aval.dtype == aval.dtype and x.aval.weak_type == aval.weak_type:
        return x
    return w.write(convert_element_type_p, x, dtype=aval.dtype, weak_type=aval.weak_type)


def _with_linear_zeros(after: Jaxpr, before: Jaxpr, lost: Sequence[bool]) -> Jaxpr | None:
    """Restore the linear mark of the `lost` results, which are zero: write each as an empty sum over a linear input.

    None if no linear input has the dtype of such a result, or if one is not known to be zero.
    """
    eqns, outvars = list(after.eqns), list(after.outvars)
    for k, (v, is_lost) in enumerate(zip(before.outvars, lost, strict=True)):
        x = next((x for x in before.invars if x.linear and x.aval.update(shape=()) is v.aval.update(shape=())), None)
        if is_lost and (x is None or not _is_zero(after, outvars[k])):
            return None
        if is_lost and x is not None:
            outvars[k] = _linear_zero(eqns, x, v.aval)
    return passes.dead_code(after.replace(eqns=eqns, outvars=outvars))


def _is_zero(program: Jaxpr, v: Atom) -> bool:
    """Tell whether a result is the literal 0 or a broadcast of it."""
    made = {out: eqn for eqn in program.eqns for out in eqn.outvars}
    if isinstance(v, Var) and v in made and made[v].primitive is broadcast_in_dim_p:
        v = made[v].invars[0]
    return isinstance(v, Literal) and v.value == 0


def _linear_zero(eqns: list[Equation], x: Var, aval: ShapedArray) -> Var:
    """Append equations for zeros of type `aval` as the empty sum over `x[:0]`, which is linear in `x` and no work."""

    def written(primitive: Primitive, /, *operands: Atom, **params: Any) -> Var:
        (found,) = primitive.type(tuple([v.aval for v in operands]), params)
        out = Var(found, True)
        eqns.append(Equation(primitive, operands, params, [out], None))
        return out

    rank = max(x.aval.ndim, 1)
    some = x if x.aval.ndim else written(reshape_p, x, shape=(1,))
    none = written(slice_p, some, start_indices=(0,) * rank, limit_indices=(0,) * rank, strides=(1,) * rank)
    zero = written(reduce_sum_p, none, axes=tuple(range(rank)))
    return written(broadcast_in_dim_p, zero, shape=aval.shape, dims=()) if aval.shape else zero


def _is_alike(one: Jaxpr, other: Jaxpr) -> bool:
    """Tell whether two programs apply the same primitives, in the same order."""
    return [eqn.primitive for eqn in one.eqns] == [eqn.primitive for eqn in other.eqns]


def reinfer_linearity(before: Jaxpr, after: Jaxpr) -> Jaxpr:
    """Re-infer the linear marks of `after`, in which linear values became zero, and propagate the zeros.

    Linear results keep their mark, since callers rely on it.
    Returns: the new program, or `before` if the mark of a result would change, or if restoring it undid the rewrite.
    """
    if after.carrying or any(map(_is_of_zeros, after.eqns)):
        w = Writer(after)
        w.sparser = True
        w.visit_all()
        after = passes.dead_code(after.replace(eqns=w.eqns, outvars=[w.now(v) for v in after.outvars]))
    lost = [not new.linear and old.linear for new, old in zip(after.outvars, before.outvars, strict=True)]
    if not any(lost):
        same = all(new.linear == old.linear for new, old in zip(after.outvars, before.outvars, strict=True))
        return after if same else before
    zeros = _with_linear_zeros(after, before, lost)
    return before if zeros is None or _is_alike(zeros, before) else zeros


def uses(jaxpr: Jaxpr) -> dict[Var, int]:
    """Count how often each variable is read, as an operand or a result."""
    reads = (jaxpr.outvars, *[eqn.invars for eqn in jaxpr.eqns])
    return Counter([v for read in reads for v in read if type(v) is Var])


def in_order(jaxpr: Jaxpr, eqns: Sequence[Equation], outvars: Sequence[Atom]) -> Jaxpr:
    """Build the program of these equations in a topological order close to the given one, without dead code.

    Raises: InternalError if they form a cycle.
    """
    if _is_in_order(eqns):
        return passes.dead_code(jaxpr.replace(eqns=eqns, outvars=outvars))
    made = {v: eqn for eqn in eqns for v in eqn.outvars}
    begun: set[Equation] = set()
    done: set[Equation] = set()
    ordered: list[Equation] = []
    for eqn in eqns:
        todo = [] if eqn in done else [eqn]
        while todo:
            last = todo[-1]
            missing = [made[v] for v in last.invars if v in made and made[v] not in done]
            if missing:
                begun.add(last)
                if not begun.isdisjoint(missing):
                    raise InternalError(f"the equations of {jaxpr.name} form a cycle")
                todo += missing
                continue
            todo.pop()
            if last not in done:
                done.add(last)
                ordered.append(last)
    return passes.dead_code(jaxpr.replace(eqns=ordered, outvars=outvars))


def _is_in_order(eqns: Sequence[Equation]) -> bool:
    """Tell whether each equation reads only what is computed before it, and no equation occurs twice."""
    later = {v for eqn in eqns for v in eqn.outvars}
    for eqn in eqns:
        if not later.isdisjoint(eqn.invars):
            return False
        later.difference_update(eqn.outvars)
    return len({*eqns}) == len(eqns)


def _is_of_zeros(eqn: Equation) -> bool:
    """Tell whether a linear equation has lost all its linear operands, which became zeros."""
    return eqn.linear and bool(eqn.invars) and not any(v.linear for v in eqn.invars)
