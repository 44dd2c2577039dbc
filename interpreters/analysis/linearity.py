"""Linearity check: verify that a program is linear in its linear inputs, as transposition assumes.

One forward pass gives each value one of four facts: it is zero, constant, or linear; or it is a boolean or integer
computed by an equation from linear values (or another result of such an equation, as of `sort`), which does no harm
until it is used. Sums need operands that are linear or zero, products at most one linear factor.
Source: Radul et al. 2023, section 3, "Linear A".
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from tapeless.interpreters import jvp
from tapeless.tracer import core, dtypes, printing
from tapeless.tracer.bodies import CONST, Body, ForwardAnalysis, bodies_of
from tapeless.tracer.errors import LinearityError
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.rules import Table
from tapeless.tracer.settings.config import config


class Fact(Enum):
    """Abstract value of the linearity check, except for booleans and integers computed from linear values."""

    ZERO = "zero"
    CONSTANT = "constant"
    LINEAR = "linear"


Facts = tuple[Fact | Equation, ...]  # an equation: it computed a boolean or integer from linear values


def check_linear(jaxpr: Jaxpr, strict: bool = False, zero_in: Sequence[bool] = (), trusting: bool = False) -> None:
    """Check that a program is linear in its linear inputs; its linear values are marked (`linear_vars.mark_linear`).

    Args:
      strict: fan-out and disposal must be explicit too: every linear value is read once, every other one at least
        once (see `strict_form`).
      zero_in: which of its first inputs are known to be zero.
      trusting: whether a primitive of a library, if its linear operands are not stated, is linear in the marked ones,
        together: rules of derivatives, which the library wrote, applied it to tangents.
    Raises: LinearityError naming the equation, its line and the reason: bilinear, nonlinear primitive, affine,
      constant, nonlinear result depends on linear input, predicate depends on linear input, index depends on linear
      input; if strict also implicit dup, implicit drop, implicit nonlinear drop.
    """
    check = Check(jaxpr, jaxpr, trusting)
    check.check_results(check.facts(facts_of_inputs(jaxpr, zero_in)))
    if strict:
        _check_strict(jaxpr, jaxpr)


def checked_linear(jaxpr: Jaxpr, residuals: Sequence[Any] | None = None) -> Jaxpr:
    """Return a program that a transform built, after `check_linear` if `config.check_programs` is set.

    Args:
      residuals: values of its inputs that are not linear, all unknown if None. Rules may have made zeros of them, so
        unknown ones count as zeros.
    Raises: LinearityError.
    """
    if config.check_programs:
        n = len(jaxpr.invars) - sum(jaxpr.linear_in)
        zeros = [True] * n if residuals is None else list(map(may_be_zero, residuals))
        check_linear(jaxpr, zero_in=zeros, trusting=True)
    return jaxpr


def may_be_zero(x: Any) -> bool:
    """Tell whether a value is zero or unknown."""
    known = known_elements(x)
    return known is None or known.dtype == dtypes.float0 or not np.any(known)


def facts_of_inputs(jaxpr: Jaxpr, zero_in: Sequence[bool] = ()) -> Facts:
    """Return the fact of each input of a program; `zero_in` says which of the first are zero."""
    zeros = [*zero_in, *[False] * (len(jaxpr.invars) - len(zero_in))]
    return tuple([Fact.LINEAR if v.linear else _known(zero) for v, zero in zip(jaxpr.invars, zeros, strict=True)])


def facts_of_variables(jaxpr: Jaxpr, zero_in: Sequence[bool] = ()) -> dict[Var, Fact | Equation]:
    """Compute the fact of every variable of a program. Raises: LinearityError."""
    return Check(jaxpr, jaxpr, trusting=True).environment(facts_of_inputs(jaxpr, zero_in))


rules: Table[Callable[["Check", Equation, Facts], Facts]] = Table(
    "linearity check",
    "rule(check, eqn, facts of operands) -> facts of results",
    absent="its bodies are checked, if it has any; else the linearity table says in which operands it is linear",
)


class Check:
    """The check of one program or body; `outer` is the whole program, which errors name."""

    def __init__(self, jaxpr: Jaxpr, outer: Jaxpr, trusting: bool = False) -> None:
        self.jaxpr: Final = jaxpr
        self.outer: Final = outer
        self.trusting: Final = trusting

    def inside(self, jaxpr: Jaxpr, facts: Facts) -> Facts:
        """Compute the facts of the results of a body. Remembered for as long as the body lives."""
        if any(isinstance(fact, Equation) for fact in facts):
            return Check(jaxpr, self.outer, self.trusting).facts(facts)
        cache, key = _found.setdefault(jaxpr, {}), (facts, self.trusting)
        if key not in cache:
            cache[key] = Check(jaxpr, self.outer, self.trusting).facts(facts)
        return cache[key]

    def join(self, eqn: Equation, a: Fact | Equation, b: Fact | Equation) -> Fact | Equation:
        """Join the facts of two values of one variable, as results of branches or a carry. Raises: LinearityError."""
        if a is b or b is Fact.ZERO or isinstance(a, Equation):
            return a
        if a is Fact.ZERO or isinstance(b, Equation):
            return b
        raise self.error("affine", f"a result of {eqn.primitive} is a linear value here and a constant there", eqn)

    def facts(self, facts: Facts) -> Facts:
        """Compute the facts of the results from the facts of the inputs."""
        env = self.environment(facts)
        return tuple([fact_of(v, env) for v in self.jaxpr.outvars])

    def environment(self, facts: Facts) -> dict[Var, Fact | Equation]:
        """Compute the facts of all variables from the facts of the inputs."""
        env: dict[Var, Fact | Equation] = dict(zip(self.jaxpr.invars, facts, strict=True))
        for eqn in self.jaxpr.eqns:
            given = tuple([fact_of(v, env) for v in eqn.invars])
            env.update(zip(eqn.outvars, self._equation(eqn, given), strict=True))
        return env

    def check_results(self, facts: Facts) -> None:
        """Check that each result is linear or zero. Raises: LinearityError."""
        for i, (v, fact) in enumerate(zip(self.jaxpr.outvars, facts, strict=True)):
            if isinstance(fact, Equation) and _is_inexact(v):
                raise self._nonlinear(fact)
            if isinstance(fact, Equation):
                raise self.error(_RESULT, f"its result {v.aval} is what {fact.primitive} makes of a linear value", fact)
            if fact is Fact.CONSTANT:
                which = f"result {i}, {v.aval}," if len(facts) > 1 else f"result {v.aval}"
                made = next((eqn for eqn in self.jaxpr.eqns if v in eqn.outvars), None)
                raise self.error("constant", f"its {which} does not depend on its arguments", made)

    def error(self, reason: str, why: str, eqn: Equation | None, hint: str = "") -> LinearityError:
        """Make the error for an equation that is not linear."""
        return _error(self.outer, self.jaxpr, "linear", reason, why, eqn, hint)

    def _equation(self, eqn: Equation, facts: Facts) -> Facts:
        rule = rules.get(eqn.primitive)
        outs = rule(self, eqn, facts) if rule else self._bodies(eqn, facts)
        for v, fact in zip(eqn.outvars, outs, strict=True):
            if fact is Fact.LINEAR and not v.linear:
                raise self.error(_RESULT, f"{eqn.primitive} makes a nonlinear value of a linear one", eqn)
        return outs

    def _bodies(self, eqn: Equation, facts: Facts) -> Facts:
        bodies = bodies_of(eqn)
        if bodies is None:
            return (self.primitive(eqn, facts),) * len(eqn.outvars)
        index = None if bodies.selector is None else facts[bodies.selector]
        if isinstance(index, Equation):
            raise self.decided(eqn, eqn.invars[bodies.selector or 0], index)
        return tuple(_FactsOfBodies(self).through(eqn, bodies, facts))

    def primitive(self, eqn: Equation, facts: Facts) -> Fact | Equation:
        """Compute the fact of the results of an equation without bodies. Raises: LinearityError."""
        made = next((fact for fact in facts if isinstance(fact, Equation)), None)
        if not all(map(_is_inexact, eqn.outvars)) or not eqn.outvars:
            return made or (eqn if Fact.LINEAR in facts else Fact.CONSTANT)
        if jvp.structurally_linear.get(eqn.primitive) is jvp.All.SEPARATELY:
            return self._product(eqn, facts, made)
        return self.jointly(eqn, facts, linear_operands(eqn))

    def jointly(self, eqn: Equation, facts: Facts, positions: Sequence[int]) -> Fact:
        """Compute the fact of a result that is linear in the operands at `positions` jointly, and in no others."""
        for k, fact in enumerate(facts):
            if k not in positions:
                self._check_other(eqn, k, fact, bool(positions))
            elif isinstance(fact, Equation):
                raise self._nonlinear(fact)
        joint = {facts[k] for k in positions}
        if {Fact.LINEAR, Fact.CONSTANT} <= joint:
            raise self.error("affine", f"{eqn.primitive} combines a linear value with a constant", eqn)
        return Fact.LINEAR if Fact.LINEAR in joint else _known(joint == {Fact.ZERO})

    def of_sets(self, eqn: Equation, facts: Facts, sets: Sequence[Sequence[int]], advice: str = "") -> Fact:
        """Compute the fact of a result that is linear in the operands of each set jointly, for fixed other operands.

        Raises: LinearityError, with `advice` if no set has any of the linear operands.
        """
        moving = {k for k, fact in enumerate(facts) if fact is Fact.LINEAR or isinstance(fact, Equation)}
        if not moving:
            return _known(any(all(facts[k] is Fact.ZERO for k in s) for s in sets))
        found, least = [s for s in sets if moving.issubset(s)], [s for s in sets if not moving.isdisjoint(s)]
        if not found and len(least) > 1:
            raise self.error("bilinear", f"{eqn.primitive} multiplies two values that are both linear", eqn)
        if not found:
            k = min(moving.difference(*least))
            raise self._nonlinear(eqn, f" as operand {k + 1}" if sets else "", advice)
        holding = [s for s in found if all(facts[k] is not Fact.CONSTANT for k in s)]
        return self.jointly(eqn, facts, (holding or found)[0])

    def _product(self, eqn: Equation, facts: Facts, made: Equation | None) -> Fact:
        if made is not None:
            raise self._nonlinear(made)
        if facts.count(Fact.LINEAR) > 1:
            raise self.error("bilinear", f"{eqn.primitive} multiplies two values that are both linear", eqn)
        return Fact.LINEAR if Fact.LINEAR in facts else _known(Fact.ZERO in facts)

    def _check_other(self, eqn: Equation, k: int, fact: Fact | Equation, in_others: bool) -> None:
        """Check that operand `k`, in which the primitive is not linear, is no linear value. Raises: LinearityError."""
        if fact is Fact.LINEAR:
            raise self._nonlinear(eqn, f" as operand {k + 1}" if in_others else "")
        if isinstance(fact, Equation):
            raise self.decided(eqn, eqn.invars[k], fact) if in_others else self._nonlinear(fact)

    def decided(self, eqn: Equation, by: Atom, made: Equation) -> LinearityError:
        """Make the error for an equation that uses a boolean or integer computed by `made` from linear values."""
        kind = "predicate" if by.aval.dtype == np.dtype(bool) else "index"
        why = f"{eqn.primitive} goes by what {made.primitive} makes of a linear value"
        elsewhere = made.source if str(made.source) != str(eqn.source) else None
        hint = f"\n  {made.primitive} was reached from {elsewhere.describe()}." if elsewhere else ""
        return self.error(f"{kind} depends on linear input", why, eqn, hint)

    def _nonlinear(self, eqn: Equation, which: str = "", hint: str = "") -> LinearityError:
        return self.error("nonlinear primitive", f"{eqn.primitive} is applied to a linear value{which}", eqn, hint)


def linear_operands(eqn: Equation) -> Sequence[int]:
    """Return the positions of the operands in which a primitive is linear: all if it is in each separately."""
    n, table = len(eqn.invars), jvp.structurally_linear
    positions = table.get(eqn.primitive, ())
    if isinstance(positions, slice):
        return range(n)[positions]
    return range(n) if isinstance(positions, jvp.All) else [k for k in positions if k < n]


class _FactsOfBodies(ForwardAnalysis[Fact | Equation]):
    """The check of the bodies of one equation, in a program."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def run(self, eqn: Equation, body: Body, given: Sequence[Fact | Equation]) -> Facts:
        return self._check.inside(body.jaxpr, tuple(given))

    def join(self, eqn: Equation, x: Fact | Equation, y: Fact | Equation) -> Fact | Equation:
        return self._check.join(eqn, x, y)

    def test(self, eqn: Equation, body: Body, value: Fact | Equation) -> None:
        if isinstance(value, Equation):
            raise self._check.decided(eqn, body.jaxpr.outvars[0], value)


