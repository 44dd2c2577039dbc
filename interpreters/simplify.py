"""Simplification of programs by rewriting: equal results by less work, mainly in linear jaxprs before transposition.

Transposition preserves work, so the cost of gradients is decided here, on the linear jaxpr. The passes over a program
run in turn until none changes anything:
- rules that replace one equation, depending on what computes its operands: most are rows of the table in
  `simplifications/rewrites.py`;
- loop-invariant code motion (`licm.py`): equations of a linear loop that depend on constants alone go before it;
- dead operands (`dead_operands.py`): drop the operands of equations that their bodies do not read;
- select of an update (`select_of_update.py`): a select between an array and its update becomes an update of selects;
- mask sinking (`masks/`) in linear jaxprs: elements discarded by a select are not multiplied by residuals, which may be
  infinite;
- slice pushdown (`slicing/`): a value of which only parts are read is computed in these parts only;
- fusion (`fusion/`): sums and products are written into the sums that read them, where that is less work.
No pass adds work, counted in elements computed, except that mask sinking adds selects of residuals; each takes time
linear in the length of the program.
Source: after Bernstein et al. 2020, sections 5 and 6.
"""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

from tapeless.interpreters.writer import Writer
from tapeless.tracer import core
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.late_imports import LateModule

if TYPE_CHECKING:
    from tapeless.interpreters import limits
    from tapeless.interpreters.simplifications import pass_order
else:
    limits = LateModule("tapeless.interpreters.limits")
    pass_order = LateModule("tapeless.interpreters.simplifications.pass_order")


def simplify_program(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a whole program, and the bodies of its equations, to an equal one without more work.

    Returns: the same object if no pass changes anything. Remembered for as long as `jaxpr` lives.
    """
    return _remembered(jaxpr, finite_inputs=True)


def simplify_body(jaxpr: Jaxpr) -> Jaxpr:
    """Simplify the body of an equation.

    The linear inputs of a whole program are assumed to be finite, for users give these tangents or cotangents; those of
    a body are computed, so they may be infinite or nan.
    """
    return _remembered(jaxpr, finite_inputs=not any(jaxpr.linear_in))


def _remembered(jaxpr: Jaxpr, finite_inputs: bool) -> Jaxpr:
    cache = _simplified.setdefault(jaxpr, {})
    if finite_inputs not in cache:
        found = _simplify(jaxpr, finite_inputs)
        # A program that its own entry held would wait to be collected.
        cache[finite_inputs] = None if found is jaxpr else found
        _simplified.setdefault(found, {}).update({True: None, False: None} if finite_inputs else {False: None})
    return cache[finite_inputs] or jaxpr


def _simplify(jaxpr: Jaxpr, finite_inputs: bool = True) -> Jaxpr:
    """Run the rules and the passes in turn until none changes anything, at most `ROUNDS` times; check the result."""
    found = jaxpr
    for after in after_passes(jaxpr, finite_inputs):
        found = after.program
    return jaxpr if found is jaxpr else check_if_configured(found)


class AfterPass(NamedTuple):
    """A program after a pass that changed it; `name` is the pass's, as `name_of` returns it."""

    name: str
    program: Jaxpr


def after_passes(jaxpr: Jaxpr, finite_inputs: bool = True) -> Iterator[AfterPass]:
    """Yield the program after each pass that changes it; the rules run first, then the passes of `pass_order`."""
    every = [_RuleRuns().run, *(pass_order.programs if finite_inputs else pass_order.bodies)]
    found, idle = pass_order.first(jaxpr), 0
    if found is not jaxpr:
        yield AfterPass(name_of(pass_order.first), found)
    for run in islice(cycle(every), limits.ROUNDS * len(every)):
        is_done = found is jaxpr and run is pass_order.first  # it has just found nothing in this very program
        after = found if is_done else run(found)
        if after is found:
            idle += 1
        else:
            found, idle = after, 1 if run is every[0] else 0  # a second run of the rules would change nothing
            yield AfterPass(name_of(run), found)
        if idle == len(every):
            return
    limits.ROUNDS.stop()


def name_of(run: Callable[[Jaxpr], Jaxpr]) -> str:
    """Return the name of a pass: `rewrites`, or the name of its module in `simplifications`."""
    return run.__module__.partition(".simplifications.")[2] or "rewrites"


class _RuleRuns:
    """The rules as a pass, which remembers what it has looked at."""

    def __init__(self) -> None:
        self._before: Writer | None = None

    def run(self, jaxpr: Jaxpr) -> Jaxpr:
        """Rewrite a program; equations that did not change since the last run are not looked at again."""
        w = Writer(jaxpr, simplify_body)
        after, self._before = w.rewritten(self._before), w
        return after


_simplified = core.program_cache()