def _known(zero: bool) -> Fact:
    return Fact.ZERO if zero else Fact.CONSTANT


def fact_of(v: Atom, env: dict[Var, Fact | Equation]) -> Fact | Equation:
    """Return the fact of a variable or a literal."""
    if v.aval.dtype == dtypes.float0:
        return Fact.ZERO
    return _known(not np.any(v.value)) if isinstance(v, Literal) else env[v]


def _is_inexact(v: Atom) -> bool:
    return dtypes.is_inexact(v.aval.dtype)


# ---- strictness ----------------------------------------------------------------------------------------------


def _check_strict(jaxpr: Jaxpr, outer: Jaxpr) -> None:
    """Check that linear values are read once, and others at least once, in bodies, too. Raises: LinearityError."""
    reads: dict[Var, list[Equation | None]] = {v: [] for eqn in jaxpr.eqns for v in eqn.outvars}
    reads |= {v: [] for v in jaxpr.invars}
    for eqn in (*jaxpr.eqns, None):
        for v in eqn.invars if eqn else jaxpr.outvars:
            if isinstance(v, Var):
                reads[v].append(eqn)
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for v, readers in reads.items():
        _check_reads(v, readers, made.get(v), jaxpr, outer)
    for eqn in jaxpr.eqns:
        _check_constants(eqn, jaxpr, outer)
        for inner in subjaxprs(eqn.params):
            _check_strict(inner, outer)


def _check_constants(eqn: Equation, jaxpr: Jaxpr, outer: Jaxpr) -> None:
    """Check that no constant of a loop, which all steps read, is linear. Raises: LinearityError."""
    bodies = bodies_of(eqn)
    for at in bodies.operands(CONST) if bodies is not None and bodies.loops else ():
        v = eqn.invars[at]
        if v.linear:
            why = f"{_names(jaxpr).typed(v)} is read by all steps of {eqn.primitive}, without a dup"
            raise _error(outer, jaxpr, "strict", "implicit dup", why, eqn)


def _check_reads(v: Var, readers: Sequence[Equation | None], made: Equation | None, jaxpr: Jaxpr, outer: Jaxpr) -> None:
    name = _names(jaxpr).typed(v)
    if not readers:
        kind = "implicit drop" if v.linear else "implicit nonlinear drop"
        raise _error(outer, jaxpr, "strict", kind, f"{name} is never read", made)
    if v.linear and len(readers) > 1:
        why = f"{name} is read {len(readers)} times, without a dup"
        raise _error(outer, jaxpr, "strict", "implicit dup", why, readers[-1] or made)


# ---- messages ------------------------------------------------------------------------------------------------

_RESULT = "nonlinear result depends on linear input"


def _error(
    outer: Jaxpr, jaxpr: Jaxpr, what: str, reason: str, why: str, eqn: Equation | None, hint: str = ""
) -> LinearityError:
    inside = f", in {jaxpr.name}" if jaxpr is not outer else ""
    text = f"\n  {_equation_text(jaxpr, eqn)}" if eqn else ""
    place = eqn.source if eqn else None
    reached = f"\n  It was reached from {place.describe()}." if place else ""
    message = f"{outer.name} is not {what} ({reason}): {why}{inside}.{text}{reached}{hint}"
    return LinearityError(message, reason, eqn)


def _equation_text(jaxpr: Jaxpr, eqn: Equation) -> str:
    """Print one equation as it stands in the program, with names in the place of its bodies."""
    names = _names(jaxpr) if eqn in jaxpr.eqns else printing.Names()
    return printing.equation_text(eqn, names, {program: f"@{program.name}" for program in subjaxprs(eqn.params)})


def _names(jaxpr: Jaxpr) -> printing.Names:
    """Return the names that variables have when the program is printed."""
    names = printing.Names()
    inputs = sorted(jaxpr.invars, key=lambda v: v.linear)
    for v in (*inputs, *[v for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars)]):
        names(v)
    return names


_found = core.program_cache()
